//! The journal of durable pools: many records, one fsync.
//!
//! A thread of its own owns the store. Whatever was submitted while it wrote goes into the next
//! commit together, and of several records of one pool only the last is written: a record replaces
//! the one before it. The engine holds back everything that follows a record until the journal has
//! said that it is on disk.
//!
//! A node that cannot remember must not promise: if the store fails, the node stops.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::register::KEPT;

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// The lines of registers, by pool and number ([`crate::register`]).
const LINES: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("lines");
/// How long lines that nobody waits for may wait for a record to go to disk with.
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

/// What goes to disk together.
#[derive(Debug, Default)]
struct Batch {
    /// The number of the last record.
    last: Option<u64>,
    records: BTreeMap<Arc<str>, Vec<u8>>,
    lines: Vec<(Arc<str>, u64, Vec<u8>)>,
}

impl Batch {
    /// Waits for something; none at the end.
    fn next(submissions: &Receiver<Submission>) -> Option<Batch> {
        let mut batch = Batch::default();
        batch.take(submissions.recv().ok()?);
        let until = Instant::now() + LINGER;
        while batch.last.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(more) = submissions.recv_timeout(left) else { break };
            batch.take(more);
        }
        submissions.try_iter().for_each(|more| batch.take(more));
        Some(batch)
    }

    fn take(&mut self, submission: Submission) {
        match submission {
            Submission::Record { number, pool, record } => {
                self.last = Some(number);
                self.records.insert(pool, record);
            }
            Submission::Line { number, pool, line } => self.lines.push((pool, number, line)),
        }
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
        let lines = read_lines(&database).map_err(|error| wrong(&error))?;
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("quorate-journal".into())
            .spawn(move || run(&database, &receiver, &report))
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

fn read_lines(database: &Database) -> Result<Lines, redb::Error> {
    let mut lines = Lines::new();
    let transaction = database.begin_read()?;
    match transaction.open_table(LINES) {
        Ok(table) => {
            for line in table.iter()? {
                let (place, line) = line?;
                let (pool, _) = place.value();
                lines.entry(pool.into()).or_default().push(line.value().to_vec());
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(lines)
}

fn run(database: &Database, submissions: &Receiver<Submission>, report: &dyn Fn(Written)) {
    while let Some(batch) = Batch::next(submissions) {
        let began = Instant::now();
        match (write(database, &batch), batch.last) {
            (Ok(()), Some(last)) => report(Written::UpTo(last, began.elapsed())),
            (Ok(()), None) => {}
            (Err(error), _) => return report(Written::Failed(error.to_string())),
        }
    }
}

/// One commit, one fsync (redb's commits are durable unless told otherwise).
fn write(database: &Database, batch: &Batch) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(RECORDS)?;
        for (pool, record) in &batch.records {
            table.insert(&**pool, record.as_slice())?;
        }
    }
    if !batch.lines.is_empty() {
        let mut table = transaction.open_table(LINES)?;
        for (pool, number, line) in &batch.lines {
            table.insert((&**pool, *number), line.as_slice())?;
            if let Some(oldest) = number.checked_sub(KEPT) {
                table.remove((&**pool, oldest))?;
            }
        }
    }
    transaction.commit()?;
    Ok(())
}
