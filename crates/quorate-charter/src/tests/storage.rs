//! The engine's own tests of a store.

use openraft::testing::{StoreBuilder, Suite};

use super::disk::Disk;
use crate::raft::{Log, Machine, Types};
use crate::{Birth, Identity, MemberId, Store, StoreError};

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
