//! One node's part in a pool of which it takes a seat when somebody uses that there, as daemons do:
//! what a seat is told then is what [`Decided`] and [`NodeLicence`] say (charter spec S19, S20).
//!
//! A daemon looks at its clock whether it has decided for long enough. Here it waits for two
//! alarms, one after the other, as a seat does: nobody has a licence any more, and then, nothing is
//! in force that was promised before. That is never later than by the clock.
//!
//! The checker's clocks stand still. What came before what a node counts there by the words that it
//! has heard from the charter, and it asks for another licence at each.

use std::cell::Cell;
use std::fmt;

use quorate_core::{
    Charter, Claim, ClaimId, Decided, Effect, Entry, Event, EventOf, Explorable, Fact, Health,
    LeaseEnd, Moment, NodeLicence, NodeSet, Number, Numbers, Outbox, Outlook, Protocol, Seat,
    Start, Tenure, Unused,
};

use crate::central::moving::{self, Message, Moving};

thread_local! {
    static OPENED: Cell<u64> = const { Cell::new(0) };
}

/// How often a seat opened at once, in this thread, although another had decided before.
pub(super) fn opened() -> u64 {
    OPENED.get()
}

/// A pool that is made, or comes into use, while its group is decided.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) pool: moving::Pool,
    /// Whether it is there when it was changed for the first time, and not before.
    pub(super) is_made: bool,
    /// How often it was changed.
    pub(super) edition: u32,
    /// Whether clocks stand still.
    pub(super) still: bool,
    pub(super) broken: Option<Broken>,
}

/// Rules about pools that nobody used, broken on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Broken {
    /// A pool that comes into use opens at once, whoever decided before.
    OpenAlways,
    /// It opens when nobody has an earlier licence.
    OpenAfterLicence,
    /// It opens after a lease from when its node heard that it decides.
    OpenAfterLease,
    /// Whatever the charter made opens at once, also what it made before this node decided.
    OpenWhatWasMade,
    /// A licence counts that was asked for before the pool was made or changed.
    CountEarlierLicence,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct OnDemand {
    seat: Option<Moving>,
    is_first: bool,
    is_complete: bool,
    decided: Option<Decided>,
    shadowed: Option<Charter>,
    outlived: bool,
    /// By which word from the charter the pool was made, and when it was changed last.
    made: Option<u64>,
    changed: Moment,
    heard: u64,
    asked: Moment,
    licence: Option<(u32, Moment)>,
    by: Option<NodeLicence>,
    /// Claims in a pool of which this node has not heard.
    early: Vec<Claim>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Alarm {
    Of(moving::Alarm),
    /// Nobody has a licence for an earlier term any more.
    Lull,
    /// And nothing is in force that an earlier one promised.
    Outlived,
}

type At<'a> = Seat<'a, OnDemand>;

impl OnDemand {
    fn reading(&self, at: &At<'_>) -> Moment {
        if at.pool.still { Moment(self.heard) } else { at.now }
    }

    fn is_mine(at: &At<'_>, tenure: &Tenure) -> bool {
        (tenure.node, tenure.boot) == (at.me, at.boot)
    }

    fn mine(&self, at: &At<'_>) -> Option<Decided> {
        self.decided.filter(|it| OnDemand::is_mine(at, &it.tenure))
    }

    fn ask(&mut self, at: &At<'_>, out: &mut Outbox<Self>) {
        if let Some(Decided { tenure, .. }) = self.mine(at) {
            self.asked = self.reading(at);
            out.ask_licence(tenure.term, self.asked);
        }
    }

    /// What the seat wants: licences are asked for by the node.
    fn pass(&mut self, at: &At<'_>, event: EventOf<Moving>, out: &mut Outbox<Self>) {
        let Some(seat) = &mut self.seat else { return };
        let mut inner = Outbox::new();
        let under = Seat { me: at.me, boot: at.boot, now: at.now, pool: &at.pool.pool };
        seat.step(&under, event, &mut inner);
        for effect in inner.drain() {
            match effect {
                Effect::AskLicence { .. } => self.ask(at, out),
                other => out.push(other.map(|message| message, Alarm::Of, |never| match never {})),
            }
        }
    }

    /// Before anything happens to the seat it is told of the node's last licence.
    fn show_licence(&mut self, at: &At<'_>, out: &mut Outbox<Self>) {
        let last = self.licence;
        let by = self.by.as_mut().filter(|_| self.seat.is_some());
        if let Some(word) = by.and_then(|by| by.news(last)) {
            self.pass(at, Event::Charter(word), out);
        }
    }

    fn decides_from(&mut self, at: &At<'_>, out: &mut Outbox<Self>) {
        let changed = match at.pool.broken {
            Some(Broken::CountEarlierLicence) => Moment::ZERO,
            _ => self.changed,
        };
        self.by = self.mine(at).map(|it| {
            let known = if changed == self.changed { it.at } else { Moment::ZERO };
            NodeLicence::new(it.tenure.term, known, changed)
        });
        self.show_licence(at, out);
    }

    fn opens(&self, at: &At<'_>) -> Option<Tenure> {
        let (broken, decided) = (at.pool.broken, self.mine(at)?);
        let changed = at.pool.edition > u32::from(at.pool.is_made);
        let made = match broken {
            Some(Broken::OpenWhatWasMade) => self.made.map(|_| u64::MAX),
            _ => self.made,
        };
        let outlived = self.outlived || broken == Some(Broken::OpenAlways);
        decided.opens(Unused { made, changed, outlived })
    }

    /// Somebody uses the pool.
    fn take_seat(&mut self, at: &At<'_>, out: &mut Outbox<Self>) {
        if self.seat.is_some() {
            return;
        }
        let opens = self.opens(at);
        if opens.is_some_and(|it| it.term > 1) {
            OPENED.set(OPENED.get() + 1);
        }
        let start = if opens.is_some() || self.is_first { Start::First } else { Start::Amnesia };
        let under = Seat { me: at.me, boot: at.boot, now: at.now, pool: &at.pool.pool };
        // A seat that is made on demand boots as of when its node did.
        self.seat = Some(Moving::boot(&under, start, &mut Outbox::new()));
        if self.is_complete && start == Start::Amnesia {
            self.pass(at, Event::Ring(moving::Alarm::Complete), out);
        }
        for alarm in [Alarm::Lull, Alarm::Outlived] {
            out.disarm(alarm);
        }
        self.outlived = false;
        let Some(Decided { tenure, .. }) = self.decided else { return };
        self.pass(at, Event::Charter(Charter::Applied(opens.unwrap_or(tenure))), out);
        self.decides_from(at, out);
        if let Some(word) = self.shadowed {
            self.pass(at, Event::Charter(word), out);
        }
    }

    fn apply(&mut self, at: &At<'_>, tenure: Tenure, word: Charter, out: &mut Outbox<Self>) {
        if self.decided.is_some_and(|it| tenure.term <= it.tenure.term) {
            return;
        }
        let (now, version) = (self.reading(at), self.heard);
        self.decided = Some(Decided { tenure, at: now, version });
        (self.shadowed, self.by, self.licence) = (None, None, None);
        if self.seat.is_some() {
            self.pass(at, Event::Charter(word), out);
            return self.decides_from(at, out);
        }
        self.outlived = tenure.after.is_none() && self.is_first;
        for alarm in [Alarm::Lull, Alarm::Outlived, Alarm::Of(moving::Alarm::Licence)] {
            out.disarm(alarm);
        }
        if OnDemand::is_mine(at, &tenure) {
            self.ask(at, out);
            out.arm(Alarm::Of(moving::Alarm::Licence), at.pool.pool.ask_every());
            match (at.pool.broken, self.outlived) {
                (_, true) => {}
                (Some(Broken::OpenAfterLease), _) => self.on_lull(at, out),
                _ => out.arm(Alarm::Lull, at.pool.pool.lull()),
            }
        }
    }

    fn on_lull(&mut self, at: &At<'_>, out: &mut Outbox<Self>) {
        self.outlived = at.pool.broken == Some(Broken::OpenAfterLicence);
        if !self.outlived {
            out.arm(Alarm::Outlived, at.pool.pool.central.goods.longest());
        }
    }

    fn hear(&mut self, at: &At<'_>, word: Charter, out: &mut Outbox<Self>) {
        match word {
            Charter::Applied(tenure) | Charter::Inherited(tenure, _) => {
                self.heard += 1;
                self.apply(at, tenure, word, out);
            }
            Charter::Unpinned => self.pass(at, Event::Charter(word), out),
            Charter::Shadowed { .. } => {
                self.shadowed = Some(word);
                self.pass(at, Event::Charter(word), out);
            }
            Charter::Amended { .. } => {
                self.heard += 1;
                if at.pool.is_made {
                    self.made = self.made.or(Some(self.heard));
                }
                self.changed = self.reading(at);
                if self.seat.is_some() {
                    let now = self.changed;
                    self.show_licence(at, out);
                    self.pass(at, Event::Charter(word), out);
                    if let Some(by) = &mut self.by {
                        by.changed(now);
                    }
                } else {
                    self.ask(at, out);
                }
                for claim in std::mem::take(&mut self.early) {
                    self.use_it(at, Event::Claim(claim), out);
                }
            }
            Charter::Licensed { term, asked } => {
                let asked = if at.pool.still { self.asked } else { asked };
                self.licence = Some((term, asked));
                if self.seat.as_ref().is_some_and(|seat| !seat.is_licensed()) {
                    self.show_licence(at, out);
                }
            }
        }
    }

    fn use_it(&mut self, at: &At<'_>, event: EventOf<Moving>, out: &mut Outbox<Self>) {
        if at.pool.is_made && at.pool.edition == 0 {
            // It says so to its client, which asks again; a home repeats itself.
            match event {
                Event::Claim(claim) => self.early.push(claim),
                Event::Cancel(id) => self.early.retain(|claim| claim.id != id),
                _ => {}
            }
            return;
        }
        self.take_seat(at, out);
        self.show_licence(at, out);
        self.pass(at, event, out);
    }
}

impl Protocol for OnDemand {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = std::convert::Infallible;

    const NAME: &'static str = "central-moving-on-demand";
    const KINDS: &'static [&'static str] = Moving::KINDS;

    fn boot(at: &At<'_>, start: Start<Self::Durable>, out: &mut Outbox<Self>) -> Self {
        let is_first = start == Start::First;
        if !is_first {
            let lease = at.pool.pool.central.goods.longest();
            out.arm(Alarm::Of(moving::Alarm::Complete), lease);
        }
        OnDemand {
            seat: None,
            is_first,
            is_complete: is_first,
            decided: None,
            shadowed: None,
            outlived: false,
            made: (at.pool.is_made && at.pool.edition > 0).then_some(0),
            changed: Moment::ZERO,
            heard: 0,
            asked: Moment::ZERO,
            licence: None,
            by: None,
            early: Vec::new(),
        }
    }

    fn step(&mut self, at: &At<'_>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        match event {
            Event::Charter(word) => self.hear(at, word, out),
            Event::Ring(Alarm::Lull) => self.on_lull(at, out),
            Event::Ring(Alarm::Outlived) => self.outlived = true,
            Event::Ring(Alarm::Of(alarm)) if self.seat.is_none() => match alarm {
                moving::Alarm::Complete => self.is_complete = true,
                _ => {
                    self.ask(at, out);
                    out.arm(Alarm::Of(moving::Alarm::Licence), at.pool.pool.ask_every());
                }
            },
            Event::Suspect(_) | Event::Trust(_) if self.seat.is_none() => {}
            event => {
                let of = |alarm| match alarm {
                    Alarm::Of(alarm) => alarm,
                    Alarm::Lull | Alarm::Outlived => unreachable!("they rang before"),
                };
                self.use_it(at, event.map(|message| message, of), out);
            }
        }
    }

    fn audit(&self, at: &At<'_>) {
        if let Some(seat) = &self.seat {
            seat.audit(&Seat { me: at.me, boot: at.boot, now: at.now, pool: &at.pool.pool });
        }
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        if let Some(seat) = &self.seat {
            seat.ledger(show);
        }
    }

    fn health(&self, at: &At<'_>) -> Health {
        let under = Seat { me: at.me, boot: at.boot, now: at.now, pool: &at.pool.pool };
        self.seat.as_ref().map_or_else(Health::default, |seat| seat.health(&under))
    }

    fn outlook(&self, at: &At<'_>, away: &NodeSet) -> Outlook {
        let under = Seat { me: at.me, boot: at.boot, now: at.now, pool: &at.pool.pool };
        let all = || Outlook::all(Self::capacity(at.pool));
        self.seat.as_ref().map_or_else(all, |seat| seat.outlook(&under, away))
    }

    fn facts(&self, _: &At<'_>, _: &mut dyn FnMut(Fact)) {}

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Of(alarm) => Moving::lease_end(alarm),
            Alarm::Lull => LeaseEnd::Licences,
            Alarm::Outlived => LeaseEnd::Earlier,
        }
    }

    fn kind(message: &Message) -> usize {
        Moving::kind(message)
    }

    fn capacity(pool: &Pool) -> u32 {
        Moving::capacity(&pool.pool)
    }

    fn overtakes_max(pool: &Pool) -> Option<u32> {
        Moving::overtakes_max(&pool.pool)
    }

    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        Moving::can_lose(&pool.pool, dead)
    }
}

impl Explorable for OnDemand {
    fn promise(message: &Message) -> Option<ClaimId> {
        Moving::promise(message)
    }

    fn end_licence(&mut self) {
        self.licence = None;
        if let (Some(seat), Some(decided)) = (&mut self.seat, self.decided) {
            seat.end_licence();
            // The next one is news, though it was asked for after the same word.
            let term = decided.tenure.term;
            let anew = |by: NodeLicence| NodeLicence::new(term, by.since(), Moment::ZERO);
            self.by = self.by.map(anew);
        }
    }

    fn is_licensed(&self) -> bool {
        self.licence.is_some() || self.seat.as_ref().is_some_and(Moving::is_licensed)
    }

    fn is_unused(&self) -> bool {
        self.seat.is_none()
    }
}

impl Numbers for OnDemand {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        self.seat.numbers(see);
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Of(alarm) => alarm.fmt(f),
            Alarm::Lull => f.write_str("lull-unused"),
            Alarm::Outlived => f.write_str("outlived"),
        }
    }
}
