//! What changes at this node, as it changes: server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::Path;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_core::Stream;
use quorate_api::{Change, Problem};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::reply::Failure;
use crate::app::App;

/// Events that may wait for a slow watcher before it misses some, and is told so.
const QUEUE: usize = 64;

/// Watches all pools.
#[utoipa::path(get, path = "/v1/watch", tag = "watch",
    responses((status = 200, description = "events named `change`; `missed` says how many were \
        lost to a slow reader", body = Change, content_type = "text/event-stream")))]
pub(crate) async fn all(app: App) -> Result<impl IntoResponse, Failure> {
    Ok(events(app, None)?)
}

/// Watches one pool.
#[utoipa::path(get, path = "/v1/pools/{pool}/watch", tag = "watch",
    params(("pool" = String, Path)),
    responses((status = 200, description = "as `/v1/watch`, of one pool", body = Change,
        content_type = "text/event-stream")))]
pub(crate) async fn pool(app: App, Path(pool): Path<String>) -> Result<impl IntoResponse, Failure> {
    app.pool(&pool)?;
    Ok(events(app, Some(pool))?)
}

fn events(mut app: App, only: Option<String>) -> Result<impl IntoResponse, Problem> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let mut changes = app.changes(only.as_deref())?;
    let rights = app.clone();
    let elsewhere = move |change: &Change| {
        only.as_ref().is_some_and(|pool| *pool != change.pool) || !rights.sees(&change.pool)
    };
    tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                change = changes.recv() => match change {
                    Ok(change) if elsewhere(&change) => continue,
                    Ok(change) => Event::default()
                        .event("change")
                        .data(serde_json::to_string(&change).unwrap_or_default()),
                    Err(RecvError::Lagged(count)) => {
                        Event::default().event("missed").data(count.to_string())
                    }
                    Err(RecvError::Closed) => return,
                },
                // Noticed here too, since a pool where nothing happens sends it nothing.
                () = sender.closed() => return,
                () = app.stopped() => return,
            };
            if sender.send(event).await.is_err() {
                return; // The watcher has gone.
            }
        }
    });
    Ok(Sse::new(Events(receiver)).keep_alive(KeepAlive::default()))
}

/// A queue as a stream.
pub(super) struct Events(pub(super) mpsc::Receiver<Event>);

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|event| event.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::{broadcast, watch};

    use super::*;
    use crate::audit::Audit;
    use crate::config::Config;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn whoever_leaves_a_quiet_pool_leaves_nothing_behind() {
        let text = "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
                    listen = { clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }\n\
                    members = [{ name = \"a\", peers = \"127.0.0.1:2\" }]";
        let (engine, _inbox) = mpsc::channel(1);
        let (changes, _) = broadcast::channel(1);
        let (_stop, stopping) = watch::channel(false);
        let config = Arc::new(Config::parse_in_memory(text).unwrap());
        let metrics = Arc::new(Metrics::new());
        let audit = Arc::new(Audit::open(&config, Arc::clone(&metrics)).unwrap());
        let app = App::new(config, 1, (metrics, audit), engine, changes.clone(), stopping);
        let watched = events(app, Some("quiet".into())).unwrap();
        assert_eq!(changes.receiver_count(), 1);
        drop(watched);
        while changes.receiver_count() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
