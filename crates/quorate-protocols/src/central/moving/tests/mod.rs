//! What a seat that moves promises.

mod amended;
mod drained;
mod exhaustive;
mod leases;
#[cfg(feature = "long-checks")]
mod long;
mod pinned;
mod seeds;
mod steps;
