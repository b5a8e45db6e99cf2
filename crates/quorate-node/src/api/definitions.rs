//! Pools that the charter names: made, shown and changed while everything runs.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use quorate_api::{
    AmendRequest, AmendedView, ApplyRequest, DefineRequest, DefinitionView, HolderView,
    HoldersView, Problem, ProblemKind,
};
use quorate_wire::order::Ordered;
use quorate_wire::survey::Question;

use super::OrderId;
use super::pools::outcome;
use super::reply::{Failure, bad_request, body, ok, unreadable};
use crate::admission;
use crate::app::App;
use crate::caller::{Action, Caller};
use crate::charter::{Hall, no_charter};
use crate::config::Text;
use crate::convert;
use crate::views::Picture;

type Answered = Result<Response, Failure>;

/// Shows what a pool is, as somebody wrote it.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}/definition", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "the definition", body = DefinitionView),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 503, description = "the charter cannot be asked now", body = Problem),
    )))]
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
#[cfg_attr(test, utoipa::path(put, path = "/v1/pools/{pool}", tag = "pools",
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
    )))]
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

/// Changes a pool, while everything runs: its units, the sizes of claims, who may pass whom. Every
/// node has it a moment later.
#[cfg_attr(test, utoipa::path(patch, path = "/v1/pools/{pool}", tag = "pools",
    params(("pool" = String, Path),
        ("idempotency-key" = Option<String>, Header, description = "changes of one key are made \
            once: 1 to 32 hexadecimal digits, or a UUID")),
    request_body = AmendRequest,
    responses(
        (status = 200, description = "it is so", body = AmendedView),
        (status = 400, description = "it cannot be, or the cluster has no charter", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 409, description = "it is of another generation, or does not change like that",
            body = Problem),
        (status = 503, description = "the charter cannot be asked now", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn amend(
    app: App,
    Path(pool): Path<String>,
    OrderId(id): OrderId,
    bytes: Bytes,
) -> Answered {
    app.authorize(Some(&pool), Action::Admin)?;
    let hall = charter(&app)?;
    let request: AmendRequest = body(&bytes)?;
    let fields = written(&request.definition)?;
    let change = |text: &Text| text.with(&fields, &request.without);
    let made = hall.amend(id, |charter| hall.alteration(charter, &pool, change, &request)).await;
    told(&app, "pool set", &pool, made)
}

/// What becomes of those who hold units of a pool that is deleted.
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Holders {
    /// They keep what they have until they give it back.
    Drain,
    /// It is taken back: theirs at the latest until the lease they have is over.
    Revoke,
}

/// How a pool is deleted.
#[derive(serde::Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Deletion {
    holders: Option<Holders>,
    if_generation: Option<u64>,
    dry_run: bool,
}

/// Deletes a pool, while everything runs: it grants nothing any more, and claims that wait are
/// refused. If anybody holds units of it, it is refused unless it is said what becomes of them. A
/// name whose pool was deleted can be used again, and fences go on.
#[cfg_attr(test, utoipa::path(delete, path = "/v1/pools/{pool}", tag = "pools",
    params(("pool" = String, Path),
        ("holders" = Option<String>, Query, description = "what becomes of those who hold units: \
            `drain`, they keep them until they give them back, or `revoke`"),
        ("if_generation" = Option<u64>, Query, description = "only if this is its generation"),
        ("dry_run" = Option<bool>, Query, description = "only say what would be done"),
        ("idempotency-key" = Option<String>, Header, description = "changes of one key are made \
            once: 1 to 32 hexadecimal digits, or a UUID")),
    responses(
        (status = 200, description = "it is deleted", body = AmendedView),
        (status = 400, description = "the cluster has no charter", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 409, description = "somebody holds units, or it is of another generation",
            body = Problem),
        (status = 503, description = "the charter cannot be asked now", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn delete(
    app: App,
    Path(pool): Path<String>,
    query: Result<Query<Deletion>, QueryRejection>,
    OrderId(id): OrderId,
) -> Answered {
    app.authorize(Some(&pool), Action::Admin)?;
    let Query(Deletion { holders, if_generation, dry_run }) =
        query.map_err(|error| unreadable(&error))?;
    if holders == Some(Holders::Revoke) {
        app.authorize(Some(&pool), Action::Revoke)?;
    }
    let hall = charter(&app)?;
    if holders.is_none() {
        unused(&app, &pool).await?;
    }
    let about = (if_generation, dry_run);
    let mut made = hall.amend(id, |charter| hall.deletion(charter, &pool, about)).await;
    if let (Ok(made), Some(Holders::Revoke), false) = (&mut made, holders, dry_run) {
        let revoked = revoke_all(&app, &pool).await;
        made.changes.push(revoked.unwrap_or_else(|problem| {
            let again = format!("`quorate holders {pool}` shows them, `quorate revoke` tells them");
            format!("not all who hold units were told: {}; {again}", problem.detail)
        }));
    }
    told(&app, "pool delete", &pool, made)
}

/// Who holds units of a pool, and which nodes do not say.
async fn held(app: &App, pool: &str) -> Result<(Vec<HolderView>, Vec<String>), Problem> {
    // Whoever may delete a pool is told how many hold units of it, and not who.
    let app = &app.serving(Caller::Administrator);
    app.look_for(pool).await?;
    let def = app.config.pool(pool).ok_or_else(|| admission::unknown_pool(pool))?;
    let gathered = app.survey(Question::Pool { pool: pool.to_owned() }).await?;
    let HoldersView { holders, silent } =
        Picture::new(&app.config, pool, &def, gathered).holders(&def);
    Ok((holders, silent))
}

/// Nobody holds units of a pool, as far as its nodes say.
async fn unused(app: &App, pool: &str) -> Result<(), Problem> {
    let (holders, silent) = held(app, pool).await?;
    if holders.is_empty() && silent.is_empty() {
        return Ok(());
    }
    let who = match holders.len() {
        0 => format!("who holds units of it {} do not say", silent.join(", ")),
        1 => "1 claim holds units of it".to_owned(),
        number => format!("{number} claims hold units of it"),
    };
    let text = format!(
        "pool {pool:?} may be in use: {who}. Say holders=drain (--drain), and they keep them until \
         they give them back, or holders=revoke (--revoke), and they are to stop; nothing changed"
    );
    Err(Problem::new(ProblemKind::Conflict, text))
}

/// Takes back what is held of a pool that grants nothing any more.
async fn revoke_all(app: &App, pool: &str) -> Result<String, Problem> {
    let (holders, _) = held(app, pool).await?;
    for holder in &holders {
        let claim = convert::claim_id(holder.id);
        let reason = "the pool was deleted".to_owned();
        let what = Ordered::Revoke { claim: (claim.origin, claim.serial), reason };
        outcome(app, app.order(pool, what, None).await?)?;
    }
    Ok(match holders.len() {
        0 => "nobody held units of it".to_owned(),
        1 => "what 1 claim held is revoked".to_owned(),
        number => format!("what {number} claims held is revoked"),
    })
}

/// Makes all pools of a file that are not there and changes those that are others, or does nothing.
#[cfg_attr(test, utoipa::path(post, path = "/v1/pools", tag = "pools",
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
    )))]
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
