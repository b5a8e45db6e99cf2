//! How one claim stands, as all nodes together know it.

use std::time::Duration;

use quorate_api::{ClaimState, ClaimStatus};
use quorate_core::{ClaimId, Fence, Move, Share, Unit};
use quorate_wire::survey::EndLine;

use super::{Line, Picture};
use crate::config::PoolDef;
use crate::convert;
use crate::ledger::shrink;

/// Where a claim is that a node has given up, as far as all nodes together know.
#[derive(Debug)]
pub(crate) enum Whereabouts {
    /// Its client holds it through this node.
    At(String),
    /// Those who decide have it in their books: until its lease ends there, or because some node
    /// renewed it.
    Booked,
    /// These did not answer, and one of them may have renewed it.
    Unknown(Vec<String>),
    /// Nobody has it.
    Nowhere,
}

impl Picture {
    /// Whether some node answers for this claim, and did not take it back.
    pub(crate) fn has_home(&self, id: ClaimId) -> bool {
        let home = self.lines.get(&id).and_then(|line| line.home.as_ref());
        home.is_some_and(|(_, home)| home.revoked.is_none())
    }

    /// Whether some node answers for this claim, which waits.
    pub(crate) fn waits(&self, id: ClaimId) -> bool {
        let waits = |line: &Line| line.home.as_ref().is_some_and(|_| !line.granted());
        self.has_home(id) && self.lines.get(&id).is_some_and(waits)
    }

    /// Where a claim is that this node has given up.
    pub(crate) fn whereabouts(&self, id: ClaimId, decider: Option<&str>) -> Whereabouts {
        let line = self.lines.get(&id);
        let home = line.and_then(|line| line.home.as_ref());
        if let Some((node, home)) = home.filter(|(_, home)| home.revoked.is_none())
            && home.shares.is_some()
        {
            return Whereabouts::At(node.clone());
        }
        // If one node decides and has answered, it would know.
        let decided = decider.is_some_and(|node| self.silent.iter().all(|silent| silent != node));
        if !self.silent.is_empty() && !decided {
            return Whereabouts::Unknown(self.silent.clone());
        }
        match line.is_some_and(|line| line.booked.is_some_and(|(_, _, granted)| granted)) {
            true => Whereabouts::Booked,
            false => Whereabouts::Nowhere,
        }
    }

    /// How a claim stands that another node answers for, or only an arbiter knows.
    pub(crate) fn status(&self, id: ClaimId, pool: &str, def: &PoolDef) -> Option<ClaimStatus> {
        let line = self.lines.get(&id)?;
        let home = line.home.as_ref().map(|(_, home)| home);
        let shares = line.shares();
        let share = |(unit, fence): (u32, u64)| Share { unit: Unit(unit), fence: Fence(fence) };
        let moves = home.map(|home| {
            home.moves.iter().map(move |(from, to)| Move { from: share(*from), to: share(*to) })
        });
        let labels = self.labels.as_deref();
        let revoked = home.and_then(|home| home.revoked.clone());
        // Without its home nobody can say what the client knows.
        let state = match (&revoked, line.granted()) {
            (Some(_), _) => ClaimState::Revoked,
            (None, true) => ClaimState::Granted,
            (None, false) => ClaimState::Waiting,
        };
        Some(ClaimStatus {
            id: convert::api_id(id),
            pool: pool.to_owned(),
            state,
            asked: line.units(),
            lines: line.lines(),
            // Counted from its node's answer, which is later than our receipt of the question, and
            // so on the safe side.
            standing: line.stands(),
            expires_in_ms: home.filter(|_| shares.is_some() && !line.stands()).map(|home| {
                let left = Duration::from_micros(home.left_micros);
                u64::try_from(shrink(&def.lease, left).as_millis()).unwrap_or(u64::MAX)
            }),
            units: convert::unit_views(shares.unwrap_or_default().into_iter(), def, labels),
            moves: convert::move_views(moves.into_iter().flatten(), def, labels),
            counted: !def.promises.names_units,
            waited_ms: line.since_ms().filter(|_| !line.granted()).unwrap_or(0),
            node: line.node(),
            boot: home.map(|home| home.boot),
            decides: None,
            grant: home.and_then(|home| home.grant),
            client: line.client(),
            reason: line.reason(),
            ended: revoked,
            why: None,
            unheard: Vec::new(),
            unknown: false,
        })
    }

    /// A node tells how the claim ended that was asked about. Copies of it may have ended in
    /// several ways: whoever had its units knows best.
    pub(super) fn learn_end(&mut self, node: String, end: EndLine) {
        let had_units = |end: &EndLine| convert::state(end.how) != ClaimState::Cancelled;
        if self.ended.as_ref().is_none_or(|(_, known)| !had_units(known) && had_units(&end)) {
            self.ended = Some((node, end));
        }
    }

    /// How the claim ended that was asked about, if a node knows that. Those who decide may have it
    /// in their books for a moment yet.
    pub(crate) fn over(&self, id: ClaimId, pool: &str) -> Option<ClaimStatus> {
        let (node, end) = self.ended.as_ref()?;
        Some(ClaimStatus {
            id: convert::api_id(id),
            pool: pool.to_owned(),
            state: convert::state(end.how),
            asked: end.units,
            lines: Vec::new(),
            units: Vec::new(),
            moves: Vec::new(),
            counted: false,
            expires_in_ms: None,
            standing: false,
            waited_ms: 0,
            node: node.clone(),
            boot: None,
            decides: None,
            grant: None,
            client: end.client.clone(),
            reason: end.reason.clone(),
            ended: Some(end.why.clone()),
            why: None,
            unheard: Vec::new(),
            unknown: false,
        })
    }

    /// How a claim stands that its client has just ended through another node than its own, as this
    /// picture from before has it. Nothing if nobody knew it.
    pub(crate) fn ended_through(
        &self,
        id: ClaimId,
        pool: &str,
        def: &PoolDef,
        through: &str,
    ) -> Option<ClaimStatus> {
        let over = self.over(id, pool).filter(|_| !self.has_home(id));
        let Some(before) = self.status(id, pool, def).filter(|_| over.is_none()) else {
            return over;
        };
        let (state, what) = match before.state {
            ClaimState::Granted => (ClaimState::Released, "released"),
            ClaimState::Waiting => (ClaimState::Cancelled, "cancelled"),
            _ => return Some(before),
        };
        let ended = Some(format!("the client {what} it at {through}"));
        let (units, moves, expires_in_ms) = Default::default();
        Some(ClaimStatus { state, ended, units, moves, expires_in_ms, ..before })
    }
}
