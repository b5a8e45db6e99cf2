//! How much a station must remember: nothing that grows with the ring, and l only at the root.

use quorate_core::{Moment, NodeId, Outbox, Protocol, Seat, Start};

use super::*;

fn boot(pool: &Pool, node: u32) -> Ring {
    let seat = Seat { me: NodeId(node), boot: 0, now: Moment::ZERO, pool };
    Ring::boot(&seat, Start::First, &mut Outbox::new())
}

#[test]
fn a_seat_is_small_and_the_same_in_every_ring() {
    let bytes = boot(&Pool::new(1, 2), 1).bytes();
    assert!(bytes <= 400, "{bytes} bytes");
    for (units, nodes) in [(1_000_000, 2), (1, 1_000_000), (64, 1_000_000)] {
        assert_eq!(
            boot(&Pool::new(units, nodes), 1).bytes(),
            bytes,
            "{units} units, {nodes} nodes"
        );
    }
}

/// Whatever happens, from whatever state, in a ring of many units of which claims take few.
fn keeps_few<M: Stabilizing<Tokens = Named>>(kept: impl Fn(&M) -> u32) {
    let (units, claim_max, size) = (200, 2, 6);
    let terms = terms(units, claim_max, size);
    let mut dice = Dice::new(7);
    let mut draw = |bound| dice.below(bound);
    for start in [Track::started(terms, size), Track::<M>::scrambled(terms, size, 4, &mut draw)] {
        let mut wander = Wander::new(start, &mut draw);
        wander.track.settle(&mut |_| {});
        for _ in 0..5000 {
            wander.step();
            for machine in &wander.track.stations[1..] {
                let station = machine.station();
                assert!(station.held.len() <= claim_max);
                assert!(station.disabled <= 2 * claim_max);
                assert!(station.in_use() <= claim_max);
                assert!(kept(machine) <= 2 * claim_max);
            }
        }
        assert!(wander.grants > 50);
    }
}

#[test]
fn a_station_keeps_no_more_names_than_a_claim_may_ask_for() {
    keeps_few::<Core<Named>>(|_| 0);
    keeps_few::<train::Train<Named>>(|machine| machine.kept.len());
}
