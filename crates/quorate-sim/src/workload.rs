//! Who asks for what, and when.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quorate_core::{Line, Shares, Units, Wanted};

use crate::{Rng, Span};

/// Clients and what they do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workload {
    /// When claims are made.
    pub arrivals: Arrivals,
    /// How long a client uses its units.
    pub hold: Span,
    /// How many units it asks for.
    pub want: Want,
    /// Claims that their client takes back if they have to wait, of a million.
    pub cancel_ppm: u32,
    /// How long such a client waits before it takes its claim back.
    pub patience: Span,
}

/// When claims are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// Closed loop: each client of each node thinks, claims, uses, releases, and thinks again.
    Closed {
        /// Clients at each node.
        clients_per_node: u32,
        /// How long a client thinks.
        think: Span,
    },
    /// Open loop: claims arrive at random nodes whether or not the earlier ones were served.
    Open {
        /// Mean time between two arrivals in the whole pool, in nanoseconds.
        every: u64,
        /// Clients there may be at once; who arrives beyond that goes away unheard.
        clients_max: u32,
    },
    /// As written down, in order of time.
    Script(Vec<Arrival>),
}

/// One claim of a scripted workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When, in nanoseconds of true time.
    pub at: u64,
    /// At which node.
    pub node: u32,
    /// How many units.
    pub units: u32,
    /// How long it uses them, in nanoseconds.
    pub hold: u64,
}

/// A distribution of what a claim asks for: numbers of units with weights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Want {
    choices: Vec<(u32, u32)>,
    weight: u64,
    /// Which units will do, choice by choice; nothing where any will.
    lines: Vec<Arc<[Line]>>,
    /// How many in a million can be moved.
    movable_ppm: u32,
    /// How many in a million ask for a hold without a lease.
    standing_ppm: u32,
}

impl Want {
    /// Always the same number.
    pub fn always(units: u32) -> Self {
        Want {
            choices: vec![(units, 1)],
            weight: 1,
            lines: Vec::new(),
            movable_ppm: 0,
            standing_ppm: 0,
        }
    }

    /// These numbers with these weights; `None` if there are none or a number or a weight is 0.
    pub fn weighted(choices: Vec<(u32, u32)>) -> Option<Self> {
        let weight = choices.iter().map(|&(_, weight)| u64::from(weight)).sum();
        let sound = !choices.is_empty() && choices.iter().all(|&(h, weight)| h > 0 && weight > 0);
        sound.then_some(Want {
            choices,
            weight,
            lines: Vec::new(),
            movable_ppm: 0,
            standing_ppm: 0,
        })
    }

    /// One of these bundles, equally often; `None` if there are none or one asks for nothing.
    pub fn one_of(bundles: Vec<Arc<[Line]>>) -> Option<Self> {
        let sum = |lines: &Arc<[Line]>| lines.iter().map(|line| line.units.get()).sum();
        let want = Want::weighted(bundles.iter().map(|lines| (sum(lines), 1)).collect())?;
        Some(Want { lines: bundles, ..want })
    }

    /// The same, and so many in a million of those who ask can be moved.
    #[must_use]
    pub fn movable(self, ppm: u32) -> Self {
        Want { movable_ppm: ppm, ..self }
    }

    /// The same, and so many in a million of those who ask want a hold without a lease. Those
    /// neither die nor hang up: nobody would ever have their units again.
    #[must_use]
    pub fn standing(self, ppm: u32) -> Self {
        Want { standing_ppm: ppm, ..self }
    }

    /// Draws whether somebody wants a hold without a lease.
    pub(crate) fn draw_standing(&self, rng: &mut Rng) -> bool {
        self.standing_ppm > 0 && rng.chance(self.standing_ppm)
    }

    /// Draws whether somebody can be moved.
    pub(crate) fn draw_movable(&self, rng: &mut Rng) -> bool {
        self.movable_ppm > 0 && rng.chance(self.movable_ppm)
    }

    /// The numbers, each with its weight.
    pub fn choices(&self) -> &[(u32, u32)] {
        &self.choices
    }

    /// The largest number anybody asks for.
    pub fn most(&self) -> u32 {
        self.choices.iter().map(|&(units, _)| units).max().unwrap_or(1)
    }

    /// Draws one, for a pool of `k` units.
    pub(crate) fn draw(&self, rng: &mut Rng, k: u32) -> Wanted {
        let mut left = if self.choices.len() == 1 { 0 } else { rng.below(self.weight) };
        for (choice, &(units, weight)) in self.choices.iter().enumerate() {
            if left < u64::from(weight) {
                let units = Units::new(units, k);
                let units = units.expect("no claim asks for more than the pool has");
                let lines = self.lines.get(choice).cloned();
                return Wanted { lines, ..Wanted::any(units) };
            }
            left -= u64::from(weight);
        }
        unreachable!("a draw lies below the sum of the weights")
    }
}

/// Whether each of these units can serve another seat of the lines: found by trying, since there
/// are few.
pub(crate) fn suits(lines: &[Line], shares: &Shares) -> bool {
    fn seat(
        unit: usize,
        fits: &[Vec<bool>],
        taken: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        (0..taken.len()).any(|place| {
            if !fits[unit][place] || std::mem::replace(&mut seen[place], true) {
                return false;
            }
            let free = taken[place].is_none_or(|other| seat(other, fits, taken, seen));
            if free {
                taken[place] = Some(unit);
            }
            free
        })
    }
    let seats: Vec<&Line> = lines
        .iter()
        .flat_map(|line| std::iter::repeat_n(line, line.units.get() as usize))
        .collect();
    let fits: Vec<Vec<bool>> = shares
        .iter()
        .map(|share| seats.iter().map(|line| line.among.contains(&share.unit)).collect())
        .collect();
    let mut taken = vec![None; seats.len()];
    (0..fits.len()).all(|unit| seat(unit, &fits, &mut taken, &mut vec![false; seats.len()]))
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (units, weight)) in self.choices.iter().enumerate() {
            let separator = if position > 0 { "," } else { "" };
            if self.choices.iter().all(|(_, other)| *other == 1) {
                write!(f, "{separator}{units}")?;
            } else {
                write!(f, "{separator}{units}:{weight}")?;
            }
        }
        Ok(())
    }
}

/// `1,2` (equally often) or `1:80,4:20` (with weights).
impl FromStr for Want {
    type Err = WantError;

    fn from_str(text: &str) -> Result<Self, WantError> {
        let wrong = || WantError(text.into());
        let choices: Option<Vec<(u32, u32)>> = text
            .split(',')
            .map(|choice| {
                let (units, weight) = choice.split_once(':').unwrap_or((choice, "1"));
                Some((units.trim().parse().ok()?, weight.trim().parse().ok()?))
            })
            .collect();
        choices.and_then(Want::weighted).ok_or_else(wrong)
    }
}

/// Why a text is no distribution of units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantError(String);

impl fmt::Display for WantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' says no numbers of units: write 2, or 1,2, or 1:80,4:20", self.0)
    }
}

impl std::error::Error for WantError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_are_drawn_by_weight() {
        let want: Want = "1:80,4:20".parse().unwrap();
        let mut rng = Rng::new(1);
        let big = (0..100_000).filter(|_| want.draw(&mut rng, 4).units.get() == 4).count();
        assert!((19_000..21_000).contains(&big), "{big}");
        assert_eq!(want.to_string(), "1:80,4:20");
        assert_eq!("1, 2".parse::<Want>().unwrap().to_string(), "1,2");
        for wrong in ["", "0", "1:0", "x", "1:2:3"] {
            assert!(wrong.parse::<Want>().is_err(), "{wrong}");
        }
    }
}
