//! A ring of processes, one of which is killed: another node, and then the root.
//!
//! No times are compared, only orders: whoever gets the killed node's unit must not have got it
//! before its holder had to stop.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use quorate_client::{Client, Grant, ReleaseError, Views};

use crate::cluster::{Cluster, Memory, Pools, Protocol};

/// Longer than anything takes that is going to happen at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn killed_nodes(name: &str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-ring");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Ring,
        names: vec!["p".into()],
        units: 3,
        node_units_max: 3,
        lease: Duration::from_secs(2),
        durable: false,
        backfill: 0,
    };
    let mut cluster = Cluster::start(&folder, 3, pools).await;
    without_a_node(&mut cluster).await;
    without_the_root(&mut cluster).await;
    println!("{name}: ok, {:.0?}", began.elapsed());
}

/// Two units go on; the third is made anew when whoever had it has stopped.
async fn without_a_node(cluster: &mut Cluster) {
    let there = client(cluster, 2).await;
    let held = there.pool("p").acquire().await.expect("a unit at n2");
    cluster.kill(2);
    let here = client(cluster, 1).await;
    let two = here.pool("p").acquire_many(2).await.expect("two are left");
    let third = here.pool("p").acquire().await.expect("the third is made anew");
    assert!(held.is_lost().is_some(), "a unit was made while its holder could use it");
    let text = status(cluster, 1);
    assert!(text.contains("left_out(n2) 1"), "{text}");
    assert!(text.contains("stands still while n0 is away, goes on without others"), "{text}");
    assert!(!text.contains("UNAVAILABLE"), "{text}");
    cluster.restart(2, Memory::Kept);
    cluster.until_it_answers(2).await;
    give_back(two).await;
    give_back(third).await;
    let there = client(cluster, 2).await;
    let all = there.pool("p").acquire_many(3).await.expect("all units, at the node that is back");
    give_back(all).await;
}

/// Nothing is granted, and everybody says why.
async fn without_the_root(cluster: &mut Cluster) {
    let here = client(cluster, 1).await;
    let held = here.pool("p").acquire().await.expect("a unit at n1");
    cluster.kill(0);
    held.lost().await;
    until("n1 says that it fenced itself", || status(cluster, 1).contains("fenced 1")).await;
    let text = status(cluster, 1);
    assert!(text.contains("UNAVAILABLE: no answer from n0"), "{text}");
    cluster.restart(0, Memory::Kept);
    cluster.until_it_answers(0).await;
    let again = here.pool("p").acquire().await.expect("the root is back");
    let text = status(cluster, 1);
    assert!(!text.contains("UNAVAILABLE"), "{text}");
    give_back(again).await;
}

/// A node that no frame reached for a ttl, as while the ring learns that another is gone, has told
/// its clients to stop: then there is nothing to give back.
pub(crate) async fn give_back(grant: Grant) {
    if let Err(error) = grant.release().await {
        assert!(matches!(error, ReleaseError::Lost(_)), "{error}");
    }
}

pub(crate) async fn client(cluster: &Cluster, node: usize) -> Client {
    let address = cluster.address(node).to_string();
    let views = Views::new([&address]).expect("an address");
    assert!(views.node().await.is_ok(), "n{node} answers");
    Client::connect(&[address]).await.expect("n{node} answers")
}

/// What `quorate status` says of the pool.
pub(crate) fn status(cluster: &Cluster, node: usize) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["status", "p", "--server", &cluster.address(node).to_string()])
        .output()
        .expect("the command was built");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) async fn until(what: &str, so: impl Fn() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < give_up, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
