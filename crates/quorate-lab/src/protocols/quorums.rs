//! Options of the protocols that quorums decide.

use quorate_protocols::voting;
use quorate_sim::Plan;

/// What only quorum protocols know. Everything is optional: the swarm draws what is not given.
#[derive(clap::Args, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct QuorumOptions {
    /// arbiter: what is counted, units, or each unit as a lock [default: count]
    #[arg(long, value_enum)]
    pub(super) mode: Option<Mode>,
    /// arbiter, ticket, table: whose permissions suffice, a family as in `quorate-lab quorum
    /// report`, threshold (one for each size of claim), or auto [default: uniform, or majority for
    /// named units]
    #[arg(long, value_name = "FAMILY")]
    pub(super) family: Option<String>,
    /// arbiter: most grants at once, whatever their size; then smaller quorums will do
    #[arg(long, value_name = "M")]
    pub(super) max_holders: Option<u32>,
    /// arbiter: grants name their units although units are counted, in one round more
    #[arg(long)]
    pub(super) naming: bool,
    /// arbiter, ticket, table: nodes that vote; the others only ask [default: all, or 5 for a
    /// table]
    #[arg(long, value_name = "N")]
    pub(super) voters: Option<u32>,
    /// arbiter: nodes asked beyond a quorum [default: 0]
    #[arg(long, value_name = "N")]
    pub(super) hedge: Option<u32>,
    /// arbiter, ticket, table: crashes that the family must survive; 0 accepts one that survives
    /// none [default: 1]
    #[arg(long, value_name = "F")]
    pub(super) survive: Option<u32>,
}

/// What arbiters count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Mode {
    /// Units.
    Count,
    /// Each unit is a lock.
    Named,
}

impl QuorumOptions {
    /// As they were given, to be appended to a command.
    pub(super) fn words(&self) -> String {
        use std::fmt::Write as _;
        let mut words = String::new();
        let mut say = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                let quote = if value.contains([' ', '(', ';', '*']) { "'" } else { "" };
                _ = write!(words, " --{flag} {quote}{value}{quote}");
            }
        };
        let mode = |mode: Mode| if mode == Mode::Named { "named" } else { "count" };
        say("mode", self.mode.map(|given| mode(given).to_owned()));
        say("family", self.family.clone());
        say("max-holders", self.max_holders.map(|given| given.to_string()));
        say("voters", self.voters.map(|given| given.to_string()));
        say("hedge", self.hedge.map(|given| given.to_string()));
        say("survive", self.survive.map(|given| given.to_string()));
        if self.naming {
            words.push_str(" --naming");
        }
        words
    }

    pub(super) fn terms(&self, mode: voting::Mode) -> voting::Terms {
        voting::Terms {
            mode,
            family: self.family.clone(),
            max_holders: self.max_holders,
            voters: self.voters,
            survive: self.survive,
            naming: self.naming,
        }
    }
}

/// Whether the swarm drew the plan.
fn is_swarm(plan: &Plan) -> bool {
    plan.steps_max < u64::MAX
}

/// Whether the swarm chooses: a plan that it drew, and nothing said about quorums.
pub(super) fn is_drawn(plan: &Plan, options: &QuorumOptions) -> bool {
    is_swarm(plan) && *options == QuorumOptions::default()
}

/// Options as a plan has them: the swarm also plays pools of so few nodes that they survive no
/// crash, unless somebody says otherwise.
pub(super) fn as_planned(plan: &Plan, options: &QuorumOptions) -> QuorumOptions {
    let survive = options.survive.or_else(|| is_swarm(plan).then_some(0));
    QuorumOptions { survive, ..options.clone() }
}
