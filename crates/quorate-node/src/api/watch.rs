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
#[cfg_attr(test, utoipa::path(get, path = "/v1/watch", tag = "watch",
    responses((status = 200, description = "events named `change`; `missed` says how many were \
        lost to a slow reader", body = Change, content_type = "text/event-stream"))))]
pub(crate) async fn all(app: App) -> Result<impl IntoResponse, Failure> {
    Ok(events(app, None)?)
}

/// Watches one pool.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}/watch", tag = "watch",
    params(("pool" = String, Path)),
    responses((status = 200, description = "as `/v1/watch`, of one pool", body = Change,
        content_type = "text/event-stream"))))]
pub(crate) async fn pool(app: App, Path(pool): Path<String>) -> Result<impl IntoResponse, Failure> {
    app.pool(&pool)?;
    Ok(events(app, Some(pool))?)
}

fn events(mut app: App, only: Option<String>) -> Result<impl IntoResponse, Problem> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let mut changes = app.changes(only.as_deref())?;
    let rights = app.clone();
    let (watcher, pool) = (app.clone(), only.clone());
    let elsewhere = move |change: &Change| {
        only.as_ref().is_some_and(|pool| *pool != change.pool) || !rights.sees(&change.pool)
    };
    tokio::spawn(async move {
        let barred = watcher.barred(pool.as_deref());
        tokio::pin!(barred);
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
                () = &mut barred => return,
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

    use quorate_trust::Secret;
    use tokio::sync::{broadcast, watch};

    use super::*;
    use crate::audit::Audit;
    use crate::caller::Caller;
    use crate::config::Config;
    use crate::engine::Desk;
    use crate::metrics::Metrics;

    fn config(rest: &str) -> Config {
        let text = format!(
            "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
             listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
             members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n{rest}"
        );
        Config::parse_in_memory(&text).unwrap()
    }

    /// A node that does nothing, and whoever tells what changes at it.
    fn quiet(config: Config) -> (App, broadcast::Sender<Change>, impl Sized) {
        let (desk, (engine, _inbox)) = (Arc::new(Desk::new(None)), mpsc::channel(1));
        let (changes, _) = broadcast::channel(1);
        let (stop, stopping) = watch::channel(None);
        let config = Arc::new(config);
        let metrics = Arc::new(Metrics::new());
        let audit = Arc::new(Audit::open(&config, Arc::clone(&metrics)).unwrap());
        let app = App::new(config, 1, (metrics, audit), (desk, engine), changes.clone(), stopping);
        (app, changes, stop)
    }

    async fn nobody_watches(changes: &broadcast::Sender<Change>) {
        while changes.receiver_count() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn whoever_leaves_a_quiet_pool_leaves_nothing_behind() {
        let (app, changes, _stop) = quiet(config(""));
        let watched = events(app, Some("quiet".into())).unwrap();
        assert_eq!(changes.receiver_count(), 1);
        drop(watched);
        nobody_watches(&changes).await;
    }

    #[tokio::test]
    async fn whoever_watches_with_a_token_that_is_removed_is_cut_off() {
        let (kept, removed) = (Secret::random().unwrap(), Secret::random().unwrap());
        let token = |secret: &Secret, name: &str| {
            let digest = secret.digest();
            format!(
                "{{ name = \"{name}\", sha256 = \"{digest}\", may = [\"see\"], pools = [\"*\"] }}"
            )
        };
        let both = format!("tokens = [{}, {}]", token(&kept, "kept"), token(&removed, "removed"));
        let (app, changes, _stop) = quiet(config(&both));
        let guest = app.serving(Caller::Anonymous);
        let _one = events(guest.shown(Some(kept.reveal())), None).unwrap();
        let _other = events(guest.shown(Some(removed.reveal())), Some("quiet".into())).unwrap();
        assert_eq!(changes.receiver_count(), 2);
        let rules = config(&format!("tokens = [{}]", token(&kept, "kept")));
        app.config.guarded.replace(&rules.guarded);
        while changes.receiver_count() > 1 {
            tokio::task::yield_now().await;
        }
        app.config.guarded.replace(&config("rights = {}").guarded);
        nobody_watches(&changes).await;
    }
}
