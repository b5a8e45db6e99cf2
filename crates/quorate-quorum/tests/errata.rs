//! Where RR-2523 is wrong, ambiguous or incomplete: for each erratum the printed claim is shown to
//! fail and the corrected one to hold. Tests have the numbers of arbiter spec 2. Handlers and
//! messages under preemption (arbiter spec E3 and E25) are about the protocol and tested with it;
//! arbiter spec E15 and E27 are misprints whose corrected reading is tested in `paper.rs` (sections
//! 4.3 and 4.5).

mod slow;

use quorate_core::NodeSet;
use quorate_quorum::catalog::prime_power;
use quorate_quorum::{
    Answers, Domination, Effort, Explicit, Ratio, Reach, build, domination, is_witness, largest_k,
    nodes_of,
};
use slow::{explicit, listed, masks};

fn dominated(family: &Explicit, units: usize) -> bool {
    domination(family, units, &mut Effort::default()).expect("small") != Domination::Nondominated
}

#[test]
fn e1_theorem_3_1_is_vacuous_when_there_are_at_most_k_processes() {
    // n = 2, k = 2, quorums {0} and {1}: no three processes, yet two claims of two units are
    // admitted.
    let quorums = [0b01u32, 0b10];
    let claims = [2usize, 2];
    let printed_holds = quorums.len() < 3;
    let granted = (0..2).all(|arbiter| {
        let asked = (0..2).filter(|i| quorums[*i] >> arbiter & 1 == 1);
        asked.map(|i| claims[i]).sum::<usize>() <= 2
    });
    assert!(printed_holds && granted && claims.iter().sum::<usize>() > 2);
    // The corrected condition looks at fewer than k+1 quorums as well.
    assert_eq!(quorums[0] & quorums[1], 0);
}

#[test]
fn e2_definition_4_1_needs_repetition() {
    let family = [0b01u32, 0b10];
    // With distinct quorums the condition for k = 2 is vacuous: there are not three of them.
    assert!(family.len() < 3);
    assert!(!slow::any_meet(&family, 3));
    let reach = largest_k(&explicit(2, &family), &mut Effort::default());
    assert_eq!(reach, Ok(Reach::UpTo(0)));
}

#[test]
fn e4_some_coteries_satisfy_the_condition_but_no_k_coterie_for_k_above_one_does() {
    assert_eq!(largest_k(&listed("singleton", 1, 1), &mut Effort::default()), Ok(Reach::Every));
    let mut seen = 0;
    for family in (1..=4).flat_map(slow::antichains) {
        for units in 2..=4 {
            if slow::k_coterie(&family, units) == [true; 3] {
                assert!(!slow::any_meet(&family, units + 1), "{family:?} k={units}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 20, "{seen} k-coteries were looked at");
}

#[test]
fn e5_planes_exist_if_the_order_is_a_prime_power_and_nothing_is_claimed_otherwise() {
    for order in [2, 3, 4, 5, 7, 8, 9] {
        let nodes = order * order + order + 1;
        let plane = listed("plane", nodes, 1);
        for (index, a) in plane.quorums().iter().enumerate() {
            let met = plane.quorums()[index + 1..].iter().map(|b| a.intersection(b).len());
            assert!(met.into_iter().all(|common| common == 1), "order {order}");
        }
    }
    assert_eq!(prime_power(6), None);
    let error = build("plane:6", None, 1).expect_err("no construction").to_string();
    assert!(error.contains("no construction is known"), "{error}");
}

#[test]
fn e6_maekawas_coterie_is_dominated_from_order_three_on() {
    assert!(!dominated(&listed("plane", 7, 1), 1));
    // The witness of arbiter spec E6 for order 3, by coordinates: points in lexicographic order.
    let witness = nodes_of([0, 1, 2, 4, 5, 8]);
    let plane = listed("plane", 13, 1);
    assert_eq!(is_witness(&plane, 1, &witness, &mut Effort::default()), Ok(true));
    for order in [3, 4, 5, 7, 8, 9] {
        let nodes = order * order + order + 1;
        let family = build("plane", Some(nodes), 1).expect("a plane");
        let found = family.rule.domination(1).expect("known in closed form");
        let witness = found.witness().expect("dominated");
        assert_eq!(witness.len(), 2 * order);
        let plane = listed("plane", nodes, 1);
        assert_eq!(is_witness(&plane, 1, witness, &mut Effort::default()), Ok(true), "{order}");
    }
}

#[test]
fn e7_a_grid_has_effort_and_size_two_roots_minus_one() {
    for side in 2..=6 {
        let symmetric = listed("grid", side * side, 1).symmetric().expect("symmetric");
        assert_ne!(symmetric.size, 2 * side);
        assert_eq!(symmetric.size, 2 * side - 1);
        assert_eq!(symmetric.effort.to_u64(), Some(2 * side as u64 - 1));
    }
}

#[test]
fn e8_a_uniform_quorum_may_be_the_universe() {
    for units in 1..=5 {
        for nodes in 1..=12 {
            let size = quorate_quorum::catalog::uniform_size(nodes, units);
            assert_eq!(size == nodes, nodes <= units + 1, "n={nodes} k={units}");
        }
    }
}

fn binomial(n: i64, k: i64) -> i64 {
    (0..k).fold(1, |value, i| value * (n - i) / (i + 1))
}

#[test]
fn e9_the_alternating_sum_for_the_size_of_a_cube_quorum() {
    for units in 1..=4i64 {
        for side in 2..=5i64 {
            let size = side.pow(units as u32 + 1) - (side - 1).pow(units as u32 + 1);
            // n^((k-i)/(k+1)) = a^(k-i)
            let power = |i: i64| side.pow((units - i) as u32);
            let printed: i64 = (0..=units)
                .map(|i| (-1i64).pow(i as u32 + 1) * binomial(units + 1, i) * power(i))
                .sum();
            let right: i64 = (0..=units)
                .map(|i| (-1i64).pow(i as u32) * binomial(units + 1, i + 1) * power(i))
                .sum();
            assert_ne!(printed, size, "k={units} a={side}");
            assert_eq!(right, size, "k={units} a={side}");
            if side.pow(units as u32 + 1) <= 1000 {
                let nodes = side.pow(units as u32 + 1) as usize;
                let family = build("cube", Some(nodes), units as usize).expect("a cube");
                let sizes = family.rule.sizes().expect("known");
                assert_eq!(sizes.into_keys().collect::<Vec<_>>(), [size as usize]);
            }
        }
    }
}

#[test]
fn e10_the_general_cube_taken_literally_makes_every_quorum_the_universe() {
    for units in 1..=3u32 {
        for nodes in 2..=30usize {
            let root = (1..=nodes).find(|a| a.pow(units) >= nodes).expect("n is large enough");
            let base = root + 1;
            let digits = |process: usize| -> Vec<usize> {
                (0..=units).map(|d| process / base.pow(d) % base).collect()
            };
            for i in 1..=nodes {
                let shares = |j: &usize| digits(i).iter().zip(digits(*j)).any(|(a, b)| *a == b);
                assert_eq!((1..=nodes).filter(shares).count(), nodes, "n={nodes} k={units}");
            }
        }
    }
    // Repaired, most quorums are not.
    let repaired = listed("cube-as-printed", 7, 1);
    assert!(repaired.quorums().iter().all(|quorum| quorum.len() < 7));
}

#[test]
fn e11_the_general_cube_is_not_minimal() {
    let smallest = listed("cube-as-printed", 3, 1);
    assert_eq!(smallest.inclusion(), Some((nodes_of([0, 1]), nodes_of([0, 1, 2]))));
    let ranges: [(usize, &[usize]); 3] = [
        (1, &[3, 5, 7, 13, 21, 31]),
        (2, &[5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 19, 20, 21, 22, 28, 29, 33, 34, 35, 36, 37]),
        (3, &[9, 10, 11, 12, 13, 14, 15, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40]),
    ];
    for (units, expected) in ranges {
        for nodes in 1..=40 {
            let family = build("cube-as-printed", Some(nodes), units).expect("a family");
            let minimal = Answers::new(&family).is_minimal();
            assert_eq!(minimal, Some(!expected.contains(&nodes)), "n={nodes} k={units}");
            // The rule and the list agree.
            let list = listed("cube-as-printed", nodes, units);
            assert_eq!(
                list.inclusion().is_some(),
                expected.contains(&nodes),
                "n={nodes} k={units}"
            );
            assert_eq!(listed("cube", nodes, units).inclusion(), None);
        }
    }
}

#[test]
fn e12_the_general_cube_often_tolerates_nothing() {
    let nothing = |nodes: usize, units: usize| {
        let family = build("cube", Some(nodes), units).expect("a family");
        let answers = Answers::new(&family);
        let survives = answers.survives(&mut Effort::default()).known().expect("small");
        let list = answers.minimal().expect("few");
        let hitting =
            quorate_quorum::smallest_hitting(list, &mut Effort::default()).expect("small");
        assert_eq!(hitting.expect("no empty quorum").len(), survives + 1, "n={nodes} k={units}");
        survives == 0
    };
    for nodes in 2..=30 {
        assert_eq!(nothing(nodes, 2), matches!(nodes, 2..=7 | 9..=13), "n={nodes} k=2");
        assert_eq!(nothing(nodes, 3), matches!(nodes, 2..=15 | 17..=30), "n={nodes} k=3");
    }
    for (nodes, units) in [(9, 2), (17, 3), (27, 3)] {
        assert_eq!(listed("cube", nodes, units).quorums(), [NodeSet::first(nodes)]);
    }
    // n = 12, k = 2 is dominated by a single arbiter.
    assert!(slow::dominates(&[1], &masks(&listed("cube", 12, 2))));
}

#[test]
fn e13_the_inclusion_of_theorem_4_5_is_printed_the_wrong_way_round() {
    let printed = |nodes: usize, family: &[u32]| {
        slow::subsets(nodes)
            .skip(1)
            .any(|h| family.iter().all(|q| q & h != h) && family.iter().all(|q| q & h != 0))
    };
    // The singleton on two nodes would be dominated (by H = U), and {U} would not be.
    assert!(printed(2, &[0b01]));
    assert!(!printed(2, &[0b11]));
    assert!(!dominated(&explicit(2, &[0b01]), 1));
    assert!(dominated(&explicit(2, &[0b11]), 1));
    for nodes in 2..=4 {
        let all = slow::arbiters(nodes, 1);
        let truth = |family: &Vec<u32>| all.iter().any(|other| slow::dominates(other, family));
        assert!(all.iter().any(|family| printed(nodes, family) != truth(family)), "n={nodes}");
        assert!(all.iter().all(|family| slow::has_witness(nodes, family, 1) == truth(family)));
    }
}

#[test]
fn e14_the_second_condition_of_theorem_4_5_needs_repetition() {
    // {{0}}, n = 2, k = 2: two distinct quorums do not exist, so H = {1} would pass.
    let family = [0b01u32];
    assert!(family.len() < 2);
    assert!(!slow::is_witness(&family, 2, 0b10));
    assert!(!dominated(&explicit(2, &family), 2));
}

#[test]
fn e16_uniform_is_dominated_for_every_other_n() {
    for units in 1..=4 {
        for nodes in 1..=9 {
            let family = listed("uniform", nodes, units);
            let found = domination(&family, units, &mut Effort::default()).expect("small");
            let exact = nodes % (units + 1) == 1;
            assert_eq!(found == Domination::Nondominated, exact, "n={nodes} k={units}");
            let rule = build("uniform", Some(nodes), units).expect("a family").rule;
            let closed = rule.domination(units).expect("known");
            assert_eq!(closed == Domination::Nondominated, exact);
            if let Some(witness) = closed.witness() {
                // Any kc+1 processes are a witness, c those a quorum spares.
                let c = (nodes - 1) / (units + 1);
                assert_eq!(witness.len(), units * c + 1);
                assert_eq!(is_witness(&family, units, witness, &mut Effort::default()), Ok(true));
                // The uniform arbiter on the first c(k+1)+1 processes dominates.
                let fewer = masks(&listed("uniform", c * (units + 1) + 1, units));
                assert!(slow::dominates(&fewer, &masks(&family)));
            }
        }
    }
}

#[test]
fn e17_every_cube_is_dominated_by_way_of_one_hyperplane() {
    for (nodes, units) in [(4, 1), (9, 1), (16, 1), (8, 2), (27, 2), (64, 2), (16, 3)] {
        let rule = build("cube", Some(nodes), units).expect("a cube").rule;
        let found = rule.domination(units).expect("known in closed form");
        let witness = found.witness().expect("dominated").clone();
        let side = (nodes as f64).powf(1.0 / (units as f64 + 1.0)).round() as usize;
        assert_eq!(witness.len(), side.pow(units as u32));
        let list = listed("cube", nodes, units);
        assert_eq!(
            is_witness(&list, units, &witness, &mut Effort::default()),
            Ok(true),
            "n={nodes}"
        );
    }
    // What dominates the printed example is itself dominated.
    let printed = Explicit::from_lists(4, &[vec![0, 1, 2], vec![0, 3], vec![1, 2, 3]]).expect("it");
    assert!(dominated(&printed, 1));
}

#[test]
fn e18_the_printed_effort_of_a_cube_is_an_upper_bound_only() {
    for (side, units) in [(2usize, 1usize), (3, 1), (2, 2), (3, 2), (2, 3)] {
        let nodes = side.pow(units as u32 + 1);
        let symmetric = listed("cube", nodes, units).symmetric().expect("symmetric");
        let printed = (units + 1) * side.pow(units as u32);
        assert!(symmetric.size < printed);
        assert_eq!(symmetric.size, nodes - (side - 1).pow(units as u32 + 1));
    }
    assert_eq!(3 * 4, 12, "for k = 2, n = 8 the printed effort exceeds the number of nodes");
    assert_eq!(listed("cube", 8, 2).symmetric().expect("symmetric").size, 7);
}

#[test]
fn e19_the_bound_on_sizes_has_equality_for_one_node() {
    let one = listed("uniform", 1, 2).symmetric().expect("symmetric");
    let bound = quorate_quorum::bounds::symmetric_size_min(1, 2);
    assert!((one.size as f64 - bound).abs() < 1e-12, "not larger, equal");
    for nodes in 2..=30 {
        for units in 1..=4 {
            let size = quorate_quorum::catalog::uniform_size(nodes, units) as f64;
            assert!(size > quorate_quorum::bounds::symmetric_size_min(nodes, units));
        }
    }
}

#[test]
fn e20_intersecting_families_are_not_all_projective_spaces_but_those_are_arbiters() {
    // A space has as many quorums as points; a singleton on three nodes has not.
    let singleton = listed("singleton", 3, 2);
    assert_ne!(singleton.quorums().len(), singleton.nodes());
    for (dimension, order) in [(2, 2), (2, 3), (3, 2), (3, 3), (4, 2)] {
        let spec = format!("space:{dimension},{order}");
        let rule = build(&spec, None, 1).expect("a space").rule;
        let units = dimension - 1;
        assert_eq!(rule.reach(), Some(Reach::UpTo(units as i64)));
        let list =
            Explicit::new(rule.nodes(), rule.enumerate(1000).expect("few")).expect("a family");
        let searched = largest_k(&list, &mut Effort::default()).expect("small");
        assert_eq!(searched, Reach::UpTo(units as i64), "{spec}");
        let hitting =
            quorate_quorum::smallest_hitting(&list, &mut Effort::default()).expect("small");
        assert_eq!(hitting.map(|set| set.len()), Some(order + 1), "{spec}");
        assert_eq!(dominated(&list, units), spec != "space:2,2", "{spec}");
    }
}

#[test]
fn e21_resiliency_of_cubes() {
    for (side, units) in [(3usize, 1usize), (2, 1), (2, 2), (3, 2), (2, 3)] {
        let nodes = side.pow(units as u32 + 1);
        let ratio = listed("cube", nodes, units).resiliency();
        assert_ne!(ratio, Ratio::of(units + 1, nodes), "k/n + 1/n");
        // 1 - (1 - 1/a)^(k+1)
        let power = (side - 1).pow(units as u32 + 1);
        assert_eq!(ratio, Ratio::of(nodes - power, nodes));
    }
    assert_eq!(listed("cube", 9, 1).resiliency(), Ratio::of(5, 9));
}

#[test]
fn e22_resiliency_of_families_at_the_lower_bound() {
    for (spec, nodes, units, expected) in
        [("plane", 7, 1, Ratio::of(3, 7)), ("space", 15, 2, Ratio::of(7, 15))]
    {
        let ratio = listed(spec, nodes, units).resiliency();
        assert_ne!(ratio, Ratio::of(1, nodes));
        assert_eq!(ratio, expected);
        assert!(ratio.to_f64() >= (nodes as f64).powf(-1.0 / (units as f64 + 1.0)));
    }
}

#[test]
fn e23_there_is_no_general_order_of_resiliencies() {
    let ratio = |spec: &str, nodes: usize, units: usize| {
        build(spec, Some(nodes), units).expect("a family").rule.resiliency().expect("known")
    };
    for units in 1..=8usize {
        for side in 2..=4usize {
            let nodes = side.pow(units as u32 + 1);
            if nodes > quorate_quorum::catalog::NODES_MAX {
                continue;
            }
            let worse = ratio("cube", nodes, units) > ratio("uniform", nodes, units);
            let expected = match side {
                2 => units >= 2,
                3 => units >= 3,
                _ => units >= 6,
            };
            assert_eq!(worse, expected, "k={units} a={side}");
        }
        assert_eq!(ratio("uniform", units + 1, units), Ratio::of(1, 1), "not below the singleton");
    }
}

#[test]
fn e24_a_small_resiliency_does_not_mean_high_availability() {
    let ask = |spec: &str, nodes: usize| {
        let rule = build(spec, Some(nodes), 2).expect("a family").rule;
        let available = rule.availability(&vec![0.9; nodes]).expect("known");
        (rule.resiliency().expect("known").to_f64(), available)
    };
    let (cube, uniform) = (ask("cube", 64), ask("uniform", 7));
    assert!(cube.0 < uniform.0);
    assert!((cube.1 - 0.2968).abs() < 1e-3 && (uniform.1 - 0.9743).abs() < 1e-4);
}

#[test]
fn e26_one_node_is_an_exception_twice() {
    assert!(!dominated(&listed("universe", 1, 1), 1));
    assert!(listed("singleton", 1, 1).symmetric().is_some());
    for nodes in 2..=5 {
        assert!(dominated(&listed("universe", nodes, 1), 1));
        assert_eq!(listed("singleton", nodes, 1).symmetric(), None);
    }
}
