//! `quorate init`: the word that a cluster is new, said once.

use std::path::PathBuf;

use anyhow::Context;
use quorate_node::{Config, Node};

use super::daemon;
use crate::Outcome;

/// Say that a cluster is new, so that its members grant at their first start.
///
/// Run it by hand, on each member, before anybody started any of them: it says that nobody holds
/// anything. The word is kept in the data directory and used up by the first start from there.
/// Without it, and whenever a data directory was lost, a member waits up to a minute and then as
/// long as anything promised earlier may be in use. So no script needs it.
///
/// Nothing is written if the directory was in use before, or if another member answers and has met
/// an earlier start of this one, or has itself been started more than once.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate init --config n1.toml
  quorate serve --config n1.toml

Exit codes: 0 it is said; 2 it is not, and nothing was written.")]
pub(crate) struct Args {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let shown = args.config.display();
    let text = std::fs::read_to_string(&args.config).with_context(|| format!("reading {shown}"))?;
    let config = Config::parse(&text).with_context(|| format!("{shown}"))?;
    daemon::runtime()?.block_on(Node::check_new(&config))?;
    Node::init(&config)?;
    let (name, cluster) = (config.name(), &config.cluster);
    crate::print(format_args!("{name}: cluster {cluster} is new at its next start"))?;
    if config.founds_charter() {
        crate::print(format_args!("{name}: it founds the charter then, and lets the others in"))?;
    }
    Ok(Outcome::Good)
}
