//! The specification's scenarios, corrected and broken on purpose.

mod every;
mod exhaustive;
mod scenarios;
mod script;
