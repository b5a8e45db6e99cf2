//! Whether anybody is there for a claim.
//!
//! A client is *there* while a request or a connection of it waits for the claim. Between two
//! requests it is *expected*: whoever was answered that the claim waits has a lease to ask again,
//! or as long as it said (`detach`). Whoever hung up without an answer is expected for a moment,
//! since a broken connection is mended in less, and must not cost a client its place; after that
//! the claim is kept for as long as any, in case its client comes back, but is given no units
//! meanwhile. However many hung up together, all of them delay others by that moment once. And
//! where another node has said that the client waits *there*, nobody is expected here.
//!
//! What was granted is somebody's from the moment it was told to anybody. What was told to nobody
//! can be given back at any time: nobody uses it.

use std::time::Duration;

use quorate_core::Moment;

/// How long whoever hung up has to ask again, here or at another node, since it was last seen (once
/// per heartbeat): longer than clients take to notice, to connect elsewhere and to repeat what they
/// asked for.
const BROKEN_FOR: Duration = Duration::from_secs(2);

/// What is known of whoever is there for a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Presence {
    /// When somebody was last known to be there.
    seen: Moment,
    /// Whether whoever was there last left with an answer, and so can be expected again.
    answered: bool,
    /// For how long it is kept without anybody, if its client said so.
    keep: Option<Duration>,
    /// To how many its grant was told.
    told: u32,
    /// Whether it is over because nobody came back. Nobody was told that it would be granted, so
    /// that it can be made again.
    pub(crate) abandoned: bool,
    /// Whether it is out of turn: its turn came, and nobody was there.
    pub(crate) aside: bool,
    /// Whether other nodes were told that its client waits here.
    pub(crate) announced: bool,
    /// Whether another node has said that its client waits there, since it last asked here.
    pub(crate) elsewhere: bool,
}

impl Presence {
    /// Somebody asks for the first time.
    pub(crate) fn new(now: Moment) -> Self {
        Presence {
            seen: now,
            answered: true,
            keep: None,
            told: 0,
            abandoned: false,
            aside: false,
            announced: false,
            elsewhere: false,
        }
    }

    /// Somebody asks, and is answered or stays. If another node had said that it is there, that is
    /// no longer so, and the others are told.
    pub(crate) fn asks(&mut self, now: Moment) {
        self.answered(now);
        self.announced &= !self.elsewhere;
        self.elsewhere = false;
    }

    /// Whoever asked has its answer, and goes.
    pub(crate) fn answered(&mut self, now: Moment) {
        self.seen = now;
        self.answered = true;
    }

    /// Whoever asked stays, and waits.
    pub(crate) fn stays(&mut self, now: Moment) {
        self.seen = now;
        self.answered = false;
    }

    /// Somebody is there, waiting.
    pub(crate) fn waits(&mut self, now: Moment) {
        self.seen = now;
    }

    /// Its client wants it to be kept for so long without anybody.
    pub(crate) fn detach(&mut self, keep: Duration) {
        self.keep = Some(keep);
    }

    /// For how long it is kept without anybody.
    pub(crate) fn keeps(&self, lease: Duration) -> Duration {
        self.keep.map_or(lease, |keep| keep.max(lease))
    }

    /// Whether nobody has been there for so long that nobody will come.
    pub(crate) fn is_given_up(&self, now: Moment, lease: Duration) -> bool {
        now.since(self.seen) > self.keeps(lease)
    }

    /// Whether somebody who is not there now can be expected to come for its grant.
    pub(crate) fn is_expected(&self, now: Moment, lease: Duration) -> bool {
        let returns = self.gone_at().is_none_or(|gone| now < gone);
        returns && !self.elsewhere && !self.is_given_up(now, lease)
    }

    /// Until when whoever hung up is expected. Others are for as long as the claim is kept.
    pub(crate) fn gone_at(&self) -> Option<Moment> {
        let hung_up = !self.answered && self.keep.is_none();
        hung_up.then(|| self.seen.after(BROKEN_FOR))
    }

    /// Its grant was told to somebody.
    pub(crate) fn tell(&mut self) {
        self.told = self.told.saturating_add(1);
    }

    /// What was told did not reach anybody.
    pub(crate) fn take_back(&mut self) {
        self.told = self.told.saturating_sub(1);
    }

    /// Whether anybody may know of its grant.
    pub(crate) fn is_told(&self) -> bool {
        self.told > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1_000_000_000)
    }

    #[test]
    fn who_was_answered_is_expected_for_a_lease_and_who_hung_up_for_a_moment() {
        let mut presence = Presence::new(at(0));
        presence.stays(at(0));
        assert!(presence.is_expected(at(1), LEASE), "perhaps its connection broke");
        assert!(!presence.is_expected(at(3), LEASE), "nobody was answered");
        assert!(!presence.is_given_up(at(10), LEASE), "it may come back");
        assert!(presence.is_given_up(at(11), LEASE));
        presence.answered(at(1));
        assert!(presence.is_expected(at(11), LEASE));
        assert!(!presence.is_expected(at(12), LEASE));
        presence.asks(at(2));
        presence.stays(at(2));
        assert!(!presence.is_expected(at(5), LEASE), "the request is under way, or broken off");
    }

    #[test]
    fn who_said_that_it_comes_later_is_expected_until_then() {
        let mut presence = Presence::new(at(0));
        presence.stays(at(0));
        presence.detach(Duration::from_secs(60));
        assert!(presence.is_expected(at(60), LEASE));
        assert!(!presence.is_expected(at(61), LEASE));
        presence.detach(Duration::from_secs(1));
        assert_eq!(presence.keeps(LEASE), LEASE, "never less than a lease");
    }

    #[test]
    fn who_is_elsewhere_is_not_expected_here_until_it_asks_here() {
        let mut presence = Presence::new(at(0));
        presence.answered(at(0));
        (presence.announced, presence.elsewhere) = (true, true);
        assert!(!presence.is_expected(at(1), LEASE));
        presence.asks(at(2));
        assert!(!presence.announced, "the others must know that it is here");
        presence.announced = true;
        presence.asks(at(3));
        assert!(presence.announced, "they know");
    }
}
