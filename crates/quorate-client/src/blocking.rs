//! The same for programs without an async runtime: calls that wait block their thread.
//!
//! A client brings a runtime of its own, with one thread that renews grants in the background. It
//! must not be used, nor dropped, inside another runtime: there, use [`crate::Client`].

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use quorate_api::{ClaimId, Want};
use tokio::runtime::{Builder, Runtime};

use crate::error::{AcquireError, ConnectError, Lost, ReleaseError, TryAcquireError};
use crate::{Options, client, grant, pool};

/// A connection to a cluster, see [`crate::Client`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    inner: client::Client,
    engine: Engine,
}

/// What drives a client, until the last of its clones, pools and grants is gone.
#[derive(Clone)]
struct Engine(Arc<Runtime>);

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine")
    }
}

impl Client {
    /// Connects to one node of this list: `HOST:PORT`, `http://HOST:PORT`,
    /// `https://HOST:PORT` or `unix:/PATH` each.
    ///
    /// # Errors
    /// The list makes no sense, or none of its nodes answers. Nothing was left behind.
    ///
    /// # Panics
    /// Inside an async runtime, or if the system allows no further thread.
    pub fn connect<S: AsRef<str>>(
        servers: impl IntoIterator<Item = S>,
    ) -> Result<Client, ConnectError> {
        Client::connect_with(servers, Options::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// The list makes no sense, or none of its nodes answers. Nothing was left behind.
    ///
    /// # Panics
    /// Inside an async runtime, or if the system allows no further thread.
    pub fn connect_with<S: AsRef<str>>(
        servers: impl IntoIterator<Item = S>,
        options: Options,
    ) -> Result<Client, ConnectError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("quorate-client")
            .enable_all()
            .build()
            .expect("the system allows a thread");
        let inner = runtime.block_on(client::Client::connect_with(servers, options))?;
        Ok(Client { inner, engine: Engine(Arc::new(runtime)) })
    }

    /// The pool of this name. Whether it exists shows when it is asked for units.
    pub fn pool(&self, name: impl Into<String>) -> Pool {
        Pool { inner: self.inner.pool(name), client: self.clone() }
    }
}

/// A pool, see [`crate::Pool`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: pool::Pool,
    client: Client,
}

impl Pool {
    /// The same pool; claims made through it say what for.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Pool {
        self.inner = self.inner.reason(reason);
        self
    }

    /// The same pool; claims made through it have this name, see [`crate::Pool::named`].
    #[must_use]
    pub fn named(mut self, id: ClaimId) -> Pool {
        self.inner = self.inner.named(id);
        self
    }

    /// Waits for units, all at once: so many, or a [`Want`] that says which.
    ///
    /// # Errors
    /// They will not be granted: see [`AcquireError`].
    pub fn acquire(&self, want: impl Into<Want>) -> Result<Grant, AcquireError> {
        self.wait(self.inner.acquire_many(want))
    }

    /// Waits for units, for at most this long.
    ///
    /// # Errors
    /// They were not granted in time or will not be; [`AcquireError::Unknown`] if even that could
    /// not be found out.
    pub fn acquire_timeout(
        &self,
        want: impl Into<Want>,
        within: Duration,
    ) -> Result<Grant, AcquireError> {
        self.wait(self.inner.acquire_timeout(want, within))
    }

    /// Takes units if they are free now.
    ///
    /// # Errors
    /// They are not free, or never will be: see [`TryAcquireError`].
    pub fn try_acquire(&self, want: impl Into<Want>) -> Result<Grant, TryAcquireError> {
        self.wait(self.inner.try_acquire_many(want))
    }

    fn wait<E>(&self, granted: impl Future<Output = Result<grant::Grant, E>>) -> Result<Grant, E> {
        let inner = self.client.engine.0.block_on(granted)?;
        Ok(Grant { inner: Some(inner), client: self.client.clone() })
    }
}

/// Units, see [`crate::Grant`], whose methods that wait for nothing are its own. It is renewed in
/// the background: look at [`crate::Grant::is_lost`] before each step that needs the units.
///
/// Dropping it gives the units back and waits for a node to acknowledge that, for as long as
/// [`Options::patience`] says.
#[derive(Debug)]
pub struct Grant {
    /// There until it is released.
    inner: Option<grant::Grant>,
    client: Client,
}

impl Grant {
    /// Gives the units back and waits until a node acknowledged it.
    ///
    /// # Errors
    /// The units had been lost before, or no node acknowledged in time: see [`ReleaseError`].
    pub fn release(mut self) -> Result<(), ReleaseError> {
        let inner = self.inner.take().expect("it is released once");
        self.client.engine.0.block_on(inner.release())
    }

    /// Waits until the grant is lost, for at most this long; `None` if it is not.
    pub fn lost_within(&self, span: Duration) -> Option<Lost> {
        let engine = &self.client.engine.0;
        engine.block_on(async { tokio::time::timeout(span, self.lost()).await.ok() })
    }
}

impl Deref for Grant {
    type Target = grant::Grant;

    fn deref(&self) -> &grant::Grant {
        self.inner.as_ref().expect("it is there until it is released")
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            drop(inner);
            self.client.engine.0.block_on(self.client.inner.settle());
        }
    }
}
