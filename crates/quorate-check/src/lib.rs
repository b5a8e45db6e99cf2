//! The exhaustive driver: every history of a small world.
//!
//! A [`Scope`] says how small: so many nodes, these clients with one claim each, and how much may
//! go wrong. [`check`] visits every state that any interleaving can reach: claims, releases,
//! cancels, deaths of clients, suspicions, deliveries (in order, or in any order, perhaps twice or
//! never), alarms at any moment, and crashes and restarts of nodes, where a crash may come
//! **between any two effects of a step**. It knows no protocol by name: anything
//! [`quorate_core::Explorable`] can be checked.
//!
//! # What is checked
//!
//! * *Always*: the laws of `quorate-laws`, after every effect; and that no participant panics,
//!   fails its own audit, meets an anomaly, or answers a claim that is not its own.
//! * *In the end*: from every state in which a claim waits, some continuation without a further
//!   fault grants it ("no deadlock"); a cancel is answered likewise; and once all clients are gone,
//!   some continuation leaves every unit free ("no lost units"). Where a scope says so, no state
//!   comes back without a fault ("no livelock").
//! * *Sometimes* ([`Sometimes`]): what must be reachable, so that no scope is clean only because
//!   nothing happens in it.
//!
//! # Our own search, not stateright
//!
//! Stateright was considered and would have been the only dependency. Its model of actors performs
//! the effects of a step at once, so the crash between two effects, which is where durable
//! protocols break, would have needed a model of our own on top of it; it drops the graph, which
//! the question about the end needs, and its *eventually* overlooks cycles; and it keeps every
//! state as a value. Here a world is some thirty numbers of parts that are kept once (`shelf.rs`),
//! steps and judgements are taken once and remembered (`steps.rs`, `court.rs`), and states are
//! compared exactly, so there are no fingerprints and no odds that two states collide. One thread
//! makes worlds and another one looks up which are new (`keeper.rs`), with the same result as one.
//!
//! Worlds with other assumptions than those below are searched by the same means ([`walk`]).
//!
//! # What is taken as given
//!
//! * All nodes boot once, undisturbed, before anything happens.
//! * The order that the arithmetic of leases achieves ([`quorate_core::Lease`]): an alarm that ends
//!   the lease of a claim rings only when its client is not using units, and the message that
//!   promised the lease then arrives after its deadline. Otherwise time stands still.
//! * A link carries at most [`Scope::copies_max`] equal messages, and as many late promises to one
//!   client; one more is lost.
//! * A client hears of a grant in the instant of the effect, makes one claim, and asks again only
//!   after its home restarted. Whoever suspects a node trusts it again at once
//!   ([`Budget::suspicions`]), or never ([`Scope::trusts_again`]).
//! * In a scope of nodes that forget ([`Restart::Amnesia`]) every crash takes the records with it:
//!   what a node wrote after it had forgotten is never read.
//! * Clocks and fences are renamed (`numbers.rs`), which rests on how protocols use them.

mod action;
mod amended;
mod atlas;
mod breadth;
mod canonical;
mod client;
mod council;
mod court;
mod cycle;
mod dead_end;
mod hash;
mod keeper;
mod model;
mod moments;
mod numbers;
mod openings;
mod parts;
mod report;
mod scope;
mod search;
mod shadows;
mod shelf;
mod sometimes;
mod spans;
mod steps;
mod transcript;
mod tree;
mod views;
mod world;

pub use breadth::{Rules, Walk, walk};
pub use council::{Council, Flaw};
pub use hash::{Folded, Lookup, fingerprint};
pub use report::{Counterexample, Limits, Progress, Report, Verdict};
pub use scope::{Budget, ClientPlan, Network, Restart, Scope, ScopeError};
pub use search::check;
pub use shelf::Shelf;
pub use sometimes::{Sightings, Sometimes};
pub use views::{Sight, Stage, client_views, every_sight};
