//! Findings in words, for people.

use std::fmt::Write as _;

use quorate_quorum::{Domination, Findings, Method, Natural, Ratio, Reach, bounds};

use super::json;

/// A report to read.
pub(super) fn report(name: &str, found: &Findings, up: &str) -> String {
    let mut text = format!(
        "{name} on {}, {}\n",
        many(found.nodes, "node", "nodes"),
        many(found.units, "unit", "units")
    );
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "  {label:<13} {value}");
    };
    line("quorums", quorums(found));
    line(&format!("any {} meet", found.units + 1), intersecting(found));
    line("minimal", decided(found.minimal));
    line(&format!("{}-arbiter", found.units), decided(found.arbiter()));
    line("dominated", dominated(found));
    line("symmetric", symmetric(found));
    line("resiliency", found.resiliency.as_ref().map_or("too large".into(), fraction));
    line("survives", survives(found));
    line("availability", availability(found, up));
    line("load", load(found));
    if let Some((least, most)) = found.size_range() {
        let (least, most) = (bounds::messages(least), bounds::messages(most));
        let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
        line("messages", format!("{range} per grant when nobody else wants anything"));
    }
    text
}

fn quorums(found: &Findings) -> String {
    let (Some(count), Some((least, most))) = (&found.quorums, found.size_range()) else {
        return "too many to count".into();
    };
    let size = if least == most { format!("of {least}") } else { format!("of {least} to {most}") };
    format!("{}, {size} nodes", short(count))
}

/// A large number as a power of ten.
pub(super) fn short(count: &Natural) -> String {
    let digits = count.to_string();
    if digits.len() <= 15 {
        return digits;
    }
    format!("{}.{}e{}", &digits[..1], &digits[1..4], digits.len() - 1)
}

fn intersecting(found: &Findings) -> String {
    let largest = match found.reach {
        Some(Reach::Every) => "some node is in all quorums, so any number of them do".into(),
        Some(Reach::UpTo(k)) => format!("largest k: {k}"),
        None => "the largest k is too large to decide".into(),
    };
    format!("{} ({largest})", decided(found.intersecting))
}

fn dominated(found: &Findings) -> String {
    match &found.domination {
        None => "too large to decide".into(),
        Some(None) => format!("does not apply: it is no {}-arbiter", found.units),
        Some(Some(Domination::Nondominated)) => "no".into(),
        Some(Some(Domination::Dominated(witness))) => {
            let nodes = witness.len();
            let shown = if nodes <= 24 {
                witness.to_string()
            } else {
                let first = many(nodes, "node", "nodes");
                format!("{first} from {}", witness.smallest().map_or(0, |node| node.0))
            };
            format!("yes: {shown} contains no quorum, yet meets any {} of them", found.units)
        }
    }
}

/// A fraction, or its value if it would fill the screen.
fn fraction(ratio: &Ratio) -> String {
    let text = ratio.to_string();
    if text.len() <= 40 { text } else { format!("about {:.6}", ratio.to_f64()) }
}

fn symmetric(found: &Findings) -> String {
    match &found.symmetric {
        None => "too large to decide".into(),
        Some(None) => "no".into(),
        Some(Some(even)) => {
            format!("yes: every node is in {}, every quorum has {}", short(&even.effort), even.size)
        }
    }
}

fn survives(found: &Findings) -> String {
    let most = bounds::survives_max(found.nodes, found.units);
    let limit = if found.intersecting == Some(true) {
        format!(" (no {}-arbiter on {} nodes survives more than {most})", found.units, found.nodes)
    } else {
        String::new()
    };
    match found.survives.known() {
        Some(0) => format!("not even one crash{limit}"),
        Some(count) => format!("any {}{limit}", many(count, "crash", "crashes")),
        None => format!("any {} to {} crashes{limit}", found.survives.low, found.survives.high),
    }
}

fn availability(found: &Findings, up: &str) -> String {
    let known = &found.availability;
    let method = json::method(known.method);
    if known.method == Method::Sampling {
        let at = |value: f64| probability(value, 1.0 - value);
        let range = format!("{} to {}", at(known.low), at(known.high));
        return format!("{range} with {up} ({method}, 99 % confidence)");
    }
    format!("{} with {up} ({method})", probability(known.value, known.missing))
}

/// A probability with enough digits to see how far it is from one, and how far that is.
pub(super) fn probability(value: f64, missing: f64) -> String {
    if value == 0.0 || missing == 0.0 {
        format!("{value}")
    } else if missing > 0.0 && missing < 1e-4 {
        format!("1 - {missing:.3e}")
    } else if value > 0.0 && value < 1e-4 {
        format!("{value:.3e}")
    } else {
        format!("{value:.6}")
    }
}

fn load(found: &Findings) -> String {
    let bound = found.load_min().map_or(String::new(), |least| {
        format!(" (no {}-arbiter with such quorums has less than {least:.6})", found.units)
    });
    match found.exact_load() {
        Some(load) => format!("{load:.6}{bound}"),
        None => format!("{:.6} to {:.6}{bound}", found.load.low, found.load.high),
    }
}

fn decided(answer: Option<bool>) -> String {
    match answer {
        Some(true) => "yes".into(),
        Some(false) => "no".into(),
        None => "too large to decide".into(),
    }
}

/// A number with its noun.
pub(super) fn many(count: usize, one: &str, more: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {more}") }
}
