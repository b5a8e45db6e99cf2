//! Sections 4.1 and 4.2: the definition, and families that meet it.

use quorate_quorum::catalog::uniform_size;
use quorate_quorum::{Effort, Reach, build, largest_k};

use crate::brute::{
    antichains, any_distinct_meet, any_meet, arbiters, dominates, explicit, family, is_arbiter,
    is_k_coterie, is_minimal, listed, masks, survives,
};
use crate::{Found, Pace, Tally};

crate::registered![
    coteries_cannot,
    arbiters_by_definition,
    one_unit_is_a_coterie,
    good_families_are_reliable_and_fair,
    singleton_is_an_arbiter,
    singleton_is_a_server,
    uniform_is_a_proper_subset,
    uniform_is_an_arbiter,
    uniform_quorums_share_members,
    uniform_for_one_unit,
];

fn coteries_cannot(_: Pace) -> Found {
    let (mut printed, mut k_coteries) = (Tally::new(), Tally::new());
    for nodes in 1..=4 {
        for quorums in antichains(nodes) {
            for units in 2..=4 {
                let meets = any_meet(quorums, units + 1);
                if any_meet(quorums, 2) {
                    printed.case(!meets, || {
                        format!("{} is one and meets it, k={units}", family(quorums))
                    });
                }
                if is_k_coterie(quorums, units) {
                    k_coteries.case(!meets, || family(quorums));
                }
            }
        }
    }
    Found::all(&printed, "coteries and k in 2..4, n<=4")
        .and(format!("For k-coteries it is true: {}.", k_coteries.words("of them, k>=2")))
}

fn arbiters_by_definition(pace: Pace) -> Found {
    let (mut printed, mut corrected) = (Tally::new(), Tally::new());
    for nodes in 1..=pace.pick(4, 5) {
        for quorums in antichains(nodes) {
            let reach = largest_k(&explicit(nodes, quorums), &mut Effort::default());
            let reach = reach.expect("small");
            for units in 1..=3usize {
                // What it must give: no choice of quorums by up to k+1 claims is apart.
                let safe = (1..=units + 1).all(|count| any_meet(quorums, count));
                let name = || format!("k={units}: {}", family(quorums));
                printed.case(any_distinct_meet(quorums, units + 1) == safe, name);
                corrected.case(reach.covers(units) == safe, name);
            }
        }
    }
    Found::corrected(
        &printed,
        "antichains and k, if k+1 quorums must differ",
        &corrected,
        "antichains and k, repetition allowed, the library's search against all choices",
    )
}

fn one_unit_is_a_coterie(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=4 {
        for quorums in antichains(nodes) {
            let coterie = quorums.iter().all(|a| quorums.iter().all(|b| a & b != 0));
            cases.case(is_arbiter(quorums, 1) == (coterie && is_minimal(quorums)), || {
                family(quorums)
            });
        }
    }
    Found::all(&cases, "antichains, n<=4")
}

fn good_families_are_reliable_and_fair(_: Pace) -> Found {
    let mut alive = Tally::new();
    for nodes in 1..=4 {
        for units in 1..=2 {
            let all = arbiters(nodes, units);
            for worse in &all {
                for better in all.iter().filter(|better| dominates(better, worse)) {
                    let more =
                        (0..1u32 << nodes).all(|s| survives(better, s) || !survives(worse, s));
                    alive.case(more, || family(worse));
                }
            }
        }
    }
    // Equal efforts do not mean the best load: two grids beside a better strategy.
    let mut gaps = Tally::new();
    for nodes in 3..=5 {
        for quorums in arbiters(nodes, 1) {
            let ours = explicit(nodes, quorums);
            let Some(symmetric) = ours.symmetric() else { continue };
            let even = symmetric.size as f64 / nodes as f64;
            let best = quorate_quorum::load(&ours).expect("small").high;
            gaps.case(best >= even - 1e-9, || {
                format!("{}: {best:.3} < {even:.3}", family(quorums))
            });
        }
    }
    let skewed = explicit(3, &[0b011, 0b101]);
    let unfair = skewed.symmetric().is_none();
    Found::corrected_if(
        unfair,
        &alive,
        format!(
            "Reliable means: not less alive than what they dominate ({}); a dominated family of \
             another kind may be more available. Fair means: even under a uniform choice, which is \
             then also the best load ({}).",
            alive.words("pairs, n<=4, k<=2"),
            gaps.words("symmetric coteries, n<=5")
        ),
    )
}

fn singleton_is_an_arbiter(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=5 {
        for units in 1..=5 {
            let family = masks(&listed("singleton", nodes, units));
            cases.case(is_arbiter(&family, units), || format!("n={nodes} k={units}"));
        }
    }
    let every = build("singleton", Some(1000), 1).expect("a family").rule.reach();
    Found::all(&cases, "n<=5, k<=5").only_if(every == Some(Reach::Every), "By rule: for every k.")
}

fn singleton_is_a_server(_: Pace) -> Found {
    let found = super::problem::central(3, &[2, 2, 1]).explore();
    let alone = masks(&listed("singleton", 3, 3));
    let through = super::problem::through(&alone, 3, 3, &[2, 2, 1]).explore();
    Found::if_so(
        found.states == through.states && found.most == through.most && found.broken.is_none(),
        format!(
            "Claims of 2, 2 and 1 on 3 units: with the singleton family there are {} states, the \
             same number as with one server, and never more than {} units in use.",
            through.states, through.most
        ),
    )
    .by("quorate-lab sim run --protocol arbiter --family singleton --nodes 5 --units 2")
}

fn uniform_is_a_proper_subset(_: Pace) -> Found {
    let (mut printed, mut corrected) = (Tally::new(), Tally::new());
    for units in 1..=5 {
        for nodes in 1..=12 {
            let size = uniform_size(nodes, units);
            let name = || format!("n={nodes} k={units}: all {size} nodes");
            printed.case(size < nodes, name);
            corrected.case(size <= nodes && (size == nodes) == (nodes <= units + 1), name);
        }
    }
    Found::corrected(
        &printed,
        "n<=12, k<=5, as a proper subset",
        &corrected,
        "n and k, as a subset or all, and all exactly if n <= k+1",
    )
}

fn uniform_is_an_arbiter(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for units in 1..=4 {
        for nodes in 1..=pace.pick(7, 9) {
            let family = masks(&listed("uniform", nodes, units));
            cases.case(is_arbiter(&family, units), || format!("n={nodes} k={units}"));
        }
    }
    let mut rules = Tally::new();
    for (nodes, units) in [(100, 3), (10_000, 2), (9_999, 7)] {
        let reach = build("uniform", Some(nodes), units).expect("a family").rule.reach();
        rules.case(reach.is_some_and(|reach| reach.covers(units)), || format!("{nodes}"));
    }
    Found::all(&cases, "uniform families by brute force")
        .only_if(rules.holds(), rules.words("larger ones by rule"))
}

fn uniform_quorums_share_members(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=200i64 {
        for k in 1..=20 {
            let least = nodes - (k + 1) * (nodes - k * nodes / (k + 1) - 1);
            cases.case(least >= 1, || format!("n={nodes} k={k}: {least}"));
        }
    }
    let mut tight = Tally::new();
    for nodes in 3..=7usize {
        let size = nodes / 2 + 1;
        let least = masks(&listed("uniform", nodes, 1));
        let common = least.iter().flat_map(|a| least.iter().map(move |b| (a & b).count_ones()));
        let formula = (nodes - 2 * (nodes - size)) as u32;
        tight.case(common.min() == Some(formula), || format!("n={nodes}"));
    }
    Found::all(&cases, "n<=200, k<=20").only_if(
        tight.holds(),
        format!("Tight for k=1: {}.", tight.words("n in 3..7 by brute force")),
    )
}

fn uniform_for_one_unit(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=9 {
        let same = listed("uniform", nodes, 1) == listed("majority", nodes, 1);
        cases.case(same, || format!("n={nodes}"));
    }
    Found::all(&cases, "n<=9")
}
