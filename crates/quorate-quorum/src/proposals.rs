//! Domination of families too large for a [`Table`](crate::Table): the only file that names the
//! satisfiability crate.
//!
//! The solver proposes a set that contains no quorum; it is grown as far as it stays so, and then k
//! quorums are sought whose intersection it misses. If there are none it is the witness; otherwise
//! every later proposal must meet that intersection. Each round rules out a maximal quorum-free
//! set, so the loop ends, within the effort allowed.

use batsat::{BasicSolver, Lit, SolverInterface, Var, lbool};
use quorate_core::NodeSet;

use crate::explicit::minimal;
use crate::intersect::emptying;
use crate::set::Set;
use crate::{Domination, Effort, Explicit, TooLarge};

pub(crate) fn decide<S: Set>(
    family: &Explicit,
    units: usize,
    effort: &mut Effort<'_>,
) -> Result<Domination, TooLarge> {
    let sets = minimal(family.sets::<S>());
    let mut solver = BasicSolver::default();
    let chosen: Vec<Var> = (0..family.nodes()).map(|_| solver.new_var_default()).collect();
    for set in &sets {
        let mut clause = set.members().map(|node| Lit::new(chosen[node], false)).collect();
        solver.add_clause_reuse(&mut clause);
    }
    loop {
        let conflicts = solver.num_conflicts();
        match solve(&mut solver, effort) {
            answer if answer == lbool::TRUE => {}
            answer if answer == lbool::FALSE => return Ok(Domination::Nondominated),
            _ => return Err(TooLarge { limit: effort.limit() }),
        }
        effort.spend((solver.num_conflicts() - conflicts + 1) * sets.len() as u64)?;
        let mut proposal = S::empty();
        for (node, var) in chosen.iter().enumerate() {
            if solver.value_var(*var) == lbool::TRUE {
                proposal.put(node);
            }
        }
        grow(&mut proposal, &sets, family.nodes());
        let Some(missed) = emptying(&proposal, &sets, units, effort)? else {
            let witness = shrink(proposal, &sets, units);
            return Ok(Domination::Dominated(witness.to_nodes()));
        };
        let everyone = S::from_nodes(&NodeSet::first(family.nodes()));
        let intersection = missed.iter().fold(everyone, |left, set| left.and(set));
        let mut clause = intersection.members().map(|node| Lit::new(chosen[node], true)).collect();
        solver.add_clause_reuse(&mut clause);
    }
}

/// One run of the solver, stopped when it has used up its share of the effort.
fn solve(solver: &mut BasicSolver, effort: &Effort<'_>) -> lbool {
    const CALLS_PER_STEP: u64 = 64;
    let left = std::cell::Cell::new(effort.left() / CALLS_PER_STEP);
    solver.cb_mut().set_stop(move || {
        left.set(left.get().saturating_sub(1));
        left.get() == 0
    });
    solver.solve_limited(&[])
}

/// Adds nodes as long as no quorum is inside.
fn grow<S: Set>(proposal: &mut S, sets: &[S], nodes: usize) {
    for node in 0..nodes {
        if !proposal.has(node) {
            let mut larger = proposal.clone();
            larger.put(node);
            if !sets.iter().any(|set| set.has(node) && set.within(&larger)) {
                *proposal = larger;
            }
        }
    }
}

/// Drops nodes as long as the witness remains one, within a small effort: people read witnesses.
fn shrink<S: Set>(mut witness: S, sets: &[S], units: usize) -> S {
    const SHRINKING: u64 = 20_000_000;
    let mut effort = Effort::new(SHRINKING);
    let members: Vec<usize> = witness.members().collect();
    for node in members.into_iter().rev() {
        let mut one = S::empty();
        one.put(node);
        let smaller = witness.minus(&one);
        match emptying(&smaller, sets, units, &mut effort) {
            Ok(None) => witness = smaller,
            Ok(Some(_)) => {}
            Err(_) => break,
        }
    }
    witness
}
