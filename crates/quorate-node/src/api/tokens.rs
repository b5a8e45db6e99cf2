//! Who is let in: tokens and rights of the charter, seen and changed by administrators.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use quorate_api::{
    AmendRequest, AmendedView, Problem, ProblemKind, RightsView, TokenRequest, TokensView,
};
#[cfg(test)] // Named by the OpenAPI document alone.
use quorate_api::{RightView, TokenView};
use quorate_trust::Digest;

use super::OrderId;
use super::definitions::written;
use super::reply::{Failure, body, ok, unreadable};
use crate::app::App;
use crate::caller::Action;
use crate::charter::Hall;

type Answered = Result<Response, Failure>;

/// On what condition something is taken away.
#[derive(serde::Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Removal {
    if_generation: Option<u64>,
    dry_run: bool,
}

/// Lists who is let in at this node by a token: those of its file and of the charter. No secrets,
/// nor digests.
#[cfg_attr(test, utoipa::path(get, path = "/v1/tokens", tag = "tokens",
    responses(
        (status = 200, description = "all", body = TokensView),
        (status = 400, description = "the cluster has no charter", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
    )))]
pub(crate) async fn list(app: App) -> Answered {
    Ok(ok(StatusCode::OK, &hall(&app)?.tokens().await))
}

/// Shows a token.
#[cfg_attr(test, utoipa::path(get, path = "/v1/tokens/{token}", tag = "tokens",
    params(("token" = String, Path)),
    responses(
        (status = 200, description = "what it may do", body = TokenView),
        (status = 400, description = "there is none of this name", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
    )))]
pub(crate) async fn show(app: App, Path(name): Path<String>) -> Answered {
    let TokensView { tokens, .. } = hall(&app)?.tokens().await;
    let token = tokens.into_iter().find(|token| token.name == name && !token.hidden);
    Ok(ok(StatusCode::OK, &token.ok_or_else(|| absent("token", &name))?))
}

/// Makes a token, or gives one another secret: whoever asks draws the secret, and sends only its
/// hash. Every node takes it a moment later, and what it replaces is worth nothing more.
#[cfg_attr(test, utoipa::path(put, path = "/v1/tokens/{token}", tag = "tokens",
    params(("token" = String, Path),
        ("idempotency-key" = Option<String>, Header, description = "changes of one key are made \
            once: 1 to 32 hexadecimal digits, or a UUID")),
    request_body = TokenRequest,
    responses(
        (status = 200, description = "it is there", body = AmendedView),
        (status = 400, description = "it cannot be, or the cluster has no charter", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is one, or something else of its name; or it is of \
            another generation", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn put(
    app: App,
    Path(name): Path<String>,
    OrderId(id): OrderId,
    bytes: Bytes,
) -> Answered {
    let hall = hall(&app)?;
    let request: TokenRequest = body(&bytes)?;
    let mut made = hall.amend(id, |charter| hall.token_plan(charter, &name, &request)).await;
    let digest: Option<Digest> = request.sha256.parse().ok();
    let is_it = |digest: Digest| hall.has_token(&name, &digest);
    if made.is_ok() && !request.dry_run && !digest.is_some_and(is_it) {
        // Repeated under its id by somebody who drew another secret: that one is good for nothing.
        let text = format!(
            "this secret is worth nothing: token {name:?} was made under this request id with \
             another one, or was taken away since; nothing changed. `quorate token rotate {name}` \
             gives it another"
        );
        made = Err(Problem::new(ProblemKind::Conflict, text));
    }
    let what = if request.if_generation.is_some() { "token rotate" } else { "token create" };
    told(&app, (what, "token", &name), made)
}

/// Takes a token away, at every node: whoever is connected with it is cut off.
#[cfg_attr(test, utoipa::path(delete, path = "/v1/tokens/{token}", tag = "tokens",
    params(("token" = String, Path),
        ("if_generation" = Option<u64>, Query, description = "only if this is its generation"),
        ("dry_run" = Option<bool>, Query, description = "only say what would be done"),
        ("idempotency-key" = Option<String>, Header, description = "changes of one key are made \
            once: 1 to 32 hexadecimal digits, or a UUID")),
    responses(
        (status = 200, description = "it is worth nothing", body = AmendedView),
        (status = 400, description = "there is none of this name", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "it is of another generation, or in a file, or the last \
            administrator's", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn revoke(
    app: App,
    Path(name): Path<String>,
    query: Result<Query<Removal>, QueryRejection>,
    OrderId(id): OrderId,
) -> Answered {
    let hall = hall(&app)?;
    let Query(Removal { if_generation, dry_run }) = query.map_err(|error| unreadable(&error))?;
    let how = (if_generation, dry_run);
    let gone = hall.amend(id, |charter| hall.revocation(charter, &name, how)).await;
    told(&app, ("token revoke", "token", &name), gone)
}

/// Lists what tokens of the charter may do.
#[cfg_attr(test, utoipa::path(get, path = "/v1/rights", tag = "tokens",
    responses(
        (status = 200, description = "all", body = RightsView),
        (status = 400, description = "the cluster has no charter", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
    )))]
pub(crate) async fn rights(app: App) -> Answered {
    Ok(ok(StatusCode::OK, &hall(&app)?.rights().await))
}

/// Shows a right, and who has it.
#[cfg_attr(test, utoipa::path(get, path = "/v1/rights/{right}", tag = "tokens",
    params(("right" = String, Path)),
    responses(
        (status = 200, description = "what it allows", body = RightView),
        (status = 400, description = "there is none of this name", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
    )))]
pub(crate) async fn right(app: App, Path(name): Path<String>) -> Answered {
    let RightsView { rights, .. } = hall(&app)?.rights().await;
    let right = rights.into_iter().find(|right| right.name == name);
    Ok(ok(StatusCode::OK, &right.ok_or_else(|| absent("right", &name))?))
}

/// Makes a right, or changes one, for all tokens that have it; what is not said stays as it is.
/// Whoever is connected with one of them is cut off, and comes again with what it may now.
#[cfg_attr(test, utoipa::path(patch, path = "/v1/rights/{right}", tag = "tokens",
    params(("right" = String, Path),
        ("idempotency-key" = Option<String>, Header, description = "changes of one key are made \
            once: 1 to 32 hexadecimal digits, or a UUID")),
    request_body = AmendRequest,
    responses(
        (status = 200, description = "it is so", body = AmendedView),
        (status = 400, description = "it cannot be, or the cluster has no charter", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "it is of another generation, or nobody would be an \
            administrator", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn set(
    app: App,
    Path(name): Path<String>,
    OrderId(id): OrderId,
    bytes: Bytes,
) -> Answered {
    let hall = hall(&app)?;
    let request: AmendRequest = body(&bytes)?;
    let fields = written(&request.definition)?;
    let about = (&fields, &request);
    let made = hall.amend(id, |charter| hall.right_plan(charter, &name, about)).await;
    told(&app, ("right set", "right", &name), made)
}

/// Takes a right away that no token has.
#[cfg_attr(test, utoipa::path(delete, path = "/v1/rights/{right}", tag = "tokens",
    params(("right" = String, Path),
        ("if_generation" = Option<u64>, Query, description = "only if this is its generation"),
        ("dry_run" = Option<bool>, Query, description = "only say what would be done"),
        ("idempotency-key" = Option<String>, Header, description = "changes of one key are made \
            once: 1 to 32 hexadecimal digits, or a UUID")),
    responses(
        (status = 200, description = "it is gone", body = AmendedView),
        (status = 400, description = "there is none of this name", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "it is of another generation, or a token has it",
            body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn delete(
    app: App,
    Path(name): Path<String>,
    query: Result<Query<Removal>, QueryRejection>,
    OrderId(id): OrderId,
) -> Answered {
    let hall = hall(&app)?;
    let Query(Removal { if_generation, dry_run }) = query.map_err(|error| unreadable(&error))?;
    let how = (if_generation, dry_run);
    let gone = hall.amend(id, |charter| Hall::right_deletion(charter, &name, how)).await;
    told(&app, ("right delete", "right", &name), gone)
}

/// The charter, for an administrator.
fn hall(app: &App) -> Result<Arc<Hall>, Problem> {
    app.authorize(None, Action::Tokens)?;
    app.hall.clone().ok_or_else(|| {
        let text = "this cluster has no charter, so who is let in is in its files: `quorate token \
                    new` prints an entry for them, and `kill -HUP` has a node read it; nothing \
                    changed";
        Problem::new(ProblemKind::BadRequest, text)
    })
}

fn absent(what: &str, name: &str) -> Problem {
    let name: String = name.chars().take(quorate_trust::NAME_MAX).collect();
    let text = format!("there is no {what} {name:?}: `quorate {what} list` lists them");
    Problem::new(ProblemKind::BadRequest, text)
}

/// Says what came of a change, to the caller and to the audit.
fn told(
    app: &App,
    (what, kind, name): (&str, &str, &str),
    made: Result<AmendedView, Problem>,
) -> Answered {
    let result = match &made {
        Ok(AmendedView { version: 0, .. }) => "nothing to change".to_owned(),
        Ok(AmendedView { version, changes }) => {
            format!("done, version {version}: {}", changes.join("; "))
        }
        Err(problem) => format!("refused: {}", problem.detail),
    };
    let name: String = name.chars().take(quorate_trust::NAME_MAX).collect();
    app.act(what, "", format!("{kind} {name}"), result);
    Ok(ok(StatusCode::OK, &made?))
}
