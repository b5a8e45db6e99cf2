//! Section 4.2.3: cubes.

use quorate_quorum::{Effort, fewest_apart};

use crate::brute::{choose, is_arbiter, listed, masks};
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    cubes_by_hyperplanes,
    size_of_a_cube_quorum,
    size_as_an_alternating_sum,
    size_is_at_most,
    exact_cubes_are_arbiters,
    cubes_for_one_unit,
    points_by_digits,
    full_hyperplanes,
    general_cubes_are_arbiters,
    a_common_member_is_found,
];

/// Side and k of cubes that can be listed.
pub(super) const EXACT: [(usize, usize); 11] =
    [(2, 1), (3, 1), (4, 1), (5, 1), (2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (2, 4), (2, 5)];

fn power(side: usize, exponent: usize) -> usize {
    side.pow(exponent as u32)
}

fn digits(point: usize, base: usize, count: usize) -> Vec<usize> {
    (0..count).map(|d| point / power(base, d) % base).collect()
}

/// Quorums by definition: who shares a coordinate.
fn quorums(points: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let shares = |a: &Vec<usize>, b: &Vec<usize>| a.iter().zip(b).any(|(a, b)| a == b);
    let of = |a| (0..points.len()).filter(|b| shares(a, &points[*b])).collect();
    points.iter().map(of).collect()
}

fn cubes_by_hyperplanes(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (side, units) in EXACT {
        let nodes = power(side, units + 1);
        let points: Vec<_> = (0..nodes).map(|i| digits(i, side, units + 1)).collect();
        let mut defined = quorums(&points);
        let ours = listed("cube", nodes, units);
        let mut ours: Vec<Vec<usize>> = ours
            .quorums()
            .iter()
            .map(|quorum| quorum.iter().map(|node| node.index()).collect())
            .collect();
        defined.sort();
        defined.dedup();
        ours.sort();
        cases.case(ours == defined, || format!("a={side} k={units}"));
    }
    Found::all(&cases, "cubes up to 81 points, the catalogue against unions of hyperplanes")
}

fn size_of_a_cube_quorum(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (side, units) in EXACT {
        let nodes = power(side, units + 1);
        let family = listed("cube", nodes, units);
        let size = nodes - power(side - 1, units + 1);
        let all = family.quorums().iter().all(|quorum| quorum.len() == size);
        cases.case(all, || format!("a={side} k={units}"));
    }
    Found::all(&cases, "cubes, closed form against enumeration")
}

fn size_as_an_alternating_sum(_: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for units in 1..=4u32 {
        for side in 2..=5i64 {
            let size = side.pow(units + 1) - (side - 1).pow(units + 1);
            let term = |i: u32, low: u32| {
                choose(u64::from(units) + 1, u64::from(i + low)) as i64 * side.pow(units - i)
            };
            let sign = |i: u32| if i.is_multiple_of(2) { 1 } else { -1 };
            let as_printed: i64 = (0..=units).map(|i| -sign(i) * term(i, 0)).sum();
            let mended: i64 = (0..=units).map(|i| sign(i) * term(i, 1)).sum();
            let n = side.pow(units + 1);
            printed
                .case(as_printed == size, || format!("k={units} n={n}: {as_printed}, true {size}"));
            right.case(mended == size, || format!("k={units} n={n}"));
        }
    }
    Found::all(&printed, "cubes").and(format!("With (-1)^i C(k+1,i+1): {}.", right.words("cubes")))
}

fn size_is_at_most(_: Pace) -> Found {
    let mut cases = Tally::new();
    for units in 1..=4 {
        for side in 2..=5 {
            let size = power(side, units + 1) - power(side - 1, units + 1);
            cases.case(size <= (units + 1) * power(side, units), || format!("{side},{units}"));
        }
    }
    Found::all(&cases, "cubes, a<=5, k<=4")
}

fn exact_cubes_are_arbiters(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (side, units) in EXACT {
        let nodes = power(side, units + 1);
        let family = listed("cube", nodes, units);
        let apart = fewest_apart(&family, units + 1, &mut Effort::default()).expect("small");
        let minimal = family.inclusion().is_none();
        let brute = nodes > 16 || is_arbiter(&masks(&family), units);
        cases.case(apart.is_none() && minimal && brute, || format!("a={side} k={units}"));
    }
    Found::all(&cases, "exact cubes up to 81 nodes by search, those up to 16 by brute force too")
}

fn cubes_for_one_unit(_: Pace) -> Found {
    let mut cases = Tally::new();
    for side in 2..=6 {
        let same = listed("cube", side * side, 1) == listed("grid", side * side, 1);
        cases.case(same, || format!("side {side}"));
    }
    Found::all(&cases, "sides 2 to 6: the same quorums as the grid")
}

fn root(nodes: usize, degree: usize) -> usize {
    (1..=nodes).find(|a| power(*a, degree) >= nodes).unwrap_or(1)
}

fn points_by_digits(_: Pace) -> Found {
    let (mut printed, mut corrected) = (Tally::new(), Tally::new());
    for units in 1..=3usize {
        for nodes in 2..=30usize {
            // As printed: processes from 1, base ceil(k-th root)+1.
            let base = root(nodes, units) + 1;
            let points: Vec<_> = (1..=nodes).map(|i| digits(i, base, units + 1)).collect();
            let useful = quorums(&points).iter().any(|quorum| quorum.len() < nodes);
            printed.case(useful, || format!("n={nodes} k={units}: every quorum is everybody"));
            // Corrected: processes from 0, base ceil((k+1)-th root).
            let base = root(nodes, units + 1);
            let points: Vec<_> = (0..nodes).map(|i| digits(i, base, units + 1)).collect();
            let mut defined = quorums(&points);
            defined.sort();
            defined.dedup();
            let ours = listed("cube-as-printed", nodes, units);
            let mut ours: Vec<Vec<usize>> = ours
                .quorums()
                .iter()
                .map(|quorum| quorum.iter().map(|node| node.index()).collect())
                .collect();
            ours.sort();
            ours.dedup();
            corrected.case(ours == defined, || format!("n={nodes} k={units}"));
        }
    }
    Found::corrected(
        &printed,
        "n<=30, k<=3, taken literally",
        &corrected,
        "n and k with base ceil(n^(1/(k+1))) and processes from 0, against the catalogue",
    )
}

fn full_hyperplanes(_: Pace) -> Found {
    let (mut printed, mut corrected) = (Tally::new(), Tally::new());
    for units in 1..=3usize {
        for nodes in 2..=200usize {
            let base = root(nodes, units + 1);
            let plane = power(base, units);
            let filled = |v: usize| (v * plane..(v + 1) * plane).filter(|i| *i < nodes).count();
            let full = (0..base).filter(|v| filled(*v) == plane).count();
            let partial: Vec<usize> =
                (0..base).filter(|v| filled(*v) > 0 && filled(*v) < plane).collect();
            let name = || format!("n={nodes} k={units}: partial plane {partial:?}");
            let count = nodes / plane;
            let few = full == count && partial.len() <= 1;
            printed.case(few && partial.iter().all(|v| *v == count + 1), name);
            corrected.case(few && partial.iter().all(|v| *v == count), name);
        }
    }
    Found::corrected(
        &printed,
        "n<=200, k<=3, with the partial plane at floor(n/a^k)+1",
        &corrected,
        "n and k, with the partial plane at floor(n/a^k), counted from 0",
    )
}

fn general_cubes_are_arbiters(pace: Pace) -> Found {
    let (mut meet, mut minimal, mut mended) = (Tally::new(), Tally::new(), Tally::new());
    let mut grid = Grid::new(&["k", "n for which a quorum contains another"]);
    for units in 1..=3usize {
        let mut bad = Vec::new();
        for nodes in 1..=pace.pick(20, 40) {
            let raw = listed("cube-as-printed", nodes, units);
            let apart = fewest_apart(&raw, units + 1, &mut Effort::default()).expect("small");
            meet.case(apart.is_none(), || format!("n={nodes} k={units}"));
            let inclusion = raw.minimalised().quorums().len() < distinct(&raw);
            minimal.case(!inclusion, || {
                let (a, b) = raw.inclusion().unwrap_or_default();
                format!("n={nodes} k={units}: a quorum of {} in one of {}", a.len(), b.len())
            });
            if inclusion {
                bad.push(nodes.to_string());
            }
            let family = listed("cube", nodes, units);
            let apart = fewest_apart(&family, units + 1, &mut Effort::default()).expect("small");
            mended.case(apart.is_none() && family.inclusion().is_none(), || format!("{nodes}"));
        }
        grid.row(&[&units, &bad.join(" ")]);
    }
    let mut printed = meet.clone();
    printed.wrong += minimal.wrong;
    printed.first = printed.first.or(minimal.first);
    Found::corrected(
        &printed,
        "cubes (intersection and minimality)",
        &mended,
        "cubes without the quorums that contain another",
    )
    .and(format!("Intersection alone: {}.", meet.words("of them")))
    .with(grid)
}

fn distinct(family: &quorate_quorum::Explicit) -> usize {
    let mut all = family.quorums().to_vec();
    all.sort();
    all.dedup();
    all.len()
}

fn a_common_member_is_found(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for units in 1..=2usize {
        for nodes in 1..=pace.pick(14, 30usize) {
            let base = root(nodes, units + 1);
            let points: Vec<_> = (0..nodes).map(|i| digits(i, base, units + 1)).collect();
            let last = points.iter().map(|point| point[units]).max().unwrap_or(0);
            let mut chosen = vec![0; units + 1];
            loop {
                let inside = |node: usize| {
                    chosen
                        .iter()
                        .all(|i: &usize| points[*i].iter().zip(&points[node]).any(|(a, b)| a == b))
                };
                // As the proof has it: each in the last plane, or one that is not gives x1 and the
                // others one coordinate each.
                let found = match chosen.iter().position(|i| points[*i][units] < last) {
                    None => inside(chosen[0]),
                    Some(first) => {
                        let mut at = points[chosen[first]][units] * power(base, units);
                        let others = (0..=units).filter(|i| *i != first);
                        for (axis, other) in others.enumerate() {
                            at += points[chosen[other]][axis] * power(base, axis);
                        }
                        at < nodes && inside(at)
                    }
                };
                cases.case(found, || format!("n={nodes} k={units}: {chosen:?}"));
                let Some(place) = chosen.iter().position(|i| i + 1 < nodes) else { break };
                chosen[..place].fill(0);
                chosen[place] += 1;
            }
        }
    }
    Found::all(&cases, "choices of k+1 quorums: the proof's node is in all of them")
}
