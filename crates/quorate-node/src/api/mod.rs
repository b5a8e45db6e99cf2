//! HTTP in, words out. Handlers turn requests into commands for the engine and answers into JSON;
//! they decide nothing.

mod claims;
mod health;
pub(crate) mod openapi;
mod overview;
mod page;
mod pools;
mod reply;
mod rights;
mod watch;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post, put};

use crate::app::App;
use crate::door::Hall;

/// Longest body of a request: a renewal shows every unit of a grant.
const BODY_MAX: usize = 8 << 20;

/// Serves HTTP until the node stops.
pub(crate) async fn serve(hall: Hall, app: App) {
    let mut stopping = app.clone();
    let router = router(app);
    let served = axum::serve(hall, router)
        .with_graceful_shutdown(async move { stopping.stopped().await })
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "the HTTP server failed");
    }
}

fn router(app: App) -> Router {
    let claim = put(claims::put).get(claims::get).delete(claims::delete);
    Router::new()
        .route("/", get(page::page))
        .route("/assets/{name}", get(page::asset))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/readyz/{check}", get(health::readyz_check))
        .route("/metrics", get(health::metrics))
        .route("/v1/openapi.json", get(openapi::get))
        .route("/v1/node", get(health::node))
        .route("/v1/watch", get(watch::all))
        .route("/v1/overview", get(overview::overview))
        .route("/v1/overview/watch", get(overview::watch))
        .route("/v1/claims/{id}", get(overview::find))
        .route("/v1/admin/pools/{pool}/corrupt", post(pools::corrupt))
        .route("/v1/pools", get(pools::list))
        .route("/v1/pools/{pool}", get(pools::one))
        .route("/v1/pools/{pool}/holders", get(pools::holders))
        .route("/v1/pools/{pool}/queue", get(pools::queue))
        .route("/v1/pools/{pool}/units/{unit}/drain", put(pools::drain).delete(pools::restore))
        .route("/v1/pools/{pool}/history", get(overview::history))
        .route("/v1/pools/{pool}/watch", get(watch::pool))
        .route("/v1/pools/{pool}/claims/{id}", claim)
        .route("/v1/pools/{pool}/claims/{id}/why", get(claims::why))
        .route("/v1/pools/{pool}/claims/{id}/renew", post(claims::renew))
        .route("/v1/pools/{pool}/claims/{id}/revoke", post(claims::revoke))
        .fallback(reply::no_such_page)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(axum::middleware::from_fn(reply::refuse_other_sites))
        .with_state(app)
}
