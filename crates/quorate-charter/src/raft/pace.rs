//! How fast the engine beats, and what it keeps.

use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

/// Entries after which a snapshot is made. Rarely: nearly all of the engine's bugs of 2026 were in
/// snapshots, purging and what follows from them.
const SNAPSHOT_EVERY: u64 = 5000;
/// Entries that stay in the log although a snapshot has them, for members that are a little behind.
const KEPT_BEHIND_SNAPSHOT: u64 = 1000;
/// Bytes of a snapshot that travel at once.
const CHUNK: u64 = 256 << 10;
/// Entries that travel at once, if they are small.
const BATCH: u64 = 64;

/// How fast the engine beats. All members should have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// The leader says that it is there so often. A read waits no longer than this for a majority,
    /// so it must be well above a round trip.
    pub heartbeat: Duration,
    /// Nobody stands for election before it heard nothing for so long...
    pub patience: Duration,
    /// ...and nobody waits much longer than this.
    pub patience_max: Duration,
    /// A question to the leader, or a proposal, is given up after so long: then nobody knows.
    pub answer: Duration,
    /// Entries after which a snapshot is made.
    pub snapshot_every: u64,
    /// Entries in a snapshot that stay in the log.
    pub kept: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            heartbeat: Duration::from_millis(250),
            patience: Duration::from_millis(1000),
            patience_max: Duration::from_millis(2000),
            answer: Duration::from_secs(5),
            snapshot_every: SNAPSHOT_EVERY,
            kept: KEPT_BEHIND_SNAPSHOT,
        }
    }
}

impl Pace {
    pub(super) fn config(&self) -> Result<Arc<Config>, String> {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let config = Config {
            cluster_name: "quorate".into(),
            heartbeat_interval: millis(self.heartbeat),
            election_timeout_min: millis(self.patience),
            election_timeout_max: millis(self.patience_max),
            install_snapshot_timeout: millis(self.answer),
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_every),
            snapshot_max_chunk_size: CHUNK,
            max_payload_entries: BATCH,
            max_in_snapshot_log_to_keep: self.kept,
            ..Config::default()
        };
        config.validate().map(Arc::new).map_err(|error| error.to_string())
    }
}
