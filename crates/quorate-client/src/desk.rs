//! What a client's handles share with its task: the session, whom to tell, and a way to write.
//!
//! A handle puts what it wants on the desk and then tries to take the session: it works off all
//! that lies there, and what the session wants to send goes out at once, without waking the task.
//! If somebody has the session already, it leaves what it brought: whoever has it looks at the desk
//! once more after giving it back. What takes a runtime (dialing, reading, waiting, writing what
//! did not go at once or is encrypted) is the task's (`driver.rs`), which is called for it.
//!
//! If the task has told several at once, what they want now is gathered until it has its turn
//! again, and leaves together. A system call for each costs several times what it takes to decide
//! what to send.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use quorate_api::link::{self, FromClient, Share};
use quorate_api::{ClaimId, Want};
use tokio::net::{tcp, unix};
use tokio::sync::{oneshot, watch};

use crate::clock::Instant;
use crate::error::{AcquireError, ReleaseError};
use crate::grant::{Grant, Life};
use crate::server::Server;
use crate::session::{Action, News, Session};

/// What the handles ask.
#[derive(Debug)]
pub(crate) enum Command {
    Claim {
        pool: Arc<str>,
        id: ClaimId,
        want: Want,
        give_up_at: Option<Instant>,
        answer: oneshot::Sender<Result<Grant, AcquireError>>,
    },
    /// Nobody listens any more; whatever the claim has is released.
    Abandon {
        id: ClaimId,
    },
    Release {
        id: ClaimId,
        answer: oneshot::Sender<Result<(), ReleaseError>>,
    },
    /// Answer once every release so far is acknowledged or given up.
    Settle {
        answer: oneshot::Sender<()>,
    },
    /// It left a unit that it was asked to leave.
    Left {
        id: ClaimId,
        unit: Share,
    },
    /// Stop looking after it, without releasing.
    Forget {
        id: ClaimId,
    },
}

/// Whether a node answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    Trying,
    Online { server: String },
    Offline { why: String },
}

/// The task is gone: its runtime has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gone;

/// A client's, a pool's or a grant's way to the session. The task ends when all of them are gone
/// and every release they left behind is acknowledged or given up.
#[derive(Debug)]
pub(crate) struct Handle {
    desk: Arc<Desk>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Desk {
    commands: Mutex<Vec<Command>>,
    core: Mutex<Core>,
    call: Call,
    handles: AtomicUsize,
    open: AtomicBool,
}

/// Wakes the task, which may not be waiting yet.
#[derive(Default, Debug)]
struct Call {
    state: Mutex<(bool, Option<Waker>)>,
}

/// The session, and what it takes to do what it wants.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) session: Session,
    servers: Arc<[Server]>,
    reach: watch::Sender<Reach>,
    ears: BTreeMap<ClaimId, Ear>,
    settlers: Vec<oneshot::Sender<()>>,
    /// Room for commands.
    taken: Vec<Command>,
    /// The writing end of the connection to each server.
    pub(crate) ports: Vec<Port>,
    /// What only the task can do.
    pub(crate) chores: VecDeque<Chore>,
    /// When the task looks at the clock.
    pub(crate) armed: Option<Instant>,
    /// How many were told something in this turn.
    told: usize,
    /// Whether the task is about to write what all want who were told something together.
    gathers: bool,
    /// How often something was written.
    #[cfg(test)]
    pub(crate) writes: usize,
}

/// The writing end of the connection to a server, if there is one.
#[derive(Default, Debug)]
pub(crate) struct Port {
    pub(crate) way: Way,
    /// What is still to be written.
    pub(crate) outbox: Vec<u8>,
}

#[derive(Default, Debug)]
pub(crate) enum Way {
    #[default]
    None,
    Plain(tcp::OwnedWriteHalf),
    Local(unix::OwnedWriteHalf),
    /// The task writes.
    Encrypted,
}

/// What only the task can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chore {
    Dial { server: usize },
    HangUp { server: usize },
}

/// Whom to tell about a claim.
#[derive(Debug)]
enum Ear {
    Waiting { pool: Arc<str>, answer: oneshot::Sender<Result<Grant, AcquireError>> },
    Holding { life: watch::Sender<Life> },
    Leaving { answer: oneshot::Sender<Result<(), ReleaseError>> },
}

impl Handle {
    /// The first one.
    pub(crate) fn new(
        session: Session,
        servers: Arc<[Server]>,
        reach: watch::Sender<Reach>,
    ) -> Handle {
        let core = Core {
            session,
            ports: servers.iter().map(|_| Port::default()).collect(),
            servers,
            reach,
            ears: BTreeMap::new(),
            settlers: Vec::new(),
            taken: Vec::new(),
            chores: VecDeque::new(),
            armed: None,
            told: 0,
            gathers: false,
            #[cfg(test)]
            writes: 0,
        };
        let desk = Desk {
            commands: Mutex::default(),
            core: Mutex::new(core),
            call: Call::default(),
            handles: AtomicUsize::new(1),
            open: AtomicBool::new(true),
        };
        Handle { desk: Arc::new(desk) }
    }

    /// For the task.
    pub(crate) fn desk(&self) -> Arc<Desk> {
        Arc::clone(&self.desk)
    }

    /// Has something done, now or as soon as whoever is at work has done the rest.
    ///
    /// # Errors
    /// Nobody will ever do it.
    pub(crate) fn send(&self, command: Command) -> Result<(), Gone> {
        if !self.desk.is_open() {
            return Err(Gone);
        }
        self.desk.commands().push(command);
        self.desk.work();
        Ok(())
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        self.desk.handles.fetch_add(1, Ordering::Relaxed);
        Handle { desk: Arc::clone(&self.desk) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.desk.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.desk.call.ring();
        }
    }
}

impl Call {
    fn state(&self) -> MutexGuard<'_, (bool, Option<Waker>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        let (rung, waker) = &mut *self.state();
        *rung = true;
        if let Some(waker) = waker.take() {
            waker.wake();
        }
    }

    async fn rung(&self) {
        poll_fn(|context| {
            let (rung, waker) = &mut *self.state();
            if std::mem::take(rung) {
                return Poll::Ready(());
            }
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Desk {
    /// A handle more: for a grant, which may be the last to go.
    fn handle(self: &Arc<Self>) -> Handle {
        self.handles.fetch_add(1, Ordering::Relaxed);
        Handle { desk: Arc::clone(self) }
    }

    /// Whether nobody uses the client any more.
    pub(crate) fn is_left(&self) -> bool {
        self.handles.load(Ordering::Acquire) == 0
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Whether something lies here that nobody has taken up.
    pub(crate) fn is_laden(&self) -> bool {
        !self.commands().is_empty()
    }

    /// The session, for the task.
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().expect("a session that panicked is used no more")
    }

    /// Returns when the task is needed.
    pub(crate) async fn called(&self) {
        self.call.rung().await;
    }

    fn commands(&self) -> MutexGuard<'_, Vec<Command>> {
        // A push or a swap is never half done.
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works off what lies here, unless somebody is at it.
    fn work(self: &Arc<Self>) {
        while self.is_laden() {
            if !self.is_open() {
                // Whoever waits for an answer hears that nobody is there.
                drop(std::mem::take(&mut *self.commands()));
                return;
            }
            let Ok(mut core) = self.core.try_lock() else { return };
            core.turn(self, Instant::now());
            let called = core.needs_the_task();
            drop(core);
            if called {
                self.call.ring();
            }
        }
    }

    /// The task is gone, and with it whatever it would have told.
    pub(crate) fn close(&self) {
        self.open.store(false, Ordering::Release);
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let (ears, settlers) = (std::mem::take(&mut core.ears), std::mem::take(&mut core.settlers));
        core.ports.iter_mut().for_each(Port::cut);
        drop(core);
        // Not while the session is taken: grants that nobody got say so as they are dropped.
        drop((ears, settlers, std::mem::take(&mut *self.commands())));
    }
}

impl Port {
    /// There is no connection any more.
    pub(crate) fn cut(&mut self) {
        self.way = Way::None;
        self.outbox.clear();
    }

    /// Writes what goes at once. An error shows again at the next read.
    fn write(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        let written = match &self.way {
            Way::Plain(way) => way.try_write(&self.outbox),
            Way::Local(way) => way.try_write(&self.outbox),
            Way::None | Way::Encrypted => Err(io::ErrorKind::WouldBlock.into()),
        };
        if let Ok(written) = written {
            self.outbox.drain(..written);
        }
    }
}

impl Core {
    /// The task's turn: does what lies on the desk and what the session wants, in order, and
    /// writes all that was gathered. If several were told something, they are likely to want
    /// something now: what they want is gathered, until the task has its turn again; says whether
    /// it is. Whoever is told alone does not wait for anybody.
    pub(crate) fn turn_of_task(&mut self, desk: &Arc<Desk>, now: Instant) -> bool {
        (self.told, self.gathers) = (0, false);
        self.turn(desk, now);
        self.gathers = self.told > 1;
        self.gathers
    }

    /// Does what lies on the desk and what the session wants, in order.
    fn turn(&mut self, desk: &Arc<Desk>, now: Instant) {
        // The clock first: what comes after a deadline must find that it passed.
        self.session.wake(now);
        let mut taken = std::mem::take(&mut self.taken);
        std::mem::swap(&mut taken, &mut *desk.commands());
        for command in taken.drain(..) {
            self.obey(now, command);
        }
        self.taken = taken;
        self.perform(desk);
        if !self.settlers.is_empty() && self.session.is_settled() {
            for settler in self.settlers.drain(..) {
                let _ = settler.send(());
            }
        }
    }

    /// Whether something is left that only the task can do, or that is due before it would look.
    fn needs_the_task(&self) -> bool {
        let earlier = |due| self.armed.is_none_or(|armed| due < armed);
        let blocked = self.is_laden() && !self.gathers;
        !self.chores.is_empty() || blocked || self.session.due().is_some_and(earlier)
    }

    /// Whether anything is still to be written.
    pub(crate) fn is_laden(&self) -> bool {
        self.ports.iter().any(|port| !port.outbox.is_empty())
    }

    fn obey(&mut self, now: Instant, command: Command) {
        match command {
            Command::Claim { pool, id, want, give_up_at, answer } => {
                let name = pool.to_string();
                self.ears.insert(id, Ear::Waiting { pool, answer });
                self.session.claim(now, (name, id), want, give_up_at);
            }
            Command::Abandon { id } => {
                self.ears.remove(&id);
                self.session.abandon(now, id);
            }
            Command::Release { id, answer } => {
                self.ears.insert(id, Ear::Leaving { answer });
                self.session.release(now, id);
            }
            Command::Forget { id } => {
                self.ears.remove(&id);
                self.session.forget(id);
            }
            Command::Left { id, unit } => self.session.left(now, id, unit),
            Command::Settle { answer } => self.settlers.push(answer),
        }
    }

    /// Does what the session wants, in order, and writes without waiting.
    fn perform(&mut self, desk: &Arc<Desk>) {
        while let Some(action) = self.session.next_action() {
            match action {
                Action::Dial { server } => self.chores.push_back(Chore::Dial { server }),
                Action::HangUp { server } => {
                    self.ports[server].cut();
                    self.chores.push_back(Chore::HangUp { server });
                }
                Action::Send { server, request } => {
                    let Port { way, outbox } = &mut self.ports[server];
                    if !matches!(way, Way::None) {
                        link::encode(&FromClient::Request(request), outbox);
                    }
                }
                Action::Tell { id, news } => self.tell(desk, id, news),
                Action::Online { server } => {
                    let server = self.servers[server].to_string();
                    self.reach.send_replace(Reach::Online { server });
                }
                Action::Offline { server, why } => {
                    let why = format!("{}: {why}", self.servers[server]);
                    self.reach.send_replace(Reach::Offline { why });
                }
            }
        }
        if self.gathers {
            return;
        }
        for port in &mut self.ports {
            #[cfg(test)]
            {
                self.writes += usize::from(!port.outbox.is_empty());
            }
            port.write();
        }
    }

    fn tell(&mut self, desk: &Arc<Desk>, id: ClaimId, news: News) {
        let Some(ear) = self.ears.remove(&id) else { return };
        self.told += 1;
        match (news, ear) {
            (
                News::Granted { shares, about, counted, deadline, lease },
                Ear::Waiting { pool, answer },
            ) => {
                let (sender, life) =
                    watch::channel(Life { deadline, lost: None, moves: Vec::new() });
                self.ears.insert(id, Ear::Holding { life: sender });
                let grant = Grant {
                    id,
                    pool,
                    shares,
                    about,
                    counted,
                    lease,
                    life,
                    handle: desk.handle(),
                    released: false,
                };
                // If nobody waits any more the grant comes back, is dropped and thereby released.
                let _ = answer.send(Ok(grant));
            }
            (News::Refused(error), Ear::Waiting { answer, .. }) => {
                let _ = answer.send(Err(error));
            }
            (News::Extended { deadline }, Ear::Holding { life }) => {
                life.send_modify(|life| life.deadline = deadline);
                self.ears.insert(id, Ear::Holding { life });
            }
            (News::Move(it), Ear::Holding { life }) => {
                life.send_modify(|life| life.moves.push(it));
                self.ears.insert(id, Ear::Holding { life });
            }
            (News::Lost(lost), Ear::Holding { life }) => {
                life.send_modify(|life| life.lost = Some(lost));
                self.ears.insert(id, Ear::Holding { life });
            }
            (News::Left(outcome), Ear::Leaving { answer }) => {
                let _ = answer.send(outcome);
            }
            // What crossed a change of mind is no news to anybody.
            (_, ear) => {
                self.ears.insert(id, ear);
            }
        }
    }
}
