//! AGE-RANK, which decides without knowing the future, against the best that could have been done.
//!
//! A job asks for some of the units that will do for it, and uses them for so long. Of a few jobs
//! that are known beforehand two optima are found by going through all there is: the same rule with
//! other units, where only who is given *which* units is chosen; and any schedule at all, which may
//! also pass the oldest, or leave a unit idle for who comes next.

use quorate_core::{ClaimId, Unit};
use quorate_protocols::allocator::{Allocator, Deed, Policy, Ticket, Want};

use crate::chance::Chance;
use crate::{Found, Grid, Pace, Tally};

crate::registered![age_rank_in_hindsight];

const UNITS: u32 = 4;

/// A job: when it comes, which units will do, how many of them, and for how long.
#[derive(Clone, Copy, Debug)]
struct Job {
    comes: u32,
    alpha: u32,
    units: u32,
    lasts: u32,
}

/// So many jobs, oldest first, of at most `most` units each.
fn drawn(chance: &mut Chance, jobs: usize, most: u32) -> Vec<Job> {
    let mut now = 0;
    (0..jobs)
        .map(|_| {
            now += chance.below(3) as u32;
            let units = 1 + chance.below(u64::from(most)) as u32;
            let alpha = loop {
                let alpha = 1 + chance.below((1 << UNITS) - 1) as u32;
                if alpha.count_ones() >= units {
                    break alpha;
                }
            };
            Job { comes: now, alpha, units, lasts: 1 + chance.below(6) as u32 }
        })
        .collect()
}

/// How long all wait together under the allocator of the daemon.
fn age_rank(jobs: &[Job], policy: Policy, movable: bool) -> u32 {
    let ticket = |job: usize| {
        let serial = job as u64 + 1;
        Ticket { age: serial, claim: ClaimId { origin: 0, serial } }
    };
    let mut allocator = Allocator::new(UNITS, policy);
    // Who has which units, until when.
    let mut running: Vec<(usize, u32, Vec<Unit>)> = Vec::new();
    let (mut waited, mut granted, mut next) = (0, 0, 0);
    let mut now = 0;
    while granted < jobs.len() {
        while let Some(at) = running.iter().position(|(_, until, _)| *until <= now) {
            let (job, _, units) = running.remove(at);
            allocator.release(ticket(job), units);
        }
        while next < jobs.len() && jobs[next].comes <= now {
            let job = jobs[next];
            let among = (0..UNITS).filter(|unit| job.alpha >> unit & 1 == 1).map(Unit);
            let want = Want { among: Some(among.collect()), units: job.units };
            allocator.enter(ticket(next), &[want], movable).expect("it can be had");
            next += 1;
        }
        loop {
            let mut deeds = Vec::new();
            allocator.pass(&mut deeds);
            if deeds.is_empty() {
                break;
            }
            for deed in deeds {
                let (Deed::Grant { ticket, .. } | Deed::Move { ticket, .. }) = deed;
                let job = ticket.age as usize - 1;
                match deed {
                    Deed::Grant { units, .. } => {
                        waited += now - jobs[job].comes;
                        granted += 1;
                        running.push((job, now + jobs[job].lasts, units));
                    }
                    Deed::Move { add, drop, .. } => {
                        let mut held = running.iter_mut().filter(|(known, ..)| *known == job);
                        let held = held.next().expect("only holders move");
                        held.2.retain(|unit| *unit != drop);
                        held.2.push(add);
                        allocator.moved(ticket, drop);
                    }
                }
            }
        }
        now += 1;
    }
    waited
}

/// All ways to choose so many of these units.
fn choices(alpha: u32, units: u32) -> impl Iterator<Item = u32> {
    (0..1_u32 << UNITS).filter(move |set| set & !alpha == 0 && set.count_ones() == units)
}

/// Most units that these jobs can have together of those that are free.
fn together(jobs: &[Job], free: u32) -> u32 {
    let Some((first, rest)) = jobs.split_first() else { return 0 };
    let most = first.units.min((first.alpha & free).count_ones());
    let given = |units| {
        let best = |set: u32| units + together(rest, free & !set);
        choices(first.alpha & free, units).map(best).max().unwrap_or(0)
    };
    (0..=most).map(given).max().unwrap_or(0)
}

/// The rule (labels spec 6.2): who of those that wait is granted beside what is free.
fn decide(jobs: &[Job], waiting: &[usize], free: u32, mut protect: u32) -> Vec<usize> {
    let (mut over, mut granted): (Vec<Job>, Vec<usize>) = (Vec::new(), Vec::new());
    for &job in waiting {
        let before = together(&over, free);
        over.push(jobs[job]);
        if together(&over, free) == before + jobs[job].units {
            granted.push(job);
        } else if protect > 0 {
            protect -= 1;
        } else {
            over.pop();
        }
    }
    granted
}

/// Where a search is.
#[derive(Clone)]
struct Moment {
    now: u32,
    free: u32,
    running: Vec<(u32, u32)>,
    waiting: Vec<usize>,
    next: usize,
    waited: u32,
}

/// How long all wait together if whoever the rule grants is given the units that turn out best.
fn best_units(jobs: &[Job], protect: u32) -> u32 {
    let free = (1 << UNITS) - 1;
    let start = Moment { now: 0, free, running: vec![], waiting: vec![], next: 0, waited: 0 };
    let mut best = u32::MAX;
    step(jobs, protect, start, &mut best);
    best
}

fn step(jobs: &[Job], protect: u32, mut at: Moment, best: &mut u32) {
    if at.waited >= *best {
        return;
    }
    let now = at.now;
    for (_, units) in at.running.extract_if(.., |(until, _)| *until <= now) {
        at.free |= units;
    }
    while at.next < jobs.len() && jobs[at.next].comes <= now {
        at.waiting.push(at.next);
        at.next += 1;
    }
    if at.waiting.is_empty() && at.next == jobs.len() {
        *best = at.waited;
        return;
    }
    let granted = decide(jobs, &at.waiting, at.free, protect);
    at.waiting.retain(|job| !granted.contains(job));
    place(jobs, protect, &granted, at, best);
}

/// Every way to give these their units, and what follows.
fn place(jobs: &[Job], protect: u32, granted: &[usize], mut at: Moment, best: &mut u32) {
    let Some((&job, rest)) = granted.split_first() else {
        at.now += 1;
        return step(jobs, protect, at, best);
    };
    for units in choices(jobs[job].alpha & at.free, jobs[job].units) {
        let mut then = at.clone();
        then.free &= !units;
        then.running.push((at.now + jobs[job].lasts, units));
        then.waited += at.now - jobs[job].comes;
        place(jobs, protect, rest, then, best);
    }
}

/// How long all wait together at best, whatever the rule: begun with what is known to be possible.
fn best_schedule(jobs: &[Job], possible: u32) -> u32 {
    let mut best = possible;
    let left: Vec<usize> = (0..jobs.len()).collect();
    any(jobs, &left, &mut [0; UNITS as usize], (0, 0), &mut best);
    best
}

/// Jobs are begun one after the other, none before the one that was begun last: any schedule that
/// cannot be improved by beginning a job earlier is among these.
fn any(
    jobs: &[Job],
    left: &[usize],
    free_at: &mut [u32; UNITS as usize],
    (last, waited): (u32, u32),
    best: &mut u32,
) {
    if left.is_empty() {
        *best = waited.min(*best);
        return;
    }
    // Nobody begins before its units are free, whoever else begins.
    let soonest = |job: &Job| {
        let mut free: Vec<u32> = (0..UNITS)
            .filter(|unit| job.alpha >> unit & 1 == 1)
            .map(|u| free_at[u as usize])
            .collect();
        free.sort_unstable();
        free[job.units as usize - 1].max(last).max(job.comes)
    };
    let least: u32 = left.iter().map(|job| soonest(&jobs[*job]) - jobs[*job].comes).sum();
    if waited + least >= *best {
        return;
    }
    for (place, &index) in left.iter().enumerate() {
        let job = jobs[index];
        let mut rest = left.to_vec();
        rest.remove(place);
        for set in choices(job.alpha, job.units) {
            let of = |unit: &u32| set >> unit & 1 == 1;
            let free = (0..UNITS).filter(of).map(|unit| free_at[unit as usize]).max();
            let begins = free.unwrap_or(0).max(last).max(job.comes);
            let before = *free_at;
            (0..UNITS).filter(of).for_each(|unit| free_at[unit as usize] = begins + job.lasts);
            any(jobs, &rest, free_at, (begins, waited + begins - job.comes), best);
            *free_at = before;
        }
    }
}

fn age_rank_in_hindsight(pace: Pace) -> Found {
    let head = [
        "claims for",
        "protected",
        "instances",
        "AGE-RANK",
        "holders move",
        "same rule, best units",
        "best schedule",
        "as good as the best units",
        "as good as any",
        "most beyond the best",
    ];
    let mut grid = Grid::new(&head);
    let mut sound = Tally::new();
    let (jobs, instances) = (pace.pick(7, 8), pace.pick(40, 400));
    let mut costs = Vec::new();
    for (most, protect) in [(1, 1), (2, 1), (2, u32::MAX)] {
        let mut chance = Chance(u64::from(most) * 1000);
        let policy = Policy { protect, patience: 0 };
        let (mut sums, mut equal, mut worst) = ([0_u32; 4], [0_u32; 2], 0);
        for instance in 0..instances {
            let all = drawn(&mut chance, jobs, most);
            let pinned = age_rank(&all, policy, false);
            let moving = age_rank(&all, policy, true);
            let units = best_units(&all, protect);
            let any = best_schedule(&all, units);
            sound.case(any <= units && units <= pinned, || {
                format!("instance {instance} of {most}: {any} {units} {pinned}: {all:?}")
            });
            for (sum, waited) in sums.iter_mut().zip([pinned, moving, units, any]) {
                *sum += waited;
            }
            equal[0] += u32::from(pinned == units);
            equal[1] += u32::from(pinned == any);
            worst = worst.max(pinned.saturating_sub(any));
        }
        let each = |sum: u32| format!("{:.2}", f64::from(sum) / (instances * jobs) as f64);
        let share = |count: u32| format!("{:.0} %", 100.0 * f64::from(count) / instances as f64);
        let claims = if most == 1 { "1 unit" } else { "1 or 2 units" };
        let shown = if protect == 1 { "the oldest" } else { "all" };
        let [a, b, c, d] = sums.map(each);
        let (e, f) = (share(equal[0]), share(equal[1]));
        grid.row(&[&claims, &shown, &instances, &a, &b, &c, &d, &e, &f, &worst]);
        costs.push(sums);
    }
    let beyond = |of: usize, than: usize| {
        let (of, than): (u32, u32) =
            costs.iter().fold((0, 0), |(a, b), sums| (a + sums[of], b + sums[than]));
        100.0 * (f64::from(of) / f64::from(than.max(1)) - 1.0)
    };
    Found::open(
        sound.holds(),
        format!(
            "{jobs} claims on {UNITS} units, each content with some of them, held for 1 to 6 \
             steps; waits are means for a claim, in steps. The choice of units costs AGE-RANK \
             {:.1} % against the best choice under the same rule, knowing who comes next and \
             how long all stay; that it also keeps to the age of claims, and leaves nothing \
             idle on purpose, makes it {:.1} % against the best schedule there is. Where \
             holders can be moved, it waits {:.1} % less than without. Never better than the \
             optima, which the search is checked by: {}.",
            beyond(0, 2),
            beyond(0, 3),
            -beyond(1, 0),
            sound.words("instances")
        ),
    )
    .with(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(comes: u32, alpha: u32, units: u32, lasts: u32) -> Job {
        Job { comes, alpha, units, lasts }
    }

    /// By hand: the first could take either unit, and the second, which comes later, only one.
    #[test]
    fn hindsight_knows_which_unit_the_next_one_needs() {
        let jobs = [job(0, 0b11, 1, 5), job(1, 0b01, 1, 1), job(1, 0b10, 1, 1)];
        // Whichever unit the first takes, one of the others waits for four steps; a schedule that
        // lets the first wait for two is better.
        assert_eq!((best_units(&jobs, 1), best_schedule(&jobs, 100)), (4, 2));
        assert_eq!(best_schedule(&jobs[..2], 100), 0);
        assert_eq!(best_units(&jobs[..2], 1), 0);
    }

    /// Any schedule may let the short one go first; the rule may not.
    #[test]
    fn hindsight_may_pass_the_oldest() {
        let jobs = [job(0, 1, 1, 2), job(1, 1, 1, 6), job(1, 1, 1, 1)];
        assert_eq!(age_rank(&jobs, Policy { protect: 1, patience: 0 }, false), 1 + 7);
        assert_eq!(best_units(&jobs, 1), 1 + 7);
        assert_eq!(best_schedule(&jobs, 100), 1 + 2);
    }
}
