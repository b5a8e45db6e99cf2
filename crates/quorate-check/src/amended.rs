//! A pool that is changed in a small world: the control plane says so at one moment, and each node
//! learns of it at its own (charter spec 3).
//!
//! No node applies an entry about who decides before the changes that were committed earlier, and
//! none is told that it has a licence before it has applied every change that was committed when
//! that was confirmed (charter spec S2). A change may be learned before an earlier entry about who
//! decides: a driver may tell both at once, and this first.

use quorate_core::{Charter, Event, Explorable, NodeId};
use quorate_laws::Breach;

use crate::action::Happening;
use crate::council::Chamber;
use crate::court::Seen;
use crate::model::Model;
use crate::sometimes::Sometimes;
use crate::steps::Cue;
use crate::world::World;

impl Chamber {
    /// How much of the log a node may apply that knows so many changes of the pool.
    pub(crate) fn known_by(&self, edition: u8) -> usize {
        self.amended.get(usize::from(edition)).copied().unwrap_or(self.log.len())
    }

    /// How many changes all nodes have applied.
    fn applied_by_all(&self) -> u8 {
        self.nodes.iter().map(|member| member.edition).min().unwrap_or(0)
    }
}

impl<P: Explorable> Model<'_, P> {
    /// How often the pool was changed...
    fn editions(&self) -> u8 {
        self.chamber.as_ref().map_or(0, |chamber| chamber.amended.len() as u8)
    }

    /// ...as far as a node has applied that.
    pub(crate) fn edition(&self, node: NodeId) -> u8 {
        self.chamber.as_ref().map_or(0, |chamber| chamber.nodes[node.index()].edition)
    }

    /// Notes whether more is in use than there is.
    pub(crate) fn see_use(&mut self, in_use: u64) {
        if in_use > u64::from(P::capacity(self.scope.pool_of(self.editions()))) {
            self.sightings.insert(Sometimes::MoreThanThereAre);
        }
    }

    /// What may happen about changes of the pool.
    pub(crate) fn amendments(&self, world: &World, into: &mut Vec<Happening>) {
        let chamber = self.parts.chambers.get(world.council());
        if chamber.amended.len() < self.scope.editions.len() {
            let makes = self.scope.is_made && chamber.amended.is_empty();
            into.push(Happening::Amend { makes });
        }
        let newest = chamber.amended.len() as u8;
        for (node, member) in world.nodes().zip(&chamber.nodes) {
            if world.participant(node).is_some() {
                let later = member.edition + 1..=newest;
                into.extend(later.map(|edition| Happening::Learn { node, edition }));
            }
        }
    }

    /// The pool is changed, or a node learns of that.
    pub(crate) fn amended(
        &mut self,
        world: &mut World,
        happening: Happening,
    ) -> Result<Option<(NodeId, Cue)>, Breach> {
        let chamber = self.chamber.as_mut().expect("only where there is a council");
        let Happening::Learn { node, edition } = happening else {
            chamber.amended.push(chamber.log.len());
            let edition = chamber.amended.len() as u8;
            self.judge(world, Seen::Amended { edition })?;
            return Ok(None);
        };
        let span = usize::from(self.scope.span_of(chamber.amended.len() as u8));
        if chamber.clients.iter().any(|it| it[span + 1..].iter().any(Option::is_some)) {
            self.sightings.insert(Sometimes::LongerThanNow);
        }
        let before = chamber.applied_by_all();
        chamber.nodes[node.index()].edition = edition;
        let after = chamber.applied_by_all();
        if after > before {
            self.judge(world, Seen::Applied { edition: after })?;
        }
        let event = Event::Charter(Charter::Amended { edition: edition.into() });
        Ok(Some((node, Cue::Step { event, late: false })))
    }
}
