//! All nodes of a cluster are stopped and started again in turn while a fleet of clients holds,
//! waits and works: nobody loses what it has, who waits keeps its place, and nobody is refused.
//!
//! The next node is stopped when the one before is ready again, as an operator would
//! (docs/guides/years.md). How long clients had to wait for what was free is printed, and compared
//! with nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorate_client::{AcquireError, Client, Grant};
use rustix::process::Signal;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::hardship::views;
use crate::moving::connect;

/// Many times what a stop takes on a busy machine. A node that was started is ready after one.
const LEASE: Duration = Duration::from_secs(6);
/// Decided by all nodes. In the last one there is a line.
const POOLS: usize = 20;
const LINE: &str = "p19";
const UNITS: u32 = 64;
/// How long a client that works uses what it got, and how long it does without.
const WORK: Duration = Duration::from_millis(5);

/// How large it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
}

pub(crate) const SMALL: Fleet = Fleet { nodes: 3, clients: 30 };
pub(crate) const FULL: Fleet = Fleet { nodes: 5, clients: 200 };

pub(crate) async fn restarts(name: &'static str, fleet: Fleet) {
    let began = Instant::now();
    let report = run(name, fleet).await;
    println!("{name}: ok, {report}, {:.0?}", began.elapsed());
}

async fn run(name: &str, fleet: Fleet) -> String {
    let Fleet { nodes, clients } = fleet;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("real-fleet-{nodes}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Moving,
        names: (0..POOLS).map(|pool| format!("p{pool}")).collect(),
        units: UNITS,
        lease: LEASE,
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let mut cluster = Cluster::start(&folder, nodes, pools, None).await;
    until_all_are_ready(&cluster, nodes).await;
    // A half holds, a fifth waits in line, the others work.
    let mut held = Vec::new();
    for holder in 0..clients / 2 {
        let pool = connect(&cluster).await.pool(format!("p{}", holder % (POOLS - 1)));
        held.push(pool.acquire().await.expect("there is room"));
    }
    let first = connect(&cluster).await.pool(LINE);
    let first = first.acquire_many(UNITS).await.expect("there is room");
    let line = Line::form(&cluster, clients / 5).await;
    let works = Works::begin(&cluster, clients - clients / 2 - clients / 5 - 1, &held).await;
    let mut pauses = Vec::new();
    for node in 0..nodes {
        works.all_go_round().await;
        works.forget();
        let asked = Instant::now();
        cluster.process(node).signal(Signal::TERM);
        let status = cluster.process(node).end().await;
        assert!(status.success(), "n{node}: {status}; {}", cluster.log(node));
        let stopped = asked.elapsed();
        cluster.restart(node, Memory::Kept);
        cluster.until_it_answers(node).await;
        until_all_are_ready(&cluster, nodes).await;
        works.all_go_round().await;
        let (longest, median) = works.waits();
        println!(
            "{name}: n{node} stopped in {stopped:.1?}, ready again after {:.1?}; a grant took \
             {median:.1?}, the longest {longest:.1?}",
            asked.elapsed()
        );
        pauses.push(longest);
        for grant in &held {
            assert_eq!(grant.is_lost(), None, "n{node}: a grant of {}", grant.pool());
        }
        assert_eq!(first.is_lost(), None);
        line.still_waits();
    }
    let cycles = works.end().await;
    first.release().await.expect("it is still held");
    line.be_served().await;
    let grants = held.len() + 1;
    for grant in held {
        grant.release().await.expect("it is still held");
    }
    cluster.check_alive();
    let longest = pauses.into_iter().max().expect("there are nodes");
    format!(
        "{nodes} nodes restarted under {clients} clients: {grants} grants kept, {} claims in \
         line served in their order, {cycles} cycles, longest pause {longest:.1?}",
        clients / 5
    )
}

/// Each is ready, as those see it who watch it, and nothing would have to be waited for if another
/// one stopped.
async fn until_all_are_ready(cluster: &Cluster, nodes: usize) {
    let whole = |node: usize| async move {
        let Ok(view) = views(cluster, node).node().await else { return false };
        let back = view.peers.iter().all(|peer| peer.connected);
        let covered = |check: &quorate_api::Check| {
            check.name != "shadows" || check.detail.starts_with("another node would decide at once")
        };
        view.ready && back && view.checks.iter().all(covered)
    };
    for node in 0..nodes {
        while !whole(node).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Clients that wait for what one of them has, one behind the other.
struct Line {
    waiting: Vec<JoinHandle<Result<Grant, AcquireError>>>,
    served: Arc<Mutex<Vec<usize>>>,
}

impl Line {
    async fn form(cluster: &Cluster, length: usize) -> Line {
        let served: Arc<Mutex<Vec<usize>>> = Arc::default();
        let mut waiting = Vec::new();
        for place in 0..length {
            let pool = connect(cluster).await.pool(LINE);
            let served = Arc::clone(&served);
            waiting.push(tokio::spawn(async move {
                let grant = pool.acquire_many(UNITS).await?;
                served.lock().expect("no panic").push(place);
                Ok(grant)
            }));
            let waits = async || {
                let view = views(cluster, 0).pool(LINE).await.ok()?;
                Some(view.waiting? as usize > place)
            };
            while waits().await != Some(true) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Line { waiting, served }
    }

    fn still_waits(&self) {
        for waiter in &self.waiting {
            assert!(!waiter.is_finished(), "all of the pool is held by another");
        }
    }

    /// One after the other, as soon as the one before has given it back.
    async fn be_served(self) {
        let length = self.waiting.len();
        for waiter in self.waiting {
            let grant = waiter.await.expect("no panic").expect("nobody is refused");
            grant.release().await.expect("it is held");
        }
        let served = self.served.lock().expect("no panic");
        assert_eq!(*served, (0..length).collect::<Vec<_>>(), "in the order of the line");
    }
}

/// Clients that get something and give it back, again and again.
struct Works {
    clients: Vec<JoinHandle<usize>>,
    enough: Arc<AtomicBool>,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    /// What somebody has, of which pool.
    used: BTreeSet<(usize, u32)>,
    /// How long each grant took, since that was last looked at...
    waits: Vec<Duration>,
    /// ...and who had one.
    round: BTreeSet<usize>,
}

impl Works {
    async fn begin(cluster: &Cluster, clients: usize, held: &[Grant]) -> Works {
        let (enough, book): (Arc<AtomicBool>, Arc<Mutex<Book>>) = Default::default();
        let number = |name: &str| name[1..].parse::<usize>().expect("p and a number");
        let units = held.iter().flat_map(|grant| {
            let pool = number(grant.pool());
            grant.units().into_iter().map(move |unit| (pool, unit))
        });
        book.lock().expect("no panic").used.extend(units);
        let mut all = Vec::new();
        for place in 0..clients {
            let client = connect(cluster).await;
            let (enough, book) = (Arc::clone(&enough), Arc::clone(&book));
            all.push(tokio::spawn(work(client, place, enough, book)));
        }
        Works { clients: all, enough, book }
    }

    /// Each has got something since this was called.
    async fn all_go_round(&self) {
        self.book.lock().expect("no panic").round.clear();
        while self.book.lock().expect("no panic").round.len() < self.clients.len() {
            assert!(!self.clients.iter().any(JoinHandle::is_finished), "somebody was refused");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn forget(&self) {
        self.book.lock().expect("no panic").waits.clear();
    }

    /// The longest time that a grant took, and the usual one.
    fn waits(&self) -> (Duration, Duration) {
        let mut waits = std::mem::take(&mut self.book.lock().expect("no panic").waits);
        waits.sort_unstable();
        (waits[waits.len() - 1], waits[waits.len() / 2])
    }

    async fn end(self) -> usize {
        self.enough.store(true, Ordering::Relaxed);
        let mut cycles = 0;
        for client in self.clients {
            cycles += client.await.expect("it says above what is wrong");
        }
        cycles
    }
}

async fn work(
    client: Client,
    place: usize,
    enough: Arc<AtomicBool>,
    book: Arc<Mutex<Book>>,
) -> usize {
    let (number, mut cycles) = (place % (POOLS - 1), 0);
    let pool = client.pool(format!("p{number}"));
    while !enough.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let grant = pool.acquire().await.expect("there is room, and nobody is refused");
        let units = grant.units();
        {
            let mut book = book.lock().expect("no panic");
            book.waits.push(asked.elapsed());
            book.round.insert(place);
            for unit in &units {
                assert!(book.used.insert((number, *unit)), "unit {unit} of p{number} twice");
            }
        }
        tokio::time::sleep(WORK).await;
        assert_eq!(grant.is_lost(), None);
        {
            let mut book = book.lock().expect("no panic");
            for unit in &units {
                book.used.remove(&(number, *unit));
            }
        }
        grant.release().await.expect("it is held");
        cycles += 1;
        tokio::time::sleep(WORK).await;
    }
    client.settle().await;
    cycles
}
