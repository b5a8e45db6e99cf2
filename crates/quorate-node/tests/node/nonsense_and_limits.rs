//! What strangers, broken peers and greedy clients get: a clear error, a count, and the end of the
//! connection. The node goes on.

use crate::common::{Cluster, PATIENCE, until};
use quorate_api::link::{self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Request};
use quorate_api::{ClaimId, Problem, ProblemKind};
use quorate_wire::frame::{self, Data, Frame, Load};
use quorate_wire::glance::Wanted;
use quorate_wire::survey::Question;
use quorate_wire::{Hello, Life, Resume};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const POOLS: &str = r#"
    [[pools]]
    name = "p"
    units = 2
    arbiter = "n0"
    lease = "1h"
"#;

async fn all(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    // What was not read may break the connection instead of ending it.
    let _ = read.expect("the node hangs up");
    answer
}

/// All that a node says to whoever says this at an address, until it hangs up.
async fn say(address: std::net::SocketAddr, words: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The node may have heard enough before all is said.
    let _ = stream.write_all(words).await;
    all(&mut stream).await
}

async fn counted(cluster: &Cluster, line: &str) {
    until(line, || async {
        let (_, metrics) = cluster.text(0, "GET /metrics").await;
        metrics.lines().any(|own| own == line)
    })
    .await;
}

async fn is_unharmed(cluster: &Cluster, id: u32) {
    let put = format!("PUT /v1/pools/p/claims/{id}?wait=1m");
    let (status, granted) = cluster.request(0, &put, "").await;
    assert_eq!(status, 200, "{granted}");
    let delete = format!("DELETE /v1/pools/p/claims/{id}");
    assert_eq!(cluster.request(0, &delete, "").await.0, 200);
}

/// What n1 says first, as n0 expects it.
fn hello(cluster: &Cluster) -> Hello {
    let config = cluster.config(1, POOLS);
    Hello {
        cluster: config.cluster.clone(),
        epoch: config.epoch,
        digest: config.digest,
        node: "n1".into(),
        to: "n0".into(),
        resume: Resume { life: Life { boot: 9, mark: 1 }, knows: None, received: 0 },
    }
}

fn greeting(hello: Hello) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode(&Frame::Hello(hello), &mut bytes);
    bytes
}

fn refusal(bytes: &[u8]) -> String {
    match frame::decode(bytes) {
        Ok(Some((Frame::Refused(why), _))) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_does_not_belong_to_us_is_told_why() {
    // n0 is called by whoever comes before it in the list: by n1, if it is the last.
    let mut cluster = Cluster::start(2, POOLS).await;
    let address = cluster.peers_address(1);
    cluster.stop(0).await;
    let ours = Hello { node: "n0".into(), to: "n1".into(), ..hello(&cluster) };
    let other = |change: fn(&mut Hello)| {
        let mut hello = ours.clone();
        change(&mut hello);
        greeting(hello)
    };
    let mut version = greeting(ours.clone());
    version[2] = 9;
    for (words, why) in [
        (other(|hello| hello.cluster = "elsewhere".into()), "belongs to cluster \"test\""),
        (other(|hello| hello.epoch = 2), "has epoch 1 of the configuration"),
        (other(|hello| hello.digest ^= 1), "have different members or pools under one epoch"),
        (other(|hello| hello.to = "n7".into()), "this is n1, and \"n0\" wants to talk to \"n7\""),
        (other(|hello| hello.node = "n7".into()), "\"n7\" is not another member of the cluster"),
        (version, "version 9 of the wire; this node speaks 1"),
    ] {
        let told = refusal(&say(address, &words).await);
        assert!(told.contains(why), "{told}");
    }
    // An older start of a node that was heard of, and another one with the same number.
    for (life, why) in [
        (Life { boot: 0, mark: 1 }, "boot number 0 is older than 1"),
        (Life { boot: 1, mark: 1 }, "boot number 1 belongs to another start of that node"),
    ] {
        let resume = Resume { life, knows: None, received: 0 };
        let told = refusal(&say(address, &greeting(Hello { resume, ..ours.clone() })).await);
        assert!(told.contains(why), "{told}");
    }
    until("all eight are counted", || async {
        let (_, metrics) = cluster.text(1, "GET /metrics").await;
        metrics.contains("quorate_refused_connections_total{from=\"peer\"} 8\n")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_talks_nonsense_is_told_and_cut_off_and_may_come_back() {
    let mut cluster = Cluster::start(2, POOLS).await;
    let address = cluster.peers_address(1);
    cluster.stop(0).await;
    let resume = Resume { life: Life { boot: 5, mark: 1 }, knows: None, received: 0 };
    let ours = Hello { node: "n0".into(), to: "n1".into(), resume, ..hello(&cluster) };
    let data = |seq, ack, packed: &[u8]| {
        let mut bytes = Vec::new();
        let load = Load::Message;
        frame::encode(&Frame::Data(Data { load, seq, ack, packed }), &mut bytes);
        bytes
    };
    for (words, why) in [
        (b"Qu\x01\x03\xff\xff\xff\xff".to_vec(), "a frame of 4294967295 bytes: at most 4194304"),
        (b"not a frame at all".to_vec(), "bytes that do not begin like a frame"),
        (b"Qu\x01\x63\0\0\0\0".to_vec(), "a frame of kind 99, which does not exist"),
        (data(7, 0, b"\x01p"), "message 7 arrived after 0"),
        (data(1, 50, b"\x01p"), "the peer has received up to 50"),
        (greeting(ours.clone()), "a second greeting"),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&greeting(ours.clone())).await.unwrap();
        let _ = stream.write_all(&words).await;
        let said = all(&mut stream).await;
        let (frame, used) = frame::decode(&said).unwrap().expect("a greeting");
        assert!(matches!(frame, Frame::Hello(_)), "{frame:?}");
        // Heartbeats may come in between.
        let mut rest = &said[used..];
        let mut told = String::new();
        while let Ok(Some((frame, used))) = frame::decode(rest) {
            if let Frame::Refused(why) = frame {
                told = why;
            }
            rest = &rest[used..];
        }
        assert!(told.contains(why), "{told} instead of {why}");
        let (_, view) = cluster.request(1, "GET /v1/node", "").await;
        let problem = view["peers"][0]["problem"].as_str().unwrap_or_default().to_owned();
        assert!(problem.contains(why), "{problem}");
    }
    let (_, metrics) = cluster.text(1, "GET /metrics").await;
    assert!(metrics.contains("quorate_refused_connections_total{from=\"peer\"} 6\n"), "{metrics}");
    // A message of a pool that does not exist is dropped, and the connection goes on.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&greeting(ours)).await.unwrap();
    stream.write_all(&data(1, 0, b"\x04none")).await.unwrap();
    // So is one that its pool cannot read: the link is there for the other pools too.
    stream.write_all(&data(2, 0, b"\x01p\xff\xff\xff")).await.unwrap();
    until("it is dropped", || async {
        let (_, metrics) = cluster.text(1, "GET /metrics").await;
        metrics.contains("quorate_messages_dropped_total 1\n")
            && metrics.contains("quorate_anomalies_total 1\n")
    })
    .await;
    let (_, view) = cluster.request(1, "GET /v1/node", "").await;
    assert_eq!(view["peers"][0]["connected"], true, "{view}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_asks_and_does_not_read_is_cut_off() {
    let mut cluster = Cluster::start(2, POOLS).await;
    let address = cluster.peers_address(1);
    cluster.stop(0).await;
    let resume = Resume { life: Life { boot: 5, mark: 1 }, knows: None, received: 0 };
    let ours = Hello { node: "n0".into(), to: "n1".into(), resume, ..hello(&cluster) };
    let mut asks = Vec::new();
    for number in 0..1000 {
        frame::encode(&Frame::Ask(number, Question::Glance(Wanted::default())), &mut asks);
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&greeting(ours)).await.unwrap();
    let asking = tokio::spawn(async move {
        while stream.write_all(&asks).await.is_ok() {}
        stream
    });
    until("it is cut off", || async {
        let (_, view) = cluster.request(1, "GET /v1/node", "").await;
        let problem = view["peers"][0]["problem"].as_str().unwrap_or_default();
        problem.contains("bytes of answers wait for a peer that does not read")
    })
    .await;
    asking.await.unwrap();
}

fn problem(bytes: &[u8]) -> (u64, Problem) {
    match link::decode::<FromNode>(bytes) {
        Ok(Some((FromNode::Answer(Answer { number, reply: Reply::Problem(problem) }), _))) => {
            (number, problem)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_talks_nonsense_is_told_and_cut_off() {
    let cluster = Cluster::start(1, POOLS).await;
    let address = cluster.address(0);
    let after_preface = |words: &[u8]| [&PREFACE[..], words].concat();
    for (words, why) in [
        (after_preface(&[0xff; 64]), "at most 1048576"),
        (after_preface(&[1, 0, 0, 0, 9]), "version 9"),
        (b"QUORATE\x07".to_vec(), "version 7 of the client link: this node speaks 1"),
    ] {
        let (number, problem) = problem(&say(address, &words).await);
        assert_eq!((number, problem.kind), (0, ProblemKind::BadRequest));
        assert!(problem.detail.contains(why), "{problem}");
    }
    counted(&cluster, "quorate_refused_connections_total{from=\"client\"} 3").await;
    // Bytes that no HTTP request begins with, and a head that never ends.
    let nonsense = say(address, &[0x80; 100]).await;
    assert!(nonsense.starts_with(b"HTTP/1.1 400"), "{nonsense:?}");
    let endless = ["GET /", &"x".repeat(200_000), " HTTP/1.1\r\n\r\n"].concat();
    let answer = say(address, endless.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
    counted(&cluster, "quorate_refused_connections_total{from=\"client\"} 5").await;
    is_unharmed(&cluster, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_http_refuses_is_a_problem_and_counted() {
    let cluster = Cluster::start(1, POOLS).await;
    let claim = "PUT /v1/pools/p/claims/1";
    let (status, problem) = cluster.request(0, claim, &"x".repeat((8 << 20) + 1)).await;
    assert_eq!((status, &problem["type"]), (413, &"too-large".into()), "{problem}");
    assert_eq!(problem["status"], 413);
    let elsewhere = "GET /v1/pools HTTP/1.1\r\nhost: other.example\r\nconnection: close\r\n\r\n";
    let answer = say(cluster.address(0), elsewhere.as_bytes()).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("other-site"), "{answer}");
    let (status, problem) = cluster.request(0, "POST /v1/node", "").await;
    assert_eq!((status, &problem["type"]), (405, &"no-such-page".into()), "{problem}");
    let (status, _) = cluster.request(0, claim, "{").await;
    assert_eq!(status, 400);
    let (status, _) = cluster.request(0, "GET /v1/pools/none", "").await;
    assert_eq!(status, 404);
    let (status, _) = cluster.request(0, claim, r#"{"units": 3}"#).await;
    assert_eq!(status, 422);
    for status in [400, 404, 405, 413, 422] {
        counted(&cluster, &format!("quorate_refused_requests_total{{status=\"{status}\"}} 1"))
            .await;
    }
    is_unharmed(&cluster, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_met_by_name_and_nothing_changes() {
    let limited = format!("[limits]\nclaims = 4\nqueue = 1\n{POOLS}");
    let cluster = Cluster::start(1, &limited).await;
    let put = |id: u32| format!("PUT /v1/pools/p/claims/{id}?wait=0");
    let two = r#"{"units": 2}"#;
    assert_eq!(cluster.request(0, &put(1), two).await.0, 200);
    assert_eq!(cluster.request(0, &put(2), two).await.0, 202);
    let (status, problem) = cluster.request(0, &put(3), two).await;
    let detail = problem["detail"].as_str().unwrap();
    assert!(status == 429 && detail.starts_with("limits.queue = 1 "), "{problem}");
    // Whoever waits is not affected, and repeating needs no room.
    assert_eq!(cluster.request(0, &put(2), two).await.0, 202);
    assert_eq!(cluster.request(0, "DELETE /v1/pools/p/claims/1", "").await.0, 200);
    assert_eq!(cluster.request(0, &put(2), two).await.0, 200);
    let other = limited.replace("claims = 4", "claims = 1");
    let cluster = Cluster::start(1, &other).await;
    assert_eq!(cluster.request(0, &put(1), "").await.0, 200);
    let (status, problem) = cluster.request(0, &put(2), "").await;
    let detail = problem["detail"].as_str().unwrap();
    assert!(status == 429 && detail.starts_with("limits.claims = 1 "), "{problem}");
    counted(&cluster, "quorate_acquires_total{pool=\"p\",outcome=\"refused\"} 1").await;
    counted(&cluster, "quorate_refused_requests_total{status=\"429\"} 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_looks_for_a_claim_takes_no_room_for_its_pool() {
    let pools = POOLS.replace("name = \"p\"", "pattern = \"job-*\"");
    let cluster = Cluster::start(1, &format!("[limits]\npools = 1\n{pools}")).await;
    for job in 1..4 {
        let claim = format!("/v1/pools/job-{job}/claims/1");
        let (status, problem) = cluster.request(0, &format!("GET {claim}"), "").await;
        assert_eq!((status, &problem["type"]), (404, &"unknown-claim".into()), "{problem}");
        let (status, problem) = cluster.request(0, &format!("POST {claim}/renew"), "").await;
        assert_eq!((status, &problem["type"]), (404, &"unknown-claim".into()), "{problem}");
    }
    let (status, problem) = cluster.request(0, "GET /v1/pools/other/claims/1", "").await;
    assert_eq!((status, &problem["type"]), (404, &"unknown-pool".into()), "{problem}");
    let (status, granted) = cluster.request(0, "PUT /v1/pools/job-9/claims/1?wait=1m", "").await;
    assert_eq!(status, 200, "{granted}");
    let (status, problem) = cluster.request(0, "PUT /v1/pools/job-8/claims/1", "").await;
    assert_eq!(status, 429, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_places_for_so_many_clients_and_the_next_is_told() {
    let cluster = Cluster::start(1, &format!("[limits]\nclients = 2\n{POOLS}")).await;
    let mut link = TcpStream::connect(cluster.address(0)).await.unwrap();
    link.write_all(&PREFACE).await.unwrap();
    // Whoever says nothing takes a place too.
    let silent = TcpStream::connect(cluster.address(0)).await.unwrap();
    let mut claim = PREFACE.to_vec();
    let ask = Ask::Status { pool: "p".into(), id: ClaimId(1) };
    link::encode(&FromClient::Request(Request { number: 77, ask }), &mut claim);
    until("both places are taken", || async {
        let answer = say(cluster.address(0), b"GET /livez HTTP/1.0\r\n\r\n").await;
        answer.starts_with(b"HTTP/1.1 429")
    })
    .await;
    let (status, problem_json) = cluster.request(0, "GET /v1/pools", "").await;
    assert_eq!((status, &problem_json["status"]), (429, &429.into()), "{problem_json}");
    let (number, problem) = problem(&say(cluster.address(0), &claim).await);
    assert_eq!((number, problem.kind), (77, ProblemKind::Limit));
    assert!(problem.detail.starts_with("limits.clients = 2 "), "{problem}");
    drop(silent);
    // Each request takes the one place, and gives it back when its connection is closed.
    until("the place is free again", || async {
        let (_, metrics) = cluster.text(0, "GET /metrics").await;
        metrics.contains("quorate_refused_connections_total{from=\"limit\"}")
    })
    .await;
    let put = "PUT /v1/pools/p/claims/1?wait=1m";
    until("claims are granted", || async { cluster.request(0, put, "").await.0 == 200 }).await;
    drop(link);
}

/// Whoever writes requests by hand may know no Rust.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_said_without_the_names_of_types() {
    let cluster = Cluster::start(1, POOLS).await;
    let renew = "POST /v1/pools/p/claims/1/renew";
    for (request, body, wanted) in [
        ("PUT /v1/pools/p/claims/1", r#"{"units": -1}"#, "from 1 to as many as the pool has"),
        ("PUT /v1/pools/p/claims/1", r#"{"units": 99999999999}"#, "from 1 to as many"),
        ("PUT /v1/pools/p/claims/1?wiat=1s", "", "unknown field `wiat`, expected one of `wait`"),
        (renew, r#"{"units": [{"unit": -1, "fence": 1}]}"#, "the number of a unit, from 0"),
        (renew, r#"{"units": [{"unit": 1, "fence": -1}]}"#, "a fence as it was granted"),
        ("GET /v1/overview?page=-1", "", "page: '-1' is no whole number from 0 on"),
        ("GET /v1/overview?rows=many", "", "rows: 'many' is no whole number from 0 on"),
        ("GET /v1/pools/p/grants?after=x", "", "after: 'x' is no whole number from 0 on"),
    ] {
        let (status, problem) = cluster.request(0, request, body).await;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == 400 && detail.contains(wanted), "{request}: {problem}");
        for strange in ["u32", "u64", "usize", "eserialize", "invalid digit"] {
            assert!(!detail.contains(strange), "{request}: {detail}");
        }
    }
}
