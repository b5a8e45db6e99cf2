//! From one term to the next: whoever decided stops and hands over, and somebody else begins
//! (charter spec S11, S12).

use quorate_core::{Outbox, Tenure};

use super::message::{Books, Message};
use super::reign::{Reign, Stage};
use super::{Alarm, Desk, Moving, Seat, Timer, judge};
use crate::central::pool::broken;

impl Moving {
    /// The node has applied a later entry: whoever decided in an earlier term stops for good.
    pub(super) fn apply(
        &mut self,
        seat: &Seat<'_>,
        tenure: Tenure,
        heir: Option<u64>,
        desk: &mut Desk<'_>,
    ) {
        if tenure.term == Tenure::PINNED {
            return self.pin(seat, tenure, desk);
        }
        if self.applied.is_some_and(|applied| tenure.term <= applied.term) {
            return;
        }
        let books = self.retire(seat, &tenure, desk);
        let is_news = self.applied.replace(tenure).is_none();
        if is_news {
            self.wait_out(seat, desk);
        }
        let named = tenure.boot == seat.boot || broken!(judge(seat, 0), DecideInAnotherLife);
        if tenure.node == seat.me && named {
            self.found(seat, tenure, heir, desk);
            let early = self.early.take();
            if let Some(books) = books.or(early) {
                self.on_books(seat, books, desk);
            }
        } else if let Some(books) = books.filter(|_| tenure.node != seat.me) {
            desk.out.tell(tenure.node, Message::Books(books));
        }
        self.early = self.early.take().filter(|books| books.term > tenure.term);
        self.trail = self.trail.take().filter(|trail| trail.term >= tenure.term);
        self.as_home(seat, desk, |home, at, post| home.ask_all_again(at, post));
    }

    fn retire(
        &mut self,
        seat: &Seat<'_>,
        next: &Tenure,
        desk: &mut Desk<'_>,
    ) -> Option<Box<Books>> {
        let term = self.reign.as_ref()?.tenure.term;
        let at = judge(seat, term);
        let is_next = next.after == Some(term) || broken!(at, BooksForAnyTerm);
        let is_open = |reign: &Reign| reign.stage == Stage::Open || broken!(at, HandOverInGrace);
        if broken!(at, GoOnAfterMove) && next.node != seat.me {
            let reign = self.reign.as_ref().filter(|reign| is_next && is_open(reign))?;
            return Some(Box::new(reign.books(&at, next.term)));
        }
        let reign = self.reign.take()?;
        for claim in reign.arbiter.entries.keys() {
            desk.out.disarm(Alarm::Of(Timer::LeaseEnd(*claim)));
        }
        for member in seat.pool.members.iter() {
            desk.out.disarm(Alarm::Of(Timer::Absent(member)));
        }
        for alarm in [Alarm::Lull, Alarm::Grace, Alarm::Licence, Alarm::Roll] {
            desk.out.disarm(alarm);
        }
        (is_next && is_open(&reign)).then(|| Box::new(reign.books(&at, next.term)))
    }

    /// With a naming, this life was the whole shadow by it when that was said.
    fn found(&mut self, seat: &Seat<'_>, tenure: Tenure, heir: Option<u64>, desk: &mut Desk<'_>) {
        let counter_alone = broken!(judge(seat, 0), FenceByCounterAlone);
        let at = judge(seat, if counter_alone { 0 } else { tenure.term });
        let mut reign = Reign::new(&at, tenure, &mut Outbox::new());
        reign.arbiter.longest = self.leases.longest;
        self.reign = Some(Box::new(reign));
        desk.out.ask_licence(tenure.term, seat.now);
        desk.out.arm(Alarm::Licence, seat.pool.ask_every());
        if self.is_first && tenure.after.is_none() {
            return self.as_seat(seat, desk, Reign::open); // Nobody can have anything yet.
        }
        if heir.is_some_and(|naming| self.knows_all(&at, tenure.after, naming)) {
            return self.inherit(seat, tenure.after, desk);
        }
        desk.out.arm(Alarm::Lull, seat.pool.lull());
        if broken!(at, NoLull) {
            self.on_ring_lull(seat, desk);
        }
        self.call_roll(seat, desk);
    }

    pub(super) fn on_books(&mut self, seat: &Seat<'_>, books: Box<Books>, desk: &mut Desk<'_>) {
        let at = judge(seat, books.term);
        let mine = self.reign.as_deref().filter(|reign| reign.tenure.term == books.term);
        let from_last =
            |reign: &&Reign| reign.tenure.after == Some(books.of) || broken!(at, BooksForAnyTerm);
        if mine.filter(from_last).is_some_and(|reign| reign.stage != Stage::Open) {
            self.end_waiting(desk);
            self.as_seat(seat, desk, |reign, at, post| reign.take_books(at, *books, post));
        } else if self.applied.is_none_or(|applied| applied.term < books.term) {
            self.early = Some(books);
        }
    }
}
