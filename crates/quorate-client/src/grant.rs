//! The guard of a grant: units, fences, and the truth about how long they last.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_api::ClaimId;
use quorate_api::link::{About, Move, Share};
use tokio::sync::{oneshot, watch};

use crate::clock::{self, Instant};
use crate::desk::{Command, Handle};
use crate::error::{Lost, ReleaseError};

/// What the driver knows about a grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Life {
    pub(crate) deadline: Instant,
    pub(crate) lost: Option<Lost>,
    /// What it was asked to do since it was granted.
    pub(crate) moves: Vec<Move>,
}

/// Units that may be used until they are released, lost, or the deadline passes.
///
/// It is renewed in the background while it exists. **A grant is not a lock**: a process that is
/// paused past its deadline still believes what it was about to do. Hand the [fences](Self::fences)
/// to whatever the units protect, and let it refuse smaller ones than it has seen.
///
/// Dropping it releases the units, but a drop cannot wait: the release is handed to the client's
/// background task and happens soon, or, if the runtime ends first, when the lease does. Call
/// [`Grant::release`] to know that it happened.
#[derive(Debug)]
pub struct Grant {
    pub(crate) id: ClaimId,
    pub(crate) pool: Arc<str>,
    pub(crate) shares: Vec<Share>,
    pub(crate) about: Vec<About>,
    pub(crate) counted: bool,
    pub(crate) lease: Duration,
    pub(crate) life: watch::Receiver<Life>,
    pub(crate) handle: Handle,
    pub(crate) released: bool,
}

impl Grant {
    /// The claim that was granted.
    pub fn id(&self) -> ClaimId {
        self.id
    }

    /// The pool the units belong to.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// How many units.
    pub fn count(&self) -> usize {
        self.shares.len()
    }

    /// Which units, ascending; none if the pool only counts.
    pub fn units(&self) -> Vec<u32> {
        self.shares().iter().map(|share| share.unit).collect()
    }

    /// The fence of each unit, in the order of [`Self::units`].
    pub fn fences(&self) -> Vec<u64> {
        self.shares().iter().map(|share| share.fence).collect()
    }

    /// Units with their fences; none if the pool only counts, since nothing could be made of them.
    pub fn shares(&self) -> &[Share] {
        if self.counted { &[] } else { &self.shares }
    }

    /// What each unit is called, in the order of [`Self::units`]: its name if the pool's units have
    /// names, else its number.
    pub fn names(&self) -> Vec<String> {
        let name = |(at, share): (usize, &Share)| match self.about.get(at) {
            Some(about) => about.name.clone(),
            None => share.unit.to_string(),
        };
        self.shares().iter().enumerate().map(name).collect()
    }

    /// The labels of each unit, in the order of [`Self::units`]; empty where it has none.
    pub fn labels(&self) -> Vec<BTreeMap<String, String>> {
        let labels =
            |at: usize| self.about.get(at).map(|about| about.labels.clone()).unwrap_or_default();
        (0..self.shares().len()).map(labels).collect()
    }

    /// How long one lease of the pool is; a renewal makes the deadline at most this far away.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// Until when the units may be used, as far as is known now: later after every renewal.
    pub fn deadline(&self) -> Instant {
        self.life.borrow().deadline
    }

    /// How long the units may be used from now on, if nothing is renewed; zero once lost.
    pub fn remaining(&self) -> Duration {
        let life = self.life.borrow();
        match &life.lost {
            Some(Lost::Deadline | Lost::Told { .. }) => Duration::ZERO,
            Some(Lost::Revoked { .. }) | None => {
                life.deadline.saturating_duration_since(Instant::now())
            }
        }
    }

    /// Whether it is lost or about to be, and how.
    pub fn is_lost(&self) -> Option<Lost> {
        let life = self.life.borrow();
        match &life.lost {
            Some(lost) => Some(lost.clone()),
            None if life.deadline <= Instant::now() => Some(Lost::Deadline),
            None => None,
        }
    }

    /// Waits until the grant is lost, which it need not ever be. After [`Lost::Revoked`] the units
    /// may be used until the deadline; otherwise they must not be used any more.
    ///
    /// It does not depend on the background task: a deadline is noticed even if that is late.
    pub async fn lost(&self) -> Lost {
        let mut life = self.life.clone();
        loop {
            let deadline = {
                let now = life.borrow_and_update();
                if let Some(lost) = &now.lost {
                    return lost.clone();
                }
                now.deadline
            };
            if deadline <= Instant::now() {
                return Lost::Deadline;
            }
            tokio::select! {
                () = clock::sleep_until(deadline) => {}
                changed = life.changed() => if changed.is_err() {
                    // The task that renews is gone; the deadline stands.
                    clock::sleep_until(deadline).await;
                    return Lost::Deadline;
                },
            }
        }
    }

    /// What it is asked to do and has not done ([`Self::moved`]): units to leave, each with the one
    /// to use instead, which is there already. Only a claim that said [`crate::Want::movable`] is
    /// asked. Nobody else gets a unit before it was left.
    pub fn moves(&self) -> Vec<Move> {
        let life = self.life.borrow();
        let due = |it: &&Move| self.shares.contains(&it.from);
        life.moves.iter().filter(due).cloned().collect()
    }

    /// Waits until it is asked to move, which it need not ever be.
    pub async fn asked_to_move(&self) -> Move {
        let mut life = self.life.clone();
        loop {
            life.mark_unchanged();
            if let Some(it) = self.moves().into_iter().next() {
                return it;
            }
            if life.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Says that the unit to leave is no longer used, and the other one is: from now on
    /// [`Self::units`] has that, and somebody else may have the first.
    pub fn moved(&mut self, it: &Move) {
        let Some(at) = self.shares.iter().position(|share| *share == it.from) else { return };
        self.shares.remove(at);
        let place = self.shares.partition_point(|share| *share < it.to);
        self.shares.insert(place, it.to);
        if at < self.about.len() {
            self.about.remove(at);
            self.about.insert(place.min(self.about.len()), it.about.clone());
        }
        let _ = self.handle.send(Command::Left { id: self.id, unit: it.from });
    }

    /// Waits until the deadline moves, the grant is lost, or it is asked to move.
    pub async fn changed(&mut self) {
        if self.life.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Gives the units back and waits until a node acknowledged it.
    ///
    /// # Errors
    /// The units had been lost before, or no node acknowledged in time: see [`ReleaseError`].
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        self.released = true;
        if let Some(lost @ (Lost::Deadline | Lost::Told { .. })) = self.is_lost() {
            // The task may not have looked at its clock yet.
            let _ = self.handle.send(Command::Abandon { id: self.id });
            return Err(ReleaseError::Lost(lost));
        }
        let (answer, outcome) = oneshot::channel();
        self.handle
            .send(Command::Release { id: self.id, answer })
            .map_err(|_| ReleaseError::Closed)?;
        outcome.await.unwrap_or(Err(ReleaseError::Closed))
    }

    /// Keeps the units held without this guard: nothing renews or releases them any more, and they
    /// return when their lease ends, unless somebody who knows [`Self::id`] renews them.
    pub fn forget(mut self) {
        self.released = true;
        let _ = self.handle.send(Command::Forget { id: self.id });
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.released {
            // If the task is gone the lease ends by itself.
            let _ = self.handle.send(Command::Abandon { id: self.id });
        }
    }
}
