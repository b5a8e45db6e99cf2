//! `quorate serve`: one member of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use quorate_node::{ConfigError, Files, Node, PoolDef};
use quorate_trust::Date;
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::daemon;
use super::service::Manager;
use super::signals::{ENDING, Signals};
use crate::Outcome;

/// How often to look whether files have changed; what has is taken up at the second look.
const LOOK: Duration = Duration::from_secs(15);

/// Run one member of a cluster.
///
/// The file names the node, its addresses, its peers and the pools; docs/configuration.md describes
/// every field. Results of `--check-config` go to standard output, the log to standard error
/// (`QUORATE_LOG=debug` shows more). Stop it with Ctrl-C or SIGTERM: clients that wait are told to
/// ask elsewhere, and nothing that is granted is taken back. When the file or a certificate
/// changes, it reads tokens, rights, certificates and the log's level anew, within a minute, or at
/// once at a SIGHUP; if anything is wrong with them, all stays as it was, and the log and /readyz
/// say so. A signal that was ignored when it started stays ignored. A service manager that speaks
/// sd_notify(3) is told when it serves, reloads and stops, and its watchdog is fed only while the
/// engine goes round.
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
    let mut files = Files::new(&args.config);
    let config = files.read().with_context(|| format!("{shown}"))?;
    let level = daemon::level(config.log.as_deref()).with_context(|| format!("{shown}: log"))?;
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
    let log = daemon::log_to_stderr(level);
    daemon::runtime()?.block_on(async {
        let mut manager = Manager::of_this_process();
        manager.starting();
        let mut node = Node::start(config).await?;
        let scheme = if keys.is_some() { "https" } else { "http" };
        eprintln!("quorate: listening on {scheme}://{}", node.clients_address());
        let mut signals = Signals::hear(&ENDING)?;
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beats = tokio::time::interval(manager.every());
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // At most one: while the engine stands still, nobody feeds the watchdog.
        let mut pulse = JoinSet::new();
        manager.ready();
        let failed = loop {
            tokio::select! {
                signal = signals.any() => match signal {
                    Signal::HUP => reload(&node, &mut files, &log, &mut manager),
                    _ => break None,
                },
                _ = looks.tick() => if files.changed() {
                    reload(&node, &mut files, &log, &mut manager);
                },
                _ = beats.tick(), if pulse.is_empty() => drop(pulse.spawn(node.pulse())),
                Some(checks) = pulse.join_next() => if let Ok(Some(checks)) = checks {
                    manager.alive(&checks);
                },
                why = node.failed() => break Some(why),
            }
        };
        manager.stopping(failed.as_deref());
        // It is a way to the engine, and the node closes those.
        pulse.shutdown().await;
        node.stop().await;
        match failed {
            None => Ok(Outcome::Good),
            Some(why) => anyhow::bail!("the node cannot go on: {why}"),
        }
    })
}

/// Takes up what a running node can of a changed file; if anything is wrong with it, nothing.
fn reload(node: &Node, files: &mut Files, log: &daemon::Log, manager: &mut Manager) {
    manager.reloading();
    let read = files.read().and_then(|config| {
        let level = daemon::level(config.log.as_deref())
            .map_err(|error| ConfigError::Text(format!("log: {error}")))?;
        Ok((config, level))
    });
    let (config, level) = match read {
        Ok((config, level)) => (Ok(config), Some(level)),
        Err(error) => (Err(error), None),
    };
    let shown = files.config().display();
    match node.reload(config) {
        Ok(()) => {
            if let Some(level) = level {
                log.set(level);
            }
            tracing::info!("tokens, rights and certificates are those of {shown} now");
        }
        Err(error) => {
            tracing::error!("{shown}: {error}; all is as it was before the file was changed");
        }
    }
    manager.reloaded();
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
