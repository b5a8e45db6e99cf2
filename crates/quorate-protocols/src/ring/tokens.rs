//! What a ring passes round: bags of tokens, by number or by name.
//!
//! Datta, Hadid and Villain (Euro-Par 2002) count tokens and nothing else. That decides *how many*
//! units a processor may use, but not *which*, and a grant must name units that nobody else has,
//! each with a fence. So the rules of the ring are written once over [`Tokens`], with two
//! representations:
//!
//! * [`Count`] is the paper's: a number. The specification's vectors and the measurements of
//!   stabilization run on it.
//! * [`Named`] is what a pool runs: each token is a unit with the fence its last holder had.
//!   Wherever the paper moves c tokens, c named ones move; wherever it counts c, c names are
//!   reported. A station then keeps at most K names, and only the root a table of all l.
//!
//! Names can go wrong in one way that numbers cannot: two tokens for one unit, while the number is
//! right. Bags are therefore sets (twins that meet become one), and a tally in which a unit occurs
//! twice is a surplus like any other (see [`Tally::is_surplus`]).

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;

use quorate_core::{Fence, Share, Shares, Unit, numbers};

/// A bag of tokens.
pub trait Tokens: Clone + Ord + Hash + fmt::Debug + fmt::Display + Default {
    /// What the root counts with: the paper's C_e and C_f.
    type Tally: Tally<Self>;
    /// What the root remembers in order to make tokens.
    type Mint: Clone + Eq + Hash + fmt::Debug;

    /// How many.
    fn len(&self) -> u32;
    /// Takes out `count` of them, or all if there are fewer.
    fn take(&mut self, count: u32) -> Self;
    /// Puts more in.
    fn put(&mut self, more: Self);
    /// A holder begins to use these: whatever protects the units must be able to tell it from the
    /// holder before.
    fn hand_over(&mut self);
    /// Takes out whatever is not among those in use: the tokens of a holder that a fault gave more
    /// than it uses.
    fn take_beyond(&mut self, in_use: &Self) -> Self;
    /// A root's memory when it starts for the `boot`th time with a pool of `units`.
    fn mint(boot: u32, units: u32) -> Self::Mint;
    /// Notes what was counted, and makes the tokens missing from it.
    fn make(mint: &mut Self::Mint, counted: &Self::Tally, units: u32) -> Self;
    /// A bag of `count` tokens as a fault may leave it, in a pool of `units`. `draw(n)` is any
    /// number below n.
    fn garbage(count: u32, units: u32, draw: &mut dyn FnMut(u64) -> u64) -> Self;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes out all of them.
    fn take_all(&mut self) -> Self {
        std::mem::take(self)
    }

    /// One by one.
    fn singly(mut self) -> impl Iterator<Item = Self> {
        std::iter::from_fn(move || (!self.is_empty()).then(|| self.take(1)))
    }
}

/// A count of tokens under way.
pub trait Tally<T>: Clone + Ord + Hash + fmt::Debug + fmt::Display + Default {
    /// Counts these too; the number stops at `most` (ring spec E2 is about which number that is).
    fn add(&mut self, tokens: &T, most: u32);
    /// Counts what another tally counted.
    fn merge(&mut self, other: &Self);
    /// How many.
    fn total(&self) -> u32;
    /// Whether a pool of `units` cannot have had all of these.
    fn is_surplus(&self, units: u32) -> bool;
    /// A tally of `count` as a fault may leave it.
    fn garbage(count: u32, units: u32, draw: &mut dyn FnMut(u64) -> u64) -> Self;
}

/// Tokens without names: the paper's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Count(pub u32);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Tokens for Count {
    type Tally = Count;
    type Mint = ();

    fn len(&self) -> u32 {
        self.0
    }

    fn take(&mut self, count: u32) -> Self {
        let taken = count.min(self.0);
        self.0 -= taken;
        Count(taken)
    }

    fn put(&mut self, more: Self) {
        self.0 = self.0.saturating_add(more.0);
    }

    fn hand_over(&mut self) {}

    fn take_beyond(&mut self, in_use: &Self) -> Self {
        self.take(self.0.saturating_sub(in_use.0))
    }

    fn mint(_boot: u32, _units: u32) {}

    fn make((): &mut (), counted: &Count, units: u32) -> Self {
        Count(units.saturating_sub(counted.0))
    }

    fn garbage(count: u32, _units: u32, _draw: &mut dyn FnMut(u64) -> u64) -> Self {
        Count(count)
    }
}

impl Tally<Count> for Count {
    fn add(&mut self, tokens: &Count, most: u32) {
        self.0 = self.0.saturating_add(tokens.0).min(most);
    }

    fn merge(&mut self, other: &Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    fn total(&self) -> u32 {
        self.0
    }

    fn is_surplus(&self, units: u32) -> bool {
        self.0 > units
    }

    fn garbage(count: u32, _units: u32, _draw: &mut dyn FnMut(u64) -> u64) -> Self {
        Count(count)
    }
}

/// Tokens that are units, each with the fence of its last holder; ascending, no unit twice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Named(Vec<Share>);

impl Named {
    /// These, whatever their order; of twins the one with the larger fence.
    pub fn new(shares: &[Share]) -> Self {
        let mut shares = shares.to_vec();
        shares.sort_unstable();
        shares.reverse();
        shares.dedup_by_key(|share| share.unit);
        shares.reverse();
        Named(shares)
    }

    /// The units as a grant names them.
    pub fn shares(&self) -> Shares {
        Shares::new(&self.0)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Share>()
    }

    /// Shows every fence, for a checker that renames them.
    pub(crate) fn fences(&mut self, see: &mut dyn FnMut(&mut Fence)) {
        self.0.iter_mut().for_each(|share| see(&mut share.fence));
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("-") } else { self.shares().fmt(f) }
    }
}

/// More than one unit can be granted between two counts of the root, so that the fences of a token
/// made anew are above all that its lost predecessor may have had.
const FENCES_BETWEEN_COUNTS: u64 = 1 << 24;

impl Tokens for Named {
    type Tally = Census;
    /// The largest fence known of each unit.
    type Mint = Vec<Fence>;

    fn len(&self) -> u32 {
        self.0.len() as u32
    }

    fn take(&mut self, count: u32) -> Self {
        let rest = self.0.split_off(self.0.len().min(count as usize));
        Named(std::mem::replace(&mut self.0, rest))
    }

    fn put(&mut self, more: Self) {
        if self.0.is_empty() {
            *self = more;
        } else if !more.0.is_empty() {
            self.0.extend(more.0);
            *self = Named::new(&self.0);
        }
    }

    fn hand_over(&mut self) {
        // Saturating: only a fault brings a fence near its end, and it must not stop the seat.
        self.fences(&mut |fence| *fence = Fence(fence.0.saturating_add(1)));
    }

    fn take_beyond(&mut self, in_use: &Self) -> Self {
        let (stay, go) = self
            .0
            .iter()
            .partition(|mine| in_use.0.binary_search_by_key(&mine.unit, |used| used.unit).is_ok());
        self.0 = stay;
        Named(go)
    }

    fn mint(boot: u32, units: u32) -> Vec<Fence> {
        vec![Fence::floor(boot); units as usize]
    }

    fn make(mint: &mut Vec<Fence>, counted: &Census, units: u32) -> Self {
        for (unit, &fence) in &counted.seen {
            if let Some(last) = mint.get_mut(unit.index()) {
                *last = (*last).max(fence);
            }
        }
        let missing = (0..units).map(Unit).filter(|unit| !counted.seen.contains_key(unit));
        let made = missing.map(|unit| {
            let last = &mut mint[unit.index()];
            *last = Fence(last.0.saturating_add(FENCES_BETWEEN_COUNTS));
            Share { unit, fence: *last }
        });
        Named(made.collect())
    }

    fn garbage(count: u32, units: u32, draw: &mut dyn FnMut(u64) -> u64) -> Self {
        let shares: Vec<Share> = (0..count)
            .map(|_| Share { unit: Unit(draw(u64::from(units)) as u32), fence: Fence(draw(1000)) })
            .collect();
        Named::new(&shares)
    }
}

/// Which units were counted, with their fences, and how many were counted that cannot be: twins,
/// and units that the pool does not have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Census {
    seen: BTreeMap<Unit, Fence>,
    twins: u32,
}

numbers!(Census { seen, twins });

impl Census {
    fn see(&mut self, unit: Unit, fence: Fence) {
        let twin = self.seen.insert(unit, fence);
        if let Some(twin) = twin {
            self.seen.insert(unit, fence.max(twin));
            self.twins = self.twins.saturating_add(1);
        }
    }

    /// The units counted with their fences, and how many more were counted that cannot be: what a
    /// wire carries.
    pub fn parts(&self) -> (impl Iterator<Item = Share> + '_, u32) {
        (self.seen.iter().map(|(&unit, &fence)| Share { unit, fence }), self.twins)
    }

    /// A census from its parts.
    pub fn from_parts(seen: &[Share], twins: u32) -> Self {
        let mut census = Census { seen: BTreeMap::new(), twins };
        seen.iter().for_each(|share| census.see(share.unit, share.fence));
        census
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total())
    }
}

impl Tally<Named> for Census {
    fn add(&mut self, tokens: &Named, most: u32) {
        for share in &tokens.0 {
            if self.total() < most {
                self.see(share.unit, share.fence);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.twins = self.twins.saturating_add(other.twins);
        for (&unit, &fence) in &other.seen {
            self.see(unit, fence);
        }
    }

    fn total(&self) -> u32 {
        self.twins.saturating_add(self.seen.len() as u32)
    }

    fn is_surplus(&self, units: u32) -> bool {
        self.twins > 0 || self.seen.keys().any(|unit| unit.0 >= units)
    }

    fn garbage(count: u32, units: u32, draw: &mut dyn FnMut(u64) -> u64) -> Self {
        let mut census = Census::default();
        census.add(&Named::garbage(count, units, draw), u32::MAX);
        census
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(shares: &[(u32, u64)]) -> Named {
        let shares: Vec<Share> =
            shares.iter().map(|&(u, f)| Share { unit: Unit(u), fence: Fence(f) }).collect();
        Named::new(&shares)
    }

    #[test]
    fn twins_that_meet_become_one_and_the_later_fence_survives() {
        let mut bag = named(&[(3, 7), (1, 2)]);
        bag.put(named(&[(3, 9), (0, 1)]));
        assert_eq!(bag, named(&[(0, 1), (1, 2), (3, 9)]));
        assert_eq!(bag.take(2), named(&[(0, 1), (1, 2)]));
        assert_eq!(bag.len(), 1);
    }

    #[test]
    fn a_right_number_of_wrong_names_is_a_surplus() {
        let mut census = Census::default();
        census.add(&named(&[(0, 1)]), 3);
        assert!(!census.is_surplus(2));
        census.add(&named(&[(0, 4)]), 3);
        assert!(census.is_surplus(2), "two tokens for u0");
        let (seen, twins) = census.parts();
        assert_eq!(Census::from_parts(&seen.collect::<Vec<_>>(), twins), census);
        let mut census = Census::default();
        census.add(&named(&[(0, 1), (5, 1)]), 3);
        assert!(census.is_surplus(2), "no such unit");
    }

    #[test]
    fn a_unit_made_anew_has_a_fence_above_whatever_its_lost_token_had() {
        let mut mint = Named::mint(2, 3);
        let mut census = Census::default();
        let mut first = Named::make(&mut mint, &census, 3);
        assert_eq!(first.len(), 3);
        census.add(&first, 4);
        first.hand_over();
        first.hand_over();
        assert_eq!(Named::make(&mut mint, &census, 3).len(), 0);
        // All three are lost after two more grants that no count has seen.
        let again = Named::make(&mut mint, &Census::default(), 3);
        let pairs = first.shares();
        for (old, new) in pairs.iter().zip(&again.shares()) {
            assert!(old.fence < new.fence);
            assert!(Fence::floor(2) < old.fence);
            assert!(new.fence < Fence::floor(3));
        }
    }
}
