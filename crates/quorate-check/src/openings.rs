//! How seats came to decide: what must be reachable where the decider may change.

use quorate_core::{Charter, Event, Explorable, Moment, Protocol, Seat, Tenure};

use crate::council::Chamber;
use crate::model::Model;
use crate::sometimes::Sometimes;
use crate::steps::{Cue, Stepper};

impl<P: Explorable> Model<'_, P> {
    /// Notes how a seat with holders in its books came to decide.
    pub(crate) fn see_opening(&mut self, stepper: &Stepper, outcome: u32, cue: &Cue) {
        let (Some(_), Some(before)) = (&self.scope.council, stepper.participant) else { return };
        let after = self.steps.outcome(outcome).after;
        let waits = |number: u32| {
            let Stepper { node: me, boot, .. } = *stepper;
            let pool = self.scope.pool_of(stepper.edition);
            let seat = Seat { me, boot, now: Moment::ZERO, pool };
            Protocol::health(self.parts.participants.get(number), &seat).in_grace
        };
        if self.comes_into_use(stepper, before, after) && !waits(after) {
            self.sightings.insert(Sometimes::OpenedUnused);
        }
        let has_holders = self.parts.participants.card(after).holders != 0;
        let inherits =
            matches!(cue, Cue::Step { event: Event::Charter(Charter::Inherited(..)), .. });
        if has_holders && inherits && !waits(after) {
            self.sightings.insert(Sometimes::ShadowOpened);
        }
        if has_holders && waits(before) && !waits(after) {
            self.sightings.insert(match cue {
                Cue::Step { event: Event::Ring(_), .. } => Sometimes::OpenedByTime,
                _ => Sometimes::OpenedByWord,
            });
        }
    }

    /// Whether this step is the first use of a pool at the node that decides, after another did.
    fn comes_into_use(&self, stepper: &Stepper, before: u32, after: u32) -> bool {
        let unused = |number| self.parts.participants.get(number).is_unused();
        let Stepper { node: me, boot, edition, .. } = *stepper;
        let seat = Seat { me, boot, now: Moment::ZERO, pool: self.scope.pool_of(edition) };
        let knows = || Protocol::health(self.parts.participants.get(after), &seat).term;
        let decides = |it: Tenure| it.term > 1 && (it.node, it.boot) == (me, boot);
        let last = self.chamber.as_ref().map(Chamber::tenure);
        unused(before) && !unused(after) && last.is_some_and(|it| decides(it) && it.term == knows())
    }
}
