//! Connecting, and naming pools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_api::ClaimId;
use quorate_api::link::Token;
use tokio::sync::{oneshot, watch};

use crate::chance::entropy;
use crate::clock::Instant;
use crate::desk::{Command, Handle, Reach};
use crate::driver::Driver;
use crate::error::ConnectError;
use crate::pool::Pool;
use crate::server::Server;
use crate::session::{Greeting, Pace, Session};
use crate::tls::Tls;

/// How a client behaves; the defaults suit most.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who asks, in words that whoever waits behind will read; the default names the process.
    pub name: String,
    /// For how long [`crate::Pool::try_acquire`] waits for an answer, since even a free pool
    /// takes a few messages to say so.
    pub try_for: Duration,
    /// How long a release waits for its acknowledgement before it reports *unknown*.
    pub patience: Duration,
    /// What gives this client its rights, where clusters ask for that.
    pub token: Option<Token>,
    /// Whom to trust, for servers that are named with `https://`.
    pub tls: Option<Tls>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            name: format!("process {}", std::process::id()),
            try_for: Duration::from_millis(500),
            patience: Duration::from_secs(3),
            token: None,
            tls: None,
        }
    }
}

/// A connection to a cluster that survives its nodes: when one goes, another of the list is asked.
///
/// Cheap to clone; all clones share one connection, further ones to nodes that decide over pools
/// which are in use, and one background task. Must be made inside a
/// tokio runtime.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) try_for: Duration,
    reach: watch::Receiver<Reach>,
    patience: Duration,
    origin: u64,
    serial: AtomicU64,
}

impl Client {
    /// Connects to one node of this list: `HOST:PORT`, `http://HOST:PORT`,
    /// `https://HOST:PORT` or `unix:/PATH` each.
    ///
    /// # Errors
    /// The list makes no sense, or none of its nodes answers. Nothing was left behind.
    pub async fn connect<S: AsRef<str>>(
        servers: impl IntoIterator<Item = S>,
    ) -> Result<Client, ConnectError> {
        Client::connect_with(servers, Options::default()).await
    }

    /// The same with options.
    ///
    /// # Errors
    /// The list makes no sense, or none of its nodes answers. Nothing was left behind.
    pub async fn connect_with<S: AsRef<str>>(
        servers: impl IntoIterator<Item = S>,
        options: Options,
    ) -> Result<Client, ConnectError> {
        let servers: Vec<Server> =
            servers.into_iter().map(|s| Server::parse(s.as_ref())).collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(ConnectError::NoServers);
        }
        known(&servers, options.tls.as_ref())?;
        let pace = Pace { patience: options.patience, ..Pace::default() };
        let now = Instant::now();
        let greeting = Greeting { client: options.name.clone(), token: options.token.clone() };
        let session = Session::new(greeting, servers.len(), pace, entropy(), now);
        let (reach, mut reached) = watch::channel(Reach::Trying);
        let servers: Arc<[Server]> = servers.into();
        let handle = Handle::new(session, Arc::clone(&servers), reach);
        tokio::spawn(Driver::new(handle.desk(), servers, options.tls.clone()).run());
        // Without its task nothing is ever reached; whoever claims finds that out.
        let _ = reached.wait_for(|reach| *reach != Reach::Trying).await;
        if let Reach::Offline { why } = &*reached.borrow() {
            return Err(ConnectError::Unreachable { why: why.clone() });
        }
        let (origin, serial) = (entropy(), AtomicU64::new(1));
        let (Options { try_for, patience, .. }, reach) = (options, reached);
        let shared = Shared { handle, try_for, reach, patience, origin, serial };
        Ok(Client { shared: Arc::new(shared) })
    }

    /// Waits until whatever was dropped so far is released or cancelled, but not for longer than
    /// [`Options::patience`], and says whether nodes have acknowledged all of it: what they have
    /// not returns when its lease ends. Call it before the runtime ends.
    pub async fn settle(&self) -> bool {
        let (answer, settled) = oneshot::channel();
        self.shared.handle.send(Command::Settle { answer }).is_ok()
            && matches!(tokio::time::timeout(self.shared.patience, settled).await, Ok(Ok(())))
    }

    /// The node that answers now, as it was named.
    ///
    /// # Errors
    /// None of the list does, and this happened last. Claims, renewals and releases are repeated
    /// as soon as one does.
    pub fn server(&self) -> Result<String, ConnectError> {
        match &*self.shared.reach.borrow() {
            Reach::Online { server } => Ok(server.clone()),
            Reach::Trying => Err(ConnectError::Unreachable { why: "not tried yet".into() }),
            Reach::Offline { why } => Err(ConnectError::Unreachable { why: why.clone() }),
        }
    }

    /// A name for a claim that nobody else uses, for [`Pool::named`].
    pub fn new_id(&self) -> ClaimId {
        self.shared.next_id()
    }

    /// The pool of this name. Whether it exists shows when it is asked for units.
    pub fn pool(&self, name: impl Into<String>) -> Pool {
        Pool::new(Arc::clone(&self.shared), name.into())
    }
}

/// Whether it can be found out whom to trust.
pub(crate) fn known(servers: &[Server], tls: Option<&Tls>) -> Result<(), ConnectError> {
    match servers.iter().find(|server| server.is_secure() && tls.is_none()) {
        Some(server) => Err(ConnectError::NoAuthority { server: server.to_string() }),
        None => Ok(()),
    }
}

impl Shared {
    /// A name for a claim that nobody else uses: this client's random origin, and a count.
    pub(crate) fn next_id(&self) -> ClaimId {
        ClaimId::from_halves(self.origin, self.serial.fetch_add(1, Ordering::Relaxed))
    }
}
