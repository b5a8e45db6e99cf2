//! What the store of a member has while nobody runs it, and the store with which its cluster goes
//! on when the majority is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use openraft::CommittedLeaderId;

use super::machine::Machine;
use super::{Identity, LogId, Membership, Node, SnapshotMeta, Store, StoreError, Vote};
use crate::{Charter, MemberId, Reborn};

/// Members that joined by entries that are lost have ids below this much more than the last entry
/// that is left.
const LOST_ENTRIES: u64 = 1 << 20;
/// Entries that are read at a time, in bytes.
const PIECE: usize = 1 << 20;

/// The state of a member at rest.
#[derive(Clone, Debug)]
pub struct Survivor {
    /// Whose.
    pub identity: Identity,
    /// The term of the engine's last vote: of two survivors whose last entries are of one index,
    /// nothing else tells which knows more.
    pub term: u64,
    /// The term and the index of its last entry: the survivor with the largest pair has all that
    /// any of them has.
    pub last: (u64, u64),
    /// The document with every entry that is there. Which of the last ones were in force nobody
    /// knows any more. None that was is left out.
    pub charter: Arc<Charter>,
}

impl Store {
    /// Looks at the store of a member that does not run.
    ///
    /// # Errors
    /// It is nobody's, in use, or cannot be read.
    pub fn survivor(path: &Path) -> Result<Survivor, StoreError> {
        let store = Store::open(path)?;
        let mut machine = Machine::new(store.clone())?;
        loop {
            let (applied, _) = machine.now();
            let next = applied.map_or(0, |last| last.index + 1);
            let entries = store.entries(next.., PIECE).map_err(StoreError::Disk)?;
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                machine.take(entry);
            }
        }
        let (last, charter) = machine.now();
        let term = store.vote().map_err(StoreError::Disk)?.map_or(0, |vote| vote.leader_id().term);
        let last = last.map_or((0, 0), |last| (last.leader_id.term, last.index));
        Ok(Survivor { identity: store.identity(), term, last, charter })
    }

    /// Makes the store from which a charter goes on with one member.
    ///
    /// # Errors
    /// There is a store already, or no disk.
    pub fn reborn(
        path: &Path,
        term: u64,
        charter: &Charter,
        Reborn { cluster, index, sole, .. }: &Reborn,
    ) -> Result<Store, StoreError> {
        let member = MemberId(*index);
        let identity = Identity { cluster: *cluster, member, birth: sole.birth };
        let last = LogId::new(CommittedLeaderId::new(term, member.0), *index);
        let nodes = BTreeMap::from([(member.0, Node { birth: sole.birth })]);
        let alone = openraft::Membership::new(vec![BTreeSet::from([member.0])], nodes);
        let meta = SnapshotMeta {
            last_log_id: Some(last),
            last_membership: Membership::new(Some(last), alone),
            snapshot_id: last.to_string(),
        };
        Store::seed(path, identity, &Vote::new(term, member.0), &meta, &charter.to_bytes())
    }
}

impl Reborn {
    /// An index that no lost entry can have had.
    pub fn index_after(last: u64) -> u64 {
        last.saturating_add(LOST_ENTRIES)
    }
}
