//! What a seat that moves promises.

mod amended;
mod drained;
mod exhaustive;
mod leases;
#[cfg(feature = "long-checks")]
mod long;
mod on_demand;
mod pinned;
mod seeds;
mod shadowed;
mod steps;
mod unused;
