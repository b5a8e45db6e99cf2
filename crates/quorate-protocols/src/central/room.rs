//! Which units are taken.

use quorate_core::{Fence, Share, Shares, Unit, Units};

const WORD: u32 = u64::BITS;

/// The units of a pool, taken or free. Hands out the lowest free ones.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Room {
    /// A bit per unit, set if free.
    free: Vec<u64>,
    free_count: u32,
}

impl Room {
    pub(super) fn new(units: u32) -> Self {
        let mut free = vec![u64::MAX; units.div_ceil(WORD) as usize];
        if !units.is_multiple_of(WORD)
            && let Some(last) = free.last_mut()
        {
            *last = (1 << (units % WORD)) - 1;
        }
        Room { free, free_count: units }
    }

    pub(super) fn free_count(&self) -> u32 {
        self.free_count
    }

    pub(super) fn fits(&self, units: Units) -> bool {
        units.get() <= self.free_count
    }

    pub(super) fn is_free(&self, unit: Unit) -> bool {
        self.free.get((unit.0 / WORD) as usize).is_some_and(|w| w >> (unit.0 % WORD) & 1 == 1)
    }

    /// Takes the lowest free units and gives them all this fence.
    pub(super) fn take_lowest(&mut self, units: Units, fence: Fence) -> Shares {
        assert!(self.fits(units), "capacity: the caller has made sure of room");
        let mut left = units.get() as usize;
        let mut few = [Share::default(); 2];
        let mut many = Vec::with_capacity(if left > few.len() { left } else { 0 });
        let small = left <= few.len();
        let mut filled = 0;
        for (index, word) in self.free.iter_mut().enumerate() {
            while *word != 0 && left > 0 {
                let unit = Unit(index as u32 * WORD + word.trailing_zeros());
                *word &= *word - 1;
                left -= 1;
                let share = Share { unit, fence };
                if small {
                    few[filled] = share
                } else {
                    many.push(share)
                }
                filled += 1;
            }
            if left == 0 {
                break;
            }
        }
        self.free_count -= units.get();
        if small { Shares::new(&few[..filled]) } else { Shares::new(&many) }
    }

    /// Takes exactly these units, all of which are free.
    pub(super) fn take(&mut self, shares: &Shares) {
        for share in shares {
            assert!(self.is_free(share.unit), "exclusivity: the caller has made sure of it");
            self.free[(share.unit.0 / WORD) as usize] &= !(1 << (share.unit.0 % WORD));
        }
        self.free_count -= shares.len() as u32;
    }

    /// Gives units back.
    pub(super) fn give_back(&mut self, shares: &Shares) {
        for share in shares {
            assert!(!self.is_free(share.unit), "a unit comes back once");
            self.free[(share.unit.0 / WORD) as usize] |= 1 << (share.unit.0 % WORD);
        }
        self.free_count += shares.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_units_are_handed_out_once() {
        for k in [1, 2, 63, 64, 65, 130] {
            let mut room = Room::new(k);
            let mut taken = Vec::new();
            while room.free_count() > 0 {
                let h = Units::new(3.min(room.free_count()), k).unwrap();
                taken.extend(room.take_lowest(h, Fence(1)).iter().map(|s| s.unit.0));
            }
            assert_eq!(taken, (0..k).collect::<Vec<_>>());
            assert!(!room.is_free(Unit(k)), "there is no unit beyond the last");
        }
    }

    #[test]
    fn units_given_back_are_free_again() {
        let mut room = Room::new(70);
        let all = room.take_lowest(Units::new(70, 70).unwrap(), Fence(1));
        let some = Shares::new(&[all.as_slice()[69], all.as_slice()[3]]);
        room.give_back(&some);
        assert!(room.is_free(Unit(3)) && room.is_free(Unit(69)));
        room.take(&some);
        assert_eq!(room.free_count(), 0);
    }
}
