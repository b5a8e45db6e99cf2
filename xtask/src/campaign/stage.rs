//! The hosts of a draw: nodes with certificates and tokens, clients and strangers on hosts of their
//! own, and all that can be done to them. [`Stage::heal`] undoes whatever faults did.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quorate_core::Dice;

use super::crew::Worker;
use super::draw::{Draw, Protocol};
use super::json::Json;
use crate::lab::net::{self, Host, Lab, Outcome, Process};

/// The pool that crews use, unless they use many.
pub(crate) const POOL: &str = "camp";
/// The pool that only the onlooker uses.
pub(crate) const PROBE: &str = "probe";
/// Where the onlooker is, where clients are, and where strangers are.
const OTHERS: [&str; 4] = ["eye", "c1", "c2", "far"];
/// Room on a disk that can be full.
const DISK: &str = "24m";
pub(super) const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// What a draw is played with.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    /// `quorate`.
    pub(crate) program: PathBuf,
    /// The test program `real`, which is the Rust client, and nodes with planted bugs.
    pub(crate) real: Option<PathBuf>,
    /// Another build of `quorate`, for rolling upgrades.
    pub(crate) other: Option<PathBuf>,
    /// The repository.
    pub(crate) root: PathBuf,
    /// What is wrong with every node, and with a client, if the campaign is to find it.
    pub(crate) node_bug: Option<&'static str>,
    pub(crate) client_bug: Option<&'static str>,
}

/// Whether clocks of processes can be made to run at another rate.
pub(crate) fn clocks() -> bool {
    Path::new(FAKETIME).exists()
}

pub(crate) struct Node {
    /// Its host.
    pub(crate) name: String,
    /// What the cluster calls it: a machine that joins in place of one that is lost has a name of
    /// its own.
    pub(crate) member: String,
    /// How it joins, until it has: the same words go on where it stopped.
    pub(super) joins: Option<Vec<String>>,
    pub(crate) process: Option<Process>,
    pub(crate) paused: bool,
    /// It has limits, another clock or another program until it is started again.
    pub(crate) odd: bool,
    /// It may end by itself.
    pub(crate) may_end: bool,
    /// Words before the program, and variables.
    pub(crate) before: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) program: Option<PathBuf>,
    /// It is one of the test program, with this in it.
    pub(crate) planted: Option<&'static str>,
    pub(crate) started: Instant,
}

impl Node {
    pub(super) fn new(name: String) -> Node {
        Node {
            member: name.clone(),
            joins: None,
            name,
            process: None,
            paused: false,
            odd: false,
            may_end: false,
            before: Vec::new(),
            variables: Vec::new(),
            program: None,
            planted: None,
            started: Instant::now(),
        }
    }
}

pub(crate) struct Stage {
    pub(crate) lab: Lab,
    pub(crate) draw: Draw,
    pub(crate) tools: Tools,
    pub(crate) dice: Dice,
    pub(crate) nodes: Vec<Node>,
    pub(crate) workers: Vec<Worker>,
    /// Workers that were killed: nobody knows how their last claims ended.
    pub(crate) killed: Vec<String>,
    /// What happened to hosts, and when.
    pub(crate) events: Vec<(u64, String)>,
    /// The nodes that a fault has chosen, so that it stays with them.
    pub(crate) chosen: Vec<usize>,
    pub(crate) epoch: u32,
    /// Files of nodes are changed while they run, and perhaps while they start.
    pub(crate) files_change: bool,
    /// Where the certificates are that count, on the host of the onlooker.
    pub(crate) authority: &'static str,
    /// Nodes with certificates that expire; members that drain, and that are none any more.
    pub(super) brief: Vec<usize>,
    pub(super) drained: Option<usize>,
    pub(super) gone: Vec<usize>,
    /// How many machines joined under names that nobody had.
    pub(super) joined: usize,
    pub(super) strangers: Vec<Process>,
    /// How many crews there were.
    pub(super) count: usize,
    pub(super) looker: Option<Worker>,
}

/// The clock of histories, to a hundredth of a second.
pub(crate) fn now() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    (seconds.unwrap_or(0.0) * 1e9) as u64
}

impl Stage {
    pub(crate) fn new(draw: Draw, tools: Tools) -> Outcome<Stage> {
        let names: Vec<String> = (0..draw.hosts).map(|number| format!("n{number}")).collect();
        let joins: usize = draw.faults.iter().map(|fault| fault.joins).sum();
        let later: Vec<String> = (0..joins).map(|number| format!("m{number}")).collect();
        let hosts = names.iter().chain(&later).map(String::as_str);
        let all: Vec<&str> = hosts.chain(OTHERS).collect();
        let lab = Lab::new(&all)?;
        let mut stage = Stage {
            lab,
            dice: Dice::new(draw.seed ^ 0x5eed),
            draw,
            tools,
            nodes: names.into_iter().map(Node::new).collect(),
            workers: Vec::new(),
            killed: Vec::new(),
            events: Vec::new(),
            chosen: Vec::new(),
            epoch: 1,
            files_change: false,
            authority: "certs",
            brief: Vec::new(),
            drained: None,
            gone: Vec::new(),
            joined: 0,
            strangers: Vec::new(),
            count: 0,
            looker: None,
        };
        stage.prepare()?;
        Ok(stage)
    }

    fn prepare(&mut self) -> Outcome {
        let eye = self.lab.host("eye").clone();
        eye.write("client.py", include_str!("client.py"))?;
        eye.write("onlooker.py", include_str!("onlooker.py"))?;
        for number in 0..self.nodes.len() {
            self.furnish(number)?;
        }
        if self.draw.protocol == Protocol::Grown {
            self.grow()?;
        } else {
            self.write_files()?;
        }
        if let Some(far) = self.draw.apart {
            for a in 0..self.nodes.len() {
                for b in 0..a {
                    let (a, b) = (self.nodes[a].name.clone(), self.nodes[b].name.clone());
                    self.lab.slow(&a, &b, far)?;
                }
            }
        }
        for number in 0..self.nodes.len() {
            self.start(number)?;
        }
        self.until_ready()
    }

    /// A host gets a directory for its node, on a small disk of its own if faults play with disks.
    pub(super) fn furnish(&self, number: usize) -> Outcome {
        let data = self.host(number).folder.join("data");
        fs::create_dir_all(&data).map_err(|error| error.to_string())?;
        if self.draw.faults.iter().any(|fault| fault.disk) {
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &format!("size={DISK}"), "quorate-campaign"]);
            net::done(mount.arg(data))?;
        }
        Ok(())
    }

    /// What clients show.
    pub(super) fn show(&self, token: &str) -> Outcome {
        let eye = self.lab.host("eye");
        eye.write("token", token)?;
        eye.write("header", format!("Authorization: Bearer {}\n", token.trim()))
    }

    pub(crate) fn host(&self, number: usize) -> &Host {
        self.lab.host(&self.nodes[number].name)
    }

    /// Says when something happened.
    pub(crate) fn note(&mut self, what: String) {
        self.events.push((now(), what));
    }

    // Nodes.

    pub(crate) fn start(&mut self, number: usize) -> Outcome {
        if self.nodes[number].process.is_some() {
            return Ok(());
        }
        let host = self.host(number).clone();
        let node = &self.nodes[number];
        let program = node.program.as_ref().unwrap_or(&self.tools.program).display().to_string();
        if let Some(words) = self.joining(number) {
            return self.start_with(number, words);
        }
        let config = host.folder.join(self.file()).display().to_string();
        let words = match (node.planted.or(self.tools.node_bug), &self.tools.real) {
            (Some(bug), Some(real)) => {
                vec![real.display().to_string(), "node".into(), bug.into(), config]
            }
            _ => vec![program, "serve".into(), "--config".into(), config],
        };
        self.start_with(number, words)
    }

    /// A process of a node, with these words.
    pub(super) fn start_with(&mut self, number: usize, words: Vec<String>) -> Outcome {
        let (host, node) = (self.host(number).clone(), &self.nodes[number]);
        let words: Vec<String> = node.before.iter().cloned().chain(words).collect();
        let log = append(&host.folder.join("node.log"))?;
        let mut command = host.command(&words[0]);
        command.args(&words[1..]).envs(node.variables.iter().cloned());
        let process = net::start(command.stdout(Stdio::null()).stderr(log))?;
        let node = &mut self.nodes[number];
        node.process = Some(process);
        node.started = Instant::now();
        node.paused = false;
        let name = node.name.clone();
        self.note(format!("{name} starts"));
        Ok(())
    }

    pub(crate) fn kill(&mut self, number: usize) -> Outcome {
        let node = &mut self.nodes[number];
        node.paused = false;
        if node.process.take().is_some() {
            let name = node.name.clone();
            self.note(format!("{name} is killed"));
        }
        Ok(())
    }

    /// In good order.
    pub(crate) fn stop(&mut self, number: usize) -> Outcome {
        self.resume(number)?;
        let Some(mut process) = self.nodes[number].process.take() else { return Ok(()) };
        let name = self.nodes[number].name.clone();
        self.note(format!("{name} is stopped"));
        process.signal("TERM")?;
        net::until(&format!("{name} stops when it is told to"), || process.has_ended())
    }

    pub(crate) fn restart(&mut self, number: usize) -> Outcome {
        self.kill(number)?;
        self.start(number)
    }

    pub(crate) fn pause(&mut self, number: usize) -> Outcome {
        let node = &mut self.nodes[number];
        let Some(process) = node.process.as_ref().filter(|_| !node.paused) else { return Ok(()) };
        process.signal("STOP")?;
        node.paused = true;
        let name = node.name.clone();
        self.note(format!("{name} stands still"));
        Ok(())
    }

    pub(crate) fn resume(&mut self, number: usize) -> Outcome {
        let node = &mut self.nodes[number];
        let Some(process) = node.process.as_ref().filter(|_| node.paused) else { return Ok(()) };
        process.signal("CONT")?;
        node.paused = false;
        let name = node.name.clone();
        self.note(format!("{name} goes on"));
        Ok(())
    }

    /// Limits a running node by prlimit.
    pub(crate) fn limit(&mut self, number: usize, what: &str) -> Outcome {
        let Some(id) = self.nodes[number].process.as_ref().map(Process::id) else { return Ok(()) };
        self.nodes[number].odd = true;
        self.nodes[number].may_end = true;
        net::done(Command::new("prlimit").args(["--pid", &id.to_string(), what]))
    }

    pub(crate) fn signal(&self, number: usize, name: &str) -> Outcome {
        let node = &self.nodes[number];
        // Those of the test program know nothing of it.
        if name == "HUP" && node.planted.or(self.tools.node_bug).is_some() {
            return Ok(());
        }
        node.process.as_ref().map_or(Ok(()), |process| process.signal(name))
    }

    /// The node that decides in the pool of the crews, or any.
    pub(crate) fn decider(&mut self) -> usize {
        let any = self.dice.index(self.nodes.len());
        let shown = (0..self.nodes.len())
            .find_map(|number| Json::parse(&self.ask(number, &format!("/v1/pools/{POOL}")).ok()?));
        let name = shown.and_then(|pool| match pool.get("needs").list() {
            [needed] => Some(needed.text().to_owned()),
            _ => {
                let mut facts = pool.get("facts").list().iter();
                let said = facts.find(|fact| fact.get("name").text() == "decides")?;
                Some(said.get("node").text().to_owned())
            }
        });
        self.nodes.iter().position(|node| Some(&node.member) == name.as_ref()).unwrap_or(any)
    }

    /// The node that would decide at once without the one that does, or any.
    pub(crate) fn shadow(&mut self) -> usize {
        let any = self.dice.index(self.nodes.len());
        let name = (0..self.nodes.len()).find_map(|number| {
            let shown = Json::parse(&self.ask(number, &format!("/v1/pools/{POOL}")).ok()?)?;
            Some(shown.get("seat").get("shadow").text().to_owned()).filter(|it| !it.is_empty())
        });
        self.nodes.iter().position(|node| Some(&node.member) == name.as_ref()).unwrap_or(any)
    }

    /// The node that leads the charter, or any.
    pub(crate) fn leader(&mut self) -> usize {
        let any = self.dice.index(self.nodes.len());
        let name = (0..self.nodes.len()).find_map(|number| {
            let shown = Json::parse(&self.ask(number, "/v1/node").ok()?)?;
            Some(shown.get("charter").get("leader").text().to_owned()).filter(|it| !it.is_empty())
        });
        self.nodes.iter().position(|node| Some(&node.member) == name.as_ref()).unwrap_or(any)
    }

    /// So many nodes, which stay the same ones until all is healed.
    pub(crate) fn some(&mut self, count: usize) -> Vec<usize> {
        while self.chosen.len() < count.min(self.nodes.len()) {
            let one = self.dice.index(self.nodes.len());
            if !self.chosen.contains(&one) {
                self.chosen.push(one);
            }
        }
        self.chosen[..count.min(self.nodes.len())].to_vec()
    }

    /// What a node answers to its own machine.
    pub(crate) fn ask(&self, number: usize, path: &str) -> Outcome<String> {
        let host = self.host(number);
        let header = self.lab.host("eye").folder.join("header");
        let mut curl = host.command("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "3", "--cacert"]);
        curl.arg(host.folder.join("etc/ca.crt")).arg("-H").arg(format!("@{}", header.display()));
        net::fine(curl.arg(format!("https://{}:7420{path}", host.address)))
    }

    /// Waits until every node says that it can grant, and is connected to all others.
    pub(crate) fn until_ready(&mut self) -> Outcome {
        let began = Instant::now();
        for number in 0..self.nodes.len() {
            loop {
                let connected = self.ask(number, "/v1/node").map_or(0, |shown| {
                    let shown: String = shown.split_whitespace().collect();
                    shown.matches("\"connected\":true").count()
                });
                if connected + 1 == self.nodes.len()
                    && self.ask(number, &format!("/readyz/pools/{PROBE}")).is_ok()
                    && self.ask(number, "/readyz").is_ok()
                {
                    break;
                }
                self.check_alive()?;
                if began.elapsed() > RECOVERY {
                    let shown = self.ask(number, "/readyz?verbose").unwrap_or_else(|why| why);
                    return Err(format!(
                        "READINESS: {} s after the faults ended {} is not ready: {shown}",
                        RECOVERY.as_secs(),
                        self.nodes[number].name
                    ));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    }

    /// That no node ended by itself.
    pub(crate) fn check_alive(&mut self) -> Outcome {
        for node in &mut self.nodes {
            let ended = node.process.as_mut().is_some_and(Process::has_ended);
            // Started while its file is being changed, it has nothing to fall back on.
            let early = self.files_change && node.started.elapsed() < Duration::from_secs(3);
            if ended && !node.may_end && !early {
                return Err(format!("NODE ENDED: {} ended by itself", node.name));
            }
            if ended {
                node.process = None;
            }
        }
        Ok(())
    }

    /// Undoes what faults did.
    pub(crate) fn heal(&mut self) -> Outcome {
        self.strangers.clear();
        if self.draw.apart.is_none() {
            self.lab.heal()?;
        }
        for number in 0..self.workers.len() {
            self.pause_worker(number, false)?;
        }
        for number in 0..self.nodes.len() {
            self.resume(number)?;
            let data = self.host(number).folder.join("data");
            if self.draw.faults.iter().any(|fault| fault.disk) {
                net::done(Command::new("mount").args(["-o", "remount,rw"]).arg(&data))?;
                let _ = fs::remove_file(data.join("filler"));
            }
        }
        self.check_alive()?;
        for number in std::mem::take(&mut self.brief) {
            self.certify(number)?;
        }
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            if node.odd {
                node.odd = false;
                node.planted = None;
                node.before.clear();
                node.variables.clear();
                self.kill(number)?;
            }
            if !self.gone.contains(&number) {
                self.start(number)?;
            }
        }
        self.restore_members()?;
        self.chosen.clear();
        self.note("all is healed".into());
        Ok(())
    }
}

/// How long after the faults every node has to be ready, and everybody served: leases of at most
/// 3 s, a wait of up to a minute where a directory was lost, and a slow machine.
pub(crate) const RECOVERY: Duration = Duration::from_secs(100);

pub(super) fn append(file: &Path) -> Outcome<fs::File> {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened.map_err(|error| format!("cannot write {}: {error}", file.display()))
}
