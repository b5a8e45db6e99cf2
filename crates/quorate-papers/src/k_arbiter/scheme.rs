//! Section 3: the algorithm and its correctness.

use super::problem::{central, crossed_requests, scheme_with_two_requests, through};
use crate::brute::{antichains, any_meet, family, is_minimal, listed, masks};
use crate::found::grouped;
use crate::handlers::{Claim, Ledger, Queue, Scheme};
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    separate_requests_deadlock,
    splits_that_are_stuck,
    extra_messages_against_deadlock,
    entry_asks_all_members,
    exit_tells_all_members,
    permits_what_fits,
    release_serves_those_who_wait,
    three_messages_for_each_member,
    generalises_maekawa,
    safe_iff_any_quorums_meet,
    at_most_k_plus_one_exceed,
    disjoint_quorums_admit_too_many,
    identity_starves,
    timestamps_starve_nobody,
    different_orders_deadlock,
    quorums_drawn_from_a_family,
];

/// Two claims that take their units one by one: in how many ways all k units can be shared out
/// while neither has all, and how many of these are stuck.
pub(super) fn piecemeal(k: u32, a: u32, b: u32) -> (u32, u32) {
    let mut splits = 0;
    let mut stuck = 0;
    for x in 0..=a.min(k) {
        for y in 0..=b.min(k - x) {
            splits += 1;
            let (waits_a, waits_b) = (x < a, y < b);
            stuck += u32::from(waits_a && waits_b && x + y == k);
        }
    }
    (splits, stuck)
}

fn separate_requests_deadlock(_: Pace) -> Found {
    let (splits, stuck) = piecemeal(2, 2, 2);
    Found::if_so(
        stuck == 1,
        format!(
            "k=2, two claims of 2, unit by unit: of {splits} splits {stuck} is stuck (1 and 1)."
        ),
    )
}

fn splits_that_are_stuck(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut found = 0u64;
    for k in 1..=pace.pick(6, 8u32) {
        for a in 1..=k {
            for b in 1..=k {
                for x in 0..=a {
                    for y in 0..=b.min(k.saturating_sub(x)) {
                        // Stuck by search: nobody inside can leave, nobody outside can get a unit.
                        let inside = x == a || y == b;
                        let stuck = !inside && x + y >= k;
                        let said = a + b > k && x < a && y < b && x + y == k;
                        found += u64::from(stuck);
                        cases.case(stuck == said, || format!("k={k} {a},{b}: {x},{y}"));
                    }
                }
            }
        }
    }
    Found::all(&cases, "splits of k units between two claims")
        .and(format!("The paper's description fits exactly the {} stuck ones.", grouped(found)))
}

fn extra_messages_against_deadlock(_: Pace) -> Found {
    let (splits, stuck) = piecemeal(3, 2, 3);
    let whole = central(3, &[2, 3]).explore();
    Found::if_so(
        stuck > 0 && whole.deadlock.is_none(),
        format!(
            "Claims of 2 and 3 on 3 units, unit by unit: {stuck} of {splits} splits are stuck and \
             only a message that takes a unit back could go on; in one request none of {} states \
             is stuck.",
            whole.states
        ),
    )
}

/// The history of one claim with so many members, from asking to the last release heard.
fn history(members: u8) -> Vec<String> {
    Scheme::new(1, members, vec![Claim::new(0, 1, (1 << members) - 1)]).explore().last
}

fn count(history: &[String], what: &str) -> usize {
    history.iter().filter(|step| step.starts_with(what)).count()
}

fn entry_asks_all_members(_: Pace) -> Found {
    let told = history(2);
    let enters = told.iter().position(|step| step.ends_with("enters")).unwrap_or(0);
    let so = count(&told[..enters], "request") == 2 && count(&told[..enters], "permission") == 2;
    Found::if_so(so, format!("One claim with two members: {}.", told[..=enters].join(", ")))
        .by("quorate-lab check --protocol arbiter --nodes 3 --units 1 --claims 1")
}

fn exit_tells_all_members(_: Pace) -> Found {
    let told = history(2);
    let leaves = told.iter().position(|step| step.ends_with("leaves")).unwrap_or(0);
    let claims = vec![Claim::new(0, 2, 0b11), Claim::new(0, 2, 0b11).after(0)];
    let found = Scheme::new(2, 2, claims).explore();
    Found::if_so(
        count(&told[leaves..], "release") == 2 && found.deadlock.is_none() && found.most == 2,
        format!(
            "One claim with two members: {}. After a claim of all units the next one is always \
             served ({} states), so both members heard that both units came back.",
            told[leaves..].join(", "),
            found.states
        ),
    )
}

fn permits_what_fits(_: Pace) -> Found {
    let printed = scheme_with_two_requests(Ledger::PerProcess).explore();
    let right = scheme_with_two_requests(Ledger::PerRequest).explore();
    let mut corrected = Tally::new();
    corrected.case(right.broken.is_none() && right.deadlock.is_none(), || "records".into());
    let story = printed.broken.clone().unwrap_or_default();
    Found::corrected_if(
        printed.broken.is_some(),
        &corrected,
        format!(
            "One number per process: {} of 2 units in use ({}). One entry per request: at most {} \
             in {} states.",
            printed.most,
            story.join(", "),
            right.most,
            right.states
        ),
    )
}

fn release_serves_those_who_wait(_: Pace) -> Found {
    let world = |queue| Scheme { queue, again: true, ..central(2, &[2, 1, 1]) }.explore();
    let (any, strict) = (world(Queue::AnyFit), world(Queue::Strict));
    let mut corrected = Tally::new();
    corrected.case(strict.starved.is_none() && strict.deadlock.is_none(), || "strict".into());
    Found::corrected_if(
        any.starved.is_some(),
        &corrected,
        format!(
            "The paper leaves open whom. Whoever fits: the claim of 2 can wait for ever while two \
             claims of 1 take turns (a cycle among {} states). Nobody before an older one: no such \
             cycle in {} states.",
            any.states, strict.states
        ),
    )
}

fn three_messages_for_each_member(_: Pace) -> Found {
    let (mut wire, mut all) = (Tally::new(), Tally::new());
    let mut grid = Grid::new(&["|Q|", "messages", "of these to oneself, if a member"]);
    for size in 1..=4u8 {
        let told = history(size);
        let messages = ["request", "permission", "release"].map(|what| count(&told, what));
        let sum: usize = messages.iter().sum();
        // The claim is made at the node that is also the first arbiter.
        let own = |step: &&String| step.contains(" a0") && !step.starts_with("r0");
        let own = told.iter().filter(own).count();
        let expected = 3 * usize::from(size);
        all.case(sum == expected && own == 3, || format!("|Q|={size}: {sum}, {own} to itself"));
        wire.case(sum - own >= expected, || {
            format!("|Q|={size}: {} on the wire, since {own} go to the requester itself", sum - own)
        });
        grid.row(&[&size, &sum, &own]);
    }
    Found::corrected(
        &wire,
        "sizes of quorums, on the wire, if the requester is in its quorum",
        &all,
        "sizes, 3|Q| with messages to oneself and 3(|Q|-1) without",
    )
    .with(grid)
    .by("quorate-lab sim arbiter-messages")
}

fn generalises_maekawa(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut states = 0;
    for (spec, nodes) in [("majority", 3), ("singleton", 2), ("universe", 2)] {
        let family = masks(&listed(spec, nodes, 1));
        let found = through(&family, nodes as u8, 1, &[1, 1]).explore();
        states += found.states;
        cases.case(found.most == 1 && found.broken.is_none(), || spec.into());
    }
    Found::all(&cases, "coteries with k=1: every arbiter is a lock, at most one inside")
        .and(format!("{states} states."))
}

/// Every assignment of quorums to up to three processes: are joint holders safe, and does the
/// condition hold? By counting what arbiters would permit: those of a set of claims are all inside
/// at once iff every arbiter has room for those that ask it.
fn assignments(nodes: u32, k: u32, mut each: impl FnMut(&[u32], bool)) {
    let sets = 1u32 << nodes;
    let mut quorums = vec![1u32; nodes as usize];
    loop {
        let mut safe = true;
        let mut sizes = vec![0u32; nodes as usize];
        'sizes: loop {
            let total: u32 = sizes.iter().sum();
            let admitted = (0..nodes).all(|arbiter| {
                let asked = (0..nodes as usize).filter(|i| quorums[*i] >> arbiter & 1 == 1);
                asked.map(|i| sizes[i]).sum::<u32>() <= k
            });
            safe &= !admitted || total <= k;
            for size in &mut sizes {
                *size += 1;
                if *size <= k {
                    continue 'sizes;
                }
                *size = 0;
            }
            break;
        }
        each(&quorums, safe);
        let mut at = 0;
        loop {
            if at == quorums.len() {
                return;
            }
            quorums[at] += 1;
            if quorums[at] < sets {
                break;
            }
            quorums[at] = 1;
            at += 1;
        }
    }
}

fn meet(quorums: &[u32], count: usize, exactly: bool) -> bool {
    (1u32..1 << quorums.len()).all(|chosen| {
        let size = chosen.count_ones() as usize;
        if size > count || exactly && size != count {
            return true;
        }
        let members = (0..quorums.len()).filter(|i| chosen >> i & 1 == 1);
        members.fold(u32::MAX, |common, i| common & quorums[i]) != 0
    })
}

fn safe_iff_any_quorums_meet(_: Pace) -> Found {
    let (mut printed, mut corrected) = (Tally::new(), Tally::new());
    for nodes in 1..=3 {
        for k in 1..=3 {
            assignments(nodes, k, |quorums, safe| {
                let count = k as usize + 1;
                let name = || format!("n={nodes} k={k}: {} is {}", family(quorums), word(safe));
                printed.case(safe == meet(quorums, count, true), name);
                corrected.case(safe == meet(quorums, count, false), name);
            });
        }
    }
    Found::corrected(
        &printed,
        "assignments of quorums to processes (exactly k+1 of them)",
        &corrected,
        "assignments (every set of at most k+1)",
    )
}

fn word(safe: bool) -> &'static str {
    if safe { "safe" } else { "unsafe" }
}

fn at_most_k_plus_one_exceed(pace: Pace) -> Found {
    fn sizes(k: u32, least: u32, left: u32, so_far: &mut Vec<u32>, cases: &mut Tally) {
        if so_far.iter().sum::<u32>() > k {
            let mut kept = so_far.clone();
            while kept.iter().sum::<u32>() - kept[0] > k {
                kept.remove(0);
            }
            let few = kept.len() <= k as usize + 1;
            cases.case(few && kept.iter().sum::<u32>() > k, || format!("k={k}: {so_far:?}"));
        }
        if left > 0 {
            for size in least..=k {
                so_far.push(size);
                sizes(k, size, left - 1, so_far, cases);
                so_far.pop();
            }
        }
    }
    let mut cases = Tally::new();
    for k in 1..=pace.pick(5, 7) {
        sizes(k, 1, k + 2, &mut Vec::new(), &mut cases);
    }
    Found::all(&cases, "groups of up to k+2 holders of more than k units, the smallest dropped")
}

fn disjoint_quorums_admit_too_many(_: Pace) -> Found {
    let mut cases = Tally::new();
    for nodes in 1..=4 {
        for quorums in antichains(nodes) {
            for k in 1..=3usize {
                if any_meet(quorums, k + 1) {
                    continue;
                }
                // A smallest selection without common member; each arbiter is asked by fewer.
                let few = (2..=k + 1).find(|count| !any_meet(quorums, *count)).unwrap_or(0);
                let chosen = apart(quorums, few);
                let most = (0..nodes).map(|a| chosen.iter().filter(|q| **q >> a & 1 == 1).count());
                // Between them they ask for k+1 units: each arbiter misses one of the askers, and
                // so permits all that it hears of.
                let full = most.max().unwrap_or(0) < few;
                cases.case(full, || format!("n={nodes} k={k}: {}", family(quorums)));
            }
        }
    }
    let replayed = through(&[0b001, 0b010, 0b100], 3, 2, &[1, 1, 1]).explore();
    Found::all(&cases, "families and k, n<=4, without the property: no arbiter hears of all")
        .only_if(
            replayed.most == 3,
            format!("Replayed with {{1}} {{2}} {{3}} and k=2: {} units in use.", replayed.most),
        )
}

fn apart(quorums: &[u32], count: usize) -> Vec<u32> {
    fn go(quorums: &[u32], left: usize, common: u32, chosen: &mut Vec<u32>) -> bool {
        if common == 0 {
            return true;
        }
        left > 0
            && quorums.iter().any(|q| {
                chosen.push(*q);
                let found = go(quorums, left - 1, common & q, chosen);
                if !found {
                    chosen.pop();
                }
                found
            })
    }
    let mut chosen = Vec::new();
    go(quorums, count, u32::MAX, &mut chosen);
    chosen
}

fn identity_starves(_: Pace) -> Found {
    let found = Scheme { queue: Queue::Identity, again: true, ..central(1, &[1, 1, 1]) }.explore();
    Found::if_so(
        found.starved == Some(2),
        format!(
            "One arbiter, one unit, three processes that ask again and again, lowest first: among \
             {} states a cycle serves the two lower ones for ever while the third waits.",
            found.states
        ),
    )
}

fn timestamps_starve_nobody(_: Pace) -> Found {
    let one = Scheme { again: true, ..central(1, &[1, 1, 1]) }.explore();
    let any = Scheme { again: true, ..central(2, &[2, 1, 1]) }.explore();
    let strict = Scheme { queue: Queue::Strict, again: true, ..central(2, &[2, 1, 1]) }.explore();
    let mut corrected = Tally::new();
    corrected.case(one.starved.is_none(), || "k=1".into());
    corrected.case(strict.starved.is_none(), || "k=2, strict".into());
    Found::corrected_if(
        any.starved.is_some(),
        &corrected,
        format!(
            "Oldest first with k=1: nobody starves ({} states). With k=2 and claims of 2, 1 and 1 \
             it matters that nobody passes an older one: if whoever fits may, r0 starves; if not, \
             nobody ({} states).",
            one.states, strict.states
        ),
    )
}

fn different_orders_deadlock(_: Pace) -> Found {
    let found = crossed_requests().explore();
    let story = found.deadlock.unwrap_or_default();
    Found::if_so(!story.is_empty(), format!("A shortest history: {}.", story.join(", ")))
}

fn quorums_drawn_from_a_family(_: Pace) -> Found {
    let mut grid = Grid::new(&["n", "k", "families", "safe for every choice of quorums"]);
    let mut cases = Tally::new();
    for nodes in 1..=3usize {
        for k in 1..=3usize {
            let (mut all, mut safe) = (0, 0);
            for quorums in antichains(nodes).iter().filter(|family| is_minimal(family)) {
                all += 1;
                // Every choice: units are admitted beyond k iff some k+1 (or fewer) are apart.
                let every = (1..=k + 1).all(|count| any_meet(quorums, count));
                safe += usize::from(every);
                cases.case(every == any_meet(quorums, k + 1), || family(quorums));
            }
            grid.row(&[&nodes, &k, &all, &safe]);
        }
    }
    Found::all(&cases, "families, n<=3 and k<=3: every choice is safe iff any k+1 quorums meet")
        .with(grid)
}
