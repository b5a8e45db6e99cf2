//! A cluster inside this process, for measuring: real sockets, nothing kept on disk.

use std::fs::DirBuilder;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use quorate_client::Tls;
use quorate_node::{Config, Node};
use quorate_trust::{Authority, Lifetime};
use tokio::net::TcpListener;

/// The pools that a measurement uses; a cluster named with `--server` must have them too.
pub(super) const POOLS: &str = r#"
[[pools]]
pattern = "bench-own-*"
units = 1

[[pools]]
name = "bench-shared"
units = 8

[[pools]]
pattern = "bench-many-*"
units = 1
"#;

/// How nodes are reached, and whom to trust.
pub(super) struct Reached {
    pub(super) nodes: Vec<Node>,
    pub(super) servers: Vec<String>,
    pub(super) tls: Option<Tls>,
}

/// Starts so many nodes on loopback and waits until they are connected.
pub(super) async fn start(count: usize) -> anyhow::Result<Reached> {
    let nodes = start_with(count, |_| String::new()).await?;
    let servers = nodes.iter().map(|node| node.clients_address().to_string()).collect();
    Ok(Reached { nodes, servers, tls: None })
}

/// The same with an authority made for the occasion: nodes speak TLS with each other and with
/// clients.
pub(super) async fn start_encrypted(count: usize) -> anyhow::Result<Reached> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let lifetime = Lifetime { since_1970: now, days: 1 };
    let made = Authority::create("bench", lifetime)?;
    let authority = Authority::from_pem(made.certificate.as_bytes(), &made.key)?;
    let folder = Folder::new()?;
    folder.write("ca.crt", &made.certificate)?;
    for number in 0..count {
        let node = authority.node(&format!("n{number}"), &["127.0.0.1".to_owned()], lifetime)?;
        folder.write(&format!("n{number}.crt"), &node.certificate)?;
        folder.write(&format!("n{number}.key"), &node.key)?;
    }
    let shown = folder.0.display();
    let tls = |number| {
        format!(
            "tls = {{ ca = \"{shown}/ca.crt\", cert = \"{shown}/n{number}.crt\", \
             key = \"{shown}/n{number}.key\" }}\n"
        )
    };
    let nodes = start_with(count, tls).await?;
    let servers = nodes.iter().map(|node| format!("https://{}", node.clients_address())).collect();
    let tls = Some(Tls::trusting(made.certificate.as_bytes())?);
    Ok(Reached { nodes, servers, tls })
}

/// Files that nobody else can read, until the nodes have read them.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Folder> {
        let path = std::env::temp_dir().join(format!("quorate-bench-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder(path))
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(self.0.join(name), text)?)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn start_with(count: usize, more: impl Fn(usize) -> String) -> anyhow::Result<Vec<Node>> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut listeners = Vec::new();
    for _ in 0..count {
        listeners.push((TcpListener::bind(local).await?, TcpListener::bind(local).await?));
    }
    let mut members = String::new();
    for (number, (_, peers)) in listeners.iter().enumerate() {
        let address = peers.local_addr()?;
        members.push_str(&format!("[[members]]\nname = \"n{number}\"\npeers = \"{address}\"\n"));
    }
    let mut nodes = Vec::new();
    for (number, (clients, peers)) in listeners.into_iter().enumerate() {
        let (at, among) = (clients.local_addr()?, peers.local_addr()?);
        let text = format!(
            "cluster = \"bench\"\nepoch = 1\nnode = \"n{number}\"\n\
             listen = {{ clients = \"{at}\", peers = \"{among}\" }}\n{}{members}{POOLS}",
            more(number)
        );
        nodes.push(Node::start_on(Config::parse_in_memory(&text)?, clients, peers).await?);
    }
    for node in &nodes {
        loop {
            let Some(view) = node.view().await else { bail!("a node stopped at once") };
            if view.peers.iter().all(|peer| peer.connected) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    Ok(nodes)
}
