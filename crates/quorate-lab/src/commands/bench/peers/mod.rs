//! `quorate-lab bench peers`: the same work by Quorate and by others, in one run on one machine.
//!
//! What each promises differs, and stands beside the figures in docs/speed.md. All clients are in
//! this process and all servers in others, as many as each takes; nobody but the one that is
//! measured runs.

mod client;
mod etcd;
mod raw;
mod redis;
mod system;
mod zookeeper;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::ValueEnum as _;
use serde::Serialize;

use super::measure::measure;
use super::usage::Usage;
use crate::Outcome;
use crate::commands::cluster::{self, Json};
use system::System;

/// Compare with Redis, etcd and ZooKeeper, and with what the machine could do at most.
///
/// Clients with a connection each acquire a lock of their own and release it; a cycle ends when the
/// release is acknowledged. Every system is started anew for every measurement, on loopback and as
/// processes of its own, and measured in alternation with the others; a ratio is that of two
/// measurements of the same round. `cargo xtask peers` installs what is compared and runs this.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab bench peers
  quorate-lab bench peers --systems raw,redis,quorate1 --rounds 5
  quorate-lab bench peers --clients 1 --json

Redis, etcd and ZooKeeper are those of Debian's packages redis-server, etcd-server and zookeeper.")]
pub(crate) struct Args {
    /// What to compare; all of it without this.
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    systems: Vec<System>,
    /// How many clients.
    #[arg(long, value_name = "N", default_value_t = 64)]
    clients: usize,
    /// How long each measurement takes.
    #[arg(long, value_name = "N", default_value_t = 3)]
    seconds: u64,
    /// How often each system is measured.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    json: Json,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
struct Figure {
    system: String,
    round: usize,
    cycles_per_second: f64,
    acquire_p50_us: f64,
    acquire_p99_us: f64,
    /// What a cycle took at the servers, all together...
    servers: Usage,
    /// ...and at the clients.
    clients: Usage,
}

/// Everything, for programs.
#[derive(Debug, Serialize)]
struct Report {
    clients: usize,
    seconds: u64,
    cores: usize,
    /// How many threads wanted a core when it began and when it ended, as the system reckons.
    load_before: String,
    load_after: String,
    figures: Vec<Figure>,
}

/// The other end of the raw limit.
pub(super) fn echo() -> anyhow::Result<Outcome> {
    raw::serve()
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(args.clients > 0, "--clients must be at least 1");
    ensure!(args.seconds > 0, "--seconds must be at least 1");
    ensure!(args.rounds > 0, "--rounds must be at least 1");
    let systems = match &args.systems[..] {
        [] => System::value_variants(),
        named => named,
    };
    let load_before = load();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut figures = Vec::new();
    for round in 0..args.rounds {
        for &system in systems {
            eprintln!("round {} of {}: {}", round + 1, args.rounds, system.told());
            let figure = runtime.block_on(one(system, round, args));
            figures.push(figure.with_context(|| format!("{} was not measured", system.told()))?);
        }
    }
    let cores = std::thread::available_parallelism()?.get();
    let (clients, seconds, load_after) = (args.clients, args.seconds, load());
    let report = Report { clients, seconds, cores, load_before, load_after, figures };
    cluster::print(args.json.json, &report, || table(&report, systems))?;
    Ok(Outcome::Good)
}

async fn one(system: System, round: usize, args: &Args) -> anyhow::Result<Figure> {
    let running = system.start().await?;
    let clients = running.clients(args.clients).await?;
    let span = Duration::from_secs(args.seconds);
    let start = |window| clients.into_iter().map(|it| tokio::spawn(it.run(window))).collect();
    let measured = measure(span, || running.usage(), start).await?;
    running.stop().await;
    Ok(Figure {
        system: name(system),
        round,
        cycles_per_second: measured.cycles,
        acquire_p50_us: measured.p50,
        acquire_p99_us: measured.p99,
        servers: measured.servers.context("what servers used cannot be seen here")?,
        clients: measured.here.context("what clients used cannot be seen here")?,
    })
}

fn name(system: System) -> String {
    system.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn load() -> String {
    let told = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    told.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// The one in the middle, the smallest and the largest.
fn spread(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    Some((values[values.len().checked_sub(1)? / 2], values[0], values[values.len() - 1]))
}

/// As Markdown, for docs/speed.md.
fn table(report: &Report, systems: &[System]) -> String {
    let figures = &report.figures;
    let of = |system: System| {
        let name = name(system);
        figures.iter().filter(move |figure| figure.system == name)
    };
    let middle = |system, of_figure: &dyn Fn(&Figure) -> f64| {
        spread(of(system).map(of_figure).collect()).map_or(0.0, |(middle, ..)| middle)
    };
    let ratio = |system, to| {
        // Rounds of both, in the same order.
        let pairs = of(system).zip(of(to));
        let ratios = pairs.map(|(one, other)| one.cycles_per_second / other.cycles_per_second);
        spread(ratios.collect()).map_or_else(String::new, |(middle, low, high)| {
            format!("{middle:.2} ({low:.2} to {high:.2})")
        })
    };
    let header = [
        "system",
        "cycles/s",
        "of the raw limit",
        "× Redis",
        "acquire p50",
        "servers: user",
        "system",
        "switches",
        "clients: user",
        "system",
        "switches",
    ];
    let mut rows = Vec::new();
    for &system in systems {
        let cycles = spread(of(system).map(|figure| figure.cycles_per_second).collect());
        let cycles = cycles.map_or_else(String::new, |(middle, low, high)| {
            format!("{middle:.0} ({low:.0} to {high:.0})")
        });
        let mut row = vec![system.told().to_owned(), cycles];
        row.extend([ratio(system, System::Raw), ratio(system, System::Redis)]);
        row.push(format!("{:.2} ms", middle(system, &|figure| figure.acquire_p50_us) / 1e3));
        for side in [|figure: &Figure| figure.servers, |figure: &Figure| figure.clients] {
            row.push(format!("{:.1} µs", middle(system, &|figure| side(figure).user_us)));
            row.push(format!("{:.1} µs", middle(system, &|figure| side(figure).system_us)));
            row.push(format!("{:.2}", middle(system, &|figure| side(figure).switches)));
        }
        rows.push(row);
    }
    format!(
        "{} clients, {} cores, load {} before and {} after; the median of the rounds, and least to \
         most; times and switches are those of a cycle\n\n{}",
        report.clients,
        report.cores,
        report.load_before,
        report.load_after,
        markdown(&header, &rows)
    )
}

fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut text =
        format!("| {} |\n|---|{}\n", header.join(" | "), "---:|".repeat(header.len() - 1));
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let figure = |system, round, cycles_per_second| Figure {
            system: name(system),
            round,
            cycles_per_second,
            acquire_p50_us: 1500.0,
            acquire_p99_us: 2000.0,
            servers: Usage::default(),
            clients: Usage::default(),
        };
        let figures = vec![
            figure(System::Raw, 0, 100.0),
            figure(System::Quorate1, 0, 50.0),
            figure(System::Raw, 1, 200.0),
            figure(System::Quorate1, 1, 50.0),
            figure(System::Raw, 2, 100.0),
            figure(System::Quorate1, 2, 75.0),
        ];
        let (load_before, load_after) = ("0.1 0.2 0.3".into(), "1.0 0.5 0.3".into());
        let report = Report { clients: 64, seconds: 3, cores: 2, load_before, load_after, figures };
        let told = table(&report, &[System::Raw, System::Quorate1]);
        assert!(told.contains("| Quorate ×1 `central` | 50 (50 to 75) | 0.50 (0.25 to 0.75) |  |"));
        assert!(told.contains("| 1.50 ms |"), "{told}");
    }
}
