//! Reference values of sharing structures, k-coteries and quorum assignments.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use quorate_core::NodeSet;
use quorate_quorum::sharing::{
    Assignment, Construction, Demand, Structure, circuits, closed_sets, common_quorums_suffice,
    group_names, max_flow, most_holders, never_moving_suffices, never_moving_suffices_for_each,
    plan, reduced_family, smallest_violating, tight_sets,
};
use quorate_quorum::{Effort, Explicit, KCoterie, k_coterie};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::compare::{same, with_large_numbers_quoted};
use super::input::Ordered;
use super::report;
use crate::commands::vectors::Compared;

/// A file of reference values; other sections are for other readers.
#[derive(Deserialize)]
pub(crate) struct File {
    #[serde(default)]
    structures: Vec<Described>,
    #[serde(default)]
    kcoteries: Vec<Coterie>,
    #[serde(default)]
    assignments: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    id: String,
    units: Vec<String>,
    alpha: Ordered,
    #[serde(flatten)]
    expected: Map<String, Value>,
}

#[derive(Deserialize)]
struct Coterie {
    id: String,
    k: usize,
    quorums: Vec<Vec<u32>>,
    #[serde(flatten)]
    expected: Map<String, Value>,
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<File> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    serde_json::from_str(&with_large_numbers_quoted(&text)).with_context(|| shown.to_string())
}

/// Compares everything in it.
pub(crate) fn compare(file: &File, effort: u64) -> Vec<Compared> {
    let structures = file.structures.iter();
    let structures = structures.map(|s| Compared::new("structures", &s.id, structure(s, effort)));
    let coteries = file.kcoteries.iter();
    let coteries = coteries.map(|c| Compared::new("kcoteries", &c.id, coterie(c, effort)));
    structures.chain(coteries).chain(compare_assignments(file, effort)).collect()
}

/// Compares the quorum assignments only.
pub(crate) fn compare_assignments(file: &File, effort: u64) -> Vec<Compared> {
    let assignments = file.assignments.iter();
    assignments.map(|a| Compared::new("assignments", &a.id, assignment(a, effort))).collect()
}

fn built(described: &Described) -> Result<Structure, String> {
    let alpha = described.alpha.0.clone();
    Structure::new(described.units.clone(), alpha).map_err(|error| error.to_string())
}

fn structure(described: &Described, effort: u64) -> Result<(), String> {
    const EACH: &str = "pinned_hall_complete_possible_unit_demand";
    let (structure, expected) = (built(described)?, &described.expected);
    let budget = &mut Effort::new(effort);
    let circuits = circuits(&structure, budget).map_err(|error| format!("circuits: {error}"))?;
    let sets = |family: Vec<u32>| family.into_iter().map(group_names).collect::<Vec<_>>();
    let mut ours = report::basics(&structure, &circuits);
    ours["families"] = json!({
        "all": structure.everyone(),
        "closed": sets(closed_sets(&structure)),
        "tight": sets(tight_sets(&structure)),
        "circuit": sets(reduced_family(&structure, &circuits)),
    });
    let mut constructions = Map::new();
    for construction in Construction::ALL {
        let plan = plan(&structure, construction, &circuits);
        let name = report::vector_name(construction).to_owned();
        // Where they searched we do; the rest are theorems, and structures too large to search.
        let theirs = expected.get("constructions").and_then(|all| all.get(&name)?.get("C_plus"));
        budget.renew();
        if theirs.is_some_and(|theirs| !theirs.is_null())
            && let Some(found) = report::search(&structure, &plan, budget)
            && found.verdicts() != plan.verdicts
        {
            return Err(format!(
                "{name}: a search finds {:?}, the theorem says {:?}",
                found.verdicts(),
                plan.verdicts
            ));
        }
        constructions.insert(name, report::plan_json(&plan));
    }
    ours["constructions"] = Value::Object(constructions);
    // A game that is long for larger structures, and that they may have left open.
    if expected.get(EACH).is_some_and(|theirs| !theirs.is_null()) {
        budget.renew();
        let each = never_moving_suffices_for_each(&structure, budget).map_err(|e| e.to_string())?;
        ours[EACH] = json!(each);
    }
    let reduced = plan(&structure, Construction::Reduced, &circuits);
    ours["min_arbiters_condition_C"] = json!(structure.k(structure.everyone()));
    ours["min_arbiters_C_plus"] = json!(reduced.arbiters);
    ours["pinned_hall_complete_possible"] = json!(never_moving_suffices(&structure));
    ours["common_quorum_set_possible_unit_demand"] = json!(common_quorums_suffice(&structure));
    same("", &Value::Object(expected.clone()), &ours).map_err(tidy)?;
    holders(&structure, expected)?;
    demands(&structure, expected)
}

/// `.groups: …` reads better without its dot.
fn tidy(difference: String) -> String {
    difference.strip_prefix('.').map_or(difference.clone(), str::to_owned)
}

fn process(structure: &Structure, name: &str) -> Result<usize, String> {
    let known = structure.processes().iter().position(|process| process == name);
    known.ok_or_else(|| format!("there is no process {name}"))
}

fn holders(structure: &Structure, expected: &Map<String, Value>) -> Result<(), String> {
    let Some(Value::Object(all)) = expected.get("max_holders_unit_demand") else { return Ok(()) };
    for (names, most) in all {
        let set = names.split('+').map(|name| process(structure, name));
        let set: Vec<usize> = set.collect::<Result<_, _>>()?;
        let ours = json!(most_holders(structure, &set));
        same(&format!("max_holders_unit_demand.{names}"), most, &ours)?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct HCase {
    demands: Vec<(String, u32)>,
    max_flow: u32,
    feasible: bool,
    smallest_violating_set: Option<Vec<String>>,
}

fn demands(structure: &Structure, expected: &Map<String, Value>) -> Result<(), String> {
    let Some(cases) = expected.get("h_cases") else { return Ok(()) };
    let cases = Vec::<HCase>::deserialize(cases).map_err(|error| format!("h_cases: {error}"))?;
    for (index, case) in cases.iter().enumerate() {
        let demand = |(name, units): &(String, u32)| {
            process(structure, name).map(|p| Demand { alpha: structure.alpha(p), units: *units })
        };
        let demands: Vec<Demand> = case.demands.iter().map(demand).collect::<Result<_, _>>()?;
        let flow = max_flow(&demands);
        let feasible = flow == demands.iter().map(|demand| demand.units).sum::<u32>();
        if (flow, feasible) != (case.max_flow, case.feasible) {
            return Err(format!("h_cases {index}: a flow of {flow}, feasible {feasible}"));
        }
        let ours = smallest_violating(&demands);
        if !agree(case, &demands, ours.as_deref()) {
            return Err(format!("h_cases {index}: smallest violating set {ours:?}"));
        }
    }
    Ok(())
}

/// There may be several smallest sets: theirs must violate, and be as small as ours.
fn agree(case: &HCase, demands: &[Demand], ours: Option<&[usize]>) -> bool {
    let (Some(theirs), Some(ours)) = (&case.smallest_violating_set, ours) else {
        return case.smallest_violating_set.is_none() && ours.is_none();
    };
    let mut left: Vec<usize> = (0..demands.len()).collect();
    left.sort_by_key(|index| std::cmp::Reverse(demands[*index].units));
    let mut asked = 0;
    let mut union = 0;
    for name in theirs {
        let Some(at) = left.iter().position(|index| case.demands[*index].0 == *name) else {
            return false;
        };
        let demand = demands[left.remove(at)];
        asked += demand.units;
        union |= demand.alpha;
    }
    theirs.len() == ours.len() && asked > union.count_ones()
}

fn coterie(coterie: &Coterie, effort: u64) -> Result<(), String> {
    let nodes = coterie.quorums.iter().flatten().max().map_or(1, |last| *last as usize + 1);
    let family = Explicit::from_lists(nodes, &coterie.quorums).map_err(|e| e.to_string())?;
    let found = k_coterie(&family, coterie.k, &mut Effort::new(effort));
    let found = found.map_err(|error| error.to_string())?;
    let KCoterie { stuck, too_many, inclusion, .. } = &found;
    let ours = json!({
        "non_intersection": stuck.is_none(),
        "intersection": too_many.is_none(),
        "minimality": inclusion.is_none(),
        "is_k_coterie": found.holds(),
    });
    same("", &Value::Object(coterie.expected.clone()), &ours).map_err(tidy)
}

fn assignment(described: &Described, effort: u64) -> Result<(), String> {
    let structure = built(described)?;
    let given = described.expected.get("quorums").ok_or("no quorums")?;
    let given = BTreeMap::<String, Vec<Vec<u32>>>::deserialize(given).map_err(|e| e.to_string())?;
    let mut quorums: Vec<Vec<NodeSet>> = Vec::new();
    for name in group_names(structure.everyone()) {
        let lists = given.get(&name).ok_or_else(|| format!("no quorums for {name}"))?;
        quorums.push(lists.iter().map(|list| list.iter().copied().collect()).collect());
    }
    let assignment = Assignment::new(&structure, quorums).map_err(|error| error.to_string())?;
    let found = assignment.examine(&structure, &mut Effort::new(effort));
    let found = found.map_err(|error| error.to_string())?;
    let verdicts = found.verdicts();
    let failing: Vec<_> = found.failing.iter().map(|f| group_names(f.groups)).collect();
    let ours = json!({
        "condition_C": verdicts.c,
        "condition_C_without_minimality": verdicts.c_minus,
        "failing_S": failing,
        "hall_safe": found.unsafe_locks.is_none(),
        "hall_complete": found.stuck.is_none(),
    });
    same("", &Value::Object(described.expected.clone()), &ours).map_err(tidy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../quorate-quorum/testdata/labels.json");
        let text = std::fs::read_to_string(path).expect("the vectors are part of the repository");
        serde_json::from_str(&text).expect("JSON")
    }

    fn differences(file: &Value) -> Vec<String> {
        let file: File = serde_json::from_str(&file.to_string()).expect("the format");
        let compared = compare(&file, Effort::DEFAULT / 40);
        compared.into_iter().filter_map(|entry| entry.difference).collect()
    }

    #[test]
    fn we_find_what_brute_force_found() {
        assert_eq!(differences(&recorded()), [""; 0]);
    }

    /// A comparison that compared nothing would pass the test above.
    #[test]
    fn a_changed_value_anywhere_is_a_difference() {
        let good = recorded();
        let structure = good["structures"].as_array().expect("a list");
        let at = structure.iter().position(|s| s["id"] == "star1x3").expect("a structure");
        let changes: &[(&str, Value)] = &[
            ("/groups/0/members/0", json!("u9")),
            ("/unit_classes/0/units/0", json!("r9")),
            ("/components/0", json!(["G1"])),
            ("/class/laminar", json!(true)),
            ("/k_of_S/3/k", json!(9)),
            ("/circuits/0/size", json!(9)),
            ("/cmax", json!(9)),
            ("/families/closed/1/0", json!("G3")),
            ("/families/circuit/0/0", json!("G9")),
            ("/constructions/paper_product/arbiters", json!(18)),
            ("/constructions/circuit_product/quorum_count/G1", json!(17)),
            ("/constructions/circuit_product/condition_C", json!(false)),
            ("/constructions/circuit_product/block_k/0", json!(9)),
            ("/constructions/named_sum/C_plus", json!(true)),
            ("/min_arbiters_condition_C", json!(3)),
            ("/pinned_hall_complete_possible", json!(true)),
            ("/pinned_hall_complete_possible_unit_demand", json!(false)),
            ("/common_quorum_set_possible_unit_demand", json!(false)),
            ("/max_holders_unit_demand/u1+u2", json!(1)),
            ("/h_cases/0/max_flow", json!(99)),
        ];
        for (place, value) in changes {
            let mut changed = json!({ "structures": [structure[at].clone()] });
            let place = format!("/structures/0{place}");
            *changed.pointer_mut(&place).unwrap_or_else(|| panic!("no {place}")) = value.clone();
            assert_eq!(differences(&changed).len(), 1, "{place}");
        }
    }
}
