//! Nodes that run `ring`: scrambled on purpose, left out, and without their root.

use crate::common::{Cluster, until};
use serde_json::Value;

/// Three units; a node that is gone is left out soon, and its units made anew one second later.
fn pool(more: &str) -> String {
    format!(
        "[[pools]]\nname = \"p\"\nunits = 3\nlease = \"2s\"\nprotocol = \"ring\"\nttl = \"1s\"\n\
         timeout = \"200ms\"\nidle = \"50ms\"\n{more}\n"
    )
}

const CORRUPT: &str = "POST /v1/admin/pools/p/corrupt";

const REPAIRS: [&str; 3] = ["kills", "tokens_created", "tokens_destroyed"];

async fn claim(cluster: &Cluster, place: usize, id: u32, units: u32) -> (u16, Value) {
    let body = format!(r#"{{"units": {units}}}"#);
    cluster.request(place, &format!("PUT /v1/pools/p/claims/{id}?wait=50s"), &body).await
}

async fn release(cluster: &Cluster, place: usize, id: u32) {
    cluster.request(place, &format!("DELETE /v1/pools/p/claims/{id}"), "").await;
}

/// A fact as one node shows it, or as all do in sum.
fn fact(pool: &Value, node: Option<&str>, name: &str) -> u64 {
    let facts = pool["facts"].as_array().unwrap();
    let facts = facts.iter().filter(|fact| node.is_none_or(|node| fact["node"] == node));
    facts.filter(|fact| fact["name"] == name).filter_map(|fact| fact["value"].as_u64()).sum()
}

async fn shows(cluster: &Cluster, place: usize, name: &str, node: &str, value: u64) {
    until(&format!("{node} shows {name} {value}"), || async {
        let (_, pool) = cluster.request(place, "GET /v1/pools/p", "").await;
        fact(&pool, Some(node), name) == value
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrambled_pool_heals_while_clients_go_on() {
    let cluster = Cluster::start(3, &pool("allow_corruption = true")).await;
    let (mut id, mut healed) = (0, [0; 3]);
    // Until every kind of repair was seen: which ones a fault needs is chance.
    while id < 3 || healed.contains(&0) {
        for place in 0..3 {
            let (status, answer) = cluster.request(place, CORRUPT, "").await;
            assert_eq!(status, 200, "{answer}");
        }
        // Whoever claims is served, each at another node; nobody is restarted.
        for place in 0..3 {
            id += 1;
            let (status, granted) = claim(&cluster, place, id, 1).await;
            assert_eq!((status, &granted["state"]), (200, &"granted".into()), "{granted}");
            release(&cluster, place, id).await;
        }
        let (_, pool) = cluster.request(1, "GET /v1/pools/p", "").await;
        healed = REPAIRS.map(|name| fact(&pool, None, name));
        assert!(id < 300, "a hundred faults left no trace: {healed:?}");
    }
    shows(&cluster, 1, "legitimate", "n0", 1).await;
    // All units are there again, and no more.
    let (status, all) = claim(&cluster, 2, 1000, 3).await;
    assert_eq!((status, all["units"].as_array().unwrap().len()), (200, 3), "{all}");
    shows(&cluster, 1, "tokens_counted", "n0", 3).await;
    let (_, metrics) = cluster.text(0, "GET /metrics").await;
    for name in REPAIRS {
        assert!(metrics.contains(&format!("quorate_protocol_{name}")), "{name}: {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_scrambled_unless_the_configuration_says_so() {
    for pool in [pool(""), "[[pools]]\nname = \"p\"\nunits = 3\nlease = \"1h\"\n".into()] {
        let cluster = Cluster::start(1, &pool).await;
        let (status, problem) = cluster.request(0, CORRUPT, "").await;
        assert_eq!((status, &problem["type"]), (403, &"forbidden".into()), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("allow_corruption"), "{problem}");
        let (status, problem) = cluster.request(0, &CORRUPT.replace("/p/", "/q/"), "").await;
        assert_eq!(status, 404, "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ring_goes_on_without_a_node_with_fewer_units_and_makes_its_units_anew() {
    let mut cluster = Cluster::on_disk("ring_without_a_node", 3, &pool("")).await;
    let (status, _) = claim(&cluster, 2, 1, 1).await;
    assert_eq!(status, 200);
    cluster.crash(2).await;
    // Two units are left, and need not wait for anything but the suspicion.
    let (status, two) = claim(&cluster, 1, 2, 2).await;
    assert_eq!(status, 200, "{two}");
    shows(&cluster, 1, "left_out", "n0", 1).await;
    let (_, pool) = cluster.request(1, "GET /v1/pools/p", "").await;
    assert_eq!(pool["needs"], serde_json::json!(["n0"]));
    // The third is made when whoever had it has stopped.
    release(&cluster, 1, 2).await;
    let (status, all) = claim(&cluster, 1, 3, 3).await;
    assert_eq!(status, 200, "{all}");
    let (_, pool) = cluster.request(0, "GET /v1/pools/p", "").await;
    assert_eq!(fact(&pool, Some("n0"), "quarantine"), 0, "{pool}");
    assert!(fact(&pool, Some("n0"), "tokens_created") >= 1, "{pool}");
    cluster.restart(2, None).await;
    shows(&cluster, 1, "left_out", "n0", 0).await;
    release(&cluster, 1, 3).await;
    let (status, again) = claim(&cluster, 2, 4, 2).await;
    assert_eq!(status, 200, "{again}");
}

/// A grant lasts no longer than its node's licence, and neither do its units without a renewal.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_renew_loses_by_the_licence() {
    let cluster = Cluster::start(3, &pool("")).await;
    let (status, _) = claim(&cluster, 1, 1, 3).await;
    assert_eq!(status, 200);
    let (status, next) = claim(&cluster, 2, 2, 3).await;
    assert_eq!(status, 200, "{next}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_root_a_ring_grants_nothing_and_says_so() {
    let mut cluster = Cluster::on_disk("ring_without_root", 3, &pool("")).await;
    let (status, _) = claim(&cluster, 1, 1, 1).await;
    assert_eq!(status, 200);
    cluster.crash(0).await;
    shows(&cluster, 2, "fenced", "n1", 1).await;
    shows(&cluster, 2, "fenced", "n2", 1).await;
    let (_, lost) = cluster.request(1, "GET /v1/pools/p/claims/1", "").await;
    assert_eq!(lost["state"], "lost", "{lost}");
    let (_, waits) =
        cluster.request(1, "PUT /v1/pools/p/claims/2?wait=0s", r#"{"units": 1}"#).await;
    assert_eq!(waits["state"], "waiting", "{waits}");
    let (_, pool) = cluster.request(1, "GET /v1/pools/p", "").await;
    assert_eq!((&pool["needs"], &pool["silent"]), (&["n0"][..].into(), &["n0"][..].into()));
    cluster.restart(0, None).await;
    let (status, granted) = claim(&cluster, 1, 2, 1).await;
    assert_eq!((status, &granted["state"]), (200, &"granted".into()), "{granted}");
}
