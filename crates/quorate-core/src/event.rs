//! What happens to a participant, and what it wants from the world.
//!
//! Both are generic over what a message, an alarm and a record are: a protocol's own types in its
//! steps, bytes where a node sends them, numbers where the model checker counts them.
//! [`Event::map`] and [`Effect::map`] lead from one to the other.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use crate::{Charter, Claim, ClaimId, Moment, Move, NodeId, Protocol, Refusal, Shares};

/// What happens to a participant of a protocol.
pub type EventOf<P> = Event<<P as Protocol>::Message, <P as Protocol>::Alarm>;

/// What a participant of a protocol wants.
pub type EffectOf<P> =
    Effect<<P as Protocol>::Message, <P as Protocol>::Alarm, <P as Protocol>::Durable>;

/// Something that happened to a participant. The tag is a word: a narrower one makes compilers copy
/// what follows it at odd addresses, which takes a simulator longer than most steps do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u64)]
pub enum Event<M, A> {
    /// A local client wants units. Repeating a claim under its name asks how it stands.
    Claim(Claim),
    /// A local client gives its units back. Repeating changes nothing.
    Release(ClaimId),
    /// A local client no longer wants the claim, whatever became of it.
    Cancel(ClaimId),
    /// No local client is there for the claim any more, and none was told that it has units: its
    /// client may have gone to another node. Ends what was asked for through this participant, and
    /// nothing that another one asked for under the same name. Not acknowledged; a claim made again
    /// is a new one.
    Withdraw(ClaimId),
    /// A local client wants to keep what it has, and shows what that is. If it was asked to move,
    /// what it no longer shows it has left.
    Renew {
        /// The claim that was granted.
        claim: ClaimId,
        /// What it got.
        shares: Shares,
    },
    /// A message, perhaps late, twice, or out of order.
    Hear {
        /// The peer that sent it.
        from: NodeId,
        /// What it said.
        message: M,
    },
    /// An armed alarm ran out.
    Ring(A),
    /// The failure detector believes that a node crashed...
    Suspect(NodeId),
    /// ...and no longer believes it.
    Trust(NodeId),
    /// The control plane says something. Only protocols with a seat that moves listen.
    Charter(Charter),
}

impl<M, A> Event<M, A> {
    /// The same event, with another message or another alarm in it.
    pub fn map<N, B>(
        self,
        message: impl FnOnce(M) -> N,
        alarm: impl FnOnce(A) -> B,
    ) -> Event<N, B> {
        let Ok(event) = self.try_map::<N, B, Infallible>(|it| Ok(message(it)), |it| Ok(alarm(it)));
        event
    }

    /// The same event, if its message or its alarm can be turned into another.
    ///
    /// # Errors
    /// What `message` or `alarm` said.
    pub fn try_map<N, B, E>(
        self,
        message: impl FnOnce(M) -> Result<N, E>,
        alarm: impl FnOnce(A) -> Result<B, E>,
    ) -> Result<Event<N, B>, E> {
        Ok(match self {
            Event::Claim(claim) => Event::Claim(claim),
            Event::Release(claim) => Event::Release(claim),
            Event::Cancel(claim) => Event::Cancel(claim),
            Event::Withdraw(claim) => Event::Withdraw(claim),
            Event::Renew { claim, shares } => Event::Renew { claim, shares },
            Event::Hear { from, message: it } => Event::Hear { from, message: message(it)? },
            Event::Ring(it) => Event::Ring(alarm(it)?),
            Event::Suspect(node) => Event::Suspect(node),
            Event::Trust(node) => Event::Trust(node),
            Event::Charter(word) => Event::Charter(word),
        })
    }
}

/// Something a participant wants from the world. The order of effects is their meaning. The tag is
/// a word, as that of [`Event`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Effect<M, A, D> {
    /// A barrier: what follows waits until this is on disk, replacing the record before it.
    Persist(D),
    /// Sends a message.
    Tell {
        /// To whom; never to itself.
        to: NodeId,
        /// What.
        message: M,
    },
    /// Sets an alarm; arming again replaces.
    Arm {
        /// Which.
        alarm: A,
        /// How long from now.
        after: Duration,
    },
    /// Stops an alarm that may or may not be armed.
    Disarm(A),
    /// A local client may use its units until it releases them or its deadline passes.
    Grant {
        /// The client's claim.
        claim: ClaimId,
        /// What it got.
        shares: Shares,
        /// When it must stop, on this driver's clock, unless the lease is extended.
        until: Moment,
    },
    /// A local client may go on until a later deadline. A client whose own deadline has passed has
    /// stopped, and this does not revive it.
    Extend {
        /// The client's claim.
        claim: ClaimId,
        /// The new deadline. One that is not later than the old changes nothing: answers may
        /// overtake each other on their way.
        until: Moment,
    },
    /// A local client may use one more unit, until the same deadline, and is asked to stop using
    /// another. It answers by [`Event::Renew`] without the one it left. Until then it has both, and
    /// nobody else may be given either.
    Move {
        /// The client's claim.
        claim: ClaimId,
        /// What it has now, both units among it.
        shares: Shares,
        /// What it should leave, and for what. In a box: it is rare, and every effect takes as much
        /// room as the largest.
        it: Box<Move>,
    },
    /// A local client's claim is over without a grant.
    Refuse {
        /// The client's claim.
        claim: ClaimId,
        /// Why.
        why: Refusal,
    },
    /// A local client no longer has what it was granted, and must stop now. It may hear that late
    /// or never: what it had stays in use until the client releases it or its deadline passes, and
    /// nobody may be given it before.
    Lose {
        /// The client's claim.
        claim: ClaimId,
    },
    /// For the record: as an arbiter, this participant took units back from a holder that did not
    /// renew.
    Reclaim {
        /// The holder's claim.
        claim: ClaimId,
        /// What it had.
        shares: Shares,
    },
    /// Asks the control plane whether this node still decides ([`Charter::Licensed`]). There may be
    /// no answer.
    AskLicence {
        /// In which term.
        term: u32,
        /// This driver's clock, to be echoed: a licence counts from before it was asked for.
        asked: Moment,
    },
    /// Tells the control plane that the shadow of this naming knows everything that this node
    /// granted in this term, so that it may be called whole ([`Charter::Shadowed`]): if it is still
    /// this term and this naming by then, and not otherwise.
    Vouch {
        /// In which term.
        term: u32,
        /// For which naming.
        naming: u64,
    },
    /// A message arrived that no correct peer could have sent. It changed nothing.
    Anomaly {
        /// Who sent it.
        peer: NodeId,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl<M, A, D> Effect<M, A, D> {
    /// The same effect, with another message, alarm or record in it.
    pub fn map<N, B, C>(
        self,
        message: impl FnOnce(M) -> N,
        alarm: impl FnOnce(A) -> B,
        record: impl FnOnce(D) -> C,
    ) -> Effect<N, B, C> {
        let Ok(effect) = self.try_map::<N, B, C, Infallible>(
            |it| Ok(message(it)),
            |it| Ok(alarm(it)),
            |it| Ok(record(it)),
        );
        effect
    }

    /// The same effect, if its message, alarm or record can be turned into another.
    ///
    /// # Errors
    /// What `message`, `alarm` or `record` said.
    pub fn try_map<N, B, C, E>(
        self,
        message: impl FnOnce(M) -> Result<N, E>,
        alarm: impl FnOnce(A) -> Result<B, E>,
        record: impl FnOnce(D) -> Result<C, E>,
    ) -> Result<Effect<N, B, C>, E> {
        Ok(match self {
            Effect::Persist(it) => Effect::Persist(record(it)?),
            Effect::Tell { to, message: it } => Effect::Tell { to, message: message(it)? },
            Effect::Arm { alarm: it, after } => Effect::Arm { alarm: alarm(it)?, after },
            Effect::Disarm(it) => Effect::Disarm(alarm(it)?),
            Effect::Grant { claim, shares, until } => Effect::Grant { claim, shares, until },
            Effect::Extend { claim, until } => Effect::Extend { claim, until },
            Effect::Move { claim, shares, it } => Effect::Move { claim, shares, it },
            Effect::Refuse { claim, why } => Effect::Refuse { claim, why },
            Effect::Lose { claim } => Effect::Lose { claim },
            Effect::Reclaim { claim, shares } => Effect::Reclaim { claim, shares },
            Effect::AskLicence { term, asked } => Effect::AskLicence { term, asked },
            Effect::Vouch { term, naming } => Effect::Vouch { term, naming },
            Effect::Anomaly { peer, what } => Effect::Anomaly { peer, what },
        })
    }
}

/// What happened, in one short line, as traces show it.
impl<M: fmt::Display, A: fmt::Display> fmt::Display for Event<M, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Claim(claim) => write!(f, "claim {} h{}", claim.id, claim.wanted.units),
            Event::Release(claim) => write!(f, "release {claim}"),
            Event::Cancel(claim) => write!(f, "cancel {claim}"),
            Event::Withdraw(claim) => write!(f, "withdraw {claim}"),
            Event::Renew { claim, .. } => write!(f, "renew {claim}"),
            Event::Hear { from, message } => write!(f, "< {from} {message}"),
            Event::Ring(alarm) => write!(f, "ring {alarm}"),
            Event::Suspect(node) => write!(f, "suspect {node}"),
            Event::Trust(node) => write!(f, "trust {node}"),
            Event::Charter(Charter::Applied(it) | Charter::Inherited(it, _)) => {
                write!(f, "term {} is {} boot {}", it.term, it.node, it.boot)
            }
            Event::Charter(Charter::Licensed { term, .. }) => write!(f, "licence for term {term}"),
            Event::Charter(Charter::Amended { edition }) => write!(f, "edition {edition}"),
            Event::Charter(Charter::Unpinned) => f.write_str("unpinned"),
            Event::Charter(Charter::Shadowed { term, shadow: None }) => {
                write!(f, "term {term} has no shadow")
            }
            Event::Charter(Charter::Shadowed { term, shadow: Some(it) }) => {
                let whole = if it.whole { ", which is whole" } else { "" };
                write!(f, "term {term} is shadowed by {}{whole}", it.node)
            }
        }
    }
}

/// What is wanted, in one short line, as traces show it.
impl<M: fmt::Display, A: fmt::Display, D> fmt::Display for Effect<M, A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Persist(_) => f.write_str("persist"),
            Effect::Tell { to, message } => write!(f, "> {to} {message}"),
            Effect::Arm { alarm, .. } => write!(f, "arm {alarm}"),
            Effect::Disarm(alarm) => write!(f, "disarm {alarm}"),
            Effect::Grant { claim, shares, .. } => write!(f, "GRANT {claim} {shares}"),
            Effect::Extend { claim, .. } => write!(f, "extend {claim}"),
            Effect::Move { claim, it, .. } => {
                write!(f, "MOVE {claim} {} to {} {}", it.from.unit, it.to.unit, it.to.fence)
            }
            Effect::Refuse { claim, why } => write!(f, "REFUSE {claim}: {why}"),
            Effect::Lose { claim } => write!(f, "LOSE {claim}"),
            Effect::Reclaim { claim, shares } => write!(f, "RECLAIM {claim} {shares}"),
            Effect::AskLicence { term, .. } => write!(f, "ask for term {term}"),
            Effect::Vouch { term, .. } => write!(f, "vouch for the shadow of term {term}"),
            Effect::Anomaly { peer, what } => write!(f, "ANOMALY from {peer}: {what}"),
        }
    }
}
