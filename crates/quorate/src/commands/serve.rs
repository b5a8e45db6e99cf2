//! `quorate serve`: one member of a cluster.

mod begin;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use quorate_node::{Config, ConfigError, Data, Files, Node, PoolDef};
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
/// How often to look whether the node's own certificate is to be renewed.
const LOOK_AT_DATES: Duration = Duration::from_secs(60 * 60);

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
///
/// Without a file, a machine becomes a member by `--new` or `--join`, which write one into the data
/// directory, and is started by `quorate serve` from then on (docs/guides/joining.md).
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate serve --config /etc/quorate/n1.toml
  quorate serve --config n1.toml --check-config
  quorate serve --new --address 10.0.0.1     the first member of a new cluster
  quorate serve --join qj1/...               what `quorate member invite` printed
  quorate serve                              again, from ./quorate-data

Exit codes: 0 stopped as asked, or the file is fine; 2 it is not, or the node cannot go on.")]
pub(crate) struct Args {
    /// The configuration file; without it, the one in the data directory (--data).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    begin: begin::Begin,
    /// Read and check the file, and do nothing else.
    #[arg(long)]
    check_config: bool,
    /// End when the standard input does, and leave nothing behind (`quorate dev`).
    #[arg(long, hide = true)]
    throwaway: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let file = match &args.config {
        Some(file) => file.clone(),
        None => args.begin.file()?,
    };
    let shown = file.display();
    let mut files = Files::new(&file);
    let config = files.read().with_context(|| format!("{shown}"))?;
    let level = daemon::level(config.log.as_deref()).with_context(|| format!("{shown}: log"))?;
    if args.check_config {
        return check(&shown.to_string(), &config);
    }
    if args.throwaway {
        throw_away(file.clone(), &config);
    }
    let log = daemon::log_to_stderr(level);
    // Whoever was away for so long that its certificate expired shows a new one.
    renew(&config);
    let keys = config.keys().with_context(|| format!("{shown}"))?;
    daemon::runtime()?.block_on(async {
        let mut manager = Manager::of_this_process();
        manager.starting();
        let dated = config.clone();
        let mut node = Node::start(config).await?;
        let scheme = if keys.is_some() { "https" } else { "http" };
        if !args.throwaway {
            eprintln!("quorate: listening on {scheme}://{}", node.clients_address());
        }
        let mut signals = Signals::hear(&ENDING)?;
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut dates = tokio::time::interval(LOOK_AT_DATES);
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
                _ = dates.tick() => renew(&dated),
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

/// Ends this process when whoever started it is gone, which only the end of a pipe tells for sure,
/// and takes away its file, its data and the folder if that is empty then.
fn throw_away(file: PathBuf, config: &Config) {
    let data = match &config.data {
        Data::Directory(folder) => Some(folder.clone()),
        Data::Memory => None,
    };
    std::thread::spawn(move || {
        // An error is an end, too.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        // Nobody is left who could be told what did not work.
        let _ = data.map(std::fs::remove_dir_all);
        let _ = std::fs::remove_file(&file);
        let _ = file.parent().map(std::fs::remove_dir);
        std::process::exit(0);
    });
}

/// What there is to say of a file.
fn check(shown: &str, config: &Config) -> anyhow::Result<Outcome> {
    let keys = config.keys().with_context(|| shown.to_owned())?;
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
    Ok(Outcome::Good)
}

/// Renews the node's certificate if that is due and its own business; the new one is taken up like
/// any file that changed.
fn renew(config: &Config) {
    match quorate_node::renew(config) {
        Ok(None) => {}
        Ok(Some(until)) => {
            tracing::info!("this node's certificate is renewed, until {}", Date::after(until));
        }
        Err(error) => tracing::error!("this node's certificate is to be renewed, and: {error}"),
    }
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
            let survived = format!("{survives} {crashes} survived");
            match pool.protocol.bound() {
                // First, since who reads on is told of all that goes on.
                Some(bound) => {
                    format!(
                        "pool {label}: {units}, {protocol}{terms}: {bound}; by others {survived}"
                    )
                }
                None => format!("pool {label}: {units}, {protocol}{terms}: {survived}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_grants_end_with_their_node_says_so_before_anything_else() {
        let config = |protocol: &str| {
            let text = format!(
                "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
                 listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
                 members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }},\n\
                 {{ name = \"b\", peers = \"127.0.0.1:3\" }},\n\
                 {{ name = \"c\", peers = \"127.0.0.1:4\" }}]\n\
                 [[pools]]\nname = \"p\"\nunits = 9\n{protocol}"
            );
            Config::parse_in_memory(&text).unwrap()
        };
        for (protocol, starts) in [
            ("protocol = \"ring\"", "pool p: 9 units, ring: each grant belongs to the node"),
            ("protocol = \"broadcast\"\nnode_units_max = 2", "pool p: 9 units, broadcast ("),
            ("", "pool p: 9 units, central: 0 crashes survived"),
        ] {
            let said = worth(&config(protocol).pools[0]);
            assert!(said.starts_with(starts), "{said}");
            assert_eq!(said.contains(": each grant belongs to the node"), !protocol.is_empty());
        }
    }
}
