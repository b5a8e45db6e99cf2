//! Options of the protocols that quorums decide, and the pools they make.

use anyhow::ensure;
use quorate_core::Lease;
use quorate_protocols::arbiter::{self, Arbiter};
use quorate_protocols::quorums::Quorums;
use quorate_protocols::quorums::family::Need;
use quorate_protocols::ticket::{self, Ticket};
use quorate_protocols::voting::{self, Settled};
use quorate_sim::{Needs, Plan};

use super::{Offered, Options};

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

    /// A pool of permissions, as far as these options make it, and what its quorums are worth.
    pub(crate) fn arbiter(
        &self,
        nodes: u32,
        units: u32,
    ) -> anyhow::Result<(arbiter::Pool, voting::Worth)> {
        let mode = match self.mode {
            Some(Mode::Named) => voting::Mode::Named,
            _ => voting::Mode::Arbiter,
        };
        match self.terms(mode).settle(nodes, units)? {
            Settled { pool: voting::Pool::Arbiter(mut pool), worth } => {
                pool.hedge = self.hedge.unwrap_or(0);
                Ok((pool, worth))
            }
            Settled { .. } => unreachable!("permissions make a pool of permissions"),
        }
    }

    /// What the swarm plays when nothing is said: every mode, and families that fit.
    fn drawn(plan: &Plan) -> arbiter::Pool {
        const KINDS: [(Mode, &str, u32); 9] = [
            (Mode::Count, "uniform", u32::MAX),
            (Mode::Named, "majority", u32::MAX),
            (Mode::Count, "threshold", u32::MAX),
            (Mode::Count, "uniform", 2),
            (Mode::Named, "grid", u32::MAX),
            (Mode::Count, "hierarchy", u32::MAX),
            (Mode::Named, "hierarchy", u32::MAX),
            (Mode::Count, "cube", 2),
            (Mode::Count, "singleton", u32::MAX),
        ];
        let (nodes, units) = (plan.nodes, plan.pool.units);
        let (mode, spec, most) = KINDS[(plan.seed % KINDS.len() as u64) as usize];
        let holders_max = most.min(units);
        let (n, k) = (nodes as usize, units as usize);
        let need = match mode {
            Mode::Named => Need::coterie(n, k),
            Mode::Count => Need::counting(n, k, holders_max as usize),
        };
        let mut pool = arbiter::Pool::new(units, nodes);
        // Where a family does not fit the nodes, the uniform one always does.
        pool.quorums =
            need.quorums(spec).unwrap_or_else(|_| Quorums::uniform(nodes, need.meet as u32));
        pool.mode = match mode {
            Mode::Named => arbiter::Mode::Named,
            Mode::Count => arbiter::Mode::Count { holders_max, backfill: 0 },
        };
        pool.hedge = (plan.seed % 3) as u32;
        pool.patience = Some(2 + (plan.seed % 2) as u32);
        pool.naming = mode == Mode::Count && plan.seed / KINDS.len() as u64 % 4 == 3;
        pool
    }

    /// A pool of tickets, which need a coterie and nothing else.
    pub(crate) fn ticket(
        &self,
        nodes: u32,
        units: u32,
    ) -> anyhow::Result<(ticket::Pool, voting::Worth)> {
        let other = self.mode.is_some() || self.max_holders.is_some() || self.hedge.is_some();
        ensure!(!other && !self.naming, "ticket has no --mode, --max-holders, --hedge or --naming");
        match self.terms(voting::Mode::Ticket).settle(nodes, units)? {
            Settled { pool: voting::Pool::Ticket(pool), worth } => Ok((pool, worth)),
            Settled { .. } => unreachable!("tickets make a pool of tickets"),
        }
    }
}

impl Offered for Ticket {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<ticket::Pool> {
        let options = &options.quorums;
        let Some(length) = plan.pool.lease else {
            anyhow::bail!("ticket lives by leases: give --lease a duration");
        };
        let mut pool = match is_drawn(plan, options) {
            true => {
                let mut pool = ticket::Pool::new(plan.pool.units, plan.nodes);
                let need = Need::coterie(plan.nodes as usize, plan.pool.units as usize);
                pool.quorums = need.drawn(plan.seed);
                pool.spares = (plan.seed / 4 % 3) as u32;
                pool.patience = Some(2 + (plan.seed % 2) as u32);
                pool
            }
            false => as_planned(plan, options).ticket(plan.nodes, plan.pool.units)?.0,
        };
        pool.lease = Lease::new(length, plan.pool.drift_ppm);
        pool.retry = plan.pool.retry;
        Ok(pool)
    }

    fn about(plan: &Plan, options: &Options) -> anyhow::Result<Option<String>> {
        let options = &options.quorums;
        if is_drawn(plan, options) {
            return Ok(None);
        }
        let (_, worth) = as_planned(plan, options).ticket(plan.nodes, plan.pool.units)?;
        Ok(Some(format!("{}: {}", worth.family, worth.summary)))
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

impl Offered for Arbiter {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<arbiter::Pool> {
        let options = &options.quorums;
        let Some(length) = plan.pool.lease else {
            anyhow::bail!("arbiter lives by leases: give --lease a duration");
        };
        let mut pool = match is_drawn(plan, options) {
            true => QuorumOptions::drawn(plan),
            false => as_planned(plan, options).arbiter(plan.nodes, plan.pool.units)?.0,
        };
        pool.lease = Lease::new(length, plan.pool.drift_ppm);
        pool.retry = plan.pool.retry;
        pool.durable = plan.pool.durable;
        if let arbiter::Mode::Count { backfill, .. } = &mut pool.mode {
            *backfill = plan.pool.backfill;
        }
        Ok(pool)
    }

    fn about(plan: &Plan, options: &Options) -> anyhow::Result<Option<String>> {
        if is_drawn(plan, &options.quorums) {
            let quorums = Self::pool(plan, options)?.quorums;
            return Ok(Some(format!("drawn: {} voters", quorums.members().len())));
        }
        let options = as_planned(plan, &options.quorums);
        let (_, worth) = options.arbiter(plan.nodes, plan.pool.units)?;
        Ok(Some(format!("{}: {}", worth.family, worth.summary)))
    }
}
