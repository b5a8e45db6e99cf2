//! `/metrics`: the set of conventions 3.8, in both formats, and counts that only some events
//! change.

use std::collections::BTreeSet;

use crate::common::{Cluster, until};

const POOLS: &str = r#"
    [[pools]]
    name = "p"
    units = 2
    arbiter = "n0"
    lease = "1h"
    fairness = "backfill:1"
"#;

/// What dashboards may rely on.
const NAMES: &[&str] = &[
    "quorate_pool_units",
    "quorate_pool_capacity_units",
    "quorate_pool_grants_up_to_units",
    "quorate_pools_unavailable",
    "quorate_waiters",
    "quorate_wait_units",
    "quorate_oldest_wait_seconds",
    "quorate_oldest_hold_seconds",
    "quorate_acquire_duration_seconds",
    "quorate_hold_duration_seconds",
    "quorate_acquires_total",
    "quorate_releases_total",
    "quorate_overtakes_total",
    "quorate_fence_rejections_total",
    "quorate_lease_renewals_total",
    "quorate_messages_sent_total",
    "quorate_fsync_duration_seconds",
    "quorate_quorum_reachable",
    "quorate_members",
    "quorate_build_info",
];

fn put(id: u32) -> String {
    format!("PUT /v1/pools/p/claims/{id}?wait=0")
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_named_is_there_and_typed() {
    let cluster = Cluster::start(3, POOLS).await;
    let (status, granted) = cluster.request(0, &put(1), "").await;
    assert_eq!(status, 200, "{granted}");
    cluster.request(0, "DELETE /v1/pools/p/claims/1", "").await;
    let head = cluster.head(0, "GET /metrics").await;
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let (_, text) = cluster.text(0, "GET /metrics").await;
    let mut types = BTreeSet::new();
    for line in text.lines() {
        if let Some(line) = line.strip_prefix("# TYPE ") {
            let (name, kind) = line.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(types.insert(name.to_owned()), "twice: {name}");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let plain = ["_bucket", "_sum", "_count"].iter().find_map(|e| name.strip_suffix(e));
            let typed = types.contains(name) || plain.is_some_and(|name| types.contains(name));
            assert!(typed, "without a type: {line}");
        }
    }
    for name in NAMES {
        assert!(types.contains(*name), "{name} is missing");
    }
    for state in ["free", "held", "quarantined", "draining"] {
        assert!(text.contains(&format!("quorate_pool_units{{pool=\"p\",state=\"{state}\"}}")));
    }
    // A header more: the rest of the line of the request becomes a header that nobody knows.
    let asked = "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text\r\nx-rest:";
    let head = cluster.head(0, asked).await;
    assert!(head.contains("content-type: application/openmetrics-text"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_is_taken_out_of_use_is_draining() {
    let cluster = Cluster::start(1, POOLS).await;
    assert_eq!(cluster.request(0, &put(1), "").await.0, 200);
    let (status, pool) = cluster.request(0, "PUT /v1/pools/p/units/1/drain", "").await;
    assert_eq!(status, 200, "{pool}");
    let counts = async |free: u32, held: u32, draining: u32| {
        let (_, text) = cluster.text(0, "GET /metrics").await;
        let states = [("free", free), ("held", held), ("draining", draining), ("quarantined", 0)];
        for (state, units) in states {
            let line = format!("quorate_pool_units{{pool=\"p\",state=\"{state}\"}} {units}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    };
    counts(0, 1, 1).await;
    // One that is still held is held, and takes no free one away.
    cluster.request(0, "DELETE /v1/pools/p/units/1/drain", "").await;
    cluster.request(0, "PUT /v1/pools/p/units/0/drain", "").await;
    counts(1, 1, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_passes_an_older_one_is_counted() {
    let cluster = Cluster::start(1, POOLS).await;
    assert_eq!(cluster.request(0, &put(1), "").await.0, 200);
    assert_eq!(cluster.request(0, &put(2), r#"{"units": 2}"#).await.0, 202);
    let counted = |n: u32| format!("quorate_overtakes_total{{pool=\"p\"}} {n}\n");
    let (_, text) = cluster.text(0, "GET /metrics").await;
    assert!(text.contains(&counted(0)), "{text}");
    assert_eq!(cluster.request(0, &put(3), "").await.0, 200, "there is room for one");
    let (_, text) = cluster.text(0, "GET /metrics").await;
    assert!(text.contains(&counted(1)), "{text}");
    for id in [1, 3] {
        cluster.request(0, &format!("DELETE /v1/pools/p/claims/{id}"), "").await;
    }
    until("the older one has its turn, and passes nobody", || async {
        let (status, _) = cluster.request(0, &put(2), r#"{"units": 2}"#).await;
        status == 200
    })
    .await;
    let (_, text) = cluster.text(0, "GET /metrics").await;
    assert!(text.contains(&counted(1)), "{text}");
}
