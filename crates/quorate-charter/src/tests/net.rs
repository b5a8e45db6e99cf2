//! A network that can be cut, slowed down and made to lose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::names::fnv;
use crate::raft::{Frame, Question, decode};
use crate::{MemberId, Post, RaftCouncil, Unreached};

#[derive(Clone, Default)]
pub(super) struct Net(Arc<Mutex<Wires>>);

#[derive(Default)]
struct Wires {
    members: BTreeMap<MemberId, RaftCouncil<Phone>>,
    /// From, to: one way.
    cut: BTreeSet<(MemberId, MemberId)>,
    delay: Duration,
    /// Of so many messages one is lost, as if by chance.
    lossy: Option<u64>,
    carried: u64,
    /// Entries of the log do not get there; everything else does.
    starved: BTreeSet<MemberId>,
    /// How often each piece of a snapshot was sent, by where it begins, if every other sending of
    /// it is lost.
    pieces: Option<BTreeMap<u64, u64>>,
}

/// What one member has of the network.
#[derive(Clone)]
pub(super) struct Phone {
    net: Net,
    me: MemberId,
}

impl Net {
    fn wires(&self) -> MutexGuard<'_, Wires> {
        self.0.lock().expect("no test panics here")
    }

    pub(super) fn phone(&self, me: MemberId) -> Phone {
        Phone { net: self.clone(), me }
    }

    /// Whoever calls `council`'s member reaches it.
    pub(super) fn plug(&self, council: &RaftCouncil<Phone>) {
        self.wires().members.insert(council.identity().member, council.clone());
    }

    pub(super) fn unplug(&self, member: MemberId) {
        self.wires().members.remove(&member);
    }

    pub(super) fn everybody(&self) -> Vec<RaftCouncil<Phone>> {
        self.wires().members.values().cloned().collect()
    }

    pub(super) fn get(&self, member: MemberId) -> RaftCouncil<Phone> {
        self.wires().members[&member].clone()
    }

    /// Nothing gets from these to any other, or back. They hear each other.
    pub(super) fn isolate(&self, members: &[MemberId]) {
        let mut wires = self.wires();
        let others: Vec<_> = wires.members.keys().copied().collect();
        for other in others.into_iter().filter(|other| !members.contains(other)) {
            for member in members {
                wires.cut.extend([(*member, other), (other, *member)]);
            }
        }
    }

    /// Nothing gets from one to the other; the way back is open.
    pub(super) fn cut(&self, from: MemberId, to: MemberId) {
        self.wires().cut.insert((from, to));
    }

    pub(super) fn heal(&self) {
        let mut wires = self.wires();
        (wires.delay, wires.lossy) = (Duration::ZERO, None);
        wires.cut.clear();
        wires.starved.clear();
        wires.pieces = None;
    }

    /// It hears the leader, and gets no entry from it.
    pub(super) fn starve(&self, member: MemberId) {
        self.wires().starved.insert(member);
    }

    /// Of each piece of a snapshot the first sending is lost, the third, and so on.
    pub(super) fn lose_pieces(&self) {
        self.wires().pieces = Some(BTreeMap::new());
    }

    /// Whether this question in particular is lost.
    fn unlucky(&self, to: MemberId, question: &[u8]) -> bool {
        let mut wires = self.wires();
        let starved = wires.starved.contains(&to);
        if !starved && wires.pieces.is_none() {
            return false;
        }
        match (decode::<Frame>(question).expect("ours").question, &mut wires.pieces) {
            (Question::Append(append), _) => starved && !append.entries.is_empty(),
            (Question::Snapshot(piece), Some(pieces)) => {
                let sent = pieces.entry(piece.offset).or_default();
                *sent += 1;
                !sent.is_multiple_of(2)
            }
            _ => false,
        }
    }

    pub(super) fn slow(&self, delay: Duration, lossy: Option<u64>) {
        let mut wires = self.wires();
        (wires.delay, wires.lossy) = (delay, lossy);
    }

    /// Travels one way; never arrives if the network does not carry it.
    async fn travel(&self, from: MemberId, to: MemberId) {
        let (delay, lost) = {
            let mut wires = self.wires();
            wires.carried += 1;
            let unlucky = wires
                .lossy
                .is_some_and(|every| fnv(&wires.carried.to_le_bytes()).is_multiple_of(every));
            (wires.delay, unlucky || wires.cut.contains(&(from, to)))
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if lost {
            std::future::pending::<()>().await;
        }
    }
}

impl Post for Phone {
    async fn ask(&self, to: MemberId, question: Vec<u8>) -> Result<Vec<u8>, Unreached> {
        let Phone { net, me } = self;
        net.travel(*me, to).await;
        if net.unlucky(to, &question) {
            std::future::pending::<()>().await;
        }
        let there = net.wires().members.get(&to).cloned();
        let there = there.ok_or_else(|| Unreached { to, why: "nobody is there".into() })?;
        // A question that arrived is dealt with, even if nobody waits for the answer any more.
        let from = *me;
        let answer = tokio::spawn(async move { there.answer(from, &question).await });
        let answer = answer.await.map_err(|error| Unreached { to, why: error.to_string() })?;
        net.travel(to, *me).await;
        Ok(answer)
    }
}
