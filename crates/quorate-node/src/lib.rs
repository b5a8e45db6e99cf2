//! The daemon as a library.
//!
//! A claim enters at the clients' address and meets these files in turn:
//!
//! | file | does |
//! |---|---|
//! | `door`, `local` | HTTP or client link? Who is it? Before the node knows its past: `porch` |
//! | `api`, `session` | words to and from the client |
//! | `app`, `caller` | the way to the engine, and whether this caller may go it |
//! | `engine` | the one owner of everything below; requests step it where they arrive |
//! | `admission` | a claim, or a problem that says why not |
//! | `ledger` | the claims of this node's clients, and who waits to hear of them |
//! | `seat` | one protocol value: event in, effects out |
//! | `alarms` | when which pool wants to be looked at, in one heap |
//! | `journal` | what must be on disk before anything else is seen |
//! | `peers` | connections to the other members; what they mean is the engine's matter |
//! | `newcomer` | a machine becomes a member, of a new cluster or of one that invites it |
//! | `charter` | who decides, where that may change: beside the path of claims, never on it |
//!
//! The node contains no protocol decision, and only `protocols` names a protocol. Without
//! certificates it binds to loopback addresses only.

mod admission;
mod alarms;
mod answers;
mod api;
mod app;
mod audit;
mod boot;
mod caller;
#[cfg(test)]
mod caller_tests;
mod charter;
mod clock;
mod config;
mod convert;
mod crowd;
#[doc(hidden)]
pub mod decoders;
mod descriptors;
mod door;
mod engine;
mod files;
mod forecast;
mod history;
mod journal;
mod keepsake;
mod kinds;
mod ledger;
mod local;
mod metrics;
mod newcomer;
mod node;
#[cfg(test)]
mod nonsense_tests;
mod outlook;
mod overview;
mod peers;
mod planted;
mod porch;
mod presence;
mod protocols;
mod register;
mod seat;
#[cfg(test)]
mod seat_tests;
mod selection;
mod session;
mod strangers;
mod stream;
mod troubles;
mod views;

pub use charter::{AtRest, Recovered};
pub use config::{
    Address, Audited, Chartered, Config, ConfigError, Data, Guard, Guarded, Limits, MEMBERS_MAX,
    Member, Members, Names, POOL_NAME_MAX, POOL_UNITS_MAX, Pattern, PoolDef, Reserved, Secret, Tls,
    is_pool_name, parts,
};
pub use files::Files;
pub use newcomer::{FILE, Founded, Joined, NewcomerError, Wish, found, join, renew};
pub use node::{Node, StartError};
#[cfg(feature = "planted-bugs")]
pub use planted::Bug;
pub use protocols::{Promises, ProtocolDef};

/// The OpenAPI document that every node serves.
pub fn openapi() -> &'static str {
    api::openapi::DOCUMENT
}
