//! The protocols that can be compared, and how a setting becomes their pool.

use std::time::Duration;

use anyhow::Context as _;
use quorate_core::{Lease, NodeSet, Protocol};
use quorate_protocols::arbiter::{self, Arbiter};
use quorate_protocols::broadcast::{self, Reclaim, Weighted};
use quorate_protocols::central::{self, Central};
use quorate_protocols::quorums::Quorums;
use quorate_protocols::reference::{Raymond, Raynal};
use quorate_protocols::ring::{self, Ring};
use quorate_protocols::table::{self, Table};
use quorate_protocols::ticket::{self, Ticket};
use serde::{Deserialize, Serialize};

use super::setting::{self, Parameter, Setting};

/// A protocol, with the options that make it what a paper describes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contender {
    /// One node decides.
    Central,
    /// Quorums that decide: any ⌊kn/(k+1)⌋+1 nodes.
    ArbiterUniform,
    /// Quorums that decide: k+1 hyperplanes of a cube.
    ArbiterCube,
    /// Majorities give tickets.
    Ticket,
    /// Majorities of five keep one table.
    Table,
    /// Tokens go round.
    Ring,
    /// Raymond 1989.
    Raymond,
    /// Raynal 1991.
    Raynal,
    /// Bouillaguet, Arantes and Sens 2009, corrected.
    TimerFree,
    /// Weighted requests with timer-free detection.
    Weighted,
}

/// Work that can be done with any contender.
pub(crate) trait Work {
    /// What comes of it.
    type Outcome;
    /// Does it.
    fn with<P: Watched>(self, pool: &P::Pool) -> Self::Outcome;
}

/// A protocol whose opinions about crashes can be seen.
pub(crate) trait Watched: Protocol {
    /// Whom a participant believes to have crashed; `None` if it never believes anything.
    fn crashed(&self) -> Option<&NodeSet> {
        None
    }
}

impl Watched for Central {}
impl Watched for Arbiter {}
impl Watched for Ticket {}
impl Watched for Table {}
impl Watched for Ring {}
impl Watched for Raymond {}
impl Watched for Raynal {}
impl Watched for Weighted {
    fn crashed(&self) -> Option<&NodeSet> {
        Some(self.crashed())
    }
}

impl Contender {
    /// Its name, as in files and legends.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Contender::Central => "central",
            Contender::ArbiterUniform => "arbiter-uniform",
            Contender::ArbiterCube => "arbiter-cube",
            Contender::Ticket => "ticket",
            Contender::Table => "table",
            Contender::Ring => "ring",
            Contender::Raymond => "raymond",
            Contender::Raynal => "raynal",
            Contender::TimerFree => "timer-free",
            Contender::Weighted => "weighted",
        }
    }

    /// Whether links must keep the order of messages.
    pub(crate) fn needs_order(self) -> bool {
        self == Contender::Ring
    }

    /// Whether it has such a parameter.
    pub(crate) fn has(self, parameter: Parameter) -> bool {
        let finds_crashes = matches!(self, Contender::TimerFree | Contender::Weighted);
        match parameter {
            Parameter::CrashesMax | Parameter::Notices => finds_crashes,
            Parameter::Probe | Parameter::Reclaim => finds_crashes,
            Parameter::NodeUnitsMax => self == Contender::Weighted,
            Parameter::Lease => {
                !matches!(self, Contender::Raymond | Contender::Raynal | Contender::TimerFree)
            }
            _ => true,
        }
    }

    /// A setting without what the protocol does not have (but on the axis `x` it stays where it
    /// is), and with what follows where nothing was said.
    pub(crate) fn settle(self, setting: Setting, x: Parameter) -> Setting {
        let has = |parameter| parameter == x || self.has(parameter);
        let lease = if has(Parameter::Lease) { setting.lease } else { 0.0 };
        let reclaim = setting.reclaim.unwrap_or(match self {
            Contender::TimerFree => setting::Reclaim::TrustRp,
            _ if lease > 0.0 => setting::Reclaim::Lease,
            _ => setting::Reclaim::Never,
        });
        Setting {
            crashes_max: if has(Parameter::CrashesMax) { setting.crashes_max } else { 0 },
            node_units_max: match self {
                Contender::Weighted => setting.node_units_max,
                Contender::Raymond | Contender::TimerFree => 1,
                _ => setting.units,
            },
            notices: has(Parameter::Notices) && setting.notices,
            probe: if has(Parameter::Probe) { setting.probe } else { 0.0 },
            reclaim: self.has(Parameter::Reclaim).then_some(reclaim),
            lease,
            ..setting
        }
    }

    /// Does some work with the protocol's type and its pool.
    ///
    /// # Errors
    /// Those of the work, or there is no such family of quorums.
    pub(crate) fn visit<T, W: Work<Outcome = anyhow::Result<T>>>(
        self,
        setting: &Setting,
        work: W,
    ) -> W::Outcome {
        let Setting { nodes, units, crashes_max, node_units_max, .. } = *setting;
        let lease =
            (setting.lease > 0.0).then(|| Lease::new(Duration::from_secs_f64(setting.lease), 0));
        // Longer than any run: then leases play no part in what is compared.
        let some_lease = lease.unwrap_or(Lease::new(Duration::from_secs(1_000_000), 0));
        let retry = lease.map_or(Duration::from_secs(100_000), |lease| lease.length() / 10);
        let options = |pool: broadcast::Pool| broadcast::Pool {
            notices: setting.notices,
            probe: (setting.probe > 0.0).then(|| Duration::from_secs_f64(setting.probe)),
            retry: None,
            reclaim: match setting.reclaim {
                Some(setting::Reclaim::Lease) => Reclaim::Lease(some_lease),
                Some(setting::Reclaim::TrustRp) => Reclaim::TrustRp,
                Some(setting::Reclaim::Never) | None => Reclaim::Never,
            },
            ..pool
        };
        match self {
            Contender::Central => {
                let mut pool = central::Pool::new(units);
                (pool.goods.lease, pool.goods.retry) = (some_lease, retry);
                work.with::<Central>(&pool)
            }
            Contender::ArbiterUniform | Contender::ArbiterCube => {
                let mut pool = arbiter::Pool::new(units, nodes);
                if self == Contender::ArbiterCube {
                    let family =
                        quorate_quorum::build("cube", Some(nodes as usize), units as usize)?;
                    let quorums = family.rule.enumerate(quorate_quorum::answers::LISTED_MAX);
                    let quorums = quorums.context("too many quorums to write out")?;
                    pool.quorums = Quorums::Explicit(quorums.into());
                }
                (pool.lease, pool.retry) = (some_lease, retry);
                work.with::<Arbiter>(&pool)
            }
            Contender::Ticket => {
                let mut pool = ticket::Pool::new(units, nodes);
                (pool.lease, pool.retry) = (some_lease, retry);
                work.with::<Ticket>(&pool)
            }
            Contender::Table => {
                let mut pool = table::Pool::new(units, nodes.min(5));
                (pool.goods.lease, pool.goods.retry) = (some_lease, retry);
                work.with::<Table>(&pool)
            }
            Contender::Ring => {
                let mut pool = ring::Pool::new(units, nodes);
                pool.lease = some_lease;
                // A root less patient than a traversal only makes traffic.
                let traversal = f64::from(nodes) * setting.latency;
                pool.timeout = Duration::from_secs_f64(4.0 * traversal);
                pool.idle = Duration::from_secs_f64(setting.latency);
                work.with::<Ring>(&pool)
            }
            Contender::Raymond => work.with::<Raymond>(&broadcast::Pool::raymond(nodes, units)),
            Contender::Raynal => work.with::<Raynal>(&broadcast::Pool::raynal(nodes, units)),
            Contender::TimerFree => {
                let pool = broadcast::Pool::timer_free(nodes, units, crashes_max);
                work.with::<Weighted>(&options(pool))
            }
            Contender::Weighted => {
                let pool = broadcast::Pool::weighted(nodes, units, node_units_max, crashes_max);
                work.with::<Weighted>(&options(pool))
            }
        }
    }
}
