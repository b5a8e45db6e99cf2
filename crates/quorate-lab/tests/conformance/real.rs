//! The nodes' arm: a cluster on loopback sockets, and a client that speaks plain HTTP to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Bridge, Cluster, PATIENCE};
use crate::table::{Scenario, Step, as_asked};

/// How long something that should not happen gets to happen. Too short a time hides a difference;
/// it never makes one up.
const SETTLE: Duration = Duration::from_millis(150);

/// What is observed, in the order of the scenario.
pub(crate) async fn run(scenario: &Scenario, protocol: &str, pool: &str) -> Vec<(String, String)> {
    let folder = format!("conformance/{protocol}/{}", scenario.name.replace(' ', "_"));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    let bridge = Bridge::build().await;
    let data = scenario.crashes().then_some(folder);
    let cluster = Cluster::start_in(data, crate::NODES, pool, Some(&bridge)).await;
    let expected = scenario.expected(protocol);
    let mut arm = Arm { cluster, bridge, clients: BTreeMap::new(), observed: Vec::new() };
    for step in &scenario.steps {
        let wanted = expected.get(arm.observed.len()).map(|(_, state)| state.as_str());
        arm.take(step, wanted).await;
    }
    arm.observed
}

struct Arm {
    cluster: Cluster,
    bridge: Bridge,
    clients: BTreeMap<u32, Client>,
    observed: Vec<(String, String)>,
}

struct Client {
    home: usize,
    units: u32,
    selectors: Vec<String>,
    /// The status of the last answer to a claim.
    status: u16,
    /// Whether it was told to stop when it renewed.
    stopped: bool,
    /// What it was granted, as it would show it.
    receipt: Value,
}

impl Arm {
    async fn take(&mut self, step: &Step, wanted: Option<&str>) {
        match *step {
            Step::Claim { client, node, units, ref selectors } => {
                let (selectors, receipt) = (selectors.clone(), Value::Null);
                let new =
                    Client { home: node, units, selectors, status: 0, stopped: false, receipt };
                self.clients.insert(client, new);
                self.put(client).await;
            }
            Step::Again { client, node } => {
                self.client(client).home = node;
                self.put(client).await;
            }
            Step::Renew { client, node } => self.renew(client, node).await,
            Step::Release(client) | Step::Cancel(client) => {
                let home = self.client(client).home;
                let (status, answer) =
                    self.cluster.request(home, &format!("DELETE {}", path(client)), "").await;
                assert_eq!(status, 200, "{answer}");
            }
            Step::Differ { client, units } => {
                let body = format!("{{\"units\": {units}}}");
                let home = self.client(client).home;
                let what = format!("PUT {}?wait=0&detach=1h", path(client));
                let (status, answer) = self.cluster.request(home, &what, &body).await;
                let seen = if status == 409 { "conflict".into() } else { answer.to_string() };
                self.observed.push(("differ".into(), seen));
            }
            Step::Cut => self.bridge.cut(),
            Step::Heal => self.bridge.mend(),
            Step::Crash(node) => self.cluster.crash(node).await,
            Step::Restart { node, forgot: true } => self.cluster.restart_with_nothing(node).await,
            Step::Restart { node, forgot: false } => self.cluster.restart(node, None).await,
            Step::Pass => tokio::time::sleep(Duration::from_secs(3)).await,
            Step::Expect { client, .. } => {
                let seen = self.settled(client, wanted.expect("it is in the table")).await;
                self.observed.push((format!("c{client}"), seen));
            }
        }
    }

    async fn put(&mut self, client: u32) {
        let Client { home, units, ref selectors, .. } = *self.client(client);
        let line = |selector: &String| {
            let (key, value) = selector.split_once('=').expect("key=value");
            serde_json::json!({ "where": { key: value } })
        };
        let lines: Vec<Value> = selectors.iter().map(line).collect();
        let body = serde_json::json!({ "units": units, "lines": lines }).to_string();
        let what = format!("PUT {}?wait=0&detach=1h", path(client));
        let (status, _) = self.cluster.request(home, &what, &body).await;
        self.client(client).status = status;
    }

    async fn renew(&mut self, client: u32, node: usize) {
        let shown = serde_json::json!({ "units": self.client(client).receipt }).to_string();
        let what = format!("POST {}/renew?wait=5s", path(client));
        let (status, _) = self.cluster.request(node, &what, &shown).await;
        let known = self.client(client);
        (known.home, known.stopped) = (node, status == 410);
    }

    /// How a claim stands, as soon as it stands as it should, or after a while. What should not
    /// change gets some time to do so.
    async fn settled(&mut self, client: u32, wanted: &str) -> String {
        if wanted == "waiting" {
            tokio::time::sleep(SETTLE).await;
        }
        let give_up = tokio::time::Instant::now() + PATIENCE / 6;
        loop {
            let Client { home, status, stopped, .. } = *self.client(client);
            if status == 422 {
                return "refused".into();
            }
            if stopped {
                return "lost".into();
            }
            let (_, view) = self.cluster.request(home, &format!("GET {}", path(client)), "").await;
            let seen = view["state"].as_str().unwrap_or("unknown");
            let seen = as_asked(seen, wanted).to_owned();
            if seen == wanted || tokio::time::Instant::now() > give_up {
                if view["state"] == "granted" {
                    self.client(client).receipt = view["units"].clone();
                }
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn client(&mut self, client: u32) -> &mut Client {
        self.clients.get_mut(&client).expect("it claimed something")
    }
}

fn path(client: u32) -> String {
    format!("/v1/pools/p/claims/{client}")
}
