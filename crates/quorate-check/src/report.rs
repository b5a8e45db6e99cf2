//! What an exploration found out.

use std::fmt;

use quorate_laws::Breach;

use crate::sometimes::{Sightings, Sometimes};

/// How far an exploration may go.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most states to keep.
    pub states_max: usize,
    /// What must be reachable; see [`Sometimes`].
    pub required: Vec<Sometimes>,
}

impl Default for Limits {
    /// Room for what fits into a few gigabytes, and somebody must enter.
    fn default() -> Self {
        Limits { states_max: 50_000_000, required: vec![Sometimes::Enter] }
    }
}

/// How far an exploration is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Distinct states found.
    pub states: usize,
    /// How many of them were left in every possible way.
    pub explored: usize,
    /// Fewest actions to the states explored now.
    pub depth: usize,
}

/// What an exploration found out. The same for the same scope, always.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Distinct states, up to the names of clocks and fences.
    pub states: usize,
    /// Bytes that they took, how they were found and where they lead among it; not the room that
    /// was kept for more, nor what all of them are made of, which is little.
    pub bytes: usize,
    /// Actions tried.
    pub transitions: u64,
    /// Fewest actions that reach the last state found.
    pub depth: usize,
    /// What was seen to happen in some history.
    pub sightings: Sightings,
    /// Whether all is well.
    pub verdict: Verdict,
}

/// Whether all is well.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every state was visited, and every law holds in all of them.
    Holds,
    /// A law is broken.
    Broken(Counterexample),
    /// No law is broken, but what must be reachable is not: the model shows less than it says.
    Vacuous(Vec<Sometimes>),
    /// There are more states than the limit. No law is broken in those that were visited, which
    /// says nothing about the others, and nothing about what must come to pass.
    Incomplete,
}

/// A shortest history that breaks a law.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// Which law, and how.
    pub breach: Breach,
    /// What happened, one line per action.
    pub transcript: Vec<String>,
}

impl Report {
    /// Whether everything was visited and nothing is wrong.
    pub fn holds(&self) -> bool {
        self.verdict == Verdict::Holds
    }

    /// The name of the law that is broken, if one is.
    pub fn broken_law(&self) -> Option<&'static str> {
        match &self.verdict {
            Verdict::Broken(counterexample) => Some(counterexample.breach.law),
            _ => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { states, transitions, depth, .. } = self;
        write!(f, "{states} states, {transitions} transitions, depth {depth}: ")?;
        match &self.verdict {
            Verdict::Holds => f.write_str("every law holds"),
            Verdict::Incomplete => write!(f, "INCOMPLETE, stopped after {states} states"),
            Verdict::Vacuous(missing) => {
                f.write_str("VACUOUS, never reached: ")?;
                for (position, sometimes) in missing.iter().enumerate() {
                    write!(f, "{}{sometimes}", if position > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
            Verdict::Broken(counterexample) => write!(f, "BROKEN, {counterexample}"),
        }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.breach)?;
        for line in &self.transcript {
            write!(f, "\n{line}")?;
        }
        Ok(())
    }
}
