//! `quorate-lab quorum`: families of quorums. One file per subcommand; the mathematics is in
//! quorate-quorum.

pub(crate) mod bench;
mod check;
mod compare;
mod draw;
mod input;
mod json;
mod plan;
mod plot;
mod report;
pub(crate) mod sharing;
mod show;
mod words;

use crate::Outcome;

/// Subcommands of `quorate-lab quorum`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Everything about one family
    Report(report::Args),
    /// Examine a family given by its quorums, with a counterexample for every "no"
    Check(check::Args),
    /// Several families side by side
    Compare(compare::Args),
    /// Draw a family
    Show(show::Args),
    /// Which family to use, and why
    Plan(plan::Args),
    /// Units that differ: groups, circuits, constructions for who may use which
    Sharing(sharing::Args),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Report(args) => report::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Sharing(args) => sharing::run(&args),
    }
}
