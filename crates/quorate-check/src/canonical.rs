//! One form for all worlds that have the same futures.

use quorate_core::Explorable;

use crate::model::Model;
use crate::parts::Kind;
use crate::world::{Misfortune, World};

impl<P: Explorable> Model<'_, P> {
    /// Gives a world its canonical form: what can no longer matter is taken out, and clocks and
    /// fences are renamed (see [`crate::numbers`]).
    pub(crate) fn canonical(&mut self, world: &mut World) {
        let live = world.clients().iter().filter(|&&n| self.parts.clients.get(n).is_live()).count();
        if live == 0 {
            let of_clients = [
                Misfortune::Cancel,
                Misfortune::Renewal,
                Misfortune::Death,
                Misfortune::HangUp,
                Misfortune::Lapse,
            ];
            for misfortune in of_clients {
                world.rule_out(misfortune);
            }
        }
        if !self.scope.renaming {
            return;
        }
        let again = [Misfortune::Crash, Misfortune::Lapse, Misfortune::Loss, Misfortune::Suspicion];
        let stamps = live as u32 * (1 + again.iter().map(|m| world.left(*m)).sum::<u32>());
        let mut numbers = 0;
        world.each_part(&mut |kind, part| {
            numbers = self.parts.names.union(numbers, self.parts.numbers(kind, part));
            part
        });
        if let Some(renaming) = self.parts.names.renaming_of(numbers, stamps + 1) {
            world.each_part(&mut |kind, part| self.parts.renamed(kind, part, renaming, self.scope));
        }
    }
}

impl World {
    /// Shows every part in which there can be numbers, and puts what `change` makes of it in its
    /// place.
    fn each_part(&mut self, change: &mut impl FnMut(Kind, u32) -> u32) {
        let laws = change(Kind::Laws, self.laws());
        self.set_laws(laws);
        for node in self.nodes() {
            if let Some(participant) = self.participant(node) {
                self.set_participant(node, Some(change(Kind::Participant, participant)));
            }
            if let Some(record) = self.disk(node) {
                self.set_disk(node, Some(change(Kind::Record, record)));
            }
        }
        for queue in self.queues_mut() {
            if *queue != 0 {
                *queue = change(Kind::Queue, *queue);
            }
        }
        for client in 0..self.layout().clients {
            self.set_client(client, change(Kind::Client, self.client(client)));
        }
    }
}
