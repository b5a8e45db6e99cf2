//! The specification's scenarios, corrected and broken on purpose.

mod scenarios;
mod script;
