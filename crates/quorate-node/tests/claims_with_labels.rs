//! Pools whose units differ: claims that choose, bundles, reservations, and why they wait.

mod common;

use common::Cluster;
use serde_json::Value;

/// Two kinds of GPU in two zones, and a network card; the h100 in the us is for the trainers.
const POOLS: &str = r#"
    [[pools]]
    name = "gpus"
    arbiter = "n0"
    lease = "1m"
    units = [
        { name = "g0", labels = { gpu = "h100", zone = "eu" } },
        { name = "g1", labels = { gpu = "h100", zone = "us" } },
        { name = "g2", labels = { gpu = "a100", zone = "eu" } },
        { name = "g3", labels = { gpu = "a100", zone = "us" } },
        { name = "nic", labels = { kind = "nic" } },
    ]
    [[pools.reserved]]
    units = ["g1"]
    clients = ["train-*"]
    [[pools.reserved]]
    where = { kind = "nic" }
    members = ["n1"]
    [[pools]]
    name = "plain"
    units = 2
"#;

async fn put(cluster: &Cluster, node: usize, id: u32, body: &str) -> (u16, Value) {
    cluster.request(node, &format!("PUT /v1/pools/gpus/claims/{id}?wait=30s&why=true"), body).await
}

/// The same without waiting for the grant.
async fn ask(cluster: &Cluster, node: usize, id: u32, body: &str) -> (u16, Value) {
    cluster.request(node, &format!("PUT /v1/pools/gpus/claims/{id}?wait=0s"), body).await
}

fn names(claim: &Value) -> Vec<&str> {
    let units = claim["units"].as_array().unwrap();
    units.iter().map(|unit| unit["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_gets_units_with_the_labels_it_asks_for() {
    let cluster = Cluster::start(2, POOLS).await;
    let body = r#"{"lines": [{"where": {"gpu": "a100"}, "units": 2}]}"#;
    let (status, claim) = put(&cluster, 1, 1, body).await;
    assert_eq!((status, names(&claim)), (200, vec!["g2", "g3"]), "{claim}");
    assert_eq!(claim["units"][1]["labels"]["zone"], "us");
    assert_eq!((&claim["asked"], &claim["lines"][0]["units"]), (&2.into(), &2.into()));
    // Repeating is harmless, and another selector is another claim.
    let (status, again) = put(&cluster, 1, 1, body).await;
    assert_eq!((status, &again["units"]), (200, &claim["units"]));
    let other = r#"{"lines": [{"where": {"zone": "eu"}, "units": 2}]}"#;
    let (status, problem) = put(&cluster, 1, 1, other).await;
    assert_eq!((status, &problem["type"]), (409, &"different-claim".into()));
    let (_, holders) = cluster.request(0, "GET /v1/pools/gpus/holders", "").await;
    assert_eq!(names(&holders["holders"][0]), ["g2", "g3"]);
    let (_, pool) = cluster.request(0, "GET /v1/pools/gpus", "").await;
    assert_eq!(pool["unit_labels"][0]["gpu"], "h100");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_granted_together_and_delays_nobody_who_wants_other_units() {
    let cluster = Cluster::start(2, POOLS).await;
    let (status, first) = put(&cluster, 0, 1, r#"{"lines": [{"where": {"gpu": "h100"}}]}"#).await;
    assert_eq!((status, names(&first)), (200, vec!["g0"]));
    let bundle = r#"{"lines": [{"where": {"gpu": "h100"}}, {"where": {"kind": "nic"}}]}"#;
    let (status, bundle) = ask(&cluster, 1, 2, bundle).await;
    assert_eq!((status, &bundle["state"]), (202, &"waiting".into()), "{bundle}");
    let (status, third) = put(&cluster, 1, 3, r#"{"lines": [{"where": {"gpu": "a100"}}]}"#).await;
    assert_eq!((status, &third["units"][0]["labels"]["gpu"]), (200, &"a100".into()), "{third}");
    let (_, queue) = cluster.request(0, "GET /v1/pools/gpus/queue", "").await;
    assert_eq!(queue["waiting"][0]["lines"][1]["where"]["kind"], "nic", "{queue}");
    cluster.request(1, "DELETE /v1/pools/gpus/claims/1", "").await;
    let (status, granted) = cluster.request(1, "GET /v1/pools/gpus/claims/2?wait=30s", "").await;
    assert_eq!((status, names(&granted)), (200, vec!["g0", "nic"]), "{granted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_unit_can_satisfy_is_refused_at_once_and_says_which_selector() {
    let cluster = Cluster::start(2, POOLS).await;
    for (body, says) in [
        (
            r#"{"lines": [{"where": {"gpu": "b200"}}]}"#,
            "1 with gpu=b200: there are 0 such units. Of the pool's units this client may use, \
             at this node, gpu=a100 (2), h100 (1); kind=nic (1); zone=eu (2), us (1)",
        ),
        (
            r#"{"lines": [{"where": {"zone": "us"}}, {"where": {"gpu": "h100"}},
                          {"where": {"gpu": "h100", "zone": "eu"}}]}"#,
            "1 with gpu=h100, 1 with gpu=h100,zone=eu: together these ask for 2 units, and there \
             are 1 that will do",
        ),
        (
            r#"{"units": 5}"#,
            "5 units asked, and this client may use 4 of the pool's 5 at this node",
        ),
    ] {
        let (status, problem) = put(&cluster, 1, 1, body).await;
        assert_eq!((status, &problem["type"]), (422, &"impossible".into()), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    }
    for body in [
        r#"{"units": 1, "lines": [{"where": {"zone": "us"}, "units": 2}]}"#,
        r#"{"lines": [{"where": {"zone": ""}}]}"#,
        r#"{"lines": [{"were": {"zone": "us"}}]}"#,
    ] {
        let (status, problem) = put(&cluster, 1, 1, body).await;
        assert_eq!((status, &problem["type"]), (400, &"bad-request".into()), "{problem}");
    }
    let what = "PUT /v1/pools/plain/claims/1";
    let (status, problem) =
        cluster.request(0, what, r#"{"lines": [{"where": {"zone": "us"}}]}"#).await;
    assert_eq!(status, 422, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("have no labels"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_units_are_for_those_they_are_reserved_for() {
    let cluster = Cluster::start(2, POOLS).await;
    let nic = r#"{"lines": [{"where": {"kind": "nic"}}]}"#;
    assert_eq!(put(&cluster, 0, 1, nic).await.0, 422, "not at this member");
    assert_eq!(put(&cluster, 1, 2, nic).await.0, 200);
    let trainer = r#"{"client": "train-7", "lines": [{"where": {"gpu": "h100"}, "units": 2}]}"#;
    let (status, claim) = put(&cluster, 0, 3, trainer).await;
    assert_eq!((status, names(&claim)), (200, vec!["g0", "g1"]), "{claim}");
    // Nobody else waits for what is not for him.
    let (status, claim) = put(&cluster, 0, 4, r#"{"units": 2}"#).await;
    assert_eq!((status, names(&claim)), (200, vec!["g2", "g3"]), "{claim}");
    cluster.request(0, "DELETE /v1/pools/gpus/claims/3", "").await;
    let (status, claim) = put(&cluster, 0, 5, "{}").await;
    assert_eq!((status, names(&claim)), (200, vec!["g0"]), "{claim}");
    let (status, claim) = ask(&cluster, 0, 6, "{}").await;
    assert_eq!((status, &claim["state"]), (202, &"waiting".into()), "g1 is not for it: {claim}");
}
