//! The slow, obvious way: flows unit by unit, and the pass as the specification prints it. Laws are
//! judged by it, and it shares no line with what it judges.

use quorate_core::ClaimId;

use super::{Among, Want};

/// Most units that it can think of.
pub(crate) const UNITS_MAX: u32 = 32;

/// So many units of a set, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demand {
    pub(crate) alpha: u32,
    pub(crate) units: u32,
}

impl From<&Want> for Demand {
    fn from(want: &Want) -> Self {
        Demand { alpha: mask(&want.among), units: want.units }
    }
}

/// A set of units, a bit each.
pub(crate) fn mask(among: &Among) -> u32 {
    match among {
        None => u32::MAX,
        Some(units) => units.iter().fold(0, |mask, unit| mask | 1 << unit.0),
    }
}

/// The maximum flow of these demands (the specification's rho).
pub(crate) fn rho(demands: &[Demand]) -> u32 {
    let mut owner = [None; 32];
    let mut flow = 0;
    for index in 0..demands.len() {
        for _ in 0..demands[index].units {
            flow += u32::from(place(demands, index, &mut owner, &mut 0));
        }
    }
    flow
}

fn place(
    demands: &[Demand],
    index: usize,
    owner: &mut [Option<usize>; 32],
    seen: &mut u32,
) -> bool {
    loop {
        let open = demands[index].alpha & !*seen;
        if open == 0 {
            return false;
        }
        let unit = open.trailing_zeros() as usize;
        *seen |= 1 << unit;
        if owner[unit].is_none_or(|other| place(demands, other, owner, seen)) {
            owner[unit] = Some(index);
            return true;
        }
    }
}

fn units(lines: &[Demand]) -> u32 {
    lines.iter().map(|line| line.units).sum()
}

/// Whether a claim is free over others: all of it fits beside as much as fits of them.
fn is_free(over: &[Demand], claim: &[Demand]) -> bool {
    rho(&[over, claim].concat()) == rho(over) + units(claim)
}

/// The pass: which of those who wait are granted, and which are blocked and protected.
pub(crate) fn decide(
    holders: &[Demand],
    waiting: &[Vec<Demand>],
    mut protect: u32,
) -> (Vec<usize>, Vec<usize>) {
    let mut over = holders.to_vec();
    let (mut granted, mut protected) = (Vec::new(), Vec::new());
    for (index, claim) in waiting.iter().enumerate() {
        if is_free(&over, claim) {
            granted.push(index);
            over.extend(claim);
        } else if protect > 0 {
            protect -= 1;
            protected.push(index);
            over.extend(claim);
        }
    }
    (granted, protected)
}

/// What a claim lacks beside the holders (the specification's delta).
pub(crate) fn lack(holders: &[Demand], claim: &[Demand]) -> u32 {
    units(holders) + units(claim) - rho(&[holders, claim].concat())
}

/// A pool at rest: who has units, and who waits.
pub(crate) struct Case {
    /// What holders have, or could have instead.
    pub(crate) holders: Vec<Demand>,
    /// Those who wait, oldest first.
    pub(crate) waiting: Vec<(ClaimId, Vec<Demand>)>,
    /// Whether everybody asks for one unit.
    pub(crate) single: bool,
}

impl Case {
    /// Judges the laws that are about a single moment; so many who are blocked may be protected.
    ///
    /// # Errors
    /// The law that is broken, and how.
    pub(crate) fn judge(&self, protect: u32) -> Result<(), String> {
        self.law_m()?;
        self.law_w()?;
        let waiting: Vec<Vec<Demand>> = self.waiting.iter().map(|(_, want)| want.clone()).collect();
        match decide(&self.holders, &waiting, protect).0.first() {
            Some(first) => {
                let claim = self.waiting[*first].0;
                Err(format!("decision: {claim} waits, and everybody older leaves it room"))
            }
            None => Ok(()),
        }
    }

    /// M: not everybody can be served together.
    pub(crate) fn law_m(&self) -> Result<(), String> {
        let waiting = self.waiting.iter().flat_map(|(_, wants)| wants);
        let all: Vec<Demand> = self.holders.iter().chain(waiting).copied().collect();
        match self.waiting.first() {
            Some((claim, _)) if rho(&all) == units(&all) => {
                Err(format!("law M: {claim} waits, and all can be served together"))
            }
            _ => Ok(()),
        }
    }

    /// W: if all ask for one unit, nobody waits who could be served beside the holders.
    pub(crate) fn law_w(&self) -> Result<(), String> {
        let mut waiting = self.waiting.iter().filter(|_| self.single);
        match waiting.find(|(_, wants)| lack(&self.holders, wants) == 0) {
            Some((claim, _)) => Err(format!("law W: {claim} waits for a unit that is free")),
            None => Ok(()),
        }
    }
}
