//! Links between nodes that break and mend. Nodes here never ask twice (`retry` is an hour), so
//! whatever arrives does so because links resume.

use crate::common::{Cluster, until};
use serde_json::Value;

const POOLS: &str = r#"
    [[pools]]
    name = "p"
    units = 1
    arbiter = "n0"
    lease = "1h"
    retry = "1h"
"#;

fn path(method: &str, id: u32, rest: &str) -> String {
    format!("{method} /v1/pools/p/claims/{id}{rest}")
}

async fn is_connected(cluster: &Cluster, wanted: bool) {
    for place in 0..2 {
        until("both sides know", || async {
            let (_, view) = cluster.request(place, "GET /v1/node", "").await;
            view["peers"][0]["connected"] == wanted
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_while_the_link_was_broken_arrives_when_it_is_mended() {
    let (cluster, bridge) = Cluster::with_a_bridge(POOLS).await;
    let (_, first) = cluster.request(0, &path("PUT", 1, "?wait=1m"), "").await;
    assert_eq!(first["state"], "granted");
    let address = cluster.address(1);
    let put = path("PUT", 2, "?wait=1m");
    let waiting = tokio::spawn(async move { crate::common::request(address, &put, "").await });
    until("it waits", || async {
        let (_, pool) = cluster.request(0, "GET /v1/pools/p", "").await;
        pool["waiting"] == 1
    })
    .await;
    bridge.cut();
    is_connected(&cluster, false).await;
    // The grant of the second cannot be told now.
    cluster.request(0, &path("DELETE", 1, ""), "").await;
    let (_, pool) = cluster.request(0, "GET /v1/pools/p", "").await;
    assert_eq!((&pool["held"], &pool["silent"]), (&1.into(), &Value::from(vec!["n1"])), "{pool}");
    bridge.mend();
    let (status, granted) = waiting.await.unwrap();
    assert_eq!((status, &granted["state"]), (200, &"granted".into()), "{granted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_go_on_through_many_cuts() {
    let (cluster, bridge) = Cluster::with_a_bridge(POOLS).await;
    for round in 1..=12 {
        let address = cluster.address(1);
        let put = path("PUT", round, "?wait=1m");
        let granted = tokio::spawn(async move { crate::common::request(address, &put, "").await });
        if round % 3 == 0 {
            bridge.cut();
            bridge.mend();
        }
        let (status, granted) = granted.await.unwrap();
        assert_eq!(status, 200, "round {round}: {granted}");
        if round % 4 == 0 {
            bridge.cut();
        }
        let (status, _) = cluster.request(1, &path("DELETE", round, ""), "").await;
        assert_eq!(status, 200);
        bridge.mend();
    }
    is_connected(&cluster, true).await;
    until("every release has arrived", || async {
        let (_, pool) = cluster.request(0, "GET /v1/pools/p", "").await;
        pool["held"] == 0
    })
    .await;
    let (_, metrics) = cluster.text(0, "GET /metrics").await;
    assert!(metrics.contains("quorate_messages_dropped_total 0"), "nothing was dropped");
}
