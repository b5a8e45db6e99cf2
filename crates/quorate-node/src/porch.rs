//! What a node says before it knows its past: that it lives, that it is not ready, and why; and to
//! whoever wants more, that another node should be asked.
//!
//! Reading what it kept takes a node moments, and one that lost its count up to a minute (`boot`).
//! Whoever watches it must be able to tell that from a node that hangs.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use quorate_api::{Problem, ProblemKind};
use quorate_trust::Keys;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::api::{livez, problem};
use crate::door::{FIRST_WORDS, Language, TURNED_AWAY_MAX, enter, first_words, refuse_link};
use crate::local::Local;
use crate::metrics::Metrics;
use crate::stream::Stream;

/// The clients' addresses, as long as the node begins. Dropped, it listens to nobody any more.
pub(crate) struct Porch {
    why: watch::Sender<String>,
    end: oneshot::Sender<()>,
    open: JoinHandle<(TcpListener, Option<Local>)>,
}

impl Porch {
    pub(crate) fn open(
        listener: TcpListener,
        local: Option<Local>,
        keys: Option<Arc<Keys>>,
        metrics: Arc<Metrics>,
    ) -> Porch {
        let (why, told) = watch::channel(String::new());
        let (end, ended) = oneshot::channel();
        let open = tokio::spawn(run((listener, local), ended, Host { told, keys, metrics }));
        Porch { why, end, open }
    }

    /// What the node does now, and whoever asks is told.
    pub(crate) fn says(&self, why: impl Into<String>) {
        self.why.send_replace(why.into());
    }

    /// The node knows its past: from now on it answers by itself. Connections of before end.
    pub(crate) async fn close(self) -> (TcpListener, Option<Local>) {
        drop(self.end);
        self.open.await.expect("it does not panic, and nobody else ends it")
    }
}

/// What every guest is received with.
#[derive(Clone)]
struct Host {
    told: watch::Receiver<String>,
    keys: Option<Arc<Keys>>,
    metrics: Arc<Metrics>,
}

async fn run(
    (listener, local): (TcpListener, Option<Local>),
    mut end: oneshot::Receiver<()>,
    host: Host,
) -> (TcpListener, Option<Local>) {
    let places = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let mut guests = JoinSet::new();
    loop {
        while guests.try_join_next().is_some() {}
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place.expect("nobody closes it"),
            _ = &mut end => break,
        };
        let host = host.clone();
        tokio::select! {
            Ok((stream, from)) = listener.accept() => guests.spawn(async move {
                // A client that does not read learns it from the end of the connection.
                let _ = timeout(FIRST_WORDS, host.receive(stream, from)).await;
                drop(place);
            }),
            Ok((stream, _)) = crate::door::somebody(local.as_ref()) => guests.spawn(async move {
                let _ = timeout(FIRST_WORDS, host.converse(Stream::from(stream))).await;
                drop(place);
            }),
            _ = &mut end => break,
            else => continue,
        };
    }
    (listener, local)
}

impl Host {
    async fn receive(self, stream: TcpStream, from: SocketAddr) -> std::io::Result<()> {
        let tls = self.keys.as_ref().map(|keys| keys.for_clients());
        let (stream, _) = enter(stream, from, tls, &self.metrics).await?;
        self.converse(stream).await
    }

    async fn converse(self, mut stream: Stream) -> std::io::Result<()> {
        match first_words(&mut stream).await? {
            Language::Http => {
                let router = Router::new()
                    .route("/livez", get(livez))
                    .route("/readyz", get(readyz))
                    .route("/readyz/{check}", get(readyz))
                    .fallback(async |State(host): State<Host>| problem(host.starting()))
                    .with_state(self);
                let service = TowerToHyperService::new(router);
                let mut builder = http1::Builder::new();
                let connection =
                    builder.keep_alive(false).serve_connection(TokioIo::new(stream), service);
                connection.await.map_err(std::io::Error::other)
            }
            Language::Link | Language::OtherLink(_) => refuse_link(stream, self.starting()).await,
        }
    }

    fn starting(&self) -> Problem {
        let text = format!("{}; nothing changed. Ask another node, or again", *self.told.borrow());
        Problem::new(ProblemKind::Starting, text)
    }
}

async fn readyz(State(host): State<Host>) -> Response {
    let text = format!("[-]starting failed: {}\nnot ready\n", *host.told.borrow());
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}
