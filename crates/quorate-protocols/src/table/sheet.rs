//! The table itself: every claim that waits or holds units, and what a section does to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use quorate_core::{
    ClaimId, Fence, Line, Moment, NodeId, NodeSet, Share, Shares, Shortage, Standing, Wanted,
};

use super::Seat;
use super::pool::broken;
use crate::allocator::{Allocator, Deed, Ticket};
use crate::attempt::Attempt;
use crate::goods::Goods;

/// Which of two tables is newer. Sections of one round count up, each from the newest it saw. A
/// member that takes a lock away gives the next one to a later round only, so that whatever the
/// section stored elsewhere is older than what follows here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Version {
    /// Grows where a lock was taken away, or forgotten.
    pub round: Fence,
    /// Counts sections within it.
    pub count: Fence,
}

impl Version {
    /// The next one, of this round.
    pub(super) fn after(self, round: Fence) -> Version {
        let count = if self.round == round { self.count.next() } else { Fence(1) };
        Version { round, count }
    }
}

/// A version of the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Sheet {
    /// Which.
    pub version: Version,
    /// The last fence given.
    pub fence: Fence,
    /// Every claim that is not over.
    pub rows: BTreeMap<ClaimId, Row>,
}

/// A claim in the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Row {
    /// The node that asked last...
    pub node: NodeId,
    /// ...and in which of its tries.
    pub attempt: Attempt,
    /// How old it is: smaller is older.
    pub age: u64,
    /// What it asks for.
    pub wanted: Wanted,
    /// Claims granted while this was the youngest of those older than them that wait: how often it
    /// was passed is the sum over it and all younger ones, as the allocator counts.
    pub passed: u32,
    /// Whether more than one home has asked for it, or more than one life of a home: each may have
    /// told a client, and none can give it back for the others.
    pub shared: bool,
    /// While it waits, those that asked for it before, the last to ask last: each is where its
    /// client may be, and whoever gives it up leaves it to the others, in its place. So many at
    /// most as a message has room for; whoever is not here asks again.
    pub others: Vec<Asking>,
    /// How it stands.
    pub state: State,
}

/// A home's last try, with the clock reading that belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Asking {
    /// Who asked...
    pub node: NodeId,
    /// ...and in which of its tries.
    pub attempt: Attempt,
    /// Its clock when it did, and that of nobody else.
    pub sent: Moment,
    /// How long that is ago at least.
    pub waited: Duration,
}

impl Asking {
    /// The most that it adds to a message.
    const WEIGHT: usize = 45;
    /// So many are remembered of a claim.
    const MAX: usize = 4;
}

/// How a claim stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// It waits. `sent` is its home's clock when it came, `waited` how long that is ago at least.
    Waiting {
        /// Of its home, and of nobody else.
        sent: Moment,
        /// By the clocks of members, one after the other.
        waited: Duration,
        /// For how long it is out of its turn, if it is: its home was taken for dead, and has not
        /// asked for it since.
        absent: Option<Duration>,
        /// How often it was.
        absences: u32,
    },
    /// It has these units.
    Granted {
        /// Which, and the fences.
        shares: Shares,
        /// The version in which its lease last began.
        since: Version,
    },
}

impl Row {
    /// The units it has, and the version in which its lease last began.
    pub fn granted(&self) -> Option<(&Shares, Version)> {
        match &self.state {
            State::Granted { shares, since } => Some((shares, *since)),
            State::Waiting { .. } => None,
        }
    }

    /// Whether it ends by its client's word alone.
    pub(super) fn has_no_lease(&self, seat: &Seat<'_>) -> bool {
        self.wanted.standing.is_some() && !broken!(seat, EndStanding)
    }

    /// Whether this try of a home asks for it.
    pub(super) fn is_asked_by(&self, node: NodeId, attempt: Attempt) -> bool {
        let mut others = self.others.iter().map(|other| (other.node, other.attempt));
        (self.node, self.attempt) == (node, attempt) || others.any(|other| other == (node, attempt))
    }

    /// A home asks for it in a new try, and is answered from now on. What its clock said in an
    /// older one means nothing any more. `room`: how many of those before it can be remembered.
    fn asked_by(&mut self, node: NodeId, attempt: Attempt, now: Moment, room: usize) {
        let life = (node, attempt.boot);
        let before = (self.node, self.attempt);
        (self.node, self.attempt) = (node, attempt);
        self.shared |= (before.0, before.1.boot) != life;
        let State::Waiting { sent, waited, .. } = &mut self.state else { return };
        self.others.retain(|other| (other.node, other.attempt.boot) != life);
        if (before.0, before.1.boot) != life {
            let (node, attempt) = before;
            self.others.push(Asking { node, attempt, sent: *sent, waited: *waited });
        }
        let room = room.min(Asking::MAX);
        self.others.drain(..self.others.len().saturating_sub(room));
        (*sent, *waited) = (now, Duration::ZERO);
    }

    /// A home gives up a claim that waits. Says whether nobody else asks for it.
    fn given_up_by(&mut self, node: NodeId, attempt: Attempt) -> bool {
        let last = (self.node, self.attempt) == (node, attempt);
        // Earlier lives of the same home are over: nobody is there.
        self.others.retain(|other| other.node != node || other.attempt > attempt);
        // Nobody was told of anything while it waits.
        self.shared = !self.others.is_empty();
        // Out of its turn, it is back as soon as another asks again.
        if last
            && let State::Waiting { sent, waited, absent: None, .. } = &mut self.state
            && let Some(other) = self.others.pop()
        {
            (self.node, self.attempt) = (other.node, other.attempt);
            (*sent, *waited) = (other.sent, other.waited);
            self.shared = !self.others.is_empty();
            return false;
        }
        last && self.others.is_empty()
    }

    /// Whether it waits and may be granted.
    pub fn is_in_turn(&self) -> bool {
        matches!(self.state, State::Waiting { absent: None, .. })
    }

    /// How it waits, as books show it.
    pub(super) fn waits_as(&self) -> Standing {
        match self.state {
            State::Waiting { absent: Some(_), .. } => Standing::Absent,
            State::Waiting { absences: times @ 1.., .. } => Standing::Returned(times),
            State::Waiting { .. } | State::Granted { .. } => Standing::Waiting,
        }
    }

    /// Whether it waits, and its home must ask for it before it is granted.
    pub fn is_absent(&self) -> bool {
        matches!(self.state, State::Waiting { absent: Some(_), .. })
    }

    /// The most that it adds to a message, units that it may be granted apart: those are the
    /// pool's, however many claims there are.
    pub fn weight(&self) -> usize {
        let lines = self.wanted.lines.iter().flat_map(|lines| lines.iter());
        let among =
            |line: &Line| 10 + line.among.last().map_or(0, |unit| unit.index() / 64 * 10 + 10);
        let others = self.others.len() * Asking::WEIGHT;
        let text = self.wanted.standing.as_ref().map_or(0, |text| 3 + text.len());
        108 + others + text + lines.map(among).sum::<usize>()
    }

    fn ticket(&self, claim: ClaimId) -> Ticket {
        Ticket { age: self.age, claim }
    }
}

/// What one client wants of a section.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Errand {
    /// To be in the table, or to hear again what became of it.
    Ask,
    /// To keep these.
    Renew(Shares),
    /// To be over; only if it is known by this try, if one is named.
    End(Option<Attempt>),
}

/// What a section does, beside the new table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Upshot {
    /// Whoever was given units, with what its home must know to count its lease.
    pub(super) granted: Vec<(ClaimId, Moment, Duration)>,
    /// Whose lease is over, and what it had.
    pub(super) ended: Vec<(ClaimId, NodeId, Attempt, Shares)>,
    /// Whose name is another claim's.
    pub(super) clashes: Vec<ClaimId>,
}

/// Rounds, versions and fences of a table stay below this. No pool counts so far, and a table with
/// larger numbers is refused.
pub(super) const NUMBER_MAX: u64 = Fence::MAX.0;

impl Sheet {
    /// Whether this can be a table of this pool.
    pub(super) fn is_sound(&self, goods: &Goods) -> bool {
        let Version { round, count } = self.version;
        let mut taken = BTreeSet::new();
        // The sum says how often the oldest claim was passed, and must not overflow.
        let passed = self.rows.values().try_fold(0u32, |sum, row| sum.checked_add(row.passed));
        passed.is_some()
            && [round, count, self.fence].iter().all(|number| number.0 < NUMBER_MAX)
            && self.rows.values().all(|row| {
                let h = row.wanted.units.get();
                let mut shares = row.granted().into_iter().flat_map(|(shares, _)| shares.iter());
                row.age < NUMBER_MAX
                    && row.others.len() <= Asking::MAX
                    && goods.has(&row.wanted)
                    && row.granted().is_none_or(|(shares, _)| shares.len() == h as usize)
                    && shares.all(|share| {
                        share.unit.0 < goods.units
                            && share.fence <= self.fence
                            && taken.insert(share.unit)
                    })
            })
    }

    /// So much time has passed at the member that knew this table longest.
    pub(super) fn wait(&mut self, more: Duration) {
        for row in self.rows.values_mut() {
            if let State::Waiting { waited, absent, .. } = &mut row.state {
                *waited = waited.saturating_add(more);
                for other in &mut row.others {
                    other.waited = other.waited.saturating_add(more);
                }
                *absent = absent.map(|absent| absent.saturating_add(more));
            }
        }
    }

    /// A claim is over. Whoever passed it passed all older ones as well, and that is counted with
    /// the youngest of these ([`Row::passed`]).
    fn remove(&mut self, seat: &Seat<'_>, claim: ClaimId) -> Option<Row> {
        let gone = self.rows.remove(&claim)?;
        self.hand_down(seat, gone.age, gone.passed);
        Some(gone)
    }

    /// So many passed a claim of this age, which leaves the queue.
    fn hand_down(&mut self, seat: &Seat<'_>, age: u64, passed: u32) {
        let older = |row: &&mut Row| row.is_in_turn() && row.age < age;
        if let Some(older) = self.rows.values_mut().filter(older).max_by_key(|row| row.age)
            && !broken!(seat, ForgetPassed)
        {
            older.passed = older.passed.saturating_add(passed);
        }
    }

    /// Takes claims out of their turn whose homes seem dead, and those of earlier lives of this
    /// node: granted, they would cost a lease each, and nobody would have it. They keep their age,
    /// and are back when a home asks for them. This is an opinion, which may be wrong, and only the
    /// order of grants depends on it.
    pub(super) fn excuse(&mut self, seat: &Seat<'_>, suspects: &NodeSet) {
        if broken!(seat, ServeTheDead) {
            return;
        }
        let (mut absent, mut forgotten) = (Vec::new(), Vec::new());
        for (&claim, row) in &mut self.rows {
            let earlier = row.node == seat.me && row.attempt.boot < seat.boot;
            let gone = earlier || suspects.contains(row.node);
            match &mut row.state {
                State::Waiting { absent: Some(so_long), .. } => {
                    if *so_long >= seat.pool.goods.kept_absent() {
                        forgotten.push(claim);
                    }
                }
                State::Waiting { absent: away @ None, absences, .. } if gone => {
                    (*away, *absences) = (Some(Duration::ZERO), absences.saturating_add(1));
                    absent.push((row.age, std::mem::take(&mut row.passed)));
                }
                State::Waiting { .. } | State::Granted { .. } => {}
            }
        }
        absent.into_iter().for_each(|(age, passed)| self.hand_down(seat, age, passed));
        forgotten.iter().for_each(|claim| _ = self.rows.remove(claim));
    }

    /// Ends the leases that are over: in this very version of each.
    pub(super) fn expire(
        &mut self,
        seat: &Seat<'_>,
        overdue: &BTreeSet<(ClaimId, Version)>,
        upshot: &mut Upshot,
    ) {
        for &(claim, version) in overdue {
            let since = self.rows.get(&claim).and_then(|row| Some(row.granted()?.1));
            if since != Some(version) {
                continue; // Renewed, or over already.
            }
            if self.rows[&claim].has_no_lease(seat) {
                continue; // No member watches it; whoever says so is mistaken.
            }
            let row = self.remove(seat, claim).expect("just found");
            let State::Granted { shares, .. } = row.state else { unreachable!("just found") };
            upshot.ended.push((claim, row.node, row.attempt, shares));
        }
    }

    /// Does an errand of a client of `seat`.
    pub(super) fn run(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        errand: &Errand,
        asked: Option<(&Wanted, Attempt)>,
        upshot: &mut Upshot,
    ) {
        let version = self.version;
        let weight = self.rows.values().map(Row::weight).sum::<usize>();
        let room = seat.pool.room.saturating_sub(weight);
        let row = self.rows.get_mut(&claim);
        match (errand, row, asked) {
            (Errand::End(None), Some(_), _) => _ = self.remove(seat, claim),
            (Errand::End(Some(only)), Some(row), _) => {
                let last = (row.node, row.attempt) == (seat.me, *only);
                let ends = match row.state {
                    State::Waiting { .. } if broken!(seat, GiveUpForAll) => last,
                    State::Waiting { .. } => row.given_up_by(seat.me, *only),
                    State::Granted { .. } => last && (!row.shared || broken!(seat, EndShared)),
                };
                if ends {
                    self.remove(seat, claim);
                }
            }
            (Errand::Ask, Some(row), Some((wanted, attempt))) => {
                if !row.wanted.asks_as(wanted) {
                    return upshot.clashes.push(claim);
                }
                let others = row.others.len() + room / Asking::WEIGHT;
                row.asked_by(seat.me, attempt, seat.now, others);
                match &mut row.state {
                    State::Waiting { absent, .. } => {
                        if !broken!(seat, StayAway) {
                            *absent = None;
                        }
                    }
                    State::Granted { since, .. } => *since = version,
                }
            }
            (Errand::Ask, None, Some((wanted, attempt))) => {
                let age = self.rows.values().map(|row| row.age).max().unwrap_or(0) + 1;
                let (sent, waited) = (seat.now, Duration::ZERO);
                let state = State::Waiting { sent, waited, absent: None, absences: 0 };
                let (node, wanted) = (seat.me, wanted.clone());
                let (passed, shared, others) = (0, false, Vec::new());
                let row = Row { node, attempt, age, wanted, passed, shared, others, state };
                if row.weight() <= room {
                    self.rows.insert(claim, row);
                }
            }
            (Errand::Renew(theirs), Some(row), Some((_, attempt))) => {
                if let State::Granted { shares, since } = &mut row.state
                    && shares == theirs
                {
                    (row.node, row.attempt, *since) = (seat.me, attempt, version);
                }
            }
            _ => {}
        }
    }

    /// The allocator's books, and who waits in them.
    fn books(&self, seat: &Seat<'_>) -> (Allocator, Vec<Ticket>) {
        let goods = &seat.pool.goods;
        let mut allocator = goods.allocator();
        for (shares, _) in self.rows.values().filter_map(Row::granted) {
            allocator.take(shares.iter().map(|share| share.unit));
        }
        let mut waiting = Vec::new();
        for (&claim, row) in self.rows.iter().filter(|(_, row)| row.is_in_turn()) {
            let wants = match &row.wanted.lines {
                Some(lines) if !broken!(seat, IgnoreLines) => goods.wants(row.node, lines),
                _ => vec![goods.any(row.node, row.wanted.units)],
            };
            // What can never be granted was refused at the door. Should its node be allowed less
            // than it was then, it waits.
            if allocator.enter(row.ticket(claim), &wants, false).is_ok() {
                waiting.push(row.ticket(claim));
            }
        }
        for ticket in &waiting {
            allocator.recall(*ticket, self.rows[&ticket.claim].passed);
        }
        (allocator, waiting)
    }

    /// Why a claim waits.
    pub(super) fn explain(&self, seat: &Seat<'_>, claim: ClaimId) -> Option<Shortage> {
        let ticket = self.rows.get(&claim)?.ticket(claim);
        let cut = self.books(seat).0.explain(ticket)?;
        let held = self.rows.iter().filter_map(|(claim, row)| Some((*claim, row.granted()?.0)));
        Some(cut.shortage(held))
    }

    /// Grants whatever may be granted: the allocator decides, as it does for one node alone.
    pub(super) fn pass(&mut self, seat: &Seat<'_>, floor: Fence, upshot: &mut Upshot) {
        let (mut allocator, waiting) = self.books(seat);
        let mut deeds = Vec::new();
        allocator.pass(&mut deeds);
        // Also if nobody is granted anything: the next section need not hear of the floor again.
        if !deeds.is_empty() || !broken!(seat, ForgetFloor) {
            self.fence = self.fence.max(floor);
        }
        if !deeds.is_empty() && !broken!(seat, ReuseFence) {
            self.fence = self.fence.next();
        }
        let fence = self.fence;
        for deed in deeds {
            let Deed::Grant { ticket, units } = deed else {
                unreachable!("no holder of this pool can be moved")
            };
            let row = self.rows.get_mut(&ticket.claim).expect("only rows enter");
            let State::Waiting { sent, waited, .. } = row.state else {
                unreachable!("only these do")
            };
            let shares: Vec<Share> = units.iter().map(|&unit| Share { unit, fence }).collect();
            let shares = Shares::new(&shares);
            let serves = seat.pool.goods.serves(&row.wanted, &shares);
            assert!(serves || broken!(seat, IgnoreLines), "law S");
            row.state = State::Granted { shares, since: self.version };
            row.others.clear();
            upshot.granted.push((ticket.claim, sent, waited));
        }
        for ticket in waiting {
            let row = self.rows.get_mut(&ticket.claim).expect("it was there before");
            row.passed = allocator.passed(ticket);
        }
    }
}

/// The claims with what they have: `1.1=u0 f1 2.1`.
impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.version.round.0, self.version.count.0)?;
        for (claim, row) in &self.rows {
            write!(f, " {claim}")?;
            if let Some((shares, _)) = row.granted() {
                write!(f, "={shares}")?;
            }
        }
        Ok(())
    }
}
