//! The responsiveness property: when it can hold at all, and the paper's examples of it.

use crate::brute::{antichains, is_minimal};
use crate::chance::Chance;
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    when_responsiveness_is_possible,
    responsiveness_bounds_f,
    how_many_crashes,
    responsiveness_in_words,
    neighbours_on_a_ring,
    never_the_slowest,
    one_of_three_replies,
    clusters,
    a_reply_from_every_cluster,
    grids_and_rings,
    k_coterie_in_short,
    availability_by_definition,
    crashes_of_trees,
];

/// Whether everybody can have f others that always hear it in time, where a query ends with the
/// first n-1-f answers: then nobody can be one of those for more than n-1-f. By flow: each process
/// asks f others, one after the other, along paths that move earlier choices.
fn is_possible(n: usize, f: usize) -> bool {
    let room = n.saturating_sub(1 + f);
    let mut takes: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut all = true;
    for l in 0..n {
        for _ in 0..f {
            let mut tried = vec![false; n];
            all &= place(l, room, &mut takes, &mut tried);
        }
    }
    all
}

/// Finds a process that takes `l` as well, moving others away if need be.
fn place(l: usize, room: usize, takes: &mut [Vec<usize>], tried: &mut [bool]) -> bool {
    for j in 0..takes.len() {
        if j == l || takes[j].contains(&l) || std::mem::replace(&mut tried[j], true) {
            continue;
        }
        if takes[j].len() < room {
            takes[j].push(l);
            return true;
        }
        for at in 0..takes[j].len() {
            let other = takes[j][at];
            if place(other, room, takes, tried) {
                takes[j][at] = l;
                return true;
            }
        }
    }
    false
}

fn possible() -> (Tally, Tally, Grid) {
    let mut grid = Grid::new(&["n", "largest f for which it can hold", "(n-1)/2"]);
    let (mut printed, mut bound) = (Tally::new(), Tally::new());
    for n in 2..=9usize {
        let mut most = 0;
        for f in 1..n {
            let can = is_possible(n, f);
            printed.case(can, || format!("n={n} f={f}"));
            bound.case(can == (f <= (n - 1) / 2), || format!("n={n} f={f}: {can}"));
            most = if can { most.max(f) } else { most };
        }
        grid.row(&[&n, &most, &((n - 1) / 2)]);
    }
    (printed, bound, grid)
}

fn when_responsiveness_is_possible(_: Pace) -> Found {
    let (printed, bound, grid) = possible();
    Found::corrected(
        &printed,
        "pairs of n up to 9 and f < n for which it can hold at all",
        &bound,
        "pairs: it can if, and only if, f is at most (n-1)/2",
    )
    .with(grid)
}

fn responsiveness_bounds_f(_: Pace) -> Found {
    let (_, bound, grid) = possible();
    Found::all(&bound, "pairs of n up to 9 and f < n: beyond (n-1)/2 crashes it cannot hold")
        .with(grid)
}

fn how_many_crashes(pace: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for n in 2..=9usize {
        for k in 2..=n {
            printed.case(is_possible(n, k - 1), || format!("n={n} k={k}: f={}", k - 1));
            let most = (k - 1).min((n - 1) / 2);
            let so = (1..=most).all(|f| is_possible(n, f)) && !is_possible(n, (n - 1) / 2 + 1);
            right.case(so, || format!("n={n} k={k}"));
        }
    }
    let explored = super::everywhere(pace, super::Found::is_right);
    Found::corrected(
        &printed,
        "pools in which k-1 crashes leave the property possible",
        &right,
        "pools with at most min(k-1, (n-1)/2)",
    )
    .only_if(explored.holds(), format!("{}.", explored.words("worlds with k = 2, f = 1 explored")))
}

/// The formula of section 2 and the sentence after it, on histories made by chance.
fn responsiveness_in_words(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut chance = Chance(7);
    let mut held = 0u64;
    for number in 0..pace.pick(2_000u32, 20_000) {
        let (n, f) = (4u32, 1 + number % 2);
        // Who has crashed, and whom each did not hear in its last query, moment by moment.
        let mut crashed = 0u32;
        let mut unheard = vec![0u32; n as usize];
        let mut moments = Vec::new();
        for _ in 0..5 {
            if chance.below(8) == 0 {
                crashed |= 1 << chance.below(u64::from(n));
            }
            let one = chance.below(u64::from(n)) as usize;
            unheard[one] = (chance.below(16) & chance.below(16)) as u32 & !(1 << one);
            moments.push((crashed, unheard.clone()));
        }
        let heard = |i: u32, j: u32, (crashed, unheard): &(u32, Vec<u32>)| {
            unheard[j as usize] >> i & 1 == 0 || crashed >> j & 1 == 1
        };
        for i in (0..n).filter(|i| crashed >> i & 1 == 0) {
            let formula = moments.iter().fold(u32::MAX >> (32 - n), |all, moment| {
                all & (0..n).filter(|j| heard(i, *j, moment)).map(|j| 1 << j).sum::<u32>()
            });
            let formula = formula.count_ones() > f;
            let sentence = (0u32..1 << n).any(|set| {
                let members = || (0..n).filter(|j| set >> j & 1 == 1);
                set.count_ones() > f
                    && members().all(|j| moments.iter().all(|moment| heard(i, j, moment)))
            });
            held += u64::from(formula);
            cases.case(formula == sentence, || format!("history {number}, p{i}"));
        }
    }
    Found::all(&cases, "processes in histories by chance: formula and sentence agree")
        .only_if(held > 0 && held < cases.cases, format!("The property held for {held} of them."))
}

/// Whether both neighbours can be among the first n-1-f answers of everybody.
fn neighbours_on_a_ring(_: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    let mut grid = Grid::new(&["n", "answers that end a query, f = 2", "neighbours among them"]);
    for n in 3..=8usize {
        let answers = n - 3;
        let neighbours = 2;
        let can = answers >= neighbours && is_possible(n, 2);
        printed.case(can, || format!("n={n}: a query ends with {answers} answers"));
        right.case(can == (n >= 5), || format!("n={n}"));
        grid.row(&[&n, &answers, &if can { "both can be" } else { "not both" }]);
    }
    Found::corrected(&printed, "rings of 3 to 8", &right, "rings: from five processes on")
        .with(grid)
}

/// Every order in which answers of the others can come, as places of the two neighbours.
fn never_the_slowest(_: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for n in 5..=9usize {
        let others = n - 1;
        for a in 0..others {
            for b in (0..others).filter(|b| *b != a) {
                let in_time = a.max(b) < n - 3;
                let name = || format!("n={n}: neighbours answer as number {} and {}", a + 1, b + 1);
                if a.max(b) < others - 1 {
                    printed.case(in_time, name);
                }
                if a.max(b) < others - 2 {
                    right.case(in_time, name);
                }
            }
        }
    }
    Found::corrected(
        &printed,
        "orders of answers in which neither neighbour is the last, both heard in time (f = 2)",
        &right,
        "orders in which neither is among the last two",
    )
}

fn one_of_three_replies(_: Pace) -> Found {
    let mut cases = Tally::new();
    for n in 3..=8u32 {
        for i in 0..n {
            let three = 1 << i | 1 << ((i + 1) % n) | 1 << ((i + n - 1) % n);
            for set in (0u32..1 << n).filter(|set| set.count_ones() == n - 2) {
                cases.case(set & three != 0, || format!("n={n}, p{i}, replies of {set:b}"));
            }
        }
    }
    Found::all(&cases, "sets of n-2 who replied, n up to 8: one of three is among them")
}

/// All ways to divide n processes into clusters of at least two, largest first.
fn partitions(n: usize, most: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in (2..=most.min(n)).rev() {
        for mut rest in partitions(n - first, first) {
            rest.insert(0, first);
            all.push(rest);
        }
    }
    all
}

/// The worst order that has answers from one's own cluster first: whether all of these are among
/// those that end a query, and the cluster is larger than f.
fn cluster_is_responsive(sizes: &[usize], f: usize) -> bool {
    let n: usize = sizes.iter().sum();
    sizes.iter().all(|size| *size > f && size - 1 <= (n - 1).saturating_sub(f))
}

fn cluster_cases() -> (Tally, Tally) {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for n in 4..=12 {
        for sizes in partitions(n, n) {
            let smallest = sizes.iter().copied().min().unwrap_or(0);
            for f in 1..smallest {
                let so = cluster_is_responsive(&sizes, f);
                printed.case(so, || format!("clusters {sizes:?}, f={f}"));
                if sizes.len() > 1 {
                    right.case(so, || format!("clusters {sizes:?}, f={f}"));
                }
            }
        }
    }
    (printed, right)
}

fn clusters(_: Pace) -> Found {
    let (printed, right) = cluster_cases();
    Found::corrected(
        &printed,
        "divisions of up to 12 processes with f below the smallest cluster: all of one's own \
         cluster heard in time",
        &right,
        "divisions into two clusters or more (in a single one nobody is farther away than those \
         who must be heard)",
    )
}

fn a_reply_from_every_cluster(_: Pace) -> Found {
    let mut cases = Tally::new();
    for n in 4..=10u32 {
        for sizes in partitions(n as usize, n as usize) {
            let smallest = sizes.iter().copied().min().unwrap_or(0) as u32;
            let mut next = 0;
            let mut masks = Vec::new();
            for size in &sizes {
                masks.push(((1u32 << size) - 1) << next);
                next += size;
            }
            let f = smallest - 1;
            for heard in (0u32..1 << n).filter(|set| set.count_ones() == n - f) {
                cases.case(masks.iter().all(|mask| mask & heard != 0), || {
                    format!("{sizes:?}, f={f}, {heard:b}")
                });
            }
        }
    }
    Found::all(&cases, "sets of n-f who replied, n up to 10, every division: one of each cluster")
}

fn grids_and_rings(pace: Pace) -> Found {
    let (grids, rings) = (clusters(pace), neighbours_on_a_ring(pace));
    Found::new(
        grids.verdict.max(rings.verdict),
        format!("Grids: {} Rings: {}", grids.text, rings.text),
    )
}

/// Any k+1 quorums contain two that meet, and nothing else.
fn k_coterie_in_short(_: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    let k = 2usize;
    let disjoint = |family: &[u32], count: usize| {
        fn go(family: &[u32], left: usize, used: u32) -> bool {
            if left == 0 {
                return true;
            }
            (0..family.len()).any(|at| {
                family[at] & used == 0 && go(&family[at + 1..], left - 1, used | family[at])
            })
        }
        go(family, count, 0)
    };
    for n in 2..=4usize {
        for family in (1u32..1 << (1 << n)).filter(|bits| bits & 1 == 0).take(1 << 14) {
            let sets: Vec<u32> = (1..1 << n).filter(|set| family >> set & 1 == 1).collect();
            if disjoint(&sets, k + 1) {
                continue;
            }
            let is_k_coterie = disjoint(&sets, k) && is_minimal(&sets);
            printed.case(is_k_coterie, || format!("n={n}: {}", crate::brute::family(&sets)));
        }
    }
    for family in antichains(4) {
        if !disjoint(family, k + 1) && disjoint(family, k) {
            let so = family.iter().all(|q| family.iter().any(|p| p & q == 0) || k > 1);
            right.case(so && is_minimal(family), || crate::brute::family(family));
        }
    }
    Found::corrected(
        &printed,
        "families of up to 4 nodes, k = 2, that satisfy the sentence and let two in, no quorum \
         inside another",
        &right,
        "families with k disjoint quorums, and no quorum inside another",
    )
}

/// The probability that somebody can form a quorum, by adding up every set of live nodes, against
/// the closed form.
fn availability_by_definition(_: Pace) -> Found {
    let mut cases = Tally::new();
    for n in [3u32, 5, 7, 9] {
        for up in [0.5f64, 0.9, 0.99] {
            let quorum = n / 2 + 1;
            let mut summed = 0.0;
            for alive in 0u32..1 << n {
                let count = alive.count_ones();
                if count >= quorum {
                    summed += up.powi(count as i32) * (1.0 - up).powi((n - count) as i32);
                }
            }
            let rule = quorate_quorum::build("majority", Some(n as usize), 1);
            let rule = rule.expect("the catalogue has it").rule;
            let sets = rule.enumerate(1_000).expect("few");
            let mask = |set: &quorate_core::NodeSet| set.iter().map(|i| 1u32 << i.0).sum::<u32>();
            let sets: Vec<u32> = sets.iter().map(mask).collect();
            let mut formed = 0.0;
            for alive in 0u32..1 << n {
                if sets.iter().any(|set| set & alive == *set) {
                    let count = alive.count_ones();
                    formed += up.powi(count as i32) * (1.0 - up).powi((n - count) as i32);
                }
            }
            cases.case((summed - formed).abs() < 1e-12, || format!("n={n}: {summed} {formed}"));
        }
    }
    Found::all(&cases, "majorities, by quorums that can be formed and by the closed form")
        .by("quorate-lab quorum show majority -n 5")
}

/// k binary trees: a quorum is a path from a root to a leaf, and k of them let k in.
fn crashes_of_trees(_: Pace) -> Found {
    let mut grid = Grid::new(&["k", "nodes of a tree", "n", "can crash", "n - k log2(2n/k)"]);
    let (mut complete, mut extended) = (Tally::new(), Tally::new());
    for k in [1u32, 2, 4] {
        for levels in 1..=5u32 {
            // A complete tree of so many levels; and with one node more, above its root.
            for (nodes, path) in [((1 << levels) - 1, levels), (1 << levels, levels + 1)] {
                let n = k * nodes;
                let can = n - k * path;
                let formula =
                    f64::from(n) - f64::from(k) * (2.0 * f64::from(n) / f64::from(k)).log2();
                let name = || format!("k={k}, trees of {nodes}: {can}, not {formula:.2}");
                if path == levels {
                    complete.case((formula - f64::from(can)).abs() < 1e-9, name);
                } else {
                    extended.case((formula - f64::from(can)).abs() < 1e-9, name);
                }
                grid.row(&[&k, &nodes, &n, &can, &format!("{formula:.2}")]);
            }
        }
    }
    Found::corrected(
        &complete,
        "pools of k complete binary trees, all but one path of each crashed, k still let in",
        &extended,
        "pools of k trees with a power of two of nodes (one more above the root), for which the \
         formula is exact",
    )
    .with(grid)
}
