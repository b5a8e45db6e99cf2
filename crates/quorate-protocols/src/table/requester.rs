//! The requester's half: what its clients want of the table, and what became of it.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::{Claim, ClaimId, Fact, Fence, Moment, NodeId, NodeSet, Refusal, Shares, Wanted};

use super::laws::Changes;
use super::message::Message;
use super::pool::{Pool, broken};
use super::section::Section;
use super::sheet::Errand;
use super::{Alarm, Post, Seat, Table};
use crate::attempt::Attempt;
use crate::count::Count;
use crate::goods::Goods;
use crate::home::{Asked, Asks, Decided, Home, Phase, Rule};
use crate::quorums::asking;

/// The claims of a node's own clients.
pub(super) type Requester = Home<Sections>;

/// What the homes of `table` do: sections, one at a time, for all that their clients want by then.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Sections {
    /// The latest round heard of.
    pub(super) round: Fence,
    /// What the next section is to do: all of it at once.
    pub(super) errands: BTreeMap<ClaimId, Errand>,
    /// Whether the next section should happen even so: a lease is over.
    pub(super) tidy: bool,
    /// Whether claims that earlier lives of this node asked for may still be in their turn: no
    /// section of this life has looked.
    pub(super) unseen: bool,
    /// At most one at a time.
    pub(super) section: Option<Section>,
    /// What the driver drew last: which quorum is asked.
    pub(super) draw: u64,
    pub(super) sections: Count,
    pub(super) restarts: Count,
    /// What the last step did to tables, for audits.
    pub(super) changes: Changes,
}

/// Where a claim that waits is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wait {
    /// On its way into the table, or back from one that was full.
    Asking,
    /// In it. `unsure`: those that keep it and have not said lately that it still waits.
    Listed { keepers: NodeSet, unsure: NodeSet, asked: bool },
}

impl Asks for Sections {
    type Protocol = Table;
    type Local = Asked<Wait>;
    type Wait = Wait;

    const RETRY: Alarm = Alarm::Retry;

    fn retry(pool: &Pool) -> Duration {
        pool.goods.retry
    }

    fn longest(pool: &Pool) -> Duration {
        pool.goods.longest()
    }

    fn phase(local: &mut Self::Local) -> &mut Phase<Wait> {
        &mut local.phase
    }

    fn ask(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: &Claim,
        post: &mut Post<'_>,
    ) -> Result<Self::Local, Refusal> {
        let local = home.open(seat, claim, seat.pool.goods.labels.as_deref())?;
        home.own.draw = claim.draw;
        home.want(seat, claim.id, Errand::Ask, post);
        Ok(local)
    }

    fn end(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        _local: Option<Self::Local>,
        post: &mut Post<'_>,
    ) {
        home.want(seat, claim, Errand::End(None), post);
    }

    fn give_back(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        local: Self::Local,
        post: &mut Post<'_>,
    ) {
        home.want(seat, claim, Errand::End(Some(local.attempt)), post);
    }

    fn take_over(home: &mut Requester, seat: &Seat<'_>, shares: &Shares) -> Option<Self::Local> {
        home.shown(seat, shares)
    }

    fn renew(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        shares: Shares,
        post: &mut Post<'_>,
    ) {
        home.want(seat, claim, Errand::Renew(shares), post);
    }

    fn remind(home: &mut Requester, seat: &Seat<'_>, post: &mut Post<'_>) -> bool {
        if broken!(seat, NeverRetry) {
            return false;
        }
        home.repeat_section(seat, post);
        if home.own.unseen && home.own.section.is_none() {
            home.tidy_up(seat, post);
        }
        let mut anew = Vec::new();
        let idle = home.own.section.is_none();
        for (&claim, local) in &mut home.claims {
            let attempt = local.attempt;
            let Phase::Waiting(wait) = &mut local.phase else { continue };
            let Wait::Listed { keepers, unsure, asked } = wait else {
                if idle {
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
        anew.into_iter().for_each(|claim| home.ask_anew(seat, claim, post));
        true
    }

    fn is_busy(home: &Requester) -> bool {
        home.own.section.is_some() || home.own.unseen || home.has_waiting()
    }

    fn breaks(seat: &Seat<'_>, rule: Rule) -> bool {
        rule == Rule::Fits && broken!(seat, IgnoreLines)
    }
}

impl Decided for Sections {
    type Holds = ();

    fn goods(pool: &Pool) -> &Goods {
        &pool.goods
    }

    fn waiting() -> Wait {
        Wait::Asking
    }

    fn holds(_seat: &Seat<'_>, _shares: &Shares) {}

    fn request(home: &mut Requester, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        home.want(seat, claim, Errand::Ask, post);
    }

    fn decline(
        home: &mut Requester,
        seat: &Seat<'_>,
        (claim, attempt): (ClaimId, Attempt),
        _: &Shares,
        post: &mut Post<'_>,
    ) {
        if home.claims.contains_key(&claim) {
            return; // It is being asked for again.
        }
        // Unless it is being ended already, and not only in this try.
        home.own.errands.entry(claim).or_insert(Errand::End(Some(attempt)));
        home.open_section(seat, post);
    }
}

impl Requester {
    /// A life after the first. Clients of earlier ones may be gone, and what they waited for would
    /// be granted to nobody, for a lease each. The first section of this life takes it out of its
    /// turn ([`super::sheet::Sheet::excuse`]); if nobody wants one within a retry, there is one for
    /// that alone.
    pub(super) fn look_back(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let many = seat.boot > 0 && seat.pool.leases_end();
        if many && !broken!(seat, LeaveEarlierLives) {
            self.own.unseen = true;
            self.arm_retry(seat, post);
        }
    }

    pub(super) fn want(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        errand: Errand,
        post: &mut Post<'_>,
    ) {
        self.own.errands.insert(claim, errand);
        self.open_section(seat, post);
    }

    /// A member of this node knows of a lease that is over.
    pub(super) fn tidy_up(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        self.own.tidy = true;
        self.open_section(seat, post);
    }

    pub(super) fn hear_about_claim(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        match message {
            Message::Notify { claim, attempt, shares, sent, waited } => {
                let deadline = seat.pool.goods.lease.deadline(sent, waited);
                let lease = seat.pool.goods.lease.length();
                let local = self.claims.get(&claim).filter(|local| local.attempt == attempt);
                let waits = local.is_some_and(|local| !local.phase.is_held());
                let until = local.map_or(deadline, |local| local.wanted.lasts(deadline));
                // What passes while a table is on its way is counted by nobody, and after a long
                // wait that may be most of a lease. Members count from the grant, a moment ago: a
                // section of ours gives it anew, for a whole lease.
                let little = seat.pool.leases_end() && until.since(seat.now) < lease / 2;
                if waits && little && !broken!(seat, TellWhatIsLeft) {
                    return self.ask_anew(seat, claim, post);
                }
                self.on_grant(seat, (claim, attempt), shares, until, post);
            }
            Message::Lost { claim, attempt } => self.on_lost(seat, (claim, attempt), post),
            Message::Told { claim, attempt, waits } => {
                let local = self.claims.get_mut(&claim).filter(|local| local.attempt == attempt);
                let Some(Phase::Waiting(Wait::Listed { unsure, .. })) =
                    local.map(|local| &mut local.phase)
                else {
                    return;
                };
                unsure.remove(from);
                if !waits {
                    self.ask_anew(seat, claim, post);
                }
            }
            _ => unreachable!("everything else is about sections"),
        }
    }

    /// A node is heard again that keeps claims of ours. If it could not hear us either, they may be
    /// out of their turn by now: it says so, and they are asked for again.
    pub(super) fn ask_keeper(&self, node: NodeId, post: &mut Post<'_>) {
        for (&claim, local) in &self.claims {
            if let Phase::Waiting(Wait::Listed { keepers, .. }) = &local.phase
                && keepers.contains(node)
            {
                post.send(node, Message::Ask { claim, attempt: local.attempt });
            }
        }
    }

    /// A section renewed what a client has, or found that it has it no more.
    pub(super) fn on_renewed(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        kept: Option<Wanted>,
        until: Moment,
        post: &mut Post<'_>,
    ) {
        let held = |local: &&mut Asked<Wait>| local.phase.is_held();
        let Some(local) = self.claims.get_mut(&claim).filter(held) else {
            return; // Released meanwhile.
        };
        let Some(wanted) = kept else { return self.forget(claim, post) };
        let until = wanted.lasts(until);
        local.wanted = wanted; // Of what a client shows, only the table knows whether it stands.
        self.extend(seat, claim, until, post);
    }

    /// The deadline of what a section of ours stored, counted from before it did.
    pub(super) fn deadline(seat: &Seat<'_>, sent: Moment) -> Moment {
        seat.pool.goods.lease.deadline(sent, Duration::ZERO)
    }

    pub(super) fn facts(&self, seat: &Seat<'_>, show: &mut dyn FnMut(Fact)) {
        // Whom the next section would ask.
        let quorum = self.elsewhere(seat, &self.suspects);
        asking::facts(&self.suspects, quorum.iter().flat_map(NodeSet::iter), show);
        show(Fact::counter("sections", self.own.sections.get()));
        show(Fact::counter("restarts", self.own.restarts.get()));
    }

    pub(super) fn audit(&self, seat: &Seat<'_>) {
        self.own.changes.audit(seat);
        assert!(
            self.own.section.is_some() || (self.own.errands.is_empty() && !self.own.tidy),
            "whatever is wanted has a section"
        );
    }
}
