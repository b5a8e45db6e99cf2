//! Sharing structures: units that differ, and processes that may not use them all.
//!
//! Miyamoto, Kakugawa and Yamashita, "Extended distributed k-mutual exclusion": processes U, units
//! R, and alpha, which says what each process may use. A process does not care which of its units
//! it gets. Processes with equal alpha form a *group*; k(S) is how many units the groups of S may
//! use together. By Hall's theorem the units can be handed out as asked exactly if no set of groups
//! S asks for more than k(S): such counts are a *Hall vector*.
//!
//! | of the paper | here |
//! |---|---|
//! | (U, R, alpha) | [`Structure`] |
//! | script G, a set S of groups | [`Structure::groups`], [`Groups`] |
//! | k(S) | [`Structure::k`] |
//! | condition C | [`Verdicts::c`]; without minimality [`Verdicts::c_minus`] |
//! | the construction of section 3.3 | [`Construction::Product`] |
//!
//! The paper's open problem asks for simpler constructions. Two are here: the *named sum*
//! ([`Construction::Named`]), one arbiter per unit, which satisfies C; and the *reduced product*
//! ([`Construction::Reduced`]), one block per union of a circuit, which satisfies what the paper's
//! product really gives, *C+*: a group can lock a quorum exactly when the counts allow it. A
//! *circuit* is a minimal vector of counts that cannot be served.

mod circuits;
mod conditions;
mod construction;
mod counting;
mod demands;
mod gap;
mod structure;

pub use circuits::{Circuit, circuits, closed_sets, hall_exact, reduced_family, tight_sets};
pub use conditions::{Assignment, AssignmentError, Examined, Failing, Locked, Stuck};
pub use construction::{Blocks, Blueprint, Construction, Verdicts, plan};
pub use counting::{HallArbiters, hall_arbiters, hall_semaphores};
pub use demands::{Demand, max_flow, most_holders, smallest_violating};
pub use gap::{common_quorums_suffice, never_moving_suffices, never_moving_suffices_for_each};
pub use structure::{Group, Groups, Shape, Structure, StructureError, UnitSet, group_names};
