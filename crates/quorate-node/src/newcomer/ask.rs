//! One question over HTTP, encrypted, to a node of a cluster that is known by its authority alone.

use std::time::Duration;

use quorate_api::{JoinRequest, JoinView, Problem};
use quorate_trust::to_unknown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stream::Stream;

/// How long it may take to reach a node, and how long its answer.
const TO_REACH: Duration = Duration::from_secs(5);
const TO_ANSWER: Duration = Duration::from_secs(20);
/// Longest answer.
const ANSWER_MAX: u64 = 1 << 20;

/// A node that was reached, and is of the cluster.
pub(super) struct Door {
    stream: Stream,
    host: String,
    own: std::net::IpAddr,
}

impl Door {
    pub(super) async fn open(host: &str, authority: [u8; 32]) -> Result<Door, String> {
        let tls = to_unknown(authority).map_err(|error| error.to_string())?;
        let reached = timeout(TO_REACH, async {
            let stream = TcpStream::connect(host).await?;
            let own = stream.local_addr()?.ip();
            Ok::<_, std::io::Error>((Stream::connect(stream, tls).await?, own))
        });
        let reached = reached.await.map_err(|_| "no answer in time".to_owned())?;
        let (stream, own) = reached.map_err(|error| error.to_string())?;
        Ok(Door { stream, host: host.to_owned(), own })
    }

    /// From where this machine reached it: there it can be reached, too, most of the time.
    pub(super) fn own_address(&self) -> String {
        self.own.to_string()
    }
}

/// Asks to be let in. An error is that nothing came back; what came of it is unknown.
pub(super) async fn ask(
    door: Door,
    request: &JoinRequest,
) -> Result<Result<JoinView, String>, String> {
    let Door { mut stream, host, .. } = door;
    let body = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    let head = format!(
        "POST /v1/join HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let answered = timeout(TO_ANSWER, async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    });
    let answer = answered.await.map_err(|_| format!("{host}: no answer in time"))?;
    let answer = answer.map_err(|error| format!("{host}: {error}"))?;
    read(&answer).ok_or_else(|| format!("{host} does not answer as a node does"))
}

/// What the node said; nothing if that is no answer, or one that others may give better.
fn read(answer: &[u8]) -> Option<Result<JoinView, String>> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = (str::from_utf8(&answer[..end]).ok()?, &answer[end + 4..]);
    let status: u16 = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    match status {
        200 => serde_json::from_slice(body).ok().map(Ok),
        500.. => None,
        _ => {
            let problem: Problem = serde_json::from_slice(body).ok()?;
            Some(Err(problem.detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_member_a_refusal_or_nothing() {
        let problem = Problem::new(quorate_api::ProblemKind::Unauthorized, "it was used");
        let problem = serde_json::to_string(&problem).unwrap();
        let said = |status: &str, body: &str| {
            read(format!("HTTP/1.1 {status}\r\nx: y\r\n\r\n{body}").as_bytes())
        };
        assert_eq!(said("401 Unauthorized", &problem), Some(Err("it was used".into())));
        assert_eq!(said("503 Service Unavailable", &problem), None);
        assert_eq!(said("200 OK", "{}"), None);
        assert_eq!(said("4", &problem), None);
        assert_eq!(read(b"SSH-2.0"), None);
    }
}
