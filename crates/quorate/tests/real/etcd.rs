//! The same for etcd's lock, beside `moves.rs`: three members, holders that keep a lease of the
//! same length alive, and somebody who locks at every member that stays, again and again. By
//! Debian's etcd and etcdctl: each lock starts a process, and so no pause is shorter than that
//! takes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::cluster::Process;
use crate::moves::{HOLDERS, LEASE, WINDOW, longest, row};
use crate::ports::free_address;

const NODES: usize = 3;
/// How often somebody asks at a member.
const EVERY: Duration = Duration::from_millis(100);

pub(crate) async fn measure(rounds: usize) {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("etcd") || !there("etcdctl") {
        return println!("etcd is not here to compare with: apt install etcd-server etcd-client");
    }
    let mut stage = Stage::new().await;
    for (what, signal) in [("etcd leader killed", Signal::KILL), ("leader stopped", Signal::TERM)] {
        let (mut pauses, mut lost) = (Vec::new(), 0);
        for _ in 0..rounds {
            let (pause, these) = stage.without_its_leader(signal).await;
            pauses.push(pause);
            lost += these;
        }
        row(what, pauses, lost);
    }
}

struct Stage {
    folder: PathBuf,
    clients: Vec<SocketAddr>,
    peers: Vec<SocketAddr>,
    members: Vec<Process>,
    holders: Vec<Process>,
}

impl Stage {
    async fn new() -> Stage {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("moves-etcd");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder of our own");
        let clients = (0..NODES).map(|_| free_address()).collect();
        let peers = (0..NODES).map(|_| free_address()).collect();
        let (members, holders) = (Vec::new(), Vec::new());
        let mut stage = Stage { folder, clients, peers, members, holders };
        for place in 0..NODES {
            let member = Process::new(stage.start(place));
            stage.members.push(member);
        }
        stage.leader().await;
        for holder in 0..HOLDERS {
            let process = stage.hold(holder).await;
            stage.holders.push(process);
        }
        stage
    }

    fn start(&self, place: usize) -> Child {
        let all: Vec<String> = self.peers.iter().enumerate().map(named).collect();
        let url = |at: SocketAddr| format!("http://{at}");
        let (client, peer) = (url(self.clients[place]), url(self.peers[place]));
        let mut command = Command::new("etcd");
        command.args(["--name", &format!("m{place}"), "--log-level", "error"]);
        command.args(["--initial-cluster", &all.join(",")]);
        command.arg("--data-dir").arg(self.folder.join(format!("m{place}")));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("it is installed")
    }

    fn every(&self) -> String {
        let all: Vec<String> = self.clients.iter().map(SocketAddr::to_string).collect();
        all.join(",")
    }

    /// Which member leads, when all answer.
    async fn leader(&self) -> usize {
        loop {
            let mut ask = ctl(&self.every(), &["endpoint", "status", "-w", "json"]);
            let said = tokio::task::block_in_place(|| ask.output()).expect("it is installed");
            let all: Vec<Value> = serde_json::from_slice(&said.stdout).unwrap_or_default();
            let leads = |one: &&Value| {
                let status = &one["Status"];
                status["leader"] == status["header"]["member_id"]
            };
            let mut leaders = all.iter().filter(leads);
            if all.len() == NODES
                && let (Some(leader), None) = (leaders.next(), leaders.next())
                && let Some(at) = leader["Endpoint"].as_str()
                && let Some(place) =
                    self.clients.iter().position(|it| at.ends_with(&it.to_string()))
            {
                return place;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Somebody who holds a lock as long as its lease is kept alive, and ends without it.
    async fn hold(&self, holder: usize) -> Process {
        let (lease, lock) = (LEASE.as_secs().to_string(), format!("held-{holder}"));
        let said = self.folder.join(&lock);
        let file = std::fs::File::create(&said).expect("a file of our own");
        let mut command = ctl(&self.every(), &["lock", "--ttl", &lease, &lock]);
        let process = Process::new(command.stdout(file).spawn().expect("it is installed"));
        // It says which key it has.
        while std::fs::read(&said).expect("a file of our own").is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        process
    }

    async fn without_its_leader(&mut self, signal: Signal) -> (Duration, usize) {
        let leader = self.leader().await;
        let marks: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let stay = (0..NODES).filter(|place| *place != leader);
        let askers: Vec<_> = stay
            .map(|place| tokio::spawn(ask(self.clients[place].to_string(), Arc::clone(&marks))))
            .collect();
        while marks.lock().expect("whole").len() < 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let began = Instant::now();
        self.members[leader].signal(signal);
        self.members[leader].end().await;
        tokio::time::sleep_until((began + WINDOW).into()).await;
        askers.iter().for_each(tokio::task::JoinHandle::abort);
        let pause = longest(std::mem::take(&mut *marks.lock().expect("whole")), began);
        self.members[leader] = Process::new(self.start(leader));
        self.leader().await;
        let mut lost = 0;
        for holder in 0..HOLDERS {
            let ended = self.holders[holder].child().try_wait().expect("it is our child");
            if ended.is_some() {
                lost += 1;
                self.holders[holder] = self.hold(holder).await;
            }
        }
        (pause, lost)
    }
}

fn named((place, at): (usize, &SocketAddr)) -> String {
    format!("m{place}=http://{at}")
}

fn ctl(endpoints: &str, words: &[&str]) -> Command {
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").arg("--endpoints").arg(endpoints).args(words);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Locks at one member and unlocks, again and again: each time somebody new and something new,
/// since whoever had asked when the leader went waits for seven seconds, after which etcd gives
/// requests up.
async fn ask(endpoint: String, marks: Arc<Mutex<Vec<Instant>>>) {
    let (mut every, mut all) = (tokio::time::interval(EVERY), tokio::task::JoinSet::new());
    for number in 0.. {
        every.tick().await;
        let (endpoint, marks) = (endpoint.clone(), Arc::clone(&marks));
        all.spawn(async move {
            let lock = format!("asked-{endpoint}-{number}");
            let mut command =
                tokio::process::Command::from(ctl(&endpoint, &["lock", &lock, "true"]));
            if command.kill_on_drop(true).status().await.is_ok_and(|status| status.success()) {
                marks.lock().expect("whole").push(Instant::now());
            }
        });
        while all.try_join_next().is_some() {}
    }
}
