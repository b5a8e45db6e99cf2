//! The failure detector: who has been silent for too long.
//!
//! Every node shows its peers once a heartbeat that it lives. One that has not been heard for
//! `suspect_after` is suspected, and trusted again as soon as it is heard. Seats are told both: to
//! them it is an opinion, which may be wrong, and on which nothing rests but how soon they ask
//! somebody else. Seats to which it would be more than that are told by an administrator only, who
//! has cut the node off from what the units protect.
//!
//! A node that was started again is another, though it was away for less than anybody's patience:
//! seats are told that the one they knew is gone, and then that it is there. Claims that wait for
//! its clients are nobody's until they are asked for again, and what it gave it may have forgotten.

use quorate_api::{Problem, ProblemKind};
use quorate_core::{Event, Moment, NodeId};
use quorate_wire::glance::What;

use super::{Engine, HEARTBEAT};
use crate::caller::Caller;
use crate::protocols::{self, Books, REGISTRY};
use crate::seat::SeatEvent;

/// What is heard of the other nodes.
pub(super) struct Watch {
    /// When each was last heard; our own place is never used.
    heard: Vec<Moment>,
    suspected: Vec<bool>,
    me: NodeId,
    /// When this was last looked at.
    looked: Moment,
}

impl Watch {
    pub(super) fn new(me: NodeId, members: usize, now: Moment) -> Self {
        Watch { heard: vec![now; members], suspected: vec![false; members], me, looked: now }
    }

    /// So many members there are from now on: nobody has missed the new ones yet.
    pub(super) fn grow(&mut self, members: usize, now: Moment) {
        self.heard.resize(members, now);
        self.suspected.resize(members, false);
    }

    /// Whom this node suspects.
    pub(super) fn suspects(&self) -> impl Iterator<Item = NodeId> + '_ {
        let suspected = self.suspected.iter().enumerate().filter(|(_, suspected)| **suspected);
        suspected.map(|(place, _)| NodeId::from(place))
    }

    pub(super) fn is_suspected(&self, node: NodeId) -> bool {
        self.suspected[node.index()]
    }

    /// A node was heard; says whether it had been suspected.
    fn hear(&mut self, node: NodeId, now: Moment) -> bool {
        self.heard[node.index()] = now;
        std::mem::replace(&mut self.suspected[node.index()], false)
    }

    /// A node is not the one that was heard before. Says whether it was trusted until now.
    fn replaced(&mut self, node: NodeId) -> bool {
        !std::mem::replace(&mut self.suspected[node.index()], true)
    }

    /// Who is suspected from now on.
    fn look(&mut self, now: Moment, patience: std::time::Duration) -> Vec<NodeId> {
        // A node that stood still itself has heard nobody meanwhile, and learns nothing from that.
        if now.since(self.looked) > HEARTBEAT * 2 {
            self.heard.fill(now);
        }
        self.looked = now;
        let silent =
            |place: &usize| !self.suspected[*place] && now.since(self.heard[*place]) > patience;
        let others = (0..self.heard.len()).filter(|place| NodeId::from(*place) != self.me);
        let found: Vec<usize> = others.filter(silent).collect();
        found.iter().for_each(|place| self.suspected[*place] = true);
        found.into_iter().map(NodeId::from).collect()
    }
}

impl Engine {
    /// A peer said something, whatever it was.
    pub(super) fn heard_of(&mut self, peer: NodeId, now: Moment) {
        if self.watch.hear(peer, now) {
            tracing::info!(peer = self.name_of(peer), "heard again");
            let name = &self.config.members[peer.index()].name;
            self.history.note_node(What::Trusted, name, "heard again");
            self.tell_all_seats(|| Event::Trust(peer));
        }
    }

    /// There is a connection to a peer again. Where nobody keeps books, messages are lost with the
    /// one before, also if nobody was suspected meanwhile: these seats are told that it is there,
    /// so that they say again what nobody would ask them.
    pub(super) fn connected_again(&mut self, peer: NodeId) {
        if self.watch.is_suspected(peer) {
            return; // It is about to be heard.
        }
        for seat in 0..self.pools.len() {
            let about = &self.pools[seat].def.protocol.about;
            if about.books == Books::None && !about.needs_proof {
                self.step(seat, Event::Trust(peer));
            }
        }
    }

    /// A peer was started again since it was last met; it is about to be heard.
    pub(super) fn started_again(&mut self, peer: NodeId) {
        if self.watch.replaced(peer) {
            self.tell_all_seats(|| Event::Suspect(peer));
        }
    }

    /// Looks for peers that have been silent for too long.
    pub(super) fn look_for_the_silent(&mut self, now: Moment) {
        for peer in self.watch.look(now, self.config.suspect_after) {
            tracing::warn!(peer = self.name_of(peer), "silent for too long: suspected");
            let name = &self.config.members[peer.index()].name;
            self.history.note_node(What::Suspected, name, "silent for too long");
            self.tell_all_seats(|| Event::Suspect(peer));
        }
    }

    /// An administrator says that a node is cut off from what the units of a pool protect.
    pub(super) fn fence(&mut self, caller: &Caller, pool: &str, node: &str) -> Result<(), Problem> {
        let wrong = |text: String| Err(Problem::new(ProblemKind::BadRequest, text));
        let seat = self.seat(pool)?;
        if let Some(problem) = self.pools[seat].stopped() {
            return Err(problem);
        }
        if !self.pools[seat].def.protocol.about.needs_proof {
            let owners = protocols::owners(REGISTRY, "reclaim").join(", ");
            return wrong(format!(
                "only a pool of protocol {owners} with reclaim = \"fenced\" waits for this; \
                 nothing changed"
            ));
        }
        let Some(peer) = self.config.members.place(node) else {
            return wrong(format!("no node is called {node:?}; nothing changed"));
        };
        let health = |engine: &Engine| engine.pools[seat].seat.health(crate::clock::now());
        let was_awaited = health(self).joining.is_some_and(|awaited| awaited.contains(peer));
        self.step(seat, Event::Suspect(peer));
        if !was_awaited && !health(self).counted_out.is_some_and(|out| out.contains(peer)) {
            let me = self.name_of(self.watch.me);
            return wrong(format!(
                "{me} neither believes that {node} has crashed nor waits for it to join; nothing \
                 changed. Repeat it when status says so"
            ));
        }
        tracing::warn!(pool, peer = node, %caller, "said to be cut off");
        self.history.note_node(What::Suspected, node, "an administrator says that it is cut off");
        Ok(())
    }

    /// A seat that was just taken learns whom the node suspects.
    pub(super) fn tell_suspects(&mut self, seat: usize) {
        if self.pools[seat].def.protocol.about.needs_proof {
            return;
        }
        let suspects: Vec<NodeId> = self.watch.suspects().collect();
        for node in suspects {
            self.step(seat, Event::Suspect(node));
        }
    }

    fn tell_all_seats(&mut self, what: impl Fn() -> SeatEvent<'static>) {
        for seat in 0..self.pools.len() {
            if self.pools[seat].def.protocol.about.needs_proof {
                continue;
            }
            self.step(seat, what());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::started;
    use super::*;
    use crate::boot::Boot;
    use crate::config::Config;
    use crate::journal::{Journal, Records};

    /// Found by the campaign: the one message that told the first member of a pool was lost with a
    /// connection that broke and was there again before anybody was suspected.
    #[test]
    fn what_was_lost_with_a_connection_is_said_again() {
        let config = Config::parse_in_memory(
            "cluster = \"c\"\nepoch = 1\nnode = \"b\"\n\
             listen = { clients = \"127.0.0.1:1\", peers = \"127.0.0.1:3\" }\n\
             members = [{ name = \"a\", peers = \"127.0.0.1:2\" }, \
             { name = \"b\", peers = \"127.0.0.1:3\" }]\n\
             [[pools]]\nname = \"p\"\nunits = 2\nprotocol = \"ring\"\n",
        );
        let journal = (Journal::nowhere(), Records::new());
        let mut engine = started(config.unwrap(), &Boot::first(), journal);
        let seat = engine.seat("p").unwrap();
        let wakes = |engine: &Engine| {
            let sent = engine.pools[seat].meters.messages.iter();
            sent.map(prometheus_client::metrics::counter::Counter::get).sum::<u64>()
        };
        assert_eq!(wakes(&engine), 0);
        engine.connected_again(NodeId(0));
        assert_eq!(wakes(&engine), 1);
        // Whoever is suspected is trusted when it is heard, which comes to the same.
        engine.watch.replaced(NodeId(0));
        engine.connected_again(NodeId(0));
        assert_eq!(wakes(&engine), 1);
        engine.heard_of(NodeId(0), engine.now());
        assert_eq!(wakes(&engine), 2);
    }

    #[test]
    fn silence_is_suspected_once_and_forgiven_when_it_ends() {
        let at = |beats: u32| Moment(1).after(HEARTBEAT * beats);
        let mut watch = Watch::new(NodeId(1), 3, at(0));
        assert!(watch.look(at(1), HEARTBEAT * 3).is_empty());
        for beat in 1..=4 {
            assert!(!watch.hear(NodeId(0), at(beat)));
            let found = watch.look(at(beat), HEARTBEAT * 3);
            assert_eq!(found, if beat == 4 { vec![NodeId(2)] } else { vec![] }, "{beat}");
        }
        assert!(watch.look(at(5), HEARTBEAT * 3).is_empty(), "it is suspected already");
        assert_eq!(watch.suspects().collect::<Vec<_>>(), [NodeId(2)]);
        assert!(watch.hear(NodeId(2), at(6)));
        assert!(watch.suspects().next().is_none());
    }

    #[test]
    fn who_was_started_again_is_suspected_until_it_is_heard() {
        let mut watch = Watch::new(NodeId(0), 2, Moment(1));
        assert!(watch.replaced(NodeId(1)));
        assert!(!watch.replaced(NodeId(1)), "it is suspected already");
        assert!(watch.hear(NodeId(1), Moment(2)));
    }

    #[test]
    fn who_stood_still_itself_suspects_nobody_for_it() {
        let at = |beats: u32| Moment(1).after(HEARTBEAT * beats);
        let mut watch = Watch::new(NodeId(0), 2, at(0));
        assert!(watch.look(at(100), HEARTBEAT * 3).is_empty());
        assert!(watch.look(at(102), HEARTBEAT * 3).is_empty());
        assert_eq!(watch.look(at(104), HEARTBEAT * 3), [NodeId(1)]);
    }
}
