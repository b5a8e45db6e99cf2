//! The engine's own tests of a store.

use openraft::storage::RaftLogStorageExt;
use openraft::testing::{StoreBuilder, Suite};
use openraft::{EntryPayload, RaftLogReader};

use super::disk::Disk;
use crate::raft::{Log, Machine, Types};
use crate::{Birth, Change, Identity, MemberId, Request, RequestId, Store, StoreError};

type StorageError = openraft::StorageError<u64>;

struct Fresh;

impl StoreBuilder<Types, Log, Machine> for Fresh {
    async fn build(&self) -> Result<((), Log, Machine), StorageError> {
        let store = Disk::default().create(identity());
        let machine = Machine::new(store.clone()).expect("empty");
        Ok(((), Log(store), machine))
    }
}

pub(super) fn identity() -> Identity {
    Identity { cluster: super::cluster::CLUSTER, member: MemberId(0), birth: Birth([1; 16]) }
}

#[test]
fn the_engine_is_content_with_our_store() {
    Suite::test_all(Fresh).expect("sound");
}

#[test]
fn a_file_is_made_once_and_belongs_to_one_member() {
    let folder = std::env::temp_dir().join(format!("quorate-charter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("charter.redb");
    assert_eq!(Store::open(&path).unwrap_err(), StoreError::Empty);
    drop(Store::create(&path, identity()).expect("new"));
    let again = Identity { birth: Birth([2; 16]), ..identity() };
    assert_eq!(Store::create(&path, again).unwrap_err(), StoreError::Taken(identity()));
    assert_eq!(Store::open(&path).expect("there").identity(), identity());
    // An empty store is nobody's: a member does not come back without its memory.
    drop(redb::Database::create(folder.join("wiped.redb")).expect("a file"));
    assert_eq!(Store::open(&folder.join("wiped.redb")).unwrap_err(), StoreError::Empty);
    std::fs::remove_dir_all(&folder).expect("ours");
}

/// What travels at once is bounded in bytes, and never nothing.
#[tokio::test]
async fn long_entries_travel_alone() {
    let store = Disk::default().create(identity());
    let mut log = Log(store);
    let entry = |index: u64, length: usize| {
        let change = Change::Pool {
            name: "p".into(),
            definition: Some("x".repeat(length)),
            if_generation: None,
        };
        openraft::Entry::<Types> {
            log_id: openraft::testing::log_id(1, 0, index),
            payload: EntryPayload::Normal(Request::one(RequestId([0; 16]), change)),
        }
    };
    let entries = [10, 10, 2 << 20, 10, 600 << 10, 600 << 10].into_iter().zip(0..);
    let entries: Vec<_> = entries.map(|(length, index)| entry(index, length)).collect();
    log.blocking_append(entries).await.expect("appended");
    let mut lengths = Vec::new();
    let mut next = 0;
    while next < 6 {
        let some = log.limited_get_log_entries(next, 6).await.expect("readable");
        next += some.len() as u64;
        lengths.push(some.len());
    }
    assert_eq!(lengths, [2, 1, 2, 1]);
    assert_eq!(log.try_get_log_entries(..).await.expect("readable").len(), 6);
}
