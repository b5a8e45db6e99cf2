//! Paints the model. Everything fits on 80 columns and 24 lines.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_api::{MemberView, Overview, PoolDetail, format_span};

use super::canvas::{Area, Canvas, Style, Table, Width};
use super::model::{List, Model, Typing};
use crate::commands::cluster::span;
use crate::commands::status::{ends, or_dash};

const BAR: u64 = 12;
/// Most lines for nodes.
const MEMBER_LINES: usize = 4;
/// Most reasons for which pools grant nothing.
const OUTAGE_LINES: usize = 3;
/// Most lines of each; a look into its pool shows all of it.
const REASON_LINES: usize = 2;

type Piece = (String, Style);

pub(super) fn draw(canvas: &mut Canvas, model: &Model) {
    let Some(view) = &model.view else { return };
    let all = canvas.area();
    line(canvas, all.rows(0, 1), &title(model, view));
    let mut nodes = member_lines(&view.nodes, all.width);
    nodes.truncate(MEMBER_LINES);
    for (row, pieces) in nodes.iter().enumerate() {
        line(canvas, all.rows(1 + row, 1), pieces);
    }
    let above = 1 + nodes.len();
    let body = all.rows(above, all.height.saturating_sub(above + 1));
    match (&view.pool, model.list) {
        (Some(pool), List::Holders | List::Queue) => draw_pool(canvas, body, model, pool),
        _ => draw_pools(canvas, body, model, view),
    }
    line(canvas, all.rows(all.height.saturating_sub(1), 1), &[bottom(model)]);
    if let Some(text) = &model.popup {
        let inside = canvas.frame(all.inside(3, 2), " any key closes ");
        canvas.wrapped(inside, text, Style::Plain);
    }
}

fn line(canvas: &mut Canvas, area: Area, pieces: &[Piece]) {
    let mut rest = area;
    for (text, style) in pieces {
        rest = canvas.write(rest, text, *style);
    }
}

fn title(model: &Model, view: &Overview) -> Vec<Piece> {
    let answer = view.nodes.iter().filter(|node| node.answers).count();
    let all = view.nodes.len();
    let (cluster, node) = (&view.node.cluster, &view.node.name);
    let mut line = vec![
        ("quorate ".into(), Style::Bold),
        (format!("{cluster} · seen from {node} · {answer} of {all} nodes answer"), Style::Plain),
    ];
    if let Some(problem) = &model.problem {
        line.push((format!(" · STALE: {problem}"), Style::Red));
    }
    line
}

/// Nodes, as many on a line as fit; those that are not well first.
fn member_lines(nodes: &[MemberView], width: usize) -> Vec<Vec<Piece>> {
    let mut nodes: Vec<&MemberView> = nodes.iter().collect();
    nodes.sort_by_key(|node| node.answers && node.ready);
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::new(), 0);
    for node in nodes {
        let (text, style) = match node {
            MemberView { answers: false, name, .. } => (format!("{name} DOWN"), Style::Red),
            MemberView { grace_ms: grace_ms @ 1.., name, .. } => {
                (format!("{name} grace {}", span(Some(*grace_ms))), Style::Yellow)
            }
            MemberView { ready: false, name, .. } => (format!("{name} not ready"), Style::Yellow),
            MemberView { name, claims, .. } => (format!("{name} {claims} claims"), Style::Green),
        };
        let text = format!("● {text}   ");
        let length = text.chars().count();
        if used + length > width && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        used += length;
        line.push((text, style));
    }
    lines.push(line);
    lines
}

/// What is in the way of pools that grant nothing, the reason that concerns most pools first.
fn outage(view: &Overview) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pool in view.pools.iter().filter(|pool| !pool.grants.grants()) {
        let why = pool.grants.hindrance.as_ref().map_or("", |it| it.summary.as_str());
        reasons.entry(why).or_default().push(&pool.name);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, pools)| std::cmp::Reverse(pools.len()));
    let told = reasons.iter().take(OUTAGE_LINES).map(|(_, pools)| pools.len()).sum::<usize>();
    let mut lines: Vec<String> = reasons
        .iter()
        .take(OUTAGE_LINES)
        .map(|(why, pools)| {
            let (verb, more) = match pools.len() {
                1 => ("grants", String::new()),
                many => ("grant", format!(" and {} more", many - 1)),
            };
            format!("{}{more} {verb} nothing: {why}", pools[0])
        })
        .collect();
    let rest = view.pools_unavailable.saturating_sub(told as u64);
    if rest > 0 {
        let pools = if rest == 1 { "pool grants" } else { "pools grant" };
        lines.push(format!("{rest} other {pools} nothing"));
    }
    lines
}

fn draw_pools(canvas: &mut Canvas, area: Area, model: &Model, view: &Overview) {
    let mut area = area;
    for text in outage(view) {
        let used = canvas.wrapped(area.rows(0, REASON_LINES), &text, Style::Red);
        area = area.rows(used, area.height);
    }
    let pools = model.pools();
    let rows = pools.iter().map(|pool| {
        let full = (pool.held * BAR / u64::from(pool.units.max(1))).min(BAR) as usize;
        let bar = "█".repeat(full) + &"░".repeat(BAR as usize - full);
        let waiting = if pool.waiting == 0 { String::new() } else { pool.waiting.to_string() };
        let (state, name, style) = match pool.grants.grants() {
            true => (pool.protocol.clone(), Style::Plain, Style::Dim),
            false => ("UNAVAILABLE".to_owned(), Style::Red, Style::Red),
        };
        vec![
            (pool.name.clone(), name),
            (format!("{bar} {}/{}", pool.held, pool.units), Style::Plain),
            (waiting, Style::Yellow),
            (state, style),
        ]
    });
    let columns = [
        ("pool", Width::Share(1)),
        ("held", Width::Fixed(24)),
        ("waiting", Width::Fixed(8)),
        ("protocol", Width::Fixed(11)),
    ];
    let title = format!(" {} of {} pools ", pools.len(), view.pools_found);
    let (rows, cursor) = (rows.collect(), Some(model.cursor));
    canvas.table(area, &Table { title, columns: &columns, rows, cursor });
}

fn draw_pool(canvas: &mut Canvas, area: Area, model: &Model, pool: &PoolDetail) {
    let view = &pool.view;
    let (held, waiting) = (view.held.unwrap_or(0), view.waiting.unwrap_or(0));
    let mut text = format!(
        "{}: {held} of {} units held, {waiting} waiting, {}, lease {}",
        view.name,
        view.units,
        view.protocol,
        format_span(Duration::from_millis(view.lease_ms))
    );
    if view.grace_ms.is_some() {
        text.push_str(&format!(", GRACE {}", span(view.grace_ms)));
    }
    let mut area = area;
    if let Some(grants) = view.grants.as_ref().filter(|grants| !grants.grants()) {
        let why = grants.hindrance.as_ref().map(|it| it.summary.as_str()).unwrap_or_default();
        let outage = format!("{} grants nothing: {why}", view.name);
        let used = canvas.wrapped(area.rows(0, area.height / 2), &outage, Style::Red);
        area = area.rows(used, area.height);
    }
    canvas.write(area.rows(0, 1), &text, Style::Bold);

    let holders = model.holders().into_iter().map(|holder| {
        let unit = |u: &quorate_api::UnitView| u.name.clone().unwrap_or_else(|| u.unit.to_string());
        let units: Vec<String> = holder.units.iter().map(unit).collect();
        plain([
            or_dash(&holder.client).to_owned(),
            or_dash(&holder.reason).to_owned(),
            if units.is_empty() { holder.count.to_string() } else { units.join(",") },
            span(holder.held_ms),
            ends(holder),
            or_dash(&holder.node).to_owned(),
        ])
    });
    let columns = [
        ("who", Width::Share(3)),
        ("what for", Width::Share(4)),
        ("units", Width::Share(2)),
        ("held", Width::Fixed(11)),
        ("lease", Width::Fixed(11)),
        ("node", Width::Fixed(6)),
    ];
    let upper = area.height * 45 / 100;
    let title = format!(" holding: {} ", pool.holders_found);
    let (rows, cursor) = (holders.collect(), model.cursor_in(List::Holders));
    canvas.table(area.rows(1, upper), &Table { title, columns: &columns, rows, cursor });

    let queue = model.queue().into_iter().map(|waiter| {
        plain([
            waiter.position.map_or_else(|| "-".into(), |place| place.to_string()),
            or_dash(&waiter.client).to_owned(),
            or_dash(&waiter.reason).to_owned(),
            waiter.count.to_string(),
            span(waiter.waiting_ms),
            or_dash(&waiter.node).to_owned(),
        ])
    });
    let columns = [
        ("place", Width::Fixed(6)),
        ("who", Width::Share(3)),
        ("what for", Width::Share(4)),
        ("units", Width::Fixed(5)),
        ("waits", Width::Fixed(7)),
        ("node", Width::Fixed(6)),
    ];
    let title = format!(" waiting: {} ", pool.queue_found + pool.unlisted);
    let (rows, cursor) = (queue.collect(), model.cursor_in(List::Queue));
    let lower = area.rows(1 + upper, area.height);
    canvas.table(lower, &Table { title, columns: &columns, rows, cursor });
}

fn plain(texts: [String; 6]) -> Vec<Piece> {
    texts.into_iter().map(|text| (text, Style::Plain)).collect()
}

fn bottom(model: &Model) -> Piece {
    match &model.typing {
        Typing::Filter => (format!("show only: {}▏ (enter, esc)", model.filter), Style::Plain),
        Typing::Reason(id, reason) if model.said.is_empty() => {
            let short: String = id.to_string().chars().rev().take(6).collect();
            let short: String = short.chars().rev().collect();
            let ask = format!("revoke …{short}? reason: {reason}▏ (enter does it, esc keeps it)");
            (ask, Style::Red)
        }
        Typing::Reason(..) => (model.said.clone(), Style::Red),
        Typing::Nothing if !model.said.is_empty() => (model.said.clone(), Style::Plain),
        Typing::Nothing => {
            let filter = match model.filter.as_str() {
                "" => String::new(),
                text => format!(" [{text}]"),
            };
            let keys = match model.list {
                List::Pools => "enter looks in",
                List::Holders | List::Queue => "tab list  w why  r revoke  esc back",
            };
            let sort = model.sort_name();
            (format!("↑↓  {keys}  / filter{filter}  s sort: {sort}  q quit"), Style::Dim)
        }
    }
}
