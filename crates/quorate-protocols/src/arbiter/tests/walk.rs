//! Random histories: any message may be next, come twice or vanish; clients claim, cancel, release
//! and renew as they like. The laws hold throughout, and once all is calm everybody was served.

use std::time::Duration;

use quorate_core::{Dice, Lease, NodeId};

use super::cluster::{Cluster, cluster, id};
use crate::arbiter::{Alarm, Mode, Pool};
use crate::quorums::Quorums;

/// What may happen to messages.
#[derive(Clone, Copy, Default)]
pub(super) struct Weather {
    pub(super) duplicates: bool,
    pub(super) losses: bool,
    /// Claims are repeated at other nodes, waiting or held.
    pub(super) repeats: bool,
    /// Time passes; clients notice their deadlines late, arbiters the ends of leases later still.
    pub(super) time: bool,
}

pub(super) fn forever(pool: Pool) -> Pool {
    Pool { lease: Lease::new(Duration::MAX, 0), patience: None, ..pool }
}

/// One random history of `claims` claims, then calm.
pub(super) fn walk(seed: u64, nodes: usize, pool: Pool, claims: u64, weather: Weather) -> Cluster {
    let mut dice = Dice::new(seed);
    let mut world = cluster(nodes, pool);
    let (mut next, mut homes) = (1, std::collections::BTreeMap::new());
    let mut wants = Vec::new();
    for _ in 0..claims * 60 {
        if world.breach.is_some() {
            return world;
        }
        match dice.index(12) {
            0 if next <= claims => {
                let (node, h) = (dice.index(nodes), 1 + dice.index(world.pool.units as usize));
                homes.insert(id(next), node as u32);
                wants.push(h as u32);
                world.claim(node as u32, next, h as u32, dice.draw());
                next += 1;
            }
            1 if !world.using.is_empty() => {
                let place = dice.index(world.using.len());
                let claim = *world.using.keys().nth(place).unwrap();
                world.release(homes[&claim], claim.serial);
            }
            2 if !world.waiting.is_empty() && dice.index(6) == 0 => {
                let place = dice.index(world.waiting.len());
                let (&claim, &home) = world.waiting.iter().nth(place).unwrap();
                world.cancel(home.0, claim.serial);
            }
            3 if dice.index(4) == 0 => {
                let node = dice.index(nodes) as u32;
                if world.alarms[node as usize].contains(&Alarm::Retry) {
                    world.ring(node, Alarm::Retry);
                }
            }
            4 if !world.using.is_empty() && dice.index(4) == 0 => {
                let place = dice.index(world.using.len());
                let claim = *world.using.keys().nth(place).unwrap();
                world.renew(homes[&claim], claim.serial);
            }
            5 if weather.repeats && next > 1 && dice.index(3) == 0 => {
                let (serial, node) = (1 + dice.index(next as usize - 1) as u64, dice.index(nodes));
                let node = NodeId::from(node);
                let again = world.alias(node, id(serial));
                if let std::collections::btree_map::Entry::Vacant(new) = homes.entry(again) {
                    new.insert(node.0);
                    world.claim(node.0, serial, wants[serial as usize - 1], dice.draw());
                }
            }
            6 if weather.time && dice.index(3) == 0 => {
                world.now = world.now.after(Duration::from_secs(1 + dice.index(4) as u64));
            }
            _ if !world.wire.is_empty() => {
                let place = dice.index(world.wire.len());
                let fate = dice.index(20);
                let keep = weather.duplicates && fate == 0;
                let lose = weather.losses && fate == 1;
                let parcel = if keep { world.wire[place].clone() } else { world.take(place) };
                if !lose {
                    world.arrive(parcel);
                }
            }
            _ => {}
        }
    }
    calm(&mut world, &homes);
    world
}

/// No more faults: everything arrives, alarms ring, clients release.
fn calm(world: &mut Cluster, homes: &std::collections::BTreeMap<quorate_core::ClaimId, u32>) {
    for _ in 0..200 {
        world.settle();
        if world.breach.is_some() {
            return;
        }
        if let Some(&claim) = world.using.keys().next() {
            world.release(homes[&claim], claim.serial);
        } else if world.waiting.is_empty() {
            return;
        } else {
            for node in 0..world.nodes.len() as u32 {
                if world.alarms[node as usize].contains(&Alarm::Retry) {
                    world.ring(node, Alarm::Retry);
                }
            }
        }
    }
}

fn check(seed: u64, nodes: usize, pool: &Pool, weather: Weather) {
    let world = walk(seed, nodes, forever(pool.clone()), 8, weather);
    if world.breach.is_some() || !world.waiting.is_empty() {
        panic!("seed {seed}: {:?} wait\n{}", world.waiting, world.trace);
    }
}

#[test]
fn the_laws_hold_in_random_histories_of_small_pools() {
    let counted = [
        (3, Pool::new(1, 3)),
        (4, Pool::new(2, 4)),
        (5, Pool::new(3, 5)),
        (5, Pool { hedge: 1, ..Pool::new(2, 4) }),
        (4, Pool { mode: Mode::Count { holders_max: 2, backfill: 2 }, ..Pool::new(2, 4) }),
        (
            5,
            Pool {
                units: 8,
                mode: Mode::Count { holders_max: 1, backfill: 0 },
                quorums: Quorums::majority(5),
                ..Pool::new(2, 4)
            },
        ),
        (7, Pool { quorums: Quorums::by_size(7, 3), ..Pool::new(3, 7) }),
    ];
    let named = [(3, Pool::named(2, 3)), (5, Pool::named(6, 5)), (3, Pool::named(1, 3))];
    for (nodes, pool) in counted.into_iter().chain(named) {
        for seed in 0..150 {
            check(seed, nodes, &pool, Weather::default());
            check(seed, nodes, &pool, Weather { duplicates: true, ..Weather::default() });
            check(seed, nodes, &pool, Weather { repeats: true, ..Weather::default() });
        }
    }
}
