//! The protocols by name: the one place where a name on the command line becomes a type.

mod broadcast;
mod central;
mod options;
mod quorums;
mod ring;
mod sharing;
mod table;

use std::fmt;

use quorate_core::Protocol;
use quorate_protocols::arbiter::Arbiter;
use quorate_protocols::broadcast::Weighted;
use quorate_protocols::central::Central;
use quorate_protocols::reference::sharing::Sharing;
use quorate_protocols::reference::{Judged, Raymond, Raynal};
use quorate_protocols::ring::Ring;
use quorate_protocols::table::Table;
use quorate_protocols::ticket::Ticket;
use quorate_sim::{Needs, Plan, Report, Watch};

pub(crate) use broadcast::{ReclaimKind, pool as broadcast_pool, serves};
pub(crate) use options::{Options, Variant};

/// A protocol, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Name {
    /// One node decides.
    Central,
    /// Everybody is asked.
    Broadcast,
    /// Tokens go round.
    Ring,
    /// Quorums decide.
    Arbiter,
    /// Quorums give tickets.
    Ticket,
    /// Quorums keep one table of all claims.
    Table,
    /// The anonymous-resources paper's protocol P, for reference.
    Sharing,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Name::Central => "central",
            Name::Broadcast => "broadcast",
            Name::Ring => "ring",
            Name::Arbiter => "arbiter",
            Name::Ticket => "ticket",
            Name::Table => "table",
            Name::Sharing => "sharing",
        })
    }
}

/// A protocol and its own options, as chosen on the command line.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chosen {
    /// The protocol
    #[arg(long, value_enum, default_value = "central")]
    pub(crate) protocol: Name,
    #[command(flatten)]
    pub(crate) options: Options,
}

impl Chosen {
    /// Does some work with the protocol's type.
    ///
    /// # Errors
    /// Those of the work, or an option was given that the protocol does not have.
    pub(crate) fn visit<T, W: Work<Outcome = anyhow::Result<T>>>(&self, work: W) -> W::Outcome {
        self.options.fit(self.protocol)?;
        match (self.protocol, self.options.variant) {
            (Name::Central, Some(Variant::Labels)) => work.with::<Judged>(),
            (Name::Central, _) => work.with::<Central>(),
            (Name::Ring, _) => work.with::<Ring>(),
            (Name::Arbiter, _) => work.with::<Arbiter>(),
            (Name::Ticket, _) => work.with::<Ticket>(),
            (Name::Table, _) => work.with::<Table>(),
            (Name::Sharing, _) => work.with::<Sharing>(),
            (Name::Broadcast, Some(Variant::Raymond)) => work.with::<Raymond>(),
            (Name::Broadcast, Some(Variant::Raynal)) => work.with::<Raynal>(),
            (Name::Broadcast, _) => work.with::<Weighted>(),
        }
    }
}

/// The words behind `--protocol` that choose the same again.
impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.protocol, self.options)
    }
}

/// Work that can be done with any protocol.
pub(crate) trait Work {
    /// What comes of it.
    type Outcome;
    /// Does it.
    fn with<P: Offered>(self) -> Self::Outcome;
}

/// What the command must know of a protocol beyond its contract.
pub(crate) trait Offered: Protocol {
    /// What it needs from links.
    const NEEDS: Needs;

    /// Makes a drawn plan one that it can serve.
    fn fit(_plan: &mut Plan, _options: &Options) {}

    /// Changes what a plan has by default where that does not suit a pool of this size. Nodes and
    /// links are chosen already; whatever else was chosen comes after it.
    fn suit(_plan: &mut Plan) {}

    /// How much longer than any protocol it may go without granting anything ([`Plan::silence`]),
    /// also if the run begins in any state.
    fn silence(_plan: &Plan, _corrupt: bool) -> u64 {
        0
    }

    /// Its pool, as planned.
    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Self::Pool>;

    /// What people should know about the pool beyond the plan.
    fn about(_plan: &Plan, _options: &Options) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    /// A run that begins in any state, if the protocol heals from any.
    fn run_corrupted<'a>(
        _plan: &'a Plan,
        _pool: &'a Self::Pool,
        _watch: Watch<'a>,
    ) -> Option<Report> {
        None
    }
}
