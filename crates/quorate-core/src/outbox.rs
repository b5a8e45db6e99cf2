//! What a participant wants from the world in one step.

use std::time::Duration;

use crate::{ClaimId, Effect, EffectOf, Moment, Move, NodeId, Protocol, Refusal, Share, Shares};

/// The effects of a single step. A driver empties it before it may step again.
#[derive(Debug)]
pub struct Outbox<P: Protocol> {
    /// Places are kept from step to step, and an effect is written where it stays: to put together
    /// elsewhere and then copy what takes several words is slower than most steps of a simulation.
    places: Vec<Option<EffectOf<P>>>,
    used: usize,
}

impl<P: Protocol> Default for Outbox<P> {
    fn default() -> Self {
        Outbox { places: Vec::new(), used: 0 }
    }
}

impl<P: Protocol> Outbox<P> {
    /// An empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the effects out in order, keeping the room for the next step. What is not taken is
    /// gone.
    #[inline]
    pub fn drain(&mut self) -> Drain<'_, P> {
        let used = std::mem::take(&mut self.used);
        Drain { places: self.places[..used].iter_mut() }
    }

    /// How many effects there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.used
    }

    /// The place of one of the effects, for a driver that takes each where it lies and then calls
    /// [`Self::restart`]. The simulator does: half of its inner loop is to bring a message straight
    /// from its place here to its place in the queue, and [`Self::drain`] would copy it once more.
    /// Whoever sends no messages by the million drains.
    #[inline]
    pub fn at(&mut self, position: usize) -> &mut Option<EffectOf<P>> {
        &mut self.places[position]
    }

    /// Begins anew after every effect was taken from its place. If one was not, the next effect
    /// that is put there panics.
    #[inline]
    pub fn restart(&mut self) {
        self.used = 0;
    }

    /// The effects so far.
    pub fn effects(&self) -> impl Iterator<Item = &EffectOf<P>> + '_ {
        self.places[..self.used].iter().flatten()
    }

    /// Whether nothing is wanted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Where the next effect goes.
    #[inline(always)]
    fn place(&mut self) -> &mut Option<EffectOf<P>> {
        if self.used == self.places.len() {
            self.grow();
        }
        let place = &mut self.places[self.used];
        assert!(place.is_none(), "a place is emptied before it is used again");
        self.used += 1;
        place
    }

    /// An effect that is there already, of a participant inside this one, say.
    pub fn push(&mut self, effect: EffectOf<P>) {
        self.put(|| effect);
    }

    #[inline(always)]
    fn put(&mut self, effect: impl FnOnce() -> EffectOf<P>) {
        let place = self.place(); // Before the effect, which would be put together elsewhere.
        // Nothing was there, which a compiler does not see: it would look whether to drop it.
        std::mem::forget(place.replace(effect()));
    }

    #[cold]
    fn grow(&mut self) {
        let more = self.used.max(4);
        self.places.resize_with(self.used + more, || None);
    }

    /// See [`Effect::Persist`].
    pub fn persist(&mut self, record: P::Durable) {
        self.put(|| Effect::Persist(record));
    }

    /// See [`Effect::Tell`].
    #[inline(always)]
    pub fn tell(&mut self, to: NodeId, message: P::Message) {
        self.tell_with(to, || message);
    }

    /// The same, for messages sent by the million: the message is put together in its place.
    #[inline(always)]
    pub fn tell_with(&mut self, to: NodeId, message: impl FnOnce() -> P::Message) {
        self.put(|| Effect::Tell { to, message: message() });
    }

    /// See [`Effect::Arm`].
    #[inline]
    pub fn arm(&mut self, alarm: P::Alarm, after: Duration) {
        self.put(|| Effect::Arm { alarm, after });
    }

    /// See [`Effect::Disarm`].
    #[inline]
    pub fn disarm(&mut self, alarm: P::Alarm) {
        self.put(|| Effect::Disarm(alarm));
    }

    /// See [`Effect::Grant`].
    #[inline]
    pub fn grant(&mut self, claim: ClaimId, shares: Shares, until: Moment) {
        self.put(|| Effect::Grant { claim, shares, until });
    }

    /// See [`Effect::Extend`].
    #[inline]
    pub fn extend(&mut self, claim: ClaimId, until: Moment) {
        self.put(|| Effect::Extend { claim, until });
    }

    /// See [`Effect::Move`].
    pub fn ask_to_move(&mut self, claim: ClaimId, shares: Shares, from: Share, to: Share) {
        self.put(|| Effect::Move { claim, shares, it: Box::new(Move { from, to }) });
    }

    /// See [`Effect::Refuse`].
    pub fn refuse(&mut self, claim: ClaimId, why: Refusal) {
        self.put(|| Effect::Refuse { claim, why });
    }

    /// See [`Effect::Lose`].
    pub fn lose(&mut self, claim: ClaimId) {
        self.put(|| Effect::Lose { claim });
    }

    /// See [`Effect::Reclaim`].
    pub fn reclaim(&mut self, claim: ClaimId, shares: Shares) {
        self.put(|| Effect::Reclaim { claim, shares });
    }

    /// See [`Effect::AskLicence`].
    pub fn ask_licence(&mut self, term: u32, asked: Moment) {
        self.put(|| Effect::AskLicence { term, asked });
    }

    /// See [`Effect::Vouch`].
    pub fn vouch(&mut self, term: u32, naming: u64) {
        self.put(|| Effect::Vouch { term, naming });
    }

    /// See [`Effect::Anomaly`].
    pub fn anomaly(&mut self, peer: NodeId, what: &'static str) {
        self.put(|| Effect::Anomaly { peer, what });
    }
}

/// See [`Outbox::drain`].
#[derive(Debug)]
pub struct Drain<'a, P: Protocol> {
    places: std::slice::IterMut<'a, Option<EffectOf<P>>>,
}

impl<P: Protocol> Iterator for Drain<'_, P> {
    type Item = EffectOf<P>;

    #[inline(always)]
    fn next(&mut self) -> Option<EffectOf<P>> {
        self.places.next()?.take()
    }
}

impl<P: Protocol> Drop for Drain<'_, P> {
    #[inline]
    fn drop(&mut self) {
        for place in &mut self.places {
            *place = None;
        }
    }
}
