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
use tokio::sync::watch;

/// Longer than anything takes that is going to happen at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Option<Node>>,
    clients: Vec<SocketAddr>,
    peers: Vec<SocketAddr>,
    pools: String,
    data: Option<PathBuf>,
    /// Where the first node finds the others, if not directly.
    detour: Option<SocketAddr>,
    /// Where the certificates are, if they have some.
    certificates: Option<PathBuf>,
    /// What files begin with beside that.
    head: &'static str,
}

impl Cluster {
    /// Nodes in memory.
    pub(crate) async fn start(nodes: usize, pools: &str) -> Cluster {
        Cluster::start_in(None, nodes, pools, None).await
    }

    /// Nodes in memory that speak TLS, with `ca.crt`, `n0.crt`, `n0.key` and so on from there.
    pub(crate) async fn encrypted(certificates: PathBuf, nodes: usize, pools: &str) -> Cluster {
        let mut cluster = Cluster::on_listeners(None, nodes, pools, None).await;
        cluster.0.certificates = Some(certificates);
        let (mut cluster, listeners) = cluster;
        cluster.start_all(listeners).await;
        cluster
    }

    /// Nodes in memory that take nobody for gone.
    pub(crate) async fn patient(nodes: usize, pools: &str) -> Cluster {
        let (mut cluster, listeners) = Cluster::on_listeners(None, nodes, pools, None).await;
        cluster.head = "suspect_after = \"1h\"\n";
        cluster.start_all(listeners).await;
        cluster.connected().await;
        cluster
    }

    /// Two nodes in memory, and the only road between them.
    pub(crate) async fn with_a_bridge(pools: &str) -> (Cluster, Bridge) {
        let bridge = Bridge::build().await;
        let cluster = Cluster::start_in(None, 2, pools, Some(&bridge)).await;
        (cluster, bridge)
    }

    /// Nodes on disk, in a directory of this test's own.
    pub(crate) async fn on_disk(test: &str, nodes: usize, pools: &str) -> Cluster {
        let data = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&data);
        Cluster::start_in(Some(data), nodes, pools, None).await
    }

    pub(crate) async fn start_in(
        data: Option<PathBuf>,
        count: usize,
        pools: &str,
        bridge: Option<&Bridge>,
    ) -> Cluster {
        let (mut cluster, listeners) = Cluster::on_listeners(data, count, pools, bridge).await;
        cluster.start_all(listeners).await;
        cluster.connected().await;
        cluster
    }

    async fn on_listeners(
        data: Option<PathBuf>,
        count: usize,
        pools: &str,
        bridge: Option<&Bridge>,
    ) -> (Cluster, Vec<(TcpListener, TcpListener)>) {
        let mut listeners = Vec::new();
        for _ in 0..count {
            listeners.push((bind().await, bind().await));
        }
        let address = |listener: &TcpListener| listener.local_addr().unwrap();
        let cluster = Cluster {
            nodes: (0..count).map(|_| None).collect(),
            clients: listeners.iter().map(|(clients, _)| address(clients)).collect(),
            peers: listeners.iter().map(|(_, peers)| address(peers)).collect(),
            pools: pools.to_owned(),
            data,
            detour: bridge.map(|bridge| bridge.address),
            certificates: None,
            head: "",
        };
        if let Some(bridge) = bridge {
            bridge.leads_to(cluster.peers[1]);
        }
        (cluster, listeners)
    }

    async fn start_all(&mut self, listeners: Vec<(TcpListener, TcpListener)>) {
        for (place, (clients, peers)) in listeners.into_iter().enumerate() {
            let config = self.config(place, &self.pools);
            Node::init(&config).unwrap();
            self.nodes[place] = Some(Node::start_on(config, clients, peers).await.unwrap());
        }
    }

    pub(crate) fn config(&self, place: usize, pools: &str) -> Config {
        let mut text = format!(
            "cluster = \"test\"\nepoch = 1\nnode = \"n{place}\"\n\
             listen = {{ clients = \"{}\", peers = \"{}\" }}\n",
            self.clients[place], self.peers[place]
        );
        text.push_str(self.head);
        if let Some(data) = &self.data {
            let path = data.join(format!("n{place}"));
            text.push_str(&format!("data_dir = {path:?}\n"));
        }
        if let Some(folder) = &self.certificates {
            let path = |name: String| folder.join(name);
            let (ca, cert) = (path("ca.crt".into()), path(format!("n{place}.crt")));
            let key = path(format!("n{place}.key"));
            text.push_str(&format!("[tls]\nca = {ca:?}\ncert = {cert:?}\nkey = {key:?}\n"));
        }
        for (other, peers) in self.peers.iter().enumerate() {
            let there = self.detour.filter(|_| place == 0 && other == 1).unwrap_or(*peers);
            text.push_str(&format!("[[members]]\nname = \"n{other}\"\npeers = \"{there}\"\n"));
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

    /// A crashed node loses what it wrote down, and starts again knowing that it did. It keeps how
    /// often it was started: without that, it would wait until a minute begins.
    pub(crate) async fn restart_with_nothing(&mut self, place: usize) {
        let data = self.data.as_ref().expect("it wrote something down").join(format!("n{place}"));
        let boot = std::fs::read_to_string(data.join("boot")).unwrap();
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::create_dir(&data).unwrap();
        let other = |line: &str| match line.starts_with("digest ") {
            true => "digest 0".to_owned(),
            false => line.to_owned(),
        };
        let boot: Vec<String> = boot.lines().map(other).collect();
        std::fs::write(data.join("boot"), boot.join("\n")).unwrap();
        self.restart(place, None).await;
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

    /// The headers of an answer.
    pub(crate) async fn head(&self, place: usize, what: &str) -> String {
        let answer = raw(self.clients[place], what, "").await;
        answer.split_once("\r\n\r\n").map(|(head, _)| head.to_owned()).unwrap_or_default()
    }

    pub(crate) async fn text(&self, place: usize, what: &str) -> (u16, String) {
        exchange(self.clients[place], what, "").await
    }
}

/// A road between two nodes that can be cut.
pub(crate) struct Bridge {
    address: SocketAddr,
    state: watch::Sender<Road>,
}

#[derive(Clone, Copy, Default)]
struct Road {
    to: Option<SocketAddr>,
    cut: bool,
    /// How often it was cut: connections of an earlier count are gone.
    cuts: u32,
    /// Connections are there, and nothing passes.
    still: bool,
}

impl Bridge {
    pub(crate) async fn build() -> Bridge {
        let listener = bind().await;
        let address = listener.local_addr().unwrap();
        let (state, road) = watch::channel(Road::default());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let mut road = road.clone();
                let now = *road.borrow();
                let Some(to) = now.to.filter(|_| !now.cut) else { continue };
                tokio::spawn(async move {
                    let (mut near, mut far) = (near, TcpStream::connect(to).await.unwrap());
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = road.wait_for(|road| road.still || road.cuts != now.cuts) => {}
                    }
                    // Nothing passes any more, and neither side is told.
                    let _ = road.wait_for(|road| road.cuts != now.cuts).await;
                });
            }
        });
        Bridge { address, state }
    }

    fn leads_to(&self, to: SocketAddr) {
        self.state.send_modify(|road| road.to = Some(to));
    }

    pub(crate) fn cut(&self) {
        self.state.send_modify(|road| (road.cut, road.cuts) = (true, road.cuts + 1));
    }

    /// Nothing passes, and nobody is told, for as long as there are the same connections.
    pub(crate) fn stand_still(&self) {
        self.state.send_modify(|road| road.still = true);
    }

    pub(crate) fn mend(&self) {
        self.state.send_modify(|road| (road.cut, road.still) = (false, false));
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

pub(crate) async fn exchange(address: SocketAddr, what: &str, body: &str) -> (u16, String) {
    let answer = raw(address, what, body).await;
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap();
    let text = answer.split_once("\r\n\r\n").map(|(_, text)| text).unwrap_or_default();
    (status, text.to_owned())
}

async fn raw(address: SocketAddr, what: &str, body: &str) -> String {
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
    String::from_utf8(answer).unwrap()
}
