//! At rest everything is free again (conventions 4.6): when no client uses or waits for anything
//! and no message or alarm is outstanding, no arbiter may still count a unit as taken.
//!
//! Claims without a lease are left out: a copy of the books that nobody needed since may be old,
//! and no lease makes its keeper look. That units of such claims come back is seen by whoever waits
//! for them.

use quorate_core::{Entry, NodeId};

use crate::Breach;

const LAW: &str = "no lost units";

/// Judges the books of all arbiters once the world is at rest.
///
/// # Errors
/// The breach: a unit that nobody has and nobody will get.
pub fn no_lost_units<'a>(
    books: impl IntoIterator<Item = (NodeId, &'a [Entry])>,
) -> Result<(), Breach> {
    for (arbiter, entries) in books {
        if let Some(entry) = entries.iter().find(|e| !e.standing.waits() && e.kept.is_none()) {
            return Err(Breach {
                law: LAW,
                what: format!(
                    "at rest, {arbiter} still counts {} units as held by {}",
                    entry.units, entry.claim
                ),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_core::Standing;

    use crate::testing::entry;

    #[test]
    fn a_unit_still_booked_at_rest_is_a_breach() {
        let books = [entry(1, 5, Standing::Granted)];
        assert_eq!(no_lost_units([(NodeId(0), &books[..])]).unwrap_err().law, "no lost units");
        let books = [entry(1, 5, Standing::Adopted)];
        assert!(no_lost_units([(NodeId(0), &books[..])]).is_err());
        assert!(no_lost_units([(NodeId(0), &[][..])]).is_ok());
    }
}
