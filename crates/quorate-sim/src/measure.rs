//! Numbers about a run: what it cost, how long people waited, how busy the units were, how fair it
//! was.

use quorate_core::{Purpose, Shares};

use std::collections::VecDeque;

use crate::histogram::Histogram;
use crate::series::Series;

/// What a run measured. Times are nanoseconds of true time.
#[derive(Clone, PartialEq, Debug)]
pub struct Measures {
    units: u32,
    /// Steps taken by all participants.
    pub steps: u64,
    /// Happenings of any kind, steps among them.
    pub happenings: u64,
    /// How long the run was.
    pub elapsed: u64,
    /// Claims made.
    pub claims: u64,
    /// Claims granted.
    pub grants: u64,
    /// Claims refused or taken back.
    pub refusals: u64,
    /// Claims whose client is gone.
    pub abandoned: u64,
    /// Claims that nobody was there for any more, as their nodes noticed...
    pub withdrawn: u64,
    /// ...and grants of which nobody heard there.
    pub unheard: u64,
    /// Grants that ended by release.
    pub releases: u64,
    /// Grants that ended because a deadline passed, the holder died, or it was told that it lost
    /// them.
    pub cut_short: u64,
    /// Times an arbiter took units back.
    pub reclaims: u64,
    /// How often the control plane said that another node decides.
    pub seat_moves: u64,
    /// How often the pool was changed.
    pub amendments: u64,
    /// How often a whole shadow was called to decide.
    pub takeovers: u64,
    /// Messages sent, by kind.
    pub messages: Vec<u64>,
    /// The same by what they are for, in the order of [`Purpose::ALL`].
    pub messages_for: [u64; Purpose::ALL.len()],
    /// Messages that each node sent or was given.
    pub traffic: Vec<u64>,
    /// Messages that never arrived.
    pub messages_lost: u64,
    /// Bytes that the largest participant would be if its fields were written one behind the other,
    /// at the end of the run.
    pub state_bytes: u64,
    /// Records written.
    pub persists: u64,
    /// Crashes of nodes.
    pub crashes: u64,
    /// Nodes that were known for others when they were heard again.
    pub greetings: u64,
    /// When a pool that began in any state became legitimate.
    pub legitimate_at: Option<u64>,
    /// Waiting times of granted claims.
    pub waiting: Histogram,
    /// From the moment a unit is free while somebody waits to the moment its next user has it.
    pub sync_delay: Histogram,
    /// Units in use over time.
    pub in_use: Series,
    /// Claims waiting over time.
    pub queue: Series,
    /// How often a claim was granted while one that was made earlier waited, in all. Nobody
    /// promises that this is small: who is older is a matter of stamps, which nodes give without
    /// asking.
    pub overtakes: u64,
    /// How often one claim was overtaken like that, at most. Claims that were taken back before it
    /// was granted count as served in their turn.
    pub overtaken_max: u64,
    /// The same as [`Measures::overtakes`] as arbiters' books have it, by stamps; only if the run
    /// was strict.
    pub overtakes_in_books: Option<u64>,
    /// Grants of each client.
    pub grants_of: Vec<u32>,
    order: Order,
    freed: Vec<Option<u64>>,
}

impl Measures {
    pub(crate) fn new(units: u32, kinds: usize, clients: usize) -> Self {
        Measures {
            units,
            steps: 0,
            happenings: 0,
            elapsed: 0,
            claims: 0,
            grants: 0,
            refusals: 0,
            abandoned: 0,
            withdrawn: 0,
            unheard: 0,
            releases: 0,
            cut_short: 0,
            reclaims: 0,
            seat_moves: 0,
            amendments: 0,
            takeovers: 0,
            messages: vec![0; kinds],
            messages_for: [0; Purpose::ALL.len()],
            traffic: Vec::new(),
            messages_lost: 0,
            state_bytes: 0,
            persists: 0,
            crashes: 0,
            greetings: 0,
            legitimate_at: None,
            waiting: Histogram::default(),
            sync_delay: Histogram::default(),
            in_use: Series::default(),
            queue: Series::default(),
            overtakes: 0,
            overtaken_max: 0,
            overtakes_in_books: None,
            grants_of: vec![0; clients],
            order: Order::default(),
            freed: vec![None; units as usize],
        }
    }

    /// A claim is made; gives its place in the order of arrival.
    pub(crate) fn claimed(&mut self, now: u64) -> u64 {
        self.claims += 1;
        self.queue.add(now, 1);
        self.order.arrive(self.grants)
    }

    /// A claim waits no longer, whatever the reason.
    pub(crate) fn left_queue(&mut self, now: u64, place: u64) {
        self.queue.add(now, -1);
        self.order.leave(place);
    }

    /// A claim is granted, after [`Measures::left_queue`].
    pub(crate) fn granted(
        &mut self,
        now: u64,
        client: usize,
        since: u64,
        place: u64,
        shares: &Shares,
    ) {
        self.grants += 1;
        let older = self.order.older_than(place);
        self.overtakes += older;
        self.overtaken_max = self.overtaken_max.max(self.order.passed(place, self.grants, older));
        self.waiting.add(now - since);
        self.in_use.add(now, shares.len() as i64);
        if client >= self.grants_of.len() {
            self.grants_of.resize(client + 1, 0);
        }
        self.grants_of[client] += 1;
        for share in shares {
            if let Some(freed) = self.freed.get_mut(share.unit.index()).and_then(Option::take) {
                self.sync_delay.add(now - freed);
            }
        }
    }

    /// Somebody who goes on uses so many units more or fewer.
    pub(crate) fn holds(&mut self, now: u64, by: i64) {
        self.in_use.add(now, by);
    }

    /// Units are no longer used.
    pub(crate) fn ended(&mut self, now: u64, shares: &Shares, released: bool) {
        if released {
            self.releases += 1;
        } else {
            self.cut_short += 1;
        }
        self.in_use.add(now, -(shares.len() as i64));
        let wanted = self.queue.level() > 0;
        for share in shares {
            if let Some(freed) = self.freed.get_mut(share.unit.index()) {
                *freed = wanted.then_some(now);
            }
        }
    }

    /// The measured part of the run is over.
    pub(crate) fn finish(&mut self, now: u64) {
        self.elapsed = now;
        self.in_use.finish(now);
        self.queue.finish(now);
    }

    /// Messages sent, of any kind.
    pub fn messages_sent(&self) -> u64 {
        self.messages.iter().sum()
    }

    /// Messages sent for each grant.
    pub fn messages_per_grant(&self) -> f64 {
        ratio(self.messages_sent() as f64, self.grants as f64)
    }

    /// Share of the units in use, over the whole run.
    pub fn utilization(&self) -> f64 {
        self.in_use.mean() / f64::from(self.units)
    }

    /// Units of the pool.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Jain's index over the grants of all clients: 1 if all got the same, 1/n if one got
    /// everything.
    pub fn fairness(&self) -> f64 {
        Measures::jain(&self.grants_of)
    }

    /// Jain's index of any numbers of grants.
    pub fn jain(grants: &[u32]) -> f64 {
        let sum: f64 = grants.iter().map(|&grants| f64::from(grants)).sum();
        let squares: f64 = grants.iter().map(|&grants| f64::from(grants).powi(2)).sum();
        ratio(sum * sum, squares * grants.len() as f64)
    }
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// Waiting claims by order of arrival: a bit each, from the oldest that still waits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Order {
    /// The number of the first bit; always a multiple of 64.
    base: u64,
    words: VecDeque<u64>,
    next: u64,
    /// For each place from `base` on: how many waited and how many had been granted when it came.
    seen: VecDeque<(u64, u64)>,
    waiting: u64,
}

impl Order {
    fn arrive(&mut self, granted: u64) -> u64 {
        let place = self.next;
        self.seen.push_back((self.waiting, granted));
        self.waiting += 1;
        self.next += 1;
        let word = ((place - self.base) / 64) as usize;
        if word == self.words.len() {
            self.words.push_back(0);
        }
        self.words[word] |= 1 << (place % 64);
        place
    }

    fn leave(&mut self, place: u64) {
        self.words[((place - self.base) / 64) as usize] &= !(1 << (place % 64));
        self.waiting -= 1;
        while self.words.len() > 1 && self.words[0] == 0 {
            self.words.pop_front();
            self.seen.drain(..64);
            self.base += 64;
        }
    }

    /// How many that arrived after `place` were granted before it, which is the newest of so many
    /// grants; `older` still wait. All others were waiting when it came.
    fn passed(&self, place: u64, grants: u64, older: u64) -> u64 {
        let Some(index) = place.checked_sub(self.base) else { return 0 };
        let Some(&(waiting, granted)) = self.seen.get(index as usize) else { return 0 };
        (grants - 1 - granted).saturating_sub(waiting - older)
    }

    /// How many that arrived before `place` still wait.
    fn older_than(&self, place: u64) -> u64 {
        let Some(ahead) = place.checked_sub(self.base) else { return 0 };
        let whole = (ahead / 64) as usize;
        let full: u32 = self.words.iter().take(whole).map(|word| word.count_ones()).sum();
        let part = self.words.get(whole).map_or(0, |word| word & ((1 << (ahead % 64)) - 1));
        u64::from(full + part.count_ones())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_core::{Fence, Share, Unit};

    fn shares(units: &[u32]) -> Shares {
        let shares: Vec<Share> =
            units.iter().map(|&u| Share { unit: Unit(u), fence: Fence(1) }).collect();
        Shares::new(&shares)
    }

    #[test]
    fn the_order_of_arrival_counts_who_was_passed() {
        let mut order = Order::default();
        let places: Vec<u64> = (0..200).map(|_| order.arrive(0)).collect();
        order.leave(places[150]);
        assert_eq!(order.older_than(places[150]), 150);
        for &place in &places[..130] {
            order.leave(place);
            assert_eq!(order.older_than(place), 0);
        }
        order.leave(places[199]);
        assert_eq!(order.older_than(places[199]), 199 - 130 - 1);
    }

    #[test]
    fn one_history_by_hand() {
        let mut measures = Measures::new(2, 1, 2);
        let first = measures.claimed(0);
        let second = measures.claimed(10);
        measures.left_queue(20, second);
        measures.granted(20, 1, 10, second, &shares(&[0, 1]));
        assert_eq!(measures.overtakes, 1);
        measures.ended(60, &shares(&[0, 1]), true);
        measures.left_queue(70, first);
        measures.granted(70, 0, 0, first, &shares(&[1]));
        measures.ended(90, &shares(&[1]), true);
        measures.finish(100);
        assert_eq!(measures.waiting.max(), 70);
        assert_eq!(measures.sync_delay.mean(), 10.0);
        // Two units for 40 and one for 20, of two units for 100.
        assert_eq!(measures.utilization(), 0.5);
        // One waits from 0 to 70, another from 10 to 20.
        assert_eq!(measures.queue.mean(), 0.8);
        assert_eq!(measures.fairness(), 1.0);
        // The first was overtaken once, by the second.
        assert_eq!(measures.overtaken_max, 1);
    }
}
