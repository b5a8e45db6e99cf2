//! What rules claim in closed form, against computation on the quorums written out; and the facts
//! the paper lacks (arbiter spec T1 to T8), each as a test.

mod slow;

use quorate_core::NodeSet;
use quorate_quorum::sampling::Draws;
use quorate_quorum::{
    Answers, Domination, Effort, Explicit, Natural, Reach, Rule, Table, bounds, build, compose,
    domination, is_witness, largest_k, load, requests, smallest_hitting,
};
use slow::{listed, masks};

/// Families small enough to be written out, of every kind, several sizes each.
const SAMPLE: &[(&str, usize, usize)] = &[
    ("singleton", 1, 1),
    ("singleton", 4, 2),
    ("universe", 1, 1),
    ("universe", 5, 3),
    ("majority", 6, 1),
    ("majority", 7, 2),
    ("weighted:3,2,1,1,1", 5, 1),
    ("weighted:1,1,1,1", 4, 2),
    ("grid", 9, 1),
    ("grid:2,5", 10, 1),
    ("grid:1,4", 4, 1),
    ("plane", 7, 1),
    ("plane", 13, 1),
    ("plane", 13, 2),
    ("uniform", 6, 2),
    ("uniform", 9, 3),
    ("uniform", 3, 5),
    ("cube", 5, 1),
    ("cube", 6, 1),
    ("cube", 7, 1),
    ("cube", 8, 2),
    ("cube", 10, 2),
    ("cube", 12, 2),
    ("cube", 13, 1),
    ("cube", 17, 2),
    ("cube", 20, 2),
    ("cube", 19, 1),
    ("cube:2,2,3", 12, 2),
    ("cube:3,4", 12, 1),
    ("cube-as-printed", 9, 2),
    ("cube-as-printed", 13, 1),
    ("cube-as-printed", 19, 2),
    ("cube-as-printed", 21, 1),
    ("space", 15, 2),
    ("tree", 7, 1),
    ("tree", 15, 1),
    ("tree", 13, 2),
    ("tree", 5, 3),
    ("wall", 6, 1),
    ("wall", 10, 1),
    ("wall", 9, 2),
    ("wall:1,3", 4, 2),
    ("wall:2,1,3", 6, 1),
    ("wall:3,2,4", 9, 2),
    ("wall:1,4,5", 10, 3),
    ("hierarchy", 9, 1),
    ("hierarchy:3,5", 15, 1),
    ("hierarchy:4,4", 16, 2),
    ("hierarchy:2,3", 6, 1),
    ("hierarchy:2,2,3", 12, 1),
    ("threshold:2", 7, 3),
    ("threshold", 7, 3),
    ("k-singleton", 5, 3),
    ("k-majority", 7, 3),
    ("k-majority", 8, 3),
    ("cohorts", 9, 2),
    ("cohorts:3,5", 8, 3),
    ("cohorts:1,2,2", 5, 1),
    ("cohorts", 6, 2),
    ("expr:any(all(0,1),all(1,2),all(0,2))", 4, 1),
    ("expr:choose(2, all(0,1), any(2,3), 4)", 5, 1),
];

fn each(mut check: impl FnMut(&str, &dyn Rule, &Explicit, usize)) {
    for (spec, nodes, units) in SAMPLE {
        let family = build(spec, Some(*nodes), *units).expect("the catalogue has it");
        let list = listed(spec, *nodes, *units);
        check(&format!("{spec} n={nodes} k={units}"), family.rule.as_ref(), &list, *units);
    }
}

#[test]
fn counts_sizes_efforts_and_minimality() {
    each(|name, rule, list, _| {
        if let Some(sizes) = rule.sizes() {
            assert_eq!(sizes, list.sizes(), "{name}");
        }
        if let Some(minimal) = rule.is_minimal() {
            assert_eq!(minimal, list.inclusion().is_none(), "{name}");
        }
        if let Some(symmetric) = rule.symmetric() {
            assert_eq!(symmetric, list.symmetric(), "{name}");
        }
        if let Some(resiliency) = rule.resiliency() {
            assert_eq!(resiliency, list.resiliency(), "{name}");
        }
    });
}

#[test]
fn reach_crashes_and_domination() {
    each(|name, rule, list, units| {
        let minimal = list.minimalised();
        let reach = largest_k(&minimal, &mut Effort::default()).expect("small");
        if let Some(known) = rule.reach() {
            assert_eq!(known, reach, "{name}");
        }
        if let Some(survives) = rule.survives() {
            let hitting = smallest_hitting(&minimal, &mut Effort::default()).expect("small");
            assert_eq!(Some(survives + 1), hitting.map(|set| set.len()), "{name}");
        }
        if reach.covers(units)
            && let Some(known) = rule.domination(units)
        {
            let found = domination(&minimal, units, &mut Effort::default()).expect("small");
            let same = (known == Domination::Nondominated) == (found == Domination::Nondominated);
            assert!(same, "{name} {known:?} {found:?}");
            if let Some(witness) = known.witness() {
                let holds = is_witness(&minimal, units, witness, &mut Effort::default());
                assert_eq!(holds, Ok(true), "{name}");
            }
        }
    });
}

/// One minus the availability would be rounding noise here.
#[test]
fn a_small_unavailability_has_all_its_digits() {
    // Σ over fewer than a quorum alive, by exact arithmetic.
    for (spec, nodes, units, missing) in [
        ("uniform", 101, 1, 1.220_68e-73),
        ("uniform", 25, 1, 4.649_67e-20),
        ("hierarchy:9,109", 981, 3, 4.338_94e-90),
        ("hierarchy:5,197", 985, 3, 2.005_46e-106),
    ] {
        let family = build(spec, Some(nodes), units).expect("it fits");
        let up = vec![0.99; nodes];
        let found = Answers::of(family.rule.as_ref()).availability(&up, &mut Effort::default());
        assert!((found.missing / missing - 1.0).abs() < 1e-5, "{spec}: {:e}", found.missing);
    }
}

#[test]
fn availability_and_load() {
    each(|name, rule, list, _| {
        let minimal = list.minimalised();
        let nodes = list.nodes();
        let uneven: Vec<f64> = (0..nodes).map(|i| 0.6 + 0.3 * (i % 5) as f64 / 5.0).collect();
        for up in [vec![0.9; nodes], vec![0.5; nodes], vec![1.0; nodes], vec![0.0; nodes], uneven] {
            let Some(known) = rule.chances(&up) else { continue };
            let diagram = quorate_quorum::frontier::chances(&minimal, &up, &mut Effort::default());
            let diagram = diagram.expect("small");
            assert!((known.alive - diagram.alive).abs() < 1e-12, "{name}");
            assert!((known.dead - diagram.dead).abs() <= 1e-9 * diagram.dead, "{name}");
        }
        if let Some(known) = rule.load(&vec![1.0; nodes]) {
            let program = load(&minimal).expect("small");
            assert!((known - program.high).abs() < 1e-9, "{name} {known} {}", program.high);
        }
    });
}

#[test]
fn membership_and_picking_agree_with_the_list() {
    each(|name, rule, list, _| {
        let mut draws = Draws::new(7);
        let minimal = list.minimalised();
        for round in 0..60 {
            let nodes = list.nodes();
            let alive: NodeSet =
                (0..nodes as u32).filter(|_| draws.below(10) > round % 10 / 2).collect();
            let holds = list.contains_quorum(&alive);
            assert_eq!(rule.contains_quorum(&alive), holds, "{name} {alive}");
            let picked = rule.pick(&alive, &mut draws);
            assert_eq!(picked.is_some(), holds, "{name} {alive}");
            if let Some(picked) = picked {
                assert!(picked.is_subset(&alive), "{name}");
                let proper = if rule.is_minimal() == Some(true) { &minimal } else { list };
                assert!(proper.quorums().contains(&picked), "{name} {picked}");
            }
        }
    });
}

#[test]
fn sampling_brackets_the_truth_and_knows_what_is_certain() {
    for (spec, nodes, up) in [("plane", 13, 0.9), ("grid", 9, 0.7), ("uniform", 7, 0.99)] {
        let list = listed(spec, nodes, 1);
        let truth = slow::availability(&masks(&list), &vec![up; nodes]);
        let masks = masks(&list);
        let survived = |dead: &[usize]| {
            let dead = dead.iter().fold(0u32, |set, node| set | 1 << node);
            masks.iter().any(|quorum| quorum & dead == 0)
        };
        let hitting =
            smallest_hitting(&list, &mut Effort::default()).expect("small").expect("a set");
        let plan = quorate_quorum::sampling::Samples {
            nodes,
            survives: hitting.len() - 1,
            smallest: list.quorums()[0].len(),
            samples: 50_000,
            seed: 3,
        };
        let found = quorate_quorum::sampling::by_strata(plan, up, survived);
        let rounding = 1e-12;
        assert!(found.low <= truth + rounding, "{spec} {found:?} {truth}");
        assert!(truth <= found.high + rounding, "{spec} {found:?} {truth}");
        assert!(found.high - found.low < 0.02, "{spec} {found:?}");
        let plain = quorate_quorum::sampling::plainly(50_000, 3, &vec![up; nodes], survived);
        assert!(plain.low <= truth && truth <= plain.high, "{spec} {plain:?} {truth}");
        let curve = quorate_quorum::sampling::survived_shares(plan, survived);
        let exact = Table::new(&list).survivors();
        for (dead, share) in curve.iter().enumerate() {
            let all = Natural::binomial(nodes, dead).to_f64();
            assert!((share - exact[nodes - dead] as f64 / all).abs() < 0.03, "{spec} {dead}");
        }
    }
}

#[test]
fn t1_the_price_of_tolerance() {
    for units in 1..=3 {
        for nodes in 1..=4 {
            let most = slow::arbiters(nodes, units)
                .iter()
                .map(|family| slow::crashes_survived(nodes, family))
                .max();
            assert_eq!(most, Some(bounds::survives_max(nodes, units)), "n={nodes} k={units}");
        }
    }
    for nodes in 1..=200 {
        for units in 1..=9 {
            let uniform = build("uniform", Some(nodes), units).expect("a family");
            assert_eq!(uniform.rule.survives(), Some(bounds::survives_max(nodes, units)));
            let most = bounds::survives_max(nodes, units);
            assert!(bounds::nodes_for(most, units) <= nodes);
            assert!(bounds::nodes_for(most + 1, units) > nodes);
        }
    }
}

#[test]
fn t2_cubes_waste_intersection() {
    for (nodes, units, reach) in [(27, 2, 3), (81, 3, 6), (8, 2, 6)] {
        let found = largest_k(&listed("cube", nodes, units), &mut Effort::default());
        assert_eq!(found, Ok(Reach::UpTo(reach)), "n={nodes}");
    }
}

#[test]
fn t3_extra_voters_only_hurt() {
    let available = |nodes: usize| {
        let family = build("uniform", Some(nodes), 2).expect("a family");
        family.rule.availability(&vec![0.9; nodes]).expect("known")
    };
    for (nodes, expected) in [(7, 0.9743), (8, 0.9619), (9, 0.9470), (10, 0.9872)] {
        assert!((available(nodes) - expected).abs() < 5e-5, "n={nodes}");
    }
}

#[test]
fn t4_non_dominated_iff_complements_of_minimal_transversals_are_unions_of_dispensable_sets() {
    for units in 1..=2usize {
        for family in slow::arbiters(4, units) {
            let all = 0b1111u32;
            let meets_all = |t: &u32| family.iter().all(|q| q & t != 0);
            let transversals: Vec<u32> = slow::subsets(4).filter(meets_all).collect();
            let minimal = transversals
                .iter()
                .filter(|t| !transversals.iter().any(|s| s != *t && s & **t == *s));
            let dispensable: Vec<u32> =
                slow::subsets(4).filter(|set| slow::survives(&family, all & !set)).collect();
            let union = |set: u32| match units {
                1 => dispensable.contains(&set),
                _ => dispensable.iter().any(|a| dispensable.iter().any(|b| a | b == set)),
            };
            let fine = minimal.clone().all(|t| union(all & !t));
            assert_eq!(fine, !slow::has_witness(4, &family, units), "{family:?} k={units}");
        }
    }
}

#[test]
fn t5_lower_bound_on_load() {
    each(|name, _, list, units| {
        let minimal = list.minimalised();
        let reach = largest_k(&minimal, &mut Effort::default()).expect("small");
        if reach.covers(units) {
            let smallest = minimal.quorums().iter().map(NodeSet::len).min().expect("a quorum");
            let least = bounds::load_min(list.nodes(), units, smallest);
            let found = load(&minimal).expect("small");
            assert!(found.high >= least - 1e-9, "{name} {} {least}", found.high);
        }
    });
}

#[test]
fn t6_joins_of_arbiters_are_arbiters_and_non_dominated_iff_both_are() {
    for units in 1..=2 {
        let small = slow::arbiters(3, units);
        for a in &small {
            for b in &small {
                let (left, right) = (slow::explicit(3, a), slow::explicit(3, b));
                // Only a node that is in some quorum can be replaced by anything.
                let used =
                    (0..3).find(|node| a.iter().any(|q| q >> node & 1 == 1)).expect("a member");
                let joined = compose::join(&left, used, &right);
                let family = masks(&joined);
                assert!(slow::is_arbiter(&family, units), "{a:?} {b:?}");
                let fine = !slow::has_witness(3, a, units) && !slow::has_witness(3, b, units);
                assert_eq!(!slow::has_witness(5, &family, units), fine, "{a:?} {b:?} k={units}");
            }
        }
    }
}

#[test]
fn t6_hierarchies() {
    let rule = build("hierarchy:4,4", None, 2).expect("a family").rule;
    assert_eq!(rule.nodes(), 16);
    assert_eq!(rule.sizes().expect("known").into_keys().collect::<Vec<_>>(), [9]);
    assert_eq!(rule.survives(), Some(3));
    assert_eq!(rule.domination(2), Some(Domination::Nondominated));
    assert!((rule.load(&[1.0; 16]).expect("known") - 9.0 / 16.0).abs() < 1e-12);
    let unavailable = 1.0 - rule.availability(&[0.9; 16]).expect("known");
    assert!((unavailable - 1.5e-2).abs() < 5e-4);
    let large = build("hierarchy:4,4,4", None, 2).expect("a family").rule;
    let unavailable = 1.0 - large.availability(&[0.9; 64]).expect("known");
    assert!((unavailable - 1.4e-3).abs() < 5e-5);
}

#[test]
fn t6_or_products_add_up() {
    // An i- and a j-arbiter give an (i+j+1)-arbiter.
    for (i, j) in [(1, 1), (1, 2), (2, 2)] {
        let (a, b) = (listed("uniform", i + 2, i), listed("uniform", j + 2, j));
        let product = compose::or_product(&a, &b).minimalised();
        let reach = largest_k(&product, &mut Effort::default()).expect("small");
        assert!(reach.covers(i + j + 1), "{i} {j} {reach:?}");
    }
    // The cube is the or-product of partitions.
    let partition = Explicit::from_lists(3, &[vec![0], vec![1], vec![2]]).expect("a partition");
    let square = compose::or_product(&partition, &partition);
    let cube = compose::or_product(&square, &partition);
    assert_eq!(cube.minimalised(), listed("cube", 27, 2).minimalised());
}

#[test]
fn t7_boxes() {
    for (spec, size, survives) in [("cube:3,4", 6, 2), ("cube:2,2,3", 10, 1), ("cube:3,3,4", 24, 2)]
    {
        let rule = build(spec, None, 1).expect("a box").rule;
        assert_eq!(rule.sizes().expect("known").into_keys().collect::<Vec<_>>(), [size], "{spec}");
        assert_eq!(rule.survives(), Some(survives), "{spec}");
    }
    for (nodes, expected) in [(27, 0.40), (64, 0.70)] {
        let rule = build("cube", Some(nodes), 2).expect("a cube").rule;
        let unavailable = 1.0 - rule.availability(&vec![0.9; nodes]).expect("known");
        assert!((unavailable - expected).abs() < 5e-3, "n={nodes}");
    }
}

#[test]
fn t8_hyperplanes_of_projective_spaces() {
    for (nodes, units, order) in [(15, 2, 2), (40, 2, 3), (31, 3, 2)] {
        let rule = build("space", Some(nodes), units).expect("a space").rule;
        let symmetric = rule.symmetric().expect("known").expect("symmetric");
        assert_eq!(symmetric.size, (order_power(order, units + 1) - 1) / (order - 1));
        assert_eq!(symmetric.effort, Natural::from(symmetric.size));
        assert_eq!(rule.survives(), Some(order));
        assert!(rule.reach().expect("known").covers(units));
    }
}

fn order_power(order: usize, exponent: usize) -> usize {
    order.pow(exponent as u32)
}

#[test]
fn cohorts_are_k_coteries() {
    for (spec, nodes, units) in [
        ("cohorts:1,2", 3, 1),
        ("cohorts:1,2,2", 5, 1),
        ("cohorts:2,3", 5, 2),
        ("cohorts:2,3,3", 8, 2),
        ("cohorts:2,4", 6, 2),
        ("cohorts:3,5", 8, 3),
        ("cohorts:3,6", 9, 3),
        ("cohorts", 10, 2),
    ] {
        let list = listed(spec, nodes, units);
        let found = quorate_quorum::k_coterie(&list, units, &mut Effort::default()).expect("small");
        assert!(found.holds(), "{spec} {found:?}");
        assert_eq!(slow::k_coterie(&masks(&list), units), [true; 3], "{spec}");
    }
}

#[test]
fn sums_and_products_of_k_coteries() {
    let (two, three) = (listed("k-majority", 4, 2), listed("k-singleton", 3, 3));
    let holds = |family: &Explicit, units: usize| {
        quorate_quorum::k_coterie(family, units, &mut Effort::default()).expect("small").holds()
    };
    assert!(holds(&compose::sum(&two, &three), 5));
    assert!(holds(&compose::product(&two, &three), 2));
    assert!(!holds(&compose::product(&two, &three), 3));
}

#[test]
fn large_families_are_answered_without_listing_them() {
    for (spec, nodes, units) in
        [("uniform", 10_000, 2), ("cube", 10_000, 1), ("hierarchy", 10_000, 2)]
    {
        let family = build(spec, Some(nodes), units).expect("a family");
        assert!(family.rule.enumerate(250_000).is_none() || spec == "cube");
        let answers = Answers::new(&family);
        let mut effort = Effort::new(1000);
        assert_eq!(answers.intersecting(units, &mut effort), Ok(true));
        assert!(answers.domination(units, &mut effort).expect("known").is_some());
        assert!(answers.survives(&mut effort).known().is_some());
        let picked =
            family.rule.pick(&NodeSet::first(nodes), &mut Draws::new(1)).expect("all alive");
        let smallest = family.rule.sizes().expect("known").into_keys().next();
        assert_eq!(Some(picked.len()), smallest);
    }
}

/// What the abstract of Manabe and Tajima (2004) says of their uniform family, asked of our sizes:
/// none is larger than the k-arbiter's, and with one unit they are majorities. They are not
/// optimal, which theirs is said to be: of 336 sizes 74 could be smaller by one, the others staying
/// as they are.
#[test]
fn threshold_is_what_its_abstract_says_but_for_the_last_word() {
    let (mut all, mut loose) = (0, Vec::new());
    for units in 1..=6 {
        for nodes in 1..=16 {
            let sizes = requests::quorum_sizes(nodes, units);
            assert_eq!(requests::unsafe_conflict(nodes, &sizes), None);
            assert!(sizes.iter().all(|size| *size <= nodes - (nodes - 1) / (units + 1)));
            assert!(units > 1 || sizes == [nodes / 2 + 1]);
            for claim in 1..=units {
                let mut smaller = sizes.clone();
                smaller[claim - 1] -= 1;
                all += 1;
                if requests::unsafe_conflict(nodes, &smaller).is_none() {
                    loose.push((nodes, units, claim));
                }
            }
        }
    }
    assert_eq!((all, loose.len()), (336, 74));
    assert_eq!(loose[..2], [(3, 3, 2), (5, 3, 2)]);
}
