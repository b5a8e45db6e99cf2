//! How large a world is explored: who is there, what they want, and how much may go wrong.

use std::fmt;
use std::time::Duration;

use quorate_core::{Claim, ClaimId, NodeId, NodeSet, Protocol, Units};

use crate::council::Council;

/// A small world to exhaust.
#[derive(Clone, Debug)]
pub struct Scope<P: Protocol> {
    /// How many nodes.
    pub nodes: usize,
    /// What they share.
    pub pool: P::Pool,
    /// How the pool is changed while everything runs, one change after the other, if there is a
    /// council.
    pub editions: Vec<P::Pool>,
    /// Whether there is no pool before its first change, which comes sooner or later.
    pub is_made: bool,
    /// Every client and its one claim, in the order of their names.
    pub clients: Vec<ClientPlan>,
    /// Among how many draws the node of each client chooses when it claims, from zero up. Empty:
    /// everybody claims with the draw of its claim.
    pub draws: Vec<u64>,
    /// What links do with messages.
    pub network: Network,
    /// Which nodes may crash...
    pub crashing: NodeSet,
    /// ...and what they remember when they come back.
    pub restart: Restart,
    /// How often things may go wrong, in all.
    pub budget: Budget,
    /// Whether whoever takes a node for dead trusts it again at once. If not, it never does, and
    /// everybody must be served even so.
    pub trusts_again: bool,
    /// Most equal copies of a message on one link. One more is lost, so that a protocol that
    /// repeats itself on an alarm has finitely many states.
    pub copies_max: usize,
    /// Whether every history without a fault must end: no state may come back. For protocols that
    /// repeat nothing by themselves.
    pub ends: bool,
    /// How long a lease is at first and after each change, where that changes.
    pub leases: Vec<Duration>,
    /// The control plane that says who decides, for protocols that ask one.
    pub council: Option<Council>,
    /// Whether clocks and fences are renamed to a canonical form. Only tests of the renaming itself
    /// and replays turn it off; most protocols then have infinitely many states.
    pub renaming: bool,
}

/// What one client will do: claim these units at this node, use them, release them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientPlan {
    /// The node it talks to.
    pub home: NodeId,
    /// What it claims there.
    pub claim: Claim,
}

/// What a link does with messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// Messages from one node to another arrive in the order in which they were sent.
    Fifo,
    /// Messages arrive in any order.
    Reordering,
}

/// What a node remembers after a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// Its last durable record.
    Durable,
    /// Nothing.
    Amnesia,
}

/// How often each kind of misfortune may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// A node crashes, between any two effects.
    pub crashes: u8,
    /// A client takes its claim back, waiting or not.
    pub cancels: u8,
    /// A client renews its lease.
    pub renewals: u8,
    /// A client dies, or stops at its own deadline: without telling anybody.
    pub deaths: u8,
    /// A client that waits hangs up, and its home notices: nobody is there for its claim any more.
    pub hangups: u8,
    /// A lease runs out at its arbiter while the message that promises it is still on its way to a
    /// client that waits for it.
    pub lapses: u8,
    /// A message arrives and stays on its way.
    pub duplicates: u8,
    /// A message vanishes.
    pub losses: u8,
    /// An alarm rings while any message is on its way; as often as it likes if this is `None`. A
    /// limit says that messages are mostly faster than alarms, and makes larger worlds finite in
    /// practice.
    pub early_rings: Option<u8>,
    /// A node with clients takes another one for dead, and trusts it again at once
    /// ([`Scope::trusts_again`]): whoever goes round it does so, and may come back.
    pub suspicions: u8,
}

/// Most nodes and most clients of a scope: far beyond what can be exhausted.
pub(crate) const NODES_MAX: usize = 64;
pub(crate) const CLIENTS_MAX: usize = 8;

impl<P: Protocol> Scope<P> {
    /// A world in which nothing goes wrong: `wants` lists the home of each client and how many
    /// units it claims.
    ///
    /// # Errors
    /// One line that says which number makes no sense.
    pub fn new(nodes: usize, pool: P::Pool, wants: &[(NodeId, u32)]) -> Result<Self, ScopeError> {
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(ScopeError(format!("{nodes} nodes: choose 1 to {NODES_MAX}")));
        }
        if !(1..=CLIENTS_MAX).contains(&wants.len()) {
            return Err(ScopeError(format!("{} claims: choose 1 to {CLIENTS_MAX}", wants.len())));
        }
        let mut clients = Vec::new();
        for (position, &(home, h)) in wants.iter().enumerate() {
            if home.index() >= nodes {
                return Err(ScopeError(format!("a claim at {home}, but there are {nodes} nodes")));
            }
            let units = Units::new(h, P::capacity(&pool)).map_err(|e| ScopeError(e.to_string()))?;
            let id = ClaimId { origin: position as u64 + 1, serial: 1 };
            clients.push(ClientPlan { home, claim: Claim::any(id, units) });
        }
        Ok(Scope {
            nodes,
            pool,
            editions: Vec::new(),
            is_made: false,
            clients,
            draws: Vec::new(),
            network: Network::Fifo,
            crashing: NodeSet::new(),
            restart: Restart::Durable,
            budget: Budget::default(),
            trusts_again: true,
            copies_max: 1,
            ends: false,
            leases: Vec::new(),
            council: None,
            renaming: true,
        })
    }

    /// The pool after so many changes.
    pub(crate) fn pool_of(&self, edition: u8) -> &P::Pool {
        edition.checked_sub(1).map_or(&self.pool, |later| &self.editions[usize::from(later)])
    }

    /// Most units that it ever has.
    pub(crate) fn capacity(&self) -> u32 {
        let pools = self.editions.iter().chain([&self.pool]);
        pools.map(P::capacity).max().expect("there is one pool")
    }

    /// Whether a client asks for a hold without a lease.
    pub(crate) fn stands(&self, client: usize) -> bool {
        self.clients[client].claim.wanted.standing.is_some()
    }

    /// The draws with which a client may claim.
    pub(crate) fn draws_of(&self, client: usize) -> std::ops::Range<u64> {
        match self.draws.get(client) {
            Some(&draws) => 0..draws,
            None => {
                let draw = self.clients[client].claim.draw;
                draw..draw + 1
            }
        }
    }

    /// Which client made this claim.
    pub(crate) fn client_of(&self, claim: ClaimId) -> Option<usize> {
        self.clients.iter().position(|plan| plan.claim.id == claim)
    }
}

/// Why a scope makes no sense, in one line. Nothing was explored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScopeError(pub(crate) String);

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScopeError {}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Network::Fifo => "fifo",
            Network::Reordering => "reordering",
        })
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Restart::Durable => "durable",
            Restart::Amnesia => "amnesia",
        })
    }
}
