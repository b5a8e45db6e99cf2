//! `central` with a seat that moves: one node decides, and another when the charter says so.
//!
//! The rules are charter spec S1 to S17, where the history that breaks without each is told. What
//! homes and seats say to each other is what they say in a pool that is pinned ([`Central`]), each
//! message with its term; between two terms, and for shadows, there are messages more:
//!
//! | message | from, to | means |
//! |---|---|---|
//! | `roll` | seat of t+1 to members | show me all grants of your clients |
//! | `answer` | member that has applied t+1 | these, and whether they are all |
//! | `books` | seat of t, which has stopped, to the seat of t+1 | all that I knew |
//! | `tell` | seat to its shadow | I am about to tell homes of these grants; those are over |
//! | `told` | shadow to its seat | I have noted them |
//!
//! The seat of a term waits until nobody else can have a licence (*lull*, charter spec S3), then a
//! lease more (*grace*, charter spec S4), in which it renews what it is shown; books, or complete
//! answers of all members, end both at once (charter spec S7, S11), and a shadow that the charter
//! calls whole decides at once (`shadow`). Only the life of its node that
//! the charter names decides in a term (charter spec S12): after a restart the node waits for a new
//! entry. So a term is to fences what a boot number is in a pinned pool, and fences of both compare
//! as the integers they are (charter spec S10).
//!
//! A pool may be changed meanwhile, which each node learns at its own moment. A seat decides by a
//! definition only under a licence that it asked for when it had applied that (charter spec 3): so
//! whatever was granted in a term was granted by definitions that every later seat knows.
//!
//! A pool that ran before there was a charter is decided by the node that its files name until the
//! charter says who does (`pinned`).
//!
//! Whom a home asks follows from the entry that its node has applied, and so does whom it believes:
//! it leaves alone what a seat of another term says. Nothing here is durable: homes repeat
//! themselves, and what a seat must know of the past others tell it.

mod alarm;
mod amended;
mod desk;
mod explore;
mod message;
mod pinned;
mod pool;
mod reign;
mod roll;
mod shadow;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use quorate_core::{
    Charter, Effect, Entry, Event, EventOf, Fact, Health, Hurdle, Lease, LeaseEnd, NodeId, NodeSet,
    Outbox, Outlook, Protocol, Purpose, Start, Tenure, Unit,
};

use super::requester::Requester;
use super::{Alarm as Timer, Central, Message as Word, Post};
use crate::attempt::{Asker, Attempt};
use crate::central::pool::broken;

pub use alarm::Alarm;
use amended::Leases;
use desk::{Desk, Said};
pub use message::{Books, Message, Shown, Waiting};
pub use pool::Pool;
use reign::{Reign, Stage};
use shadow::{Told, Trail};

/// One node's seat in a pool that one node decides at a time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Moving {
    requester: Requester,
    /// While this node decides, or is on its way to it.
    reign: Option<Box<Reign>>,
    /// Who decides, as far as this node has applied the charter.
    applied: Option<Tenure>,
    leases: Leases,
    /// Whether this life was there when the pool began.
    is_first: bool,
    /// Whether it knows of all grants of its clients that are in force (charter spec S6).
    is_complete: bool,
    /// Books that came before this node had applied the term that they open.
    early: Option<Box<Books>>,
    /// What this node was told as a shadow.
    trail: Option<Box<Trail>>,
}

type Seat<'a> = quorate_core::Seat<'a, Moving>;

impl Moving {
    /// Lets this node's home do something.
    fn as_home(
        &mut self,
        seat: &Seat<'_>,
        desk: &mut Desk<'_>,
        act: impl FnOnce(&mut Requester, &super::Seat<'_>, &mut Post<'_>),
    ) {
        let at =
            super::Seat { me: seat.me, boot: seat.boot, now: seat.now, pool: &seat.pool.central };
        let mut inner = Outbox::new();
        let mut post = Post::new(seat.me, &mut inner);
        act(&mut self.requester, &at, &mut post);
        let own = std::iter::from_fn(|| post.next_own()).collect();
        desk.take(seat.me, 0, &mut inner, (own, |_: &Word| None));
    }

    /// Lets this node decide something, if it is its turn. To the one who decides a term is a boot
    /// number.
    fn as_seat(
        &mut self,
        seat: &Seat<'_>,
        desk: &mut Desk<'_>,
        act: impl FnOnce(&mut Reign, &super::Seat<'_>, &mut Post<'_>),
    ) {
        let Some(reign) = &mut self.reign else { return };
        // What its shadow owed may be over without an answer.
        reign.asked = reign.asked.filter(|_| reign.is_owed());
        let at = judge(seat, reign.tenure.term);
        let mut inner = Outbox::new();
        let mut post = Post::new(seat.me, &mut inner);
        let was = reign.stage;
        act(reign, &at, &mut post);
        reign.arbiter.grace = false; // Said anew whenever it decides.
        let opens = was != Stage::Open && reign.stage == Stage::Open;
        let mut own: Vec<Word> = std::iter::from_fn(|| post.next_own()).collect();
        let mut waits = Vec::new();
        let client_first = broken!(at, ClientFirst);
        let mut goes = |word: &Word| match word {
            Word::Grant { claim, .. } | Word::Move { claim, .. } if reign.withholds(word) => {
                waits.push(*claim);
                client_first
            }
            _ => true,
        };
        own.retain(&mut goes);
        let (mut outer, mut over) = (Outbox::new(), Vec::new());
        for effect in inner.drain() {
            match &effect {
                Effect::Tell { message, .. } if !goes(message) => continue,
                Effect::Disarm(Timer::LeaseEnd(claim)) | Effect::Reclaim { claim, .. } => {
                    over.push(*claim);
                }
                Effect::Arm { alarm: Timer::LeaseEnd(claim), .. } if broken!(at, EndWhatStands) => {
                    over.push(*claim);
                }
                _ => {}
            }
            outer.push(effect);
        }
        let stands_too = broken!(at, EndWhatStands);
        let ended = over.into_iter().filter_map(|it| reign.ended(it, stands_too)).collect();
        let lease = |word: &Word| reign.lease(seat, word);
        desk.take(seat.me, reign.tenure.term, &mut outer, (own, lease));
        self.tell_shadow(seat, &waits, ended, desk);
        if opens {
            self.show_all(seat, desk);
        }
    }

    /// Carries what the two halves have said: within this node, or to another. A home speaks to
    /// whoever decides as far as it knows; if nobody does, it will ask again.
    fn carry(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        while let Some(Said { to, term, lease, word }) = desk.words.pop_front() {
            match (word.is_for_arbiter(), self.applied) {
                (true, None) => {}
                (true, Some(applied)) if applied.node != seat.me => {
                    desk.out.tell(applied.node, Message::Word { term: applied.term, word });
                }
                (true, Some(applied)) => {
                    self.hear_word(seat, seat.me, (applied.term, None, word), desk);
                }
                (false, _) if to != seat.me => desk.out.tell(
                    to,
                    match lease {
                        Some(lease) => Message::Promise { term, lease, word },
                        None => Message::Word { term, word },
                    },
                ),
                (false, _) => self.hear_word(seat, seat.me, (term, lease, word), desk),
            }
        }
    }

    /// Seats and homes leave alone what is of another term than their own, except that a release is
    /// for good.
    fn hear_word(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        (term, lease, word): (u32, Option<Duration>, Word),
        desk: &mut Desk<'_>,
    ) {
        if !word.is_for_arbiter() {
            let at = judge(seat, term);
            let lower_too = broken!(at, TakeLowerTerms);
            let theirs = |it: Tenure| it.term == term && it.node == from;
            let goods = &at.pool.goods;
            // Who does not say by which lease it promises has not heard that it ever changed.
            let said = lease.or(goods.lease_ever.map(|ever| ever.first));
            let said = said.filter(|_| !broken!(at, CountByOwnLease));
            let lease = said.map(|it| Lease::new(it, goods.lease.drift_ppm()));
            if self.applied.is_some_and(|it| theirs(it) || lower_too && term < it.term) {
                self.as_home(seat, desk, |home, at, post| home.hear(at, lease, word, post));
            }
            return;
        }
        let Some(reign) = &self.reign else { return };
        let is_release = matches!(word, Word::Release { .. });
        if reign.tenure.term == term || is_release {
            self.as_seat(seat, desk, |reign, at, post| {
                if let Word::Release { claim } | Word::Decline { claim, .. } = word {
                    reign.late.remove(&claim);
                }
                if let Word::Release { claim } = word {
                    reign.owed.remove(&claim);
                }
                let asker = Asker { node: from, attempt: attempt(&word) };
                reign.hear(at, asker, word, post);
            });
        }
    }

    fn hear(&mut self, seat: &Seat<'_>, from: NodeId, message: Message, desk: &mut Desk<'_>) {
        if message.nodes().any(|node| !seat.pool.members.contains(node)) {
            return desk.out.anomaly(from, "books of homes that are no members");
        }
        match message {
            Message::Word { term, word } => self.hear_word(seat, from, (term, None, word), desk),
            Message::Promise { word, .. } if !word.promises() => {
                desk.out.anomaly(from, "a promise that promises nothing");
            }
            Message::Promise { term, lease, word } => {
                self.hear_word(seat, from, (term, Some(lease), word), desk);
            }
            Message::Roll { term } => self.on_roll(seat, from, term, desk),
            Message::Answer { term, complete, sent, grants } => {
                if self.reign.as_ref().is_some_and(|reign| reign.tenure.term == term) {
                    self.on_answer(seat, (from, sent), complete, &grants, desk);
                }
            }
            Message::Books(books) => self.on_books(seat, books, desk),
            Message::Tell { term, boot, naming, all, granted, ended } => {
                let tell = Told { term, naming, all, granted, ended };
                self.on_tell(seat, (from, boot), tell, desk);
            }
            Message::Told { term, naming, all, claims } => {
                self.on_told(seat, (from, term), (naming, all), claims, desk);
            }
        }
    }

    fn on_licensed(
        &mut self,
        seat: &Seat<'_>,
        term: u32,
        asked: quorate_core::Moment,
        desk: &mut Desk<'_>,
    ) {
        if self.reign.as_ref().is_some_and(|reign| reign.tenure.term == term) {
            let pool = seat.pool;
            self.as_seat(seat, desk, |reign, at, post| reign.on_licensed(at, pool, asked, post));
        }
    }

    fn on_ring(&mut self, seat: &Seat<'_>, alarm: Alarm, desk: &mut Desk<'_>) {
        match alarm {
            Alarm::Of(Timer::Retry) => {
                self.as_home(seat, desk, |home, at, post| home.on_ring_retry(at, post));
            }
            Alarm::Of(Timer::LeaseEnd(claim)) => self.as_seat(seat, desk, |reign, at, post| {
                reign.arbiter.grace = !reign.may_grant(at);
                reign.arbiter.on_ring_lease_end(at, claim, post);
            }),
            Alarm::Of(Timer::Absent(node)) => {
                self.as_seat(seat, desk, |reign, _, _| reign.arbiter.on_ring_absent(node));
            }
            Alarm::Of(Timer::Grace | Timer::WriteDown) => {
                unreachable!("a seat that moves has its own grace, and writes nothing down")
            }
            Alarm::Lull => self.on_ring_lull(seat, desk),
            Alarm::Grace => {
                self.end_waiting(desk);
                self.as_seat(seat, desk, Reign::open);
            }
            Alarm::Licence => {
                let term = self.reign.as_ref().expect("only a seat arms it").tenure.term;
                desk.out.ask_licence(term, seat.now);
                desk.out.arm(Alarm::Licence, seat.pool.ask_every());
                self.tell_again(seat, desk);
                if broken!(judge(seat, term), GoOnUnshadowed) {
                    self.flush(seat, desk);
                }
            }
            Alarm::Roll => self.call_roll(seat, desk),
            Alarm::Amended => desk.out.arm(Alarm::Settled, self.leases.longest),
            Alarm::Settled => self.on_ring_settled(),
            Alarm::Complete => {
                self.is_complete = true;
                self.answer_myself(seat, desk);
            }
        }
    }

    fn on_ring_lull(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        let reign = self.reign.as_mut().expect("only a seat arms it");
        if reign.stage == Stage::Heir {
            return self.as_seat(seat, desk, Reign::open);
        }
        reign.stage = Stage::Grace;
        let at = judge(seat, reign.tenure.term);
        if broken!(at, NoGraceAfterMove) {
            self.end_waiting(desk);
            return self.as_seat(seat, desk, Reign::open);
        }
        let lease = match broken!(at, GraceByNewLease) {
            true => at.pool.goods.lease.length(),
            false => self.leases.longest,
        };
        desk.out.arm(Alarm::Grace, lease);
        self.as_seat(seat, desk, Reign::answer_late);
    }

    /// The seat need not wait any more.
    fn end_waiting(&self, desk: &mut Desk<'_>) {
        for alarm in [Alarm::Lull, Alarm::Grace, Alarm::Roll] {
            desk.out.disarm(alarm);
        }
    }
}

/// Where this node sits as the one who decides. To fences a pinned seat is a life of its node.
fn judge<'a>(seat: &Seat<'a>, term: u32) -> super::Seat<'a> {
    let mut at = super::Seat { me: seat.me, boot: term, now: seat.now, pool: &seat.pool.central };
    if term == Tenure::PINNED && !broken!(at, PinnedFencesAnew) {
        at.boot = seat.boot;
    }
    at
}

/// The try that a word to the seat is of.
fn attempt(word: &Word) -> Attempt {
    match word {
        Word::Request { attempt, .. }
        | Word::Decline { attempt, .. }
        | Word::Renew { attempt, .. } => *attempt,
        _ => Attempt { boot: 0, clock: 0 },
    }
}

impl Protocol for Moving {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = Infallible;

    const NAME: &'static str = "central-moving";
    const KINDS: &'static [&'static str] = Message::KINDS;

    fn boot(seat: &Seat<'_>, start: Start<Infallible>, out: &mut Outbox<Self>) -> Self {
        let is_first = start == Start::First;
        let is_complete = is_first || broken!(judge(seat, 0), CompleteAtOnce);
        if !is_complete {
            out.arm(Alarm::Complete, seat.pool.central.goods.longest());
        }
        let (requester, reign, early, trail) = Default::default();
        let applied = pinned::tenure(seat.pool);
        let leases = Leases::of(seat);
        Moving { requester, reign, applied, leases, is_first, is_complete, early, trail }
    }

    fn step(&mut self, seat: &Seat<'_>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        let desk = &mut Desk { out, words: VecDeque::new() };
        match event {
            Event::Claim(claim) => {
                self.as_home(seat, desk, |home, at, post| home.on_claim(at, &claim, post));
            }
            Event::Release(claim) => {
                self.as_home(seat, desk, |home, at, post| home.on_release(at, claim, post));
            }
            Event::Cancel(claim) => {
                self.as_home(seat, desk, |home, at, post| home.on_cancel(at, claim, post));
            }
            Event::Withdraw(claim) => {
                self.as_home(seat, desk, |home, at, post| home.on_withdraw(at, claim, post));
            }
            Event::Renew { claim, shares } => {
                self.as_home(seat, desk, |home, at, post| home.on_renew(at, claim, shares, post));
            }
            Event::Hear { from, message } => self.hear(seat, from, message, desk),
            Event::Ring(alarm) => self.on_ring(seat, alarm, desk),
            Event::Suspect(node) => self.as_seat(seat, desk, |reign, at, post| {
                reign.arbiter.grace = !reign.may_grant(at);
                reign.arbiter.on_suspect(at, node, post);
            }),
            Event::Trust(node) => {
                if self.applied.is_some_and(|applied| applied.node == node) {
                    self.as_home(seat, desk, |home, at, post| home.ask_all_again(at, post));
                }
                if self.shadow().is_some_and(|shadow| shadow.node == node) {
                    self.show_all(seat, desk);
                }
            }
            Event::Charter(Charter::Applied(tenure)) => self.apply(seat, tenure, None, desk),
            Event::Charter(Charter::Inherited(tenure, naming)) => {
                self.apply(seat, tenure, Some(naming), desk);
            }
            Event::Charter(Charter::Shadowed { term, shadow }) => {
                self.on_shadowed(seat, term, shadow, desk);
            }
            Event::Charter(Charter::Amended { .. }) => self.amend(seat, desk),
            Event::Charter(Charter::Unpinned) => self.unpin(seat),
            Event::Charter(Charter::Licensed { term, asked }) => {
                self.on_licensed(seat, term, asked, desk);
            }
        }
        self.carry(seat, desk);
    }

    fn audit(&self, seat: &Seat<'_>) {
        let Some(reign) = &self.reign else { return };
        let at = judge(seat, reign.tenure.term);
        let broken = [
            broken!(at, GoOnAfterMove),
            broken!(at, DecideInAnotherLife),
            broken!(at, FenceByCounterAlone),
        ];
        if broken.contains(&true) {
            return; // A test broke a rule on purpose: the laws must find it, not this assertion.
        }
        assert_eq!(self.applied, Some(reign.tenure), "only the newest seat known decides");
        assert_eq!((reign.tenure.node, reign.tenure.boot), (seat.me, seat.boot));
        reign.arbiter.audit(&at);
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        if let Some(reign) = &self.reign {
            reign.arbiter.ledger(show);
        }
    }

    fn health(&self, _seat: &Seat<'_>) -> Health {
        let in_grace = self.reign.as_ref().is_some_and(|reign| reign.stage.waits());
        let term = self.applied.map_or(0, |applied| applied.term);
        let shadow = self.reign.as_ref().and_then(|reign| reign.shadowing());
        Health { in_grace, term, shadow, ..Health::default() }
    }

    fn outlook(&self, seat: &Seat<'_>, away: &NodeSet) -> Outlook {
        let hurdle = match (&self.reign, self.applied) {
            (Some(reign), _) if reign.stage.waits() => Hurdle::SeatInGrace(seat.me),
            (Some(reign), _) if !reign.is_licensed(&judge(seat, reign.tenure.term)) => {
                Hurdle::Unlicensed(seat.me)
            }
            (Some(_), _) => return Outlook::all(Self::capacity(seat.pool)),
            (None, Some(it)) if it.node == seat.me => Hurdle::NoSeat,
            (None, Some(it)) if away.contains(it.node) => Hurdle::SeatAway(it.node),
            (None, Some(_)) => return Outlook::all(Self::capacity(seat.pool)),
            (None, None) => Hurdle::NoSeat,
        };
        Outlook::nothing(hurdle)
    }

    fn facts(&self, seat: &Seat<'_>, show: &mut dyn FnMut(Fact)) {
        show(Fact::gauge("term", self.applied.map_or(0, |applied| applied.term)));
        if let Some(reign) = &self.reign {
            show(Fact::gauge("decides", true));
            show(Fact::gauge("in_grace", reign.stage.waits()));
            let shadowed = Fact::gauge("shadowed", reign.is_shadowed());
            show(reign.shadow.map_or(shadowed, |it| shadowed.about(it.node)));
            show(Fact::gauge("licensed", reign.is_licensed(&judge(seat, reign.tenure.term))));
        }
    }

    fn explain(
        &self,
        _: &Seat<'_>,
        claim: quorate_core::ClaimId,
    ) -> Option<quorate_core::Shortage> {
        self.reign.as_ref()?.arbiter.explain(claim)
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Of(timer) => Central::lease_end(timer),
            Alarm::Lull | Alarm::Amended => LeaseEnd::Licences,
            Alarm::Settled => LeaseEnd::Promises,
            Alarm::Grace | Alarm::Complete => LeaseEnd::Earlier,
            Alarm::Licence | Alarm::Roll => LeaseEnd::Nothing,
        }
    }

    fn purpose(alarm: &Alarm) -> Purpose {
        match alarm {
            Alarm::Of(timer) => Central::purpose(timer),
            Alarm::Lull | Alarm::Grace | Alarm::Amended | Alarm::Settled | Alarm::Complete => {
                Purpose::Lease
            }
            Alarm::Licence | Alarm::Roll => Purpose::Probe,
        }
    }

    fn kind(message: &Message) -> usize {
        message.kind()
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.central.goods.units
    }

    fn drained(pool: &Pool) -> &[Unit] {
        &pool.central.goods.drained
    }

    /// The queue outlives a move that was planned; after a crash homes ask again, in any order.
    fn overtakes_max(_pool: &Pool) -> Option<u32> {
        None
    }

    /// The charter moves the seat to whoever is left.
    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        pool.members.iter().any(|member| !dead.contains(member))
    }
}
