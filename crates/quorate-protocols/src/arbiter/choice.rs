//! Which units a claim locks, where units have names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_core::{Claim, Line, Shares, Unit, Units, Wanted};

use super::message::Wish;
use super::pool::{Mode, Pool};

/// What to ask arbiters for. A claim that leaves a choice gets units from where its draw points,
/// those that other claims of this node have last. `None` if the claim names units and the pool
/// counts, or no choice of units satisfies all its lines.
pub(super) fn choose(pool: &Pool, claim: &Claim, taken: &BTreeSet<Unit>) -> Option<Wish> {
    let Wanted { units, ref lines, .. } = claim.wanted;
    match pool.mode {
        Mode::Count { .. } => lines.is_none().then_some(Wish { units, names: None }),
        Mode::Named => choose_among(pool, &claim.wanted, claim.draw, taken),
    }
}

fn choose_among(pool: &Pool, wanted: &Wanted, draw: u64, taken: &BTreeSet<Unit>) -> Option<Wish> {
    let units = wanted.units;
    let mut chosen: BTreeSet<Unit> = BTreeSet::new();
    match wanted.lines.as_deref() {
        None => pick(&all(pool), units, draw, taken, &mut chosen)?,
        Some(lines) => {
            let known = |line: &Line| line.among.iter().all(|unit| unit.0 < pool.units);
            lines.iter().all(known).then_some(())?;
            chosen = Bundle::new(lines, draw, taken).fill(true)?;
        }
    }
    let names: Arc<[Unit]> = chosen.into_iter().collect();
    (names.len() == units.get() as usize).then_some(Wish { units, names: Some(names) })
}

/// The same choice, if none of the units is taken.
pub(super) fn choose_free(
    pool: &Pool,
    wanted: &Wanted,
    draw: u64,
    taken: &BTreeSet<Unit>,
) -> Option<Wish> {
    if let Some(lines) = &wanted.lines {
        let names = Bundle::new(lines, draw, taken).fill(false)?.into_iter().collect();
        return Some(Wish { units: wanted.units, names: Some(names) });
    }
    let wish = choose_among(pool, wanted, draw, taken)?;
    let names = wish.names.as_ref().expect("units have names here");
    names.iter().all(|unit| !taken.contains(unit)).then_some(wish)
}

/// Units for several lines at once: each gets what nobody has yet, and only if there is none a line
/// before it takes another instead (a matching, by augmenting paths).
struct Bundle<'a> {
    /// Those that leave no choice first, so that the others do not take their units.
    lines: Vec<&'a Line>,
    draw: u64,
    taken: &'a BTreeSet<Unit>,
    /// Which line has a unit.
    owners: BTreeMap<Unit, usize>,
}

impl<'a> Bundle<'a> {
    fn new(lines: &'a [Line], draw: u64, taken: &'a BTreeSet<Unit>) -> Self {
        let mut lines: Vec<_> = lines.iter().collect();
        lines.sort_by_key(|line| line.among.len().saturating_sub(line.units.get() as usize));
        Bundle { lines, draw, taken, owners: BTreeMap::new() }
    }

    /// All units of all lines, taken ones too if that is `allowed`, or nothing.
    fn fill(mut self, allowed: bool) -> Option<BTreeSet<Unit>> {
        for line in 0..self.lines.len() {
            for _ in 0..self.lines[line].units.get() {
                self.find(line, allowed, &mut BTreeSet::new()).then_some(())?;
            }
        }
        Some(self.owners.into_keys().collect())
    }

    /// One unit more for a line; `seen` are those that were asked for on the way.
    fn find(&mut self, line: usize, allowed: bool, seen: &mut BTreeSet<Unit>) -> bool {
        let around = around(&self.lines[line].among, self.draw);
        let (free, rest): (Vec<Unit>, Vec<Unit>) =
            around.partition(|unit| !self.taken.contains(unit));
        let wanted: Vec<Unit> =
            free.into_iter().chain(rest.into_iter().filter(|_| allowed)).collect();
        if let Some(&unit) = wanted.iter().find(|unit| !self.owners.contains_key(unit)) {
            self.owners.insert(unit, line);
            return true;
        }
        for unit in wanted {
            let owner = self.owners[&unit];
            if owner != line && seen.insert(unit) && self.find(owner, allowed, seen) {
                self.owners.insert(unit, line);
                return true;
            }
        }
        false
    }
}

/// Whether a claim could have other units than those chosen for it.
pub(super) fn has_choice(pool: &Pool, wanted: &Wanted) -> bool {
    match &wanted.lines {
        None => wanted.units.get() < pool.units,
        Some(lines) => lines.iter().any(|line| line.among.len() > line.units.get() as usize),
    }
}

/// So many units of which none is taken, from where the draw points, those that are `mine` last.
pub(super) fn free_units(
    pool: &Pool,
    units: Units,
    draw: u64,
    taken: &BTreeSet<Unit>,
    mine: &BTreeSet<Unit>,
) -> Option<BTreeSet<Unit>> {
    let free: Vec<Unit> = all(pool).into_iter().filter(|unit| !taken.contains(unit)).collect();
    let mut chosen = BTreeSet::new();
    pick(&free, units, draw, mine, &mut chosen)?;
    Some(chosen)
}

/// What a client that shows its shares must have asked for; `None` if no pool like this gave them.
pub(super) fn wish_of(pool: &Pool, shares: &Shares) -> Option<Wish> {
    let units = Units::new(u32::try_from(shares.len()).ok()?, pool.units).ok()?;
    if pool.mode != Mode::Named && !pool.picks_units() {
        return Some(Wish { units, names: None });
    }
    let distinct = shares.as_slice().windows(2).all(|pair| pair[0].unit < pair[1].unit);
    let known = shares.iter().all(|share| share.unit.0 < pool.units);
    let names = shares.iter().map(|share| share.unit).collect();
    (distinct && known).then_some(Wish { units, names: Some(names) })
}

fn all(pool: &Pool) -> Vec<Unit> {
    (0..pool.units).map(Unit).collect()
}

/// All of these, from where the draw points.
fn around(among: &[Unit], draw: u64) -> impl Iterator<Item = Unit> + '_ {
    let start = (draw % among.len().max(1) as u64) as usize;
    among[start..].iter().chain(&among[..start]).copied()
}

fn pick(
    among: &[Unit],
    units: Units,
    draw: u64,
    taken: &BTreeSet<Unit>,
    chosen: &mut BTreeSet<Unit>,
) -> Option<()> {
    let free = around(among, draw).filter(|unit| !taken.contains(unit));
    let rest = around(among, draw).filter(|unit| taken.contains(unit));
    let wanted = units.get() as usize;
    let new: Vec<Unit> =
        free.chain(rest).filter(|unit| !chosen.contains(unit)).take(wanted).collect();
    chosen.extend(&new);
    (new.len() == wanted).then_some(())
}

#[cfg(test)]
mod tests {
    use quorate_core::{ClaimId, Line};

    use super::*;

    fn units(of: &[u32]) -> Arc<[Unit]> {
        of.iter().copied().map(Unit).collect()
    }

    fn line(h: u32, among: &[u32]) -> Line {
        Line::of(Units::new(h, 9).unwrap(), units(among))
    }

    fn claim(h: u32, draw: u64, lines: &[Line]) -> Claim {
        let lines = (!lines.is_empty()).then(|| lines.into());
        let units = Units::new(h, 9).unwrap();
        let wanted = Wanted { lines, ..Wanted::any(units) };
        Claim { id: ClaimId::default(), draw, wanted }
    }

    #[test]
    fn a_claim_gets_units_it_can_use_and_free_ones_first() {
        let pool = Pool::named(4, 3);
        let free = BTreeSet::new();
        let names = |claim: &Claim, taken: &BTreeSet<Unit>| choose(&pool, claim, taken)?.names;
        assert_eq!(names(&claim(2, 3, &[]), &free), Some(units(&[0, 3])));
        assert_eq!(names(&claim(2, 3, &[]), &[Unit(3)].into()), Some(units(&[0, 1])));
        assert_eq!(names(&claim(1, 0, &[line(1, &[2])]), &free), Some(units(&[2])));
        let both = [line(1, &[1, 2]), line(1, &[1])];
        assert_eq!(names(&claim(2, 0, &both), &free), Some(units(&[1, 2])));
        assert_eq!(names(&claim(1, 0, &[line(1, &[7])]), &free), None, "no such unit");
        assert_eq!(names(&claim(2, 0, &[line(1, &[1]), line(1, &[1])]), &free), None);
        assert_eq!(choose(&Pool::new(4, 9), &claim(1, 0, &[line(1, &[2])]), &free), None);
    }

    /// Four units are just enough, whatever is tried first.
    #[test]
    fn a_bundle_that_can_be_had_is_chosen() {
        let pool = Pool::named(5, 3);
        let lines = [line(2, &[0, 1, 2]), line(1, &[0, 3]), line(1, &[1, 3])];
        for draw in 0..12 {
            let claim = claim(4, draw, &lines);
            let wish = choose(&pool, &claim, &BTreeSet::new());
            assert_eq!(wish.and_then(|wish| wish.names), Some(units(&[0, 1, 2, 3])), "{draw}");
            let free = |taken: &[Unit]| {
                let taken = taken.iter().copied().collect();
                choose_free(&pool, &claim.wanted, draw, &taken)
            };
            assert!(free(&[Unit(4)]).is_some() && free(&[Unit(2)]).is_none(), "{draw}");
        }
    }
}
