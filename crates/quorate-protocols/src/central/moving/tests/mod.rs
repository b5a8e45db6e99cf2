//! What a seat that moves promises.

mod amended;
mod exhaustive;
#[cfg(feature = "long-checks")]
mod long;
mod seeds;
mod steps;
