//! What a node remembers from one start to the next: how often it was started, and under which
//! configuration. A small text file in the data directory, replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::config::{Config, Data};

/// Boot numbers stay below this, so that fences made of them fit in 64 bits.
const BOOT_MAX: u32 = 1 << 24;
/// 1 January 2026, in seconds of the Unix clock.
const YEAR_2026: u64 = 1_767_225_600;

/// What this start is, compared with earlier ones.
#[derive(Debug)]
pub(crate) struct Boot {
    /// Greater than at every earlier start.
    pub(crate) number: u32,
    /// What came before.
    pub(crate) past: Past,
    /// The longest lease that an earlier start may have promised.
    pub(crate) lease_before: Duration,
    /// Keeps a second process out of the directory, as long as it is open.
    _lock: Option<File>,
}

/// What came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Past {
    /// Nothing: the cluster is new, and we were told so.
    Nothing,
    /// Starts under the same configuration: what the journal lacks was never promised.
    Same,
    /// Something we know too little about: another configuration, or an empty directory in a
    /// cluster that is not new. Anything may have been promised.
    Unknown,
}

/// Why a node cannot start. Nothing was promised.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BootError {
    /// The directory cannot be used.
    #[error("cannot use {path}: {error}")]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process has it.
    #[error("{0} is in use by another node")]
    InUse(PathBuf),
    /// The file is not ours, or damaged.
    #[error(
        "{0} does not say how often this node was started; \
         if it is damaged beyond repair, empty the data directory and start without bootstrap"
    )]
    Damaged(PathBuf),
    /// Fences would repeat.
    #[error("started {0} times: boot numbers must stay below {BOOT_MAX}")]
    TooOften(u32),
}

/// Counts this start.
pub(crate) fn count(config: &Config) -> Result<Boot, BootError> {
    let Data::Directory(directory) = &config.data else {
        // A cluster that begins and ends with its process: nobody outlives it but its clients, and
        // fences begin again with it.
        let lease_before = Duration::ZERO;
        return Ok(Boot { number: 1, past: Past::Nothing, lease_before, _lock: None });
    };
    let at = |path: &Path| {
        let path = path.to_path_buf();
        move |error| BootError::Io { path, error }
    };
    fs::create_dir_all(directory).map_err(at(directory))?;
    let lock_path = directory.join("lock");
    let lock = File::create(&lock_path).map_err(at(&lock_path))?;
    lock.try_lock().map_err(|_| BootError::InUse(directory.clone()))?;

    let path = directory.join("boot");
    let before = match fs::read_to_string(&path) {
        Ok(text) => Some(parse(&text).ok_or_else(|| BootError::Damaged(path.clone()))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(BootError::Io { path, error }),
    };
    let (number, past, lease_before) = match before {
        Some((number, digest, lease)) => {
            let past = if digest == config.digest { Past::Same } else { Past::Unknown };
            (number.saturating_add(1), past, lease)
        }
        None if config.bootstrap => (1, Past::Nothing, Duration::ZERO),
        // The count is lost with the directory: minutes since 2026 are more than any count.
        None => (minutes_since_2026(), Past::Unknown, Duration::ZERO),
    };
    if number >= BOOT_MAX {
        return Err(BootError::TooOften(number));
    }
    let lease =
        config.lease_max().max(if past == Past::Same { Duration::ZERO } else { lease_before });
    let text =
        format!("boot {number}\ndigest {:016x}\nlease_ms {}\n", config.digest, lease.as_millis());
    replace(directory, &path, &text).map_err(at(&path))?;
    Ok(Boot { number, past, lease_before, _lock: Some(lock) })
}

/// Writes beside the file and renames, so that a crash leaves the old or the new one.
fn replace(directory: &Path, path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(directory)?.sync_all()
}

fn parse(text: &str) -> Option<(u32, u64, Duration)> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let number = field("boot")?.parse().ok()?;
    let digest = u64::from_str_radix(field("digest")?, 16).ok()?;
    let lease = Duration::from_millis(field("lease_ms")?.parse().ok()?);
    Some((number, digest, lease))
}

fn minutes_since_2026() -> u32 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    u32::try_from(seconds.saturating_sub(YEAR_2026) / 60).unwrap_or(u32::MAX).max(1)
}
