//! Section 4.3: domination.

use quorate_quorum::{Domination, Effort, Reach, build, is_witness as witnesses, largest_k};

use super::cubes::EXACT;
use crate::brute::{
    self, arbiters, availability, dominated, dominates, explicit, family, is_arbiter, is_witness,
    listed, masks, meets_any, set, survives,
};
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    domination_by_definition,
    nondominated_protect_best,
    dominating_arbiters_survive_more,
    dominated_iff_there_is_a_set,
    a_set_from_what_dominates,
    what_dominates_from_a_set,
    singleton_is_not_dominated,
    uniform_is_not_dominated,
    blocks_miss_any_small_set,
    odd_majorities_again,
    every_cube_is_dominated,
    the_square_of_four,
    the_square_is_uniform,
    the_cube_of_eight,
];

fn each_arbiter(most: usize, mut each: impl FnMut(usize, usize, &[&'static Vec<u32>])) {
    for nodes in 1..=most {
        for units in 1..=3 {
            each(nodes, units, &arbiters(nodes, units));
        }
    }
}

fn domination_by_definition(_: Pace) -> Found {
    let mut cases = Tally::new();
    each_arbiter(4, |nodes, units, all| {
        for quorums in all {
            let defined = all.iter().any(|other| dominates(other, quorums));
            let ours = dominated(&explicit(nodes, quorums), units);
            cases.case(ours == defined, || format!("k={units}: {}", family(quorums)));
        }
    });
    Found::all(&cases, "k-arbiters, n<=4, k<=3, the library against the definition")
}

fn nondominated_protect_best(_: Pace) -> Found {
    let mut alive = Tally::new();
    each_arbiter(4, |nodes, units, all| {
        for worse in all {
            for better in all.iter().filter(|better| dominates(better, worse)) {
                let more = (0..1u32 << nodes).all(|s| survives(better, s) || !survives(worse, s));
                alive.case(more, || format!("k={units}: {}", family(worse)));
            }
        }
    });
    // Across families that do not dominate each other the order may be any.
    let single = masks(&listed("singleton", 5, 1));
    let (even, one) = (masks(&listed("majority", 4, 1)), masks(&listed("singleton", 4, 1)));
    let nondominated = availability(4, &one, 0.9);
    let dominated_one = availability(4, &even, 0.9);
    let refuted = dominated_one > nondominated && dominated(&explicit(4, &even), 1);
    Found::corrected_if(
        refuted && !single.is_empty(),
        &alive,
        format!(
            "Better than what they dominate: {}. Not better than everything: the singleton of four \
             is not dominated and available with {nondominated:.4} at 0.9, the majority of four is \
             dominated and available with {dominated_one:.4}.",
            alive.words("pairs, n<=4, k<=3, in all alive sets")
        ),
    )
}

fn dominating_arbiters_survive_more(_: Pace) -> Found {
    let (mut printed, mut alive) = (Tally::new(), Tally::new());
    each_arbiter(4, |nodes, _, all| {
        for worse in all {
            for better in all.iter().filter(|better| dominates(better, worse)) {
                let more = (0..1u32 << nodes).all(|s| survives(better, s) || !survives(worse, s));
                alive.case(more, || family(worse));
                // As printed, D is compared with itself, which says nothing of C.
                let says = (0..1u32 << nodes).any(|s| survives(better, s) != survives(worse, s));
                printed.case(!says, || format!("{} and {}", family(better), family(worse)));
            }
        }
    });
    Found::corrected(
        &printed,
        "pairs, n<=4, k<=3, in which D is all that is compared",
        &alive,
        "pairs: D is alive wherever C is",
    )
}

fn dominated_iff_there_is_a_set(_: Pace) -> Found {
    let (mut printed, mut corrected) = (Tally::new(), Tally::new());
    each_arbiter(4, |nodes, units, all| {
        for quorums in all {
            let truth = all.iter().any(|other| dominates(other, quorums));
            let sets = || 1..1u32 << nodes;
            let outside = |h: u32| quorums.iter().all(|q| q & h != h);
            let as_printed = sets().any(|h| outside(h) && meets_any(quorums, units, h));
            let name = || format!("n={nodes} k={units}: {}", family(quorums));
            printed.case(as_printed == truth, name);
            corrected.case(sets().any(|h| is_witness(quorums, units, h)) == truth, name);
        }
    });
    Found::corrected(
        &printed,
        "k-arbiters, n<=4, k<=3, with H inside no quorum",
        &corrected,
        "k-arbiters, with no quorum inside H and repetition allowed",
    )
}

fn a_set_from_what_dominates(_: Pace) -> Found {
    let mut cases = Tally::new();
    each_arbiter(4, |_, units, all| {
        for c in all {
            for d in all.iter().filter(|d| dominates(d, c)) {
                let superset = c.iter().all(|q| d.contains(q));
                let inside = |h: &&u32| c.iter().any(|q| *h & q == **h && *h != q);
                let found = if superset {
                    d.iter().filter(|h| !c.contains(h)).all(|h| is_witness(c, units, *h))
                } else {
                    d.iter().filter(inside).all(|h| is_witness(c, units, *h))
                        && d.iter().any(|h| inside(&h))
                };
                cases.case(found, || format!("k={units}: {} by {}", family(c), family(d)));
            }
        }
    });
    Found::all(&cases, "pairs of a k-arbiter and one that dominates it, n<=4, k<=3")
}

fn what_dominates_from_a_set(_: Pace) -> Found {
    let mut cases = Tally::new();
    each_arbiter(4, |nodes, units, all| {
        for c in all {
            for h in (1..1u32 << nodes).filter(|h| is_witness(c, units, *h)) {
                let mut d: Vec<u32> = c.iter().copied().filter(|q| q & h != h).collect();
                d.push(h);
                let better = is_arbiter(&d, units) && dominates(&d, c);
                cases.case(better, || format!("k={units}: {} with {}", family(c), set(h)));
            }
        }
    });
    Found::all(&cases, "sets H of all k-arbiters, n<=4, k<=3: the family made from it dominates")
}

fn singleton_is_not_dominated(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=6 {
        for units in 1..=4 {
            let family = listed("singleton", nodes, units);
            cases.case(!dominated(&family, units), || format!("n={nodes} k={units}"));
        }
    }
    Found::all(&cases, "singletons, n<=6, k<=4")
}

fn uniform_is_not_dominated(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut others = Tally::new();
    for units in 1..=4usize {
        for nodes in 1..=pace.pick(7, 9) {
            let found = dominated(&listed("uniform", nodes, units), units);
            let name = || format!("n={nodes} k={units}");
            if nodes % (units + 1) == 1 {
                cases.case(!found, name);
            } else {
                others.case(found, name);
            }
        }
    }
    Found::all(&cases, "uniform families with n=c(k+1)+1")
        .and(format!("And only these: {}.", others.words("others are dominated")))
}

fn blocks_miss_any_small_set(_: Pace) -> Found {
    let mut cases = Tally::new();
    for c in 1..=4u32 {
        for k in 1..=4u32 {
            let nodes = c * (k + 1) + 1;
            let all = (1u32 << nodes) - 1;
            let block = |i: u32| ((1u32 << c) - 1) << (i * c);
            let common = (0..k).fold(all, |common, i| common & !block(i));
            for size in 0..=k * c {
                let h = (1u32 << size) - 1;
                cases.case(h & common == 0, || format!("c={c} k={k} |H|={size}"));
            }
        }
    }
    Found::all(&cases, "sets of at most kc processes, c<=4, k<=4")
}

fn odd_majorities_again(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=10 {
        let found = dominated(&listed("uniform", nodes, 1), 1);
        cases.case(found == (nodes % 2 == 0), || format!("n={nodes}"));
    }
    Found::all(&cases, "majorities, n<=10: non-dominated iff n is odd")
}

fn every_cube_is_dominated(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut grid = Grid::new(&["side", "k", "n", "size of the witness"]);
    for (side, units) in EXACT {
        let nodes = side.pow(units as u32 + 1);
        let list = listed("cube", nodes, units);
        // One hyperplane: all points whose first coordinate is 0.
        let plane = quorate_quorum::nodes_of((0..nodes).filter(|i| i % side == 0));
        let one = witnesses(&list, units, &plane, &mut Effort::default()) == Ok(true);
        cases.case(one, || format!("a={side} k={units}"));
        grid.row(&[&side, &units, &nodes, &plane.len()]);
    }
    Found::all(&cases, "cubes up to 81 nodes: one hyperplane is a set as in Theorem 4.5")
        .with(grid)
        .by("quorate-lab quorum report --family cube --nodes 27 --units 2")
}

fn the_square_of_four(_: Pace) -> Found {
    let square = masks(&listed("grid", 4, 1));
    let printed = [0b0111u32, 0b1001, 0b1110];
    let better = is_arbiter(&printed, 1) && dominates(&printed, &square);
    let again = dominated(&explicit(4, &printed), 1);
    Found::if_so(better, format!("{} dominates {}.", family(&printed), family(&square)))
        .only_if(again, "It is itself dominated, so not yet the best.")
}

fn the_square_is_uniform(_: Pace) -> Found {
    let (mut grid, mut uniform) = (masks(&listed("grid", 4, 1)), masks(&listed("uniform", 4, 1)));
    grid.sort_unstable();
    uniform.sort_unstable();
    let converse = {
        let mut cases = Tally::new();
        for units in 1..=4usize {
            for nodes in 1..=7 {
                let found = dominated(&listed("uniform", nodes, units), units);
                cases.case(found == (nodes % (units + 1) != 1), || format!("{nodes},{units}"));
            }
        }
        cases
    };
    // The theorem speaks of n=c(k+1)+1 only: 4 is not of that form, so it says nothing.
    let silent = 4 % 2 != 1;
    Found::corrected_if(
        silent && grid == uniform,
        &converse,
        format!(
            "The two families are equal. Theorem 4.6 has one direction only and says nothing for \
             n=4; the converse holds: {}.",
            converse.words("n<=7, k<=4")
        ),
    )
}

fn the_cube_of_eight(_: Pace) -> Found {
    let cube = listed("cube", 8, 2);
    let found = quorate_quorum::domination(&cube, 2, &mut Effort::default()).expect("small");
    let witness = found.witness().cloned();
    let reach = largest_k(&cube, &mut Effort::default());
    let sure = witness.as_ref().is_some_and(|witness| {
        let mask: u32 = witness.iter().map(|node| 1 << node.0).sum();
        is_witness(&masks(&cube), 2, mask)
    });
    let closed = build("cube", Some(8), 2).expect("a cube").rule.domination(2);
    Found::if_so(
        sure && closed.is_some_and(|found| found != Domination::Nondominated),
        format!("A set of {} nodes shows it.", witness.map_or(0, |witness| witness.len())),
    )
    .only_if(reach == Ok(Reach::UpTo(6)), "It is even a 6-arbiter.")
    .and(format!("Crashes survived: {}.", brute::crashes_survived(8, &masks(&cube))))
}
