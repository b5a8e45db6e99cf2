//! Which protocols there are. With the configuration of their options, the only place in the node
//! that names one.

use quorate_core::{Corruptible, NodeId, NodeSet, Protocol};
use quorate_protocols::arbiter::Arbiter;
use quorate_protocols::broadcast::Weighted;
use quorate_protocols::central::Central;
use quorate_protocols::ring::Ring;
use quorate_protocols::table::Table;
use quorate_protocols::ticket::Ticket;

use crate::config::{PoolDef, ProtocolDef};
use crate::seat::{AnySeat, Corrupt, Driver, Origin, Place, Runs, SeatEffect, SeatError};

/// What a pool's protocol means for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promises {
    /// Whether a grant says which units it has; else it only says how many.
    pub names_units: bool,
    /// Most times a waiting claim may be overtaken, if there is a bound.
    pub overtakes_max: Option<u32>,
    /// How many nodes may stay away, whichever they are, without anything being lost but their own
    /// clients' grants.
    pub survives: u32,
}

impl Runs for Arbiter {}
impl Runs for Central {}
impl Runs for Table {}
impl Runs for Ticket {}
impl Runs for Weighted {}

impl Runs for Ring {
    const CORRUPT: Option<Corrupt<Ring>> = Some(<Ring as Corruptible>::corrupt);
}

/// Something to be done for whatever protocol a pool has.
trait Task {
    type Done;
    fn run<P: Runs>(self, pool: P::Pool) -> Self::Done;
}

/// Does it for the protocol of a pool of this name, among so many members.
fn with<T: Task>(protocol: &ProtocolDef, name: &str, members: usize, task: T) -> T::Done {
    match protocol {
        ProtocolDef::Central { arbiter, pool } => {
            let mut pool = pool.clone();
            pool.arbiter = arbiter.node(name, members);
            task.run::<Central>(pool)
        }
        ProtocolDef::Arbiter(pool) => task.run::<Arbiter>(pool.clone()),
        ProtocolDef::Ticket(pool) => task.run::<Ticket>(pool.clone()),
        ProtocolDef::Table(pool) => task.run::<Table>(pool.clone()),
        ProtocolDef::Broadcast(pool) => task.run::<Weighted>(pool.clone()),
        ProtocolDef::Ring(pool) => task.run::<Ring>(pool.clone()),
    }
}

/// Takes a seat in the pool, among so many members.
pub(crate) fn take_seat(
    place: Place,
    def: &PoolDef,
    members: usize,
    origin: Origin,
    effects: &mut Vec<SeatEffect>,
) -> Result<Box<dyn AnySeat>, SeatError> {
    struct Take<'a>(Place, Origin, &'a mut Vec<SeatEffect>);
    impl Task for Take<'_> {
        type Done = Result<Box<dyn AnySeat>, SeatError>;
        fn run<P: Runs>(self, pool: P::Pool) -> Self::Done {
            let Take(place, origin, effects) = self;
            Ok(Box::new(Driver::<P>::boot(place, pool, origin, effects)?))
        }
    }
    let name = place.name.clone();
    with(&def.protocol, &name, members, Take(place, origin, effects))
}

/// What a protocol with these options promises, among so many members.
pub(crate) fn promises(protocol: &ProtocolDef, members: usize) -> Promises {
    struct Ask(u32);
    impl Task for Ask {
        type Done = Promises;
        fn run<P: Runs>(self, pool: P::Pool) -> Promises {
            Promises {
                names_units: P::names_units(&pool),
                overtakes_max: P::overtakes_max(&pool),
                survives: survives::<P>(&pool, self.0),
            }
        }
    }
    let nodes = u32::try_from(members).unwrap_or(u32::MAX);
    with(protocol, "", members, Ask(nodes))
}

/// Without whom a pool of this name stands still.
pub(crate) fn needs(protocol: &ProtocolDef, name: &str, members: usize) -> NodeSet {
    struct Ask(usize);
    impl Task for Ask {
        type Done = NodeSet;
        fn run<P: Runs>(self, pool: P::Pool) -> NodeSet {
            let alone = |node: &NodeId| P::can_lose(&pool, &std::iter::once(*node).collect());
            (0..self.0).map(NodeId::from).filter(|node| !alone(node)).collect()
        }
    }
    with(protocol, name, members, Ask(members))
}

/// How many of the first `nodes` may stay away, whichever they are. Protocols either need one
/// particular node or count: so all single ones are tried, and then one set of each size.
fn survives<P: Protocol>(pool: &P::Pool, nodes: u32) -> u32 {
    let alone = |node| P::can_lose(pool, &std::iter::once(NodeId(node)).collect());
    if !(0..nodes).all(alone) {
        return 0;
    }
    let set = |size: &u32| P::can_lose(pool, &NodeSet::first(*size as usize));
    (2..nodes).take_while(set).last().unwrap_or(1).min(nodes - 1)
}

/// Whether this node answers for how many units the pool has: whoever alone decides over it, or the
/// first member where nobody does.
pub(crate) fn answers_for(def: &PoolDef, pool: &str, me: NodeId, members: usize) -> bool {
    match &def.protocol {
        ProtocolDef::Central { arbiter, .. } => arbiter.node(pool, members) == me,
        ProtocolDef::Arbiter(_)
        | ProtocolDef::Ticket(_)
        | ProtocolDef::Table(_)
        | ProtocolDef::Broadcast(_)
        | ProtocolDef::Ring(_) => me == NodeId(0),
    }
}

/// What the books of a node ([`quorate_core::Protocol::ledger`]) say about a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Books {
    /// How it stands.
    Decide,
    /// How it stands with that node, which is one of several that have to agree. Whether they did
    /// is known to the node of the claim's client.
    Advise,
    /// How it stood when that node got its copy of what all keep: the newest copy counts.
    Copy,
    /// Nothing: there are none.
    None,
}

/// What the books of this pool's nodes say.
pub(crate) fn books(def: &PoolDef) -> Books {
    match def.protocol {
        ProtocolDef::Central { .. } => Books::Decide,
        ProtocolDef::Arbiter(_) => Books::Advise,
        ProtocolDef::Table(_) => Books::Copy,
        ProtocolDef::Ticket(_) | ProtocolDef::Broadcast(_) | ProtocolDef::Ring(_) => Books::None,
    }
}
