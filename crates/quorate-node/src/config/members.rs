//! Everybody who is a member, or was one. The list grows while the node runs, and what is in it
//! stays: the place of a member is its [`NodeId`], the same at every node, and nobody has it after
//! that member.
//!
//! Who grows it is the engine, and nobody else: before anybody hears of a new place, the engine has
//! room for it ([`crate::engine`]).

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use quorate_core::{Moment, NodeId, NodeSet};
use tokio::sync::watch;

use super::{Address, MEMBERS_MAX, Member};

/// See the module. Clones show the same list.
#[derive(Clone)]
pub struct Members(Arc<Inner>);

struct Inner {
    places: Box<[OnceLock<Member>]>,
    /// So many of them are taken...
    len: AtomicUsize,
    /// ...which is news to some.
    grown: watch::Sender<usize>,
    /// Who of them are members no more, and since when this node knows that.
    gone: Mutex<BTreeMap<NodeId, Moment>>,
}

impl Members {
    /// These, in this order.
    ///
    /// # Panics
    /// They are more than a cluster can have.
    pub(super) fn new(members: impl IntoIterator<Item = Member>) -> Members {
        let places = (0..MEMBERS_MAX).map(|_| OnceLock::new()).collect();
        let (len, gone) = (AtomicUsize::new(0), Mutex::default());
        let inner = Inner { places, len, grown: watch::Sender::new(0), gone };
        let all = Members(Arc::new(inner));
        members.into_iter().for_each(|member| all.push(member));
        all
    }

    /// One more, at the next place.
    ///
    /// # Panics
    /// There is no place left: whoever admits members sees to that first.
    pub(crate) fn push(&self, member: Member) {
        let len = self.len();
        assert!(len < MEMBERS_MAX, "a cluster has places for {MEMBERS_MAX} members");
        self.0.places[len].set(member).expect("one task adds members");
        self.0.len.store(len + 1, Ordering::Release);
        self.0.grown.send_replace(len + 1);
    }

    /// How many places are taken.
    #[allow(clippy::len_without_is_empty, reason = "a cluster has a member")]
    pub fn len(&self) -> usize {
        self.0.len.load(Ordering::Acquire)
    }

    /// How many of them are members now.
    pub fn living(&self) -> usize {
        self.len().saturating_sub(self.gone().len())
    }

    /// These are members no more.
    pub(crate) fn note_gone(&self, gone: &NodeSet, now: Moment) {
        let mut known = self.gone();
        known.retain(|node, _| gone.contains(*node));
        for node in gone.iter() {
            known.entry(node).or_insert(now);
        }
    }

    /// Since when this node knows that one is a member no more.
    pub(crate) fn gone_since(&self, node: NodeId) -> Option<Moment> {
        self.gone().get(&node).copied()
    }

    fn gone(&self) -> MutexGuard<'_, BTreeMap<NodeId, Moment>> {
        self.0.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is there.
    pub fn get(&self, place: usize) -> Option<&Member> {
        self.0.places.get(place)?.get()
    }

    /// All, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Member> + Clone {
        self.0.places[..self.len()].iter().map(|place| place.get().expect("it is taken"))
    }

    /// Where a member of this name is.
    pub fn place(&self, name: &str) -> Option<NodeId> {
        self.iter().position(|member| member.name == name).map(NodeId::from)
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.iter().map(|member| member.name.clone()).collect()
    }

    /// How many there are, as it changes.
    pub(crate) fn news(&self) -> watch::Receiver<usize> {
        self.0.grown.subscribe()
    }
}

impl Index<usize> for Members {
    type Output = Member;

    /// Another node may speak of a member that this one has not heard of yet: it has no name here.
    fn index(&self, place: usize) -> &Member {
        static NOT_HEARD_OF: LazyLock<Member> = LazyLock::new(|| Member {
            name: "?".into(),
            peers: Address::Name { host: "unknown.invalid".into(), port: 1 },
        });
        self.get(place).unwrap_or(&NOT_HEARD_OF)
    }
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: usize) -> Member {
        let peers = format!("127.0.0.1:{}", 7000 + number).parse().unwrap();
        Member { name: format!("n{number}"), peers }
    }

    #[test]
    fn a_place_that_is_taken_stays_as_it_is_and_every_copy_grows() {
        let members = Members::new([member(0)]);
        let (copy, mut news) = (members.clone(), members.news());
        let first = &copy[0];
        news.mark_unchanged();
        (1..MEMBERS_MAX).for_each(|number| members.push(member(number)));
        assert!(news.has_changed().unwrap());
        assert_eq!(copy.len(), MEMBERS_MAX);
        assert_eq!((first, copy.place("n127")), (&member(0), Some(NodeId(127))));
        assert!(copy.iter().map(|it| it.name.clone()).eq(copy.names()));
        assert_eq!(copy[MEMBERS_MAX].name, "?");
        assert!(copy.get(MEMBERS_MAX).is_none() && copy.place("n128").is_none());
    }

    #[test]
    fn who_is_gone_is_counted_from_when_that_was_heard_and_may_come_back() {
        let members = Members::new((0..3).map(member));
        let gone = |nodes: &[u32]| nodes.iter().map(|node| NodeId(*node)).collect::<NodeSet>();
        members.note_gone(&gone(&[1]), Moment(5));
        members.note_gone(&gone(&[1, 2]), Moment(9));
        assert_eq!(members.living(), 1);
        assert_eq!(
            [0, 1, 2].map(|node| members.gone_since(NodeId(node))),
            [None, Some(Moment(5)), Some(Moment(9))]
        );
        members.note_gone(&gone(&[2]), Moment(11));
        assert_eq!((members.living(), members.gone_since(NodeId(1))), (2, None));
    }

    #[test]
    #[should_panic(expected = "places for 128 members")]
    fn there_is_an_end_of_places() {
        let members = Members::new((0..MEMBERS_MAX).map(member));
        members.push(member(MEMBERS_MAX));
    }
}
