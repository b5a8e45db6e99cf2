//! What the paper does not ask: how small symmetric nondominated k-arbiters can be, and how much
//! any k-arbiter can bear.

use crate::brute::{
    antichains, arbiters, availability, crashes_survived, family, is_arbiter, is_witness, symmetric,
};
use crate::{Found, Grid, Pace, Tally};

crate::registered![smallest_symmetric_nondominated, frontiers];

fn is_nondominated(nodes: usize, quorums: &[u32], units: usize) -> bool {
    !(1..1u32 << nodes).any(|h| is_witness(quorums, units, h))
}

/// All sets that rotations make of one.
fn orbit(nodes: usize, set: u32) -> Vec<u32> {
    let all = (1u32 << nodes) - 1;
    let mut orbit: Vec<u32> =
        (0..nodes).map(|by| (set << by | set >> (nodes - by)) & all).collect();
    orbit.sort_unstable();
    orbit.dedup();
    orbit
}

/// Families of sets of one size that rotations leave as they are: symmetric, all of them.
fn rotating(nodes: usize, size: u32, mut each: impl FnMut(&[u32])) {
    let sets = (1..1u32 << nodes).filter(|set| set.count_ones() == size);
    let mut orbits: Vec<Vec<u32>> = sets.map(|set| orbit(nodes, set)).collect();
    orbits.sort();
    orbits.dedup();
    for chosen in 1u32..1 << orbits.len() {
        let members = (0..orbits.len()).filter(|at| chosen >> at & 1 == 1);
        let quorums: Vec<u32> = members.flat_map(|at| orbits[at].iter().copied()).collect();
        each(&quorums);
    }
}

fn smallest_symmetric_nondominated(pace: Pace) -> Found {
    let head = ["n", "k", "searched", "symmetric, nondominated", "smallest quorum", "one of them"];
    let mut grid = Grid::new(&head);
    let mut bound = Tally::new();
    let mut row = |nodes: usize, units: usize, how: &str, found: &[Vec<u32>]| {
        let smallest = found.iter().min_by_key(|quorums| quorums[0].count_ones());
        let (size, shown) = match smallest {
            Some(quorums) => (quorums[0].count_ones().to_string(), family(quorums)),
            None => ("-".into(), "there is none".into()),
        };
        for quorums in found {
            // The paper's bound for symmetric ones.
            let least = (nodes as f64).powf(units as f64 / (units + 1) as f64);
            bound.case(f64::from(quorums[0].count_ones()) + 1e-9 >= least, || family(quorums));
        }
        let shown = if shown.len() > 90 { format!("{}...", &shown[..87]) } else { shown };
        grid.row(&[&nodes, &units, &how, &found.len(), &size, &shown]);
    };
    for nodes in 2..=5 {
        for units in 1..=3 {
            let all = arbiters(nodes, units).into_iter();
            let found: Vec<Vec<u32>> = all
                .filter(|quorums| symmetric(nodes, quorums).is_some())
                .filter(|quorums| is_nondominated(nodes, quorums, units))
                .cloned()
                .collect();
            row(nodes, units, "all", &found);
        }
    }
    for nodes in 6..=pace.pick(7, 8) {
        for units in 1..=3 {
            let mut found = Vec::new();
            for size in 1..=nodes as u32 {
                // Larger ones are not asked for once there are any.
                if found.is_empty() {
                    rotating(nodes, size, |quorums| {
                        if is_arbiter(quorums, units) && is_nondominated(nodes, quorums, units) {
                            found.push(quorums.to_vec());
                        }
                    });
                }
            }
            row(nodes, units, "rotations", &found);
        }
    }
    Found::open(
        bound.holds(),
        format!(
            "The table has them: for the smaller n among all k-arbiters, for the larger among \
             those that rotations leave as they are (smaller ones without that are not excluded), \
             and there only of the smallest size. {}.",
            bound.words("found, none smaller than n^(k/(k+1))")
        ),
    )
    .with(grid)
}

fn frontiers(_: Pace) -> Found {
    let head = [
        "n",
        "k",
        "k-arbiters",
        "nondominated",
        "crashes survived",
        "p = 0.5",
        "p = 0.9",
        "p = 0.99",
    ];
    let mut grid = Grid::new(&head);
    let mut cases = Tally::new();
    for nodes in 2..=5 {
        for units in 1..=3 {
            let all = arbiters(nodes, units);
            let best: Vec<&Vec<u32>> =
                all.iter().copied().filter(|q| is_nondominated(nodes, q, units)).collect();
            let most = |of: &[&Vec<u32>]| of.iter().map(|q| crashes_survived(nodes, q)).max();
            let reach = |of: &[&Vec<u32>], up: f64| {
                of.iter().map(|q| availability(nodes, q, up)).fold(0.0, f64::max)
            };
            let mut cells = Vec::new();
            for up in [0.5, 0.9, 0.99] {
                let (any, few) = (reach(&all, up), reach(&best, up));
                cases.case((any - few).abs() < 1e-12, || format!("n={nodes} k={units}: {any}"));
                let of = best.iter().find(|q| (availability(nodes, q, up) - few).abs() < 1e-12);
                let of = of.map_or_else(String::new, |quorums| match quorums.len() {
                    1 if quorums[0].count_ones() == 1 => "one node".into(),
                    _ => match symmetric(nodes, quorums) {
                        Some((_, size)) => format!("{} sets of {size}", quorums.len()),
                        None => format!("{} sets", quorums.len()),
                    },
                });
                cells.push(format!("{few:.4} ({of})"));
            }
            let (any, few) = (most(&all), most(&best));
            cases.case(any == few, || format!("n={nodes} k={units}: {any:?} {few:?}"));
            // No more than a uniform family survives: n - floor(kn/(k+1)) - 1.
            let uniform = nodes - units * nodes / (units + 1) - 1;
            cases.case(few == Some(uniform as u32), || format!("n={nodes} k={units}: {few:?}"));
            let shown = few.map_or_else(|| "-".into(), |most| most.to_string());
            grid.row(&[
                &nodes,
                &units,
                &all.len(),
                &best.len(),
                &shown,
                &cells[0],
                &cells[1],
                &cells[2],
            ]);
        }
    }
    let counted = antichains(5).len();
    Found::open(
        cases.holds(),
        format!(
            "Over all k-arbiters of up to 5 nodes (among {counted} antichains there): no \
             k-arbiter bears more crashes than the uniform one, n - floor(kn/(k+1)) - 1; the most \
             available are nondominated, and where nodes are down half of the time a single node \
             is as good as any. {}.",
            cases.words("comparisons")
        ),
    )
    .with(grid)
}
