//! `sharing` on the command line.

use std::path::PathBuf;

use anyhow::{Context, bail};
use quorate_core::NodeId;
use quorate_protocols::reference::sharing::{Order, Pool, Sharing};
use quorate_quorum::sharing::{Construction, Structure};
use quorate_sim::{Needs, Plan, Want};

use super::{Offered, Options};
use crate::commands::quorum::sharing::input::structure_from_file;

/// What only protocol P knows.
#[derive(clap::Args, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct SharingOptions {
    /// sharing: who may use what, a file as of `quorate-lab quorum sharing`; node i is its
    /// process i
    #[arg(long, value_name = "FILE")]
    pub(crate) structure: Option<PathBuf>,
    /// sharing: whose permissions a process needs [default: product]
    #[arg(long, value_enum)]
    construction: Option<Kind>,
    /// sharing: ask a quorum one arbiter after the other, and not all at once as the paper does
    #[arg(long)]
    ascending: bool,
}

/// A construction of quorums for sharing structures.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The paper's.
    Product,
    /// One arbiter per unit.
    Named,
    /// Only the blocks that are needed.
    Reduced,
}

impl SharingOptions {
    /// As they were given, to be appended to a command.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        if let Some(path) = &self.structure {
            words += &format!(" --structure {}", path.display());
        }
        words += match self.construction {
            Some(Kind::Product) => " --construction product",
            Some(Kind::Named) => " --construction named",
            Some(Kind::Reduced) => " --construction reduced",
            None => "",
        };
        words + if self.ascending { " --ascending" } else { "" }
    }

    /// What is shared, and by whom.
    pub(crate) fn structure(&self) -> anyhow::Result<Structure> {
        let Some(path) = &self.structure else {
            bail!("sharing needs to know who may use what: --structure FILE");
        };
        structure_from_file(path)
    }

    /// The pool of a structure, its arbiters played by these nodes.
    pub(crate) fn pool(&self, hosts: &[NodeId]) -> anyhow::Result<Pool> {
        let construction = match self.construction.unwrap_or(Kind::Product) {
            Kind::Product => Construction::Product,
            Kind::Named => Construction::Named,
            Kind::Reduced => Construction::Reduced,
        };
        let mut pool = Pool::of(&self.structure()?, construction, hosts)?;
        pool.order = if self.ascending { Order::Ascending } else { Order::AtOnce };
        Ok(pool)
    }
}

impl Offered for Sharing {
    const NEEDS: Needs = Needs { order: true, reliability: true, permanence: true };

    fn fit(plan: &mut Plan, options: &Options) {
        plan.workload.want = Want::always(1);
        if let Ok(structure) = options.sharing.structure() {
            plan.pool.units = structure.k(structure.everyone());
        }
    }

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
        let hosts: Vec<NodeId> = (0..plan.nodes).map(NodeId).collect();
        let pool = options.sharing.pool(&hosts)?;
        if pool.units != plan.pool.units {
            bail!("the structure has {} units that somebody may use: say --units", pool.units);
        }
        Ok(pool)
    }

    fn about(plan: &Plan, options: &Options) -> anyhow::Result<Option<String>> {
        let pool = Self::pool(plan, options).context("no pool")?;
        Ok(Some(format!("{} arbiters, played by {} nodes", pool.hosts.len(), plan.nodes)))
    }
}
