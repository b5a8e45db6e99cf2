//! The audit's way out: a thread of its own, since disks and pipes may keep a writer waiting. If it
//! waits for long, lines are lost, and counted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::metrics::Metrics;

/// Lines that may wait to be written.
const WAITING: usize = 4096;

/// Where lines are handed in.
#[derive(Debug)]
pub(super) struct Writer {
    metrics: Arc<Metrics>,
    /// Nothing once it is closed.
    thread: Mutex<Option<(SyncSender<String>, JoinHandle<()>)>>,
}

impl Writer {
    pub(super) fn to_stderr(metrics: Arc<Metrics>) -> Writer {
        Writer::to(metrics, |line| writeln!(io::stderr().lock(), "{line}"))
    }

    pub(super) fn to_file(path: &Path, max: u64, metrics: Arc<Metrics>) -> io::Result<Writer> {
        let mut file = Rotated::open(path, max)?;
        Ok(Writer::to(metrics, move |line| file.append(line)))
    }

    fn to(
        metrics: Arc<Metrics>,
        mut write: impl FnMut(&str) -> io::Result<()> + Send + 'static,
    ) -> Writer {
        let (sender, lines) = sync_channel::<String>(WAITING);
        let counted = Arc::clone(&metrics);
        let thread = std::thread::spawn(move || {
            let mut failed = false;
            for line in lines {
                match write(&line) {
                    Ok(()) => failed = false,
                    Err(error) => {
                        counted.trust.audit_lost.inc();
                        // Once until it works again: a full disk needs no second message.
                        if !std::mem::replace(&mut failed, true) {
                            tracing::error!(%error, "a line of the audit is lost");
                        }
                    }
                }
            }
        });
        Writer { metrics, thread: Mutex::new(Some((sender, thread))) }
    }

    pub(super) fn write(&self, line: String) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = thread.as_ref().is_some_and(|(sender, _)| sender.try_send(line).is_ok());
        if !sent {
            self.metrics.trust.audit_lost.inc();
        }
    }

    /// Returns when all lines are written.
    pub(super) fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sender, thread)) = thread {
            drop(sender);
            // It ends with its lines; if it panicked, its last words are in the log.
            let _ = thread.join();
        }
    }
}

/// A file that is renamed when it is full; the one that was renamed before is gone then.
#[derive(Debug)]
struct Rotated {
    path: PathBuf,
    file: File,
    /// Device and number: somebody else may rotate it, too.
    mark: (u64, u64),
    size: u64,
    max: u64,
}

impl Rotated {
    fn open(path: &Path, max: u64) -> io::Result<Rotated> {
        // Who was refused what is not for everybody.
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let it = file.metadata()?;
        let mark = (it.dev(), it.ino());
        Ok(Rotated { path: path.to_owned(), file, mark, size: it.len(), max })
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let length = line.len() as u64 + 1;
        let ours = fs::metadata(&self.path).is_ok_and(|it| (it.dev(), it.ino()) == self.mark);
        if ours && self.size > 0 && self.size + length > self.max {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            fs::rename(&self.path, old)?;
            *self = Rotated::open(&self.path, self.max)?;
        } else if !ours {
            *self = Rotated::open(&self.path, self.max)?;
        }
        self.size += length;
        // In one piece, so that a line is whole or not there.
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_rotated_by_size_and_may_be_rotated_by_others() {
        let name = format!("quorate-audit-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("audit.jsonl");
        let old = folder.join("audit.jsonl.1");
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let metrics = Arc::new(Metrics::new());
        let write = |lines: &[&str]| {
            let writer = Writer::to_file(&path, 10, Arc::clone(&metrics)).unwrap();
            lines.iter().for_each(|line| writer.write((*line).to_owned()));
            writer.close();
            writer.write("nobody writes it any more".into());
        };
        write(&["1234", "1234"]);
        assert_eq!(read(&path), "1234\n1234\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(metrics.trust.audit_lost.get(), 1);
        // What was there at the start counts; one old file is kept.
        write(&["5", "6"]);
        assert_eq!((read(&old).as_str(), read(&path).as_str()), ("1234\n1234\n", "5\n6\n"));
        write(&["longer than all of it"]);
        write(&["7"]);
        assert_eq!(read(&old), "longer than all of it\n");
        assert_eq!(read(&path), "7\n");
        let mut file = Rotated::open(&path, 10).unwrap();
        fs::rename(&path, folder.join("kept")).unwrap();
        file.append("8").unwrap();
        assert_eq!((read(&path).as_str(), read(&folder.join("kept")).as_str()), ("8\n", "7\n"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(file.append("9").is_err(), "there is no folder any more");
    }
}
