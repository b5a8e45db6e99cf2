//! Sections 4.5 and 5: resiliency, and future work.

use quorate_quorum::{Answers, Domination, Effort, Natural, Ratio, build};

use super::cubes::EXACT;
use crate::brute::{
    antichains, arbiters, availability, crashes_survived, dominates, explicit, family, is_arbiter,
    listed, masks, space,
};
use crate::{Chart, Found, Grid, Pace, Tally};

crate::registered![
    resiliency_by_definition,
    resiliency_is_one,
    dominated_by_a_singleton,
    smaller_is_better,
    resiliency_is_never_zero,
    resiliency_needs_no_probability,
    resiliency_of_uniform,
    resiliency_of_cubes,
    resiliency_at_the_bound,
    order_of_resiliencies,
    trees_for_any_k,
    logarithmic_and_available,
    one_measure_among_others,
];

fn counted(nodes: usize, quorums: &[u32]) -> (usize, usize) {
    let most = (0..nodes).map(|i| quorums.iter().filter(|q| **q >> i & 1 == 1).count()).max();
    (most.unwrap_or(0), quorums.len())
}

fn resiliency_by_definition(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=4 {
        for quorums in antichains(nodes) {
            let (over, under) = counted(nodes, quorums);
            let same = explicit(nodes, quorums).resiliency() == Ratio::of(over, under);
            cases.case(same, || family(quorums));
        }
    }
    Found::all(&cases, "antichains, n<=4, the library against counting")
        .by("quorate-lab quorum report --family uniform --nodes 7 --units 2")
}

fn resiliency_is_one(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=pace.pick(4, 5) {
        for quorums in antichains(nodes) {
            let common = quorums.iter().fold(u32::MAX, |common, q| common & q) != 0;
            let (over, under) = counted(nodes, quorums);
            cases.case((over == under) == common, || family(quorums));
        }
    }
    Found::all(&cases, "antichains: R = 1 iff some node is in all quorums")
}

fn dominated_by_a_singleton(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=4usize {
        for quorums in arbiters(nodes, 1) {
            let below = (0..nodes).any(|node| {
                let single = [1u32 << node];
                dominates(&single, quorums) || quorums[..] == single
            });
            if below {
                let (over, under) = counted(nodes, quorums);
                cases.case(over == under, || family(quorums));
            }
        }
    }
    Found::all(&cases, "coteries, n<=4, that are a singleton or dominated by one: R = 1")
}

fn smaller_is_better(_: Pace) -> Found {
    let mut grid = Grid::new(&["family", "n", "k", "R", "crashes survived", "available at 0.9"]);
    let mut rows = Vec::new();
    for (spec, nodes, units) in [
        ("uniform", 7, 2),
        ("uniform", 13, 2),
        ("cube", 8, 2),
        ("tree", 13, 2),
        ("hierarchy", 16, 2),
    ] {
        let Ok(family) = build(spec, Some(nodes), units) else { continue };
        let answers = Answers::new(&family);
        let Some(r) = answers.resiliency() else { continue };
        let up = answers.availability(&vec![0.9; nodes], &mut Effort::default());
        let survived = answers.survives(&mut Effort::default()).known().unwrap_or(0);
        rows.push((format!("{spec} {nodes}"), r.to_f64(), up.value));
        let cells = (format!("{:.3}", r.to_f64()), format!("{:.4}", up.value));
        grid.row(&[&spec, &nodes, &units, &cells.0, &survived, &cells.1]);
    }
    let cube = build("cube", Some(64), 2).expect("a cube").rule;
    let r = cube.resiliency().expect("known").to_f64();
    let alive = cube.availability(&[0.9; 64]).expect("known");
    let (r_cube, a_cube) = (format!("{r:.3}"), format!("{alive:.4}"));
    grid.row(&[&"cube", &64, &2, &r_cube, &3, &a_cube]);
    rows.push(("cube 64".into(), r, alive));
    let mut cases = Tally::new();
    for (a, r_a, up_a) in &rows {
        for (b, r_b, up_b) in &rows {
            if r_a < r_b {
                cases.case(up_a >= up_b, || {
                    format!("{a} (R {r_a:.2}, available {up_a:.3}) and {b} (R {r_b:.2}, {up_b:.3})")
                });
            }
        }
    }
    // What is true: after one crash, the share of quorums that is left is at least 1-R.
    let mut left = Tally::new();
    for nodes in 2..=4usize {
        for quorums in antichains(nodes) {
            let (over, under) = counted(nodes, quorums);
            for node in 0..nodes {
                let alive = quorums.iter().filter(|q| **q >> node & 1 == 0).count();
                left.case(alive >= under - over, || family(quorums));
            }
        }
    }
    Found::corrected(
        &cases,
        "pairs of families, the one with the smaller R no less available",
        &left,
        "single crashes of all antichains, n<=4: at least a share 1-R of the quorums is left",
    )
    .with(grid)
}

fn resiliency_is_never_zero(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut least = (1, 1);
    for nodes in 1..=pace.pick(4, 5) {
        for units in 1..=2 {
            for quorums in arbiters(nodes, units) {
                let (over, under) = counted(nodes, quorums);
                cases.case(over > 0, || family(quorums));
                if over * least.1 < least.0 * under {
                    least = (over, under);
                }
            }
        }
    }
    Found::all(&cases, "k-arbiters: some node is in a quorum")
        .and(format!("The least of them is {}/{}.", least.0, least.1))
}

fn resiliency_needs_no_probability(_: Pace) -> Found {
    let plane = masks(&listed("plane", 7, 1));
    let (over, under) = counted(7, &plane);
    let at = |up: f64| availability(7, &plane, up);
    let differ = (at(0.9) - at(0.5)).abs() > 0.1;
    Found::if_so(
        differ && Ratio::of(over, under) == listed("plane", 7, 1).resiliency(),
        format!(
            "Fano's plane: R is {over}/{under} whatever nodes do; its availability is {:.4} if \
             they are up with 0.9, and {:.4} with 0.5. Crashes survived: {}.",
            at(0.9),
            at(0.5),
            crashes_survived(7, &plane)
        ),
    )
}

fn resiliency_of_uniform(_: Pace) -> Found {
    let mut cases = Tally::new();
    for units in 1..=5usize {
        for nodes in 1..=40usize {
            let rule = build("uniform", Some(nodes), units).expect("a family").rule;
            let size = units * nodes / (units + 1);
            let printed =
                Ratio::new(Natural::binomial(nodes - 1, size), Natural::binomial(nodes, size + 1));
            let bound = units as f64 / (units + 1) as f64 + 1.0 / nodes as f64;
            let same = rule.resiliency().is_some_and(|r| r == printed);
            cases.case(same && printed.to_f64() <= bound + 1e-12, || format!("{nodes},{units}"));
        }
    }
    Found::all(&cases, "n<=40, k<=5, equality and bound")
}

fn resiliency_of_cubes(_: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for (side, units) in EXACT {
        let nodes = side.pow(units as u32 + 1);
        let found = listed("cube", nodes, units).resiliency();
        let name =
            || format!("k={units} n={nodes}: {:.3}, not {}/{nodes}", found.to_f64(), units + 1);
        printed.case(found == Ratio::of(units + 1, nodes), name);
        right.case(found == Ratio::of(nodes - (side - 1).pow(units as u32 + 1), nodes), name);
    }
    Found::all(&printed, "cubes up to 81 nodes, (k+1)/n")
        .and(format!("1-(1-1/a)^(k+1) instead: {}.", right.words("cubes")))
}

fn resiliency_at_the_bound(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut least = Tally::new();
    for (dimension, order) in [(2, 2), (2, 3), (2, 4), (3, 2), (3, 3)] {
        let family = space(dimension, order);
        let (nodes, found) = (family.nodes(), family.resiliency());
        let name = || format!("PG({dimension},{order}): {:.3}, not 1/{nodes}", found.to_f64());
        cases.case(found == Ratio::of(1, nodes), name);
        let bound = (nodes as f64).powf(-1.0 / dimension as f64);
        least.case(found.to_f64() >= bound - 1e-12, name);
    }
    Found::all(&cases, "planes and spaces")
        .and(format!("It is at least n^(-1/(k+1)): {}.", least.words("of them")))
}

fn order_of_resiliencies(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut grid = Grid::new(&["k", "sides for which a cube has a larger R than uniform"]);
    let cube = |a: usize, k: usize| 1.0 - (1.0 - 1.0 / a as f64).powi(k as i32 + 1);
    for k in 1..=8usize {
        let mut worse = Vec::new();
        for a in 2..=6usize {
            let nodes = (a as u64).pow(k as u32 + 1);
            let uniform = (k as u64 * nodes / (k as u64 + 1) + 1) as f64 / nodes as f64;
            let larger = cube(a, k) > uniform + 1e-12;
            cases.case(!larger && uniform < 1.0, || {
                format!("k={k} a={a}: cube {:.3}, uniform {uniform:.3}", cube(a, k))
            });
            if larger {
                worse.push(a.to_string());
            }
        }
        grid.row(&[&k, &worse.join(" ")]);
        let all = k * (k + 1) / (k + 1) + 1;
        cases.case(all < k + 1, || format!("k={k} n={}: uniform has R = 1", k + 1));
    }
    Found::all(&cases, "cubes with a<=6, k<=8, and n=k+1").with(grid)
}

fn trees_for_any_k(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut grid =
        Grid::new(&["k", "depth", "n", "smallest quorum", "largest", "load", "crashes survived"]);
    let trees = [(3, 1, 1), (7, 1, 2), (4, 2, 1), (13, 2, 2), (5, 3, 1), (15, 1, 3)];
    for (nodes, units, depth) in trees.into_iter().take(pace.pick(5, 6)) {
        let family = build("tree", Some(nodes), units).expect("a family");
        let answers = Answers::new(&family);
        let meets = answers.intersecting(units, &mut Effort::default()).expect("known");
        let list = listed("tree", nodes, units);
        let brute = nodes > 7 || is_arbiter(&masks(&list), units);
        let nondominated = family.rule.domination(units) == Some(Domination::Nondominated);
        cases.case(meets && brute && nondominated, || format!("n={nodes} k={units}"));
        let sizes: Vec<usize> = list.quorums().iter().map(|quorum| quorum.len()).collect();
        let load = family.rule.load(&vec![1.0; nodes]).expect("known");
        let (least, most) = (sizes.iter().min(), sizes.iter().max());
        let survived = family.rule.survives().unwrap_or(0);
        let load = format!("{load:.3}");
        grid.row(&[
            &units,
            &depth,
            &nodes,
            least.unwrap_or(&0),
            most.unwrap_or(&0),
            &load,
            &survived,
        ]);
    }
    Found::open(
        cases.holds(),
        format!(
            "Answered: a root and k of its k+1 subtrees, or all k+1. For k=1 it is the tree of \
             Agrawal and El Abbadi. {}: a k-arbiter, and non-dominated.",
            cases.words("trees")
        ),
    )
    .with(grid)
    .by("quorate-lab quorum report --family tree --nodes 13 --units 2")
}

fn logarithmic_and_available(pace: Pace) -> Found {
    let mut grid =
        Grid::new(&["k", "n", "smallest quorum", "uniform's", "lower bound", "available at 0.9"]);
    let mut cases = Tally::new();
    let mut chart = Chart::new(
        "Smallest quorum of k-trees as a share of n^(k/(k+1))",
        "depth",
        "smallest quorum / n^(k/(k+1))",
    );
    for units in 1..=4usize {
        let mut points = Vec::new();
        for depth in 1..=pace.pick(3u32, 5) {
            let nodes = (0..=depth).map(|d| (units + 1).pow(d)).sum::<usize>();
            if nodes > 10_000 {
                break;
            }
            let smallest = (0..=depth).map(|d| units.pow(d)).sum::<usize>();
            let uniform = units * nodes / (units + 1) + 1;
            let bound = (nodes as f64).powf(units as f64 / (units as f64 + 1.0));
            let rule = build("tree", Some(nodes), units).expect("a tree").rule;
            let alive = rule.availability(&vec![0.9; nodes]).unwrap_or(f64::NAN);
            let sizes = rule.sizes().and_then(|sizes| sizes.into_keys().next());
            cases.case(sizes.is_none_or(|least| least == smallest), || format!("{nodes},{units}"));
            cases.case(smallest <= uniform, || format!("n={nodes} k={units}"));
            points.push((f64::from(depth), smallest as f64 / bound));
            let (bound, alive) = (format!("{bound:.1}"), format!("{alive:.4}"));
            grid.row(&[&units, &nodes, &smallest, &uniform, &bound, &alive]);
        }
        chart = chart.curve(format!("k = {units}"), points);
    }
    Found::open(
        cases.holds(),
        "Narrowed: for k=1 the smallest quorums of trees are logarithmic. For k>=2 they grow as \
         n^(log k / log(k+1)), still below uniform; they are not of one size, so the bound for \
         symmetric families does not apply, and their availability falls with the depth. Whether \
         k>=2 allows logarithmic ones with high availability stays open here.",
    )
    .with(grid)
    .drawn(chart)
}

fn one_measure_among_others(_: Pace) -> Found {
    Found::not_computable(
        "Advice. `quorate-lab quorum report` gives R beside availability, load and crashes borne.",
    )
}
