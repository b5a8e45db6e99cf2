//! `quorate-lab bench crowd`: what many pools, many clients and long queues cost a node.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use quorate_api::link::{self, Ask, FromClient, FromNode, PREFACE, Request};
use quorate_client::{Client, Grant};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::local::{self, Kind};
use super::measure::{self, Window};
use super::usage::Usage;
use crate::Outcome;
use crate::commands::cluster::{self, Json};

/// Measure what many pools, many clients and long queues cost a node.
///
/// One node, a process of its own with nothing on disk, step by step: empty; with so many pools in
/// use; with so many clients connected beside; with a thousand of them that hold a unit each and
/// renew it; and with claims that wait in one queue. Memory is what the node's process has more
/// than before the step; cycles are those of 64 clients that acquire and release in pools of their
/// own.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab bench crowd
  quorate-lab bench crowd --pools 1000000 --clients 10000 --json
  ulimit -n 300000; quorate-lab bench crowd --pools 1000000 --clients 100000")]
pub(crate) struct Args {
    /// Pools in use at once.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pools: u64,
    /// Clients that are connected and do nothing; each is a file at the node and one here.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    clients: usize,
    /// Clients that hold a unit and renew it.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    holders: usize,
    /// Claims that wait in one queue.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    queue: u64,
    /// How long each measurement takes.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    #[command(flatten)]
    json: Json,
}

/// What came of it.
#[derive(Serialize, Debug)]
struct Report {
    pools: u64,
    clients: usize,
    holders: usize,
    queue: u64,
    bytes_per_pool: f64,
    bytes_per_client: f64,
    bytes_per_waiting_claim: f64,
    /// Of the empty node, then beside the pools, then beside the clients too.
    cycles_per_second: [f64; 3],
    /// The share of one core that the node uses while holders renew, and nothing else happens.
    holders_processor_share: f64,
    /// Processor time of node and client for one grant and release, with few claims in the queue...
    grant_us_short_queue: f64,
    /// ...and with all.
    grant_us_long_queue: f64,
}

const WORKERS: usize = 64;
/// Idle clients of one address.
const PORTS: usize = 20_000;
/// Claims that are few, and how many grants are measured.
const FEW: u64 = 100;
const GRANTS: u64 = 5_000;

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(args.pools > 0 && args.clients > 0, "--pools and --clients must be at least 1");
    let many = 1_000_000;
    let kind = Kind {
        nodes: 1,
        protocol: "central".into(),
        options: Vec::new(),
        durable: false,
        tls: false,
        together: false,
        limits: Some(format!(
            "clients = {many}, clients_per_address = {many}, claims = 4000000, queue = 2000000"
        )),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let node = local::Cluster::start(&kind).await?;
        let report = measure_all(args, &node).await?;
        cluster::print(args.json.json, &report, || text(&report))?;
        node.stop().await;
        Ok(Outcome::Good)
    })
}

async fn measure_all(args: &Args, node: &local::Cluster) -> anyhow::Result<Report> {
    let span = Duration::from_secs(args.seconds);
    let memory = || node.memory().context("the memory of a process cannot be seen here");
    let each = |before: f64, after: f64, count: f64| (after - before).max(0.0) / count;
    let workers = connect(node, WORKERS).await?;
    let empty = cycles(node, &workers, span).await?;
    let before = memory()?;
    eprintln!("using each of {} pools once", args.pools);
    use_every_pool(&workers, args.pools).await?;
    let with_pools = memory()?;
    let beside_pools = cycles(node, &workers, span).await?;
    eprintln!("connecting {} clients", args.clients);
    let settled = memory()?;
    let idle = idle(node, args.clients).await?;
    let with_clients = memory()?;
    let beside_clients = cycles(node, &workers, span).await?;
    drop(idle);
    eprintln!("{} clients hold and renew", args.holders);
    let share = hold(node, args.holders, span).await?;
    eprintln!("{} claims wait in one queue", args.queue);
    let short = queue(node, &workers, FEW).await?;
    let long = queue(node, &workers, args.queue).await?;
    Ok(Report {
        pools: args.pools,
        clients: args.clients,
        holders: args.holders,
        queue: args.queue,
        bytes_per_pool: each(before, with_pools, args.pools as f64),
        bytes_per_client: each(settled, with_clients, args.clients as f64),
        bytes_per_waiting_claim: long.bytes,
        cycles_per_second: [empty, beside_pools, beside_clients],
        holders_processor_share: share,
        grant_us_short_queue: short.grant_us,
        grant_us_long_queue: long.grant_us,
    })
}

async fn connect(node: &local::Cluster, count: usize) -> anyhow::Result<Vec<Client>> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(Client::connect(&node.servers).await?);
    }
    Ok(clients)
}

/// Clients that said who they are and do nothing. They come from several addresses of this machine,
/// since one has no more than some ten thousand ports.
async fn idle(node: &local::Cluster, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    let server: SocketAddr = node.servers[0].parse()?;
    let mut hello = PREFACE.to_vec();
    let ask = Ask::Hello { client: "idle".into() };
    link::encode(&FromClient::Request(Request { number: 1, ask }), &mut hello);
    let (mut clients, mut told) = (Vec::with_capacity(count), Vec::new());
    for number in 0..count {
        let socket = TcpSocket::new_v4()?;
        let home = u32::from(Ipv4Addr::LOCALHOST) + 1 + (number / PORTS) as u32;
        socket.bind((Ipv4Addr::from(home), 0).into())?;
        let mut client = socket.connect(server).await?;
        client.write_all(&hello).await?;
        told.clear();
        while link::decode::<FromNode>(&told)?.is_none() {
            if client.read_buf(&mut told).await? == 0 {
                bail!("the node took {number} clients and no more");
            }
        }
        clients.push(client);
    }
    Ok(clients)
}

/// How often per second somebody acquires and releases.
async fn cycles(node: &local::Cluster, workers: &[Client], span: Duration) -> anyhow::Result<f64> {
    let start = |window: Window| {
        let each = workers.iter().cloned().enumerate();
        each.map(|(number, client)| tokio::spawn(cycle(client, number, window))).collect()
    };
    Ok(measure::measure(span, || node.usage(), start).await?.cycles)
}

async fn cycle(client: Client, number: usize, window: Window) -> anyhow::Result<Vec<u64>> {
    let pool = client.pool(format!("bench-own-{number}"));
    let mut spans = Vec::new();
    while !window.is_over() {
        let began = Instant::now();
        pool.acquire().await?.release().await?;
        if window.counts(began) {
            spans.push(began.elapsed().as_nanos() as u64);
        }
    }
    Ok(spans)
}

async fn use_every_pool(workers: &[Client], pools: u64) -> anyhow::Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let each = workers.iter().map(|client| {
        let (client, next) = (client.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= pools {
                    return anyhow::Ok(());
                }
                client.pool(format!("bench-many-{number}")).acquire().await?.release().await?;
            }
        })
    });
    for task in each.collect::<Vec<_>>() {
        task.await.context("a client panicked")??;
    }
    Ok(())
}

/// What share of a core the node uses while so many clients hold, and their libraries renew.
async fn hold(node: &local::Cluster, holders: usize, span: Duration) -> anyhow::Result<f64> {
    let clients = connect(node, holders).await?;
    let mut held: Vec<Grant> = Vec::with_capacity(holders);
    for (number, client) in clients.iter().enumerate() {
        held.push(client.pool(format!("bench-many-{number}")).acquire().await?);
    }
    // Renewals come every third of a lease: several of each are in the span.
    let span = span.max(Duration::from_secs(20));
    let before = node.usage().context("the processor time of a process cannot be seen here")?;
    tokio::time::sleep(span).await;
    let after = node.usage().context("the node is gone")?;
    for grant in held {
        ensure!(grant.is_lost().is_none(), "a holder could not renew: nothing was measured");
        grant.release().await?;
    }
    Ok((after - before).processor_us() / span.as_micros() as f64)
}

struct Queue {
    grant_us: f64,
    bytes: f64,
}

/// What one grant costs while so many claims wait in one queue.
async fn queue(node: &local::Cluster, workers: &[Client], claims: u64) -> anyhow::Result<Queue> {
    // A pool of one unit, so that whoever gives it back grants it to the next.
    let name = format!("bench-own-queue-{claims}");
    let first = workers[0].pool(name.clone()).acquire().await?;
    let before = node.memory().unwrap_or_default();
    let granted = Arc::new(AtomicU64::new(0));
    let mut waiting = Vec::new();
    for number in 0..claims {
        let pool = workers[number as usize % workers.len()].pool(name.clone());
        let granted = Arc::clone(&granted);
        waiting.push(tokio::spawn(async move {
            let grant = pool.acquire().await?;
            granted.fetch_add(1, Ordering::Relaxed);
            grant.release().await?;
            anyhow::Ok(())
        }));
    }
    // All of them, and the one that holds.
    let views = quorate_client::Views::new(&node.servers)?;
    while views.node().await?.claims <= claims {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let bytes = (node.memory().unwrap_or_default() - before).max(0.0) / claims as f64;
    let grants = GRANTS.min(claims);
    let spent = || Some(node.usage()? + Usage::here()?);
    let (used, began) = (spent(), Instant::now());
    first.release().await?;
    while granted.load(Ordering::Relaxed) < grants {
        tokio::time::sleep(Duration::from_micros(200)).await;
        ensure!(began.elapsed() < Duration::from_secs(120), "the queue does not move");
    }
    let done = granted.load(Ordering::Relaxed);
    let used = spent().zip(used).map(|(after, before)| (after - before).processor_us());
    let grant_us = used.unwrap_or_default() / done as f64;
    for task in &waiting {
        task.abort();
    }
    for task in waiting {
        drop(task.await);
    }
    Ok(Queue { grant_us, bytes })
}

fn text(report: &Report) -> String {
    let Report { pools, clients, holders, queue, .. } = report;
    let [empty, beside_pools, beside_clients] = report.cycles_per_second;
    let percent = |cycles: f64| format!("{:.0} % of the empty node", cycles / empty * 100.0);
    let rows = [
        ("an empty node", format!("{empty:.0} cycles/s")),
        ("a pool in use", format!("{:.0} bytes, of {pools}", report.bytes_per_pool)),
        ("beside these pools", format!("{beside_pools:.0} cycles/s, {}", percent(beside_pools))),
        ("a client", format!("{:.0} bytes, of {clients}", report.bytes_per_client)),
        (
            "beside these clients, too",
            format!("{beside_clients:.0} cycles/s, {}", percent(beside_clients)),
        ),
        (
            "holders that renew",
            format!("{:.2} % of a core, {holders}", report.holders_processor_share * 100.0),
        ),
        ("a claim that waits", format!("{:.0} bytes, of {queue}", report.bytes_per_waiting_claim)),
        (
            "a grant and its release",
            format!(
                "{:.0} us of processor time with {FEW} in the queue, {:.0} us with {queue}",
                report.grant_us_short_queue, report.grant_us_long_queue
            ),
        ),
    ];
    let rows = rows.map(|(what, how)| vec![what.to_owned(), how]);
    cluster::table(&["what", "cost"], &rows)
}
