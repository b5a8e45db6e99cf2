//! `quorate doctor`: what is wrong with this set-up, and what to do about it. It looks and changes
//! nothing.

mod cluster_side;
mod machine_side;

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::cluster::{self, Cluster, Json};
use crate::Outcome;

/// Find out what is wrong with a set-up, and what to do about it.
///
/// Asks every node that is named, and every one of their peers by way of them: whether it answers
/// and is ready, whether versions and clocks agree, whether pools can grant. On a node's machine,
/// --config also looks at its file: certificates and when they expire, leases against the time
/// after which members are suspected, the data directory, limits, and whether others can be
/// reached from here; the node itself is asked where the file says that it listens. Nothing is
/// changed.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate doctor
  quorate doctor --server https://10.0.0.1:7420,https://10.0.0.2:7420 --ca ca.crt
  sudo quorate doctor --config /etc/quorate/quorate.toml
  quorate doctor --json | jq '.findings[] | select(.level == \"broken\")'

Exit codes: 0 nothing is broken, though there may be warnings; 1 something is; 2 it could not be
found out.")]
pub(crate) struct Args {
    /// The configuration file of a node on this machine.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Debug)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// It was looked at.
    Fine,
    /// It will be wrong, or is unwise.
    Warning,
    /// It does not work.
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
struct Finding {
    level: Level,
    /// What was looked at, in one word.
    about: &'static str,
    what: String,
    /// What to do, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// What was found so far.
#[derive(Serialize, Default, Debug)]
struct Findings {
    findings: Vec<Finding>,
}

impl Findings {
    fn fine(&mut self, about: &'static str, what: impl Into<String>) {
        self.add(Level::Fine, about, what.into(), None);
    }

    fn warn(&mut self, about: &'static str, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Level::Warning, about, what.into(), Some(remedy.into()));
    }

    fn broken(&mut self, about: &'static str, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Level::Broken, about, what.into(), Some(remedy.into()));
    }

    fn add(&mut self, level: Level, about: &'static str, what: String, remedy: Option<String>) {
        let finding = Finding { level, about, what, remedy };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    /// What is broken first, and what is fine last.
    fn text(&self) -> String {
        let mut text = String::new();
        for (level, word) in
            [(Level::Broken, "BROKEN"), (Level::Warning, "warning"), (Level::Fine, "fine")]
        {
            for finding in self.findings.iter().filter(|finding| finding.level == level) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{word:<8} {:<12} {}", finding.about, finding.what);
                if let Some(remedy) = &finding.remedy {
                    let _ = writeln!(text, "{:<21} -> {remedy}", "");
                }
            }
        }
        let (broken, warnings) = (self.count(Level::Broken), self.count(Level::Warning));
        let _ = match (broken, warnings) {
            (0, 0) => writeln!(text, "nothing is wrong"),
            _ => writeln!(text, "{broken} broken, {warnings} to think about"),
        };
        text
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let mut findings = Findings::default();
        let mut servers = args.cluster.servers();
        if let Some(file) = &args.config {
            let found = machine_side::look(file, &mut findings).await;
            match found {
                Some(server) if !args.cluster.is_named() => servers = vec![server],
                None if !args.cluster.is_named() => servers.clear(),
                _ => {}
            }
        }
        for file in args.cluster.certificates() {
            machine_side::certificate(&file, &mut findings);
        }
        cluster_side::look(&args.cluster, &servers, &mut findings).await;
        findings.findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        cluster::print(args.json.json, &findings, || findings.text())?;
        Ok(if findings.count(Level::Broken) > 0 { Outcome::Broken } else { Outcome::Good })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_comes_first_with_its_remedy() {
        let mut findings = Findings::default();
        findings.fine("node", "n0 is ready");
        findings.fine("node", "n0 is ready");
        findings.broken("clock", "it is 1970", "set it");
        let lines = [
            "BROKEN   clock        it is 1970",
            "                      -> set it",
            "fine     node         n0 is ready",
            "1 broken, 0 to think about",
        ];
        assert_eq!(findings.text().lines().collect::<Vec<_>>(), lines);
    }
}
