//! When a waiting claim may start, and what would let it start now.
//!
//! The future is played many times: units are held as long as units were held lately, and given
//! back to whoever is first. What comes out is a span with its uncertainty, or nothing if too
//! little is known. Nobody decides anything on it.

use quorate_api::{Estimate, Remedy};

/// Fewer past holds than this say nothing.
const HOLDS_MIN: usize = 5;
const PLAYS: usize = 200;

/// Somebody in the way: how many units, and for how long it has held them.
#[derive(Clone, Copy, Debug)]
struct Hold {
    units: u32,
    held_ms: u64,
}

/// A claim, and who is in its way.
#[derive(Clone, Debug)]
pub(crate) struct Contest {
    /// Units that count.
    pub(crate) capacity: u32,
    /// Who has how many of them, and for how long, if that is known.
    pub(crate) holders: Vec<(quorate_api::ClaimId, u32, Option<u64>)>,
    /// Who wants how many before it.
    pub(crate) ahead: Vec<(quorate_api::ClaimId, u32)>,
    /// How many it wants.
    pub(crate) asked: u32,
}

impl Contest {
    /// When it may start, by how long units were held lately.
    pub(crate) fn estimate(&self, past_ms: &[u64]) -> Option<Estimate> {
        let holds: Vec<Hold> = self
            .holders
            .iter()
            .map(|(_, units, held)| Hold { units: *units, held_ms: held.unwrap_or(0) })
            .collect();
        let ahead: Vec<u32> = self.ahead.iter().map(|(_, units)| *units).collect();
        estimate(self.capacity, &holds, &ahead, self.asked, past_ms)
    }

    /// What would let it start now.
    pub(crate) fn remedy(&self) -> Remedy {
        let holders: Vec<_> = self.holders.iter().map(|(id, units, _)| (*id, *units)).collect();
        remedy(self.capacity, &holders, &self.ahead, self.asked)
    }
}

/// When a claim for `asked` units starts, behind claims for `ahead` units each.
fn estimate(
    capacity: u32,
    holders: &[Hold],
    ahead: &[u32],
    asked: u32,
    past_ms: &[u64],
) -> Option<Estimate> {
    if past_ms.len() < HOLDS_MIN {
        return None;
    }
    let mut past = past_ms.to_vec();
    past.sort_unstable();
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut starts: Vec<u64> =
        (0..PLAYS).map(|_| play(capacity, holders, ahead, asked, &past, &mut chance)).collect();
    starts.sort_unstable();
    let at = |percent: usize| starts[(PLAYS * percent / 100).min(PLAYS - 1)];
    let holds = u32::try_from(past.len()).unwrap_or(u32::MAX);
    Some(Estimate { soon_ms: at(10), likely_ms: at(50), late_ms: at(90), holds })
}

/// One future: when the claim starts in it.
fn play(
    capacity: u32,
    holders: &[Hold],
    ahead: &[u32],
    asked: u32,
    past: &[u64],
    chance: &mut u64,
) -> u64 {
    // Ends of holds, by time.
    let mut ends: Vec<(u64, u32)> = holders
        .iter()
        .map(|hold| {
            // One that has lasted for a while is one of those that last at least that long.
            let longer = past.partition_point(|length| *length <= hold.held_ms);
            let left = match past.get(longer..) {
                Some(longer) if !longer.is_empty() => draw(longer, chance) - hold.held_ms,
                _ => longer_than_ever(hold.held_ms, chance),
            };
            (left, hold.units)
        })
        .collect();
    let held: u32 = holders.iter().map(|hold| hold.units).fold(0, u32::saturating_add);
    let mut free = capacity.saturating_sub(held);
    let mut now = 0;
    for wanted in ahead.iter().copied().chain([asked]) {
        while free < wanted {
            let Some(first) = (0..ends.len()).min_by_key(|index| ends[*index].0) else { break };
            let (at, units) = ends.swap_remove(first);
            now = now.max(at);
            free = free.saturating_add(units).min(capacity);
        }
        free = free.saturating_sub(wanted);
        ends.push((now.saturating_add(draw(past, chance)), wanted));
    }
    now
}

fn draw(from: &[u64], chance: &mut u64) -> u64 {
    from[(next(chance) % from.len() as u64) as usize]
}

/// The past says nothing about a hold that has lasted longer than any in it. What is left of
/// something of which only the age is known is as likely more as less than that age (Gott 1993).
fn longer_than_ever(held_ms: u64, chance: &mut u64) -> u64 {
    let percent = next(chance) % 96;
    held_ms.saturating_mul(percent) / (100 - percent)
}

fn next(chance: &mut u64) -> u64 {
    *chance =
        chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *chance >> 33
}

/// Which grants would have to be released, and which claims ahead cancelled, for a claim to start
/// at once: as few as a greedy choice finds, the largest first.
fn remedy(
    capacity: u32,
    holders: &[(quorate_api::ClaimId, u32)],
    ahead: &[(quorate_api::ClaimId, u32)],
    asked: u32,
) -> Remedy {
    let mut remedy = Remedy { release: Vec::new(), cancel: Vec::new() };
    let mut wanted = ahead.iter().map(|(_, units)| u64::from(*units)).sum::<u64>();
    let by_size = |list: &[(quorate_api::ClaimId, u32)]| {
        let mut list = list.to_vec();
        list.sort_by_key(|(id, units)| (std::cmp::Reverse(*units), *id));
        list
    };
    for (id, units) in by_size(ahead) {
        if wanted + u64::from(asked) <= u64::from(capacity) {
            break;
        }
        wanted -= u64::from(units);
        remedy.cancel.push(id);
    }
    let held: u64 = holders.iter().map(|(_, units)| u64::from(*units)).sum();
    let mut free = u64::from(capacity).saturating_sub(held);
    for (id, units) in by_size(holders) {
        if free >= wanted + u64::from(asked) {
            break;
        }
        free += u64::from(units);
        remedy.release.push(id);
    }
    remedy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> quorate_api::ClaimId {
        quorate_api::ClaimId::from_halves(0, n)
    }

    #[test]
    fn an_estimate_follows_the_past_and_says_nothing_without_one() {
        let holder = [Hold { units: 1, held_ms: 300 }];
        assert_eq!(estimate(1, &holder, &[], 1, &[1000; 4]), None);
        let one = estimate(1, &holder, &[], 1, &[1000; 5]).unwrap();
        assert_eq!((one.soon_ms, one.likely_ms, one.late_ms, one.holds), (700, 700, 700, 5));
        // Behind another: 700 for the holder and 1000 for the one ahead.
        assert_eq!(estimate(1, &holder, &[1], 1, &[1000; 5]).unwrap().likely_ms, 1700);
        // Two units: both can be served next to each other.
        assert_eq!(estimate(2, &holder, &[1], 1, &[1000; 5]).unwrap().likely_ms, 700);
        // A mixed past is uncertain.
        let mixed: Vec<u64> = (1..=10).map(|n| n * 1000).collect();
        let guess = estimate(1, &holder, &[], 1, &mixed).unwrap();
        assert!(guess.soon_ms < guess.likely_ms && guess.likely_ms < guess.late_ms, "{guess:?}");
        // Longer than anything before it: as long again, give or take much.
        let old = [Hold { units: 1, held_ms: 60_000 }];
        let guess = estimate(1, &old, &[], 1, &mixed).unwrap();
        assert!((30_000..120_000).contains(&guess.likely_ms), "{guess:?}");
        assert!(guess.soon_ms < 15_000 && guess.late_ms > 200_000, "{guess:?}");
        // A claim ahead that asks for more than there is does not keep the estimate from ending.
        assert!(estimate(1, &[], &[5], 1, &mixed).is_some());
    }

    #[test]
    fn a_remedy_frees_enough_for_those_ahead_too_and_cancels_if_all_is_not_enough() {
        let holders = [(id(1), 1), (id(2), 2)];
        let alone = remedy(4, &holders, &[], 3);
        assert_eq!((alone.release, alone.cancel), (vec![id(2)], vec![]));
        let behind = remedy(4, &holders, &[(id(3), 1)], 3);
        assert_eq!((behind.release, behind.cancel), (vec![id(2), id(1)], vec![]));
        let crowded = remedy(4, &holders, &[(id(3), 1), (id(4), 4)], 3);
        assert_eq!((crowded.release, crowded.cancel), (vec![id(2), id(1)], vec![id(4)]));
    }
}
