//! What very many pools by name in the charter cost three nodes: measured and not judged. Times and
//! shares depend on the machine, and on what nodes run (`--nodes`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::cluster::{Cluster, Memory, Pools, Protocol};

const NODES: usize = 3;
/// For how long nodes are left alone to see what they use.
const ALONE: Duration = Duration::from_secs(20);

/// Everything measured, a line each.
pub(crate) async fn measure(pools: u64, program: &Path) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-named");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let one = Pools {
        protocol: Protocol::Moving,
        names: vec!["p".to_owned()],
        units: 1,
        lease: Duration::from_secs(12),
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let (mut cluster, _wires) = Cluster::start_apart(&folder, NODES, one, program).await;
    until_all_are_in(&cluster).await;
    println!("3 nodes, {pools} pools by name in the charter, nodes run {}", program.display());
    say("memory of each node before", || memory(&mut cluster));
    say("processor share of each node, alone", || shares(&mut cluster));
    let file = folder.join("pools.toml");
    let pool = |n| format!("[[pools]]\nname = \"pool-{n:06}\"\nunits = 4\nlease = \"30s\"\n");
    std::fs::write(&file, (0..pools).map(pool).collect::<String>()).expect("it is ours");
    let last = format!("pool-{:06}", pools - 1);
    let file = file.to_str().expect("a plain name").to_owned();
    timed("quorate apply", || must(&cluster, 0, &["apply", "-f", &file]));
    say("memory of each node", || memory(&mut cluster));
    say("processor share of each node, alone", || shares(&mut cluster));
    timed("quorate pools (the first 1000)", || must(&cluster, 1, &["pools"]));
    timed("quorate status", || must(&cluster, 1, &["status"]));
    timed("quorate status POOL", || must(&cluster, 1, &["status", &last]));
    timed("quorate pool set", || must(&cluster, 1, &["pool", "set", &last, "--units", "5"]));
    timed("quorate run POOL -- true, the first time", || {
        must(&cluster, 1, &["run", "pool-000000", "--", "true"]);
    });
    let began = Instant::now();
    cluster.process(2).signal(Signal::TERM);
    cluster.process(2).end().await;
    cluster.restart(2, Memory::Kept);
    until_it_knows(&cluster, 2, &last).await;
    println!("stop, and start until it knows all pools: {:.1?}", began.elapsed());
    cluster.kill(2);
    // The others have to miss it first.
    while !cluster.output(0, &["member", "replace", "n2"]).status.success() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    cluster.lose(2);
    let began = Instant::now();
    cluster.restart(2, Memory::Kept);
    until_it_knows(&cluster, 2, &last).await;
    println!("an empty machine joins, until it knows all pools: {:.1?}", began.elapsed());
    cluster.check_alive();
}

fn timed(what: &str, act: impl FnOnce()) {
    let began = Instant::now();
    act();
    println!("{what}: {:.0?}", began.elapsed());
}

fn say(what: &str, look: impl FnOnce() -> Vec<String>) {
    println!("{what}: {}", look().join(", "));
}

fn must(cluster: &Cluster, node: usize, words: &[&str]) {
    // Options come before the command that `run` starts.
    let output = match words {
        ["run", pool, rest @ ..] => cluster.run(node, pool, rest),
        _ => cluster.output(node, words),
    };
    assert!(output.status.success(), "{words:?}: {output:?}");
}

async fn until_all_are_in(cluster: &Cluster) {
    let is_in = |node| cluster.command(node, &["status"]).contains("[+] charter: member");
    while !(0..NODES).all(is_in) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_it_knows(cluster: &Cluster, node: usize, pool: &str) {
    while !cluster.command(node, &["pool", "show", pool]).contains("generation") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn memory(cluster: &mut Cluster) -> Vec<String> {
    let of = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        let kib: f64 = line.split_whitespace().next().and_then(|it| it.parse().ok()).unwrap_or(0.0);
        format!("{:.0} MiB", kib / 1024.0)
    };
    (0..NODES).map(|node| of(cluster.process(node).child().id())).collect()
}

/// Of one core.
fn shares(cluster: &mut Cluster) -> Vec<String> {
    let mut used = || -> Vec<f64> {
        (0..NODES).map(|node| seconds(cluster.process(node).child().id())).collect()
    };
    let before = used();
    std::thread::sleep(ALONE);
    let each = used().into_iter().zip(before);
    each.map(|(now, before)| (now - before) / ALONE.as_secs_f64() * 100.0)
        .map(|share| format!("{share:.2} %"))
        .collect()
}

/// Processor time of a process, as Linux tells it in hundredths of a second.
fn seconds(pid: u32) -> f64 {
    let told = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = told.rsplit_once(')').map_or("", |(_, rest)| rest);
    let at = |place| rest.split_whitespace().nth(place).and_then(|it| it.parse::<f64>().ok());
    (at(11).unwrap_or(0.0) + at(12).unwrap_or(0.0)) / 100.0
}
