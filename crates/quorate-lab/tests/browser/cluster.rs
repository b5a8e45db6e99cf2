//! A cluster inside the test, whose nodes can be killed and started again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_node::{Config, Node};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::driver::http;
use crate::ports::free_address;

pub(crate) struct Cluster {
    runtime: Runtime,
    nodes: Vec<Option<Node>>,
    clients: Vec<SocketAddr>,
    peers: Vec<SocketAddr>,
    data: PathBuf,
    /// What stands at the top of the configuration, and the pools at its end.
    top: String,
    pools: String,
}

impl Cluster {
    pub(crate) fn start(test: &str, nodes: usize, top: &str, pools: &str) -> Cluster {
        let runtime = Runtime::new().expect("a runtime");
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{test}"));
        let _ = std::fs::remove_dir_all(&data);
        let addresses = || (0..nodes).map(|_| free_address()).collect();
        let (clients, peers) = (addresses(), addresses());
        let (top, pools) = (top.to_owned(), pools.to_owned());
        let nodes = (0..nodes).map(|_| None).collect();
        let mut cluster = Cluster { runtime, nodes, clients, peers, data, top, pools };
        for node in 0..cluster.nodes.len() {
            Node::init(&cluster.config(node)).expect("an empty directory");
            cluster.revive(node);
        }
        cluster.until(0, "/v1/overview", |view| {
            let nodes = view["nodes"].as_array().expect("nodes");
            nodes.iter().all(|node| node["ready"] == true)
        });
        cluster
    }

    fn config(&self, node: usize) -> Config {
        let mut text = format!(
            "cluster = \"fleet\"\nepoch = 1\nnode = \"n{}\"\n\
             data_dir = {:?}\n{}\n\
             listen = {{ clients = \"{}\", peers = \"{}\" }}\n",
            node + 1,
            self.data.join(format!("n{}", node + 1)),
            self.top,
            self.clients[node],
            self.peers[node]
        );
        for (other, peers) in self.peers.iter().enumerate() {
            text.push_str(&format!(
                "[[members]]\nname = \"n{}\"\npeers = \"{peers}\"\n",
                other + 1
            ));
        }
        text.push_str(&self.pools);
        Config::parse(&text).expect("a good configuration")
    }

    /// Starts a node, for the first time or again.
    pub(crate) fn revive(&mut self, node: usize) {
        let config = self.config(node);
        let started = self.runtime.block_on(async {
            for _ in 0..600 {
                match Node::start(config.clone()).await {
                    Ok(node) => return node,
                    // A port that was just closed may take a moment to be free.
                    Err(error) => assert!(error.to_string().contains("cannot listen"), "{error}"),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("the port does not become free");
        });
        self.nodes[node] = Some(started);
    }

    /// Ends a node as a crash would.
    pub(crate) fn kill(&mut self, node: usize) {
        let killed = self.nodes[node].take().expect("it runs");
        self.runtime.block_on(killed.crash());
    }

    /// A node that is not running forgets how often it was started, and believes this instead.
    pub(crate) fn count_starts(&self, node: usize, starts: u32) {
        let file = self.data.join(format!("n{}/boot", node + 1));
        let text = std::fs::read_to_string(&file).expect("a node that was started before");
        let rest = text.split_once('\n').expect("several lines").1;
        std::fs::write(&file, format!("boot {starts}\n{rest}")).expect("a file to write");
    }

    pub(crate) fn url(&self, node: usize) -> String {
        format!("http://{}/", self.clients[node])
    }

    pub(crate) fn ask(&self, node: usize, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = http(self.clients[node].port(), method, path, &body);
        (status, serde_json::from_str(&text).expect("JSON"))
    }

    pub(crate) fn claim(&self, node: usize, pool: &str, id: u64, units: u32, who: &str, why: &str) {
        let body = json!({"units": units, "client": who, "reason": why});
        let path = format!("/v1/pools/{pool}/claims/{id}?wait=200ms");
        let (status, answer) = self.ask(node, "PUT", &path, &body);
        assert!(status == 200 || status == 202, "{answer}");
    }

    pub(crate) fn release(&self, node: usize, pool: &str, id: u64) {
        let path = format!("/v1/pools/{pool}/claims/{id}");
        let (status, answer) = self.ask(node, "DELETE", &path, &Value::Null);
        assert_eq!(status, 200, "{answer}");
    }

    /// Waits until an answer of a node is as it should be.
    pub(crate) fn until(&self, node: usize, path: &str, so: impl Fn(&Value) -> bool) {
        for _ in 0..1200 {
            if so(&self.ask(node, "GET", path, &Value::Null).1) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("in vain: {path}");
    }
}
