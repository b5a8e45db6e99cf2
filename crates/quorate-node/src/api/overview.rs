//! What an operator looks at: the whole cluster on one screen, the past of a pool, and where a
//! claim is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use quorate_api::{Change, FoundView, HistoryEvent, HistoryView, Overview, PatternRow, Problem};
use quorate_wire::glance::{Glance, Only, Order, Wanted};
use serde::Deserialize;
use tokio::sync::{broadcast, mpsc};
use tokio::time::{Instant, sleep_until, timeout};

use super::health::discreet;
use super::reply::{Failure, bad_request, number, ok, some_number, unreadable};
use super::watch::Events;
use crate::app::App;
use crate::config::{Names, PoolDef, Text};
use crate::engine::{Gathered, Request};
use crate::overview::{Glances, Page};
use crate::views::Picture;

/// Records that a history or an estimate asks of each node.
const RECORDS: u32 = 512;
/// Events of a pool on the screen.
const EVENTS: u32 = 60;
/// Rows of a page.
const ROWS: usize = 25;
const ROWS_MAX: usize = 200;
/// How often the screen is drawn at most, and at least.
const SOONEST: Duration = Duration::from_millis(300);
const LATEST: Duration = Duration::from_secs(1);

/// What is on the screen.
#[derive(Clone, Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Screen {
    /// Only pools whose name contains this...
    search: String,
    /// ...and of these only those that are in use so...
    only: Only,
    /// ...in this order...
    sort: Order,
    /// ...from this page on.
    #[serde(deserialize_with = "number")]
    page: usize,
    /// The pool that is shown in full.
    pool: Option<String>,
    /// Only claims in which this text appears.
    claims: String,
    #[serde(deserialize_with = "number")]
    holders_page: usize,
    #[serde(deserialize_with = "number")]
    queue_page: usize,
    /// Rows of each page...
    #[serde(deserialize_with = "some_number")]
    rows: Option<usize>,
    /// ...and of pages of claims, if that is something else.
    #[serde(deserialize_with = "some_number")]
    claim_rows: Option<usize>,
}

type Asked = Result<Query<Screen>, QueryRejection>;

/// Shows all of the cluster that fits on a screen.
#[cfg_attr(test, utoipa::path(get, path = "/v1/overview", tag = "overview",
    params(
        ("search" = Option<String>, Query, description = "only pools whose name contains this"),
        ("only" = Option<String>, Query,
            description = "only pools where somebody is `waiting`, or has something `held`, or \
            that are `unavailable`: they grant nothing"),
        ("sort" = Option<String>, Query, description = "pools by `name`, or first those where most \
            are `waiting`, the largest share is `held`, or the `oldest` wait is longest, or those \
            that are `unavailable`"),
        ("page" = Option<usize>, Query, description = "which page of pools, from 0"),
        ("pool" = Option<String>, Query, description = "the pool to show in full"),
        ("claims" = Option<String>, Query, description = "only its claims that contain this"),
        ("holders_page" = Option<usize>, Query), ("queue_page" = Option<usize>, Query),
        ("rows" = Option<usize>, Query, description = "rows of a page, at most 200"),
        ("claim_rows" = Option<usize>, Query, description = "rows of a page of claims, likewise"),
    ),
    responses(
        (status = 200, description = "the overview", body = Overview),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn overview(app: App, screen: Asked) -> Result<Response, Failure> {
    let Query(screen) = screen.map_err(|error| unreadable(&error))?;
    Ok(ok(StatusCode::OK, &draw(&app, &screen).await?))
}

/// Shows it again whenever something changes.
#[cfg_attr(test, utoipa::path(get, path = "/v1/overview/watch", tag = "overview",
    responses((status = 200, description = "events named `overview`, at least one a second; \
        `problem` if there is no such pool, and then the rest", body = Overview,
        content_type = "text/event-stream"))))]
pub(crate) async fn watch(app: App, screen: Asked) -> Result<Response, Failure> {
    let Query(screen) = screen.map_err(|error| unreadable(&error))?;
    let changes = app.changes(None)?;
    let (sender, receiver) = mpsc::channel::<Event>(1);
    let (mut stopping, watcher) = (app.clone(), app.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = show(app, screen, changes, sender) => {}
            () = stopping.stopped() => {}
            () = watcher.barred(None) => {}
        }
    });
    Ok(Sse::new(Events(receiver)).keep_alive(KeepAlive::default()).into_response())
}

async fn show(
    app: App,
    screen: Screen,
    changes: broadcast::Receiver<Change>,
    sender: mpsc::Sender<Event>,
) {
    loop {
        let began = Instant::now();
        // What changes while we look is in the next picture.
        let mut changes = changes.resubscribe();
        let events = match draw(&app, &screen).await {
            Ok(view) => vec![event("overview", &view)],
            // The rest of the screen is there although the pool is not.
            Err(problem) => {
                let rest = Screen { pool: None, ..screen.clone() };
                let rest = draw(&app, &rest).await.ok();
                let rest = rest.filter(|_| screen.pool.is_some());
                let rest = rest.map(|view| event("overview", &view));
                std::iter::once(event("problem", &problem)).chain(rest).collect()
            }
        };
        for event in events {
            if sender.send(event).await.is_err() {
                return; // Nobody looks any more.
            }
        }
        let _ = timeout(LATEST, changes.recv()).await;
        sleep_until(began + SOONEST).await;
    }
}

fn event(name: &str, what: &impl serde::Serialize) -> Event {
    Event::default().event(name).data(serde_json::to_string(what).unwrap_or_default())
}

async fn draw(app: &App, screen: &Screen) -> Result<Overview, Problem> {
    let size = screen.rows.unwrap_or(ROWS).clamp(1, ROWS_MAX);
    let claims = screen.claim_rows.unwrap_or(size).clamp(1, ROWS_MAX);
    let def = match &screen.pool {
        Some(pool) => Some(app.pool(pool)?),
        None => None,
    };
    let (search, order, only) = (Some(screen.search.clone()), screen.sort, screen.only);
    let listed = app.glance(Wanted { search, order, only, ..Wanted::default() }).await?;
    let (glances, _) = Glances::take(&app.config, listed);
    let (mut found, mut pools_found) = glances.found(order);
    if !app.sees_everything() {
        found.retain(|(name, _)| app.sees(name));
        pools_found = found.len() as u64;
    }
    let pools_unavailable = found.iter().filter(|(_, count)| count.unavailable > 0).count() as u64;
    let start = screen.page.saturating_mul(size);
    let mut names: Vec<String> = found.into_iter().map(|(name, _)| name.to_owned()).collect();
    if only == Only::All {
        let (more, count) = unused(app, &screen.search, &names, start.saturating_add(size));
        names.extend(more);
        pools_found = pools_found.saturating_add(count);
        if order == Order::Name {
            names.sort_unstable();
        }
    }
    let names: Vec<String> = names.into_iter().skip(start).take(size).collect();

    let (mut counted, pool) = (names.clone(), screen.pool.clone());
    counted.extend(pool.clone());
    let wanted = Wanted { pool, counted, records_max: EVENTS, ..Wanted::default() };
    let (glances, surveys) = Glances::take(&app.config, app.glance(wanted).await?);
    let mut node = app.fetch(Request::Node).await?;
    discreet(app, &mut node.checks);
    let page = Page {
        search: screen.claims.clone(),
        holders: screen.holders_page,
        queue: screen.queue_page,
        size: claims,
    };
    Ok(Overview {
        nodes: glances.members(&node),
        pools: glances.rows(&names),
        pools_found,
        pools_unavailable,
        patterns: patterns(app, &screen.search),
        pool: screen.pool.as_ref().zip(def).map(|(pool, def)| {
            let picture = Picture::new(&app.config, pool, &def, surveys);
            glances.pool(pool, &def, &picture, names.len(), &page)
        }),
        notable: notable(app, &glances),
        guarded: app.config.guarded.admin().is_some() || app.config.guarded.now().is_some(),
        node,
    })
}

/// Pools of the charter that no node uses, with this text in their names: the first so many, and
/// how many there are.
fn unused(app: &App, search: &str, used: &[String], most: usize) -> (Vec<String>, u64) {
    let used: BTreeSet<&str> = used.iter().map(String::as_str).collect();
    let written = app.config.added.now();
    let all = written.iter().filter(|(name, kept)| {
        name.contains(search)
            && !used.contains(name)
            && !Text::is_of_deleted(&kept.value)
            && app.sees(name)
    });
    let (mut names, mut count) = (Vec::new(), 0);
    for (name, _) in all {
        if names.len() < most {
            names.push(name.to_owned());
        }
        count += 1;
    }
    (names, count)
}

/// What is worth knowing, to this caller.
fn notable(app: &App, glances: &Glances) -> Vec<HistoryEvent> {
    let sees = |pool: &str| app.sees(pool);
    // How many pools of others there are is not theirs to know who do not see them.
    glances.notable((!app.sees_everything()).then_some(&sees))
}

/// Patterns with the text in them.
fn patterns(app: &App, search: &str) -> Vec<PatternRow> {
    let defs = app.config.pools.iter().filter(|def| matches!(def.names, Names::Like { .. }));
    let row = |def: &Arc<PoolDef>| PatternRow {
        pattern: def.label(),
        units: def.units,
        protocol: def.protocol.name().to_owned(),
    };
    let shown = |def: &&Arc<PoolDef>| def.label().contains(search) && app.sees(&def.label());
    defs.filter(shown).map(row).collect()
}

/// Tells what happened in a pool, as far as nodes remember.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}/history", tag = "pools",
    params(("pool" = String, Path)),
    responses(
        (status = 200, description = "what happened, the oldest first", body = HistoryView),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn history(app: App, Path(pool): Path<String>) -> Result<Response, Failure> {
    let def = app.pool(&pool)?;
    let (glances, surveys) = Glances::take(&app.config, look_with_past(&app, &pool).await?);
    let name = |node: quorate_core::NodeId| app.config.members[node.index()].name.clone();
    let silent = surveys.missed(&app.config, &def).map(name).collect();
    Ok(ok(StatusCode::OK, &HistoryView { events: glances.history(), silent }))
}

/// Finds the pool of a claim.
#[cfg_attr(test, utoipa::path(get, path = "/v1/claims/{id}", tag = "claims",
    params(("id" = String, Path)),
    responses((status = 200, description = "the pools that know it", body = FoundView))))]
pub(crate) async fn find(app: App, Path(id): Path<String>) -> Result<Response, Failure> {
    let id: quorate_api::ClaimId =
        id.parse().map_err(|error: quorate_api::ClaimIdError| bad_request(error.to_string()))?;
    let claim = Some((id.origin(), id.serial()));
    let gathered = app.glance(Wanted { claim, ..Wanted::default() }).await?;
    let (glances, surveys) = Glances::take(&app.config, gathered);
    let found = glances.found(Order::Name).0.into_iter().map(|(pool, _)| pool);
    let pools = found.filter(|pool| app.sees(pool)).map(String::from).collect();
    let name = |node: &quorate_core::NodeId| app.config.members[node.index()].name.clone();
    let silent = surveys.silent.iter().map(name).collect();
    Ok(ok(StatusCode::OK, &FoundView { pools, silent }))
}

/// Everything about a pool, with what nodes remember of it.
pub(super) async fn look_with_past(app: &App, pool: &str) -> Result<Gathered<Glance>, Problem> {
    let pool = Some(pool.to_owned());
    app.glance(Wanted { pool, records_max: RECORDS, ..Wanted::default() }).await
}
