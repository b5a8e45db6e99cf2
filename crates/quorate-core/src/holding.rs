//! What a holder has while it goes from one unit to another.

use crate::{Share, Shares};

/// A holder is to leave one unit for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Move {
    /// The unit it leaves...
    pub from: Share,
    /// ...and the one it has got.
    pub to: Share,
}

/// What a holder has, and the moves ([`crate::Effect::Move`]) that it has not answered. Both units
/// of those are among what it has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Holding {
    /// Units with their fences.
    pub shares: Shares,
    /// Moves that are not answered.
    pub moves: Vec<Move>,
}

impl Holding {
    /// These units, and nothing to be answered.
    pub fn new(shares: Shares) -> Self {
        Holding { shares, moves: Vec::new() }
    }

    /// What it was granted, before the moves that it has not answered.
    pub fn before_moves(&self) -> Shares {
        self.moves.iter().fold(self.shares.clone(), |shares, it| shares.without(it.to))
    }

    /// Asks it to move. Nothing, and false, if that is known or old.
    pub fn begin(&mut self, it: Move) -> bool {
        let other = |share: &Share| share.unit == it.to.unit && *share != it.to;
        if self.moves.contains(&it)
            || !self.shares.contains(it.from)
            || self.shares.iter().any(other)
        {
            return false;
        }
        if !self.shares.contains(it.to) {
            self.shares = self.shares.with(it.to);
        }
        self.moves.push(it);
        true
    }

    /// The holder shows what it has: takes in which moves it has answered, and returns what it
    /// left. `None` if nobody who has this could show that. A holder that has not heard of a move
    /// shows less than it has.
    pub fn shown(&mut self, shown: &Shares) -> Option<Vec<Share>> {
        let (mut moves, mut left) = (Vec::new(), Vec::new());
        let (mut shares, mut expected) = (self.shares.clone(), self.shares.clone());
        for &it in &self.moves {
            match (shown.contains(it.from), shown.contains(it.to)) {
                (true, heard) => {
                    moves.push(it);
                    expected = if heard { expected } else { expected.without(it.to) };
                }
                (false, true) => {
                    left.push(it.from);
                    (shares, expected) = (shares.without(it.from), expected.without(it.from));
                }
                (false, false) => return None,
            }
        }
        (expected == *shown).then(|| {
            (self.shares, self.moves) = (shares, moves);
            left
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fence, Unit};

    fn share(unit: u32) -> Share {
        Share { unit: Unit(unit), fence: Fence(u64::from(unit) + 1) }
    }

    fn shares(units: &[u32]) -> Shares {
        Shares::new(&units.iter().map(|unit| share(*unit)).collect::<Vec<_>>())
    }

    #[test]
    fn who_shows_what_has_answered_which_moves() {
        let mut held = Holding::new(shares(&[0, 1, 2]));
        assert!(held.begin(Move { from: share(0), to: share(5) }));
        assert!(held.begin(Move { from: share(1), to: share(6) }));
        assert!(!held.begin(Move { from: share(1), to: share(6) }), "again");
        assert!(!held.begin(Move { from: share(3), to: share(7) }), "it does not have that");
        assert_eq!(
            (&held.shares, held.before_moves()),
            (&shares(&[0, 1, 2, 5, 6]), shares(&[0, 1, 2]))
        );
        for (shown, left, has) in [
            (&[0, 1, 2][..], &[][..], &[0, 1, 2, 5, 6][..]),
            (&[0, 1, 2, 5, 6], &[], &[0, 1, 2, 5, 6]),
            (&[1, 2, 5], &[0], &[1, 2, 5, 6]),
            (&[2, 5, 6], &[0, 1], &[2, 5, 6]),
        ] {
            let mut held = held.clone();
            let expected: Vec<Share> = left.iter().map(|unit| share(*unit)).collect();
            assert_eq!(held.shown(&shares(shown)), Some(expected), "{shown:?}");
            assert_eq!((held.shares, held.moves.len()), (shares(has), 2 - left.len()));
        }
        for wrong in [&[1, 2][..], &[0, 1], &[2, 5, 6, 7], &[]] {
            assert_eq!(held.shown(&shares(wrong)), None, "{wrong:?}");
        }
    }
}
