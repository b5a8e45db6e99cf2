//! Random families on few nodes: every fast answer against the slow one of `slow/`, which follows
//! the definitions word for word.

mod slow;

use proptest::prelude::*;
use quorate_quorum::sampling::Draws;
use quorate_quorum::{
    Domination, Effort, Explicit, Expr, Formula, Reach, Rule, Table, compose, domination,
    fewest_apart, fewest_apart_by_folding, frontier, is_witness, k_coterie, largest_k, latency,
    load, load_with_capacities, nodes_of, requests, smallest_hitting,
};
use slow::{explicit, masks};

const NODES: usize = 6;

/// Lists of non-empty sets, repetitions and inclusions welcome.
fn families() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1u32..1 << NODES, 1..9)
}

/// Families in which any two quorums meet, so that domination is worth asking about.
fn coteries() -> impl Strategy<Value = Vec<u32>> {
    families().prop_map(|family| {
        let mut kept: Vec<u32> = Vec::new();
        for set in family {
            let fits =
                |other: &u32| other & set != 0 && other & set != set && other & set != *other;
            if kept.iter().all(fits) {
                kept.push(set);
            }
        }
        kept
    })
}

fn probabilities() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.0..=1.0f64, NODES)
}

/// Nested expressions over six nodes, which may be named more than once.
fn expressions() -> impl Strategy<Value = Expr> {
    let leaf = (0..NODES).prop_map(Expr::node);
    leaf.prop_recursive(3, 16, 4, |inner| {
        let parts = prop::collection::vec((1u64..4, inner), 1..4);
        (parts, 1usize..100, any::<bool>()).prop_map(|(parts, draw, weighted)| {
            let total: u64 = parts.iter().map(|(weight, _)| weight).sum();
            if weighted {
                return Expr::weighted(1 + draw as u64 % total, parts).expect("within the weight");
            }
            let of: Vec<Expr> = parts.into_iter().map(|(_, part)| part).collect();
            Expr::choose(1 + draw % of.len(), of).expect("within the parts")
        })
    })
}

proptest! {
    #[test]
    fn intersection_and_largest_k(family in families()) {
        let ours = explicit(NODES, &family);
        let reach = largest_k(&ours, &mut Effort::default()).expect("small");
        for units in 0..=4 {
            prop_assert_eq!(reach.covers(units), slow::any_meet(&family, units + 1));
        }
        let folded = fewest_apart_by_folding(&ours);
        let searched = fewest_apart(&ours, family.len(), &mut Effort::default()).expect("small");
        prop_assert_eq!(folded, searched.as_ref().map(Vec::len));
        let table = Table::new(&ours.minimalised()).fewest_covering(&mut Effort::default());
        prop_assert_eq!(table, Ok(folded));
        prop_assert_eq!(reach == Reach::Every, folded.is_none());
    }

    #[test]
    fn minimalising(family in families()) {
        let minimal = masks(&explicit(NODES, &family).minimalised());
        prop_assert!(slow::is_minimal(&minimal));
        for alive in slow::subsets(NODES) {
            prop_assert_eq!(slow::survives(&minimal, alive), slow::survives(&family, alive));
        }
        let inclusion = explicit(NODES, &family).inclusion();
        prop_assert_eq!(inclusion.is_none(), slow::is_minimal(&family));
    }

    #[test]
    fn domination_by_table_and_by_solver(family in coteries(), units in 1usize..4) {
        let small = explicit(NODES, &family);
        prop_assume!(slow::any_meet(&family, units + 1));
        let truth = slow::has_witness(NODES, &family, units);
        let found = domination(&small, units, &mut Effort::default()).expect("small");
        prop_assert_eq!(found != Domination::Nondominated, truth);
        // The same family with twenty idle nodes is too large for the table: the solver decides.
        // The idle nodes change nothing, since they are in no quorum.
        for idle in [20, 130] {
            let large = explicit_with_idle(&family, NODES + idle);
            let solved = domination(&large, units, &mut Effort::default()).expect("small");
            prop_assert_eq!(solved != Domination::Nondominated, truth);
            if let Some(witness) = solved.witness() {
                let verified = is_witness(&large, units, witness, &mut Effort::default());
                prop_assert_eq!(verified, Ok(true));
            }
        }
        if let Some(witness) = found.witness() {
            let mask = witness.iter().map(|node| 1 << node.0).sum();
            prop_assert!(slow::is_witness(&family, units, mask));
            let smallest = slow::subsets(NODES).filter(|h| slow::is_witness(&family, units, *h));
            let least = smallest.map(|h| h.count_ones() as usize).min();
            prop_assert_eq!(Some(witness.len()), least);
        }
    }

    #[test]
    fn making_it_non_dominated(family in coteries(), units in 1usize..3) {
        prop_assume!(slow::any_meet(&family, units + 1));
        let better = compose::made_nondominated(&explicit(NODES, &family), units).expect("small");
        let better = masks(&better);
        prop_assert!(slow::is_arbiter(&better, units));
        prop_assert!(!slow::has_witness(NODES, &better, units));
        for alive in slow::subsets(NODES) {
            prop_assert!(slow::survives(&better, alive) || !slow::survives(&family, alive));
        }
    }

    #[test]
    fn crashes_survived(family in families()) {
        let ours = explicit(NODES, &family);
        let hitting = smallest_hitting(&ours, &mut Effort::default()).expect("small");
        let expected = slow::crashes_survived(NODES, &family) + 1;
        prop_assert_eq!(hitting.map(|set| set.len()), Some(expected));
        prop_assert_eq!(Table::new(&ours).smallest_hitting(), Some(expected));
        let (low, high) = quorate_quorum::hitting_bounds(&ours);
        prop_assert!(low <= expected && expected <= high);
    }

    #[test]
    fn availability(family in families(), up in probabilities()) {
        let ours = explicit(NODES, &family);
        let expected = slow::availability(&family, &up);
        let diagram = frontier::chances(&ours, &up, &mut Effort::default()).expect("small").alive;
        prop_assert!((diagram - expected).abs() < 1e-12);
        let survivors = frontier::survivors(&ours, &mut Effort::default()).expect("small");
        let table = Table::new(&ours).survivors();
        prop_assert_eq!(survivors, table.into_iter().map(u128::from).collect::<Vec<_>>());
    }

    #[test]
    fn k_coteries(family in families(), units in 1usize..5) {
        let mut distinct = family.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let ours = k_coterie(&explicit(NODES, &distinct), units, &mut Effort::default());
        let ours = ours.expect("small");
        let conditions = [ours.stuck.is_none(), ours.too_many.is_none(), ours.inclusion.is_none()];
        let slow = slow::k_coterie(&distinct, units);
        prop_assert_eq!(conditions, slow);
    }

    #[test]
    fn load_is_certified_and_no_other_strategy_beats_it(
        family in families(), seed in any::<u64>()
    ) {
        let ours = explicit(NODES, &family);
        let found = load(&ours).expect("small");
        prop_assert!(found.is_exact(), "{} {}", found.low, found.high);
        let mut draws = Draws::new(seed);
        for _ in 0..20 {
            let rates: Vec<f64> = family.iter().map(|_| draws.unit()).collect();
            let total: f64 = rates.iter().sum();
            let of = |i: usize| -> f64 {
                let with = family.iter().zip(&rates).filter(|(q, _)| **q >> i & 1 == 1);
                with.map(|(_, rate)| rate / total).sum()
            };
            let busiest = (0..NODES).map(of).fold(0.0, f64::max);
            prop_assert!(busiest >= found.low - 1e-9);
        }
        // R is the load of one strategy.
        prop_assert!(found.high <= ours.resiliency().to_f64() + 1e-9);
        let capacities: Vec<f64> = (0..NODES).map(|_| 0.5 + draws.unit()).collect();
        let unequal = load_with_capacities(&ours, &capacities).expect("small");
        prop_assert!(unequal.is_exact(), "{} {}", unequal.low, unequal.high);
    }

    #[test]
    fn expressions_mean_what_they_say(expr in expressions(), up in probabilities()) {
        let formula = Formula::new(NODES, expr.clone());
        let quorums = formula.enumerate(100_000).expect("few");
        let listed = Explicit::new(NODES, quorums).expect("a family");
        let family = masks(&listed);
        prop_assert!(slow::is_minimal(&family));
        for alive in slow::subsets(NODES) {
            let set = nodes_of((0..NODES).filter(|i| alive >> i & 1 == 1));
            prop_assert_eq!(expr.holds(&set), slow::survives(&family, alive));
            // The dual holds iff the complement does not contain a quorum.
            let dead = nodes_of((0..NODES).filter(|i| alive >> i & 1 == 0));
            prop_assert_eq!(expr.dual().holds(&set), !expr.holds(&dead));
        }
        let again: Expr = expr.to_string().parse().expect("it prints what it can read");
        prop_assert_eq!(again.to_string(), expr.to_string());
        if let Some(available) = formula.availability(&up) {
            prop_assert!((available - slow::availability(&family, &up)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_quorum_is_picked_among_the_living_iff_there_is_one(
        family in families(), alive in 0u32..1 << NODES, seed in any::<u64>()
    ) {
        let ours = explicit(NODES, &family);
        let living = nodes_of((0..NODES).filter(|i| alive >> i & 1 == 1));
        let picked = ours.pick(&living, &mut Draws::new(seed));
        prop_assert_eq!(picked.is_some(), slow::survives(&family, alive));
        if let Some(quorum) = picked {
            prop_assert!(quorum.is_subset(&living));
            prop_assert!(ours.minimalised().quorums().contains(&quorum));
        }
    }

    #[test]
    fn nearest_quorums(
        family in families(), delays in prop::collection::vec(0.0..9.0f64, NODES * NODES)
    ) {
        let rows: Vec<Vec<f64>> = delays.chunks(NODES).map(<[f64]>::to_vec).collect();
        let ours = explicit(NODES, &family);
        let found = latency::nearest(&ours, &rows);
        for (row, found) in rows.iter().zip(found) {
            let slowest = |q: &u32| {
                (0..NODES).filter(|i| q >> i & 1 == 1).map(|i| row[i]).fold(0.0, f64::max)
            };
            let expected = family.iter().map(slowest).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(found, Some(expected));
        }
        // A strategy that may use every node fully is as quick as the best single quorum for all.
        let paced = latency::under_load(&ours, &rows, 1.0).expect("any strategy will do");
        let mean = |q: &u32| {
            let of = |row: &Vec<f64>| {
                (0..NODES).filter(|i| q >> i & 1 == 1).map(|i| row[i]).fold(0.0, f64::max)
            };
            rows.iter().map(of).sum::<f64>() / NODES as f64
        };
        let best = family.iter().map(mean).fold(f64::INFINITY, f64::min);
        prop_assert!((paced.latency - best).abs() < 1e-6, "{} {best}", paced.latency);
        // Within the least load possible there is a strategy, and it is not quicker.
        let least = load(&ours).expect("small").high;
        if let Some(gentle) = latency::under_load(&ours, &rows, least + 1e-6) {
            prop_assert!(gentle.latency >= paced.latency - 1e-6);
            prop_assert!(gentle.load <= least + 1e-5);
        }
    }

    #[test]
    fn joins_sums_and_products(a in families(), b in families(), place in 0usize..3) {
        let a: Vec<u32> = a.iter().map(|q| (q & 0b111).max(1)).collect();
        let b: Vec<u32> = b.iter().map(|q| (q & 0b111).max(1)).collect();
        let (left, right) = (explicit(3, &a), explicit(3, &b));
        let joined = masks(&compose::join(&left, place, &right));
        let sum = masks(&compose::sum(&left, &right));
        let product = masks(&compose::product(&left, &right));
        for alive in slow::subsets(6) {
            let (low, high) = (alive & 0b111, alive >> 3);
            let (x, y) = (slow::survives(&a, low), slow::survives(&b, high));
            prop_assert_eq!(slow::survives(&sum, alive), x || y);
            prop_assert_eq!(slow::survives(&product, alive), x && y);
        }
        for alive in slow::subsets(5) {
            // The two nodes that stay close ranks; the inner family answers for the one replaced.
            let inner = u32::from(slow::survives(&b, alive >> 2)) << place;
            let mut kept = (0..3).filter(|node| *node != place);
            let mut bit = |i: u32| (alive >> i & 1) << kept.next().expect("two stay");
            let outer = bit(0) | bit(1) | inner;
            prop_assert_eq!(slow::survives(&joined, alive), slow::survives(&a, outer));
        }
    }

    #[test]
    fn request_sizes(nodes in 1usize..9, sizes in prop::collection::vec(1usize..9, 1..5)) {
        let sizes: Vec<usize> = sizes.iter().map(|size| (*size).min(nodes)).collect();
        let conflict = requests::unsafe_conflict(nodes, &sizes);
        // Thresholds written out, for the general test.
        let family = |size: &usize| {
            let sets = slow::subsets(nodes).filter(|s| s.count_ones() as usize == *size);
            explicit(nodes, &sets.collect::<Vec<_>>())
        };
        let small = nodes <= 4;
        if small {
            let families: Vec<Explicit> = sizes.iter().map(family).collect();
            let mut effort = Effort::new(3_000_000);
            if let Ok(found) = requests::unsafe_quorums(&families, &mut effort) {
                prop_assert_eq!(found.is_some(), conflict.is_some());
            }
        }
        if let Some(claims) = conflict {
            let (units, total) = (sizes.len(), claims.iter().sum::<usize>());
            prop_assert!(total > units && total - claims[claims.len() - 1] <= units);
            let left_out: usize = claims.iter().map(|claim| nodes - sizes[claim - 1]).sum();
            prop_assert!(left_out >= nodes);
        }
    }
}

fn explicit_with_idle(family: &[u32], nodes: usize) -> Explicit {
    let sets = family.iter().map(|q| nodes_of((0..NODES).filter(|i| q >> i & 1 == 1))).collect();
    Explicit::new(nodes, sets).expect("a family")
}
