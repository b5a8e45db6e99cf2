//! What a node remembers from one start to the next: how often it was started, and under which
//! configuration. A small text file in the data directory, replaced as a whole.
//!
//! An empty directory never means that the cluster is new: one that was lost is empty too, and
//! nobody need be left who knows better. That it is new is said once ([`declare_new`]) and kept in
//! the directory itself, as a count of no starts. A disk that is lost takes both with it, so a node
//! never takes lost promises for none.

mod promised;
mod standing;

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_core::Fence;
use quorate_wire::Life;

use crate::config::{Config, Data};
use crate::journal::JournalError;

pub(crate) use promised::Promised;

/// Boot numbers stay below this, so that fences can be made of them.
const BOOT_MAX: u32 = Fence::BOOTS;
/// 1 January 2026, in seconds of the Unix clock.
const YEAR_2026: u64 = 1_767_225_600;
/// The file.
const COUNT: &str = "boot";
/// How often to look whether a minute has begun.
const GLANCE: Duration = Duration::from_millis(200);

/// What this start is, compared with earlier ones.
#[derive(Debug)]
pub(crate) struct Boot {
    /// Greater than at every earlier start.
    pub(crate) number: u32,
    /// What came before.
    pub(crate) past: Past,
    /// How long what earlier starts promised may be in use.
    pub(crate) before: Promised,
    /// Tells this start from any other, also where the number fails to.
    mark: u64,
    /// Keeps a second process out of the directory, as long as it is open.
    _lock: Option<File>,
}

impl Boot {
    /// The first start of a new cluster.
    pub(crate) fn first() -> Self {
        Boot::new(1, Past::Nothing, Promised::default(), None)
    }

    fn new(number: u32, past: Past, before: Promised, lock: Option<File>) -> Self {
        let mark = RandomState::new().hash_one(number);
        Boot { number, past, before, mark, _lock: lock }
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
        let (digest, promised) = (Some(config.digest), self.before.and(config));
        let complete = self.is_complete();
        write(config, &Kept { number: self.number, digest, promised, complete })
    }

    /// As other nodes know it.
    pub(crate) fn life(&self) -> Life {
        Life { boot: self.number, mark: self.mark }
    }
}

/// What came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Past {
    /// Nothing: the cluster is new, the directory says so, and nobody started from it.
    Nothing,
    /// Starts under the same configuration.
    Same {
        /// Whether what the journal lacks was never promised. It may have been if the first of
        /// those starts knew too little.
        complete: bool,
    },
    /// Something we know too little about: another configuration, a journal that is gone, or an
    /// empty directory in a cluster that is not new. Anything may have been promised.
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
         if it is damaged beyond repair, empty the data directory"
    )]
    Damaged(PathBuf),
    /// The cluster is not new, or this node is not.
    #[error(
        "{0} was in use before: the cluster is not new, and what was promised then may be in \
         force; nothing changed"
    )]
    Used(PathBuf),
    /// Whoever joins later must not assume that nobody holds anything.
    #[error(
        "epoch = {0}: a new cluster has epoch 1, and in any other something was promised before; \
         nothing changed. Start the node: it waits until nothing of that can be in use"
    )]
    LaterEpoch(u64),
    /// Another configuration would make this node forget what nothing else ends.
    #[error(
        "{} has holds without a lease ({kept}), which a start with this configuration would \
         forget: it has other members or pools than the last one, or the file `boot` is gone; \
         nothing changed. Start with the former configuration and release or revoke them, or \
         remove the journal if nobody uses their units",
        journal.display()
    )]
    Standing {
        /// The journal.
        journal: PathBuf,
        /// How many, in which pools.
        kept: String,
    },
    /// The journal that is going to be dropped cannot be read.
    #[error(
        "{0}; whether it has holds without a lease is unknown, so it is not dropped; nothing \
         changed. Remove the file if nobody uses their units"
    )]
    Journal(JournalError),
    /// Fences would repeat.
    #[error("started {0} times: boot numbers must stay below {BOOT_MAX}")]
    TooOften(u32),
}

/// What a start has to wait for before it has a number, in words.
pub(crate) fn expectation(config: &Config) -> &'static str {
    match &config.data {
        Data::Directory(directory) if !directory.join(COUNT).exists() => {
            "its data directory is empty, so it may have been started before: it waits until a \
             minute begins, for at most one"
        }
        Data::Directory(_) | Data::Memory => "it looks at its data directory",
    }
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
    let (lock, before) = enter(directory)?;
    let (number, past, promised) = match before {
        Some(Kept { number, digest, promised, complete }) => {
            let past = match number {
                _ if digest != Some(config.digest) => Past::Unknown,
                0 => Past::Nothing,
                // An earlier start made a journal. If it is gone now, promises may be gone with it.
                _ if config.keeps_journal() && !journal(directory).exists() => Past::Unknown,
                _ => Past::Same { complete },
            };
            (number.saturating_add(1), past, promised)
        }
        None => (fresh_number(minutes).await, Past::Unknown, Promised::default()),
    };
    if number >= BOOT_MAX {
        return Err(BootError::TooOften(number));
    }
    if past == Past::Unknown {
        standing::keep(&journal(directory))?;
        tracing::warn!("this start does not know what was promised before, and waits it out");
    }
    let boot = Boot::new(number, past, promised, Some(lock));
    // An older promise may be in force until its lease has passed once more. And the journal may
    // hold records of another configuration until it is cleared.
    let promised = boot.before.and(config);
    let digest = matches!(past, Past::Same { .. }).then_some(config.digest);
    write(config, &Kept { number, digest, promised, complete: boot.is_complete() })?;
    Ok(boot)
}

/// Says that the cluster is new, for the first start from this directory and no other.
pub(crate) fn declare_new(config: &Config) -> Result<(), BootError> {
    let _lock = check_unused(config)?;
    // The others may begin without this node, and all be configured anew before it first starts.
    let (digest, promised) = (Some(config.digest), Promised::default().and(config));
    write(config, &Kept { number: 0, digest, promised, complete: true })
}

/// Nobody started from this directory, as far as it tells. Nobody does while the file is open.
pub(crate) fn check_unused(config: &Config) -> Result<Option<File>, BootError> {
    let Data::Directory(directory) = &config.data else { return Ok(None) };
    if config.epoch != 1 {
        return Err(BootError::LaterEpoch(config.epoch));
    }
    let (lock, before) = enter(directory)?;
    let is_unused = before.is_none_or(|kept| kept.number == 0) && !journal(directory).exists();
    if is_unused { Ok(Some(lock)) } else { Err(BootError::Used(directory.clone())) }
}

/// Keeps the data directory of a node that does not run for ourselves, as long as the file is open,
/// and says whether anybody ever started from it.
pub(crate) fn hold(directory: &Path) -> Result<(File, bool), BootError> {
    let (lock, before) = enter(directory)?;
    let is_used = before.is_some_and(|kept| kept.number > 0) || journal(directory).exists();
    Ok((lock, is_used))
}

/// Where the journal of durable pools is.
pub(crate) fn journal(directory: &Path) -> PathBuf {
    directory.join("journal.redb")
}

/// Makes the directory if there is none, keeps others out, and reads what was kept.
fn enter(directory: &Path) -> Result<(File, Option<Kept>), BootError> {
    let at = |path: &Path| {
        let path = path.to_path_buf();
        move |error| BootError::Io { path, error }
    };
    fs::create_dir_all(directory).map_err(at(directory))?;
    let lock_path = directory.join("lock");
    let lock = File::create(&lock_path).map_err(at(&lock_path))?;
    lock.try_lock().map_err(|_| BootError::InUse(directory.to_path_buf()))?;
    let path = directory.join(COUNT);
    let kept = match fs::read_to_string(&path) {
        Ok(text) => Some(parse(&text).ok_or_else(|| BootError::Damaged(path.clone()))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(BootError::Io { path, error }),
    };
    Ok((lock, kept))
}

/// The count is lost with the directory: minutes since 2026 are more than any count. The present
/// one may have been given to an earlier start that lost its directory too; the next was not.
async fn fresh_number(mut minutes: impl FnMut() -> u32) -> u32 {
    let present = minutes();
    tracing::warn!(
        "the data directory is empty, so something may have been promised before: waiting up to a \
         minute, and then until nothing of that can be in use (`quorate init` says that a cluster \
         is new)"
    );
    loop {
        tokio::time::sleep(GLANCE).await;
        let number = minutes();
        if number > present {
            return number;
        }
    }
}

/// Forgets what earlier starts may have promised as it ends, so that later starts need not wait for
/// it: older, longer leases, each when it has passed, and what the journal lacks. Fences are never
/// over: where only records tell how far they came, the journal stays incomplete.
pub(crate) fn settle_later(
    config: Arc<Config>,
    boot: &Boot,
) -> Option<impl Future<Output = ()> + use<>> {
    let steps = steps(&config, boot);
    if steps.is_empty() {
        return None;
    }
    let started = tokio::time::Instant::now();
    Some(async move {
        for (at, kept) in steps {
            tokio::time::sleep_until(started + at).await;
            if let Err(error) = write(&config, &kept) {
                tracing::warn!(%error, "the next start will wait longer than it need");
            }
        }
    })
}

/// What is to be kept from when on, counted from this start, until nothing older is left.
fn steps(config: &Config, boot: &Boot) -> Vec<(Duration, Kept)> {
    let fences = config.pools.iter().any(|pool| pool.protocol.about.forgets_fences);
    let grace = config.pools.iter().map(|pool| pool.grace).max().unwrap_or_default();
    let over = grace.max(boot.before.longest());
    let older = boot.before.besides(config);
    let kept = |at: Duration| {
        let complete = boot.is_complete() || (!fences && at >= over);
        let promised = older.after(at).and(config);
        Kept { number: boot.number, digest: Some(config.digest), promised, complete }
    };
    let mut times = older.lengths();
    times.push(over);
    let mut steps: Vec<(Duration, Kept)> = times.into_iter().map(|at| (at, kept(at))).collect();
    // The first is what is in the file since the start, and what only repeats is not written again.
    let mut last = (boot.before.and(config), boot.is_complete());
    steps.retain(|(_, kept)| {
        let next = (kept.promised.clone(), kept.complete);
        std::mem::replace(&mut last, next.clone()) != next
    });
    steps
}

/// What is in the file.
struct Kept {
    number: u32,
    /// The configuration whose records the journal holds, if it is known.
    digest: Option<u64>,
    promised: Promised,
    complete: bool,
}

fn write(config: &Config, kept: &Kept) -> Result<(), BootError> {
    let Data::Directory(directory) = &config.data else { return Ok(()) };
    let Kept { number, digest, promised, complete } = kept;
    let digest = digest.map_or("none".to_owned(), |digest| format!("{digest:016x}"));
    let promised = promised.lines();
    let text = format!("boot {number}\ndigest {digest}\ncomplete {complete}\n{promised}");
    let path = directory.join(COUNT);
    replace(directory, &path, &text).map_err(|error| BootError::Io { path, error })
}

/// Writes beside the file and renames, so that a crash leaves the old or the new one.
pub(crate) fn replace(directory: &Path, path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(directory)?.sync_all()
}

/// Whether a file is one of ours.
pub(crate) fn is_readable(text: &str) -> bool {
    parse(text).is_some()
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
        promised: Promised::read(text)?,
        complete: field("complete") == Some("true"),
    })
}

pub(crate) fn minutes_since_2026() -> u32 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    u32::try_from(seconds.saturating_sub(YEAR_2026) / 60).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests;
