//! A cluster of files gets its charter while it runs: its nodes are restarted one after the other,
//! the first time by force, and then the charter takes over who decides, while the node that is
//! about to hand over is killed. Nobody loses what it has, nobody is given what another one has,
//! fences grow, and a pool of another protocol does not notice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorate_client::{Client, Grant};

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::moving::connect;
use crate::ring::until;

const NODES: usize = 3;
/// Longer than a busy machine keeps a client from renewing.
const LEASE: Duration = Duration::from_secs(8);
/// So many that each node decides over some.
const POOLS: usize = 6;
const UNITS: u32 = 2;
const CHARTER: &str = "[charter]\nenabled = true\nimport = true\nlicence = \"500ms\"\n\
                       suspect_after = \"500ms\"\n";

/// When a node is killed that decides over some of the pools.
#[derive(Clone, Copy, Debug)]
enum Hurt {
    Nobody,
    /// As soon as somebody was asked to import.
    AtOnce(usize),
    /// As soon as it has written down that it gives up what it decides.
    GivenUp(usize),
}

/// Who uses which unit of which pool, and the largest fence of each.
#[derive(Default)]
struct Units(Mutex<BTreeMap<(String, u32), (bool, u64)>>);

impl Units {
    fn begin(&self, grant: &Grant) {
        let mut units = self.0.lock().expect("nobody panics with it");
        for (unit, fence) in grant.units().into_iter().zip(grant.fences()) {
            let pool = grant.pool();
            let (used, last) = units.entry((pool.to_owned(), unit)).or_default();
            assert!(!*used, "{pool}: unit {unit} is given twice");
            assert!(fence > *last, "{pool}: unit {unit}: fence {fence} after {last}");
            (*used, *last) = (true, fence);
        }
    }

    fn end(&self, grant: &Grant) {
        let mut units = self.0.lock().expect("nobody panics with it");
        for unit in grant.units() {
            let key = (grant.pool().to_owned(), unit);
            units.get_mut(&key).expect("it was used").0 = false;
        }
    }
}

/// Clients that come and go, and how often each pool was used.
struct Crowd {
    units: Arc<Units>,
    goes_on: Arc<AtomicBool>,
    done: Vec<Arc<AtomicU64>>,
    all: Vec<tokio::task::JoinHandle<()>>,
}

impl Crowd {
    async fn come(cluster: &Cluster, units: &Arc<Units>) -> Crowd {
        let (goes_on, done) = (Arc::new(AtomicBool::new(true)), Vec::new());
        let mut crowd = Crowd { units: Arc::clone(units), goes_on, done, all: Vec::new() };
        for pool in 0..POOLS {
            let count = Arc::new(AtomicU64::new(0));
            crowd.done.push(Arc::clone(&count));
            for _ in 0..2 {
                let client = connect(cluster).await;
                let (units, goes_on) = (Arc::clone(&crowd.units), Arc::clone(&crowd.goes_on));
                let count = Arc::clone(&count);
                crowd.all.push(tokio::spawn(async move {
                    let pool = client.pool(format!("p{pool}"));
                    while goes_on.load(Ordering::Relaxed) {
                        let Ok(grant) = pool.acquire().await else { continue };
                        units.begin(&grant);
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        units.end(&grant);
                        // If it was lost meanwhile, its unit came back by itself.
                        let _ = grant.release().await;
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }));
            }
        }
        crowd
    }

    /// Every pool is used again, and how long that took.
    async fn is_served(&self) -> Duration {
        let began = Instant::now();
        let count = |it: &Arc<AtomicU64>| it.load(Ordering::Relaxed);
        let before: Vec<u64> = self.done.iter().map(count).collect();
        let again = || self.done.iter().zip(&before).all(|(now, was)| count(now) > was + 3);
        until("every pool is used again", again).await;
        began.elapsed()
    }

    async fn go(self) {
        self.goes_on.store(false, Ordering::Relaxed);
        for one in self.all {
            one.await.expect("no unit is given twice");
        }
    }
}

pub(crate) async fn running(name: &'static str) {
    for hurt in [Hurt::Nobody, Hurt::GivenUp(0), Hurt::AtOnce(2)] {
        let began = Instant::now();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-importing");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder of our own");
        let paused = import(&folder, hurt).await;
        println!(
            "{name}: ok, {hurt:?}, every pool was used again {paused:.1?} after the import began, \
             {:.0?}",
            began.elapsed()
        );
    }
}

async fn import(folder: &Path, hurt: Hurt) -> Duration {
    let pools = Pools {
        protocol: Protocol::Central,
        names: (0..POOLS).map(|pool| format!("p{pool}")).collect(),
        units: UNITS,
        lease: LEASE,
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let (mut cluster, _wires) = Cluster::unsaid(folder, NODES, pools).await;
    for node in 0..NODES {
        cluster.rewrite(node, |text| {
            text + "[[pools]]\nname = \"other\"\nunits = 1\nlease = \"8s\"\nprotocol = \"table\"\n"
        });
        assert!(cluster.init(node).await.status.success());
        cluster.restart(node, Memory::Kept);
    }
    for node in 0..NODES {
        cluster.until_it_answers(node).await;
    }
    // One of two units of each pool is held all the time, by clients at different nodes.
    let units = Arc::new(Units::default());
    let mut jobs = Vec::new();
    for pool in (0..POOLS).map(|pool| format!("p{pool}")).chain(["other".to_owned()]) {
        let mut addresses = cluster.addresses();
        addresses.rotate_left(jobs.len() % NODES);
        let client = Client::connect(&addresses).await.expect("they answer");
        let job = client.pool(pool).acquire().await.expect("there is one");
        units.begin(&job);
        jobs.push(job);
    }
    let crowd = Crowd::come(&cluster, &units).await;
    crowd.is_served().await;

    // One after the other, as a crash would restart it.
    for node in 0..NODES {
        cluster.rewrite(node, |text| text + CHARTER);
        cluster.restart(node, Memory::Kept);
        cluster.until_it_answers(node).await;
        crowd.is_served().await;
        keep(&jobs);
        if node == 0 {
            until("it says who is missing", || {
                let early = cluster.output(0, &["cluster", "import"]);
                assert!(!early.status.success(), "{early:?}");
                String::from_utf8_lossy(&early.stderr).contains("n1 is not in the charter yet")
            })
            .await;
        }
    }
    let voters = || cluster.command(0, &["status"]).matches(": votes, ").count() == NODES;
    until("all three vote", voters).await;
    let status = cluster.command(1, &["status"]);
    assert!(status.contains("until `quorate cluster import`"), "{status}");

    let began = Instant::now();
    let mut first = asks(&cluster, (hurt.victim().unwrap_or(0) + 1) % NODES);
    match hurt {
        Hurt::Nobody => {}
        Hurt::AtOnce(node) => cluster.kill(node),
        Hurt::GivenUp(node) => {
            let pins = cluster.data(node).join("charter-pins");
            let given_up = || std::fs::read_to_string(&pins).is_ok_and(|it| it == "unpinned\n");
            while !given_up() {
                if let Ok(Some(_)) = first.try_wait() {
                    first = asks(&cluster, (node + 1) % NODES);
                }
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
            cluster.kill(node);
        }
    }
    if let Some(node) = hurt.victim() {
        cluster.restart(node, Memory::Kept);
        cluster.until_it_answers(node).await;
    }
    let _ = tokio::task::block_in_place(|| first.wait());
    // Said again until it is done: one that was killed has to be back.
    let again = || cluster.output(0, &["cluster", "import"]).status.success();
    until("the charter says who decides", again).await;
    crowd.is_served().await;
    let paused = began.elapsed();
    keep(&jobs);

    // Two of its members will be gone within a lease, which no table outlives.
    let other = jobs.pop().expect("it was the last");
    units.end(&other);
    other.release().await.expect("it is still held");

    // With the files of before it decides nothing.
    cluster.kill(1);
    let mut with = String::new();
    cluster.rewrite(1, |text| {
        with.clone_from(&text);
        text.replace(CHARTER, "")
    });
    cluster.restart(1, Memory::Kept);
    assert_eq!(cluster.process(1).end().await.code(), Some(2), "{}", cluster.log(1));
    let log = cluster.log(1);
    assert!(log.contains("does not decide as files say any more"), "{log}");
    cluster.rewrite(1, |_| with);
    cluster.restart(1, Memory::Kept);
    cluster.until_it_answers(1).await;
    crowd.is_served().await;

    // Now another decides when one is gone, for good.
    let back = || cluster.command(1, &["status"]).contains("[+] charter: member");
    until("it takes part again", back).await;
    cluster.kill(2);
    crowd.is_served().await;
    keep(&jobs);
    crowd.go().await;
    for job in jobs {
        units.end(&job);
        job.release().await.expect("it is still held");
    }
    paused
}

impl Hurt {
    fn victim(self) -> Option<usize> {
        match self {
            Hurt::Nobody => None,
            Hurt::AtOnce(node) | Hurt::GivenUp(node) => Some(node),
        }
    }
}

fn asks(cluster: &Cluster, node: usize) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(["cluster", "import", "--server", &cluster.address(node).to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the command was built")
}

fn keep(jobs: &[Grant]) {
    for job in jobs {
        assert_eq!(job.is_lost(), None, "a grant of {}", job.pool());
    }
}
