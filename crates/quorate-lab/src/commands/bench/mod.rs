//! `quorate-lab bench`: how fast this machine answers. One subcommand per subject; each lives with
//! it.

mod allocator;
mod crowd;
mod load;
mod local;
mod measure;
mod peers;
mod usage;

use crate::Outcome;
use crate::commands::quorum;

/// What can be measured.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Load(Box<load::Args>),
    Crowd(crowd::Args),
    /// One node of such a measurement
    #[command(hide = true)]
    Node(local::NodeArgs),
    Peers(peers::Args),
    /// The other end of the raw limit
    #[command(hide = true)]
    Echo,
    /// Decisions of the allocator for units that differ
    Allocator(allocator::Args),
    /// Questions of the quorum laboratory
    Quorum(quorum::bench::Args),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Load(args) => load::run(&args),
        Command::Crowd(args) => crowd::run(&args),
        Command::Node(args) => local::run(&args),
        Command::Peers(args) => peers::run(&args),
        Command::Echo => peers::echo(),
        Command::Allocator(args) => allocator::run(&args),
        Command::Quorum(args) => quorum::bench::run(&args),
    }
}
