//! What papers describe and laboratories compare, and no daemon runs: no node can be configured to
//! take a seat in any of these.
//!
//! * [`Raymond`] and [`Raynal`]: the two papers that `broadcast` comes from.
//! * [`ring`]: the token ring with its paper's messages, and whole rings of stations, driven hop by
//!   hop from any state.
//! * [`sharing`]: units that differ, by quorums.
//! * [`Judged`]: `central`, whose allocator is held to its theorems after every step.

mod counted;
mod judged;
pub mod ring;
pub mod sharing;
mod theorems;

pub use counted::{Counted, Difference, Raymond, Raynal, Rule};
#[cfg(test)]
pub(crate) use judged::BUNDLES;
pub use judged::{Judged, Operator};
