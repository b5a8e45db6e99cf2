//! Whoever looks on from outside can tell grants from each other, also across restarts: answers say
//! which node gave them in which start, grants are numbered, and their order is written down.

use crate::common::Cluster;
use serde_json::{Value, json};

const POOLS: &str = r#"
    [[pools]]
    name = "kept"
    units = 1
    arbiter = "n0"
    durable = true
    [[pools]]
    name = "forgotten"
    units = 1
    arbiter = "n0"
    lease = "100ms"
"#;

async fn claim(cluster: &Cluster, node: usize, pool: &str, id: u32) -> Value {
    let what = format!("PUT /v1/pools/{pool}/claims/{id}?wait=1m");
    let (status, answer) = cluster.request(node, &what, "").await;
    assert_eq!(status, 200, "{answer}");
    answer
}

async fn end(cluster: &Cluster, node: usize, pool: &str, id: u32) {
    let (status, answer) =
        cluster.request(node, &format!("DELETE /v1/pools/{pool}/claims/{id}"), "").await;
    assert_eq!(status, 200, "{answer}");
}

async fn register(cluster: &Cluster, pool: &str, after: u64) -> Vec<Value> {
    let what = format!("GET /v1/pools/{pool}/grants?after={after}");
    let (status, view) = cluster.request(1, &what, "").await;
    assert_eq!((status, &view["node"]), (200, &"n1".into()), "{view}");
    assert_eq!(view["durable"], pool == "kept");
    view["events"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_are_told_apart_and_their_order_survives_restarts() {
    let mut cluster = Cluster::on_disk("numbered_grants", 2, POOLS).await;
    for id in [1, 2] {
        let granted = claim(&cluster, 1, "kept", id).await;
        assert_eq!((&granted["boot"], &granted["grant"]), (&1.into(), &id.into()));
        let (_, holders) = cluster.request(0, "GET /v1/pools/kept/holders", "").await;
        let holder = &holders["holders"][0];
        assert_eq!((&holder["boot"], &holder["grant"]), (&1.into(), &id.into()), "{holders}");
        end(&cluster, 1, "kept", id).await;
    }
    claim(&cluster, 1, "forgotten", 1).await;
    end(&cluster, 1, "forgotten", 1).await;
    assert_eq!(register(&cluster, "forgotten", 0).await.len(), 2);
    let head = cluster.head(1, "GET /v1/pools/none").await;
    assert!(head.contains("quorate-node: n1") && head.contains("quorate-start: 1"), "{head}");

    cluster.stop(1).await;
    cluster.restart(1, None).await;
    cluster.connected().await;
    let granted = claim(&cluster, 1, "kept", 3).await;
    assert_eq!((&granted["boot"], &granted["grant"]), (&2.into(), &1.into()));
    let events = register(&cluster, "kept", 0).await;
    let told: Vec<Value> = events
        .iter()
        .map(|e| json!([e["number"], e["boot"], e["grant"], e["state"], e["id"]]))
        .collect();
    let id = |n: u32| format!("{n:032x}");
    let expected = [
        json!([1, 1, 1, "granted", id(1)]),
        json!([2, 1, 1, "released", id(1)]),
        json!([3, 1, 2, "granted", id(2)]),
        json!([4, 1, 2, "released", id(2)]),
        json!([5, 2, 1, "granted", id(3)]),
    ];
    assert_eq!(told, expected);
    assert_eq!(events[4]["shares"], json!([[0, granted["units"][0]["fence"]]]));
    assert_eq!(register(&cluster, "kept", 4).await.len(), 1);
    assert!(register(&cluster, "forgotten", 0).await.is_empty());
    // A client that goes on at another node has a copy of its grant there, and no new one.
    let receipt = json!({ "units": granted["units"] }).to_string();
    let renew = "POST /v1/pools/kept/claims/3/renew?wait=1m";
    let (status, copy) = cluster.request(0, renew, &receipt).await;
    assert_eq!((status, &copy["node"], &copy["grant"]), (200, &"n0".into(), &Value::Null));
}
