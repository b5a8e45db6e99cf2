//! `quorate status`: how a claim stands and why it waits, or how the node does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use quorate_api::{
    CharterMember, CharterView, ClaimId, ClaimState, ClaimStatus, Estimate, FactView, Hindrance,
    Line, NodeView, Obstacle, PoolView, QuorumsView, Remedy, SeatView, UnitView, Why, format_span,
    told_start,
};
use quorate_protocols::quorums::family::Summary;

use super::cluster::{self, Cluster, Json, span};
use crate::Outcome;

/// Say how a claim stands and why it waits, how a pool does, or how the node does.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate status
  quorate status licences
  quorate status licences 4f1d0c...

Exit codes: 0 answered, 2 if nobody could say.")]
pub(crate) struct Args {
    /// The pool.
    pool: Option<String>,
    /// The claim in it.
    #[arg(value_parser = cluster::claim_id)]
    id: Option<ClaimId>,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let views = args.cluster.views()?;
        match (args.pool, args.id) {
            (Some(pool), Some(id)) => {
                let status = views.claim(&pool, id).await?;
                cluster::print(args.json.json, &status, || claim_text(&status))?;
            }
            (Some(pool), None) => {
                let pool = views.pool(&pool).await?;
                cluster::print(args.json.json, &pool, || pool_text(&pool))?;
            }
            (None, _) => {
                let node = views.node().await?;
                cluster::print(args.json.json, &node, || node_text(&node))?;
            }
        }
        Ok(Outcome::Good)
    })
}

/// A claim in one line.
pub(crate) fn one_line(status: &ClaimStatus) -> String {
    let mut line = format!("{} {}", status.id, status.state.as_str());
    // Writing to a string cannot fail.
    if status.counted && !status.units.is_empty() {
        let count = status.units.len();
        let _ = write!(line, ": {count} unit{}", if count == 1 { "" } else { "s" });
    } else if !status.units.is_empty() {
        let shares = status.units.iter().map(|unit| match &unit.name {
            Some(name) => format!("{name} fence {}", unit.fence),
            None => format!("unit {} fence {}", unit.unit, unit.fence),
        });
        let _ = write!(line, ": {}", shares.collect::<Vec<_>>().join(", "));
    }
    for it in &status.moves {
        let name = |u: &UnitView| u.name.clone().unwrap_or_else(|| u.unit.to_string());
        let _ = write!(line, " (asked to leave {} for {})", name(&it.from), name(&it.to));
    }
    if status.expires_in_ms.is_some() {
        let _ = write!(line, " for {}", span(status.expires_in_ms));
    } else if status.standing && status.state == ClaimState::Granted {
        line.push_str(" until released or revoked");
    }
    if status.state == ClaimState::Waiting {
        let plural = if status.asked == 1 { "" } else { "s" };
        let (asked, waited) = (status.asked, span(Some(status.waited_ms)));
        let _ = write!(line, " for {asked} unit{plural}");
        if !status.lines.is_empty() {
            let _ = write!(line, " ({})", lines(&status.lines));
        }
        let _ = write!(line, ", since {waited}");
    }
    if let Some(ended) = &status.ended {
        let _ = write!(line, " ({ended})");
    }
    line
}

pub(crate) fn claim_text(status: &ClaimStatus) -> String {
    let mut text = one_line(status) + "\n";
    if let Some(why) = &status.why {
        text.push_str(&why_text(why));
    }
    text
}

pub(crate) fn pool_text(pool: &PoolView) -> String {
    let known = |number: Option<u32>| number.map_or_else(|| "?".into(), |n| n.to_string());
    let (name, units, protocol) = (&pool.name, pool.units, &pool.protocol);
    let bound = pool.bound.as_ref().map(|bound| format!(": {bound}")).unwrap_or_default();
    let mut text = format!("pool {name}: {units} units, {protocol}{bound}\n");
    let _ = writeln!(text, "held: {}, waiting: {}", known(pool.held), known(pool.waiting));
    let lease = format_span(Duration::from_millis(pool.lease_ms));
    let durable = if pool.durable { "durable" } else { "not durable" };
    let _ = writeln!(text, "lease {lease}, {durable}");
    if !pool.names_units {
        let _ = writeln!(text, "units are only counted: a grant has no unit names and no fences");
    }
    if let Some(terms) = &pool.terms {
        let _ = writeln!(text, "{terms}");
    }
    if let Some(seat) = &pool.seat {
        text.push_str(&seat_text(seat));
    }
    if let Some(quorums) = &pool.quorums {
        let naming = if quorums.naming { " with naming" } else { "" };
        let (mode, family) = (&quorums.mode, &quorums.family);
        let _ = writeln!(text, "{mode}{naming}, {family}: {}", summary(quorums));
    }
    let _ = match (pool.survives, &pool.needs[..]) {
        (0, []) => writeln!(text, "stands still while a node that it needs is away"),
        (0, [one]) => writeln!(text, "stands still while {one} is away, goes on without others"),
        (0, all) => writeln!(text, "stands still while any of {} is away", all.join(", ")),
        (1, _) => writeln!(text, "goes on without any one node"),
        (many, _) => writeln!(text, "goes on without any {many} nodes"),
    };
    text.push_str(&grants_text(pool));
    for trouble in &pool.troubles {
        let _ = writeln!(text, "{trouble}");
    }
    if pool.grace_ms.is_some() {
        let wait = span(pool.grace_ms);
        let _ = writeln!(text, "a node restarted and waits {wait} for old promises to end");
    }
    if !pool.drained.is_empty() {
        let _ = writeln!(text, "drained: {}", pool.drained.join(", "));
    }
    if !pool.relabelled.is_empty() {
        let names = pool.relabelled.join(", ");
        let _ = writeln!(text, "labels not as configured: {names}");
    }
    if let Some(outcome) = &pool.outcome {
        let mut tell = |what: &str, claims: &[ClaimId]| {
            if !claims.is_empty() {
                let ids: Vec<String> = claims.iter().map(ToString::to_string).collect();
                let _ = writeln!(text, "{what}: {}", ids.join(", "));
            }
        };
        tell("granted by this", &outcome.granted);
        tell("refused, since they can never be granted now", &outcome.refused);
    }
    for short in &pool.shortages {
        let _ = writeln!(text, "short: {}", short.summary);
    }
    text.push_str(&facts(&pool.facts));
    silent(&mut text, &pool.silent);
    text
}

/// Who decides, who would without it, and what that would cost.
fn seat_text(seat: &SeatView) -> String {
    let SeatView { node, term, shadow, whole, crash_ms } = seat;
    let costs = span(Some(*crash_ms));
    let shadow = match (shadow, whole) {
        (Some(shadow), true) => format!(
            "{shadow} is its shadow and knows all grants: without {node} it grants after {costs}"
        ),
        (Some(shadow), false) => format!(
            "{shadow} is its shadow and does not know all grants yet: without {node} nobody grants \
             for {costs}"
        ),
        (None, _) => format!("it has no shadow: without {node} nobody grants for {costs}"),
    };
    format!("{node} decides, in term {term}; {shadow}\n")
}

/// Which claims can be granted, if not all can.
pub(crate) fn grants_text(pool: &PoolView) -> String {
    let Some(grants) = &pool.grants else { return String::new() };
    let Some(Hindrance { summary, .. }) = &grants.hindrance else { return String::new() };
    match (grants.smallest, grants.largest) {
        (_, 0) => format!("UNAVAILABLE: {summary}\n"),
        (1, most) => format!("only claims of up to {most} units can be granted: {summary}\n"),
        (least, most) => {
            format!("only claims of {least} to {most} units can be granted: {summary}\n")
        }
    }
}

fn summary(quorums: &QuorumsView) -> Summary {
    Summary {
        voters: quorums.voters as usize,
        quorum: (quorums.smallest as usize, quorums.largest as usize),
        survives: quorums.survives as usize,
        availability: quorums.availability,
        load: quorums.load,
        messages: quorums.messages,
    }
}

/// What the nodes tell about their protocol, a line per node.
pub(crate) fn facts(facts: &[FactView]) -> String {
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for FactView { node, name, about, value, .. } in facts {
        let about = about.as_ref().map(|peer| format!("({peer})")).unwrap_or_default();
        lines.entry(node).or_default().push(format!("{name}{about} {value}"));
    }
    lines.iter().map(|(node, facts)| format!("{node}: {}\n", facts.join(", "))).collect()
}

fn why_text(why: &Why) -> String {
    let mut text = format!("why: {}\n", why.summary);
    if let Some(position) = why.position {
        let _ = writeln!(text, "place in the queue: {position}");
    }
    let _ = match &why.shortage {
        // Where units differ, those that will do are what counts.
        Some(short) => writeln!(text, "free: {}, {} of those it needs", why.free, short.free),
        None => writeln!(text, "free: {}, missing: {}", why.free, why.missing),
    };
    for (title, list) in [("holding", &why.holders), ("ahead", &why.ahead)] {
        for Obstacle { id, units, client, reason, since_ms, expires_in_ms } in list {
            let since = since_ms.map(|_| format!(" since {}", span(*since_ms)));
            let (mut since, client) = (since.unwrap_or_default(), or_dash(client));
            if expires_in_ms.is_some() {
                let _ = write!(since, ", lease ends in {}", span(*expires_in_ms));
            }
            let plural = if *units == 1 { "" } else { "s" };
            let what_for = or_dash(reason);
            let _ = writeln!(text, "{title}: {units} unit{plural}{since}, {client}: {what_for}");
            let _ = writeln!(text, "  claim {id}");
        }
    }
    if let Some(estimate) = &why.estimate {
        let Estimate { soon_ms, likely_ms, late_ms, holds } = estimate;
        let (soon, late) = (span(Some(*soon_ms)), span(Some(*late_ms)));
        let _ = writeln!(
            text,
            "estimate: starts in about {} ({soon} to {late} in 8 of 10 cases, \
             from {holds} past holds)",
            span(Some(*likely_ms))
        );
    }
    if let Some(remedy) = &why.remedy {
        text.push_str(&remedy_text(remedy));
    }
    silent(&mut text, &why.silent);
    text
}

/// What would have to end first.
fn remedy_text(remedy: &Remedy) -> String {
    let mut text = String::new();
    for (verb, claims) in [("released", &remedy.release), ("cancelled", &remedy.cancel)] {
        if !claims.is_empty() {
            let claims: Vec<String> = claims.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "would start now if {verb}: {}", claims.join(" "));
        }
    }
    text
}

/// What a claim asks for, line by line.
pub(crate) fn lines(lines: &[Line]) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Says whose answer is missing.
pub(crate) fn silent(text: &mut String, nodes: &[String]) {
    if !nodes.is_empty() {
        let _ = writeln!(text, "may be incomplete: no answer from {}", nodes.join(", "));
    }
}

/// When a hold ends by itself.
pub(crate) fn ends(holder: &quorate_api::HolderView) -> String {
    match (holder.standing, holder.overdue) {
        (_, true) => "OVERDUE".into(),
        (true, false) => "no lease".into(),
        (false, false) => span(holder.expires_in_ms),
    }
}

pub(crate) fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn node_text(node: &NodeView) -> String {
    let ready = if node.ready { "ready" } else { "not ready" };
    let mut text = format!(
        "node {} of cluster {} (epoch {}, {}, version {}): {ready}\n",
        node.name,
        node.cluster,
        node.epoch,
        told_start(node.boot),
        node.version
    );
    let _ = writeln!(text, "{} claims, {} clients", node.claims, node.clients);
    for check in &node.checks {
        let mark = if check.ok { '+' } else { '-' };
        let _ = writeln!(text, "[{mark}] {}: {}", check.name, check.detail);
    }
    for peer in &node.peers {
        let state = match (&peer.problem, peer.connected) {
            (_, true) => "connected",
            (Some(problem), false) => problem,
            (None, false) => "not connected",
        };
        let state = if peer.suspected { format!("{state}, suspected") } else { state.to_owned() };
        let _ = writeln!(text, "peer {}: {state}", peer.name);
    }
    if let Some(charter) = &node.charter {
        text.push_str(&charter_text(charter));
    }
    text
}

fn charter_text(charter: &CharterView) -> String {
    let leader = charter.leader.as_deref().unwrap_or("nobody");
    let mut text = format!("charter version {}, led by {leader}\n", charter.version);
    for member in &charter.members {
        let CharterMember { name, votes, draining, groups, shadowed, heard_ms } = member;
        let votes = if *votes { "votes" } else { "follows" };
        let draining = if *draining { ", drains" } else { "" };
        let heard = heard_ms.map(|ms| format!(", heard {} ago", span(Some(ms))));
        let heard = heard.unwrap_or_default();
        let _ = writeln!(
            text,
            "charter member {name}: {votes}, decides for {groups} of 256 groups of pools, \
             {shadowed} with a whole shadow{draining}{heard}"
        );
    }
    if let Some(problem) = &charter.problem {
        let _ = writeln!(text, "charter: {problem}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_matter_with_a_pool_is_said_before_the_facts() {
        let pool = serde_json::json!({
            "name": "gpu", "units": 3, "protocol": "broadcast", "lease_ms": 10_000,
            "terms": "reclaim never, crashes_max 1, node_units_max 1",
            "bound": "each grant belongs to its node",
            "drift_ppm": 200, "names_units": false, "survives": 1, "durable": false,
            "troubles": ["ALARM at n0: more nodes are away"],
            "facts": [{ "node": "n0", "name": "units_lost", "value": 1, "grows": false }],
        });
        let text = pool_text(&serde_json::from_value(pool).unwrap());
        let first = "pool gpu: 3 units, broadcast: each grant belongs to its node\n";
        assert!(text.starts_with(first), "what costs most is said first: {text}");
        assert!(!text.contains("UNAVAILABLE"), "{text}");
        assert!(text.contains("\nreclaim never, crashes_max 1, node_units_max 1\n"), "{text}");
        assert!(text.ends_with("\nALARM at n0: more nodes are away\nn0: units_lost 1\n"), "{text}");
    }

    /// The same words for every protocol, from the one answer that nodes give.
    #[test]
    fn a_pool_that_cannot_grant_says_so_and_why() {
        let text = |grants: serde_json::Value| {
            let pool = serde_json::json!({
                "name": "gpu", "units": 5, "protocol": "arbiter", "lease_ms": 10_000,
                "drift_ppm": 200, "names_units": true, "survives": 1, "durable": false,
                "grants": grants,
            });
            grants_text(&serde_json::from_value(pool).unwrap())
        };
        let hindered = |smallest: u32, largest: u32| {
            let hindrance = serde_json::json!({
                "kind": "no_quorum", "summary": "no quorum answers: n3, n4 are away",
                "nodes": ["n3", "n4"], "voters": 5, "needed": 4,
            });
            text(serde_json::json!({
                "smallest": smallest, "largest": largest, "hindrance": hindrance,
            }))
        };
        assert_eq!(text(serde_json::json!({ "smallest": 1, "largest": 5 })), "");
        assert_eq!(hindered(0, 0), "UNAVAILABLE: no quorum answers: n3, n4 are away\n");
        let some =
            "only claims of 3 to 5 units can be granted: no quorum answers: n3, n4 are away\n";
        assert_eq!(hindered(3, 5), some);
    }
}
