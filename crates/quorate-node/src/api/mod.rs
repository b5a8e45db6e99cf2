//! HTTP in, words out. Handlers turn requests into commands for the engine and answers into JSON;
//! they decide nothing.

mod claims;
mod definitions;
pub(crate) mod gateway;
mod health;
mod members;
pub(crate) mod openapi;
mod overview;
mod page;
mod pools;
mod reply;
mod tokens;
mod watch;

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post, put};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use quorate_api::{ClaimId, Problem};

use crate::app::App;
use crate::caller::{Guest, token_of};
use crate::stream::Stream;
pub(crate) use health::livez;
use reply::{Failure, bad_request};

/// Longest body of a request: a renewal shows every unit of a grant.
const BODY_MAX: usize = 8 << 20;
/// The same of somebody who is not known, where callers are.
const STRANGE_BODY_MAX: usize = 64 << 10;
/// Longest line of a request and its headers together: nobody is known before they are read.
const HEAD_MAX: usize = 16 << 10;
/// How long a client may take to say what it wants, also after an answer: connections are counted,
/// and those who say nothing must not keep others out.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// How long it may take from there to the end of the body.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// A problem as an answer.
pub(crate) fn problem(problem: Problem) -> Response {
    Failure(problem).into_response()
}

/// Speaks HTTP with one client until it hangs up, talks nonsense, or the node stops.
pub(crate) async fn serve(stream: Stream, guest: Guest, mut app: App, router: Router) {
    let router = TowerToHyperService::new(router);
    let (strangers, whence) = (app.strangers.clone(), guest.whence);
    // One router serves all connections: who is at this one travels with its requests.
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(guest.clone());
        let (answer, strangers) = (router.call(request), strangers.clone());
        async move {
            let answer = answer.await?;
            if answer.status() == StatusCode::UNAUTHORIZED {
                strangers.keep_waiting(whence).await;
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = app.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served
        && error.is_parse()
    {
        app.metrics.refuse("client");
        tracing::info!(%error, "a client's connection is closed");
    }
}

/// Handlers ask for this and not for the state: it is the same, for whoever sent the request.
impl FromRequestParts<App> for App {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let shown = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = shown.map(token_of);
        let app = match parts.extensions.get::<Guest>() {
            Some(guest) => app.receiving(guest.clone()),
            None => app.clone(),
        };
        let app = app.heard(token.as_deref()).await;
        app.seated()?;
        Ok(app)
    }
}

/// What an order is called, if whoever gives it may have to repeat it.
pub(crate) struct OrderId(Option<u128>);

impl FromRequestParts<App> for OrderId {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Failure> {
        let Some(key) = parts.headers.get("idempotency-key") else { return Ok(OrderId(None)) };
        let id =
            key.to_str().ok().and_then(|text| text.parse::<ClaimId>().ok()).ok_or_else(|| {
                let text = "an Idempotency-Key is 1 to 32 hexadecimal digits, or a UUID; nothing \
                        changed";
                bad_request(text)
            })?;
        Ok(OrderId(Some(u128::from(id.origin()) << 64 | u128::from(id.serial()))))
    }
}

/// What there is.
pub(crate) fn router(app: App) -> Router {
    let claim = put(claims::put).get(claims::get).delete(claims::delete);
    let pool = get(pools::one).put(definitions::create);
    let pool = pool.patch(definitions::amend).delete(definitions::delete);
    let right = get(tokens::right).patch(tokens::set).delete(tokens::delete);
    Router::new()
        .route("/", get(page::page))
        .route("/docs", get(page::docs))
        .route("/assets/{name}", get(page::asset))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/readyz/{check}", get(health::readyz_check))
        .route("/readyz/pools/{pool}", get(health::readyz_pool))
        .route("/metrics", get(health::metrics))
        .route("/v1/openapi.json", get(openapi::get))
        .route("/v1/node", get(health::node))
        .route("/v1/audit", get(health::audit))
        .route("/v1/members", get(members::list))
        .route("/v1/members/{name}/drain", put(members::drain).delete(members::restore))
        .route("/v1/members/{name}/remove", post(members::remove))
        .route("/v1/members/{name}/readmit", post(members::readmit))
        .route("/v1/members/{name}/invite", post(members::invite))
        .route("/v1/join", post(members::join))
        .route("/v1/charter/backup", get(members::backup))
        .route("/v1/charter/import", post(members::import))
        .route("/v1/tokens", get(tokens::list))
        .route("/v1/tokens/{token}", get(tokens::show).put(tokens::put).delete(tokens::revoke))
        .route("/v1/rights", get(tokens::rights))
        .route("/v1/rights/{right}", right)
        .route("/v1/watch", get(watch::all))
        .route("/v1/overview", get(overview::overview))
        .route("/v1/overview/watch", get(overview::watch))
        .route("/v1/claims/{id}", get(overview::find))
        .route("/v1/pre-reboot", post(gateway::fleetlock::pre_reboot))
        .route("/v1/steady-state", post(gateway::fleetlock::steady_state))
        .route("/fleetlock/v1/pre-reboot", post(gateway::fleetlock::pre_reboot))
        .route("/fleetlock/v1/steady-state", post(gateway::fleetlock::steady_state))
        .route("/v1/terraform/{pool}", any(gateway::terraform::lock))
        .route("/v1/admin/pools/{pool}/corrupt", post(pools::corrupt))
        .route("/v1/admin/pools/{pool}/nodes/{node}/fence", post(pools::fence))
        .route("/v1/pools", get(pools::list).post(definitions::apply))
        .route("/v1/pools/{pool}", pool)
        .route("/v1/pools/{pool}/definition", get(definitions::show))
        .route("/v1/pools/{pool}/holders", get(pools::holders))
        .route("/v1/pools/{pool}/queue", get(pools::queue))
        .route("/v1/pools/{pool}/grants", get(pools::grants))
        .route("/v1/pools/{pool}/units/{unit}/drain", put(pools::drain).delete(pools::restore))
        .route("/v1/pools/{pool}/units/{unit}/labels", put(pools::relabel).delete(pools::unlabel))
        .route("/v1/pools/{pool}/history", get(overview::history))
        .route("/v1/pools/{pool}/watch", get(watch::pool))
        .route("/v1/pools/{pool}/claims/{id}", claim)
        .route("/v1/pools/{pool}/claims/{id}/why", get(claims::why))
        .route("/v1/pools/{pool}/claims/{id}/renew", post(claims::renew))
        .route("/v1/pools/{pool}/claims/{id}/revoke", post(claims::revoke))
        .fallback(reply::no_such_page)
        .layer(axum::middleware::from_fn_with_state(app.clone(), reply::hear_out))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(axum::middleware::from_fn_with_state(app.clone(), reply::refuse_other_sites))
        .layer(axum::middleware::from_fn_with_state(app.clone(), reply::count_refusals))
        .with_state(app)
}
