//! What a client sends when, as a machine without sockets, clocks or tasks.
//!
//! The driver (`driver.rs`) tells it what happened and when, and performs its [`Action`]s in order;
//! [`Session::due`] says when to call [`Session::wake`] at the latest. Being late costs grants, not
//! safety: whatever is called first after a deadline finds that it has passed.
//!
//! Rules it keeps:
//!
//! * A deadline is a reading from **before** the request was handed to the driver, plus the span in
//!   the answer to that very request. Repetitions have numbers and readings of their own.
//! * A deadline that has passed is final, even if an answer that extends it arrives afterwards.
//! * A claim keeps its id through every repetition and every node.
//! * Claims are asked for at one node, *home*. If that says that another one decides over their
//!   pool, the next ones go there, on a second connection. It is a hint: while there is no such
//!   connection, all goes home, and if it breaks, what was asked for there is asked for at home.
//! * A broken connection ends nothing: on the next one claims, renewals and releases are repeated.
//! * A renewal that goes unanswered for a quarter of the lease is a reason to try another node. It
//!   is sent when a third is over, and whoever runs a command wants to hear before three quarters
//!   are: there is time for one more node that says nothing.

mod answers;
mod claim;
mod link;
#[cfg(test)]
mod tests;
mod words;
#[cfg(test)]
mod world;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use quorate_api::link::{Ask, FromNode, Request, Share};
use quorate_api::{ClaimId, Want};

use crate::chance::Chance;
use crate::clock::Instant;
use crate::error::{AcquireError, Lost, ReleaseError};
use claim::{Claim, Holding, Leave, State, reached};
use link::{Line, Link, Next};
pub(crate) use words::{Action, Greeting, News, Pace};

/// A request on its way: whose, and read from the clock before it was sent.
#[derive(Clone, Copy, Debug)]
struct Asked {
    claim: Option<ClaimId>,
    sent: Instant,
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Session {
    greeting: Greeting,
    pace: Pace,
    chance: Chance,
    /// The servers, in the order of the list.
    lines: Vec<Line>,
    /// The server in use in general, or to be tried next.
    home: usize,
    /// Who decides over which pools, as nodes said.
    hints: BTreeMap<String, String>,
    /// Who decides over some pool, and has not been met.
    sought: Option<String>,
    /// Connections with home in a row that came to nothing.
    failures: u32,
    why_down: String,
    /// Learned from the first node; a node of another cluster is no use to us.
    cluster: Option<String>,
    shortest_lease: Option<Duration>,
    /// Boxed, since each goes in and out of here at every step.
    claims: BTreeMap<ClaimId, Box<Claim>>,
    /// Mirrors [`Claim::due`] of every claim.
    dues: BTreeSet<(Instant, ClaimId)>,
    number: u64,
    actions: VecDeque<Action>,
}

impl Session {
    pub(crate) fn new(
        greeting: Greeting,
        servers: usize,
        pace: Pace,
        seed: u64,
        now: Instant,
    ) -> Session {
        assert!(servers > 0, "somebody must be there to be asked");
        let mut chance = Chance::new(seed);
        let home = chance.below(servers as u64) as usize;
        let mut lines = vec![Line::new(now); servers];
        lines[home].link = Link::Down { retry_at: Some(now) };
        Session {
            greeting,
            pace,
            chance,
            lines,
            home,
            hints: BTreeMap::new(),
            sought: None,
            failures: 0,
            why_down: "not tried yet".into(),
            cluster: None,
            shortest_lease: None,
            claims: BTreeMap::new(),
            dues: BTreeSet::new(),
            number: 0,
            actions: VecDeque::new(),
        }
    }

    // What the session wants.

    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Session::wake`] at the latest.
    pub(crate) fn due(&self) -> Option<Instant> {
        let claims = self.dues.first().map(|(at, _)| *at);
        [claims, self.links_due()].into_iter().flatten().min()
    }

    /// Whether nothing is left to be done for anybody.
    pub(crate) fn is_idle(&self) -> bool {
        self.claims.is_empty()
    }

    /// Whether no release waits for its acknowledgement.
    pub(crate) fn is_settled(&self) -> bool {
        !self.claims.values().any(|claim| matches!(claim.state, State::Leaving { .. }))
    }

    // What the client wants.

    pub(crate) fn claim(
        &mut self,
        now: Instant,
        (pool, id): (String, ClaimId),
        want: Want,
        give_up_at: Option<Instant>,
    ) {
        let state = State::Asking { sent: false, again_at: None };
        let at = self.whereto(now, &pool);
        let mut claim = Box::new(Claim { pool, want, at, give_up_at, moved: false, state });
        self.ask_again(now, id, &mut claim);
        self.put(id, claim);
    }

    /// The client has left a unit that it was asked to leave: said at once, since somebody waits.
    pub(crate) fn left(&mut self, now: Instant, id: ClaimId, unit: Share) {
        let Some(mut claim) = self.take(id) else { return };
        if let State::Holding(holding) = &mut claim.state
            && holding.moves.iter().any(|(from, _)| *from == unit)
        {
            holding.moves.retain(|(from, _)| *from != unit);
            holding.shares.retain(|share| *share != unit);
            self.ask_again(now, id, &mut claim);
        }
        self.put(id, claim);
    }

    /// The client no longer wants the claim, whatever became of it, and does not listen.
    pub(crate) fn abandon(&mut self, now: Instant, id: ClaimId) {
        self.leave(now, id, Leave::Dropped);
    }

    /// The client stopped using its units, and wants to know when they are back.
    pub(crate) fn release(&mut self, now: Instant, id: ClaimId) {
        if !self.leave(now, id, Leave::Released) {
            let over = Err(ReleaseError::Lost(Lost::Deadline));
            self.tell(id, News::Left(over));
        }
    }

    /// Stops looking after a claim, without releasing it.
    pub(crate) fn forget(&mut self, id: ClaimId) {
        self.take(id);
    }

    // What happened to a connection.

    pub(crate) fn dialed(&mut self, now: Instant, server: usize) {
        let Greeting { client, token } = self.greeting.clone();
        let ask = match token {
            Some(token) => Ask::Introduce { client, token },
            None => Ask::Hello { client },
        };
        self.send(now, server, None, ask);
    }

    /// The connection could not be made, or broke.
    pub(crate) fn disconnected(&mut self, now: Instant, server: usize, why: String) {
        let next = match self.lines[server].link {
            Link::Down { .. } => return, // It was given up a moment ago: that is the same failure.
            Link::Dialing { .. } => Next::Another,
            // A node that answered well until now is asked once more: where a claim waits, it
            // should go on waiting, rather than wait at two nodes.
            Link::Up { .. } if server == self.home && self.failures == 0 => Next::Same,
            Link::Up { .. } => Next::Another,
        };
        self.drop_link(now, server, why, next);
    }

    pub(crate) fn heard(&mut self, now: Instant, server: usize, message: FromNode) {
        if let Link::Up { heard, pinged } = &mut self.lines[server].link {
            (*heard, *pinged) = (now, None);
        }
        match message {
            FromNode::Goodbye { go_on } => self.on_goodbye(now, server, go_on),
            FromNode::Decides { pool, node } => self.on_decides(pool, node),
            FromNode::Over { id, state, why, .. } => self.on_over(id, state, why),
            FromNode::Move { id, it, .. } => self.on_moves(id, vec![it]),
            FromNode::Answer(answer) => {
                // An answer to nothing we asked on this connection: it changes nothing.
                let asked = self.lines[server].asked.remove(&answer.number);
                let Some(asked) = asked else { return };
                self.on_reply(now, server, asked, answer.reply);
            }
        }
    }

    /// The clock says so much.
    pub(crate) fn wake(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.dues.first()
            && at <= now
        {
            self.on_due(now, id);
        }
        self.look_after_links(now);
    }

    fn on_due(&mut self, now: Instant, id: ClaimId) {
        let Some(mut claim) = self.take(id) else { return };
        match &mut claim.state {
            State::Asking { sent: false, .. } if reached(claim.give_up_at, now) => {
                let why = self.why_down.clone();
                self.tell(id, News::Refused(AcquireError::Unreachable { claim: id, why }));
            }
            State::Asking { .. } | State::Holding(Holding { told: false, .. })
                if reached(claim.give_up_at, now) =>
            {
                self.put(id, claim);
                self.leave(now, id, Leave::TimedOut);
            }
            State::Asking { again_at, .. } => {
                *again_at = None;
                self.ask_again(now, id, &mut claim);
                self.put(id, claim);
            }
            State::Holding(holding) if holding.told && holding.deadline <= now => {
                self.tell(id, News::Lost(Lost::Deadline));
            }
            State::Holding(holding) => {
                holding.renew_at = None;
                let patience = holding.lease / 4;
                let stuck = holding.unanswered.is_some_and(|since| since + patience <= now);
                let at = claim.at;
                if self.is_up(at) && stuck {
                    self.put(id, claim);
                    return self.hang_up(now, at, "renewals go unanswered".into());
                }
                self.ask_again(now, id, &mut claim);
                self.put(id, claim);
            }
            State::Revoked { .. } => {} // Its deadline passed, and its client was told before.
            State::Leaving { forget_at, .. } if *forget_at <= now => {}
            State::Leaving { why, answer_by, .. } if reached(*answer_by, now) => {
                *answer_by = None;
                match std::mem::replace(why, Leave::Dropped) {
                    Leave::Dropped => {}
                    Leave::Released => {
                        let unknown = Err(ReleaseError::Unknown { claim: id });
                        self.tell(id, News::Left(unknown));
                    }
                    Leave::TimedOut => {
                        self.tell(id, News::Refused(AcquireError::Unknown { claim: id }));
                    }
                }
                self.put(id, claim);
            }
            State::Leaving { again_at, .. } => {
                *again_at = None;
                self.ask_again(now, id, &mut claim);
                self.put(id, claim);
            }
        }
    }

    /// False if there is no such claim (any more).
    fn leave(&mut self, now: Instant, id: ClaimId, why: Leave) -> bool {
        let Some(mut claim) = self.take(id) else { return false };
        let mut forget_at = now + self.pace.persistence;
        match &claim.state {
            State::Asking { sent: false, .. } => return true, // Nobody knows of it.
            State::Asking { .. } | State::Leaving { .. } => {}
            State::Holding(Holding { deadline, .. }) | State::Revoked { deadline } => {
                forget_at = forget_at.max(*deadline);
            }
        }
        let answer_by = (why != Leave::Dropped).then(|| now + self.pace.patience);
        claim.state = State::Leaving { why, answer_by, forget_at, again_at: None };
        self.ask_again(now, id, &mut claim);
        self.put(id, claim);
        true
    }

    /// Sends what the claim's state calls for, if there is a connection.
    fn ask_again(&mut self, now: Instant, id: ClaimId, claim: &mut Claim) {
        let (at, up) = (claim.at, self.is_up(claim.at));
        let pool = claim.pool.clone();
        let ask = match &mut claim.state {
            State::Asking { sent, again_at } => {
                *sent |= up;
                *again_at = None;
                Ask::Claim { pool, id, want: claim.want.clone() }
            }
            State::Holding(holding) => {
                holding.unanswered = up.then(|| holding.unanswered.unwrap_or(now));
                // Repeated before it is given up, since only a late repetition buys a late
                // deadline.
                holding.renew_at = up.then(|| now + holding.lease / 8);
                Ask::Renew { pool, id, units: holding.shares.clone() }
            }
            State::Revoked { .. } => return,
            State::Leaving { again_at, .. } => {
                *again_at = None;
                Ask::Release { pool, id }
            }
        };
        if up {
            if claim.moved && matches!(ask, Ask::Release { .. }) {
                // Whoever says the end of what is over already has it told to all nodes.
                self.send(now, at, Some(id), ask.clone());
            }
            self.send(now, at, Some(id), ask);
        }
    }

    fn send(&mut self, now: Instant, server: usize, claim: Option<ClaimId>, ask: Ask) {
        self.number += 1;
        self.lines[server].asked.insert(self.number, Asked { claim, sent: now });
        let request = Request { number: self.number, ask };
        self.actions.push_back(Action::Send { server, request });
    }

    fn tell(&mut self, id: ClaimId, news: News) {
        self.actions.push_back(Action::Tell { id, news });
    }

    /// The claim is over, and its client wanted that.
    fn tell_left(&mut self, id: ClaimId, why: Leave, lost: Option<Lost>) {
        match why {
            Leave::Dropped => {}
            Leave::Released => {
                let outcome = lost.map_or(Ok(()), |lost| Err(ReleaseError::Lost(lost)));
                self.tell(id, News::Left(outcome));
            }
            Leave::TimedOut => {
                self.tell(id, News::Refused(AcquireError::Timeout { claim: id }));
            }
        }
    }

    fn take(&mut self, id: ClaimId) -> Option<Box<Claim>> {
        let claim = self.claims.remove(&id)?;
        if let Some(due) = claim.due() {
            self.dues.remove(&(due, id));
        }
        self.lines[claim.at].claims -= 1;
        Some(claim)
    }

    fn put(&mut self, id: ClaimId, claim: Box<Claim>) {
        if let Some(due) = claim.due() {
            self.dues.insert((due, id));
        }
        self.lines[claim.at].claims += 1;
        let before = self.claims.insert(id, claim);
        assert!(before.is_none(), "claim {id} is in the books once");
    }
}
