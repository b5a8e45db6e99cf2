//! The node that decides is killed, and then the next one is asked to stop: another decides,
//! whoever holds units keeps them, and nobody is given what another one has.
//!
//! How long it took until there were new grants is printed, and compared with nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_client::{Client, Grant};
use rustix::process::Signal;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::hardship::views;
use crate::ring::until;

const NODES: usize = 3;
/// Many times what it takes to miss a node and to choose another, also on a busy machine.
const LEASE: Duration = Duration::from_secs(12);
/// Of as many groups, so that they are decided here and there.
const POOLS: usize = 6;

pub(crate) async fn seats(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-moving");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Moving,
        names: (0..POOLS).map(|pool| format!("p{pool}")).collect(),
        units: 3,
        lease: LEASE,
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let mut cluster = Cluster::start(&folder, NODES, pools, None).await;
    let mut jobs = Vec::new();
    for pool in 0..POOLS {
        jobs.push(connect(&cluster).await.pool(format!("p{pool}")).acquire().await.expect("one"));
    }
    // One that no file has: made at one node, and claimed at once at another that may not have
    // heard of it yet. Its client knows the others too: that one may be killed.
    let made = cluster.command(0, &["pool", "create", "made", "--units", "1", "--lease", "12s"]);
    assert!(made.contains("pool made is made"), "{made}");
    let last_first: Vec<String> = cluster.addresses().into_iter().rev().collect();
    let elsewhere = Client::connect(&last_first).await.expect("it answers");
    let job = elsewhere.pool("made").acquire().await.expect("it is there at every node");
    jobs.push(job);
    // Killed: it has to be missed first, and then everything it promised has to be shown or over.
    let first = decider(&cluster, NODES, "p0").await;
    let asked = Instant::now();
    cluster.kill(first);
    let second = connect(&cluster).await.pool("p0").acquire().await.expect("another decides");
    let after_a_crash = asked.elapsed();
    keep(&jobs);
    differ(&jobs[0], &second);
    cluster.restart(first, Memory::Kept);
    cluster.until_it_answers(first).await;
    let shows = || cluster.command(first, &["pool", "show", "made"]).contains("units = 1");
    until("it knows the pool that was made", shows).await;
    // Stopped: it hands over what it knows.
    let next = decider(&cluster, NODES, "p0").await;
    assert_ne!(next, first, "it was away");
    let asked = Instant::now();
    cluster.process(next).signal(Signal::TERM);
    let status = cluster.process(next).end().await;
    assert!(status.success(), "n{next}: {status}");
    let third = connect(&cluster).await.pool("p0").acquire().await.expect("another decides");
    let after_a_stop = asked.elapsed();
    keep(&jobs);
    differ(&jobs[0], &third);
    differ(&second, &third);
    let other = (0..NODES).find(|node| *node != next).expect("there are more");
    let history = cluster.command(other, &["history", "p0"]);
    assert!(history.contains("decides from now on"), "{history}");
    let status = cluster.command(other, &["status"]);
    assert!(status.contains("charter version"), "{status}");
    cluster.restart(next, Memory::Kept);
    cluster.until_it_answers(next).await;
    let back = || cluster.command(next, &["status"]).contains("[+] charter: member");
    until("it takes part again", back).await;
    for job in jobs.into_iter().chain([second, third]) {
        job.release().await.expect("it is still held");
    }
    cluster.check_alive();
    println!(
        "{name}: ok, granted again {after_a_crash:.1?} after a crash and {after_a_stop:.1?} after \
         a stop, {:.0?}",
        began.elapsed()
    );
}

fn keep(jobs: &[Grant]) {
    for job in jobs {
        assert_eq!(job.is_lost(), None, "a grant of {}", job.pool());
    }
}

fn differ(one: &Grant, other: &Grant) {
    assert!(one.units().iter().all(|unit| !other.units().contains(unit)), "given twice");
}

/// Who says that it decides over a pool.
pub(crate) async fn decider(cluster: &Cluster, nodes: usize, pool: &str) -> usize {
    loop {
        for node in (0..nodes).filter(|node| cluster.is_running(*node)) {
            let Ok(view) = views(cluster, node).pool(pool).await else { continue };
            let decides = view.facts.iter().find(|fact| fact.name == "decides" && fact.value > 0);
            if let Some(fact) = decides {
                return fact.node.trim_start_matches('n').parse().expect("a number");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn connect(cluster: &Cluster) -> Client {
    loop {
        // On a busy machine a node may take longer than a client waits.
        if let Ok(client) = Client::connect(&cluster.addresses()).await {
            return client;
        }
    }
}
