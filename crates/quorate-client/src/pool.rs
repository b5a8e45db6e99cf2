//! Acquiring units of one pool, with tokio's names.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::{ClaimId, Want};
use tokio::sync::oneshot;

use crate::client::Shared;
use crate::clock::Instant;
use crate::desk::{Command, Handle};
use crate::error::{AcquireError, RunError, TryAcquireError};
use crate::grant::Grant;

/// A pool as a client uses it. Cheap to clone.
///
/// Every `acquire` is cancel-safe: dropping its future cancels the claim, and loses its place in
/// the queue. A cancelled claim that was granted meanwhile is released.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    name: Arc<str>,
    reason: String,
    id: Option<ClaimId>,
}

impl Pool {
    pub(crate) fn new(shared: Arc<Shared>, name: String) -> Pool {
        Pool { shared, name: name.into(), reason: String::new(), id: None }
    }

    /// The same pool; claims made through it say what for.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Pool {
        self.reason = reason.into();
        self
    }

    /// The same pool; claims made through it have this name. Making the same claim again, here or
    /// in another process, is the same claim: it gets what was granted before.
    #[must_use]
    pub fn named(mut self, id: ClaimId) -> Pool {
        self.id = Some(id);
        self
    }

    /// Waits for one unit.
    ///
    /// # Errors
    /// It will not be granted: see [`AcquireError`].
    pub async fn acquire(&self) -> Result<Grant, AcquireError> {
        self.acquire_many(1).await
    }

    /// Waits for units, all at once: so many, or a [`Want`] that says which.
    ///
    /// # Errors
    /// They will not be granted: see [`AcquireError`].
    pub async fn acquire_many(&self, want: impl Into<Want>) -> Result<Grant, AcquireError> {
        self.claim(want.into(), None).await
    }

    /// Takes one unit if it is free now.
    ///
    /// # Errors
    /// None is free, or never will be: see [`TryAcquireError`].
    pub async fn try_acquire(&self) -> Result<Grant, TryAcquireError> {
        self.try_acquire_many(1).await
    }

    /// Waits for units, does the work while it has them, and gives them back. If they are lost or
    /// revoked meanwhile, the work is stopped: its future is dropped where it waits, so it must not
    /// block its thread.
    ///
    /// # Errors
    /// Nothing was granted, or the units were lost before the work was done: see [`RunError`].
    pub async fn run<T>(
        &self,
        want: impl Into<Want>,
        work: impl AsyncFnOnce(&Grant) -> T,
    ) -> Result<T, RunError> {
        let grant = self.acquire_many(want).await?;
        let done = tokio::select! {
            biased;
            lost = grant.lost() => Err(RunError::Lost(lost)),
            result = work(&grant) => Ok(result),
        };
        // The work is over either way. What no node acknowledges returns with its lease.
        let _ = grant.release().await;
        done
    }

    /// Takes units if they are free now, where *now* is as long as it takes to ask
    /// ([`crate::Options::try_for`]).
    ///
    /// # Errors
    /// They are not free, or never will be: see [`TryAcquireError`].
    pub async fn try_acquire_many(&self, want: impl Into<Want>) -> Result<Grant, TryAcquireError> {
        match self.acquire_timeout(want, self.shared.try_for).await {
            Ok(grant) => Ok(grant),
            Err(AcquireError::Timeout { .. }) => Err(TryAcquireError::NoUnits),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for units, for at most this long; then the claim is cancelled, which takes a
    /// moment longer.
    ///
    /// # Errors
    /// They were not granted in time or will not be; [`AcquireError::Unknown`] if even that could
    /// not be found out.
    pub async fn acquire_timeout(
        &self,
        want: impl Into<Want>,
        within: Duration,
    ) -> Result<Grant, AcquireError> {
        let give_up_at = Instant::now().checked_add(within);
        self.claim(want.into(), give_up_at).await
    }

    async fn claim(
        &self,
        mut want: Want,
        give_up_at: Option<Instant>,
    ) -> Result<Grant, AcquireError> {
        if want.units() == 0 {
            return Err(AcquireError::None);
        }
        let id = self.id.unwrap_or_else(|| self.shared.next_id());
        let (answer, granted) = oneshot::channel();
        if want.reason.is_empty() {
            want.reason.clone_from(&self.reason);
        }
        let handle = &self.shared.handle;
        let claim = Command::Claim { pool: Arc::clone(&self.name), id, want, give_up_at, answer };
        handle.send(claim).map_err(|_| AcquireError::Closed)?;
        let mut waiting = Waiting { id, handle, over: false };
        let outcome = granted.await;
        waiting.over = true;
        outcome.unwrap_or(Err(AcquireError::Closed))
    }
}

/// Cancels the claim if its future is dropped before it is over.
struct Waiting<'a> {
    id: ClaimId,
    handle: &'a Handle,
    over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.handle.send(Command::Abandon { id: self.id });
        }
    }
}
