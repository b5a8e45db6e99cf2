//! What is compared, and how each is started: on loopback, in a directory of its own, and gone when
//! it was measured.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use quorate_client::Client;

use super::super::local::{self, Folder, Kind, free_addresses};
use super::super::usage::Usage;
use super::client::One;

/// How long a system may take until it serves.
const PATIENCE: Duration = Duration::from_secs(60);

/// One system as it is configured here. The names are those of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum System {
    /// 64-byte requests and answers, nothing decided
    Raw,
    /// Redis, nothing on disk; a script gives back
    Redis,
    /// Redis, nothing on disk; a bare DEL gives back
    RedisDel,
    /// Redis, on disk before it answers
    RedisFsync,
    /// Three of etcd, its lock service
    Etcd,
    /// Three of etcd, a transaction and a delete
    EtcdTxn,
    /// Three of ZooKeeper, an ephemeral node
    Zookeeper,
    /// One node of Quorate
    Quorate1,
    /// One node, 64 claims over 4 connections
    Quorate1Shared,
    /// One node, on disk before it answers
    Quorate1Durable,
    /// Three nodes
    Quorate3,
    /// Three nodes, on disk before they answer
    Quorate3Durable,
    /// Three nodes, one pool of 8 units for all
    Quorate3One,
    /// Three nodes, protocol ring
    Ring,
    /// Three nodes, protocol arbiter with units that have names
    Arbiter,
    /// The same, on disk before they answer
    ArbiterDurable,
    /// Three nodes, protocol table
    Table,
}

impl System {
    /// For the table.
    pub(super) fn told(self) -> &'static str {
        match self {
            System::Raw => "raw limit: the same pairs, nothing decided",
            System::Redis => "Redis ×1, nothing on disk, given back by its script",
            System::RedisDel => "Redis ×1, nothing on disk, given back by a bare DEL",
            System::RedisFsync => "Redis ×1, fsync always, script",
            System::Etcd => "etcd ×3, its lock service",
            System::EtcdTxn => "etcd ×3, transaction and delete",
            System::Zookeeper => "ZooKeeper ×3, ephemeral node",
            System::Quorate1 => "Quorate ×1 `central`",
            System::Quorate1Shared => "the same, clients share 4 connections",
            System::Quorate1Durable => "Quorate ×1 `central` durable",
            System::Quorate3 => "Quorate ×3 `central`",
            System::Quorate3Durable => "Quorate ×3 `central` durable",
            System::Quorate3One => "Quorate ×3 `central`, one pool of 8",
            System::Ring => "Quorate ×3 `ring`",
            System::Arbiter => "Quorate ×3 `arbiter` named",
            System::ArbiterDurable => "Quorate ×3 `arbiter` named, durable",
            System::Table => "Quorate ×3 `table`",
        }
    }

    /// What it is made of, if it is Quorate.
    fn kind(self) -> Option<Kind> {
        let (nodes, protocol, durable) = match self {
            System::Quorate1 | System::Quorate1Shared => (1, "central", false),
            System::Quorate1Durable => (1, "central", true),
            System::Quorate3 | System::Quorate3One => (3, "central", false),
            System::Quorate3Durable => (3, "central", true),
            System::Ring => (3, "ring", false),
            System::Arbiter => (3, "arbiter", false),
            System::ArbiterDurable => (3, "arbiter", true),
            System::Table => (3, "table", false),
            _ => return None,
        };
        let options = match protocol {
            "arbiter" => vec!["mode = \"named\"".to_owned()],
            _ => Vec::new(),
        };
        let (protocol, tls, together) = (protocol.to_owned(), false, false);
        Some(Kind { nodes, protocol, options, durable, tls, together, limits: None })
    }

    /// Starts it and waits until it serves.
    pub(super) async fn start(self) -> anyhow::Result<Running> {
        if let Some(kind) = self.kind() {
            return Ok(Running::Ours(local::Cluster::start(&kind).await?, self));
        }
        let folder = Folder::new()?;
        let (processes, addresses) = match self {
            System::Raw => echo()?,
            System::Redis | System::RedisDel => redis(&folder, false)?,
            System::RedisFsync => redis(&folder, true)?,
            System::Etcd | System::EtcdTxn => etcd(&folder)?,
            _ => zookeeper(&folder)?,
        };
        let mut running = Running::Theirs { system: self, processes, addresses, _folder: folder };
        let until = Instant::now() + PATIENCE;
        while let Err(error) = running.first().await {
            if let Some(ended) = running.ended() {
                bail!("{self:?} ended at once: {ended}");
            }
            if Instant::now() > until {
                return Err(error.context(format!("{self:?} does not serve")));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(running)
    }
}

/// A system that is there, and ends with this value.
pub(super) enum Running {
    Theirs {
        system: System,
        processes: Vec<Process>,
        addresses: Vec<SocketAddr>,
        /// As long as the processes run.
        _folder: Folder,
    },
    Ours(local::Cluster, System),
}

impl Running {
    /// So many clients, each with a lock of its own.
    pub(super) async fn clients(&self, count: usize) -> anyhow::Result<Vec<One>> {
        let mut clients = Vec::new();
        match self {
            Running::Theirs { system, addresses, .. } => {
                for (number, address) in (0..count).zip(addresses.iter().cycle()) {
                    clients.push(One::connect(*system, *address, number).await?);
                }
            }
            Running::Ours(cluster, system) => {
                let shared = *system == System::Quorate1Shared;
                let connections = if shared { count.min(4) } else { count };
                let mut connected = Vec::new();
                for _ in 0..connections {
                    connected.push(Client::connect(&cluster.servers).await?);
                }
                for (number, client) in (0..count).zip(connected.iter().cycle()) {
                    let pool = match system {
                        System::Quorate3One => client.pool("bench-shared"),
                        _ => client.pool(format!("bench-own-{number}")),
                    };
                    clients.push(One::Quorate(pool, None));
                }
            }
        }
        Ok(clients)
    }

    /// What its processes have used.
    pub(super) fn usage(&self) -> Option<Usage> {
        match self {
            Running::Theirs { processes, .. } => {
                let used = processes.iter().map(|it| Usage::of(&it.0.id().to_string()));
                used.reduce(|sum, one| Some(sum? + one?))?
            }
            Running::Ours(cluster, _) => cluster.usage(),
        }
    }

    pub(super) async fn stop(self) {
        if let Running::Ours(cluster, _) = self {
            cluster.stop().await;
        }
    }

    /// One whole cycle at each member.
    async fn first(&self) -> anyhow::Result<()> {
        let Running::Theirs { addresses, .. } = self else { return Ok(()) };
        for client in &mut self.clients(addresses.len()).await? {
            client.acquire().await?;
            client.release().await?;
        }
        Ok(())
    }

    /// What a process left that is gone already.
    fn ended(&mut self) -> Option<String> {
        let Running::Theirs { processes, .. } = self else { return None };
        processes.iter_mut().find_map(|it| Some(it.0.try_wait().ok()??.to_string()))
    }
}

/// It has nothing to keep.
pub(super) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

type Started = anyhow::Result<(Vec<Process>, Vec<SocketAddr>)>;

fn spawn(command: &mut Command, log: &Path) -> anyhow::Result<Process> {
    let output = File::create(log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| {
        format!(
            "{program} is not there; `cargo xtask peers` installs it, and --systems leaves it out"
        )
    })?;
    Ok(Process(child))
}

fn echo() -> Started {
    let program = std::env::current_exe().context("this program cannot be found")?;
    let mut command = Command::new(program);
    command.args(["bench", "echo"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let output = child.stdout.take().context("no output")?;
    let process = Process(child);
    let mut said = String::new();
    BufReader::new(output).read_line(&mut said)?;
    Ok((vec![process], vec![said.trim().parse()?]))
}

fn redis(folder: &Folder, durable: bool) -> Started {
    let addresses = free_addresses(1)?;
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &addresses[0].port().to_string()]);
    command.args(["--save", "", "--daemonize", "no"]).arg("--dir").arg(&folder.0);
    if durable {
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
    }
    Ok((vec![spawn(&mut command, &folder.0.join("log"))?], addresses))
}

fn etcd(folder: &Folder) -> Started {
    let addresses = free_addresses(6)?;
    let (clients, peers) = addresses.split_at(3);
    let member = |(number, at): (usize, &SocketAddr)| format!("m{number}=http://{at}");
    let all = peers.iter().enumerate().map(member).collect::<Vec<_>>().join(",");
    let mut processes = Vec::new();
    for (number, (client, peer)) in clients.iter().zip(peers).enumerate() {
        let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
        let name = format!("m{number}");
        let mut command = Command::new("etcd");
        command.args(["--name", &name, "--log-level", "error", "--initial-cluster", &all]);
        command.arg("--data-dir").arg(folder.0.join(&name));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        processes.push(spawn(&mut command, &folder.0.join(format!("{name}.log")))?);
    }
    Ok((processes, clients.to_vec()))
}

fn zookeeper(folder: &Folder) -> Started {
    let addresses = free_addresses(9)?;
    let (clients, peers) = addresses.split_at(3);
    let mut members = String::new();
    for (number, ports) in (1..).zip(peers.chunks(2)) {
        let (quorum, election) = (ports[0], ports[1].port());
        members += &format!("server.{number}={quorum}:{election}\n");
    }
    let mut processes = Vec::new();
    for (number, client) in (1..).zip(clients) {
        let data = folder.0.join(format!("z{number}"));
        std::fs::create_dir(&data)?;
        std::fs::write(data.join("myid"), number.to_string())?;
        let file = folder.0.join(format!("z{number}.cfg"));
        let text = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\nmaxClientCnxns=0\nadmin.enableServer=false\n\
             dataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\n{members}",
            data.display(),
            client.port()
        );
        std::fs::write(&file, text)?;
        let mut command = Command::new("java");
        command.args(["-Xmx512m", "-cp", "/usr/share/java/zookeeper.jar"]);
        command.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(&file);
        processes.push(spawn(&mut command, &folder.0.join(format!("z{number}.log")))?);
    }
    Ok((processes, clients.to_vec()))
}
