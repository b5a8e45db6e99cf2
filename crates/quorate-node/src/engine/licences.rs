//! Licences: that this node may decide (charter spec S1), asked for by the node and not by each
//! of its seats.
//!
//! One round of the charter confirms all groups at once. It is asked for every third of a licence
//! while there are seats that may want it, however many. A seat is told of the last one when
//! something happens to it, before that happens; one that can do nothing for want of a licence is
//! told as soon as one comes. So a pool in which nothing happens costs nothing.
//!
//! A seat decides by a definition only under a licence that was asked for when it had applied that
//! (charter spec 3). So of every seat it is known since when its licences count: since it heard
//! that it decides, since its pool was changed last, and, if it was made later than either, since
//! any pool of its group was.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_charter::Group;
use quorate_core::{Event, Hurdle, Moment, NodeLicence, Outlook, Tenure};

use super::Engine;
use super::pools::Pool;
use crate::alarms::Due;
use crate::charter::Licence;

/// That a seat decides, and by which licence (charter spec S20).
#[derive(Clone, Copy, Debug)]
pub(super) struct Decides {
    group: Group,
    by: NodeLicence,
}

/// What this node knows of its licences.
#[derive(Debug, Default)]
pub(super) struct Licences {
    /// The last one of each group: for which term, and from when it counts.
    last: BTreeMap<Group, (u32, Moment)>,
    /// When the newest of all was asked for.
    newest: Moment,
    /// When a pool of each group was made or changed last.
    changed: BTreeMap<Group, Moment>,
    /// Seats that can do nothing before one comes.
    waiting: BTreeMap<Group, BTreeSet<usize>>,
    /// One was asked for that counts since then, and has not come.
    asked: Option<Moment>,
    /// Whether the next is asked for in a while.
    is_armed: bool,
}

impl Licences {
    /// Pools of this group were made or changed.
    pub(super) fn note_change(&mut self, group: Group, now: Moment) {
        self.changed.insert(group, now);
    }

    /// The last licence that counts for a seat.
    fn of(&self, decides: &Decides) -> Option<Moment> {
        decides.by.counts(self.last.get(&decides.group).copied())
    }
}

impl Engine {
    fn licence_length(&self) -> Duration {
        self.config.charter.map_or(Duration::ZERO, |charter| charter.licence)
    }

    /// A seat has heard who decides, of which this node knows since that moment.
    pub(super) fn decides_from(&mut self, seat: usize, tenure: &Tenure, known: Moment) {
        let group = Group::of(&self.pools[seat].name);
        let changed = self.charter.licences.changed.get(&group).copied().unwrap_or_default();
        let decides = Decides { group, by: NodeLicence::new(tenure.term, known, changed) };
        self.pools[seat].decides = self.is_mine(tenure).then_some(decides);
        self.show_licence(seat);
        self.want_licence(seat);
    }

    /// A seat hears soon that somebody else decides, or in another term.
    pub(super) fn decides_no_more(&mut self, seat: usize) {
        if let Some(Decides { group, .. }) = self.pools[seat].decides.take()
            && let Some(waiting) = self.charter.licences.waiting.get_mut(&group)
        {
            waiting.remove(&seat);
        }
    }

    /// The pool of a seat was changed just now: no licence of before counts.
    pub(super) fn decides_anew(&mut self, seat: usize) {
        let now = self.now();
        if let Some(decides) = &mut self.pools[seat].decides {
            decides.by.changed(now);
        }
        self.want_licence(seat);
    }

    /// Before anything happens to a seat it is told of the last licence.
    pub(super) fn show_licence(&mut self, seat: usize) {
        let Some(decides) = &mut self.pools[seat].decides else { return };
        let last = self.charter.licences.last.get(&decides.group).copied();
        let Some(word) = decides.by.news(last) else { return };
        let event = Event::Charter(word);
        // What comes of it the seat's own trace tells, if it contradicts itself.
        let _ = self.act_at_once(seat, |seat, now, effects| seat.step(now, event, effects));
    }

    /// Something happened to a seat: if it has no licence for long, it is told of the next.
    pub(super) fn want_licence(&mut self, seat: usize) {
        let Some(decides) = self.pools[seat].decides else { return };
        self.note_owed(seat);
        let lasts = self.licence_length() / 3 * 2;
        if decides.by.lasts(self.now(), lasts) {
            return;
        }
        self.charter.licences.waiting.entry(decides.group).or_default().insert(seat);
        self.ask_licence(decides.by.since());
    }

    /// A licence is wanted that counts since then, and is newer than all there are.
    fn ask_licence(&mut self, since: Moment) {
        let next = Moment(self.charter.licences.newest.0.saturating_add(1));
        let since = since.max(next);
        if !self.charter.licences.is_armed {
            self.charter.licences.is_armed = true;
            let at = self.now().after(self.licence_length() / 3);
            self.alarms.set(at, Due::Licence);
        }
        if self.charter.licences.asked.is_none_or(|asked| asked < since) {
            self.charter.licences.asked = Some(since);
            self.charter.ask(since);
        }
    }

    /// Time to ask for the next, while there is a seat that may want it.
    pub(super) fn renew_licences(&mut self) {
        self.charter.licences.is_armed = false;
        if self.decides_anything() {
            self.ask_licence(Moment::ZERO);
        }
    }

    /// Licences have come. What was applied at their round has been told before (charter spec S2).
    pub(super) fn on_licensed(&mut self, licences: &[Licence]) {
        for Licence { group, term, asked } in licences {
            self.charter.licences.last.insert(*group, (*term, *asked));
            self.charter.licences.newest = self.charter.licences.newest.max(*asked);
        }
        let newest = self.charter.licences.newest;
        self.charter.licences.asked = self.charter.licences.asked.filter(|asked| *asked > newest);
        for Licence { group, .. } in licences {
            let waiting = self.charter.licences.waiting.remove(group).unwrap_or_default();
            for seat in waiting {
                self.show_licence(seat);
                self.want_licence(seat);
            }
        }
    }

    /// What a pool can grant, if its seat has not been told of a licence that there is.
    pub(super) fn with_licence(&self, pool: &Pool, outlook: Outlook, now: Moment) -> Outlook {
        let lasts = |asked: &Moment| now.since(*asked) < self.licence_length();
        let has_one = || {
            let decides = pool.decides.as_ref()?;
            self.charter.licences.of(decides).filter(lasts)
        };
        match outlook.hurdle {
            Some(Hurdle::Unlicensed(_)) if has_one().is_some() => Outlook::all(pool.def.units),
            _ => outlook,
        }
    }
}
