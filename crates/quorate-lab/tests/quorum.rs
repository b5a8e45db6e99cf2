//! `quorate-lab quorum` at the shell: what it prints, in words and as JSON, and its exit codes.

use std::process::{Command, Output};

use serde_json::Value;

fn quorate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorate-lab")).args(args).output().expect("the command runs")
}

fn words(args: &[&str]) -> (Option<i32>, String, String) {
    let output = quorate(args);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn object(args: &[&str]) -> Value {
    let (code, out, err) = words(args);
    assert!(matches!(code, Some(0 | 1)), "{args:?}: {err}");
    assert_eq!(err, "", "nothing but the result");
    serde_json::from_str(&out).expect("one JSON value")
}

fn report(family: &str, nodes: usize, units: usize) -> Value {
    let (nodes, units) = (nodes.to_string(), units.to_string());
    object(&[
        "quorum", "report", "--family", family, "--nodes", &nodes, "--units", &units, "--json",
    ])
}

/// A file that is gone when the test is.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("quorate-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a temporary file");
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a readable path")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_report_has_exactly_the_fields_promised() {
    let report = report("uniform", 7, 2);
    let mut fields: Vec<&str> =
        report.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    let mut promised = [
        "family",
        "nodes",
        "units",
        "quorums",
        "sizes",
        "intersecting",
        "largest_k",
        "minimal",
        "arbiter",
        "dominated",
        "witness",
        "symmetric",
        "resiliency",
        "survives",
        "availability",
        "load",
        "bounds",
    ];
    promised.sort_unstable();
    assert_eq!(fields, promised);
    assert_eq!(report["quorums"], 21);
    assert_eq!(report["sizes"]["5"], 21);
    assert_eq!(report["largest_k"], 2);
    assert_eq!(report["arbiter"], true);
    assert_eq!(report["dominated"], false);
    assert_eq!(report["witness"], Value::Null);
    assert_eq!(report["symmetric"]["effort"], 15);
    assert_eq!(report["symmetric"]["size"], 5);
    assert_eq!(report["resiliency"], "5/7");
    assert_eq!(report["survives"], 2);
    assert_eq!(report["bounds"]["survives_max"], 2);
    let near = |field: &str, value: f64| {
        assert!((report[field].as_f64().expect("a number") - value).abs() < 1e-9, "{field}");
    };
    near("availability", 0.9743085);
    near("load", 5.0 / 7.0);
    let eight = "quorum report --family uniform --nodes 8 --units 2 --up 0.999999999999 --json";
    let eight = object(&eight.split(' ').collect::<Vec<_>>());
    let missing = eight["bounds"]["unavailability"].as_f64().expect("a number");
    assert!((missing / 5.6e-35 - 1.0).abs() < 1e-3, "{missing:e}");
    let notes = eight["bounds"]["notes"].to_string();
    assert!(notes.contains("let only 7 of the 8 nodes vote"), "{notes}");
}

#[test]
fn every_family_can_be_asked_for_by_name() {
    for (family, nodes, units, quorums) in [
        ("singleton", 5, 2, 1),
        ("universe", 4, 2, 1),
        ("majority", 5, 1, 10),
        ("grid", 9, 1, 9),
        ("plane", 13, 1, 13),
        ("uniform", 9, 3, 36),
        ("cube", 7, 1, 5),
        ("cube-as-printed", 7, 1, 7),
        ("space", 15, 2, 15),
        ("tree", 13, 2, 112),
        ("wall:1,2,2,3", 8, 1, 22),
        ("hierarchy:3,5", 15, 1, 300),
        ("threshold:2", 7, 3, 21),
        ("k-singleton", 6, 3, 3),
        ("k-majority", 7, 3, 21),
        ("cohorts:2,3", 5, 2, 9),
        ("weighted:2,1,1,1", 4, 1, 4),
        ("expr:any(0,all(1,2))", 3, 1, 2),
    ] {
        assert_eq!(report(family, nodes, units)["quorums"], quorums, "{family}");
    }
}

#[test]
fn very_large_counts_are_strings_of_digits() {
    let report = report("uniform", 1000, 2);
    let count = report["quorums"].as_str().expect("too large for a number");
    assert!(count.len() > 200 && count.bytes().all(|digit| digit.is_ascii_digit()));
    assert_eq!(report["sizes"]["667"], report["quorums"]);
    assert_eq!(report["survives"], 333);
}

#[test]
fn check_gives_a_counterexample_for_every_no() {
    let file =
        File::new("no.json", r#"{"nodes": 5, "quorums": [[0,1,2],[2,3,4],[0,3],[0,1,2,3]]}"#);
    let args = ["quorum", "check", file.path(), "--units", "2", "--json"];
    assert_eq!(quorate(&args).status.code(), Some(1), "not a 2-arbiter");
    let found = object(&args);
    assert_eq!(found["intersecting"], false);
    assert_eq!(found["minimal"], false);
    assert_eq!(found["arbiter"], false);
    assert_eq!(found["coterie"], false);
    assert_eq!(found["k_coterie"], false);
    let shown = &found["counterexamples"];
    let apart: Vec<Vec<u64>> =
        serde_json::from_value(shown["intersecting"].clone()).expect("a list of quorums");
    assert_eq!(apart.len(), 3);
    assert!((0..5).all(|node| apart.iter().any(|quorum| !quorum.contains(&node))));
    assert_eq!(shown["minimal"], serde_json::json!([[0, 3], [0, 1, 2, 3]]));
    assert_eq!(shown["k_coterie"]["condition"], "non-intersection");
}

#[test]
fn check_passes_good_families_and_knows_three_kinds() {
    let majority = File::new("maj.json", r#"{"nodes": 3, "quorums": [[0,1],[1,2],[0,2]]}"#);
    let code = |file: &File, units: &str, kind: &str| {
        quorate(&["quorum", "check", file.path(), "--units", units, "--as", kind]).status.code()
    };
    assert_eq!(code(&majority, "1", "arbiter"), Some(0));
    assert_eq!(code(&majority, "2", "arbiter"), Some(1));
    assert_eq!(code(&majority, "2", "coterie"), Some(0));
    let singles = File::new("single.json", r#"{"nodes": 2, "quorums": [[0],[1]]}"#);
    assert_eq!(code(&singles, "2", "k-coterie"), Some(0));
    assert_eq!(code(&singles, "2", "arbiter"), Some(1));
    let report = object(&[
        "quorum",
        "report",
        "--family",
        &format!("file:{}", majority.path()),
        "--units",
        "1",
        "--json",
    ]);
    assert_eq!(report["arbiter"], true);
}

#[test]
fn an_empty_quorum_is_judged_not_refused() {
    let file = File::new("empty.json", r#"{"nodes": 1, "quorums": [[],[0]]}"#);
    let found = object(&["quorum", "check", file.path(), "--units", "1", "--json"]);
    assert_eq!(found["intersecting"], false);
    assert_eq!(found["largest_k"], -1);
    assert_eq!(found["k_coterie"], false);
    assert_eq!(found["arbiter"], false);
}

#[test]
fn bad_input_is_one_clear_line_and_exit_code_two() {
    let broken = File::new("broken.json", r#"{"nodes": 2, "quorums": [[0,5]]}"#);
    let text = File::new("text.json", "not json");
    for (args, part) in [
        (
            vec!["report", "--family", "nonsense", "--nodes", "5", "--units", "1"],
            "no family is called",
        ),
        (vec!["report", "--family", "plane", "--nodes", "8", "--units", "1"], "7, 13, 21"),
        (
            vec!["report", "--family", "plane:127", "--units", "1"],
            "order 127 makes 16257 nodes, and at most 12000 fit; the largest order is 109",
        ),
        (vec!["report", "--family", "plane:6", "--units", "1"], "nearest orders are 5 and 7"),
        (vec!["report", "--family", "file", "--units", "1"], "expr, and file:PATH"),
        (
            vec!["report", "--family", "expr:choose(5,0,1)", "--units", "1"],
            "quorate-lab: in the expression: cannot need 5 of 2: it must be from 1 to 2\n",
        ),
        (vec!["report", "--family", "uniform", "--units", "1"], "how many nodes"),
        (vec!["report", "--family", "uniform", "--nodes", "5", "--units", "0"], "0"),
        (
            vec!["report", "--family", "uniform", "--nodes", "5", "--units", "1", "--up", "2"],
            "probability",
        ),
        (vec!["report", "--family", "wall:3,x", "--nodes", "5", "--units", "1"], "list of numbers"),
        (vec!["report", "--family", "expr:any(0,", "--units", "1"], "expected"),
        (
            vec!["report", "--family", "hierarchy:3,3", "--nodes", "8", "--units", "1"],
            "9 nodes, not 8",
        ),
        (vec!["check", "/nowhere/at/all", "--units", "1"], "cannot read"),
        (vec!["check", broken.path(), "--units", "1"], "names node 5"),
        (vec!["check", text.path(), "--units", "1"], "is not {"),
        (vec!["plan", "--nodes", "5", "--units", "2", "--claims", "3:1"], "from 1 to 2"),
    ] {
        let args: Vec<&str> = ["quorum"].into_iter().chain(args).collect();
        let (code, out, err) = words(&args);
        assert_eq!(code, Some(2), "{args:?} {err}");
        assert_eq!(out, "", "{args:?}");
        assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
        assert!(err.starts_with("quorate-lab: ") && err.contains(part), "{args:?}: {err}");
    }
}

#[test]
fn plan_names_a_family_its_runners_up_and_what_would_change_the_answer() {
    let found = object(&["quorum", "plan", "--nodes", "9", "--units", "2", "--json"]);
    assert_eq!(found["choice"]["family"], "uniform");
    assert_eq!(found["choice"]["voters"], 7, "extra voters only hurt");
    assert!(found["runners_up"].as_array().expect("a list").len() >= 3);
    assert!(!found["advice"].as_array().expect("a list").is_empty());
}

#[test]
fn plan_says_when_no_family_can_do_it_and_what_to_do_instead() {
    let args = ["quorum", "plan", "--nodes", "9", "--units", "8", "--survive", "2"];
    let (code, out, _) = words(&args);
    assert_eq!(code, Some(1));
    assert!(out.contains("no family can survive 2 crashes"), "{out}");
    assert!(out.contains("19 nodes"), "{out}");
    assert!(out.contains("ticket"), "{out}");
}

#[test]
fn plan_knows_that_large_claims_conflict_in_small_groups() {
    let args = ["quorum", "plan", "--nodes", "9", "--units", "8", "--claims", "4:1", "--json"];
    let found = object(&args);
    assert_eq!(found["effective_units"], 2);
    assert_eq!(found["survives_max"], 2);
}

#[test]
fn plan_prefers_the_shortest_wait_when_delays_are_given() {
    let rows: Vec<String> = (0..5usize)
        .map(|i| (0..5).map(|j| (i.abs_diff(j) * 10).to_string()).collect::<Vec<_>>().join(" "))
        .collect();
    let file = File::new("delays.txt", &rows.join("\n"));
    let args =
        ["quorum", "plan", "--nodes", "5", "--units", "1", "--delays", file.path(), "--json"];
    let found = object(&args);
    let wait = |candidate: &Value| candidate["latency"].as_f64().expect("a latency");
    let best = wait(&found["choice"]);
    assert!(best > 0.0);
    let survivors = found["runners_up"].as_array().expect("a list").iter();
    let similar = survivors.filter(|c| c["reason"].as_str().expect("why").starts_with("as safe"));
    assert!(similar.into_iter().all(|candidate| wait(candidate) >= best));
}

#[test]
fn compare_prints_a_table_and_draws() {
    let picture = File::new("compare.svg", "");
    let args = ["quorum", "compare", "--nodes", "9", "--units", "1", "--svg", picture.path()];
    let (code, out, err) = words(&args);
    assert_eq!(code, Some(0), "{err}");
    for name in ["uniform", "hierarchy", "wall", "grid", "singleton"] {
        assert!(out.lines().any(|line| line.starts_with(name)), "{name} in {out}");
    }
    let svg = std::fs::read_to_string(picture.path()).expect("a picture");
    assert!(svg.starts_with("<svg") && svg.contains("hierarchy"));
}

#[test]
fn show_draws_every_kind_of_family() {
    for (family, nodes, units) in [
        ("grid", "9", "1"),
        ("cube", "27", "2"),
        ("cube", "17", "2"),
        ("plane", "7", "1"),
        ("tree", "13", "2"),
        ("wall", "10", "1"),
        ("cohorts", "9", "2"),
        ("hierarchy:3,3", "9", "1"),
        ("uniform", "7", "2"),
        ("space", "15", "2"),
        ("cube", "16", "3"),
    ] {
        let args = ["quorum", "show", "--family", family, "--nodes", nodes, "--units", units];
        let (code, out, err) = words(&args);
        assert_eq!(code, Some(0), "{family}: {err}");
        assert!(out.starts_with("<svg") && out.trim_end().ends_with("</svg>"), "{family}");
        assert!(out.matches("<circle").count() >= nodes.parse().expect("a number"), "{family}");
    }
}

#[test]
fn too_large_is_said_with_a_bound_instead_of_hanging() {
    let found = object(&[
        "quorum",
        "report",
        "--family",
        "space:3,5",
        "--units",
        "2",
        "--json",
        "--effort",
        "1000",
    ]);
    let undecided = found["bounds"]["undecided"].as_array().expect("a list");
    assert!(undecided.contains(&Value::from("dominated")), "{undecided:?}");
    assert_eq!(found["dominated"], Value::Null);
    assert_eq!(found["survives"], 5, "known in closed form");
    let bounds = &found["bounds"]["availability"];
    assert!(bounds["low"].as_f64() <= bounds["high"].as_f64());
}

/// Files of reference values that are not ours: of any size, with sections and fields left out, and
/// with values that are wrong.
#[test]
fn reference_values_are_ok_or_differ_and_say_where() {
    let chain = r#"{"id": "chain", "units": ["a", "b"], "alpha": {"u": ["a"], "v": ["a", "b"]},
        "constructions": {"paper_product": {"arbiters": ARBITERS, "C_plus": null}}}"#;
    // A star of twelve groups: its product has more quorums than 64 bits count.
    let units: Vec<String> = (0..13).map(|unit| format!("\"r{unit}\"")).collect();
    let alpha = (1..13).map(|unit| format!("\"u{unit}\": [\"r0\", \"r{unit}\"]"));
    let alpha: Vec<String> = alpha.collect();
    let star = format!(
        r#"{{"id": "star", "units": [{}], "alpha": {{{}}}, "cmax": 4, "constructions":
        {{"paper_product": {{"quorum_count": {{"G1": 1{}}}}}}}}}"#,
        units.join(","),
        alpha.join(","),
        "0".repeat(400)
    );
    let file = |arbiters: &str| {
        let chain = chain.replace("ARBITERS", arbiters);
        File::new(&format!("values-{arbiters}"), &format!(r#"{{"structures": [{chain}, {star}]}}"#))
    };
    let good = file("5");
    let (code, out, _) = words(&["quorum", "sharing", "--vectors", good.path()]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((code, lines[0]), (Some(1), "ok structures/chain"), "{out}");
    let number = "DIFFERENT structures/star: constructions.paper_product.quorum_count.G1: ";
    assert!(lines[1].starts_with(number), "{out}");
    let bad = file("6");
    let (code, out, _) = words(&["quorum", "sharing", "--vectors", bad.path()]);
    let arbiters =
        "DIFFERENT structures/chain: constructions.paper_product.arbiters: 5 instead of 6";
    assert_eq!((code, out.lines().next()), (Some(1), Some(arbiters)));
    let (code, out, err) = words(&["sim", "labels", "--vectors", good.path()]);
    assert_eq!((code, &*out), (Some(2), ""), "{err}");
    assert_eq!(err, "quorate-lab: the file holds no reference values of this kind\n");
}
