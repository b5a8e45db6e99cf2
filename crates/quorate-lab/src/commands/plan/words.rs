//! A plan for people and for programs.

use serde_json::{Value, json};

use super::Prefer;
use super::fleet::Fleet;
use super::trial::{Fit, Measured, Tried};
use crate::commands::cluster::table;

/// For people.
pub(super) fn text(fleet: &Fleet, prefer: Prefer, tried: &Tried) -> String {
    let mut text = format!("{}\n", fleet.question());
    match tried.fit.split_first() {
        Some((best, others)) => {
            text += &chosen(fleet, prefer, best, others.len());
            if !others.is_empty() {
                text += "\nAll that will do\n";
                let head =
                    ["", "calm", "wanted", "99 of 100", "messages", "busiest", "can grant", ""];
                let line = |one: &Fit| row(one, why_not(prefer, best, one));
                let rows: Vec<Vec<String>> = std::iter::once(row(best, "chosen".to_owned()))
                    .chain(others.iter().map(line))
                    .collect();
                text += &table(&head, &rows);
                text += "\n";
            }
        }
        None => {
            text += "nothing can do it\n";
            text += &instead(fleet);
        }
    }
    if !tried.rejected.is_empty() {
        text += "\nRejected\n";
        for (name, why) in &tried.rejected {
            text += &format!("  {name}: {why}\n");
        }
    }
    if let Some(best) = tried.fit.first() {
        let me = fleet.name(0);
        text += &format!(
            "\nThe file of {me}; those of others differ in node, cert and key. Addresses and paths \
             are yours to set.\n\n{}",
            best.file
        );
    }
    text
}

fn chosen(fleet: &Fleet, prefer: Prefer, best: &Fit, others: usize) -> String {
    let what = match prefer {
        Prefer::Latency => "the quickest",
        Prefer::Messages => "the fewest messages at the busiest node",
        Prefer::Availability => "the most available",
    };
    let name = &best.way.name;
    let mut text = match others {
        0 => format!("use {name}: nothing else will do\n"),
        1 => format!("use {name}: {what} of 2 that will do\n"),
        _ => format!("use {name}: {what} of {} that will do\n", others + 1),
    };
    if !best.way.note.is_empty() {
        text += &format!("({})\n", best.way.note);
    }
    let Fit { calm, busy, .. } = best;
    text += &format!(
        "\n  claim to grant   {} where units are hardly wanted; {} where {:.0} % of them are \
         wanted, 99 of 100 within {}\n",
        millis(calm.wait),
        millis(busy.wait),
        100.0 * fleet.wanted,
        millis(busy.wait_p99)
    );
    text += &format!(
        "  load             {:.1} messages for a grant, {:.1} of them sent or received by the \
         busiest node, {:.1} a second\n",
        busy.messages,
        busy.busiest,
        busy.busiest * busy.grants
    );
    let (node_up, zone_up) = fleet.up;
    let zones = match fleet.zones {
        1 => String::new(),
        _ => format!(", zones {} %", percent(zone_up)),
    };
    text += &format!(
        "  availability     {} of the time it can grant claims of every size, where nodes are up \
         {} %{zones}\n",
        available(best.availability),
        percent(node_up)
    );
    if let Some(quorums) = &best.quorums {
        text += &format!("  quorums          {quorums}\n");
    }
    text += &format!("  see it           {}\n", best.command);
    text
}

/// What one more zone or node would do.
fn instead(fleet: &Fleet) -> String {
    let half = fleet.zone_max() * 2 >= fleet.nodes;
    if fleet.losses.zone && half {
        return format!(
            "zone a has {} of {} nodes: without it no majority is left, and two halves must not \
             decide apart. A third zone helps, also one with a single node.\n",
            fleet.zone_max(),
            fleet.nodes
        );
    }
    if fleet.losses.nodes * 2 >= fleet.nodes {
        let needed = fleet.losses.nodes * 2 + 1;
        return format!("what survives the loss of {} has {needed} nodes\n", fleet.losses.nodes);
    }
    String::new()
}

fn row(one: &Fit, why: String) -> Vec<String> {
    let Measured { wait, wait_p99, messages, busiest, .. } = one.busy;
    vec![
        one.way.name.clone(),
        millis(one.calm.wait),
        millis(wait),
        millis(wait_p99),
        format!("{messages:.1}"),
        format!("{busiest:.1}"),
        available(one.availability),
        why,
    ]
}

/// Why another was chosen.
fn why_not(prefer: Prefer, best: &Fit, one: &Fit) -> String {
    let slower = one.busy.wait - best.busy.wait;
    let (busiest, fewest) = (one.busy.busiest, best.busy.busiest);
    match prefer {
        Prefer::Latency if slower > 0.05 * best.busy.wait => {
            format!("{} slower", millis(slower))
        }
        Prefer::Latency if one.missing() > 1.5 * best.missing() => {
            format!("as quick, down {:.1} times as often", one.missing() / best.missing())
        }
        Prefer::Latency => format!("as quick, {busiest:.1} messages at the busiest node"),
        Prefer::Messages if busiest > 1.05 * fewest => {
            format!("{:.1} times the messages at the busiest node", busiest / fewest)
        }
        Prefer::Availability if one.availability.0 < best.availability.0 => {
            format!("down {:.1} times as often", one.missing() / best.missing())
        }
        Prefer::Messages | Prefer::Availability => {
            format!("alike, {} to a grant", millis(one.busy.wait))
        }
    }
}

fn millis(seconds: f64) -> String {
    let millis = seconds * 1e3;
    match millis {
        _ if millis < 10.0 => format!("{millis:.1} ms"),
        _ if millis < 10_000.0 => format!("{millis:.0} ms"),
        _ => format!("{seconds:.0} s"),
    }
}

/// A share in percent, without digits that say nothing.
fn percent(share: f64) -> String {
    let text = format!("{:.6}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// As many digits as tell it from always.
fn available((share, exact): (f64, bool)) -> String {
    let missing = (1.0 - share).max(1e-10);
    let digits = (-missing.log10()).ceil().clamp(2.0, 9.0) as usize;
    let about = if exact { "" } else { "about " };
    format!("{about}{:.*} %", digits, 100.0 * share)
}

/// For programs.
pub(super) fn json(fleet: &Fleet, tried: &Tried) -> String {
    let measured = |of: &Measured| {
        json!({
            "obtaining_time": of.wait, "waiting_p99": of.wait_p99, "messages_per_cs": of.messages,
            "busiest_node": of.busiest, "cs_per_second": of.grants,
        })
    };
    let fit = |one: &Fit| {
        json!({
            "name": one.way.name, "note": one.way.note, "command": one.command,
            "file": one.file, "quorums": one.quorums, "availability": one.availability.0,
            "availability_is_exact": one.availability.1,
            "calm": measured(&one.calm), "wanted": measured(&one.busy),
        })
    };
    let rejected = tried.rejected.iter().map(|(name, why)| json!({ "name": name, "why": why }));
    let all: Value = json!({
        "question": fleet.question(),
        "possible": !tried.fit.is_empty(),
        "choice": tried.fit.first().map(fit),
        "runners_up": tried.fit.iter().skip(1).map(fit).collect::<Vec<_>>(),
        "rejected": rejected.collect::<Vec<_>>(),
    });
    format!("{all:#}")
}
