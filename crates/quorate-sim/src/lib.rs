//! A discrete-event driver: the same protocol value as in the daemon, in a world made of virtual
//! clocks, links, disks and clients, all of which fail as a seed says.
//!
//! A [`Plan`] says everything about a run; [`Plan::swarm`] draws one from a seed. [`run`] plays it:
//! a safety phase with faults, then a liveness phase in which a healthy core must grant everything.
//! The same plan gives the same run, to the byte of its trace.
//!
//! | file | holds |
//! |---|---|
//! | `world.rs` | the world and its loop; `queue.rs` orders what happens |
//! | `driver.rs` | one table: what each effect means here |
//! | `network.rs`, `disk.rs`, `clock.rs` | links, durability, drifting time |
//! | `client.rs`, `clients.rs` | client processes, which live beside their node and not inside it |
//! | `faults.rs`, `misfortune.rs` | what may go wrong, and its happening |
//! | `hangups.rs` | clients that hang up while they wait |
//! | `rolling.rs` | nodes restarted one after the other, and clients that go on elsewhere |
//! | `council.rs` | the control plane, for protocols whose decider may change |
//! | `shadows.rs` | who shadows whoever decides |
//! | `corruption.rs` | runs that begin in any state, and when they are right |
//! | `plan.rs`, `workload.rs`, `span.rs`, `rng.rs` | what is chosen, and chance |
//! | `film.rs` | what a replay draws |
//! | `hands.rs` | a run in which somebody interferes |
//! | `trace.rs`, `measure.rs`, `histogram.rs`, `series.rs` | what people read |
//! | `session.rs` | a run moved along by hand, for experiments |
//! | `verdict.rs`, `judge.rs` | safety, then liveness; which laws watch |
//! | `script.rs`, `stage.rs` | transcripts: a world moved by hand, for tests |
//!
//! This crate names no protocol, reads no clock and starts no thread.

mod client;
mod clients;
mod clock;
mod corruption;
mod council;
mod disk;
mod driver;
mod faults;
mod film;
mod hands;
mod hangups;
mod histogram;
mod judge;
mod measure;
mod misfortune;
mod network;
mod outlooks;
mod plan;
mod queue;
mod rng;
mod rolling;
mod script;
mod series;
mod session;
mod shadows;
mod size;
mod span;
mod stage;
mod table;
mod trace;
mod verdict;
mod workload;
mod world;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod world_tests;

pub use council::CouncilPlan;
pub use faults::{Faults, Profile, ProfileError, Recurring};
pub use film::{Change, Film, Flight, Frame, Health};
pub use hands::{Act, Hands, Intervention};
pub use histogram::Histogram;
pub use measure::Measures;
pub use network::{Clusters, Cut, Delay, Links};
pub use outlooks::judge_outlooks;
pub use plan::{Needs, Plan, PoolPlan, Scale};
pub use rng::Rng;
pub use script::{Setting, check_transcript, check_transcripts, replay};
pub use series::Series;
pub use session::Session;
pub use span::{Span, SpanError, Time, parse_time};
pub use trace::LEGEND;
pub use verdict::{
    Memory, Pulse, Report, Verdict, Watch, run, run_changing, run_corrupted, run_corrupted_with,
    run_with, swarm_command,
};
pub use workload::{Arrival, Arrivals, Want, WantError, Workload};
