//! A disk that can be looked at, copied and broken off.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::{Database, StorageBackend};

use crate::{Identity, Store};

/// What a store did to its disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Write(u64, Vec<u8>),
    Length(u64),
    /// All before this survives a loss of power.
    Sync,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    acts: Vec<Act>,
    full: bool,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics here")
    }

    /// The disk as it would be if the process died now: everything written is there.
    pub(super) fn copy(&self) -> Disk {
        let bytes = self.state().bytes.clone();
        Disk(Arc::new(Mutex::new(State { bytes, ..State::default() })))
    }

    /// From now on it takes nothing more.
    pub(super) fn fill(&self) {
        self.state().full = true;
    }

    /// How many acts there were.
    pub(super) fn acts(&self) -> usize {
        self.state().acts.len()
    }

    /// The disk after so many acts on an empty one: everything written is there.
    fn killed_after(&self, acts: usize) -> Disk {
        Disk::made_by(&self.state().acts[..acts])
    }

    /// The same, and then the power fails: nothing is there that was not synced.
    fn dark_after(&self, acts: usize) -> Disk {
        let state = self.state();
        let synced = state.acts[..acts].iter().rposition(|act| *act == Act::Sync);
        Disk::made_by(&state.acts[..synced.map_or(0, |at| at + 1)])
    }

    /// Every crash that differs: killed after any number of acts from `from` on, and without power
    /// just before each sync, when most depends on what is not there, and at the end.
    pub(super) fn crashes(&self, from: usize) -> Vec<(usize, Disk)> {
        let acts = self.state().acts.clone();
        let dark = (from..=acts.len()).filter(|at| matches!(acts.get(*at), Some(Act::Sync) | None));
        let dark = dark.map(|at| (at, self.dark_after(at)));
        let killed = (from..=acts.len()).map(|at| (at, self.killed_after(at)));
        killed.chain(dark).collect()
    }

    fn made_by(acts: &[Act]) -> Disk {
        let disk = Disk::default();
        for act in acts {
            disk.state().perform(act);
        }
        disk
    }

    pub(super) fn database(&self) -> Result<Database, redb::DatabaseError> {
        // A small cache: what is not in it is read from here.
        Database::builder().set_cache_size(1 << 20).create_with_backend(self.clone())
    }

    pub(super) fn create(&self, identity: Identity) -> Store {
        Store::create_in(self.database().expect("a new disk"), identity).expect("nobody's")
    }

    pub(super) fn open(&self) -> Store {
        Store::open_in(self.database().expect("it recovers")).expect("somebody's")
    }
}

impl State {
    fn perform(&mut self, act: &Act) {
        match act {
            Act::Write(at, data) => {
                let at = usize::try_from(*at).expect("small");
                self.bytes[at..at + data.len()].copy_from_slice(data);
            }
            Act::Length(length) => {
                self.bytes.resize(usize::try_from(*length).expect("small"), 0);
            }
            Act::Sync => {}
        }
    }

    fn act(&mut self, act: Act) -> io::Result<()> {
        if self.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.perform(&act);
        self.acts.push(act);
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let at = usize::try_from(at).expect("small");
        let bytes = state.bytes.get(at..at + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.state().act(Act::Length(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state().act(Act::Sync)
    }

    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.state().act(Act::Write(at, data.to_vec()))
    }
}
