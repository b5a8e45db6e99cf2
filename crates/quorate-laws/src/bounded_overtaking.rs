//! No waiting claim is passed by younger ones more often than its pool promises (conventions 4.8).
//!
//! Read from an arbiter's public books after each of its steps, and counted here, not taken from
//! the arbiter's own count. A claim that is not yet in the books cannot be overtaken there, and an
//! arbiter that forgot its queue starts counting anew.
//!
//! Nor can a claim be overtaken while it is out of its turn ([`Standing::Absent`]): its home was
//! taken for dead, and has not asked for it again since. When it is back, it is counted anew
//! ([`Standing::Returned`]): who looks at books now and then may not have seen it absent.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::{ClaimId, Entry, NodeId, Stamp, Standing, numbers};

use crate::Breach;

/// Remembers, for each arbiter, who waits there and how often each was passed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BoundedOvertaking {
    bound: Option<u32>,
    books: BTreeMap<NodeId, Book>,
    overtakes: u64,
}

numbers!(BoundedOvertaking { bound, books, overtakes: plain });

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Book {
    /// Claims in their turn, oldest first, and how often each was passed since it came, or came
    /// back for the last of so many times.
    waiting: BTreeMap<(Stamp, ClaimId, u32), u32>,
    decided: BTreeSet<ClaimId>,
}

numbers!(Book { waiting, decided });

impl BoundedOvertaking {
    pub(crate) const LAW: &'static str = "bounded overtaking";

    /// With this bound; `None` only counts.
    pub fn new(bound: Option<u32>) -> Self {
        BoundedOvertaking { bound, books: BTreeMap::new(), overtakes: 0 }
    }

    /// How often any claim was passed, in all.
    pub fn overtakes(&self) -> u64 {
        self.overtakes
    }

    /// The arbiter was restarted: what it had in its books before is nobody's queue any more.
    pub fn forget(&mut self, arbiter: NodeId) {
        self.books.remove(&arbiter);
    }

    /// The arbiter's books after one of its steps.
    ///
    /// # Errors
    /// The breach, if somebody was passed once too often.
    pub fn see(&mut self, arbiter: NodeId, entries: &[Entry]) -> Result<(), Breach> {
        if entries.is_empty() && !self.books.contains_key(&arbiter) {
            return Ok(());
        }
        let book = self.books.entry(arbiter).or_default();
        let decided: BTreeSet<ClaimId> =
            entries.iter().filter(|e| e.standing == Standing::Granted).map(|e| e.claim).collect();
        let news: Vec<(Stamp, ClaimId)> = entries
            .iter()
            .filter(|e| e.standing == Standing::Granted && !book.decided.contains(&e.claim))
            .map(|e| (e.stamp, e.claim))
            .collect();
        let mut waiting = BTreeMap::new();
        for entry in entries {
            let absences = match entry.standing {
                Standing::Waiting => 0,
                Standing::Returned(times) => times,
                Standing::Absent | Standing::Granted | Standing::Adopted => continue,
            };
            let key = (entry.stamp, entry.claim, absences);
            let mut passed = book.waiting.get(&key).copied().unwrap_or(0);
            if book.waiting.contains_key(&key) {
                let now =
                    news.iter().filter(|&&young| (entry.stamp, entry.claim) < young).count() as u32;
                passed += now;
                self.overtakes += u64::from(now);
                if self.bound.is_some_and(|bound| now > 0 && passed > bound) {
                    return Err(Breach {
                        law: Self::LAW,
                        what: format!(
                            "{} has been overtaken {passed} times at {arbiter}, last by {}",
                            entry.claim,
                            news.last().map(|(_, claim)| claim.to_string()).unwrap_or_default()
                        ),
                    });
                }
            }
            waiting.insert(key, passed);
        }
        *book = Book { waiting, decided };
        Ok(())
    }

    /// Forgets the running total, which would make every state of a checker a new one.
    pub fn forget_total(&mut self) {
        self.overtakes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{entry, id};

    #[test]
    fn the_second_overtake_breaks_a_bound_of_one() {
        let mut law = BoundedOvertaking::new(Some(1));
        let at = NodeId(0);
        law.see(at, &[entry(1, 5, Standing::Waiting)]).unwrap();
        law.see(at, &[entry(1, 5, Standing::Waiting), entry(2, 6, Standing::Granted)]).unwrap();
        assert_eq!(law.overtakes(), 1);
        // The same grant is not counted again.
        law.see(at, &[entry(1, 5, Standing::Waiting), entry(2, 6, Standing::Granted)]).unwrap();
        let breach = law
            .clone()
            .see(at, &[entry(1, 5, Standing::Waiting), entry(3, 7, Standing::Granted)])
            .unwrap_err();
        assert_eq!(breach.law, "bounded overtaking");
        assert!(breach.what.contains(&id(1).to_string()));
        law.forget(at);
        law.see(at, &[entry(1, 5, Standing::Waiting), entry(3, 7, Standing::Granted)]).unwrap();
    }

    #[test]
    fn who_is_absent_is_not_overtaken_and_who_is_back_is_counted_anew() {
        let mut law = BoundedOvertaking::new(Some(1));
        let at = NodeId(0);
        let old = |standing| entry(1, 5, standing);
        law.see(at, &[old(Standing::Waiting)]).unwrap();
        law.see(at, &[old(Standing::Waiting), entry(2, 6, Standing::Granted)]).unwrap();
        for younger in 3..6 {
            law.see(at, &[old(Standing::Absent), entry(younger, 7, Standing::Granted)]).unwrap();
        }
        // Of what happened before these books were seen, nobody knows whether it was absent.
        law.see(at, &[old(Standing::Returned(1)), entry(6, 8, Standing::Granted)]).unwrap();
        law.see(at, &[old(Standing::Returned(1)), entry(7, 8, Standing::Granted)]).unwrap();
        law.clone().see(at, &[old(Standing::Returned(2)), entry(8, 8, Standing::Granted)]).unwrap();
        let breach = law.see(at, &[old(Standing::Returned(1)), entry(8, 8, Standing::Granted)]);
        assert_eq!(breach.unwrap_err().law, "bounded overtaking");
    }

    #[test]
    fn an_older_claim_or_an_adopted_one_overtakes_nobody() {
        let mut law = BoundedOvertaking::new(Some(0));
        let at = NodeId(0);
        law.see(at, &[entry(1, 5, Standing::Waiting)]).unwrap();
        law.see(at, &[entry(1, 5, Standing::Waiting), entry(2, 4, Standing::Granted)]).unwrap();
        law.see(at, &[entry(1, 5, Standing::Waiting), entry(3, 9, Standing::Adopted)]).unwrap();
        assert!(
            law.see(at, &[entry(1, 5, Standing::Waiting), entry(4, 6, Standing::Granted)]).is_err()
        );
    }
}
