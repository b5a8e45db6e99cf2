//! What a node remembers from one start to the next: how often it was started, and under which
//! configuration. A small text file in the data directory, replaced as a whole.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_core::Fence;
use quorate_wire::Life;

use crate::config::{Config, Data};

/// Boot numbers stay below this, so that fences can be made of them.
const BOOT_MAX: u32 = Fence::BOOTS;
/// 1 January 2026, in seconds of the Unix clock.
const YEAR_2026: u64 = 1_767_225_600;
/// How often to look whether a minute has begun.
const GLANCE: Duration = Duration::from_millis(200);

/// What this start is, compared with earlier ones.
#[derive(Debug)]
pub(crate) struct Boot {
    /// Greater than at every earlier start.
    pub(crate) number: u32,
    /// What came before.
    pub(crate) past: Past,
    /// The longest lease that an earlier start may have promised.
    pub(crate) lease_before: Duration,
    /// Tells this start from any other, also where the number fails to.
    mark: u64,
    /// Keeps a second process out of the directory, as long as it is open.
    _lock: Option<File>,
}

impl Boot {
    /// The first start of a new cluster.
    pub(crate) fn first() -> Self {
        Boot::new(1, Past::Nothing, Duration::ZERO, None)
    }

    fn new(number: u32, past: Past, lease_before: Duration, lock: Option<File>) -> Self {
        let mark = RandomState::new().hash_one(number);
        Boot { number, past, lease_before, mark, _lock: lock }
    }

    /// Whether the journal tells all that there was, once this start has taken it up.
    fn is_complete(&self) -> bool {
        match self.past {
            Past::Nothing => true,
            Past::Same { complete } => complete,
            Past::Unknown => false,
        }
    }

    /// The journal holds nothing but records of this configuration: the next start may read it.
    pub(crate) fn take_up(&self, config: &Config) -> Result<(), BootError> {
        let lease = config.lease_max().max(self.lease_before);
        let digest = Some(config.digest);
        write(config, &Kept { number: self.number, digest, lease, complete: self.is_complete() })
    }

    /// As other nodes know it.
    pub(crate) fn life(&self) -> Life {
        Life { boot: self.number, mark: self.mark }
    }
}

/// What came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Past {
    /// Nothing: the cluster is new, and we were told so.
    Nothing,
    /// Starts under the same configuration.
    Same {
        /// Whether what the journal lacks was never promised. It may have been if the first of
        /// those starts knew too little.
        complete: bool,
    },
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

/// Counts this start. A node that has lost its count waits until a minute begins.
pub(crate) async fn count(config: &Config) -> Result<Boot, BootError> {
    count_by(config, minutes_since_2026).await
}

async fn count_by(config: &Config, minutes: impl FnMut() -> u32) -> Result<Boot, BootError> {
    let Data::Directory(directory) = &config.data else {
        // A cluster that begins and ends with its process: nobody outlives it but its clients, and
        // fences begin again with it.
        return Ok(Boot::first());
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
        Some(Kept { number, digest, lease, complete }) => {
            let same = digest == Some(config.digest);
            let past = if same { Past::Same { complete } } else { Past::Unknown };
            (number.saturating_add(1), past, lease)
        }
        None if config.bootstrap => (1, Past::Nothing, Duration::ZERO),
        None => (fresh_number(minutes).await, Past::Unknown, Duration::ZERO),
    };
    if number >= BOOT_MAX {
        return Err(BootError::TooOften(number));
    }
    let boot = Boot::new(number, past, lease_before, Some(lock));
    // An older promise may be in force until its lease has passed once more. And the journal may
    // hold records of another configuration until it is cleared.
    let lease = config.lease_max().max(lease_before);
    let digest = matches!(past, Past::Same { .. }).then_some(config.digest);
    write(config, &Kept { number, digest, lease, complete: boot.is_complete() })?;
    Ok(boot)
}

/// The count is lost with the directory: minutes since 2026 are more than any count. The present
/// one may have been given to an earlier start that lost its directory too; the next was not.
async fn fresh_number(mut minutes: impl FnMut() -> u32) -> u32 {
    let present = minutes();
    tracing::warn!(
        "the data directory is empty and the cluster is not new: waiting up to a minute"
    );
    loop {
        tokio::time::sleep(GLANCE).await;
        let number = minutes();
        if number > present {
            return number;
        }
    }
}

/// Forgets what earlier starts may have promised once it is over, so that later starts need not
/// wait for it: an older, longer lease, and what the journal lacks. Fences are never over: where
/// only records tell how far they came, the journal stays incomplete.
pub(crate) fn settle_later(
    config: Arc<Config>,
    boot: &Boot,
) -> Option<impl Future<Output = ()> + use<>> {
    let (lease, number) = (config.lease_max(), boot.number);
    let fences = config.pools.iter().any(|pool| pool.protocol.forgets_fences());
    let complete = boot.is_complete() || !fences;
    if boot.lease_before <= lease && complete == boot.is_complete() {
        return None;
    }
    let grace = config.pools.iter().map(|pool| pool.grace).max().unwrap_or_default();
    let over = grace.max(boot.lease_before);
    Some(async move {
        tokio::time::sleep(over).await;
        let digest = Some(config.digest);
        if let Err(error) = write(&config, &Kept { number, digest, lease, complete }) {
            tracing::warn!(%error, "the next start will wait longer than it need");
        }
    })
}

/// What is in the file.
struct Kept {
    number: u32,
    /// The configuration whose records the journal holds, if it is known.
    digest: Option<u64>,
    lease: Duration,
    complete: bool,
}

fn write(config: &Config, kept: &Kept) -> Result<(), BootError> {
    let Data::Directory(directory) = &config.data else { return Ok(()) };
    let Kept { number, digest, lease, complete } = kept;
    let digest = digest.map_or("none".to_owned(), |digest| format!("{digest:016x}"));
    let lease = lease.as_millis();
    let text = format!("boot {number}\ndigest {digest}\nlease_ms {lease}\ncomplete {complete}\n");
    let path = directory.join("boot");
    replace(directory, &path, &text).map_err(|error| BootError::Io { path, error })
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

fn parse(text: &str) -> Option<Kept> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let digest = match field("digest")? {
        "none" => None,
        digest => Some(u64::from_str_radix(digest, 16).ok()?),
    };
    Some(Kept {
        number: field("boot")?.parse().ok()?,
        digest,
        lease: Duration::from_millis(field("lease_ms")?.parse().ok()?),
        complete: field("complete") == Some("true"),
    })
}

fn minutes_since_2026() -> u32 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    u32::try_from(seconds.saturating_sub(YEAR_2026) / 60).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_start_has_a_greater_number_also_if_it_forgets_twice_in_a_minute() {
        let directory = std::env::temp_dir().join(format!("quorate-boot-{}", std::process::id()));
        let text = format!(
            "cluster = \"c\"\nepoch = 2\nnode = \"a\"\ndata_dir = {directory:?}\n\
             listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
             members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n"
        );
        let config = Config::parse(&text).unwrap();
        // A minute begins whenever somebody has looked three times, and goes by between starts
        // that find what they wrote.
        let looks = std::cell::Cell::new(300);
        let mut minutes = || {
            looks.set(looks.get() + 1);
            looks.get() / 3
        };
        let (mut last, mut marks) = (0, Vec::new());
        for wiped in [true, false, true, true, true, false] {
            if wiped {
                let _ = fs::remove_dir_all(&directory);
            } else {
                looks.set(looks.get() + 6);
            }
            let boot = count_by(&config, &mut minutes).await.unwrap();
            assert!(boot.number > last, "{} after {last}", boot.number);
            assert_eq!(boot.past == Past::Unknown, wiped);
            boot.take_up(&config).unwrap();
            last = boot.number;
            marks.push(boot.life().mark);
        }
        marks.dedup();
        assert_eq!(marks.len(), 6, "lives are told apart");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[tokio::test]
    async fn a_start_that_fails_before_its_journal_is_cleared_leaves_the_past_unknown() {
        let directory = std::env::temp_dir().join(format!("quorate-past-{}", std::process::id()));
        let text = format!(
            "cluster = \"c\"\nepoch = 1\nnode = \"a\"\ndata_dir = {directory:?}\nbootstrap = true\n\
             listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
             members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n"
        );
        let old = Config::parse(&text).unwrap();
        let text = text.replace("epoch = 1", "epoch = 2").replace("bootstrap = true", "");
        let new = Config::parse(&text).unwrap();
        let (complete, partly) = (Past::Same { complete: true }, Past::Same { complete: false });
        for (config, past, fails) in [
            (&old, Past::Nothing, false),
            (&old, complete, false),
            (&new, Past::Unknown, true),
            (&new, Past::Unknown, false),
            (&new, partly, true),
            (&new, partly, false),
            (&old, Past::Unknown, false),
        ] {
            let boot = count(config).await.unwrap();
            assert_eq!(boot.past, past);
            if !fails {
                boot.take_up(config).unwrap();
            }
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
