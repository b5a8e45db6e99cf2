//! A limit on how much work a question may cost, and a window on it.
//!
//! Several questions about quorums are hard in general. None of them may hang: a search spends
//! effort as it goes, and when the limit is reached it stops with [`TooLarge`], so that the caller
//! can fall back on a bound and say so. Whoever wants a progress bar watches the spending.

use std::fmt;

/// The question could not be decided within the effort allowed. Nothing was changed by asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("too large to decide within {limit} steps")]
pub struct TooLarge {
    /// The limit that was reached.
    pub limit: u64,
}

/// How much work a question may cost, counted in elementary steps (a few machine operations on one
/// quorum each, so that the default is a matter of seconds).
pub struct Effort<'a> {
    limit: u64,
    spent: u64,
    told: u64,
    watch: Option<Box<dyn FnMut(u64) + 'a>>,
}

impl<'a> Effort<'a> {
    /// Enough for a few seconds.
    pub const DEFAULT: u64 = 400_000_000;
    /// How often the watcher hears something.
    const EVERY: u64 = 1 << 20;

    /// At most `limit` steps.
    pub fn new(limit: u64) -> Self {
        Effort { limit, spent: 0, told: 0, watch: None }
    }

    /// Calls `watch` with the steps spent so far, now and then.
    pub fn watched(limit: u64, watch: impl FnMut(u64) + 'a) -> Self {
        Effort { watch: Some(Box::new(watch)), ..Effort::new(limit) }
    }

    /// Starts counting again for the next question.
    pub fn renew(&mut self) {
        self.spent = 0;
        self.told = 0;
    }

    /// Steps allowed in all.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Steps still allowed.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent)
    }

    /// Spends some; fails when the limit is passed.
    pub fn spend(&mut self, steps: u64) -> Result<(), TooLarge> {
        self.spent = self.spent.saturating_add(steps);
        if self.spent - self.told >= Self::EVERY {
            self.told = self.spent;
            if let Some(watch) = &mut self.watch {
                watch(self.spent);
            }
        }
        if self.spent > self.limit { Err(TooLarge { limit: self.limit }) } else { Ok(()) }
    }
}

impl Default for Effort<'_> {
    fn default() -> Self {
        Effort::new(Self::DEFAULT)
    }
}

impl fmt::Debug for Effort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Effort").field("limit", &self.limit).field("spent", &self.spent).finish()
    }
}
