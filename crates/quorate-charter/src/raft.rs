//! The council on openraft, and nothing of openraft outside this folder.
//!
//! ```text
//! RaftCouncil ── openraft ──┬── Log, Machine ── Store (redb)
//!      ▲                    └── Lines ── Post (bytes to other members)
//!      └── answer(bytes of other members)
//! ```

mod council;
mod lines;
mod log;
mod machine;
mod pace;
mod store;
mod survivor;
mod wire;

use std::fmt;
use std::io::Cursor;

use serde::{Deserialize, Serialize};

pub use self::council::RaftCouncil;
pub use self::pace::Pace;
pub use self::store::{Identity, Store, StoreError};
pub use self::survivor::Survivor;
pub(crate) use self::wire::{Frame, Reply, decode, encode};
#[cfg(test)]
pub(crate) use self::{log::Log, machine::Machine, wire::Question};

use crate::{Birth, Outcome, Request};

/// What the engine keeps of a member beside its id. Not where it is: that changes, and a wrong
/// address in the engine's own list can make two majorities of one (openraft's guide, dynamic
/// membership).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) birth: Birth,
}

/// What applying an entry says; nothing if the entry was the engine's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Answer(pub(crate) Option<Outcome>);

openraft::declare_raft_types!(
    /// The types of our log.
    pub(crate) Types:
        D = Request,
        R = Answer,
        NodeId = u64,
        Node = Node,
        Entry = openraft::Entry<Types>,
        SnapshotData = Cursor<Vec<u8>>,
        AsyncRuntime = openraft::TokioRuntime,
);

type LogId = openraft::LogId<u64>;
type Vote = openraft::Vote<u64>;
type Entry = openraft::Entry<Types>;
type Membership = openraft::StoredMembership<u64, Node>;
type SnapshotMeta = openraft::SnapshotMeta<u64, Node>;
type StorageError = openraft::StorageError<u64>;

/// The engine prints entries in its own messages.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {}", self.id)
    }
}
