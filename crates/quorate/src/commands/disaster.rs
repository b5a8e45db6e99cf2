//! `quorate cluster`: how a cluster gets a charter, and goes on when most of that is lost.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use quorate_api::{BackupView, MemberRow};
use quorate_node::{AtRest, Config, Node, Recovered};

use super::cluster::{self, Cluster};
use super::daemon;
use super::keep::{self, Access};
use crate::Outcome;

/// Begin a charter, keep a copy of it, and go on when its majority is lost.
///
/// For clusters with a charter (docs/charter.md). A copy has members, pools, drains and rights, and
/// no grants.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    Backup(Backup),
    Import(Import),
    Recover(Recover),
    Restore(Restore),
}

/// Give a cluster of files, which ran without a charter, its first.
///
/// While it runs: add `[charter]` with `enabled = true` and `import = true` to the files, restart
/// one member after the other, the first of the list first, and run this at any of them. Until then
/// pools of `central` are decided by the nodes that decided before; with it these give that up, and
/// hand over what they granted: pools that name no `arbiter` have seats that move, nobody loses a
/// grant, and nothing is granted for a moment. All other pools go on untouched. It needs all
/// members; if one fails in the middle, it goes on when that one is back.
///
/// With all members stopped: raise `epoch` and add `[charter]` without `import` in all files, run
/// this with `--config` on the first member of the list, and start all again: the others are let
/// in. Pools of `central` grant again after a licence and a lease, since what was granted before is
/// in no book that they could read; whoever holds units and can renew in time keeps them.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate cluster import                        while all members run
  quorate cluster import --config n1.toml       while none does

Exit codes: 0 it is done; 2 it is not, and nothing changed, unless it says that it is on its way.")]
struct Import {
    /// The new configuration file of the first member, while no member runs.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    cluster: Cluster,
}

/// Write the charter to a file.
///
/// It has every change that was answered as done before. Readable for you alone: it has digests of
/// tokens. If the cluster tells callers apart, this takes `admin` on all pools.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate cluster backup charter-2026-11-18.json

Exit codes: 0 it is written; 2 it is not.")]
struct Backup {
    /// The file, which must not be there yet.
    file: PathBuf,
    #[command(flatten)]
    cluster: Cluster,
}

/// Go on with one member when most of those who vote are lost for good.
///
/// Run it at the one survivor whose last entry is the latest (without the flag it says which that
/// is, and changes nothing), while no member runs. The charter goes on there with one member, in a
/// new incarnation: fences go on growing, and pools grant again after a licence and a lease.
/// Changes that the survivor never heard of are lost. The others join again with empty data
/// directories; one that starts from its old directory is told that it is no member, and ends.
///
/// If most of those who vote are only stopped or cut off, start or reconnect them instead: two that
/// go on apart grant the same units twice, until they hear of each other.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate cluster recover --config n1.toml                        what this survivor has
  quorate cluster recover --config n1.toml --i-lost-the-majority

Exit codes: 0 it is done; 2 it is not, and nothing changed.")]
struct Recover {
    /// The configuration file of the survivor.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Say that the majority will not come back.
    #[arg(long)]
    i_lost_the_majority: bool,
    /// An incarnation that was there later than the one of this store, if it was recovered or
    /// restored elsewhere and that is lost too.
    #[arg(long, value_name = "INCARNATION")]
    after: Option<u64>,
}

/// Go on from a backup when no member has a store any more.
///
/// Run it at one machine, with an empty data directory, while no member runs; start it, and then
/// the others with empty directories. Changes after the backup are lost. It is a new incarnation,
/// so that fences go on growing: if this backup was restored before, say with --after which one
/// that was.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate cluster restore charter-2026-11-18.json --config n1.toml

Exit codes: 0 it is done; 2 it is not, and nothing changed.")]
struct Restore {
    /// What `quorate cluster backup` wrote.
    file: PathBuf,
    /// The configuration file of this machine.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// An incarnation that was there after this backup, if it is known that one was.
    #[arg(long, value_name = "INCARNATION")]
    after: Option<u64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.verb {
        Verb::Backup(args) => backup(args),
        Verb::Import(args) => import(args),
        Verb::Recover(args) => recover(args),
        Verb::Restore(args) => restore(args),
    }
}

fn backup(Backup { file, cluster }: &Backup) -> anyhow::Result<Outcome> {
    let backup = cluster::block_on(async { Ok(cluster.views()?.charter_backup().await?) })?;
    let text = serde_json::to_string_pretty(&backup)? + "\n";
    keep::create("".as_ref(), &[(file, &text, Access::Owner)])?;
    let BackupView { version, incarnation, members, pools, .. } = &backup;
    crate::print(format_args!(
        "{}: charter version {version}, incarnation {incarnation}, {} and {}",
        file.display(),
        count(members.len(), "member"),
        count(*pools as usize, "pool")
    ))?;
    Ok(Outcome::Good)
}

fn recover(args: &Recover) -> anyhow::Result<Outcome> {
    let config = read(&args.config)?;
    if !args.i_lost_the_majority {
        let AtRest { version, incarnation, last: (term, index), members, pools } =
            Node::charter_at_rest(&config)?;
        let named = |(name, votes): &(String, bool)| match votes {
            true => format!("{name} votes"),
            false => format!("{name} follows"),
        };
        let members: Vec<String> = members.iter().map(named).collect();
        bail!(
            "nothing changed. {} has charter version {version}, incarnation {incarnation}, {}, \
             last entry {index} of term {term}; members: {}. Look at every survivor: the one with \
             the largest term, and of those the one with the largest entry, has all that is left. \
             There, if most of those who vote are lost for good, say --i-lost-the-majority",
            config.name(),
            count(pools, "pool"),
            members.join(", ")
        );
    }
    let done = daemon::runtime()?.block_on(Node::recover(&config, args.after))?;
    say(&config, &done)
}

fn restore(args: &Restore) -> anyhow::Result<Outcome> {
    let config = read(&args.config)?;
    let shown = args.file.display();
    let text = std::fs::read_to_string(&args.file).with_context(|| format!("reading {shown}"))?;
    let backup: BackupView = serde_json::from_str(&text)
        .with_context(|| format!("{shown} is no backup of a charter; nothing changed"))?;
    let restored = Node::restore(&config, &backup.charter, args.after);
    let done = daemon::runtime()?.block_on(restored).with_context(|| shown.to_string())?;
    say(&config, &done)
}

fn import(args: &Import) -> anyhow::Result<Outcome> {
    let Some(config) = &args.config else {
        let view = cluster::block_on(async { Ok(args.cluster.views()?.charter_import().await?) })?;
        let groups = |it: &MemberRow| format!("{} for {} groups", it.name, it.groups);
        let decide: Vec<String> = view.members.iter().map(groups).collect();
        crate::print("the charter says who decides over pools of central, and who does next")?;
        crate::print(format_args!("of 256 groups of pools: {}", decide.join(", ")))?;
        return Ok(Outcome::Good);
    };
    let config = read(config)?;
    daemon::runtime()?.block_on(Node::import(&config))?;
    let name = config.name();
    crate::print(format_args!("{name}: it founds the charter at its next start"))?;
    crate::print("start all members: seats that move grant after a licence and a lease")?;
    Ok(Outcome::Good)
}

fn say(config: &Config, done: &Recovered) -> anyhow::Result<Outcome> {
    let Recovered { incarnation, gone, pools, kept } = done;
    let name = config.name();
    crate::print(format_args!(
        "{name}: the charter goes on with {name} alone, in incarnation {incarnation}, with {}",
        count(*pools, "pool")
    ))?;
    if let Some(kept) = kept {
        crate::print(format_args!("{name}: the store before is {kept}; never start from it"))?;
    }
    crate::print(format_args!("start {name}: it grants after a licence and a lease"))?;
    if config.joins {
        crate::print("then invite other machines: names that were members' are used up")?;
    } else if !gone.is_empty() {
        let others = gone.join(", ");
        crate::print(format_args!("then start with empty data directories: {others}"))?;
    }
    Ok(Outcome::Good)
}

fn read(path: &Path) -> anyhow::Result<Config> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
    Config::parse(&text).with_context(|| format!("{shown}"))
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
