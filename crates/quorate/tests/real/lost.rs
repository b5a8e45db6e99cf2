//! Data directories are lost, of one node and of all at once, and first starts are told from that
//! by nothing but what somebody said before.
//!
//! No times are compared, only orders: whoever is granted units after a loss must not have got them
//! before the one who had them must have stopped.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_api::{NodeView, PeerView};
use quorate_client::{AcquireError, Grant};

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::hardship::{client, nothing_was_taken_from, views};

/// Long enough for a node that starts at once to be found granting what another one holds.
const LEASE: Duration = Duration::from_secs(6);
const UNITS: u32 = 2;

/// They start one after the other, and then most of the time all wait until a minute begins.
pub(crate) async fn directories(name: &'static str) {
    let began = Instant::now();
    let mut all = vec![tokio::spawn(unsaid_start_without_a_member())];
    // Where the charter says who decides, members that all lost it wait for an operator.
    let all_lost = |protocol: &Protocol| *protocol != Protocol::Moving;
    for protocol in Protocol::ALL.into_iter().filter(all_lost) {
        let label = format!("all-{}", protocol.name());
        let (cluster, held) = holding(&label, protocol).await;
        all.push(tokio::spawn(of_all(label, protocol, cluster, held)));
    }
    let (cluster, held) = holding("decider", Protocol::Central).await;
    all.push(tokio::spawn(of_the_node_that_decides(cluster, held)));
    first_start_without_a_member().await;
    for cluster in all {
        cluster.await.expect("it says above what is wrong");
    }
    println!("{name}: ok, {:.0?}", began.elapsed());
}

fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("real-lost-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    folder
}

fn pools(protocol: Protocol) -> Pools {
    let (names, more) = (vec!["p".into()], String::new());
    Pools { protocol, names, units: UNITS, lease: LEASE, durable: false, backfill: 0, more }
}

/// A cluster of three, and a client of n1 that holds all there is.
async fn holding(test: &str, protocol: Protocol) -> (Cluster, Grant) {
    let cluster = Cluster::start(&folder(test), 3, pools(protocol), None).await;
    let held = client(&cluster, 1).await.pool("p").acquire_many(UNITS).await.expect("a new pool");
    (cluster, held)
}

/// The holder goes on, and its node can renew nothing: the one that decides knows of neither.
async fn of_the_node_that_decides(mut cluster: Cluster, held: Grant) {
    // Only who has met n0 can say so below.
    let nodes = views(&cluster, 2);
    let has_met = |peer: &PeerView| peer.name == "n0" && peer.boot.is_some();
    while !nodes.node().await.expect("it runs").peers.iter().any(has_met) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    cluster.pause(1);
    // Pool p is decided by n0.
    cluster.lose(0);
    // Whoever says now that the cluster is new is told better by n2.
    let output = cluster.init(0).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the cluster is not new: n2 says: boot number 0 is older"), "{said}");
    cluster.restart(0, Memory::Kept);
    cluster.until_it_answers(0).await;
    let next = client(&cluster, 0).await.pool("p").acquire_many(UNITS).await.expect("in the end");
    assert!(held.is_lost().is_some(), "both hold all units");
    assert_grow(&held.fences(), &next.fences());
    assert!(views(&cluster, 0).node().await.expect("it runs").boot > 1, "it counts on");
    cluster.resume(1);
}

/// Nobody is left who knows anything, except the holder. If the nodes are back in time, it shows
/// what it has and keeps it; else it has stopped before anybody else is granted anything.
async fn of_all(label: String, protocol: Protocol, mut cluster: Cluster, mut held: Grant) {
    for node in 0..3 {
        cluster.kill(node);
    }
    let lost_at = quorate_client::Instant::now();
    for node in 0..3 {
        cluster.restart(node, Memory::Gone);
    }
    for node in 0..3 {
        cluster.until_it_answers(node).await;
    }
    let other = client(&cluster, 0).await;
    let next = tokio::spawn(async move { other.pool("p").acquire_many(UNITS).await });
    let fences = held.fences();
    loop {
        let is_granted = next.is_finished();
        if held.is_lost().is_some() {
            break;
        }
        assert!(!is_granted, "{label}: both hold all units");
        if held.deadline() > lost_at + LEASE {
            nothing_was_taken_from(held).await;
            break;
        }
        held.changed().await;
    }
    let next = next.await.expect("no panic").expect("in the end");
    if protocol.names_units() {
        assert_grow(&fences, &next.fences());
    }
}

fn assert_grow(before: &[u64], after: &[u64]) {
    assert!(after.iter().min() > before.iter().max(), "fences grow: {after:?} after {before:?}");
}

/// Somebody said that the cluster is new, and quorums do not need everybody.
async fn first_start_without_a_member() {
    let (mut cluster, _) = Cluster::unsaid(&folder("first"), 3, pools(Protocol::Named)).await;
    for node in 0..3 {
        assert!(cluster.init(node).await.status.success());
    }
    for node in 0..2 {
        cluster.restart(node, Memory::Kept);
        cluster.until_it_answers(node).await;
    }
    let granted = client(&cluster, 0).await.pool("p").acquire_many(UNITS).await.expect("a quorum");
    assert_eq!(views(&cluster, 0).node().await.expect("it runs").boot, 1);
    // The third one comes late, and has promised nothing before.
    cluster.restart(2, Memory::Kept);
    cluster.until_it_answers(2).await;
    let late = client(&cluster, 2).await;
    let refused = late.pool("p").acquire_timeout(1, Duration::from_millis(500)).await;
    assert!(matches!(refused, Err(AcquireError::Timeout { .. })), "{refused:?}");
    granted.release().await.expect("it holds them");
    late.pool("p").acquire_many(UNITS).await.expect("they are free");
}

/// Nobody said it: how far fences came must be asked of everybody, and one member does not answer.
async fn unsaid_start_without_a_member() {
    let (mut cluster, wires) = Cluster::unsaid(&folder("unsaid"), 3, pools(Protocol::Named)).await;
    wires[2].block();
    for node in 0..3 {
        cluster.restart(node, Memory::Kept);
    }
    for node in 0..2 {
        cluster.until_it_answers(node).await;
        let nodes = views(&cluster, node);
        // All is well with it, except that its only pool cannot grant anything yet.
        let is_up = |node: NodeView| node.checks.iter().all(|it| it.ok || it.name == "pools");
        while !is_up(nodes.node().await.expect("it runs")) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let pool = client(&cluster, 0).await.pool("p");
    let waits = pool.acquire_timeout(1, Duration::from_secs(1)).await;
    assert!(matches!(waits, Err(AcquireError::Timeout { .. })), "{waits:?}");
    wires[2].heal();
    pool.acquire_many(UNITS).await.expect("everybody has answered");
}
