//! A ring of processes, scrambled while clients go on; then one of them is killed: another node,
//! and then the root.
//!
//! No times are compared, only orders: whoever gets the killed node's unit must not have got it
//! before its holder had to stop.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_client::{Grant, ReleaseError, Views};

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::hardship::client;

/// Longer than anything takes that is going to happen at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn killed_nodes(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-ring");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Ring,
        names: vec!["p".into()],
        units: 3,
        // Also how long units are missing after a node was left out, which `status` is to show.
        lease: Duration::from_secs(4),
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let mut cluster = Cluster::start(&folder, 3, pools, None).await;
    scrambled(&cluster).await;
    without_a_node(&mut cluster).await;
    without_the_root(&mut cluster).await;
    println!("{name}: ok, {:.0?}", began.elapsed());
}

/// Whatever became of every node's variables, whoever claims is served, and the repairs show.
async fn scrambled(cluster: &Cluster) {
    let repairs = ["kills", "tokens_created", "tokens_destroyed"];
    // Until every kind of repair was seen: which ones a fault needs is chance.
    for round in 0.. {
        assert!(round < 100, "a hundred faults left no trace: {}", status(cluster, 1));
        for node in 0..3 {
            let views = Views::new(&[cluster.address(node).to_string()]).expect("an address");
            views.corrupt("p").await.expect("the pool allows it");
        }
        for node in 0..3 {
            let unit = client(cluster, node).await.pool("p").acquire().await;
            give_back(unit.expect("clients go on")).await;
        }
        let metrics = metrics(cluster, 0) + &metrics(cluster, 1) + &metrics(cluster, 2);
        if repairs.iter().all(|name| count(&metrics, name) > 0) {
            break;
        }
    }
    until("the root counts all units", || status(cluster, 1).contains("legitimate 1")).await;
    let text = status(cluster, 1);
    assert!(repairs.iter().all(|name| text.contains(&format!("{name} "))), "{text}");
    let all = client(cluster, 2).await.pool("p").acquire_many(3).await.expect("all units");
    give_back(all).await;
}

/// A counter in a page of metrics, over all its labels.
fn count(metrics: &str, name: &str) -> u64 {
    let name = format!("quorate_protocol_{name}");
    let lines = metrics.lines().filter(|line| line.starts_with(&name));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

pub(crate) fn metrics(cluster: &Cluster, node: usize) -> String {
    let mut stream = TcpStream::connect(cluster.address(node)).expect("the node answers");
    let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

/// The others go on; what it had is made anew when whoever had it has stopped.
async fn without_a_node(cluster: &mut Cluster) {
    let there = client(cluster, 2).await;
    let held = there.pool("p").acquire().await.expect("a unit at n2");
    cluster.kill(2);
    // One, or more if the train was on its way to n2.
    let fewer = "fewer units than configured: n0 counted ";
    let why = " of 3 without n2; the rest is made anew once whoever had them must have stopped";
    until("status says what is missing", || {
        let text = status(cluster, 1);
        text.contains(fewer) && text.contains(why)
    })
    .await;
    let here = client(cluster, 1).await;
    let two = here.pool("p").acquire_many(2).await.expect("two, left or made anew");
    let third = here.pool("p").acquire().await.expect("the third is made anew");
    assert!(held.is_lost().is_some(), "a unit was made while its holder could use it");
    let text = status(cluster, 1);
    assert!(text.contains("left_out(n2) 1"), "{text}");
    assert!(text.contains("stands still while n0 is away, goes on without others"), "{text}");
    assert!(!text.contains("UNAVAILABLE"), "{text}");
    until("all units are counted", || !status(cluster, 1).contains("fewer units")).await;
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
    let why = "UNAVAILABLE: n0 is away, and nothing is granted without it";
    assert!(text.contains(why), "{text}");
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

/// What `quorate status` says of the pool.
pub(crate) fn status(cluster: &Cluster, node: usize) -> String {
    cluster.command(node, &["status", "p"])
}

pub(crate) async fn until(what: &str, so: impl Fn() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < give_up, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
