//! `quorate history`: what happened in a pool.

use std::collections::HashSet;
use std::io::Write as _;
use std::time::Duration;

use quorate_api::{AuditEvent, HistoryEvent};
use quorate_client::ViewError;

use super::cluster::{self, Cluster, span};
use super::status::{or_dash, silent};
use crate::Outcome;

/// Tell what happened in a pool lately, the oldest first.
///
/// Every node keeps a bounded record in memory: some hundred events of a pool, from its start on.
/// What a node that is down remembered is gone.
///
/// With `--audit`, for administrators of all pools: who did what an administrator does, who was
/// refused what, and which token came from where for the first time, at each node that `--server`
/// names.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate history licences
  quorate history licences --json > licences.jsonl
  quorate history licences --follow --json | jq .what
  quorate history --audit --server unix:/run/quorate/a.sock")]
pub(crate) struct Args {
    /// The pool.
    #[arg(required_unless_present = "audit", conflicts_with = "audit")]
    pool: Option<String>,
    /// Tell who did or wanted what instead.
    #[arg(long)]
    audit: bool,
    /// Go on as things happen, until interrupted.
    #[arg(long)]
    follow: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: Cluster,
}

/// How often nodes are asked while following.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let mut shown = HashSet::new();
        loop {
            let (events, unheard) = match &args.pool {
                Some(pool) => past(&args.cluster, pool).await?,
                None => audit(&args.cluster).await?,
            };
            let mut text = String::new();
            let mut now = HashSet::new();
            for (line, json) in events {
                if !shown.contains(&json) {
                    text.push_str(if args.json { &json } else { &line });
                    text.push('\n');
                }
                now.insert(json);
            }
            // What nodes have forgotten will not be told again either.
            shown = now;
            if !args.json && !args.follow {
                silent(&mut text, &unheard);
            }
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
            drop(out);
            if !args.follow {
                return Ok(Outcome::Good);
            }
            tokio::time::sleep(EVERY).await;
        }
    })
}

/// Lines for people and for programs, and the nodes that did not answer.
type Told = (Vec<(String, String)>, Vec<String>);

async fn past(cluster: &Cluster, pool: &str) -> anyhow::Result<Told> {
    let history = cluster.views()?.history(pool).await?;
    let both = |event: &HistoryEvent| Ok((line(event), serde_json::to_string(event)?));
    Ok((history.events.iter().map(both).collect::<anyhow::Result<_>>()?, history.silent))
}

/// What all servers that were named remember. Whoever does not answer is named; if nobody does,
/// that is said as for any request.
async fn audit(cluster: &Cluster) -> anyhow::Result<Told> {
    let (mut events, mut unheard, mut last) = (Vec::new(), Vec::new(), None);
    let servers = cluster.servers();
    for server in &servers {
        match cluster.views_of(server)?.audit().await {
            Ok(view) => events.extend(view.events),
            Err(error @ ViewError::Unreachable { .. }) => {
                unheard.push(server.clone());
                last = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(error) = last.filter(|_| unheard.len() == servers.len()) {
        return Err(error.into());
    }
    events.sort_by_key(|event| event.at_ms);
    let both = |event: &AuditEvent| Ok((audited(event), serde_json::to_string(event)?));
    Ok((events.iter().map(both).collect::<anyhow::Result<_>>()?, unheard))
}

/// A line of the audit.
fn audited(event: &AuditEvent) -> String {
    let (at, kind, node) = (clock(event.at_ms), event.kind.as_str(), &event.node);
    let AuditEvent { who, from, what, pool, about, result, left_out, .. } = event;
    let place = [pool.as_str(), about.as_str()].join(" ");
    let place = match place.trim() {
        "" => String::new(),
        place => format!(" {place}"),
    };
    let before = match left_out {
        0 => String::new(),
        some => format!(" ({some} refusals before it are left out)"),
    };
    format!("{at} {node} {kind:<9} {who} from {from}: {what}{place}: {result}{before}")
}

/// An event in one line.
pub(crate) fn line(event: &HistoryEvent) -> String {
    let (at, what, node) = (clock(event.at_ms), event.what.as_str(), &event.node);
    let Some(id) = event.id else {
        // About the pool or a node, and not about a claim.
        let said = [event.who.as_str(), event.text.as_str()];
        let said = said.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>();
        return format!("{at} {node} {what:<9} {}", said.join(": ")).trim_end().to_owned();
    };
    let took = match (event.waited_ms, event.held_ms) {
        (waited @ Some(_), _) => format!(" after {}", span(waited)),
        (_, held @ Some(_)) => format!(" held {}", span(held)),
        _ => String::new(),
    };
    let units = match event.units {
        0 => String::new(),
        1 => " 1 unit".into(),
        units => format!(" {units} units"),
    };
    let (who, text) = (or_dash(&event.who), or_dash(&event.text));
    format!("{at} {node} {what:<9}{units}{took}, {who}: {text} ({id})")
}

/// Milliseconds since 1970 as a date and a time of day, in UTC.
fn clock(at_ms: u64) -> String {
    let (days, of_day) = (at_ms / 86_400_000, at_ms % 86_400_000);
    // From days to a date: the civil calendar in eras of 400 years, which begin in March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, millis) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::{audited, clock, line};

    #[test]
    fn an_act_and_a_refusal_are_told_in_one_line_each() {
        let read = |event| audited(&serde_json::from_value(event).unwrap());
        let act = serde_json::json!({
            "at_ms": 0, "node": "a", "kind": "act", "who": "ops", "from": "10.0.0.7",
            "what": "drain", "pool": "gpu", "about": "unit 3", "result": "done", "left_out": 2,
        });
        let told = "1970-01-01T00:00:00.000Z a act       ops from 10.0.0.7: drain gpu unit 3: done \
                    (2 refusals before it are left out)";
        assert_eq!(read(act), told);
        let refusal = serde_json::json!({
            "at_ms": 0, "node": "a", "kind": "refusal", "who": "anonymous", "from": "10.0.0.7",
            "what": "see", "result": "no token",
        });
        let told = "1970-01-01T00:00:00.000Z a refusal   anonymous from 10.0.0.7: see: no token";
        assert_eq!(read(refusal), told);
    }

    #[test]
    fn what_is_not_about_a_claim_names_none() {
        let event = serde_json::json!({
            "at_ms": 0, "node": "n0", "what": "warned", "units": 0, "who": "", "text": "n4 is away",
        });
        let event = serde_json::from_value(event).unwrap();
        assert_eq!(line(&event), "1970-01-01T00:00:00.000Z n0 warned    n4 is away");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(clock(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(clock(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(clock(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(clock(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
