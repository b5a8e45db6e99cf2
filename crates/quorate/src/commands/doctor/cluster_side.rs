//! What nodes tell of themselves, of each other and of their pools.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use quorate_api::{NodeView, PoolView};
use quorate_client::ViewError;

use super::Findings;
use crate::commands::cluster::{Cluster, span};

/// How far apart clocks may be before it is worth a word. Certificates and tokens are told by them;
/// leases are not.
const APART: Duration = Duration::from_secs(5);
/// And before certificates fail that were made a moment ago.
const FAR_APART: Duration = Duration::from_secs(300);

pub(super) async fn look(cluster: &Cluster, servers: &[String], findings: &mut Findings) {
    let mut nodes: Vec<NodeView> = Vec::new();
    for server in servers {
        let views = match cluster.views_of(server) {
            Ok(views) => views,
            Err(error) => {
                findings.broken("reach", format!("{server}: {error:#}"), "see above");
                continue;
            }
        };
        match views.node().await {
            Ok(node) => nodes.push(node),
            Err(error) => {
                unseen(server, &error, findings);
                continue;
            }
        }
        if let Ok(theirs) = views.clock().await {
            clock(server, theirs, SystemTime::now(), findings);
        }
        match views.pools().await {
            Ok(pools) => pools.pools.iter().for_each(|it| pool(it, findings)),
            Err(error) => unseen(server, &error, findings),
        }
    }
    nodes.iter().for_each(|it| node(it, findings));
    together(&nodes, findings);
}

fn unseen(server: &str, error: &ViewError, findings: &mut Findings) {
    let remedy = match error {
        ViewError::Unreachable { .. } => {
            "start it there (`systemctl status quorate` says why it does not run), or name another \
             address with --server; a firewall between here and there looks the same"
        }
        ViewError::Problem(_) => "show a token or a certificate that may see: --token-file, --cert",
        _ => "name the address where a node listens for clients",
    };
    findings.broken("reach", format!("{server}: {error}"), remedy);
}

/// What the clock of another machine says, by the second.
fn clock(server: &str, theirs: SystemTime, ours: SystemTime, findings: &mut Findings) {
    let apart = ours.duration_since(theirs).unwrap_or_else(|error| error.duration());
    let shown = span(Some(apart.as_millis() as u64));
    let remedy = "set both by NTP (timedatectl set-ntp true); leases do not suffer, but \
                  certificates, tokens that expire and times in logs do";
    let what = format!("the clocks of {server} and of this machine are {shown} apart");
    if apart >= FAR_APART {
        findings.broken("clock", what, remedy);
    } else if apart >= APART {
        findings.warn("clock", what, remedy);
    } else {
        findings.fine("clock", format!("{server} and this machine agree"));
    }
}

fn node(node: &NodeView, findings: &mut Findings) {
    let name = &node.name;
    for check in node.checks.iter().filter(|check| !check.ok) {
        findings.broken(
            "readiness",
            format!("{name} is not ready: {}: {}", check.name, check.detail),
            "docs/readiness.md has this check by its name, and what ends it",
        );
    }
    if node.ready {
        findings.fine("readiness", format!("{name} is ready"));
    }
    for peer in &node.peers {
        if peer.connected {
            continue;
        }
        let why = peer.problem.as_deref().unwrap_or("nothing more is known");
        findings.broken(
            "peers",
            format!("{name} has no connection to {}: {why}", peer.name),
            format!(
                "is {} started, and may {name} call the address that `members` has for it?",
                peer.name
            ),
        );
    }
    let connected = node.peers.iter().filter(|peer| peer.connected).count();
    if connected > 0 && connected == node.peers.len() {
        findings.fine("peers", format!("{name} has a connection to each of {connected} peers"));
    }
}

/// What only shows when several are asked.
fn together(nodes: &[NodeView], findings: &mut Findings) {
    let Some(first) = nodes.first() else { return };
    let clusters: BTreeSet<&str> = nodes.iter().map(|node| node.cluster.as_str()).collect();
    if clusters.len() > 1 {
        let clusters = clusters.into_iter().collect::<Vec<_>>().join(", ");
        findings.broken(
            "cluster",
            format!("these servers belong to several clusters: {clusters}"),
            "name servers of one cluster only: clients take whichever answers",
        );
    }
    let epochs: BTreeSet<u64> = nodes.iter().map(|node| node.epoch).collect();
    if epochs.len() > 1 {
        findings.broken(
            "epoch",
            format!("nodes have configurations of different epochs: {epochs:?}"),
            "give all of them the newest file, and restart those that have not read it",
        );
    }
    let ours = env!("CARGO_PKG_VERSION");
    let versions = nodes.iter().map(|node| (node.name.as_str(), node.version.as_str()));
    let other: Vec<String> = versions
        .filter(|(_, version)| *version != ours)
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    if other.is_empty() {
        findings.fine("version", format!("all are {ours}, this command too"));
    } else {
        findings.warn(
            "version",
            format!("this command is {ours}, but {}", other.join(", ")),
            "finish the upgrade (docs/operations.md); one version everywhere is what is tested",
        );
    }
    let unseen: BTreeSet<&str> = first.peers.iter().map(|peer| peer.name.as_str()).collect();
    let seen: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let unseen: Vec<&str> = unseen.difference(&seen).copied().collect();
    if !unseen.is_empty() {
        findings.warn(
            "servers",
            format!("{} were not asked, and clients do not know them", unseen.join(", ")),
            "name all members in --server or QUORATE_SERVER: clients go on with another if one is \
             gone",
        );
    }
}

fn pool(pool: &PoolView, findings: &mut Findings) {
    let name = &pool.name;
    for trouble in &pool.troubles {
        let alarm = trouble.starts_with("ALARM");
        let what = format!("pool {name}: {trouble}");
        let remedy = format!("`quorate pools {name}` and docs/operations.md say more");
        if alarm {
            findings.broken("pool", what, remedy);
        } else {
            findings.warn("pool", what, remedy);
        }
    }
    match &pool.grants {
        Some(grants) if grants.largest == 0 => findings.broken(
            "pool",
            format!("pool {name} grants nothing now"),
            format!("`quorate pools {name}` says for whom it waits"),
        ),
        _ => findings.fine("pool", format!("{name} grants")),
    }
    if !pool.drained.is_empty() {
        findings.warn(
            "pool",
            format!("pool {name}: out of service: {}", pool.drained.join(", ")),
            format!("`quorate drain {name} UNIT --undo` brings a unit back"),
        );
    }
}

#[cfg(test)]
mod tests {
    use quorate_api::{Problem, ProblemKind};

    use super::super::Level;
    use super::*;

    fn view(name: &str, cluster: &str, version: &str, peers: &[&str]) -> NodeView {
        let peers: Vec<_> = peers
            .iter()
            .map(|name| {
                serde_json::json!({"name": name, "connected": *name != "c",
                "suspected": false, "problem": "connection refused"})
            })
            .collect();
        serde_json::from_value(serde_json::json!({
            "name": name, "cluster": cluster, "epoch": 1, "boot": 1, "version": version,
            "ready": true, "checks": [], "peers": peers, "claims": 0, "clients": 0,
        }))
        .unwrap()
    }

    fn levels(findings: &Findings, about: &str) -> Vec<Level> {
        let these = findings.findings.iter().filter(|finding| finding.about == about);
        these.map(|finding| finding.level).collect()
    }

    #[test]
    fn clocks_that_are_apart_are_found_and_by_how_much() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        for (seconds, level) in
            [(0, Level::Fine), (4, Level::Fine), (60, Level::Warning), (600, Level::Broken)]
        {
            for theirs in [now - Duration::from_secs(seconds), now + Duration::from_secs(seconds)] {
                let mut findings = Findings::default();
                clock("n0", theirs, now, &mut findings);
                assert_eq!(levels(&findings, "clock"), [level], "{seconds} s");
            }
        }
    }

    #[test]
    fn what_shows_between_nodes_is_found() {
        let mut findings = Findings::default();
        let ours = env!("CARGO_PKG_VERSION");
        together(
            &[view("a", "x", ours, &["b", "c"]), view("b", "y", "0.0.9", &["a", "c"])],
            &mut findings,
        );
        assert_eq!(levels(&findings, "cluster"), [Level::Broken]);
        assert_eq!(levels(&findings, "version"), [Level::Warning]);
        assert_eq!(levels(&findings, "servers"), [Level::Warning], "c was not asked");
        node(&view("a", "x", ours, &["b", "c"]), &mut findings);
        assert_eq!(levels(&findings, "peers"), [Level::Broken], "no connection to c");
        have_remedies(&findings);
    }

    fn have_remedies(findings: &Findings) {
        for finding in &findings.findings {
            let bad = finding.level != Level::Fine;
            assert_eq!(finding.remedy.is_some(), bad, "{finding:?}");
        }
    }

    #[test]
    fn nodes_that_agree_and_are_ready_are_fine() {
        let ours = env!("CARGO_PKG_VERSION");
        let nodes = [view("a", "x", ours, &["b"]), view("b", "x", ours, &["a"])];
        let mut findings = Findings::default();
        nodes.iter().for_each(|it| node(it, &mut findings));
        together(&nodes, &mut findings);
        assert!(findings.findings.iter().all(|it| it.level == Level::Fine), "{findings:?}");
        assert_eq!(levels(&findings, "version"), [Level::Fine]);
        assert_eq!(levels(&findings, "peers"), [Level::Fine; 2]);
    }

    #[test]
    fn a_check_that_fails_and_files_of_two_epochs_are_broken() {
        let (mut one, mut other) = (view("a", "x", "1", &["b"]), view("b", "x", "1", &["a"]));
        one.ready = false;
        let check = serde_json::json!({"name": "disk", "ok": false, "detail": "it is full"});
        one.checks = serde_json::from_value(serde_json::json!([check])).unwrap();
        other.epoch = 2;
        let mut findings = Findings::default();
        node(&one, &mut findings);
        together(&[one, other], &mut findings);
        assert_eq!(levels(&findings, "readiness"), [Level::Broken]);
        assert_eq!(levels(&findings, "epoch"), [Level::Broken]);
        have_remedies(&findings);
    }

    #[test]
    fn who_cannot_be_reached_or_refuses_is_told_apart() {
        let mut findings = Findings::default();
        let gone = ViewError::Unreachable { why: "connection refused".into() };
        unseen("n0", &gone, &mut findings);
        let problem = Problem::new(ProblemKind::Unauthorized, "this node asks for a token");
        unseen("n1", &ViewError::Problem(problem), &mut findings);
        assert_eq!(levels(&findings, "reach"), [Level::Broken; 2]);
        let remedies: Vec<_> =
            findings.findings.iter().filter_map(|it| it.remedy.clone()).collect();
        assert!(remedies[0].contains("systemctl") && remedies[1].contains("--token-file"));
    }

    #[test]
    fn a_pool_that_grants_nothing_is_broken_and_one_with_less_to_think_about() {
        let pool_of = |largest: u32, troubles: &[&str], drained: &[&str]| -> PoolView {
            let mut view = serde_json::json!({
                "name": "p", "protocol": "central", "units": 2, "held": 0, "waiting": 0,
                "lease_ms": 1000, "drift_ppm": 0, "names_units": true, "survives": 1,
                "durable": false,
                "troubles": troubles, "drained": drained,
            });
            view["grants"] = serde_json::json!({"smallest": 1.min(largest), "largest": largest});
            serde_json::from_value(view).unwrap()
        };
        for (largest, troubles, drained, expected) in [
            (2, &[][..], &[][..], &[Level::Fine][..]),
            (0, &[], &[], &[Level::Broken]),
            (2, &["ALARM: two holders"], &[], &[Level::Broken, Level::Fine]),
            (2, &["slow disk"], &[], &[Level::Warning, Level::Fine]),
            (1, &[], &["1"], &[Level::Fine, Level::Warning]),
        ] {
            let mut findings = Findings::default();
            pool(&pool_of(largest, troubles, drained), &mut findings);
            assert_eq!(levels(&findings, "pool"), expected);
            have_remedies(&findings);
        }
    }
}
