//! The charter: the small replicated document that says who belongs to the cluster and what is
//! shared (charter spec 1 and 2).
//!
//! docs/charter.md says what it promises; the daemon's part is `quorate-node/src/charter`.
//!
//! * [`Charter`] is the document: a plain value that takes one entry of a log after the other.
//! * [`Council`] is what the rest of the program may know of the control plane that keeps it.
//! * [`policy`] says what a leader wants: who votes, who decides.
//! * [`RaftCouncil`] is one, on openraft, with its [`Store`] and over any [`Post`].

mod charter;
mod council;
pub mod decoders;
mod names;
pub mod policy;
mod post;
mod raft;
#[cfg(test)]
mod tests;

pub use self::charter::{
    About, BytesError, Change, Charter, Differs, Directory, Done, Gone, Invitation, Kept, Member,
    Move, NAME_MAX, Newcomer, Outcome, PLACES_MAX, REMEMBERED, REQUEST_MAX, Reborn, Refusal,
    Refused, Request, Role, Seat, Shadow, TEXT_MAX, TOGETHER_MAX, Token, UnitName,
};
pub use self::council::{Council, Licence, Reading, Status, Trouble, VOTERS_MAX};
pub use self::names::{Birth, ClusterId, Group, Life, MemberId, RequestId};
pub use self::post::{Post, Unreached};
pub use self::raft::{Identity, Pace, RaftCouncil, Store, StoreError, Survivor};
