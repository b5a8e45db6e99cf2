//! Tests of `ticket`: every history of small pools, seeds of the simulator, and rules broken.

mod checks;
mod forgot;
mod moved;
mod seeds;
