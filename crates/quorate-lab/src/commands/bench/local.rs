//! A cluster for measuring: real sockets, and nodes that are processes of their own unless asked
//! otherwise.

use std::fs::DirBuilder;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener as Reserved};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail, ensure};
use quorate_client::Tls;
use quorate_node::{Config, Node};
use quorate_trust::{Authority, Lifetime};

use super::usage::{self, Usage};
use crate::Outcome;

/// The pools that a measurement uses; a cluster named with `--server` must have them too.
const POOLS: [(&str, &str, u32); 3] =
    [("pattern", "bench-own-*", 1), ("name", "bench-shared", 8), ("pattern", "bench-many-*", 1)];

/// What kind of cluster.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) nodes: usize,
    pub(super) protocol: String,
    /// Lines for every pool.
    pub(super) options: Vec<String>,
    /// Grants are on disk before they are told.
    pub(super) durable: bool,
    pub(super) tls: bool,
    /// All nodes in this process.
    pub(super) together: bool,
    /// Other limits than those of any node.
    pub(super) limits: Option<String>,
}

/// A cluster that is there, how it is reached, and whom to trust.
pub(super) struct Cluster {
    nodes: Nodes,
    pub(super) servers: Vec<String>,
    pub(super) tls: Option<Tls>,
    /// As long as the nodes run.
    _folder: Folder,
}

enum Nodes {
    Here(Vec<Node>),
    Apart(Vec<Process>),
}

impl Cluster {
    /// Starts it on loopback and waits until its nodes are connected.
    pub(super) async fn start(kind: &Kind) -> anyhow::Result<Cluster> {
        let folder = Folder::new()?;
        let addresses = free_addresses(kind.nodes * 2)?;
        let (clients, peers) = addresses.split_at(kind.nodes);
        let tls = if kind.tls { Some(folder.certify(kind.nodes)?) } else { None };
        let mut texts = Vec::new();
        for number in 0..kind.nodes {
            texts.push(folder.configuration(kind, number, clients, peers)?);
        }
        let nodes = match kind.together {
            true => Nodes::Here(start_here(&texts).await?),
            false => Nodes::Apart(start_apart(&folder, &texts)?),
        };
        let scheme = if kind.tls { "https://" } else { "" };
        let servers = clients.iter().map(|address| format!("{scheme}{address}")).collect();
        Ok(Cluster { nodes, servers, tls, _folder: folder })
    }

    /// What its nodes have used, if they are processes of their own.
    pub(super) fn usage(&self) -> Option<Usage> {
        let Nodes::Apart(nodes) = &self.nodes else { return None };
        let used = nodes.iter().map(|node| Usage::of(&node.child.id().to_string()));
        used.reduce(|sum, one| Some(sum? + one?))?
    }

    /// The bytes that its nodes have, if they are processes of their own.
    pub(super) fn memory(&self) -> Option<f64> {
        let Nodes::Apart(nodes) = &self.nodes else { return None };
        nodes.iter().map(|node| usage::memory(&node.child.id().to_string())).sum()
    }

    pub(super) async fn stop(self) {
        if let Nodes::Here(nodes) = self.nodes {
            for node in nodes {
                node.stop().await;
            }
        }
    }
}

/// So many that nobody listened at a moment ago.
pub(super) fn free_addresses(count: usize) -> anyhow::Result<Vec<SocketAddr>> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let reserved = (0..count).map(|_| Reserved::bind(local));
    let reserved: Vec<Reserved> = reserved.collect::<Result<_, _>>()?;
    Ok(reserved.iter().map(Reserved::local_addr).collect::<Result<_, _>>()?)
}

async fn start_here(texts: &[String]) -> anyhow::Result<Vec<Node>> {
    let mut nodes = Vec::new();
    for text in texts {
        nodes.push(start(text).await?);
    }
    for node in &nodes {
        connected(node).await?;
    }
    Ok(nodes)
}

async fn start(text: &str) -> anyhow::Result<Node> {
    let keeps = text.contains("data_dir");
    let config = if keeps { Config::parse(text) } else { Config::parse_in_memory(text) }?;
    if keeps {
        // Nobody can hold anything of a cluster that is a moment old.
        Node::init(&config)?;
    }
    Ok(Node::start(config).await?)
}

async fn connected(node: &Node) -> anyhow::Result<()> {
    loop {
        let Some(view) = node.view().await else { bail!("a node stopped at once") };
        if view.peers.iter().all(|peer| peer.connected) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A node that ends when we do: it reads from us until there is nobody to read from.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        // It has nothing to keep.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_apart(folder: &Folder, texts: &[String]) -> anyhow::Result<Vec<Process>> {
    let program = std::env::current_exe().context("this program cannot be found")?;
    let mut nodes = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        folder.write(&format!("n{number}.toml"), text)?;
        let mut child = Command::new(&program)
            .args(["bench", "node"])
            .arg(folder.0.join(format!("n{number}.toml")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("a node could not be started")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("a node without output")?;
        nodes.push(Process { child, input, output: BufReader::new(output) });
    }
    for node in &mut nodes {
        let mut said = String::new();
        node.output.read_line(&mut said)?;
        ensure!(said == READY, "a node stopped at once; nothing was measured");
    }
    Ok(nodes)
}

/// What a node of its own says when it is connected to all others.
const READY: &str = "ready\n";

/// One node, until whoever started it is gone.
#[derive(clap::Args, Debug)]
pub(crate) struct NodeArgs {
    /// Its configuration
    file: PathBuf,
}

/// Runs it, as a daemon would.
pub(super) fn run(args: &NodeArgs) -> anyhow::Result<Outcome> {
    let text = std::fs::read_to_string(&args.file)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let node = runtime.block_on(async {
        let node = start(&text).await?;
        connected(&node).await?;
        anyhow::Ok(node)
    })?;
    let mut out = std::io::stdout();
    out.write_all(READY.as_bytes())?;
    out.flush()?;
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    runtime.block_on(node.stop());
    Ok(Outcome::Good)
}

/// Files that nobody else can read, as long as the nodes need them.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> anyhow::Result<Folder> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
        let name = format!("quorate-bench-{}-{since}", std::process::id());
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder(path))
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(self.0.join(name), text)?)
    }

    /// An authority made for the occasion: nodes speak TLS with each other and with clients.
    fn certify(&self, nodes: usize) -> anyhow::Result<Tls> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let lifetime = Lifetime { since_1970: now, days: 1 };
        let made = Authority::create("bench", lifetime)?;
        let authority = Authority::from_pem(made.certificate.as_bytes(), &made.key)?;
        self.write("ca.crt", &made.certificate)?;
        for number in 0..nodes {
            let name = format!("n{number}");
            let node = authority.node(&name, &["127.0.0.1".to_owned()], lifetime)?;
            self.write(&format!("n{number}.crt"), &node.certificate)?;
            self.write(&format!("n{number}.key"), &node.key)?;
        }
        Ok(Tls::trusting(made.certificate.as_bytes())?)
    }

    fn configuration(
        &self,
        kind: &Kind,
        number: usize,
        clients: &[SocketAddr],
        peers: &[SocketAddr],
    ) -> anyhow::Result<String> {
        let (at, among) = (clients[number], peers[number]);
        let mut text = format!(
            "cluster = \"bench\"\nepoch = 1\nnode = \"n{number}\"\n\
             listen = {{ clients = \"{at}\", peers = \"{among}\" }}\n"
        );
        if let Some(limits) = &kind.limits {
            text += &format!("limits = {{ {limits} }}\n");
        }
        let within = |name: &str| -> anyhow::Result<String> { shown(&self.0.join(name)) };
        if kind.tls {
            let [cert, key] = [format!("n{number}.crt"), format!("n{number}.key")];
            let (ca, cert, key) = (within("ca.crt")?, within(&cert)?, within(&key)?);
            text += &format!("tls = {{ ca = {ca}, cert = {cert}, key = {key} }}\n");
        }
        if kind.durable {
            text += &format!("data_dir = {}\n", within(&format!("n{number}"))?);
        }
        for (number, address) in peers.iter().enumerate() {
            text += &format!("[[members]]\nname = \"n{number}\"\npeers = \"{address}\"\n");
        }
        for (key, name, units) in POOLS {
            text += &format!("[[pools]]\n{key} = \"{name}\"\nunits = {units}\n");
            text += &format!("protocol = \"{}\"\n", kind.protocol);
            if kind.durable {
                text += "durable = true\n";
            }
            for option in &kind.options {
                text += option;
                text.push('\n');
            }
        }
        Ok(text)
    }
}

/// A path as TOML writes it: as JSON does.
fn shown(path: &Path) -> anyhow::Result<String> {
    let path = path.to_str().context("the directory for temporary files has an odd name")?;
    Ok(serde_json::Value::from(path).to_string())
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
