//! The scenarios of broadcast spec 5.1, corrected and broken on purpose.

mod checked;
mod every;
mod exhaustive;
mod leased;
mod lives;
mod reduced;
mod scenarios;
mod script;
mod simulated;
mod told;
mod unread;
