//! `quorate-lab bench load`: clients that do nothing but acquire and release, as fast as they can.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quorate_client::{Client, Options};
use serde::Serialize;

use super::local::{self, Kind};
use super::measure::{self, Measured, Window};
use super::usage::Usage;
use crate::Outcome;
use crate::commands::cluster::{self, Cluster, Json};

/// Measure cycles of acquire and release, and how long acquire takes.
///
/// A closed loop: every client has a connection of its own and begins its next cycle when the
/// release of the last one is acknowledged. Without --server, three nodes run beside this process,
/// each a process of its own, on loopback sockets and with nothing on disk; nodes and clients then
/// share the machine's cores.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab bench load
  quorate-lab bench load --clients 64 --seconds 10 --json
  quorate-lab bench load --clients 64 --connections 4 --pools 0
  quorate-lab bench load --protocol arbiter --option 'mode = \"named\"' --durable --pools 0
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
    /// Only the cases with this choice of pools.
    #[arg(long, value_name = "CHOICE", value_enum)]
    case: Option<Only>,
    /// How many nodes, without --server.
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: usize,
    /// Over how many connections the clients go together; without it, each has its own.
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// When a cycle ends.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Release::Acknowledged)]
    release: Release,
    /// What the pools run, without --server.
    #[arg(long, value_name = "NAME", default_value = "central")]
    protocol: String,
    /// A line of configuration for every pool, as 'mode = "named"'; without --server.
    #[arg(long = "option", value_name = "LINE")]
    options: Vec<String>,
    /// Grants are on disk before they are told (in the directory for temporary files); without
    /// --server.
    #[arg(long)]
    durable: bool,
    /// All nodes and clients in one process; without --server.
    #[arg(long)]
    together: bool,
    /// Beside it the same with TLS, between nodes and to clients, and the ratio; without --server.
    #[arg(long)]
    tls: bool,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// Which cases are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Only {
    /// Each client its own pool.
    Own,
    /// One pool of 8 for all.
    Shared,
    /// Any of many pools.
    Any,
}

/// When a client goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Release {
    /// When the release is acknowledged.
    Acknowledged,
    /// As soon as the release is on its way: what became of it shows in the next claim.
    Sent,
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
    /// What the nodes used for a cycle, if they are processes of their own...
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Usage>,
    /// ...and the clients, if the nodes are not in the same process.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Usage>,
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
    Local(local::Cluster),
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

    /// What its nodes have used so far, as far as that can be seen.
    fn usage(&self) -> Option<Usage> {
        match self {
            Target::Named(_) => None,
            Target::Local(local) => local.usage(),
        }
    }

    async fn stop(self) {
        if let Target::Local(local) = self {
            local.stop().await;
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(args.clients.iter().all(|clients| *clients > 0), "--clients must be at least 1");
    ensure!(args.seconds > 0, "--seconds must be at least 1");
    ensure!(args.nodes > 0, "--nodes must be at least 1");
    let named = args.cluster.is_named();
    let own = args.tls || args.durable || args.together || !args.options.is_empty();
    ensure!(
        !named || !(own || args.protocol != "central"),
        "--tls, --durable, --together, --protocol and --option are about nodes of its own: leave \
         them out, or --server"
    );
    ensure!(args.connections != Some(0), "--connections must be at least 1");
    let kind = Kind {
        nodes: args.nodes,
        protocol: args.protocol.clone(),
        options: args.options.clone(),
        durable: args.durable,
        tls: false,
        together: args.together,
        limits: None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let clear = match named {
            true => Target::Named(args.cluster.clone()),
            false => Target::Local(local::Cluster::start(&kind).await?),
        };
        let encrypted = match args.tls {
            true => {
                let kind = Kind { tls: true, ..kind };
                Some(Target::Local(local::Cluster::start(&kind).await?))
            }
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
    cases.retain(|(_, choice)| match args.case {
        None => true,
        Some(Only::Own) => *choice == Choice::Own,
        Some(Only::Shared) => *choice == Choice::Shared,
        Some(Only::Any) => matches!(choice, Choice::AnyOf(_)),
    });
    for (case, choice) in cases {
        if let Choice::AnyOf(pools) = choice {
            eprintln!("using each of {pools} pools once");
            for target in std::iter::once(clear).chain(encrypted) {
                use_every_pool(target, pools).await?;
            }
        }
        for &clients in &args.clients {
            eprintln!("{case}, {clients} clients");
            let load = Load {
                clients,
                connections: args.connections.unwrap_or(clients).min(clients),
                choice,
                release: args.release,
                span,
            };
            let measured = measure(clear, load).await?;
            let encrypted = match encrypted {
                Some(target) => {
                    let it = measure(target, load).await?;
                    Some(Encrypted {
                        cycles_per_second: it.cycles,
                        acquire_p50_us: it.p50,
                        acquire_p99_us: it.p99,
                        processor_us: it.processor_us(),
                        ratio: it.cycles / measured.cycles,
                    })
                }
                None => None,
            };
            rows.push(Row {
                case: case.clone(),
                clients,
                cycles_per_second: measured.cycles,
                acquire_p50_us: measured.p50,
                acquire_p99_us: measured.p99,
                processor_us: measured.processor_us(),
                nodes: measured.servers,
                client: measured.here.filter(|_| measured.servers.is_some()),
                encrypted,
            });
        }
    }
    Ok(rows)
}

/// What clients do.
#[derive(Clone, Copy)]
struct Load {
    clients: usize,
    connections: usize,
    choice: Choice,
    release: Release,
    span: Duration,
}

async fn measure(target: &Target, load: Load) -> anyhow::Result<Measured> {
    let mut connected = Vec::new();
    for _ in 0..load.connections {
        connected.push(target.connect().await?);
    }
    let start = |window| {
        let clients = connected.iter().cycle().take(load.clients).zip(0_u64..);
        let begin = |(client, number): (&Client, u64)| {
            tokio::spawn(cycle(client.clone(), number, load, window))
        };
        clients.map(begin).collect()
    };
    measure::measure(load.span, || target.usage(), start).await
}

async fn cycle(
    client: Client,
    number: u64,
    Load { choice, release, .. }: Load,
    window: Window,
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
        match release {
            Release::Acknowledged => grant.release().await?,
            Release::Sent => drop(grant),
        }
        if window.is_over() {
            return Ok(spans);
        }
        if window.counts(began) {
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
    let apart = rows.iter().any(|row| row.nodes.is_some());
    if apart {
        header.extend(["nodes: user", "system", "switches", "clients: user", "system", "switches"]);
    }
    if rows.iter().any(|row| row.encrypted.is_some()) {
        header.extend(["with TLS: cycles/s", "p50 us", "p99 us", "CPU us", "ratio"]);
    }
    let number = |value: f64| format!("{value:.0}");
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let small = |value: f64| format!("{value:.1}");
    let cells = |row: &Row| {
        let mut cells = vec![row.case.clone(), row.clients.to_string()];
        let clear = [row.cycles_per_second, row.acquire_p50_us, row.acquire_p99_us];
        cells.extend(clear.map(number));
        cells.push(maybe(row.processor_us));
        if apart {
            for side in [row.nodes, row.client].map(Option::unwrap_or_default) {
                cells.extend([side.user_us, side.system_us, side.switches].map(small));
            }
        }
        if let Some(it) = &row.encrypted {
            cells.extend([it.cycles_per_second, it.acquire_p50_us, it.acquire_p99_us].map(number));
            cells.extend([maybe(it.processor_us), format!("{:.2}", it.ratio)]);
        }
        cells
    };
    let note = "p50 and p99: how long an acquire takes; CPU: processor time of a whole cycle, of \
                which user and system in microseconds; switches: of context, for a cycle\n";
    cluster::table(&header, &rows.iter().map(cells).collect::<Vec<_>>()) + note
}
