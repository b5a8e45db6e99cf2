//! Who should shadow whom (charter spec S13 to S17).
//!
//! | a group | is shadowed | when |
//! |---|---|---|
//! | that has no shadow | by whoever shadows fewest groups of its member, of those that are well | at once |
//! | whose shadow is silent, restarted, drains or decides itself | by another; by nobody if there is none | at once, in one entry with all others |
//! | whose seat struck its shadow although it is heard | by another; by the same one not before `flap_first`, after the next time twice as long, and so on up to `flap_max` | at once |
//! | whose shadow shadows two groups more of its member than another would | by that one | all in one entry, when no group was given back for twice `return_pause` |
//!
//! So whatever a member decides is spread over all others when it crashes. A group without a shadow
//! costs a crash of its seat a lease; one whose shadow does not answer costs it new grants at once:
//! whoever fell lately shadows nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Fit, Record, Seating};
use crate::{Change, Charter, Group, Life, MemberId, Seat, Shadow};

/// What a leader remembers of shadows.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadows {
    /// Who shadowed which term of a group when that was last looked at.
    before: BTreeMap<Group, (u64, Shadow)>,
    /// Members that do not hear each other, though this one hears both: who decides, who was to
    /// shadow, how often that was tried in vain, and when last.
    strangers: BTreeMap<(MemberId, MemberId), (u32, Duration)>,
    levelled: Option<Duration>,
}

/// How many groups of the first member the second one shadows.
type Loads = BTreeMap<(MemberId, MemberId), usize>;

impl Seating {
    /// Which shadows should be named or struck now, after [`Seating::moves`] has found nothing to
    /// move, or that was done.
    pub fn shadows(&mut self, now: Duration, charter: &Charter) -> Vec<Change> {
        let there = self.there(now);
        self.note_strikes(now, charter);
        let mut loads = Loads::new();
        let (mut open, mut level) = (Vec::new(), Vec::new());
        for (group, seat) in charter.seats() {
            match seat.shadow.filter(|shadow| self.may_shadow(seat, shadow)) {
                Some(shadow) => {
                    *loads.entry((seat.life.member, shadow.life.member)).or_default() += 1;
                    level.push((*group, seat, shadow));
                }
                // Whoever does not decide any more cannot begin one.
                None if there.contains_key(&seat.life) => open.push((*group, seat)),
                None => {}
            }
        }
        let mut changes = Vec::new();
        for (group, seat) in open {
            let best = self.best(now, seat, &there, &loads);
            if let Some(life) = best {
                *loads.entry((seat.life.member, life.member)).or_default() += 1;
            }
            if best.is_some() || seat.shadow.is_some() {
                changes.push(named(group, seat, best));
            }
        }
        let pause = self.patience.return_pause;
        let rested =
            |last: Option<Duration>| last.is_none_or(|last| now.saturating_sub(last) >= pause * 2);
        if changes.is_empty() && rested(self.shadows.levelled) && rested(self.returned) {
            for (group, seat, shadow) in level {
                let (decides, shadows) = (seat.life.member, shadow.life.member);
                let Some(best) = self.best(now, seat, &there, &loads) else { continue };
                let has = |member| loads.get(&(decides, member)).copied().unwrap_or(0);
                if has(shadows) >= has(best.member) + 2 {
                    changes.push(named(group, seat, Some(best)));
                    *loads.entry((decides, shadows)).or_default() -= 1;
                    *loads.entry((decides, best.member)).or_default() += 1;
                }
            }
            if !changes.is_empty() {
                self.shadows.levelled = Some(now);
            }
        }
        changes
    }

    /// Takes down whose shadows were struck by those whom they shadowed: this leader strikes only
    /// who does not stand.
    fn note_strikes(&mut self, now: Duration, charter: &Charter) {
        let mut struck = BTreeSet::new();
        for (group, (term, shadow)) in std::mem::take(&mut self.shadows.before) {
            let Some(seat) = charter.seats().get(&group).filter(|seat| seat.term == term) else {
                continue;
            };
            if seat.shadow.is_none() && self.may_shadow(seat, &shadow) {
                struck.insert((seat.life.member, shadow.life.member));
            }
        }
        let forgive = self.patience.flap_max * 2;
        self.shadows.strangers.retain(|_, (_, last)| now.saturating_sub(*last) < forgive);
        for pair in struck {
            let (times, last) = self.shadows.strangers.entry(pair).or_default();
            (*times, *last) = (times.saturating_add(1), now);
        }
        let shadowed = charter.seats().iter();
        let shadowed =
            shadowed.filter_map(|(group, seat)| Some((*group, (seat.term, seat.shadow?))));
        self.shadows.before = shadowed.collect();
    }

    /// Whether a shadow can be what it is. Of one that was not heard of yet nothing is known.
    fn may_shadow(&self, seat: &Seat, Shadow { life, .. }: &Shadow) -> bool {
        let lives = |record: &Record| record.boot.is_none_or(|boot| boot == life.boot);
        let fits = |record: &Record| lives(record) && !record.silent && !record.draining;
        life.member != seat.life.member && self.records.get(&life.member).is_some_and(fits)
    }

    /// Who should shadow a seat.
    fn best(
        &self,
        now: Duration,
        seat: &Seat,
        there: &BTreeMap<Life, Fit>,
        loads: &Loads,
    ) -> Option<Life> {
        let decides = seat.life.member;
        let hears = |life: &Life| {
            let tried = self.shadows.strangers.get(&(decides, life.member));
            tried.is_none_or(|(times, last)| now.saturating_sub(*last) >= self.pause(*times))
        };
        let fit = there.iter().filter(|(_, fit)| **fit == Fit::Well).map(|(life, _)| *life);
        let fit = fit.filter(|life| life.member != decides && hears(life));
        fit.min_by_key(|life| (loads.get(&(decides, life.member)).copied().unwrap_or(0), *life))
    }
}

fn named(group: Group, seat: &Seat, shadow: Option<Life>) -> Change {
    let seen = seat.shadow.map_or(0, |shadow| shadow.naming);
    Change::Shadow { group, term: seat.term, seen, shadow }
}
