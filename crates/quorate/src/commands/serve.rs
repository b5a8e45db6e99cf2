//! `quorate serve`: one member of a cluster.

use std::path::PathBuf;

use anyhow::Context;
use quorate_node::{Config, Node, PoolDef};
use quorate_trust::Date;

use super::daemon;
use crate::Outcome;

/// Run one member of a cluster.
///
/// The file names the node, its addresses, its peers and the pools; docs/configuration.md describes
/// every field. Results of `--check-config` go to standard output, the log to standard error
/// (`QUORATE_LOG=debug` shows more). Stop it with Ctrl-C, SIGTERM or SIGHUP: clients that wait are
/// told to ask elsewhere, and nothing that is granted is taken back. A signal that was ignored when
/// it started stays ignored.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate serve --config /etc/quorate/n1.toml
  quorate serve --config n1.toml --check-config

Exit codes: 0 stopped as asked, or the file is fine; 2 it is not, or the node cannot go on.")]
pub(crate) struct Args {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Read and check the file, and do nothing else.
    #[arg(long)]
    check_config: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let shown = args.config.display();
    let text =
        std::fs::read_to_string(&args.config).with_context(|| format!("cannot read {shown}"))?;
    let config = Config::parse(&text).with_context(|| format!("{shown}"))?;
    let keys = config.keys().with_context(|| format!("{shown}"))?;
    if args.check_config {
        crate::print(format_args!(
            "{shown} is fine: node {} of cluster {}, {} members, {} pools, digest {:016x}",
            config.name(),
            config.cluster,
            config.members.len(),
            config.pools.len(),
            config.digest
        ))?;
        if let Some((_, until)) = keys.as_ref().and_then(|keys| keys.certificate().validity()) {
            let until = Date::after(until);
            crate::print(format_args!("its certificate is good until {until}"))?;
        }
        for pool in &config.pools {
            crate::print(worth(pool))?;
        }
        for warning in config.warnings().into_iter().chain(config.fragile()) {
            crate::print(format_args!("warning: {warning}"))?;
        }
        return Ok(Outcome::Good);
    }
    daemon::log_to_stderr("info");
    daemon::runtime()?.block_on(async {
        let mut node = Node::start(config).await?;
        let scheme = if keys.is_some() { "https" } else { "http" };
        eprintln!("quorate: listening on {scheme}://{}", node.clients_address());
        let failed = tokio::select! {
            stopped = daemon::asked_to_stop() => stopped.map(|()| None),
            why = node.failed() => Ok(Some(why)),
        };
        node.stop().await;
        match failed? {
            None => Ok(Outcome::Good),
            Some(why) => anyhow::bail!("the node cannot go on: {why}"),
        }
    })
}

/// What a pool can do without, in one line.
fn worth(pool: &PoolDef) -> String {
    let (label, units, protocol) = (pool.label(), pool.units, pool.protocol.name());
    let survives = pool.promises.survives;
    let units = format!("{units} unit{}", if units == 1 { "" } else { "s" });
    let crashes = if survives == 1 { "crash" } else { "crashes" };
    match &pool.quorums {
        Some(worth) => format!("pool {label}: {units}, {worth}"),
        None => {
            let terms = pool.protocol.terms().map(|terms| format!(" ({terms})"));
            let terms = terms.unwrap_or_default();
            format!("pool {label}: {units}, {protocol}{terms}: {survives} {crashes} survived")
        }
    }
}
