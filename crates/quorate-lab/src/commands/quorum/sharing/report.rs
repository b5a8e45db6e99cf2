//! What is found out about a structure, in words and as JSON.

use std::fmt::Write as _;

use quorate_quorum::sharing::{
    Blueprint, Circuit, Construction, Examined, Structure, circuits, common_quorums_suffice,
    group_names, most_holders, never_moving_suffices, plan,
};
use quorate_quorum::{Effort, Natural, TooLarge};
use serde_json::{Map, Value, json};

use super::super::json::{count_of, members};
use super::super::words::{many, short};

/// Groups with more quorums than this are not searched.
const QUORUMS_MAX: u64 = 4000;
/// More quorums than this are not printed.
const SHOWN_MAX: u64 = 12;
/// More lines than this are cut short.
const LINES_MAX: usize = 24;

/// What was found.
pub(super) struct Found<'a> {
    structure: &'a Structure,
    circuits: Vec<Circuit>,
    /// Each construction with what a search says, if it was small enough.
    plans: Vec<(Blueprint, Option<Examined>)>,
    chosen: Option<Construction>,
    among: Vec<usize>,
}

impl<'a> Found<'a> {
    pub(super) fn new(
        structure: &'a Structure,
        chosen: Option<Construction>,
        among: Vec<usize>,
        effort: &mut Effort<'_>,
    ) -> Result<Self, TooLarge> {
        let circuits = circuits(structure, effort)?;
        let mut plans = Vec::new();
        for construction in Construction::ALL {
            let plan = plan(structure, construction, &circuits);
            effort.renew();
            let searched = search(structure, &plan, effort);
            plans.push((plan, searched));
        }
        let everyone = (0..structure.processes().len()).collect();
        let among = if among.is_empty() { everyone } else { among };
        Ok(Found { structure, circuits, plans, chosen, among })
    }

    fn most_holders(&self) -> u32 {
        most_holders(self.structure, &self.among)
    }

    pub(super) fn json(&self) -> Value {
        let mut json = basics(self.structure, &self.circuits);
        let plans = self.plans.iter().filter(|(plan, _)| self.shows(plan));
        let plans: Map<String, Value> = plans
            .map(|(plan, searched)| {
                let mut shown = plan_json(plan);
                shown["searched"] = json!(searched.is_some());
                if self.chosen.is_some() {
                    shown["quorums"] = json!(self.quorums(plan));
                    shown["counterexamples"] = json!(searched.as_ref().map(counterexamples));
                }
                (name(plan.construction).to_owned(), shown)
            })
            .collect();
        json["constructions"] = Value::Object(plans);
        let among = self.among.iter().map(|process| &self.structure.processes()[*process]);
        json["most_holders"] = json!({
            "among": among.collect::<Vec<_>>(), "most": self.most_holders(),
        });
        json["never_moving_suffices"] = json!(never_moving_suffices(self.structure));
        json["common_quorums_suffice"] = json!(common_quorums_suffice(self.structure));
        json
    }

    fn shows(&self, plan: &Blueprint) -> bool {
        self.chosen.is_none_or(|chosen| chosen == plan.construction)
    }

    fn quorums(&self, plan: &Blueprint) -> Option<Map<String, Value>> {
        let assignment = plan.quorums(self.structure, SHOWN_MAX).ok()?;
        let shown = assignment.quorums().enumerate().map(|(group, list)| {
            let list: Vec<_> = list.iter().map(members).collect();
            (format!("G{}", group + 1), json!(list))
        });
        Some(shown.collect())
    }

    pub(super) fn text(&self) -> String {
        let mut text = self.heading();
        self.groups(&mut text);
        self.sets(&mut text);
        self.circuit_lines(&mut text);
        self.holders(&mut text);
        match self.chosen {
            None => self.comparison(&mut text),
            Some(_) => self.construction(&mut text),
        }
        text
    }

    fn heading(&self) -> String {
        let structure = self.structure;
        format!(
            "{}, {}, {}\n",
            many(structure.units().len(), "unit", "units"),
            many(structure.processes().len(), "process", "processes"),
            many(structure.groups().len(), "group", "groups"),
        )
    }

    fn groups(&self, text: &mut String) {
        for (index, group) in self.structure.groups().iter().enumerate() {
            let units = unit_names(self.structure, group.alpha).join(" ");
            let who: Vec<&str> =
                group.members.iter().map(|m| self.structure.processes()[*m].as_str()).collect();
            let _ = writeln!(text, "  G{:<3} may use {units}: {}", index + 1, who.join(" "));
        }
        let kinds = kinds(self.structure);
        if !kinds.is_empty() {
            let _ = writeln!(text, "  {}", kinds.join(", "));
        }
        let parts = self.structure.components();
        if parts.len() > 1 {
            let parts: Vec<String> = parts.into_iter().map(set_name).collect();
            let _ = writeln!(text, "  independent parts: {}", parts.join(" | "));
        }
    }

    fn sets(&self, text: &mut String) {
        text.push_str("units that sets of groups may use, k(S)\n");
        let all: Vec<u32> = self.structure.group_sets().collect();
        for s in all.iter().take(LINES_MAX) {
            let _ = writeln!(text, "  {:>3}  {}", self.structure.k(*s), set_name(*s));
        }
        cut(text, all.len(), "sets");
    }

    fn circuit_lines(&self, text: &mut String) {
        let largest = self.circuits.iter().map(|circuit| circuit.size).max().unwrap_or(0);
        text.push_str("circuits, the smallest counts that cannot be served\n");
        for circuit in self.circuits.iter().take(LINES_MAX) {
            let _ = writeln!(text, "  {}", counts_name(circuit));
        }
        cut(text, self.circuits.len(), "circuits");
        let _ = writeln!(
            text,
            "  the largest has {largest}: counting arbiters are safe iff any {largest} quorums meet"
        );
    }

    fn holders(&self, text: &mut String) {
        let most = self.most_holders();
        let _ = writeln!(text, "most holders of one unit each: {most} of {}", self.among.len());
        let moving = if never_moving_suffices(self.structure) {
            "nobody ever has to move"
        } else {
            "some requests that counts admit are served only by moving a holder"
        };
        let _ = writeln!(text, "named units: {moving}");
    }

    fn comparison(&self, text: &mut String) {
        let head = [
            "construction",
            "blocks",
            "arbiters",
            "quorum",
            "quorums of a group",
            "C",
            "C-",
            "C+",
            "",
        ];
        let mut rows: Vec<[String; 9]> = vec![head.map(str::to_owned)];
        for (plan, searched) in &self.plans {
            let sizes = &plan.quorum_size;
            let (least, most) = (number(sizes.iter().min()), number(sizes.iter().max()));
            let mut counts: Vec<_> = plan.quorum_count.iter().collect();
            counts.sort_unstable();
            let shown =
                |count: Option<&&Natural>| count.map_or(String::new(), |count| short(count));
            rows.push([
                name(plan.construction).to_owned(),
                plan.block_count().to_string(),
                plan.arbiters.to_string(),
                range(least, most),
                range(shown(counts.first()), shown(counts.last())),
                yes(plan.verdicts.c).to_owned(),
                yes(plan.verdicts.c_minus).to_owned(),
                yes(plan.verdicts.c_plus).to_owned(),
                if searched.is_some() { "searched" } else { "by theorem" }.to_owned(),
            ]);
        }
        for row in &rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
                // Numbers are on the right of their columns, words on the left.
                let _ = match column {
                    1..5 => write!(line, "{cell:>width$}  "),
                    _ => write!(line, "{cell:<width$}  "),
                };
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }

    fn construction(&self, text: &mut String) {
        for (plan, searched) in self.plans.iter().filter(|(plan, _)| self.shows(plan)) {
            let _ = writeln!(
                text,
                "{}: {} blocks, {} arbiters",
                name(plan.construction),
                plan.block_count(),
                plan.arbiters
            );
            let blocks = plan.blocks.iter().flat_map(|b| b.family.iter().zip(&b.sizes));
            let blocks: Vec<_> = blocks.collect();
            for (set, size) in blocks.iter().take(LINES_MAX) {
                let _ = writeln!(
                    text,
                    "  block {}: {}",
                    set_name(**set),
                    many(**size as usize, "arbiter", "arbiters")
                );
            }
            cut(text, blocks.len(), "blocks");
            for (index, (size, count)) in
                plan.quorum_size.iter().zip(&plan.quorum_count).enumerate()
            {
                let _ = writeln!(text, "  G{}: {} quorums of {size}", index + 1, short(count));
            }
            for (group, list) in self.quorums(plan).into_iter().flatten() {
                let _ = writeln!(text, "  {group}: {list}");
            }
            let verdicts = plan.verdicts;
            let how = if searched.is_some() { "searched" } else { "by theorem" };
            let _ = writeln!(
                text,
                "  C {}, C- {}, C+ {} ({how})",
                yes(verdicts.c),
                yes(verdicts.c_minus),
                yes(verdicts.c_plus)
            );
            for line in searched.iter().flat_map(counterexamples) {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
}

/// For each condition that fails why it does.
fn counterexamples(found: &Examined) -> Vec<String> {
    let mut lines = Vec::new();
    for failing in found.failing.iter().take(1) {
        let set = set_name(failing.groups);
        let why = match (&failing.inclusion, &failing.stuck, &failing.too_many) {
            (Some((small, large)), _, _) => format!("quorum {small} lies inside {large}"),
            (None, Some(stuck), _) => format!("{stuck:?} leave no room for another"),
            (None, None, Some(many)) => format!("{many:?} are too many disjoint quorums"),
            (None, None, None) => "a quorum is empty".into(),
        };
        lines.push(format!("not C: {set}: {why}"));
    }
    if let Some(locked) = &found.unsafe_locks {
        lines.push(format!("not C+: {} are locked, too many", locks(locked)));
    }
    if let Some(stuck) = &found.stuck {
        let (group, locked) = (stuck.group + 1, locks(&stuck.locked));
        lines.push(format!(
            "not C+: G{group} finds no quorum free beside {locked}, though the counts allow it"
        ));
    }
    lines
}

fn locks(locked: &[(usize, quorate_core::NodeSet)]) -> String {
    let one = |(group, set): &(usize, quorate_core::NodeSet)| format!("{set} by G{}", group + 1);
    locked.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Looks through all families of disjoint quorums, if they are few enough.
pub(super) fn search(
    structure: &Structure,
    plan: &Blueprint,
    effort: &mut Effort<'_>,
) -> Option<Examined> {
    plan.quorums(structure, QUORUMS_MAX).ok()?.examine(structure, effort).ok()
}

/// Groups, classes, k(S) and circuits.
pub(super) fn basics(structure: &Structure, circuits: &[Circuit]) -> Value {
    let groups = structure.groups().iter().enumerate().map(|(index, group)| {
        let members = group.members.iter().map(|member| &structure.processes()[*member]);
        json!({
            "name": format!("G{}", index + 1),
            "alpha": unit_names(structure, group.alpha),
            "members": members.collect::<Vec<_>>(),
        })
    });
    let classes = structure.unit_classes().into_iter().map(|(groups, units)| {
        json!({ "groups": group_names(groups), "units": unit_names(structure, units) })
    });
    let shape = structure.shape();
    let circuit = |circuit: &Circuit| {
        let counts = circuit.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let counts: Map<String, Value> =
            counts.map(|(group, count)| (format!("G{}", group + 1), json!(count))).collect();
        json!({ "counts": counts, "size": circuit.size })
    };
    let sets = structure.group_sets();
    json!({
        "units": structure.units(),
        "groups": groups.collect::<Vec<_>>(),
        "unit_classes": classes.collect::<Vec<_>>(),
        "components": structure.components().into_iter().map(group_names).collect::<Vec<_>>(),
        "class": {
            "disjoint": shape.disjoint,
            "chain": shape.chain,
            "laminar": shape.laminar,
            "interval_in_given_order": shape.interval,
            "antichain": shape.antichain,
        },
        "k_of_S": sets
            .map(|s| json!({ "S": group_names(s), "k": structure.k(s) }))
            .collect::<Vec<_>>(),
        "circuits": circuits.iter().map(circuit).collect::<Vec<_>>(),
        "cmax": circuits.iter().map(|circuit| circuit.size).max(),
    })
}

/// A construction.
pub(super) fn plan_json(plan: &Blueprint) -> Value {
    let by_group = |values: Vec<Value>| -> Map<String, Value> {
        values.into_iter().enumerate().map(|(i, v)| (format!("G{}", i + 1), v)).collect()
    };
    let verdicts = plan.verdicts;
    let mut json = json!({
        "blocks": plan.block_count(),
        "arbiters": plan.arbiters,
        "quorum_size": by_group(plan.quorum_size.iter().map(|size| json!(size)).collect()),
        "quorum_count": by_group(plan.quorum_count.iter().map(count_of).collect()),
        "condition_C": verdicts.c,
        "condition_C_without_minimality": verdicts.c_minus,
        "C_plus": verdicts.c_plus,
    });
    if let Some(blocks) = &plan.blocks {
        json["family"] = json!(blocks.family.iter().map(|s| group_names(*s)).collect::<Vec<_>>());
        json["block_k"] = json!(blocks.sizes);
        json["hall_exact_structural"] = json!(verdicts.c_plus);
        json["condition_C_predicted"] = json!(verdicts.c);
    }
    json
}

fn unit_names(structure: &Structure, units: u128) -> Vec<&str> {
    let all = structure.units().iter().enumerate();
    all.filter(|(unit, _)| units >> unit & 1 == 1).map(|(_, name)| name.as_str()).collect()
}

/// Its name here.
fn name(construction: Construction) -> &'static str {
    match construction {
        Construction::Product => "product",
        Construction::Tight => "facets",
        Construction::Reduced => "reduced",
        Construction::ReducedPrivate => "reduced+private",
        Construction::Named => "named",
    }
}

/// Its name in files of reference values.
pub(super) fn vector_name(construction: Construction) -> &'static str {
    match construction {
        Construction::Product => "paper_product",
        Construction::Tight => "tight_product",
        Construction::Reduced => "circuit_product",
        Construction::ReducedPrivate => "circuit_product_with_private_blocks",
        Construction::Named => "named_sum",
    }
}

fn kinds(structure: &Structure) -> Vec<&'static str> {
    let shape = structure.shape();
    let all = [
        (shape.disjoint, "disjoint"),
        (shape.chain, "a chain"),
        (shape.laminar, "laminar"),
        (shape.interval, "intervals"),
        (shape.antichain, "an antichain"),
    ];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name).collect()
}

fn set_name(s: u32) -> String {
    group_names(s).join(" ")
}

fn counts_name(circuit: &Circuit) -> String {
    let counts = circuit.counts.iter().enumerate().filter(|(_, count)| **count > 0);
    counts.map(|(group, count)| format!("{count} of G{}", group + 1)).collect::<Vec<_>>().join(", ")
}

fn cut(text: &mut String, all: usize, what: &str) {
    if all > LINES_MAX {
        let _ = writeln!(text, "  and {} more {what}", all - LINES_MAX);
    }
}

fn number(value: Option<&u32>) -> String {
    value.map_or(String::new(), ToString::to_string)
}

fn range(least: String, most: String) -> String {
    if least == most { least } else { format!("{least} to {most}") }
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}
