//! Pools, who holds their units and who waits.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use quorate_api::{HoldersView, PoolView, PoolsView, Problem, QueueView};
use quorate_wire::survey::Question;

use super::reply::{Failure, ok};
use super::rights;
use crate::admission;
use crate::app::App;
use crate::config::PoolDef;
use crate::engine::Command;
use crate::views::Picture;

type Answered = Result<Response, Failure>;

/// Lists the pools.
#[utoipa::path(get, path = "/v1/pools", tag = "pools",
    responses((status = 200, description = "the pools", body = PoolsView)))]
pub(crate) async fn list(State(app): State<App>) -> Answered {
    let pools = app.fetch(Command::Pools).await?;
    Ok(ok(StatusCode::OK, &pools))
}

/// Shows one pool with its counts.
#[utoipa::path(get, path = "/v1/pools/{pool}", tag = "pools", params(("pool" = String, Path)),
    responses(
        (status = 200, description = "the pool", body = PoolView),
        (status = 404, description = "there is no such pool", body = Problem),
    ))]
pub(crate) async fn one(State(app): State<App>, Path(pool): Path<String>) -> Answered {
    let (def, picture) = look(&app, &pool).await?;
    Ok(ok(StatusCode::OK, &picture.pool(&app.config, &pool, def)))
}

/// Lists who holds units.
#[utoipa::path(get, path = "/v1/pools/{pool}/holders", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "who holds, the longest first", body = HoldersView),
        (status = 404, description = "there is no such pool", body = Problem),
    ))]
pub(crate) async fn holders(State(app): State<App>, Path(pool): Path<String>) -> Answered {
    let (def, picture) = look(&app, &pool).await?;
    Ok(ok(StatusCode::OK, &picture.holders(def)))
}

/// Lists who waits.
#[utoipa::path(get, path = "/v1/pools/{pool}/queue", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "who waits, the next one first", body = QueueView),
        (status = 404, description = "there is no such pool", body = Problem),
    ))]
pub(crate) async fn queue(State(app): State<App>, Path(pool): Path<String>) -> Answered {
    let (_, picture) = look(&app, &pool).await?;
    Ok(ok(StatusCode::OK, &picture.waiting()))
}

/// Scrambles the state of this node's seat, to see the pool heal. For tests: while it heals, more
/// units may be in use than there are.
#[utoipa::path(post, path = "/v1/admin/pools/{pool}/corrupt", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "done; the pool soon after", body = PoolView),
        (status = 400, description = "the protocol heals from no such thing", body = Problem),
        (status = 403, description = "not allowed, or not to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
    ))]
pub(crate) async fn corrupt(
    State(app): State<App>,
    Path(pool): Path<String>,
    headers: HeaderMap,
) -> Answered {
    rights::administrator(&app.config, &headers)?;
    let name = pool.clone();
    app.fetch(|reply| Command::Corrupt { pool: name, reply }).await??;
    one(State(app), Path(pool)).await
}

/// Asks every node what it knows of a pool.
pub(super) async fn look<'a>(app: &'a App, pool: &str) -> Result<(&'a PoolDef, Picture), Problem> {
    let def = app.config.pool(pool).ok_or_else(|| admission::unknown_pool(pool))?;
    let (pool, question) = (pool.to_owned(), Question::Pool { pool: pool.to_owned() });
    let gathered = app.fetch(|reply| Command::Gather { pool, question, reply }).await??;
    Ok((def, Picture::new(&app.config, def, gathered)))
}
