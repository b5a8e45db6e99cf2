//! Theorems, lemmas and the steps of their proofs.

use std::sync::OnceLock;

use super::every::{Until, World};
use super::model::Printed;
use super::{everywhere, printed, right, terms, told};
use crate::found::grouped;
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    nobody_alive_suspected,
    at_most_k,
    the_four_cases,
    everybody_enters,
    the_oldest_waits,
    k_inside_after_detection,
    each_crash_costs_raymond_one,
    the_other_algorithm_is_not_here,
    enough_are_correct,
    another_paper,
];

fn nobody_alive_suspected(pace: Pace) -> Found {
    let same = printed(Printed::SameClock, [2, 2, 0], Until::Wrong);
    let loose = printed(Printed::Unmatched, [2, 2, 0], Until::Wrong);
    let without = World { heard_by: [0; 3], ..World::new(terms(), [2, 2, 0]) }.explore();
    let cases = everywhere(pace, |found| found.suspected.is_none());
    Found::corrected_if(
        same.suspected.is_some(),
        &cases,
        format!(
            "Under the responsiveness property, as printed: with replies matched by timestamp {}; \
             with replies not matched {}. With both repaired: {}. Without the property the \
             corrected algorithm suspects too: {}.",
            same.wrong(),
            loose.wrong(),
            cases.words("worlds explored"),
            without.wrong()
        ),
    )
    .only_if(without.suspected.is_some(), "So the property is needed in these worlds.")
    .and(format!("The shortest history: {}.", told(same.suspected.as_ref())))
}

/// What is printed, one thing at a time.
fn at_most_k(pace: Pace) -> Found {
    let mut grid = Grid::new(&["as printed", "found"]);
    let mut as_printed = Tally::new();
    let mut variants = vec![
        ("footnote 1: equal clocks", Printed::TieBreak, [1, 1, 1]),
        ("lines 33 to 41: no matching", Printed::Unmatched, [2, 1, 1]),
        ("4.1: replies counted", Printed::CountReplies, [1, 1, 1]),
        ("4.1: \"or\"", Printed::Either, [1, 1, 1]),
    ];
    if pace == Pace::Whole {
        variants.push(("line 10: clock not advanced", Printed::SameClock, [2, 2, 1]));
    }
    for (name, what, requests) in variants {
        let found = printed(what, requests, Until::TooMany);
        as_printed.case(found.too_many.is_none(), || format!("{name}: {}", found.wrong()));
        grid.row(&[&name, &found.wrong()]);
    }
    let cases = everywhere(pace, super::Found::is_right);
    Found::corrected(
        &as_printed,
        "printed rules, each put back alone, nobody crashing and the responsiveness property \
         imposed",
        &cases,
        "worlds explored with all of them repaired",
    )
    .with(grid)
}

fn the_four_cases(pace: Pace) -> Found {
    let sum = |of: fn(&super::Found) -> (u64, u64)| {
        let each = right(pace).iter().map(|(_, found)| of(found));
        each.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    };
    let (own_first, own_last) = (sum(|found| found.younger), sum(|found| found.older));
    let mut cases = Tally::new();
    cases.case(own_first.0 > 0 && own_first.1 == 0, || format!("{own_first:?}"));
    cases.case(own_last.0 > 0 && own_last.1 == own_last.0, || format!("{own_last:?}"));
    let sound = everywhere(pace, |found| found.too_many.is_none());
    cases.case(sound.holds(), || sound.words("worlds"));
    Found::corrected_if(
        own_first.1 == 0 && own_last.1 > 0,
        &cases,
        format!(
            "The two references of subcase 3 are swapped. Who waits with the smaller timestamp \
             permitted {} of {} requests (like subcase 2, not 1), with the larger {} of {} (like \
             subcase 1, not 2). The conclusion stands: {}.",
            grouped(own_first.1),
            grouped(own_first.0),
            grouped(own_last.1),
            grouped(own_last.0),
            sound.words("worlds explored")
        ),
    )
}

fn everybody_enters(pace: Pace) -> Found {
    let lost = printed(Printed::LeaveInSteps, [1, 1, 1], Until::Stuck);
    let cases = everywhere(pace, |found| found.stuck.is_none());
    Found::corrected_if(
        lost.stuck.is_some(),
        &cases,
        format!(
            "With lines 17 to 20 one after the other {}; at once: {}.",
            lost.wrong(),
            cases.words("worlds explored, nobody waits for ever")
        ),
    )
}

fn the_oldest_waits(pace: Pace) -> Found {
    let waits: u64 = right(pace).iter().map(|(_, found)| found.oldest_waits).sum();
    let cases = everywhere(pace, |found| found.stuck.is_none());
    Found::corrected_if(
        waits > 0,
        &cases,
        format!(
            "Not always: in {} states fewer than k are inside, somebody waits and no message is \
             under way, since a crash is not known yet. The lemma stands because who is inside \
             leaves: {}.",
            grouped(waits),
            cases.words("worlds explored, nobody waits for ever")
        ),
    )
}

fn k_inside_after_detection(_: Pace) -> Found {
    let found = World { dead: 0b100, ..World::new(terms(), [3, 3, 0]) }.explore();
    let mut cases = Tally::new();
    cases.case(found.most_known == 2 && found.is_right(), || found.wrong());
    Found::corrected_if(
        found.most_unknown < 2,
        &cases,
        format!(
            "Once the crash is known: with one of three dead from the start, k = 2, at most {} are \
             inside while nobody knows of it and {} when all do.",
            found.most_unknown, found.most_known
        ),
    )
}

/// Most inside, after so many are dead, where nobody finds out.
fn left_to_raymond() -> (Tally, Grid) {
    static KNOWN: OnceLock<(Tally, Grid)> = OnceLock::new();
    KNOWN.get_or_init(count_left_to_raymond).clone()
}

fn count_left_to_raymond() -> (Tally, Grid) {
    let mut cases = Tally::new();
    let mut grid = Grid::new(&["processes", "units", "dead", "most inside"]);
    fn one<const N: usize>(units: u32, dead: u32, cases: &mut Tally, grid: &mut Grid) {
        // Without detection, queries make no difference to permissions.
        let terms = super::Terms::new(units, 0).with(Printed::Undetected);
        let mask = ((1 << dead) - 1) << (N as u32 - dead);
        let requests = std::array::from_fn(|i| u8::from(mask >> i & 1 == 0));
        let world = World { dead: mask, heard_by: [0; N], ..World::<N>::new(terms, requests) };
        let found = world.explore();
        cases.case(found.most == units - dead && found.stuck.is_none(), || {
            format!("{dead} dead: {} inside, {}", found.most, found.wrong())
        });
        grid.row(&[&N, &units, &dead, &found.most]);
    }
    one::<3>(2, 0, &mut cases, &mut grid);
    one::<3>(2, 1, &mut cases, &mut grid);
    one::<4>(3, 1, &mut cases, &mut grid);
    one::<4>(3, 2, &mut cases, &mut grid);
    (cases, grid)
}

fn each_crash_costs_raymond_one(_: Pace) -> Found {
    let (cases, grid) = left_to_raymond();
    Found::all(&cases, "numbers of crashes below k: k less one for each, and nobody waits for ever")
        .with(grid)
}

fn the_other_algorithm_is_not_here(_: Pace) -> Found {
    let (cases, grid) = left_to_raymond();
    Found::corrected_if(
        true,
        &cases,
        format!(
            "For Raymond's: {}. Srimani and Reddy's is not among our protocols, and nothing is \
             said about it here.",
            cases.words("numbers of crashes, each costs one")
        ),
    )
    .with(grid)
}

fn enough_are_correct(pace: Pace) -> Found {
    let cases = everywhere(pace, super::Found::is_right);
    let mut sums = Tally::new();
    for n in 2..=100u32 {
        for k in 1..=n {
            for f in 0..k {
                // Permissions of all who live, beside oneself.
                sums.case(n - 1 - f >= n - k, || format!("n={n} k={k} f={f}"));
            }
        }
    }
    Found::all(&sums, "choices of n, k and f < k: those who live are enough to permit")
        .only_if(cases.holds(), format!("{}.", cases.words("worlds explored")))
}

fn another_paper(_: Pace) -> Found {
    Found::not_computable(
        "About other papers, a machine, or a matter of opinion: nothing that is computed here.",
    )
}
