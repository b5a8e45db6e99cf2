//! The algorithm line by line: what each is good for, and what is printed wrong.

use super::every::{Until, World};
use super::model::{Message, Phase, Printed, Process, Terms};
use super::{everywhere, printed, right, states, terms, told};
use crate::found::grouped;
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    raymonds_condition,
    safe_and_live,
    replies_name_the_unheard,
    order_is_not_needed,
    holders_must_leave,
    crashes_beyond_the_bound,
    one_crash_is_enough,
    sets_of_a_run,
    what_is_initialised,
    clock_must_advance,
    who_is_asked,
    when_one_enters,
    leaving_at_once,
    the_clock,
    names_of_the_crashed,
    the_order_of_requests,
    replies_are_matched,
    a_permission_counts_once,
    how_many_permissions,
    permissions_not_replies,
    learning_lets_in,
    dead_permissions,
    and_not_or,
    how_many_replies,
    all_requests_in_order,
    how_a_crash_is_learnt,
    unknown_crashes_cost_room_only,
    nobody_is_missing_to_itself,
];

/// One rule as it is printed against all rules as corrected.
fn repaired(pace: Pace, what: Printed, requests: [u8; 3], until: Until, words: &str) -> Found {
    let found = printed(what, requests, until);
    let cases = everywhere(pace, super::Found::is_right);
    let story = found.too_many.as_ref().or(found.suspected.as_ref()).or(found.stuck.as_ref());
    Found::corrected_if(
        !found.is_right(),
        &cases,
        format!(
            "As printed, three processes, two units, the responsiveness property imposed and \
             nobody crashing: {}. {words} Corrected: {}, {} states.",
            found.wrong(),
            cases.words("worlds explored"),
            grouped(states(pace))
        ),
    )
    .and(format!("The shortest history: {}.", told(story)))
}

fn raymonds_condition(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut entries = 0;
    for requests in [[1, 1, 1], [2, 1, 0], [2, 2, 0]] {
        let plain = World::new(terms().with(Printed::Undetected), requests).explore();
        entries += plain.entries;
        cases
            .case(plain.exact == plain.entries && plain.reclaimed == 0 && plain.is_right(), || {
                format!("{requests:?}: {}", plain.wrong())
            });
    }
    Found::all(&cases, "worlds explored with detection switched off").and(format!(
        "In each of {} entries there were n-k permissions, which is Raymond's condition.",
        grouped(entries)
    ))
}

fn safe_and_live(pace: Pace) -> Found {
    let cases = everywhere(pace, |found| found.is_right() && found.owed == 0 && found.most == 2);
    let mut grid = Grid::new(&["world", "states", "most inside", "crashes that let somebody in"]);
    for (name, found) in right(pace) {
        grid.row(&[name, &grouped(found.states), &found.most, &grouped(found.reclaimed)]);
    }
    Found::all(
        &cases,
        "worlds explored: never more than k inside, nobody waits for ever, nobody is owed an \
         answer at the end",
    )
    .with(grid)
}

fn replies_name_the_unheard(_: Pace) -> Found {
    let found = World { dead: 0b100, ..World::new(terms(), [3, 3, 0]) }.explore();
    Found::if_so(
        found.detected.is_some() && found.suspected.is_none(),
        format!(
            "p2 is dead from the start. The shortest history in which somebody infers it from the \
             sets in the replies: {}.",
            told(found.detected.as_ref())
        ),
    )
}

fn order_is_not_needed(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut sum = 0;
    let more: &[[u8; 3]] = pace.pick(&[], &[[1, 1, 1]]);
    for requests in [[1, 1, 0], [2, 1, 0]].iter().chain(more) {
        for ordered in [true, false] {
            let world = World { ordered, ..World::new(terms(), *requests) };
            let found = world.explore();
            sum += found.states;
            cases.case(found.is_right() && found.owed == 0, || {
                format!("{requests:?}, ordered: {ordered}: {}", found.wrong())
            });
        }
    }
    Found::all(&cases, "worlds explored, with links in order and in any order").and(format!(
        "{} states. A second answer of a process replaces what its first said, whichever comes \
         first.",
        grouped(sum)
    ))
}

fn holders_must_leave(pace: Pace) -> Found {
    let blocked = World { leaves: false, ..World::new(terms(), [1, 1, 1]) }.explore();
    let cases = everywhere(pace, |found| found.stuck.is_none());
    Found::if_so(
        blocked.stuck.is_some() && cases.holds(),
        format!(
            "Where nobody leaves, the (k+1)-st waits for ever: {}. Where holders leave: {}.",
            told(blocked.stuck.as_ref()),
            cases.words("worlds in which nobody waits for ever")
        ),
    )
}

fn crashes_beyond_the_bound(pace: Pace) -> Found {
    let beyond = World { crashes: 2, until: Until::Stuck, ..World::new(terms(), [1, 1, 0, 0]) };
    let beyond = beyond.explore();
    let cases = everywhere(pace, super::Found::is_right);
    Found::corrected_if(
        beyond.stuck.is_some(),
        &cases,
        format!(
            "The bound is needed: of four processes with k = 2 and f = 1, after two crashes a \
             live one waits for ever ({}). Within it: {}. Permanence is not: Quorate lets a \
             process come back as a new one, after everybody that is not known to have crashed \
             said so.",
            told(beyond.stuck.as_ref()),
            cases.words("worlds explored")
        ),
    )
    .by("quorate-lab check --protocol broadcast --nodes 2 --units 1 --want 1,1 --crashes 1")
}

fn one_crash_is_enough(pace: Pace) -> Found {
    let cases = everywhere(pace, super::Found::is_right);
    Found::corrected_if(
        cases.holds(),
        &cases,
        format!(
            "The three forms exclude each other at f = 1, which 1 < f forbids and which works: {}.",
            cases.words("worlds explored with f = 1")
        ),
    )
}

fn sets_of_a_run(pace: Pace) -> Found {
    let cases = everywhere(pace, |found| found.unheard_max == 1 && found.unheard_self == 0);
    Found::all(
        &cases,
        "worlds explored with f = 1: not_rec_from has at most f members and never its owner",
    )
}

fn nobody_is_missing_to_itself(pace: Pace) -> Found {
    let cases =
        everywhere(pace, |found| found.unheard_self == 0 && found.answers_max <= found.others);
    Found::all(&cases, "worlds explored: nobody waits for a reply of its own")
}

/// The ten variables of section 4.1, and whether lines 1 to 6 give them a value.
const VARIABLES: [(&str, bool, &str); 10] = [
    ("state", true, "line 28"),
    ("H", true, "line 10"),
    ("last", false, "line 28, only while requesting"),
    ("perm_count", false, "line 25"),
    ("have_perm", false, "line 24, before the first request too"),
    ("crashed", true, "line 13"),
    ("not_rec_from", true, "line 9"),
    ("new_not_rec_from", false, "line 34"),
    ("X", true, "line 35"),
    ("pending", true, "line 17"),
];

fn what_is_initialised(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut grid = Grid::new(&["variable", "given a value by lines 1 to 6", "first read"]);
    for (name, is_set, read) in VARIABLES {
        cases.case(is_set, || format!("{name}, read in {read}"));
        grid.row(&[&name, &if is_set { "yes" } else { "no" }, &read]);
    }
    let right = everywhere(pace, super::Found::is_right);
    Found::corrected(
        &cases,
        "variables that are read, given a value first",
        &right,
        "worlds explored from initial values for all; pending must hold timestamps, and \
         permissions must be a set",
    )
    .with(grid)
}

fn clock_must_advance(pace: Pace) -> Found {
    let found = repaired(
        pace,
        Printed::SameClock,
        [2, 2, 0],
        Until::Wrong,
        "Replies are matched by timestamp there, as the prose says; but two requests of one \
         process can carry the same, since line 10 does not advance the clock.",
    );
    if pace == Pace::Quick {
        return found;
    }
    let over = printed(Printed::SameClock, [2, 2, 1], Until::TooMany);
    found.only_if(
        over.too_many.is_some(),
        format!("And then there is {}: {}.", over.wrong(), told(over.too_many.as_ref())),
    )
}

fn who_is_asked(pace: Pace) -> Found {
    let cases = everywhere(pace, |found| found.asked > 0 && found.asked_wrong == 0);
    let asked: u64 = right(pace).iter().map(|(_, found)| found.asked).sum();
    Found::all(&cases, "worlds explored: everybody is asked that is not known to have crashed")
        .and(format!("{} requests.", grouped(asked)))
}

/// Four processes by hand: everything that is under way arrives, in the order it was sent.
struct Hand {
    terms: Terms,
    processes: [Process<4>; 4],
    dead: u32,
}

impl Hand {
    fn deliver(&mut self, from: usize, sent: Vec<(usize, Message)>) {
        let mut queue: std::collections::VecDeque<_> =
            sent.into_iter().map(|(to, message)| (from, to, message)).collect();
        while let Some((from, to, message)) = queue.pop_front() {
            if self.dead >> to & 1 == 0 {
                let mut out = Vec::new();
                self.processes[to].hear(self.terms, to, from, message, &mut out);
                queue.extend(out.into_iter().map(|(other, message)| (to, other, message)));
            }
        }
    }

    fn request(&mut self, who: usize) {
        let mut out = Vec::new();
        self.processes[who].request(self.terms, who, &mut out);
        self.deliver(who, out);
    }

    /// Everybody who lives makes a query of its own, twice.
    fn probe_twice(&mut self) {
        for who in [0, 1, 3, 0, 1, 3] {
            let mut out = Vec::new();
            self.processes[who].probe(self.terms, who, &mut out);
            self.deliver(who, out);
        }
    }

    fn inside(&self) -> usize {
        let is_in =
            |i: &usize| self.dead >> i & 1 == 0 && self.processes[*i].phase == Phase::Inside;
        (0..4).filter(is_in).count()
    }
}

/// p1 and p3 hold both units; p2 permits p0, crashes, and becomes known by queries of their own.
fn permitted_and_died(terms: Terms) -> Hand {
    let mut hand = Hand { terms, processes: [Process::new(); 4], dead: 0 };
    for who in [1, 3, 0] {
        hand.request(who);
    }
    hand.dead = 0b100;
    hand.probe_twice();
    hand
}

fn when_one_enters(pace: Pace) -> Found {
    let cases = everywhere(pace, |found| found.exact == found.entries && found.too_many.is_none());
    let (kept, right) = (
        permitted_and_died(terms().with(Printed::KeepDead)).inside(),
        permitted_and_died(terms()).inside(),
    );
    Found::all(&cases, "worlds explored: entered with n - crashed - k permissions, never too many")
        .only_if(
            kept == 3 && right == 2,
            format!(
                "A permission of one who is known to have crashed must not count where queries \
                 are apart from requests: played by hand, {kept} are inside if it does and \
                 {right} if not (k = 2)."
            ),
        )
}

fn leaving_at_once(pace: Pace) -> Found {
    repaired(
        pace,
        Printed::LeaveInSteps,
        [1, 1, 1],
        Until::Stuck,
        "A request that is handled between lines 19 and 20 is put into pending and forgotten.",
    )
}

fn the_clock(pace: Pace) -> Found {
    let cases = everywhere(pace, |found| found.clock_wrong == 0 && found.states > 0);
    Found::all(&cases, "worlds explored: after a request the clock is above both")
}

fn names_of_the_crashed(pace: Pace) -> Found {
    let world =
        World { heard_by: [0; 3], ..World::new(terms().with(Printed::RepliesMute), [2, 2, 0]) };
    let found = world.explore();
    let cases = everywhere(pace, |found| found.own_name == 0 && found.too_many_names == 0);
    // Five with f = 1: whom somebody wrongly believes to have crashed adds to who has.
    Found::corrected_if(
        found.suspected.is_some(),
        &cases,
        format!(
            "Names are believed without a look at them. Without the responsiveness property a \
             live process is named ({}), is then sent nothing more, not even the permission it \
             was promised, and nobody notices: in {} states of that world nobody received its own \
             name, since requests do not go to those they name. Quorate's replies name the \
             crashed too, so that one who is taken for crashed hears of it. Under the property: \
             {}.",
            told(found.suspected.as_ref()),
            grouped(found.states),
            cases.words("worlds explored without a wrong name, or more than f")
        ),
    )
}

fn the_order_of_requests(pace: Pace) -> Found {
    repaired(
        pace,
        Printed::TieBreak,
        [1, 1, 1],
        Until::TooMany,
        "Of two requests with equal clocks neither goes first by the footnote, and all permit \
         each other; i < j repairs it.",
    )
}

fn replies_are_matched(pace: Pace) -> Found {
    repaired(
        pace,
        Printed::Unmatched,
        [2, 1, 1],
        Until::TooMany,
        "The code takes a reply to an earlier request for one to this.",
    )
}

fn a_permission_counts_once(pace: Pace) -> Found {
    let one = Terms::new(1, 0);
    let twice = |terms| World { duplicates: 1, ..World::new(terms, [1, 0, 1]) }.explore();
    let (printed, right) = (twice(one.with(Printed::CountTwice)), twice(one));
    let mut cases = everywhere(pace, super::Found::is_right);
    cases.case(right.is_right(), || right.wrong());
    Found::corrected_if(
        printed.too_many.is_some(),
        &cases,
        format!(
            "Three processes, one unit, and one permission that arrives twice: {} if it is \
             counted ({}), nothing if permissions are a set. {}.",
            printed.wrong(),
            told(printed.too_many.as_ref()),
            cases.words("worlds explored")
        ),
    )
}

fn how_many_permissions(pace: Pace) -> Found {
    let fewer = printed(Printed::OneTooFew, [1, 1, 1], Until::TooMany);
    let cases = everywhere(pace, |found| found.too_many.is_none() && found.exact == found.entries);
    Found::all(&cases, "worlds explored: n - crashed - k permissions are enough")
        .only_if(fewer.too_many.is_some(), format!("One fewer is not: {}.", fewer.wrong()))
}

fn permissions_not_replies(pace: Pace) -> Found {
    let refused = right(pace).iter().map(|(_, found)| found.refusals).max().unwrap_or(0);
    repaired(
        pace,
        Printed::CountReplies,
        [1, 1, 1],
        Until::TooMany,
        "A reply can be a refusal; permissions must be counted.",
    )
    .only_if(
        refused > 0,
        format!("In right worlds one enters with up to {refused} refusals beside the permissions."),
    )
}

fn learning_lets_in(pace: Pace) -> Found {
    let let_in: u64 = right(pace).iter().map(|(_, found)| found.reclaimed).sum();
    let cases = everywhere(pace, super::Found::is_right);
    Found::if_so(
        let_in > 0 && cases.holds(),
        format!(
            "{} entries are there only because a crash is known, in {}.",
            grouped(let_in),
            cases.words("worlds explored")
        ),
    )
}

fn dead_permissions(pace: Pace) -> Found {
    let spare = World { crashes: 1, ..World::new(terms().with(Printed::SpareGenerous), [2, 2, 0]) };
    let spare = spare.explore();
    let hand = |rule: Option<Printed>| {
        let terms = rule.map_or(terms(), |rule| terms().with(rule));
        let hand = permitted_and_died(terms);
        (hand.inside(), hand.processes[0].crashed)
    };
    let (code, proof) = (hand(None), hand(Some(Printed::SpareGenerous)));
    let mut cases = everywhere(pace, super::Found::is_right);
    cases.case(spare.is_right(), || spare.wrong());
    cases.case(code.0 == 2 && proof.0 == 2, || format!("{code:?} {proof:?}"));
    Found::corrected_if(
        code.1 == 0b100 && proof.1 == 0,
        &cases,
        format!(
            "Proof and code say different things. p2 permits p0 and crashes: by the code p0 takes \
             it for crashed and withdraws the permission, by the proof it does not take it for \
             crashed. Either is safe: {}.",
            cases.words("worlds explored and played by hand")
        ),
    )
}

fn how_a_crash_is_learnt(pace: Pace) -> Found {
    let (own, told, _) = super::runs::learnt(pace);
    let knows = permitted_and_died(terms()).processes[0].crashed == 0b100;
    let mut cases = Tally::new();
    cases.case(own > 0 && told > 0, || format!("{own} and {told}"));
    Found::corrected_if(
        knows,
        &cases,
        format!(
            "In runs of 20 processes, {own} times from one's own replies and {told} times from a \
             request, not from a reply as one sentence says. That nothing was heard from the \
             crashed one is no condition in the code: p0 learns of p2's crash although p2 had \
             permitted its request."
        ),
    )
}

fn and_not_or(pace: Pace) -> Found {
    repaired(
        pace,
        Printed::Either,
        [1, 1, 1],
        Until::TooMany,
        "With \"or\", as in the prose, who waits with priority permits as well; line 28 has it \
         right.",
    )
}

fn how_many_replies(_: Pace) -> Found {
    let found = World { dead: 0b100, ..World::new(terms(), [3, 3, 0]) }.explore();
    let mut cases = Tally::new();
    cases.case(found.is_right() && found.detected.is_some(), || found.wrong());
    let three = World { dead: 0b100, ..World::new(terms(), [3, 3, 0]) };
    let heard = 3 - 1 - three.dead.count_ones();
    Found::corrected_if(
        heard < 3 - 1,
        &cases,
        format!(
            "With n = 3 and f = 1 dead only {heard} other can reply, not n-f = 2: n-f-1 others \
             and oneself. With that number all is found: {}.",
            cases.words("worlds explored")
        ),
    )
}

fn all_requests_in_order(pace: Pace) -> Found {
    let tie = printed(Printed::TieBreak, [1, 1, 1], Until::TooMany);
    let same = printed(Printed::SameClock, [2, 2, 0], Until::Wrong);
    let cases = everywhere(pace, super::Found::is_right);
    Found::corrected_if(
        !tie.is_right() && !same.is_right(),
        &cases,
        format!(
            "Not as printed: equal clocks are not ordered by the footnote ({}), and two requests \
             of one process may share a timestamp ({}). With both repaired: {}.",
            tie.wrong(),
            same.wrong(),
            cases.words("worlds explored")
        ),
    )
}

fn unknown_crashes_cost_room_only(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut grid = Grid::new(&["requests", "detection", "states", "most inside"]);
    for requests in [[2, 2, 0], [3, 3, 0]] {
        for (name, terms) in [("off", terms().with(Printed::Undetected)), ("on", terms())] {
            let found = World { dead: 0b100, ..World::new(terms, requests) }.explore();
            cases.case(found.is_right(), || format!("{requests:?}, {name}: {}", found.wrong()));
            grid.row(&[&format!("{requests:?}"), &name, &found.states, &found.most]);
        }
    }
    Found::all(&cases, "worlds with one dead process of three explored, with and without detection")
        .with(grid)
}
