//! RR-2523 ("k-Arbiter: a safe and general scheme for h-out of-k mutual exclusion problems", 1995),
//! item by item: every definition, property, theorem, formula and example about quorums, named by
//! its number. What the paper gets wrong is in `errata.rs`; its algorithm (section 3.1) belongs to
//! quorate-protocols.

mod slow;

use quorate_core::NodeSet;
use quorate_quorum::catalog::{k_majority_is_k_coterie, uniform_size};
use quorate_quorum::{
    Answers, Domination, Effort, Explicit, Natural, Ratio, Reach, bounds, build, domination,
    fewest_apart, is_witness, k_coterie, nodes_of,
};
use slow::{explicit, listed, masks};

fn dominated(family: &Explicit, units: usize) -> bool {
    domination(family, units, &mut Effort::default()).expect("small") != Domination::Nondominated
}

#[test]
fn definition_2_1_a_quorum_is_a_non_empty_subset_of_the_nodes() {
    assert!(Explicit::from_lists(3, &[vec![0, 3]]).is_err(), "not a subset");
    let empty = Explicit::from_lists(3, &[vec![]]).expect("let in, to be judged");
    let judged = k_coterie(&empty, 1, &mut Effort::default()).expect("small");
    assert!(judged.empty);
    assert!(!judged.holds());
}

#[test]
fn definition_2_2_a_coterie_intersects_pairwise_and_is_minimal() {
    for family in slow::antichains(4) {
        let pairwise = slow::any_meet(&family, 2);
        let ours = fewest_apart(&explicit(4, &family), 2, &mut Effort::default()).expect("small");
        assert_eq!(ours.is_none(), pairwise, "{family:?}");
    }
}

#[test]
fn section_2_3_examples_are_coteries() {
    for (spec, nodes) in [
        ("singleton", 4),
        ("majority", 5),
        ("majority", 6),
        ("plane", 7),
        ("plane", 13),
        ("grid", 9),
    ] {
        let family = listed(spec, nodes, 1);
        assert!(slow::is_arbiter(&masks(&family), 1), "{spec} {nodes}");
    }
    // Majority: all subsets of floor(n/2)+1.
    for nodes in 1..=9 {
        let family = listed("majority", nodes, 1);
        let expected = slow::subsets(nodes).filter(|s| s.count_ones() as usize == nodes / 2 + 1);
        let mut ours = masks(&family);
        ours.sort_unstable();
        assert_eq!(ours, expected.collect::<Vec<_>>());
    }
}

#[test]
fn definition_2_3_domination_between_coteries() {
    let all = slow::arbiters(4, 1);
    for family in &all {
        let by_definition = all.iter().any(|other| slow::dominates(other, family));
        assert_eq!(dominated(&explicit(4, family), 1), by_definition, "{family:?}");
    }
}

#[test]
fn section_2_3_1_universe_is_dominated_by_any_singleton_and_odd_majorities_are_not() {
    for nodes in 2..=6 {
        let universe = masks(&listed("universe", nodes, 1));
        for node in 0..nodes {
            assert!(slow::dominates(&[1 << node], &universe));
        }
        assert!(dominated(&listed("universe", nodes, 1), 1));
    }
    for nodes in 1..=11 {
        assert_eq!(dominated(&listed("majority", nodes, 1), 1), nodes % 2 == 0, "{nodes}");
    }
}

#[test]
fn definition_2_4_and_its_examples_of_symmetric_coteries() {
    for nodes in 1..=9 {
        let universe = listed("universe", nodes, 1).symmetric().expect("symmetric");
        assert_eq!((universe.effort, universe.size), (Natural::one(), nodes));
        let majority = listed("majority", nodes, 1).symmetric().expect("symmetric");
        assert_eq!(majority.effort, Natural::binomial(nodes - 1, nodes / 2));
        assert_eq!(majority.size, nodes / 2 + 1);
    }
    // Planes have effort and size of the order of sqrt(n): q+1 with n = q^2+q+1.
    for (order, nodes) in [(2, 7), (3, 13), (4, 21), (5, 31), (7, 57), (8, 73), (9, 91)] {
        let plane = listed("plane", nodes, 1).symmetric().expect("symmetric");
        assert_eq!((plane.effort, plane.size), (Natural::from(order + 1), order + 1));
    }
}

#[test]
fn definition_2_5_k_coteries() {
    for family in slow::antichains(4) {
        for units in 1..=4 {
            let ours = k_coterie(&explicit(4, &family), units, &mut Effort::default());
            let ours = ours.expect("small");
            let ours = [ours.stuck.is_none(), ours.too_many.is_none(), ours.inclusion.is_none()];
            assert_eq!(ours, slow::k_coterie(&family, units), "{family:?} {units}");
        }
    }
}

#[test]
fn section_2_4_k_singleton_is_a_k_coterie_and_k_majority_is_not_always() {
    let holds = |spec: &str, nodes: usize, units: usize| {
        k_coterie(&listed(spec, nodes, units), units, &mut Effort::default())
            .expect("small")
            .holds()
    };
    for units in 1..=5 {
        assert!(holds("k-singleton", 6, units));
    }
    for nodes in 1..=8 {
        for units in 1..=nodes {
            let valid = k_majority_is_k_coterie(nodes, units);
            assert_eq!(holds("k-majority", nodes, units), valid, "n={nodes} k={units}");
        }
    }
    for (nodes, units) in [(3, 2), (4, 3), (5, 3), (8, 3), (5, 4), (6, 4), (7, 4)] {
        assert!(!k_majority_is_k_coterie(nodes, units), "n={nodes} k={units}");
    }
}

/// Who may be in the critical section together, by the rule of section 3.1: every arbiter that
/// several of them share has added up their units.
fn admits_too_much(quorums: &[u32], units: usize) -> bool {
    let claims = |code: usize| -> Vec<usize> {
        (0..quorums.len()).map(|i| code / (units + 1).pow(i as u32) % (units + 1)).collect()
    };
    (0..(units + 1).pow(quorums.len() as u32)).map(claims).any(|claims| {
        let at = |arbiter: usize| -> usize {
            let asked = |i: &usize| quorums[*i] >> arbiter & 1 == 1;
            (0..quorums.len()).filter(asked).map(|i| claims[i]).sum()
        };
        claims.iter().sum::<usize>() > units && (0..8).all(|arbiter| at(arbiter) <= units)
    })
}

#[test]
fn theorem_3_1_safe_iff_any_set_of_at_most_k_plus_1_selected_quorums_meets() {
    let mut checked = 0;
    for nodes in 1..=3usize {
        let sets: Vec<u32> = slow::subsets(nodes).skip(1).collect();
        for code in 0..sets.len().pow(nodes as u32) {
            let choice = |i: usize| sets[code / sets.len().pow(i as u32) % sets.len()];
            let chosen: Vec<u32> = (0..nodes).map(choice).collect();
            for units in 1..=3 {
                let meets = slow::subsets(nodes)
                    .filter(|who| (1..=units + 1).contains(&(who.count_ones() as usize)))
                    .all(|who| {
                        let of = (0..nodes).filter(|i| who >> i & 1 == 1).map(|i| chosen[i]);
                        of.fold(u32::MAX, |common, quorum| common & quorum) != 0
                    });
                assert_eq!(!admits_too_much(&chosen, units), meets, "{chosen:?} k={units}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 3 * (1 + 9 + 343));
}

#[test]
fn definition_4_1_k_arbiters_and_the_largest_k() {
    for family in slow::antichains(4) {
        let ours = explicit(4, &family);
        let reach = quorate_quorum::largest_k(&ours, &mut Effort::default()).expect("small");
        for units in 1..=5 {
            assert_eq!(
                reach.covers(units),
                slow::any_meet(&family, units + 1),
                "{family:?} {units}"
            );
        }
        assert_eq!(reach == Reach::Every, !ours.common().is_empty());
    }
}

#[test]
fn section_4_1_for_one_unit_a_k_arbiter_is_a_coterie_and_k_arbiters_are_nested() {
    for family in slow::antichains(4) {
        let coterie = slow::any_meet(&family, 2);
        assert_eq!(slow::is_arbiter(&family, 1), coterie);
        for units in 2..=4 {
            let arbiter = slow::is_arbiter(&family, units);
            assert!(!arbiter || slow::is_arbiter(&family, units - 1), "{family:?}");
        }
    }
}

#[test]
fn property_4_1_a_singleton_is_a_k_arbiter_for_every_k() {
    for nodes in [1, 2, 5, 1000] {
        let family = build("singleton", Some(nodes), 1).expect("a family");
        assert_eq!(family.rule.reach(), Some(Reach::Every));
        assert_eq!(family.rule.domination(3), Some(Domination::Nondominated));
    }
}

#[test]
fn property_4_2_a_uniform_family_is_a_k_arbiter() {
    for nodes in 1..=6 {
        for units in 1..=4 {
            let family = listed("uniform", nodes, units);
            assert_eq!(uniform_size(nodes, units), units * nodes / (units + 1) + 1);
            assert!(slow::is_arbiter(&masks(&family), units), "n={nodes} k={units}");
        }
    }
    // Beyond enumeration: the rule says so for any size.
    for (nodes, units) in [(100, 3), (10_000, 2), (9_999, 7)] {
        let family = build("uniform", Some(nodes), units).expect("a family");
        assert!(family.rule.reach().expect("known").covers(units));
    }
}

#[test]
fn section_4_2_2_for_one_unit_uniform_is_the_majority() {
    for nodes in 1..=9 {
        assert_eq!(listed("uniform", nodes, 1), listed("majority", nodes, 1));
    }
}

#[test]
fn section_4_2_3_size_of_a_cube_quorum() {
    for (side, units) in [(2usize, 1usize), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2), (2, 3), (3, 3)]
    {
        let nodes = side.pow(units as u32 + 1);
        let sizes = build("cube", Some(nodes), units).expect("a family").rule.sizes();
        let size = nodes - (side - 1).pow(units as u32 + 1);
        assert_eq!(sizes.expect("known").into_keys().collect::<Vec<_>>(), [size]);
        assert!(size <= (units + 1) * side.pow(units as u32));
    }
}

#[test]
fn property_4_3_an_exact_cube_is_a_k_arbiter() {
    for (nodes, units) in [(4, 1), (9, 1), (16, 1), (8, 2), (27, 2), (16, 3)] {
        let family = listed("cube", nodes, units);
        let apart = fewest_apart(&family, units + 1, &mut Effort::default()).expect("small");
        assert_eq!(apart, None, "n={nodes} k={units}");
        assert_eq!(family.inclusion(), None);
        if nodes <= 16 && units <= 2 {
            assert!(slow::is_arbiter(&masks(&family), units));
        }
    }
    // For one unit it is the square grid.
    assert_eq!(listed("cube", 9, 1), listed("grid", 9, 1));
}

#[test]
fn theorem_4_4_the_general_cube_intersects_and_is_an_arbiter_once_minimalised() {
    for units in 1..=3 {
        for nodes in 1..=30 {
            let raw = listed("cube-as-printed", nodes, units);
            assert_eq!(raw.quorums().len(), nodes, "one quorum per node");
            let apart = fewest_apart(&raw, units + 1, &mut Effort::default()).expect("small");
            assert_eq!(apart, None, "n={nodes} k={units}");
            let mut minimal = listed("cube", nodes, units).quorums().to_vec();
            let mut expected = raw.minimalised().quorums().to_vec();
            minimal.sort();
            expected.sort();
            assert_eq!(minimal, expected, "n={nodes} k={units}");
        }
    }
}

#[test]
fn definition_4_2_and_theorem_4_5_agree_for_every_k_arbiter_on_four_nodes() {
    for nodes in 1..=4 {
        for units in 1..=3 {
            let all = slow::arbiters(nodes, units);
            for family in &all {
                let by_definition = all.iter().any(|other| slow::dominates(other, family));
                let found = explicit(nodes, family);
                let found = domination(&found, units, &mut Effort::default()).expect("small");
                assert_eq!(
                    found != Domination::Nondominated,
                    by_definition,
                    "{family:?} k={units}"
                );
                assert_eq!(slow::has_witness(nodes, family, units), by_definition);
            }
        }
    }
}

#[test]
fn theorem_4_5_the_construction_of_its_proof_dominates() {
    for units in 1..=2 {
        for family in slow::arbiters(4, units) {
            let ours = explicit(4, &family);
            let found = domination(&ours, units, &mut Effort::default()).expect("small");
            let Some(witness) = found.witness() else { continue };
            let better = masks(&ours.dominated_by(witness));
            assert!(slow::is_arbiter(&better, units));
            assert!(slow::dominates(&better, &family));
        }
    }
}

#[test]
fn section_4_3_a_dominating_arbiter_survives_whatever_the_dominated_one_survives() {
    let all = slow::arbiters(4, 1);
    for worse in &all {
        for better in all.iter().filter(|better| slow::dominates(better, worse)) {
            for alive in slow::subsets(4) {
                assert!(slow::survives(better, alive) || !slow::survives(worse, alive));
            }
        }
    }
}

#[test]
fn theorem_4_6_uniform_with_n_equal_c_times_k_plus_1_plus_1_is_non_dominated() {
    for units in 1..=4 {
        for c in 0..=2 {
            let nodes = c * (units + 1) + 1;
            assert!(!dominated(&listed("uniform", nodes, units), units), "n={nodes} k={units}");
        }
    }
    for (c, units) in [(3_000, 2), (100, 99)] {
        let nodes = c * (units + 1) + 1;
        let family = build("uniform", Some(nodes), units).expect("a family");
        assert_eq!(family.rule.domination(units), Some(Domination::Nondominated));
    }
}

#[test]
fn section_4_3_example_the_square_of_four_and_what_dominates_it() {
    let square = listed("grid", 4, 1);
    let printed = Explicit::from_lists(4, &[vec![0, 1, 2], vec![0, 3], vec![1, 2, 3]]).expect("it");
    assert!(slow::is_arbiter(&masks(&printed), 1));
    assert!(slow::dominates(&masks(&printed), &masks(&square)));
    assert_eq!(square.minimalised(), listed("uniform", 4, 1).minimalised());
}

#[test]
fn section_4_3_the_cube_of_eight_left_to_the_reader_is_dominated() {
    let cube = listed("cube", 8, 2);
    let found = domination(&cube, 2, &mut Effort::default()).expect("small");
    let witness = found.witness().expect("dominated");
    assert_eq!(is_witness(&cube, 2, witness, &mut Effort::default()), Ok(true));
    // It is even a 6-arbiter.
    assert_eq!(quorate_quorum::largest_k(&cube, &mut Effort::default()), Ok(Reach::UpTo(6)));
}

#[test]
fn definition_4_3_and_section_4_4_efforts_and_sizes() {
    assert_eq!(listed("singleton", 3, 2).symmetric(), None);
    for units in 1..=4 {
        for nodes in 1..=9 {
            let uniform = listed("uniform", nodes, units).symmetric().expect("symmetric");
            assert_eq!(uniform.effort, Natural::binomial(nodes - 1, units * nodes / (units + 1)));
            assert_eq!(uniform.size, units * nodes / (units + 1) + 1);
        }
    }
    for (nodes, units) in [(4, 1), (9, 1), (8, 2), (27, 2)] {
        assert!(listed("cube", nodes, units).symmetric().is_some());
    }
}

#[test]
fn section_4_4_symmetric_k_arbiters_have_quorums_larger_than_the_bound() {
    for nodes in 2..=4 {
        for units in 1..=3 {
            for family in slow::arbiters(nodes, units) {
                if let Some(symmetric) = explicit(nodes, &family).symmetric() {
                    let bound = bounds::symmetric_size_min(nodes, units);
                    assert!(symmetric.size as f64 > bound, "{family:?} k={units}");
                }
            }
        }
    }
    // Counting memberships twice: n·effort = size·(number of quorums).
    for (spec, nodes, units) in [("plane", 13, 1), ("space", 15, 2), ("uniform", 7, 2)] {
        let family = listed(spec, nodes, units);
        let symmetric = family.symmetric().expect("symmetric");
        let members = symmetric.effort.times(&Natural::from(nodes));
        assert_eq!(members, Natural::from(symmetric.size * family.quorums().len()));
        assert!(symmetric.size as f64 > bounds::symmetric_size_min(nodes, units));
    }
}

#[test]
fn section_4_5_resiliency_is_the_largest_effort_over_the_number_of_quorums() {
    for family in slow::antichains(4) {
        let most = (0..4).map(|i| family.iter().filter(|q| **q >> i & 1 == 1).count()).max();
        let expected = Ratio::of(most.expect("four nodes"), family.len());
        assert_eq!(explicit(4, &family).resiliency(), expected);
    }
}

#[test]
fn section_4_5_resiliency_is_one_iff_some_node_is_in_all_quorums() {
    for family in slow::antichains(4) {
        let ours = explicit(4, &family);
        let common = family.iter().fold(u32::MAX, |common, q| common & q) != 0;
        assert_eq!(ours.resiliency() == Ratio::of(1, 1), common);
    }
}

#[test]
fn section_4_5_resiliency_of_uniform() {
    for units in 1..=5 {
        for nodes in 1..=40 {
            let family = build("uniform", Some(nodes), units).expect("a family");
            let ratio = family.rule.resiliency().expect("known");
            let size = units * nodes / (units + 1);
            let printed =
                Ratio::new(Natural::binomial(nodes - 1, size), Natural::binomial(nodes, size + 1));
            assert_eq!(ratio, printed);
            let bound = units as f64 / (units + 1) as f64 + 1.0 / nodes as f64;
            assert!(ratio.to_f64() <= bound + 1e-12);
        }
    }
}

#[test]
fn section_5_future_work_a_k_arbiter_that_subsumes_tree_coteries() {
    // For one unit: Agrawal and El Abbadi's tree. Root and a path, or paths in both subtrees.
    let tree = listed("tree", 7, 1);
    let path = nodes_of([0, 1, 3]);
    assert!(tree.quorums().contains(&path));
    assert!(tree.quorums().iter().all(|quorum| quorum.len() >= 3 && quorum.len() <= 4));
    for (nodes, units, depth) in [(3, 1, 1), (7, 1, 2), (15, 1, 3), (13, 2, 2), (5, 3, 1)] {
        let family = build("tree", Some(nodes), units).expect("a family");
        let answers = Answers::new(&family);
        assert!(answers.intersecting(units, &mut Effort::default()).expect("known"));
        assert_eq!(family.rule.domination(units), Some(Domination::Nondominated));
        assert_eq!(family.rule.survives(), Some(depth));
        let load = family.rule.load(&vec![1.0; nodes]).expect("known");
        let expected = (units + 1) as f64 / (units + 1 + depth) as f64;
        assert!((load - expected).abs() < 1e-12, "n={nodes} k={units}");
    }
}

#[test]
fn section_3_1_three_messages_per_member() {
    let family = build("uniform", Some(7), 2).expect("a family");
    let quorum = family.rule.pick(&NodeSet::first(7), &mut quorate_quorum::sampling::Draws::new(1));
    assert_eq!(bounds::messages(quorum.expect("all alive").len()), 15);
}
