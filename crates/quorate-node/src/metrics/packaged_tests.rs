//! What `packaging` asks Prometheus for, nodes export: every metric, label and value that an alert
//! or the dashboard names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;

const RULES: &str = include_str!("../../../../packaging/prometheus/quorate.rules.yml");
const RULES_TESTS: &str = include_str!("../../../../packaging/prometheus/quorate.test.yml");
const DASHBOARD: &str = include_str!("../../../../packaging/grafana/quorate.json");

/// Labels that Prometheus itself adds, or that only its functions see.
const SCRAPED: [&str; 3] = ["job", "instance", "le"];

/// Metrics, the labels of each, and the values that we saw of those.
type Exported = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What a node says to which everything has happened once.
fn exported() -> Exported {
    let text = "cluster = \"c\"\nepoch = 1\nnode = \"a\"\ndata_dir = \"unused\"\n\
                [listen]\nclients = \"127.0.0.1:0\"\npeers = \"127.0.0.1:0\"\n\
                [[members]]\nname = \"a\"\npeers = \"127.0.0.1:1\"\n\
                [[pools]]\nname = \"p\"\nunits = 1\n";
    let config = Config::parse(text).unwrap();
    let metrics = Metrics::new();
    metrics.pool("p", &["request"]);
    let standing = Standing { known_free: Some(1), grants_up_to: Some(1), ..Standing::default() };
    metrics.measure(&config, [(&"p".into(), &standing)].into_iter());
    metrics.set_standing("p", 1, 1);
    metrics.mesh(config.members.len(), 0);
    metrics.refuse("peer");
    metrics.refuse_request(400);
    metrics.trust.refuse("token");
    drop(metrics.trust.handshake("client"));
    for kind in ["node", "authority"] {
        metrics.trust.expires(kind, Duration::from_secs(1));
    }
    let mut exported = Exported::new();
    for line in metrics.plain_text().lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let of = exported.entry(name.to_owned()).or_default();
        for (label, _, value) in matchers(labels.strip_suffix('}').unwrap()) {
            of.entry(label).or_default().insert(value);
        }
    }
    exported
}

/// Label, how it is compared, and value, of what stands between braces.
fn matchers(text: &str) -> Vec<(String, String, String)> {
    let mut parts = text.split('"');
    let mut found = Vec::new();
    while let (Some(head), Some(value)) = (parts.next(), parts.next()) {
        let head = head.trim_matches([',', ' ', '\\']);
        let (label, how) = head.split_at(head.find(['=', '!']).expect("a comparison"));
        found.push((label.to_owned(), how.to_owned(), value.trim_end_matches('\\').to_owned()));
    }
    found
}

/// What is asked that no node can answer.
fn unanswered(text: &str, exported: &Exported) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut asked = 0;
    for (at, _) in text.match_indices("quorate_") {
        let rest = &text[at..];
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let (name, rest) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
        asked += 1;
        let Some(labels) = exported.get(name) else {
            wrong.push(format!("no node exports {name}"));
            continue;
        };
        let Some((inside, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            continue;
        };
        for (label, how, value) in matchers(inside) {
            match labels.get(&label) {
                _ if SCRAPED.contains(&&*label) => {}
                None => wrong.push(format!("{name} has no label {label}")),
                // What people choose, or name their pools, is not ours to know.
                Some(_) if label == "pool" || value.starts_with('$') => {}
                Some(values) if how == "=" && values.contains(&value) => {}
                Some(_) => wrong.push(format!("{name} never has {label}{how}{value:?}")),
            }
        }
    }
    assert!(asked > 0, "it asks nothing");
    wrong
}

#[test]
fn alerts_and_dashboard_ask_for_what_nodes_export() {
    let exported = exported();
    for (what, text) in [("rules", RULES), ("tests", RULES_TESTS), ("dashboard", DASHBOARD)] {
        let wrong = unanswered(text, &exported);
        assert!(wrong.is_empty(), "{what}: {wrong:#?}");
    }
    // A metric that was renamed, a label and a value that do not exist are noticed.
    let bad = r#"quorate_no_such_total quorate_members{status="x"} quorate_members{state="gone"}"#;
    assert_eq!(unanswered(bad, &exported).len(), 3);
}

#[test]
fn every_alert_says_what_to_do_and_is_tested_ringing_and_silent() {
    let alerts: Vec<&str> = RULES.split("- alert: ").skip(1).collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        assert!(name.starts_with("Quorate"), "{name}");
        let severe = ["severity: critical\n", "severity: warning\n"];
        assert!(severe.iter().any(|severity| alert.contains(severity)), "{name}");
        assert!(alert.contains("summary: ") && alert.contains("description: "), "{name}");
        for how in ["rings", "is silent"] {
            let test = format!("- name: {name} {how}\n");
            assert!(RULES_TESTS.contains(&test), "no test that {name} {how}");
        }
    }
}

/// An alert on the growth of a counter misses what happened before it was first seen.
#[test]
fn what_alerts_count_is_there_before_it_happens() {
    let text = Metrics::new().plain_text();
    for line in [
        "quorate_reloads_total{outcome=\"refused\"} 0",
        "quorate_anomalies_total 0",
        "quorate_audit_lost_total 0",
    ] {
        assert!(text.lines().any(|there| there == line), "{line}\n{text}");
    }
}
