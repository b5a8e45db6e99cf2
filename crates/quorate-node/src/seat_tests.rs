//! Seats of a toy protocol: what a driver must do whatever the protocol does.

use std::fmt;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Effect, Entry, Event, EventOf, Explorable, Fence, LeaseEnd, Moment, NodeId,
    NodeSet, Number, Outbox, Protocol, Seat, Share, Shares, Start, Unit, Units,
};
use quorate_wire::{DecodeError, Wire};

use crate::seat::{
    AnySeat, Driver, FirstDue, Origin, Parcel, Place, Runs, SeatEffect, SeatError, SeatEvent,
};

/// Grants at once, except that a claim for 3 finds it contradicting itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Toy;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Alarm {
    Tick,
    Grace,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

const SECOND: Duration = Duration::from_secs(1);

impl Runs for Toy {}

impl Protocol for Toy {
    type Pool = ();
    type Message = u8;
    type Alarm = Alarm;
    type Durable = u8;
    const NAME: &'static str = "toy";
    const KINDS: &'static [&'static str] = &["toy"];

    fn boot(_: &Seat<'_, Self>, start: Start<u8>, out: &mut Outbox<Self>) -> Self {
        if start == Start::Amnesia {
            out.arm(Alarm::Grace, SECOND);
        }
        Toy
    }

    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        match event {
            Event::Claim(claim) => {
                assert_ne!(claim.wanted.units.get(), 3, "three is one too many");
                let share = Share { unit: Unit(0), fence: Fence(1) };
                out.persist(7);
                out.grant(claim.id, Shares::new(&[share]), seat.now.after(SECOND));
            }
            Event::Release(_) => out.disarm(Alarm::Tick),
            Event::Cancel(_) => out.arm(Alarm::Tick, SECOND),
            Event::Ring(alarm) => {
                let rang = ClaimId { origin: 0, serial: alarm as u64 };
                out.lose(rang);
            }
            Event::Hear { from, message } => out.tell(from, message + 1),
            _ => {}
        }
    }

    fn audit(&self, _: &Seat<'_, Self>) {}
    fn ledger(&self, _: &mut dyn FnMut(Entry)) {}
    fn kind(_: &u8) -> usize {
        0
    }
    fn capacity((): &()) -> u32 {
        1
    }
    fn overtakes_max((): &()) -> Option<u32> {
        None
    }
    fn can_lose((): &(), _: &NodeSet) -> bool {
        false
    }
}

impl Wire for Toy {
    fn encode_message(message: &u8, out: &mut Vec<u8>) {
        out.push(*message);
    }
    fn decode_message(bytes: &[u8]) -> Result<u8, DecodeError> {
        bytes.first().copied().ok_or(DecodeError::Garbage)
    }
    fn encode_record(record: &u8, out: &mut Vec<u8>) {
        out.push(*record);
    }
    fn decode_record((): &(), bytes: &[u8]) -> Result<u8, DecodeError> {
        Toy::decode_message(bytes)
    }
}

impl Explorable for Toy {
    fn numbers(&mut self, _: &mut dyn FnMut(Number<'_>)) {}
    fn message_numbers(_: &mut u8, _: &mut dyn FnMut(Number<'_>)) {}
    fn durable_numbers(_: &mut u8, _: &mut dyn FnMut(Number<'_>)) {}
    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        if *alarm == Alarm::Grace { LeaseEnd::Earlier } else { LeaseEnd::Nothing }
    }
    fn promise(_: &u8) -> Option<ClaimId> {
        None
    }
}

fn seat(origin: Origin) -> (Driver<Toy>, Vec<SeatEffect>) {
    let since = Moment::ZERO.after(SECOND);
    let place = Place { name: "pool".into(), me: NodeId(0), boot: 1, since, grace: 5 * SECOND };
    let mut effects = Vec::new();
    let driver = Driver::boot(place, (), origin, &mut effects).unwrap();
    (driver, effects)
}

fn step(seat: &mut Driver<Toy>, event: SeatEvent<'_>) -> Result<Vec<SeatEffect>, SeatError> {
    let mut effects = Vec::new();
    seat.step(Moment::ZERO.after(10 * SECOND), event, &mut effects)?;
    Ok(effects)
}

fn claim(units: u32) -> SeatEvent<'static> {
    Event::Claim(Claim::any(ClaimId::default(), Units::new(units, 9).unwrap()))
}

#[test]
fn effects_leave_as_bytes_in_their_order() {
    let (mut seat, effects) = seat(Origin::First);
    assert!(effects.is_empty());
    let effects = step(&mut seat, claim(1)).unwrap();
    assert!(matches!(&effects[..], [Effect::Persist(_), Effect::Grant { .. }]), "{effects:?}");
    let heard = Event::Hear { from: NodeId(1), message: &[4][..] };
    let effects = step(&mut seat, heard).unwrap();
    let [Effect::Tell { to: NodeId(1), message: Parcel { kind: 0, packed, .. } }] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(&packed[..], b"\x04pool\x05");
    let nonsense = Event::Hear { from: NodeId(1), message: &[][..] };
    assert!(matches!(step(&mut seat, nonsense), Err(SeatError::Undecodable(_))));
    assert!(step(&mut seat, claim(1)).is_ok(), "and it goes on");
}

#[test]
fn an_alarm_that_was_disarmed_or_replaced_never_rings() {
    let (mut seat, _) = seat(Origin::First);
    let at = |seconds: u32| Moment::ZERO.after(SECOND * seconds);
    let mut step = |now: u32, event: SeatEvent<'_>| {
        let mut effects = Vec::new();
        seat.step(at(now), event, &mut effects).unwrap();
        (effects.len(), seat.due())
    };
    let (arm, disarm) =
        (|| Event::Cancel(ClaimId::default()), || Event::Release(ClaimId::default()));
    assert_eq!(step(10, arm()), (0, Some(at(11))));
    assert_eq!(step(11, arm()), (0, Some(at(12))), "armed again");
    assert_eq!(step(11, Event::Ring(FirstDue)), (0, Some(at(12))), "it is not due");
    assert_eq!(step(12, Event::Ring(FirstDue)), (1, None));
    assert_eq!(step(13, Event::Ring(FirstDue)), (0, None), "it rings once");
    assert_eq!(step(13, arm()), (0, Some(at(14))));
    assert_eq!(step(13, disarm()), (0, None));
    assert_eq!(step(20, Event::Ring(FirstDue)), (0, None));
}

#[test]
fn old_promises_are_respected_from_the_start_of_the_node_for_as_long_as_configured() {
    let (mut seat, _) = seat(Origin::Amnesia);
    let over = Moment::ZERO.after(6 * SECOND);
    assert_eq!((seat.due(), seat.grace_until()), (Some(over), Some(over)));
    step(&mut seat, Event::Ring(FirstDue)).unwrap();
    assert_eq!(seat.grace_until(), None);
}

#[test]
fn a_contradiction_stops_the_seat_for_good_and_tells_what_went_before() {
    let (mut seat, _) = seat(Origin::First);
    step(&mut seat, claim(1)).unwrap();
    let Err(SeatError::Stopped(why)) = step(&mut seat, claim(3)) else { panic!("it limps on") };
    assert!(why.contains("three is one too many"), "{why}");
    assert!(why.contains("claim 0.0 h1 | claim 0.0 h3"), "{why}");
    assert!(matches!(step(&mut seat, claim(1)), Err(SeatError::Stopped(_))));
}
