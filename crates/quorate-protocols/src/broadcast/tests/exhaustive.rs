//! Section 5 of the specification: complete enumerations, and what is found when an assumption or a
//! correction is taken away.
//!
//! State counts are pinned: a changed number is a changed protocol. They differ from those of the
//! specification, whose explorer also clears variables that nobody reads any more.

use quorate_core::{NodeId, NodeSet};

use super::every::{Explored, Found, Scope, every_history};
use crate::broadcast::pool::Mutant;
use crate::broadcast::weighted::{Asked, Standing};
use crate::broadcast::{Counted, Message, Pool, Raymond, Raynal, Rule, Weighted};

impl<R: Rule> Explored for Counted<R> {
    fn held(&self) -> u32 {
        self.units_held()
    }

    fn waits(&self) -> bool {
        self.asked.is_some() && self.units_held() == 0
    }

    fn is_quiet(&self) -> bool {
        self.is_settled()
    }
}

impl Explored for Weighted {
    fn held(&self) -> u32 {
        let held = |asked: &&_| matches!(asked, Asked { standing: Standing::Held { .. }, .. });
        self.asked.values().filter(held).map(|asked| asked.units.get()).sum()
    }

    fn waits(&self) -> bool {
        self.asked.values().any(|asked| matches!(asked.standing, Standing::Waiting(_)))
    }

    fn is_dead_letter(&self, pool: &Pool, message: &Message) -> bool {
        let Message::Reply { request, query, known, .. } = message else { return false };
        if pool.mutant == Some(Mutant::UnmatchedReplies) {
            return false;
        }
        let waiting = |clock| {
            let asked = self.asked.get(clock);
            asked.is_some_and(|asked| matches!(asked.standing, Standing::Waiting(_)))
        };
        let wanted = request.as_ref().is_some_and(waiting)
            || query.is_some() && *query == self.detector.query
            || !known.crashed.is_subset(self.crashed());
        !wanted
    }

    fn ends_query(&self, pool: &Pool, from: NodeId, message: &Message) -> Option<NodeSet> {
        let Message::Reply { query, .. } = message else { return None };
        if query.is_none() || *query != self.detector.query || self.detector.is_done() {
            return None;
        }
        let mut missing = self.detector.missing().clone();
        missing.remove(from);
        (missing.len() <= pool.crashes_max as usize).then_some(missing)
    }

    fn suspects(&self) -> NodeSet {
        self.crashed().clone()
    }

    fn reclaimed(&self) -> u32 {
        Weighted::reclaimed(self)
    }
}

/// Who hears whom in time: process i is always heard by i + 1 (a ring), or by i - 1.
fn ring(n: u32, step: u32) -> Vec<NodeSet> {
    (0..n).map(|node| [node, (node + step) % n].into_iter().collect()).collect()
}

fn timer_free(requests: &[Option<u8>]) -> Scope {
    let n = requests.len() as u32;
    Scope {
        pool: Pool::timer_free(n, 2, 1),
        requests: requests.to_vec(),
        weights: vec![1; n as usize],
        ordered: true,
        crashes: 1,
        heard_by: ring(n, 1),
        trail: false,
    }
}

fn report<P: Explored>(what: &str, scope: &Scope) -> Found {
    let started = std::time::SystemTime::now();
    let found = every_history::<P>(scope);
    eprintln!(
        "{what}: {} states {} transitions, {} reclaimed {} false, {:?} {:?}",
        found.states,
        found.transitions,
        found.reclaimed,
        found.false_suspicions,
        found.violation.as_ref().map(|v| &v.0),
        started.elapsed().unwrap()
    );
    found
}

#[test]
fn probe_sizes() {
    let s = Some;
    let plain = |pool: Pool, requests: &[u8], weights: &[u32]| Scope {
        pool,
        requests: requests.iter().map(|r| Some(*r)).collect(),
        weights: weights.to_vec(),
        ordered: false,
        crashes: 0,
        heard_by: Vec::new(),
        trail: false,
    };
    let steps =
        |found: Found| eprintln!("   steps {}", found.violation.map_or(0, |v| v.1.len() - 1));
    for (mutant, r) in [
        (Mutant::TieBreakByIdentity, [1, 1, 1]),
        (Mutant::UnmatchedReplies, [2, 2, 2]),
        (Mutant::DropDeferred, [1, 1, 1]),
    ] {
        let base = timer_free(&[s(r[0]), s(r[1]), s(r[2])]);
        steps(report::<Weighted>(
            &format!("{mutant:?}"),
            &Scope {
                crashes: 0,
                trail: true,
                pool: Pool { mutant: Some(mutant), ..base.pool.clone() },
                ..base
            },
        ));
    }
    report::<Weighted>(
        "4: 2,2,2,dead fifo",
        &Scope { crashes: 0, heard_by: Vec::new(), ..timer_free(&[s(2), s(2), s(2), None]) },
    );
    report::<Weighted>(
        "4: 3,2,1,dead fifo",
        &Scope { crashes: 0, heard_by: Vec::new(), ..timer_free(&[s(3), s(2), s(1), None]) },
    );
    report::<Weighted>(
        "4: dead,2,2,1 fifo",
        &Scope { crashes: 0, heard_by: Vec::new(), ..timer_free(&[None, s(2), s(2), s(1)]) },
    );
    report::<Weighted>(
        "4: 2,1,1,dead any",
        &Scope {
            crashes: 0,
            ordered: false,
            heard_by: Vec::new(),
            ..timer_free(&[s(2), s(1), s(1), None])
        },
    );
    let w = |w: [u32; 3], m: u32| Scope {
        pool: Pool { node_units_max: 2, ..Pool::timer_free(3, m, 1) },
        weights: w.to_vec(),
        ..timer_free(&[s(2), s(1), s(1)])
    };
    report::<Weighted>("weighted M4 2,2,1 / 2,1,1", &w([2, 2, 1], 4));
    report::<Weighted>("weighted M4 2,1,2 / 2,1,1", &w([2, 1, 2], 4));
    report::<Weighted>("2,2,1 ring", &timer_free(&[s(2), s(2), s(1)]));
    report::<Weighted>(
        "2,2,1 other ring",
        &Scope { heard_by: ring(3, 2), ..timer_free(&[s(2), s(2), s(1)]) },
    );
    report::<Weighted>("4: 1,1,1,0 fifo", &timer_free(&[s(1), s(1), s(1), s(0)]));
}
