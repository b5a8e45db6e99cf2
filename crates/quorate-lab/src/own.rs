//! Protocols that this repository does not know.

use std::time::Duration;

use quorate_core::Explorable;
use quorate_protocols::Fairness;
use quorate_sim::{Needs, Plan, PoolPlan};

use crate::commands::check;
use crate::protocols::{Checked, Does, Offered, Options, Registered};

/// What the laboratory must know of a protocol beyond its contract, to simulate and to check it.
pub trait Own: Explorable<Pool: Sync> {
    /// What it does, in a few words.
    const ABOUT: &'static str;
    /// What it needs from links and nodes beyond the contract.
    const NEEDS: Needs;
    /// Whether somebody sets units aside for a claim before its client hears of it: then the
    /// checker makes sure that this can be seen happening.
    const HAS_BOOKS: bool;

    /// The pool of so many nodes, as planned.
    ///
    /// # Errors
    /// There is none like this, and why.
    fn pool(plan: &PoolPlan, nodes: u32) -> Result<Self::Pool, String>;
}

/// A protocol for [`main`](crate::main).
#[derive(Clone, Copy, Debug)]
pub struct Added(pub(crate) Registered);

impl Added {
    /// This one.
    pub fn of<P: Own>() -> Added {
        let does = Does::all::<P>();
        let (variants, options, swarms) = (&[], &[], &[""]);
        Added(Registered { name: P::NAME, about: P::ABOUT, does, variants, options, swarms })
    }
}

impl<P: Own> Offered for P {
    const NEEDS: Needs = <P as Own>::NEEDS;

    fn pool(plan: &Plan, _: &Options) -> anyhow::Result<P::Pool> {
        <P as Own>::pool(&plan.pool, plan.nodes).map_err(anyhow::Error::msg)
    }
}

/// How long leases are in small worlds, where time stands still and only their end matters.
const LEASE: Duration = Duration::from_secs(10);

impl<P: Own> Checked for P {
    const HAS_BOOKS: bool = <P as Own>::HAS_BOOKS;

    fn small(args: &check::Args) -> anyhow::Result<P::Pool> {
        let plan = PoolPlan {
            units: args.units,
            backfill: match args.fairness {
                Fairness::Fifo => 0,
                Fairness::Backfill(bound) => bound,
            },
            lease: Some(LEASE),
            drift_ppm: 0,
            retry: LEASE / 10,
            durable: args.durable,
            arbiter: 0,
        };
        <P as Own>::pool(&plan, args.nodes as u32).map_err(anyhow::Error::msg)
    }
}
