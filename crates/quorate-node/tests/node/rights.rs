//! Tokens with rights, at a cluster of several nodes: a claim belongs to who made it, wherever
//! somebody else asks for it.

use crate::common::Cluster;
use quorate_trust::Secret;
use serde_json::Value;

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
