//! The task that gives the session a clock, a socket and somebody to tell.
//!
//! It owns the session. Clients, pools and grants send it [`Command`]s; it ends when all of them
//! are gone and every release they left behind is acknowledged or given up.

use std::collections::BTreeMap;
use std::future::Future as _;
use std::io;
use std::pin::pin;
use std::task::{Context, Waker};

use quorate_api::link::{self, FromClient, FromNode, PREFACE, Share};
use quorate_api::{ClaimId, Want};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::{Bell, Instant};
use crate::error::{AcquireError, ReleaseError};
use crate::grant::{Grant, Life};
use crate::server::Server;
use crate::session::{Action, News, Session};
use crate::tls::{self, Stream, Tls, told};

/// What the handles ask of the task.
#[derive(Debug)]
pub(crate) enum Command {
    Claim {
        pool: String,
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

/// Whom to tell about a claim.
#[derive(Debug)]
enum Ear {
    Waiting { pool: String, answer: oneshot::Sender<Result<Grant, AcquireError>> },
    Holding { life: watch::Sender<Life> },
    Leaving { answer: oneshot::Sender<Result<(), ReleaseError>> },
}

pub(crate) struct Driver {
    servers: Vec<Server>,
    tls: Option<Tls>,
    session: Session,
    commands: mpsc::UnboundedReceiver<Command>,
    /// For the grants to come. Weak: the task must not keep itself alive.
    handle: mpsc::WeakUnboundedSender<Command>,
    reach: watch::Sender<Reach>,
    ears: BTreeMap<ClaimId, Ear>,
    wire: Wire,
    settlers: Vec<oneshot::Sender<()>>,
    bell: Bell,
}

/// The socket, if any, and what waits on either side of it.
enum Wire {
    None,
    Dialing(tokio::task::JoinHandle<io::Result<Stream>>),
    /// `late`: something was written that may not have left yet, where it is encrypted.
    Open {
        stream: Stream,
        inbox: Vec<u8>,
        outbox: Vec<u8>,
        late: bool,
    },
}

/// Something that happened.
enum Event {
    Commands,
    HandlesGone,
    Dialed(io::Result<Stream>),
    Read(io::Result<usize>),
    Wrote(io::Result<()>),
    Clock,
}

/// Commands taken at once: many clients share one write.
const BATCH: usize = 256;
const READ_CHUNK: usize = 16 * 1024;

impl Driver {
    pub(crate) fn new(
        (servers, tls): (Vec<Server>, Option<Tls>),
        session: Session,
        commands: mpsc::UnboundedReceiver<Command>,
        handle: mpsc::WeakUnboundedSender<Command>,
        reach: watch::Sender<Reach>,
    ) -> Driver {
        let (ears, wire, settlers) = (BTreeMap::new(), Wire::None, Vec::new());
        let bell = Bell::default();
        Driver { servers, tls, session, commands, handle, reach, ears, wire, settlers, bell }
    }

    pub(crate) async fn run(mut self) {
        let mut handles_gone = false;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            // The clock first: an answer that comes after a deadline must find that it passed.
            self.session.wake(Instant::now());
            self.perform();
            if !self.settlers.is_empty() && self.session.is_settled() {
                for settler in self.settlers.drain(..) {
                    let _ = settler.send(());
                }
            }
            if handles_gone && self.session.is_idle() && self.wire.is_flushed() {
                return;
            }
            let event = self.wait(&mut batch, handles_gone).await;
            let now = Instant::now();
            self.session.wake(now);
            match event {
                Event::Clock => {}
                Event::HandlesGone => handles_gone = true,
                Event::Commands => {
                    for command in batch.drain(..) {
                        self.obey(now, command);
                    }
                }
                Event::Dialed(outcome) => self.on_dialed(now, outcome),
                Event::Wrote(Ok(())) => {}
                Event::Read(Ok(0)) => self.on_closed(now, "the node hung up".into()),
                Event::Read(Ok(_)) => self.on_read(now),
                Event::Read(Err(error)) | Event::Wrote(Err(error)) => {
                    self.on_closed(now, told(&error));
                }
            }
        }
    }

    async fn wait(&mut self, batch: &mut Vec<Command>, handles_gone: bool) -> Event {
        let due = self.session.due();
        tokio::select! {
            taken = self.commands.recv_many(batch, BATCH), if !handles_gone => match taken {
                0 => Event::HandlesGone,
                _ => Event::Commands,
            },
            event = self.wire.next() => event,
            () = self.bell.ring(due) => Event::Clock,
        }
    }

    fn obey(&mut self, now: Instant, command: Command) {
        match command {
            Command::Claim { pool, id, want, give_up_at, answer } => {
                self.ears.insert(id, Ear::Waiting { pool: pool.clone(), answer });
                self.session.claim(now, (pool, id), want, give_up_at);
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

    fn on_dialed(&mut self, now: Instant, outcome: io::Result<Stream>) {
        match outcome {
            Ok(stream) => {
                let (inbox, outbox) = (Vec::new(), PREFACE.to_vec());
                self.wire = Wire::Open { stream, inbox, outbox, late: false };
                self.session.dialed(now);
            }
            Err(error) => {
                self.wire = Wire::None;
                self.session.disconnected(now, told(&error));
            }
        }
    }

    fn on_closed(&mut self, now: Instant, why: String) {
        self.wire = Wire::None;
        self.session.disconnected(now, why);
    }

    fn on_read(&mut self, now: Instant) {
        let Wire::Open { inbox, .. } = &mut self.wire else { return };
        let mut at = 0;
        let broken = loop {
            match link::decode::<FromNode>(&inbox[at..]) {
                Ok(Some((message, taken))) => {
                    at += taken;
                    self.session.heard(now, message);
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        inbox.drain(..at);
        if let Some(error) = broken {
            self.on_closed(now, told(&error));
        }
    }

    /// Does what the session wants, in order.
    fn perform(&mut self) {
        while let Some(action) = self.session.next_action() {
            match action {
                Action::Dial { server } => {
                    let (server, tls) = (self.servers[server].clone(), self.tls.clone());
                    let dial = async move { tls::dial(&server, tls.as_ref()).await };
                    self.wire = Wire::Dialing(tokio::spawn(dial));
                }
                Action::HangUp => self.wire = Wire::None,
                Action::Send(request) => {
                    if let Wire::Open { outbox, .. } = &mut self.wire {
                        link::encode(&FromClient::Request(request), outbox);
                    }
                }
                Action::Tell { id, news } => self.tell(id, news),
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
        self.wire.flush_what_goes();
    }

    fn tell(&mut self, id: ClaimId, news: News) {
        let Some(ear) = self.ears.remove(&id) else { return };
        match (news, ear) {
            (
                News::Granted { shares, about, counted, deadline, lease },
                Ear::Waiting { pool, answer },
            ) => {
                let Some(commands) = self.handle.upgrade() else { return };
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
                    commands,
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

impl Wire {
    /// The next thing that happens to the connection; never, if there is none.
    async fn next(&mut self) -> Event {
        match self {
            Wire::None => std::future::pending().await,
            Wire::Dialing(dial) => {
                let outcome = dial.await.unwrap_or_else(|error| Err(io::Error::other(error)));
                Event::Dialed(outcome)
            }
            Wire::Open { stream, inbox, outbox, late: false } if outbox.is_empty() => {
                inbox.reserve(READ_CHUNK);
                Event::Read(stream.read_buf(inbox).await)
            }
            Wire::Open { stream: Stream::Plain(stream), inbox, outbox, .. } => {
                let (mut reader, writer) = stream.split();
                inbox.reserve(READ_CHUNK);
                tokio::select! {
                    read = reader.read_buf(inbox) => Event::Read(read),
                    ready = writer.writable() => match ready {
                        Ok(()) => Event::Wrote(write_some(writer.as_ref(), outbox)),
                        Err(error) => Event::Wrote(Err(error)),
                    },
                }
            }
            Wire::Open { stream, inbox, outbox, late } => {
                let (mut reader, mut writer) = tokio::io::split(stream);
                inbox.reserve(READ_CHUNK);
                tokio::select! {
                    read = reader.read_buf(inbox) => Event::Read(read),
                    wrote = write_encrypted(&mut writer, outbox, late) => Event::Wrote(wrote),
                }
            }
        }
    }

    /// Writes without waiting; what does not go stays for [`Wire::next`].
    fn flush_what_goes(&mut self) {
        if self.is_flushed() {
            return;
        }
        let Wire::Open { stream, outbox, late, .. } = self else { return };
        // An error shows again at the next read.
        match stream {
            Stream::Plain(stream) => _ = write_some(stream, outbox),
            _ => {
                // Once, and nobody is woken for it: `next` asks again for what is left.
                let mut unheard = Context::from_waker(Waker::noop());
                _ = pin!(write_encrypted(stream, outbox, late)).poll(&mut unheard);
            }
        }
    }

    fn is_flushed(&self) -> bool {
        !matches!(self, Wire::Open { outbox, late, .. } if *late || !outbox.is_empty())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Wire::Dialing(dial) = self {
            dial.abort();
        }
    }
}

/// Writes some. May be dropped at any time: what was written is taken out at once, and `late` says
/// that it may have to be sent on its way.
async fn write_encrypted(
    writer: &mut (impl AsyncWrite + Unpin),
    outbox: &mut Vec<u8>,
    late: &mut bool,
) -> io::Result<()> {
    if !outbox.is_empty() {
        let written = writer.write(outbox).await?;
        *late = true;
        outbox.drain(..written);
    }
    writer.flush().await?;
    *late = false;
    Ok(())
}

fn write_some(stream: &TcpStream, outbox: &mut Vec<u8>) -> io::Result<()> {
    match stream.try_write(outbox) {
        Ok(written) => {
            outbox.drain(..written);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}
