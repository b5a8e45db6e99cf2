//! The specification's scenarios, corrected and broken on purpose.

mod checked;
mod every;
mod exhaustive;
mod scenarios;
mod script;
mod simulated;
