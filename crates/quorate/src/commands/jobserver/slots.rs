//! The bookkeeping of `quorate jobserver`: how many tokens a build may have, when to claim another
//! unit for it and when to give one back. No clock, pipe or claim in here, only their numbers.
//!
//! A build always has one slot for which it needs no token; the first unit stands for it. Every
//! other unit stands for one token, which is on offer (in the pipe), in a job's hands, or on its
//! way back. Units are alike, so only numbers are kept. What must hold: there are no more tokens
//! than units, less one; where units are lost, tokens that come back are kept until that is true
//! again. The build's own slot is never taken away, so no build ever stands still.
//!
//! A pipe does not say whether anybody waits at its other end. So one token is on offer whenever a
//! unit can be had for it (all that the build may have, where it looks rarely), and what nobody
//! takes goes back to the pool and is offered again later. And since a build that gets a token back
//! hands it to its next job at once, units that have been here for a *turn* are put through the
//! pool's queue once more: that is how a second build gets its share.

use std::time::Duration;

/// How a kind of pipe is looked after.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// How many tokens to have on offer.
    pub(super) spare: u32,
    /// For how long a token is on offer before its unit goes back to the pool.
    pub(super) linger: Duration,
    /// For how long nothing is offered after that: at first, and at most.
    pub(super) pause: (Duration, Duration),
    /// After how long a unit is put through the pool's queue again.
    pub(super) turn: Duration,
}

/// Times are counted from any beginning.
pub(super) type Time = Duration;

/// What to do now. Whoever asks does all of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Deeds {
    /// Tokens to take away from the build: those that came back first, then those on offer.
    pub(super) take: u32,
    /// Claims one more unit, unless a claim waits already.
    pub(super) claim: bool,
    /// Gives up the claim that waits.
    pub(super) withdraw: bool,
    /// Puts the oldest unit on its way out.
    pub(super) retire: bool,
}

/// What is known of the outside, now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    /// Units that are held and may be kept.
    pub(super) units: u32,
    /// Units that leave as soon as no job needs them.
    pub(super) leaving: u32,
    /// Tokens that nobody has taken: on offer, or on their way back.
    pub(super) idle: u32,
    /// A claim waits.
    pub(super) claiming: bool,
    /// Since when the oldest unit is held.
    pub(super) oldest: Time,
}

/// The tokens of one build.
#[derive(Debug)]
pub(super) struct Slots {
    manners: Manners,
    /// Units it may have at once.
    most: u32,
    /// Tokens that the build has or could take.
    tokens: u32,
    /// The fewest idle tokens since some time, while there was always one.
    surplus: Option<(Time, u32)>,
    /// One was put on offer, and it is not known yet whether anybody wants it.
    untried: bool,
    /// Nothing is offered before this time.
    resume: Time,
    pause: Duration,
}

impl Slots {
    pub(super) fn new(most: u32, manners: Manners) -> Slots {
        let pause = manners.pause.0;
        let (surplus, untried, resume) = (None, false, Time::ZERO);
        Slots { manners, most, tokens: 0, surplus, untried, resume, pause }
    }

    /// Tokens that the build has or could take.
    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// One more was put on offer.
    pub(super) fn gave(&mut self) {
        self.tokens += 1;
        self.surplus = None;
        self.untried = true;
    }

    /// So many were taken away.
    pub(super) fn took(&mut self, tokens: u32) {
        self.tokens -= tokens;
        self.surplus = None;
        self.untried = false;
    }

    /// A claim failed: not again for this long.
    pub(super) fn wait(&mut self, until: Time) {
        self.resume = until;
    }

    /// How many tokens there are too many, given the units that may be kept.
    pub(super) fn excess(&self, units: u32) -> u32 {
        self.tokens.saturating_sub(units.saturating_sub(1))
    }

    /// Of the units that leave, how many no job needs any more.
    pub(super) fn unneeded(&self, sight: &Sight) -> u32 {
        let needed = (self.tokens + 1).saturating_sub(sight.units);
        sight.leaving.saturating_sub(needed)
    }

    /// Whether another token may be put on offer.
    pub(super) fn may_give(&self, units: u32) -> bool {
        self.tokens + 1 < units
    }

    pub(super) fn decide(&mut self, now: Time, sight: &Sight) -> Deeds {
        let mut deeds =
            Deeds { take: self.excess(sight.units).min(sight.idle), ..Deeds::default() };
        if deeds.take > 0 {
            return deeds;
        }
        if sight.idle == 0 {
            self.surplus = None;
            if std::mem::take(&mut self.untried) {
                // What was offered was taken, so the build may want more.
                self.pause = self.manners.pause.0;
                self.resume = now;
            }
        }
        deeds.claim = !sight.claiming
            && now >= self.resume
            && sight.idle < self.manners.spare
            && sight.units + sight.leaving < self.most;
        // Even the build's own slot has no unit: nothing matters more.
        deeds.claim |= !sight.claiming && sight.units == 0 && now >= self.resume;
        // One at a time, and never the last: a build without a unit is none of ours.
        let old = now.saturating_sub(sight.oldest) >= self.manners.turn;
        deeds.retire = old && sight.units >= 2 && sight.leaving == 0 && sight.idle == 0;
        if sight.idle > 0 {
            let (since, fewest) = self.surplus.unwrap_or((now, sight.idle));
            let fewest = fewest.min(sight.idle);
            self.surplus = Some((since, fewest));
            if now.saturating_sub(since) >= self.manners.linger {
                deeds.take = fewest;
                deeds.claim = false;
                deeds.withdraw = sight.claiming && sight.units > 0;
                self.resume = now + self.pause;
                self.pause = (self.pause * 2).min(self.manners.pause.1);
            }
        }
        deeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANNERS: Manners = Manners {
        spare: 1,
        linger: Duration::from_millis(100),
        pause: (Duration::from_millis(100), Duration::from_millis(400)),
        turn: Duration::from_secs(2),
    };

    fn at(millis: u64) -> Time {
        Duration::from_millis(millis)
    }

    fn sight(units: u32, idle: u32) -> Sight {
        Sight { units, leaving: 0, idle, claiming: false, oldest: Time::ZERO }
    }

    #[test]
    fn a_build_that_takes_tokens_gets_more_up_to_the_most() {
        let mut slots = Slots::new(3, MANNERS);
        for units in 1..3 {
            assert!(slots.decide(at(0), &sight(units, 0)).claim);
            assert!(slots.may_give(units + 1));
            slots.gave();
            assert!(!slots.may_give(units + 1), "no more tokens than units, less one");
        }
        assert_eq!(slots.decide(at(1), &sight(3, 0)), Deeds::default());
    }

    #[test]
    fn what_nobody_takes_goes_back_and_is_offered_again_later_and_later() {
        let mut slots = Slots::new(8, MANNERS);
        slots.gave();
        assert_eq!(slots.decide(at(0), &sight(2, 1)), Deeds::default());
        assert_eq!(slots.decide(at(99), &sight(2, 1)), Deeds::default());
        assert_eq!(slots.decide(at(100), &sight(2, 1)).take, 1);
        slots.took(1);
        assert!(!slots.decide(at(199), &sight(1, 0)).claim);
        assert!(slots.decide(at(200), &sight(1, 0)).claim);
        let mut begun = 200;
        for pause in [200, 400, 400] {
            // The pause grows as long as nobody takes what is offered...
            slots.gave();
            slots.decide(at(begun), &sight(2, 1));
            assert_eq!(slots.decide(at(begun + 100), &sight(2, 1)).take, 1);
            slots.took(1);
            begun += 100 + pause;
            assert!(!slots.decide(at(begun - 1), &sight(1, 0)).claim, "{pause}");
            assert!(slots.decide(at(begun), &sight(1, 0)).claim, "{pause}");
        }
        // ...and is over when somebody does.
        slots.gave();
        assert!(slots.decide(at(begun), &sight(2, 0)).claim);
    }

    #[test]
    fn a_token_that_comes_and_goes_is_no_surplus() {
        let mut slots = Slots::new(8, MANNERS);
        slots.gave();
        for millis in (0..1_000).step_by(50) {
            let idle = u32::from(millis % 100 == 0);
            assert_eq!(slots.decide(at(millis), &sight(2, idle)).take, 0, "{millis}");
        }
    }

    #[test]
    fn after_units_are_lost_tokens_are_kept_as_they_come_back() {
        let mut slots = Slots::new(4, MANNERS);
        (0..3).for_each(|_| slots.gave());
        // Two of four are gone: of three tokens one may stay.
        assert_eq!(slots.decide(at(0), &sight(2, 0)).take, 0, "jobs have them all");
        assert_eq!(slots.decide(at(0), &sight(2, 3)).take, 2);
        slots.took(2);
        assert_eq!(slots.tokens(), 1);
        // All are gone: the build goes on with its own slot, and a unit is claimed for that.
        let deeds = slots.decide(at(0), &sight(0, 1));
        assert_eq!(deeds.take, 1);
        slots.took(1);
        assert!(slots.decide(at(0), &sight(0, 0)).claim);
        assert!(!slots.may_give(1), "the first unit is the build's own slot");
    }

    #[test]
    fn old_units_go_through_the_queue_one_at_a_time_and_never_the_last() {
        let mut slots = Slots::new(4, MANNERS);
        slots.gave();
        assert!(!slots.decide(at(1_999), &sight(2, 0)).retire);
        assert!(slots.decide(at(2_000), &sight(2, 0)).retire);
        let leaving = Sight { leaving: 1, ..sight(1, 0) };
        assert_eq!(slots.unneeded(&leaving), 0, "a job still has its token");
        assert!(!slots.decide(at(2_000), &leaving).retire);
        let back = Sight { idle: 1, ..leaving };
        assert_eq!(slots.decide(at(2_001), &back).take, 1);
        slots.took(1);
        assert_eq!(slots.unneeded(&leaving), 1);
        assert!(!slots.decide(at(9_000), &sight(1, 0)).retire);
    }
}
