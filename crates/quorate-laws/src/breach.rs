//! A broken law.

use std::fmt;

/// Which law was broken, and how.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Breach {
    /// The law's name, as in the crate's table.
    pub law: &'static str,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.what)
    }
}

impl std::error::Error for Breach {}
