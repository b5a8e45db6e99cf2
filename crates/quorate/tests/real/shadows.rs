//! Whoever decides is killed, its shadow is, and both are one after the other: another decides
//! without waiting for anything but suspicion, and holders keep what they have.
//!
//! A lease here is longer than a trial may last, so one that waits for the end of a lease, where a
//! shadow should have known, never ends. How long it took is printed, and compared with nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_api::SeatView;
use quorate_client::Grant;
use rustix::process::Signal;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::hardship::views;
use crate::moving::{connect, decider};

const NODES: usize = 3;
/// Nobody waits for so long: a trial is given up before.
const LEASE: Duration = Duration::from_secs(1200);
/// Decided and shadowed here and there, and of groups of low numbers, which are the last that a
/// member gets back: none of them is on its way to somebody when a node is killed.
const POOLS: [&str; 6] = ["p0", "p12", "p63", "p150", "p208", "p240"];
const MADE: &str = "made4";

pub(crate) async fn deaths(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-shadows");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Moving,
        names: POOLS.map(str::to_owned).to_vec(),
        units: 32,
        lease: LEASE,
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let cluster = Cluster::start(&folder, NODES, pools, None).await;
    let mut stage = Stage { cluster, jobs: Vec::new() };
    // One that no file has, and that comes after the charter called shadows whole.
    stage.settle(&POOLS).await;
    let made = ["pool", "create", MADE, "--units", "32", "--lease", "20m"];
    stage.cluster.command(0, &made);
    let names: Vec<&str> = POOLS.into_iter().chain([MADE]).collect();
    stage.grant(&names).await;
    stage.settle(&names).await;

    let first = stage.seat("p0").await;
    let (after_a_crash, second) = stage.without(place(&first.node), &names).await;
    assert_eq!(Some(second.node), first.shadow, "the shadow decides");
    // As whoever shadows now dies, grants go on when it is struck.
    let shadow = stage.seat("p0").await.shadow.expect("it is whole");
    let (after_the_shadow, _) = stage.without(place(&shadow), &names).await;
    // The one that took over dies too.
    let second = stage.seat("p0").await.node;
    let (after_the_next, third) = stage.without(place(&second), &names).await;
    assert_ne!(third.node, second);
    // A shadow that restarts before anybody missed it is another life, which knows nothing.
    let shadow = place(&stage.seat("p0").await.shadow.expect("it is whole"));
    stage.cluster.kill(shadow);
    stage.cluster.restart(shadow, Memory::Kept);
    stage.cluster.until_it_answers(shadow).await;
    stage.grant(&names).await;
    stage.settle(&names).await;
    stage.without(place(&stage.seat("p0").await.node), &names).await;
    // Nobody waits for a node that stops, whatever it decided or shadowed.
    for node in 0..NODES {
        stage.cluster.process(node).signal(Signal::TERM);
        let status = stage.cluster.process(node).end().await;
        assert!(status.success(), "n{node}: {status}");
        stage.grant(&names).await;
        stage.back(node, &names).await;
    }
    let status = stage.cluster.command(0, &["status", "p0"]);
    assert!(status.contains("is its shadow and knows all grants"), "{status}");
    let history = stage.cluster.command(0, &["history", "p0"]);
    assert!(history.contains("would decide at once without"), "{history}");
    let ready = stage.cluster.command(0, &["status"]);
    assert!(ready.contains("[+] shadows: another node would decide at once"), "{ready}");
    for job in stage.jobs {
        job.release().await.expect("it is still held");
    }
    stage.cluster.check_alive();
    println!(
        "{name}: ok, granted again {after_a_crash:.1?} after whoever decided was killed, \
         {after_the_next:.1?} after the next one, {after_the_shadow:.1?} after its shadow, {:.0?}",
        began.elapsed()
    );
}

struct Stage {
    cluster: Cluster,
    /// Nobody ever gives anything back.
    jobs: Vec<Grant>,
}

impl Stage {
    /// Who decides over a pool and who would, as whoever decides says.
    async fn seat(&self, pool: &str) -> SeatView {
        loop {
            let node = decider(&self.cluster, NODES, pool).await;
            let view = views(&self.cluster, node).pool(pool).await;
            if let Some(seat) = view.ok().and_then(|view| view.seat)
                && place(&seat.node) == node
            {
                return seat;
            }
        }
    }

    /// Whatever happens to whoever decides now, another would decide at once.
    async fn settle(&self, pools: &[&str]) {
        for pool in pools {
            while !self.seat(pool).await.whole {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// A unit of each that nobody has.
    async fn grant(&mut self, pools: &[&str]) {
        for pool in pools {
            let got = connect(&self.cluster).await.pool(*pool).acquire().await.expect("a unit");
            for job in &self.jobs {
                assert_eq!(job.is_lost(), None, "a grant of {}", job.pool());
                let other = job.pool() != got.pool();
                let differ = job.units().iter().all(|unit| !got.units().contains(unit));
                assert!(other || differ, "a unit of {pool} was given twice");
            }
            self.jobs.push(got);
        }
    }

    /// One node is killed, all pools grant, and it is back. Returns how long the first one took,
    /// and who decided then.
    async fn without(&mut self, node: usize, pools: &[&str]) -> (Duration, SeatView) {
        let asked = Instant::now();
        self.cluster.kill(node);
        self.grant(&pools[..1]).await;
        let took = asked.elapsed();
        let decides = self.seat(pools[0]).await;
        self.grant(pools).await;
        self.back(node, pools).await;
        (took, decides)
    }

    async fn back(&mut self, node: usize, pools: &[&str]) {
        self.cluster.restart(node, Memory::Kept);
        self.cluster.until_it_answers(node).await;
        self.settle(pools).await;
    }
}

fn place(name: &str) -> usize {
    name.trim_start_matches('n').parse().expect("a number")
}
