//! A cluster on loopback sockets inside the test, and a client that speaks plain HTTP to it.
//! Tests wait for conditions, never for times.

#![allow(dead_code, reason = "every test uses its own part of this")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use quorate_node::{Config, Node};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything takes that is going to happen at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Option<Node>>,
    clients: Vec<SocketAddr>,
    peers: Vec<SocketAddr>,
    pools: String,
    data: Option<PathBuf>,
}

impl Cluster {
    /// Nodes in memory.
    pub(crate) async fn start(nodes: usize, pools: &str) -> Cluster {
        Cluster::start_in(None, nodes, pools).await
    }

    /// Nodes on disk, in a directory of this test's own.
    pub(crate) async fn on_disk(test: &str, nodes: usize, pools: &str) -> Cluster {
        let data = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&data);
        Cluster::start_in(Some(data), nodes, pools).await
    }

    async fn start_in(data: Option<PathBuf>, count: usize, pools: &str) -> Cluster {
        let mut listeners = Vec::new();
        for _ in 0..count {
            listeners.push((bind().await, bind().await));
        }
        let address = |listener: &TcpListener| listener.local_addr().unwrap();
        let mut cluster = Cluster {
            nodes: (0..count).map(|_| None).collect(),
            clients: listeners.iter().map(|(clients, _)| address(clients)).collect(),
            peers: listeners.iter().map(|(_, peers)| address(peers)).collect(),
            pools: pools.to_owned(),
            data,
        };
        for (place, (clients, peers)) in listeners.into_iter().enumerate() {
            let config = cluster.config(place, pools);
            cluster.nodes[place] = Some(Node::start_on(config, clients, peers).await.unwrap());
        }
        cluster.connected().await;
        cluster
    }

    fn config(&self, place: usize, pools: &str) -> Config {
        let mut text = format!(
            "cluster = \"test\"\nepoch = 1\nnode = \"n{place}\"\nbootstrap = true\n\
             listen = {{ clients = \"{}\", peers = \"{}\" }}\n",
            self.clients[place], self.peers[place]
        );
        if let Some(data) = &self.data {
            let path = data.join(format!("n{place}"));
            text.push_str(&format!("data_dir = {path:?}\n"));
        }
        for (place, peers) in self.peers.iter().enumerate() {
            text.push_str(&format!("[[members]]\nname = \"n{place}\"\npeers = \"{peers}\"\n"));
        }
        text.push_str(pools);
        match self.data {
            Some(_) => Config::parse(&text).unwrap(),
            None => Config::parse_in_memory(&text).unwrap(),
        }
    }

    /// A node starts again, perhaps with other pools.
    pub(crate) async fn restart(&mut self, place: usize, pools: Option<&str>) {
        let config = self.config(place, pools.unwrap_or(&self.pools));
        // A port that was just closed may take a moment to be free.
        for _ in 0..600 {
            match Node::start(config.clone()).await {
                Ok(node) => {
                    self.nodes[place] = Some(node);
                    return;
                }
                Err(error) => assert!(error.to_string().contains("cannot listen"), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the port does not become free");
    }

    pub(crate) async fn crash(&mut self, place: usize) {
        self.nodes[place].take().unwrap().crash().await;
    }

    pub(crate) async fn stop(&mut self, place: usize) {
        self.nodes[place].take().unwrap().stop().await;
    }

    /// Waits until all that run are connected with each other.
    pub(crate) async fn connected(&self) {
        let running = self.nodes.iter().flatten().count();
        for node in self.nodes.iter().flatten() {
            until("all are connected", || async {
                let view = node.view().await.unwrap();
                view.peers.iter().filter(|peer| peer.connected).count() + 1 == running
            })
            .await;
        }
    }

    pub(crate) fn address(&self, place: usize) -> SocketAddr {
        self.clients[place]
    }

    pub(crate) fn peers_address(&self, place: usize) -> SocketAddr {
        self.peers[place]
    }

    pub(crate) async fn request(&self, place: usize, what: &str, body: &str) -> (u16, Value) {
        request(self.clients[place], what, body).await
    }

    pub(crate) async fn text(&self, place: usize, what: &str) -> (u16, String) {
        exchange(self.clients[place], what, "").await
    }
}

async fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut so: impl FnMut() -> F) {
    let waiting = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "in vain: {what}");
}

/// `what` is a method and a path; the answer is a status and JSON.
pub(crate) async fn request(address: SocketAddr, what: &str, body: &str) -> (u16, Value) {
    let (status, text) = exchange(address, what, body).await;
    let value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{what}: {status} {text}"));
    (status, value)
}

async fn exchange(address: SocketAddr, what: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{what} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    read.expect("an answer in time").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap();
    let text = answer.split_once("\r\n\r\n").map(|(_, text)| text).unwrap_or_default();
    (status, text.to_owned())
}
