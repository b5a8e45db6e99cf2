//! Tests of the quorum table.

mod checks;
mod forgotten;
mod labelled;
mod seeds;
mod stalls;
mod standing;
mod steps;
