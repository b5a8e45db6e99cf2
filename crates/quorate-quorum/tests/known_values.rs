//! Every row of the reference values, question by question. The values were computed by brute force
//! by another program; `testdata/quorums.json` describes its fields.

use quorate_core::NodeSet;
use quorate_quorum::{
    Answers, Domination, Effort, Explicit, Natural, Reach, Rule, build, compose, is_witness,
    k_coterie, requests,
};
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = format!("{}/testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the test data is there");
    serde_json::from_str(&text).expect("the test data is JSON")
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("a small number")
}

fn list(value: &Value) -> Vec<u32> {
    value.as_array().expect("a list").iter().map(|v| number(v) as u32).collect()
}

/// The name of a row's structure in our catalogue; `None` for families given by their quorums only.
fn spec(row: &Value) -> Option<String> {
    let (params, nodes) = (&row["params"], number(&row["n"]));
    let numbers = |value: &Value| {
        let texts: Vec<String> = list(value).iter().map(u32::to_string).collect();
        texts.join(",")
    };
    Some(match row["structure"].as_str().expect("a name") {
        "projective_plane" | "fano_as_2_arbiter" => "plane".to_owned(),
        "majority_as_2_arbiter" => "majority".to_owned(),
        "box" => format!("cube:{}", numbers(&params["dims"])),
        "cube_general_raw" => "cube-as-printed".to_owned(),
        "cube_general_minimalised" => "cube".to_owned(),
        "projective_space" => "space".to_owned(),
        "hierarchical_uniform" => format!("hierarchy:{},{}", params["outer"], params["inner"]),
        "wall" => format!("wall:{}", numbers(&params["rows"])),
        "wheel" => format!("wall:1,{}", nodes - 1),
        "k_majority_coterie" => "k-majority".to_owned(),
        "or_product" | "paper_example_D" => return None,
        name => name.to_owned(),
    })
}

/// Our construction of a row, or the row's own quorums.
fn family(row: &Value) -> Box<dyn Rule> {
    let (nodes, units) = (number(&row["n"]), number(&row["k"]));
    match spec(row) {
        Some(spec) => build(&spec, Some(nodes), units).expect("the catalogue has it").rule,
        None => Box::new(given(row).expect("the row has its quorums")),
    }
}

fn given(row: &Value) -> Option<Explicit> {
    let lists: Vec<Vec<u32>> = row["family"].as_array()?.iter().map(list).collect();
    Some(Explicit::from_lists(number(&row["n"]), &lists).expect("a proper family"))
}

fn rows() -> Vec<Value> {
    vectors("quorums.json")["rows"].as_array().expect("rows").clone()
}

fn label(row: &Value) -> String {
    format!("{} {} n={} k={}", row["structure"], row["params"], row["n"], row["k"])
}

#[test]
fn constructions_give_the_quorums_of_the_reference() {
    for row in rows() {
        let Some(expected) = given(&row) else { continue };
        let mut expected = expected.quorums().to_vec();
        let mut built = family(&row).enumerate(1_000_000).expect("few enough");
        expected.sort();
        built.sort();
        assert_eq!(built, expected, "{}", label(&row));
    }
}

#[test]
fn counts_and_sizes() {
    for row in rows() {
        let sizes = family(&row).sizes().expect("sizes are known");
        let expected = row["sizes"].as_object().expect("sizes");
        assert_eq!(sizes.len(), expected.len(), "{}", label(&row));
        for (size, count) in expected {
            let size: usize = size.parse().expect("a size");
            assert_eq!(sizes[&size], Natural::from(number(count)), "{}", label(&row));
        }
        let total = sizes.values().fold(Natural::zero(), |sum, count| sum.plus(count));
        assert_eq!(total, Natural::from(number(&row["quorums"])), "{}", label(&row));
    }
}

#[test]
fn intersection_and_minimality() {
    for row in rows() {
        let (rule, units) = (family(&row), number(&row["k"]));
        let answers = Answers::of(rule.as_ref());
        let mut effort = Effort::default();
        let reach = answers.reach(&mut effort).expect("small enough");
        let expected = row["largest_k"].as_i64().map_or(Reach::Every, Reach::UpTo);
        assert_eq!(reach, expected, "{}", label(&row));
        let meets = answers.intersecting(units, &mut effort).expect("small enough");
        assert_eq!(Some(meets), row["intersecting_k_plus_1"].as_bool(), "{}", label(&row));
        assert_eq!(answers.is_minimal(), row["minimal"].as_bool(), "{}", label(&row));
        let arbiter = meets && answers.is_minimal() == Some(true);
        assert_eq!(Some(arbiter), row["is_k_arbiter"].as_bool(), "{}", label(&row));
    }
}

#[test]
fn domination_with_witness() {
    for row in rows() {
        let (rule, units) = (family(&row), number(&row["k"]));
        let answers = Answers::of(rule.as_ref());
        let decided = answers.domination(units, &mut Effort::default()).expect("small enough");
        let found = decided.as_ref().map(|decided| *decided == Domination::Nondominated);
        assert_eq!(found, row["nondominated"].as_bool(), "{}", label(&row));
        let minimal = answers.minimal().expect("few enough");
        let reference =
            row.get("dominating_witness").map(|nodes| list(nodes).into_iter().collect::<NodeSet>());
        let ours = decided.as_ref().and_then(Domination::witness).cloned();
        for witness in reference.into_iter().chain(ours) {
            let holds = is_witness(minimal, units, &witness, &mut Effort::default());
            assert_eq!(holds, Ok(true), "{} {witness}", label(&row));
        }
    }
}

#[test]
fn symmetry_and_resiliency() {
    for row in rows() {
        let rule = family(&row);
        let answers = Answers::of(rule.as_ref());
        let symmetric = answers.symmetric().expect("few enough");
        let found = symmetric.map(|s| (s.effort, s.size));
        let expected = row["symmetric"].as_object().map(|symmetric| {
            (Natural::from(number(&symmetric["beta"])), number(&symmetric["gamma"]))
        });
        assert_eq!(found, expected, "{}", label(&row));
        let ratio = answers.resiliency().expect("few enough").to_string();
        assert_eq!(Some(ratio.as_str()), row["R"].as_str(), "{}", label(&row));
    }
}

#[test]
fn crashes_survived() {
    for row in rows() {
        let rule = family(&row);
        let survives = Answers::of(rule.as_ref()).survives(&mut Effort::default());
        assert_eq!(survives.known(), Some(number(&row["failures_tolerated"])), "{}", label(&row));
    }
}

#[test]
fn availability() {
    for row in rows() {
        let rule = family(&row);
        let answers = Answers::of(rule.as_ref());
        for (field, up) in [("availability_0.9", 0.9), ("availability_0.99", 0.99)] {
            let Some(expected) = row.get(field).and_then(Value::as_f64) else { continue };
            let found = answers.availability(&vec![up; rule.nodes()], &mut Effort::default());
            // The reference itself is a sample in some rows, and says how good.
            let sampled =
                row["availability_method"].as_str().is_some_and(|m| m.starts_with("monte"));
            let slack = if sampled { 3e-3 } else { 1e-10 };
            assert!(found.low - slack <= expected, "{} {found:?} {expected}", label(&row));
            assert!(expected <= found.high + slack, "{} {found:?} {expected}", label(&row));
            assert!(found.high - found.low < 0.02, "{} {found:?}", label(&row));
        }
    }
}

#[test]
fn survivors() {
    for row in rows() {
        let Some(expected) = row["survivors"].as_array() else { continue };
        let expected: Vec<u64> = expected.iter().map(|v| v.as_u64().expect("a count")).collect();
        let rule = family(&row);
        let answers = Answers::of(rule.as_ref());
        let minimal = answers.minimal().expect("few enough");
        assert_eq!(quorate_quorum::Table::new(minimal).survivors(), expected, "{}", label(&row));
        let diagram = quorate_quorum::frontier::survivors(minimal, &mut Effort::default());
        let diagram: Vec<u64> =
            diagram.expect("small enough").into_iter().map(|count| count as u64).collect();
        assert_eq!(diagram, expected, "{}", label(&row));
    }
}

#[test]
fn load() {
    for row in rows() {
        let rule = family(&row);
        let answers = Answers::of(rule.as_ref());
        let smallest =
            rule.sizes().and_then(|sizes| sizes.keys().next().copied()).expect("a quorum");
        let load = answers.load(number(&row["k"]), smallest);
        let expected = row["load"].as_f64().expect("a load");
        assert!((load.low - expected).abs() < 1e-8, "{} {load:?} {expected}", label(&row));
        assert!((load.high - expected).abs() < 1e-8, "{} {load:?} {expected}", label(&row));
        // The closed form and the program agree.
        let program = quorate_quorum::load(answers.minimal().expect("few enough"));
        let program = program.expect("small enough");
        assert!(program.is_exact(), "{} {} {}", label(&row), program.low, program.high);
        assert!((program.high - expected).abs() < 1e-8, "{}", label(&row));
    }
}

#[test]
fn the_or_product_row_is_our_product_of_majorities() {
    let rows = rows();
    let row = rows.iter().find(|row| row["structure"] == "or_product").expect("it is there");
    let majority = build("majority", Some(3), 1).expect("a majority");
    let majority = Explicit::new(3, majority.rule.enumerate(10).expect("three")).expect("a family");
    let product = compose::or_product(&majority, &majority);
    let expected = given(row).expect("it has its quorums");
    assert_eq!(product.minimalised(), expected.minimalised());
}

#[test]
fn thresholds_by_request_size() {
    let vectors = vectors("quorums.json");
    for row in vectors["hk_uniform"].as_array().expect("rows") {
        let (nodes, units) = (number(&row["n"]), number(&row["k"]));
        for claim in 1..=units {
            let key = claim.to_string();
            let size = requests::quorum_size(nodes, units, claim);
            assert_eq!(size, number(&row["size_by_h"][&key]), "n={nodes} k={units} h={claim}");
            let naive = requests::naive_quorum_size(nodes, units, claim);
            assert_eq!(
                naive,
                number(&row["naive_size_by_h"][&key]),
                "n={nodes} k={units} h={claim}"
            );
        }
        let sizes = requests::quorum_sizes(nodes, units);
        let found = requests::unsafe_conflict(nodes, &sizes);
        // The reference did not decide the largest row; we do.
        assert_eq!(found, None, "n={nodes} k={units}");
        assert_ne!(row["safe"].as_bool(), Some(false));
        let naive: Vec<usize> =
            (1..=units).map(|claim| requests::naive_quorum_size(nodes, units, claim)).collect();
        let conflict = requests::unsafe_conflict(nodes, &naive);
        if let Some(safe) = row["naive_safe"].as_bool() {
            assert_eq!(conflict.is_none(), safe, "n={nodes} k={units}");
        }
        if let Some(conflict) = conflict {
            assert!(conflict.iter().sum::<usize>() > units);
            let left_out: usize = conflict.iter().map(|claim| nodes - naive[claim - 1]).sum();
            assert!(left_out >= nodes, "a counterexample is one");
        }
        if let Some(count) = row["minimal_conflicts"].as_u64() {
            assert_eq!(requests::minimal_conflicts(units).to_u64(), Some(count), "k={units}");
        }
    }
}

#[test]
fn k_coteries_good_and_bad() {
    for row in vectors("kcoteries.json")["kcoteries"].as_array().expect("rows") {
        let lists: Vec<Vec<u32>> =
            row["quorums"].as_array().expect("quorums").iter().map(list).collect();
        let nodes = lists.iter().flatten().max().map_or(1, |last| *last as usize + 1);
        let family = Explicit::from_lists(nodes, &lists).expect("a list");
        let found = k_coterie(&family, number(&row["k"]), &mut Effort::default()).expect("small");
        let id = &row["id"];
        assert_eq!(Some(found.stuck.is_none()), row["non_intersection"].as_bool(), "{id}");
        assert_eq!(Some(found.too_many.is_none()), row["intersection"].as_bool(), "{id}");
        assert_eq!(Some(found.inclusion.is_none()), row["minimality"].as_bool(), "{id}");
        assert_eq!(Some(found.holds()), row["is_k_coterie"].as_bool(), "{id}");
    }
}
