//! Who may use what.

use std::collections::BTreeSet;

/// A set of units, a bit each.
pub type UnitSet = u128;

/// A set of groups, a bit each.
pub type Groups = u32;

/// Why a description is not a sharing structure. Nothing was built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StructureError {
    /// No process, or no unit.
    #[error("a sharing structure needs at least one unit and one process")]
    Nothing,
    /// The same unit is listed twice.
    #[error("unit {0} is listed twice")]
    TwiceListed(String),
    /// The same process is listed twice.
    #[error("process {0} is listed twice")]
    TwiceUser(String),
    /// A process may use a unit that does not exist.
    #[error("{process} may use {unit}, which is not among the units")]
    NoSuchUnit {
        /// The process.
        process: String,
        /// What it names.
        unit: String,
    },
    /// A process that may use nothing: no claim of its could ever be served.
    #[error("{0} may use no unit at all")]
    NoUnit(String),
    /// More units than fit.
    #[error("{0} units: sharing structures are examined up to {max}", max = Structure::UNITS_MAX)]
    TooManyUnits(usize),
    /// More groups than can be looked through set by set.
    #[error("{0} groups: sharing structures are examined up to {max}", max = Structure::GROUPS_MAX)]
    TooManyGroups(usize),
}

/// Processes that may use the same units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// What they may use.
    pub alpha: UnitSet,
    /// Positions of the processes.
    pub members: Vec<usize>,
}

/// A sharing structure (U, R, alpha).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Structure {
    units: Vec<String>,
    processes: Vec<String>,
    alpha: Vec<UnitSet>,
    groups: Vec<Group>,
    /// k(S) for every set S of groups, by its bits.
    k: Vec<u32>,
}

/// What kind of structure it is; groups are compared pair by pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// No two groups have a unit in common.
    pub disjoint: bool,
    /// Of any two groups one may use all that the other may.
    pub chain: bool,
    /// Any two groups are disjoint or nested.
    pub laminar: bool,
    /// Every group's units are neighbours in the order given.
    pub interval: bool,
    /// No group may use all that another may.
    pub antichain: bool,
}

impl Structure {
    /// Most units.
    pub const UNITS_MAX: usize = 128;
    /// Most groups: every set of them is looked at.
    pub const GROUPS_MAX: usize = 16;

    /// From names: the units in order, and what each process may use.
    ///
    /// # Errors
    /// The description contradicts itself or is too large; the error says where.
    pub fn new(
        units: Vec<String>,
        alpha: Vec<(String, Vec<String>)>,
    ) -> Result<Self, StructureError> {
        if units.is_empty() || alpha.is_empty() {
            return Err(StructureError::Nothing);
        }
        if units.len() > Self::UNITS_MAX {
            return Err(StructureError::TooManyUnits(units.len()));
        }
        if let Some(twice) = repeated(units.iter()) {
            return Err(StructureError::TwiceListed(twice));
        }
        if let Some(twice) = repeated(alpha.iter().map(|(process, _)| process)) {
            return Err(StructureError::TwiceUser(twice));
        }
        let mut sets = Vec::with_capacity(alpha.len());
        for (process, names) in &alpha {
            let mut set = 0;
            for unit in names {
                let position = units.iter().position(|known| known == unit);
                let position = position.ok_or_else(|| StructureError::NoSuchUnit {
                    process: process.clone(),
                    unit: unit.clone(),
                })?;
                set |= 1 << position;
            }
            if set == 0 {
                return Err(StructureError::NoUnit(process.clone()));
            }
            sets.push(set);
        }
        let groups = grouped(&sets);
        if groups.len() > Self::GROUPS_MAX {
            return Err(StructureError::TooManyGroups(groups.len()));
        }
        let mut unions: Vec<UnitSet> = vec![0; 1 << groups.len()];
        for s in 1..unions.len() {
            let top = s.ilog2() as usize;
            unions[s] = unions[s & !(1 << top)] | groups[top].alpha;
        }
        let k = unions.iter().map(|union| union.count_ones()).collect();
        let processes = alpha.into_iter().map(|(process, _)| process).collect();
        Ok(Structure { units, processes, alpha: sets, groups, k })
    }

    /// Names of the units.
    pub fn units(&self) -> &[String] {
        &self.units
    }

    /// Names of the processes.
    pub fn processes(&self) -> &[String] {
        &self.processes
    }

    /// What process number `process` may use.
    pub fn alpha(&self, process: usize) -> UnitSet {
        self.alpha[process]
    }

    /// The groups, in the order in which they first appear. The first is called `G1`.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All groups.
    pub fn everyone(&self) -> Groups {
        (1 << self.groups.len()) - 1
    }

    /// Every non-empty set of groups, ascending by bits.
    pub fn group_sets(&self) -> impl Iterator<Item = Groups> + use<> {
        1..=self.everyone()
    }

    /// What the groups of `s` may use together.
    pub fn union(&self, s: Groups) -> UnitSet {
        members(s).fold(0, |union, group| union | self.groups[group].alpha)
    }

    /// The paper's k(S): how many units the groups of `s` may use together.
    pub fn k(&self, s: Groups) -> u32 {
        self.k[s as usize]
    }

    /// Whether these counts, one per group, can be served: no set of groups asks for more units
    /// than it may use (Hall).
    pub fn is_hall(&self, counts: &[u32]) -> bool {
        self.overfull(counts).is_none()
    }

    /// The first set of groups that asks for more than it may use.
    pub fn overfull(&self, counts: &[u32]) -> Option<Groups> {
        // What a set asks for is what it asks for without its lowest group, and what that asks for.
        let mut asked = vec![0; self.everyone() as usize + 1];
        self.group_sets().find(|s| {
            let rest = s & (s - 1);
            asked[*s as usize] = asked[rest as usize] + counts[s.trailing_zeros() as usize];
            asked[*s as usize] > self.k(*s)
        })
    }

    /// What the groups of `s` ask for together.
    pub fn asked(&self, s: Groups, counts: &[u32]) -> u32 {
        members(s).map(|group| counts[group]).sum()
    }

    /// Units wanted by exactly the same groups, with those groups. Units that nobody may use are in
    /// no class.
    pub fn unit_classes(&self) -> Vec<(Groups, UnitSet)> {
        let mut classes: Vec<(Groups, UnitSet)> = Vec::new();
        for unit in 0..self.units.len() {
            let wanted = (0..self.groups.len())
                .filter(|group| self.groups[*group].alpha >> unit & 1 == 1)
                .fold(0, |wanted, group| wanted | 1 << group);
            match classes.iter_mut().find(|(groups, _)| *groups == wanted) {
                Some((_, units)) => *units |= 1 << unit,
                None if wanted != 0 => classes.push((wanted, 1 << unit)),
                None => {}
            }
        }
        classes
    }

    /// Groups that are linked by common units, directly or through others.
    pub fn components(&self) -> Vec<Groups> {
        let mut components = Vec::new();
        let mut left = self.everyone();
        while left != 0 {
            let component = self.component_of(left.trailing_zeros() as usize, left);
            components.push(component);
            left &= !component;
        }
        components
    }

    /// Whether the groups of `s` are linked by units of theirs.
    pub fn is_connected(&self, s: Groups) -> bool {
        s != 0 && self.component_of(s.trailing_zeros() as usize, s) == s
    }

    fn component_of(&self, group: usize, among: Groups) -> Groups {
        let mut component = 1 << group;
        loop {
            let reach = self.union(component);
            let larger = members(among)
                .filter(|other| self.groups[*other].alpha & reach != 0)
                .fold(component, |set, other| set | 1 << other);
            if larger == component {
                return component;
            }
            component = larger;
        }
    }

    /// What kind of structure it is.
    pub fn shape(&self) -> Shape {
        let mut shape =
            Shape { disjoint: true, chain: true, laminar: true, interval: true, antichain: true };
        for (position, one) in self.groups.iter().enumerate() {
            let (first, last) = (one.alpha.trailing_zeros(), one.alpha.ilog2());
            shape.interval &= last - first + 1 == one.alpha.count_ones();
            for other in &self.groups[..position] {
                let common = one.alpha & other.alpha;
                let nested = common == one.alpha || common == other.alpha;
                shape.disjoint &= common == 0;
                shape.chain &= nested;
                shape.laminar &= nested || common == 0;
                shape.antichain &= !nested;
            }
        }
        shape
    }
}

/// The groups of a set by name: `G1`, `G3`.
pub fn group_names(s: Groups) -> Vec<String> {
    members(s).map(|group| format!("G{}", group + 1)).collect()
}

/// The groups in a set.
pub(super) fn members(s: Groups) -> impl Iterator<Item = usize> {
    (0..Groups::BITS as usize).filter(move |group| s >> group & 1 == 1)
}

fn repeated<'a>(mut names: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name)).cloned()
}

fn grouped(sets: &[UnitSet]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (process, alpha) in sets.iter().enumerate() {
        match groups.iter_mut().find(|group| group.alpha == *alpha) {
            Some(group) => group.members.push(process),
            None => groups.push(Group { alpha: *alpha, members: vec![process] }),
        }
    }
    groups
}
