//! The state machines: one folder per protocol.
//!
//! A protocol here is a plain value behind [`quorate_core::Protocol`]: no clock, socket, thread,
//! log line, randomness, hash map or serialization. The daemon, the simulator and the checker drive
//! the same value.

mod attempt;
#[cfg(test)]
mod by_hand;
mod count;
mod goods;
mod home;
mod lag;
mod opening;
#[cfg(test)]
mod outlooks;
mod post;

pub mod allocator;
pub mod arbiter;
pub mod broadcast;
pub mod central;
pub mod quorums;
pub mod reference;
pub mod ring;
pub mod table;
pub mod ticket;
pub mod voting;

pub use attempt::Attempt;
pub use goods::{Fairness, Goods, LeaseEver, TEXT_MAX};
