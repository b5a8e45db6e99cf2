//! The client link on a real socket: answers, pushes, and what nonsense does.

use crate::common::{Cluster, PATIENCE, until};
use quorate_api::link::{self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Request, Share};
use quorate_api::{ClaimId, ClaimState, ProblemKind, Want};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const POOLS: &str = r#"
    [[pools]]
    name = "p"
    units = 2
    arbiter = "n0"
    lease = "5s"
"#;

struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Client {
    async fn connect(cluster: &Cluster, place: usize) -> Client {
        let mut stream = TcpStream::connect(cluster.address(place)).await.unwrap();
        stream.write_all(&PREFACE).await.unwrap();
        Client { stream, bytes: Vec::new() }
    }

    async fn send(&mut self, number: u64, ask: Ask) {
        let mut bytes = Vec::new();
        link::encode(&FromClient::Request(Request { number, ask }), &mut bytes);
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// The next thing the node says; nothing if it hung up.
    async fn hear(&mut self) -> Option<FromNode> {
        loop {
            if let Some((said, used)) = link::decode(&self.bytes).unwrap() {
                self.bytes.drain(..used);
                return Some(said);
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.bytes)).await;
            if read.expect("an answer in time").unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    async fn answer(&mut self) -> (u64, Reply) {
        loop {
            match self.hear().await {
                Some(FromNode::Answer(Answer { number, reply })) => return (number, reply),
                Some(FromNode::Decides { .. }) => {} // A hint.
                other => panic!("{other:?}"),
            }
        }
    }
}

fn claim(id: u128, units: u32) -> Ask {
    let want = Want { reason: "r".into(), ..units.into() };
    Ask::Claim { pool: "p".into(), id: ClaimId(id), want }
}

fn release(id: u128) -> Ask {
    Ask::Release { pool: "p".into(), id: ClaimId(id) }
}

fn renew(id: u128, units: &[Share]) -> Ask {
    Ask::Renew { pool: "p".into(), id: ClaimId(id), units: units.to_vec() }
}

fn granted(reply: Reply) -> Vec<Share> {
    match reply {
        Reply::Granted {
            units, valid_for_micros, lease_micros: 5_000_000, counted: false, ..
        } => {
            assert!(valid_for_micros > 0);
            units
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_under_their_numbers_when_they_can_be() {
    let cluster = Cluster::start(3, POOLS).await;
    let mut client = Client::connect(&cluster, 1).await;
    client.send(1, Ask::Hello { client: "ci".into() }).await;
    let (number, reply) = client.answer().await;
    assert!(matches!(reply, Reply::Welcome { node, .. } if number == 1 && node == "n1"));
    client.send(2, claim(1, 2)).await;
    let (number, reply) = client.answer().await;
    assert_eq!((number, granted(reply).len()), (2, 2));
    // The second claim waits; what is asked after it is answered before it.
    client.send(3, claim(2, 1)).await;
    client.send(4, Ask::Status { pool: "p".into(), id: ClaimId(2) }).await;
    assert_eq!(client.answer().await, (4, Reply::Waiting));
    client.send(5, release(1)).await;
    let mut answers = [client.answer().await, client.answer().await];
    answers.sort_by_key(|(number, _)| *number);
    let [(3, second), (5, first)] = answers else { panic!("{answers:?}") };
    assert_eq!(granted(second).len(), 1);
    assert!(matches!(first, Reply::Over { state: ClaimState::Released, .. }), "{first:?}");
    client.send(6, claim(3, 9)).await;
    let (_, reply) = client.answer().await;
    assert_eq!(reply, Reply::TooLarge { units: 2 });
    client.send(7, Ask::Status { pool: "none".into(), id: ClaimId(2) }).await;
    let (_, reply) = client.answer().await;
    assert!(matches!(reply, Reply::Problem(p) if p.kind == ProblemKind::UnknownPool));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_ends_nothing_and_a_lost_grant_is_pushed() {
    let cluster = Cluster::start(3, POOLS).await;
    let mut client = Client::connect(&cluster, 1).await;
    client.send(1, claim(1, 2)).await;
    let units = granted(client.answer().await.1);
    drop(client);
    // Another connection, another node: renewed under its name.
    let mut client = Client::connect(&cluster, 2).await;
    client.send(1, renew(1, &units)).await;
    assert_eq!(granted(client.answer().await.1), units);
    client.send(2, renew(1, &units)).await;
    assert_eq!(granted(client.answer().await.1), units);
    // And then no more.
    let said = client.hear().await;
    assert!(
        matches!(said, Some(FromNode::Over { state: ClaimState::Lost, .. })),
        "the client is told: {said:?}"
    );
    client.send(3, renew(1, &units)).await;
    let (_, reply) = client.answer().await;
    assert!(!matches!(reply, Reply::Granted { .. }), "dead is for good: {reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_closes_the_connection_and_harms_nobody() {
    let cluster = Cluster::start(1, POOLS).await;
    let mut good = Client::connect(&cluster, 0).await;
    for nonsense in [
        &[0xff; 64][..],
        &[0, 0, 0, 0],
        &[1, 0, 0, 0, 9],
        &[2, 0, 0, 0, 1, 99],
        b"\x05\0\0\0\x01\0\x05\x05\0",
    ] {
        let mut client = Client::connect(&cluster, 0).await;
        client.stream.write_all(nonsense).await.unwrap();
        let (number, reply) = client.answer().await;
        assert!(number == 0 && matches!(reply, Reply::Problem(_)), "{nonsense:?} {reply:?}");
        assert_eq!(client.hear().await, None, "{nonsense:?}");
    }
    until("all five are counted", || async {
        let (_, metrics) = cluster.text(0, "GET /metrics").await;
        metrics.contains("quorate_refused_connections_total{from=\"client\"} 5\n")
    })
    .await;
    good.send(1, claim(1, 1)).await;
    assert_eq!(granted(good.answer().await.1).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_node_says_goodbye() {
    let mut cluster = Cluster::start(2, POOLS).await;
    let mut client = Client::connect(&cluster, 1).await;
    client.send(1, Ask::Ping).await;
    assert_eq!(client.answer().await, (1, Reply::Pong));
    cluster.stop(1).await;
    assert_eq!(client.hear().await, Some(FromNode::Goodbye { go_on: Some("n0".into()) }));
    assert_eq!(client.hear().await, None);
}

/// Nobody is taken for gone here and no lease ends: what the stopped node asked for would be in the
/// way for ever.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_at_a_node_that_stops_is_in_nobodys_way() {
    for mode in ["named", "ticket"] {
        let pools = format!(
            "[[pools]]\nname = \"p\"\nunits = 1\nlease = \"1h\"\nprotocol = \"arbiter\"\n\
             mode = \"{mode}\"\nvoters = 3\n"
        );
        // The last one does not vote: without it everything is granted as before.
        let mut cluster = Cluster::patient(4, &pools).await;
        let mut holder = Client::connect(&cluster, 0).await;
        holder.send(1, claim(1, 1)).await;
        assert!(matches!(holder.answer().await.1, Reply::Granted { .. }), "{mode}");
        let waits = async |count: u64| {
            let (_, view) = cluster.request(0, "GET /v1/pools/p", "").await;
            view["waiting"] == count
        };
        let mut stopped = Client::connect(&cluster, 3).await;
        stopped.send(1, claim(2, 1)).await;
        until("one waits", || waits(1)).await;
        let mut other = Client::connect(&cluster, 2).await;
        other.send(1, claim(3, 1)).await;
        until("two wait", || waits(2)).await;
        cluster.stop(3).await;
        holder.send(2, release(1)).await;
        assert!(matches!(other.answer().await.1, Reply::Granted { .. }), "{mode}");
    }
}

/// A claim is answered wherever it is made; once, its client hears who decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_once_which_other_node_decides() {
    let mut pools =
        "[[pools]]\nname = \"p\"\nunits = 2\nlease = \"5s\"\narbiter = \"n2\"\n".to_owned();
    pools.push_str("[[pools]]\nname = \"q\"\nunits = 2\nprotocol = \"table\"\n");
    let mut cluster = Cluster::start(3, &pools).await;
    let mut client = Client::connect(&cluster, 1).await;
    for (number, id) in [(1, 1), (2, 2)] {
        client.send(number, claim(id, 1)).await;
        if number == 1 {
            let said = FromNode::Decides { pool: "p".into(), node: "n2".into() };
            assert_eq!(client.hear().await, Some(said));
        }
        let Some(FromNode::Answer(Answer { reply, .. })) = client.hear().await else {
            panic!("told once")
        };
        granted(reply);
    }
    // Nobody alone decides over a table, and who decides says nothing.
    let want = Want { reason: "r".into(), ..1.into() };
    client.send(3, Ask::Claim { pool: "q".into(), id: ClaimId(9), want }).await;
    assert!(matches!(client.hear().await, Some(FromNode::Answer(_))));
    let mut there = Client::connect(&cluster, 2).await;
    there.send(1, release(1)).await;
    assert!(matches!(there.hear().await, Some(FromNode::Answer(_))));
    there.send(2, claim(3, 1)).await;
    assert!(matches!(there.hear().await, Some(FromNode::Answer(_))));
    // Over HTTP it is a field.
    let (_, status) =
        cluster.request(1, "GET /v1/pools/p/claims/00000000000000000000000000000002", "").await;
    assert_eq!((&status["node"], &status["decides"]), (&"n1".into(), &"n2".into()));
    let (_, status) =
        cluster.request(2, "GET /v1/pools/p/claims/00000000000000000000000000000003", "").await;
    assert_eq!((&status["node"], &status["decides"]), (&"n2".into(), &serde_json::Value::Null));
    // Nobody is sent to a node that is gone.
    cluster.crash(2).await;
    until("it is missed", || async {
        let view = cluster.nodes[0].as_ref().unwrap().view().await.unwrap();
        view.peers.iter().any(|peer| peer.name == "n2" && !peer.connected)
    })
    .await;
    let mut late = Client::connect(&cluster, 0).await;
    late.send(1, claim(4, 1)).await;
    late.send(2, Ask::Ping).await;
    assert_eq!(late.hear().await, Some(FromNode::Answer(Answer { number: 2, reply: Reply::Pong })));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_at_the_peers_address_are_refused() {
    let cluster = Cluster::start(2, POOLS).await;
    let (_, view) = cluster.request(0, "GET /v1/node", "").await;
    assert_eq!(view["peers"][0]["connected"], true);
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 100], b"Qu\x01\x03\x02\0\0\0\x01\x02"]
    {
        let mut stream = TcpStream::connect(cluster.peers_address(0)).await.unwrap();
        stream.write_all(nonsense).await.unwrap();
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        assert!(answer.is_empty());
    }
    until("all three are counted", || async {
        let (_, metrics) = cluster.text(0, "GET /metrics").await;
        metrics.contains("quorate_refused_connections_total{from=\"peer\"} 3")
    })
    .await;
    let (_, view) = cluster.request(0, "GET /v1/node", "").await;
    assert_eq!(view["peers"][0]["connected"], true, "the mesh is unharmed");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_moves_to_another_node_keeps_its_name() {
    let mut cluster = Cluster::start(2, POOLS).await;
    let hello = || Ask::Hello { client: "job 7".into() };
    let mut client = Client::connect(&cluster, 1).await;
    client.send(1, hello()).await;
    assert!(matches!(client.answer().await, (1, Reply::Welcome { .. })));
    client.send(2, claim(7, 1)).await;
    let (_, Reply::Granted { units, .. }) = client.answer().await else { panic!("not granted") };
    cluster.crash(1).await;
    let mut client = Client::connect(&cluster, 0).await;
    client.send(1, hello()).await;
    assert!(matches!(client.answer().await, (1, Reply::Welcome { .. })));
    client.send(2, Ask::Renew { pool: "p".into(), id: ClaimId(7), units }).await;
    let renewed = client.answer().await;
    assert!(!matches!(renewed, (_, Reply::Problem(_))), "{renewed:?}");
    let (_, holders) = cluster.request(0, "GET /v1/pools/p/holders", "").await;
    assert_eq!(holders["holders"][0]["client"], "job 7", "{holders}");
}

/// Found by clients/scenarios.json with the client for Rust: an answer was lost, and what the node
/// that gave it had granted stayed booked for a lease after the client had released it elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_released_twice_is_over_at_the_nodes_where_its_client_was_before() {
    for protocol in ["central", "table"] {
        let pools = format!(
            "[[pools]]\nname = \"p\"\nunits = 2\nlease = \"1h\"\nprotocol = \"{protocol}\"\n"
        );
        let cluster = Cluster::start(3, &pools).await;
        for (number, place) in [(1, 1), (2, 0)] {
            let mut client = Client::connect(&cluster, place).await;
            client.send(number, claim(7, 2)).await;
            let (_, reply) = client.answer().await;
            assert!(matches!(reply, Reply::Granted { .. }), "{protocol}: {reply:?}");
            if place == 0 {
                for number in [3, 4] {
                    client.send(number, Ask::Release { pool: "p".into(), id: ClaimId(7) }).await;
                }
            }
        }
        until("nothing is held anywhere", || async {
            let held =
                async |place| cluster.request(place, "GET /v1/pools/p", "").await.1["held"] == 0;
            held(0).await && held(1).await && held(2).await
        })
        .await;
        let mut next = Client::connect(&cluster, 2).await;
        next.send(5, claim(8, 2)).await;
        assert!(matches!(next.answer().await.1, Reply::Granted { .. }), "{protocol}");
    }
}
