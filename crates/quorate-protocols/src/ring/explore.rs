//! What a model checker must know about `ring`.
//!
//! Sequence numbers are not clocks: they go round, and the pool says how many there are
//! ([`super::Pool::with_seqs`]). Only fences grow.

use quorate_core::{ClaimId, Explorable, Number, Numbers, numbers};

use super::Ring;
use super::message::{Frame, Message};
use super::place::{Job, Place, Seated};
use super::station::{Station, StationClaim};
use super::tether::Parcel;
use super::tokens::Named;
use super::train::{self, Train};

impl Explorable for Ring {
    fn forget_totals(&mut self) {
        self.destroyed = 0;
        if let Some(watch) = &mut self.watch {
            watch.forget_totals();
        }
    }

    /// A holder's deadline is set by its own node, never by a message.
    fn promise(_message: &Parcel) -> Option<ClaimId> {
        None
    }
}

numbers!(Ring { places, waiting, own, blind, tether: plain, destroyed, watch: plain });
numbers!(Parcel { epoch: plain, back: plain, skipped, message });
numbers!(enum Message<Named> {
    Token(tokens),
    Controller(seq: plain),
    Enabled(tokens),
    Collect(tokens),
    Allocate { tokens, order },
    Disable,
    Frame(frame),
    Wake,
});
numbers!(Frame<Named> {
    seq: plain,
    order,
    free,
    alloc,
    coll,
    counted,
    kill,
    waited,
    waits,
    blind,
});
numbers!(Place { visit, job, seated });
numbers!(enum Job { Free, Waiting { claim, units }, Granted { claim, shares } });
numbers!(
    enum Seated {
        Core(machine),
        Train(machine),
    }
);
numbers!(Station<Named> { standing, held, disabled, seq: plain, turn, favoured });
numbers!(enum StationClaim<Named> { Out, Requesting { need }, Using { units } });
numbers!(Train<Named> { station, crowded, kept, woke, phase, blind, barred, root });
numbers!(train::Root<Named> { bag, pool, flush, parked, announce, hot, mint });

impl Numbers for Named {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        self.fences(&mut |fence| see(Number::Fence(fence)));
    }
}
