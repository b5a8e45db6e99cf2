//! The task that gives the session a clock and sockets.
//!
//! Clients, pools and grants work with the session themselves (`desk.rs`); the task dials, reads,
//! waits, and writes what did not go at once. It ends when all of them are gone and every release
//! they left behind is acknowledged or given up.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quorate_api::link::{self, FromNode, PREFACE};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::{tcp, unix};

use crate::clock::{Bell, Instant};
use crate::desk::{Chore, Core, Desk, Port, Way};
use crate::server::Server;
use crate::tls::{self, Stream, Tls, told};

pub(crate) struct Driver {
    desk: Arc<Desk>,
    servers: Arc<[Server]>,
    tls: Option<Tls>,
    /// One for each server.
    wires: Vec<Wire>,
    /// The wire that is looked at first next time: none may starve another.
    first: usize,
    /// Whether it lets others add what they want before it writes.
    gathers: bool,
    bell: Bell,
}

/// The reading end of a connection, if any, and what waits on that side of it.
enum Wire {
    None,
    Dialing(tokio::task::JoinHandle<io::Result<Stream>>),
    /// `blocked`: there is more to write, as soon as it goes.
    Open {
        reader: Reader,
        inbox: Vec<u8>,
        blocked: bool,
    },
}

enum Reader {
    Plain(tcp::OwnedReadHalf),
    Local(unix::OwnedReadHalf),
    /// Both ends. `late`: something was written that may not have left yet.
    Encrypted {
        stream: Stream,
        outbox: Vec<u8>,
        late: bool,
    },
}

/// Something that happened.
enum Event {
    /// The task was called, or it is time to look at the clock.
    Look,
    /// On the wire to this server.
    Wire(usize, Happened),
}

/// What happened on a wire.
enum Happened {
    Dialed(io::Result<Stream>),
    Read(io::Result<usize>),
    /// More can be written, or was.
    Wrote(io::Result<()>),
}

const READ_CHUNK: usize = 16 * 1024;

impl Driver {
    pub(crate) fn new(desk: Arc<Desk>, servers: Arc<[Server]>, tls: Option<Tls>) -> Driver {
        let wires = servers.iter().map(|_| Wire::None).collect();
        Driver { desk, servers, tls, wires, first: 0, gathers: false, bell: Bell::default() }
    }

    pub(crate) async fn run(mut self) {
        let mut event = Event::Look;
        loop {
            if !self.turn(event) {
                return;
            }
            // Whoever put it there found the session taken, and relied on us.
            if self.desk.is_laden() {
                event = Event::Look;
                continue;
            }
            if self.gathers {
                let_others_run().await;
                event = Event::Look;
                continue;
            }
            event = tokio::select! {
                biased;
                () = self.desk.called() => Event::Look,
                event = next(&mut self.wires, self.first) => event,
                () = self.bell.rung() => Event::Look,
            };
        }
    }

    /// What happened is told to the session, and what it wants is done. Says whether anybody needs
    /// the task any longer.
    fn turn(&mut self, event: Event) -> bool {
        let desk = Arc::clone(&self.desk);
        let mut core = desk.core();
        let now = Instant::now();
        // The clock first: an answer that comes after a deadline must find that it passed.
        core.session.wake(now);
        if let Event::Wire(server, happened) = event {
            self.first = (server + 1) % self.wires.len();
            // What somebody else decided since comes before what happened to the connection of
            // before.
            if !core.chores.contains(&Chore::HangUp { server }) {
                self.on_wire(&mut core, now, server, happened);
            }
        }
        self.gathers = core.turn_of_task(&desk, now);
        while let Some(chore) = core.chores.pop_front() {
            match chore {
                Chore::HangUp { server } => self.wires[server] = Wire::None,
                Chore::Dial { server } => {
                    let (named, tls) = (self.servers[server].clone(), self.tls.clone());
                    let dial = async move { tls::dial(&named, tls.as_ref()).await };
                    self.wires[server] = Wire::Dialing(tokio::spawn(dial));
                }
            }
        }
        for (wire, port) in self.wires.iter_mut().zip(&mut core.ports) {
            wire.takes_over(port);
        }
        core.armed = self.bell.set(core.session.due());
        let flushed = !core.is_laden() && self.wires.iter().all(Wire::is_flushed);
        !(core.session.is_idle() && flushed && desk.is_left())
    }

    fn on_wire(&mut self, core: &mut Core, now: Instant, server: usize, happened: Happened) {
        match happened {
            Happened::Wrote(Ok(())) => {}
            Happened::Dialed(outcome) => self.on_dialed(core, now, server, outcome),
            Happened::Read(Ok(0)) => self.on_closed(core, now, server, "the node hung up".into()),
            Happened::Read(Ok(_)) => self.on_read(core, now, server),
            Happened::Read(Err(error)) | Happened::Wrote(Err(error)) => {
                self.on_closed(core, now, server, told(&error));
            }
        }
    }

    fn on_dialed(
        &mut self,
        core: &mut Core,
        now: Instant,
        server: usize,
        outcome: io::Result<Stream>,
    ) {
        core.ports[server].cut();
        match outcome {
            Ok(stream) => {
                let (reader, way) = match stream {
                    Stream::Plain(stream) => {
                        let (reader, writer) = stream.into_split();
                        (Reader::Plain(reader), Way::Plain(writer))
                    }
                    Stream::Local(stream) => {
                        let (reader, writer) = stream.into_split();
                        (Reader::Local(reader), Way::Local(writer))
                    }
                    stream @ Stream::Tls(_) => {
                        let (outbox, late) = (Vec::new(), false);
                        (Reader::Encrypted { stream, outbox, late }, Way::Encrypted)
                    }
                };
                core.ports[server] = Port { way, outbox: PREFACE.to_vec() };
                self.wires[server] = Wire::Open { reader, inbox: Vec::new(), blocked: false };
                core.session.dialed(now, server);
            }
            Err(error) => {
                self.wires[server] = Wire::None;
                core.session.disconnected(now, server, told(&error));
            }
        }
    }

    fn on_closed(&mut self, core: &mut Core, now: Instant, server: usize, why: String) {
        self.wires[server] = Wire::None;
        core.ports[server].cut();
        core.session.disconnected(now, server, why);
    }

    fn on_read(&mut self, core: &mut Core, now: Instant, server: usize) {
        let Wire::Open { inbox, .. } = &mut self.wires[server] else { return };
        let mut at = 0;
        let broken = loop {
            match link::decode::<FromNode>(&inbox[at..]) {
                Ok(Some((message, taken))) => {
                    at += taken;
                    core.session.heard(now, server, message);
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        inbox.drain(..at);
        if let Some(error) = broken {
            self.on_closed(core, now, server, told(&error));
        }
    }
}

/// However it ends, whoever waits hears that nobody is there.
impl Drop for Driver {
    fn drop(&mut self) {
        self.desk.close();
    }
}

/// The next thing that happens to any connection, of those that have something from the one that
/// comes `first`; never, if there is none.
async fn next(wires: &mut [Wire], first: usize) -> Event {
    poll_fn(|context| {
        for offset in 0..wires.len() {
            let server = (first + offset) % wires.len();
            if let Poll::Ready(happened) = wires[server].poll(context) {
                return Poll::Ready(Event::Wire(server, happened));
            }
        }
        Poll::Pending
    })
    .await
}

/// Lets everybody run first who can. Unlike tokio's own yield it waits for no look at sockets, and
/// is not bound to this thread: should somebody keep that busy, another one goes on.
async fn let_others_run() {
    let mut ran = false;
    poll_fn(|context| {
        if ran {
            return Poll::Ready(());
        }
        ran = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Wire {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Happened> {
        match self {
            Wire::None => Poll::Pending,
            Wire::Dialing(dial) => Pin::new(dial).poll(context).map(|outcome| {
                Happened::Dialed(outcome.unwrap_or_else(|error| Err(io::Error::other(error))))
            }),
            Wire::Open { reader, inbox, blocked } => {
                inbox.reserve(READ_CHUNK);
                if let Poll::Ready(read) = reader.poll_read(context, inbox) {
                    return Poll::Ready(Happened::Read(read));
                }
                reader.poll_write(context, *blocked).map(Happened::Wrote)
            }
        }
    }

    /// Takes over what the task has to write itself, or to wait for.
    fn takes_over(&mut self, port: &mut Port) {
        let Wire::Open { reader, blocked, .. } = self else { return };
        if let Reader::Encrypted { outbox, .. } = reader {
            outbox.append(&mut port.outbox);
        }
        *blocked = !port.outbox.is_empty();
    }

    fn is_flushed(&self) -> bool {
        match self {
            Wire::Open { reader: Reader::Encrypted { outbox, late, .. }, .. } => {
                !*late && outbox.is_empty()
            }
            _ => true,
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Wire::Dialing(dial) = self {
            dial.abort();
        }
    }
}

impl Reader {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        inbox: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        // Nothing is lost with a read that is dropped before it is done.
        match self {
            Reader::Plain(reader) => pin!(reader.read_buf(inbox)).poll(context),
            Reader::Local(reader) => pin!(reader.read_buf(inbox)).poll(context),
            Reader::Encrypted { stream, .. } => pin!(stream.read_buf(inbox)).poll(context),
        }
    }

    /// Ready when more can be written, if something is `blocked`, or when something was.
    fn poll_write(&mut self, context: &mut Context<'_>, blocked: bool) -> Poll<io::Result<()>> {
        match self {
            Reader::Plain(reader) if blocked => reader.as_ref().poll_write_ready(context),
            Reader::Local(reader) if blocked => reader.as_ref().poll_write_ready(context),
            Reader::Plain(_) | Reader::Local(_) => Poll::Pending,
            Reader::Encrypted { stream, outbox, late } => {
                write_encrypted(stream, outbox, late, context)
            }
        }
    }
}

/// Writes some. What was written is taken out at once, and `late` says that it may have to be sent
/// on its way.
fn write_encrypted(
    stream: &mut Stream,
    outbox: &mut Vec<u8>,
    late: &mut bool,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    if outbox.is_empty() && !*late {
        return Poll::Pending;
    }
    if !outbox.is_empty() {
        let written = ready!(Pin::new(&mut *stream).poll_write(context, outbox))?;
        *late = true;
        outbox.drain(..written);
    }
    ready!(Pin::new(stream).poll_flush(context))?;
    *late = false;
    Poll::Ready(Ok(()))
}
