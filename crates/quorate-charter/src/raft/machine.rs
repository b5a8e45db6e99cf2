//! The charter under the engine: entries in, documents out.
//!
//! Kept in memory, and rebuilt at a start from the snapshot and the entries after it. So it cannot
//! disagree with them after a crash, whichever write that interrupted.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use openraft::storage::RaftStateMachine;
use openraft::{
    EntryPayload, ErrorSubject, ErrorVerb, OptionalSend, RaftSnapshotBuilder, Snapshot,
    StorageIOError,
};
use tokio::sync::watch;

use super::log::wrong;
use super::store::{Store, StoreError};
use super::{Answer, Entry, LogId, Membership, SnapshotMeta, StorageError, Types};
use crate::{Charter, MemberId, Reading};

/// The state of one member.
#[derive(Debug)]
pub(crate) struct Machine {
    store: Store,
    applied: Option<LogId>,
    membership: Membership,
    charter: Arc<Charter>,
    readers: watch::Sender<Reading>,
}

/// A state, at rest: what a snapshot is made of.
#[derive(Debug)]
pub(crate) struct Still {
    store: Store,
    meta: SnapshotMeta,
    charter: Arc<Charter>,
}

impl Machine {
    /// The state that the snapshot has.
    pub(crate) fn new(store: Store) -> Result<Machine, StoreError> {
        let snapshot = store.snapshot().map_err(StoreError::Disk)?;
        let (meta, charter) = match snapshot {
            Some((meta, bytes)) => {
                let charter = Charter::from_bytes(&bytes);
                (meta, charter.map_err(|error| StoreError::Disk(error.to_string()))?)
            }
            None => (SnapshotMeta::default(), Charter::default()),
        };
        let (readers, _) = watch::channel(Reading::default());
        let (applied, membership) = (meta.last_log_id, meta.last_membership);
        let machine = Machine { store, applied, membership, charter: charter.into(), readers };
        machine.publish();
        Ok(machine)
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Reading> {
        self.readers.subscribe()
    }

    fn publish(&self) {
        let applied = self.applied.map_or(0, |id| id.index);
        self.readers.send_replace(Reading { applied, charter: Arc::clone(&self.charter) });
    }

    /// The state as it is now, and the last entry that it has.
    pub(super) fn now(&self) -> (Option<LogId>, Arc<Charter>) {
        (self.applied, Arc::clone(&self.charter))
    }

    pub(super) fn take(&mut self, entry: Entry) -> Answer {
        let index = entry.log_id.index;
        self.applied = Some(entry.log_id);
        match entry.payload {
            EntryPayload::Blank => Answer(None),
            EntryPayload::Normal(request) => {
                Answer(Some(Arc::make_mut(&mut self.charter).apply(index, &request)))
            }
            EntryPayload::Membership(membership) => {
                let voters: BTreeSet<_> = membership.voter_ids().map(MemberId).collect();
                Arc::make_mut(&mut self.charter).votes(index, &voters);
                self.membership = Membership::new(Some(entry.log_id), membership);
                Answer(None)
            }
        }
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = Still;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Answer>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let answers = entries.into_iter().map(|entry| self.take(entry)).collect();
        self.publish();
        Ok(answers)
    }

    async fn get_snapshot_builder(&mut self) -> Still {
        let meta = SnapshotMeta {
            last_log_id: self.applied,
            last_membership: self.membership.clone(),
            snapshot_id: self.applied.map_or_else(|| "empty".into(), |id| id.to_string()),
        };
        Still { store: self.store.clone(), meta, charter: Arc::clone(&self.charter) }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let bytes = snapshot.into_inner();
        let charter = Charter::from_bytes(&bytes)
            .map_err(|error| StorageIOError::read_snapshot(Some(meta.signature()), &error))?;
        save(&self.store, meta, bytes).await?;
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.charter = charter.into();
        self.publish();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let read = self.store.snapshot();
        let read = read.map_err(|error| wrong(ErrorSubject::Store, ErrorVerb::Read, error))?;
        Ok(read.map(|(meta, bytes)| Snapshot { meta, snapshot: Box::new(Cursor::new(bytes)) }))
    }
}

impl RaftSnapshotBuilder<Types> for Still {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let bytes = self.charter.to_bytes();
        save(&self.store, &self.meta, bytes.clone()).await?;
        Ok(Snapshot { meta: self.meta.clone(), snapshot: Box::new(Cursor::new(bytes)) })
    }
}

/// On disk, before anybody rests on it: what a snapshot has is purged from the log next.
async fn save(store: &Store, meta: &SnapshotMeta, bytes: Vec<u8>) -> Result<(), StorageError> {
    let (store, copy) = (store.clone(), meta.clone());
    let done = tokio::task::spawn_blocking(move || store.save_snapshot(&copy, &bytes)).await;
    let done = done.map_err(|error| error.to_string()).flatten();
    let subject = ErrorSubject::Snapshot(Some(meta.signature()));
    done.map_err(|error| wrong(subject, ErrorVerb::Write, error))
}
