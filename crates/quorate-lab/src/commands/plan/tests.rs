//! Plans of fleets, as the command makes them.

use clap::{Args as _, FromArgMatches as _};

use super::*;

fn args(words: &str) -> Args {
    let command = Args::augment_args(clap::Command::new("plan"));
    let matches = command.try_get_matches_from(words.split(' ')).unwrap();
    Args::from_arg_matches(&matches).unwrap()
}

fn plan(words: &str) -> (Fleet, trial::Tried) {
    let args = args(words);
    let fleet = args.fleet().unwrap();
    let tried = trial::all(&fleet, args.prefer, args.seed, &|_, _| {}).unwrap();
    (fleet, tried)
}

/// The fleet that the guide asks for: zone loss must not stop it.
#[test]
fn a_fleet_in_zones_gets_a_file_that_the_daemon_takes() {
    let (fleet, tried) = plan("plan --nodes 7 --zones 3 --units 4 --claims 1,4 --survive zone");
    let best = tried.fit.first().expect("there is a plan");
    let config = quorate_node::Config::parse(&best.file).expect("the daemon takes it");
    assert_eq!(config.members.len(), 7);
    assert!(tried.fit.windows(2).all(|pair| pair[0].busy.wait <= 1.05 * pair[1].busy.wait));
    assert!(best.command.contains("--delay 'sites:3;uniform:"), "{}", best.command);
    let why = |name: &str| {
        let found = tried.rejected.iter().find(|(known, _)| known.starts_with(name));
        found.map_or_else(|| panic!("{name} will do?"), |(_, why)| why.as_str())
    };
    assert_eq!(why("central at a1"), "without zone a nothing is granted: it needs a1");
    assert_eq!(
        why("arbiter, units counted"),
        "without zone a nothing is granted: it takes 6 of 7 voters, and 4 are left"
    );
    assert_eq!(
        why("arbiter, quorums by size of claim"),
        "without zone a no claim of 1 is granted: it takes 6 of 7 voters, and 4 are left"
    );
    assert!(why("ring").starts_with("without zone a nothing is granted"), "{}", why("ring"));
    let text = words::text(&fleet, Prefer::Latency, &tried);
    assert!(text.contains("[[pools]]") && text.contains("Rejected"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&words::json(&fleet, &tried)).unwrap();
    assert_eq!(json["choice"]["file"], best.file);
}

#[test]
fn what_cannot_be_had_is_said() {
    let (fleet, tried) = plan("plan --nodes 6 --zones 2 --units 2 --survive zone");
    assert!(tried.fit.is_empty());
    let text = words::text(&fleet, Prefer::Latency, &tried);
    assert!(text.contains("A third zone helps"), "{text}");
    let (_, tried) = plan("plan --nodes 3 --units 2 --labels --names");
    let names: Vec<&str> = tried.fit.iter().map(|fit| fit.way.name.as_str()).collect();
    assert!(
        names.iter().all(|name| name.starts_with("table") || name.contains("seat")),
        "{names:?}"
    );
    for (words, what) in [
        ("plan --nodes 3 --units 2 --survive zone", "there is one zone"),
        ("plan --nodes 3 --units 2 --claims 4", "there are 2 units"),
        ("plan --nodes 3 --units 2 --survive 3", "there are 3"),
        ("plan --nodes 3 --units 2 --zones 4", "there are 3 nodes"),
    ] {
        let error = format!("{:#}", args(words).fleet().unwrap_err());
        assert!(error.contains(what), "{words}: {error}");
    }
}

/// Against the sum over all losses, written down by hand for three nodes in three zones.
#[test]
fn availability_counts_zones_and_nodes() {
    let fleet = args("plan --nodes 3 --zones 3 --units 1 --up 0.9 --zone-up 0.8").fleet().unwrap();
    let majority = |away: &quorate_core::NodeSet| away.len() < 2;
    let up: f64 = 0.9 * 0.8;
    let expected = up.powi(3) + 3.0 * up.powi(2) * (1.0 - up);
    let (found, exact) = fleet.availability(&majority);
    assert!(exact && (found - expected).abs() < 1e-12, "{found} {expected}");
    let two = args("plan --nodes 4 --zones 2 --units 1 --up 0.9 --zone-up 0.8").fleet().unwrap();
    // Three of four, in two zones of two: both zones are up, and at most one node is not.
    let expected = 0.8 * 0.8 * (0.9_f64.powi(4) + 4.0 * 0.9_f64.powi(3) * 0.1);
    assert!((two.availability(&majority).0 - expected).abs() < 1e-12);
    let many = args("plan --nodes 15 --units 1 --up 0.9").fleet().unwrap();
    let (drawn, exact) = many.availability(&|away| !away.contains(quorate_core::NodeId(3)));
    assert!(!exact && (drawn - 0.9).abs() < 0.01, "{drawn}");
}
