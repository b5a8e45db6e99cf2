//! What can happen next in a world.

use quorate_core::{Explorable, NodeId};

use crate::client::Client;
use crate::model::Model;
use crate::parts::Lapse;
use crate::scope::Network;
use crate::world::{Misfortune, World};

/// One thing that can happen, and whether the node to which it happens crashes halfway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Action {
    pub(crate) happening: Happening,
    /// The node crashes after so many of its effects.
    pub(crate) cut: Option<usize>,
}

/// One thing that can happen. Messages and alarms are named by their place, which means the same
/// whatever the names of clocks and fences are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Happening {
    Claim {
        client: usize,
        draw: u64,
    },
    /// After its home restarted, a client repeats what it last asked for.
    AskAgain {
        client: usize,
    },
    Release {
        client: usize,
    },
    Cancel {
        client: usize,
    },
    Renew {
        client: usize,
    },
    /// A client does one of the moves that it is asked for.
    Answer {
        client: usize,
        place: usize,
    },
    /// A client that uses units dies or stops at its deadline, silently.
    Stop {
        client: usize,
    },
    /// A client that waits dies.
    Abandon {
        client: usize,
    },
    /// A client that waits hangs up, and its home notices.
    HangUp {
        client: usize,
    },
    Deliver {
        from: NodeId,
        to: NodeId,
        place: usize,
        keep: bool,
    },
    Vanish {
        from: NodeId,
        to: NodeId,
        place: usize,
    },
    /// An alarm rings; `early` if that is a misfortune, because a message is on its way.
    Ring {
        node: NodeId,
        place: usize,
        early: bool,
    },
    /// A node takes another one for dead for a moment.
    Suspect {
        node: NodeId,
        about: NodeId,
    },
    Crash {
        node: NodeId,
    },
    Restart {
        node: NodeId,
    },
    /// The control plane says that another node decides; `forced` if the one that did is gone.
    Commit {
        to: NodeId,
        forced: bool,
    },
    /// The control plane says that the pool is another, or that there is one now.
    Amend {
        makes: bool,
    },
    /// A node learns that it was changed so often.
    Learn {
        node: NodeId,
        edition: u8,
    },
    /// The control plane names a shadow.
    Name {
        node: NodeId,
    },
    /// It strikes the shadow; `forced` if that is gone.
    Strike {
        forced: bool,
    },
    /// It calls the shadow whole, as its seat said.
    Whole,
    /// A node applies an entry of the seat table.
    Apply {
        node: NodeId,
        index: usize,
    },
    /// What a node asked is confirmed, and it hears so.
    License {
        node: NodeId,
    },
    /// The node that files name decides no more.
    Unpin {
        node: NodeId,
    },
    /// A node's licence is over.
    EndLicence {
        node: NodeId,
    },
    /// A client goes to another node: with its claim, or with what it has.
    Rehome {
        client: usize,
        to: NodeId,
    },
}

impl Action {
    /// Whether something goes wrong here that need not: what must come to pass must do so without
    /// it.
    pub(crate) fn is_fault(&self) -> bool {
        self.cut.is_some()
            || matches!(
                self.happening,
                Happening::Cancel { .. }
                    | Happening::Renew { .. }
                    | Happening::Stop { .. }
                    | Happening::Abandon { .. }
                    | Happening::HangUp { .. }
                    | Happening::Deliver { keep: true, .. }
                    | Happening::Vanish { .. }
                    | Happening::Crash { .. }
                    | Happening::Suspect { .. }
                    | Happening::Commit { forced: false, .. }
                    | Happening::Amend { makes: false }
                    | Happening::Name { .. }
                    | Happening::Strike { forced: false }
                    | Happening::Rehome { .. }
                    | Happening::Ring { early: true, .. }
            )
    }
}

impl<P: Explorable> Model<'_, P> {
    /// Everything that can happen in a world, except crashes halfway.
    pub(crate) fn happenings(&self, world: &World, into: &mut Vec<Happening>) {
        into.clear();
        self.client_happenings(world, into);
        for from in world.nodes() {
            for to in world.nodes() {
                self.link_happenings(world, from, to, into);
            }
        }
        let early =
            self.scope.budget.early_rings.is_some() && world.queues().iter().any(|&q| q != 0);
        for node in world.nodes() {
            if world.participant(node).is_none() {
                into.push(Happening::Restart { node });
                continue;
            }
            if !early || world.left(Misfortune::EarlyRing) > 0 {
                for place in 0..self.parts.alarm_sets.get(world.alarms(node)).len() {
                    if self.may_ring(world, node, place) {
                        into.push(Happening::Ring { node, place, early });
                    }
                }
            }
            let clients = 0..self.scope.clients.len();
            let has_clients = || clients.clone().any(|client| self.home_in(world, client) == node);
            if world.left(Misfortune::Suspicion) > 0 && has_clients() {
                let others = world.nodes().filter(|&about| about != node);
                into.extend(others.map(|about| Happening::Suspect { node, about }));
            }
            if self.may_crash(world, node) {
                into.push(Happening::Crash { node });
            }
        }
        self.council_happenings(world, into);
    }

    pub(crate) fn may_crash(&self, world: &World, node: NodeId) -> bool {
        world.left(Misfortune::Crash) > 0 && self.scope.crashing.contains(node)
    }

    fn client_happenings(&self, world: &World, into: &mut Vec<Happening>) {
        let left = |misfortune| world.left(misfortune) > 0;
        for (client, &number) in world.clients().iter().enumerate() {
            let home_is_up = world.participant(self.home_in(world, client)).is_some();
            match self.parts.clients.get(number) {
                Client::NotYet if home_is_up => {
                    let draws = self.scope.draws_of(client);
                    into.extend(draws.map(|draw| Happening::Claim { client, draw }));
                }
                &Client::Waiting { unheard, cancelling } => {
                    if home_is_up && unheard {
                        into.push(Happening::AskAgain { client });
                    }
                    if home_is_up && !cancelling && left(Misfortune::Cancel) {
                        into.push(Happening::Cancel { client });
                    }
                    if left(Misfortune::Death) && !self.scope.stands(client) {
                        into.push(Happening::Abandon { client });
                    }
                    if home_is_up && !unheard && !cancelling && left(Misfortune::HangUp) {
                        into.push(Happening::HangUp { client });
                    }
                }
                Client::Using { held } => {
                    if home_is_up {
                        into.push(Happening::Release { client });
                        let places = 0..held.moves.len();
                        into.extend(places.map(|place| Happening::Answer { client, place }));
                    }
                    if home_is_up && left(Misfortune::Cancel) {
                        into.push(Happening::Cancel { client });
                    }
                    if home_is_up && left(Misfortune::Renewal) {
                        into.push(Happening::Renew { client });
                    }
                    if left(Misfortune::Death) && !self.scope.stands(client) {
                        into.push(Happening::Stop { client });
                    }
                }
                Client::Ended if home_is_up => into.push(Happening::AskAgain { client }),
                Client::NotYet | Client::Done | Client::Ended | Client::Refused | Client::Gone => {}
            }
        }
    }

    fn link_happenings(&self, world: &World, from: NodeId, to: NodeId, into: &mut Vec<Happening>) {
        let queue = self.parts.queues.get(world.queue(from, to));
        for (place, parcel) in queue.iter().enumerate() {
            if place > 0 && queue[place - 1] == *parcel {
                continue;
            }
            let may_arrive = match self.scope.network {
                Network::Reordering => true,
                // In order, but a new incarnation of the sender does not wait for the old one.
                Network::Fifo => place == 0 || queue[place - 1].boot < parcel.boot,
            };
            if may_arrive {
                into.push(Happening::Deliver { from, to, place, keep: false });
                if world.left(Misfortune::Duplicate) > 0 {
                    into.push(Happening::Deliver { from, to, place, keep: true });
                }
            }
            if world.left(Misfortune::Loss) > 0 {
                into.push(Happening::Vanish { from, to, place });
            }
        }
    }

    /// An alarm may ring at any moment, unless it says that a lease is over: the arithmetic of
    /// leases makes the holder stop first, and that order is taken as given.
    fn may_ring(&self, world: &World, node: NodeId, place: usize) -> bool {
        let alarm = self.parts.alarm_sets.get(world.alarms(node))[place];
        if self.scope.council.is_some() {
            return self.may_ring_in_order(world, node, alarm);
        }
        let lapsing = self.lapsing(world, node, alarm);
        if lapsing == 0 {
            return true;
        }
        let using = world.clients().iter().enumerate().any(|(client, &number)| {
            lapsing & 1 << client != 0
                && (matches!(self.parts.clients.get(number), Client::Using { .. })
                    || self.relies_on(world, client, node))
        });
        !using && (world.left(Misfortune::Lapse) > 0 || !self.is_untimely(world, node, lapsing))
    }

    /// Whether the home of a client counts on what this node promised, for a grant yet to come.
    fn relies_on(&self, world: &World, client: usize, node: NodeId) -> bool {
        let plan = &self.scope.clients[client];
        let relies = |at: NodeId| {
            let participant = world.participant(at);
            participant
                .is_some_and(|p| self.parts.participants.get(p).relies_on(node, plan.claim.id))
        };
        relies(plan.home) || (P::SHARED_LEASES && world.nodes().any(relies))
    }

    /// Whose promises are late once a lease is over at this node.
    pub(crate) fn promisers(&self, world: &World, node: NodeId) -> Vec<NodeId> {
        if P::SHARED_LEASES { world.nodes().collect() } else { vec![node] }
    }

    /// The clients whose leases are over when this alarm rings, one bit each.
    pub(crate) fn lapsing(&self, world: &World, node: NodeId, alarm: u32) -> u8 {
        let lapsing = match *self.parts.alarms.card(alarm) {
            Lapse::Nothing | Lapse::Licences | Lapse::Of(None) => 0,
            Lapse::Of(Some(client)) => 1 << client,
            Lapse::Earlier => {
                let participant = world.participant(node).expect("only a running node has alarms");
                !self.parts.participants.card(participant).holders
            }
        };
        // What stands has no lease: its holder goes on, whatever rings.
        let stands = (0..self.scope.clients.len()).filter(|client| self.scope.stands(*client));
        stands.fold(lapsing, |lapsing, client| lapsing & !(1 << client))
    }

    /// Whether one of these clients waits while a promise to it is on its way: its lease runs out
    /// only because a message takes longer than a whole lease.
    pub(crate) fn is_untimely(&self, world: &World, node: NodeId, lapsing: u8) -> bool {
        let waits = |client: usize| {
            matches!(self.parts.clients.get(world.client(client)), Client::Waiting { .. })
        };
        let on_the_way = |from, to| {
            self.parts.queues.get(world.queue(from, to)).iter().any(|parcel| {
                let promise = self.parts.messages.card(parcel.message).promise;
                !parcel.expired && promise.is_some_and(|c| lapsing & 1 << c != 0 && waits(c))
            })
        };
        let promisers = self.promisers(world, node);
        promisers.into_iter().any(|from| world.nodes().any(|to| on_the_way(from, to)))
    }
}
