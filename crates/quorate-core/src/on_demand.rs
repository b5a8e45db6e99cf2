//! What a driver tells a seat that it takes when somebody uses the pool there: long after the
//! charter said who decides, and after licences came that were asked for all of its pools (charter
//! spec S19, S20).
//!
//! These are values without a clock, so that a daemon, a simulator and a model checker go by the
//! same ones.

use std::time::Duration;

use crate::{Charter, Moment, Tenure, numbers};

/// Who decides over a group of pools, and since when, as one node knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decided {
    /// The entry that this node has applied last.
    pub tenure: Tenure,
    /// When it did, by its own clock.
    pub at: Moment,
    /// The version of the charter that it had applied then, or a later one of which it had heard
    /// nothing before.
    pub version: u64,
}

/// A pool of which a node that decides has had no seat in this life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unused {
    /// The version of the charter by which it was made, if that is known.
    pub made: Option<u64>,
    /// Whether it was changed since: what it was before is not known.
    pub changed: bool,
    /// Whether this life has decided for [so long](Decided::outlives) that nothing is in force that
    /// anybody was promised before.
    pub outlived: bool,
}

impl Decided {
    /// The entry by which the seat of a pool begins that comes into use, if nobody can have any of
    /// it: one that succeeds nobody. Then it decides at once.
    ///
    /// * The pool was made while this life decided, so nobody else has.
    /// * Or this life has decided for so long that no earlier one has a licence, and what those
    ///   promised is over (charter spec S3, S4): whoever holds a grant of theirs would have renewed
    ///   it here meanwhile, and so the pool would be in use.
    pub fn opens(&self, pool: Unused) -> Option<Tenure> {
        let made_since = pool.made.is_some_and(|made| made > self.version);
        let nobodys = !pool.changed && (made_since || pool.outlived);
        nobodys.then_some(Tenure { after: None, ..self.tenure })
    }

    /// Whether a licence and a lease are over since this was applied, twice: clocks need not be
    /// right.
    pub fn outlives(&self, now: Moment, licence: Duration, lease: Duration) -> bool {
        now.since(self.at) > licence.saturating_add(lease).saturating_mul(2)
    }
}

/// By which of its node's licences a seat decides: the node asks for all of its seats at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeLicence {
    term: u32,
    /// The reading from which the last licence counts that the seat was told of.
    told: Moment,
    /// No licence counts that was asked for earlier.
    since: Moment,
}

impl NodeLicence {
    /// That of a seat of this term, of which its node has `known` since then, when a pool of its
    /// group was made or changed last at this reading, as the node heard.
    pub fn new(term: u32, known: Moment, changed: Moment) -> Self {
        NodeLicence { term, told: Moment::ZERO, since: known.max(changed) }
    }

    /// Its pool was changed now: no licence of before counts.
    pub fn changed(&mut self, now: Moment) {
        self.since = now;
    }

    /// No licence counts that was asked for earlier.
    pub fn since(&self) -> Moment {
        self.since
    }

    /// Whether it was told of one that counts, and that was asked for within so long.
    pub fn lasts(&self, now: Moment, within: Duration) -> bool {
        self.told >= self.since && now.since(self.told) < within
    }

    /// When the node's last licence was asked for, if that one counts for this seat.
    pub fn counts(&self, last: Option<(u32, Moment)>) -> Option<Moment> {
        let (term, asked) = last?;
        (term == self.term && asked >= self.since).then_some(asked)
    }

    /// What the seat is told before anything happens to it: of the node's last licence, unless it
    /// was.
    pub fn news(&mut self, last: Option<(u32, Moment)>) -> Option<Charter> {
        let asked = self.counts(last).filter(|asked| *asked > self.told)?;
        self.told = asked;
        Some(Charter::Licensed { term: self.term, asked })
    }
}

numbers!(plain Decided, NodeLicence);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;

    const DECIDED: Decided = Decided {
        tenure: Tenure { term: 3, after: Some(2), node: NodeId(1), boot: 0 },
        at: Moment(100),
        version: 7,
    };

    #[test]
    fn a_pool_opens_at_once_where_nobody_can_have_any_of_it() {
        let opens = |made, changed, outlived| {
            DECIDED.opens(Unused { made, changed, outlived }).map(|it| (it.term, it.after))
        };
        assert_eq!(opens(Some(8), false, false), Some((3, None)));
        assert_eq!(opens(Some(7), false, false), None, "it may have been there before");
        assert_eq!(opens(None, false, false), None);
        assert_eq!(opens(None, false, true), Some((3, None)));
        assert_eq!(opens(Some(8), true, true), None);
    }

    #[test]
    fn a_licence_and_a_lease_are_outlived_twice() {
        let outlives = |now| {
            let nanos = Duration::from_nanos;
            DECIDED.outlives(Moment(now), nanos(10), nanos(40))
        };
        assert_eq!([199, 200, 201].map(outlives), [false, false, true]);
    }

    #[test]
    fn a_seat_is_told_once_of_each_licence_that_counts() {
        let mut seat = NodeLicence::new(3, Moment(5), Moment(8));
        let mut asked = |term, asked| match seat.news(Some((term, Moment(asked)))) {
            Some(Charter::Licensed { asked, .. }) => Some(asked.0),
            _ => None,
        };
        assert_eq!(
            [asked(3, 7), asked(2, 9), asked(3, 8), asked(3, 8)],
            [None, None, Some(8), None]
        );
        seat.changed(Moment(20));
        assert_eq!(seat.counts(Some((3, Moment(19)))), None);
        assert_eq!(seat.counts(Some((3, Moment(20)))), Some(Moment(20)));
        assert!(!seat.lasts(Moment(21), Duration::from_nanos(50)));
    }
}
