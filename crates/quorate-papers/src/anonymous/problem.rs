//! Sections 1 and 2: k-coteries, the system, and the problem.

use quorate_quorum::sharing::{Structure, most_holders};
use quorate_quorum::{Effort, k_coterie};

use super::{chosen, holders, shown, structure, structures, union};
use crate::brute::{antichains, explicit, family, is_k_coterie, is_minimal, packings};
use crate::handlers::{Claim, Queue, Scheme};
use crate::{Found, Pace, Tally};

crate::registered![
    different_sets_of_units,
    intersection_of_different_quorums,
    minimality_of_different_quorums,
    the_model_of_the_paper,
    order_on_links,
    structures_without_empty_sets,
    only_names_differ,
    three_states,
    accessed_units_are_few,
    accessed_units_can_be_all,
    units_as_a_set,
    extended_to_sets,
    all_alike_is_k_exclusion,
    groups_by_equal_sets,
];

fn different_sets_of_units(_: Pace) -> Found {
    let (mut alike, mut differ) = (0, 0);
    for alphas in structures(2, 3) {
        if alphas.iter().all(|alpha| *alpha == alphas[0]) { alike += 1 } else { differ += 1 }
    }
    Found::if_so(
        differ > alike,
        format!(
            "Of the structures of 3 processes on 2 units {differ} have processes that may use \
             different units; earlier models have the {alike} others."
        ),
    )
}

fn intersection_of_different_quorums(_: Pace) -> Found {
    // If a quorum may be compared with itself, the condition is always true.
    let (mut literal, mut right) = (Tally::new(), Tally::new());
    for nodes in 1..=4 {
        for quorums in antichains(nodes) {
            for k in 1..=3 {
                let apart = !packings(quorums, k + 1).is_empty();
                let name = || format!("k={k}: {}", family(quorums));
                // Literally i and j may be equal: q_i meets itself.
                let accepts = quorums.iter().all(|q| *q != 0);
                literal.case(!(accepts && apart), name);
                let ours = k_coterie(&explicit(nodes, quorums), k, &mut Effort::default());
                right.case(ours.expect("small").too_many.is_some() == apart, name);
            }
        }
    }
    Found::corrected(
        &literal,
        "families and k, n<=4, if q_i and q_j may be the same quorum (k+1 disjoint ones pass)",
        &right,
        "families and k, two different ones, the library against brute force",
    )
}

fn minimality_of_different_quorums(_: Pace) -> Found {
    let (mut literal, mut right) = (Tally::new(), Tally::new());
    for nodes in 1..=4 {
        for quorums in antichains(nodes) {
            let name = || family(quorums);
            // Literally q1 and q2 may be equal, and each contains itself.
            literal.case(quorums.iter().all(|a| quorums.iter().all(|b| a & b != *a)), name);
            let ours = explicit(nodes, quorums).inclusion().is_none();
            right.case(ours && is_minimal(quorums), name);
        }
    }
    Found::corrected(
        &literal,
        "antichains, n<=4, if both may be the same quorum",
        &right,
        "antichains, different ones",
    )
}

fn the_model_of_the_paper(_: Pace) -> Found {
    let claims = vec![Claim::new(0, 1, 0b011), Claim::new(1, 1, 0b110)];
    let world = Scheme { queue: Queue::Arrival, ..Scheme::new(1, 3, claims) };
    let found = world.explore();
    Found::if_so(
        found.states > 50,
        format!(
            "The model in which protocol P is explored: processes that know each other, a link \
             between any two, no memory in common, no coordinator, and nothing fails. Two \
             processes with quorums of two have {} states.",
            found.states
        ),
    )
}

fn order_on_links(_: Pace) -> Found {
    let explore = |fifo| {
        let claims =
            vec![Claim::new(0, 1, 0b01), Claim::new(0, 1, 0b01).after(0), Claim::new(1, 1, 0b01)];
        let world = Scheme::new(1, 1, claims);
        Scheme { queue: Queue::Arrival, fifo, ..world }.explore()
    };
    let (fifo, any) = (explore(true), explore(false));
    Found::if_so(
        fifo.most == 1 && any.most == 1 && any.deadlock.is_none(),
        format!(
            "Kept in the model ({} states). P does not need it: if messages may overtake each \
             other, nothing breaks either ({} states), as an arbiter knows to whom it said OK.",
            fifo.states, any.states
        ),
    )
}

fn structures_without_empty_sets(_: Pace) -> Found {
    let refused = Structure::new(vec!["r1".into()], vec![("u1".into(), Vec::new())]).is_err();
    let mut none = Tally::new();
    for nodes in 1..=4 {
        for quorums in antichains(nodes) {
            none.case(!is_k_coterie(quorums, 0), || family(quorums));
        }
    }
    Found::corrected_if(
        refused,
        &none,
        format!(
            "alpha(u) must not be empty: there is no 0-coterie ({}), so such a process could have \
             no quorums. The library refuses it.",
            none.words("families tried, n<=4")
        ),
    )
}

fn only_names_differ(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let units = pace.pick(2, 3);
    for alphas in structures(units, 3) {
        // Another order of the units changes no count.
        let turn = |alpha: &u32| {
            (0..units).filter(|i| alpha >> i & 1 == 1).map(|i| 1 << ((i + 1) % units)).sum()
        };
        let turned: Vec<u32> = alphas.iter().map(turn).collect();
        for mask in 1..8 {
            let same = holders(&chosen(&alphas, mask)) == holders(&chosen(&turned, mask));
            cases.case(same, || shown(&alphas));
        }
    }
    Found::all(&cases, "sets of processes: renamed units can be held by as many")
}

fn three_states(_: Pace) -> Found {
    let found = Scheme::new(1, 1, vec![Claim::new(0, 1, 1)]).explore();
    let steps: Vec<&String> = found.last.iter().filter(|step| step.starts_with("r0")).collect();
    let shown: Vec<&str> = steps.iter().map(|step| step.as_str()).collect();
    Found::if_so(
        shown == ["r0 asks for 1", "r0 enters", "r0 leaves"],
        format!("A process of the model: {}.", shown.join(", then ")),
    )
}

/// Every way to give each of the processes one of its units, or none: not always different ones.
fn placements(alphas: &[u32]) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for alpha in alphas {
        let options = std::iter::once(0).chain((0..8).map(|i| 1 << i).filter(|u| alpha & u != 0));
        let options: Vec<u32> = options.collect();
        all = all
            .iter()
            .flat_map(|one: &Vec<u32>| {
                options.iter().map(move |unit| one.iter().copied().chain([*unit]).collect())
            })
            .collect();
    }
    all
}

fn accessed_units_are_few(_: Pace) -> Found {
    let (mut literal, mut counted) = (Tally::new(), Tally::new());
    for alphas in structures(2, 3) {
        for placed in placements(&alphas) {
            let subsets = || 1..1u32 << alphas.len();
            let disjoint = subsets().all(|v| {
                let units = chosen(&placed, v);
                union(&units).count_ones() == units.iter().map(|u| u.count_ones()).sum::<u32>()
            });
            let as_sets = subsets().all(|v| {
                union(&chosen(&placed, v)).count_ones() <= union(&chosen(&alphas, v)).count_ones()
            });
            let as_counts = subsets().all(|v| {
                let used: u32 = chosen(&placed, v).iter().map(|u| u.count_ones()).sum();
                used <= union(&chosen(&alphas, v)).count_ones()
            });
            let name = || format!("{}: {} are used", shown(&alphas), shown(&placed));
            // Literally every placement passes, also two holders of one unit.
            literal.case(as_sets == disjoint, name);
            // As counts it says that units could be handed out to those who hold one.
            let who: u32 = (0..placed.len()).filter(|i| placed[*i] != 0).map(|i| 1 << i).sum();
            let possible = holders(&chosen(&alphas, who)) == who.count_ones();
            counted.case(as_counts == possible, name);
        }
    }
    Found::corrected(
        &literal,
        "placements of 2 units on 3 processes, if it were to forbid two holders of one unit",
        &counted,
        "placements, with units counted for each process: it holds iff the units can be shared out",
    )
}

fn accessed_units_can_be_all(pace: Pace) -> Found {
    let (mut literal, mut right) = (Tally::new(), Tally::new());
    for units in 1..=pace.pick(2, 3) {
        for alphas in structures(units, 3) {
            let ours = structure(units, &alphas);
            for v in 1u32..8 {
                let set = chosen(&alphas, v);
                let most = holders(&set);
                let name = || format!("alpha {}: {most} can hold", shown(&set));
                literal.case(most == union(&set).count_ones(), name);
                let members: Vec<usize> = (0..3).filter(|i| v >> i & 1 == 1).collect();
                right.case(most_holders(&ours, &members) == most, name);
            }
        }
    }
    Found::corrected(
        &literal,
        "sets of processes that can use all their units at once, one each",
        &right,
        "sets, with the largest matching instead, the library against trying",
    )
}

fn units_as_a_set(_: Pace) -> Found {
    let mut clash = 0u64;
    let mut right = Tally::new();
    for alphas in structures(2, 2) {
        for placed in placements(&alphas) {
            let both = placed[0] != 0 && placed[0] == placed[1];
            clash += u64::from(both);
            let inside = placed.iter().zip(&alphas).all(|(unit, alpha)| unit & alpha == *unit);
            right.case(inside, || shown(&placed));
        }
    }
    Found::corrected_if(
        clash > 0,
        &right,
        format!(
            "Sets inside alpha may coincide: {clash} placements of 2 units on 2 processes have two \
             holders of one unit. Disjointness has to be said. {}.",
            right.words("placements lie inside alpha")
        ),
    )
}

fn extended_to_sets(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for alphas in structures(pace.pick(2, 3), 3) {
        let ours = structure(3, &alphas);
        for s in ours.group_sets() {
            let groups = ours.groups().iter().enumerate().filter(|(i, _)| s >> i & 1 == 1);
            let joined = groups.fold(0, |all, (_, group)| all | group.alpha);
            let same = ours.union(s) == joined && ours.k(s) == joined.count_ones();
            cases.case(same, || shown(&alphas));
        }
    }
    Found::all(&cases, "sets of groups, the library against the union")
}

fn all_alike_is_k_exclusion(_: Pace) -> Found {
    let mut cases = Tally::new();
    for units in 1..=4u32 {
        let all = (1 << units) - 1;
        let ours = structure(units, &[all; 5]);
        cases.case(ours.groups().len() == 1 && ours.k(1) == units, || format!("k={units}"));
        // Counts allow exactly k of the five processes.
        cases.case(holders(&[all; 5]) == units, || format!("k={units}"));
    }
    Found::all(&cases, "facts about pools that all may use: one group, exactly k holders")
}

fn groups_by_equal_sets(_: Pace) -> Found {
    let mut cases = Tally::new();
    for alphas in structures(2, 3) {
        let mut different = alphas.clone();
        different.dedup();
        let ours = structure(2, &alphas);
        cases.case(ours.groups().len() == different.len(), || shown(&alphas));
    }
    Found::all(&cases, "structures of 3 processes on 2 units")
}
