//! Tests of `arbiter`: scenarios (arbiter spec 9) told message by message, and
//! random histories judged by the laws.

mod checks;
mod cluster;
mod forgot;
mod leases;
#[cfg(feature = "long-checks")]
mod long;
mod moved;
mod names;
mod offers;
mod restarts;
mod scenarios;
mod seeds;
mod walk;
