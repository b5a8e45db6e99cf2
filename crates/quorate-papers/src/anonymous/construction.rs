//! Section 3.2.2: the construction.

use quorate_quorum::Effort;
use quorate_quorum::sharing::Construction;

use super::{built, shown, structure, structures};
use crate::brute::{antichains, family, has_room, is_k_coterie, is_minimal, packings};
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    condition_c,
    blocks_for_all_sets,
    products_of_blocks,
    unions_of_pairs,
    product_of_two,
    product_has_room,
    product_intersects,
    product_is_minimal,
    quorums_of_one_group,
    smallest_block,
    products_satisfy_c,
    products_are_minimal,
    products_intersect,
    locks_map_to_units,
    fewer_locks_than_units,
    number_of_universes,
    one_condition_one_construction,
    simpler_constructions,
];

fn every(pace: Pace) -> Vec<(u32, Vec<u32>)> {
    let mut all = Vec::new();
    for units in 1..=pace.pick(2, 3u32) {
        for processes in 1..=pace.pick(2, 3usize) {
            let mut found = structures(units, processes);
            // Processes of one group make no difference here.
            found.retain(|alphas| alphas.windows(2).all(|pair| pair[0] != pair[1]));
            all.extend(found.into_iter().map(|alphas| (units, alphas)));
        }
    }
    all
}

/// Condition C by brute force, if there are few arbiters.
fn is_c(quorums: &[Vec<u32>], k: impl Fn(u32) -> u32) -> bool {
    (1u32..1 << quorums.len()).all(|s| {
        let groups = (0..quorums.len()).filter(|i| s >> i & 1 == 1);
        let mut union: Vec<u32> = groups.flat_map(|i| quorums[i].iter().copied()).collect();
        union.sort_unstable();
        union.dedup();
        is_k_coterie(&union, k(s) as usize)
    })
}

fn masks(assignment: &quorate_quorum::sharing::Assignment) -> Vec<Vec<u32>> {
    assignment
        .quorums()
        .map(|list| list.iter().map(|q| q.iter().map(|node| 1 << node.0).sum()).collect())
        .collect()
}

fn condition_c(_: Pace) -> Found {
    let (mut cases, mut minimal) = (Tally::new(), Tally::new());
    for (units, alphas) in every(Pace::Quick) {
        let ours = structure(units, &alphas);
        for construction in Construction::ALL {
            let (_, assignment) = built(&ours, construction);
            let found = assignment.examine(&ours, &mut Effort::default()).expect("small");
            let found = found.verdicts();
            let brute = is_c(&masks(&assignment), |s| ours.k(s as _));
            cases.case(found.c == brute, || format!("{construction:?} of {}", shown(&alphas)));
            // Without minimality nothing else is lost.
            minimal.case(found.c || !found.c_minus, || {
                format!("{construction:?} of {} serves all without C", shown(&alphas))
            });
        }
    }
    Found::corrected_if(
        !minimal.holds(),
        &cases,
        format!(
            "Sets S must not be empty (there is no 0-coterie), and minimality across groups is \
             never used: {}. The library against brute force: {}.",
            minimal.words("quorum sets"),
            cases.words("quorum sets of small structures")
        ),
    )
}

fn blocks_for_all_sets(pace: Pace) -> Found {
    let (mut enough, mut closed) = (Tally::new(), Tally::new());
    let mut grid = Grid::new(&["alpha", "groups", "arbiters"]);
    for (units, alphas) in every(pace) {
        let ours = structure(units, &alphas);
        let (blueprint, _) = built(&ours, Construction::Product);
        let g = ours.groups().len() as u32;
        let formula: u64 = (0..units)
            .map(|r| alphas.iter().filter(|alpha| *alpha >> r & 1 == 1).count() as u32)
            .map(|d| (1u64 << g) - (1u64 << (g - d)))
            .sum();
        enough.case(blueprint.arbiters <= alphas.len() as u64, || {
            format!(
                "{}: {} arbiters, {} processes",
                shown(&alphas),
                blueprint.arbiters,
                alphas.len()
            )
        });
        closed.case(blueprint.arbiters == formula, || shown(&alphas));
        if grid.rows.len() < 12 {
            grid.row(&[&shown(&alphas), &g, &blueprint.arbiters]);
        }
    }
    Found::corrected(
        &enough,
        "structures, if arbiters must be among the processes",
        &closed,
        "structures, with sum over units of 2^g - 2^(g-d) arbiters, which may be roles",
    )
    .with(grid)
}

fn products_of_blocks(pace: Pace) -> Found {
    let (mut literal, mut right) = (Tally::new(), Tally::new());
    for (units, alphas) in every(pace) {
        let ours = structure(units, &alphas);
        let (blueprint, assignment) = built(&ours, Construction::Product);
        let sizes: Vec<usize> =
            assignment.quorums().map(|list| list.first().map_or(0, |q| q.len())).collect();
        let g = ours.groups().len();
        // One block for every set that contains G: 2^(g-1). "S in G" would name none but groups.
        right.case(sizes.iter().all(|size| *size == 1 << (g - 1)), || shown(&alphas));
        literal.case(sizes.iter().all(|size| *size == 1), || {
            format!("{}: quorums of {:?}", shown(&alphas), blueprint.quorum_size)
        });
    }
    Found::corrected(
        &literal,
        "structures, if S ranges over what is in G",
        &right,
        "structures, if S ranges over the sets that contain G: 2^(g-1) blocks",
    )
}

/// All k-coteries on one to three nodes.
fn coteries() -> Vec<(&'static Vec<u32>, usize)> {
    let mut found = Vec::new();
    for nodes in 1..=3 {
        for quorums in antichains(nodes) {
            found.extend((1..=nodes).filter(|k| is_k_coterie(quorums, *k)).map(|k| (quorums, k)));
        }
    }
    found
}

fn product(a: &[u32], b: &[u32]) -> Vec<u32> {
    a.iter().flat_map(|x| b.iter().map(move |y| x | y << 4)).collect()
}

fn pairs(mut each: impl FnMut(&[u32], &[u32], &[u32], usize)) {
    let all = coteries();
    for (a, i) in &all {
        for (b, j) in &all {
            each(a, b, &product(a, b), *i.min(j));
        }
    }
}

fn unions_of_pairs(_: Pace) -> Found {
    let mut cases = Tally::new();
    pairs(|a, b, joined, _| {
        let mut different = joined.to_vec();
        different.sort_unstable();
        different.dedup();
        cases.case(different.len() == a.len() * b.len(), || family(joined));
    });
    Found::all(&cases, "products of k-coteries on disjoint nodes: as many quorums as pairs")
}

fn product_of_two(_: Pace) -> Found {
    let mut cases = Tally::new();
    pairs(|a, b, joined, k| {
        cases.case(is_k_coterie(joined, k), || format!("{} and {}", family(a), family(b)));
    });
    Found::all(&cases, "products of k-coteries on up to 3 and 3 nodes")
}

fn product_has_room(_: Pace) -> Found {
    let mut cases = Tally::new();
    pairs(|_, _, joined, k| cases.case(has_room(joined, k), || family(joined)));
    Found::all(&cases, "products")
}

fn product_intersects(_: Pace) -> Found {
    let mut cases = Tally::new();
    pairs(|_, _, joined, k| {
        cases.case(packings(joined, k + 1).is_empty(), || family(joined));
    });
    Found::all(&cases, "products")
}

fn product_is_minimal(_: Pace) -> Found {
    let mut cases = Tally::new();
    pairs(|_, _, joined, _| cases.case(is_minimal(joined), || family(joined)));
    Found::all(&cases, "products")
}

fn quorums_of_one_group(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, alphas) in every(pace) {
        let ours = structure(units, &alphas);
        let (_, assignment) = built(&ours, Construction::Product);
        for (group, list) in masks(&assignment).iter().enumerate() {
            if list.len() <= 40 {
                let k = ours.groups()[group].alpha.count_ones() as usize;
                cases.case(is_k_coterie(list, k), || format!("{} group {group}", shown(&alphas)));
            }
        }
    }
    Found::all(&cases, "groups with up to 40 quorums, by brute force")
}

fn smallest_block(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, alphas) in every(pace) {
        let ours = structure(units, &alphas);
        for s in ours.group_sets() {
            for (number, group) in ours.groups().iter().enumerate() {
                if s >> number & 1 == 1 {
                    cases.case(group.alpha.count_ones() <= ours.k(s), || shown(&alphas));
                }
            }
        }
    }
    Found::all(&cases, "groups and sets that contain them")
}

fn examined(pace: Pace, mut each: impl FnMut(&[u32], &quorate_quorum::sharing::Examined)) {
    for (units, alphas) in every(pace) {
        let ours = structure(units, &alphas);
        let (_, assignment) = built(&ours, Construction::Product);
        each(&alphas, &assignment.examine(&ours, &mut Effort::default()).expect("small"));
    }
}

fn products_satisfy_c(pace: Pace) -> Found {
    let (mut c, mut plus) = (Tally::new(), Tally::new());
    examined(pace, |alphas, found| {
        c.case(found.verdicts().c, || shown(alphas));
        plus.case(found.verdicts().c_plus, || shown(alphas));
    });
    Found::all(&c, "structures, real quorums, all families of disjoint ones").and(format!(
        "The product even grants whatever the counts allow: {}.",
        plus.words("structures")
    ))
}

fn products_are_minimal(pace: Pace) -> Found {
    let mut cases = Tally::new();
    examined(pace, |alphas, found| {
        let none = found.failing.iter().all(|failing| failing.inclusion.is_none());
        cases.case(none, || shown(alphas));
    });
    Found::all(&cases, "structures")
}

fn products_intersect(pace: Pace) -> Found {
    let mut cases = Tally::new();
    examined(pace, |alphas, found| {
        let none = found.failing.iter().all(|failing| failing.too_many.is_none());
        cases.case(none && found.unsafe_locks.is_none(), || shown(alphas));
    });
    Found::all(&cases, "structures")
}

/// Every vector of locks that leaves a unit of S unused, with every injective map of locks to
/// units: does a group that may use an unused unit have room for one more?
fn maps(pace: Pace, inside: bool, mut each: impl FnMut(&[u32], &[usize], bool)) {
    for (units, alphas) in every(pace) {
        let ours = structure(units, &alphas);
        let groups: Vec<u32> = ours.groups().iter().map(|group| group.alpha as u32).collect();
        // Locks, by group; the counts must be servable.
        let mut vectors = vec![Vec::new()];
        for _ in &groups {
            vectors = vectors
                .iter()
                .flat_map(|v: &Vec<u32>| (0..=units).map(move |x| [&v[..], &[x]].concat()))
                .collect();
        }
        for counts in vectors.into_iter().filter(|counts| ours.is_hall(counts)) {
            let locks: Vec<usize> = counts
                .iter()
                .enumerate()
                .flat_map(|(group, count)| vec![group; *count as usize])
                .collect();
            let all = groups.iter().fold(0, |all, alpha| all | alpha);
            if locks.len() as u32 >= all.count_ones() {
                continue;
            }
            let mut images = vec![0u32];
            for lock in &locks {
                let may = if inside { groups[*lock] } else { all };
                images = images
                    .iter()
                    .flat_map(|used| {
                        let free = (0..units).map(|r| 1 << r);
                        free.filter(move |r| may & r != 0 && used & r == 0).map(move |r| used | r)
                    })
                    .collect();
            }
            for image in images {
                for unit in (0..units).map(|r| 1u32 << r).filter(|r| all & r != 0 && image & r == 0)
                {
                    for (group, alpha) in groups.iter().enumerate() {
                        if alpha & unit != 0 {
                            let mut more = counts.clone();
                            more[group] += 1;
                            each(&alphas, &locks, ours.is_hall(&more));
                        }
                    }
                }
            }
        }
    }
}

fn locks_map_to_units(pace: Pace) -> Found {
    let (mut any, mut right) = (Tally::new(), Tally::new());
    maps(pace, false, |alphas, locks, room| {
        any.case(room, || format!("{}, groups with locks {locks:?}", shown(alphas)));
    });
    maps(pace, true, |alphas, locks, room| {
        right.case(room, || format!("{}, groups with locks {locks:?}", shown(alphas)));
    });
    Found::corrected(
        &any,
        "maps of locks to any units of S, with an unused one and a group that may use it",
        &right,
        "maps of each lock to a unit that its group may use (they exist by Hall's theorem)",
    )
}

fn fewer_locks_than_units(pace: Pace) -> Found {
    let mut found = locks_map_to_units(pace);
    found.text.push_str(
        " Where there is room, every set that contains the group has fewer locks \
                         than units: that is what room means in counts.",
    );
    found
}

fn number_of_universes(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, alphas) in every(pace) {
        let ours = structure(units, &alphas);
        let (blueprint, _) = built(&ours, Construction::Product);
        let g = ours.groups().len() as u32;
        cases.case(blueprint.block_count() == (1 << g) - 1, || shown(&alphas));
    }
    Found::all(&cases, "structures")
        .and("Its size is not stated: at least |R| 2^(g-1) arbiters, and quorums of 2^(g-1).")
}

fn one_condition_one_construction(pace: Pace) -> Found {
    products_satisfy_c(pace)
}

fn simpler_constructions(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut grid = Grid::new(&["alpha", "product", "named sum", "reduced product"]);
    for (units, alphas) in every(pace) {
        let ours = structure(units, &alphas);
        let of = |construction| {
            let (blueprint, assignment) = built(&ours, construction);
            let found = assignment.examine(&ours, &mut Effort::default()).expect("small");
            (blueprint.arbiters, found.verdicts())
        };
        let (product, _) = of(Construction::Product);
        let (named, verdicts) = of(Construction::Named);
        cases.case(verdicts.c && named <= product, || format!("named sum of {}", shown(&alphas)));
        let (reduced, verdicts) = of(Construction::Reduced);
        let right = verdicts.c_minus && verdicts.c_plus && reduced <= product;
        cases.case(right, || format!("reduced product of {}", shown(&alphas)));
        if grid.rows.len() < 14 && alphas.len() > 1 {
            grid.row(&[&shown(&alphas), &product, &named, &reduced]);
        }
    }
    Found::open(
        cases.holds(),
        format!(
            "Answered twice: one ordinary coterie per unit satisfies C with as many arbiters as \
             there are units; one block per circuit grants whatever the counts allow, as the \
             product does, with fewer arbiters. {}.",
            cases.words("constructions examined")
        ),
    )
    .with(grid)
    .by("quorate-lab quorum sharing docs/experiments/sharing.json")
}
