//! The task that gives the session a clock and a socket.
//!
//! Clients, pools and grants work with the session themselves (`desk.rs`); the task dials, reads,
//! waits, and writes what did not go at once. It ends when all of them are gone and every release
//! they left behind is acknowledged or given up.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorate_api::link::{self, FromNode, PREFACE};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{tcp, unix};

use crate::clock::{Bell, Instant};
use crate::desk::{Chore, Core, Desk, Way};
use crate::server::Server;
use crate::tls::{self, Stream, Tls, told};

pub(crate) struct Driver {
    desk: Arc<Desk>,
    servers: Arc<[Server]>,
    tls: Option<Tls>,
    wire: Wire,
    bell: Bell,
}

/// The reading end of the connection, if any, and what waits on that side of it.
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
    Dialed(io::Result<Stream>),
    Read(io::Result<usize>),
    /// More can be written, or was.
    Wrote(io::Result<()>),
}

const READ_CHUNK: usize = 16 * 1024;

impl Driver {
    pub(crate) fn new(desk: Arc<Desk>, servers: Arc<[Server]>, tls: Option<Tls>) -> Driver {
        Driver { desk, servers, tls, wire: Wire::None, bell: Bell::default() }
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
            event = tokio::select! {
                biased;
                () = self.desk.called() => Event::Look,
                event = self.wire.next() => event,
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
        // What somebody else decided since comes before what happened to the connection of before.
        let gone = core.chores.contains(&Chore::HangUp);
        match event {
            Event::Look | Event::Wrote(Ok(())) => {}
            Event::Read(_) | Event::Wrote(_) if gone => {}
            Event::Dialed(outcome) if !gone => self.on_dialed(&mut core, now, outcome),
            Event::Dialed(_) => {}
            Event::Read(Ok(0)) => self.on_closed(&mut core, now, "the node hung up".into()),
            Event::Read(Ok(_)) => self.on_read(&mut core, now),
            Event::Read(Err(error)) | Event::Wrote(Err(error)) => {
                self.on_closed(&mut core, now, told(&error));
            }
        }
        core.turn(&desk, now);
        while let Some(chore) = core.chores.pop_front() {
            match chore {
                Chore::HangUp => self.wire = Wire::None,
                Chore::Dial { server } => {
                    let (server, tls) = (self.servers[server].clone(), self.tls.clone());
                    let dial = async move { tls::dial(&server, tls.as_ref()).await };
                    self.wire = Wire::Dialing(tokio::spawn(dial));
                }
            }
        }
        self.wire.takes_over(&mut core);
        core.armed = self.bell.set(core.session.due());
        let idle = core.session.is_idle() && core.outbox.is_empty() && self.wire.is_flushed();
        !(idle && desk.is_left())
    }

    fn on_dialed(&mut self, core: &mut Core, now: Instant, outcome: io::Result<Stream>) {
        core.cut();
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
                core.way = way;
                core.outbox.extend_from_slice(&PREFACE);
                self.wire = Wire::Open { reader, inbox: Vec::new(), blocked: false };
                core.session.dialed(now);
            }
            Err(error) => {
                self.wire = Wire::None;
                core.session.disconnected(now, told(&error));
            }
        }
    }

    fn on_closed(&mut self, core: &mut Core, now: Instant, why: String) {
        self.wire = Wire::None;
        core.cut();
        core.session.disconnected(now, why);
    }

    fn on_read(&mut self, core: &mut Core, now: Instant) {
        let Wire::Open { inbox, .. } = &mut self.wire else { return };
        let mut at = 0;
        let broken = loop {
            match link::decode::<FromNode>(&inbox[at..]) {
                Ok(Some((message, taken))) => {
                    at += taken;
                    core.session.heard(now, message);
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        inbox.drain(..at);
        if let Some(error) = broken {
            self.on_closed(core, now, told(&error));
        }
    }
}

/// However it ends, whoever waits hears that nobody is there.
impl Drop for Driver {
    fn drop(&mut self) {
        self.desk.close();
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
            Wire::Open { reader: Reader::Encrypted { stream, outbox, late }, inbox, .. } => {
                inbox.reserve(READ_CHUNK);
                if outbox.is_empty() && !*late {
                    return Event::Read(stream.read_buf(inbox).await);
                }
                let (mut reader, mut writer) = tokio::io::split(stream);
                tokio::select! {
                    read = reader.read_buf(inbox) => Event::Read(read),
                    wrote = write_encrypted(&mut writer, outbox, late) => Event::Wrote(wrote),
                }
            }
            Wire::Open { reader, inbox, blocked } => {
                inbox.reserve(READ_CHUNK);
                poll_fn(|context| {
                    if let Poll::Ready(read) = reader.poll_read(context, inbox) {
                        return Poll::Ready(Event::Read(read));
                    }
                    match *blocked {
                        true => reader.poll_writable(context).map(Event::Wrote),
                        false => Poll::Pending,
                    }
                })
                .await
            }
        }
    }

    /// Takes over what the task has to write itself, or to wait for.
    fn takes_over(&mut self, core: &mut Core) {
        let Wire::Open { reader, blocked, .. } = self else { return };
        if let Reader::Encrypted { outbox, .. } = reader {
            outbox.append(&mut core.outbox);
        }
        *blocked = !core.outbox.is_empty();
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

    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Reader::Plain(reader) => reader.as_ref().poll_write_ready(context),
            Reader::Local(reader) => reader.as_ref().poll_write_ready(context),
            Reader::Encrypted { .. } => Poll::Pending,
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
