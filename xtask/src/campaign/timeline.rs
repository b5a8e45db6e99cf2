//! A page that shows one draw over time: who held which unit, what happened to hosts, and what the
//! onlooker was answered. One file, without scripts.

use super::draw::Draw;
use super::history::{Line, What, stories};
use super::judge::Summary;

/// Pixels.
const WIDE: f64 = 1400.0;
const LEFT: f64 = 110.0;
const ROW: f64 = 16.0;

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(crate) const STYLE: &str = ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--line:#ccc;\
    --soft:#f4f4f4;--bad:#fbd3d0;--good:#dff2df}\
    @media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#181a1b;--line:#444;--soft:#25282a;\
    --bad:#6b2420;--good:#1f4423}}\
    body{font:14px system-ui,sans-serif;margin:2em;color:var(--ink);background:var(--paper)}\
    table{border-collapse:collapse;display:block;overflow-x:auto}\
    td,th{border:1px solid var(--line);padding:2px 6px;text-align:right}\
    th{background:var(--soft)}th:first-child,td:first-child{text-align:left;position:sticky;left:0;\
    background:var(--paper)}\
    pre{background:var(--soft);padding:.6em;overflow:auto}\
    .bad,.bad td:first-child{background:var(--bad)}.good{background:var(--good)}\
    svg{max-width:100%;height:auto}text{font:11px system-ui,sans-serif;fill:var(--ink)}\
    svg line{stroke:var(--ink)}";

/// The page.
pub(crate) fn page(
    draw: &Draw,
    lines: &[Line],
    events: &[(u64, String)],
    summary: &Summary,
    again: &str,
) -> String {
    let first = lines.iter().map(|line| line.at).min().unwrap_or(0);
    let last = lines.iter().map(|line| line.at).max().unwrap_or(1).max(first + 1);
    let x = |at: u64| {
        LEFT + (at.clamp(first, last) - first) as f64 / (last - first) as f64 * (WIDE - LEFT - 10.0)
    };
    let stories = stories(lines);
    let mut pools: Vec<&String> = stories.keys().map(|(pool, _)| pool).collect();
    pools.dedup();
    // Of many pools, those with most to see.
    pools.sort_by_key(|pool| {
        std::cmp::Reverse(stories.keys().filter(|(other, _)| other == *pool).count())
    });
    pools.truncate(3);
    let mut drawing = String::new();
    let mut y = 20.0;
    let label = |drawing: &mut String, y: f64, text: &str| {
        drawing.push_str(&format!("<text x=\"4\" y=\"{}\">{}</text>", y + 12.0, escaped(text)));
    };
    for pool in pools {
        let top = y;
        for unit in 0..draw.units {
            label(&mut drawing, top + f64::from(unit) * ROW, &format!("{pool} unit {unit}"));
        }
        for ((other, claim), story) in &stories {
            let (Some((from, until)), Some((_, shares))) = (story.held(), &story.granted) else {
                continue;
            };
            if other != pool {
                continue;
            }
            for (unit, fence) in shares {
                let (a, b) = (x(from), x(until));
                let hue =
                    story.by.bytes().fold(7_u32, |sum, byte| sum * 31 % 360 + u32::from(byte));
                drawing.push_str(&format!(
                    "<rect x=\"{a:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"{}\" \
                     fill=\"hsl({} 60% 60%)\" fill-opacity=\".75\"><title>{} by {}, fence {fence}, \
                     {:.3} to {:.3} s</title></rect>",
                    top + f64::from(*unit) * ROW,
                    (b - a).max(0.7),
                    ROW - 2.0,
                    hue % 360,
                    escaped(claim),
                    escaped(&story.by),
                    from as f64 / 1e9,
                    until as f64 / 1e9,
                ));
            }
        }
        y += f64::from(draw.units) * ROW + 10.0;
    }
    for node in 0..draw.hosts as u64 {
        label(&mut drawing, y, &format!("n{node} answers"));
        for line in lines {
            let What::Probe(probe) = &line.what else { continue };
            if probe.node != node {
                continue;
            }
            let colour = match (probe.granted, probe.before) {
                (true, _) => "#3a3",
                (false, 200) => "#d33",
                (false, 0) => "#999",
                (false, _) => "#e90",
            };
            let (a, b) = (x(probe.asked), x(line.at));
            drawing.push_str(&format!(
                "<rect x=\"{a:.1}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"10\" fill=\"{colour}\">\
                 <title>ready {} / {}, claim {}, {:.2} s</title></rect>",
                (b - a).max(1.0),
                probe.before,
                probe.after,
                probe.status,
                probe.took as f64 / 1e9,
            ));
        }
        y += ROW;
    }
    let bottom = y + 6.0;
    for (number, (at, what)) in events.iter().enumerate() {
        let (x, y) = (x(*at), bottom + 12.0 + (number % 12) as f64 * 12.0);
        // What happens late is written to the left.
        let anchor = if x > WIDE - 160.0 { "end" } else { "start" };
        drawing.push_str(&format!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"10\" y2=\"{y:.0}\" stroke-opacity=\".35\"/>\
             <text x=\"{x:.1}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(what)
        ));
    }
    let high = bottom + 170.0;
    let breaches: String =
        summary.breaches.iter().map(|breach| format!("<li>{}</li>", escaped(breach))).collect();
    format!(
        "<!doctype html><meta charset=\"utf-8\"><title>draw {seed}</title><style>{STYLE}</style>\
         <h1>{shown}</h1><ul>{breaches}</ul><pre>{again}</pre><p>Above, who held which unit (point \
         at a hold for its claim, client and fence). Below, what the onlooker was answered: green \
         granted, orange not granted and said so, red not granted though the node said it can, \
         grey no answer.</p><svg \
         viewBox=\"0 0 {WIDE} {high:.0}\" width=\"{WIDE}\">{drawing}</svg>",
        seed = draw.seed,
        shown = escaped(&draw.shown()),
        again = escaped(again),
    )
}
