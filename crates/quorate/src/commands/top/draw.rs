//! Paints the model. Everything fits on 80 columns and 24 lines.

use quorate_api::{MemberView, Overview, PoolDetail};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};

use super::model::{List, Model, Typing};
use crate::commands::cluster::span;
use crate::commands::status::or_dash;

const BAR: u64 = 12;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let Some(view) = &model.view else { return };
    let nodes = member_lines(&view.nodes, frame.area().width);
    let [head, members, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::try_from(nodes.len()).unwrap_or(4).min(4)),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(title(model, view), head);
    frame.render_widget(Paragraph::new(nodes), members);
    match (&view.pool, model.list) {
        (Some(pool), List::Holders | List::Queue) => draw_pool(frame, body, model, pool),
        _ => draw_pools(frame, body, model, view),
    }
    frame.render_widget(bottom(model), foot);
    if let Some(text) = &model.popup {
        let area = frame.area().inner(Margin { horizontal: 3, vertical: 2 });
        let block = Block::bordered().title(" any key closes ");
        frame.render_widget(Clear, area);
        let text = Paragraph::new(text.as_str()).wrap(Wrap { trim: false });
        frame.render_widget(text.block(block), area);
    }
}

fn title<'a>(model: &'a Model, view: &'a Overview) -> Line<'a> {
    let answer = view.nodes.iter().filter(|node| node.answers).count();
    let all = view.nodes.len();
    let mut line = vec![
        Span::from("quorate ").bold(),
        Span::from(format!("{} · seen from {}", view.node.cluster, view.node.name)),
        Span::from(format!(" · {answer} of {all} nodes answer")),
    ];
    if let Some(problem) = &model.problem {
        line.push(Span::from(format!(" · STALE: {problem}")).red());
    }
    Line::from(line)
}

/// Nodes, as many on a line as fit; those that are not well first.
fn member_lines(nodes: &[MemberView], width: u16) -> Vec<Line<'static>> {
    let mut nodes: Vec<&MemberView> = nodes.iter().collect();
    nodes.sort_by_key(|node| node.answers && node.ready);
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::new(), 0);
    for node in nodes {
        let (text, color) = match node {
            MemberView { answers: false, name, .. } => (format!("{name} DOWN"), Color::Red),
            MemberView { grace_ms: grace_ms @ 1.., name, .. } => {
                (format!("{name} grace {}", span(Some(*grace_ms))), Color::Yellow)
            }
            MemberView { ready: false, name, .. } => (format!("{name} not ready"), Color::Yellow),
            MemberView { name, claims, .. } => (format!("{name} {claims} claims"), Color::Green),
        };
        let text = format!("● {text}   ");
        let length = text.chars().count();
        if used + length > usize::from(width) && !line.is_empty() {
            lines.push(Line::from(std::mem::take(&mut line)));
            used = 0;
        }
        used += length;
        line.push(Span::from(text).fg(color));
    }
    lines.push(Line::from(line));
    lines
}

fn header(cells: &[&'static str]) -> Row<'static> {
    Row::new(cells.iter().map(|cell| Cell::from(*cell))).style(Style::new().dim())
}

fn show(frame: &mut Frame<'_>, area: Rect, table: Table<'_>, cursor: Option<usize>) {
    let chosen = Style::new().add_modifier(Modifier::REVERSED);
    let mut state = TableState::default().with_selected(cursor);
    frame.render_stateful_widget(table.row_highlight_style(chosen), area, &mut state);
}

fn draw_pools(frame: &mut Frame<'_>, area: Rect, model: &Model, view: &Overview) {
    let pools = model.pools();
    let rows = pools.iter().map(|pool| {
        let full = (pool.held * BAR / u64::from(pool.units.max(1))).min(BAR) as usize;
        let bar = "█".repeat(full) + &"░".repeat(BAR as usize - full);
        Row::new([
            Cell::from(pool.name.clone()),
            Cell::from(format!("{bar} {}/{}", pool.held, pool.units)),
            Cell::from(match pool.waiting {
                0 => String::new(),
                waiting => waiting.to_string(),
            })
            .yellow(),
            Cell::from(pool.protocol.clone()).dim(),
        ])
    });
    let widths = [
        Constraint::Min(20),
        Constraint::Length(24),
        Constraint::Length(8),
        Constraint::Length(10),
    ];
    let shown = format!(" {} of {} pools ", pools.len(), view.pools_found);
    let table = Table::new(rows, widths)
        .header(header(&["pool", "held", "waiting", "protocol"]))
        .block(Block::bordered().title(shown));
    show(frame, area, table, Some(model.cursor));
}

fn draw_pool(frame: &mut Frame<'_>, area: Rect, model: &Model, pool: &PoolDetail) {
    let view = &pool.view;
    let [about, upper, lower] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Percentage(45),
        Constraint::Percentage(55),
    ])
    .areas(area);
    let (held, waiting) = (view.held.unwrap_or(0), view.waiting.unwrap_or(0));
    let mut text = format!(
        "{}: {held} of {} units held, {waiting} waiting, {}, lease {}",
        view.name,
        view.units,
        view.protocol,
        span(Some(view.lease_ms))
    );
    if view.grace_ms.is_some() {
        text.push_str(&format!(", GRACE {}", span(view.grace_ms)));
    }
    frame.render_widget(Line::from(text).bold(), about);

    let holders = model.holders().into_iter().map(|holder| {
        let unit = |u: &quorate_api::UnitView| u.name.clone().unwrap_or_else(|| u.unit.to_string());
        let units: Vec<String> = holder.units.iter().map(unit).collect();
        Row::new([
            or_dash(&holder.client).to_owned(),
            or_dash(&holder.reason).to_owned(),
            if units.is_empty() { holder.count.to_string() } else { units.join(",") },
            span(holder.held_ms),
            span(holder.expires_in_ms),
            or_dash(&holder.node).to_owned(),
        ])
    });
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(4),
        Constraint::Fill(2),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(6),
    ];
    let title = format!(" holding: {} ", pool.holders_found);
    let table = Table::new(holders, widths)
        .header(header(&["who", "what for", "units", "held", "lease", "node"]))
        .block(Block::bordered().title(title));
    show(frame, upper, table, (model.list == List::Holders).then_some(model.cursor));

    let queue = model.queue().into_iter().map(|waiter| {
        Row::new([
            waiter.position.map_or_else(|| "-".into(), |place| place.to_string()),
            or_dash(&waiter.client).to_owned(),
            or_dash(&waiter.reason).to_owned(),
            waiter.count.to_string(),
            span(waiter.waiting_ms),
            or_dash(&waiter.node).to_owned(),
        ])
    });
    let widths = [
        Constraint::Length(6),
        Constraint::Fill(3),
        Constraint::Fill(4),
        Constraint::Length(5),
        Constraint::Length(7),
        Constraint::Length(6),
    ];
    let title = format!(" waiting: {} ", pool.queue_found + pool.unlisted);
    let table = Table::new(queue, widths)
        .header(header(&["place", "who", "what for", "units", "waits", "node"]))
        .block(Block::bordered().title(title));
    show(frame, lower, table, (model.list == List::Queue).then_some(model.cursor));
}

fn bottom(model: &Model) -> Line<'_> {
    match &model.typing {
        Typing::Filter => Line::from(format!("show only: {}▏ (enter, esc)", model.filter)),
        Typing::Reason(id, reason) if model.said.is_empty() => {
            let short: String = id.to_string().chars().rev().take(6).collect();
            let short: String = short.chars().rev().collect();
            Line::from(format!("revoke …{short}? reason: {reason}▏ (enter does it, esc keeps it)"))
                .red()
        }
        Typing::Reason(..) => Line::from(model.said.as_str()).red(),
        Typing::Nothing if !model.said.is_empty() => Line::from(model.said.as_str()),
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
            Line::from(format!("↑↓  {keys}  / filter{filter}  s sort: {sort}  q quit")).dim()
        }
    }
}
