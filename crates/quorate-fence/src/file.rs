//! A file that late holders cannot write: on a disk that machines share, or on one.
//!
//! Beside the file lies another with the largest fence (`NAME.fence`), which is locked for the
//! moment of a write. The fence is on the disk before the new contents are, and those take the
//! place of the old in one step: whoever reads sees one or the other, and after a crash in between
//! the worst is that the holder has to write once more. Everybody who writes must do so by this
//! way; the file system must have locks and renames that others see (local ones do, NFS from
//! version 4 does).

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::Stale;

/// Replaces what is in a file, unless a later holder has written it.
///
/// # Errors
/// A later holder has ([`io::ErrorKind::PermissionDenied`], with a [`Stale`] inside), or the disk
/// does not take it. In the first case nothing changed; in the second the file has its old contents
/// or its new ones.
pub fn replace(path: &Path, unit: &str, fence: u64, contents: &[u8]) -> io::Result<()> {
    let mut book = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(beside(path, ".fence"))?;
    // Until it is closed: others wait for a moment.
    book.lock()?;
    let seen = read(&mut book)?;
    if let Some(seen) = seen.filter(|seen| *seen > fence) {
        let stale = Stale { unit: unit.to_owned(), fence, seen };
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, stale));
    }
    if seen != Some(fence) {
        book.rewind()?;
        // As long as any other, so that one write replaces the whole of it.
        book.write_all(format!("{fence:020}\n").as_bytes())?;
        book.sync_all()?;
    }
    let draft = beside(path, ".new");
    let mut file = File::create(&draft)?;
    file.write_all(contents)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    // The name is only as durable as its folder.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn read(book: &mut File) -> io::Result<Option<u64>> {
    let mut text = String::new();
    book.read_to_string(&mut text)?;
    match text.trim() {
        "" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            let what = format!("{number:?} is no fence: somebody else has written there");
            io::Error::new(io::ErrorKind::InvalidData, what)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_writer_finds_the_file_closed_and_everybody_reads_whole_contents() {
        let folder = std::env::temp_dir().join(format!("quorate-fence-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("state");
        replace(&path, "db", 3, b"first").unwrap();
        replace(&path, "db", 3, b"again").unwrap();
        replace(&path, "db", 12, b"next").unwrap();
        let late = replace(&path, "db", 3, b"late").unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::PermissionDenied);
        assert!(late.to_string().contains("fence 3 of unit db is too late"), "{late}");
        assert_eq!(std::fs::read(&path).unwrap(), b"next");
        // Many at once: in the end the file is the one with the largest fence, whole.
        std::thread::scope(|scope| {
            for fence in 20..40 {
                let path = &path;
                scope.spawn(move || {
                    let contents = fence.to_string().repeat(10_000);
                    let _ = replace(path, "db", fence, contents.as_bytes());
                });
            }
        });
        let last = std::fs::read_to_string(&path).unwrap();
        assert_eq!(last, "39".repeat(10_000));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
