//! What clients may expect of a pool whatever its protocol, and what a restart of a node means in
//! each of them.

use crate::common::{Cluster, until};
use serde_json::Value;

/// A pool of two units, with leases that end or do not end within a test.
pub(crate) fn pool(protocol: &str, lease: &str) -> String {
    format!("[[pools]]\nname = \"p\"\nunits = 2\nlease = \"{lease}\"\n{protocol}\n")
}

pub(crate) const CENTRAL: &str = "protocol = \"central\"\narbiter = \"n0\"\nretry = \"100ms\"";
const NAMED: &str = "protocol = \"arbiter\"\nretry = \"100ms\"";
const COUNT: &str = "protocol = \"arbiter\"\nmode = \"arbiter\"\nsurvive = 0\nretry = \"100ms\"";
const NAMING: &str =
    "protocol = \"arbiter\"\nmode = \"arbiter\"\nnaming = true\nsurvive = 0\nretry = \"100ms\"";
const TICKET: &str = "protocol = \"arbiter\"\nmode = \"ticket\"\nretry = \"100ms\"";
const TABLE: &str = "protocol = \"table\"\nretry = \"100ms\"";
/// One node may have both units, so that a claim can ask for both; then no crash is survived.
const BROADCAST: &str = "protocol = \"broadcast\"\nnode_units_max = 2\nretry = \"100ms\"";
const LEASED: &str =
    "protocol = \"broadcast\"\nnode_units_max = 2\nretry = \"100ms\"\nreclaim = \"lease\"";
const RING: &str = "protocol = \"ring\"\ntimeout = \"200ms\"\nidle = \"50ms\"";

pub(crate) const EVERY: [&str; 9] =
    [CENTRAL, NAMED, COUNT, NAMING, TICKET, TABLE, BROADCAST, LEASED, RING];

fn put(id: u32) -> String {
    format!("PUT /v1/pools/p/claims/{id}?wait=1m")
}

fn claim(id: u32) -> String {
    format!("/v1/pools/p/claims/{id}")
}

fn receipt(status: &Value) -> String {
    serde_json::json!({ "units": status["units"] }).to_string()
}

pub(crate) const BOTH: &str = r#"{"units": 2}"#;
const ONE: &str = r#"{"units": 1}"#;

/// A claim in a task of its own: it waits.
pub(crate) fn waiting(
    cluster: &Cluster,
    place: usize,
    id: u32,
) -> tokio::task::JoinHandle<(u16, Value)> {
    let address = cluster.address(place);
    tokio::spawn(async move { crate::common::request(address, &put(id), BOTH).await })
}

pub(crate) async fn counts(cluster: &Cluster, held: u32, waiting: u32) {
    until("the counts are as they should be", || async {
        let (_, pool) = cluster.request(1, "GET /v1/pools/p", "").await;
        pool["held"] == held && pool["waiting"] == waiting
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_made_renewed_waited_for_and_released() {
    for protocol in EVERY {
        let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
        let (status, first) = cluster.request(1, &put(1), BOTH).await;
        assert_eq!((status, &first["state"]), (200, &"granted".into()), "{protocol}: {first}");
        assert_eq!(first["units"].as_array().unwrap().len(), 2, "{protocol}");
        let second = waiting(&cluster, 2, 2);
        counts(&cluster, 2, 1).await;
        let renew = format!("POST {}/renew?wait=1m", claim(1));
        let (status, renewed) = cluster.request(1, &renew, &receipt(&first)).await;
        assert_eq!((status, &renewed["units"]), (200, &first["units"]), "{protocol}: {renewed}");
        let (_, released) = cluster.request(1, &format!("DELETE {}", claim(1)), "").await;
        assert_eq!(released["state"], "released", "{protocol}");
        let (status, second) = second.await.unwrap();
        assert_eq!((status, &second["state"]), (200, &"granted".into()), "{protocol}: {second}");
        // Releasing twice takes nothing from whoever came after.
        let (_, again) = cluster.request(1, &format!("DELETE {}", claim(1)), "").await;
        assert_eq!(again["state"], "released", "{protocol}");
        counts(&cluster, 2, 0).await;
    }
}

/// A seat may acknowledge a cancellation that its node has answered already.
#[tokio::test(flavor = "multi_thread")]
async fn what_happened_to_a_claim_is_told_once() {
    for protocol in EVERY {
        let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
        let (status, first) = cluster.request(1, &put(1), BOTH).await;
        assert_eq!(status, 200, "{protocol}: {first}");
        let second = waiting(&cluster, 2, 2);
        counts(&cluster, 2, 1).await;
        let (_, cancelled) = cluster.request(2, &format!("DELETE {}", claim(2)), "").await;
        assert_eq!(cancelled["state"], "cancelled", "{protocol}");
        assert_eq!(second.await.unwrap().0, 410, "{protocol}");
        // Whatever the seats had to say about it has been said when another claim was served.
        cluster.request(1, &format!("DELETE {}", claim(1)), "").await;
        let (status, third) = cluster.request(2, &put(3), BOTH).await;
        assert_eq!(status, 200, "{protocol}: {third}");
        let (_, history) = cluster.request(0, "GET /v1/pools/p/history", "").await;
        let story = |id: u32| -> Vec<&str> {
            let events = history["events"].as_array().unwrap().iter();
            let own = events.filter(|event| event["id"] == format!("{id:032x}"));
            own.map(|event| event["what"].as_str().unwrap()).collect()
        };
        assert_eq!(story(1), ["claimed", "granted", "released"], "{protocol}: {history}");
        assert_eq!(story(2), ["claimed", "cancelled"], "{protocol}: {history}");
        assert_eq!(story(3), ["claimed", "granted"], "{protocol}: {history}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_claim_is_never_granted_and_an_impossible_one_never_waits() {
    for protocol in EVERY {
        let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
        cluster.request(0, &put(1), BOTH).await;
        let second = waiting(&cluster, 1, 2);
        counts(&cluster, 2, 1).await;
        let (_, cancelled) = cluster.request(1, &format!("DELETE {}", claim(2)), "").await;
        assert_eq!(cancelled["state"], "cancelled", "{protocol}");
        let (status, told) = second.await.unwrap();
        assert_eq!(status, 410, "{protocol}: {told}");
        cluster.request(0, &format!("DELETE {}", claim(1)), "").await;
        let (status, third) = cluster.request(2, &put(3), BOTH).await;
        assert_eq!(status, 200, "{protocol}: the cancelled one stands in nobody's way: {third}");
        let (_, over) = cluster.request(1, &format!("GET {}", claim(2)), "").await;
        assert_eq!(over["state"], "cancelled", "{protocol}");
        let (status, problem) = cluster.request(2, &put(4), r#"{"units": 3}"#).await;
        assert_eq!(status, 422, "{protocol}: {problem}");
        counts(&cluster, 2, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_renews_loses_by_the_lease() {
    for protocol in EVERY {
        let cluster = Cluster::start(3, &pool(protocol, "1s")).await;
        cluster.request(1, &put(1), BOTH).await;
        let (status, second) = cluster.request(2, &put(2), BOTH).await;
        assert_eq!(status, 200, "{protocol}: {second}");
        let (_, lost) = cluster.request(1, &format!("GET {}", claim(1)), "").await;
        assert_eq!(lost["state"], "lost", "{protocol}: {lost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_renews_in_time_keeps_its_units_beyond_the_lease() {
    let all: Vec<_> = EVERY.into_iter().map(|protocol| tokio::spawn(keeps(protocol))).collect();
    for one in all {
        one.await.unwrap();
    }
}

async fn keeps(protocol: &'static str) {
    let cluster = Cluster::start(3, &pool(protocol, "2s")).await;
    let (_, first) = cluster.request(1, &put(1), BOTH).await;
    let second = waiting(&cluster, 2, 2);
    for _ in 0..25 {
        let renew = format!("POST {}/renew?wait=1m", claim(1));
        let (status, renewed) = cluster.request(1, &renew, &receipt(&first)).await;
        assert_eq!(status, 200, "{protocol}: {renewed}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    counts(&cluster, 2, 1).await;
    cluster.request(1, &format!("DELETE {}", claim(1)), "").await;
    assert_eq!(second.await.unwrap().0, 200, "{protocol}");
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_are_shown_with_their_units_only_where_units_have_names() {
    let named = [NAMED, NAMING, TABLE, RING].map(|protocol| (protocol, true));
    let counted = [COUNT, TICKET, BROADCAST].map(|protocol| (protocol, false));
    for (protocol, named) in named.into_iter().chain(counted) {
        let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
        let (_, granted) = cluster.request(1, &put(1), ONE).await;
        assert_eq!(granted["counted"] == true, !named, "{protocol}: {granted}");
        let (_, holders) = cluster.request(2, "GET /v1/pools/p/holders", "").await;
        let holder = &holders["holders"][0];
        assert_eq!((&holder["count"], &holder["node"]), (&1.into(), &"n1".into()), "{holders}");
        assert_eq!(holder["units"].as_array().unwrap().len(), usize::from(named), "{holders}");
    }
}

/// Permissions are counted, and grants have units of their own with fences that only grow.
#[tokio::test(flavor = "multi_thread")]
async fn counted_units_are_named_with_fences_if_the_pool_says_so() {
    let unit_names = "unit_names = [\"left\", \"right\"]";
    let text = pool(NAMING, "1h").replace("units = 2", unit_names);
    let cluster = Cluster::start(3, &text).await;
    let unit = |status: &Value| {
        let [unit] = &status["units"].as_array().unwrap()[..] else { panic!("{status}") };
        (unit["name"].as_str().unwrap().to_owned(), unit["fence"].as_u64().unwrap())
    };
    let mut last: std::collections::BTreeMap<String, u64> = Default::default();
    for round in 0..4 {
        let (first, second) = (2 * round, 2 * round + 1);
        let (_, one) = cluster.request(round as usize % 3, &put(first), ONE).await;
        let (_, other) = cluster.request((round as usize + 1) % 3, &put(second), ONE).await;
        assert_ne!(unit(&one).0, unit(&other).0, "{one} {other}");
        for (name, fence) in [unit(&one), unit(&other)] {
            let before = last.insert(name.clone(), fence);
            assert!(before.is_none_or(|before| before < fence), "{name}: {before:?} {fence}");
        }
        let (_, shown) = cluster.request(2, "GET /v1/pools/p", "").await;
        assert_eq!(
            (&shown["names_units"], &shown["quorums"]["naming"]),
            (&true.into(), &true.into())
        );
        cluster.request(round as usize % 3, &format!("DELETE {}", claim(first)), "").await;
        cluster.request((round as usize + 1) % 3, &format!("DELETE {}", claim(second)), "").await;
    }
    assert_eq!(last.len(), 2);
}

/// Restarts one of three nodes while another holds everything, which it then gives back.
async fn restarted(test: &str, protocol: &str, lease: &str) -> Cluster {
    let mut cluster = Cluster::on_disk(test, 3, &pool(protocol, lease)).await;
    let (status, first) = cluster.request(0, &put(1), BOTH).await;
    assert_eq!(status, 200, "{first}");
    cluster.crash(2).await;
    cluster.restart(2, None).await;
    cluster.connected().await;
    let renew = format!("POST {}/renew?wait=1m", claim(1));
    let (status, renewed) = cluster.request(0, &renew, &receipt(&first)).await;
    assert_eq!(status, 200, "{protocol}: a holder keeps its units: {renewed}");
    cluster.request(0, &format!("DELETE {}", claim(1)), "").await;
    cluster
}

#[tokio::test(flavor = "multi_thread")]
async fn quorums_go_on_without_a_minority_and_take_it_back() {
    // One more than a quorum is asked, so that a node in grace makes nobody wait.
    let hedged = format!("{NAMED}\nhedge = 1");
    let mut cluster = restarted("named_restart", &hedged, "1h").await;
    let (status, second) = cluster.request(1, &put(2), BOTH).await;
    assert_eq!(status, 200, "{second}");
    cluster.crash(2).await;
    cluster.request(1, &format!("DELETE {}", claim(2)), "").await;
    let (status, third) = cluster.request(1, &put(3), BOTH).await;
    assert_eq!(status, 200, "{third}");
    let fence = |status: &Value| status["units"][0]["fence"].as_u64();
    assert!(fence(&third) > fence(&second), "{second} {third}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ring_goes_on_when_its_restarted_node_has_waited_out_a_lease() {
    let cluster = restarted("ring_restart", RING, "1s").await;
    let (status, second) = cluster.request(2, &put(2), BOTH).await;
    assert_eq!(status, 200, "tokens that were lost are made again: {second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broadcast_takes_a_lost_node_for_a_holder_and_goes_on() {
    let survives = "protocol = \"broadcast\"\nretry = \"100ms\"\nprobe = \"100ms\"";
    let mut cluster = Cluster::on_disk("never", 3, &pool(survives, "1s")).await;
    cluster.crash(2).await;
    // One unit of two is left beside the one that n2 may have.
    let (status, first) = cluster.request(0, &put(1), ONE).await;
    assert_eq!(status, 200, "{first}");
    cluster.request(0, &format!("DELETE {}", claim(1)), "").await;
    let (status, second) = cluster.request(1, &put(2), ONE).await;
    assert_eq!(status, 200, "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_broadcast_node_is_counted_and_served_again() {
    for (test, protocol) in [("never_restart", BROADCAST), ("leased_restart", LEASED)] {
        let cluster = restarted(test, protocol, "1s").await;
        // With both units at one node nobody can do without any other.
        for node in 0..3 {
            let id = 10 + node as u32;
            let (status, granted) = cluster.request(node, &put(id), BOTH).await;
            assert_eq!(status, 200, "{protocol}: n{node}: {granted}");
            cluster.request(node, &format!("DELETE {}", claim(id)), "").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_seen_and_forgiven() {
    let mut cluster = Cluster::on_disk("suspects", 3, &pool(NAMED, "1h")).await;
    cluster.crash(2).await;
    let suspected = |view: &Value| view["peers"][1]["suspected"] == true;
    until("n2 is suspected", || async {
        suspected(&cluster.request(0, "GET /v1/node", "").await.1)
    })
    .await;
    cluster.restart(2, None).await;
    until("n2 is trusted again", || async {
        !suspected(&cluster.request(0, "GET /v1/node", "").await.1)
    })
    .await;
}

/// A claim is held through n0 and repeated, under its name, through n2. Says whether a second claim
/// was granted what the first still holds.
async fn repeated_elsewhere(protocol: &str) -> bool {
    let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
    let (status, first) = cluster.request(0, &put(1), BOTH).await;
    assert_eq!(status, 200, "{protocol}: {first}");
    let second = waiting(&cluster, 1, 2);
    counts(&cluster, 2, 1).await;
    let again = format!("PUT {}?wait=1s", claim(1));
    cluster.request(2, &again, BOTH).await;
    let (_, second_now) = cluster.request(1, &format!("GET {}", claim(2)), "").await;
    second.abort();
    second_now["state"] == "granted"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_repeated_at_another_node_takes_nothing_from_its_holder() {
    for protocol in EVERY {
        assert!(!repeated_elsewhere(protocol).await, "{protocol}");
    }
}
