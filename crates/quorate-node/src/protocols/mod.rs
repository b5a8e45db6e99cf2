//! The protocols that a node can run: one file each, and the list of what a configuration can
//! choose. Nothing else in the node names a protocol.

mod arbiter;
mod broadcast;
mod central;
mod goods;
mod quorums;
mod ring;
mod table;
#[cfg(test)]
mod tests;
mod ticket;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use quorate_core::{NodeId, NodeSet, Outlook, Protocol};
use quorate_protocols::allocator::labels::Labels;
use quorate_protocols::voting::Worth;

use crate::config::{Basis, Options};
use crate::seat::{AnySeat, Driver, Origin, Place, Runs, SeatEffect, SeatError};

/// What `protocol = "..."` can be. A new protocol is a file beside this one and a line here. A pool
/// that names none has the first.
pub(crate) const REGISTRY: &[Registered] =
    &[central::CENTRAL, arbiter::ARBITER, table::TABLE, broadcast::BROADCAST, ring::RING];

/// A protocol as a configuration chooses it.
pub(crate) struct Registered {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it can be told beyond what is said of every pool.
    pub(crate) options: &'static [&'static str],
    /// Whether it can choose among units that differ.
    pub(crate) chooses: bool,
    /// Why it has no holds without a lease; nothing if it has.
    pub(crate) no_standing: Option<&'static str>,
    /// Reads its options, and says what its quorums are worth if it has any.
    pub(crate) read: fn(&Basis<'_>, &mut Options) -> Result<Read, String>,
}

/// A protocol with its options, and what its quorums are worth if it has any.
pub(crate) type Read = (ProtocolDef, Option<Worth>);

/// The protocol of this name with its options.
pub(crate) fn read(
    registry: &[Registered],
    name: &str,
    basis: &Basis<'_>,
    options: &mut Options,
) -> Result<Read, String> {
    let Some(found) = registry.iter().find(|one| one.name == name) else {
        let names: Vec<&str> = registry.iter().map(|one| one.name).collect();
        return Err(format!("protocol {name:?}: choose {}", quoted(&names, "or")));
    };
    if basis.labels.is_some() && !found.chooses {
        let choosing = registry.iter().filter(|one| one.chooses);
        let names: Vec<&str> = choosing.map(|one| one.name).collect();
        return Err(format!(
            "{name} cannot choose among units that differ: only {} have units with labels",
            quoted(&names, "and")
        ));
    }
    if let (true, Some(why)) = (basis.standing, found.no_standing) {
        return Err(format!(
            "standing: {name} has no holds without a lease, since {why}; \"table\" has, with \
             durable = true"
        ));
    }
    (found.read)(basis, options)
}

/// Names as a sentence has them: `"a", "b" or "c"`.
fn quoted(names: &[&str], last: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match &quoted[..] {
        [firsts @ .., end] if !firsts.is_empty() => format!("{} {last} {end}", firsts.join(", ")),
        _ => quoted.concat(),
    }
}

/// Which protocols have an option of this name, by name.
pub(crate) fn owners(registry: &[Registered], option: &str) -> Vec<&'static str> {
    let has = registry.iter().filter(|one| one.options.contains(&option));
    let mut names: Vec<&str> = has.map(|one| one.name).collect();
    names.sort_unstable();
    names
}

/// What a node must know of a pool beyond the contract of its protocol.
#[derive(Clone, Default, Debug)]
pub(crate) struct About {
    /// What every member must agree on.
    pub(crate) canonical: String,
    /// Whether grants are on disk before they are told.
    pub(crate) durable: bool,
    /// Whether the protocol knows from its records, or from there being none, what it promised.
    pub(crate) reads_records: bool,
    /// Whether only its records tell how far fences came, so that losing them matters even when
    /// every promise of that time is over.
    pub(crate) forgets_fences: bool,
    /// Whether to be told that a node is suspected means to the protocol that somebody made sure:
    /// then a failure detector's opinion will not do.
    pub(crate) needs_proof: bool,
    /// Whether the charter says who decides.
    pub(crate) seat_moves: bool,
    /// Whether somebody decided before the charter did, by the pool's name, and does until that has
    /// taken over.
    pub(crate) pinned: bool,
    /// Whether whoever decides tells a shadow first what it grants, if the charter names one.
    pub(crate) shadowed: bool,
    /// Most units that one claim can have, if fewer than all.
    pub(crate) claim_max: Option<u32>,
    /// The options that decide what a crash costs, in words, where there are such.
    pub(crate) terms: Option<String>,
    /// What is known of the units at first, if they differ.
    pub(crate) labels: Option<Arc<Labels>>,
    /// Whether labels can change while the pool runs.
    pub(crate) relabels: bool,
    /// If grants rest on particular members: how many of these may crash before what is held must
    /// move to others in time.
    pub(crate) spares: Option<u32>,
    /// What the books of its nodes say.
    pub(crate) books: Books,
    /// What a claim waits for that is in nobody's books, or where there are none: after "it waits
    /// for".
    pub(crate) awaits: &'static str,
    /// Where a grant is renewed at one node only: what becomes of it without that node.
    pub(crate) bound: Option<&'static str>,
}

/// What the books of a node ([`quorate_core::Protocol::ledger`]) say about a claim.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Books {
    /// How it stands: only one node has any.
    Decide(Chosen),
    /// How it stands with that node, which is one of several that have to agree. Whether they did
    /// is known to the node of the claim's client.
    Advise,
    /// How it stood when that node got its copy of what all keep: the newest copy counts.
    Copy,
    /// Nothing: there are none.
    #[default]
    None,
}

impl Books {
    /// Whether one node's books say how every claim stands.
    pub(crate) fn decide(self) -> bool {
        matches!(self, Books::Decide(_))
    }
}

/// How a special node is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chosen {
    /// This one.
    Node(NodeId),
    /// By the pool's name, over all members.
    ByName,
    /// By the charter, and not for good: who it is, the engine knows.
    ByCharter,
}

impl Chosen {
    /// The node for this pool, among so many members.
    fn node(self, pool: &str, members: usize) -> NodeId {
        match self {
            Chosen::Node(node) => node,
            Chosen::ByName | Chosen::ByCharter => {
                let members = u64::try_from(members.max(1)).unwrap_or(u64::MAX);
                NodeId((crate::config::digest(pool.as_bytes()) % members) as u32)
            }
        }
    }
}

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

/// A protocol and its options.
#[derive(Clone, Debug)]
pub struct ProtocolDef {
    name: &'static str,
    /// Whether a seat heals from any state.
    pub(crate) heals: bool,
    pub(crate) about: About,
    pub(crate) rules: Arc<dyn Rules>,
}

impl ProtocolDef {
    /// The same pool, whatever its name.
    pub(crate) fn new<P: Runs>(about: About, pool: P::Pool) -> ProtocolDef
    where
        P::Pool: Send + Sync,
    {
        ProtocolDef::made::<P>(about, move |_, _| pool.clone())
    }

    /// A pool that depends on its name and on how many members there are.
    pub(crate) fn made<P: Runs>(
        about: About,
        pool: impl Fn(&str, usize) -> P::Pool + Send + Sync + 'static,
    ) -> ProtocolDef {
        let rules = Arc::new(Made::<P, _> { pool, protocol: PhantomData });
        ProtocolDef { name: P::NAME, heals: P::CORRUPT.is_some(), about, rules }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The options that decide what a crash costs, in words, where there are such.
    pub fn terms(&self) -> Option<&str> {
        self.about.terms.as_deref()
    }

    /// Whether the protocol knows from its records, or from there being none, what it promised.
    pub fn reads_records(&self) -> bool {
        self.about.reads_records
    }

    /// Where a grant is renewed at one node only: what becomes of it without that node.
    pub fn bound(&self) -> Option<&'static str> {
        self.about.bound
    }

    /// Whether another node decides when the one that does is gone, as the charter says.
    pub fn seat_moves(&self) -> bool {
        self.about.seat_moves
    }

    /// Whether it could say so, and does not: what is on one disk is decided there.
    pub(crate) fn could_move(&self) -> bool {
        self.about.books.decide() && !self.about.seat_moves && !self.about.durable
    }

    /// Which claims a pool of this name can grant among so many members while these are away.
    pub fn grants(&self, pool: &str, members: usize, away: &NodeSet) -> Outlook {
        self.rules.grants(pool, members, away)
    }

    /// What a participant is told of a pool of this name among so many members, if the protocol is
    /// this one.
    pub fn pool<P: Protocol<Pool: 'static>>(&self, name: &str, members: usize) -> Option<P::Pool> {
        self.rules.pool(name, members).downcast().ok().map(|pool| *pool)
    }

    /// Whether this node answers for how many units a pool has: whoever alone decides over it, or
    /// the first member where nobody does.
    pub(crate) fn answers_for(&self, pool: &str, me: NodeId, members: usize) -> bool {
        self.decides(pool, members).unwrap_or(NodeId(0)) == me
    }

    /// Who decides over a pool of this name until the charter says who does.
    pub(crate) fn pinned(&self, pool: &str, members: usize) -> Option<NodeId> {
        self.about.pinned.then(|| Chosen::ByName.node(pool, members))
    }

    /// Who alone decides over a pool of this name, if somebody does, and for good.
    pub(crate) fn decides(&self, pool: &str, members: usize) -> Option<NodeId> {
        match self.about.books {
            Books::Decide(Chosen::ByCharter) => None,
            Books::Decide(who) => Some(who.node(pool, members)),
            Books::Advise | Books::Copy | Books::None => None,
        }
    }
}

/// What takes a protocol's type to do. Pools depend on their name and on how many members there
/// are.
pub(crate) trait Rules: Send + Sync {
    /// The pool, as [`Protocol::Pool`].
    fn pool(&self, name: &str, members: usize) -> Box<dyn Any>;
    /// Takes a seat.
    fn take_seat(
        &self,
        place: Place,
        members: usize,
        origin: Origin,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<Box<dyn AnySeat>, SeatError>;
    /// What is promised.
    fn promises(&self, members: usize) -> Promises;
    /// Without whom a pool stands still.
    fn needs(&self, name: &str, members: usize) -> NodeSet;
    /// Which claims a pool can grant while these are away, as [`Protocol::grants`].
    fn grants(&self, name: &str, members: usize, away: &NodeSet) -> Outlook;
}

impl fmt::Debug for dyn Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rules")
    }
}

/// How the pools of one protocol are made, from a name and the number of members.
struct Made<P, F> {
    pool: F,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Runs, F: Fn(&str, usize) -> P::Pool + Send + Sync> Rules for Made<P, F> {
    fn pool(&self, name: &str, members: usize) -> Box<dyn Any> {
        Box::new((self.pool)(name, members))
    }

    fn take_seat(
        &self,
        place: Place,
        members: usize,
        origin: Origin,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<Box<dyn AnySeat>, SeatError> {
        let pool = (self.pool)(&place.name, members);
        Ok(Box::new(Driver::<P>::boot(place, pool, origin, effects)?))
    }

    fn promises(&self, members: usize) -> Promises {
        let pool = (self.pool)("", members);
        Promises {
            names_units: P::names_units(&pool),
            overtakes_max: P::overtakes_max(&pool),
            survives: survives::<P>(&pool, u32::try_from(members).unwrap_or(u32::MAX)),
        }
    }

    fn needs(&self, name: &str, members: usize) -> NodeSet {
        let pool = (self.pool)(name, members);
        let alone = |node: &NodeId| P::can_lose(&pool, &std::iter::once(*node).collect());
        (0..members).map(NodeId::from).filter(|node| !alone(node)).collect()
    }

    fn grants(&self, name: &str, members: usize, away: &NodeSet) -> Outlook {
        P::grants(&(self.pool)(name, members), away)
    }
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
