//! What all seats of a pool that broadcasts its requests agree on.

use std::time::Duration;

use quorate_core::{Hurdle, Lease, NodeId, NodeSet, Outlook};

/// A pool in which everybody is asked. The four variants share it; Raymond and Raynal read only
/// `nodes`, `units` and `node_units_max`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// How many nodes there are, numbered from 0. The papers' n.
    pub nodes: u32,
    /// How many units there are. The papers' k and M.
    pub units: u32,
    /// Most crashes that are recovered from. The paper's f; at most (n-1)/2 (broadcast spec E8).
    pub crashes_max: u32,
    /// Most units that one node asks for at a time, over all its clients; 1 is the papers' process
    /// with one request. A node that has not answered is taken to use as many, so a large number
    /// costs tolerance: grants need `crashes_max * node_units_max + h <= units` unless crashed
    /// nodes are counted out.
    pub node_units_max: u32,
    /// When a node that is believed to have crashed is counted out.
    pub reclaim: Reclaim,
    /// How long a client keeps what it was granted without renewing it at its node. Nobody else
    /// depends on it; but a node that restarts takes part again only after one such lease, and
    /// never where there is none, since clients of its earlier life may still use their units.
    pub lease: Option<Lease>,
    /// Whether who finds a crash first-hand tells everybody once.
    pub notices: bool,
    /// How long a node lets pass without a query before it makes one of its own. Sets how fast a
    /// crash is found (about twice this) and how long a node may stall without being suspected
    /// (about this), never whether a grant is safe under the responsiveness property.
    pub probe: Option<Duration>,
    /// How long a request waits before it is repeated, for links that lose messages.
    pub retry: Option<Duration>,
    /// The rule that is broken, for tests that the harness finds it.
    #[cfg(test)]
    pub(crate) mutant: Option<Mutant>,
}

/// When a node that is believed to have crashed is counted out, so that its units come back.
///
/// The belief itself rests on an assumption about the order of messages (the responsiveness
/// property, broadcast spec 4) that a real network does not promise; these are four answers to
/// that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reclaim {
    /// Never: always safe. Each crash costs what one node may use until it comes back.
    Never,
    /// When the driver confirms with [`quorate_core::Event::Suspect`] that the node can no longer
    /// reach the protected thing (its credentials are revoked, its power is off), and will not
    /// before it joins again. Safe as far as the driver tells the truth.
    Fenced,
    /// When its lease has ended: a holder stops by itself unless everybody goes on answering it.
    Lease(Lease),
    /// At once, as in the paper. For simulation only: one slow node is enough to hand out more
    /// units than there are (broadcast spec D4).
    TrustRp,
}

impl Reclaim {
    /// As options name it.
    pub fn name(self) -> &'static str {
        match self {
            Reclaim::Never => "never",
            Reclaim::Fenced => "fenced",
            Reclaim::Lease(_) => "lease",
            Reclaim::TrustRp => "trust-rp",
        }
    }
}

impl Pool {
    /// Raymond 1989: a unit per request, nothing recovered after a crash.
    pub fn raymond(nodes: u32, units: u32) -> Self {
        Pool::bare(nodes, units, 1)
    }

    /// Raynal 1991: several units per request, no crash tolerated.
    pub fn raynal(nodes: u32, units: u32) -> Self {
        Pool::bare(nodes, units, units)
    }

    /// Bouillaguet, Arantes and Sens 2009: a unit per request, up to `crashes_max` crashes found
    /// without timers and counted out at once.
    pub fn timer_free(nodes: u32, units: u32, crashes_max: u32) -> Self {
        Pool { crashes_max, reclaim: Reclaim::TrustRp, ..Pool::bare(nodes, units, 1) }
    }

    /// The combination of Raynal's weights with timer-free detection, as the daemon runs it:
    /// crashes are found and reported, and cost their units until somebody says otherwise.
    pub fn weighted(nodes: u32, units: u32, node_units_max: u32, crashes_max: u32) -> Self {
        Pool {
            crashes_max,
            probe: Some(Duration::from_secs(5)),
            retry: Some(Duration::from_secs(1)),
            ..Pool::bare(nodes, units, node_units_max)
        }
    }

    fn bare(nodes: u32, units: u32, node_units_max: u32) -> Self {
        Pool {
            nodes,
            units,
            crashes_max: 0,
            node_units_max,
            reclaim: Reclaim::Never,
            lease: None,
            notices: false,
            probe: None,
            retry: None,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// Everybody but `me`, ascending.
    pub(crate) fn peers(&self, me: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes).map(NodeId).filter(move |&node| node != me)
    }

    /// How long after it was last told so a client may use its units at most.
    pub(super) fn hold_max(&self) -> Option<Duration> {
        let of_node = match self.reclaim {
            Reclaim::Lease(lease) => Some(lease.length()),
            Reclaim::Never | Reclaim::Fenced | Reclaim::TrustRp => None,
        };
        self.lease.map(|lease| lease.length()).max(of_node)
    }

    /// Whether nodes have leases from each other.
    pub(super) fn is_leased(&self) -> bool {
        matches!(self.reclaim, Reclaim::Lease(_))
    }

    /// Whether a node that restarted or was expelled takes part again.
    pub(super) fn can_rejoin(&self) -> bool {
        self.reclaim != Reclaim::TrustRp
    }

    /// Whether everything is still granted if so many nodes never come back.
    pub(super) fn survives(&self, dead: usize) -> bool {
        // Broadcast spec L1: room for a request beside what the dead are taken to use. Under leases
        // that is until they are counted out; but no query ends, and so no lease is renewed,
        // without answers of all but `crashes_max`.
        let blocked = dead as u64 * u64::from(self.node_units_max);
        let has_room = blocked + u64::from(self.node_units_max) <= u64::from(self.units);
        has_room && (!self.is_leased() || dead <= self.crashes_max as usize)
    }

    /// What can be granted while these are taken to use all that a node may, or while so many are
    /// away that no lease is renewed.
    pub(super) fn outlook(&self, silent: &NodeSet, too_many: bool) -> Outlook {
        if too_many {
            return Outlook::nothing(Hurdle::TooManyCrashed(silent.clone()));
        }
        let lost = silent.len() as u64 * u64::from(self.node_units_max);
        let lost = u32::try_from(lost).unwrap_or(u32::MAX).min(self.units);
        let lose = || Hurdle::UnitsLost(lost, silent.clone());
        Outlook::all(self.node_units_max).up_to(self.units - lost, lose)
    }

    /// Panics if the numbers contradict each other.
    pub(crate) fn assert_sound(&self) {
        assert!(self.nodes >= 1, "a pool has at least one node");
        assert!(self.node_units_max >= 1, "a node may use at least one unit");
        assert!(self.node_units_max <= self.units, "a node cannot use more than there is");
        // Broadcast spec E8: with more crashes than this no responsiveness property can hold for
        // everybody.
        assert!(self.crashes_max <= (self.nodes - 1) / 2, "crashes_max is at most (n-1)/2");
        if matches!(self.reclaim, Reclaim::Lease(_)) {
            assert!(self.probe.is_some(), "leases are renewed by probes");
        }
    }
}

/// Rules that tests break one at a time; the harness must notice each. Exists in test builds of
/// this crate only. Most put an erratum of the paper back.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mutant {
    /// Of two equal clocks nobody has priority (broadcast spec E1).
    TieBreakByIdentity,
    /// A request does not advance the clock, so that two may share a timestamp (broadcast spec E2).
    ClockNotAdvanced,
    /// Answers count whatever they answer (broadcast spec E3).
    UnmatchedReplies,
    /// A crashed node's permission counts beside the lowered threshold (broadcast spec E4).
    KeepPermissionsOfTheDead,
    /// A request abandons the query before it (broadcast spec E5).
    AbandonQueries,
    /// Deferred answers are sent first and the state changes in a second step (broadcast spec E6).
    ReleaseInTwoSteps,
    /// A node that releases does not answer the requests that it deferred.
    DropDeferred,
    /// Nobody ever concludes that somebody crashed.
    NoDetection,
    /// A node that comes back does not wait until clients of its earlier life have stopped.
    NoGrace,
    /// A node that comes back asks for units without waiting for anybody.
    JoinAlone,
    /// A node that comes back waits for nobody who seems to have crashed (broadcast spec 7.3, as it
    /// was first written).
    JoinWithoutSuspects,
    /// A node that comes back does not put its clock behind those of the others.
    JoinWithoutClock,
    /// What a client is told to let go is given to others before it can have heard of it.
    LoseAtOnce,
    /// What earlier lives of a node said, or lives that did not join, is heeded.
    AnyLife,
    /// Raymond: an answer to several requests counts for one.
    LoseCount,
    /// Raynal: a new request overwrites what older ones are still owed.
    AssignUsed,
    /// Raynal: who is made to wait is remembered once, however often it asked.
    DeferOnce,
}

/// Whether a rule is broken: never, outside this crate's tests.
macro_rules! broken {
    ($seat:expr, $mutant:ident) => {{
        #[cfg(test)]
        let broken = $seat.pool.mutant == Some($crate::broadcast::pool::Mutant::$mutant);
        #[cfg(not(test))]
        let broken = {
            let _ = $seat;
            false
        };
        broken
    }};
}
pub(crate) use broken;
