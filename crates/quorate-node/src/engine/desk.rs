//! The desk before the engine: requests about claims are served by the task that brings them, if
//! nobody is at work; else by whoever is.
//!
//! There is one engine, and one task at a time works with it. A connection puts what its client
//! asks on the desk, and then tries to take the engine: it works off all that lies there, its own
//! and what others have put there meanwhile, and finds its own answers when it is done. If somebody
//! has the engine already, it leaves what it brought: whoever has it looks at the desk once more
//! after giving it back. So no request waits for a task to be woken, none is overlooked, and those
//! of one connection stay in order. Everything else (peers, the disk, the clock, operators) comes
//! to the engine's own task, which takes the engine for its turn like everybody else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use quorate_core::Moment;
use tokio::sync::{Notify, mpsc, oneshot};

use super::{BATCH, Command, Engine, Request, stopping};
use crate::caller::Caller;
use crate::clock;
use crate::journal::Written;

/// Requests that may lie on the desk before whoever brings more waits for the engine.
const CROWDED: usize = 8192;
/// How often somebody looks at the desk again before it leaves the rest to the engine's own task.
const ROUNDS: usize = 64;

/// What a caller wants, and may.
type Errand = (Caller, Request);

/// See the module.
pub(crate) struct Desk {
    errands: Mutex<Vec<Errand>>,
    /// Nothing once it has stopped.
    engine: Mutex<Option<Engine>>,
    /// Calls the engine's own task.
    bell: Notify,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

impl Desk {
    /// A desk with nobody behind it, unless there is an engine.
    pub(crate) fn new(engine: Option<Engine>) -> Self {
        let (errands, engine) = (Mutex::default(), Mutex::new(engine));
        Desk { errands, engine, bell: Notify::new() }
    }

    /// Puts something on the desk. Whoever does calls [`Desk::work`] when it has put down all.
    pub(crate) fn bring(&self, caller: Caller, request: Request) {
        self.errands().push((caller, request));
    }

    /// Works off what lies on the desk, unless somebody is at it.
    pub(crate) fn work(&self) {
        for _ in 0..ROUNDS {
            // After the first round: somebody may have put something there, found the engine taken,
            // and relied on us.
            let lying = self.errands().len();
            if lying == 0 {
                return;
            }
            let engine = match self.engine.try_lock() {
                Err(TryLockError::WouldBlock) if lying < CROWDED => return,
                Err(TryLockError::WouldBlock) => self.engine.lock().ok(),
                Err(TryLockError::Poisoned(_)) => None,
                Ok(engine) => Some(engine),
            };
            match engine {
                Some(engine) => self.serve(engine),
                None => self.dismiss(),
            }
        }
        self.bell.notify_one();
    }

    fn serve(&self, mut engine: MutexGuard<'_, Option<Engine>>) {
        let Some(engine) = &mut *engine else { return self.dismiss() };
        // If this panics, the engine is given up, and its own task finds that out at once.
        let _told = Told(&self.bell);
        engine.work_off(&self.errands);
        engine.follow_up();
        if engine.rings_earlier() {
            self.bell.notify_one();
        }
    }

    /// There is no engine any more: everybody is told.
    fn dismiss(&self) {
        for (_, request) in std::mem::take(&mut *self.errands()) {
            if let Request::Claim { waiter, .. } = request {
                waiter.answer(Err(stopping()));
            }
        }
    }

    /// Serves whatever does not come by the desk, until told to stop, or until everybody who could
    /// send commands is gone.
    pub(crate) async fn run(
        self: Arc<Self>,
        mut commands: mpsc::Receiver<Command>,
        mut written: mpsc::UnboundedReceiver<Written>,
    ) {
        let _engine = Ends(&self);
        let mut batch = Vec::with_capacity(BATCH);
        let sleep = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(sleep);
        let mut armed = None;
        loop {
            let next = self.arm();
            // The timer is left alone while the next alarm stays the same.
            if let Some(at) = next.filter(|_| next != armed) {
                let after = at.since(clock::now());
                sleep.as_mut().reset(tokio::time::Instant::now() + after);
                armed = next;
            }
            let mut report = None;
            tokio::select! {
                biased;
                Some(written) = written.recv() => report = Some(written),
                count = commands.recv_many(&mut batch, BATCH) => if count == 0 { break },
                () = &mut sleep, if armed.is_some() => armed = None,
                () = self.bell.notified() => {}
            }
            if let Some(done) = self.turn(report, &mut batch) {
                // Whoever stopped us may have given up waiting.
                let _ = done.send(());
                break;
            }
        }
    }

    /// When the engine's own task has to look at the clock again.
    fn arm(&self) -> Option<Moment> {
        let mut engine = self.engine();
        let engine = engine.as_mut()?;
        engine.armed = engine.alarms.next();
        engine.armed
    }

    /// One turn of the engine's own task; whom to tell if it was the last.
    fn turn(
        &self,
        report: Option<Written>,
        batch: &mut Vec<Command>,
    ) -> Option<oneshot::Sender<()>> {
        let mut engine = self.engine();
        let engine = engine.as_mut()?;
        if let Some(written) = report {
            engine.on_written(written);
        }
        // First: who brings something and then asks for something else expects it done.
        engine.work_off(&self.errands);
        let mut stopped = None;
        for command in batch.drain(..) {
            if let Some(done) = engine.on(command) {
                stopped = Some(done);
            }
        }
        engine.follow_up();
        if stopped.is_some() {
            engine.journal.close();
        }
        stopped
    }

    fn errands(&self) -> MutexGuard<'_, Vec<Errand>> {
        // A push or a swap is never half done.
        self.errands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine(&self) -> MutexGuard<'_, Option<Engine>> {
        self.engine.lock().expect("an engine that panicked promises nothing more")
    }
}

impl Engine {
    /// Does what lies on the desk.
    fn work_off(&mut self, errands: &Mutex<Vec<Errand>>) {
        let mut taken = std::mem::take(&mut self.errands);
        // Not held while they are done: others go on bringing.
        std::mem::swap(&mut taken, &mut errands.lock().unwrap_or_else(PoisonError::into_inner));
        for (caller, request) in taken.drain(..) {
            // Not earlier than it lay there, nor than what was done before it.
            self.taken_up = Some(clock::now());
            self.on_request(caller, request);
        }
        self.taken_up = None;
        self.errands = taken;
    }

    /// What is due by now, and what goes out because of all that was done.
    fn follow_up(&mut self) {
        self.ring();
        self.tell_ends();
        self.tell_owners();
        self.flush();
    }

    /// Whether something is due before the engine's own task would look.
    fn rings_earlier(&self) -> bool {
        let (next, armed) = (self.alarms.next(), self.armed);
        next.is_some_and(|next| armed.is_none_or(|armed| next < armed))
    }
}

/// Calls the engine's own task if whoever works with the engine panics.
struct Told<'a>(&'a Notify);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.notify_one();
        }
    }
}

/// The engine, its journal and what else it owns end with its own task, however that ends.
struct Ends<'a>(&'a Desk);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        drop(self.0.engine.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.0.dismiss();
    }
}
