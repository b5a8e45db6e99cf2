//! The clients' address: HTTP and the client link on one port, told apart by their first bytes.
//! Who connects becomes a caller here.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use quorate_api::link::PREFACE;
use quorate_api::{Problem, ProblemKind};
use rustix::net::sockopt;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::api;
use crate::app::App;
use crate::caller::Caller;
use crate::session::{self, SessionError};

/// How long a client may take to say its first words...
const FIRST_WORDS: Duration = Duration::from_secs(10);
/// ...and how long if it is only to be told that there is no place for it.
const FEW_WORDS: Duration = Duration::from_secs(1);
/// Connections that are being told so; others are closed without a word.
pub(crate) const TURNED_AWAY_MAX: usize = 64;
/// How long to wait for the rest of a preface that has begun.
const MOMENT: Duration = Duration::from_millis(2);
/// After how much silence a client's machine is asked whether it is there: three times, and a third
/// of this apart.
const SILENCE: Duration = Duration::from_secs(15);
/// How long the last answers may take when the node stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// What a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Language {
    Http,
    Link,
    /// The client link, in a version that this node does not speak.
    OtherLink(u8),
}

/// Serves clients until the node stops.
pub(crate) async fn run(listener: TcpListener, app: App) {
    // Connections tell nothing about who makes them; a request may.
    let mut app = app.serving(Caller::Anonymous);
    let places = Arc::new(Semaphore::new(app.config.limits.clients));
    let porters = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let router = api::router(app.clone());
    let mut guests = JoinSet::new();
    loop {
        while guests.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.stopped() => break,
        };
        match accepted {
            Ok((stream, _)) => match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    let (app, router) = (app.clone(), router.clone());
                    guests.spawn(async move {
                        receive(stream, app, router).await;
                        drop(place);
                    });
                }
                Err(_) => {
                    app.metrics.refuse("limit");
                    if let Ok(porter) = Arc::clone(&porters).try_acquire_owned() {
                        let max = app.config.limits.clients;
                        guests.spawn(async move {
                            // A client that does not read learns it from the end of the connection.
                            let _ = timeout(FEW_WORDS, turn_away(stream, max)).await;
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
    drop(listener);
    let farewell = async { while guests.join_next().await.is_some() {} };
    if timeout(FAREWELL, farewell).await.is_err() {
        tracing::info!("some clients did not hang up in time");
    }
}

async fn receive(stream: TcpStream, app: App, router: Router) {
    let metrics = Arc::clone(&app.metrics);
    if let Err(error) = notice_silence(&stream) {
        tracing::debug!(%error, "a connection that goes silent may not be noticed");
    }
    match timeout(FIRST_WORDS, first_words(&stream)).await {
        Ok(Ok(Language::Link)) => {
            metrics.clients.inc();
            match session::run(stream, app).await {
                Ok(()) | Err(SessionError::Io(_)) => {}
                Err(SessionError::Frame(error)) => {
                    metrics.refuse("client");
                    tracing::info!(%error, "a client's connection is closed");
                }
            }
            metrics.clients.dec();
        }
        Ok(Ok(Language::Http)) => api::serve(stream, app, router).await,
        Ok(Ok(Language::OtherLink(version))) => {
            metrics.refuse("client");
            // A client that does not read learns it from the end of the connection.
            let _ = timeout(FEW_WORDS, session::refuse(stream, 0, other_version(version))).await;
        }
        Ok(Err(_)) | Err(_) => metrics.refuse("client"),
    }
}

/// A client whose machine is gone says nothing any more, and must not be waited for: the system
/// asks whether the other end is there, and closes the connection if it is not.
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 3)?;
    Ok(sockopt::set_tcp_keepcnt(stream, 3)?)
}

/// What a client begins to speak. Takes nothing off the stream.
async fn first_words(stream: &TcpStream) -> io::Result<Language> {
    let (name, version) = PREFACE.split_at(PREFACE.len() - 1);
    let mut bytes = [0; PREFACE.len()];
    loop {
        let seen = stream.peek(&mut bytes).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let known = seen.min(name.len());
        if bytes[..known] != name[..known] {
            return Ok(Language::Http);
        }
        if seen == PREFACE.len() {
            let said = bytes[name.len()];
            let ours = [said] == version;
            return Ok(if ours { Language::Link } else { Language::OtherLink(said) });
        }
        sleep(MOMENT).await;
    }
}

fn other_version(version: u8) -> Problem {
    let ours = PREFACE[PREFACE.len() - 1];
    let text = format!("version {version} of the client link: this node speaks {ours}");
    Problem::new(ProblemKind::BadRequest, text)
}

/// Says why there is no place, and hangs up.
async fn turn_away(mut stream: TcpStream, max: usize) -> io::Result<()> {
    let problem = crate::admission::limit("clients", max, "connections of clients");
    if first_words(&stream).await? != Language::Http {
        let number = session::first_number(&mut stream).await.unwrap_or(0);
        return session::refuse(stream, number, problem).await;
    }
    let body = serde_json::to_string(&problem)?;
    let text = format!(
        "HTTP/1.1 {} Too Many Requests\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        problem.status,
        body.len()
    );
    stream.write_all(text.as_bytes()).await?;
    session::hang_up(stream).await
}
