//! What a node answers before it knows its past.

use std::path::PathBuf;

use quorate_api::ProblemKind;
use quorate_api::link::{self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Request};
use quorate_node::{Config, Node};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{Cluster, PATIENCE, exchange, request};

/// From an empty directory, in a cluster that nobody called new: up to a minute is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_lives_and_is_not_ready_and_says_why() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("first-moments");
    let _ = std::fs::remove_dir_all(&directory);
    let clients = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peers = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, peers_at) = (clients.local_addr().unwrap(), peers.local_addr().unwrap());
    let text = format!(
        "cluster = \"test\"\nepoch = 1\nnode = \"n0\"\ndata_dir = {directory:?}\n\
         listen = {{ clients = \"{at}\", peers = \"{peers_at}\" }}\n\
         [[members]]\nname = \"n0\"\npeers = \"{peers_at}\"\n\
         [[pools]]\nname = \"p\"\nunits = 1\n"
    );
    let config = Config::parse(&text).unwrap();
    let starts = tokio::spawn(Node::start_on(config, clients, peers));
    assert_eq!(exchange(at, "GET /livez", "").await, (200, "ok\n".into()));
    for path in ["/readyz", "/readyz?verbose", "/readyz/starting"] {
        let (status, text) = exchange(at, &format!("GET {path}"), "").await;
        assert_eq!(status, 503, "{path}");
        assert!(text.starts_with("[-]starting failed: its data directory is empty"), "{text}");
        assert!(text.ends_with("\nnot ready\n"), "{text}");
    }
    let (status, problem) = request(at, "PUT /v1/pools/p/claims/1", "{}").await;
    assert_eq!((status, &problem["type"]), (503, &"starting".into()), "{problem}");
    // A client on the link goes to the next node at once.
    let mut stream = TcpStream::connect(at).await.unwrap();
    let mut bytes = PREFACE.to_vec();
    let ask = Ask::Hello { client: "ci".into() };
    link::encode(&FromClient::Request(Request { number: 7, ask }), &mut bytes);
    stream.write_all(&bytes).await.unwrap();
    let mut said = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut said)).await.unwrap().unwrap();
    let (answer, _) = link::decode::<FromNode>(&said).unwrap().unwrap();
    let FromNode::Answer(Answer { number: 7, reply: Reply::Problem(why) }) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(why.kind, ProblemKind::Starting);
    assert!(!starts.is_finished(), "it waits");
    starts.abort();
    let _ = starts.await;
    let _ = std::fs::remove_dir_all(&directory);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asked_too_early_is_answered_by_the_node_itself_later() {
    let mut cluster = Cluster::on_disk("first-moments-later", 1, "").await;
    cluster.stop(0).await;
    cluster.restart(0, None).await;
    let (status, text) = cluster.text(0, "GET /readyz?verbose").await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("[+]running ok"), "{text}");
}
