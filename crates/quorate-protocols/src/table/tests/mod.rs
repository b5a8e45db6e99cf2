//! Tests of the quorum table.

mod checks;
mod labelled;
mod seeds;
mod stalls;
mod steps;
