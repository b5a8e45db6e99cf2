//! The journal of durable pools: many records, one fsync.
//!
//! A thread of its own owns the store. Whatever was submitted while it wrote goes into the next
//! commit together, and of several records of one pool only the last is written: a record replaces
//! the one before it. The engine holds back everything that follows a record until the journal has
//! said that it is on disk.
//!
//! Lines of registers, for which nobody waits, go to disk once a second, many of a pool in one
//! piece: one by one they cost more than the records.
//!
//! A node that cannot remember must not promise: if the store fails, the node stops.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::register::KEPT;

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// The lines of registers ([`crate::register`]) in pieces, each by its pool and the number of its
/// first line.
const LINES: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("lines");
/// Between two lines of a piece; no line has it.
const BETWEEN: u8 = b'\n';
/// How long lines may wait.
const LINGER: Duration = Duration::from_secs(1);

/// Where records go.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The number of the last record submitted.
    submitted: u64,
    /// None if there is no disk, and nothing to wait for.
    writer: Option<(Sender<Submission>, JoinHandle<()>)>,
    /// Lines of earlier starts.
    lines: Lines,
}

#[derive(Debug)]
enum Submission {
    Record { number: u64, pool: Arc<str>, record: Vec<u8> },
    Line { number: u64, pool: Arc<str>, line: Vec<u8> },
}

/// What is to go to disk.
#[derive(Debug, Default)]
struct Batch {
    /// The number of the last record.
    last: Option<u64>,
    records: BTreeMap<Arc<str>, Vec<u8>>,
    /// Until when they may wait, if there are any.
    lines_by: Option<Instant>,
    lines: BTreeMap<Arc<str>, VecDeque<(u64, Vec<u8>)>>,
    /// The first numbers of the pieces that are on disk, ascending.
    pieces: BTreeMap<Arc<str>, VecDeque<u64>>,
}

impl Batch {
    /// Waits for a record, or until lines have waited long enough; says that nothing more will
    /// come.
    fn fill(&mut self, submissions: &Receiver<Submission>) -> bool {
        while self.last.is_none() && !self.is_late() {
            let more = match self.lines_by {
                None => submissions.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(by) => submissions.recv_timeout(by.saturating_duration_since(Instant::now())),
            };
            match more {
                Ok(more) => self.take(more),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    self.lines_by = self.lines_by.map(|_| Instant::now());
                    return true;
                }
            }
        }
        submissions.try_iter().for_each(|more| self.take(more));
        false
    }

    fn take(&mut self, submission: Submission) {
        match submission {
            Submission::Record { number, pool, record } => {
                self.last = Some(number);
                self.records.insert(pool, record);
            }
            Submission::Line { number, pool, line } => {
                self.lines_by.get_or_insert_with(|| Instant::now() + LINGER);
                let lines = self.lines.entry(pool).or_default();
                lines.push_back((number, line));
                if lines.len() as u64 > KEPT {
                    lines.pop_front();
                }
            }
        }
    }

    /// Whether lines have waited long enough.
    fn is_late(&self) -> bool {
        self.lines_by.is_some_and(|by| by <= Instant::now())
    }
}

/// What the journal reports.
#[derive(Debug)]
pub(crate) enum Written {
    /// Every record up to this number is on disk; writing took so long.
    UpTo(u64, Duration),
    /// The store failed. Nothing more will be written.
    Failed(String),
}

/// Why there is no journal. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("the journal {path}: {error}")]
pub(crate) struct JournalError {
    path: String,
    error: String,
}

/// The last record of each pool.
pub(crate) type Records = BTreeMap<Arc<str>, Vec<u8>>;

/// The lines of each pool's register, in order.
pub(crate) type Lines = BTreeMap<Arc<str>, Vec<Vec<u8>>>;

impl Journal {
    /// A journal that forgets, for clusters that end with their process.
    pub(crate) fn nowhere() -> Self {
        Journal { submitted: 0, writer: None, lines: Lines::new() }
    }

    /// A journal whose disk is the test.
    #[cfg(test)]
    pub(crate) fn slow() -> (Self, impl FnMut() -> Vec<(u64, Vec<u8>)>) {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(|| ());
        let record = |submission| match submission {
            Submission::Record { number, record, .. } => Some((number, record)),
            Submission::Line { .. } => None,
        };
        let submitted = move || receiver.try_iter().filter_map(record).collect();
        let writer = Some((sender, thread));
        (Journal { submitted: 0, writer, lines: Lines::new() }, submitted)
    }

    /// Reads what a journal holds, if there is one, and leaves it as it is.
    pub(crate) fn peek(path: &Path) -> Result<Records, JournalError> {
        if !path.exists() {
            return Ok(Records::new());
        }
        let read = || read(&Database::create(path)?);
        read().map_err(|error: redb::Error| JournalError {
            path: path.display().to_string(),
            error: error.to_string(),
        })
    }

    /// Opens the journal, or makes it, and reads what it holds. What it holds is dropped first
    /// unless it is known to be complete: a record that is older than some promise is worse than
    /// none.
    pub(crate) fn open(
        path: &Path,
        complete: bool,
        report: impl Fn(Written) + Send + 'static,
    ) -> Result<(Self, Records), JournalError> {
        let wrong = |error: &dyn std::fmt::Display| JournalError {
            path: path.display().to_string(),
            error: error.to_string(),
        };
        let database = Database::create(path).map_err(|error| wrong(&error))?;
        if !complete {
            clear(&database).map_err(|error| wrong(&error))?;
        }
        let records = read(&database).map_err(|error| wrong(&error))?;
        let (lines, pieces) = read_lines(&database).map_err(|error| wrong(&error))?;
        let batch = Batch { pieces, ..Batch::default() };
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("quorate-journal".into())
            .spawn(move || run(&database, batch, &receiver, &report))
            .map_err(|error| wrong(&error))?;
        Ok((Journal { submitted: 0, writer: Some((sender, thread)), lines }, records))
    }

    /// Submits a record. What rests on it must wait until this number is reported.
    pub(crate) fn submit(&mut self, pool: &Arc<str>, record: Vec<u8>) -> u64 {
        let Some((sender, _)) = &self.writer else { return 0 };
        self.submitted += 1;
        let (number, pool) = (self.submitted, Arc::clone(pool));
        let submission = Submission::Record { number, pool, record };
        // If the thread is gone it has reported its failure, and the node is stopping.
        let _ = sender.send(submission);
        self.submitted
    }

    /// Submits a line of a pool's register. Nothing waits for it.
    pub(crate) fn note(&mut self, pool: &Arc<str>, number: u64, line: Vec<u8>) {
        if let Some((sender, _)) = &self.writer {
            let _ = sender.send(Submission::Line { number, pool: Arc::clone(pool), line });
        }
    }

    /// What earlier starts noted.
    pub(crate) fn take_lines(&mut self) -> Lines {
        std::mem::take(&mut self.lines)
    }

    /// Waits until everything submitted is on disk, and closes.
    pub(crate) fn close(&mut self) {
        if let Some((sender, thread)) = self.writer.take() {
            drop(sender);
            // A panic of the thread has been printed, and the node is stopping anyway.
            let _ = thread.join();
        }
    }
}

/// The file is free for the next start as soon as its owner is gone.
impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

fn clear(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.delete_table(RECORDS)?;
    transaction.commit()?;
    Ok(())
}

fn read(database: &Database) -> Result<Records, redb::Error> {
    let mut records = Records::new();
    let transaction = database.begin_read()?;
    match transaction.open_table(RECORDS) {
        Ok(table) => {
            for line in table.iter()? {
                let (pool, record) = line?;
                records.insert(pool.value().into(), record.value().to_vec());
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(records)
}

/// The first numbers of each pool's pieces, ascending.
type Pieces = BTreeMap<Arc<str>, VecDeque<u64>>;

fn read_lines(database: &Database) -> Result<(Lines, Pieces), redb::Error> {
    let (mut lines, mut pieces) = (Lines::new(), Pieces::new());
    let transaction = database.begin_read()?;
    match transaction.open_table(LINES) {
        Ok(table) => {
            for piece in table.iter()? {
                let (place, piece) = piece?;
                let (pool, first) = place.value();
                let pool: Arc<str> = pool.into();
                let of_pool = lines.entry(Arc::clone(&pool)).or_default();
                of_pool.extend(piece.value().split(|byte| *byte == BETWEEN).map(<[u8]>::to_vec));
                let forgotten = of_pool.len().saturating_sub(KEPT as usize);
                of_pool.drain(..forgotten);
                pieces.entry(pool).or_default().push_back(first);
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok((lines, pieces))
}

fn run(
    database: &Database,
    mut batch: Batch,
    submissions: &Receiver<Submission>,
    report: &dyn Fn(Written),
) {
    loop {
        let done = batch.fill(submissions);
        let (began, last) = (Instant::now(), batch.last.take());
        let late = batch.is_late();
        if (last.is_some() || late)
            && let Err(error) = write(database, &mut batch, late)
        {
            return report(Written::Failed(error.to_string()));
        }
        if let Some(last) = last {
            report(Written::UpTo(last, began.elapsed()));
        }
        if done {
            return;
        }
    }
}

/// One commit, one fsync (redb's commits are durable unless told otherwise).
fn write(database: &Database, batch: &mut Batch, lines: bool) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    if !batch.records.is_empty() {
        let mut table = transaction.open_table(RECORDS)?;
        for (pool, record) in std::mem::take(&mut batch.records) {
            table.insert(&*pool, record.as_slice())?;
        }
    }
    if lines {
        let mut table = transaction.open_table(LINES)?;
        batch.lines_by = None;
        for (pool, lines) in std::mem::take(&mut batch.lines) {
            let (Some((first, _)), Some((last, _))) = (lines.front(), lines.back()) else {
                continue;
            };
            let (first, oldest) = (*first, (last + 1).saturating_sub(KEPT));
            let lines: Vec<Vec<u8>> = lines.into_iter().map(|(_, line)| line).collect();
            table.insert((&*pool, first), lines.join(&BETWEEN).as_slice())?;
            let pieces = batch.pieces.entry(Arc::clone(&pool)).or_default();
            pieces.push_back(first);
            // All of the first is older than what is kept, if the second begins no later.
            while pieces.get(1).is_some_and(|second| *second <= oldest) {
                if let Some(over) = pieces.pop_front() {
                    table.remove((&*pool, over))?;
                }
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in the file after these lines were noted, each life of the journal noting some.
    fn kept(name: &str, lives: &[std::ops::Range<u64>]) -> (Vec<String>, usize) {
        let directory = std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, pool) = (directory.join("journal"), Arc::from("p"));
        for life in lives {
            let (mut journal, _) = Journal::open(&path, true, |_| ()).unwrap();
            for number in life.clone() {
                journal.note(&pool, number, format!("line {number}").into_bytes());
            }
            journal.close();
        }
        let database = Database::create(&path).unwrap();
        let (mut lines, pieces) = read_lines(&database).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
        let lines = lines.remove("p").unwrap_or_default();
        let words = lines.into_iter().map(|line| String::from_utf8(line).unwrap());
        (words.collect(), pieces.values().map(VecDeque::len).sum())
    }

    #[test]
    fn lines_come_back_in_order_and_pieces_that_nobody_reads_are_removed() {
        let (lines, pieces) = kept("few", &[1..4, 4..6]);
        assert_eq!(lines, ["line 1", "line 2", "line 3", "line 4", "line 5"]);
        assert_eq!(pieces, 2);
        let end = 3 * KEPT;
        let (lines, pieces) = kept("many", &[1..4, 4..KEPT, KEPT..2 * KEPT, 2 * KEPT..end]);
        assert_eq!((lines.len() as u64, pieces), (KEPT, 1));
        assert_eq!(lines.last(), Some(&format!("line {}", end - 1)));
    }
}
