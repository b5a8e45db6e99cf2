//! Whether the node lives, whether it is ready, and what it counts.

use std::collections::BTreeMap;

use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
#[cfg(test)] // Named by the OpenAPI document alone.
use quorate_api::{AuditView, GrantsView, NodeView, Problem};
use quorate_api::{Check, HindranceKind};

use super::pools::look;
use super::reply::{Failure, ok};
use crate::app::App;
use crate::caller::{Action, Caller};
use crate::engine::Request;

/// How this node is.
#[cfg_attr(test, utoipa::path(get, path = "/v1/node", tag = "node",
    responses((status = 200, description = "how this node is", body = NodeView))))]
pub(crate) async fn node(app: App) -> Result<Response, Failure> {
    let mut view = app.fetch(Request::Node).await?;
    discreet(&app, &mut view.checks);
    Ok(ok(StatusCode::OK, &view))
}

/// Checks whose details name no pool. Of others they are for whoever may see all of them.
const NAMELESS: [&str; 6] = ["members", "grace", "journal", "seats", "running", "charter"];

pub(super) fn discreet(app: &App, checks: &mut [Check]) {
    let may_name_pools = |check: &&mut Check| !NAMELESS.contains(&&*check.name);
    if !app.sees_everything() {
        let hidden = "not for you to see";
        checks.iter_mut().filter(may_name_pools).for_each(|check| check.detail = hidden.into());
    }
}

/// The process is not wedged. Never depends on peers: whoever answers, lives.
#[cfg_attr(test, utoipa::path(get, path = "/livez", tag = "node",
    responses((status = 200, description = "the node lives"))))]
pub(crate) async fn livez() -> &'static str {
    "ok\n"
}

/// The node can serve its clients: it sees most members, at least one of its pools in use can
/// grant, and nothing of its own is the matter. Pools that grant nothing are named in check
/// `pools`; `/readyz/pools/{pool}` tells of one alone.
#[cfg_attr(test, utoipa::path(get, path = "/readyz", tag = "node",
    params(("verbose" = Option<String>, Query, description = "list the checks")),
    responses((status = 200, description = "ready: some pool can grant, perhaps not every one"),
        (status = 503, description = "not ready, and why"))))]
pub(crate) async fn readyz(app: App, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let parts = || query.split('&');
    let verbose = parts().any(|part| part == "verbose" || part.starts_with("verbose="));
    let excluded: Vec<&str> = parts().filter_map(|part| part.strip_prefix("exclude=")).collect();
    let Ok(mut checks) = app.fetch(Request::Checks).await else { return stopped() };
    discreet(&app, &mut checks);
    let mut text = String::new();
    let mut ready = true;
    for check in &checks {
        let excluded = excluded.contains(&check.name.as_str());
        let fine = check.ok || excluded;
        ready &= fine;
        if verbose || !fine {
            let (sign, word) = if fine { ('+', "ok") } else { ('-', "failed") };
            let detail = if excluded { "excluded" } else { &check.detail };
            text.push_str(&format!("[{sign}]{} {word}: {detail}\n", check.name));
        }
    }
    answer(ready, text)
}

/// One check alone.
pub(crate) async fn readyz_check(app: App, Path(name): Path<String>) -> Response {
    let Ok(mut checks) = app.fetch(Request::Checks).await else { return stopped() };
    discreet(&app, &mut checks);
    match checks.into_iter().find(|check| check.name == name) {
        Some(check) => answer(check.ok, format!("{}: {}\n", check.name, check.detail)),
        None => (StatusCode::NOT_FOUND, "there is no such check\n").into_response(),
    }
}

/// Whether this node can grant claims in one pool, whatever its other pools do.
#[cfg_attr(test, utoipa::path(get, path = "/readyz/pools/{pool}", tag = "node",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "some claims can be granted, and which", body = GrantsView),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 503, description = "none can be granted, and why", body = GrantsView),
    )))]
pub(crate) async fn readyz_pool(app: App, Path(pool): Path<String>) -> Result<Response, Failure> {
    let name = pool.clone();
    let mut view = app.fetch(|reply| Request::Grants { pool: name, reply }).await??;
    // What a node cannot know by itself: who of the others promises nothing yet, or may not; and
    // that another decides than it thinks.
    if view.grants() && app.config.members.len() > 1 {
        let (_, picture) = look(&app, &pool).await?;
        let hindrance = picture.grants.hindrance.as_ref();
        let unseen = [HindranceKind::Grace, HindranceKind::NoMajority];
        if hindrance.is_some_and(|it| unseen.contains(&it.kind)) {
            view = picture.grants;
        } else if let Some(behind) = picture.behind(app.config.name()) {
            view = behind.clone();
        }
    }
    let status = if view.grants() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(ok(status, &view))
}

fn answer(ready: bool, mut text: String) -> Response {
    text.push_str(if ready { "ready\n" } else { "not ready\n" });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text).into_response()
}

fn stopped() -> Response {
    answer(false, "[-]running failed: stopping\n".into())
}

/// Administrative acts, refusals and first uses of tokens at this node, as far as it remembers.
#[cfg_attr(test, utoipa::path(get, path = "/v1/audit", tag = "node",
    responses(
        (status = 200, description = "what it remembers, the oldest first", body = AuditView),
        (status = 403, description = "not allowed to you", body = Problem),
    )))]
pub(crate) async fn audit(app: App) -> Result<Response, Failure> {
    app.authorize(None, Action::Audit)?;
    Ok(ok(StatusCode::OK, &app.audit.view()))
}

/// What the node counts.
#[cfg_attr(test, utoipa::path(get, path = "/metrics", tag = "node",
    responses((status = 200, description = "Prometheus text, or OpenMetrics if asked for"))))]
pub(crate) async fn metrics(app: App, headers: HeaderMap) -> Result<Response, Failure> {
    app.authorize(None, Action::Measure)?;
    // Gauges are set when they are read; without an engine the last ones stand.
    let _ = app.fetch(Request::Measure).await;
    measure_standing(&app).await;
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let (kind, text) = if accepted.is_some_and(|text| text.contains("openmetrics-text")) {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        (kind, app.metrics.open_text())
    } else {
        ("text/plain; version=0.0.4; charset=utf-8", app.metrics.plain_text())
    };
    let all = app.sees_everything() || app.config.guarded.now().is_none_or(|g| g.open_metrics);
    let text = if all { text } else { visible(&text, |pool| app.sees(pool)) };
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// Most pools of which holds without a lease are counted.
const COUNTED_MAX: usize = 200;

/// Counts holds without a lease, and those that are overdue. One node's copy of a pool's books may
/// be old for as long as nobody needs it, so all nodes are asked: each tells the same.
async fn measure_standing(app: &App) {
    if !app.config.pools.iter().any(|def| def.standing) {
        return;
    }
    let node = app.serving(Caller::Administrator);
    let all = |reply| Request::Pools { after: String::new(), reply };
    let Ok(pools) = node.fetch(all).await else { return };
    let mut counted: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for pool in pools.pools.iter().filter(|pool| pool.standing).take(COUNTED_MAX) {
        let Ok((def, picture)) = look(&node, &pool.name).await else { continue };
        let (standing, overdue) = picture.standing(&def);
        let sum = counted.entry(def.label()).or_default();
        *sum = (sum.0 + standing, sum.1 + overdue);
    }
    for (label, (standing, overdue)) in counted {
        app.metrics.set_standing(&label, standing, overdue);
    }
}

/// What is counted of pools that may be seen, and of none.
fn visible(text: &str, sees: impl Fn(&str) -> bool) -> String {
    let of = |line: &str| {
        let labels = line.split_once('{')?.1.split_once('}')?.0;
        let rest =
            labels.strip_prefix("pool=\"").or_else(|| Some(labels.split_once(",pool=\"")?.1));
        Some(rest?.split('"').next().unwrap_or_default().to_owned())
    };
    let shown = |line: &&str| line.starts_with('#') || of(line).is_none_or(|pool| sees(&pool));
    text.lines().filter(shown).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_of_other_pools_is_left_out() {
        let text = "# TYPE a gauge\na{pool=\"ci\",state=\"free\"} 1\na{pool=\"gpu\"} 2\n\
                    b{state=\"x\",pool=\"gpu\"} 3\nc{kind=\"y\"} 4\nd 5\n# EOF\n";
        let shown = visible(text, |pool| pool == "ci");
        let expected =
            "# TYPE a gauge\na{pool=\"ci\",state=\"free\"} 1\nc{kind=\"y\"} 4\nd 5\n# EOF\n";
        assert_eq!(shown, expected);
        assert_eq!(visible(text, |_| true), text);
    }
}
