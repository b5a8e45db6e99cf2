//! Bugs on purpose, to see whether the trial of real processes finds them.
//!
//! They exist only under the feature `planted-bugs`, which nothing but the tests of the command ask
//! for, and even then only in a node that was started with one (`Node::start_with`): no
//! command, file or variable can turn one on.

use std::time::Duration;

use quorate_core::Moment;

use crate::boot::Past;

/// A rule of the node, broken.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// Clients are told that they may use their units for a lease longer than they may.
    LateDeadline,
    /// A node that restarts behaves as if nothing had been promised before.
    NothingBefore,
}

/// The bug of this node: none, unless it was started with one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Planted {
    #[cfg(feature = "planted-bugs")]
    pub(crate) bug: Option<Bug>,
}

#[cfg(feature = "planted-bugs")]
impl Planted {
    pub(crate) fn deadline(self, until: Moment, lease: Duration) -> Moment {
        if self.bug == Some(Bug::LateDeadline) { until.after(lease) } else { until }
    }

    pub(crate) fn past(self, past: Past) -> Past {
        if self.bug == Some(Bug::NothingBefore) { Past::Nothing } else { past }
    }
}

#[cfg(not(feature = "planted-bugs"))]
impl Planted {
    pub(crate) fn deadline(self, until: Moment, _: Duration) -> Moment {
        until
    }

    pub(crate) fn past(self, past: Past) -> Past {
        past
    }
}
