//! Pools in which nothing happens give back the room that they took while something did.
//!
//! A claim that comes and goes leaves lists and maps behind, empty and with room for the next one.
//! Where that comes soon this is fast; where it does not, it was half of what a pool took, and
//! there may be a million pools. So a pool in which nothing has happened for a beat gives all of it
//! back, and remembers what it remembered. Few are looked at in one go: they hold up no claim.

use std::mem::replace;

use quorate_core::Moment;

use super::{Engine, HEARTBEAT};

/// Most pools that are looked at on one beat.
pub(super) const RESTED: usize = 1_000;
/// Most that are looked at when something happens in one more: faster than they can come.
const ASIDE: usize = 2;

/// Whether anything happened in a pool.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Stir {
    /// Not since it gave back its room.
    #[default]
    Rests,
    /// Not since it was looked at.
    Pauses,
    /// Since it was looked at.
    Acts,
}

impl Engine {
    /// Something happens in a pool.
    pub(super) fn stir(&mut self, seat: usize, now: Moment) {
        if replace(&mut self.pools[seat].stir, Stir::Acts) == Stir::Rests {
            self.astir.push_back((now, seat));
            self.let_rest(now, ASIDE);
        }
    }

    /// Looks at pools that were not looked at for a beat, so many at most.
    pub(super) fn let_rest(&mut self, now: Moment, most: usize) {
        for _ in 0..most {
            let looked = |(at, _): &mut (Moment, usize)| now.since(*at) >= HEARTBEAT;
            let Some((_, seat)) = self.astir.pop_front_if(looked) else { return };
            let pool = &mut self.pools[seat];
            if pool.stir == Stir::Acts {
                pool.stir = Stir::Pauses;
                self.astir.push_back((now, seat));
                continue;
            }
            pool.stir = Stir::Rests;
            pool.rest();
            self.history.rest(seat);
            self.register.rest(seat);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quorate_api::ClaimState;

    use super::super::Ask;
    use super::super::tests::{ask, want, with_limits};
    use super::*;
    use crate::clock;
    use crate::journal::Journal;

    const POOLS: &str = "[[pools]]\npattern = \"p*\"\nunits = 1\n";

    fn claim(engine: &mut Engine, pool: &str, serial: u64) -> ClaimState {
        let made = Ask::Claim { want: want(1), wait: true, keep: None };
        let mut answer = ask(engine, pool, serial, made);
        answer.try_recv().expect("an answer").read().expect("no problem").state
    }

    #[test]
    fn a_pool_in_which_nothing_happens_gives_room_back_and_is_the_same() {
        let mut engine = with_limits("", POOLS, Journal::nowhere());
        let began = clock::now();
        engine.taken_up = Some(began);
        assert_eq!(claim(&mut engine, "p", 1), ClaimState::Granted);
        drop(ask(&mut engine, "p", 1, Ask::End));
        let seat = engine.by_name["p"];
        let told = |engine: &Engine| format!("{:?}", engine.history.records(seat, 9));
        let (before, entered) = (told(&engine), engine.register.after((Some(seat), "p"), 0));
        assert!(engine.history.room(seat) > 0, "there is something to give back");
        engine.let_rest(began, RESTED);
        assert_eq!(engine.pools[seat].stir, Stir::Acts, "something happened a moment ago");
        engine.let_rest(began.after(HEARTBEAT), RESTED);
        assert_eq!(engine.pools[seat].stir, Stir::Pauses);
        engine.let_rest(began.after(2 * HEARTBEAT), RESTED);
        assert_eq!(engine.pools[seat].stir, Stir::Rests);
        assert!(engine.astir.is_empty());
        assert_eq!(engine.history.room(seat), 0);
        assert_eq!(told(&engine), before);
        assert_eq!(engine.register.after((Some(seat), "p"), 0).len(), entered.len());
        assert_eq!(claim(&mut engine, "p", 1), ClaimState::Released, "it is remembered");
        assert_eq!(claim(&mut engine, "p", 2), ClaimState::Granted);
    }

    /// However many pools come into use one after the other, those before them do not pile up.
    #[test]
    fn as_many_rest_as_come_into_use() {
        let mut engine = with_limits("", POOLS, Journal::nowhere());
        let began = clock::now();
        for number in 0..1_000 {
            let now = began.after(Duration::from_millis(100 * number));
            engine.taken_up = Some(now);
            assert_eq!(claim(&mut engine, &format!("p{number}"), number), ClaimState::Granted);
            assert!(engine.astir.len() <= 30, "ten a second, for two seconds");
        }
        let resting = engine.pools.iter().filter(|pool| pool.stir == Stir::Rests).count();
        assert!(resting >= 970, "{resting}");
    }

    #[test]
    fn a_pool_in_which_something_happens_keeps_its_room() {
        let mut engine = with_limits("", POOLS, Journal::nowhere());
        let began = clock::now();
        for beat in 0..20 {
            let now = began.after(HEARTBEAT * beat);
            engine.taken_up = Some(now);
            claim(&mut engine, "p", beat.into());
            drop(ask(&mut engine, "p", beat.into(), Ask::End));
            engine.let_rest(now, RESTED);
            assert_eq!(engine.astir.len(), 1);
        }
    }
}
