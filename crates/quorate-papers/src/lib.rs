//! The papers, executed: what each of them states, in our words, and whether it is so.
//!
//! A [`Statement`] is data (`statements/*.json`, one file for each paper): where the paper says it,
//! what it says, what we expect of it, and the name of the function that finds out. Evidence is
//! computed whenever it is asked for, from the definitions and never from the expectation; what
//! differs from the expectation, in either direction, is a mistake of ours and fails the run.
//!
//! Here is what needs mathematics and small models only. What needs the simulator or the checker is
//! in the laboratory, which gives its own functions to [`Paper::statements`] by name.

mod anonymous;
mod brute;
mod chance;
mod chart;
mod found;
mod handlers;
mod k_arbiter;
mod report;
mod ring;
mod shifted;
mod statement;
mod timer_free;

pub use chart::{Chart, Curve};
pub use found::{Found, Grid, Pace, Tally};
pub use report::{Judged, Report};
pub use statement::{Evidence, Paper, Statement, Verdict, papers};
pub use timer_free::{Misprint, PrintedProcess, Said};

/// The functions of all papers, section by section.
fn known() -> impl Iterator<Item = &'static (&'static str, Evidence)> {
    let papers = [k_arbiter::EVIDENCE, anonymous::EVIDENCE, ring::EVIDENCE, timer_free::EVIDENCE];
    papers.into_iter().flatten().copied().flatten()
}

/// The function of this name, if its evidence is mathematics or a small model.
pub fn evidence(name: &str) -> Option<Evidence> {
    known().find(|(known, _)| *known == name).map(|(_, found)| *found)
}

/// The names of all functions of this crate, in the order of the papers.
pub fn names() -> Vec<&'static str> {
    known().map(|(name, _)| *name).collect()
}

/// Functions under their own names, which statements use.
macro_rules! registered {
    ($($name:ident),* $(,)?) => {
        pub(crate) const EVIDENCE: &[(&str, $crate::Evidence)] =
            &[$((stringify!($name), $name)),*];
    };
}
pub(crate) use registered;

#[cfg(test)]
mod tests;
