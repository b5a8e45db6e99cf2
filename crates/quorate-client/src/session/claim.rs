//! One claim as its client sees it, and when it next wants attention.

use std::time::Duration;

use quorate_api::Want;
use quorate_api::link::{About, Share};

use crate::clock::Instant;

/// What a client asked for, and how that stands.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) pool: String,
    pub(super) want: Want,
    /// The server of the list at which it is asked for.
    pub(super) at: usize,
    /// When the client stops waiting for a grant.
    pub(super) give_up_at: Option<Instant>,
    /// Whether it was asked for on an earlier connection, perhaps of another node, which may have
    /// kept a copy.
    pub(super) moved: bool,
    pub(super) state: State,
}

/// How a claim stands.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// It wants units.
    Asking {
        /// Whether it ever left this machine; until then nobody can have granted it.
        sent: bool,
        /// When to repeat it, after an answer that decided nothing.
        again_at: Option<Instant>,
    },
    /// It has units.
    Holding(Holding),
    /// It has units until the deadline, and an operator wants them back: it is not renewed.
    Revoked { deadline: Instant },
    /// Its client no longer wants it, and no node has acknowledged that yet.
    Leaving {
        why: Leave,
        /// When to tell the client that the outcome is unknown.
        answer_by: Option<Instant>,
        /// When to stop trying.
        forget_at: Instant,
        /// When to repeat the release, after an answer that decided nothing.
        again_at: Option<Instant>,
    },
}

/// What a claim has.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) shares: Vec<Share>,
    /// What it was asked to leave, with what it got for that.
    pub(super) moves: Vec<(Share, Share)>,
    /// What is known of them, until the client knows it.
    pub(super) about: Vec<About>,
    /// Whether their numbers and fences mean nothing.
    pub(super) counted: bool,
    pub(super) deadline: Instant,
    pub(super) lease: Duration,
    /// When to ask for more time; none while there is no connection.
    pub(super) renew_at: Option<Instant>,
    /// Since when a renewal has gone unanswered on this connection.
    pub(super) unanswered: Option<Instant>,
    /// Whether the client knows. A grant that came late in its lease is renewed first...
    pub(super) told: bool,
    /// ...once, unless its deadline has passed.
    pub(super) renewed: bool,
}

/// Why a client leaves a claim, which is what decides what it wants to hear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leave {
    /// Nobody listens any more.
    Dropped,
    /// It released its units and waits for the acknowledgement.
    Released,
    /// It waited long enough.
    TimedOut,
}

impl Claim {
    /// Another server is asked for it from now on.
    pub(super) fn moves_to(&mut self, server: usize) {
        self.at = server;
        if let State::Holding(holding) = &mut self.state {
            holding.unanswered = None;
        }
    }

    /// Whether any node may have heard of it.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.state, State::Asking { sent: false, .. })
    }

    /// The earliest moment at which something is to be done about it.
    pub(super) fn due(&self) -> Option<Instant> {
        let times = match &self.state {
            State::Asking { again_at, .. } => [self.give_up_at, *again_at, None],
            State::Holding(holding) if holding.told => {
                [Some(holding.deadline), holding.renew_at, None]
            }
            State::Holding(holding) => [self.give_up_at, holding.renew_at, None],
            State::Revoked { deadline } => [Some(*deadline), None, None],
            State::Leaving { answer_by, forget_at, again_at, .. } => {
                [*answer_by, Some(*forget_at), *again_at]
            }
        };
        times.into_iter().flatten().min()
    }
}

/// Whether a moment has come.
pub(super) fn reached(at: Option<Instant>, now: Instant) -> bool {
    at.is_some_and(|at| at <= now)
}
