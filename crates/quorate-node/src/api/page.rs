//! A plain page for people at `/`: this node, its peers, its pools. It shows what the API says and
//! nothing else.

use std::fmt::Write;

use axum::extract::State;
use axum::response::Html;
use quorate_api::format_span;
use quorate_api::{HoldersView, NodeView, PoolView, QueueView};

use super::pools::look;
use crate::app::App;
use crate::engine::Command;

/// Pools shown in full.
const POOLS_SHOWN: usize = 20;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
    padding:0 1rem}table{border-collapse:collapse;margin:.5rem 0 1.5rem}th,td{text-align:left;\
    padding:.2rem 1rem .2rem 0;border-bottom:1px solid #ccc}code{font-size:.9em}\
    .bad{color:#b00020}";

pub(crate) async fn page(State(app): State<App>) -> Html<String> {
    let mut text = String::from("<!doctype html><html lang=en><meta charset=utf-8>");
    let name = escape(app.config.name());
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "<meta http-equiv=refresh content=2><title>quorate: {name}</title><style>{STYLE}</style>"
    );
    let (node, pools) = (app.fetch(Command::Node).await, app.fetch(Command::Pools).await);
    let (Ok(node), Ok(pools)) = (node, pools) else {
        text.push_str("<p class=bad>This node is stopping.");
        return Html(text);
    };
    show_node(&mut text, &node);
    for pool in pools.pools.iter().take(POOLS_SHOWN) {
        if let Ok((def, picture)) = look(&app, &pool.name).await {
            let view = picture.pool(&pool.name, def);
            show_pool(&mut text, &view, &picture.holders(def), &picture.waiting());
        }
    }
    let more = pools.pools.len().saturating_sub(POOLS_SHOWN) as u64 + pools.left_out;
    if more > 0 {
        let _ = write!(text, "<p>and {more} more pools (<a href=/v1/pools>/v1/pools</a>)");
    }
    text.push_str(
        "<p><a href=/v1/openapi.json>API</a> · <a href=/metrics>metrics</a> · \
         <a href='/readyz?verbose'>readiness</a>",
    );
    Html(text)
}

fn show_node(text: &mut String, node: &NodeView) {
    let _ = write!(
        text,
        "<h1>{}</h1><p>node of cluster <b>{}</b>, epoch {}, boot {}, {} claims</p>",
        escape(&node.name),
        escape(&node.cluster),
        node.epoch,
        node.boot,
        node.claims
    );
    for check in node.checks.iter().filter(|check| !check.ok) {
        let _ = write!(text, "<p class=bad>{}: {}</p>", escape(&check.name), escape(&check.detail));
    }
    if node.peers.is_empty() {
        return;
    }
    text.push_str("<table><tr><th>peer<th>link");
    for peer in &node.peers {
        let state = match (&peer.problem, peer.connected) {
            (_, true) => "connected".to_owned(),
            (problem, false) => {
                let why = escape(problem.as_deref().unwrap_or_default());
                format!("<span class=bad>{why}</span>")
            }
        };
        let _ = write!(text, "<tr><td>{}<td>{state}", escape(&peer.name));
    }
    text.push_str("</table>");
}

fn show_pool(text: &mut String, pool: &PoolView, holders: &HoldersView, queue: &QueueView) {
    let _ = write!(
        text,
        "<h2>{}</h2><p>{} of {} units held, {} waiting, lease {}",
        escape(&pool.name),
        pool.held.unwrap_or_default(),
        pool.units,
        pool.waiting.unwrap_or_default(),
        format_span(std::time::Duration::from_millis(pool.lease_ms))
    );
    if let Some(left) = pool.grace_ms {
        let left = format_span(std::time::Duration::from_millis(left));
        let _ = write!(text, " <span class=bad>grace: {left} until old promises are over</span>");
    }
    if !pool.silent.is_empty() {
        let _ = write!(text, " <span class=bad>silent: {}</span>", escape(&pool.silent.join(", ")));
    }
    if holders.holders.is_empty() && queue.waiting.is_empty() {
        return;
    }
    text.push_str("<table><tr><th>claim<th>state<th>units<th>client<th>reason<th>node");
    for holder in &holders.holders {
        let units: Vec<String> = holder
            .units
            .iter()
            .map(|unit| unit.name.clone().unwrap_or_else(|| unit.unit.to_string()))
            .collect();
        let units =
            if units.is_empty() { holder.count.to_string() } else { escape(&units.join(", ")) };
        let _ = write!(
            text,
            "<tr><td><code>{}</code><td>holds<td>{units}<td>{}<td>{}<td>{}",
            holder.id,
            escape(&holder.client),
            escape(&holder.reason),
            escape(&holder.node)
        );
    }
    for waiter in queue.waiting.iter().take(50) {
        let _ = write!(
            text,
            "<tr><td><code>{}</code><td>waits<td>{}<td>{}<td>{}<td>{}",
            waiter.id,
            waiter.count,
            escape(&waiter.client),
            escape(&waiter.reason),
            escape(&waiter.node)
        );
    }
    text.push_str("</table>");
}

/// What clients say is shown, never obeyed.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
