//! The alerts and the dashboard of `packaging`, by Prometheus's own tool: whether each alert rings
//! when it should and only then, and whether each query means something. That nodes export what
//! they ask for is a test of `quorate-node`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{browser, steps};

/// Where promtool is not to be had, says so, and that nothing was looked at.
pub(crate) fn check(root: &Path) -> bool {
    println!("\n--- alerts and dashboard");
    if !answers() {
        println!("installing promtool, which is in Debian's package prometheus");
        if !browser::apt(&["prometheus"]) || !answers() {
            println!("--- alerts and dashboard: skipped, promtool could not be installed");
            return true;
        }
    }
    let queries = root.join("packaging/grafana/quorate.json");
    let queries = std::fs::read_to_string(queries).map(|dashboard| as_rules(&dashboard));
    let file = steps::target(root).join("dashboard.rules.yml");
    let written = queries.and_then(|rules| std::fs::write(&file, rules));
    if let Err(error) = &written {
        println!("the dashboard's queries cannot be written to {}: {error}", file.display());
    }
    let folder = root.join("packaging/prometheus");
    let tool = |words: &[&str]| {
        let mut command = Command::new("promtool");
        command.args(words).current_dir(&folder).status().is_ok_and(|status| status.success())
    };
    let dashboard = file.display().to_string();
    let good = [
        written.is_ok() && tool(&["check", "rules", &dashboard]),
        tool(&["check", "rules", "quorate.rules.yml"]),
        tool(&["test", "rules", "quorate.test.yml"]),
    ];
    let good = good.iter().all(|good| *good);
    println!("--- alerts and dashboard: {}", if good { "ok" } else { "FAILED" });
    good
}

/// The dashboard's queries as rules, which is what promtool reads, with Grafana's variables put in.
/// The file has one member a line.
fn as_rules(dashboard: &str) -> String {
    let mut rules = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
    let queries = dashboard.lines().filter_map(|line| {
        let query = line.trim().strip_prefix("\"expr\": \"")?;
        query.trim_end_matches(',').strip_suffix('"')
    });
    for (number, query) in queries.enumerate() {
        let query = query.replace("\\\"", "\"").replace("$__rate_interval", "5m");
        let query = query.replace('\'', "''");
        // Infallible: it is a string.
        let _ = writeln!(rules, "      - record: query:{number}\n        expr: '{query}'");
    }
    rules
}

fn answers() -> bool {
    let mut command = Command::new("promtool");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_of_the_dashboard_becomes_a_rule() {
        let dashboard = include_str!("../../packaging/grafana/quorate.json");
        let rules = as_rules(dashboard);
        let queries = dashboard.matches("\"expr\"").count();
        assert!(queries > 10);
        assert_eq!(rules.matches("- record: ").count(), queries);
        assert!(!rules.contains("$__") && !rules.contains('\\'), "{rules}");
    }
}
