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

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");

/// Where records go.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The number of the last record submitted.
    submitted: u64,
    /// None if there is no disk, and nothing to wait for.
    writer: Option<(Sender<Submission>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Submission {
    number: u64,
    pool: Arc<str>,
    record: Vec<u8>,
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

impl Journal {
    /// A journal that forgets, for clusters that end with their process.
    pub(crate) fn nowhere() -> Self {
        Journal { submitted: 0, writer: None }
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
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("quorate-journal".into())
            .spawn(move || run(&database, &receiver, &report))
            .map_err(|error| wrong(&error))?;
        Ok((Journal { submitted: 0, writer: Some((sender, thread)) }, records))
    }

    /// Submits a record. What rests on it must wait until this number is reported.
    pub(crate) fn submit(&mut self, pool: &Arc<str>, record: Vec<u8>) -> u64 {
        let Some((sender, _)) = &self.writer else { return 0 };
        self.submitted += 1;
        let submission = Submission { number: self.submitted, pool: Arc::clone(pool), record };
        // If the thread is gone it has reported its failure, and the node is stopping.
        let _ = sender.send(submission);
        self.submitted
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

fn run(database: &Database, submissions: &Receiver<Submission>, report: &dyn Fn(Written)) {
    while let Ok(first) = submissions.recv() {
        let mut last = first.number;
        let mut batch = BTreeMap::from([(first.pool, first.record)]);
        for submission in submissions.try_iter() {
            last = submission.number;
            batch.insert(submission.pool, submission.record);
        }
        let began = Instant::now();
        match write(database, &batch) {
            Ok(()) => report(Written::UpTo(last, began.elapsed())),
            Err(error) => return report(Written::Failed(error.to_string())),
        }
    }
}

/// One commit, one fsync (redb's commits are durable unless told otherwise).
fn write(database: &Database, batch: &BTreeMap<Arc<str>, Vec<u8>>) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(RECORDS)?;
        for (pool, record) in batch {
            table.insert(&**pool, record.as_slice())?;
        }
    }
    transaction.commit()?;
    Ok(())
}
