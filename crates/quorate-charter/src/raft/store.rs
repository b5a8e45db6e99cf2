//! What a member of the control plane keeps, in one redb file.
//!
//! | table | holds |
//! |---|---|
//! | `charter` | one line each: who this store belongs to, the vote, the last committed entry known, the last purged entry, the snapshot's description and the snapshot |
//! | `charter-log` | entries by index |
//!
//! Vote, append, truncate, purge and snapshot are one transaction each, and on disk before anybody
//! hears of them. Only the last committed entry may lag: it saves reading the log again after a
//! start, and is written along with the next of the others.
//!
//! The charter itself is not written at every entry: it is the snapshot and the entries after it.

use std::fmt::Display;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Entry, LogId, SnapshotMeta, Vote};
use crate::{Birth, ClusterId, MemberId};

const LINES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("charter");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("charter-log");

const IDENTITY: &str = "identity";
const VOTE: &str = "vote";
const COMMITTED: &str = "committed";
const PURGED: &str = "purged";
const SNAPSHOT_META: &str = "snapshot-meta";
const SNAPSHOT: &str = "snapshot";

/// The form of what is written, in the first byte of every line and entry.
const FORM: u8 = 1;

/// Whose store this is. Written once, when it is made; never taken from a configuration again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster.
    pub cluster: ClusterId,
    /// The member.
    pub member: MemberId,
    /// Drawn for this store.
    pub birth: Birth,
}

/// Why a store cannot be used. Nothing was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, or what is on it.
    #[error("the store of the control plane: {0}")]
    Disk(String),
    /// Nobody's.
    #[error(
        "this store belongs to nobody: a member whose store is lost does not come back; \
         remove it and let the machine join as a new member"
    )]
    Empty,
    /// Somebody's.
    #[error(
        "this store belongs to member {} of cluster {} already; nothing was changed",
        .0.member,
        .0.cluster
    )]
    Taken(Identity),
}

/// The store of one member.
#[derive(Clone, Debug)]
pub struct Store {
    database: Arc<Database>,
    identity: Identity,
}

/// What can go wrong with bytes and disks, in words.
pub(super) type Wrong = String;

impl Store {
    /// Makes the store of a new member: of the founder, or of one that has been told its id.
    ///
    /// # Errors
    /// There is a store already, or no disk.
    pub fn create(path: &Path, identity: Identity) -> Result<Store, StoreError> {
        Store::create_in(Database::create(path).map_err(disk)?, identity)
    }

    /// Opens the store of a member.
    ///
    /// # Errors
    /// It is nobody's, which a wiped directory is; or it cannot be read.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Store::open_in(Database::open(path).map_err(|error| match error {
            redb::DatabaseError::Storage(redb::StorageError::Io(error))
                if error.kind() == std::io::ErrorKind::NotFound =>
            {
                StoreError::Empty
            }
            error => disk(error),
        })?)
    }

    /// Makes a store that ends with the process, for a cluster that does.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn in_memory(identity: Identity) -> Result<Store, StoreError> {
        let backend = redb::backends::InMemoryBackend::new();
        let database = Database::builder().create_with_backend(backend).map_err(disk)?;
        Store::create_in(database, identity)
    }

    pub(crate) fn create_in(database: Database, identity: Identity) -> Result<Store, StoreError> {
        let store = Store { database: Arc::new(database), identity };
        if let Some(taken) = store.identity_there().map_err(StoreError::Disk)? {
            return Err(StoreError::Taken(taken));
        }
        let line = encode(&identity);
        let made = store.write(Durability::Immediate, |lines, _| {
            lines.insert(IDENTITY, line.as_slice()).map(|_| ()).map_err(said)
        });
        made.map_err(StoreError::Disk)?;
        Ok(store)
    }

    pub(crate) fn open_in(database: Database) -> Result<Store, StoreError> {
        let nobody = Identity {
            cluster: ClusterId::default(),
            member: MemberId::default(),
            birth: Birth::default(),
        };
        let store = Store { database: Arc::new(database), identity: nobody };
        let identity = store.identity_there().map_err(StoreError::Disk)?;
        Ok(Store { identity: identity.ok_or(StoreError::Empty)?, ..store })
    }

    /// Makes the store of a member whose charter goes on from a state that it did not get from
    /// others: all of it in one transaction.
    pub(super) fn seed(
        path: &Path,
        identity: Identity,
        vote: &Vote,
        meta: &SnapshotMeta,
        charter: &[u8],
    ) -> Result<Store, StoreError> {
        let database = Database::create(path).map_err(disk)?;
        let store = Store { database: Arc::new(database), identity };
        if let Some(taken) = store.identity_there().map_err(StoreError::Disk)? {
            return Err(StoreError::Taken(taken));
        }
        let mut written = vec![
            (IDENTITY, encode(&identity)),
            (VOTE, encode(vote)),
            (COMMITTED, encode(&meta.last_log_id)),
            (SNAPSHOT_META, encode(meta)),
            (SNAPSHOT, charter.to_vec()),
        ];
        written.extend(meta.last_log_id.map(|last| (PURGED, encode(&last))));
        let made = store.write(Durability::Immediate, |lines, _| {
            written.iter().try_for_each(|(name, line)| {
                lines.insert(*name, line.as_slice()).map(|_| ()).map_err(said)
            })
        });
        made.map_err(StoreError::Disk)?;
        Ok(store)
    }

    /// Whose it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    fn identity_there(&self) -> Result<Option<Identity>, Wrong> {
        self.line(IDENTITY)
    }

    pub(super) fn vote(&self) -> Result<Option<Vote>, Wrong> {
        self.line(VOTE)
    }

    pub(super) fn committed(&self) -> Result<Option<LogId>, Wrong> {
        Ok(self.line::<Option<LogId>>(COMMITTED)?.flatten())
    }

    pub(super) fn purged(&self) -> Result<Option<LogId>, Wrong> {
        self.line(PURGED)
    }

    pub(super) fn snapshot(&self) -> Result<Option<(SnapshotMeta, Vec<u8>)>, Wrong> {
        let transaction = self.database.begin_read().map_err(said)?;
        let lines = match transaction.open_table(LINES) {
            Ok(lines) => lines,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(said(error)),
        };
        let meta = lines.get(SNAPSHOT_META).map_err(said)?;
        let Some(meta) = meta else { return Ok(None) };
        let data = lines.get(SNAPSHOT).map_err(said)?.ok_or("a snapshot without its data")?;
        Ok(Some((decode(meta.value())?, data.value().to_vec())))
    }

    /// Entries in order: the first, and as many more as have so many bytes together with it.
    pub(super) fn entries(
        &self,
        range: impl RangeBounds<u64>,
        bytes: usize,
    ) -> Result<Vec<Entry>, Wrong> {
        let transaction = self.database.begin_read().map_err(said)?;
        let log = match transaction.open_table(LOG) {
            Ok(log) => log,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(said(error)),
        };
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        let (mut entries, mut sum) = (Vec::new(), 0usize);
        for line in log.range::<u64>(bounds).map_err(said)? {
            let (_, entry) = line.map_err(said)?;
            sum = sum.saturating_add(entry.value().len());
            if sum > bytes && !entries.is_empty() {
                break;
            }
            entries.push(decode(entry.value())?);
        }
        Ok(entries)
    }

    pub(super) fn last(&self) -> Result<Option<LogId>, Wrong> {
        let transaction = self.database.begin_read().map_err(said)?;
        let last = match transaction.open_table(LOG) {
            Ok(log) => match log.last().map_err(said)? {
                Some((_, entry)) => Some(decode::<Entry>(entry.value())?.log_id),
                None => None,
            },
            Err(redb::TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(said(error)),
        };
        Ok(last)
    }

    pub(super) fn save_vote(&self, vote: &Vote) -> Result<(), Wrong> {
        let line = encode(vote);
        self.write(Durability::Immediate, |lines, _| {
            lines.insert(VOTE, line.as_slice()).map(|_| ()).map_err(said)
        })
    }

    /// The one thing that need not be on disk: it is found out again.
    pub(super) fn save_committed(&self, committed: Option<LogId>) -> Result<(), Wrong> {
        let line = encode(&committed);
        self.write(Durability::None, |lines, _| {
            lines.insert(COMMITTED, line.as_slice()).map(|_| ()).map_err(said)
        })
    }

    pub(super) fn append(&self, entries: &[Entry]) -> Result<(), Wrong> {
        self.write(Durability::Immediate, |_, log| {
            for entry in entries {
                let line = encode(entry);
                log.insert(entry.log_id.index, line.as_slice()).map_err(said)?;
            }
            Ok(())
        })
    }

    /// Forgets everything from this index on.
    pub(super) fn truncate(&self, from: u64) -> Result<(), Wrong> {
        self.write(Durability::Immediate, |_, log| {
            log.retain_in(from.., |_, _| false).map_err(said)
        })
    }

    /// Forgets everything up to this entry, and remembers which it was: without that a member that
    /// compacted its log could never start again.
    pub(super) fn purge(&self, up_to: LogId) -> Result<(), Wrong> {
        let line = encode(&up_to);
        self.write(Durability::Immediate, |lines, log| {
            lines.insert(PURGED, line.as_slice()).map_err(said)?;
            log.retain_in(..=up_to.index, |_, _| false).map_err(said)
        })
    }

    /// Replaces the snapshot, description and data together; never by an older one. One that was
    /// begun here may be finished after a newer one came from the leader, and the log reaches back
    /// to the newer one only.
    pub(super) fn save_snapshot(&self, meta: &SnapshotMeta, data: &[u8]) -> Result<(), Wrong> {
        let line = encode(meta);
        self.write(Durability::Immediate, |lines, _| {
            let there = lines.get(SNAPSHOT_META).map_err(said)?;
            let there = there.map(|line| decode::<SnapshotMeta>(line.value())).transpose()?;
            if there.is_some_and(|there| there.last_log_id > meta.last_log_id) {
                return Ok(());
            }
            lines.insert(SNAPSHOT_META, line.as_slice()).map_err(said)?;
            lines.insert(SNAPSHOT, data).map(|_| ()).map_err(said)
        })
    }

    /// One transaction: all of it, or nothing.
    fn write(
        &self,
        durability: Durability,
        change: impl FnOnce(
            &mut redb::Table<'_, &'static str, &'static [u8]>,
            &mut redb::Table<'_, u64, &'static [u8]>,
        ) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        let mut transaction = self.database.begin_write().map_err(said)?;
        transaction.set_durability(durability).map_err(said)?;
        {
            let mut lines = transaction.open_table(LINES).map_err(said)?;
            let mut log = transaction.open_table(LOG).map_err(said)?;
            change(&mut lines, &mut log)?;
        }
        transaction.commit().map_err(said)
    }

    fn line<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Wrong> {
        let transaction = self.database.begin_read().map_err(said)?;
        match transaction.open_table(LINES) {
            Ok(lines) => {
                let line = lines.get(name).map_err(said)?;
                line.map(|line| decode(line.value())).transpose()
            }
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(said(error)),
        }
    }
}

fn said(error: impl Display) -> Wrong {
    error.to_string()
}

fn disk(error: impl Display) -> StoreError {
    StoreError::Disk(error.to_string())
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, vec![FORM]).expect("plain data always encodes")
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Wrong> {
    match bytes.split_first() {
        Some((&FORM, rest)) => match postcard::take_from_bytes(rest) {
            Ok((value, [])) => Ok(value),
            _ => Err("a line does not decode: the file is damaged".into()),
        },
        Some((form, _)) => Err(format!("written in form {form}, and this program reads {FORM}")),
        None => Err("an empty line: the file is damaged".into()),
    }
}
