//! Real nodes: `quorate serve` processes with their files and ports.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use quorate_client::Views;
use quorate_node::Bug;
use rustix::process::{Pid, Signal, kill_process};

use crate::planted;
use crate::ports::free_address;
use crate::proxy::Proxy;
use crate::ring::until;

/// Who decides over the pools of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    Central,
    /// `central` whose seat moves when its node is gone.
    Moving,
    /// `arbiter` whose units have names.
    Named,
    /// `arbiter` that counts.
    Count,
    /// `arbiter` that counts and then names units.
    Naming,
    /// `arbiter` that gives tickets.
    Ticket,
    Table,
    /// `broadcast` that never takes anything back from a node.
    Broadcast,
    /// `broadcast` that counts nodes out which seem to have crashed.
    Leased,
    Ring,
}

impl Protocol {
    pub(crate) const ALL: [Protocol; 10] = [
        Protocol::Central,
        Protocol::Moving,
        Protocol::Named,
        Protocol::Count,
        Protocol::Naming,
        Protocol::Ticket,
        Protocol::Table,
        Protocol::Broadcast,
        Protocol::Leased,
        Protocol::Ring,
    ];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Central => "central",
            Protocol::Moving => "moving",
            Protocol::Named => "named",
            Protocol::Count => "count",
            Protocol::Naming => "naming",
            Protocol::Ticket => "ticket",
            Protocol::Table => "table",
            Protocol::Broadcast => "broadcast",
            Protocol::Leased => "leased",
            Protocol::Ring => "ring",
        }
    }

    /// Whether a grant's units are the pool's own, so that laws about units are judged.
    pub(crate) fn names_units(self) -> bool {
        !matches!(self, Protocol::Count | Protocol::Ticket | Protocol::Broadcast | Protocol::Leased)
    }

    /// Whether quorums decide, so that what is held can outlive a node that is suspected.
    pub(crate) fn votes(self) -> bool {
        use Protocol::{Count, Named, Naming, Table, Ticket};
        matches!(self, Named | Count | Naming | Ticket | Table)
    }

    /// Whether it can write down what it promised.
    pub(crate) fn can_be_durable(self) -> bool {
        use Protocol::{Central, Count, Named, Naming, Table};
        matches!(self, Central | Named | Count | Naming | Table)
    }

    fn options(self, pools: &Pools) -> String {
        let Pools { units, durable, backfill, more, .. } = pools;
        let mut broadcast = "protocol = \"broadcast\"\n".to_owned();
        // Any claim may be made anywhere, unless a test wants it otherwise.
        for (option, value) in
            [("node_units_max", units.to_string()), ("retry", "\"200ms\"".into())]
        {
            if !more.contains(option) {
                let _ = writeln!(broadcast, "{option} = {value}");
            }
        }
        let voting = format!("protocol = \"arbiter\"\nretry = \"200ms\"\ndurable = {durable}\n");
        let count = format!(
            "{voting}mode = \"arbiter\"\nsurvive = 0\nfairness = \"backfill:{backfill}\"\n"
        );
        let decided =
            format!("retry = \"200ms\"\nfairness = \"backfill:{backfill}\"\ndurable = {durable}\n");
        match self {
            Protocol::Central => decided,
            Protocol::Moving => decided.replace("durable = false\n", ""),
            Protocol::Table => format!("protocol = \"table\"\n{decided}"),
            Protocol::Named => voting,
            Protocol::Count => count,
            Protocol::Naming => format!("{count}naming = true\n"),
            Protocol::Ticket => {
                "protocol = \"arbiter\"\nmode = \"ticket\"\nretry = \"200ms\"\n".to_owned()
            }
            Protocol::Broadcast => broadcast,
            Protocol::Leased => format!("{broadcast}reclaim = \"lease\"\n"),
            // Nothing is scrambled unless a test asks for it.
            Protocol::Ring => "protocol = \"ring\"\ntimeout = \"300ms\"\nidle = \"50ms\"\n\
                 allow_corruption = true\n"
                .to_owned(),
        }
    }
}

/// The pools of a cluster, all alike.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    pub(crate) protocol: Protocol,
    pub(crate) names: Vec<String>,
    pub(crate) units: u32,
    pub(crate) lease: Duration,
    pub(crate) durable: bool,
    pub(crate) backfill: u32,
    /// More options.
    pub(crate) more: String,
}

/// A cluster of processes, which end with this value.
pub(crate) struct Cluster {
    folder: PathBuf,
    pools: Pools,
    nodes: Vec<Node>,
    bug: Option<Bug>,
    /// What nodes run.
    program: PathBuf,
    /// Where each finds the others, if not all find them at the same doors.
    exits: Vec<Vec<SocketAddr>>,
    /// Whether nodes show each other certificates. Clients are on loopback, and need none.
    sealed: bool,
}

struct Node {
    clients: SocketAddr,
    peers: SocketAddr,
    /// Where other nodes find it.
    door: SocketAddr,
    process: Option<Process>,
}

/// A child process that does not outlive us.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn new(child: Child) -> Process {
        Process(child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0.id().cast_signed()).expect("processes have ids");
        let _ = kill_process(pid, signal);
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Waits until it ends by itself.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        let give_up = Instant::now() + Duration::from_secs(60);
        loop {
            match self.0.try_wait().expect("it is our child") {
                Some(status) => return status,
                None => assert!(Instant::now() < give_up, "process {} goes on", self.0.id()),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a restarted node finds of its past.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// All that it wrote.
    Kept,
    /// Only how often it was started, and it knows that the rest is lost. (Without that number it
    /// would wait until a minute begins, which takes too long here.)
    Lost,
    /// Nothing, and it has to find out.
    Gone,
    /// What there was before its first start: somebody put an old copy of the directory back, in
    /// which the cluster is new. A lie, and the planted bug.
    RolledBack,
}

impl Cluster {
    /// Starts so many nodes on loopback, with a bug or without, and waits until they answer.
    pub(crate) async fn start(
        folder: &Path,
        nodes: usize,
        pools: Pools,
        bug: Option<Bug>,
    ) -> Cluster {
        let mut cluster = Cluster::new(folder, nodes, pools, bug);
        cluster.start_all().await;
        cluster
    }

    /// The same with certificates: nodes speak TLS with each other.
    pub(crate) async fn start_sealed(folder: &Path, nodes: usize, pools: Pools) -> Cluster {
        let mut cluster = Cluster::new(folder, nodes, pools, None);
        cluster.sealed = true;
        let make = |words: &str| {
            let mut command = Command::new(&cluster.program);
            command.arg("cert").args(words.split_whitespace()).current_dir(folder);
            let output = command.output().expect("the command was built");
            assert!(output.status.success(), "{words}: {output:?}");
        };
        make("new-ca real");
        (0..nodes).for_each(|node| make(&format!("node n{node} --address 127.0.0.1")));
        cluster.start_all().await;
        cluster
    }

    /// The same with wires between the nodes, which can be cut: one to each.
    pub(crate) async fn start_wired(
        folder: &Path,
        nodes: usize,
        pools: Pools,
    ) -> (Cluster, Vec<Proxy>) {
        let mut cluster = Cluster::new(folder, nodes, pools, None);
        let wires = cluster.wire().await;
        cluster.start_all().await;
        (cluster, wires)
    }

    /// The same with a wire from each node to each, so that one can be cut off from all others.
    /// What nodes run may be another build.
    pub(crate) async fn start_apart(
        folder: &Path,
        nodes: usize,
        pools: Pools,
        program: &Path,
    ) -> (Cluster, Vec<Vec<Proxy>>) {
        let mut cluster = Cluster::new(folder, nodes, pools, None);
        cluster.program = program.to_path_buf();
        let mut wires = Vec::new();
        for _ in 0..nodes {
            let mut exits = Vec::new();
            for node in &cluster.nodes {
                exits.push(Proxy::new(node.peers).await);
            }
            cluster.exits.push(exits.iter().map(|exit| exit.address).collect());
            wires.push(exits);
        }
        cluster.start_all().await;
        (cluster, wires)
    }

    /// The same before anything is started, and before anybody has said that the cluster is new.
    pub(crate) async fn unsaid(folder: &Path, nodes: usize, pools: Pools) -> (Cluster, Vec<Proxy>) {
        let mut cluster = Cluster::new(folder, nodes, pools, None);
        let wires = cluster.wire().await;
        (0..nodes).for_each(|node| cluster.write_config(node));
        (cluster, wires)
    }

    async fn wire(&mut self) -> Vec<Proxy> {
        let mut wires = Vec::new();
        for node in &mut self.nodes {
            let wire = Proxy::new(node.peers).await;
            node.door = wire.address;
            wires.push(wire);
        }
        wires
    }

    fn new(folder: &Path, nodes: usize, pools: Pools, bug: Option<Bug>) -> Cluster {
        let node = |_| {
            let peers = free_address();
            Node { clients: free_address(), peers, door: peers, process: None }
        };
        let nodes = (0..nodes).map(node).collect();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_quorate"));
        let (folder, exits) = (folder.to_path_buf(), Vec::new());
        Cluster { folder, pools, nodes, bug, program, exits, sealed: false }
    }

    async fn start_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.write_config(node);
            let output = self.init(node).await;
            assert!(output.status.success(), "{output:?}");
            std::fs::copy(self.data(node).join("boot"), self.old_copy(node)).expect("a new file");
        }
        for node in 0..self.nodes.len() {
            self.spawn(node);
        }
        for node in 0..self.nodes.len() {
            self.until_it_answers(node).await;
        }
        if self.pools.protocol == Protocol::Moving {
            // The first member votes alone until the others have the log. Whoever kills it before
            // that has taken the majority away.
            let voters = self.nodes.len().min(3);
            let many = || self.command(0, &["status"]).matches(": votes, ").count() >= voters;
            until("enough members vote", many).await;
        }
    }

    /// Somebody says that the cluster is new.
    pub(crate) async fn init(&self, node: usize) -> Output {
        let mut command = Command::new(&self.program);
        command.args(["init", "--config"]).arg(self.config_path(node));
        // It asks other nodes, over wires that are ours.
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        output.expect("no panic").expect("the command was built")
    }

    /// What `quorate` with these words, sent to a node, prints.
    pub(crate) fn command(&self, node: usize, words: &[&str]) -> String {
        String::from_utf8_lossy(&self.output(node, words).stdout).into_owned()
    }

    /// The same, and how it ended.
    pub(crate) fn output(&self, node: usize, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(words).args(["--server", &self.address(node).to_string()]);
        // Clients of other trials have leases to renew meanwhile.
        let output = tokio::task::block_in_place(|| command.output());
        output.expect("the command was built")
    }

    /// Runs a command with a unit of a pool, by way of a node, and says how it ended.
    pub(crate) fn run(&self, node: usize, pool: &str, rest: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let server = self.address(node).to_string();
        command.args(["run", pool, "--server", &server]).args(rest);
        let output = tokio::task::block_in_place(|| command.output());
        output.expect("the command was built")
    }

    /// What `quorate cluster` with these words, about the file of a node, prints, and how it ended.
    pub(crate) fn offline(&self, node: usize, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.arg("cluster").args(words).arg("--config").arg(self.config_path(node));
        let output = tokio::task::block_in_place(|| command.output());
        output.expect("the command was built")
    }

    /// A node gets another file, which it reads at its next start.
    pub(crate) fn rewrite(&self, node: usize, change: impl FnOnce(String) -> String) {
        let path = self.config_path(node);
        let text = std::fs::read_to_string(&path).expect("a config file");
        std::fs::write(&path, change(text)).expect("a config file");
    }

    /// A node that does not run loses its part of the charter.
    pub(crate) fn forget_charter(&self, node: usize) {
        for file in ["charter.redb", "charter-birth"] {
            std::fs::remove_file(self.data(node).join(file)).expect("it was a member");
        }
    }

    /// Where clients find a node.
    pub(crate) fn address(&self, node: usize) -> SocketAddr {
        self.nodes[node].clients
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.clients.to_string()).collect()
    }

    pub(crate) fn is_running(&self, node: usize) -> bool {
        self.nodes[node].process.is_some()
    }

    /// kill -9.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].process = None;
    }

    /// kill -9, and nothing is left of what it wrote.
    pub(crate) fn lose(&mut self, node: usize) {
        self.kill(node);
        self.wipe(node, Memory::Gone);
    }

    pub(crate) fn restart(&mut self, node: usize, memory: Memory) {
        self.kill(node);
        self.wipe(node, memory);
        self.spawn(node);
    }

    fn wipe(&self, node: usize, memory: Memory) {
        let boot = std::fs::read_to_string(self.data(node).join("boot")).ok();
        // A node that was killed at its start has nothing to lose yet.
        if let Some(boot) = boot.filter(|_| memory != Memory::Kept) {
            // Whoever loses its part of the charter is a member no more, for good: here that stays.
            let charter = ["charter.redb", "charter-birth", "charter-leaving"];
            let kept = charter.map(|file| (file, std::fs::read(self.data(node).join(file)).ok()));
            std::fs::remove_dir_all(self.data(node)).expect("it is ours");
            std::fs::create_dir(self.data(node)).expect("it is ours");
            for (file, bytes) in kept.into_iter().filter(|_| memory == Memory::Lost) {
                if let Some(bytes) = bytes {
                    std::fs::write(self.data(node).join(file), bytes).expect("it is ours");
                }
            }
            let left = match memory {
                Memory::Kept | Memory::Gone => None,
                Memory::RolledBack => std::fs::read_to_string(self.old_copy(node)).ok(),
                Memory::Lost => {
                    let count = boot.lines().find(|line| line.starts_with("boot "));
                    let (count, lease) = (count.expect("a count"), self.pools.lease.as_millis());
                    Some(format!("{count}\ndigest 0\nlease_ms {lease}\n"))
                }
            };
            if let Some(text) = left {
                std::fs::write(self.data(node).join("boot"), text).expect("it is ours");
            }
        }
    }

    /// Restarts a node whose writes can be made to fail ([`Resource::Fsize`]): the signal that
    /// would end it then is ignored. Says where its last words come from.
    ///
    /// [`Resource::Fsize`]: rustix::process::Resource::Fsize
    pub(crate) fn restart_with_a_weak_disk(&mut self, node: usize) -> ChildStderr {
        self.kill(node);
        let mut child = Command::new("/bin/sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" serve --config \"$1\""])
            .arg(env!("CARGO_BIN_EXE_quorate"))
            .arg(self.config_path(node))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let errors = child.stderr.take().expect("piped");
        self.nodes[node].process = Some(Process::new(child));
        errors
    }

    /// The process of a node that runs, or should.
    pub(crate) fn process(&mut self, node: usize) -> &mut Process {
        self.nodes[node].process.as_mut().expect("it was started")
    }

    pub(crate) fn pause(&self, node: usize) {
        if let Some(process) = &self.nodes[node].process {
            process.signal(Signal::STOP);
        }
    }

    pub(crate) fn resume(&self, node: usize) {
        if let Some(process) = &self.nodes[node].process {
            process.signal(Signal::CONT);
        }
    }

    /// Waits until a node answers, for as long as any sane machine needs: one that lost its
    /// directory waits until a minute begins.
    pub(crate) async fn until_it_answers(&mut self, node: usize) {
        let views = Views::new([self.address(node).to_string()]).expect("an address");
        let give_up = Instant::now() + Duration::from_secs(120);
        while views.node().await.is_err() {
            let process = self.nodes[node].process.as_mut().expect("it was started");
            if let Ok(Some(status)) = process.child().try_wait() {
                panic!("node {node} ended by itself ({status}); {}", self.log(node));
            }
            assert!(Instant::now() < give_up, "node {node} never answers; {}", self.log(node));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Panics if a node that should run does not: nothing from outside may end it.
    pub(crate) fn check_alive(&mut self) {
        for node in 0..self.nodes.len() {
            let Some(process) = &mut self.nodes[node].process else { continue };
            if let Ok(Some(status)) = process.child().try_wait() {
                panic!("node {node} ended by itself ({status}); {}", self.log(node));
            }
        }
    }

    fn spawn(&mut self, node: usize) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_path(node));
        let log = log.expect("a log file");
        let mut command = match self.bug {
            None => Command::new(&self.program),
            Some(_) => Command::new(std::env::current_exe().expect("we are a program")),
        };
        match self.bug {
            None => command.args(["serve", "--config"]),
            Some(bug) => command.args(["node", planted::name(bug)]),
        };
        let child = command
            .arg(self.config_path(node))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log)
            .spawn()
            .expect("the command was built");
        self.nodes[node].process = Some(Process::new(child));
    }

    fn config_path(&self, node: usize) -> PathBuf {
        self.folder.join(format!("n{node}.toml"))
    }

    /// The data directory's only file, as it was before the first start.
    fn old_copy(&self, node: usize) -> PathBuf {
        self.folder.join(format!("n{node}.boot"))
    }

    pub(crate) fn data(&self, node: usize) -> PathBuf {
        self.folder.join(format!("data{node}"))
    }

    fn log_path(&self, node: usize) -> PathBuf {
        self.folder.join(format!("n{node}.log"))
    }

    /// The end of what a node said.
    pub(crate) fn log(&self, node: usize) -> String {
        let log = std::fs::read_to_string(self.log_path(node)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        format!("its last words:\n{}", lines.join("\n"))
    }

    fn write_config(&self, node: usize) {
        let Node { clients, peers, .. } = &self.nodes[node];
        // Writing to a string cannot fail.
        let mut text = String::new();
        let _ = write!(
            text,
            "cluster = \"real\"\nepoch = 1\nnode = \"n{node}\"\n\
             suspect_after = \"2s\"\n\
             data_dir = {:?}\nlisten = {{ clients = \"{clients}\", peers = \"{peers}\" }}\n\
             members = [\n",
            self.data(node)
        );
        for (number, member) in self.nodes.iter().enumerate() {
            let own = number == node;
            let exits = self.exits.get(node).filter(|_| !own);
            let door = exits.map_or(if own { *peers } else { member.door }, |exits| exits[number]);
            let _ = writeln!(text, "  {{ name = \"n{number}\", peers = \"{door}\" }},");
        }
        text.push_str("]\n");
        if self.sealed {
            let file = |name: String| self.folder.join(name);
            let (ca, cert) = (file("ca.crt".into()), file(format!("node-n{node}.crt")));
            let key = file(format!("node-n{node}.key"));
            let _ = write!(text, "[tls]\nca = {ca:?}\ncert = {cert:?}\nkey = {key:?}\n");
        }
        if self.pools.protocol == Protocol::Moving {
            // Where nobody could wait for a lease, a busy machine must not make a shadow seem
            // silent together with the node that is killed.
            let span = if self.pools.lease > Duration::from_secs(60) { "2s" } else { "500ms" };
            let _ = write!(
                text,
                "[charter]\nenabled = true\nlicence = \"{span}\"\n\
                 suspect_after = \"{span}\"\n"
            );
        }
        let Pools { names, units, lease, protocol, .. } = &self.pools;
        let Pools { more, .. } = &self.pools;
        let (lease, options) = (lease.as_millis(), protocol.options(&self.pools));
        for name in names {
            let _ = write!(
                text,
                "[[pools]]\nname = \"{name}\"\nunits = {units}\nlease = \"{lease}ms\"\n\
                 {options}{more}"
            );
        }
        std::fs::write(self.config_path(node), text).expect("a config file");
    }
}
