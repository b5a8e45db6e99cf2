//! How long a pool of `central` grants nothing when whoever decides over it is gone or goes, and
//! how many holders lose what they have: measured and not judged.
//!
//! Somebody asks at every node that stays, again and again; the longest time in which nobody got
//! anything is the pause. Holders know all nodes and renew. Times depend on the machine, so pools
//! with a shadow and without one, and etcd's lock where it is installed, are measured in one run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorate_client::{Client, Grant};
use rustix::process::Signal;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::etcd;
use crate::hardship::views;
use crate::moving::{connect, decider};

/// The shortest that `[charter]` of these clusters allows.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
/// Of many groups, so that somebody decides over one of them whom a case needs.
const POOLS: usize = 12;
pub(crate) const HOLDERS: usize = POOLS;
/// Suspicion, a licence, a lease, and some more.
pub(crate) const WINDOW: Duration = Duration::from_secs(8);

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    SeatKilled,
    LeaderKilled,
    BothKilled,
    SeatStopped,
}

/// Everything measured, printed as a table.
pub(crate) async fn measure(rounds: usize) {
    println!(
        "3 nodes, lease {LEASE:?}, suspect_after 500ms, licence 500ms, {HOLDERS} holders, {rounds} \
         rounds; pause without a grant in ms"
    );
    for shadow in [false, true] {
        println!("{} shadows", if shadow { "with" } else { "without" });
        measure_all(rounds, shadow).await;
    }
    println!("etcd, 3 members");
    etcd::measure(rounds).await;
}

async fn measure_all(rounds: usize, shadow: bool) {
    println!("{:<18} {:>8} {:>8} {:>8}", "what", "median", "worst", "lost");
    let mut stage = Stage::new(3, shadow).await;
    for harm in [Harm::SeatKilled, Harm::LeaderKilled, Harm::BothKilled, Harm::SeatStopped] {
        let (mut pauses, mut lost) = (Vec::new(), 0);
        for _ in 0..rounds {
            let (pause, these) = stage.round(harm).await;
            pauses.push(pause);
            lost += these;
        }
        row(&format!("{harm:?}"), pauses, lost);
    }
    stage.end();
    let mut stage = Stage::new(5, shadow).await;
    let (mut pauses, mut lost) = (Vec::new(), 0);
    for node in (0..rounds).flat_map(|_| 0..5) {
        let (pause, these) = stage.without(node, true, "p0").await;
        pauses.push(pause);
        lost += these;
    }
    row("Rolling (5)", pauses, lost);
    stage.end();
}

pub(crate) fn row(what: &str, mut pauses: Vec<Duration>, lost: usize) {
    pauses.sort_unstable();
    let say = |pause: Duration| pause.as_millis().to_string();
    let (middle, worst) = (say(pauses[pauses.len() / 2]), say(pauses[pauses.len() - 1]));
    println!("{what:<18} {middle:>8} {worst:>8} {lost:>8}");
}

struct Stage {
    cluster: Cluster,
    nodes: usize,
    shadow: bool,
    holders: Vec<Grant>,
}

impl Stage {
    async fn new(nodes: usize, shadow: bool) -> Stage {
        let label = format!("moves-{nodes}");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(label);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder of our own");
        let pools = Pools {
            protocol: Protocol::Moving,
            names: (0..POOLS).map(|pool| format!("p{pool}")).collect(),
            units: 100,
            lease: LEASE,
            durable: false,
            backfill: 0,
            more: if shadow { String::new() } else { "shadow = false\n".into() },
        };
        let cluster = Cluster::start(&folder, nodes, pools, None).await;
        let mut stage = Stage { cluster, nodes, shadow, holders: Vec::new() };
        for holder in 0..HOLDERS {
            let grant = stage.hold(holder).await;
            stage.holders.push(grant);
        }
        stage.settle().await;
        stage
    }

    async fn hold(&self, holder: usize) -> Grant {
        let pool = connect(&self.cluster).await.pool(format!("p{}", holder % POOLS));
        pool.acquire().await.expect("there is room")
    }

    /// Every pool is decided over, and everybody votes.
    async fn settle(&self) {
        for pool in (0..POOLS).map(|pool| format!("p{pool}")) {
            while !self.is_settled(&pool).await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let votes = |text: &str| text.matches(": votes").count() == self.nodes;
        while !votes(&self.cluster.command(0, &["status"])) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_settled(&self, pool: &str) -> bool {
        let node = decider(&self.cluster, self.nodes, pool).await;
        let Ok(view) = views(&self.cluster, node).pool(pool).await else { return false };
        let says = |name: &str, value: u64| {
            let mut facts = view.facts.iter().filter(|fact| fact.node == format!("n{node}"));
            facts.any(|fact| fact.name == name && fact.value == value)
        };
        let whole = view.seat.as_ref().is_some_and(|seat| seat.whole);
        says("in_grace", 0) && says("licensed", 1) && whole == self.shadow
    }

    fn leader(&self, from: usize) -> Option<usize> {
        let text = self.cluster.command(from, &["status"]);
        let name = text.split_once("led by n")?.1.lines().next()?;
        name.parse().ok()
    }

    /// One node is gone, and back: the pause, and how many holders lost what they had.
    async fn round(&mut self, harm: Harm) -> (Duration, usize) {
        loop {
            let Some(leader) = self.leader(0) else { continue };
            for pool in (0..POOLS).map(|pool| format!("p{pool}")) {
                let seat = decider(&self.cluster, self.nodes, &pool).await;
                let (away, fits) = match harm {
                    Harm::SeatKilled | Harm::SeatStopped => (seat, seat != leader),
                    Harm::LeaderKilled => (leader, seat != leader),
                    Harm::BothKilled => (seat, seat == leader),
                };
                if fits {
                    return self.without(away, harm == Harm::SeatStopped, &pool).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn without(&mut self, away: usize, stops: bool, pool: &str) -> (Duration, usize) {
        let marks: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let stay = (0..self.nodes).filter(|node| *node != away);
        let askers: Vec<JoinHandle<()>> = stay
            .map(|node| {
                let (address, pool) = (self.cluster.address(node).to_string(), pool.to_owned());
                tokio::spawn(ask(address, pool, Arc::clone(&marks)))
            })
            .collect();
        let got = |after: usize| marks.lock().expect("whole").len() > after;
        while !got(50) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let began = Instant::now();
        if stops {
            self.cluster.process(away).signal(Signal::TERM);
            let status = self.cluster.process(away).end().await;
            assert!(status.success(), "n{away}: {status}");
        } else {
            self.cluster.kill(away);
        }
        tokio::time::sleep_until((began + WINDOW).into()).await;
        askers.iter().for_each(JoinHandle::abort);
        let pause = longest(std::mem::take(&mut *marks.lock().expect("whole")), began);
        self.cluster.restart(away, Memory::Kept);
        self.cluster.until_it_answers(away).await;
        let mut lost = 0;
        for holder in 0..HOLDERS {
            if self.holders[holder].is_lost().is_some() {
                lost += 1;
                self.holders[holder] = self.hold(holder).await;
            }
        }
        self.settle().await;
        (pause, lost)
    }

    fn end(mut self) {
        self.cluster.check_alive();
    }
}

/// The longest time in the window in which nobody got anything, by when somebody did.
pub(crate) fn longest(mut marks: Vec<Instant>, began: Instant) -> Duration {
    marks.sort_unstable();
    marks.push(began + WINDOW);
    let gaps = marks.windows(2).filter(|gap| gap[1] >= began);
    gaps.map(|gap| gap[1] - gap[0].max(began)).max().unwrap_or(WINDOW)
}

/// Asks at one node for one unit, again and again.
async fn ask(address: String, pool: String, marks: Arc<Mutex<Vec<Instant>>>) {
    loop {
        let Ok(client) = Client::connect(&[&address]).await else { continue };
        let pool = client.pool(&pool);
        while let Ok(grant) = pool.acquire().await {
            marks.lock().expect("whole").push(Instant::now());
            let _ = grant.release().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
