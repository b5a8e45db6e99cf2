//! Pictures of families, written as SVG by hand: a few circles, lines and words.

use std::fmt::Write as _;

use quorate_core::{NodeId, NodeSet};
use quorate_quorum::catalog::{cohort_widths, cube_base, wall_widths};

/// Where nodes are, and which belong together.
pub(super) struct Layout {
    /// Position of each node.
    points: Vec<(f64, f64)>,
    /// Lines between positions.
    lines: Vec<((f64, f64), (f64, f64))>,
    /// Boxes around nodes: left, top, width, height.
    boxes: Vec<(f64, f64, f64, f64)>,
}

const STEP: f64 = 48.0;
const RADIUS: f64 = 15.0;
const MARGIN: f64 = 40.0;
const INK: &str = "#333333";
const PALE: &str = "#f2f2f2";
const CHOSEN: &str = "#0072b2";

/// The natural picture of a family of the catalogue; `None` if it has none.
pub(super) fn layout(name: &str, params: &[usize], nodes: usize, units: usize) -> Option<Layout> {
    match name {
        "grid" | "cube" | "box" | "cube-as-printed" => {
            let sides = if !params.is_empty() {
                params.to_vec()
            } else if name == "grid" {
                vec![nodes.isqrt(); 2]
            } else {
                vec![cube_base(nodes, units); units + 1]
            };
            grid(&sides, nodes)
        }
        "wall" | "cohorts" => {
            let widths = match (params, name) {
                ([], "wall") => wall_widths(nodes, units),
                ([], _) => cohort_widths(nodes, units)?,
                _ => params.to_vec(),
            };
            Some(rows(&widths, nodes))
        }
        "tree" => Some(tree(nodes, units)),
        "hierarchy" if params.len() == 2 => Some(groups(params[0], params[1])),
        "singleton" | "universe" | "majority" | "uniform" | "threshold" | "k-singleton"
        | "k-majority" | "weighted" => Some(ring(nodes)),
        _ => None,
    }
}

/// Two directions on paper; a third goes up and to the right, more are drawn side by side.
fn grid(sides: &[usize], nodes: usize) -> Option<Layout> {
    let (planes, rows, columns) = match sides {
        [rows, columns] => (1, *rows, *columns),
        [planes, rows, columns] => (*planes, *rows, *columns),
        _ => return None,
    };
    let slant = 0.42;
    let place = |node: usize| {
        let (plane, row, column) = (node / (rows * columns), node / columns % rows, node % columns);
        let (x, y) = (column as f64 * STEP, row as f64 * STEP);
        let shift = (columns as f64 + 0.6) * STEP * plane as f64;
        if planes == 1 { (x, y) } else { (x + shift, y - plane as f64 * STEP * slant) }
    };
    let points: Vec<(f64, f64)> = (0..nodes).map(place).collect();
    let mut lines = Vec::new();
    for node in 0..nodes {
        let right = node + 1;
        if right % columns != 0 && right < nodes {
            lines.push((points[node], points[right]));
        }
        let below = node + columns;
        if below < nodes && below / (rows * columns) == node / (rows * columns) {
            lines.push((points[node], points[below]));
        }
    }
    Some(Layout { points, lines, boxes: vec![] })
}

fn rows(widths: &[usize], nodes: usize) -> Layout {
    let widest = widths.iter().copied().max().unwrap_or(1) as f64;
    let mut layout = Layout { points: vec![], lines: vec![], boxes: vec![] };
    for (row, width) in widths.iter().enumerate() {
        let (y, start) = (row as f64 * STEP * 1.2, (widest - *width as f64) / 2.0 * STEP);
        for column in 0..*width {
            layout.points.push((start + column as f64 * STEP, y));
        }
        let half = STEP * 0.45;
        let wide = (*width as f64 - 1.0) * STEP + 2.0 * half;
        layout.boxes.push((start - half, y - half, wide, 2.0 * half));
    }
    // Nodes that are in no row stand aside.
    while layout.points.len() < nodes {
        let aside = layout.points.len() - widths.iter().sum::<usize>();
        let y = widths.len() as f64 * STEP * 1.2;
        layout.points.push((aside as f64 * STEP, y));
    }
    layout
}

fn tree(nodes: usize, units: usize) -> Layout {
    let children = units + 1;
    let is_leaf = |node: usize| node * children + 1 >= nodes;
    let mut points = vec![(0.0, 0.0); nodes];
    let depth = |node: usize| {
        let (mut at, mut depth) = (node, 0);
        while at > 0 {
            at = (at - 1) / children;
            depth += 1;
        }
        depth
    };
    for (leaf, node) in (0..nodes).filter(|node| is_leaf(*node)).enumerate() {
        points[node].0 = leaf as f64 * STEP * 0.8;
    }
    let mut lines = Vec::new();
    for node in (0..nodes).rev() {
        points[node].1 = f64::from(depth(node)) * STEP * 1.6;
        if !is_leaf(node) {
            let below: Vec<usize> = (1..=children).map(|c| node * children + c).collect();
            let middle = below.iter().map(|child| points[*child].0).sum::<f64>();
            points[node].0 = middle / children as f64;
            lines.extend(below.into_iter().map(|child| (node, child)));
        }
    }
    let lines = lines.into_iter().map(|(a, b)| (points[a], points[b])).collect();
    Layout { points, lines, boxes: vec![] }
}

fn groups(outer: usize, inner: usize) -> Layout {
    let mut layout = Layout { points: vec![], lines: vec![], boxes: vec![] };
    for group in 0..outer {
        let y = group as f64 * STEP * 1.2;
        layout.points.extend((0..inner).map(|member| (member as f64 * STEP, y)));
        let half = STEP * 0.45;
        let wide = (inner as f64 - 1.0) * STEP + 2.0 * half;
        layout.boxes.push((-half, y - half, wide, 2.0 * half));
    }
    layout
}

fn ring(nodes: usize) -> Layout {
    let radius = (nodes as f64 * STEP * 0.8 / std::f64::consts::TAU).max(STEP * 0.8);
    let at = |node: usize| {
        let angle =
            std::f64::consts::TAU * node as f64 / nodes as f64 - std::f64::consts::FRAC_PI_2;
        (radius * angle.cos(), radius * angle.sin())
    };
    let points = if nodes == 1 { vec![(0.0, 0.0)] } else { (0..nodes).map(at).collect() };
    Layout { points, lines: vec![], boxes: vec![] }
}

/// Nodes at their places, one quorum coloured.
pub(super) fn nodes(title: &str, layout: &Layout, quorum: &NodeSet) -> String {
    let xs = || layout.points.iter().map(|point| point.0);
    let ys = || layout.points.iter().map(|point| point.1);
    let (left, right) = (xs().fold(f64::MAX, f64::min), xs().fold(f64::MIN, f64::max));
    let (top, bottom) = (ys().fold(f64::MAX, f64::min), ys().fold(f64::MIN, f64::max));
    let at = |(x, y): (f64, f64)| (x - left + MARGIN, y - top + MARGIN + 20.0);
    let mut body = String::new();
    let frame = format!(r#"fill="none" stroke="{INK}" stroke-opacity="0.35""#);
    for (x, y, wide, high) in &layout.boxes {
        let (x, y) = at((*x, *y));
        let size = format!(r#"width="{wide:.1}" height="{high:.1}" rx="10""#);
        let _ = writeln!(body, r#"<rect x="{x:.1}" y="{y:.1}" {size} {frame}/>"#);
    }
    for (from, to) in &layout.lines {
        let ((x1, y1), (x2, y2)) = (at(*from), at(*to));
        let ends = format!(r#"x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}""#);
        let _ = writeln!(body, "<line {ends} {frame}/>");
    }
    for (node, point) in layout.points.iter().enumerate() {
        let ((x, y), member) = (at(*point), quorum.contains(NodeId::from(node)));
        let (fill, ink) = if member { (CHOSEN, "white") } else { (PALE, INK) };
        circle(&mut body, (x, y), RADIUS, fill);
        label(&mut body, (x, y + 4.0), 12, ink, node);
    }
    svg(title, right - left + 2.0 * MARGIN, bottom - top + 2.0 * MARGIN + 20.0, &body)
}

fn circle(body: &mut String, (x, y): (f64, f64), radius: f64, fill: &str) {
    let _ = writeln!(
        body,
        r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="{fill}" stroke="{INK}"/>"#
    );
}

fn label(body: &mut String, (x, y): (f64, f64), size: u32, ink: &str, number: usize) {
    let style = format!(r#"text-anchor="middle" font-size="{size}" fill="{ink}""#);
    let _ = writeln!(body, r#"<text x="{x:.1}" y="{y:.1}" {style}>{number}</text>"#);
}

/// A row per quorum, a column per node, a dot where they meet; the chosen quorum is coloured.
pub(super) fn incidence(
    title: &str,
    nodes: usize,
    quorums: &[NodeSet],
    chosen: &NodeSet,
) -> String {
    let cell = (900.0 / nodes.max(quorums.len()) as f64).clamp(5.0, 22.0);
    let (left, top) = (MARGIN + 10.0, MARGIN + 30.0);
    let mut body = String::new();
    let labels = cell >= 12.0;
    for node in (0..nodes).filter(|_| labels) {
        let x = left + (node as f64 + 0.5) * cell;
        label(&mut body, (x, top - 6.0), 9, INK, node);
    }
    for (row, quorum) in quorums.iter().enumerate() {
        let y = top + row as f64 * cell;
        let fill = if quorum == chosen { CHOSEN } else { INK };
        let stripe = if row % 2 == 0 { PALE } else { "white" };
        let size = format!(r#"width="{:.1}" height="{cell:.1}""#, nodes as f64 * cell);
        let _ = writeln!(body, r#"<rect x="{left:.1}" y="{y:.1}" {size} fill="{stripe}"/>"#);
        for node in quorum.iter() {
            let x = left + (node.index() as f64 + 0.5) * cell;
            circle(&mut body, (x, y + cell / 2.0), cell * 0.36, fill);
        }
    }
    let (wide, high) = (nodes as f64 * cell, quorums.len() as f64 * cell);
    svg(title, wide + left + MARGIN, high + top + MARGIN, &body)
}

fn svg(title: &str, width: f64, height: f64, body: &str) -> String {
    let clean: String = title
        .chars()
        .map(|c| match c {
            '<' => '‹'.to_string(),
            '>' => '›'.to_string(),
            '&' => "and".to_string(),
            c => c.to_string(),
        })
        .collect();
    // Room for the words above the picture; long ones are cut.
    let (width, room) = (width.max(360.0), (width.max(360.0) / 6.6) as usize);
    let shown: String = if clean.chars().count() > room {
        clean.chars().take(room.saturating_sub(1)).chain(['…']).collect()
    } else {
        clean.clone()
    };
    let size = format!(r#"width="{width:.0}" height="{height:.0}""#);
    let view = format!(r#"viewBox="0 0 {width:.0} {height:.0}" font-family="sans-serif""#);
    let words = format!(r#"<text x="12" y="24" font-size="13" fill="{INK}">{shown}</text>"#);
    let paper = r#"<rect width="100%" height="100%" fill="white"/>"#;
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" {size} {view}>
<title>{clean}</title>
{paper}
{words}
{body}</svg>
"#
    )
}
