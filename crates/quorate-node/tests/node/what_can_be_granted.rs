//! What cannot be granted is not promised: whoever asks is told which pools grant nothing with the
//! nodes that are there, who is missing, and how many are needed.

use crate::common::{Cluster, until};
use serde_json::{Value, json};

/// Two of five nodes go: `count` needs four of them, `decided` the last, the others a majority.
const POOLS: &str = r#"
    [[pools]]
    name = "count"
    units = 3
    protocol = "arbiter"
    mode = "count"
    [[pools]]
    name = "decided"
    units = 3
    arbiter = "n4"
    [[pools]]
    name = "named"
    units = 3
    protocol = "arbiter"
    mode = "named"
    [[pools]]
    name = "ticket"
    units = 3
    protocol = "arbiter"
    mode = "ticket"
    [[pools]]
    name = "table"
    units = 3
    protocol = "table"
"#;

async fn grants(cluster: &Cluster, pool: &str) -> Value {
    let (_, view) = cluster.request(0, &format!("GET /v1/pools/{pool}"), "").await;
    view["grants"].clone()
}

async fn ready(cluster: &Cluster, pool: &str) -> (u16, Value) {
    cluster.request(1, &format!("GET /readyz/pools/{pool}"), "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_without_a_quorum_says_so_wherever_it_is_asked() {
    let mut cluster = Cluster::start(5, POOLS).await;
    for pool in ["count", "decided", "named", "ticket", "table"] {
        assert_eq!(grants(&cluster, pool).await, json!({"smallest": 1, "largest": 3}), "{pool}");
        assert_eq!(ready(&cluster, pool).await.0, 200, "{pool}");
    }
    cluster.crash(3).await;
    cluster.crash(4).await;
    until("every node misses them", || async {
        ready(&cluster, "count").await.0 == 503 && ready(&cluster, "decided").await.0 == 503
    })
    .await;
    let why = "no quorum answers: n3, n4 are away, and 4 of 5 are needed";
    let no_quorum = json!({
        "kind": "no_quorum", "summary": why, "nodes": ["n3", "n4"], "voters": 5, "needed": 4,
    });
    let nothing = json!({"smallest": 0, "largest": 0, "hindrance": no_quorum});
    assert_eq!(grants(&cluster, "count").await, nothing);
    assert_eq!(ready(&cluster, "count").await.1, nothing);
    let decided = grants(&cluster, "decided").await;
    let without = "n4 is away, and nothing is granted without it";
    assert_eq!(decided["hindrance"]["summary"], without, "{decided}");
    for pool in ["named", "ticket", "table"] {
        assert_eq!(grants(&cluster, pool).await, json!({"smallest": 1, "largest": 3}), "{pool}");
        assert_eq!(ready(&cluster, pool).await.0, 200, "{pool}");
    }

    let (status, claim) = cluster.request(0, "PUT /v1/pools/count/claims/1?wait=0", "").await;
    assert_eq!(status, 202, "{claim}");
    let (_, told) = cluster.request(1, "GET /v1/pools/count/claims/1/why", "").await;
    let told = &told["why"];
    assert_eq!(
        (&told["summary"], &told["free"], &told["missing"]),
        (&why.into(), &0.into(), &1.into())
    );
    assert_eq!((&told["hindrance"], &told["estimate"]), (&no_quorum, &Value::Null));

    // The node still serves clients of the other pools, and names those that grant nothing.
    let (status, text) = cluster.text(0, "GET /readyz?verbose").await;
    assert_eq!(status, 200, "{text}");
    let blocked = format!("[+]pools ok: 2 of 5 grant nothing: count ({why}), decided ({without})");
    assert!(text.contains(&blocked), "{text}");
    let (_, text) = cluster.text(0, "GET /metrics").await;
    for (pool, most, blocked) in [("count", 0, 1), ("decided", 0, 1), ("named", 3, 0)] {
        let line = format!("quorate_pool_grants_up_to_units{{pool=\"{pool}\"}} {most}\n");
        assert!(text.contains(&line), "{line}{text}");
        let line = format!("quorate_pools_unavailable{{pool=\"{pool}\"}} {blocked}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
    let (_, view) = cluster.request(2, "GET /v1/overview", "").await;
    let rows = view["pools"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["grants"].clone();
    assert_eq!((row("count"), &row("named")["largest"]), (nothing, &3.into()));
    assert_eq!(cluster.request(0, "GET /readyz/pools/none", "").await.0, 404);
    until("it is in the pool's history", || async {
        let (_, past) = cluster.request(0, "GET /v1/pools/count/history", "").await;
        let events = past["events"].as_array().unwrap().clone();
        events.iter().any(|event| event["text"] == format!("it grants nothing: {why}"))
    })
    .await;
}

/// A node all of whose pools grant nothing is of no use, and not ready.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_pools_all_grant_nothing_is_not_ready() {
    let pool = "[[pools]]\nname = \"only\"\nunits = 1\narbiter = \"n2\"\n";
    let mut cluster = Cluster::start(3, pool).await;
    cluster.crash(2).await;
    until("it is not ready", || async { cluster.text(0, "GET /readyz").await.0 == 503 }).await;
    let (_, text) = cluster.text(0, "GET /readyz?verbose").await;
    assert!(text.contains("[+]members ok: 2 of 3 are connected"), "{text}");
    let without = "[-]pools failed: 1 of 1 grant nothing: only (n2 is away, and nothing is granted \
                   without it)";
    assert!(text.contains(without), "{text}");
    assert_eq!(cluster.text(0, "GET /readyz?exclude=pools").await.0, 200);
}

/// A node that promises nothing yet answers, and so is missed by nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_whose_decider_is_in_grace_is_not_ready_at_any_node() {
    let pool = "[[pools]]\nname = \"p\"\nunits = 1\narbiter = \"n0\"\nlease = \"1h\"\n";
    let mut cluster = Cluster::on_disk("decider_in_grace", 3, pool).await;
    let (status, held) = cluster.request(1, "PUT /v1/pools/p/claims/1?wait=1m", "").await;
    assert_eq!(status, 200, "{held}");
    assert_eq!(ready(&cluster, "p").await, (200, json!({"smallest": 1, "largest": 1})));
    cluster.crash(0).await;
    cluster.restart(0, None).await;
    cluster.connected().await;
    let (status, grants) = ready(&cluster, "p").await;
    assert_eq!((status, &grants["largest"]), (503, &0.into()), "{grants}");
    let hindrance = &grants["hindrance"];
    assert_eq!((&hindrance["kind"], &hindrance["nodes"]), (&"grace".into(), &json!(["n0"])));
    assert!(hindrance["for_ms"].as_u64().is_some_and(|left| left > 0), "{grants}");
}

/// Pools that stand still are found among a hundred, and the news of all of them is one line.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_many_pools_is_told_once_and_their_list_is_short() {
    let pools = "[[pools]]\npattern = \"still-*\"\nunits = 1\narbiter = \"n2\"\n\
                 [[pools]]\npattern = \"well-*\"\nunits = 1\narbiter = \"n0\"\n";
    let mut cluster = Cluster::start(3, pools).await;
    for n in 0..40 {
        for kind in ["still", "well"] {
            let put = format!("PUT /v1/pools/{kind}-{n}/claims/1?wait=1m");
            assert_eq!(cluster.request(0, &put, "").await.0, 200);
        }
    }
    cluster.crash(2).await;
    let overview = async |query: &str| {
        let (status, view) = cluster.request(0, &format!("GET /v1/overview?{query}"), "").await;
        assert_eq!(status, 200, "{view}");
        view
    };
    until("all of them are seen", || async {
        overview("only=unavailable").await["pools_found"] == 40
    })
    .await;
    let first = overview("sort=unavailable&rows=50").await;
    assert_eq!((&first["pools_found"], &first["pools_unavailable"]), (&80.into(), &40.into()));
    for (place, pool) in first["pools"].as_array().unwrap().iter().enumerate() {
        assert_eq!(pool["grants"]["largest"], u64::from(place >= 40), "{place}: {pool}");
    }
    let warned = |event: &&Value| event["what"] == "warned" && event["node"] == "n0";
    let notable = first["notable"].as_array().unwrap();
    let told: Vec<_> = notable.iter().filter(warned).map(|e| &e["more_pools"]).collect();
    assert_eq!(told, [&Value::from(39)], "{notable:?}");
    let (_, past) = cluster.request(0, "GET /v1/pools/still-7/history", "").await;
    let own: Vec<_> = past["events"].as_array().unwrap().iter().filter(warned).collect();
    assert!(own.len() == 1 && own[0].get("more_pools").is_none(), "{past}");
}
