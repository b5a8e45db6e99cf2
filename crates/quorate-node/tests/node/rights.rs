//! Tokens with rights, at a cluster of several nodes: a claim belongs to who made it, wherever
//! somebody else asks for it.

use crate::common::{Cluster, until};
use crate::crowds::reply;
use quorate_api::link::{Ask, PREFACE, Reply, Share, Token};
use quorate_api::{ClaimId, ProblemKind};
use quorate_trust::Secret;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Who comes to the cluster.
struct Guests {
    ann: Secret,
    bob: Secret,
    blind: Secret,
    boss: Secret,
}

impl Guests {
    fn new() -> Guests {
        let new = || Secret::random().unwrap();
        Guests { ann: new(), bob: new(), blind: new(), boss: new() }
    }

    /// The end of a configuration: one pool, and these.
    fn file(&self, pool: &str) -> String {
        let mut file = format!("[[pools]]\nname = \"p\"\nlease = \"1h\"\n{pool}\n");
        let entries = [
            ("ann", &self.ann, "\"see\", \"claim\"", "most_units = 2"),
            ("bob", &self.bob, "\"see\", \"claim\"", "clients = [\"bob@*\"]"),
            ("blind", &self.blind, "\"claim\"", ""),
            ("boss", &self.boss, "\"revoke\"", ""),
        ];
        for (name, secret, may, rest) in entries {
            file.push_str(&format!(
                "[[tokens]]\nname = \"{name}\"\nsha256 = \"{}\"\nmay = [{may}]\n\
                 pools = [\"p\"]\n{rest}\n",
                secret.digest()
            ));
        }
        file
    }
}

/// A request of this guest; the version ends the line that the client writes.
fn by(guest: &Secret, what: &str) -> String {
    format!("{what} HTTP/1.1\r\nauthorization: Bearer {}\r\nx-rest:", guest.reveal())
}

const CLAIM: &str = "/v1/pools/p/claims/c1";

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_belongs_to_who_made_it_at_every_node() {
    for protocol in ["central", "arbiter", "broadcast"] {
        let guests = Guests::new();
        let options = if protocol == "broadcast" { "retry = \"100ms\"" } else { "" };
        let pool = format!("units = 3\nprotocol = \"{protocol}\"\n{options}");
        let cluster = Cluster::start(3, &guests.file(&pool)).await;
        let Guests { ann, bob, blind, boss } = &guests;
        let ask = async |node: usize, guest: &Secret, what: &str, body: &str| {
            cluster.request(node, &by(guest, what), body).await
        };
        let put = format!("PUT {CLAIM}?wait=1m");
        let (status, granted) = ask(0, ann, &put, r#"{"units": 1, "client": "boss"}"#).await;
        assert_eq!((status, &granted["client"]), (200, &"ann".into()), "{granted}");
        let renewal = serde_json::json!({ "units": granted["units"] }).to_string();
        for node in 0..3 {
            let (status, seen) = ask(node, bob, &format!("GET {CLAIM}"), "").await;
            assert_eq!((status, &seen["state"]), (200, &"granted".into()), "{protocol}: {seen}");
            let (status, hidden) = ask(node, blind, &format!("GET {CLAIM}"), "").await;
            assert_eq!((status, &hidden["type"]), (404, &"unknown-claim".into()), "{hidden}");
            let (status, taken) = ask(node, bob, &put, r#"{"units": 1}"#).await;
            assert_eq!((status, &taken["type"]), (409, &"different-claim".into()), "{taken}");
            let (status, not_his) = ask(node, bob, &format!("DELETE {CLAIM}"), "").await;
            assert_eq!((status, &not_his["type"]), (403, &"forbidden".into()), "{not_his}");
            let (status, hidden) = ask(node, blind, &format!("DELETE {CLAIM}"), "").await;
            assert_eq!((status, &hidden["type"]), (404, &"unknown-claim".into()), "{hidden}");
            let renew = format!("POST {CLAIM}/renew");
            let (status, not_his) = ask(node, bob, &renew, &renewal).await;
            assert_eq!(status, 403, "{protocol}: {not_his}");
        }
        let (status, mine) = ask(0, ann, &format!("GET {CLAIM}"), "").await;
        assert_eq!((status, &mine["state"]), (200, &"granted".into()), "it goes on: {mine}");
        // Who may revoke ends it, at a node that never heard of it.
        let revoke = format!("POST {CLAIM}/revoke");
        let (status, revoked) = ask(1, boss, &revoke, r#"{"reason": "enough"}"#).await;
        assert_eq!((status, &revoked["state"]), (200, &"revoked".into()), "{revoked}");
    }
}

/// A claim that was revoked is its holder's until that says that it has stopped: nobody else can
/// say so, before or after.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_its_holder_ends_a_claim_that_was_revoked() {
    let guests = Guests::new();
    let Guests { ann, bob, blind, boss } = &guests;
    let cluster = Cluster::start(2, &guests.file("units = 1\narbiter = \"n1\"")).await;
    let ask = async |node: usize, guest: &Secret, what: &str| {
        let body = if what.starts_with("POST") { r#"{"reason": "enough"}"# } else { "" };
        let (status, answer) = cluster.request(node, &by(guest, what), body).await;
        (status, answer["type"].as_str().or(answer["state"].as_str()).unwrap_or("").to_owned())
    };
    let (put, delete) = (format!("PUT {CLAIM}?wait=1m"), format!("DELETE {CLAIM}"));
    assert_eq!(ask(0, ann, &put).await.0, 200);
    let revoke = format!("POST {CLAIM}/revoke");
    assert_eq!(ask(1, boss, &revoke).await.0, 200);
    let refused = async || {
        for node in 0..2 {
            assert_eq!(ask(node, bob, &delete).await, (403, "forbidden".into()), "at {node}");
            assert_eq!(ask(node, blind, &delete).await, (404, "unknown-claim".into()));
        }
    };
    refused().await;
    let (_, pool) = cluster.request(0, &by(bob, "GET /v1/pools/p"), "").await;
    assert_eq!(pool["held"], 1, "its holder has not stopped: {pool}");
    assert_eq!(ask(0, ann, &delete).await.0, 200);
    refused().await;
    until("the unit is free", || async {
        cluster.request(0, &by(bob, "GET /v1/pools/p"), "").await.1["held"] == 0
    })
    .await;
}

/// What this guest hears on a connection of its own to a node.
async fn on_the_link(cluster: &Cluster, node: usize, guest: &Secret, ask: Ask) -> Reply {
    let mut stream = TcpStream::connect(cluster.address(node)).await.unwrap();
    stream.write_all(&PREFACE).await.unwrap();
    let token = Token(guest.reveal().to_owned());
    let welcome = reply(&mut stream, 1, Ask::Introduce { client: String::new(), token }).await;
    assert!(matches!(welcome, Reply::Welcome { .. }), "{welcome:?}");
    reply(&mut stream, 2, ask).await
}

/// What renews a claim, as it was granted, on the link.
fn link_renewal(granted: &Value) -> Ask {
    let number = |value: &Value| value.as_u64().expect("a number");
    let share = |share: &Value| Share {
        unit: u32::try_from(number(&share["unit"])).unwrap(),
        fence: number(&share["fence"]),
    };
    let units = granted["units"].as_array().unwrap().iter().map(share).collect();
    Ask::Renew { pool: "p".into(), id: id(), units }
}

fn id() -> ClaimId {
    CLAIM.rsplit('/').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_belongs_to_who_made_it_while_its_node_is_away() {
    for protocol in ["central", "arbiter"] {
        let guests = Guests::new();
        let decides = if protocol == "central" { "arbiter = \"n2\"" } else { "" };
        let pool = format!("units = 3\nprotocol = \"{protocol}\"\n{decides}");
        let mut cluster = Cluster::start(3, &guests.file(&pool)).await;
        let Guests { ann, bob, blind, .. } = &guests;
        let put = format!("PUT {CLAIM}?wait=1m");
        let (status, granted) = cluster.request(0, &by(ann, &put), "").await;
        assert_eq!(status, 200, "{granted}");
        let renewal = serde_json::json!({ "units": granted["units"] }).to_string();
        for node in [1, 2] {
            // Answers come after tidings: who has seen it there has heard whose it is.
            let (_, seen) = cluster.request(node, &by(bob, &format!("GET {CLAIM}")), "").await;
            assert_eq!(seen["state"], "granted", "{seen}");
        }
        cluster.crash(0).await;
        for node in [1, 2] {
            let ask = async |guest: &Secret, what: &str, body: &str| {
                cluster.request(node, &by(guest, what), body).await
            };
            let (status, taken) = ask(bob, &put, "").await;
            assert_eq!((status, &taken["type"]), (409, &"different-claim".into()), "{taken}");
            let renew = format!("POST {CLAIM}/renew");
            let (status, not_his) = ask(bob, &renew, &renewal).await;
            assert_eq!((status, &not_his["type"]), (403, &"forbidden".into()), "{not_his}");
            let (status, not_his) = ask(bob, &format!("DELETE {CLAIM}"), "").await;
            assert_eq!((status, &not_his["type"]), (403, &"forbidden".into()), "{not_his}");
            let (status, hidden) = ask(blind, &format!("GET {CLAIM}"), "").await;
            assert_eq!((status, &hidden["type"]), (404, &"unknown-claim".into()), "{hidden}");
            let kind = async |guest: &Secret, ask: Ask| match on_the_link(
                &cluster, node, guest, ask,
            )
            .await
            {
                Reply::Problem(problem) => Some(problem.kind),
                _ => None,
            };
            assert_eq!(kind(bob, link_renewal(&granted)).await, Some(ProblemKind::Forbidden));
            let claim = Ask::Claim { pool: "p".into(), id: id(), want: 1.into() };
            assert_eq!(kind(bob, claim).await, Some(ProblemKind::DifferentClaim));
            let release = Ask::Release { pool: "p".into(), id: id() };
            assert_eq!(kind(blind, release).await, Some(ProblemKind::UnknownClaim));
        }
        // Whose it is goes on with it.
        let renewed = on_the_link(&cluster, 1, ann, link_renewal(&granted)).await;
        assert!(matches!(renewed, Reply::Granted { .. }), "{protocol}: {renewed:?}");
    }
}

/// Nodes that started anew know nothing, and the one that could tell is away.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_speak_for_a_claim_is_not_guessed_while_a_node_is_away_that_may_know() {
    let guests = Guests::new();
    let pools = guests.file("units = 3\narbiter = \"n1\"\ndurable = true");
    let mut cluster = Cluster::on_disk("whose_is_not_guessed", 2, &pools).await;
    let put = format!("PUT {CLAIM}?wait=1m");
    let (status, granted) = cluster.request(0, &by(&guests.ann, &put), "").await;
    assert_eq!(status, 200, "{granted}");
    let renewal = serde_json::json!({ "units": granted["units"] }).to_string();
    cluster.crash(0).await;
    cluster.crash(1).await;
    cluster.restart(1, None).await;
    let renew = format!("POST {CLAIM}/renew");
    for guest in [&guests.bob, &guests.ann] {
        let (status, unsaid) = cluster.request(1, &by(guest, &renew), &renewal).await;
        assert_eq!((status, &unsaid["type"]), (504, &"unknown".into()), "{unsaid}");
        assert!(unsaid["detail"].as_str().unwrap().starts_with("n0 did not answer"), "{unsaid}");
    }
    // Another claim has nothing to do with it.
    let other = "PUT /v1/pools/p/claims/c2?wait=1m";
    let (status, other) = cluster.request(1, &by(&guests.bob, other), "").await;
    assert_eq!(status, 200, "{other}");
    cluster.restart(0, None).await;
    until("all have said that they do not know it", || async {
        cluster.request(1, &by(&guests.ann, &renew), &renewal).await.0 == 200
    })
    .await;
    let (status, not_his) = cluster.request(0, &by(&guests.bob, &renew), &renewal).await;
    assert_eq!(status, 403, "{not_his}");
}

/// Found by `cargo xtask campaign --only fickle,pause-majority`: 404, although nobody had ended it.
#[tokio::test(flavor = "multi_thread")]
async fn who_claims_is_not_told_that_there_is_no_claim_while_a_member_stands_still() {
    let guests = Guests::new();
    let (cluster, bridge) =
        Cluster::with_a_bridge(&guests.file("units = 3\narbiter = \"n0\"")).await;
    bridge.stand_still();
    // Less than it takes to find out that nobody else knows the claim.
    let put = format!("PUT {CLAIM}?wait=20ms");
    let (status, claim) = cluster.request(0, &by(&guests.ann, &put), "").await;
    assert_eq!((status, &claim["state"]), (200, &"granted".into()), "{claim}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_ends_its_claim_anywhere() {
    let guests = Guests::new();
    let cluster = Cluster::start(3, &guests.file("units = 3")).await;
    let put = format!("PUT {CLAIM}?wait=1m");
    let (status, _) = cluster.request(0, &by(&guests.ann, &put), "").await;
    assert_eq!(status, 200);
    let (status, over) = cluster.request(2, &by(&guests.ann, &format!("DELETE {CLAIM}")), "").await;
    assert_eq!(status, 200, "{over}");
    let (_, pool) = cluster.request(1, &by(&guests.ann, "GET /v1/pools/p/holders"), "").await;
    assert_eq!(pool["holders"], Value::Array(Vec::new()), "{pool}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_on_an_open_connection_is_cut_off_with_its_token() {
    let guests = Guests::new();
    let cluster = Cluster::start(1, &guests.file("units = 1")).await;
    let put = format!("PUT {CLAIM}?wait=1m");
    let (status, held) = cluster.request(0, &by(&guests.bob, &put), "").await;
    assert_eq!(status, 200, "{held}");
    let address = cluster.address(0);
    let asks = by(&guests.ann, "PUT /v1/pools/p/claims/c2?wait=1h");
    let over_http = tokio::spawn(async move { crate::common::request(address, &asks, "").await });
    let mut link = TcpStream::connect(address).await.unwrap();
    link.write_all(&PREFACE).await.unwrap();
    let token = Token(guests.ann.reveal().to_owned());
    let welcome = reply(&mut link, 1, Ask::Introduce { client: String::new(), token }).await;
    assert!(matches!(welcome, Reply::Welcome { .. }), "{welcome:?}");
    let waits = Ask::Claim { pool: "p".into(), id: ClaimId(7), want: 1.into() };
    let over_the_link = tokio::spawn(async move { reply(&mut link, 2, waits).await });
    until("both wait", || async {
        let (_, queue) = cluster.request(0, &by(&guests.bob, "GET /v1/pools/p/queue"), "").await;
        queue["waiting"].as_array().is_some_and(|queue| queue.len() == 2)
    })
    .await;
    let others = guests.file("units = 1").replace("name = \"ann\"", "name = \"nina\"");
    let changed = cluster.config(0, &others);
    cluster.nodes[0].as_ref().unwrap().reload(Ok(changed)).unwrap();
    let (status, told) = over_http.await.unwrap();
    assert_eq!((status, &told["type"]), (401, &"unauthorized".into()), "{told}");
    let told = over_the_link.await.unwrap();
    assert!(
        matches!(&told, Reply::Problem(why) if why.kind == ProblemKind::Unauthorized),
        "{told:?}"
    );
    let (status, held) = cluster.request(0, &by(&guests.bob, &format!("GET {CLAIM}")), "").await;
    assert_eq!((status, &held["state"]), (200, &"granted".into()), "others go on: {held}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_ends_the_claim_of_another_is_in_the_audit() {
    let (guests, root) = (Guests::new(), Secret::random().unwrap());
    let all = format!(
        "[[tokens]]\nname = \"root\"\nsha256 = \"{}\"\nmay = [\"admin\"]\npools = [\"*\"]\n",
        root.digest()
    );
    let cluster = Cluster::start(2, &(guests.file("units = 3") + &all)).await;
    let ended = async |owner: &Secret| {
        let put = format!("PUT {CLAIM}?wait=1m");
        let (status, granted) = cluster.request(0, &by(owner, &put), "").await;
        assert_eq!(status, 200, "{granted}");
        let delete = by(&root, &format!("DELETE {CLAIM}"));
        let (status, over) = cluster.request(1, &delete, "").await;
        assert_eq!(status, 200, "{over}");
        let (_, audit) = cluster.request(1, &by(&root, "GET /v1/audit"), "").await;
        let lines = audit["events"].as_array().expect("a list").clone();
        lines.into_iter().filter(|line| line["what"] == "release").collect::<Vec<_>>()
    };
    let lines = ended(&guests.ann).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["who"], &lines[0]["kind"]), (&"root".into(), &"act".into()));
    assert!(
        lines[0]["about"].as_str().is_some_and(|about| about.ends_with(" of ann")),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_numbers_are_bounded_by_the_token() {
    let guests = Guests::new();
    let cluster = Cluster::start(1, &guests.file("units = 3")).await;
    let claim = async |guest: &Secret, id: &str, body: &str| {
        let put = by(guest, &format!("PUT /v1/pools/p/claims/{id}?wait=1m"));
        cluster.request(0, &put, body).await
    };
    let (status, many) = claim(&guests.ann, "a", r#"{"units": 3}"#).await;
    assert_eq!(status, 403, "{many}");
    assert!(many["detail"].as_str().unwrap().contains("at most 2"), "{many}");
    let (status, other) = claim(&guests.bob, "b", r#"{"client": "ann"}"#).await;
    assert_eq!(status, 403, "{other}");
    let (status, own) = claim(&guests.bob, "c", r#"{"client": "bob@lab"}"#).await;
    assert_eq!((status, &own["client"]), (200, &"bob@lab".into()), "{own}");
    let (status, unsaid) = claim(&guests.bob, "d", "{}").await;
    assert_eq!((status, &unsaid["client"]), (200, &"bob".into()), "{unsaid}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_units_are_for_clients_that_really_have_the_name() {
    let guests = Guests::new();
    let pool = "units = [{ name = \"u0\" }, { name = \"u1\" }]\n\
                reserved = [{ units = [\"u0\", \"u1\"], clients = [\"ann\"] }]";
    let cluster = Cluster::start(1, &guests.file(pool)).await;
    let body = r#"{"units": 1, "client": "ann"}"#;
    let put = |id: &str| format!("PUT /v1/pools/p/claims/{id}?wait=1m");
    let (status, ann) = cluster.request(0, &by(&guests.ann, &put("a")), body).await;
    assert_eq!(status, 200, "{ann}");
    let (status, blind) = cluster.request(0, &by(&guests.blind, &put("b")), body).await;
    assert_eq!((status, &blind["type"]), (422, &"impossible".into()), "{blind}");
}
