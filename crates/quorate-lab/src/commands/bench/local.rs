//! A cluster inside this process, for measuring: real sockets, nothing kept on disk.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::bail;
use quorate_node::{Config, Node};
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

/// Starts so many nodes on loopback and waits until they are connected.
pub(super) async fn start(count: usize) -> anyhow::Result<Vec<Node>> {
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
             listen = {{ clients = \"{at}\", peers = \"{among}\" }}\n{members}{POOLS}"
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
