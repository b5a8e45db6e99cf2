//! Two threads share an exploration: one makes worlds, the other one knows which are new.
//!
//! Whoever makes them works on numbers that only its own shelves explain, so it is one thread; what
//! it makes is plain words, and looking these up among millions takes as long again. Worlds are
//! numbered in the order in which one thread alone would find them, so nothing that anybody is told
//! depends on which of the two is faster.

use std::sync::mpsc::{Receiver, Sender};

use quorate_laws::Breach;

use crate::action::Action;
use crate::atlas::Atlas;
use crate::report::Progress;
use crate::sometimes::Sightings;

/// Most worlds that are ordered at a time.
const ORDER: usize = 64;
/// How many orders are under way: while one is looked up, the next is made.
const UNDER_WAY: usize = 2;

/// Worlds to be left, one after the other.
#[derive(Debug)]
pub(crate) struct Order {
    /// The words of all of them.
    pub(crate) words: Vec<u32>,
    /// How far everything is.
    pub(crate) progress: Progress,
}

/// What leaving the worlds of an order led to.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    /// The words of all worlds that were reached.
    pub(crate) reached: Vec<u32>,
    /// For each of them, whether that took a fault.
    pub(crate) faults: Vec<bool>,
    /// For each world that was left, how many had been reached by then, and what had been seen.
    pub(crate) left: Vec<(usize, Sightings)>,
    /// What broke a law, in the last of these.
    pub(crate) broken: Option<(Action, Breach)>,
}

/// How an exploration ended.
#[derive(Debug)]
pub(crate) enum End {
    /// Everything was visited.
    All,
    /// There are more worlds than the limit.
    Full,
    /// A law was broken on the way out of this world.
    Broken(usize, Action, Breach),
}

/// What came of an exploration, besides the atlas.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) end: End,
    pub(crate) transitions: u64,
    pub(crate) depth: usize,
    pub(crate) sightings: Sightings,
}

/// Orders worlds until there are no new ones, and looks up what is delivered. The error is that
/// nobody delivers any more.
pub(crate) fn keep(
    atlas: &mut Atlas,
    states_max: usize,
    orders: &Sender<Order>,
    deliveries: &Receiver<Delivery>,
) -> Result<Account, Gone> {
    let mut account =
        Account { end: End::All, transitions: 0, depth: 0, sightings: Sightings::default() };
    let (mut words, mut ordered, mut under_way) = (Vec::new(), 0, 0);
    let (mut number, mut level_end) = (0, 1);
    loop {
        while under_way < UNDER_WAY && ordered < atlas.len() {
            // Half of what there is, so that the other half is made meanwhile.
            let end = atlas.len().min(ordered + (atlas.len() - ordered).div_ceil(2).min(ORDER));
            let (states, depth) = (atlas.len(), account.depth);
            let progress = Progress { states, explored: ordered, depth };
            let mut order = Order { words: Vec::new(), progress };
            for number in ordered..end {
                atlas.read(number, &mut words);
                order.words.extend_from_slice(&words);
            }
            (ordered, under_way) = (end, under_way + 1);
            orders.send(order).map_err(|_| Gone)?;
        }
        if under_way == 0 {
            return Ok(account);
        }
        let Delivery { reached, faults, left, broken } = deliveries.recv().map_err(|_| Gone)?;
        under_way -= 1;
        let (stride, mut done, last) = (words.len(), 0, number + left.len());
        for (end, sightings) in left {
            if number == level_end {
                account.depth += 1;
                level_end = atlas.len();
            }
            atlas.go_to(number, &mut words);
            for place in done..end {
                let next = atlas.find_or_add(&reached[place * stride..][..stride]);
                if !faults[place] && next != number {
                    atlas.lead_to(next);
                }
            }
            atlas.leave();
            account.transitions += (end - done) as u64;
            account.sightings = sightings;
            (number, done) = (number + 1, end);
            let breaks = broken.is_some() && number == last;
            if !breaks && atlas.len() > states_max {
                account.end = End::Full;
                return Ok(account);
            }
        }
        if let Some((action, breach)) = broken {
            account.transitions += 1;
            account.end = End::Broken(last - 1, action, breach);
            return Ok(account);
        }
    }
}

/// Whoever makes worlds has stopped.
#[derive(Debug)]
pub(crate) struct Gone;
