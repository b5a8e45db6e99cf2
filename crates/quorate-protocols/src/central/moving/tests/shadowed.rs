//! A pool that changes while it has a shadow, or while nodes restart: every history of small
//! worlds. Where the seat also moves without need these have no end: whoever decided before grants
//! anew, and is never answered.

use quorate_check::{Budget, Scope, Sometimes};

use super::amended::{BOTH, broken, changing};
use super::exhaustive::{QUIET, explore, pair, shadowed, under};
use super::leases::{LONG, SHORT, leased};
use crate::central::moving::Moving;
use crate::central::pool::Mutant;

pub(super) const RENEWAL: Budget = Budget { renewals: 1, ..QUIET };
pub(super) const CRASH: Budget = Budget { crashes: 1, ..QUIET };

/// The seat moves only where its node is gone.
pub(super) fn staying(budget: Budget) -> Scope<Moving> {
    under(pair(budget), |council| council.moves = 0)
}

pub(super) fn units(units: &[u32], budget: Budget) -> Scope<Moving> {
    changing(BOTH, units, 0, budget)
}

/// A changed number is a changed protocol or a changed checker.
#[test]
fn a_pool_that_changes_under_a_shadow_is_exhausted_in_as_many_states_as_ever() {
    use Sometimes::{Full, LongerThanNow, MoreThanThereAre};
    let (mut counted, mut pinned) = (Vec::new(), Vec::new());
    for (name, scope, required, states) in [
        ("shadow", staying(QUIET), &[Full][..], 2_513),
        ("renewals", staying(RENEWAL), &[Full][..], 14_844),
        ("raised", units(&[1, 2], QUIET), &[Full][..], 24_040),
        ("lowered", units(&[2, 1], QUIET), &[Full, MoreThanThereAre][..], 32_131),
        ("longer", leased(&[SHORT, LONG], staying(QUIET)), &[Full][..], 19_768),
        ("shorter", leased(&[LONG, SHORT], staying(QUIET)), &[LongerThanNow][..], 72_613),
        ("longer, renewals", leased(&[SHORT, LONG], staying(RENEWAL)), &[Full][..], 167_370),
    ] {
        let report = explore(&shadowed(scope), required);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, report.states));
        pinned.push((name, states));
    }
    assert_eq!(counted, pinned);
}

/// Rules of changes that are broken where a shadow is told what is granted.
#[test]
fn broken_rules_of_changes_are_found_under_a_shadow_too() {
    for (mutant, scope, law) in [
        (Mutant::GrantRemoved, units(&[2, 1], QUIET), "units in force"),
        (Mutant::KeepByNewLease, leased(&[LONG, SHORT], staying(RENEWAL)), "capacity"),
        (Mutant::TellByNewLease, leased(&[SHORT, LONG], staying(QUIET)), "capacity"),
        (Mutant::CountByOwnLease, leased(&[LONG, SHORT], staying(QUIET)), "capacity"),
        (Mutant::ClientFirst, leased(&[LONG, SHORT], staying(CRASH)), "capacity"),
    ] {
        let report = broken(shadowed(scope), mutant);
        assert_eq!(report.broken_law(), Some(law), "{mutant:?}: {report}");
    }
}
