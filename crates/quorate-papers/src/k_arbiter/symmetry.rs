//! Section 4.4: symmetric k-arbiters and the lower bound.

use quorate_quorum::{Effort, Reach, fewest_apart, largest_k};

use super::cubes::EXACT;
use crate::brute::{
    antichains, any_meet, arbiters, choose, explicit, family, is_arbiter, listed, masks, space,
    survives, symmetric,
};
use crate::{Chart, Found, Grid, Pace, Tally};

crate::registered![
    symmetric_arbiters,
    singleton_is_not_symmetric,
    effort_of_uniform,
    uniform_is_symmetric,
    effort_of_cubes,
    exact_cubes_are_symmetric,
    memberships_counted_twice,
    combinations_counted_twice,
    quorums_exceed_the_bound,
    arbiters_intersect_k_plus_1_wise,
    arbiters_are_projective_spaces,
    spaces_exist,
    the_bound_for_one_unit,
    the_bound_was_known,
];

fn symmetric_arbiters(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=4 {
        for units in 1..=3 {
            for quorums in arbiters(nodes, units) {
                let ours = explicit(nodes, quorums).symmetric().map(|found| found.size);
                let counted = symmetric(nodes, quorums).map(|found| found.1);
                cases.case(ours == counted, || family(quorums));
            }
        }
    }
    Found::all(&cases, "k-arbiters, n<=4, k<=3, the library against counting")
}

fn singleton_is_not_symmetric(_: Pace) -> Found {
    let (mut printed, mut corrected) = (Tally::new(), Tally::new());
    for nodes in 1..=6usize {
        let quorums = masks(&listed("singleton", nodes, 2));
        let all = (1u32 << nodes) - 1;
        let so = symmetric(nodes, &quorums).is_none() && !survives(&quorums, all & !quorums[0]);
        printed.case(so, || format!("n={nodes} is symmetric"));
        if nodes > 1 {
            corrected.case(so, || format!("n={nodes}"));
        }
    }
    Found::corrected(&printed, "singletons, n<=6", &corrected, "singletons, 2<=n<=6")
}

fn effort_of_uniform(_: Pace) -> Found {
    let mut cases = Tally::new();
    for units in 1..=4usize {
        for nodes in 1..=9usize {
            let size = units * nodes / (units + 1);
            let expected = (choose(nodes as u64 - 1, size as u64) as usize, size + 1);
            let found = symmetric(nodes, &masks(&listed("uniform", nodes, units)));
            cases.case(found == Some(expected), || format!("n={nodes} k={units}: {found:?}"));
        }
    }
    Found::all(&cases, "uniform families, n<=9, k<=4")
}

fn uniform_is_symmetric(_: Pace) -> Found {
    effort_of_uniform(Pace::Quick)
}

fn effort_of_cubes(_: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for (side, units) in EXACT {
        let nodes = side.pow(units as u32 + 1);
        let found = listed("cube", nodes, units).symmetric().expect("symmetric");
        let effort = found.effort.to_u64().unwrap_or(0) as usize;
        let said = (units + 1) * side.pow(units as u32);
        let name = || format!("k={units} n={nodes}: {effort}, not {said}");
        printed.case(effort == said && found.size == said, name);
        let size = nodes - (side - 1).pow(units as u32 + 1);
        right.case(effort == size && found.size == size, name);
    }
    Found::all(&printed, "cubes up to 81 nodes")
        .and(format!("n-(a-1)^(k+1) instead: {}.", right.words("cubes")))
}

fn exact_cubes_are_symmetric(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (side, units) in EXACT {
        let nodes = side.pow(units as u32 + 1);
        let found = listed("cube", nodes, units).symmetric().is_some();
        cases.case(found, || format!("a={side} k={units}"));
    }
    Found::all(&cases, "exact cubes up to 81 nodes")
}

/// All symmetric k-arbiters on few nodes.
fn small(pace: Pace, mut each: impl FnMut(usize, usize, &[u32], usize, usize)) {
    for nodes in 1..=pace.pick(4, 5) {
        for quorums in antichains(nodes) {
            let Some((beta, gamma)) = symmetric(nodes, quorums) else { continue };
            for units in 1..=4 {
                if is_arbiter(quorums, units) {
                    each(nodes, units, quorums, beta, gamma);
                }
            }
        }
    }
}

fn memberships_counted_twice(pace: Pace) -> Found {
    let mut cases = Tally::new();
    small(pace, |nodes, _, quorums, beta, gamma| {
        cases.case(nodes * beta == gamma * quorums.len(), || family(quorums));
    });
    Found::all(&cases, "symmetric k-arbiters")
}

fn combinations_counted_twice(pace: Pace) -> Found {
    let mut cases = Tally::new();
    small(pace, |nodes, units, quorums, beta, _| {
        let k = units as u64 + 1;
        let left = choose(quorums.len() as u64, k);
        cases.case(left <= nodes as u64 * choose(beta as u64, k), || family(quorums));
    });
    Found::all(&cases, "symmetric k-arbiters")
}

fn quorums_exceed_the_bound(pace: Pace) -> Found {
    let (mut printed, mut corrected) = (Tally::new(), Tally::new());
    // gamma > n^(k/(k+1)), in whole numbers: gamma^(k+1) > n^k.
    let mut look = |nodes: usize, units: usize, gamma: usize| {
        let above = (gamma as u128).pow(units as u32 + 1) > (nodes as u128).pow(units as u32);
        let name = || format!("n={nodes} k={units}: size {gamma}");
        printed.case(above, name);
        if nodes > 1 {
            corrected.case(above, name);
        }
    };
    small(pace, |nodes, units, _, _, gamma| look(nodes, units, gamma));
    for (dimension, order) in [(2, 2), (2, 3), (2, 4), (2, 5), (3, 2), (3, 3), (4, 2)] {
        let family = space(dimension, order);
        look(family.nodes(), dimension - 1, family.quorums()[0].len());
    }
    for (side, units) in EXACT {
        let nodes = side.pow(units as u32 + 1);
        look(nodes, units, nodes - (side - 1).pow(units as u32 + 1));
    }
    let mut chart = Chart::new(
        "Quorum sizes for k = 2 against the bound",
        "nodes",
        "members of a quorum, as a share of all",
    );
    let share = |size: f64, nodes: usize| (nodes as f64, size / nodes as f64);
    let bound = (3..=64).map(|n| share((n as f64).powf(2.0 / 3.0), n)).collect();
    let uniform = (3..=64).map(|n| share((2 * n / 3 + 1) as f64, n)).collect();
    let cubes = [2usize, 3, 4].map(|a| share((a.pow(3) - (a - 1).pow(3)) as f64, a.pow(3)));
    let spaces = [(15, 7.0), (40, 13.0)].map(|(n, size)| share(size, n));
    chart = chart.curve("lower bound n^(2/3)", bound).curve("uniform", uniform);
    chart = chart.curve("cubes", cubes.to_vec()).curve("projective spaces", spaces.to_vec());
    Found::corrected(
        &printed,
        "symmetric families (all on few nodes, spaces, cubes)",
        &corrected,
        "of them, n>=2 (for one node size and bound are both 1)",
    )
    .drawn(chart)
}

fn arbiters_intersect_k_plus_1_wise(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=4 {
        for units in 1..=3 {
            for quorums in arbiters(nodes, units) {
                cases.case(any_meet(quorums, units + 1), || family(quorums));
            }
        }
    }
    Found::all(&cases, "k-arbiters, n<=4, k<=3")
}

fn arbiters_are_projective_spaces(pace: Pace) -> Found {
    // A space has as many hyperplanes as points, and a point is in as many as each has points.
    let mut equivalent = Tally::new();
    for nodes in 1..=4 {
        for units in 1..=2 {
            for quorums in arbiters(nodes, units) {
                let like = quorums.len() == nodes
                    && symmetric(nodes, quorums).is_some_and(|(beta, gamma)| beta == gamma);
                equivalent.case(like, || format!("k={units}: {}", family(quorums)));
            }
        }
    }
    let mut spaces = Tally::new();
    let of = [(2, 2), (2, 3), (3, 2), (3, 3), (4, 2)];
    for (dimension, order) in &of[..pace.pick(4, 5)] {
        let list = space(*dimension, *order);
        let reach = largest_k(&list, &mut Effort::default()).expect("small");
        spaces.case(reach == Reach::UpTo(*dimension as i64 - 1), || {
            format!("PG({dimension},{order})")
        });
    }
    Found::all(&equivalent, "k-arbiters, n<=4, k<=2, with the counts of a space").only_if(
        true,
        format!(
            "The other direction is true: hyperplanes of PG(k+1,q) are a k-arbiter and not a \
             (k+1)-arbiter: {}.",
            spaces.words("spaces")
        ),
    )
}

fn spaces_exist(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let of = [(3, 2), (3, 3), (4, 2), (5, 2)];
    let mut grid = Grid::new(&["space", "points", "hyperplanes", "members of each"]);
    for (dimension, order) in &of[..pace.pick(3, 4)] {
        let family = space(*dimension, *order);
        let nodes = (order.pow(*dimension as u32 + 1) - 1) / (order - 1);
        let size = (order.pow(*dimension as u32) - 1) / (order - 1);
        let right = family.nodes() == nodes
            && family.quorums().len() == nodes
            && family.quorums().iter().all(|quorum| quorum.len() == size);
        let meet = fewest_apart(&family, *dimension, &mut Effort::default()).expect("small");
        cases.case(right && meet.is_none(), || format!("PG({dimension},{order})"));
        grid.row(&[&format!("PG({dimension},{order})"), &nodes, &nodes, &size]);
    }
    Found::all(&cases, "spaces constructed and counted").with(grid)
}

fn the_bound_for_one_unit(_: Pace) -> Found {
    let mut cases = Tally::new();
    for order in [2usize, 3, 4, 5, 7, 8, 9] {
        let nodes = order * order + order + 1;
        let bound = quorate_quorum::bounds::symmetric_size_min(nodes, 1);
        let same = (bound - (nodes as f64).sqrt()).abs() < 1e-9;
        cases.case(same && (order + 1) as f64 > bound, || format!("order {order}"));
    }
    Found::all(&cases, "planes: n^(1/2), and order+1 is above it")
}

fn the_bound_was_known(_: Pace) -> Found {
    Found::not_computable("Who found it first is a matter of the literature, not of computation.")
}
