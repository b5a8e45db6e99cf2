//! What all seats of a `sharing` pool agree on: who plays which arbiter, and whom each node asks.

use std::fmt;
use std::sync::Arc;

use quorate_core::NodeId;
use quorate_quorum::Effort;
use quorate_quorum::sharing::{Construction, Structure, circuits, plan};

/// A pool that protocol P guards.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// How many units there are: |R|.
    pub units: u32,
    /// The quorums of every process, ascending arbiters each: the paper's Q_i. Node i is the
    /// process i, and they begin again where there are more nodes.
    pub quorums: Arc<[Arc<[Vec<u32>]>]>,
    /// The node that plays each arbiter.
    pub hosts: Arc<[NodeId]>,
    /// How a quorum is asked.
    pub order: Order,
}

/// How a quorum is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// All of it at once, as printed.
    AtOnce,
    /// One arbiter after the other, lowest first.
    Ascending,
}

/// Why there is no such pool. Nothing was built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolError(String);

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: choose a smaller structure or another construction", self.0)
    }
}

impl std::error::Error for PoolError {}

/// Most quorums of one group to write out.
const QUORUMS_MAX: u64 = 4096;

impl Pool {
    /// Quorums for a sharing structure, whose arbiters are played by these nodes in turn.
    ///
    /// # Errors
    /// The construction has too many quorums or arbiters to write out.
    pub fn of(
        structure: &Structure,
        construction: Construction,
        hosts: &[NodeId],
    ) -> Result<Pool, PoolError> {
        let effort = &mut Effort::new(Effort::DEFAULT);
        let circuits = circuits(structure, effort).map_err(|error| PoolError(error.to_string()))?;
        let plan = plan(structure, construction, &circuits);
        let written = plan.quorums(structure, QUORUMS_MAX);
        let assignment = written.map_err(|error| PoolError(error.to_string()))?;
        let mut of_group: Vec<Arc<[Vec<u32>]>> = Vec::new();
        for quorums in assignment.quorums() {
            let listed = quorums.iter().map(|quorum| quorum.iter().map(|node| node.0).collect());
            of_group.push(listed.collect());
        }
        let group_of = |process: usize| {
            let groups = structure.groups();
            let group = groups.iter().position(|group| group.members.contains(&process));
            Arc::clone(&of_group[group.expect("every process is in a group")])
        };
        let arbiters = assignment.arbiters();
        Ok(Pool {
            units: structure.k(structure.everyone()),
            quorums: (0..structure.processes().len()).map(group_of).collect(),
            hosts: (0..arbiters).map(|arbiter| hosts[arbiter % hosts.len()]).collect(),
            order: Order::AtOnce,
        })
    }

    /// All arbiters, by number.
    pub(super) fn arbiters(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.hosts.len() as u32
    }

    /// The node that plays an arbiter; none if nobody does.
    pub(super) fn host(&self, arbiter: u32) -> NodeId {
        self.hosts.get(arbiter as usize).copied().unwrap_or(NodeId(u32::MAX))
    }

    /// The quorum that a client of this node commits to.
    pub(super) fn quorum(&self, node: NodeId, draw: u64) -> Vec<u32> {
        let quorums = &self.quorums[node.index() % self.quorums.len()];
        quorums[(draw % quorums.len() as u64) as usize].clone()
    }
}
