//! Bugs on purpose, to see whether the trial of real processes finds them, and two things that a
//! test can do to a node in no other way: another rate of the clock of leases, and another version
//! of the wire.
//!
//! They exist only under the feature `planted-bugs`, which nothing but the tests of the command ask
//! for, and even then only in a node that was started with one (`Node::start_with`): no
//! command, file or variable can turn one on.

use std::time::Duration;

use quorate_api::GrantsView;
use quorate_core::{Claim, ClaimId, Moment, Shares};

use crate::boot::Past;

/// A rule of the node, broken, or its surroundings.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// Clients are told that they may use their units for a lease longer than they may.
    LateDeadline,
    /// A node that restarts behaves as if nothing had been promised before.
    NothingBefore,
    /// Clients are told the same fence for every unit, whoever had it before.
    SameFence,
    /// Some claims are refused as over that nobody ended.
    FalseRefusal,
    /// Holders who renew in time are told that they have nothing any more.
    EarlyEnd,
    /// The node says that its pools can grant whatever is asked for.
    AlwaysReady,
    /// What is to be held without a lease has one all the same.
    LeasedStanding,
    /// No bug: the clock of leases runs at so many millionths of the true rate.
    Clock(u32),
    /// No bug: the node speaks the next version of the wire.
    NextWire,
}

/// The bug of this node: none, unless it was started with one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Planted {
    #[cfg(feature = "planted-bugs")]
    pub(crate) bug: Option<Bug>,
}

/// Of claims by number, every so many have to do with a bug that some have to do with.
#[cfg(feature = "planted-bugs")]
const EACH: u64 = 4;

#[cfg(feature = "planted-bugs")]
impl Planted {
    /// With what concerns the whole process.
    pub(crate) fn with(bug: Bug) -> Planted {
        match bug {
            Bug::Clock(millionths) => crate::clock::run_at(millionths),
            Bug::NextWire => quorate_wire::frame::speak_next_version(),
            _ => {}
        }
        Planted { bug: Some(bug) }
    }

    pub(crate) fn deadline(self, until: Moment, lease: Duration) -> Moment {
        if self.bug == Some(Bug::LateDeadline) { until.after(lease) } else { until }
    }

    pub(crate) fn past(self, past: Past) -> Past {
        if self.bug == Some(Bug::NothingBefore) { Past::Nothing } else { past }
    }

    pub(crate) fn shares(self, shares: Shares) -> Shares {
        let same = |_| quorate_core::Fence(7);
        if self.bug == Some(Bug::SameFence) { shares.map_fences(same) } else { shares }
    }

    /// Whether a claim that is granted is refused.
    pub(crate) fn refuses(self, claim: ClaimId) -> bool {
        self.bug == Some(Bug::FalseRefusal) && claim.serial.is_multiple_of(EACH)
    }

    /// Whether a holder whose renewal was confirmed is told the opposite.
    pub(crate) fn ends(self, claim: ClaimId) -> bool {
        self.bug == Some(Bug::EarlyEnd) && claim.serial.is_multiple_of(EACH)
    }

    pub(crate) fn claim(self, claim: Claim) -> Claim {
        let mut claim = claim;
        if self.bug == Some(Bug::LeasedStanding) {
            claim.wanted.standing = None;
        }
        claim
    }

    pub(crate) fn grants(self, view: GrantsView, units: u32) -> GrantsView {
        match self.bug {
            Some(Bug::AlwaysReady) => GrantsView { smallest: 1, largest: units, hindrance: None },
            _ => view,
        }
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

    pub(crate) fn shares(self, shares: Shares) -> Shares {
        shares
    }

    pub(crate) fn refuses(self, _: ClaimId) -> bool {
        false
    }

    pub(crate) fn ends(self, _: ClaimId) -> bool {
        false
    }

    pub(crate) fn claim(self, claim: Claim) -> Claim {
        claim
    }

    pub(crate) fn grants(self, view: GrantsView, _: u32) -> GrantsView {
        view
    }
}
