//! Pools, who holds their units and who waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use quorate_api::{
    FactView, OrderOutcome, PoolView, PoolsView, Problem, ProblemKind, RelabelRequest,
};
#[cfg(test)] // Named by the OpenAPI document alone.
use quorate_api::{HoldersView, QueueView, RegisterView};
use quorate_charter::Group;
use quorate_core::NodeId;
use quorate_wire::order::{Done, Ordered, Outcome};
use quorate_wire::survey::Question;

use super::reply::{Failure, bad_request, body, number, ok, unreadable};
use super::{OrderId, definitions};
use crate::admission;
use crate::app::{App, told};
use crate::caller::Action;
use crate::charter::seat_view;
use crate::config::{Names, POOL_NAME_MAX, PoolDef, Text};
use crate::engine::{Gathered, POOLS_LISTED, Request, Used, check_labels, pool_view};
use crate::outlook::Words;
use crate::views::{Picture, ids};

type Answered = Result<Response, Failure>;

/// Which part of the list of pools is wanted.
#[derive(serde::Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct From {
    after: String,
}

/// Lists the pools, in the order of names: a thousand, and how many more there are.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools", tag = "pools",
    params(("after" = Option<String>, Query, description = "only those whose names come after \
        this one: the last one of the list before")),
    responses((status = 200, description = "the pools", body = PoolsView))))]
pub(crate) async fn list(app: App, query: Result<Query<From>, QueryRejection>) -> Answered {
    let Query(From { after }) = query.map_err(|error| unreadable(&error))?;
    let name = after.clone();
    let used = app.fetch(|reply| Request::Pools { after: name, reply }).await?;
    let mut pools = listed(&app, &after, used);
    if !app.sees_everything() {
        pools.pools.retain(|pool| app.sees(&pool.name));
        pools.patterns.retain(|pattern| app.sees(pattern));
        // How many of those are the caller's is not known.
        pools.left_out = 0;
    }
    Ok(ok(StatusCode::OK, &pools))
}

/// Those in use at this node, and those of the charter that are not.
fn listed(app: &App, after: &str, used: Used) -> PoolsView {
    let (config, written) = (&*app.config, app.config.added.now());
    let mut pools: BTreeMap<String, PoolView> =
        used.pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect();
    let there = || written.after(after).filter(|(_, kept)| !Text::is_of_deleted(&kept.value));
    let all = there().count() as u64 + used.of_files;
    let (seats, members) = (app.hall.as_ref().and_then(|hall| hall.seats()), config.members.len());
    let unused = there().take(POOLS_LISTED).filter(|(name, _)| !pools.contains_key(*name));
    let unused = unused.filter_map(|(name, _)| {
        let def = config.added(name)?.def;
        let grants = def.protocol.grants(name, members, &used.away);
        let words = Words { config, units: def.units, grace_ms: None, who: None };
        let seated = seats.as_ref().and_then(|seats| seats.get(Group::of(name)));
        let view = PoolView {
            grants: Some(words.view(&grants)),
            // Nobody has been shown anything of it yet, since there is nothing to show.
            seat: seated.and_then(|seated| seat_view(config, seated, &def, true)),
            ..pool_view(name, &def, None, config.members.living())
        };
        Some((name.to_owned(), view))
    });
    let unused: Vec<_> = unused.collect();
    pools.extend(unused);
    let pools: Vec<PoolView> = pools.into_values().take(POOLS_LISTED).collect();
    let patterns = config.pools.iter().filter(|def| matches!(def.names, Names::Like { .. }));
    PoolsView {
        left_out: all.saturating_sub(pools.len() as u64),
        patterns: patterns.map(|def| def.label()).collect(),
        pools,
    }
}

/// Shows one pool with its counts.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "the pool", body = PoolView),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn one(app: App, Path(pool): Path<String>) -> Answered {
    let (def, picture) = look(&app, &pool).await?;
    if def.deleted && picture.holders(&def).holders.is_empty() {
        return Err(admission::deleted(&pool).into());
    }
    let mut view = picture.pool(&app.config, &pool, &def);
    let unshown = |fact: &FactView| fact.name == "shadowed" && fact.value == 0;
    let knows = !view.facts.iter().any(unshown);
    view.seat = app.hall.as_ref().and_then(|hall| hall.seat_view(&pool, &def, knows));
    Ok(ok(StatusCode::OK, &view))
}

/// Lists who holds units.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}/holders", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "who holds, the longest first", body = HoldersView),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn holders(app: App, Path(pool): Path<String>) -> Answered {
    let (def, picture) = look(&app, &pool).await?;
    Ok(ok(StatusCode::OK, &picture.holders(&def)))
}

/// Which part of a register is wanted.
#[derive(serde::Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct After {
    /// Only what came after the event of this number.
    #[serde(deserialize_with = "number")]
    after: u64,
}

/// Tells what this node granted to its clients and what became of it, in order: the last thousand
/// events. In a pool that is durable they survive restarts.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}/grants", tag = "pools",
    params(("pool" = String, Path),
        ("after" = Option<u64>, Query, description = "only what came after the event of this \
            number")),
    responses(
        (status = 200, description = "grants and their ends, in order", body = RegisterView),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn grants(
    app: App,
    Path(pool): Path<String>,
    query: Result<Query<After>, QueryRejection>,
) -> Answered {
    let Query(After { after }) = query.map_err(|error| unreadable(&error))?;
    let view = app.fetch(|reply| Request::Register { pool, after, reply }).await??;
    Ok(ok(StatusCode::OK, &view))
}

/// Lists who waits.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}/queue", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "who waits, the next one first", body = QueueView),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn queue(app: App, Path(pool): Path<String>) -> Answered {
    let (_, picture) = look(&app, &pool).await?;
    Ok(ok(StatusCode::OK, &picture.waiting()))
}

/// Takes a unit out of service: nobody is granted it any more, and whoever holds it keeps it until
/// it is done. Claims that can never be granted without it are refused. It lasts until it is
/// undone, or until the node that decides restarts, unless the pool is durable.
#[cfg_attr(test, utoipa::path(put, path = "/v1/pools/{pool}/units/{unit}/drain", tag = "pools",
    params(("pool" = String, Path), ("unit" = String, Path, description = "its name or number"),
        ("idempotency-key" = Option<String>, Header, description = "orders of one key are carried \
            out once: 1 to 32 hexadecimal digits, or a UUID")),
    responses(
        (status = 200, description = "done; the pool soon after", body = PoolView),
        (status = 400, description = "no such unit, or the protocol cannot", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 409, description = "it is the charter's, and was changed meanwhile",
            body = Problem),
        (status = 503, description = "it is the charter's, which cannot be asked now",
            body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn drain(app: App, path: Path<(String, String)>, id: OrderId) -> Answered {
    order(app, path, id, "drain units", |unit| Ordered::Drain { unit }).await
}

/// Brings a drained unit back.
#[cfg_attr(test, utoipa::path(delete, path = "/v1/pools/{pool}/units/{unit}/drain", tag = "pools",
    params(("pool" = String, Path), ("unit" = String, Path, description = "its name or number"),
        ("idempotency-key" = Option<String>, Header, description = "orders of one key are carried \
            out once: 1 to 32 hexadecimal digits, or a UUID")),
    responses(
        (status = 200, description = "done; the pool soon after", body = PoolView),
        (status = 400, description = "no such unit, or the protocol cannot", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 409, description = "it is the charter's, and was changed meanwhile",
            body = Problem),
        (status = 503, description = "it is the charter's, which cannot be asked now",
            body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn restore(app: App, path: Path<(String, String)>, id: OrderId) -> Answered {
    order(app, path, id, "drain units", |unit| Ordered::Restore { unit }).await
}

/// Gives a unit other labels. Whoever holds it keeps it. Claims that wait are looked at again: they
/// keep their place, and those that can never be granted now are refused. It lasts until it is
/// changed again; in a pool that is not durable, a restart of the node that decides brings back the
/// labels of the configuration.
#[cfg_attr(test, utoipa::path(put, path = "/v1/pools/{pool}/units/{unit}/labels", tag = "pools",
    params(("pool" = String, Path), ("unit" = String, Path, description = "its name or number"),
        ("idempotency-key" = Option<String>, Header, description = "orders of one key are carried \
            out once: 1 to 32 hexadecimal digits, or a UUID")),
    request_body = RelabelRequest,
    responses(
        (status = 200, description = "done; the pool soon after", body = PoolView),
        (status = 400, description = "no such unit, or no labels there", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 409, description = "it is the charter's, and was changed meanwhile",
            body = Problem),
        (status = 503, description = "it is the charter's, which cannot be asked now",
            body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn relabel(
    app: App,
    path: Path<(String, String)>,
    id: OrderId,
    bytes: Bytes,
) -> Answered {
    let RelabelRequest { labels } = body(&bytes)?;
    check_labels(&labels).map_err(|text| bad_request(text + "; nothing changed"))?;
    let what = |unit| Ordered::Relabel { unit, labels: Some(labels) };
    order(app, path, id, "give units other labels", what).await
}

/// Gives a unit the labels of the configuration again.
#[cfg_attr(test, utoipa::path(delete, path = "/v1/pools/{pool}/units/{unit}/labels", tag = "pools",
    params(("pool" = String, Path), ("unit" = String, Path, description = "its name or number"),
        ("idempotency-key" = Option<String>, Header, description = "orders of one key are carried \
            out once: 1 to 32 hexadecimal digits, or a UUID")),
    responses(
        (status = 200, description = "done; the pool soon after", body = PoolView),
        (status = 400, description = "no such unit, or the pool has no labels", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn unlabel(app: App, path: Path<(String, String)>, id: OrderId) -> Answered {
    let what = |unit| Ordered::Relabel { unit, labels: None };
    order(app, path, id, "give units other labels", what).await
}

async fn order(
    app: App,
    Path((pool, unit)): Path<(String, String)>,
    OrderId(id): OrderId,
    deed: &str,
    what: impl FnOnce(u32) -> Ordered,
) -> Answered {
    let def = app.pool(&pool)?;
    let named = def.unit_names.iter().position(|name| *name == unit);
    let numbered = || unit.parse().ok().filter(|unit| *unit < def.units as usize);
    let Some(unit) = named.or_else(numbered).and_then(|unit| u32::try_from(unit).ok()) else {
        let mut there: Vec<String> = def.unit_names.iter().take(8).cloned().collect();
        if there.is_empty() {
            there.push(format!("0 to {}", def.units - 1));
        } else if def.unit_names.len() > there.len() {
            there.push("...".into());
        }
        let there = there.join(", ");
        let text = format!("the pool has no unit {unit:?}, but {there}; nothing changed");
        return Err(bad_request(text).into());
    };
    let what = what(unit);
    if def.ever.is_some() {
        return ordered_by_charter(&app, &pool, what, id).await;
    }
    let carried = app.order(&pool, what, id).await?;
    let Some(outcome) = outcome(&app, carried)? else {
        return Err(bad_request(format!("this pool cannot {deed}; nothing changed")).into());
    };
    let (def, picture) = look(&app, &pool).await?;
    let outcome = OrderOutcome { granted: ids(&outcome.granted), refused: ids(&outcome.refused) };
    let view = PoolView { outcome: Some(outcome), ..picture.pool(&app.config, &pool, &def) };
    Ok(ok(StatusCode::OK, &view))
}

/// The same in a pool of the charter: it becomes a part of what that says of the pool, so that who
/// decides next knows of it.
async fn ordered_by_charter(app: &App, pool: &str, what: Ordered, id: Option<u128>) -> Answered {
    app.authorize(Some(pool), Action::of_order(&what))?;
    let hall = definitions::charter(app)?;
    let (verb, _) = told(&what);
    let made = hall
        .amend(id, |charter| match &what {
            Ordered::Drain { unit } => hall.draining(charter, pool, (*unit, true)),
            Ordered::Restore { unit } => hall.draining(charter, pool, (*unit, false)),
            Ordered::Relabel { unit, labels: Some(labels) } => {
                hall.relabelling(charter, pool, (*unit, labels))
            }
            Ordered::Relabel { labels: None, .. } => Err(bad_request(format!(
                "labels of pool {pool:?} are those that the charter says, and it knows no earlier \
                 ones: give the unit the labels that it is to have; nothing changed"
            ))),
            Ordered::Revoke { .. } => unreachable!("it is about a claim"),
        })
        .await;
    definitions::told(app, verb, pool, made)?;
    let (def, picture) = look(app, pool).await?;
    Ok(ok(StatusCode::OK, &picture.pool(&app.config, pool, &def)))
}

/// What came of an order, if some node carried it out; nothing, if none could. Of those that have
/// not acknowledged it nothing is known.
pub(super) fn outcome(app: &App, carried: Gathered<Done>) -> Result<Option<Outcome>, Problem> {
    let mut objection = None;
    for (_, done) in carried.said {
        match done {
            Done::Obeyed(outcome) => return Ok(Some(outcome)),
            Done::Objected(why) => objection = Some(why),
            Done::NotHere => {}
        }
    }
    if let Some(objection) = objection {
        return Err(bad_request(format!("{objection}; nothing changed")));
    }
    let name = |node: &NodeId| app.config.members[node.index()].name.as_str();
    let silent: Vec<&str> = carried.silent.iter().map(name).collect();
    if silent.is_empty() {
        return Ok(None);
    }
    let text = format!(
        "no acknowledgement from {}: the order may have been carried out there, or be on its way \
         and be carried out later. Look how things stand, or repeat it",
        silent.join(", ")
    );
    Err(Problem::new(ProblemKind::Unknown, text))
}

/// Scrambles the state of this node's seat, to see the pool heal. For tests: while it heals, more
/// units may be in use than there are.
#[cfg_attr(test, utoipa::path(post, path = "/v1/admin/pools/{pool}/corrupt", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "done; the pool soon after", body = PoolView),
        (status = 400, description = "the protocol heals from no such thing", body = Problem),
        (status = 403, description = "not allowed, or not to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn corrupt(app: App, Path(pool): Path<String>) -> Answered {
    let name = pool.clone();
    app.authorize(Some(&pool), Action::Admin)?;
    let done = app.fetch(|reply| Request::Corrupt { pool: name, reply }).await?;
    app.act("corrupt", &pool, String::new(), came_of(&done));
    done?;
    one(app, Path(pool)).await
}

/// Says that a node which seems to have crashed is cut off from what the pool's units protect, so
/// that this node need not count it any more. Say it to every node, and only when it is true: the
/// units are given to others at once.
#[cfg_attr(test, utoipa::path(post, path = "/v1/admin/pools/{pool}/nodes/{node}/fence",
    tag = "pools",
    params(("pool" = String, Path), ("node" = String, Path)),
    responses(
        (status = 200, description = "done; the pool soon after", body = PoolView),
        (status = 400, description = "no such node, not suspected, or the pool does not wait for \
            this", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn fence(app: App, Path((pool, node)): Path<(String, String)>) -> Answered {
    let name = pool.clone();
    app.authorize(Some(&pool), Action::Admin)?;
    let about = format!("node {}", node.chars().take(POOL_NAME_MAX).collect::<String>());
    let done = app.fetch(|reply| Request::Fence { pool: name, node, reply }).await?;
    app.act("fence", &pool, about, came_of(&done));
    done?;
    one(app, Path(pool)).await
}

/// What came of something, for the audit.
fn came_of<T>(done: &Result<T, Problem>) -> String {
    match done {
        Ok(_) => "done".into(),
        Err(problem) => format!("refused: {}", problem.detail),
    }
}

/// Asks every node what it knows of a pool.
pub(super) async fn look(app: &App, pool: &str) -> Result<(Arc<PoolDef>, Picture), Problem> {
    app.authorize(Some(pool), Action::See)?;
    app.look_for(pool).await?;
    let def = app.pool(pool)?;
    let gathered = app.survey(Question::Pool { pool: pool.to_owned() }).await?;
    let picture = Picture::new(&app.config, pool, &def, gathered);
    Ok((def, picture))
}
