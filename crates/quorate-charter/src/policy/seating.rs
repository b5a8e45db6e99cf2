//! Who should decide for which groups (charter spec 4).
//!
//! | a group whose seat | goes | when |
//! |---|---|---|
//! | nobody has | to whoever has the fewest | at once |
//! | is at a member that is silent for `suspect_after` | to the whole shadow, if that life of it is heard; else to whoever has the fewest | at once |
//! | is at a member that restarted | to the whole shadow; without one it stays there, for its new life, and waits as charter spec S12 says | at once |
//! | is at a member that drains | to the whole shadow; else to whoever has the fewest | at once, or when its books are final |
//! | is at a member that has two more than another | to the one that has the fewest | one in `return_pause` |
//!
//! A member that comes back gets its share by the last line, slowly. One that fell silent or
//! restarted without draining first is given nothing for `flap_first`, after the next time for
//! twice as long, and so on up to `flap_max`; heard for that long without a break, it is forgiven.
//! It may still be given what nobody else is there for.
//!
//! Whoever took over as a shadow has no final books before the seat before it has no licence any
//! more (charter spec S17). What it gave away earlier would wait out a lease, so nothing is that
//! need not be.
//!
//! A leader that has just begun has heard nobody, and suspects nobody before `suspect_after`.
//!
//! Who shadows whom: `shadows`.

mod shadows;

use std::collections::BTreeMap;
use std::time::Duration;

use self::shadows::Shadows;
use crate::{Charter, Group, Life, MemberId, Move, Seat};

/// How long is long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// A member that is not heard for so long is taken to be gone. With L, at most half a lease
    /// (charter spec S3).
    pub suspect_after: Duration,
    /// One group in so long is given back.
    pub return_pause: Duration,
    /// After its first fall a member is given nothing for so long...
    pub flap_first: Duration,
    /// ...and after many for so long.
    pub flap_max: Duration,
    /// Books of a seat that was taken over by its shadow are final after so long: a licence, by
    /// whatever clock.
    pub rest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            suspect_after: Duration::from_secs(3),
            return_pause: Duration::from_secs(1),
            flap_first: Duration::from_secs(10),
            flap_max: Duration::from_secs(640),
            rest: Duration::ZERO,
        }
    }
}

/// A member was heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// When, by the clock of whoever asks.
    pub at: Duration,
    /// In which life.
    pub boot: u64,
}

/// What a leader remembers of its members. It begins anew with each leader.
#[derive(Clone, Debug)]
pub struct Seating {
    patience: Patience,
    began: Duration,
    returned: Option<Duration>,
    records: BTreeMap<MemberId, Record>,
    shadows: Shadows,
    /// Seats that were taken over by their shadows: in which term, and since when that is known.
    inherited: BTreeMap<Group, (u64, Duration)>,
}

/// One member, as it was when it was last looked at.
#[derive(Clone, Debug)]
struct Record {
    /// Its life, once it was heard.
    boot: Option<u64>,
    silent: bool,
    draining: bool,
    /// Since when it is heard without a break.
    since: Duration,
    falls: u32,
}

/// Whom something may be given, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fit {
    Well,
    /// It fell lately.
    Paused,
    /// It wants to be rid of what it has.
    Draining,
}

impl Seating {
    /// Begins to lead.
    pub fn new(patience: Patience, now: Duration) -> Seating {
        let (records, shadows, inherited) = Default::default();
        Seating { patience, began: now, returned: None, records, shadows, inherited }
    }

    /// What should move now. `heard` says when each member was last heard, and in which life.
    pub fn moves(
        &mut self,
        now: Duration,
        charter: &Charter,
        heard: &BTreeMap<MemberId, Heard>,
    ) -> Vec<Move> {
        self.notice(now, charter, heard);
        self.notice_inherited(now, charter);
        let there = self.there(now);
        let mut loads = Loads::new(&there, charter);
        let mut moves = Vec::new();
        for group in Group::all() {
            let seat = charter.seats().get(&group);
            let whole = seat.and_then(|seat| seat.shadow).filter(|shadow| shadow.whole);
            let shadow = whole.map(|shadow| shadow.life).filter(|life| there.contains_key(life));
            let to = match seat.map(|seat| self.stands(seat)) {
                Some(Stands::Well) => None,
                Some(Stands::Restarted(life)) => shadow.or(Some(life)),
                Some(Stands::Draining) => shadow
                    .filter(|life| there[life] != Fit::Draining)
                    .or_else(|| loads.fewest(Fit::Paused).filter(|_| self.rests(now, group))),
                Some(Stands::Silent) | None => shadow.or_else(|| loads.fewest(Fit::Draining)),
            };
            if let Some(to) = to {
                loads.give(seat, to);
                moves.push(Move { group, term: seat.map_or(0, |seat| seat.term), to });
            }
        }
        if moves.is_empty() {
            moves.extend(self.give_back(now, charter, &loads));
        }
        moves
    }

    fn notice_inherited(&mut self, now: Duration, charter: &Charter) {
        let inherited = charter.seats().iter().filter(|(_, seat)| seat.by_shadow.is_some());
        let mut before = std::mem::take(&mut self.inherited);
        let since = |(group, seat): (&Group, &Seat)| {
            let known = before.remove(group).filter(|(term, _)| *term == seat.term);
            (*group, known.unwrap_or((seat.term, now)))
        };
        self.inherited = inherited.map(since).collect();
    }

    /// Whether the books of a seat are final.
    fn rests(&self, now: Duration, group: Group) -> bool {
        let since = self.inherited.get(&group).map(|(_, since)| *since);
        since.is_none_or(|since| now.saturating_sub(since) >= self.patience.rest)
    }

    /// Who is there, in which life, and how fit.
    fn there(&self, now: Duration) -> BTreeMap<Life, Fit> {
        self.records.iter().filter_map(|(id, record)| self.fit(now, *id, record)).collect()
    }

    /// Takes down who fell, who came back, who left.
    fn notice(&mut self, now: Duration, charter: &Charter, heard: &BTreeMap<MemberId, Heard>) {
        self.records.retain(|id, _| charter.members().contains_key(id));
        for (id, member) in charter.members() {
            let heard = heard.get(id);
            let last = heard.map_or(self.began, |heard| heard.at.max(self.began));
            let silent = now.saturating_sub(last) > self.patience.suspect_after;
            let record = self.records.entry(*id).or_insert(Record {
                boot: None,
                silent: false,
                draining: false,
                since: now,
                falls: 0,
            });
            let boot = heard.map(|heard| heard.boot);
            let restarted = record.boot.is_some() && boot.is_some() && boot != record.boot;
            let fell = (silent || restarted) && !record.silent;
            // Whoever drains goes on purpose, and is not one that flaps.
            if fell && !member.draining && !record.draining {
                record.falls = record.falls.saturating_add(1);
            }
            if fell || record.silent {
                record.since = now;
            }
            if now.saturating_sub(record.since) >= self.patience.flap_max {
                record.falls = 0;
            }
            record.silent = silent;
            record.boot = boot.or(record.boot);
            record.draining = member.draining;
        }
    }

    /// Whether a member can be given something, and in which life.
    fn fit(&self, now: Duration, member: MemberId, record: &Record) -> Option<(Life, Fit)> {
        let boot = record.boot.filter(|_| !record.silent)?;
        let paused = now.saturating_sub(record.since) < self.pause(record.falls);
        let fit = match (record.draining, paused) {
            (true, _) => Fit::Draining,
            (false, true) => Fit::Paused,
            (false, false) => Fit::Well,
        };
        Some((Life { member, boot }, fit))
    }

    fn pause(&self, falls: u32) -> Duration {
        let Some(doublings) = falls.checked_sub(1) else { return Duration::ZERO };
        let doubled =
            2u32.checked_pow(doublings).and_then(|by| self.patience.flap_first.checked_mul(by));
        doubled.map_or(self.patience.flap_max, |pause| pause.min(self.patience.flap_max))
    }

    fn stands(&self, seat: &Seat) -> Stands {
        match self.records.get(&seat.life.member) {
            Some(record) if record.silent => Stands::Silent,
            Some(record) if record.draining => Stands::Draining,
            Some(record) => match record.boot {
                Some(boot) if boot != seat.life.boot => {
                    Stands::Restarted(Life { member: seat.life.member, boot })
                }
                _ => Stands::Well,
            },
            None => Stands::Silent,
        }
    }

    /// One group, from whoever has the most to whoever has the fewest.
    fn give_back(&mut self, now: Duration, charter: &Charter, loads: &Loads) -> Option<Move> {
        let pause = self.patience.return_pause;
        if self.returned.is_some_and(|last| now.saturating_sub(last) < pause) {
            return None;
        }
        let to = loads.fewest(Fit::Well)?;
        let (most, has) = loads.most()?;
        if has < loads.of(to.member) + 2 {
            return None;
        }
        let its =
            |(group, seat): &(&Group, &Seat)| seat.life.member == most && self.rests(now, **group);
        let mut of = charter.seats().iter().filter(its);
        let (group, seat) = of.next_back()?;
        self.returned = Some(now);
        Some(Move { group: *group, term: seat.term, to })
    }
}

/// How it is with whoever decides for a group.
enum Stands {
    Well,
    /// This is its life now.
    Restarted(Life),
    Draining,
    Silent,
}

/// How many groups each has.
struct Loads {
    groups: BTreeMap<MemberId, usize>,
    there: BTreeMap<Life, Fit>,
}

impl Loads {
    fn new(there: &BTreeMap<Life, Fit>, charter: &Charter) -> Loads {
        let mut groups: BTreeMap<MemberId, usize> = BTreeMap::new();
        for seat in charter.seats().values() {
            *groups.entry(seat.life.member).or_default() += 1;
        }
        Loads { groups, there: there.clone() }
    }

    fn of(&self, member: MemberId) -> usize {
        self.groups.get(&member).copied().unwrap_or(0)
    }

    /// Who has the fewest among the fittest, if they are fit enough.
    fn fewest(&self, worst: Fit) -> Option<Life> {
        let fit = self.there.iter().filter(|(_, fit)| **fit <= worst);
        fit.min_by_key(|(life, fit)| (**fit, self.of(life.member), **life)).map(|(life, _)| *life)
    }

    /// Who has the most among those that are there.
    fn most(&self) -> Option<(MemberId, usize)> {
        let there = self.there.keys().map(|life| (life.member, self.of(life.member)));
        there.max_by_key(|(member, has)| (*has, std::cmp::Reverse(*member)))
    }

    fn give(&mut self, from: Option<&Seat>, to: Life) {
        if let Some(has) = from.and_then(|seat| self.groups.get_mut(&seat.life.member)) {
            *has -= 1;
        }
        *self.groups.entry(to.member).or_default() += 1;
    }
}

#[cfg(test)]
mod tests;
