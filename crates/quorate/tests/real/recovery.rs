//! How long a cluster needs, measured and not judged: after a node was killed, stood still or was
//! cut off, how long from the moment it is back until somebody has all units; and how long nobody
//! got anything while it was away.
//!
//! Clients speak plain HTTP, so that nodes of another build can be measured by the same program:
//! `--nodes PATH`. Times depend on the machine: compare two runs made one after the other.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::proxy::Proxy;
use quorate_core::Dice;

const NODES: usize = 5;
const UNITS: u32 = 4;
/// Suspicion takes two seconds and a heartbeat; a lease must outlast it by the time that others
/// need to promise the same.
const LEASE: Duration = Duration::from_secs(4);
const CLIENTS: u64 = 6;
/// Long enough for suspicion, a lease, and what comes after.
const AWAY: Duration = Duration::from_secs(9);
/// Who has not got anything by then counts as never.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    Kill,
    Pause,
    Partition,
}

/// Everything measured, printed as a table: one row for each protocol and harm.
pub(crate) async fn measure(protocol: Option<Protocol>, rounds: usize, program: &Path) {
    println!(
        "{NODES} nodes, {UNITS} units, lease {LEASE:?}, {CLIENTS} clients by HTTP, one node away \
         for {AWAY:?}, {rounds} rounds; seconds"
    );
    println!(
        "{:<10} {:<10} {:>14} {:>8} {:>16} {:>8}",
        "protocol", "harm", "healed: median", "worst", "no grant: median", "worst"
    );
    for protocol in Protocol::ALL.into_iter().filter(|known| protocol.is_none_or(|p| p == *known)) {
        // Most of the time is waiting, and no cluster disturbs another much.
        let measured = [Harm::Kill, Harm::Pause, Harm::Partition].map(|harm| {
            let program = program.to_path_buf();
            tokio::spawn(async move { (harm, cluster(protocol, harm, rounds, &program).await) })
        });
        for row in measured {
            let (harm, times) = row.await.expect("it says above what is wrong");
            let (mut healed, mut silent): (Vec<_>, Vec<_>) = times.into_iter().unzip();
            let (name, harm) = (protocol.name(), format!("{harm:?}").to_lowercase());
            let (middle, worst) = spread(&mut healed);
            let (quiet, longest) = spread(&mut silent);
            println!("{name:<10} {harm:<10} {middle:>14} {worst:>8} {quiet:>16} {longest:>8}");
        }
    }
}

/// Median and worst, in words; who was away too long has no figure.
fn spread(times: &mut [Duration]) -> (String, String) {
    times.sort_unstable();
    let say = |time: Duration| match time {
        PATIENCE => "never".to_owned(),
        time => format!("{:.1}", time.as_secs_f64()),
    };
    (say(times[times.len() / 2]), say(times[times.len() - 1]))
}

/// One cluster: each round another node. For each, how long from its return until all units could
/// be had, and the longest time without a grant while it was away.
async fn cluster(
    protocol: Protocol,
    harm: Harm,
    rounds: usize,
    program: &Path,
) -> Vec<(Duration, Duration)> {
    let label = format!("recovery-{}-{harm:?}", protocol.name());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(label);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let more = match protocol {
        // Then majorities will do for counting, too.
        Protocol::Count | Protocol::Naming => "max_holders = 1\n".to_owned(),
        _ => String::new(),
    };
    let pools = Pools {
        protocol,
        names: vec!["p".to_owned()],
        units: UNITS,
        lease: LEASE,
        durable: false,
        backfill: 0,
        more,
    };
    let (mut cluster, wires) = Cluster::start_apart(&folder, NODES, pools, program).await;
    let addresses: Vec<SocketAddr> = (0..NODES).map(|node| cluster.address(node)).collect();
    let mut times = Vec::new();
    for round in 0..rounds {
        // Node 0 decides over `central`: it has its turn, too.
        let away = round % NODES;
        let healthy: Vec<_> = (0..NODES).filter(|node| *node != away).collect();
        let doors: Vec<_> = healthy.iter().map(|node| addresses[*node]).collect();
        let mut crowd = Crowd::gather(&doors, round as u64);
        crowd.warm_up().await;
        let apart = |wires: &[Vec<Proxy>], act: fn(&Proxy)| {
            wires[away].iter().for_each(act);
            healthy.iter().for_each(|node| act(&wires[*node][away]));
        };
        match harm {
            Harm::Kill => cluster.kill(away),
            Harm::Pause => cluster.pause(away),
            Harm::Partition => apart(&wires, Proxy::block),
        }
        let silence = crowd.longest_silence(AWAY).await;
        match harm {
            Harm::Kill => cluster.restart(away, Memory::Kept),
            Harm::Pause => cluster.resume(away),
            Harm::Partition => apart(&wires, Proxy::heal),
        }
        let healed = Instant::now();
        let mut dice = Dice::new(round as u64 ^ 0xa11);
        let all = claim(&doors, &mut dice, UNITS, healed + PATIENCE).await;
        let took = if all.is_some() { healed.elapsed() } else { PATIENCE };
        if let Some(held) = all {
            release(&held).await;
        }
        times.push((took, silence));
        crowd.disperse().await;
        cluster.until_it_answers(away).await;
    }
    times
}

/// Clients that claim one or two units, hold them for a moment and give them back, for ever.
struct Crowd {
    grants: mpsc::UnboundedReceiver<Instant>,
    enough: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn gather(doors: &[SocketAddr], seed: u64) -> Crowd {
        let (granted, grants) = mpsc::unbounded_channel();
        let enough = Arc::new(AtomicBool::new(false));
        let client = |number: u64| {
            let (doors, granted) = (doors.to_vec(), granted.clone());
            let (enough, mut dice) = (Arc::clone(&enough), Dice::new(seed << 32 | number));
            tokio::spawn(async move {
                while !enough.load(Ordering::Relaxed) {
                    let units = dice.below(2) as u32 + 1;
                    let until = Instant::now() + PATIENCE;
                    if let Some(held) = claim(&doors, &mut dice, units, until).await {
                        let _ = granted.send(Instant::now());
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        release(&held).await;
                    }
                }
            })
        };
        let clients = (0..CLIENTS).map(client).collect();
        Crowd { grants, enough, clients }
    }

    /// Until some have been served in a row.
    async fn warm_up(&mut self) {
        for _ in 0..50 {
            self.grants.recv().await.expect("clients go on");
        }
        while self.grants.try_recv().is_ok() {}
    }

    /// The longest time between two grants, or a grant and the end, for so long.
    async fn longest_silence(&mut self, span: Duration) -> Duration {
        let (began, mut last) = (Instant::now(), Instant::now());
        let mut longest = Duration::ZERO;
        while let Some(left) = span.checked_sub(began.elapsed()) {
            match tokio::time::timeout(left, self.grants.recv()).await {
                Ok(grant) => {
                    let grant = grant.expect("clients go on");
                    longest = longest.max(grant.saturating_duration_since(last));
                    last = last.max(grant);
                }
                Err(_) => break,
            }
        }
        longest.max(last.elapsed())
    }

    async fn disperse(self) {
        self.enough.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.expect("clients do not panic");
        }
    }
}

/// A claim that was granted, and where.
struct Held {
    door: SocketAddr,
    path: String,
}

/// Claims at one node, and goes to another with the same id if it does not answer.
async fn claim(doors: &[SocketAddr], dice: &mut Dice, units: u32, until: Instant) -> Option<Held> {
    let path = format!(
        "/v1/pools/p/claims/{:032x}",
        u128::from(dice.draw()) << 64 | u128::from(dice.draw())
    );
    let mut door = dice.pick(doors);
    while Instant::now() < until {
        let body = format!("{{\"units\":{units}}}");
        let asked = format!("PUT {path}?wait=2s");
        let answer = tokio::time::timeout(Duration::from_secs(4), http(door, &asked, &body)).await;
        match answer {
            Ok(Some(answer)) if answer.starts_with("HTTP/1.1 200") => {
                return Some(Held { door, path });
            }
            // It waits, and is asked about again where it is.
            Ok(Some(answer)) if answer.starts_with("HTTP/1.1 202") => {}
            // Over, refused for now, or nobody is there.
            Ok(Some(answer)) if answer.starts_with("HTTP/1.1 410") => return None,
            _ => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                door = dice.pick(doors);
            }
        }
    }
    None
}

async fn release(held: &Held) {
    let asked = format!("DELETE {}", held.path);
    let _ = tokio::time::timeout(Duration::from_secs(2), http(held.door, &asked, "")).await;
}

/// The whole answer to one request, if there is one.
async fn http(door: SocketAddr, asked: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(door).await.ok()?;
    let length = body.len();
    let request = format!(
        "{asked} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    Some(text)
}
