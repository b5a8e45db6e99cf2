//! The requester's half: what its clients want of the table, and what became of it.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Clock, Fact, Fence, Moment, NodeId, NodeSet, Refusal, Seat, Shares, Units,
    Wanted,
};

use super::message::Message;
use super::pool::broken;
use super::section::Section;
use super::sheet::Errand;
use super::{Alarm, Post, Table};
use crate::attempt::Attempt;
use crate::count::Count;

/// The claims of a node's own clients. Nothing here need survive a crash: clients ask again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Requester {
    pub(super) clock: Clock,
    /// The latest round heard of.
    pub(super) round: Fence,
    pub(super) claims: BTreeMap<ClaimId, Local>,
    /// What the next section is to do: all of it at once.
    pub(super) errands: BTreeMap<ClaimId, Errand>,
    /// Whether the next section should happen even so: a lease is over.
    pub(super) tidy: bool,
    /// At most one at a time.
    pub(super) section: Option<Section>,
    /// What the driver drew last: which quorum is asked.
    pub(super) draw: u64,
    pub(super) suspects: NodeSet,
    retrying: bool,
    pub(super) sections: Count,
    pub(super) restarts: Count,
}

/// A local client's claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    pub(super) wanted: Wanted,
    pub(super) attempt: Attempt,
    pub(super) standing: Standing,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Standing {
    /// On its way into the table, or back from one that was full.
    Asking,
    /// In it. `unsure`: those that keep it and have not said lately that it still waits.
    Waiting { keepers: NodeSet, unsure: NodeSet, asked: bool },
    /// The client was told of its grant, and that it lasts until then; or it told us, and did not
    /// say until when.
    Held { until: Option<Moment> },
}

impl Local {
    fn is_held(&self) -> bool {
        matches!(self.standing, Standing::Held { .. })
    }
}

impl Requester {
    pub(super) fn on_claim(&mut self, seat: &Seat<'_, Table>, claim: &Claim, post: &mut Post<'_>) {
        let goods = &seat.pool.goods;
        if let Some(why) = goods.refusal(seat.me, claim, goods.labels.as_deref()) {
            return post.out.refuse(claim.id, why);
        }
        if self.claims.contains_key(&claim.id) {
            return; // A client that repeats itself changes nothing.
        }
        self.draw = claim.draw;
        let (wanted, attempt) = (claim.wanted.clone(), self.next_attempt(seat));
        self.claims.insert(claim.id, Local { wanted, attempt, standing: Standing::Asking });
        self.want(seat, claim.id, Errand::Ask, post);
    }

    pub(super) fn on_release(
        &mut self,
        seat: &Seat<'_, Table>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        // Also for a claim that is not known here: its client may have outlived our last boot.
        self.claims.remove(&claim);
        self.want(seat, claim, Errand::End(None), post);
    }

    pub(super) fn on_cancel(
        &mut self,
        seat: &Seat<'_, Table>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        self.on_release(seat, claim, post);
        post.out.refuse(claim, Refusal::Cancelled);
    }

    pub(super) fn on_renew(
        &mut self,
        seat: &Seat<'_, Table>,
        claim: ClaimId,
        shares: Shares,
        post: &mut Post<'_>,
    ) {
        match self.claims.get(&claim).map(|local| &local.standing) {
            Some(Standing::Held { until: Some(until) }) if *until <= seat.now => {
                // The deadline has passed and its client has stopped: a late answer revives
                // nothing.
                self.claims.remove(&claim);
                post.out.lose(claim);
                return self.want(seat, claim, Errand::End(None), post);
            }
            Some(Standing::Held { .. }) => {}
            Some(_) => return, // It waits here, so it holds nothing that we could renew.
            None => {
                // The client outlived our last boot.
                let count = u32::try_from(shares.len()).unwrap_or(u32::MAX);
                let Ok(units) = Units::new(count, seat.pool.goods.units) else {
                    return post.out.lose(claim);
                };
                let (wanted, attempt) = (Wanted::any(units), self.next_attempt(seat));
                let standing = Standing::Held { until: None };
                self.claims.insert(claim, Local { wanted, attempt, standing });
            }
        }
        self.want(seat, claim, Errand::Renew(shares), post);
    }

    pub(super) fn want(
        &mut self,
        seat: &Seat<'_, Table>,
        claim: ClaimId,
        errand: Errand,
        post: &mut Post<'_>,
    ) {
        self.errands.insert(claim, errand);
        self.open_section(seat, post);
    }

    /// A member of this node knows of a lease that is over.
    pub(super) fn tidy_up(&mut self, seat: &Seat<'_, Table>, post: &mut Post<'_>) {
        self.tidy = true;
        self.open_section(seat, post);
    }

    /// The claim keeps its place, if it has one, and whatever answers older tries is stale from now
    /// on.
    fn ask_anew(&mut self, seat: &Seat<'_, Table>, claim: ClaimId, post: &mut Post<'_>) {
        let attempt = self.next_attempt(seat);
        let local = self.claims.get_mut(&claim).expect("only a claim that waits here");
        assert!(!local.is_held(), "what the client has is not asked for again");
        (local.attempt, local.standing) = (attempt, Standing::Asking);
        self.want(seat, claim, Errand::Ask, post);
    }

    pub(super) fn hear_about_claim(
        &mut self,
        seat: &Seat<'_, Table>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        match message {
            Message::Notify { claim, attempt, shares, sent, waited } => {
                let known = self.claims.get(&claim).filter(|local| local.attempt == attempt);
                let serves =
                    known.is_none_or(|local| seat.pool.goods.serves(&local.wanted, &shares));
                if !serves && !broken!(seat, IgnoreLines) {
                    return post.out.anomaly(from, "units that will not do for the claim");
                }
                let until = seat.pool.goods.lease.deadline(sent, waited);
                self.on_grant(seat, claim, attempt, shares, until, post);
            }
            Message::Lost { claim, attempt } => {
                let known = self.claims.get(&claim).filter(|local| local.attempt == attempt);
                match known.map(Local::is_held) {
                    Some(true) => {
                        self.claims.remove(&claim);
                        post.out.lose(claim);
                    }
                    // Granted, and over before we heard of it: our client still wants its units.
                    Some(false) => self.ask_anew(seat, claim, post),
                    None => {}
                }
            }
            Message::Told { claim, attempt, waits } => {
                let Some(local) = self.claims.get_mut(&claim) else { return };
                let Standing::Waiting { unsure, .. } = &mut local.standing else { return };
                if local.attempt != attempt {
                    return;
                }
                unsure.remove(from);
                if !waits {
                    self.ask_anew(seat, claim, post);
                }
            }
            _ => unreachable!("everything else is about sections"),
        }
    }

    /// A claim has these units, and all of a quorum know it.
    pub(super) fn on_grant(
        &mut self,
        seat: &Seat<'_, Table>,
        claim: ClaimId,
        attempt: Attempt,
        shares: Shares,
        until: Moment,
        post: &mut Post<'_>,
    ) {
        match self.claims.get_mut(&claim) {
            Some(local) if local.attempt == attempt => {
                if local.is_held() {
                    return; // The same answer again.
                }
                if until <= seat.now {
                    // Too late to use, and perhaps somebody else's by now.
                    return self.ask_anew(seat, claim, post);
                }
                local.standing = Standing::Held { until: Some(until) };
                post.out.grant(claim, shares, until);
            }
            Some(_) => {} // It is being asked for again.
            // What an earlier boot of ours asked for may be in use by its client.
            None if attempt.boot != seat.boot => {}
            None => {
                // Unless it is being ended already, and not only in this try.
                self.errands.entry(claim).or_insert(Errand::End(Some(attempt)));
                self.open_section(seat, post);
            }
        }
    }

    /// A section renewed what a client has, or found that it has it no more.
    pub(super) fn on_renewed(
        &mut self,
        seat: &Seat<'_, Table>,
        claim: ClaimId,
        kept: bool,
        until: Moment,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim);
        let Some(Local { standing: Standing::Held { until: so_far }, .. }) = local else {
            return; // Released meanwhile.
        };
        if !kept {
            self.claims.remove(&claim);
            return post.out.lose(claim);
        }
        // An answer that comes after the deadline revives nothing.
        let alive = so_far.is_none_or(|so_far| seat.now < so_far && so_far < until);
        if alive && seat.now < until {
            *so_far = Some(until);
            post.out.extend(claim, until);
        }
    }

    pub(super) fn on_ring_retry(&mut self, seat: &Seat<'_, Table>, post: &mut Post<'_>) {
        self.retrying = false;
        if broken!(seat, NeverRetry) {
            return;
        }
        self.repeat_section(seat, post);
        let mut anew = Vec::new();
        let idle = self.section.is_none();
        for (&claim, local) in &mut self.claims {
            let attempt = local.attempt;
            let Standing::Waiting { keepers, unsure, asked } = &mut local.standing else {
                if idle && local.standing == Standing::Asking {
                    anew.push(claim); // There was no room for it.
                }
                continue;
            };
            // Younger than one retry, it is left alone. Later its keepers are asked, of whom every
            // quorum that may have granted it has one; who does not answer may be that one.
            match (*asked, unsure.is_empty()) {
                (false, _) => *unsure = NodeSet::new(),
                (true, true) => {
                    *unsure = keepers.clone();
                    keepers.iter().for_each(|to| post.send(to, Message::Ask { claim, attempt }));
                }
                (true, false) => anew.push(claim),
            }
            *asked = true;
        }
        anew.into_iter().for_each(|claim| self.ask_anew(seat, claim, post));
        self.arm_retry(seat, post);
    }

    pub(super) fn next_attempt(&mut self, seat: &Seat<'_, Table>) -> Attempt {
        Attempt { boot: seat.boot, clock: self.clock.tick() }
    }

    pub(super) fn arm_retry(&mut self, seat: &Seat<'_, Table>, post: &mut Post<'_>) {
        let waits = |local: &Local| !local.is_held();
        if !self.retrying && (self.section.is_some() || self.claims.values().any(waits)) {
            self.retrying = true;
            post.out.arm(Alarm::Retry, seat.pool.goods.retry);
        }
    }

    /// The deadline of what a section of ours stored, counted from before it did.
    pub(super) fn deadline(seat: &Seat<'_, Table>, sent: Moment) -> Moment {
        seat.pool.goods.lease.deadline(sent, Duration::ZERO)
    }

    pub(super) fn facts(&self, seat: &Seat<'_, Table>, show: &mut dyn FnMut(Fact)) {
        // Whom the next section would ask.
        let quorum = self.elsewhere(seat, &self.suspects);
        for node in quorum.iter().flat_map(NodeSet::iter) {
            show(Fact::gauge("quorum_member", true).about(node));
        }
        for node in self.suspects.iter() {
            show(Fact::gauge("suspected", true).about(node));
        }
        show(Fact::counter("sections", self.sections.get()));
        show(Fact::counter("restarts", self.restarts.get()));
    }

    pub(super) fn audit(&self) {
        assert!(
            self.section.is_some() || (self.errands.is_empty() && !self.tidy),
            "whatever is wanted has a section"
        );
    }
}
