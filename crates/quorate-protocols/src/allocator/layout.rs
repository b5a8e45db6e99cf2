//! Units in classes: two units are in one class if every group wants both or neither.

use std::sync::Arc;

use quorate_core::Unit;

/// Which units will do: these, ascending, or any of the pool.
pub type Among = Option<Arc<[Unit]>>;

/// Claims that will do with the same units.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Group {
    pub(super) among: Among,
    /// The classes that will do, those that the fewest groups want first: what only few can use is
    /// used up before what many can (scarcity order).
    pub(super) classes: Vec<usize>,
    /// Claims that wait or may be moved.
    pub(super) claims: u32,
}

/// The units by class.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Layout {
    /// Class and place in it, unit by unit; none for a pool of one class, which needs no table.
    table: Option<Arc<[(u32, u32)]>>,
    /// The units of every class, ascending; likewise.
    members: Arc<[Vec<Unit>]>,
    units: u32,
}

impl Layout {
    /// All units alike.
    pub(super) fn plain(units: u32) -> Self {
        Layout { table: None, members: Arc::new([]), units }
    }

    /// As coarse as these groups allow.
    pub(super) fn of(units: u32, groups: &[Group]) -> Self {
        let mut class_of = vec![0u32; units as usize];
        let mut count = 1;
        for among in groups.iter().filter_map(|group| group.among.as_ref()) {
            // Every class that is cut gets a new half, for the units inside.
            let mut inside = vec![None; count as usize];
            let mut left: Vec<u32> = vec![0; count as usize];
            for class in &class_of {
                left[*class as usize] += 1;
            }
            let mut wanted: Vec<u32> = vec![0; count as usize];
            for unit in among.iter() {
                wanted[class_of[unit.index()] as usize] += 1;
            }
            for unit in among.iter() {
                let old = class_of[unit.index()] as usize;
                if wanted[old] < left[old] {
                    class_of[unit.index()] = *inside[old].get_or_insert_with(|| {
                        count += 1;
                        count - 1
                    });
                }
            }
        }
        if count == 1 {
            return Layout::plain(units);
        }
        let mut members = vec![Vec::new(); count as usize];
        let table = class_of
            .iter()
            .enumerate()
            .map(|(unit, class)| {
                let list: &mut Vec<Unit> = &mut members[*class as usize];
                list.push(Unit(unit as u32));
                (*class, list.len() as u32 - 1)
            })
            .collect();
        Layout { table: Some(table), members: members.into(), units }
    }

    pub(super) fn units(&self) -> u32 {
        self.units
    }

    pub(super) fn classes(&self) -> usize {
        self.members.len().max(1)
    }

    /// How many units a class has.
    pub(super) fn size(&self, class: usize) -> u32 {
        self.members.get(class).map_or(self.units, |members| members.len() as u32)
    }

    pub(super) fn class_of(&self, unit: Unit) -> usize {
        self.table.as_ref().map_or(0, |table| table[unit.index()].0 as usize)
    }

    /// Class and place in it.
    pub(super) fn place(&self, unit: Unit) -> (usize, u32) {
        match &self.table {
            None => (0, unit.0),
            Some(table) => (table[unit.index()].0 as usize, table[unit.index()].1),
        }
    }

    /// The unit at a place.
    pub(super) fn unit(&self, class: usize, place: u32) -> Unit {
        self.members.get(class).map_or(Unit(place), |members| members[place as usize])
    }

    /// The units of a class.
    pub(super) fn members(&self, class: usize) -> impl Iterator<Item = Unit> + '_ {
        (0..self.size(class)).map(move |place| self.unit(class, place))
    }

    /// The classes among some units, or `None` if they cut a class.
    pub(super) fn classes_among(&self, among: &Among) -> Option<Vec<usize>> {
        let Some(among) = among else { return Some((0..self.classes()).collect()) };
        let mut wanted = vec![0; self.classes()];
        for unit in among.iter() {
            wanted[self.class_of(*unit)] += 1;
        }
        let mut classes = Vec::new();
        for (class, count) in wanted.into_iter().enumerate() {
            match count {
                0 => {}
                all if all == self.size(class) => classes.push(class),
                _ => return None,
            }
        }
        Some(classes)
    }
}
