//! The controls of labels spec 7, counted as they were there: with the lowest units that will
//! do, and no allocator. Ours takes the units that fewest of the claims there are want, so that
//! fewer systems break; here it is seen that nothing else is different.

use std::collections::BTreeSet;

use super::super::oracle::{self, Demand};
use super::exhaustive::systems;

/// A control: how many blocked claims are protected, and whether units are named inside the pass.
#[derive(Clone, Copy)]
struct Control {
    protect: u32,
    early: bool,
}

/// What clients have (a bit per unit), who waits, oldest first, and who held units when the oldest
/// became that and has not released since (a bit per client).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    holding: Vec<u32>,
    waiting: Vec<usize>,
    before: u32,
}

impl State {
    fn holders(&self) -> Vec<Demand> {
        let pinned = |alpha: &u32| Demand { alpha: *alpha, units: alpha.count_ones() };
        self.holding.iter().filter(|units| **units != 0).map(pinned).collect()
    }
}

/// The lowest units for these claims beside others, such that as much fits as before.
fn name(taken: u32, others: &[Demand], claims: &[Demand]) -> Option<Vec<u32>> {
    let Some((first, rest)) = claims.split_first() else { return Some(Vec::new()) };
    let total = oracle::rho(&[others, claims].concat());
    let mut sets: Vec<u32> = (1..=first.alpha)
        .filter(|set| set & !first.alpha == 0 && set & taken == 0)
        .filter(|set| set.count_ones() == first.units)
        .collect();
    sets.sort_by_key(|set| std::cmp::Reverse(set.reverse_bits()));
    sets.into_iter().find_map(|set| {
        let with = [others, &[Demand { alpha: set, units: first.units }]].concat();
        if oracle::rho(&[&with, rest].concat()) < total {
            return None;
        }
        let more = name(taken | set, &with, rest)?;
        Some([vec![set], more].concat())
    })
}

/// The pass: who is granted which units.
fn pass(state: &State, system: &[Demand], control: Control) -> Vec<(usize, u32)> {
    let taken = state.holding.iter().fold(0, |taken, units| taken | units);
    let (mut over, mut protect) = (state.holders(), control.protect);
    let mut granted: Vec<(usize, u32)> = Vec::new();
    for &client in &state.waiting {
        let claim = system[client];
        let is_free = !oracle::decide(&over, &[vec![claim]], 0).0.is_empty();
        if is_free && control.early {
            let taken = granted.iter().fold(taken, |taken, (_, units)| taken | units);
            let units = name(taken, &over, &[claim]).expect("it is free")[0];
            granted.push((client, units));
            over.push(Demand { alpha: units, ..claim });
        } else if is_free {
            granted.push((client, 0));
            over.push(claim);
        } else if protect > 0 {
            protect -= 1;
            over.push(claim);
        }
    }
    if !control.early {
        assert_eq!(control.protect, 0, "reserved units would have to be kept apart");
        let claims: Vec<Demand> = granted.iter().map(|(client, _)| system[*client]).collect();
        let units = name(taken, &state.holders(), &claims).expect("all of them are free");
        granted.iter_mut().zip(units).for_each(|(grant, units)| grant.1 = units);
    }
    granted
}

/// Something happens to a client, and a pass follows: the law that it breaks, if any.
fn play(
    state: &mut State,
    client: usize,
    system: &[Demand],
    control: Control,
) -> Result<(), &'static str> {
    let oldest = state.waiting.first().copied();
    let cancels = state.waiting.contains(&client);
    if cancels {
        state.waiting.retain(|other| *other != client);
    } else if state.holding[client] != 0 {
        state.holding[client] = 0;
        state.before &= !(1 << client);
    } else {
        state.waiting.push(client);
    }
    let wanted = state.waiting.iter().map(|client| system[*client]);
    let all: Vec<Demand> = state.holders().into_iter().chain(wanted).collect();
    let together = oracle::rho(&all) == all.iter().map(|demand| demand.units).sum::<u32>();
    for (client, units) in pass(state, system, control) {
        state.holding[client] = units;
        state.waiting.retain(|other| *other != client);
    }
    if together && !state.waiting.is_empty() {
        return Err("law M");
    }
    let holders = (0..system.len()).filter(|client| state.holding[*client] != 0);
    match state.waiting.first() {
        None => state.before = 0,
        Some(first) if Some(*first) != oldest || cancels && oldest == Some(client) => {
            state.before = holders.fold(0, |before, client| before | 1 << client);
        }
        Some(_) if state.before == 0 => return Err("law B"),
        Some(_) => {}
    }
    Ok(())
}

/// Whether anything that can happen to a system breaks this law.
fn breaks(system: &[Demand], control: Control, law: &str) -> bool {
    let first = State { holding: vec![0; system.len()], waiting: Vec::new(), before: 0 };
    let (mut seen, mut open) = (BTreeSet::from([first.clone()]), vec![first]);
    while let Some(here) = open.pop() {
        for client in 0..system.len() {
            let mut next = here.clone();
            match play(&mut next, client, system, control) {
                Err(broken) if broken == law => return true,
                Err(_) => continue,
                Ok(()) => {}
            }
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    false
}

/// 194 of the 333 systems, and 4 of the 22.
#[test]
fn with_the_lowest_units_the_controls_break_as_many_systems_as_the_specification_says() {
    let broken = |control: Control, law: &str| {
        [(2, 4), (3, 4)].map(|(units, clients)| {
            let systems = systems(units, clients);
            systems.iter().filter(|system| breaks(system, control, law)).count()
        })
    };
    assert_eq!(broken(Control { protect: 0, early: false }, "law B"), [8, 194]);
    assert_eq!(broken(Control { protect: 1, early: true }, "law M"), [4, 136]);
}
