//! What a model checker must know about `ring`.
//!
//! Sequence numbers are not clocks: they go round, and the pool says how many there are
//! ([`super::Pool::with_seqs`]). Only fences grow.

use quorate_core::{ClaimId, Explorable, LeaseEnd, Number, Shares};

use super::message::Message;
use super::place::{Job, Place, Seated};
use super::station::{Station, StationClaim};
use super::tether::Parcel;
use super::tokens::Named;
use super::{Alarm, Ring};

type See<'a> = dyn FnMut(Number<'_>) + 'a;

impl Explorable for Ring {
    fn numbers(&mut self, see: &mut See<'_>) {
        for place in &mut self.places {
            place_numbers(place, see);
        }
        for parcel in &mut self.own {
            Self::message_numbers(parcel, see);
        }
        self.forget_totals();
    }

    fn message_numbers(parcel: &mut Parcel, see: &mut See<'_>) {
        match &mut parcel.message {
            Message::Token(tokens)
            | Message::Enabled(tokens)
            | Message::Collect(tokens)
            | Message::Allocate { tokens, .. } => token_numbers(tokens, see),
            Message::Frame(frame) => {
                token_numbers(&mut frame.free, see);
                token_numbers(&mut frame.alloc, see);
                token_numbers(&mut frame.coll, see);
                frame.counted.fences(&mut |fence| see(Number::Fence(fence)));
            }
            Message::Controller(_) | Message::Disable | Message::Wake => {}
        }
    }

    fn durable_numbers((): &mut (), _see: &mut See<'_>) {}

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Timeout | Alarm::Idle | Alarm::Hop | Alarm::Fence => LeaseEnd::Nothing,
            // Armed by suspicion only, which the checker does not have.
            Alarm::Quarantine => LeaseEnd::Nothing,
            Alarm::LeaseEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    /// A holder's deadline is set by its own node, never by a message.
    fn promise(_message: &Parcel) -> Option<ClaimId> {
        None
    }
}

impl Ring {
    /// Running totals decide nothing, and would make every state a new one.
    pub(super) fn forget_totals(&mut self) {
        self.destroyed = 0;
        if let Some(watch) = &mut self.watch {
            watch.forget_totals();
        }
    }
}

fn place_numbers(place: &mut Place, see: &mut See<'_>) {
    if let Job::Granted { shares, .. } = &mut place.job {
        share_numbers(shares, see);
    }
    match &mut place.seated {
        Seated::Core(machine) => {
            station_numbers(&mut machine.station, see);
            if let Some(root) = &mut machine.root {
                root.reports.fences(&mut |fence| see(Number::Fence(fence)));
                root.sent.fences(&mut |fence| see(Number::Fence(fence)));
                token_numbers(&mut root.collected, see);
                token_numbers(&mut root.left_over, see);
                root.mint.iter_mut().for_each(|fence| see(Number::Fence(fence)));
            }
        }
        Seated::Train(machine) => {
            station_numbers(&mut machine.station, see);
            token_numbers(&mut machine.kept, see);
            if let Some(root) = &mut machine.root {
                token_numbers(&mut root.bag, see);
                token_numbers(&mut root.pool, see);
                root.mint.iter_mut().for_each(|fence| see(Number::Fence(fence)));
            }
        }
    }
}

fn station_numbers(station: &mut Station<Named>, see: &mut See<'_>) {
    token_numbers(&mut station.held, see);
    if let StationClaim::Using { units } = &mut station.standing {
        token_numbers(units, see);
    }
}

fn token_numbers(tokens: &mut Named, see: &mut See<'_>) {
    tokens.fences(&mut |fence| see(Number::Fence(fence)));
}

fn share_numbers(shares: &mut Shares, see: &mut See<'_>) {
    *shares = shares.map_fences(|mut fence| {
        see(Number::Fence(&mut fence));
        fence
    });
}
