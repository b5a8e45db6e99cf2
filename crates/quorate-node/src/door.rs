//! The clients' address: HTTP and the client link on one port, told apart by their first bytes.
//! Who connects becomes a caller here. A node with certificates speaks TLS with everybody, and in
//! the clear only with clients on its own machine, who may also come by its Unix socket (`local`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use quorate_api::link::PREFACE;
use quorate_api::{Problem, ProblemKind};
use quorate_trust::Keys;
use rustix::net::sockopt;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::ServerConfig;

use crate::admission::limit;
use crate::api;
use crate::app::App;
use crate::audit::Note;
use crate::caller::{Caller, Guest, Whence};
use crate::config::Limits;
use crate::crowd::{Crowd, Full, Place, Room, Seat, party};
use crate::local::{self, Local};
use crate::metrics::Metrics;
use crate::session::{self, SessionError};
use crate::stream::{Stream, outdated};

/// How long a client may take to say its first words...
pub(crate) const FIRST_WORDS: Duration = Duration::from_secs(10);
/// ...and how long if it is only to be told that there is no place for it.
const FEW_WORDS: Duration = Duration::from_secs(1);
/// Connections that are being told so; others are closed without a word.
pub(crate) const TURNED_AWAY_MAX: usize = 64;
/// Connections by the Unix socket.
pub(crate) const LOCAL_MAX: usize = 256;
/// The first byte of a TLS handshake; no HTTP request and no client link begins so.
const HANDSHAKE: u8 = 0x16;
/// After how much silence a client's machine is asked whether it is there: three times, and a third
/// of this apart.
const SILENCE: Duration = Duration::from_secs(15);
/// How long the last answers may take when the node stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// What a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    Http,
    Link,
    /// The client link, in a version that this node does not speak.
    OtherLink(u8),
}

/// Somebody who has just connected.
enum Knock {
    Address(TcpStream, SocketAddr),
    Local(UnixStream, u32),
}

/// Serves clients until the node stops.
pub(crate) async fn run(
    listener: TcpListener,
    local: Option<Local>,
    app: App,
    keys: Receiver<Option<Arc<Keys>>>,
) {
    // Connections tell nothing about who makes them; a request may.
    let mut app = app.serving(Caller::Anonymous);
    let limits = app.config.limits.clone();
    let (places, greetings) = (Crowd::default(), Crowd::default());
    // Strangers on the network cannot fill these: they are the way in when they fill the others.
    let local_places = Arc::new(Semaphore::new(LOCAL_MAX));
    let porters = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let hall = Hall {
        router: api::router(app.clone()),
        app: app.clone(),
        keys,
        callers: Crowd::default(),
    };
    let mut guests = JoinSet::new();
    loop {
        while guests.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted.map(|(it, from)| Knock::Address(it, from)),
            accepted = somebody(local.as_ref()) => accepted.map(|(it, who)| Knock::Local(it, who)),
            () = app.stopped() => break,
        };
        match accepted {
            Ok(Knock::Local(stream, user)) => {
                let Ok(place) = Arc::clone(&local_places).try_acquire_owned() else {
                    app.metrics.refuse("limit");
                    continue;
                };
                let hall = hall.clone();
                guests.spawn(async move {
                    hall.receive_local(stream, user).await;
                    drop(place);
                });
            }
            Ok(Knock::Address(stream, from)) => match enough_strangers(&app, from)
                .and_then(|()| seats(&limits, &places, &greetings, from))
            {
                Ok((place, greeting)) => {
                    let hall = hall.clone();
                    guests.spawn(async move {
                        hall.receive(stream, from, greeting).await;
                        drop(place);
                    });
                }
                Err(problem) => {
                    app.metrics.refuse("limit");
                    // Nobody who waits for a handshake would understand it.
                    if hall.keys.borrow().is_none()
                        && let Ok(porter) = Arc::clone(&porters).try_acquire_owned()
                    {
                        guests.spawn(async move {
                            // A client that does not read learns it from the end of the connection.
                            let _ = timeout(FEW_WORDS, turn_away(stream, problem)).await;
                            drop(porter);
                        });
                    }
                }
            },
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client's connection");
                sleep(FAREWELL / 60).await;
            }
        }
    }
    drop((listener, local));
    let farewell = async { while guests.join_next().await.is_some() {} };
    if timeout(FAREWELL, farewell).await.is_err() {
        tracing::info!("some clients did not hang up in time");
    }
}

/// Nobody is let in from where many have shown wrong tokens and wait to hear so.
fn enough_strangers(app: &App, from: SocketAddr) -> Result<(), Problem> {
    let most = app.config.limits.strangers_per_address;
    match app.strangers.waiting(Whence::Address(from.ip())) < most {
        true => Ok(()),
        false => {
            let what = "connections from one address that showed a wrong token";
            Err(limit("strangers_per_address", most, what))
        }
    }
}

/// A place for a connection from there, and one among those that have not said what they want.
fn seats(
    limits: &Limits,
    places: &Crowd<IpAddr>,
    greetings: &Crowd<IpAddr>,
    from: SocketAddr,
) -> Result<(Place<IpAddr>, Place<IpAddr>), Problem> {
    let party = party(from.ip());
    // One machine may be full of clients, and its own machine is not a stranger's.
    let each = match from.ip().is_loopback() {
        true => limits.clients,
        false => limits.clients_per_address,
    };
    let room = Room { all: limits.clients, each };
    let place = places.enter(&party, room).map_err(|full| match full {
        Full::All => limit("clients", room.all, "connections of clients"),
        Full::Each if each == limits.clients => {
            limit("clients", room.all, "connections of clients")
        }
        Full::Each => limit("clients_per_address", each, "connections from one address"),
    })?;
    let room = Room { all: limits.greetings, each: limits.greetings_per_address };
    let greeting = greetings.enter(&party, room).map_err(|full| match full {
        Full::All => limit("greetings", room.all, "connections that say nothing yet"),
        Full::Each => {
            let what = "connections from one address that say nothing yet";
            limit("greetings_per_address", room.each, what)
        }
    })?;
    Ok((place, greeting))
}

/// The next client of the Unix socket; none ever, without one.
pub(crate) async fn somebody(local: Option<&Local>) -> io::Result<(UnixStream, u32)> {
    match local {
        Some(local) => local.accept().await,
        None => std::future::pending().await,
    }
}

/// What every guest is received with.
#[derive(Clone)]
struct Hall {
    app: App,
    router: Router,
    /// What TLS is spoken with, now.
    keys: Receiver<Option<Arc<Keys>>>,
    /// How many connections each caller has that is known.
    callers: Crowd<String>,
}

impl Hall {
    async fn receive(self, stream: TcpStream, from: SocketAddr, greeting: Place<IpAddr>) {
        let tls = self.keys.borrow().as_ref().map(|keys| keys.for_clients());
        let metrics = Arc::clone(&self.app.metrics);
        if let Err(error) = notice_silence(&stream) {
            tracing::debug!(%error, "a connection that goes silent may not be noticed");
        }
        // Without it answers would wait for nothing; with an error there, nothing is lost.
        let _ = stream.set_nodelay(true);
        let said = async {
            let (mut stream, is_tls) = enter(stream, from, tls, &metrics).await?;
            let language = first_words(&mut stream).await?;
            Ok::<_, io::Error>((stream, is_tls, language))
        };
        let (stream, is_tls, language) = match timeout(FIRST_WORDS, said).await {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => {
                metrics.refuse("client");
                // Who only hangs up was refused nothing.
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::Other) {
                    let (who, from) = (&Caller::Anonymous, Whence::Address(from.ip()));
                    let (about, result) = (String::new(), error.to_string());
                    let note = Note { who, from, what: "connect", pool: "", about, result };
                    self.app.audit.refusal(note);
                }
                return tracing::debug!(%error, %from, "a client's connection is closed");
            }
            Err(_) => return metrics.refuse("client"),
        };
        drop(greeting);
        let caller = Caller::certified(&self.app.config, stream.shown());
        let whence = Whence::Address(from.ip());
        let guest = Guest { caller, whence, private: is_tls, seat: Some(self.seat()) };
        self.serve(stream, language, guest).await;
    }

    async fn receive_local(self, stream: UnixStream, user: u32) {
        let mut stream = Stream::from(stream);
        let Ok(Ok(language)) = timeout(FIRST_WORDS, first_words(&mut stream)).await else {
            return self.app.metrics.refuse("client");
        };
        let (caller, whence) = (local::whose(user), Whence::Local { user });
        let guest = Guest { caller, whence, private: true, seat: Some(self.seat()) };
        self.serve(stream, language, guest).await;
    }

    fn seat(&self) -> Arc<Seat> {
        let most = self.app.config.limits.clients_per_caller;
        Arc::new(Seat::new(self.callers.clone(), most))
    }

    /// Until it ends, or the certificate that was shown is good no more.
    async fn serve(self, mut stream: Stream, language: Language, guest: Guest) {
        let shown = stream.certificate();
        if shown.is_none() {
            return self.converse(stream, language, guest).await;
        }
        let outdated = outdated(shown, self.keys.clone());
        tokio::select! {
            () = self.converse(stream, language, guest.clone()) => {}
            why = outdated => {
                tracing::info!(caller = %guest.caller, from = %guest.whence, %why, "cut off");
            }
        }
    }

    async fn converse(&self, stream: Stream, language: Language, guest: Guest) {
        let Hall { app, router, .. } = self.clone();
        let metrics = Arc::clone(&app.metrics);
        let app = app.receiving(guest.clone());
        match language {
            Language::Link => {
                // Requests over HTTP are refused one by one.
                if let Err(problem) = app.seated() {
                    let _ = timeout(FEW_WORDS, refuse_link(stream, problem)).await;
                    return;
                }
                let _counted = metrics.count_client();
                match session::run(stream, app).await {
                    Ok(()) | Err(SessionError::Io(_)) => {}
                    Err(SessionError::Frame(error)) => {
                        metrics.refuse("client");
                        tracing::info!(%error, "a client's connection is closed");
                    }
                }
            }
            Language::Http => api::serve(stream, guest, app, router).await,
            Language::OtherLink(version) => {
                metrics.refuse("client");
                // A client that does not read learns it from the end of the connection.
                let refusal = session::refuse(stream, 0, other_version(version));
                let _ = timeout(FEW_WORDS, refusal).await;
            }
        }
    }
}

/// TLS, if the node speaks it; without it, only from this machine.
pub(crate) async fn enter(
    stream: TcpStream,
    from: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    metrics: &Metrics,
) -> io::Result<(Stream, bool)> {
    let Some(tls) = tls else { return Ok((stream.into(), false)) };
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if first == [HANDSHAKE] {
        let handshake = metrics.trust.handshake("client");
        let shaken = Stream::accept(stream, tls).await;
        handshake.ended(&shaken);
        return Ok((shaken?, true));
    }
    if from.ip().is_loopback() {
        return Ok((stream.into(), false));
    }
    refuse_plain(stream).await?;
    Err(io::Error::other("it does not speak TLS"))
}

/// Says to whoever speaks plain HTTP what is spoken here, and hangs up.
async fn refuse_plain(stream: TcpStream) -> io::Result<()> {
    let text =
        "this node speaks TLS: ask https://, and trust its cluster's ca.crt; nothing changed";
    let problem = Problem::new(ProblemKind::BadRequest, text);
    let mut stream = Stream::from(stream);
    let answer = plain_answer("Bad Request", &problem)?;
    stream.write_all(answer.as_bytes()).await?;
    timeout(FEW_WORDS, session::hang_up(stream)).await?
}

fn plain_answer(reason: &str, problem: &Problem) -> io::Result<String> {
    let body = serde_json::to_string(problem)?;
    let retry = if problem.kind == ProblemKind::Limit { "retry-after: 1\r\n" } else { "" };
    Ok(format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\n{retry}connection: close\r\n\r\n{body}",
        problem.status,
        body.len()
    ))
}

/// A client whose machine is gone says nothing any more, and must not be waited for: the system
/// asks whether the other end is there, and closes the connection if it is not.
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 3)?;
    Ok(sockopt::set_tcp_keepcnt(stream, 3)?)
}

/// What a client begins to speak. Nothing of it is lost.
pub(crate) async fn first_words(stream: &mut Stream) -> io::Result<Language> {
    let (name, version) = PREFACE.split_at(PREFACE.len() - 1);
    loop {
        let seen = stream.first().await?;
        let known = seen.len().min(name.len());
        if seen[..known] != name[..known] {
            return Ok(Language::Http);
        }
        if let Some(said) = seen.get(name.len()) {
            let ours = [*said] == version;
            return Ok(if ours { Language::Link } else { Language::OtherLink(*said) });
        }
    }
}

fn other_version(version: u8) -> Problem {
    let ours = PREFACE[PREFACE.len() - 1];
    let text = format!("version {version} of the client link: this node speaks {ours}");
    Problem::new(ProblemKind::BadRequest, text)
}

/// Says to a client on the link why it is not served, and hangs up.
pub(crate) async fn refuse_link(mut stream: Stream, problem: Problem) -> io::Result<()> {
    let number = session::first_number(&mut stream).await.unwrap_or(0);
    session::refuse(stream, number, problem).await
}

/// Says why there is no place, and hangs up.
async fn turn_away(stream: TcpStream, problem: Problem) -> io::Result<()> {
    let mut stream = Stream::from(stream);
    if first_words(&mut stream).await? != Language::Http {
        return refuse_link(stream, problem).await;
    }
    stream.write_all(plain_answer("Too Many Requests", &problem)?.as_bytes()).await?;
    session::hang_up(stream).await
}
