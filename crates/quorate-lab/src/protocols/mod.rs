//! The protocols as the laboratory knows them: one file each, and the list of what `--protocol` can
//! be. Commands that are about one protocol or one paper name it; all others go by this list.

mod arbiter;
mod broadcast;
mod central;
mod options;
mod quorums;
mod ring;
mod sharing;
mod table;
#[cfg(test)]
mod tests;
mod ticket;

use std::fmt;
use std::sync::{LazyLock, OnceLock};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use quorate_core::{Explorable, NodeId, NodeSet, Protocol};
use quorate_sim::{Hands, Needs, Plan, Report, Watch};

use crate::Outcome;
use crate::commands::sim::{run, seeds};
use crate::commands::{check, play};
use crate::experiment::Sample;
use crate::experiment::play::{Job, measure_with};

pub(crate) use broadcast::ReclaimKind;
pub(crate) use options::Options;

/// What `--protocol` can be. A new protocol is a file beside this one and a line here.
const REGISTRY: &[Registered] = &[
    central::CENTRAL,
    broadcast::BROADCAST,
    ring::RING,
    arbiter::ARBITER,
    ticket::TICKET,
    table::TABLE,
    sharing::SHARING,
];

/// The list, and what was added to it.
static KNOWN: OnceLock<Vec<Registered>> = OnceLock::new();

/// The list begins with ours, and ends with these. Once, before anybody looks.
pub(crate) fn add(own: impl Iterator<Item = Registered>) {
    let all = REGISTRY.iter().copied().chain(own).collect();
    assert!(KNOWN.set(all).is_ok(), "protocols are added once");
}

/// What `--protocol` can be.
pub(crate) fn registry() -> &'static [Registered] {
    KNOWN.get().map_or(REGISTRY, |all| all)
}

/// A protocol, as commands choose it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registered {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, in a few words.
    pub(crate) about: &'static str,
    /// What can be done with it if no variant is chosen.
    pub(crate) does: Does,
    /// What `--variant` can be.
    pub(crate) variants: &'static [Variant],
    /// The options that it has and not every protocol.
    pub(crate) options: &'static [options::Group],
    /// What `sim seeds --every` plays: of each swarm the options that come after the name.
    pub(crate) swarms: &'static [&'static str],
}

/// A variant of a protocol, by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is, after the name of its protocol.
    pub(crate) about: &'static str,
    /// What can be done with it.
    pub(crate) does: Does,
}

/// Explores as `check` would, without a word.
pub(crate) type Explore = fn(&check::Args) -> anyhow::Result<Vec<quorate_check::Report>>;

/// What the commands that take `--protocol` do with one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Does {
    /// `sim run`.
    pub(crate) run: fn(&run::Args) -> anyhow::Result<Outcome>,
    /// A run of an experiment.
    pub(crate) measure: fn(&Job<'_>) -> anyhow::Result<Sample>,
    /// Whether there is such a pool.
    pub(crate) fits: fn(&Plan, &Options) -> anyhow::Result<()>,
    /// `sim seeds`.
    pub(crate) seeds: fn(&seeds::Args) -> anyhow::Result<Outcome>,
    /// `play`.
    pub(crate) play: fn(&play::Words, play::Trace<'_>) -> anyhow::Result<play::Played>,
    /// `check`, unless the protocol is only for simulated runs.
    pub(crate) check: Option<fn(&check::Args) -> anyhow::Result<Outcome>>,
    /// The same without a word: what was found out.
    pub(crate) explore: Option<Explore>,
}

impl Does {
    /// It can be simulated.
    pub(crate) const fn simulated<P: Offered>() -> Does {
        Does {
            run: run::run_with::<P>,
            measure: measure_with::<P>,
            fits: |plan, options| P::pool(plan, options).map(|_| ()),
            seeds: seeds::run_with::<P>,
            play: play::play_with::<P>,
            check: None,
            explore: None,
        }
    }

    /// It can be simulated and checked.
    pub(crate) const fn all<P: Offered + Checked>() -> Does {
        Does {
            check: Some(check::run_with::<P>),
            explore: Some(check::reports_with::<P>),
            ..Does::simulated::<P>()
        }
    }
}

impl ValueEnum for Registered {
    fn value_variants<'a>() -> &'a [Registered] {
        registry()
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.about))
    }
}

static VARIANTS: LazyLock<Vec<Variant>> =
    LazyLock::new(|| registry().iter().flat_map(|one| one.variants).copied().collect());

impl ValueEnum for Variant {
    fn value_variants<'a>() -> &'a [Variant] {
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.about))
    }
}

/// A protocol and its own options, as chosen on the command line.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Chosen {
    /// The protocol
    #[arg(long, value_enum, default_value = "central")]
    pub(crate) protocol: Registered,
    #[command(flatten)]
    pub(crate) options: Options,
}

impl Chosen {
    /// What can be done with it.
    ///
    /// # Errors
    /// An option was given that the protocol does not have.
    pub(crate) fn does(&self) -> anyhow::Result<Does> {
        self.options.fit(&self.protocol)?;
        Ok(self.options.variant.map_or(self.protocol.does, |variant| variant.does))
    }
}

/// The words behind `--protocol` that choose the same again.
impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.protocol.name, self.options)
    }
}

/// What the simulator's commands must know of a protocol beyond its contract.
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

    /// Whom a participant believes to have crashed; `None` if it never believes anything.
    fn crashed(&self) -> Option<&NodeSet> {
        None
    }

    /// Its pool, as planned.
    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Self::Pool>;

    /// Whether it heals from any state.
    const HEALS: bool = false;

    /// A run in which somebody interferes, from any state if it heals from any.
    fn play<'a>(
        plan: &'a Plan,
        pool: &'a Self::Pool,
        watch: Watch<'a>,
        hands: Hands,
        corrupt: bool,
    ) -> Option<Report> {
        (!corrupt).then(|| quorate_sim::run_with::<Self>(plan, pool, watch, hands))
    }

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

/// What `check` must know of a protocol beyond its contract.
pub(crate) trait Checked: Explorable<Pool: Sync> {
    /// Whether an arbiter of its sets units aside for others before they hear of it.
    const HAS_BOOKS: bool;
    /// Whether claims can choose among units...
    const CHOOSES: bool = false;
    /// ...and holders be asked to move.
    const MOVES: bool = false;

    /// The pool, as asked for.
    fn small(args: &check::Args) -> anyhow::Result<Self::Pool>;

    /// Nodes that differ from all others, whoever crashes: unless they are known to be few, all.
    fn special(args: &check::Args) -> Vec<NodeId> {
        (0..args.nodes).map(NodeId::from).collect()
    }

    /// How often alarms may ring early, unless it was said; as often as they like if `None`.
    fn early_rings() -> Option<u8> {
        None
    }

    /// How many quorums a client of this node chooses among, if every choice is to be looked at.
    fn choices(_pool: &Self::Pool, _home: NodeId) -> Option<u64> {
        None
    }

    /// The control plane, for protocols that ask one.
    fn council(_args: &check::Args) -> Option<quorate_check::Council> {
        None
    }

    /// Most equal copies of a message on one link.
    fn copies_max(_args: &check::Args) -> usize {
        1
    }
}
