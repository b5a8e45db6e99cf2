//! Tests of `arbiter`: scenarios of the specification (section 9) told message by message, and
//! random histories judged by the laws.

mod cluster;
mod scenarios;
mod walk;
