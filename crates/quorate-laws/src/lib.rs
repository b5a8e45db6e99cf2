//! What must hold across nodes, one small file per law.
//!
//! Laws see the world as an outsider does: what clients asked and were told ([`Observation`]), and
//! the public books of arbiters ([`quorate_core::Protocol::ledger`]). They never look inside a
//! participant. The simulator, the checker and the tests on real processes feed the same laws.
//!
//! | law | file | says | source |
//! |---|---|---|---|
//! | capacity | `capacity.rs` | units in use never exceed k | k-arbiter paper, section 2.1 (safety); conventions 4.1 |
//! | exclusivity | `exclusivity.rs` | no unit has two users | conventions 4.2 |
//! | fence order | `fence_order.rs` | a unit's fences grow from holder to holder | arbiter spec C6; conventions 4.2 |
//! | one grant per claim | `one_grant_per_claim.rs` | exactly h distinct units, once, and only if asked | conventions 4.3, 4.4 |
//! | cancelled is over | `cancelled_is_over.rs` | no grant after an acknowledged cancel | conventions 4.4 |
//! | bounded overtaking | `bounded_overtaking.rs` | nobody is passed more often than the pool promises | conventions 4.8; arbiter spec 7.8 |
//! | no lost units | `no_lost_units.rs` | at rest everything is free again | conventions 4.6 |
//! | honest outlook | `honest_outlook.rs` | what cannot be granted is not promised, and what can be is | arbiter spec R1; broadcast spec L1 |
//! | everyone served | `everyone_served.rs` | once faults stop, every claim is granted | k-arbiter paper, section 2.1 (liveness); conventions 4.7 |
//! | standing stays | `standing_stays.rs` | what has no lease ends by its client's word alone | contract of `Wanted::standing` |
//! | units in force | `units_in_force.rs` | who claims when a unit has left the pool does not get it | charter spec 3 |
//! | holders keep | `holders_keep.rs` | whoever renews keeps what it has while no more nodes are out than the pool survives | arbiter spec C5 |
//!
//! An operation that timed out is *unknown*, never failed: see [`Observation::Abandoned`].

mod bounded_overtaking;
mod breach;
mod cancelled_is_over;
mod capacity;
mod everyone_served;
mod exclusivity;
mod fence_order;
mod holders_keep;
mod honest_outlook;
mod no_lost_units;
mod observation;
mod one_grant_per_claim;
mod standing_stays;
mod statute_book;
mod units_in_force;

pub use bounded_overtaking::BoundedOvertaking;
pub use breach::Breach;
pub use cancelled_is_over::CancelledIsOver;
pub use capacity::Capacity;
pub use everyone_served::EveryoneServed;
pub use exclusivity::Exclusivity;
pub use fence_order::FenceOrder;
pub use holders_keep::HoldersKeep;
pub use honest_outlook::HonestOutlook;
pub use no_lost_units::no_lost_units;
pub use observation::{End, Observation};
pub use one_grant_per_claim::OneGrantPerClaim;
pub use standing_stays::StandingStays;
pub use statute_book::StatuteBook;
pub use units_in_force::UnitsInForce;

#[cfg(test)]
mod testing;
