//! Nobody takes all the room: limits for one address and one caller, and what is read of somebody
//! who is not known.

use crate::common::{Cluster, PATIENCE, until};
use quorate_api::link::{self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Request, Token};
use quorate_api::{ClaimId, ProblemKind};
use quorate_trust::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The end of a configuration: limits, a pool, and two who may claim.
fn file(limits: &str, ann: &Secret, bob: &Secret) -> String {
    let mut file = format!("[limits]\n{limits}\n[[pools]]\nname = \"p\"\nunits = 9\n");
    for (name, secret) in [("ann", ann), ("bob", bob)] {
        file.push_str(&format!(
            "[[tokens]]\nname = \"{name}\"\nsha256 = \"{}\"\nmay = [\"see\", \"claim\"]\n\
             pools = [\"*\"]\n",
            secret.digest()
        ));
    }
    file
}

/// A connection over which a request is sent at a time.
async fn ask(stream: &mut TcpStream, who: &Secret, what: &str) -> String {
    let token = who.reveal();
    let request = format!(
        "{what} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        let read = tokio::time::timeout(PATIENCE, stream.read_buf(&mut answer)).await;
        assert_ne!(read.expect("the node answers").unwrap(), 0, "it hung up: {text}");
    }
}

pub(crate) async fn reply(stream: &mut TcpStream, number: u64, ask: Ask) -> Reply {
    let mut bytes = Vec::new();
    link::encode(&FromClient::Request(Request { number, ask }), &mut bytes);
    stream.write_all(&bytes).await.unwrap();
    let mut bytes = Vec::new();
    loop {
        if let Some((FromNode::Answer(Answer { reply, .. }), _)) = link::decode(&bytes).unwrap() {
            return reply;
        }
        let read = tokio::time::timeout(PATIENCE, stream.read_buf(&mut bytes)).await;
        assert_ne!(read.expect("the node answers").unwrap(), 0, "the node hung up");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_say_nothing_keep_nobody_else_waiting_but_their_neighbours() {
    let pools = "[limits]\ngreetings_per_address = 2\n[[pools]]\nname = \"p\"\nunits = 1\n";
    let cluster = Cluster::start(1, pools).await;
    let mut silent = [
        TcpStream::connect(cluster.address(0)).await.unwrap(),
        TcpStream::connect(cluster.address(0)).await.unwrap(),
    ];
    until("both places are taken", || async {
        let mut stream = TcpStream::connect(cluster.address(0)).await.unwrap();
        let _ = stream.write_all(b"GET /livez HTTP/1.0\r\n\r\n").await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer.starts_with("HTTP/1.1 429")
            && answer.contains("retry-after: 1\r\n")
            && answer.contains("limits.greetings_per_address = 2 ")
    })
    .await;
    // From another address there is room: all of 127/8 is this machine.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.9:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(cluster.address(0)).await.unwrap();
    other.write_all(b"GET /livez HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    // Who has said what it wants takes none of these places.
    silent[0].write_all(&PREFACE).await.unwrap();
    assert_eq!(reply(&mut silent[0], 1, Ask::Ping).await, Reply::Pong);
    until("there is room again", || async { cluster.text(0, "GET /livez").await.0 == 200 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_on_fresh_connections_keep_out_their_neighbours_and_nobody_who_is_in() {
    let (ann, bob) = (Secret::random().unwrap(), Secret::random().unwrap());
    let cluster = Cluster::start(1, &file("strangers_per_address = 2", &ann, &bob)).await;
    let address = cluster.address(0);
    let mut known = TcpStream::connect(address).await.unwrap();
    assert!(ask(&mut known, &ann, "GET /v1/pools").await.starts_with("HTTP/1.1 200"));
    let knock = async move |hello: &'static [u8]| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(hello).await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    };
    let wrong = b"GET /v1/pools HTTP/1.1\r\nhost: localhost\r\n\
                  authorization: Bearer x\r\nconnection: close\r\n\r\n";
    let mut strangers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        strangers.spawn(async move {
            loop {
                knock(wrong).await;
            }
        });
    }
    until("no more are let in", || async {
        let answer = knock(b"GET /livez HTTP/1.0\r\n\r\n").await;
        answer.starts_with("HTTP/1.1 429") && answer.contains("strangers_per_address = 2 ")
    })
    .await;
    assert!(ask(&mut known, &ann, "GET /v1/pools").await.starts_with("HTTP/1.1 200"));
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.9:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(address).await.unwrap();
    assert!(ask(&mut other, &ann, "GET /v1/pools").await.starts_with("HTTP/1.1 200"));
    strangers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_has_so_many_connections_and_others_have_theirs() {
    let (ann, bob) = (Secret::random().unwrap(), Secret::random().unwrap());
    let cluster = Cluster::start(1, &file("clients_per_caller = 2", &ann, &bob)).await;
    let connect = async || TcpStream::connect(cluster.address(0)).await.unwrap();
    let (mut first, mut second, mut third) = (connect().await, connect().await, connect().await);
    let pools = "GET /v1/pools";
    for _ in 0..3 {
        assert!(ask(&mut first, &ann, pools).await.starts_with("HTTP/1.1 200"));
        assert!(ask(&mut second, &ann, pools).await.starts_with("HTTP/1.1 200"));
    }
    let refused = ask(&mut third, &ann, pools).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.contains("retry-after: 1"), "{refused}");
    assert!(refused.contains("limits.clients_per_caller = 2 "), "{refused}");
    assert!(ask(&mut third, &bob, pools).await.starts_with("HTTP/1.1 200"));
    // The client link is counted with them.
    let mut link = connect().await;
    link.write_all(&PREFACE).await.unwrap();
    let introduce =
        || Ask::Introduce { client: String::new(), token: Token(ann.reveal().to_owned()) };
    let Reply::Problem(problem) = reply(&mut link, 1, introduce()).await else {
        panic!("a third connection is welcome")
    };
    assert_eq!(problem.kind, ProblemKind::Limit);
    let status = Ask::Status { pool: "p".into(), id: ClaimId(1) };
    let unknown = reply(&mut link, 2, status).await;
    assert!(matches!(unknown, Reply::Problem(p) if p.kind == ProblemKind::Unauthorized));
    drop(first);
    until("there is room again", || async {
        let mut link = connect().await;
        link.write_all(&PREFACE).await.unwrap();
        matches!(reply(&mut link, 1, introduce()).await, Reply::Welcome { .. })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_has_so_many_claims_and_others_have_theirs() {
    let (ann, bob) = (Secret::random().unwrap(), Secret::random().unwrap());
    let cluster = Cluster::start(1, &file("claims_per_caller = 2", &ann, &bob)).await;
    let by = |who: &Secret, what: &str| {
        format!("{what} HTTP/1.1\r\nauthorization: Bearer {}\r\nx-rest:", who.reveal())
    };
    let put = |id: u32| format!("PUT /v1/pools/p/claims/{id}?wait=1m");
    for id in [1, 2, 1, 2] {
        assert_eq!(cluster.request(0, &by(&ann, &put(id)), "").await.0, 200, "{id}");
    }
    let (status, refused) = cluster.request(0, &by(&ann, &put(3)), "").await;
    assert_eq!(status, 429, "{refused}");
    let said = refused["detail"].as_str().unwrap();
    assert!(said.starts_with("limits.claims_per_caller = 2 "), "{said}");
    assert_eq!(cluster.request(0, &by(&bob, &put(4)), "").await.0, 200);
    let delete = by(&ann, "DELETE /v1/pools/p/claims/1");
    assert_eq!(cluster.request(0, &delete, "").await.0, 200);
    assert_eq!(cluster.request(0, &by(&ann, &put(3)), "").await.0, 200, "one has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn less_is_read_of_whoever_is_not_known() {
    let (ann, bob) = (Secret::random().unwrap(), Secret::random().unwrap());
    let cluster = Cluster::start(1, &file("", &ann, &bob)).await;
    let long = format!("{{\"reason\": \"{}\"}}", "x".repeat(100_000));
    let put = "PUT /v1/pools/p/claims/1";
    let (status, refused) = cluster.request(0, put, &long).await;
    assert_eq!(status, 413, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("not known here"), "{refused}");
    let known = format!("{put} HTTP/1.1\r\nauthorization: Bearer {}\r\nx-rest:", ann.reveal());
    let (status, refused) = cluster.request(0, &known, &long).await;
    assert_eq!(status, 400, "it is heard out, and the reason is too long: {refused}");
    // The same on the client link.
    let claim = || Ask::Claim {
        pool: "p".into(),
        id: ClaimId(1),
        want: quorate_api::Want { reason: "x".repeat(100_000), ..1.into() },
    };
    let mut link = TcpStream::connect(cluster.address(0)).await.unwrap();
    link.write_all(&PREFACE).await.unwrap();
    let Reply::Problem(problem) = reply(&mut link, 1, claim()).await else { panic!("it is heard") };
    assert_eq!(problem.kind, ProblemKind::BadRequest);
    assert!(problem.detail.contains("bytes"), "{problem}");
    let mut rest = Vec::new();
    let _ = link.read_to_end(&mut rest).await;
    let mut link = TcpStream::connect(cluster.address(0)).await.unwrap();
    link.write_all(&PREFACE).await.unwrap();
    let token = Token(ann.reveal().to_owned());
    let introduce = Ask::Introduce { client: String::new(), token };
    assert!(matches!(reply(&mut link, 1, introduce).await, Reply::Welcome { .. }));
    let Reply::Problem(problem) = reply(&mut link, 2, claim()).await else { panic!("too long") };
    assert!(problem.detail.contains("reason"), "{problem}");
    assert_eq!(reply(&mut link, 3, Ask::Ping).await, Reply::Pong, "the connection goes on");
}
