//! Nodes that write nothing down are stopped or killed one after the other and started again, as an
//! operator would: the next one when the one before promises again and every holder has renewed
//! since. Nobody loses anything, and nobody is granted what another one holds.
//!
//! No times are compared but with deadlines that nodes gave.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_client::{AcquireError, Client, Grant};
use rustix::process::Signal;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::ring::until;

const LEASE: Duration = Duration::from_secs(4);
const NODES: usize = 3;
const JOBS: usize = 20;
/// Clients that wait for what the others have: they have asked nodes for it that are restarted.
const WAITERS: usize = 4;

/// How a node ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// It is asked to, and started again at once.
    Stopped,
    /// It is not asked, and stays away until whoever was there has gone on elsewhere.
    Killed,
}

/// All clusters at once: most of the time is waiting.
pub(crate) async fn restarts(name: &'static str) {
    let began = Instant::now();
    let all = [
        (Protocol::Named, [How::Stopped; NODES]),
        (Protocol::Named, [How::Killed; NODES]),
        (Protocol::Count, [How::Stopped, How::Killed, How::Stopped]),
        (Protocol::Naming, [How::Killed, How::Stopped, How::Killed]),
        (Protocol::Ticket, [How::Stopped, How::Killed, How::Killed]),
        (Protocol::Table, [How::Stopped, How::Killed, How::Stopped]),
    ];
    let all = all.into_iter().enumerate();
    let all: Vec<_> =
        all.map(|(place, (protocol, ends))| tokio::spawn(one(place, protocol, ends))).collect();
    for cluster in all {
        let report = cluster.await.expect("it says above what is wrong");
        println!("{name}: ok, {report}");
    }
    println!("{name}: ok, {:.0?}", began.elapsed());
}

async fn one(place: usize, protocol: Protocol, ends: [How; NODES]) -> String {
    let label = format!("{place}-{}", protocol.name());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("real-rolling-{label}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    // Majorities count for one holder at a time only.
    let apart = matches!(protocol, Protocol::Count | Protocol::Naming);
    let names: Vec<String> = match apart {
        true => (0..JOBS).map(|job| format!("p{job}")).collect(),
        false => vec!["gpus".into()],
    };
    let (units, more) = match apart {
        true => (1, "max_holders = 1\n".to_owned()),
        false => (JOBS as u32, String::new()),
    };
    let (lease, durable, backfill) = (LEASE, false, 0);
    let pools = Pools { protocol, names: names.clone(), units, lease, durable, backfill, more };
    let mut cluster = Cluster::start(&folder, NODES, pools, None).await;
    let mut jobs = Jobs::begin(&cluster, label, &names).await;
    for (node, how) in ends.into_iter().enumerate() {
        jobs.all_renew_twice().await;
        match how {
            How::Stopped => {
                cluster.process(node).signal(Signal::TERM);
                let status = cluster.process(node).end().await;
                assert!(status.success(), "{}: n{node}: {status}", jobs.label);
            }
            How::Killed => {
                cluster.kill(node);
                jobs.all_renew().await;
            }
        }
        cluster.restart(node, Memory::Kept);
        cluster.until_it_answers(node).await;
        let tells = |pool: &String| {
            let text = cluster.command(node, &["status", pool]);
            let mut lines = text.lines().filter(|line| line.starts_with(&format!("n{node}: ")));
            lines.any(|line| line.contains("in_grace 0"))
        };
        for pool in &names {
            until("it promises again", || tells(pool)).await;
        }
    }
    jobs.all_renew_twice().await;
    cluster.check_alive();
    jobs.end(&format!("{ends:?}")).await
}

/// Who holds units, and who waits for some.
struct Jobs {
    label: String,
    held: Vec<Grant>,
    waiting: Vec<JoinHandle<Result<Grant, AcquireError>>>,
}

impl Jobs {
    /// Everything is held, by clients that know all nodes.
    async fn begin(cluster: &Cluster, label: String, names: &[String]) -> Jobs {
        let mut held = Vec::new();
        for job in 0..JOBS {
            let pool = connect(cluster).await.pool(&names[job % names.len()]);
            held.push(pool.acquire().await.expect("there is one for each"));
        }
        let mut waiting = Vec::new();
        for waiter in 0..WAITERS {
            let pool = connect(cluster).await.pool(&names[waiter % names.len()]);
            waiting.push(tokio::spawn(async move { pool.acquire().await }));
        }
        Jobs { label, held, waiting }
    }

    /// Waits until every job was given more time than it could have been given before now.
    async fn all_renew(&mut self) {
        let until = quorate_client::Instant::now() + LEASE;
        for job in &mut self.held {
            while job.deadline() <= until {
                assert_eq!(job.is_lost(), None, "{}: a grant of {}", self.label, job.pool());
                job.changed().await;
            }
        }
        let granted = self.waiting.iter().any(JoinHandle::is_finished);
        assert!(!granted, "{}: something was granted twice", self.label);
    }

    /// With the first renewal further nodes are asked, and with the second they have answered.
    async fn all_renew_twice(&mut self) {
        self.all_renew().await;
        self.all_renew().await;
    }

    /// What is given back goes to whoever waited.
    async fn end(self, ends: &str) -> String {
        let count = self.held.len();
        for job in self.held {
            job.release().await.expect("it is still held");
        }
        for waiter in self.waiting {
            waiter.await.expect("no panic").expect("it was next");
        }
        format!("{}: {count} jobs outlive nodes {ends}", self.label)
    }
}

async fn connect(cluster: &Cluster) -> Client {
    loop {
        // On a busy machine a node may take longer than a client waits.
        if let Ok(client) = Client::connect(&cluster.addresses()).await {
            return client;
        }
    }
}
