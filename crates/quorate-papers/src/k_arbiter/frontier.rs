//! What the paper does not ask: how small symmetric nondominated k-arbiters can be, and how much
//! any k-arbiter can bear.

use crate::brute::{
    Masks, arbiters, availability, crashes_survived, family, is_arbiter, is_witness, symmetric,
};
use crate::shifted::{above, profile, quorums, shifted, shifted_arbiters};
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

/// What a k-arbiter can bear at best, among some.
struct Best<'a> {
    nodes: usize,
    among: Vec<&'a Masks>,
}

impl<'a> Best<'a> {
    fn survives(&self) -> u32 {
        self.among.iter().map(|it| crashes_survived(self.nodes, it)).max().unwrap_or(0)
    }

    fn available(&self, up: f64) -> (f64, &'a Masks) {
        let of = self.among.iter().map(|it| (availability(self.nodes, it, up), *it));
        of.reduce(|best, it| if it.0 > best.0 + 1e-12 { it } else { best }).expect("there is one")
    }

    /// Those that survive as many crashes as any.
    fn toughest(&self) -> Best<'a> {
        let (nodes, most) = (self.nodes, self.survives());
        let tough = |it: &&Masks| crashes_survived(nodes, it) == most;
        Best { nodes, among: self.among.iter().copied().filter(tough).collect() }
    }

    fn cell(&self, up: f64) -> String {
        let (chance, of) = self.available(up);
        let of = match (of.len(), symmetric(self.nodes, of)) {
            (1, _) if of[0].count_ones() == 1 => "one node".into(),
            (count, Some((_, size))) => format!("{count} sets of {size}"),
            (count, None) => format!("{count} sets"),
        };
        format!("{chance:.4} ({of})")
    }
}

fn frontiers(_: Pace) -> Found {
    let head = [
        "n",
        "k",
        "searched",
        "crashes survived",
        "p = 0.5",
        "p = 0.9",
        "p = 0.99",
        "p = 0.9, of those that survive most crashes",
    ];
    let mut grid = Grid::new(&head);
    let (mut cases, mut kept) = (Tally::new(), Tally::new());
    for nodes in 2..=7 {
        for units in 1..=if nodes < 6 { 3 } else { 5 } {
            let name = || format!("n={nodes} k={units}");
            let few = shifted_arbiters(nodes, units);
            let best = Best { nodes, among: few.iter().collect() };
            let mut searched = format!("{} shifted", few.len());
            if nodes < 6 {
                let all = arbiters(nodes, units);
                searched = format!("all {}", all.len());
                for &one in &all {
                    let before = above(nodes, one);
                    let after = shifted(nodes, &before);
                    let quorums = quorums(nodes, &after);
                    let same = profile(nodes, &before) == profile(nodes, &after);
                    kept.case(same && is_arbiter(&quorums, units), || family(one));
                }
                let any = Best { nodes, among: all };
                cases.case(any.survives() == best.survives(), name);
                for up in [0.5, 0.9, 0.99] {
                    let (any, few) = (any.available(up).0, best.available(up).0);
                    cases.case((any - few).abs() < 1e-12, || format!("{}: {any}", name()));
                }
            }
            // No more than a uniform family survives: n - floor(kn/(k+1)) - 1.
            let uniform = nodes - units * nodes / (units + 1) - 1;
            cases.case(best.survives() == uniform as u32, name);
            let single = best.available(0.5).0;
            cases.case((single - 0.5).abs() < 1e-12, || format!("{}: {single}", name()));
            let cells = [0.5, 0.9, 0.99].map(|up| best.cell(up));
            let tough = best.toughest().cell(0.9);
            let survived = best.survives();
            grid.row(&[
                &nodes, &units, &searched, &survived, &cells[0], &cells[1], &cells[2], &tough,
            ]);
        }
    }
    Found::open(
        cases.holds() && kept.holds(),
        format!(
            "Over all k-arbiters of the n in the table: none bears more crashes than the uniform \
             one, n - floor(kn/(k+1)) - 1, and where nodes are down half of the time a single node \
             is as good as any. {}. From 6 nodes on only shifted families are searched, which \
             lose nothing: shifting keeps how many sets of each size contain a quorum, and what \
             meets goes on meeting; {}.",
            cases.words("comparisons, of the best of all with the best shifted one too"),
            kept.words("k-arbiters of up to 5 nodes were shifted")
        ),
    )
    .with(grid)
}
