//! What ties a node to the root: the ring's epoch, and the licence to let clients use units ("crash
//! of a non-root node" in ring spec 7).
//!
//! The root may leave a node out of the ring, rightly or wrongly: it then begins a new *epoch*, and
//! every message says of which epoch it is. What is of an older one is dropped, so that nothing
//! that a node left out still says can get into the ring, and a count in the new epoch is exact.
//! Whatever the node left out has is missing from that count. Making it anew is safe only if the
//! node's clients have stopped, and they have, by an order that leases give:
//!
//! * A node lets clients use units only with a **licence**. A frame that tells that the frame
//!   before it came back to the root was launched after this node passed that one on: so the
//!   licence lasts one [`Pool::ttl`](super::Pool::ttl) from *there*, on the node's clock. Without a
//!   licence it grants nothing; when the licence ends, it stops its clients and forgets its tokens
//!   (*self-fencing*). Deadlines that clients count by never go beyond it.
//! * The root makes no tokens for one ttl, by its own clock, after it left a node out
//!   (*quarantine*). The last frame that the node can have passed on was launched before that.
//!
//! A node whose licence lasts keeps its tokens into a new epoch: nothing was made since. One
//! without forgets them.
//!
//! * Taking a node in again needs no quarantine. Tokens are made only from a count that came back
//!   in the root's epoch, so it passed everybody who is not left out, and every node reported what
//!   it had *then*: the node taken in too, with or without a licence. Whoever is left out was left
//!   out before the last quarantine began. A node that still has its licence from an epoch between
//!   the two is not left out, and is counted before anything is made.
//! * A client that outlived its node's crash may be taken back by a restarted node that has no
//!   licence yet. That gives it no time: its deadline is still one that the earlier boot set,
//!   within the licence which that boot had, and so it has stopped when the quarantine ends.

use std::fmt;

use quorate_core::{Moment, NodeSet};

use super::message::Message;
use super::tokens::Named;

/// Which ring this is; a later one is larger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch {
    /// From the configuration: grows when the pool's nodes or units change.
    pub config: u32,
    /// How often the root was started before.
    pub boot: u32,
    /// How often the root left a node out, or took one in, since.
    pub change: u32,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}.{}.{}", self.config, self.boot, self.change)
    }
}

/// What seats tell each other: a station's message, and of which ring it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Parcel {
    /// Of which ring.
    pub epoch: Epoch,
    /// With a frame: the last one that came back to the root before this one left, in this epoch.
    pub back: Option<u64>,
    /// With a frame: who is left out of this epoch's ring.
    pub skipped: NodeSet,
    /// What one station tells the next.
    pub message: Message<Named>,
}

impl fmt::Display for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.message, self.epoch)?;
        if let Some(back) = self.back {
            write!(f, " back s{back}")?;
        }
        if !self.skipped.is_empty() {
            write!(f, " without {}", self.skipped)?;
        }
        Ok(())
    }
}

/// What a node knows of the ring it is in.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Tether {
    /// `None` until a frame tells, and again after it fenced itself.
    pub(super) epoch: Option<Epoch>,
    /// Who is left out.
    pub(super) skipped: NodeSet,
    /// With the last frame that passed: which one had come back to the root.
    pub(super) back: Option<u64>,
    /// The last frame that passed, and when.
    passed: Option<(u64, Moment)>,
    /// When the licence ends; `None` without one. The root needs none.
    pub(super) until: Option<Moment>,
}

impl Tether {
    /// Another epoch begins. The licence lasts.
    pub(super) fn enter(&mut self, epoch: Epoch, skipped: &NodeSet) {
        self.epoch = Some(epoch);
        self.skipped = skipped.clone();
        self.back = None;
        self.passed = None;
    }

    /// A frame passes. Returns since when the root is known to have been there, if the frame says
    /// more about that than the one before.
    pub(super) fn pass(&mut self, seq: u64, back: Option<u64>, now: Moment) -> Option<Moment> {
        let proven = self.passed.filter(|&(last, _)| back == Some(last)).map(|(_, at)| at);
        self.back = back;
        self.passed = Some((seq, now));
        proven
    }

    /// A message to the right neighbour, of this ring.
    pub(super) fn parcel(&self, message: Message<Named>) -> Parcel {
        let frame = matches!(message, Message::Frame(_));
        Parcel {
            epoch: self.epoch.unwrap_or_default(),
            back: self.back.filter(|_| frame),
            skipped: if frame { self.skipped.clone() } else { NodeSet::new() },
            message,
        }
    }

    /// A fault: another epoch, nobody left out. The licence is no variable of the ring.
    pub(super) fn scramble(&mut self, config: u32, draw: &mut dyn FnMut(u64) -> u64) {
        let (boot, change) = (draw(3) as u32, draw(8) as u32);
        self.enter(Epoch { config, boot, change }, &NodeSet::new());
    }
}
