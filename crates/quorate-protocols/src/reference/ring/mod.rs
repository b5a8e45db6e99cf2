//! The ring as its paper has it, and rings driven hop by hop: to replay the specification's runs,
//! to measure how long a ring takes to become right, and to visit every state of a small one.

mod core;
mod every;
mod fixes;
mod stabilize;
mod track;
mod wander;

pub use core::Core;
pub use every::{Atlas, Freedom, from_start, tiny};
pub use fixes::{Erratum, Fixes};
pub use stabilize::{Load, Measured, RingTrial, stabilize};
pub use track::Track;
pub use wander::{Wander, Wandered};
