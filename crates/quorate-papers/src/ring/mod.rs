//! Datta, Hadid, Villain: A self-stabilizing token-based k-out-of-l exclusion algorithm (2002).

mod model;
mod rules;
mod time;

use std::collections::BTreeMap;
use std::sync::Mutex;

use quorate_protocols::reference::ring::{Atlas, Erratum, Fixes, Freedom, Track, from_start, tiny};
use quorate_protocols::ring::{Count, Terms};

/// Every function, section by section.
pub(crate) const EVIDENCE: &[&[(&str, crate::Evidence)]] =
    &[model::EVIDENCE, rules::EVIDENCE, time::EVIDENCE];

type Core = quorate_protocols::reference::ring::Core<Count>;

/// States beyond which a small ring is not small any more.
const MOST: usize = 600_000;

/// Units, needs of the stations (0: none). Each with every interleaving and withdrawals.
const SMALL: [(u32, &[u32]); 4] = [(1, &[1, 1]), (2, &[2, 2]), (2, &[1, 2, 0]), (3, &[3, 1])];

fn terms(units: u32, needs: &[u32]) -> Terms {
    tiny(units, needs.iter().copied().max().unwrap_or(1).max(1), 2)
}

fn without(terms: Terms, erratum: Erratum) -> Terms {
    terms.with_fixes(Fixes::ALL.without(erratum))
}

/// Several statements look at the same rings: each is explored once.
type Known<K> = Mutex<BTreeMap<K, &'static Atlas<Core>>>;

fn once<K: Ord>(
    known: &Known<K>,
    key: K,
    make: impl FnOnce() -> Atlas<Core>,
) -> &'static Atlas<Core> {
    let mut known = known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    known.entry(key).or_insert_with(|| Box::leak(Box::new(make())))
}

/// From the legitimate start, with withdrawals.
fn ring(units: u32, needs: &[u32]) -> &'static Atlas<Core> {
    static KNOWN: Known<(u32, Vec<u32>)> = Mutex::new(BTreeMap::new());
    once(&KNOWN, (units, needs.to_vec()), || from_start(terms(units, needs), needs, MOST))
}

/// The same with one repair taken out.
fn printed(units: u32, needs: &[u32], erratum: Erratum) -> Atlas<Core> {
    from_start(without(terms(units, needs), erratum), needs, MOST)
}

/// Everything that can follow from one state when nobody asks.
fn idle(terms: Terms, size: usize, change: impl Fn(&mut Track<Core>)) -> Atlas<Core> {
    let mut start = Track::<Core>::started(terms, size);
    change(&mut start);
    let wants = vec![Vec::new(); size];
    Atlas::explore(vec![start], &wants, false, MOST).expect("it is small enough")
}

/// Station 0 uses one unit for ever. The others ask for so much, or nothing.
fn occupied(units: u32, needs: [u32; 2]) -> &'static Atlas<Core> {
    static KNOWN: Known<(u32, [u32; 2])> = Mutex::new(BTreeMap::new());
    once(&KNOWN, (units, needs), || {
        let start = Track::<Core>::started(tiny(units, units, 2), 3);
        let want = |need: u32| (need > 0).then_some(need).into_iter().collect();
        let wants = [vec![1], want(needs[0]), want(needs[1])];
        let freedom = Freedom { forever: Some(0), ..Freedom::default() };
        Atlas::explore_with(vec![start], &wants, freedom, 2_000_000).expect("it is small enough")
    })
}

/// A generator of our own, so that a seed always means the same (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
