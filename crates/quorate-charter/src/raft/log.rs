//! The engine's log, in the store.

use std::fmt::Debug;
use std::ops::RangeBounds;

use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::{AnyError, ErrorSubject, ErrorVerb, OptionalSend, RaftLogReader, StorageIOError};

use super::store::{Store, Wrong};
use super::{Entry, LogId, StorageError, Types, Vote};

/// Entries of more bytes than this do not travel together.
const BATCH_BYTES: usize = 1 << 20;

/// The log of one member. Writes happen one after the other: the engine waits for each.
#[derive(Clone, Debug)]
pub(crate) struct Log(pub(crate) Store);

impl Log {
    /// Writes on a thread that may block. Once begun it is done, even if nobody waits any more.
    async fn write(
        &self,
        what: ErrorSubject<u64>,
        write: impl FnOnce(&Store) -> Result<(), Wrong> + Send + 'static,
    ) -> Result<(), StorageError> {
        let store = self.0.clone();
        let done = tokio::task::spawn_blocking(move || write(&store)).await;
        done.map_err(|error| error.to_string())
            .flatten()
            .map_err(|error| wrong(what, ErrorVerb::Write, error))
    }
}

pub(super) fn wrong(what: ErrorSubject<u64>, verb: ErrorVerb, error: Wrong) -> StorageError {
    StorageIOError::new(what, verb, AnyError::error(error)).into()
}

fn unread(what: ErrorSubject<u64>) -> impl FnOnce(Wrong) -> StorageError {
    move |error| wrong(what, ErrorVerb::Read, error)
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        self.0.entries(range, usize::MAX).map_err(unread(ErrorSubject::Logs))
    }

    /// What travels at once: as many as fit, and one at least.
    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        self.0.entries(start..end, BATCH_BYTES).map_err(unread(ErrorSubject::Logs))
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Log;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let unread = || unread(ErrorSubject::Logs);
        let last_purged_log_id = self.0.purged().map_err(unread())?;
        let last_log_id = self.0.last().map_err(unread())?.or(last_purged_log_id);
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> Log {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let vote = *vote;
        self.write(ErrorSubject::Vote, move |store| store.save_vote(&vote)).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        self.0.vote().map_err(unread(ErrorSubject::Vote))
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        self.write(ErrorSubject::Store, move |store| store.save_committed(committed)).await
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        self.0.committed().map_err(unread(ErrorSubject::Store))
    }

    async fn append<I>(
        &mut self,
        entries: I,
        flushed: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        self.write(ErrorSubject::Logs, move |store| store.append(&entries)).await?;
        flushed.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId) -> Result<(), StorageError> {
        self.write(ErrorSubject::Logs, move |store| store.truncate(from.index)).await
    }

    async fn purge(&mut self, up_to: LogId) -> Result<(), StorageError> {
        self.write(ErrorSubject::Logs, move |store| store.purge(up_to)).await
    }
}
