//! What peers say, and what is said to them.

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_api::PeerView;
use quorate_core::{Event, Moment, NodeId};
use quorate_wire::frame::{self, Data, Frame, Load};
use quorate_wire::glance::{Sight, What};
use quorate_wire::link::{Bound, Cargo, Link, LinkError, Meeting, SendError};
use quorate_wire::{Delivery, Hello, Life, Resume};
use tokio::sync::oneshot;

use super::Engine;
use super::suspicion::Watch;
use crate::clock;
use crate::config::Config;
use crate::peers::Outgoing;
use crate::seat::SeatError;

/// Shortest time between two warnings in the log about peers that send nonsense.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(1);
/// Messages that are acknowledged at once, if there is nothing else to send.
const UNSAID_MAX: u64 = 256;

/// What happens at connections to peers.
#[derive(Debug)]
pub(crate) enum PeerEvent {
    /// A connection is about to be made: what shall we say about where we stand?
    Calling { peer: NodeId, reply: oneshot::Sender<Resume> },
    /// Somebody who has been let in says where it stands. If `greet`, it waits for our greeting.
    Met {
        peer: NodeId,
        theirs: Resume,
        greet: bool,
        connection: u64,
        outgoing: Outgoing,
        reply: oneshot::Sender<Result<(), LinkError>>,
    },
    /// Whole frames arrived.
    Frames { peer: NodeId, connection: u64, bytes: Vec<u8> },
    /// Bytes arrived that are no frames.
    Nonsense { peer: NodeId, connection: u64, why: String },
    /// A connection ended.
    Gone { peer: NodeId, connection: u64, why: String },
    /// A connection could not be made.
    Failed { peer: NodeId, why: String },
}

/// All peers, by their place among the members; our own place is never used.
pub(super) struct Peers {
    slots: Vec<Slot>,
    me: NodeId,
    /// What new ones begin with.
    life: Life,
    bound: Bound,
}

/// A message on its way.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) load: Load,
    pub(super) delivery: Delivery,
    pub(super) packed: Box<[u8]>,
}

impl Cargo for Letter {
    fn size(&self) -> usize {
        self.packed.len()
    }

    fn is_fleeting(&self) -> bool {
        self.delivery == Delivery::Fleeting
    }
}

struct Slot {
    link: Link<Letter>,
    connection: Option<(u64, Outgoing)>,
    /// Whether there is something to transmit.
    dirty: bool,
    problem: Option<String>,
    /// How long a ping and its answer took lately; 0 if unknown.
    latency_us: u64,
}

impl Peers {
    pub(super) fn new(config: &Config, life: Life) -> Self {
        let (messages, bytes) = (config.limits.peer_messages, config.limits.peer_bytes);
        let bound = Bound { messages, bytes, each: frame::PACKED_MAX };
        let mut peers = Peers { slots: Vec::new(), me: config.me, life, bound };
        peers.grow(config.members.len());
        peers
    }

    /// So many members there are from now on.
    pub(super) fn grow(&mut self, members: usize) {
        let (life, bound) = (self.life, self.bound);
        self.slots.resize_with(members, || Slot {
            link: Link::new(life, bound),
            connection: None,
            dirty: false,
            problem: Some("no connection yet".into()),
            latency_us: 0,
        });
    }

    fn send(&mut self, to: NodeId, letter: Letter) -> Result<(), SendError> {
        let slot = self.slots.get_mut(to.index()).ok_or(SendError::NobodyThere)?;
        slot.dirty = true;
        slot.link.send(letter)
    }

    /// Everybody hears from us, if only that we live and what has arrived.
    pub(super) fn heartbeat(&mut self, now: Moment) {
        for slot in &mut self.slots {
            if let Some(ack) = slot.link.ack() {
                let mut bytes = Vec::new();
                frame::encode(&Frame::Ack(ack), &mut bytes);
                frame::encode(&Frame::Ping(now.0), &mut bytes);
                slot.write(bytes);
            }
        }
    }

    /// How this node sees everybody, itself too.
    pub(super) fn sights(&self, watch: &Watch) -> Vec<Sight> {
        let sight = |(place, slot): (usize, &Slot)| Sight {
            connected: slot.connection.is_some() || NodeId::from(place) == self.me,
            suspected: watch.is_suspected(NodeId::from(place)),
            latency_micros: slot.latency_us,
        };
        self.slots.iter().enumerate().map(sight).collect()
    }

    /// Bytes for a peer, if there is a connection.
    pub(super) fn write(&mut self, peer: NodeId, bytes: Vec<u8>) {
        self.slots[peer.index()].write(bytes);
    }

    /// Bytes for all peers: with whom there is a connection, and with whom there is none.
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> (BTreeSet<NodeId>, Vec<NodeId>) {
        let (mut written, mut absent) = (BTreeSet::new(), Vec::new());
        for (place, slot) in self.slots.iter_mut().enumerate() {
            let node = NodeId::from(place);
            if slot.connection.is_some() {
                written.insert(node);
                slot.write(bytes.to_vec());
            } else if node != self.me {
                absent.push(node);
            }
        }
        (written, absent)
    }

    pub(super) fn connected(&self) -> usize {
        self.slots.iter().filter(|slot| slot.connection.is_some()).count()
    }

    pub(super) fn views(&self, config: &Config, watch: &Watch) -> Vec<PeerView> {
        let others = self.slots.iter().zip(config.members.iter()).enumerate();
        others
            .filter(|(place, _)| NodeId::from(*place) != self.me)
            .map(|(place, (slot, member))| PeerView {
                name: member.name.clone(),
                connected: slot.connection.is_some(),
                boot: slot.link.peer_boot(),
                latency_us: (slot.latency_us > 0).then_some(slot.latency_us),
                suspected: watch.is_suspected(NodeId::from(place)),
                problem: slot.problem.clone(),
            })
            .collect()
    }
}

impl Slot {
    /// A ping came back. Smoothed, since people look at it.
    fn pong(&mut self, sent: u64) {
        let took = clock::now().since(Moment(sent)).as_micros();
        let took = u64::try_from(took).unwrap_or(u64::MAX).max(1);
        self.latency_us = match self.latency_us {
            0 => took,
            old => old - old / 4 + took / 4,
        };
    }

    /// If the connection is gone, its end is on its way to us.
    fn write(&mut self, bytes: Vec<u8>) {
        if let Some((_, outgoing)) = &self.connection {
            outgoing.send(bytes);
        }
    }

    /// An answer to what the peer asks; an error if it asks and does not listen.
    fn answer(&mut self, bytes: Vec<u8>) -> Result<(), String> {
        self.connection.as_ref().map_or(Ok(()), |(_, outgoing)| outgoing.answer(bytes))
    }

    fn is(&self, connection: u64) -> bool {
        self.connection.as_ref().is_some_and(|(own, _)| *own == connection)
    }
}

impl Engine {
    pub(super) fn on_peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Calling { peer, reply } => {
                let slot = &mut self.peers.slots[peer.index()];
                slot.link.disconnect();
                slot.connection = None;
                let _ = reply.send(slot.link.resume());
            }
            PeerEvent::Met { peer, theirs, greet, connection, outgoing, reply } => {
                let met = self.on_met(peer, theirs, greet, connection, outgoing);
                let _ = reply.send(met);
            }
            PeerEvent::Frames { peer, connection, bytes } => {
                if self.peers.slots[peer.index()].is(connection) {
                    self.heard_of(peer, clock::now());
                }
                if let Err(why) = self.on_frames(peer, connection, &bytes) {
                    self.reject(peer, why);
                }
            }
            PeerEvent::Nonsense { peer, connection, why } => {
                if self.peers.slots[peer.index()].is(connection) {
                    self.reject(peer, why);
                }
            }
            PeerEvent::Gone { peer, connection, why } => {
                if self.peers.slots[peer.index()].is(connection) {
                    self.hang_up(peer, why);
                }
            }
            PeerEvent::Failed { peer, why } => {
                let slot = &mut self.peers.slots[peer.index()];
                if slot.connection.is_none() && slot.problem.as_ref() != Some(&why) {
                    tracing::info!(peer = self.config.members[peer.index()].name, %why, "no link");
                    slot.problem = Some(why);
                }
            }
        }
    }

    fn on_met(
        &mut self,
        peer: NodeId,
        theirs: Resume,
        greet: bool,
        connection: u64,
        outgoing: Outgoing,
    ) -> Result<(), LinkError> {
        let slot = &mut self.peers.slots[peer.index()];
        slot.link.disconnect();
        slot.connection = None;
        // First meetings are a matter of course, and not for the record.
        let before = slot.link.peer_boot();
        let again = before.is_some();
        let ours = slot.link.resume();
        let meeting = slot.link.connect(theirs)?;
        slot.connection = Some((connection, outgoing));
        slot.problem = None;
        slot.dirty = true;
        let name = &self.config.members[peer.index()].name;
        match meeting {
            Meeting::Resumed => {
                if again {
                    self.history.note_node(What::Met, name, "link resumed");
                }
                tracing::info!(peer = name, "link resumed");
            }
            Meeting::New { dropped } => {
                if again {
                    let text = format!("its start {}", theirs.life.boot);
                    self.history.note_node(What::Met, name, &text);
                }
                let boot = theirs.life.boot;
                tracing::info!(peer = name, boot, dropped, "a new link");
            }
        }
        if greet {
            let mut bytes = Vec::new();
            frame::encode(&Frame::Hello(hello(&self.config, peer, ours)), &mut bytes);
            self.peers.slots[peer.index()].write(bytes);
        }
        self.tell_labels(peer, None);
        if matches!(meeting, Meeting::New { .. }) {
            self.tell_anew(peer);
            self.meet_owners_anew(peer, clock::now());
        }
        self.metrics.mesh(self.members(), self.peers.connected());
        if before.is_some_and(|boot| boot != theirs.life.boot) {
            self.started_again(peer);
        }
        if again {
            self.connected_again(peer);
        }
        self.heard_of(peer, clock::now());
        Ok(())
    }

    /// Whether a peer can be expected to answer soon.
    pub(super) fn answers_soon(&self, peer: NodeId) -> bool {
        self.peers.slots[peer.index()].connection.is_some() && !self.watch.is_suspected(peer)
    }

    /// A message for a peer. Says whether the link took it. If it is lost, so be it: protocols can
    /// bear that.
    pub(super) fn send(&mut self, to: NodeId, letter: Letter) -> bool {
        let Err(error) = self.peers.send(to, letter) else { return true };
        self.metrics.messages_dropped.inc();
        let SendError::Full(others) = error else {
            tracing::debug!(to = self.name_of(to), %error, "a message reaches nobody");
            return false;
        };
        self.metrics.messages_dropped.inc_by(others as u64);
        tracing::warn!(to = self.name_of(to), others, "a peer does not listen: all is given up");
        if self.peers.slots[to.index()].connection.is_some() {
            self.hang_up(to, error.to_string());
        }
        false
    }

    /// A peer sent what no correct node sends: it is told so, and the connection is closed.
    fn reject(&mut self, peer: NodeId, why: String) {
        self.metrics.refuse("peer");
        let mut bytes = Vec::new();
        frame::encode(&Frame::Refused(why.clone()), &mut bytes);
        self.peers.slots[peer.index()].write(bytes);
        self.hang_up(peer, why);
    }

    fn hang_up(&mut self, peer: NodeId, why: String) {
        tracing::info!(peer = self.name_of(peer), %why, "link broken");
        let slot = &mut self.peers.slots[peer.index()];
        slot.link.disconnect();
        // Dropping the sender closes the connection.
        slot.connection = None;
        self.history.note_node(What::Missed, &self.config.members[peer.index()].name, &why);
        slot.latency_us = 0;
        slot.problem = Some(why);
        self.metrics.mesh(self.members(), self.peers.connected());
    }

    /// Frames of a connection; those of one that has been replaced are not heard.
    fn on_frames(&mut self, peer: NodeId, connection: u64, mut bytes: &[u8]) -> Result<(), String> {
        while self.peers.slots[peer.index()].is(connection) {
            let decoded = frame::decode(bytes).map_err(|error| error.to_string())?;
            let Some((frame, used)) = decoded else { return Ok(()) };
            bytes = &bytes[used..];
            self.on_frame(peer, frame)?;
        }
        Ok(())
    }

    fn on_frame(&mut self, peer: NodeId, frame: Frame<'_>) -> Result<(), String> {
        let link = &mut self.peers.slots[peer.index()].link;
        match frame {
            Frame::Data(Data { load, seq, ack, packed }) => {
                if link.hear(seq, ack).map_err(|error| error.to_string())? {
                    return self.on_load(peer, load, packed);
                }
            }
            Frame::Ack(ack) => link.acknowledge(ack).map_err(|error| error.to_string())?,
            Frame::Ask(number, question) => {
                let answer = self.answer_question(&question);
                self.peers.slots[peer.index()].answer(frame::encode_answer(number, answer))?;
            }
            Frame::Tell(number, answer) => self.on_answer(peer, number, answer),
            Frame::Labels(pool, relabelled) => self.on_labels(peer, &pool, &relabelled),
            Frame::Ping(reading) => {
                let mut bytes = Vec::new();
                frame::encode(&Frame::Pong(reading), &mut bytes);
                self.peers.slots[peer.index()].answer(bytes)?;
            }
            Frame::Pong(reading) => self.peers.slots[peer.index()].pong(reading),
            Frame::Refused(why) => return Err(format!("the peer refused us: {why}")),
            Frame::Hello(_) | Frame::Council(_) => return Err("a second greeting".into()),
            Frame::Enquiry(..) | Frame::Reply(..) => {
                return Err("a word of the control plane, which has connections of its own".into());
            }
        }
        Ok(())
    }

    fn on_load(&mut self, peer: NodeId, load: Load, packed: &[u8]) -> Result<(), String> {
        let taken = match load {
            Load::Message => return self.on_message(peer, packed),
            Load::Order => frame::open(packed).map(|order| self.on_order(peer, &order)),
            Load::Receipt => frame::open(packed).map(|receipt| self.on_receipt(peer, receipt)),
            Load::Tidings => frame::open(packed).map(|tidings| self.on_tidings(peer, tidings)),
            Load::Heard => frame::open(packed).map(|heard| self.on_heard(peer, &heard)),
        };
        // As lost: the link carries the messages of all pools, and leases rest on it.
        if let Err(error) = taken {
            self.anomaly(peer, &error.to_string());
        }
        Ok(())
    }

    fn on_message(&mut self, peer: NodeId, packed: &[u8]) -> Result<(), String> {
        let (pool, message) = frame::unpack(packed).map_err(|error| error.to_string())?;
        let seat = match self.seat(pool) {
            Ok(seat) => seat,
            Err(problem) => {
                // A limit of ours, not a fault of the peer's: a lost message.
                self.metrics.messages_dropped.inc();
                tracing::warn!(peer = self.name_of(peer), pool, %problem, "a message is dropped");
                return Ok(());
            }
        };
        match self.try_step(seat, Event::Hear { from: peer, message }) {
            Ok(()) | Err(SeatError::Stopped(_)) => {}
            // A lost message. The link carries those of all pools, and other leases rest on it.
            Err(SeatError::Undecodable(error)) => self.anomaly(peer, &error.to_string()),
        }
        Ok(())
    }

    /// No correct peer would say that.
    pub(super) fn anomaly(&mut self, peer: NodeId, what: &str) {
        self.metrics.anomalies.inc();
        let now = clock::now();
        let due = self.warned.is_none_or(|last| now.since(last) >= BETWEEN_WARNINGS);
        if due {
            self.warned = Some(now);
            let so_far = self.metrics.anomalies.get();
            let peer = self.name_of(peer);
            tracing::warn!(peer, what, so_far, "no correct peer would say that");
        }
    }

    /// Sends what there is to send, all of it for one peer at once.
    pub(super) fn flush(&mut self) {
        for slot in &mut self.peers.slots {
            if !slot.dirty && slot.link.unsaid() < UNSAID_MAX {
                continue;
            }
            slot.dirty = false;
            let mut bytes = Vec::new();
            while let Some((seq, ack, letter)) = slot.link.transmit() {
                let Letter { load, packed, .. } = letter;
                frame::encode(&Frame::Data(Data { load: *load, seq, ack, packed }), &mut bytes);
            }
            if slot.link.unsaid() >= UNSAID_MAX
                && let Some(ack) = slot.link.ack()
            {
                frame::encode(&Frame::Ack(ack), &mut bytes);
            }
            if !bytes.is_empty() {
                slot.write(bytes);
            }
        }
    }
}

/// Our greeting to a peer.
pub(crate) fn hello(config: &Config, to: NodeId, resume: Resume) -> Hello {
    Hello {
        cluster: config.cluster.clone(),
        epoch: config.epoch,
        digest: config.digest,
        node: config.name().to_owned(),
        to: config.members[to.index()].name.clone(),
        resume,
    }
}
