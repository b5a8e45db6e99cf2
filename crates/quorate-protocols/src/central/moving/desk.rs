//! What the two halves of a seat that moves say during one step.

use std::collections::VecDeque;
use std::time::Duration;

use quorate_core::{Effect, EffectOf, NodeId, Outbox};

use super::reign::Reign;
use super::{Alarm, Moving, Seat, Word};
use crate::central::Central;

/// One step under way: where effects go, and what the two halves of a seat have said and nobody has
/// heard yet.
pub(super) struct Desk<'a> {
    pub(super) out: &'a mut Outbox<Moving>,
    pub(super) words: VecDeque<Said>,
}

/// A word of one half of a seat, for the other half there or at another node.
pub(super) struct Said {
    pub(super) to: NodeId,
    pub(super) term: u32,
    /// By which lease it promises something, where that is said.
    pub(super) lease: Option<Duration>,
    pub(super) word: Word,
}

impl Desk<'_> {
    /// Passes on what one half of the seat wants, in its order; `lease` says by which one a word
    /// promises something.
    pub(super) fn take(
        &mut self,
        me: NodeId,
        term: u32,
        inner: &mut Outbox<Central>,
        (own, lease): (Vec<Word>, impl Fn(&Word) -> Option<Duration>),
    ) {
        let said = |to, word| Said { to, term, lease: lease(&word), word };
        for effect in inner.drain() {
            match effect {
                Effect::Tell { to, message } => self.words.push_back(said(to, message)),
                other => self.out.push(lifted(other)),
            }
        }
        self.words.extend(own.into_iter().map(|word| said(me, word)));
    }

    /// Passes on what the seat of a term has to say.
    pub(super) fn say(&mut self, seat: &Seat<'_>, reign: &Reign, words: Vec<(NodeId, Word)>) {
        let term = reign.tenure.term;
        let said = |(to, word)| Said { to, term, lease: reign.lease(seat, &word), word };
        self.words.extend(words.into_iter().map(said));
    }
}

/// What a pinned seat wants, as one that moves wants it.
fn lifted(effect: EffectOf<Central>) -> EffectOf<Moving> {
    effect.map(
        |_| unreachable!("what is told is looked at first"),
        Alarm::Of,
        |_| unreachable!("a seat that moves writes nothing down"),
    )
}
