//! Files that are made once, some of them for their owner alone.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Owner,
    Everybody,
}

/// Makes these files, all or none, and a directory for them if there is none. What is there already
/// is never written over: it may be the only copy of a key.
pub(crate) fn create(folder: &Path, files: &[(&Path, &str, Access)]) -> anyhow::Result<()> {
    if !folder.as_os_str().is_empty() && !folder.exists() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(|| format!("cannot make {}; nothing was written", folder.display()))?;
    }
    let mut made: Vec<&Path> = Vec::new();
    for (path, text, access) in files {
        match write(path, text, *access) {
            Ok(()) => made.push(path),
            Err(error) => {
                // Ours, from a moment ago.
                made.iter().for_each(|path| drop(std::fs::remove_file(path)));
                let shown = path.display();
                if error.kind() == ErrorKind::AlreadyExists {
                    bail!(
                        "{shown} is there already, and was left as it is; nothing was written. \
                         Move it away first, or choose another directory"
                    );
                }
                return Err(error)
                    .with_context(|| format!("cannot write {shown}; nothing changed"));
            }
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str, access: Access) -> std::io::Result<()> {
    let mode = if access == Access::Owner { 0o600 } else { 0o644 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // A part of a key is none.
        let _ = std::fs::remove_file(path);
    }
    written
}

/// The time, since 1970.
pub(crate) fn now() -> anyhow::Result<Duration> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.context("the clock of this machine says that it is before 1970: set it first")
}
