//! What a model checker must know about the broadcasting protocols: which numbers are clocks.

use quorate_core::{ClaimId, Explorable, LeaseEnd, Number};

use super::message::Message;
use super::{Alarm, Weighted};

type See<'a> = dyn FnMut(Number<'_>) + 'a;

impl Explorable for Weighted {
    fn numbers(&mut self, see: &mut See<'_>) {
        see(Number::Clock(&mut self.clock.0));
        for asked in &mut self.asked {
            see(Number::Clock(&mut asked.clock));
        }
        self.deferred.clocks(&mut |clock| see(Number::Clock(clock)));
        self.detector.clocks(&mut |clock| see(Number::Clock(clock)));
    }

    fn message_numbers(message: &mut Message, see: &mut See<'_>) {
        let mut some = |clock: &mut Option<u64>| {
            if let Some(clock) = clock {
                see(Number::Clock(clock));
            }
        };
        match message {
            Message::Request { clock, oldest, query, .. } => {
                some(query);
                see(Number::Clock(clock));
                see(Number::Clock(oldest));
            }
            Message::Reply { request, query, .. } => {
                some(request);
                some(query);
            }
            Message::Query { query, .. } => see(Number::Clock(query)),
            Message::Joined { clock, .. } => see(Number::Clock(clock)),
            Message::Notice { .. } | Message::Join { .. } | Message::Expelled { .. } => {}
        }
    }

    fn durable_numbers((): &mut (), _: &mut See<'_>) {}

    /// A suspect's lease is a node's, not a claim's: a checker that takes no order as given finds
    /// what happens without one.
    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry | Alarm::Probe | Alarm::LeaseEnd(_) => LeaseEnd::Nothing,
            Alarm::HoldEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn promise(_: &Message) -> Option<ClaimId> {
        None
    }
}
