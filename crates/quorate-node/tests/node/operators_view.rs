//! What an operator sees: everything on one screen, why a claim waits, and what happened.

use crate::common::{Cluster, until};
use serde_json::{Value, json};

const POOLS: &str = r#"
    [[pools]]
    name = "gpu"
    units = 3
    arbiter = "n0"
    lease = "1m"
    [[pools]]
    pattern = "ci-*"
    units = 2
    arbiter = "n1"
"#;

fn claim(id: u32) -> String {
    format!("/v1/pools/gpu/claims/{id}")
}

async fn hold(cluster: &Cluster, node: usize, id: u32, units: u32, reason: &str) {
    let body = json!({"units": units, "client": "tester", "reason": reason}).to_string();
    let (status, answer) =
        cluster.request(node, &format!("PUT {}?wait=30s", claim(id)), &body).await;
    assert_eq!(status, 200, "{answer}");
}

async fn release(cluster: &Cluster, node: usize, id: u32) {
    let (status, answer) = cluster.request(node, &format!("DELETE {}", claim(id)), "").await;
    assert_eq!(status, 200, "{answer}");
}

fn id(n: u32) -> String {
    format!("{n:032x}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_claim_says_what_it_waits_for_and_what_would_help() {
    let cluster = Cluster::start(3, POOLS).await;
    for n in 100..106 {
        hold(&cluster, 2, n, 1, "short").await;
        release(&cluster, 2, n).await;
    }
    hold(&cluster, 1, 1, 2, "training").await;
    for n in [2, 3] {
        let body = json!({"units": 3, "reason": format!("job {n}")}).to_string();
        let (status, answer) = cluster.request(2, &format!("PUT {}?wait=0", claim(n)), &body).await;
        assert_eq!(status, 202, "{answer}");
        until("the arbiter has it in its books", || async {
            let (_, queue) = cluster.request(0, "GET /v1/pools/gpu/queue", "").await;
            queue["waiting"].as_array().unwrap().iter().any(|w| w["id"] == id(n))
        })
        .await;
    }
    // Asked at a node that is neither the claim's nor the arbiter's.
    let (status, answer) = cluster.request(1, &format!("GET {}/why", claim(3)), "").await;
    assert_eq!(status, 202, "{answer}");
    let why = &answer["why"];
    assert_eq!(
        (&why["position"], &why["free"], &why["missing"]),
        (&2.into(), &1.into(), &2.into())
    );
    assert_eq!(why["holders"][0]["reason"], "training");
    assert!(why["holders"][0]["expires_in_ms"].as_u64().unwrap() > 1000);
    assert_eq!(why["ahead"][0]["id"], id(2));
    assert_eq!(why["remedy"], json!({"release": [id(1)], "cancel": [id(2)]}));
    let estimate = &why["estimate"];
    assert_eq!(estimate["holds"], 6, "{why}");
    assert!(estimate["soon_ms"].as_u64() <= estimate["late_ms"].as_u64());
    let (_, found) = cluster.request(0, "GET /v1/claims/3", "").await;
    assert_eq!(found["pools"], json!(["gpu"]));
    // What it says is true: with those two gone, it starts.
    release(&cluster, 1, 1).await;
    release(&cluster, 2, 2).await;
    let (status, _) = cluster.request(2, &format!("GET {}?wait=30s", claim(3)), "").await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_at_any_node_is_told_by_every_node() {
    let cluster = Cluster::start(3, POOLS).await;
    hold(&cluster, 1, 1, 2, "first").await;
    hold(&cluster, 2, 2, 1, "second").await;
    release(&cluster, 1, 1).await;
    let revoke = format!("POST {}/revoke", claim(2));
    let (status, _) = cluster.request(0, &revoke, r#"{"reason": "enough"}"#).await;
    assert_eq!(status, 200);
    for node in 0..3 {
        let (_, history) = cluster.request(node, "GET /v1/pools/gpu/history", "").await;
        let events = history["events"].as_array().unwrap();
        let told: Vec<(&str, &str)> = events
            .iter()
            .map(|e| (e["what"].as_str().unwrap(), e["node"].as_str().unwrap()))
            .collect();
        for line in [("granted", "n1"), ("released", "n1"), ("granted", "n2"), ("revoked", "n2")] {
            assert_eq!(told.iter().filter(|told| **told == line).count(), 1, "{told:?}");
        }
        let revoked = events.iter().find(|e| e["what"] == "revoked").unwrap();
        assert_eq!((&revoked["text"], &revoked["who"]), (&"enough".into(), &"tester".into()));
    }
    let (status, _) = cluster.request(0, "GET /v1/pools/none/history", "").await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overview_shows_nodes_pools_and_one_page_of_many_claims() {
    let mut cluster = Cluster::on_disk("an_overview", 3, POOLS).await;
    hold(&cluster, 1, 1, 3, "all of it").await;
    for n in 0..60 {
        let body = json!({"client": format!("client {n}"), "reason": "queue"}).to_string();
        let put = format!("PUT {}?wait=0", claim(1000 + n));
        cluster.request(2, &put, &body).await;
    }
    for n in 0..30 {
        let put = format!("PUT /v1/pools/ci-{n:02}/claims/{n}?wait=30s");
        cluster.request(2, &put, "").await;
    }
    let look = |what: &'static str| cluster.request(0, what, "");
    let (status, view) = look("GET /v1/overview?pool=gpu&rows=20&queue_page=1").await;
    assert_eq!(status, 200, "{view}");
    assert_eq!((view["pools"].as_array().unwrap().len(), &view["pools_found"]), (20, &31.into()));
    assert_eq!(
        view["pools"][0],
        json!({"name": "ci-00", "units": 2, "held": 1, "waiting": 0, "protocol": "central",
            "grants": {"smallest": 1, "largest": 2}})
    );
    let pool = &view["pool"];
    assert_eq!((&pool["view"]["held"], &pool["view"]["waiting"]), (&3.into(), &60.into()));
    assert_eq!((pool["queue"].as_array().unwrap().len(), &pool["queue_found"]), (20, &60.into()));
    assert_eq!(pool["holders"][0]["reason"], "all of it");
    assert!(pool["view"]["facts"].as_array().unwrap().iter().any(|f| f["name"] == "decides"));
    let granted = |chart: &Value| -> u64 {
        chart.as_array().unwrap().iter().map(|point| point["granted"].as_u64().unwrap()).sum()
    };
    assert_eq!(granted(&pool["chart"]), 1);
    let (_, view) = look("GET /v1/overview?pool=gpu&search=gp&claims=CLIENT%205").await;
    assert_eq!((&view["pools_found"], &view["pool"]["queue_found"]), (&1.into(), &11.into()));
    let (status, _) = look("GET /v1/overview?pool=none").await;
    assert_eq!(status, 404);
    for (status, text) in [
        look("GET /v1/overview?page=99999999999&pool=gpu&holders_page=99999999999").await,
        look("GET /v1/overview?rows=0").await,
    ] {
        assert_eq!(status, 200, "{text}");
    }

    let all_see_all = |view: &Value| {
        let sees = |n: &Value| n["sees"].as_array().unwrap().iter().all(|s| s["connected"] == true);
        view["nodes"].as_array().unwrap().iter().all(|n| n["answers"] == true && sees(n))
    };
    assert!(all_see_all(&view), "{view}");
    cluster.crash(2).await;
    until("the others miss it", || async {
        let (_, view) = cluster.request(0, "GET /v1/overview", "").await;
        let gone = &view["nodes"][2];
        let told = view["notable"].as_array().unwrap().iter();
        gone["answers"] == false
            && gone["problem"].is_string()
            && told.clone().any(|e| e["what"] == "missed" && e["who"] == "n2")
    })
    .await;
    cluster.restart(2, None).await;
    until("it is back", || async {
        let (_, view) = cluster.request(0, "GET /v1/overview", "").await;
        all_see_all(&view)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_measure_how_far_the_others_are() {
    let cluster = Cluster::start(2, POOLS).await;
    until("a ping has come back", || async {
        let (_, view) = cluster.request(0, "GET /v1/overview", "").await;
        view["nodes"][1]["sees"][0]["latency_us"].is_u64()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_and_its_files_are_served_with_a_strict_policy() {
    let cluster = Cluster::start(2, POOLS).await;
    let (status, page) = cluster.text(0, "GET /").await;
    assert_eq!(status, 200);
    assert!(!page.contains("<style") && !page.contains("style=") && !page.contains("onclick"));
    for part in page.split('"').filter_map(|part| part.strip_prefix("/assets/")) {
        let (status, _) = cluster.text(0, &format!("GET /assets/{part}")).await;
        assert_eq!(status, 200, "{part}");
    }
    let (status, _) = cluster.text(0, "GET /assets/..%2Fsecret").await;
    assert_eq!(status, 404);
    let head = cluster.head(0, "GET /").await;
    assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"));
}
