//! Tests of the quorum table.

mod checks;
mod seeds;
mod steps;
