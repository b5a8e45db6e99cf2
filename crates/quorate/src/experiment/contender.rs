//! The protocols that can be compared, and how a setting becomes their pool.

use std::time::Duration;

use quorate_core::{Lease, NodeSet, Protocol};
use quorate_protocols::broadcast::{self, Raymond, Raynal, Weighted};
use quorate_protocols::central::{self, Central};
use serde::{Deserialize, Serialize};

use super::sweep::Setting;

/// A protocol, with the options that make it what a paper describes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contender {
    /// One node decides.
    Central,
    /// Raymond 1989.
    Raymond,
    /// Raynal 1991.
    Raynal,
    /// Bouillaguet, Arantes and Sens 2009, corrected.
    TimerFree,
    /// Weighted requests with timer-free detection; suspects are never counted out.
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
            Contender::Raymond => "raymond",
            Contender::Raynal => "raynal",
            Contender::TimerFree => "timer-free",
            Contender::Weighted => "weighted",
        }
    }

    /// Does some work with the protocol's type and its pool.
    pub(crate) fn visit<W: Work>(self, setting: &Setting, work: W) -> W::Outcome {
        let Setting { nodes, units, crashes_max, node_units_max, .. } = *setting;
        let options = |pool: broadcast::Pool| broadcast::Pool {
            notices: setting.notices,
            probe: (setting.probe > 0.0).then(|| Duration::from_secs_f64(setting.probe)),
            retry: None,
            ..pool
        };
        match self {
            Contender::Central => {
                let mut pool = central::Pool::new(units);
                // Longer than any run: leases play no part in what is compared.
                pool.lease = Lease::new(Duration::from_secs(1_000_000), 0);
                pool.retry = Duration::from_secs(100_000);
                work.with::<Central>(&pool)
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
