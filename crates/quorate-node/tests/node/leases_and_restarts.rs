//! Leases, restarts and moves between nodes, as clients see them.

use crate::common::{Cluster, until};
use serde_json::Value;

const SHORT: &str = r#"
    [[pools]]
    name = "p"
    units = 2
    arbiter = "n0"
    lease = "1s"
    retry = "100ms"
"#;

const LONG: &str = r#"
    [[pools]]
    name = "p"
    units = 2
    arbiter = "n0"
    lease = "1h"
    retry = "100ms"
"#;

const DURABLE: &str = r#"
    [[pools]]
    name = "p"
    units = 2
    arbiter = "n0"
    lease = "1h"
    retry = "100ms"
    durable = true
"#;

fn put(id: u32) -> String {
    format!("PUT /v1/pools/p/claims/{id}?wait=1m")
}

fn units(status: &Value) -> String {
    serde_json::json!({ "units": status["units"] }).to_string()
}

const ALL: &str = r#"{"units": 2}"#;

#[tokio::test(flavor = "multi_thread")]
async fn who_never_renews_loses_by_the_lease() {
    let cluster = Cluster::start(3, SHORT).await;
    let (_, first) = cluster.request(1, &put(1), ALL).await;
    let (status, second) = cluster.request(2, &put(2), ALL).await;
    assert_eq!(status, 200, "{second}");
    let fence = |status: &Value| status["units"][0]["fence"].as_u64().unwrap();
    assert!(fence(&second) > fence(&first), "fences grow from holder to holder");
    let (_, lost) = cluster.request(1, "GET /v1/pools/p/claims/1", "").await;
    assert_eq!(lost["state"], "lost", "{lost}");
    let (status, _) = cluster.request(1, "POST /v1/pools/p/claims/1/renew", "").await;
    assert_eq!(status, 410);
    let (status, _) = cluster.request(1, &put(1), ALL).await;
    assert_eq!(status, 410);
}

/// A node that is cut off sees the deadline pass that it knew of. The client may have renewed
/// through a node that it cannot ask, so none of its answers is final, and each says where to ask.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_does_not_say_that_a_claim_is_lost() {
    for pools in [SHORT.to_owned(), SHORT.replace("arbiter = \"n0\"", "protocol = \"table\"")] {
        let mut cluster = Cluster::start(3, &pools).await;
        let (status, granted) = cluster.request(1, &put(1), ALL).await;
        assert_eq!(status, 200, "{granted}");
        cluster.crash(0).await;
        cluster.crash(2).await;
        let renew = "POST /v1/pools/p/claims/1/renew?wait=1m";
        // First the answer of one who waits for it, then of one who comes later.
        for body in ["", "", &units(&granted)] {
            let (status, unknown) = cluster.request(1, renew, body).await;
            let text = unknown["detail"].as_str().unwrap_or_default();
            assert!(status == 504 && text.contains("n0, n2 did not answer"), "{unknown}");
        }
        let (status, unknown) = cluster.request(1, "GET /v1/pools/p/claims/1", "").await;
        assert_eq!(status, 504, "{unknown}");
        let (status, unknown) = cluster.request(1, &put(1), ALL).await;
        assert_eq!(status, 504, "{unknown}");
    }
}

/// Who waits for a claim that another node answers for is not answered before there is news.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_at_a_node_that_is_not_the_claims_waits_too() {
    let cluster = Cluster::start(2, LONG).await;
    assert_eq!(cluster.request(0, &put(1), ALL).await.0, 200);
    assert_eq!(cluster.request(0, "PUT /v1/pools/p/claims/2?wait=0", ALL).await.0, 202);
    let look = cluster.request(1, "GET /v1/pools/p/claims/2?wait=1m", "");
    let release = async {
        // Whoever does not wait is answered meanwhile.
        for _ in 0..5 {
            assert_eq!(cluster.request(1, "GET /v1/pools/p/claims/2", "").await.0, 202);
        }
        cluster.request(0, "DELETE /v1/pools/p/claims/1", "").await.0
    };
    let ((status, granted), released) = tokio::join!(look, release);
    assert_eq!((status, released, &granted["state"]), (200, 200, &"granted".into()), "{granted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_moves_keeps_its_grant() {
    let cluster = Cluster::start(3, LONG).await;
    let (_, granted) = cluster.request(1, &put(1), ALL).await;
    let renew = "POST /v1/pools/p/claims/1/renew?wait=1m";
    let (status, renewed) = cluster.request(2, renew, &units(&granted)).await;
    assert_eq!((status, &renewed["units"]), (200, &granted["units"]), "{renewed}");
    let (_, holders) = cluster.request(0, "GET /v1/pools/p/holders", "").await;
    assert_eq!(holders["holders"].as_array().unwrap().len(), 1, "{holders}");
    let wrong = r#"{"units": [{"unit": 0, "fence": 5}, {"unit": 1, "fence": 5}]}"#;
    let (status, _) = cluster.request(0, renew, wrong).await;
    assert_eq!(status, 410, "what was never granted is not renewed");
    // A node that knows the grant need not ask anybody.
    let (status, _) = cluster.request(2, renew, wrong).await;
    let (_, metrics) = cluster.text(2, "GET /metrics").await;
    assert_eq!(status, 409);
    assert!(metrics.contains("quorate_fence_rejections_total{pool=\"p\"} 1"), "{metrics}");
    assert!(metrics.contains("commit="), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_home_finds_the_grant_again() {
    let mut cluster = Cluster::on_disk("restarted_home", 3, LONG).await;
    let (_, granted) = cluster.request(1, &put(1), ALL).await;
    cluster.crash(1).await;
    cluster.restart(1, None).await;
    cluster.connected().await;
    let (status, again) = cluster.request(1, &put(1), ALL).await;
    assert_eq!((status, &again["units"]), (200, &granted["units"]), "{again}");
    let (_, view) = cluster.request(1, "GET /v1/node", "").await;
    assert_eq!(view["boot"], 2);
}

/// Its clients are gone with it, and it was away for too short a time to be suspected.
#[tokio::test(flavor = "multi_thread")]
async fn what_waited_at_a_node_that_was_started_again_takes_no_turn() {
    let mut cluster = Cluster::on_disk("waited_and_gone", 3, LONG).await;
    cluster.request(0, &put(1), ALL).await;
    let ask = |claim: u32| format!("PUT /v1/pools/p/claims/{claim}?wait=0");
    assert_eq!(cluster.request(1, &ask(2), ALL).await.0, 202);
    until("the node that decides has it in its queue", || async {
        cluster.request(0, "GET /v1/pools/p", "").await.1["waiting"] == 1
    })
    .await;
    cluster.crash(1).await;
    cluster.restart(1, None).await;
    cluster.connected().await;
    assert_eq!(cluster.request(2, &ask(3), ALL).await.0, 202);
    cluster.request(0, "DELETE /v1/pools/p/claims/1", "").await;
    let (status, granted) = cluster.request(2, &put(3), ALL).await;
    assert_eq!(status, 200, "{granted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_arbiter_that_forgot_promises_nothing_until_old_promises_are_over() {
    let mut cluster = Cluster::on_disk("forgetful_arbiter", 3, LONG).await;
    let (_, granted) = cluster.request(1, &put(1), ALL).await;
    cluster.crash(0).await;
    cluster.restart(0, None).await;
    cluster.connected().await;
    let (status, text) = cluster.text(0, "GET /readyz?verbose").await;
    assert!(status == 503 && text.contains("[-]grace failed"), "{text}");
    let other = "PUT /v1/pools/p/claims/2?wait=0";
    let (status, _) = cluster.request(2, other, "").await;
    assert_eq!(status, 202);
    until("the waiting claim is told of the grace", || async {
        let (_, waits) = cluster.request(2, "GET /v1/pools/p/claims/2?why=true", "").await;
        waits["why"]["summary"].as_str().unwrap_or_default().contains("n0 restarted")
    })
    .await;
    // A holder that renews is known again.
    let renew = "POST /v1/pools/p/claims/1/renew?wait=1m";
    let (status, renewed) = cluster.request(1, renew, "").await;
    assert_eq!((status, &renewed["units"]), (200, &granted["units"]), "{renewed}");
    let (_, pool) = cluster.request(0, "GET /v1/pools/p", "").await;
    assert!(pool["held"] == 2 && pool["grace_ms"].as_u64().is_some(), "{pool}");
}

#[tokio::test(flavor = "multi_thread")]
async fn durable_grants_survive_a_crash_of_everybody() {
    let mut cluster = Cluster::on_disk("durable", 3, DURABLE).await;
    let (_, granted) = cluster.request(1, &put(1), r#"{"units": 1}"#).await;
    for place in 0..3 {
        cluster.crash(place).await;
    }
    for place in 0..3 {
        cluster.restart(place, None).await;
    }
    cluster.connected().await;
    let (status, text) = cluster.text(0, "GET /readyz").await;
    assert_eq!(status, 200, "who remembers need not wait: {text}");
    let (_, pool) = cluster.request(0, "GET /v1/pools/p", "").await;
    assert_eq!(pool["held"], 1, "{pool}");
    let renew = "POST /v1/pools/p/claims/1/renew?wait=1m";
    let (status, renewed) = cluster.request(2, renew, &units(&granted)).await;
    assert_eq!((status, &renewed["units"]), (200, &granted["units"]), "{renewed}");
    // The other unit can be granted at once; the one that is held cannot.
    let (status, second) = cluster.request(1, &put(2), r#"{"units": 1}"#).await;
    assert_eq!(status, 200, "{second}");
    assert_ne!(second["units"][0]["unit"], granted["units"][0]["unit"]);
    assert!(second["units"][0]["fence"].as_u64() > granted["units"][0]["fence"].as_u64());
    let (status, _) = cluster.request(0, "PUT /v1/pools/p/claims/3?wait=0", "").await;
    assert_eq!(status, 202);
}

/// A stop in good order writes down what was given back a moment before: no lease has to pass.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_released_before_a_stop_is_free_at_the_next_start() {
    let arbiter = |mode: &str| {
        let protocol = format!("protocol = \"arbiter\"\nmode = \"{mode}\"");
        DURABLE.replace("arbiter = \"n0\"", &protocol)
    };
    let pools = [DURABLE.to_owned(), arbiter("count"), arbiter("named")];
    for (number, pools) in pools.iter().enumerate() {
        let mut cluster = Cluster::on_disk(&format!("released_{number}"), 1, pools).await;
        let (status, granted) = cluster.request(0, &put(1), ALL).await;
        assert_eq!(status, 200, "{granted}");
        let (status, over) = cluster.request(0, "DELETE /v1/pools/p/claims/1", "").await;
        assert_eq!(status, 200, "{over}");
        cluster.stop(0).await;
        cluster.restart(0, None).await;
        let (_, holders) = cluster.request(0, "GET /v1/pools/p/holders", "").await;
        assert_eq!(holders["holders"].as_array().unwrap().len(), 0, "{holders}");
        let (status, second) = cluster.request(0, "PUT /v1/pools/p/claims/2?wait=1m", ALL).await;
        assert_eq!(status, 200, "{second}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_configuration_makes_a_durable_arbiter_careful() {
    let mut cluster = Cluster::on_disk("other_configuration", 1, DURABLE).await;
    cluster.request(0, &put(1), ALL).await;
    cluster.stop(0).await;
    let smaller = DURABLE.replace("units = 2", "units = 1").replace("1h", "10s");
    cluster.restart(0, Some(&smaller)).await;
    let (status, text) = cluster.text(0, "GET /readyz?verbose").await;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("waiting 59m") || text.contains("waiting 1h"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_disagree_about_a_pool_do_not_talk() {
    let mut cluster = Cluster::on_disk("disagreement", 2, LONG).await;
    cluster.stop(1).await;
    cluster.restart(1, Some(&LONG.replace("units = 2", "units = 3"))).await;
    until("the difference is noticed", || async {
        let (_, view) = cluster.request(0, "GET /v1/node", "").await;
        let problem = view["peers"][0]["problem"].as_str().unwrap_or_default();
        problem.contains("have different members or pools under one epoch")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_sends_waiting_clients_elsewhere() {
    let mut cluster = Cluster::start(2, LONG).await;
    cluster.request(0, &put(1), ALL).await;
    let address = cluster.address(1);
    let waiting = tokio::spawn(async move { crate::common::request(address, &put(2), ALL).await });
    until("it waits", || async {
        let (_, pool) = cluster.request(0, "GET /v1/pools/p", "").await;
        pool["waiting"] == 1
    })
    .await;
    cluster.stop(1).await;
    let (status, problem) = waiting.await.unwrap();
    assert_eq!((status, &problem["type"]), (503, &"stopping".into()), "{problem}");
    // The claim goes on under its name at another node.
    cluster.request(0, "DELETE /v1/pools/p/claims/1", "").await;
    let (status, granted) = cluster.request(0, &put(2), ALL).await;
    assert_eq!(status, 200, "{granted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_hands_back_nothing_that_is_held() {
    let mut cluster = Cluster::start(2, LONG).await;
    let (_, granted) = cluster.request(1, &put(1), ALL).await;
    assert_eq!(granted["state"], "granted");
    cluster.stop(1).await;
    let (_, pool) = cluster.request(0, "GET /v1/pools/p", "").await;
    assert_eq!((&pool["held"], &pool["silent"][0]), (&2.into(), &"n1".into()), "{pool}");
    let (status, _) = cluster.request(0, "PUT /v1/pools/p/claims/2?wait=0", "").await;
    assert_eq!(status, 202, "its units are in use");
    // Its client goes on at another node, and only its own word ends it.
    let renew = "POST /v1/pools/p/claims/1/renew?wait=1m";
    let (status, renewed) = cluster.request(0, renew, &units(&granted)).await;
    assert_eq!((status, &renewed["units"]), (200, &granted["units"]), "{renewed}");
    cluster.request(0, "DELETE /v1/pools/p/claims/1", "").await;
    let (status, second) = cluster.request(0, &put(2), "").await;
    assert_eq!(status, 200, "{second}");
}
