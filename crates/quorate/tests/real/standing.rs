//! Holds without a lease on real processes, and the tools that need them. Every node is killed and
//! restarted, one is lost for good, and what is held is held until somebody says otherwise.
//! FleetLock goes by its specification's cases, Terraform's lock word by word and, where it is
//! installed, with the real program.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::cluster::{Cluster, Memory, Pools, Process, Protocol};

const NODES: usize = 3;
/// Much shorter than anything here is held.
const LEASE: Duration = Duration::from_millis(500);

const MORE: &str = "standing = true
overdue = \"1s\"
[[pools]]
pattern = \"tf-*\"
units = 1
lease = \"500ms\"
retry = \"200ms\"
protocol = \"table\"
durable = true
standing = true
[[pools]]
name = \"leased\"
units = 1
[gateways]
fleetlock = \"reboot-*\"
terraform = \"tf-*\"
";

pub(crate) async fn holds(name: &'static str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("standing");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Table,
        names: vec!["reboot-w".to_owned()],
        units: 1,
        lease: LEASE,
        durable: true,
        backfill: 0,
        more: MORE.to_owned(),
    };
    let mut cluster = Cluster::start(&folder, NODES, pools, None).await;
    outlive_everything(&mut cluster).await;
    fleet_lock(&mut cluster).await;
    terraform_word_by_word(&cluster).await;
    terraform(&cluster, &folder).await;
    println!("{name}: ok");
}

/// What a node answers, as JSON, with its status.
async fn ask(to: SocketAddr, method: &str, path: &str, head: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(to).await.expect("it listens");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n{head}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(&mut stream, &request).await;
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    let read = timeout(Duration::from_secs(60), stream.read_to_string(&mut answer)).await;
    read.unwrap_or_else(|_| panic!("no answer to {request}")).expect("it answers");
    answer
}

async fn holders(cluster: &Cluster, node: usize, pool: &str) -> Vec<Value> {
    let path = format!("/v1/pools/{pool}/holders");
    let (_, view) = ask(cluster.address(node), "GET", &path, "", "").await;
    view["holders"].as_array().cloned().unwrap_or_default()
}

async fn outlive_everything(cluster: &mut Cluster) {
    let pool = "reboot-w";
    let refused = cluster.command(0, &["acquire", "leased", "--standing", "--json"]);
    assert_eq!(refused, "", "that pool has leases only");
    let said = cluster.command(0, &["acquire", pool, "--standing", "--reason", "new kernel"]);
    assert!(said.contains("until released or revoked"), "{said}");
    let id = said.split(' ').next().expect("an id").to_owned();
    // Nobody else gets it, long after any lease.
    let other = cluster.command(1, &["acquire", pool, "--standing", "--timeout", "1s"]);
    assert_eq!(other, "");
    for node in 0..NODES {
        cluster.kill(node);
    }
    for node in 0..NODES {
        cluster.restart(node, Memory::Kept);
    }
    for node in 0..NODES {
        cluster.until_it_answers(node).await;
    }
    let held = holders(cluster, 2, pool).await;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!((&held[0]["id"], &held[0]["reason"]), (&json!(id), &json!("new kernel")));
    assert_eq!((&held[0]["standing"], &held[0]["overdue"]), (&json!(true), &json!(true)));
    assert_eq!(held[0]["units"][0]["unit"], json!(0));
    assert!(cluster.command(1, &["holders", pool]).contains("OVERDUE"));
    assert!(cluster.command(1, &["status", pool]).contains("overdue"));
    let metrics = metric(cluster, 1).await;
    assert!(metrics.contains("quorate_overdue_holds{pool=\"reboot-w\"} 1"), "{metrics}");
    // One node is lost for good, and comes back knowing nothing.
    cluster.kill(0);
    let other = cluster.command(1, &["acquire", pool, "--standing", "--timeout", "1s"]);
    assert_eq!(other, "", "it is held, whoever is away");
    cluster.restart(0, Memory::Lost);
    cluster.until_it_answers(0).await;
    until_it_has_learned(cluster, 0).await;
    cluster.kill(1);
    let other = cluster.command(0, &["acquire", pool, "--standing", "--timeout", "3s"]);
    assert_eq!(other, "", "it is held, whoever forgot");
    cluster.restart(1, Memory::Kept);
    cluster.until_it_answers(1).await;
    // Released at a node that never heard of it, by its id alone.
    let said = cluster.command(0, &["release", pool, &id]);
    assert!(said.contains("released"), "{said}");
    assert!(holders(cluster, 2, pool).await.is_empty());
    // Revoked: it ends at once, since there is no lease that could.
    let said = cluster.command(1, &["acquire", pool, "--standing"]);
    let id = said.split(' ').next().expect("an id").to_owned();
    cluster.restart(1, Memory::Kept);
    cluster.until_it_answers(1).await;
    cluster.command(2, &["revoke", pool, &id, "--reason", "it is not coming back"]);
    assert!(holders(cluster, 0, pool).await.is_empty());
}

/// Waits until a node that forgot has learned from the others what there is.
async fn until_it_has_learned(cluster: &Cluster, node: usize) {
    let name = format!("n{node}");
    let open = |fact: &Value| {
        fact["node"] == json!(name) && fact["name"] == json!("in_grace") && fact["value"] == 0
    };
    until_seen(cluster, node, "/v1/pools/reboot-w", |view| {
        view["facts"].as_array().is_some_and(|facts| facts.iter().any(open))
    })
    .await;
}

/// Waits until a node shows this.
async fn until_seen(cluster: &Cluster, node: usize, path: &str, so: impl Fn(&Value) -> bool) {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let (_, view) = ask(cluster.address(node), "GET", path, "", "").await;
        if so(&view) {
            return;
        }
        assert!(Instant::now() < give_up, "{path} stays so: {view}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn metric(cluster: &Cluster, node: usize) -> String {
    let to = cluster.address(node);
    let mut stream = TcpStream::connect(to).await.expect("it listens");
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n\r\n");
    exchange(&mut stream, &request).await
}

/// The cases of the specification, as airlock and Zincati have them (conventions 3.1).
async fn fleet_lock(cluster: &mut Cluster) {
    let header = "fleet-lock-protocol: true\r\n";
    let body = |id: &str, group: &str| json!({"client_params": {"id": id, "group": group}});
    let to = |node: usize| cluster.address(node);
    let (pre, steady) = ("/v1/pre-reboot", "/v1/steady-state");
    for (head, sent, status, kind) in [
        ("", body("a", "w").to_string(), 400, "missing_header"),
        ("fleet-lock-protocol: no\r\n", body("a", "w").to_string(), 400, "missing_header"),
        (header, "{".to_owned(), 400, "invalid_client_identity"),
        (header, body("", "w").to_string(), 400, "invalid_client_identity"),
        (header, body("a", "").to_string(), 400, "invalid_client_identity"),
        (header, body("a", "no/slash").to_string(), 400, "invalid_client_identity"),
        (header, body("a", "nobody").to_string(), 400, "unknown_group"),
    ] {
        for path in [pre, steady] {
            let (code, said) = ask(to(0), "POST", path, head, &sent).await;
            assert_eq!((code, &said["kind"]), (status, &json!(kind)), "{path} {sent}");
        }
    }
    assert_eq!(ask(to(0), "GET", pre, header, "").await.0, 405);
    let (a, b) = (body("machine-a", "w").to_string(), body("machine-b", "w").to_string());
    // Free, held already, full; under another path too.
    assert_eq!(ask(to(0), "POST", pre, header, &a).await.0, 200);
    assert_eq!(ask(to(1), "POST", pre, header, &a).await.0, 200, "the same machine elsewhere");
    let (code, said) = ask(to(1), "POST", pre, header, &b).await;
    assert_eq!((code, &said["kind"]), (423, &json!("failed_lock_semaphore_full")));
    let held = holders(cluster, 2, "reboot-w").await;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(held[0]["client"], json!("machine-a"));
    // To give back what one does not have changes nothing for who has it.
    let c = body("machine-c", "w").to_string();
    assert_eq!(ask(to(2), "POST", steady, header, &c).await.0, 200);
    assert_eq!(holders(cluster, 0, "reboot-w").await.len(), 1);
    // The machine is back; whoever waited has kept its place, and hears it when it asks.
    assert_eq!(ask(to(2), "POST", "/fleetlock/v1/steady-state", header, &a).await.0, 200);
    assert_eq!(ask(to(2), "POST", steady, header, &a).await.0, 200, "again");
    assert_eq!(ask(to(1), "POST", pre, header, &b).await.0, 200);
    assert_eq!(holders(cluster, 0, "reboot-w").await[0]["client"], json!("machine-b"));
    // A restart of all nodes in the middle of a reboot.
    let addresses: Vec<SocketAddr> = (0..NODES).map(|node| cluster.address(node)).collect();
    for node in 0..NODES {
        cluster.kill(node);
    }
    for node in 0..NODES {
        cluster.restart(node, Memory::Kept);
    }
    for node in 0..NODES {
        cluster.until_it_answers(node).await;
    }
    assert_eq!(ask(addresses[2], "POST", pre, header, &b).await.0, 200, "it had it before");
    assert_eq!(holders(cluster, 0, "reboot-w").await.len(), 1);
    assert_eq!(ask(addresses[0], "POST", steady, header, &b).await.0, 200);
    assert!(holders(cluster, 1, "reboot-w").await.is_empty());
}

fn lock_info(id: &str, who: &str) -> Value {
    json!({
        "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": who,
        "Version": "1.11.4", "Created": "2026-11-16T10:00:00Z", "Path": "",
    })
}

/// What Terraform 1.11 sends, and what it must be answered.
async fn terraform_word_by_word(cluster: &Cluster) {
    let path = "/v1/terraform/net";
    let json_header = "content-type: application/json\r\n";
    let to = |node: usize| cluster.address(node);
    let say = async |node: usize, method: &str, info: &Value| {
        ask(to(node), method, path, json_header, &info.to_string()).await
    };
    let one = lock_info("0f9a4bbb-2f1e-7d7a-6e39-5a5a7ad0a7b1", "ada@one");
    let two = lock_info("11111111-2222-3333-4444-555555555555", "bob@two");
    assert_eq!(say(0, "LOCK", &one).await.0, 200);
    assert_eq!(say(1, "LOCK", &one).await.0, 200, "its answer was lost, and it asks again");
    assert_eq!(say(1, "LOCK", &two).await, (423, one.clone()), "who has it");
    assert_eq!(
        say(2, "UNLOCK", &lock_info("99999999-2222-3333-4444-555555555555", "eve")).await.0,
        409
    );
    assert_eq!(say(2, "UNLOCK", &one).await.0, 200);
    // The second has kept its place: nobody who comes now is before it.
    let three = lock_info("33333333-2222-3333-4444-555555555555", "cy@three");
    assert_eq!(say(0, "LOCK", &three).await, (423, two.clone()));
    assert_eq!(say(1, "LOCK", &two).await.0, 200);
    // Without a body, as older ones force it: whoever has it loses it.
    assert_eq!(ask(to(0), "UNLOCK", path, "", "").await.0, 200);
    assert_eq!(say(0, "LOCK", &three).await.0, 200);
    assert_eq!(say(0, "UNLOCK", &three).await.0, 200);
    assert_eq!(say(0, "LOCK", &json!({"ID": "7"})).await.0, 400);
    assert_eq!(ask(to(0), "GET", path, "", "").await.0, 405);
    assert!(holders(cluster, 1, "tf-net").await.is_empty());
}

type States = std::sync::Mutex<Vec<(bool, Vec<u8>)>>;

/// Reads or keeps a state.
fn remember(kept: &States, (reads, slow): (bool, bool), body: Vec<u8>) -> (&'static str, Vec<u8>) {
    let mut all = kept.lock().expect("no panic");
    let found = all.iter().find(|(of, _)| *of == slow).map(|(_, state)| state.clone());
    match (reads, found) {
        (true, Some(state)) => ("200 OK", state),
        (true, None) => ("404 Not Found", Vec::new()),
        (false, _) => {
            all.retain(|(of, _)| *of != slow);
            all.push((slow, body));
            ("200 OK", Vec::new())
        }
    }
}

/// Where states are kept: one in memory for each path. Reading `/slow` takes a permit.
async fn states() -> (SocketAddr, Arc<Semaphore>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (address, gate) = (listener.local_addr().expect("a port"), Arc::new(Semaphore::new(0)));
    let (permits, kept) = (Arc::clone(&gate), Arc::new(States::default()));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (permits, kept) = (Arc::clone(&permits), Arc::clone(&kept));
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                let (head, mut body) = loop {
                    if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
                        break (head, bytes.split_off(end + 4));
                    }
                    if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                        return;
                    }
                };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
                while body.len() < length && stream.read_buf(&mut body).await.unwrap_or(0) > 0 {}
                let (reads, slow) = (head.starts_with("get "), head.contains(" /slow"));
                if reads && slow {
                    permits.acquire().await.expect("it stays open").forget();
                }
                let (status, answer) = remember(&kept, (reads, slow), body);
                let head = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                let _ = stream.write_all(&[head.as_bytes(), &answer].concat()).await;
            });
        }
    });
    (address, gate)
}

/// A folder with a configuration of nothing but an output, and the lock `demo` at a node.
fn workspace(folder: &Path, name: &str, states: SocketAddr, node: SocketAddr) -> PathBuf {
    let folder = folder.join(format!("terraform-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let text = format!(
        "terraform {{\n  backend \"http\" {{\n    address = \"http://{states}/{name}\"\n    \
         lock_address = \"http://{node}/v1/terraform/demo\"\n    \
         unlock_address = \"http://{node}/v1/terraform/demo\"\n  }}\n}}\n\
         output \"x\" {{\n  value = \"{name}\"\n}}\n"
    );
    std::fs::write(folder.join("main.tf"), text).expect("a file");
    folder
}

fn words(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("terraform");
    command.current_dir(folder).args(words).env("CHECKPOINT_DISABLE", "1");
    command.env("TF_IN_AUTOMATION", "1").stdin(Stdio::null());
    command
}

fn done(folder: &Path, said: &[&str]) -> Output {
    tokio::task::block_in_place(|| words(folder, said).output()).expect("it can be started")
}

fn begun(folder: &Path, said: &[&str]) -> Process {
    let mut command = words(folder, said);
    let child: Child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    Process::new(child)
}

/// Waits until so many hold the lock, or wait for it.
async fn until(cluster: &Cluster, which: &str, many: usize) {
    let path = format!("/v1/pools/tf-demo/{which}");
    let field = if which == "queue" { "waiting" } else { which };
    until_seen(cluster, 0, &path, |view| {
        view[field].as_array().is_some_and(|list| list.len() == many)
    })
    .await;
}

async fn terraform(cluster: &Cluster, folder: &Path) {
    if Command::new("terraform").arg("version").output().is_err() {
        println!("terraform is not on this machine: its lock was tried word by word only");
        return;
    }
    let (states, gate) = states().await;
    let slow = workspace(folder, "slow", states, cluster.address(0));
    let fast = workspace(folder, "fast", states, cluster.address(1));
    gate.add_permits(8);
    for folder in [&slow, &fast] {
        let init = done(folder, &["init", "-input=false", "-no-color"]);
        assert!(init.status.success(), "{init:?}");
    }
    let apply = ["apply", "-auto-approve", "-no-color"];
    gate.forget_permits(100);
    let mut first = begun(&slow, &apply);
    until(cluster, "holders", 1).await;
    // Two at once: the second is told who has the lock.
    let second = done(&fast, &apply);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains("Error acquiring the state lock"), "{said}");
    assert!(said.contains("OperationTypeApply"), "{said}");
    // One that waits has a place in the queue, and is served when the first is done.
    let mut patient = begun(&fast, &["apply", "-auto-approve", "-lock-timeout=120s"]);
    until(cluster, "queue", 1).await;
    gate.add_permits(8);
    assert!(first.end().await.success());
    assert!(patient.end().await.success());
    until(cluster, "holders", 0).await;
    // One that is killed keeps the lock until somebody forces it.
    gate.forget_permits(100);
    let killed = begun(&slow, &apply);
    until(cluster, "holders", 1).await;
    drop(killed);
    let refused = done(&fast, &apply);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let id = said.lines().find_map(|line| line.split("ID:").nth(1)).expect("who has it").trim();
    let forced = done(&fast, &["force-unlock", "-force", id]);
    assert!(forced.status.success(), "{forced:?}");
    // The run that was refused had a place in the queue, and keeps it for a few seconds.
    let after = done(&fast, &["apply", "-auto-approve", "-no-color", "-lock-timeout=120s"]);
    assert!(after.status.success(), "{after:?}");
    gate.add_permits(8);
}
