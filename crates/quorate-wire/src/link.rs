//! One lasting link out of connections that break.
//!
//! The machine does no IO. Between two incarnations, messages arrive once, in order, without gaps,
//! however often the connection breaks: each has a number, the receiver says how far it has got
//! whenever a connection is made, and the sender keeps what has not been acknowledged.
//!
//! Between *different* incarnations nothing is carried over (quorate-core's contract, "Links"):
//!
//! * what was sent to an incarnation that is gone is dropped when its successor is heard of;
//! * what is sent before any incarnation of the peer has been heard of reaches nobody, since it
//!   cannot be known to whom it was sent;
//! * a connection from an incarnation older than the one last heard of is refused, and so is one
//!   from another incarnation with the same number; the driver reads nothing more from any
//!   connection but the last one made.
//!
//! A message may be *fleeting* ([`Cargo::is_fleeting`]): then it belongs to the connection it was
//! sent on, arrives over that one or never, and is not taken while there is none.
//!
//! The buffer is bounded ([`Bound`]). A message that finds it full ends the conversation: whatever
//! the peer has not acknowledged is given up, the connection must be closed, and the next one
//! begins anew behind what the peer has received. To a protocol these are lost messages, which it
//! can bear. Keeping the old ones instead would make a peer that comes back hear first, and for
//! long, what nobody wants to tell it any more.

use std::collections::VecDeque;

use crate::hello::{Life, Resume};

/// How much a link keeps for a peer that does not acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bound {
    /// Messages.
    pub messages: usize,
    /// Bytes of messages.
    pub bytes: usize,
    /// Bytes of one message: what no frame can carry would break every connection it is sent on.
    pub each: usize,
}

/// A message that a link can carry.
pub trait Cargo {
    /// How many bytes it takes.
    fn size(&self) -> usize;
    /// Whether it is gone when its connection breaks.
    fn is_fleeting(&self) -> bool {
        false
    }
}

/// One side of a lasting link.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Link<M> {
    life: Life,
    bound: Bound,
    peer: Option<Peer<M>>,
}

/// What is known of the peer's incarnation that was last heard of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Peer<M> {
    life: Life,
    /// The last number that arrived from it.
    received: u64,
    /// The last number that was acknowledged to it, on the present connection.
    acked: u64,
    /// Sent and not acknowledged by it, ascending; the last one has the number `sent`.
    unacked: VecDeque<M>,
    unacked_bytes: usize,
    sent: u64,
    /// On a connection: the next number to go out on it.
    next: Option<u64>,
    /// Whether messages were given up since the last connection: the peer may have received any of
    /// them, and what is outstanding is numbered anew once it has said how many.
    gave_up: bool,
}

/// What a connection is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    /// The incarnation that was known: the conversation goes on where it stood.
    Resumed,
    /// An incarnation that was not known: a new conversation. So many messages to the old one were
    /// dropped.
    New {
        /// Messages dropped.
        dropped: usize,
    },
}

/// Why a message was not taken. The sender may treat it as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// No incarnation of the peer has been heard of.
    #[error("the peer has not been heard of since this node started")]
    NobodyThere,
    /// There is no connection, and the message would not outlive one.
    #[error("there is no connection to the peer")]
    NotConnected,
    /// It is longer than anything that can be sent.
    #[error("a message of {0} bytes is too long for any frame")]
    TooLong(usize),
    /// The peer has not acknowledged for too long: these messages were given up with this one, and
    /// the connection must be closed.
    #[error("the peer has not acknowledged {0} messages, and the link's buffer is full")]
    Full(usize),
}

/// Why a connection cannot go on. The link itself is unharmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkError {
    /// The caller is an incarnation that has been succeeded.
    #[error(
        "boot number {caller} is older than {known}, which was heard of before: \
         either an old process still runs, or the data directory is an old copy, or was lost and \
         is said to be new; in that case empty it and start again"
    )]
    Succeeded {
        /// Who called.
        caller: u32,
        /// Who was heard of since.
        known: u32,
    },
    /// Two incarnations have one number.
    #[error(
        "boot number {0} belongs to another start of that node: either its data directory is an \
         old copy, or was lost and is said to be new (empty it and start again), or it was lost \
         and its clock was set back (start it once more)"
    )]
    Twins(u32),
    /// The peer acknowledges what was not sent, or asks for what it acknowledged.
    #[error("the peer has received up to {received}, but {first} to {last} are outstanding")]
    Contradiction {
        /// What the peer says.
        received: u64,
        /// First number outstanding.
        first: u64,
        /// Last number sent.
        last: u64,
    },
    /// A number was skipped.
    #[error("message {seq} arrived after {received}")]
    Gap {
        /// What arrived.
        seq: u64,
        /// The last one before.
        received: u64,
    },
    /// There is no connection.
    #[error("there is no connection")]
    NotConnected,
}

impl<M: Cargo> Link<M> {
    /// A link of this incarnation of ours to a peer that has not been heard of.
    pub fn new(life: Life, bound: Bound) -> Self {
        Link { life, bound, peer: None }
    }

    /// Where the conversation stands, to be said when a connection is made.
    pub fn resume(&self) -> Resume {
        Resume {
            life: self.life,
            knows: self.peer.as_ref().map(|peer| peer.life),
            received: self.peer.as_ref().map_or(0, |peer| peer.received),
        }
    }

    /// The incarnation of the peer that was last heard of.
    pub fn peer_boot(&self) -> Option<u32> {
        self.peer.as_ref().map(|peer| peer.life.boot)
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.next.is_some())
    }

    /// Messages that wait to be acknowledged.
    pub fn outstanding(&self) -> usize {
        self.peer.as_ref().map_or(0, |peer| peer.unacked.len())
    }

    /// A connection was made, and the peer says where it stands. Replaces any earlier connection:
    /// the driver must give us nothing more that came over that one.
    ///
    /// # Errors
    /// The connection must be closed; the link is as before, without a connection.
    pub fn connect(&mut self, theirs: Resume) -> Result<Meeting, LinkError> {
        self.disconnect();
        match &mut self.peer {
            Some(peer) if theirs.life.boot < peer.life.boot => {
                Err(LinkError::Succeeded { caller: theirs.life.boot, known: peer.life.boot })
            }
            Some(peer) if theirs.life.boot == peer.life.boot && theirs.life != peer.life => {
                Err(LinkError::Twins(theirs.life.boot))
            }
            Some(peer) if theirs.life == peer.life => {
                // What it has received from an earlier incarnation of ours is not ours to count.
                let received = if theirs.knows == Some(self.life) { theirs.received } else { 0 };
                let first = peer.first();
                if received > peer.sent || (received + 1 < first && !peer.gave_up) {
                    let last = peer.sent;
                    return Err(LinkError::Contradiction { received, first, last });
                }
                peer.forget(received);
                peer.gave_up = false;
                peer.drop_fleeting(received);
                peer.next = Some(received + 1);
                // The hello said how far we are.
                peer.acked = peer.received;
                Ok(Meeting::Resumed)
            }
            _ => {
                let dropped = self.outstanding();
                self.peer = Some(Peer {
                    life: theirs.life,
                    received: 0,
                    acked: 0,
                    unacked: VecDeque::new(),
                    unacked_bytes: 0,
                    sent: 0,
                    next: Some(1),
                    gave_up: false,
                });
                Ok(Meeting::New { dropped })
            }
        }
    }

    /// The connection broke.
    pub fn disconnect(&mut self) {
        if let Some(peer) = &mut self.peer {
            peer.next = None;
        }
    }

    /// Sends a message: now if there is a connection, else when there is one again.
    ///
    /// # Errors
    /// The message was dropped, and perhaps others with it ([`SendError::Full`]).
    pub fn send(&mut self, message: M) -> Result<(), SendError> {
        let peer = self.peer.as_mut().ok_or(SendError::NobodyThere)?;
        if message.is_fleeting() && peer.next.is_none() {
            return Err(SendError::NotConnected);
        }
        if message.size() > self.bound.each {
            return Err(SendError::TooLong(message.size()));
        }
        let bytes = peer.unacked_bytes.saturating_add(message.size());
        if peer.unacked.len() >= self.bound.messages || bytes > self.bound.bytes {
            let outstanding = peer.unacked.len();
            peer.unacked.clear();
            (peer.unacked_bytes, peer.next, peer.gave_up) = (0, None, true);
            return Err(SendError::Full(outstanding));
        }
        peer.unacked.push_back(message);
        peer.unacked_bytes = bytes;
        peer.sent += 1;
        Ok(())
    }

    /// The next message to go out on the connection: number, acknowledgement, message.
    pub fn transmit(&mut self) -> Option<(u64, u64, &M)> {
        let peer = self.peer.as_mut()?;
        let next = peer.next.filter(|&next| next <= peer.sent)?;
        peer.next = Some(next + 1);
        peer.acked = peer.received;
        let index = usize::try_from(next - peer.first()).expect("what is outstanding is in memory");
        Some((next, peer.received, &peer.unacked[index]))
    }

    /// A message arrived on the connection. Says whether it is to be delivered, or a repetition.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn hear(&mut self, seq: u64, ack: u64) -> Result<bool, LinkError> {
        self.acknowledge(ack)?;
        let peer = self.peer.as_mut().ok_or(LinkError::NotConnected)?;
        if seq <= peer.received {
            return Ok(false);
        }
        if seq != peer.received + 1 {
            return Err(LinkError::Gap { seq, received: peer.received });
        }
        peer.received = seq;
        Ok(true)
    }

    /// The peer says how far it has got.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn acknowledge(&mut self, ack: u64) -> Result<(), LinkError> {
        let peer = self.peer.as_mut().ok_or(LinkError::NotConnected)?;
        let next = peer.next.ok_or(LinkError::NotConnected)?;
        // What has not gone out cannot have arrived.
        if ack >= next {
            let (first, last) = (peer.first(), next - 1);
            return Err(LinkError::Contradiction { received: ack, first, last });
        }
        peer.forget(ack);
        Ok(())
    }

    /// How many messages have arrived that the peer has not been told of.
    pub fn unsaid(&self) -> u64 {
        self.peer.as_ref().filter(|p| p.next.is_some()).map_or(0, |p| p.received - p.acked)
    }

    /// What to say in an acknowledgement of its own.
    pub fn ack(&mut self) -> Option<u64> {
        let peer = self.peer.as_mut().filter(|peer| peer.next.is_some())?;
        peer.acked = peer.received;
        Some(peer.received)
    }
}

impl<M: Cargo> Peer<M> {
    /// The number of the first message outstanding.
    fn first(&self) -> u64 {
        self.sent + 1 - self.unacked.len() as u64
    }

    /// What was fleeting on the last connection did not arrive, and never will. What is left is
    /// numbered anew: nothing of it has arrived, and nothing of the old connection will.
    fn drop_fleeting(&mut self, received: u64) {
        self.unacked.retain(|message| !message.is_fleeting());
        self.unacked_bytes = self.unacked.iter().map(Cargo::size).sum();
        self.sent = received + self.unacked.len() as u64;
    }

    /// Everything up to this number has arrived.
    fn forget(&mut self, ack: u64) {
        while self.first() <= ack {
            let Some(message) = self.unacked.pop_front() else { break };
            self.unacked_bytes -= message.size();
        }
    }
}
