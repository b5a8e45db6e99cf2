//! What nodes say to each other, as bytes.
//!
//! * [`frame`]: the header, the same for everything, and the kinds of frames there are;
//! * [`Hello`]: who calls, and what it has heard so far;
//! * [`link`]: the machine that makes one lasting link out of connections that break. It does no
//!   IO;
//! * [`Wire`]: the messages and records of each protocol, field by field and by name. Protocol
//!   types know nothing of bytes: which field comes when, and which values can be, is decided here
//!   alone;
//! * [`order`]: what an operator orders, and what came of it;
//! * [`tidings`]: where clients wait, and which claims are over;
//! * [`survey`]: what nodes ask each other outside the protocols, to be able to tell people who
//!   holds what and why; [`glance`]: the same about nodes and their recent past; [`outlook`]: what
//!   a pool can grant.
//!
//! Nothing that arrives can make this crate panic or allocate more than a frame's length suggests.
//! Nothing here has a default: every field is on the wire.

mod arbiter;
mod broadcast;
mod central;
mod codec;
pub mod frame;
pub mod glance;
mod hello;
pub mod link;
mod moving;
pub mod order;
pub mod outlook;
mod ring;
pub mod survey;
mod table;
mod ticket;
pub mod tidings;

pub use codec::{DecodeError, Delivery, Wire};
pub use hello::{Hello, Life, Resume};
pub use moving::{put_pinned, take_pinned};
pub use table::standing_holds;
