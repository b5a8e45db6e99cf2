//! What a client gets: units by name, each with its fence.

use std::fmt;
use std::sync::Arc;

/// One indivisible piece of a pool, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Unit(pub u32);

impl Unit {
    /// The number as an index into a table of units.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u{}", self.0)
    }
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A number that grows from holder to holder of a unit. The protected thing keeps the largest it
/// has seen and refuses smaller ones, so that a holder that woke up late does no harm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

impl Fence {
    /// Bits that count grants within one boot of whoever gives them: 10^12 grants.
    const COUNT_BITS: u32 = 40;
    /// Boot numbers stay below this. As minutes since 2026, they do until 2041.
    pub const BOOTS: u32 = 1 << 23;
    /// Fences that are given stay below this. Whoever shows a greater one has made it up.
    pub const END: Fence = Fence::floor(Fence::BOOTS);
    /// The greatest that a message or a record may have. A client that makes up a fence below
    /// [`Fence::END`] can make others count on from there, but never up to here; and from here
    /// nobody can count as far as an overflow.
    pub const MAX: Fence = Fence(3 << 62);

    /// A fence below all that boot number `boot` will give, and above all that earlier boots gave:
    /// fences grow even where an arbiter forgot everything but how often it has been started.
    pub const fn floor(boot: u32) -> Fence {
        Fence((boot as u64) << Self::COUNT_BITS)
    }

    /// A fence above all that several nodes gave before one of them was last started, for whoever
    /// knows no more than how often each was: every start counts, and takes its part of what one
    /// start of a single node would, so that the sum stays below [`Fence::END`].
    pub fn floor_of_all(boots: &[u32]) -> Fence {
        let parts = boots.len().next_power_of_two() as u64;
        let starts: u64 = boots.iter().map(|boot| u64::from(*boot)).sum();
        Fence(starts * (Fence::floor(1).0 / parts))
    }

    /// The next one.
    ///
    /// # Panics
    /// After 2^64 grants.
    pub fn next(self) -> Fence {
        Fence(self.0.checked_add(1).expect("fences do not run out"))
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (boot, count) = (self.0 >> Self::COUNT_BITS, self.0 & ((1 << Self::COUNT_BITS) - 1));
        if boot > 0 { write!(f, "f{boot}/{count}") } else { write!(f, "f{count}") }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One unit as its holder has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Share {
    /// Which unit.
    pub unit: Unit,
    /// The holder's fence for it.
    pub fence: Fence,
}

/// The units of one grant with their fences, ascending by unit. Cheap to clone; the common small
/// ones live in place, without an allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shares(Repr);

/// Invariant: one or two shares are always `Few`, with unused places at their default, so that
/// equal shares have equal representations.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repr {
    Few { len: u8, shares: [Share; FEW] },
    Many(Arc<[Share]>),
}

const FEW: usize = 2;

impl Shares {
    /// These shares, whatever their order.
    #[inline]
    pub fn new(shares: &[Share]) -> Self {
        let few = match *shares {
            [] => [Share::default(); FEW],
            [one] => [one, Share::default()],
            [one, other] => [one.min(other), one.max(other)],
            _ => return Shares::many(shares),
        };
        Shares(Repr::Few { len: shares.len() as u8, shares: few })
    }

    fn many(shares: &[Share]) -> Self {
        let mut many: Arc<[Share]> = shares.into();
        if !many.is_sorted() {
            Arc::make_mut(&mut many).sort_unstable();
        }
        Shares(Repr::Many(many))
    }

    /// The shares, ascending by unit.
    pub fn as_slice(&self) -> &[Share] {
        match &self.0 {
            Repr::Few { len, shares } => &shares[..usize::from(*len)],
            Repr::Many(shares) => shares,
        }
    }

    /// The largest fence among them, which tells grants of one claim apart.
    pub fn newest(&self) -> Option<Fence> {
        self.as_slice().iter().map(|share| share.fence).max()
    }

    /// How many units.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none, as in no grant.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shares one by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Share> {
        self.as_slice().iter()
    }

    /// Whether this very share is among them.
    pub fn contains(&self, share: Share) -> bool {
        self.as_slice().binary_search(&share).is_ok()
    }

    /// These and one more.
    pub fn with(&self, share: Share) -> Shares {
        let mut more = self.as_slice().to_vec();
        more.push(share);
        Shares::new(&more)
    }

    /// These without one.
    pub fn without(&self, share: Share) -> Shares {
        let rest: Vec<Share> = self.iter().filter(|own| **own != share).copied().collect();
        Shares::new(&rest)
    }

    /// The same units with their fences changed.
    pub fn map_fences(&self, mut change: impl FnMut(Fence) -> Fence) -> Shares {
        let changed: Vec<Share> =
            self.iter().map(|s| Share { unit: s.unit, fence: change(s.fence) }).collect();
        Shares::new(&changed)
    }
}

impl<'a> IntoIterator for &'a Shares {
    type Item = &'a Share;
    type IntoIter = std::slice::Iter<'a, Share>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Units that share a fence are printed together: `u0,u3 f7`.
impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = self.as_slice();
        for (position, share) in shares.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", share.unit)?;
            if shares.get(position + 1).is_none_or(|next| next.fence != share.fence) {
                write!(f, " {}", share.fence)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(unit: u32, fence: u64) -> Share {
        Share { unit: Unit(unit), fence: Fence(fence) }
    }

    #[test]
    fn shares_are_equal_whatever_order_they_came_in() {
        let several = [share(4, 1), share(0, 1), share(2, 1)];
        for len in 0..=3 {
            let mut backwards = several[..len].to_vec();
            backwards.reverse();
            assert_eq!(Shares::new(&several[..len]), Shares::new(&backwards));
            assert_eq!(Shares::new(&several[..len]).len(), len);
        }
        assert_eq!(Shares::new(&several).to_string(), "u0,u2,u4 f1");
        assert_eq!(Shares::new(&[share(1, 9), share(0, 3)]).to_string(), "u0 f3,u1 f9");
    }

    #[test]
    fn a_later_boot_gives_larger_fences_than_any_earlier_one() {
        let mut late = Fence::floor(3);
        for _ in 0..1000 {
            late = late.next();
        }
        assert!(late < Fence::floor(4).next());
        assert_eq!(Fence::floor(4).next().to_string(), "f4/1");
        assert_eq!(Fence(7).to_string(), "f7");
    }
}
