//! `quorate-lab check` at the shell.

use std::process::{Command, Output};

use quorate_check::{Budget, Limits, Restart, Scope, check as explore, client_views};
use quorate_core::{NodeId, NodeSet};
use quorate_protocols::central::{Central, Pool};

fn check(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorate-lab"))
        .arg("check")
        .args(arguments.split_whitespace())
        .output()
        .expect("the command was built")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is text")
}

/// A changed number is a changed protocol: look at what changed before changing it here.
#[test]
fn central_is_exhausted_in_as_many_states_as_ever() {
    let output = check("--protocol central --nodes 3 --units 2 --claims 2 --cancels 1 --crashes 1");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stdout(&output),
        "\
n0 claims 1, n1 claims 1: 17535 states, 62024 transitions, depth 23: every law holds
n0 claims 1, n1 claims 2: 10610 states, 34814 transitions, depth 22: every law holds
n0 claims 2, n1 claims 1: 9300 states, 30763 transitions, depth 22: every law holds
n0 claims 2, n1 claims 2: 8270 states, 28130 transitions, depth 22: every law holds
reached: somebody enters, all units in use at once, a cancel crosses a grant, a crash is survived, \
a unit is reclaimed
4 worlds exhausted, 45715 states: every law holds
"
    );
}

/// Three claims with a cancel and a crash of the arbiter, with and without a record, on links that
/// keep order and links that do not. Alarms are limited to keep this test short; without
/// `--early-rings` the same worlds have some twenty million states.
#[test]
fn central_survives_a_cancel_and_a_crash_of_its_arbiter() {
    for (network, memory, early_rings) in [
        ("fifo", "", 1),
        ("fifo", "--durable", 0),
        ("reordering", "", 0),
        ("reordering", "--durable", 0),
    ] {
        let output = check(&format!(
            "--claims 3 --cancels 1 --crashes 1 --network {network} {memory} \
             --early-rings {early_rings}"
        ));
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{network} {memory}:\n{text}");
        assert!(text.contains("6 worlds exhausted"), "{text}");
    }
}

#[test]
fn backfill_overtakes_within_its_bound() {
    let output = check("--want 1,2,1 --fairness backfill:1 --early-rings 0");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains("an overtake"), "{}", stdout(&output));
}

#[test]
fn json_says_the_same_in_every_run_except_how_long_it_took() {
    let result = || {
        let output = check("--claims 2 --crashes 1 --durable --json");
        assert_eq!(output.status.code(), Some(0));
        let mut result: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("--json prints JSON");
        let result = result.as_object_mut().expect("an object");
        assert!(result.remove("seconds").is_some_and(|seconds| seconds.is_f64()));
        assert!(result.remove("states_per_second").is_some());
        assert!(result["bytes_per_state"].as_f64().is_some_and(|bytes| bytes > 0.0));
        result.clone()
    };
    let first = result();
    assert_eq!(first["holds"], true);
    assert_eq!(first["worlds"].as_array().map(Vec::len), Some(4));
    assert_eq!(first, result());
}

#[test]
fn a_world_that_is_too_large_proves_nothing_and_says_so() {
    let output = check("--claims 2 --max-states 100");
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("INCOMPLETE, stopped after"));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("0 of 4 worlds were exhausted within 100 states"), "{error}");
}

#[test]
fn states_are_bounded_for_all_worlds_together() {
    let all: serde_json::Value =
        serde_json::from_str(&stdout(&check("--claims 2 --json"))).expect("json");
    let states = all["states"].as_u64().expect("a number of states");
    let enough = check(&format!("--claims 2 --max-states {states}"));
    assert_eq!(enough.status.code(), Some(0), "{enough:?}");
    let fewer = check(&format!("--claims 2 --max-states {}", states - 1));
    assert_eq!(fewer.status.code(), Some(2), "{fewer:?}");
    let error = String::from_utf8_lossy(&fewer.stderr).into_owned();
    assert!(error.contains("3 of 4 worlds were exhausted within"), "{error}");
}

#[test]
fn bad_input_gets_one_clear_line_and_exit_code_2() {
    for (arguments, line) in [
        ("--claims 9", "quorate-lab: 9 claims: choose 1 to 8\n"),
        ("--units 0", "quorate-lab: a pool cannot have 0 units: choose 1 to 1048576\n"),
        ("--want 3", "quorate-lab: 3 units asked of a pool of 2: ask for at most 2\n"),
        ("--want 1,1 --claims 3", "quorate-lab: --want lists 2 values for 3 claims\n"),
        ("--claims 1 --home 7", "quorate-lab: a claim at n7, but there are 3 nodes\n"),
        ("--nodes 0", "quorate-lab: 0 nodes: choose 1 to 64\n"),
        ("--crashing 5", "quorate-lab: n5 cannot crash: there are 3 nodes\n"),
        ("--home any --units 100000", "quorate-lab: too many worlds: give --want or --home\n"),
        (
            "--want 1 --among 0+1,0",
            "quorate-lab: --among is for 2 claims: say the size of each with --want\n",
        ),
        ("--want 2,1 --among 0,1", "quorate-lab: claim 1 asks for 2 units among 1\n"),
        (
            "--want 1,1 --among 0+7,0",
            "quorate-lab: --among: there is no u7: units count from 0 to 1\n",
        ),
        (
            "--want 1,1 --among 0,1 --movable 3",
            "quorate-lab: --movable 3: claims count from 1 to 2\n",
        ),
        (
            "--want 1,1 --among 0,1 --movable 1 --protocol table",
            "quorate-lab: --movable is for central: nobody is moved here\n",
        ),
    ] {
        let output = check(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), line, "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
    for arguments in ["--protocol nobody", "--fairness lifo", "--home here", "--claims many"] {
        let output = check(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments}");
    }
}

#[test]
fn help_has_examples() {
    let output = check("--help");
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("Examples:"));
    assert!(stdout(&output).contains("quorate-lab check --nodes 3 --units 2 --claims 3"));
}

/// Clocks and fences are renamed so that worlds are finite. Where central is finite under its own
/// numbers too, clients see the same either way.
#[test]
fn renaming_clocks_and_fences_changes_nothing_for_clients_of_central() {
    let limits = Limits { states_max: 1_000_000, ..Limits::default() };
    for (durable, cancels) in [(false, 0), (true, 0), (false, 1)] {
        let mut pool = Pool::new(2);
        pool.goods.durable = durable;
        let wants = [(NodeId(0), 1), (NodeId(1), 2)];
        let mut scope = Scope::<Central>::new(2, pool, &wants).expect("a sensible world");
        scope.crashing = NodeSet::first(1);
        scope.restart = if durable { Restart::Durable } else { Restart::Amnesia };
        scope.budget = Budget { crashes: 1, cancels, ..Budget::default() };
        let renamed = (explore(&scope, &limits, &mut |_| {}), client_views(&scope, &limits));
        scope.renaming = false;
        let plain = (explore(&scope, &limits, &mut |_| {}), client_views(&scope, &limits));
        assert!(renamed.0.holds(), "{}", renamed.0);
        assert_eq!(renamed.0.verdict, plain.0.verdict);
        assert_eq!(renamed.0.sightings, plain.0.sightings);
        assert!(renamed.0.states <= plain.0.states);
        assert!(renamed.1.is_some());
        assert_eq!(renamed.1, plain.1);
    }
}
