//! Where units are locks, nobody who can use any unit waits beside a free one (arbiter spec 7.11).

use quorate_core::Dice;

use super::cluster::{Cluster, cluster};
use super::walk::forever;
use crate::arbiter::pool::Mutant;
use crate::arbiter::{Alarm, Pool};

/// Three claims for one unit each of two, asked of majorities of three that these numbers draw.
/// The third waits. Then one of the others gives its unit back, then the other, and a fourth comes.
fn story(draws: [u64; 4], first: u32, mutant: Option<Mutant>) -> Cluster {
    let mut world = cluster(3, forever(Pool { mutant, ..Pool::named(2, 3) }));
    let [one, two, three, four] = draws;
    for (node, serial, draw) in [(1, 1, one), (2, 2, two), (0, 3, three)] {
        world.claim(node, serial, 1, draw);
        world.settle();
    }
    assert_eq!(world.units_in_use(), 2, "{}", world.trace);
    assert!(!world.is_using(3), "{}", world.trace);
    world.release(first, u64::from(first));
    world.settle();
    if world.is_using(3) {
        let second = 3 - first;
        world.release(second, u64::from(second));
        world.settle();
        world.claim(1, 4, 1, four);
        world.settle();
    }
    world.must_be_lawful();
    world
}

/// All quorums and all first choices of units, whoever gives back first.
fn stories(mutant: Option<Mutant>) -> impl Iterator<Item = Cluster> {
    let draws = (0..6 * 6 * 6 * 2).map(|n: u64| [n % 6, n / 6 % 6, n / 36 % 6, n / 216 % 2]);
    draws.flat_map(move |draws| [1, 2].map(|first| story(draws, first, mutant)))
}

#[test]
fn whatever_is_free_is_granted() {
    for world in stories(None) {
        assert!(world.is_using(3) && world.is_using(4), "{}", world.trace);
    }
}

/// The rule as it was first: the third claim may go to and fro between units that are both taken
/// until it may not move any more, and not hear of one that is given back.
#[test]
fn forgetting_what_arbiters_said_is_found() {
    assert!(stories(Some(Mutant::MoveInTheDark)).any(|world| !world.is_using(3)));
}

/// Claims for one unit each come and go in any order, and messages arrive in any order. When all
/// is calm as many are served as there are units.
fn crowd(seed: u64, (nodes, units): (u32, u32), mutant: Option<Mutant>) -> Cluster {
    let mut dice = Dice::new(seed);
    let mut world = cluster(nodes as usize, forever(Pool { mutant, ..Pool::named(units, nodes) }));
    let claims = 2 * u64::from(units) + 2;
    let mut next = 1;
    for _ in 0..claims * 40 {
        match dice.index(10) {
            0 if next <= claims => {
                world.claim(dice.index(nodes as usize) as u32, next, 1, dice.index(1 << 20) as u64);
                next += 1;
            }
            1 if !world.using.is_empty() && dice.index(3) == 0 => {
                let place = dice.index(world.using.len());
                let claim = *world.using.keys().nth(place).unwrap();
                world.release(world.home_of(claim).0, claim.serial);
            }
            _ if !world.wire.is_empty() => {
                let parcel = world.take(dice.index(world.wire.len()));
                world.arrive(parcel);
            }
            _ => {}
        }
    }
    world.settle();
    for _ in 0..RINGS {
        for node in 0..nodes {
            if world.alarms[node as usize].contains(&Alarm::Retry) {
                world.ring(node, Alarm::Retry);
            }
        }
        world.settle();
    }
    world.must_be_lawful();
    world
}

const RINGS: usize = 2;

fn is_fair(world: &Cluster) -> bool {
    world.waiting.is_empty() || world.units_in_use() == world.pool.units as usize
}

#[test]
fn nobody_waits_beside_a_free_unit_in_random_histories() {
    for size in [(3, 2), (3, 3), (5, 3), (5, 6)] {
        for seed in 0..300 {
            let world = crowd(seed, size, None);
            assert!(is_fair(&world), "{size:?} seed {seed}\n{}", world.trace);
        }
    }
    let dark = |seed| crowd(seed, (3, 2), Some(Mutant::MoveInTheDark));
    assert!((0..300).any(|seed| !is_fair(&dark(seed))));
}
