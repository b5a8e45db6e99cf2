//! Units that come and go while claims wait and holders hold.

use std::collections::BTreeMap;

use quorate_core::Unit;

use super::queue::Shape;
use super::{Allocator, Policy, Ticket};

impl Allocator {
    /// A unit leaves the pool: at once if it is free, else when its holder gives it back, who is
    /// not moved from it any more. Claims that can never be granted without it are over; these are
    /// returned.
    pub fn drain(&mut self, unit: Unit) -> Vec<Ticket> {
        if unit.0 >= self.layout.units() || !self.drained.insert(unit) {
            return Vec::new();
        }
        let (class, place) = self.layout.place(unit);
        if self.free[class].contains(place) {
            self.free[class].remove(place);
        }
        self.recount();
        self.unsettle();
        self.give_up()
    }

    /// The pool lends these units from now on, of all that it ever had. The others leave it: at
    /// once if they are free, else when their holders give them back; those that come are free
    /// unless somebody uses them since they were last there. Claims that can never be granted now
    /// are over; these are returned.
    pub fn amend(
        &mut self,
        ever: u32,
        lends: impl Fn(Unit) -> bool,
        in_use: impl Fn(Unit) -> bool,
    ) -> Vec<Ticket> {
        let before = self.layout.units();
        if ever > before {
            self.lay_out(ever);
        }
        for unit in (0..self.layout.units()).map(Unit) {
            let (class, place) = self.layout.place(unit);
            if !lends(unit) {
                if self.drained.insert(unit) && self.free[class].contains(place) {
                    self.free[class].remove(place);
                }
                continue;
            }
            let comes = self.drained.remove(&unit) || unit.0 >= before;
            if comes && !in_use(unit) && !self.plan.keeps(unit) {
                self.free[class].insert(place);
            }
        }
        self.recount();
        self.unsettle();
        self.give_up()
    }

    /// From now on these may pass whom.
    pub fn follow(&mut self, policy: Policy) {
        self.policy = policy;
        if policy.patience > 0 || policy.protect == 0 {
            self.queue.keep_shapes();
        }
        self.unsettle();
    }

    /// Takes claims out of the queue that can never be granted.
    fn give_up(&mut self) -> Vec<Ticket> {
        let mut judged: BTreeMap<&Shape, bool> = BTreeMap::new();
        let mut over = Vec::new();
        for (ticket, waiting) in self.queue.iter() {
            let judge = || self.possible(&waiting.shape).is_err();
            if *judged.entry(&waiting.shape).or_insert_with(judge) {
                over.push(ticket);
            }
        }
        for ticket in &over {
            self.cancel(*ticket);
        }
        over
    }

    /// A drained unit is back. `in_use` says whether its holder from before still has it.
    pub fn restore(&mut self, unit: Unit, in_use: bool) {
        if self.drained.remove(&unit) && !in_use && !self.plan.keeps(unit) {
            self.put_back(unit);
        }
        self.recount();
        self.unsettle();
    }
}
