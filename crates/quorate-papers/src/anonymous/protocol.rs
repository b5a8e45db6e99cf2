//! Sections 3.1 and 3.2.1: protocol P, and when it solves the problem.

use std::sync::LazyLock;

use quorate_quorum::Effort;
use quorate_quorum::sharing::{
    Construction, common_quorums_suffice, never_moving_suffices, never_moving_suffices_for_each,
};

use super::{built, chosen, holders, quorums, shown, structure, structures, union};
use crate::handlers::{Claim, Explored, Queue, Scheme};
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    one_quorum_is_asked,
    one_at_a_time,
    the_head_of_the_queue,
    access_with_all_of_a_quorum,
    release_to_all_of_a_quorum,
    three_messages_each,
    deadlock_and_starvation,
    deadlock_is_avoided,
    one_set_for_all,
    one_more_is_forbidden,
    as_many_are_needed,
    sets_depend_on_the_structure,
    one_set_for_a_group,
    necessary_and_sufficient,
    condition_c_suffices,
    quorums_follow_groups,
    locked_quorums_are_units,
    never_beyond_the_counts,
    missing_quorums_exist,
    counts_give_units,
    locked_by_a_process,
];

/// Protocol P: arbiters are locks, and serve who came first.
fn p(quorums: &[u32], arbiters: u8) -> Scheme {
    let claim = |(i, quorum): (usize, &u32)| Claim::new(i as u8, 1, *quorum);
    let claims = quorums.iter().enumerate().map(claim).collect();
    Scheme { queue: Queue::Arrival, ..Scheme::new(1, arbiters, claims) }
}

/// Every choice of a quorum by every process.
fn choices(sets: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = vec![Vec::new()];
    for set in sets {
        let longer = |one: &Vec<u32>| -> Vec<Vec<u32>> {
            set.iter().map(|quorum| [&one[..], &[*quorum]].concat()).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Whether nobody is ever inside beyond what the counts allow.
fn is_hall(found: &Explored, alphas: &[u32]) -> bool {
    found.together.iter().all(|inside| {
        (1..1u32 << alphas.len())
            .all(|v| (inside & v).count_ones() <= union(&chosen(alphas, v)).count_ones())
    })
}

/// u1 may use r1 and r2, u2 only r1.
const TWO: [u32; 2] = [0b11, 0b01];

/// The two-process example with the paper's product, every choice of quorums explored.
fn product_worlds(ordered: bool) -> &'static [Explored] {
    static PLAIN: LazyLock<Vec<Explored>> = LazyLock::new(|| explore_products(false));
    static ORDERED: LazyLock<Vec<Explored>> = LazyLock::new(|| explore_products(true));
    if ordered { &ORDERED } else { &PLAIN }
}

fn explore_products(ordered: bool) -> Vec<Explored> {
    let ours = structure(2, &TWO);
    let (_, assignment) = built(&ours, Construction::Product);
    let sets = quorums(&ours, &assignment);
    let three = vec![sets[0].clone(), sets[0].clone(), sets[1].clone()];
    let arbiters = assignment.arbiters() as u8;
    let explore = |choice: &Vec<u32>| Scheme { ordered, ..p(choice, arbiters) }.explore();
    choices(&three).iter().map(explore).collect()
}

fn history() -> Vec<String> {
    p(&[0b11], 2).explore().last
}

fn count(told: &[String], what: &str) -> usize {
    told.iter().filter(|step| step.starts_with(what)).count()
}

fn one_quorum_is_asked(_: Pace) -> Found {
    let (same, other) = (p(&[0b01, 0b01], 2).explore(), p(&[0b01, 0b10], 2).explore());
    let mut right = Tally::new();
    right.case(other.most == 2 && other.deadlock.is_none(), || "different quorums".into());
    Found::corrected_if(
        same.most == 1,
        &right,
        format!(
            "Two units with quorums {{a}} and {{b}}: if both processes pick {{a}}, one waits \
             although {{b}} is free (at most {} inside); if they pick different ones, {}. A \
             requester should look for a free one.",
            same.most, other.most
        ),
    )
}

fn one_at_a_time(_: Pace) -> Found {
    let right = p(&[1, 1, 1], 1).explore();
    let astray = Scheme { astray: true, ..p(&[1, 1, 1], 1) }.explore();
    let mut cases = Tally::new();
    cases.case(right.most == 1 && right.deadlock.is_none(), || "right".into());
    Found::corrected_if(
        astray.most == 0,
        &cases,
        format!(
            "Three requests at one arbiter: one OK at a time, {} states. As printed the OK goes to \
             its own sender, and nobody ever gets in ({} inside).",
            right.states, astray.most
        ),
    )
}

fn the_head_of_the_queue(_: Pace) -> Found {
    let found = Scheme { again: true, ..p(&[1, 1, 1], 1) }.explore();
    Found::if_so(
        found.starved.is_none() && found.deadlock.is_none(),
        format!(
            "Three processes that ask one arbiter again and again: nobody can be passed over for \
             ever in {} states.",
            found.states
        ),
    )
}

fn access_with_all_of_a_quorum(_: Pace) -> Found {
    let told = history();
    let at = told.iter().position(|step| step.ends_with("enters")).unwrap_or(0);
    Found::if_so(
        count(&told[..at], "permission") == 2,
        format!("With a quorum of two: {}.", told[..=at].join(", ")),
    )
}

fn release_to_all_of_a_quorum(_: Pace) -> Found {
    let told = history();
    let at = told.iter().position(|step| step.ends_with("leaves")).unwrap_or(0);
    Found::if_so(
        count(&told[at..], "release") == 2,
        format!("With a quorum of two: {}.", told[at..].join(", ")),
    )
}

fn three_messages_each(_: Pace) -> Found {
    let mut cases = Tally::new();
    for size in 1..=4u8 {
        let told = p(&[(1 << size) - 1], size).explore().last;
        let each = ["request", "permission", "release"].map(|what| count(&told, what));
        cases.case(each == [usize::from(size); 3], || format!("|q|={size}: {each:?}"));
    }
    Found::all(&cases, "sizes of quorums: one REQ, one OK and one REL for each member")
}

fn deadlock_and_starvation(_: Pace) -> Found {
    let crossed = p(&[0b11, 0b11], 2).explore();
    let again = Scheme { again: true, ..p(&[0b01, 0b01, 0b10], 2) }.explore();
    let mut only = Tally::new();
    only.case(again.starved.is_none(), || "three processes".into());
    let story = crossed.deadlock.clone().unwrap_or_default();
    // Starvation without deadlock would be a cycle; queues leave none.
    Found::corrected_if(
        crossed.deadlock.is_some(),
        &only,
        format!(
            "Deadlock, yes: {}. Starvation only by deadlock: without one, no cycle passes anybody \
             over ({} states), since queues are first come, first served.",
            story.join(", "),
            again.states
        ),
    )
}

fn deadlock_is_avoided(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut states = 0;
    for quorums in [[0b11, 0b11, 0b11], [0b011, 0b110, 0b101]] {
        let once = Scheme { ordered: true, ..p(&quorums, 3) }.explore();
        let again = Scheme { ordered: true, again: true, ..p(&quorums[..2], 3) }.explore();
        states += once.states + again.states;
        cases.case(once.deadlock.is_none(), || "once".into());
        cases.case(again.deadlock.is_none() && again.starved.is_none(), || "again".into());
    }
    Found::all(&cases, "worlds in which members are asked one after the other, in one order")
        .and(format!("{states} states without dead end and without a cycle that starves."))
        .by("quorate-lab check --protocol sharing --structure docs/experiments/sharing.json \
             --nodes 8 --units 2 --want 1,1,1 --ascending")
}

/// Whether k single arbiters can serve all processes alike, each with one unit at most.
fn common_works(alphas: &[u32]) -> bool {
    let most = holders(alphas);
    (1..1u32 << alphas.len()).all(|v| {
        let set = chosen(alphas, v);
        let inside = (set.len() as u32).min(most);
        // All of them, up to k, may be inside; that must be servable and as many as possible.
        inside <= union(&set).count_ones() && inside == holders(&set)
    })
}

fn one_set_for_all(pace: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for units in 1..=pace.pick(2, 3) {
        for alphas in structures(units, 3) {
            let works = common_works(&alphas);
            let ours = structure(units, &alphas);
            let differ = ours.groups().len() > 1;
            printed.case(!(differ && works), || {
                format!("{} works with one set of quorums for all", shown(&alphas))
            });
            right.case(common_quorums_suffice(&ours) == works, || shown(&alphas));
        }
    }
    let two = p(&[0b01, 0b10], 2).explore();
    Found::corrected(
        &printed,
        "structures of 3 processes, one unit each",
        &right,
        "structures: iff every set that outnumbers its units has as many as can be held at all",
    )
    .only_if(
        is_hall(&two, &TWO) && two.most == 2,
        "Explored: u1 with {1,2} and u2 with {1} both use {a} and {b}, and all is well.",
    )
}

fn one_more_is_forbidden(_: Pace) -> Found {
    let found = p(&[0b01, 0b10], 2).explore();
    let mut right = Tally::new();
    for alphas in structures(2, 3) {
        // With more requesters than units one disjoint quorum more does break the counts.
        let set = union(&alphas).count_ones();
        if alphas.len() as u32 > set {
            let singles: Vec<u32> = (0..=set).map(|i| 1 << i).collect();
            let over = p(&singles, singles.len() as u8).explore();
            right.case(!is_hall(&over, &alphas[..singles.len()]), || shown(&alphas));
        }
    }
    Found::corrected_if(
        is_hall(&found, &TWO),
        &right,
        format!(
            "Only where requesters outnumber their units: u2 alone may use one unit, two disjoint \
             quorums are there, and nothing breaks. With as many requesters it is so: {}.",
            right.words("structures of 3 processes")
        ),
    )
}

fn as_many_are_needed(_: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for alphas in structures(2, 3) {
        let (most, all) = (holders(&alphas), union(&alphas).count_ones());
        let name = || format!("{}: {most} can hold, of {all}", shown(&alphas));
        printed.case(most == all, name);
        right.case(most <= all, name);
    }
    // One process with two units: one quorum is all it can ever lock.
    let alone = p(&[0b01], 1).explore();
    printed.case(alone.most == 2, || "{1,2} alone holds one unit at a time".into());
    Found::corrected(
        &printed,
        "structures in which as many hold a unit as there are",
        &right,
        "structures, with as many as can hold one each instead",
    )
}

fn sets_depend_on_the_structure(pace: Pace) -> Found {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    let mut grid = Grid::new(&["units", "structures of several groups", "one set suffices"]);
    for units in 1..=pace.pick(2, 3) {
        let (mut all, mut some) = (0, 0);
        for alphas in structures(units, 3) {
            let ours = structure(units, &alphas);
            if ours.groups().len() > 1 {
                let works = common_works(&alphas);
                all += 1;
                some += usize::from(works);
                printed.case(!works, || shown(&alphas));
                right.case(common_quorums_suffice(&ours) == works, || shown(&alphas));
            }
        }
        grid.row(&[&units, &all, &some]);
    }
    Found::corrected(
        &printed,
        "structures of several groups",
        &right,
        "structures, by the corrected theorem 1",
    )
    .with(grid)
}

fn one_set_for_a_group(_: Pace) -> Found {
    let mut cases = Tally::new();
    for alphas in structures(2, 3) {
        let ours = structure(2, &alphas);
        let (_, assignment) = built(&ours, Construction::Product);
        let sets = quorums(&ours, &assignment);
        for a in 0..3 {
            for b in 0..3 {
                let alike = alphas[a] != alphas[b] || sets[a] == sets[b];
                cases.case(alike, || shown(&alphas));
            }
        }
    }
    Found::all(&cases, "pairs of processes: equal sets of units, equal quorums")
}

fn necessary_and_sufficient(_: Pace) -> Found {
    let mut cases = Tally::new();
    for alphas in structures(2, 2).into_iter().chain(structures(3, 2)) {
        let ours = structure(3, &alphas);
        let (_, assignment) = built(&ours, Construction::Reduced);
        let found = assignment.examine(&ours, &mut Effort::default()).expect("small").verdicts();
        // What solves the problem must satisfy C, if C is necessary.
        cases.case(!found.c_plus || found.c, || {
            format!(
                "{}: the reduced product grants whatever the counts allow, without C",
                shown(&alphas)
            )
        });
    }
    Found::all(&cases, "structures of 2 processes, C of what serves them")
}

fn condition_c_suffices(_: Pace) -> Found {
    let (plain, ordered) = (product_worlds(false), product_worlds(true));
    let alphas = [0b11, 0b11, 0b01];
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    for (number, found) in plain.iter().enumerate() {
        let well = found.deadlock.is_none() && is_hall(found, &alphas);
        printed.case(well, || format!("choice {number} of quorums has a dead end"));
    }
    for found in ordered {
        let well = found.deadlock.is_none() && is_hall(found, &alphas);
        right.case(well, || "ordered".into());
    }
    Found::corrected(
        &printed,
        "choices of quorums of the product for {1,2} {1,2} {1}, explored",
        &right,
        "choices, members asked in one order",
    )
}

fn quorums_follow_groups(_: Pace) -> Found {
    let mut cases = Tally::new();
    for alphas in structures(2, 3) {
        let ours = structure(2, &alphas);
        for v in 1u32..8 {
            let set = chosen(&alphas, v);
            let groups: u32 = ours
                .groups()
                .iter()
                .enumerate()
                .filter(|(_, group)| set.iter().any(|alpha| u128::from(*alpha) == group.alpha))
                .map(|(i, _)| 1 << i)
                .sum();
            let same = ours.k(groups as _) == union(&set).count_ones();
            cases.case(same, || shown(&set));
        }
    }
    Found::all(&cases, "sets of processes: alpha is that of their groups")
}

fn locked_quorums_are_units(_: Pace) -> Found {
    let found = p(&[0b01, 0b10], 2).explore();
    let both = found.together.contains(&0b11);
    let mut right = Tally::new();
    for inside in &found.together {
        for v in 1u32..4 {
            // Locked by members of V: one each.
            right.case((inside & v).count_ones() <= v.count_ones(), || format!("{inside:b}"));
        }
    }
    Found::corrected_if(
        both,
        &right,
        format!(
            "Locked by members of V: two processes of one group hold both quorums of their set, \
             and V = {{u1}} uses one unit, not two. {}.",
            right.words("sets and states counted so")
        ),
    )
}

fn never_beyond_the_counts(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut states = 0;
    for found in product_worlds(false).iter().chain(product_worlds(true)) {
        states += found.states;
        cases.case(is_hall(found, &[0b11, 0b11, 0b01]), || "a choice".into());
    }
    Found::all(&cases, "choices of quorums, in every history").and(format!("{states} states."))
}

fn missing_quorums_exist(_: Pace) -> Found {
    let worlds = product_worlds(false);
    let mut cases = Tally::new();
    for (number, found) in worlds.iter().enumerate() {
        cases.case(found.deadlock.is_none(), || {
            let story = found.deadlock.clone().unwrap_or_default();
            format!(
                "choice {number}, from whose dead end nothing is reachable: {}",
                story.join(", ")
            )
        });
    }
    Found::all(&cases, "choices of quorums of the product, explored")
}

fn counts_give_units(pace: Pace) -> Found {
    let (mut over_time, mut at_once) = (Tally::new(), Tally::new());
    let (mut shape, mut moving) = (Tally::new(), 0);
    for units in 1..=pace.pick(2, 3) {
        for alphas in structures(units, 3) {
            let ours = structure(units, &alphas);
            let stays = never_moving_suffices_for_each(&ours, &mut Effort::default());
            let stays = stays.expect("small");
            over_time.case(stays, || format!("{}: a holder must move", shown(&alphas)));
            moving += usize::from(!stays);
            shape.case(!never_moving_suffices(&ours) || stays, || shown(&alphas));
            for v in 1u32..8 {
                let set = chosen(&alphas, v);
                let hall = (1..1u32 << set.len())
                    .all(|w| w.count_ones() <= union(&chosen(&set, w)).count_ones());
                at_once.case(hall == (holders(&set) as usize == set.len()), || shown(&set));
            }
        }
    }
    Found::corrected(
        &over_time,
        "structures of 3 processes, if units are named when granted and holders never move",
        &at_once,
        "sets of processes at one moment: the counts hold iff different units can be handed out",
    )
    .only_if(shape.holds(), format!("{moving} structures need a holder to move."))
}

fn locked_by_a_process(_: Pace) -> Found {
    let found = p(&[0b11, 0b11], 2);
    let found = Scheme { ordered: true, ..found }.explore();
    Found::if_so(
        found.most == 1 && found.deadlock.is_none(),
        format!(
            "A quorum with OK from all its members is locked: the same one is never locked twice \
             in {} states.",
            found.states
        ),
    )
}
