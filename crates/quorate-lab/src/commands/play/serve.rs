//! The page and its runs over HTTP, on loopback. Nothing is kept between two requests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::challenges::{self, Challenge};
use super::words::Words;
use crate::protocols::registry;

/// So many runs are played at once; others wait for their turn.
const RUNS_MAX: usize = 2;

/// What is not offered: it takes a file, or a plan drawn from a seed.
const NOT_OFFERED: &[&str] = &["sharing", "labels", "moving"];

/// Serves the page until the command is ended.
pub(super) fn run(port: u16, open: bool, at: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("starting")?;
    runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await.with_context(|| {
            format!("port {port} cannot be had: choose another with --port, or 0 for any")
        })?;
        let port = listener.local_addr().context("an address")?.port();
        let url = format!("http://127.0.0.1:{port}/{}", fragment(at));
        crate::unless_unread(crate::print(format_args!("{url}")))?;
        eprintln!("The playground is served here, and nowhere else, until you end it with Ctrl-C.");
        if open {
            open_in_browser(&url);
        }
        axum::serve(listener, router()).await.context("serving")
    })
}

/// The words as the part of a link that the page reads.
fn fragment(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    if words.is_empty() { String::new() } else { format!("#{}", words.join("+")) }
}

fn open_in_browser(url: &str) {
    let opener = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    if let Err(error) = std::process::Command::new(opener).arg(url).spawn() {
        eprintln!("{opener} cannot be started ({error}): open the link by hand");
    }
}

fn router() -> Router {
    Router::new()
        .route("/", get(page))
        .route("/assets/{name}", get(asset))
        .route("/choices", get(choices))
        .route("/run", get(play))
        .layer(middleware::from_fn(from_here))
        .with_state(Arc::new(Semaphore::new(RUNS_MAX)))
}

/// Refuses whoever was led here by another name: a page from elsewhere whose name was made to point
/// to this machine. What it is answered may be read by this page only.
async fn from_here(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    if !matches!(name, Some("127.0.0.1" | "localhost")) {
        return (StatusCode::MISDIRECTED_REQUEST, "ask 127.0.0.1").into_response();
    }
    let mut answer = next.run(request).await;
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                  img-src data:; base-uri 'none'; frame-ancestors 'none'";
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

async fn page() -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], quorate_view::PLAY).into_response()
}

async fn asset(Path(name): Path<String>) -> Response {
    match quorate_view::file(&name) {
        Some(file) => ([(header::CONTENT_TYPE, file.media)], file.text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// What can be chosen on the page.
async fn choices() -> Json<Value> {
    let mut protocols = Vec::new();
    for one in registry().iter().filter(|one| !NOT_OFFERED.contains(&one.name)) {
        let variants: Vec<Value> = one
            .variants
            .iter()
            .filter(|variant| !NOT_OFFERED.contains(&variant.name))
            .map(|variant| json!({"name": variant.name, "about": variant.about}))
            .collect();
        protocols.push(json!({"name": one.name, "about": one.about, "variants": variants}));
    }
    let challenges: Vec<Value> = challenges::ALL.iter().map(Challenge::json).collect();
    Json(json!({"protocols": protocols, "challenges": challenges}))
}

#[derive(serde::Deserialize)]
struct Ask {
    words: String,
}

/// Plays the words. Whatever they are, this ends soon and takes nobody along.
async fn play(State(turn): State<Arc<Semaphore>>, Query(ask): Query<Ask>) -> Response {
    let Ok(turn) = turn.acquire_owned().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let played = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        Words::parse(&ask.words).and_then(|words| words.play(None))
    });
    let refused =
        |status: StatusCode, why: String| (status, Json(json!({ "error": why }))).into_response();
    match played.await {
        Ok(Ok(played)) => Json(played.film).into_response(),
        Ok(Err(error)) => refused(StatusCode::BAD_REQUEST, format!("{error:#}")),
        Err(panic) => refused(StatusCode::INTERNAL_SERVER_ERROR, panic.to_string()),
    }
}
