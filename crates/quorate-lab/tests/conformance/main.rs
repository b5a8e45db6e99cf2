//! The same scenarios against the simulator and against real nodes, for every protocol that a node
//! runs, with the same outcome expected of both.
//!
//! | file | holds |
//! |---|---|
//! | `scenarios.txt` | the scenarios and what is expected, with the limits of each protocol |
//! | `table.rs` | reads them |
//! | `simulator.rs` | plays one as a transcript of `quorate-sim` |
//! | `real.rs` | plays one on three nodes with loopback sockets |
//!
//! Both arms get their protocol value from the same configuration. A breach of a law in the
//! simulator's transcript fails a scenario too; real nodes are judged in `tests/real`.

#[path = "../../../quorate-node/tests/node/common/mod.rs"]
mod common;
mod real;
mod simulator;
mod table;

use quorate_node::Config;
use table::Scenario;

/// Nodes of every cluster here.
const NODES: usize = 3;

/// The options of a pool, by the name that the table uses.
const PROTOCOLS: [(&str, &str); 9] = [
    ("central", "protocol = \"central\"\narbiter = \"n0\"\nretry = \"100ms\""),
    ("named", "protocol = \"arbiter\"\nretry = \"100ms\""),
    ("count", "protocol = \"arbiter\"\nmode = \"arbiter\"\nsurvive = 0\nretry = \"100ms\""),
    (
        "naming",
        "protocol = \"arbiter\"\nmode = \"arbiter\"\nnaming = true\nsurvive = 0\nretry = \"100ms\"",
    ),
    ("ticket", "protocol = \"arbiter\"\nmode = \"ticket\"\nretry = \"100ms\""),
    ("table", "protocol = \"table\"\nretry = \"100ms\""),
    ("broadcast", "protocol = \"broadcast\"\nnode_units_max = 2\nretry = \"100ms\""),
    (
        "leased",
        "protocol = \"broadcast\"\nnode_units_max = 2\nretry = \"100ms\"\nreclaim = \"lease\"",
    ),
    ("ring", "protocol = \"ring\"\ntimeout = \"200ms\"\nidle = \"50ms\""),
];

/// What a member of three is told, with any addresses: only its pools matter.
fn config(pool: &str) -> Result<Config, String> {
    let mut text = String::from(
        "cluster = \"test\"\nepoch = 1\nnode = \"n0\"\ndata_dir = \"unused\"\n\
         listen = { clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }\n",
    );
    for node in 0..NODES {
        let port = 2 + node;
        text.push_str(&format!("[[members]]\nname = \"n{node}\"\npeers = \"127.0.0.1:{port}\"\n"));
    }
    Config::parse(&(text + pool)).map_err(|error| error.to_string())
}

fn check(protocol: &str) {
    let (name, options) = PROTOCOLS.into_iter().find(|(name, _)| *name == protocol).expect("one");
    let scenarios = table::scenarios();
    // Most of the time is waiting, so all are played at once.
    let problems: Vec<String> = std::thread::scope(|scope| {
        let play = |scenario| scope.spawn(move || differences(scenario, name, options));
        let all: Vec<_> = scenarios.iter().map(|scenario| (scenario, play(scenario))).collect();
        let found = all.into_iter().flat_map(|(scenario, played)| {
            let found = played.join().unwrap_or_else(|_| vec!["panicked, see above".into()]);
            found.into_iter().map(move |what| format!("{name}: {scenario}: {what}"))
        });
        found.collect()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn differences(scenario: &Scenario, name: &str, options: &str) -> Vec<String> {
    let pool = scenario.pool(options);
    let config = match config(&pool) {
        Ok(config) => config,
        Err(why) if scenario.cannot.iter().any(|n| n == name) => {
            let known = why.contains("durable") || why.contains("units that differ");
            assert!(known, "refused for another reason: {why}");
            return Vec::new();
        }
        Err(why) => return vec![why],
    };
    let mut problems = Vec::new();
    if scenario.cannot.iter().any(|n| n == name) {
        problems.push("it can, and the table says that it cannot".into());
    }
    let expected = scenario.expected(name);
    let mut compare = |arm: &str, observed: &[(String, String)]| {
        if observed != expected {
            problems.push(format!("{arm}: {observed:?}\n    instead of {expected:?}"));
        }
    };
    if !scenario.only_nodes {
        let (observed, transcript) = simulator::run(scenario, &config);
        compare("simulator", &observed);
        let broken: Vec<(String, String)> = transcript
            .lines()
            .filter(|line| line.contains("BROKEN") || line.contains("ANOMALY"))
            .map(|line| ("law".to_owned(), line.trim().to_owned()))
            .collect();
        if !broken.is_empty() {
            compare("simulator", &broken);
        }
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    compare("nodes", &runtime.block_on(real::run(scenario, name, &pool)));
    problems
}

#[test]
fn central() {
    check("central");
}

#[test]
fn arbiter_with_names() {
    check("named");
}

#[test]
fn arbiter_that_counts() {
    check("count");
}

#[test]
fn arbiter_that_counts_and_names() {
    check("naming");
}

#[test]
fn ticket() {
    check("ticket");
}

#[test]
fn table() {
    check("table");
}

#[test]
fn broadcast() {
    check("broadcast");
}

#[test]
fn broadcast_that_counts_nodes_out() {
    check("leased");
}

#[test]
fn ring() {
    check("ring");
}

/// A scenario with a wrong expectation is found by each arm.
#[test]
fn a_difference_is_found() {
    let mut scenarios = table::scenarios();
    let scenario = &mut scenarios[0];
    let Some(table::Step::Expect { state, .. }) = scenario.steps.last_mut() else {
        panic!("a scenario ends with an expectation")
    };
    *state = "waiting".into();
    let found = differences(scenario, "central", PROTOCOLS[0].1);
    assert!(found[0].contains("simulator") && found[1].contains("nodes"), "{found:?}");
}
