//! What every client's connection needs to know.

use std::sync::Arc;

use quorate_api::{Change, Problem};
use quorate_core::{ClaimId, Moment};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::config::Config;
use crate::engine::{Ask, Command, stopping};
use crate::ledger::{Recipient, Snapshot, Waiter};
use crate::metrics::Metrics;

/// What every client's connection needs to know.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) config: Arc<Config>,
    pub(crate) boot: u32,
    pub(crate) engine: mpsc::Sender<Command>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl App {
    /// Returns when the node stops.
    pub(crate) async fn stopped(&mut self) {
        // If the sender is gone, so is the node.
        let _ = self.stopping.wait_for(|stopping| *stopping).await;
    }

    /// Asks the engine about a claim.
    pub(crate) async fn ask(
        &self,
        pool: &str,
        id: ClaimId,
        ask: Ask,
        received: Moment,
    ) -> Result<Snapshot, Problem> {
        let (reply, answer) = oneshot::channel();
        let waiter = Waiter { received, to: Recipient::Http(reply) };
        self.tell(Command::Client { pool: pool.to_owned(), id, ask, waiter }).await?;
        answer.await.map_err(|_| stopping())?
    }

    /// Asks the engine for anything else.
    pub(crate) async fn fetch<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Problem> {
        let (reply, answer) = oneshot::channel();
        self.tell(command(reply)).await?;
        answer.await.map_err(|_| stopping())
    }

    async fn tell(&self, command: Command) -> Result<(), Problem> {
        self.engine.send(command).await.map_err(|_| stopping())
    }
}
