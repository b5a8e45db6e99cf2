//! As many nodes as the quorums can do without are killed: others are granted units, whoever holds
//! some keeps them for longer than the dead ones promised anything, nobody is granted what another
//! one holds, and the killed come back through grace.
//!
//! No times are compared but with deadlines that nodes gave.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_client::{AcquireError, Grant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::hardship::client;
use crate::ring::until;

/// A node is suspected after two seconds and a heartbeat. A client renews after a third of its
/// lease, and what the dead promised must last until others have promised the same.
const LEASE: Duration = Duration::from_secs(8);
/// Every pool but the first is held by one client, as a whole.
const POOLS: usize = 24;
const UNITS: u32 = 2;

/// All clusters at once: most of the time is waiting. `turn` says which minorities are killed.
pub(crate) async fn killed(name: &'static str, turn: usize) {
    let began = Instant::now();
    let mut all = Vec::new();
    let three = [Protocol::Count, Protocol::Named, Protocol::Ticket].map(|protocol| (protocol, 3));
    let five = [Protocol::Naming, Protocol::Table, Protocol::Ticket].map(|protocol| (protocol, 5));
    for (place, (protocol, nodes)) in three.into_iter().chain(five).enumerate() {
        all.push(tokio::spawn(one(protocol, nodes, turn + place % 3)));
    }
    for cluster in all {
        let report = cluster.await.expect("it says above what is wrong");
        println!("{name}: ok, {report}");
    }
    println!("{name}: ok, {:.0?}", began.elapsed());
}

/// The sets of so many nodes, in some order.
fn minorities(nodes: usize, size: usize) -> Vec<Vec<usize>> {
    let members = |set: usize| (0..nodes).filter(move |node| set >> node & 1 == 1).collect();
    let sets = (0..1usize << nodes).filter(|set| set.count_ones() as usize == size);
    sets.map(members).collect()
}

async fn one(protocol: Protocol, nodes: usize, turn: usize) -> String {
    let sets = minorities(nodes, (nodes - 1) / 2);
    // Prime to their numbers: as the turns go by, all of them are killed.
    let killed = &sets[turn * 7 % sets.len()];
    let label = format!("{}-{nodes}", protocol.name());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("real-minority-{label}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol,
        names: (0..POOLS).map(|pool| format!("p{pool}")).collect(),
        units: UNITS,
        lease: LEASE,
        durable: false,
        backfill: 0,
        // Then majorities will do for counting, too.
        more: match protocol {
            Protocol::Count | Protocol::Naming => "max_holders = 1\n".to_owned(),
            // Then whatever the dead knew of has to move.
            Protocol::Ticket if nodes == 5 => "spares = 0\n".to_owned(),
            _ => String::new(),
        },
    };
    let mut cluster = Cluster::start(&folder, nodes, pools, None).await;
    let mut round = Round::begin(&cluster, &label, killed).await;
    for node in killed {
        cluster.kill(*node);
    }
    let kill = quorate_client::Instant::now();
    round.grants_go_on(&cluster).await;
    round.holders_keep_theirs(kill + 2 * LEASE).await;
    let migrations = round.migrations(&cluster).await;
    // Whoever renews with any quorum has no need to.
    let moves = protocol != Protocol::Table;
    assert_eq!(migrations > 0, moves, "{label}: {migrations} migrations");
    round.is_shown(&cluster);
    for node in killed {
        cluster.restart(*node, Memory::Kept);
    }
    for node in killed {
        cluster.until_it_answers(*node).await;
    }
    round.the_killed_come_back(&cluster).await;
    let holders = round.end(&cluster).await;
    cluster.check_alive();
    format!("{label}: without {killed:?}, {holders} holders, {migrations} migrations")
}

struct Round {
    label: String,
    killed: Vec<usize>,
    survivors: Vec<usize>,
    /// A pool of which one that will be killed gave away something.
    relied: (String, usize),
    /// Who holds all of a pool, and who waits for all of it.
    holders: Vec<(Grant, JoinHandle<Result<Grant, AcquireError>>)>,
}

impl Round {
    /// Clients of nodes that will live hold pools, until one of each relies on one that will not.
    async fn begin(cluster: &Cluster, label: &str, killed: &[usize]) -> Round {
        let nodes = cluster.addresses().len();
        let survivors: Vec<usize> = (0..nodes).filter(|node| !killed.contains(node)).collect();
        let mut holders = Vec::new();
        let mut relied = None;
        for pool in 1..POOLS {
            if relied.is_some() && holders.len() >= survivors.len() {
                break;
            }
            let home = survivors[pool % survivors.len()];
            let elsewhere = survivors[(pool + 1) % survivors.len()];
            let name = format!("p{pool}");
            let held = client(cluster, home).await.pool(&name).acquire_many(UNITS).await;
            let held = held.expect("nobody else wants it");
            let text = cluster.command(home, &["status", &name]);
            let mine = text.lines().find(|line| line.starts_with(&format!("n{home}: ")));
            let mine = mine.expect("every node tells something");
            let by = |dead: &&usize| mine.contains(&format!("quorum_member(n{dead}) 1"));
            relied = relied.or(killed.iter().find(by).map(|dead| (name.clone(), *dead)));
            let next = client(cluster, elsewhere).await;
            let next = tokio::spawn(async move { next.pool(name).acquire_many(UNITS).await });
            holders.push((held, next));
        }
        let relied = relied.unwrap_or_else(|| panic!("{label}: nobody relies on {killed:?}"));
        Round { label: label.to_owned(), killed: killed.to_vec(), survivors, relied, holders }
    }

    /// At every node that lives.
    async fn grants_go_on(&self, cluster: &Cluster) {
        for home in &self.survivors {
            let grant = client(cluster, *home).await.pool("p0").acquire_many(UNITS).await;
            grant.expect("enough nodes live").release().await.expect("just granted");
        }
    }

    /// Until the lives of the dead cannot matter any more.
    async fn holders_keep_theirs(&mut self, until: quorate_client::Instant) {
        for (held, _) in &mut self.holders {
            while held.deadline() <= until {
                assert_eq!(held.is_lost(), None, "{}: a grant of {}", self.label, held.pool());
                held.changed().await;
            }
        }
        self.nobody_else_got_anything();
    }

    fn nobody_else_got_anything(&self) {
        for (held, next) in &self.holders {
            let (label, pool) = (&self.label, held.pool());
            assert_eq!(held.is_lost(), None, "{label}: a grant of {pool}");
            assert!(!next.is_finished(), "{label}: {pool} was granted twice");
        }
    }

    /// As the metrics of all nodes that live say.
    async fn migrations(&self, cluster: &Cluster) -> u64 {
        let mut sum = 0;
        for node in &self.survivors {
            let text = metrics(cluster, *node).await;
            let lines = text.lines().filter(|line| line.starts_with(METRIC));
            sum +=
                lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>();
        }
        sum
    }

    /// What an operator sees of it.
    fn is_shown(&self, cluster: &Cluster) {
        for home in &self.survivors {
            let text = cluster.command(*home, &["status", "p1"]);
            for dead in &self.killed {
                let suspected = format!("suspected(n{dead}) 1");
                let lines = text.lines().filter(|line| line.contains(&suspected));
                assert_eq!(lines.count(), self.survivors.len(), "{}: {text}", self.label);
            }
            assert!(text.contains("quorum_member(n"), "{text}");
            let (size, all) = (self.survivors.len(), self.survivors.len() + self.killed.len());
            assert!(text.contains(&format!("quorums of {size} of {all}, ")), "{text}");
            assert!(text.contains("may be incomplete: no answer from n"), "{text}");
            assert!(!text.contains("UNAVAILABLE"), "{text}");
        }
    }

    /// First in grace, and then like everybody else.
    async fn the_killed_come_back(&self, cluster: &Cluster) {
        let tells = |node: &usize, fact: &str| {
            let text = cluster.command(self.survivors[0], &["status", &self.relied.0]);
            let mut lines = text.lines().filter(|line| line.starts_with(&format!("n{node}: ")));
            lines.any(|line| line.contains(fact))
        };
        until("who gave something away is in grace", || tells(&self.relied.1, "in_grace 1")).await;
        let over = || self.killed.iter().all(|node| tells(node, "in_grace 0"));
        until("grace is over", over).await;
        self.nobody_else_got_anything();
    }

    /// What is given back goes to whoever waited for it; the killed are asked, too.
    async fn end(self, cluster: &Cluster) -> usize {
        let count = self.holders.len();
        for (held, next) in self.holders {
            held.release().await.expect("it is still held");
            let next = next.await.expect("no panic").expect("it was next");
            next.release().await.expect("just granted");
        }
        for home in &self.killed {
            let grant = client(cluster, *home).await.pool("p0").acquire_many(UNITS).await;
            grant.expect("it is back").release().await.expect("just granted");
        }
        count
    }
}

const METRIC: &str = "quorate_protocol_migrations_total{";

/// What a node tells Prometheus.
async fn metrics(cluster: &Cluster, node: usize) -> String {
    let mut stream = TcpStream::connect(cluster.address(node)).await.expect("it lives");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("it answers");
    text
}
