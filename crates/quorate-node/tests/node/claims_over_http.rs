//! What HTTP clients may rely on, at a cluster of three.

use std::time::Instant;

use crate::common::Cluster;
use serde_json::Value;

const POOLS: &str = r#"
    [[pools]]
    name = "gpu"
    unit_names = ["left", "right", "middle"]
    arbiter = "n0"
    lease = "1m"
    [[pools]]
    pattern = "ci-*"
    units = 2
"#;

fn claim(id: u32) -> String {
    format!("/v1/pools/gpu/claims/{id}")
}

#[tokio::test(flavor = "multi_thread")]
async fn repeating_a_claim_changes_nothing_and_another_body_is_refused() {
    let cluster = Cluster::start(3, POOLS).await;
    let put = format!("PUT {}?wait=30s", claim(1));
    let asked = Instant::now();
    let (status, first) = cluster.request(1, &put, r#"{"units": 2, "reason": "x"}"#).await;
    assert_eq!((status, &first["state"]), (200, &"granted".into()), "{first}");
    assert_eq!(first["units"][0]["name"], "left");
    // Counted from the request, so what it waited for comes on top of the lease.
    let most = 60_001 + asked.elapsed().as_millis() as u64;
    assert!(first["expires_in_ms"].as_u64().unwrap() <= most, "{first}");
    let (status, again) = cluster.request(1, &put, r#"{"units": 2, "reason": "x"}"#).await;
    assert_eq!((status, &again["units"]), (200, &first["units"]));
    // A process that took over where another crashed asks for the same.
    let other = r#"{"units": 2, "reason": "y", "client": "another process"}"#;
    let (status, resumed) = cluster.request(1, &put, other).await;
    assert_eq!((status, &resumed["units"]), (200, &first["units"]), "{resumed}");
    assert_eq!(resumed["client"], "another process");
    let long = format!(r#"{{"units": 2, "reason": "{}"}}"#, "x".repeat(300));
    assert_eq!(cluster.request(1, &put, &long).await.0, 400);
    // Through another node it is the same claim.
    let (status, there) = cluster.request(2, &put, r#"{"units": 2, "reason": "x"}"#).await;
    assert_eq!((status, &there["units"]), (200, &first["units"]), "{there}");
    let (_, pool) = cluster.request(0, "GET /v1/pools/gpu", "").await;
    assert_eq!(pool["held"], 2, "{pool}");

    let (status, problem) = cluster.request(1, &put, r#"{"units": 1}"#).await;
    assert_eq!((status, &problem["type"]), (409, &"different-claim".into()));
    // A node that does not know it asks the arbiter, who does.
    let (status, problem) = cluster.request(0, &put, r#"{"units": 1}"#).await;
    assert_eq!((status, &problem["type"]), (409, &"different-claim".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_granted_is_refused_at_the_door() {
    let cluster = Cluster::start(1, POOLS).await;
    for (what, body, status, kind) in [
        ("PUT /v1/pools/gpu/claims/1", r#"{"units": 4}"#, 422, "impossible"),
        ("PUT /v1/pools/gpu/claims/1", r#"{"units": 0}"#, 422, "impossible"),
        ("PUT /v1/pools/none/claims/1", "", 404, "unknown-pool"),
        ("PUT /v1/pools/gpu/claims/xyz", "", 400, "bad-request"),
        ("PUT /v1/pools/gpu/claims/1?wait=soon", "", 400, "bad-request"),
        ("PUT /v1/pools/gpu/claims/1", r#"{"unit": 1}"#, 400, "bad-request"),
        ("PUT /v1/pools/gpu/claims/1", "[", 400, "bad-request"),
        ("PUT /v1/pools/gpu/claims/1", " []", 400, "bad-request"),
        ("PUT /v1/pools/gpu/claims/1", "[1]", 400, "bad-request"),
        ("PUT /v1/pools/%ff/claims/1", "", 400, "bad-request"),
        ("GET /v1/pools/gpu/claims/77", "", 404, "unknown-claim"),
        ("POST /v1/pools/gpu/claims/77/renew", "", 404, "unknown-claim"),
        ("POST /v1/pools/gpu/claims/77/renew", UNIT_9, 400, "bad-request"),
        ("POST /v1/pools/gpu/claims/77/revoke", r#"{"reason": "x"}"#, 404, "unknown-claim"),
        ("GET /v2", "", 404, "no-such-page"),
    ] {
        let (got, problem) = cluster.request(0, what, body).await;
        assert_eq!((got, &problem["type"]), (status, &kind.into()), "{what} {problem}");
        assert_eq!(problem["status"], status, "{problem}");
    }
    let (_, pool) = cluster.request(0, "GET /v1/pools/gpu", "").await;
    assert_eq!((&pool["held"], &pool["waiting"]), (&0.into(), &0.into()));
}

const UNIT_9: &str = r#"{"units": [{"unit": 9, "fence": 1}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_claim_is_told_why_and_served_when_it_can_be() {
    let cluster = Cluster::start(3, POOLS).await;
    let first = r#"{"units": 2, "client": "ada", "reason": "training"}"#;
    cluster.request(1, &format!("PUT {}?wait=30s", claim(1)), first).await;
    let put = format!("PUT {}?wait=0&why=true", claim(2));
    let (status, waits) = cluster.request(2, &put, r#"{"units": 3}"#).await;
    assert_eq!((status, &waits["state"]), (202, &"waiting".into()), "{waits}");
    crate::common::until("the arbiter has booked it", || async {
        let (_, waits) = cluster.request(2, &format!("GET {}?why=true", claim(2)), "").await;
        waits["why"]["position"] == 1
    })
    .await;
    let (_, waits) = cluster.request(2, &format!("GET {}?why=true", claim(2)), "").await;
    let why = &waits["why"];
    assert_eq!((&why["free"], &why["missing"]), (&1.into(), &2.into()), "{why}");
    assert_eq!(why["holders"][0]["client"], "ada");
    assert_eq!(why["holders"][0]["reason"], "training");
    let (_, queue) = cluster.request(0, "GET /v1/pools/gpu/queue", "").await;
    assert_eq!(queue["waiting"][0]["node"], "n2", "{queue}");

    let address = cluster.address(2);
    let path = format!("GET {}?wait=1m", claim(2));
    let waiting = tokio::spawn(async move { crate::common::request(address, &path, "").await });
    let (status, released) = cluster.request(1, &format!("DELETE {}", claim(1)), "").await;
    assert_eq!((status, &released["state"]), (200, &"released".into()));
    let (status, granted) = waiting.await.unwrap();
    assert_eq!((status, &granted["state"]), (200, &"granted".into()), "{granted}");
    assert!(fence(&granted, 0) > 0);
}

fn fence(status: &Value, unit: usize) -> u64 {
    status["units"][unit]["fence"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_claim_is_never_granted_later() {
    let cluster = Cluster::start(3, POOLS).await;
    cluster.request(0, &format!("PUT {}?wait=30s", claim(1)), r#"{"units": 3}"#).await;
    let (status, _) = cluster.request(1, &format!("PUT {}?wait=0", claim(2)), "").await;
    assert_eq!(status, 202);
    let (status, over) = cluster.request(1, &format!("DELETE {}", claim(2)), "").await;
    assert_eq!((status, &over["state"]), (200, &"cancelled".into()));
    // Ended before it was made: the answer to its late arrival is the same.
    cluster.request(2, &format!("DELETE {}", claim(3)), "").await;
    cluster.request(0, &format!("DELETE {}", claim(1)), "").await;
    for (node, id) in [(1, 2), (2, 3)] {
        let (status, problem) = cluster.request(node, &format!("PUT {}", claim(id)), "").await;
        assert_eq!((status, &problem["type"]), (410, &"claim-over".into()), "{problem}");
    }
    crate::common::until("everything is free", || async {
        let (_, pool) = cluster.request(0, "GET /v1/pools/gpu", "").await;
        pool["held"] == 0 && pool["waiting"] == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_claim_ends_when_its_client_says_so() {
    let cluster = Cluster::start(3, POOLS).await;
    let body = r#"{"units": 3, "client": "bob"}"#;
    cluster.request(1, &format!("PUT {}?wait=30s", claim(1)), body).await;
    let revoke = format!("POST {}/revoke", claim(1));
    let (status, gone) = cluster.request(2, &revoke, r#"{"reason": "maintenance"}"#).await;
    assert_eq!((status, &gone["state"]), (200, &"revoked".into()), "{gone}");
    assert_eq!(gone["client"], "bob");
    let (_, told) = cluster.request(1, &format!("GET {}", claim(1)), "").await;
    assert_eq!(
        (&told["state"], &told["ended"]),
        (&"revoked".into(), &"maintenance".into()),
        "{told}"
    );
    for node in 0..3 {
        let renew = format!("POST {}/renew", claim(1));
        let units = r#"{"units": [{"unit": 0, "fence": 1}]}"#;
        let (status, _) = cluster.request(node, &renew, units).await;
        assert_eq!(status, 410, "node {node} renews nothing");
    }
    let (_, pool) = cluster.request(0, "GET /v1/pools/gpu", "").await;
    assert_eq!(pool["held"], 3, "its client may still be using the units");
    for node in 0..3 {
        let (_, view) = cluster.request(node, "GET /v1/pools/gpu/holders", "").await;
        let holder = &view["holders"][0];
        assert_eq!((&holder["client"], &holder["node"]), (&"bob".into(), &"n1".into()), "{view}");
        assert_eq!(holder["units"][2]["name"], "middle", "{view}");
        let (_, metrics) = cluster.text(node, "GET /metrics").await;
        let cancelled = r#"quorate_acquires_total{pool="gpu",outcome="cancelled"} "#;
        let count = metrics.lines().find_map(|line| line.strip_prefix(cancelled));
        assert_eq!(count.unwrap_or("0"), "0", "node {node}: nobody cancelled anything");
    }
    let (_, told) = cluster.request(1, &format!("GET {}", claim(1)), "").await;
    assert_eq!(told["state"], "revoked", "{told}");
    cluster.request(1, &format!("DELETE {}", claim(1)), "").await;
    let (status, _) = cluster.request(0, &format!("PUT {}?wait=30s", claim(2)), body).await;
    assert_eq!(status, 200, "the client has stopped, and the units are free");
}

#[tokio::test(flavor = "multi_thread")]
async fn pools_of_a_pattern_exist_once_they_are_used() {
    let cluster = Cluster::start(3, POOLS).await;
    for pool in 0..40 {
        let put = format!("PUT /v1/pools/ci-{pool}/claims/1?wait=30s");
        let (status, _) = cluster.request(pool % 3, &put, r#"{"units": 2}"#).await;
        assert_eq!(status, 200, "ci-{pool}");
    }
    let (_, pools) = cluster.request(0, "GET /v1/pools", "").await;
    assert_eq!(pools["patterns"], serde_json::json!(["ci-*"]));
    assert!(pools["pools"].as_array().unwrap().len() > 10);
    let (_, metrics) = cluster.text(0, "GET /metrics").await;
    assert!(metrics.contains("quorate_pool_units{pool=\"ci-*\",state=\"held\"}"), "{metrics}");
    assert!(!metrics.contains("pool=\"ci-1\""), "a pool of a pattern is no time series");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_pages() {
    let cluster = Cluster::start(3, POOLS).await;
    assert_eq!(cluster.text(0, "GET /livez").await, (200, "ok\n".into()));
    let (status, text) = cluster.text(0, "GET /readyz?verbose").await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("[+]members ok: 3 of 3 are connected"), "{text}");
    let (status, metrics) = cluster.text(0, "GET /metrics").await;
    assert!(status == 200 && metrics.contains("quorate_members{state=\"connected\"} 3"));
    assert!(metrics.contains("quorate_build_info"), "{metrics}");
}

/// Who reads docs/http.md finds every call, with a line for the shell.
#[test]
fn every_call_has_its_place_in_the_documentation() {
    let page = include_str!("../../../../docs/http.md");
    let document: serde_json::Value =
        serde_json::from_str(quorate_node::openapi()).expect("a document");
    let paths = document["paths"].as_object().expect("paths");
    let mut calls = 0;
    for (path, methods) in paths {
        for method in methods.as_object().expect("methods").keys() {
            let heading = format!("### `{} {path}`\n", method.to_uppercase());
            let rest = page.split_once(&heading).unwrap_or_else(|| panic!("{heading}")).1;
            let section = rest.split("\n### ").next().unwrap_or_default();
            assert!(section.contains("\ncurl "), "{heading} shows no curl");
            calls += 1;
        }
    }
    assert!(calls > 20, "{calls}");
}
