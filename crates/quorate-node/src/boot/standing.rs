//! What a start with another configuration must not forget. It drops the journal, and leases see to
//! what that had; nothing sees to holds without a lease.

use std::path::{Path, PathBuf};

use super::BootError;
use crate::journal::Journal;

/// Finds holds without a lease in a journal that is going to be dropped.
///
/// # Errors
/// There are some, or the journal cannot be read. Nothing changed: whoever starts with the former
/// configuration again finds all as it was.
pub(super) fn keep(journal: &Path) -> Result<(), BootError> {
    let records = Journal::peek(journal).map_err(BootError::Journal)?;
    let holds = records.iter().filter_map(|(pool, record)| {
        let count = quorate_wire::standing_holds(record);
        (count > 0).then(|| format!("{count} in pool {pool}"))
    });
    let kept: Vec<String> = holds.collect();
    if kept.is_empty() {
        return Ok(());
    }
    Err(BootError::Standing { journal: PathBuf::from(journal), kept: kept.join(", ") })
}
