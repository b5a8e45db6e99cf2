//! The clients' address: HTTP and the client link on one port, told apart by their first bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quorate_api::link::PREFACE;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::api;
use crate::app::App;
use crate::session::{self, SessionError};

/// How long a client may take to say its first words.
const FIRST_WORDS: Duration = Duration::from_secs(10);
/// How long to wait for the rest of a preface that has begun.
const MOMENT: Duration = Duration::from_millis(2);
/// How long the last answers may take when the node stops.
const FAREWELL: Duration = Duration::from_secs(3);
/// Connections that wait to be taken up by the HTTP server.
const HALL: usize = 64;

/// Serves clients until the node stops.
pub(crate) async fn run(listener: TcpListener, mut app: App) {
    let places = Arc::new(Semaphore::new(app.config.limits.clients));
    let (http, hall) = mpsc::channel(HALL);
    let mut guests = JoinSet::new();
    let server =
        tokio::spawn(api::serve(Hall { hall, address: listener.local_addr().ok() }, app.clone()));
    loop {
        while guests.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.stopped() => break,
        };
        match accepted {
            Ok((stream, address)) => match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    let guest = Guest { stream, address, _place: place };
                    guests.spawn(receive(guest, app.clone(), http.clone()));
                }
                Err(_) => {
                    app.metrics.refuse("limit");
                    guests.spawn(turn_away(stream, app.config.limits.clients));
                }
            },
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client's connection");
                sleep(FAREWELL / 60).await;
            }
        }
    }
    drop((listener, http));
    let farewell = async {
        while guests.join_next().await.is_some() {}
        // A panic of the server has been printed.
        let _ = server.await;
    };
    if timeout(FAREWELL, farewell).await.is_err() {
        tracing::info!("some clients did not hang up in time");
    }
}

/// A connection of a client, with its place among those there may be.
struct Guest {
    stream: TcpStream,
    address: SocketAddr,
    _place: OwnedSemaphorePermit,
}

async fn receive(
    guest: Guest,
    app: App,
    http: mpsc::Sender<(TcpStream, SocketAddr, OwnedSemaphorePermit)>,
) {
    let first = timeout(FIRST_WORDS, speaks_link(&guest.stream)).await;
    match first {
        Ok(Ok(true)) => {
            let metrics = Arc::clone(&app.metrics);
            metrics.clients.inc();
            match session::run(guest.stream, app).await {
                Ok(()) | Err(SessionError::Io(_)) => {}
                Err(SessionError::Frame(error)) => {
                    metrics.refuse("client");
                    tracing::info!(client = %guest.address, %error, "a connection is closed");
                }
            }
            metrics.clients.dec();
        }
        Ok(Ok(false)) => {
            // If the server is gone, so is the node.
            let _ = http.send((guest.stream, guest.address, guest._place)).await;
        }
        Ok(Err(_)) | Err(_) => app.metrics.refuse("client"),
    }
}

/// Whether a client begins like one of the client link. Takes nothing off the stream.
async fn speaks_link(stream: &TcpStream) -> io::Result<bool> {
    let mut bytes = [0; PREFACE.len()];
    loop {
        let seen = stream.peek(&mut bytes).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if bytes[..seen] != PREFACE[..seen] {
            return Ok(false);
        }
        if seen == PREFACE.len() {
            return Ok(true);
        }
        sleep(MOMENT).await;
    }
}

/// Says why, to whoever speaks HTTP, and hangs up.
async fn turn_away(stream: TcpStream, max: usize) {
    let problem = crate::admission::limit("clients", max, "connections of clients");
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // Whoever does not listen learns it from the end of the connection.
    let _ = timeout(Duration::from_secs(1), async {
        stream.writable().await?;
        stream.try_write(text.as_bytes())
    })
    .await;
}

/// Where HTTP connections wait for the server.
pub(crate) struct Hall {
    hall: mpsc::Receiver<(TcpStream, SocketAddr, OwnedSemaphorePermit)>,
    address: Option<SocketAddr>,
}

/// A connection that gives its place back when it ends.
pub(crate) struct Placed {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl axum::serve::Listener for Hall {
    type Io = Placed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Placed, SocketAddr) {
        match self.hall.recv().await {
            Some((stream, address, place)) => {
                // Without it answers would wait for nothing; with an error there, nothing is lost.
                let _ = stream.set_nodelay(true);
                (Placed { stream, _place: place }, address)
            }
            // The door is closed; the server is stopped from elsewhere.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

mod io_of_placed {
    //! A placed connection reads and writes like the stream in it.

    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::Placed;

    impl AsyncRead for Placed {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for Placed {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.stream).poll_write(cx, buf)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    }
}
