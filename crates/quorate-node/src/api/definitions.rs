//! Pools that the charter names: made, shown and changed while everything runs.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use quorate_api::{AmendedView, ApplyRequest, DefineRequest, DefinitionView, Problem};

use super::OrderId;
use super::reply::{Failure, bad_request, body, ok};
use crate::admission;
use crate::app::App;
use crate::caller::Action;
use crate::charter::{Hall, no_charter};
use crate::config::Text;

type Answered = Result<Response, Failure>;

/// Shows what a pool is, as somebody wrote it.
#[utoipa::path(get, path = "/v1/pools/{pool}/definition", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "the definition", body = DefinitionView),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 503, description = "the charter cannot be asked now", body = Problem),
    ))]
pub(crate) async fn show(app: App, Path(pool): Path<String>) -> Answered {
    app.authorize(Some(&pool), Action::See)?;
    if let Some(def) = app.config.in_file(&pool) {
        let (source, definition) = ("file".to_owned(), format!("# {}\n", def.label()));
        let view = DefinitionView { pool, source, generation: 0, definition };
        return Ok(ok(StatusCode::OK, &view));
    }
    let view = match &app.hall {
        Some(hall) => hall.definition(&pool).await?,
        None => None,
    };
    Ok(ok(StatusCode::OK, &view.ok_or_else(|| admission::unknown_pool(&pool))?))
}

/// Makes a pool, while everything runs. Every node has it a moment later.
#[utoipa::path(put, path = "/v1/pools/{pool}", tag = "pools",
    params(("pool" = String, Path),
        ("idempotency-key" = Option<String>, Header, description = "changes of one key are made \
            once: 1 to 32 hexadecimal digits, or a UUID")),
    request_body = DefineRequest,
    responses(
        (status = 200, description = "it is there", body = AmendedView),
        (status = 400, description = "it cannot be, or the cluster has no charter", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is one already", body = Problem),
        (status = 503, description = "the charter cannot be asked now", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    ))]
pub(crate) async fn create(
    app: App,
    Path(pool): Path<String>,
    OrderId(id): OrderId,
    bytes: Bytes,
) -> Answered {
    app.authorize(Some(&pool), Action::Admin)?;
    let hall = charter(&app)?;
    let DefineRequest { definition } = body(&bytes)?;
    let text = written(&definition)?;
    let made = hall.amend(id, |charter| hall.creation(charter, &pool, &text)).await;
    told(&app, "pool create", &pool, made)
}

/// Makes all pools of a file that are not there, or none. What is there and is another is refused.
#[utoipa::path(post, path = "/v1/pools", tag = "pools",
    params(("idempotency-key" = Option<String>, Header, description = "changes of one key are made \
        once: 1 to 32 hexadecimal digits, or a UUID")),
    request_body = ApplyRequest,
    responses(
        (status = 200, description = "what was done, pool by pool", body = AmendedView),
        (status = 400, description = "one cannot be, or there is no charter", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "one is there and is another", body = Problem),
        (status = 503, description = "the charter cannot be asked now", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    ))]
pub(crate) async fn apply(app: App, OrderId(id): OrderId, bytes: Bytes) -> Answered {
    app.authorize(None, Action::Admin)?;
    let hall = charter(&app)?;
    let ApplyRequest { pools, dry_run } = body(&bytes)?;
    let wanted = Text::read_all(&pools)
        .map_err(|why| bad_request(format!("the pools: {why}; nothing changed")))?;
    let made = hall.amend(id, |charter| hall.application(charter, &wanted, dry_run)).await;
    told(&app, "pool apply", "", made)
}

/// What somebody wrote about a pool.
pub(super) fn written(text: &str) -> Result<Text, Problem> {
    Text::read(text).map_err(|why| bad_request(format!("the definition: {why}; nothing changed")))
}

pub(super) fn charter(app: &App) -> Result<Arc<Hall>, Problem> {
    app.hall.clone().ok_or_else(no_charter)
}

/// Says what came of a change, to the caller and to the audit.
pub(super) fn told(
    app: &App,
    what: &str,
    pool: &str,
    made: Result<AmendedView, Problem>,
) -> Answered {
    let (about, result) = match &made {
        Ok(AmendedView { version, changes }) => {
            let about = match &changes[..] {
                [one] => one.clone(),
                more => format!("{} pools", more.len()),
            };
            let result = match version {
                0 => "nothing to change".to_owned(),
                version => format!("done, version {version}"),
            };
            (about, result)
        }
        Err(problem) => (String::new(), format!("refused: {}", problem.detail)),
    };
    app.act(what, pool, about, result);
    Ok(ok(StatusCode::OK, &made?))
}
