//! One seeded trial: start a cluster, let clients live while faults happen, heal, judge.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorate_client::{Client, Views};
use quorate_node::Bug;
use rustix::process::Signal;

use crate::client::Orders;
use crate::clock;
use crate::cluster::{Cluster, Memory, Pools, Process, Protocol};
use crate::history::{self, Line, Summary, What};
use crate::proxy::Proxy;
use quorate_core::Dice;

/// What a trial is made of; all else follows from the seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) protocol: Protocol,
    /// How long faults happen.
    pub(crate) chaos: Duration,
    pub(crate) harm: Harm,
    /// What is wrong with the nodes, if the harness is to find it.
    pub(crate) bug: Option<Bug>,
}

impl Plan {
    /// Whether the trial is meant to fail.
    fn must_fail(self) -> bool {
        self.harm == Harm::Lie || self.bug.is_some()
    }
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Harm {
    /// Nodes and clients are killed and paused, wires cut, slowed down, blocked and replayed.
    Everything,
    /// Connections break and nothing else: no client may lose a grant by that.
    Cuts,
    /// Processes of clients are killed, and nothing else.
    DeadClients,
    /// Nodes are killed and restarted at once, with all that they wrote.
    Restarts,
    /// A node's disk is put back to before its first start, when the cluster was new. The harness
    /// must notice.
    Lie,
}

const NODES: usize = 3;
const PROCESSES: usize = 4;
const CLIENTS: u64 = 4;
/// How long healing may take, on any sane machine.
const HEALING: Duration = Duration::from_secs(120);

struct Trial {
    plan: Plan,
    folder: PathBuf,
    dice: Dice,
    pools: Pools,
    cluster: Cluster,
    proxies: Vec<Proxy>,
    workers: Vec<Worker>,
    /// Paused or dead nodes and workers, and when they come back.
    returns: Vec<(Instant, Return)>,
    lines: Arc<Mutex<Vec<Line>>>,
    faults: usize,
}

struct Worker {
    process: Process,
    reader: Option<std::thread::JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
enum Return {
    Node(usize, Memory),
    ResumedNode(usize),
    Worker(usize),
    Wire(usize),
}

/// Runs it; says what happened, or what went wrong.
pub(crate) async fn run(plan: Plan) -> Result<String, String> {
    let folder = folder(plan);
    let mut trial = Trial::start(plan, &folder).await;
    let onlooker = trial.promises_order().is_some().then(|| {
        let (addresses, pools) = (trial.cluster.addresses(), trial.pools.names.clone());
        tokio::spawn(watch_queues(addresses, pools, Arc::clone(&trial.lines)))
    });
    let until = Instant::now() + plan.chaos;
    while Instant::now() < until {
        trial.step();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    if let Some(onlooker) = onlooker {
        onlooker.abort();
    }
    let outcome = trial.finish().await;
    // What is left behind on failure is for whoever looks into it, unless it was meant to fail.
    if outcome.is_ok() || plan.must_fail() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    outcome.map_err(|why| format!("{why}\n(files are kept in {})", folder.display()))
}

/// Writes down who is seen waiting in the arbiters' books.
async fn watch_queues(addresses: Vec<String>, pools: Vec<String>, lines: Arc<Mutex<Vec<Line>>>) {
    let views = Views::new(addresses).expect("addresses");
    loop {
        for pool in &pools {
            let asked = clock::now();
            let Ok(queue) = views.queue(pool).await else { continue };
            let at = clock::now();
            let booked = queue.waiting.iter().filter(|waiter| waiter.position.is_some());
            let seen = booked.map(|waiter| Line {
                at,
                pool: pool.clone(),
                claim: waiter.id.0,
                what: What::Waits { asked },
            });
            lines.lock().expect("no panic").extend(seen);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn folder(plan: Plan) -> PathBuf {
    let (process, protocol) = (std::process::id(), plan.protocol.name());
    let name = format!("quorate-real-{process}-{protocol}-{:x}", plan.seed);
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a temporary directory");
    folder
}

impl Trial {
    async fn start(plan: Plan, folder: &std::path::Path) -> Trial {
        let mut dice = Dice::new(plan.seed);
        // Nothing is held for long enough to move to other arbiters if leases are short.
        let long = if plan.protocol.votes() { 5000 } else { 2000 };
        let short = [1000, 1500, long].map(Duration::from_millis);
        let lease = match plan.harm {
            // Seats do not move within shorter ones.
            Harm::Everything if plan.protocol == Protocol::Moving => Duration::from_secs(4),
            Harm::Everything => dice.pick(&short),
            Harm::DeadClients => short[0],
            // Long enough for a machine that is busy with other things.
            Harm::Cuts | Harm::Restarts | Harm::Lie => Duration::from_secs(4),
        };
        let pools = Pools {
            protocol: plan.protocol,
            names: vec!["alpha".into(), "beta".into()],
            units: dice.below(5) as u32 + 2,
            lease,
            durable: plan.harm == Harm::Everything
                && dice.one_in(2)
                && plan.protocol.can_be_durable(),
            backfill: dice.below(4) as u32,
            more: String::new(),
        };
        let cluster = Cluster::start(folder, NODES, pools.clone(), plan.bug).await;
        let mut proxies = Vec::new();
        for node in 0..NODES {
            proxies.push(Proxy::new(cluster.address(node)).await);
        }
        let (workers, returns, lines) = (Vec::new(), Vec::new(), Arc::default());
        let faults = 0;
        let folder = folder.to_path_buf();
        let mut trial =
            Trial { plan, folder, dice, pools, cluster, proxies, workers, returns, lines, faults };
        for _ in 0..PROCESSES {
            let worker = trial.spawn_worker();
            trial.workers.push(worker);
        }
        trial
    }

    /// A process of clients, and a thread that reads what they write down.
    fn spawn_worker(&mut self) -> Worker {
        let orders = Orders {
            seed: self.dice.draw(),
            clients: CLIENTS,
            pools: self.pools.names.clone(),
            units: self.pools.units,
            lease: self.pools.lease,
            servers: self.proxies.iter().map(|proxy| proxy.address.to_string()).collect(),
            trust: None,
        };
        let mut child = Command::new(std::env::current_exe().expect("we are a program"))
            .arg("client")
            .args(orders.to_words())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("we can be started again");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let lines = Arc::clone(&self.lines);
        let reader = std::thread::spawn(move || {
            let read = output.lines().map_while(Result::ok).filter_map(|line| line.parse().ok());
            read.for_each(|line| lines.lock().expect("no panic").push(line));
        });
        Worker { process: Process::new(child), reader: Some(reader) }
    }

    /// How often a claim may be overtaken, where that can be judged: no node forgets its books, and
    /// one decides.
    fn promises_order(&self) -> Option<u32> {
        let judged = self.plan.harm == Harm::Cuts && self.plan.protocol == Protocol::Central;
        judged.then_some(self.pools.backfill)
    }

    /// Lets something come back, and perhaps something go wrong.
    fn step(&mut self) {
        self.cluster.check_alive();
        let now = Instant::now();
        let due: Vec<Return> =
            self.returns.iter().filter(|(at, _)| *at <= now).map(|(_, what)| *what).collect();
        self.returns.retain(|(at, _)| *at > now);
        due.into_iter().for_each(|what| self.bring_back(what));
        match self.plan.harm {
            Harm::Everything if self.dice.one_in(16) => self.harm(now),
            Harm::Cuts if self.dice.one_in(15) => {
                let wire = self.dice.below(NODES as u64) as usize;
                self.proxies[wire].cut();
                self.faults += 1;
            }
            Harm::DeadClients if self.dice.one_in(25) => {
                let worker = self.dice.below(PROCESSES as u64) as usize;
                self.replace_worker(worker);
                self.faults += 1;
            }
            Harm::Restarts | Harm::Lie if self.dice.one_in(25) => {
                let lied_to = self.plan.harm == Harm::Lie;
                let memory = if lied_to { Memory::RolledBack } else { Memory::Kept };
                let node = self.dice.below(NODES as u64) as usize;
                self.cluster.restart(node, memory);
                self.faults += 1;
            }
            _ => {}
        }
    }

    fn harm(&mut self, now: Instant) {
        let long = self.pools.lease * 5 / 2;
        let back = now + self.dice.span(long);
        let node = self.dice.below(NODES as u64) as usize;
        let worker = self.dice.below(PROCESSES as u64) as usize;
        self.faults += 1;
        match self.dice.below(16) {
            0 | 1 => {
                // With its memory if the pools rely on it: a durable node that loses its disk has
                // broken its promise already.
                let forget = !self.pools.durable && self.dice.one_in(2);
                let memory = if forget { Memory::Lost } else { Memory::Kept };
                self.cluster.kill(node);
                self.returns.push((back, Return::Node(node, memory)));
            }
            2 | 3 => {
                self.cluster.pause(node);
                self.returns.push((back, Return::ResumedNode(node)));
            }
            4 => self.replace_worker(worker),
            5 | 6 => {
                self.workers[worker].process.signal(Signal::STOP);
                self.returns.push((back, Return::Worker(worker)));
            }
            7..=12 => self.proxies[node].cut(),
            13 => {
                self.proxies[node].block();
                self.returns.push((back, Return::Wire(node)));
            }
            14 => {
                let delay = self.dice.span(self.pools.lease / 2);
                self.proxies[node].slow_down(delay);
                self.returns.push((back, Return::Wire(node)));
            }
            _ => {
                // To the node that heard it first; sometimes to another, where a claim that was
                // over is made anew and holds its units for a lease, for nobody.
                let other = self.dice.below(NODES as u64) as usize;
                let to = if self.dice.one_in(4) { other } else { node };
                let which = self.dice.draw();
                self.proxies[node].replay(self.cluster.address(to), which);
            }
        }
    }

    /// kill -9 of a process of clients; another takes its place.
    fn replace_worker(&mut self, worker: usize) {
        let fresh = self.spawn_worker();
        self.workers.push(fresh);
        let dead = self.workers.swap_remove(worker);
        dead.end();
    }

    fn bring_back(&mut self, what: Return) {
        match what {
            Return::Node(node, _) if self.cluster.is_running(node) => {}
            Return::Node(node, memory) => self.cluster.restart(node, memory),
            Return::ResumedNode(node) => self.cluster.resume(node),
            Return::Worker(worker) => self.workers[worker].process.signal(Signal::CONT),
            Return::Wire(wire) => self.proxies[wire].heal(),
        }
    }

    /// Everything comes back; then every client must be served, and every unit be free again.
    async fn finish(&mut self) -> Result<String, String> {
        for (_, what) in std::mem::take(&mut self.returns) {
            self.bring_back(what);
        }
        for node in 0..NODES {
            self.cluster.resume(node);
            self.proxies[node].heal();
        }
        for worker in &mut self.workers {
            worker.process.signal(Signal::CONT);
            drop(worker.process.child().stdin.take());
        }
        // Nobody can say how long a cluster with something wrong needs.
        let heals = !self.plan.must_fail();
        let served = if heals { self.until_all_are_served().await } else { Ok(()) };
        let workers = std::mem::take(&mut self.workers);
        workers.into_iter().for_each(Worker::end);
        // Safety first: it explains more.
        let lines = std::mem::take(&mut *self.lines.lock().expect("no panic"));
        let text: Vec<String> = lines.iter().map(Line::to_string).collect();
        // Removed with the folder if nothing is wrong.
        let _ = std::fs::write(self.folder.join("history"), text.join("\n"));
        let mut report = String::new();
        let mut lost = 0;
        for pool in &self.pools.names {
            let of_pool: Vec<Line> =
                lines.iter().filter(|line| line.pool == *pool).cloned().collect();
            let summary =
                history::judge(&of_pool, self.pools.units, self.plan.protocol.names_units())
                    .map_err(|breach| format!("pool {pool}: law broken: {breach}"))?;
            let Summary { claims, grants, peak, .. } = summary;
            lost += summary.lost;
            report.push_str(&format!("{pool}: {grants} grants of {claims} claims, peak {peak}; "));
            if let Some(bound) = self.promises_order() {
                let overtakes = history::judge_overtaking(&of_pool, bound)
                    .map_err(|breach| format!("pool {pool}: law broken: {breach}"))?;
                report.push_str(&format!("overtakes seen {overtakes}, of {bound} each; "));
            }
        }
        served?;
        if self.plan.harm == Harm::Cuts && lost > 0 {
            return Err(format!("{lost} grants were lost though only connections broke"));
        }
        if heals {
            self.all_units_return().await?;
        }
        self.cluster.check_alive();
        let Pools { units, lease, durable, .. } = self.pools;
        let faults = self.faults;
        Ok(format!("{report}{lost} lost, {faults} faults, k {units}, {lease:?}, {durable}"))
    }

    async fn until_all_are_served(&mut self) -> Result<(), String> {
        let give_up = Instant::now() + HEALING;
        loop {
            let mut waiting = 0;
            for worker in &mut self.workers {
                match worker.process.child().try_wait() {
                    Ok(Some(status)) if !status.success() => {
                        return Err(format!("a client process ended badly: {status}"));
                    }
                    Ok(Some(_)) => {}
                    _ => waiting += 1,
                }
            }
            if waiting == 0 {
                return Ok(());
            }
            if Instant::now() > give_up {
                return Err(format!(
                    "law broken: everyone served: {waiting} processes still have clients that \
                     wait {HEALING:?} after faults stopped"
                ));
            }
            self.cluster.check_alive();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Nobody holds anything: each pool must be able to give all it has.
    async fn all_units_return(&self) -> Result<(), String> {
        let client = Client::connect(self.cluster.addresses()).await.map_err(|e| e.to_string())?;
        for pool in &self.pools.names {
            client
                .pool(pool)
                .acquire_timeout(self.pools.units, HEALING)
                .await
                .map_err(|error| format!("law broken: no lost units: pool {pool}: {error}"))?
                .release()
                .await
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl Worker {
    /// kill -9, and reads what it wrote before.
    fn end(self) {
        let Worker { process, reader } = self;
        drop(process);
        if let Some(reader) = reader {
            reader.join().expect("readers do not panic");
        }
    }
}
