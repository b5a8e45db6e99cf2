//! What operators order: carried out once, however often it is repeated and whatever breaks.

use crate::common::{Cluster, until};
use serde_json::Value;

const POOLS: &str = r#"
    [[pools]]
    name = "p"
    units = 2
    arbiter = "n1"
    lease = "1h"
"#;

/// A request with a header of its own.
fn order(method: &str, path: &str, key: &str) -> String {
    // The version ends the line that the client writes; what follows is one more header.
    format!("{method} /v1/pools/p/{path} HTTP/1.1\r\nidempotency-key: {key}\r\nx-rest:")
}

async fn drained(cluster: &Cluster) -> Value {
    cluster.request(0, "GET /v1/pools/p", "").await.1["drained"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_not_acknowledged_is_unknown_and_carried_out_once() {
    let (cluster, bridge) = Cluster::with_a_bridge(POOLS).await;
    let (status, view) = cluster.request(0, "PUT /v1/pools/p/units/1/drain", "").await;
    assert_eq!((status, &view["drained"]), (200, &Value::from(vec!["1"])), "{view}");
    bridge.cut();
    let drain = order("PUT", "units/0/drain", "abc");
    let (status, unknown) = cluster.request(0, &drain, "").await;
    assert_eq!((status, &unknown["type"]), (504, &"unknown".into()), "{unknown}");
    assert!(unknown["detail"].as_str().unwrap().contains("n1"), "{unknown}");
    bridge.mend();
    // Nobody gives the order again: it was on its way.
    until("it arrives", || async { drained(&cluster).await == Value::from(vec!["0", "1"]) }).await;
    cluster.request(0, "DELETE /v1/pools/p/units/0/drain", "").await;
    let (status, again) = cluster.request(1, &drain, "").await;
    assert_eq!((status, &again["drained"]), (200, &Value::from(vec!["1"])), "{again}");
    let (status, _) = cluster.request(1, &order("PUT", "units/0/drain", "no key"), "").await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_not_said_to_be_taken_back_before_its_node_says_so() {
    let (cluster, bridge) = Cluster::with_a_bridge(POOLS).await;
    let claim = "/v1/pools/p/claims/1";
    let (_, granted) = cluster.request(0, &format!("PUT {claim}?wait=1m"), "").await;
    assert_eq!(granted["state"], "granted", "{granted}");
    bridge.cut();
    // The node that decides has it in its books, and does not answer for it.
    let revoke = format!("POST {claim}/revoke");
    let (status, unknown) = cluster.request(1, &revoke, r#"{"reason": "enough"}"#).await;
    assert_eq!((status, &unknown["type"]), (504, &"unknown".into()), "{unknown}");
    bridge.mend();
    until("it is taken back", || async {
        let (_, status) = cluster.request(0, &format!("GET {claim}"), "").await;
        status["state"] == "revoked"
    })
    .await;
}
