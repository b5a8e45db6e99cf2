//! What the specification says about sharing structures (labels spec 3 to 5), on all small ones and
//! on the rows of its table.

use quorate_quorum::sharing::{
    Construction, HallArbiters, Structure, circuits, closed_sets, hall_arbiters, hall_exact,
    hall_semaphores, plan, reduced_family, tight_sets,
};
use quorate_quorum::{Effort, Explicit, nodes_of};

fn structure(units: usize, alphas: &[u32]) -> Structure {
    let names: Vec<String> = (0..units).map(|unit| format!("r{unit}")).collect();
    let alpha = |(process, set): (usize, &u32)| {
        let own = (0..units).filter(|unit| set >> unit & 1 == 1).map(|unit| names[unit].clone());
        (format!("u{process}"), own.collect())
    };
    let alpha = alphas.iter().enumerate().map(alpha).collect();
    Structure::new(names.clone(), alpha).expect("a structure")
}

/// Every set of different alphas on so many units.
fn all_structures(units: usize) -> impl Iterator<Item = Structure> {
    let sets: Vec<u32> = (1..1 << units).collect();
    (1u32..1 << sets.len()).map(move |chosen| {
        let chosen = (0..sets.len()).filter(|index| chosen >> index & 1 == 1);
        let alphas: Vec<u32> = chosen.map(|index| sets[index]).collect();
        structure(units, &alphas)
    })
}

fn small_structures() -> impl Iterator<Item = Structure> {
    (1..=3).flat_map(all_structures).filter(|structure| structure.groups().len() <= 5)
}

#[test]
fn the_theorems_say_what_a_search_finds() {
    let mut searched = 0;
    for structure in small_structures() {
        let circuits = circuits(&structure, &mut Effort::default()).expect("small");
        for construction in Construction::ALL {
            let plan = plan(&structure, construction, &circuits);
            let Ok(quorums) = plan.quorums(&structure, 200) else { continue };
            let Ok(found) = quorums.examine(&structure, &mut Effort::new(32_000_000)) else {
                continue;
            };
            assert_eq!(found.verdicts(), plan.verdicts, "{construction:?} of {structure:?}");
            assert_eq!(quorums.arbiters() as u64, plan.arbiters);
            searched += 1;
        }
    }
    assert!(searched > 400, "{searched} constructions were small enough");
}

/// Every set of groups is looked at for every new vector of counts, and that is charged: a ring of
/// eleven units, each of two processes, would take minutes.
#[test]
fn a_search_that_would_take_minutes_is_not_made() {
    let searched = |units: usize| {
        let alphas: Vec<u32> =
            (0..units).map(|unit| 1 << unit | 1 << ((unit + 1) % units)).collect();
        let structure = structure(units, &alphas);
        let named = plan(&structure, Construction::Named, &[]);
        let quorums = named.quorums(&structure, 200).expect("few");
        quorums.examine(&structure, &mut Effort::new(Effort::DEFAULT / 10))
    };
    assert!(!searched(8).expect("seconds").verdicts().c_plus);
    assert!(searched(11).is_err());
}

#[test]
fn no_block_of_the_reduced_product_can_be_dropped_and_none_is_missing() {
    for structure in small_structures() {
        let circuits = circuits(&structure, &mut Effort::default()).expect("small");
        let family = reduced_family(&structure, &circuits);
        assert_eq!(hall_exact(&structure, &family, &circuits), None);
        for dropped in 0..family.len() {
            let mut rest = family.clone();
            rest.remove(dropped);
            let let_through = hall_exact(&structure, &rest, &circuits);
            let circuit = let_through.unwrap_or_else(|| panic!("{structure:?} needs all blocks"));
            assert!(!structure.is_hall(&circuit.counts));
            if let Ok(quorums) = plan_without(&structure, &rest)
                && let Ok(found) = quorums.examine(&structure, &mut Effort::new(500_000))
            {
                assert!(!found.verdicts().c_minus, "{structure:?} without a block");
            }
        }
    }
}

/// The product over a family that is not one of ours.
fn plan_without(
    structure: &Structure,
    family: &[u32],
) -> Result<quorate_quorum::sharing::Assignment, quorate_quorum::sharing::AssignmentError> {
    let mut starts = vec![0];
    for set in family {
        starts.push(starts.last().expect("the first is 0") + structure.k(*set) as usize);
    }
    let groups = 0..structure.groups().len();
    let quorums = groups.map(|group| {
        let mut lists: Vec<Vec<usize>> = vec![Vec::new()];
        for (block, set) in family.iter().enumerate().filter(|(_, set)| *set >> group & 1 == 1) {
            let arbiters = starts[block]..starts[block] + structure.k(*set) as usize;
            lists = lists
                .iter()
                .flat_map(|list| arbiters.clone().map(|a| [list.as_slice(), &[a]].concat()))
                .collect();
        }
        lists.into_iter().map(nodes_of).collect()
    });
    quorate_quorum::sharing::Assignment::new(structure, quorums.collect())
}

#[test]
fn circuits_are_exactly_the_minimal_counts_that_cannot_be_served() {
    for structure in small_structures() {
        let found = circuits(&structure, &mut Effort::default()).expect("small");
        let groups = structure.groups().len();
        let most = structure.units().len() as u32 + 1;
        let mut expected = Vec::new();
        let mut counts = vec![0; groups];
        'all: loop {
            if !structure.is_hall(&counts) {
                let minimal = (0..groups).filter(|group| counts[*group] > 0).all(|group| {
                    let mut less = counts.clone();
                    less[group] -= 1;
                    structure.is_hall(&less)
                });
                if minimal {
                    expected.push(counts.clone());
                }
            }
            for count in &mut counts {
                *count += 1;
                if *count <= most {
                    continue 'all;
                }
                *count = 0;
            }
            break;
        }
        let mut found: Vec<Vec<u32>> = found.into_iter().map(|circuit| circuit.counts).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{structure:?}");
    }
}

/// Rows of the table in section 4.3: blocks, arbiters and quorum of the paper's product; distinct
/// unions; facets; blocks, arbiters and largest quorum of the reduced product; arbiters of the
/// named sum.
#[test]
fn the_table_of_constructions() {
    let chain: Vec<u32> = (1..=8).map(|length| (1 << length) - 1).collect();
    let windows: Vec<u32> = (0..9).map(|first| 0b11 << first).collect();
    let star: Vec<u32> = (1..=7).map(|own| 1 | 1 << own).collect();
    let ring: Vec<u32> = (0..7).map(|unit| 1 << unit | 1 << ((unit + 1) % 7)).collect();
    let laminar: Vec<u32> = (0..4u32)
        .flat_map(|depth| {
            let width = 8 >> depth;
            (0..1 << depth).map(move |at| ((1 << width) - 1) << (at * width))
        })
        .collect();
    // Two types times two zones, two units each: any, types, zones, and every pair.
    let (first, second, east, west) = (0b1111, 0b1111_0000, 0b0011_0011, 0b1100_1100);
    let pairs = [first & east, first & west, second & east, second & west];
    let labels = [&[0xff, first, second, east, west], &pairs[..]].concat();
    let kinds = |unit: u32| (unit / 6, unit / 2 % 3);
    let of = |wanted: &dyn Fn((u32, u32)) -> bool| {
        (0..18).filter(|unit| wanted(kinds(*unit))).fold(0, |set, unit| set | 1 << unit)
    };
    let mut wide = vec![of(&|_| true)];
    for value in 0..3 {
        wide.push(of(&|(kind, _)| kind == value));
        wide.push(of(&|(_, zone)| zone == value));
    }
    type Row<'a> = (usize, &'a [u32], [u64; 3], usize, usize, [u64; 3], u64);
    let rows: [Row<'_>; 7] = [
        (8, &chain, [255, 1793, 128], 8, 8, [8, 36, 8], 8),
        (8, &laminar, [32767, 245_760, 16384], 255, 15, [15, 32, 4], 8),
        (10, &windows, [511, 3584, 256], 199, 45, [45, 210, 25], 10),
        (8, &star, [127, 575, 64], 127, 127, [28, 77, 7], 8),
        (7, &ring, [127, 672, 64], 50, 36, [36, 147, 16], 7),
        (8, &labels, [511, 3840, 256], 15, 13, [13, 56, 7], 8),
        (18, &wide, [127, 2016, 64], 49, 43, [43, 540, 20], 18),
    ];
    for (units, alphas, product, unions, facets, reduced, named) in rows {
        let structure = structure(units, alphas);
        let circuits = circuits(&structure, &mut Effort::default()).expect("within reach");
        let measure = |construction| {
            let plan = plan(&structure, construction, &circuits);
            let largest = *plan.quorum_size.iter().max().expect("a group");
            [plan.block_count(), plan.arbiters, u64::from(largest)]
        };
        assert_eq!(measure(Construction::Product), product);
        assert_eq!(closed_sets(&structure).len(), unions);
        assert_eq!(tight_sets(&structure).len(), facets);
        assert_eq!(measure(Construction::Reduced), reduced);
        assert_eq!(measure(Construction::Named)[1], named);
    }
}

#[test]
fn one_family_of_counting_arbiters_is_safe_iff_as_many_quorums_meet_as_the_largest_circuit_asks() {
    // Five disjoint pairs: ten units, but a circuit is never larger than three.
    let pairs: Vec<u32> = (0..5).map(|pair| 0b11 << (2 * pair)).collect();
    let pairs = structure(10, &pairs);
    let circuits = circuits(&pairs, &mut Effort::default()).expect("small");
    assert_eq!(circuits.iter().map(|circuit| circuit.size).max(), Some(3));
    let all_but_one = |nodes: usize| {
        let quorum = |left_out| nodes_of((0..nodes).filter(move |node| *node != left_out));
        Explicit::new(nodes, (0..nodes).map(quorum).collect()).expect("a family")
    };
    let effort = &mut Effort::default();
    assert_eq!(hall_arbiters(&circuits, &all_but_one(4), effort), Ok(HallArbiters::Safe));
    match hall_arbiters(&circuits, &all_but_one(3), effort).expect("small") {
        HallArbiters::Safe => panic!("three quorums of two in three need not meet"),
        HallArbiters::Unsafe { circuit, quorums } => {
            assert!(quorums.len() <= circuit.size as usize);
            assert!((0..3).all(|node| quorums.iter().any(|q| !q.contains((node as usize).into()))));
        }
    }
}

/// The semaphores admit exactly the Hall vectors.
#[test]
fn hall_semaphores_admit_what_can_be_served_and_nothing_else() {
    for structure in small_structures() {
        let circuits = circuits(&structure, &mut Effort::default()).expect("small");
        let counters = hall_semaphores(&structure, &circuits);
        let groups = structure.groups().len();
        let most = structure.units().len() as u32 + 1;
        for code in 0..(most + 1).pow(groups as u32) {
            let counts: Vec<u32> =
                (0..groups as u32).map(|g| code / (most + 1).pow(g) % (most + 1)).collect();
            let admitted =
                counters.iter().all(|(set, limit)| structure.asked(*set, &counts) <= *limit);
            assert_eq!(admitted, structure.is_hall(&counts), "{counts:?} of {structure:?}");
        }
    }
}

#[test]
fn a_description_that_contradicts_itself_says_where() {
    let names = |list: &[&str]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
    let cases = [
        (names(&[]), vec![], "at least one unit"),
        (names(&["a", "a"]), vec![("p", names(&["a"]))], "unit a is listed twice"),
        (names(&["a"]), vec![("p", names(&["b"]))], "p may use b"),
        (names(&["a"]), vec![("p", names(&[]))], "p may use no unit"),
        (names(&["a"]), vec![("p", names(&["a"])), ("p", names(&["a"]))], "process p is listed"),
    ];
    for (units, alpha, word) in cases {
        let alpha = alpha.into_iter().map(|(process, units)| (process.to_string(), units));
        let error = Structure::new(units, alpha.collect()).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    }
}
