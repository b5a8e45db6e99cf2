//! Whose a claim is, also while its node is away.
//!
//! Where callers have rights a claim belongs to who made it, and its client may ask for it at any
//! node. Its own node knows whose it is. So that the others know when that one is gone, it tells
//! them of every claim in the same breath in which it asks the pool for it, and again when the
//! claim is over ([`Tidings`]). They remember what a node has told them for as long as it does not
//! start anew; what it told before a new start, for as long as names are remembered: leases outlive
//! their node. A node that is met anew is told everything again.
//!
//! Nothing is decided by this but who may speak for a claim (`App::own`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{ClaimId, Moment, NodeId};
use quorate_wire::frame;
use quorate_wire::survey::Whose;
use quorate_wire::tidings::{CLAIMS_MAX, OfPool, Owned, Tidings};

use super::Engine;
use crate::keepsake::Keepsake;
use crate::ledger::{Claimed, State};

/// Bytes of names after which the rest goes into the next tidings: a frame holds four times this.
const NAMES_MAX: usize = 1 << 20;

/// A claim of a pool, by the pool's name: it may have no seat here.
type Named = (ClaimId, Arc<str>);

/// What this node has to tell of its own claims, and has heard of others'.
#[derive(Default)]
pub(super) struct Owners {
    /// Claims of ours that were made or are over since others were last told.
    news: BTreeSet<(usize, ClaimId)>,
    heard: BTreeMap<NodeId, Heard>,
}

/// What a node has told of its claims.
#[derive(Default)]
struct Heard {
    /// Since it started.
    now: BTreeMap<Named, Arc<str>>,
    /// Before that, and when it was met anew, the oldest first.
    before: VecDeque<(Moment, BTreeMap<Named, Arc<str>>)>,
}

impl Heard {
    fn owner(&self, claim: &Named) -> Option<&Arc<str>> {
        let before = self.before.iter().rev().map(|(_, claims)| claims);
        std::iter::once(&self.now).chain(before).find_map(|claims| claims.get(claim))
    }

    fn len(&self) -> usize {
        self.now.len() + self.before.iter().map(|(_, claims)| claims.len()).sum::<usize>()
    }
}

impl Owners {
    fn owner(&self, pool: &str, id: ClaimId) -> Option<String> {
        let claim = (id, Arc::from(pool));
        self.heard.values().find_map(|heard| heard.owner(&claim)).map(ToString::to_string)
    }

    /// A node tells whose claims of its own are. No node has more than it may have at once; what
    /// it had before a start goes first.
    fn hear(&mut self, peer: NodeId, pool: &Arc<str>, owned: Owned, most: usize) {
        let heard = self.heard.entry(peer).or_default();
        let client: Arc<str> = Arc::from(owned.client);
        for (origin, serial) in owned.claims {
            while heard.len() >= most && heard.before.pop_front().is_some() {}
            if heard.now.len() < most {
                let claim = (ClaimId { origin, serial }, Arc::clone(pool));
                heard.now.insert(claim, Arc::clone(&client));
            }
        }
    }

    fn forget(&mut self, peer: NodeId, pool: &Arc<str>, id: ClaimId) {
        if let Some(heard) = self.heard.get_mut(&peer) {
            heard.now.remove(&(id, Arc::clone(pool)));
        }
    }

    /// A node has started anew, and knows nothing of what it told before.
    fn meet_anew(&mut self, peer: NodeId, now: Moment) {
        let Some(heard) = self.heard.get_mut(&peer) else { return };
        let told = std::mem::take(&mut heard.now);
        if !told.is_empty() {
            heard.before.push_back((now, told));
        }
    }

    fn forget_old(&mut self, now: Moment, keep: Duration) {
        for heard in self.heard.values_mut() {
            while heard.before.front().is_some_and(|(since, _)| now.since(*since) > keep) {
                heard.before.pop_front();
            }
        }
    }
}

/// Whose a claim is that is known here, whether or not it is over; nobody's, if all that was heard
/// of it is that it is over, or if nobody said who asks.
fn owner_of(claimed: &Claimed) -> Option<&str> {
    let client = &claimed.want.client;
    (!claimed.is_hearsay() && !client.is_empty()).then_some(client)
}

impl Engine {
    /// Whose a claim is, as far as this node knows: what its client is called.
    pub(super) fn owner(&self, pool: &str, id: ClaimId) -> Option<String> {
        let seat = self.by_name.get(pool);
        let claimed = seat.and_then(|seat| self.pools[*seat].ledger.get(&id));
        let here = claimed.and_then(owner_of).map(str::to_owned);
        here.or_else(|| self.owners.owner(pool, id)).or_else(|| self.kept_owner(*seat?, id))
    }

    /// What has no lease may have outlived every node that knew its client: books have the name.
    fn kept_owner(&self, seat: usize, id: ClaimId) -> Option<String> {
        let mut client = None;
        self.pools[seat].seat.ledger(&mut |entry| {
            if let Some(kept) = entry.kept.as_deref().filter(|_| entry.claim == id) {
                client = Some(Keepsake::read(&kept.text).client);
            }
        });
        client.filter(|client| !client.is_empty())
    }

    /// The same for another node, with whether those who decide have it in their books here.
    pub(super) fn whose(&self, pool: &str, id: ClaimId) -> Whose {
        let client = self.owner(pool, id);
        let mut booked = false;
        if let (None, Some(seat)) = (&client, self.by_name.get(pool)) {
            self.pools[*seat].seat.ledger(&mut |entry| booked |= entry.claim == id);
        }
        Whose { client, booked }
    }

    /// A claim was made, taken up or is over here.
    pub(super) fn owner_news(&mut self, seat: usize, id: ClaimId) {
        if self.config.members.len() > 1 && self.config.guarded.now().is_some() {
            self.owners.news.insert((seat, id));
        }
    }

    /// Tells all others whose the claims are that were made here since this was last done, and
    /// which are over.
    pub(super) fn tell_owners(&mut self) {
        if self.owners.news.is_empty() {
            return;
        }
        let news = std::mem::take(&mut self.owners.news);
        let tidings = self.owner_tidings(news);
        for peer in (0..self.config.members.len()).map(NodeId::from) {
            if peer != self.config.me {
                for packed in &tidings {
                    self.tell(peer, packed.clone());
                }
            }
        }
    }

    /// A peer that is met anew knows nothing of what was said before, nor do its claims go on.
    pub(super) fn meet_owners_anew(&mut self, peer: NodeId, now: Moment) {
        self.owners.meet_anew(peer, now);
        if self.config.guarded.now().is_none() {
            return;
        }
        let mut all = BTreeSet::new();
        for (seat, pool) in self.pools.iter().enumerate() {
            let lives = |claimed: &Claimed| !matches!(claimed.state, State::Over { .. });
            let ours = pool.ledger.all().filter(|(_, it)| lives(it) && owner_of(it).is_some());
            all.extend(ours.map(|(id, _)| (seat, *id)));
        }
        for packed in self.owner_tidings(all) {
            self.tell(peer, packed);
        }
    }

    fn owner_tidings(&self, news: BTreeSet<(usize, ClaimId)>) -> Vec<Box<[u8]>> {
        let (mut sealed, mut pools) = (Vec::new(), BTreeMap::<usize, OfPool>::new());
        let (mut claims, mut bytes) = (0, 0);
        for (seat, id) in news {
            let pool = &self.pools[seat];
            let of = pools
                .entry(seat)
                .or_insert_with(|| OfPool { pool: pool.name.to_string(), ..OfPool::default() });
            let claim = (id.origin, id.serial);
            let claimed = pool.ledger.get(&id);
            let lives = claimed.filter(|claimed| !matches!(claimed.state, State::Over { .. }));
            match lives.and_then(owner_of) {
                None => of.left.push(claim),
                Some(client) => match of.owned.iter_mut().find(|it| it.client == client) {
                    Some(owned) => owned.claims.push(claim),
                    None => {
                        bytes += client.len();
                        of.owned.push(Owned { client: client.to_owned(), claims: vec![claim] });
                    }
                },
            }
            claims += 1;
            if claims == CLAIMS_MAX || bytes > NAMES_MAX {
                let pools = std::mem::take(&mut pools).into_values().collect();
                sealed.push(frame::seal(&Tidings { number: None, pools }));
                (claims, bytes) = (0, 0);
            }
        }
        if !pools.is_empty() {
            let pools = pools.into_values().collect();
            sealed.push(frame::seal(&Tidings { number: None, pools }));
        }
        sealed
    }

    /// A peer tells whose its claims are, and which are over there.
    pub(super) fn on_owners(
        &mut self,
        peer: NodeId,
        pool: &str,
        owned: Vec<Owned>,
        left: Vec<(u64, u64)>,
    ) {
        if !self.config.names(pool) {
            return;
        }
        let pool = Arc::from(pool);
        for owned in owned {
            self.owners.hear(peer, &pool, owned, self.config.limits.claims);
        }
        for (origin, serial) in left {
            self.owners.forget(peer, &pool, ClaimId { origin, serial });
        }
    }

    /// Forgets what was told before new starts, long enough ago.
    pub(super) fn forget_owners(&mut self, now: Moment, keep: Duration) {
        self.owners.forget_old(now, keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(client: &str, serials: std::ops::Range<u64>) -> Owned {
        Owned { client: client.into(), claims: serials.map(|serial| (0, serial)).collect() }
    }

    fn id(serial: u64) -> ClaimId {
        ClaimId { origin: 0, serial }
    }

    #[test]
    fn what_a_node_told_outlives_its_start_and_is_forgotten_after_a_while() {
        let (mut owners, pool) = (Owners::default(), Arc::from("p"));
        let (a, b) = (NodeId(0), NodeId(1));
        let owner = |owners: &Owners, serial| owners.owner("p", id(serial));
        owners.hear(a, &pool, owned("ann", 1..3), 9);
        owners.hear(b, &pool, owned("ann", 2..3), 9);
        assert_eq!(owner(&owners, 1).as_deref(), Some("ann"));
        assert_eq!((owner(&owners, 3), owners.owner("q", id(1))), (None, None));
        // It is over at one node, and goes on at the one to which its client moved.
        owners.forget(a, &pool, id(2));
        assert_eq!(owner(&owners, 2).as_deref(), Some("ann"));
        owners.forget(b, &pool, id(2));
        assert_eq!(owner(&owners, 2), None);
        let (then, keep) = (Moment(7), Duration::from_secs(600));
        owners.meet_anew(a, then);
        owners.hear(a, &pool, owned("bob", 5..6), 9);
        owners.forget_old(then.after(keep), keep);
        assert_eq!(owner(&owners, 1).as_deref(), Some("ann"), "its lease may go on");
        owners.forget_old(then.after(keep * 2), keep);
        assert_eq!(owner(&owners, 1), None);
        assert_eq!(owner(&owners, 5).as_deref(), Some("bob"));
    }

    #[test]
    fn no_node_fills_the_memory_of_others() {
        let (mut owners, pool) = (Owners::default(), Arc::from("p"));
        let owner = |owners: &Owners, serial| owners.owner("p", id(serial));
        owners.hear(NodeId(0), &pool, owned("ann", 0..4), 4);
        owners.meet_anew(NodeId(0), Moment(7));
        owners.hear(NodeId(0), &pool, owned("bob", 10..20), 4);
        assert_eq!(owners.heard[&NodeId(0)].len(), 4);
        assert_eq!(owner(&owners, 0), None, "what was before its start goes first");
        assert_eq!(owner(&owners, 13).as_deref(), Some("bob"));
        assert_eq!(owner(&owners, 14), None);
    }
}
