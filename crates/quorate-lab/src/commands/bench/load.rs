//! `quorate-lab bench load`: clients that do nothing but acquire and release, as fast as they can.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quorate_client::Client;
use serde::Serialize;

use super::local;
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
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(args.clients.iter().all(|clients| *clients > 0), "--clients must be at least 1");
    ensure!(args.seconds > 0, "--seconds must be at least 1");
    ensure!(args.nodes > 0, "--nodes must be at least 1");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let nodes = match args.cluster.is_named() {
            true => Vec::new(),
            false => local::start(args.nodes).await?,
        };
        let servers = match nodes.is_empty() {
            true => args.cluster.servers(),
            false => nodes.iter().map(|node| node.clients_address().to_string()).collect(),
        };
        let rows = measure_all(args, &servers).await?;
        cluster::print(args.json.json, &rows, || table(&rows))?;
        for node in nodes {
            node.stop().await;
        }
        Ok(Outcome::Good)
    })
}

async fn measure_all(args: &Args, servers: &[String]) -> anyhow::Result<Vec<Row>> {
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
            use_every_pool(servers, pools).await?;
        }
        for &clients in &args.clients {
            eprintln!("{case}, {clients} clients");
            let (cycles, mut spans) = measure(servers, clients, choice, span).await?;
            spans.sort_unstable();
            let at = |share: f64| {
                let index = (spans.len().saturating_sub(1) as f64 * share) as usize;
                spans.get(index).map_or(0.0, |nanos| *nanos as f64 / 1e3)
            };
            rows.push(Row {
                case: case.clone(),
                clients,
                cycles_per_second: cycles,
                acquire_p50_us: at(0.50),
                acquire_p99_us: at(0.99),
            });
        }
    }
    Ok(rows)
}

/// Cycles per second, and how long each acquire took, in nanoseconds.
async fn measure(
    servers: &[String],
    clients: usize,
    choice: Choice,
    span: Duration,
) -> anyhow::Result<(f64, Vec<u64>)> {
    let mut connected = Vec::new();
    for _ in 0..clients {
        connected.push(Client::connect(servers).await?);
    }
    // The first moments are nobody's figure.
    let from = Instant::now() + Duration::from_millis(300);
    let until = from + span;
    let tasks: Vec<_> = connected
        .into_iter()
        .zip(0_u64..)
        .map(|(client, number)| tokio::spawn(cycle(client, number, choice, from, until)))
        .collect();
    let mut spans = Vec::new();
    for task in tasks {
        spans.extend(task.await.context("a client panicked")??);
    }
    Ok((spans.len() as f64 / span.as_secs_f64(), spans))
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
async fn use_every_pool(servers: &[String], pools: u64) -> anyhow::Result<()> {
    const AT_ONCE: usize = 64;
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..AT_ONCE {
        let (client, next) = (Client::connect(servers).await?, Arc::clone(&next));
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
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.case.clone(),
                row.clients.to_string(),
                format!("{:.0}", row.cycles_per_second),
                format!("{:.0}", row.acquire_p50_us),
                format!("{:.0}", row.acquire_p99_us),
            ]
        })
        .collect();
    let header = ["case", "clients", "cycles/s", "acquire p50 us", "acquire p99 us"];
    cluster::table(&header, &cells)
}
