//! Why a claim waits: the minimum cut.

use quorate_core::{ClaimId, Shares, Shortage, Unit};

use super::labels::Labels;
use super::{Allocator, Ticket};

/// Units that are full, and who competes for them. However holders that can be moved are shifted,
/// the claims here can use nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The line of the claim that finds too little.
    pub line: usize,
    /// The units, ascending.
    pub units: Vec<Unit>,
    /// How many of them are held.
    pub held: u32,
    /// How many of them are free and kept for older claims, or too few for this one.
    pub free: u32,
    /// Claims that wait for these units, this one among them, oldest first.
    pub waiting: Vec<Ticket>,
}

impl Allocator {
    /// Why this claim waits. `None` if it does not, or if the next pass grants it.
    pub fn explain(&self, ticket: Ticket) -> Option<Cut> {
        let waiting = self.queue.get(ticket)?;
        let (mut flow, mut log) = (self.flow.clone(), Vec::new());
        let patient = self.queue.oldest_passed() < self.policy.patience;
        let protect = if patient { 0 } else { self.policy.protect };
        let older = self.queue.iter().take_while(|(older, _)| *older < ticket);
        for (_, older) in older.take(protect as usize) {
            if flow.spare_total() == 0 {
                break;
            }
            for (group, units) in older.shape.iter() {
                flow.augment(&self.groups, *group, *units, &mut log);
            }
        }
        let mut lines = waiting.shape.iter().enumerate();
        let (line, (group, _)) = lines.find(|(_, (group, units))| {
            flow.augment(&self.groups, *group, *units, &mut log) < *units
        })?;
        let full = flow.full(&self.groups, *group)?;
        let mut units: Vec<Unit> = full
            .classes
            .iter()
            .flat_map(|class| self.layout.members(*class))
            .filter(|unit| !self.drained.contains(unit))
            .collect();
        units.sort_unstable();
        let free: u32 = full.classes.iter().map(|class| self.free[*class].count()).sum();
        let inside = |group: usize| {
            self.groups[group].classes.iter().all(|class| full.classes.contains(class))
        };
        let rivals = self.queue.iter().filter(|(_, w)| w.shape.iter().any(|(g, _)| inside(*g)));
        Some(Cut {
            line,
            held: units.len() as u32 - free,
            units,
            free,
            waiting: rivals.map(|(ticket, _)| ticket).collect(),
        })
    }
}

impl Cut {
    /// With the names of those who hold some of the units, out of all who hold any.
    pub(crate) fn shortage<'a>(
        self,
        holders: impl Iterator<Item = (ClaimId, &'a Shares)>,
    ) -> Shortage {
        let inside = |shares: &Shares| {
            shares.iter().any(|share| self.units.binary_search(&share.unit).is_ok())
        };
        let holders = holders.filter(|(_, shares)| inside(shares));
        Shortage {
            free: self.free,
            holders: holders.map(|(claim, _)| claim).collect(),
            waiting: self.waiting.iter().map(|ticket| ticket.claim).collect(),
            units: self.units,
        }
    }

    /// In words; `holders` is how many claims hold some of the units.
    pub fn sentence(&self, holders: usize, labels: &Labels) -> String {
        let claims = self.waiting.len() + holders;
        let many = |count: usize, what: &str| {
            format!("{count} {what}{}", if count == 1 { "" } else { "s" })
        };
        let want = if claims == 1 { "wants" } else { "want" };
        let units = many(self.units.len(), "unit");
        let which = labels.describe(&self.units);
        let which = if which.is_empty() { which } else { format!(" {which}") };
        let kept = match self.free {
            0 => String::new(),
            free => format!("; {free} free, too few or kept for older claims"),
        };
        format!("{} {want} {units}{which}{kept}", many(claims, "claim"))
    }
}
