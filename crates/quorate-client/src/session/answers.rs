//! What a session makes of what a node says.

use std::time::Duration;

use quorate_api::link::{About, Move, Reply, Share};
use quorate_api::{ClaimId, ClaimState, Problem, ProblemKind};

use super::claim::{Claim, Holding, State};
use super::{Action, Asked, News, Session};
use crate::clock::Instant;
use crate::error::{AcquireError, Lost};

impl Session {
    pub(super) fn on_reply(&mut self, now: Instant, server: usize, asked: Asked, reply: Reply) {
        let lively = !matches!(reply, Reply::Welcome { .. } | Reply::Problem(_));
        if lively && server == self.home {
            self.failures = 0;
        }
        match (reply, asked.claim) {
            (Reply::Welcome { cluster, node, .. }, _) => {
                self.on_welcome(now, server, cluster, &node);
            }
            (
                Reply::Granted { units, valid_for_micros, lease_micros, counted, about, moves },
                Some(id),
            ) => {
                let deadline = asked.sent + Duration::from_micros(valid_for_micros);
                let lease = Duration::from_micros(lease_micros);
                // What came with moves that it has not heard of comes with those.
                let new = |share: &Share| moves.iter().all(|it| it.to != *share);
                let known = units.iter().zip(about).filter(|(share, _)| new(share));
                let about = known.map(|(_, about)| about).collect();
                let units = units.into_iter().filter(new).collect();
                self.on_granted(now, id, (units, about, counted), deadline, lease);
                self.on_moves(id, moves);
            }
            (Reply::Over { state, why }, Some(id)) => self.on_over(id, state, why),
            (Reply::TooLarge { units }, Some(id)) => self.on_too_large(id, units),
            (Reply::Problem(problem), Some(id)) => self.on_problem(now, server, id, problem),
            (Reply::Problem(problem), None) => self.hang_up(now, server, problem.to_string()),
            (Reply::Waiting | Reply::Pong, _) => {}
            (Reply::Granted { .. } | Reply::Over { .. } | Reply::TooLarge { .. }, None) => {
                self.hang_up(now, server, "the node confuses its answers".into());
            }
        }
    }

    fn on_granted(
        &mut self,
        now: Instant,
        id: ClaimId,
        (shares, about, counted): (Vec<Share>, Vec<About>, bool),
        deadline: Instant,
        lease: Duration,
    ) {
        let Some(mut claim) = self.take(id) else { return };
        self.shortest_lease = Some(self.shortest_lease.map_or(lease, |least| least.min(lease)));
        match &mut claim.state {
            State::Asking { .. } => {
                let holding = Holding {
                    shares,
                    moves: Vec::new(),
                    about,
                    counted,
                    deadline,
                    lease,
                    renew_at: None,
                    unanswered: None,
                    told: false,
                    renewed: false,
                };
                claim.state = State::Holding(holding);
            }
            State::Holding(holding) if holding.told && holding.deadline <= now => {
                return self.tell(id, News::Lost(Lost::Deadline));
            }
            State::Holding(holding) => {
                holding.deadline = holding.deadline.max(deadline);
                (holding.unanswered, holding.renewed) = (None, true);
            }
            State::Revoked { .. } | State::Leaving { .. } => return self.put(id, claim),
        }
        self.use_or_renew(now, id, &mut claim);
        self.put(id, claim);
    }

    /// A holder is asked to move, perhaps not for the first time.
    pub(super) fn on_moves(&mut self, id: ClaimId, moves: Vec<Move>) {
        let Some(mut claim) = self.take(id) else { return };
        if let State::Holding(holding) = &mut claim.state {
            for it in moves {
                let known = holding.shares.contains(&it.to) || !holding.shares.contains(&it.from);
                if known || !holding.told {
                    continue; // If it has not been told of its grant, the next renewal says it.
                }
                holding.shares.push(it.to);
                holding.shares.sort_unstable();
                holding.moves.push((it.from, it.to));
                self.actions.push_back(Action::Tell { id, news: News::Move(it) });
            }
        }
        self.put(id, claim);
    }

    /// Tells the client of its units if there is time left to use them, and plans the renewal. A
    /// grant that was long under way is renewed first, and if little time is left all the same,
    /// that is all that can be had: answers take so long.
    fn use_or_renew(&mut self, now: Instant, id: ClaimId, claim: &mut Claim) {
        let State::Holding(holding) = &mut claim.state else { return };
        let late = !holding.told && !holding.renewed && holding.deadline <= now + holding.lease / 3;
        if holding.deadline <= now || late {
            return self.ask_again(now, id, claim);
        }
        let deadline = holding.deadline;
        let news = match std::mem::replace(&mut holding.told, true) {
            true => News::Extended { deadline },
            false => {
                let (shares, counted) = (holding.shares.clone(), holding.counted);
                let about = std::mem::take(&mut holding.about);
                News::Granted { shares, about, counted, deadline, lease: holding.lease }
            }
        };
        // Renewed when a third of the lease is over, a little earlier by chance, so that clients
        // that were granted together do not renew together.
        let jitter = self.chance.below(holding.lease.as_nanos() as u64 / 20 + 1);
        let ahead = holding.lease * 2 / 3 + Duration::from_nanos(jitter);
        holding.renew_at = Some(deadline.checked_sub(ahead).unwrap_or(now).max(now));
        self.tell(id, news);
    }

    pub(super) fn on_over(&mut self, id: ClaimId, over: ClaimState, why: String) {
        let Some(mut claim) = self.take(id) else { return };
        match claim.state {
            State::Asking { .. } | State::Holding(Holding { told: false, .. }) => {
                if over.is_over() {
                    self.tell(id, News::Refused(refused(id, over, why)));
                } else {
                    self.put(id, claim);
                }
            }
            State::Holding(Holding { deadline, .. }) if over == ClaimState::Revoked => {
                claim.state = State::Revoked { deadline };
                self.put(id, claim);
                self.tell(id, News::Lost(Lost::Revoked { reason: why }));
            }
            State::Holding(_) | State::Revoked { .. } if over.is_over() => {
                self.tell(id, News::Lost(Lost::Told { why }));
            }
            State::Leaving { why: leave, .. } if over.is_over() => {
                let lost = over == ClaimState::Lost;
                self.tell_left(id, leave, lost.then_some(Lost::Told { why }));
            }
            _ => self.put(id, claim),
        }
    }

    fn on_too_large(&mut self, id: ClaimId, k: u32) {
        let Some(claim) = self.take(id) else { return };
        match claim.state {
            State::Asking { .. } => {
                let error = AcquireError::TooLarge { h: claim.want.units(), k };
                self.tell(id, News::Refused(error));
            }
            State::Leaving { why, .. } => self.tell_left(id, why, None),
            State::Holding(_) | State::Revoked { .. } => self.put(id, claim),
        }
    }

    fn on_problem(&mut self, now: Instant, server: usize, id: ClaimId, problem: Problem) {
        let Some(mut claim) = self.take(id) else { return };
        let decided = match problem.kind {
            ProblemKind::Stopping | ProblemKind::Starting | ProblemKind::SeatStopped => {
                // Elsewhere it may go on: asked again there, under the same id.
                self.put(id, claim);
                return self.hang_up(now, server, problem.to_string());
            }
            ProblemKind::Unknown | ProblemKind::Limit | ProblemKind::Unavailable => false,
            ProblemKind::UnknownClaim => matches!(claim.state, State::Leaving { .. }),
            ProblemKind::BadRequest
            | ProblemKind::Forbidden
            | ProblemKind::UnknownPool
            | ProblemKind::DifferentClaim
            | ProblemKind::ClaimOver
            | ProblemKind::Impossible
            | ProblemKind::NoSuchPage
            | ProblemKind::TooSlow
            | ProblemKind::TooLarge
            | ProblemKind::OtherSite
            | ProblemKind::Unauthorized
            | ProblemKind::Conflict
            | ProblemKind::Refused => true,
        };
        let later = Some(now + self.beat());
        match &mut claim.state {
            State::Asking { .. } if problem.kind == ProblemKind::Limit => {
                return self.tell(id, News::Refused(AcquireError::Rejected(problem)));
            }
            State::Asking { .. } | State::Holding(Holding { told: false, .. }) if decided => {
                let error = rejected(&claim, problem);
                return self.tell(id, News::Refused(error));
            }
            State::Leaving { why, .. } if decided => {
                let why = *why;
                return self.tell_left(id, why, None);
            }
            State::Asking { again_at, .. } | State::Leaving { again_at, .. } => *again_at = later,
            // A grant is lost when a node says so in as many words, or at its deadline.
            State::Holding(_) if problem.kind == ProblemKind::ClaimOver => {
                return self.tell(id, News::Lost(Lost::Told { why: problem.detail }));
            }
            // This node lost sight of the grant; the one that renewed it last has not.
            State::Holding(_) if problem.kind == ProblemKind::Unknown => {
                self.put(id, claim);
                return self.hang_up(now, server, problem.to_string());
            }
            State::Holding(_) | State::Revoked { .. } => {}
        }
        self.put(id, claim);
    }
}

/// What a client hears of a claim that ended before it was granted.
fn refused(claim: ClaimId, over: ClaimState, why: String) -> AcquireError {
    match over {
        ClaimState::Lost => AcquireError::Lost { claim, why },
        ClaimState::Revoked => AcquireError::Revoked { claim, reason: why },
        _ => AcquireError::Ended { claim, why },
    }
}

/// What a client hears of a claim that no node would take.
fn rejected(claim: &Claim, problem: Problem) -> AcquireError {
    match problem.kind {
        ProblemKind::UnknownPool => AcquireError::UnknownPool { pool: claim.pool.clone() },
        _ => AcquireError::Rejected(problem),
    }
}
