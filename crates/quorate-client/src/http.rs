//! Looking at pools, and what operators do: one HTTP request at a time, for tools in no hurry.

mod tokens;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::DATE;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use quorate_api::link::Token;
use quorate_api::{
    AmendRequest, AmendedView, ApplyRequest, AuditView, BackupView, ClaimId, ClaimStatus,
    DefineRequest, DefinitionView, FoundView, HistoryView, HoldersView, InviteRequest, InviteView,
    MembersView, NodeView, Overview, PoolView, PoolsView, Problem, ProblemKind, QueueView,
    RelabelRequest, RemoveRequest, RenewRequest, RevokeRequest, Want, format_span,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::chance::entropy;
use crate::client::known;
use crate::error::ConnectError;
use crate::screen::{Screen, escaped};
use crate::server::Server;
use crate::tls::{Stream, Tls, dial, hint, told};

/// Why something could not be seen or done.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// None of the servers answered. What a request to change something did is unknown; repeating
    /// it is harmless.
    #[error("no node answers ({why}): {}", hint(why))]
    Unreachable {
        /// What was tried last, and what happened.
        why: String,
    },
    /// The node would not. Nothing changed.
    #[error("{0}")]
    Problem(Problem),
    /// The node answered something that is no answer.
    #[error("{server} does not speak as a node does (status {status}): is it one?")]
    Strange {
        /// Which server.
        server: String,
        /// The HTTP status.
        status: u16,
    },
}

/// Longest answer that is read, and longest time it may take.
const ANSWER_MAX: usize = 64 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

/// What there is to see at a cluster: the first server of the list that answers is asked.
#[derive(Clone, Debug)]
pub struct Views {
    servers: Vec<Server>,
    token: Option<Token>,
    tls: Option<Tls>,
    /// The name of the next request, if whoever asks may repeat it.
    request_id: Option<ClaimId>,
}

impl Views {
    /// Of the cluster that these servers belong to.
    ///
    /// # Errors
    /// The list makes no sense. Nothing was sent.
    pub fn new<S: AsRef<str>>(servers: impl IntoIterator<Item = S>) -> Result<Views, ConnectError> {
        let servers: Vec<Server> =
            servers.into_iter().map(|s| Server::parse(s.as_ref())).collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(ConnectError::NoServers);
        }
        Ok(Views { servers, token: None, tls: None, request_id: None })
    }

    /// Shows a token with every request.
    pub fn with_token(self, token: Option<Token>) -> Views {
        Views { token, ..self }
    }

    /// Trusts these, where servers are named with `https://`.
    ///
    /// # Errors
    /// A server is, and nothing says whom to trust.
    pub fn with_tls(self, tls: Option<Tls>) -> Result<Views, ConnectError> {
        known(&self.servers, tls.as_ref())?;
        Ok(Views { tls, ..self })
    }

    /// The node that answers.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn node(&self) -> Result<NodeView, ViewError> {
        self.ask(Method::GET, "/v1/node", None::<&()>).await
    }

    /// The first pools by name.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn pools(&self) -> Result<PoolsView, ViewError> {
        self.pools_after("").await
    }

    /// The pools with names after this one, as many as a list has.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn pools_after(&self, name: &str) -> Result<PoolsView, ViewError> {
        let path = match name {
            "" => "/v1/pools".to_owned(),
            name => format!("/v1/pools?after={}", escaped(name)),
        };
        self.ask(Method::GET, &path, None::<&()>).await
    }

    /// One pool, with how much of it is held.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn pool(&self, pool: &str) -> Result<PoolView, ViewError> {
        self.ask(Method::GET, &pool_path(pool, ""), None::<&()>).await
    }

    /// Who holds its units.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn holders(&self, pool: &str) -> Result<HoldersView, ViewError> {
        self.ask(Method::GET, &pool_path(pool, "/holders"), None::<&()>).await
    }

    /// Who waits for them.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn queue(&self, pool: &str) -> Result<QueueView, ViewError> {
        self.ask(Method::GET, &pool_path(pool, "/queue"), None::<&()>).await
    }

    /// How a claim stands, and why it waits if it does.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn claim(&self, pool: &str, id: ClaimId) -> Result<ClaimStatus, ViewError> {
        let path = pool_path(pool, &format!("/claims/{id}?why=true"));
        self.ask(Method::GET, &path, None::<&()>).await
    }

    /// Makes a claim and does not wait for it: it is kept for this long without anybody who asks
    /// for it, or for a lease if that is longer. Repeating it under its id is harmless.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn leave_claim(
        &self,
        pool: &str,
        id: Option<ClaimId>,
        want: &Want,
        keep: Duration,
    ) -> Result<ClaimStatus, ViewError> {
        let id = id.unwrap_or_else(Views::new_id);
        self.make_claim(pool, id, want, (Duration::ZERO, keep)).await
    }

    /// A name that no other claim has.
    pub fn new_id() -> ClaimId {
        ClaimId::from_halves(entropy(), entropy())
    }

    /// Makes a claim, or repeats it, and waits for its grant for so long, at most a few seconds: it
    /// is kept for the second span without anybody who asks for it. The only way to a hold without
    /// a lease ([`Want::standing`]).
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn make_claim(
        &self,
        pool: &str,
        id: ClaimId,
        want: &Want,
        (wait, keep): (Duration, Duration),
    ) -> Result<ClaimStatus, ViewError> {
        let (wait, keep) = (format_span(wait.min(TIMEOUT / 2)), format_span(keep));
        let path = pool_path(pool, &format!("/claims/{id}?wait={wait}&detach={keep}"));
        self.ask(Method::PUT, &path, Some(want)).await
    }

    /// The pools that know a claim.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn find(&self, id: ClaimId) -> Result<FoundView, ViewError> {
        self.ask(Method::GET, &format!("/v1/claims/{id}"), None::<&()>).await
    }

    /// What happened in a pool, as far as nodes remember.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn history(&self, pool: &str) -> Result<HistoryView, ViewError> {
        self.ask(Method::GET, &pool_path(pool, "/history"), None::<&()>).await
    }

    /// Administrative acts, refusals and first uses of tokens at the node that answers.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn audit(&self) -> Result<AuditView, ViewError> {
        self.ask(Method::GET, "/v1/audit", None::<&()>).await
    }

    /// Who belongs to the cluster.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn members(&self) -> Result<MembersView, ViewError> {
        self.ask(Method::GET, "/v1/members", None::<&()>).await
    }

    /// Has a member give away what it decides, or lets it decide again.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn drain_member(&self, name: &str, undo: bool) -> Result<MembersView, ViewError> {
        let method = if undo { Method::DELETE } else { Method::PUT };
        self.ask(method, &format!("/v1/members/{}/drain", escaped(name)), None::<&()>).await
    }

    /// Removes a member.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn remove_member(
        &self,
        name: &str,
        how: RemoveRequest,
    ) -> Result<MembersView, ViewError> {
        self.ask(Method::POST, &format!("/v1/members/{}/remove", escaped(name)), Some(&how)).await
    }

    /// Lets a machine join under the name of a member that was removed.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn readmit_member(&self, name: &str) -> Result<MembersView, ViewError> {
        let path = format!("/v1/members/{}/readmit", escaped(name));
        self.ask(Method::POST, &path, None::<&()>).await
    }

    /// Lets a machine join under this name, with what the answer has.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn invite_member(
        &self,
        name: &str,
        how: InviteRequest,
    ) -> Result<InviteView, ViewError> {
        self.ask(Method::POST, &format!("/v1/members/{}/invite", escaped(name)), Some(&how)).await
    }

    /// The charter, for whoever keeps it.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn charter_backup(&self) -> Result<BackupView, ViewError> {
        self.ask(Method::GET, "/v1/charter/backup", None::<&()>).await
    }

    /// Has the charter take over the pools that files let fixed nodes decide.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn charter_import(&self) -> Result<MembersView, ViewError> {
        self.ask(Method::POST, "/v1/charter/import", None::<&()>).await
    }

    /// Everything that fits on a screen.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn overview(&self, screen: &Screen) -> Result<Overview, ViewError> {
        let path = screen.path();
        self.ask(Method::GET, &path, None::<&()>).await
    }

    /// Renews a grant once.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn renew(
        &self,
        pool: &str,
        id: ClaimId,
        request: &RenewRequest,
    ) -> Result<ClaimStatus, ViewError> {
        let path = pool_path(pool, &format!("/claims/{id}/renew"));
        self.ask(Method::POST, &path, Some(request)).await
    }

    /// Releases a grant, or cancels a claim.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn release(&self, pool: &str, id: ClaimId) -> Result<ClaimStatus, ViewError> {
        let path = pool_path(pool, &format!("/claims/{id}"));
        self.ask(Method::DELETE, &path, None::<&()>).await
    }

    /// Takes a grant back from its holder.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn revoke(
        &self,
        pool: &str,
        id: ClaimId,
        reason: &str,
    ) -> Result<ClaimStatus, ViewError> {
        let path = pool_path(pool, &format!("/claims/{id}/revoke"));
        let request = RevokeRequest { reason: reason.into() };
        self.ask(Method::POST, &path, Some(&request)).await
    }

    /// Takes a unit, by name or number, out of service, or brings it back.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn drain(&self, pool: &str, unit: &str, undo: bool) -> Result<PoolView, ViewError> {
        let path = pool_path(pool, &format!("/units/{}/drain", escaped(unit)));
        let method = if undo { Method::DELETE } else { Method::PUT };
        self.ask(method, &path, None::<&()>).await
    }

    /// Gives a unit, by name or number, exactly these labels, or those of the configuration again.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn relabel(
        &self,
        pool: &str,
        unit: &str,
        labels: Option<BTreeMap<String, String>>,
    ) -> Result<PoolView, ViewError> {
        let path = pool_path(pool, &format!("/units/{}/labels", escaped(unit)));
        match labels {
            Some(labels) => self.ask(Method::PUT, &path, Some(&RelabelRequest { labels })).await,
            None => self.ask(Method::DELETE, &path, None::<&()>).await,
        }
    }

    /// The same, with a name for what is asked: repeated under it, a change is made once.
    pub fn with_request_id(self, request_id: Option<ClaimId>) -> Views {
        Views { request_id, ..self }
    }

    /// What a pool is, as somebody wrote it.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn definition(&self, pool: &str) -> Result<DefinitionView, ViewError> {
        self.ask(Method::GET, &pool_path(pool, "/definition"), None::<&()>).await
    }

    /// Makes a pool of the charter.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn create_pool(
        &self,
        pool: &str,
        request: &DefineRequest,
    ) -> Result<AmendedView, ViewError> {
        self.ask(Method::PUT, &pool_path(pool, ""), Some(request)).await
    }

    /// Changes a pool of the charter.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn amend_pool(
        &self,
        pool: &str,
        request: &AmendRequest,
    ) -> Result<AmendedView, ViewError> {
        self.ask(Method::PATCH, &pool_path(pool, ""), Some(request)).await
    }

    /// Deletes a pool of the charter. `holders` is what becomes of those who hold units of it:
    /// `drain` or `revoke`; without, it is refused if there are any.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn delete_pool(
        &self,
        pool: &str,
        holders: Option<&str>,
        if_generation: Option<u64>,
        dry_run: bool,
    ) -> Result<AmendedView, ViewError> {
        let mut path = pool_path(pool, &format!("?dry_run={dry_run}"));
        if let Some(holders) = holders {
            path += &format!("&holders={}", escaped(holders));
        }
        if let Some(generation) = if_generation {
            path += &format!("&if_generation={generation}");
        }
        self.ask(Method::DELETE, &path, None::<&()>).await
    }

    /// Makes all pools of a file that are not there and changes those that are others, or does
    /// nothing.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn apply_pools(&self, request: &ApplyRequest) -> Result<AmendedView, ViewError> {
        self.ask(Method::POST, "/v1/pools", Some(request)).await
    }

    /// Scrambles the state of a pool's seat at the node that answers, to see the pool heal. For
    /// tests: a pool must allow it, and may hand out too much until it has healed.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn corrupt(&self, pool: &str) -> Result<PoolView, ViewError> {
        let path = format!("/v1/admin{}", pool_path(pool, "/corrupt").trim_start_matches("/v1"));
        self.ask(Method::POST, &path, None::<&()>).await
    }

    /// Says that a node which seems to have crashed is cut off from what a pool's units protect, to
    /// the node that answers.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn fence(&self, pool: &str, node: &str) -> Result<PoolView, ViewError> {
        let path = pool_path(pool, &format!("/nodes/{}/fence", escaped(node)));
        let path = format!("/v1/admin{}", path.trim_start_matches("/v1"));
        self.ask(Method::POST, &path, None::<&()>).await
    }

    /// What the clock of the node that answers says, to the second: for whoever wonders whether
    /// certificates and times in logs can be trusted.
    ///
    /// # Errors
    /// No node answers, or none that tells the time.
    pub async fn clock(&self) -> Result<SystemTime, ViewError> {
        let mut why = String::new();
        for server in &self.servers {
            let at = (server, self.tls.as_ref());
            let once = converse(at, Method::GET, "/livez", Bytes::new(), Vec::new());
            match tokio::time::timeout(TIMEOUT, once).await {
                Ok(Ok(answer)) => {
                    let (status, date) = (answer.status().as_u16(), answer.headers().get(DATE));
                    let date = date.and_then(|date| date.to_str().ok());
                    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
                    let server = server.to_string();
                    return date.ok_or(ViewError::Strange { server, status });
                }
                Ok(Err(error)) => why = format!("{server}: {}", told(&*error)),
                Err(_) => why = format!("{server}: no answer within {TIMEOUT:?}"),
            }
        }
        Err(ViewError::Unreachable { why })
    }

    /// Asks one server after the other until one answers. All requests of this API may be repeated.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ViewError> {
        let body = body.map(|body| serde_json::to_vec(body).expect("plain data always encodes"));
        let body = Bytes::from(body.unwrap_or_default());
        // An order that is repeated at another server is carried out once.
        let key = self.request_id.unwrap_or_else(|| ClaimId::from_halves(entropy(), entropy()));
        let key = key.to_string();
        let (mut why, mut put_off) = (String::new(), None);
        for server in &self.servers {
            let mut headers = vec![("idempotency-key", key.clone())];
            headers.extend(self.token.iter().map(|t| ("authorization", format!("Bearer {}", t.0))));
            let once =
                exchange((server, self.tls.as_ref()), method.clone(), path, body.clone(), headers);
            match tokio::time::timeout(TIMEOUT, once).await {
                Ok(Ok((status, answer))) => match read(server, status, &answer) {
                    Err(ViewError::Problem(problem)) if begins_or_ends(&problem) => {
                        put_off = Some(problem);
                    }
                    answer => return answer,
                },
                Ok(Err(error)) => why = format!("{server}: {}", told(&*error)),
                Err(_) => why = format!("{server}: no answer within {TIMEOUT:?}"),
            }
        }
        Err(put_off.map_or(ViewError::Unreachable { why }, ViewError::Problem))
    }
}

/// Whether a node does nothing yet or nothing more, and another may.
fn begins_or_ends(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::Starting | ProblemKind::Stopping)
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(
    at: (&Server, Option<&Tls>),
    method: Method,
    path: &str,
    body: Bytes,
    headers: Vec<(&str, String)>,
) -> Result<(StatusCode, Bytes), Failure> {
    let answer = converse(at, method, path, body, headers).await?;
    Ok((answer.status(), answer.into_body()))
}

/// One request and its whole answer.
async fn converse(
    (server, tls): (&Server, Option<&Tls>),
    method: Method,
    path: &str,
    body: Bytes,
    headers: Vec<(&str, String)>,
) -> Result<Response<Bytes>, Failure> {
    let stream = dial(server, tls).await?;
    let host = match &stream {
        // Nodes know no names: one of somebody else's could lead a browser to them.
        Stream::Plain(stream) => stream.peer_addr()?.to_string(),
        Stream::Tls(_) => server.address().to_owned(),
        Stream::Local(_) => "localhost".to_owned(),
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let running = tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", host)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(body))?;
    let response = sender.send_request(request).await?;
    let (head, body) = response.into_parts();
    let answer = Limited::new(body, ANSWER_MAX).collect().await?.to_bytes();
    running.abort();
    Ok(Response::from_parts(head, answer))
}

fn read<T: DeserializeOwned>(
    server: &Server,
    status: StatusCode,
    answer: &[u8],
) -> Result<T, ViewError> {
    let strange = || ViewError::Strange { server: server.to_string(), status: status.as_u16() };
    if status.is_success() {
        return serde_json::from_slice(answer).map_err(|_| strange());
    }
    let problem = serde_json::from_slice(answer).map_err(|_| strange())?;
    Err(ViewError::Problem(problem))
}

/// The path of a pool, whatever its name is made of.
fn pool_path(pool: &str, rest: &str) -> String {
    format!("/v1/pools/{}{rest}", escaped(pool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_of_any_name_has_a_path() {
        assert_eq!(pool_path("gpu-1.x", "/queue"), "/v1/pools/gpu-1.x/queue");
        assert_eq!(pool_path("a/b ?é", ""), "/v1/pools/a%2Fb%20%3F%C3%A9");
    }
}
