//! `quorate-lab bench load`: clients that do nothing but acquire and release, as fast as they can.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quorate_client::{Client, Options};
use serde::Serialize;

use super::local::{self, Reached};
use crate::Outcome;
use crate::commands::cluster::{self, Cluster, Json};

/// Measure cycles of acquire and release, and how long acquire takes.
///
/// A closed loop: every client has a connection of its own and begins its next cycle when the
/// release of the last one is acknowledged. Without --server, three nodes run in this process, on
/// loopback sockets, with nothing on disk; nodes and clients then share the machine's cores.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab bench load
  quorate-lab bench load --clients 64 --seconds 10 --json
  quorate-lab bench load --tls --pools 0
  quorate-lab bench load --server 127.0.0.1:7420

A cluster named with --server must have the pools bench-own-* (1 unit), bench-shared (8 units) and,
for --pools, bench-many-* (1 unit).")]
pub(crate) struct Args {
    /// How many clients; several numbers are measured one after the other.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [16, 64])]
    clients: Vec<usize>,
    /// How long each measurement takes.
    #[arg(long, value_name = "N", default_value_t = 3)]
    seconds: u64,
    /// Also with so many pools in use at once, made on demand; 0 leaves that out.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pools: u64,
    /// How many nodes, without --server.
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: usize,
    /// Beside it the same with TLS, between nodes and to clients, and the ratio; without --server.
    #[arg(long)]
    tls: bool,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// Which pool a client claims next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    /// Always its own.
    Own,
    /// Everybody the same one.
    Shared,
    /// Any of so many.
    AnyOf(u64),
}

/// One measurement.
#[derive(Serialize, Debug)]
struct Row {
    case: String,
    clients: usize,
    cycles_per_second: f64,
    acquire_p50_us: f64,
    acquire_p99_us: f64,
    /// Processor time of a cycle, of nodes and clients: it depends least on what else runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    processor_us: Option<f64>,
    /// The same with TLS, on connections that are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<Encrypted>,
}

/// The same measurement with TLS.
#[derive(Serialize, Debug)]
struct Encrypted {
    cycles_per_second: f64,
    acquire_p50_us: f64,
    acquire_p99_us: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    processor_us: Option<f64>,
    /// Cycles per second, as a share of those in the clear.
    ratio: f64,
}

/// Which cluster is measured.
enum Target {
    /// The one that was named, with what there is to show to it.
    Named(Cluster),
    Local(Reached),
}

impl Target {
    async fn connect(&self) -> anyhow::Result<Client> {
        match self {
            Target::Named(cluster) => cluster.connect().await,
            Target::Local(local) => {
                let options = Options { tls: local.tls.clone(), ..Options::default() };
                Ok(Client::connect_with(&local.servers, options).await?)
            }
        }
    }

    async fn stop(self) {
        if let Target::Local(Reached { nodes, .. }) = self {
            for node in nodes {
                node.stop().await;
            }
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(args.clients.iter().all(|clients| *clients > 0), "--clients must be at least 1");
    ensure!(args.seconds > 0, "--seconds must be at least 1");
    ensure!(args.nodes > 0, "--nodes must be at least 1");
    let named = args.cluster.is_named();
    ensure!(!named || !args.tls, "--tls measures nodes of its own: leave out --server or --tls");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let clear = match named {
            true => Target::Named(args.cluster.clone()),
            false => Target::Local(local::start(args.nodes).await?),
        };
        let encrypted = match args.tls {
            true => Some(Target::Local(local::start_encrypted(args.nodes).await?)),
            false => None,
        };
        let rows = measure_all(args, &clear, encrypted.as_ref()).await?;
        cluster::print(args.json.json, &rows, || table(&rows))?;
        clear.stop().await;
        if let Some(encrypted) = encrypted {
            encrypted.stop().await;
        }
        Ok(Outcome::Good)
    })
}

async fn measure_all(
    args: &Args,
    clear: &Target,
    encrypted: Option<&Target>,
) -> anyhow::Result<Vec<Row>> {
    let span = Duration::from_secs(args.seconds);
    let mut rows = Vec::new();
    let mut cases = vec![
        ("each its own pool".to_owned(), Choice::Own),
        ("one pool of 8".to_owned(), Choice::Shared),
    ];
    if args.pools > 0 {
        cases.push((format!("any of {} pools", args.pools), Choice::AnyOf(args.pools)));
        // Again, now that they are there: it must not matter.
        cases.push((format!("each its own, beside {}", args.pools), Choice::Own));
    }
    for (case, choice) in cases {
        if let Choice::AnyOf(pools) = choice {
            eprintln!("using each of {pools} pools once");
            for target in std::iter::once(clear).chain(encrypted) {
                use_every_pool(target, pools).await?;
            }
        }
        for &clients in &args.clients {
            eprintln!("{case}, {clients} clients");
            let Measured { cycles: cycles_per_second, p50, p99, processor_us } =
                measure(clear, clients, choice, span).await?;
            let encrypted = match encrypted {
                Some(target) => {
                    let it = measure(target, clients, choice, span).await?;
                    Some(Encrypted {
                        cycles_per_second: it.cycles,
                        acquire_p50_us: it.p50,
                        acquire_p99_us: it.p99,
                        processor_us: it.processor_us,
                        ratio: it.cycles / cycles_per_second,
                    })
                }
                None => None,
            };
            rows.push(Row {
                case: case.clone(),
                clients,
                cycles_per_second,
                acquire_p50_us: p50,
                acquire_p99_us: p99,
                processor_us,
                encrypted,
            });
        }
    }
    Ok(rows)
}

/// Cycles per second, and what an acquire and a cycle took, in microseconds.
struct Measured {
    cycles: f64,
    p50: f64,
    p99: f64,
    processor_us: Option<f64>,
}

async fn measure(
    target: &Target,
    clients: usize,
    choice: Choice,
    span: Duration,
) -> anyhow::Result<Measured> {
    let mut connected = Vec::new();
    for _ in 0..clients {
        connected.push(target.connect().await?);
    }
    // The first moments are nobody's figure.
    let from = Instant::now() + Duration::from_millis(300);
    let until = from + span;
    let tasks: Vec<_> = connected
        .into_iter()
        .zip(0_u64..)
        .map(|(client, number)| tokio::spawn(cycle(client, number, choice, from, until)))
        .collect();
    tokio::time::sleep_until(from.into()).await;
    let before = processor_seconds();
    tokio::time::sleep_until(until.into()).await;
    let spent = processor_seconds().zip(before).map(|(after, before)| after - before);
    let mut spans = Vec::new();
    for task in tasks {
        spans.extend(task.await.context("a client panicked")??);
    }
    spans.sort_unstable();
    let at = |share: f64| {
        let index = (spans.len().saturating_sub(1) as f64 * share) as usize;
        spans.get(index).map_or(0.0, |nanos| *nanos as f64 / 1e3)
    };
    let count = spans.len() as f64;
    let processor_us = spent.map(|seconds| seconds * 1e6 / count.max(1.0));
    let cycles = count / span.as_secs_f64();
    Ok(Measured { cycles, p50: at(0.50), p99: at(0.99), processor_us })
}

/// What this process has used so far, where the system tells it as Linux does: in hundredths.
fn processor_seconds() -> Option<f64> {
    let told = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, which comes before, may have any characters.
    let (_, rest) = told.rsplit_once(')')?;
    let of = |place: usize| rest.split_whitespace().nth(place)?.parse::<f64>().ok();
    Some((of(11)? + of(12)?) / 100.0)
}

async fn cycle(
    client: Client,
    number: u64,
    choice: Choice,
    from: Instant,
    until: Instant,
) -> anyhow::Result<Vec<u64>> {
    let mut pool = match choice {
        Choice::Own => client.pool(format!("bench-own-{number}")),
        Choice::Shared | Choice::AnyOf(_) => client.pool("bench-shared"),
    };
    let mut spans = Vec::new();
    let mut draw = number;
    loop {
        if let Choice::AnyOf(pools) = choice {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
            pool = client.pool(format!("bench-many-{}", (draw >> 33) % pools));
        }
        let began = Instant::now();
        let grant = pool.acquire().await?;
        let granted = Instant::now();
        grant.release().await?;
        let now = Instant::now();
        if now >= until {
            return Ok(spans);
        }
        if began >= from {
            spans.push((granted - began).as_nanos() as u64);
        }
    }
}

/// Makes every pool by using it once.
async fn use_every_pool(target: &Target, pools: u64) -> anyhow::Result<()> {
    const AT_ONCE: usize = 64;
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..AT_ONCE {
        let (client, next) = (target.connect().await?, Arc::clone(&next));
        tasks.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= pools {
                    return anyhow::Ok(());
                }
                let grant = client.pool(format!("bench-many-{number}")).acquire().await?;
                grant.release().await?;
            }
        }));
    }
    for task in tasks {
        task.await.context("a client panicked")??;
    }
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let mut header = vec!["case", "clients", "cycles/s", "p50 us", "p99 us", "CPU us"];
    if rows.iter().any(|row| row.encrypted.is_some()) {
        header.extend(["with TLS: cycles/s", "p50 us", "p99 us", "CPU us", "ratio"]);
    }
    let number = |value: f64| format!("{value:.0}");
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let cells = |row: &Row| {
        let mut cells = vec![row.case.clone(), row.clients.to_string()];
        let clear = [row.cycles_per_second, row.acquire_p50_us, row.acquire_p99_us];
        cells.extend(clear.map(number));
        cells.push(maybe(row.processor_us));
        if let Some(it) = &row.encrypted {
            cells.extend([it.cycles_per_second, it.acquire_p50_us, it.acquire_p99_us].map(number));
            cells.extend([maybe(it.processor_us), format!("{:.2}", it.ratio)]);
        }
        cells
    };
    let note = "p50 and p99: how long an acquire takes; CPU: processor time of a whole cycle\n";
    cluster::table(&header, &rows.iter().map(cells).collect::<Vec<_>>()) + note
}
