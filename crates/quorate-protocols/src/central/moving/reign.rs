//! The seat of one term: when it may decide, and what it must know first (charter spec S1 to S9).
//!
//! Who gets what is the business of [`Arbiter`], to which a term is a boot number: fences of a
//! later term are larger than all of earlier ones (charter spec S10).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::{
    ClaimId, Moment, NodeId, NodeSet, Outbox, Shadow, Shares, Start, Tenure, Units,
};

use super::message::{Books, Shown, Waiting};
use super::{Moving, Pool};
use crate::attempt::Asker;
use crate::central::arbiter::Arbiter;
use crate::central::booked::{Asking, Booked, State};
use crate::central::pool::broken;
use crate::central::{Alarm as Timer, Central, Message as Word, Post, Seat};

/// The seat of a term, at the node that the charter names, in the life that it names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Reign {
    pub(super) tenure: Tenure,
    pub(super) arbiter: Arbiter,
    pub(super) stage: Stage,
    /// Whether it decides without a licence, since nobody else can have one.
    pub(super) pinned: bool,
    /// Until when, by our own clock, it may decide.
    pub(super) licence: Moment,
    /// When the pool changed last: no licence counts that was asked for before.
    pub(super) amended: Moment,
    /// Claims that wait at a home and have units in the books taken over: when the seat has opened
    /// they are told so with a fence of this term (charter spec S9).
    pub(super) owed: BTreeMap<ClaimId, (Asking, Units)>,
    /// Renewals that came when this seat might not answer, and from whom: it does when it may.
    pub(super) late: BTreeMap<ClaimId, (NodeId, Word)>,
    /// Members that have answered the roll with complete lists.
    pub(super) answered: NodeSet,
    /// Who is told of grants before homes are, as far as this node has applied that...
    pub(super) shadow: Option<Shadow>,
    /// ...and whether it was vouched for since it was named, or need not be.
    pub(super) vouched: bool,
    /// Since when it has not answered to what it was told.
    pub(super) asked: Option<Moment>,
    /// Claims whose homes are told of their grants when the shadow knows of them.
    pub(super) untold: BTreeSet<ClaimId>,
}

/// How far a seat is on its way to deciding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// An earlier seat may have a licence. It queues, notes what it is shown, and answers nothing.
    Lull,
    /// Promises of earlier seats may be in force. It renews what it is shown.
    Grace,
    /// It was the shadow, and decides; an earlier seat may have a licence, and renew.
    Heir,
    /// It decides.
    Open,
}

impl Stage {
    /// Whether it decides nothing yet.
    pub(super) fn waits(self) -> bool {
        matches!(self, Stage::Lull | Stage::Grace)
    }
}

impl Moving {
    /// As [`crate::central::Central::rest`].
    pub fn rest(&mut self) {
        self.requester.rest();
        let Some(reign) = &mut self.reign else { return };
        reign.arbiter.rest();
        if reign.untold.is_empty() {
            reign.untold = BTreeSet::new();
        }
    }
}

impl Reign {
    pub(super) fn new(at: &Seat<'_>, tenure: Tenure, out: &mut Outbox<Central>) -> Self {
        Reign {
            tenure,
            arbiter: Arbiter::boot(at, Start::First, out),
            stage: Stage::Lull,
            pinned: false,
            licence: Moment::ZERO,
            amended: Moment::ZERO,
            owed: BTreeMap::new(),
            late: BTreeMap::new(),
            answered: NodeSet::new(),
            shadow: None,
            vouched: true,
            asked: None,
            untold: BTreeSet::new(),
        }
    }

    pub(super) fn is_licensed(&self, at: &Seat<'_>) -> bool {
        self.pinned || at.now < self.licence || broken!(at, DecideUnlicensed)
    }

    pub(super) fn may_grant(&self, at: &Seat<'_>) -> bool {
        !self.stage.waits() && self.is_licensed(at)
    }

    /// Whether a claim may be told anew of what an earlier seat gave it.
    fn may_tell(&self, at: &Seat<'_>) -> bool {
        self.stage == Stage::Open && self.may_grant(at) || broken!(at, TellInGrace)
    }

    fn may_renew(&self, at: &Seat<'_>) -> bool {
        let late = self.stage != Stage::Lull || broken!(at, RenewInLull);
        late && (self.is_licensed(at) || broken!(at, RenewUnlicensed))
    }

    /// A licence has come.
    pub(super) fn on_licensed(
        &mut self,
        at: &Seat<'_>,
        pool: &Pool,
        asked: Moment,
        post: &mut Post<'_>,
    ) {
        if asked >= self.amended {
            self.licence = self.licence.max(pool.licensed_until(asked));
        }
        self.settle(at, post);
    }

    /// By which lease a word of this seat promises something, where that has to be said.
    pub(super) fn lease(&self, seat: &super::Seat<'_>, word: &Word) -> Option<Duration> {
        seat.pool.central.goods.lease_ever?;
        self.arbiter.promises(&super::judge(seat, self.tenure.term), word)
    }

    pub(super) fn hear(&mut self, at: &Seat<'_>, asker: Asker, word: Word, post: &mut Post<'_>) {
        self.arbiter.grace = !self.may_grant(at);
        match word {
            Word::Request { claim, ref wanted, sent, .. } if self.was_taken_over(at, claim) => {
                let asking = Asking { asker, sent, arrived: at.now };
                match self.may_tell(at) {
                    true => self.tell_anew(at, claim, asking, wanted.units, post),
                    false => {
                        self.owed.insert(claim, (asking, wanted.units));
                    }
                }
            }
            // It may have been granted by us, and our licence be over: the home asks again.
            Word::Request { claim, .. } if !self.may_grant(at) && self.has(claim) => {}
            Word::Renew { claim, ref shares, sent, .. } if self.only_notes(claim) => {
                let stands = self.note(at, asker, (claim, shares), sent, post.out);
                let attempt = asker.attempt;
                match (stands, self.may_renew(at)) {
                    (false, _) => {}
                    (true, true) => post.send(asker.node, Word::Renewed { claim, attempt, sent }),
                    (true, false) => drop(self.late.insert(claim, (asker.node, word))),
                }
            }
            Word::Renew { claim, .. } if !self.may_renew(at) => {
                self.late.insert(claim, (asker.node, word));
            }
            word => self.arbiter.hear(at, asker.node, word, post),
        }
    }

    /// Whether a renewal is taken down and its lease begins later: always before the seat decides,
    /// and of what a shadow took over until nobody else renews that (charter spec S17).
    fn only_notes(&self, claim: ClaimId) -> bool {
        self.stage.waits() || self.stage == Stage::Heir && self.is_adopted(claim)
    }

    fn is_adopted(&self, claim: ClaimId) -> bool {
        let booked = self.arbiter.entries.get(&claim);
        booked.is_some_and(|booked| matches!(booked.state, State::Granted { adopted: true, .. }))
    }

    /// Whether the books have units of this claim...
    pub(super) fn has(&self, claim: ClaimId) -> bool {
        let booked = self.arbiter.entries.get(&claim);
        booked.is_some_and(|booked| matches!(booked.state, State::Granted { .. }))
    }

    /// ...that an earlier seat gave it.
    fn was_taken_over(&self, at: &Seat<'_>, claim: ClaimId) -> bool {
        self.is_adopted(claim) && !(self.may_grant(at) && broken!(at, KeepOldFences))
    }

    /// Takes what a home shows into the books: merged, never replaced, and of two that show one
    /// unit the larger fence stays (charter spec S8). Says whether it stands there. Whoever opens
    /// the books arms the leases: until then none ends (charter spec S4).
    pub(super) fn note(
        &mut self,
        at: &Seat<'_>,
        asker: Asker,
        (claim, shares): (ClaimId, &Shares),
        sent: Moment,
        out: &mut Outbox<Central>,
    ) -> bool {
        self.arbiter.grace = true;
        let known = self.arbiter.entries.get_mut(&claim);
        let mut before = None;
        if let Some(booked) = known {
            match &booked.state {
                State::Granted { .. } if asker.is_before(booked.asker) => return false,
                State::Granted { held, .. } => {
                    before = Some((booked.asker, booked.sent, held.shares.clone()));
                    if let Some(left) = booked.renew(asker, shares, sent, at.now) {
                        self.arbiter.end_moves(claim, &left);
                        return true;
                    }
                }
                // It waits at one home, and another shows that it has units.
                State::Waiting | State::Absent => {
                    let asking =
                        Asking { asker: booked.asker, sent: booked.sent, arrived: booked.arrived };
                    self.owed.insert(claim, (asking, booked.wanted.units));
                }
            }
        }
        // A claim gets units anew only when what it had is over.
        if before.as_ref().is_some_and(|(_, _, known)| known.newest() > shares.newest()) {
            return false;
        }
        self.arbiter.remove(claim);
        let stands = self.arbiter.adopt(at, asker, claim, shares, sent, out);
        if let (false, Some((asker, sent, shares))) = (stands, before) {
            self.arbiter.adopt(at, asker, claim, &shares, sent, out);
        }
        if stands && broken!(at, LeaseFromShowing) {
            out.arm(Timer::LeaseEnd(claim), self.arbiter.keeps(at, claim));
        }
        stands
    }

    /// All that a home knows of is taken into the books.
    pub(super) fn note_all(
        &mut self,
        at: &Seat<'_>,
        node: NodeId,
        sent: Moment,
        grants: &[Shown],
        out: &mut Outbox<Central>,
    ) {
        for Shown { claim, attempt, shares } in grants {
            let asker = Asker { node, attempt: *attempt };
            self.note(at, asker, (*claim, shares), sent, out);
        }
    }

    /// The seat knows whatever is in force. All leases of what it took over begin now (charter spec
    /// S8).
    pub(super) fn open(&mut self, at: &Seat<'_>, post: &mut Post<'_>) {
        self.stage = Stage::Open;
        let armed = [broken!(at, LeaseFromShowing), broken!(at, LeaseFromTakeover)];
        for (&claim, booked) in &self.arbiter.entries {
            if matches!(booked.state, State::Granted { .. }) && !armed.contains(&true) {
                post.out.arm(Timer::LeaseEnd(claim), self.arbiter.keeps(at, claim));
            }
        }
        self.settle(at, post);
    }

    /// Answers renewals that came too early to be answered, if it may. They count from when they
    /// were sent, so nobody is promised more than if they came now.
    pub(super) fn answer_late(&mut self, at: &Seat<'_>, post: &mut Post<'_>) {
        if !self.may_renew(at) {
            return;
        }
        for (_, (node, word)) in std::mem::take(&mut self.late) {
            let attempt = super::attempt(&word);
            self.hear(at, Asker { node, attempt }, word, post);
        }
    }

    /// Tells and grants whatever can be, if it may.
    pub(super) fn settle(&mut self, at: &Seat<'_>, post: &mut Post<'_>) {
        self.answer_late(at, post);
        if !self.may_grant(at) {
            return;
        }
        self.arbiter.grace = false;
        if self.may_tell(at) {
            for (claim, (asking, units)) in std::mem::take(&mut self.owed) {
                self.tell_anew(at, claim, asking, units, post);
            }
        }
        self.arbiter.schedule(at, post);
    }

    /// A claim that waits has units that an earlier seat gave it, and is told of them: with a fence
    /// of this term, since others may have had them after that promise was made (charter spec S9).
    /// If it has them no more, its home asks again.
    fn tell_anew(
        &mut self,
        at: &Seat<'_>,
        claim: ClaimId,
        asking: Asking,
        units: Units,
        post: &mut Post<'_>,
    ) {
        let Some(booked) = self.arbiter.entries.get_mut(&claim) else { return };
        let stale = asking.asker.is_before(booked.asker);
        let State::Granted { held, waited, adopted } = &mut booked.state else { return };
        // Of one that is to move it has two for one, until it says which it left.
        if stale || !*adopted || held.shares.len() != units.get() as usize {
            return;
        }
        let keeps_old = [broken!(at, KeepOldFences), broken!(at, TellInGrace)];
        if !keeps_old.contains(&true) {
            self.arbiter.fence = self.arbiter.fence.next();
            let fence = self.arbiter.fence;
            held.shares = held.shares.map_fences(|_| fence);
        }
        (*waited, *adopted) = Default::default();
        booked.asked_by(asking);
        let (node, answer) = booked.answer(claim);
        if self.stage == Stage::Open {
            post.out.arm(Timer::LeaseEnd(claim), self.arbiter.keeps(at, claim));
        }
        post.send(node, answer);
    }

    /// All that this seat knew, for the seat of the next term: final, since it has stopped, and
    /// since nobody gets a licence for its term any more (charter spec S11).
    pub(super) fn books(&self, at: &Seat<'_>, term: u32) -> Books {
        let entries = &self.arbiter.entries;
        let granted = entries.iter().filter_map(|(&claim, booked)| {
            let State::Granted { held, .. } = &booked.state else { return None };
            let (attempt, shares) = (booked.asker.attempt, held.shares.clone());
            Some((booked.asker.node, booked.sent, Shown { claim, attempt, shares }))
        });
        // Where claims choose, the books do not have all that one asked for: homes ask again.
        let choosy = at.pool.goods.labels.is_some();
        let all = entries.iter().map(|(claim, booked)| (*claim, &**booked));
        let mut waiting: Vec<_> =
            all.filter(|(_, booked)| booked.state == State::Waiting).collect();
        waiting.sort_by_key(|(_, booked)| booked.stamp);
        let waits = |(claim, booked): (ClaimId, &Booked)| {
            let (Asker { node, attempt }, wanted) = (booked.asker, booked.wanted.clone());
            Waiting { node, claim, attempt, wanted, sent: booked.sent }
        };
        let waiting = waiting.into_iter().filter(|_| !choosy).map(waits).collect();
        Books { of: self.tenure.term, term, granted: granted.collect(), waiting }
    }

    /// The seat of the term before has handed over what it knew: that opens this one at once.
    pub(super) fn take_books(&mut self, at: &Seat<'_>, books: Books, post: &mut Post<'_>) {
        if broken!(at, BooksReplace) {
            self.arbiter.entries.keys().copied().collect::<Vec<_>>().into_iter().for_each(|it| {
                self.arbiter.remove(it);
            });
        }
        for (node, sent, shown) in &books.granted {
            self.note_all(at, *node, *sent, std::slice::from_ref(shown), post.out);
        }
        // Whoever asked here before the books came asked after those in them.
        let later = self.books(at, self.tenure.term).waiting;
        for waits in &later {
            self.arbiter.remove(waits.claim);
        }
        for Waiting { node, claim, attempt, wanted, sent } in books.waiting.into_iter().chain(later)
        {
            let asker = Asker { node, attempt };
            self.hear(at, asker, Word::Request { claim, attempt, wanted, sent }, post);
        }
        self.open(at, post);
    }
}
