//! Findings as JSON. Counts beyond 64 bits are written as strings of digits, so that every reader
//! can read the object; what could not be decided is null, and `bounds` says what is known instead.

use std::collections::BTreeMap;

use quorate_core::NodeSet;
use quorate_quorum::{Domination, Findings, Method, Natural, Reach, Symmetric, bounds};
use serde::Serialize;
use serde_json::{Value, json};

/// What `report --json` prints.
#[derive(Serialize)]
pub(super) struct Report {
    family: String,
    nodes: usize,
    units: usize,
    quorums: Option<Value>,
    sizes: Option<BTreeMap<String, Value>>,
    intersecting: Option<bool>,
    largest_k: Option<i64>,
    minimal: Option<bool>,
    pub(super) arbiter: Option<bool>,
    dominated: Option<bool>,
    witness: Option<Vec<u32>>,
    symmetric: Option<Value>,
    resiliency: Option<String>,
    survives: Option<usize>,
    availability: f64,
    load: Option<f64>,
    bounds: Value,
}

impl Report {
    /// From what was found out about the family called `name`.
    pub(super) fn new(name: &str, found: &Findings) -> Report {
        let sizes = found.sizes.as_ref().map(|sizes| {
            sizes.iter().map(|(size, count)| (size.to_string(), count_of(count))).collect()
        });
        let domination = found.domination.as_ref().and_then(Option::as_ref);
        Report {
            family: name.to_owned(),
            nodes: found.nodes,
            units: found.units,
            quorums: found.quorums.as_ref().map(count_of),
            sizes,
            intersecting: found.intersecting,
            largest_k: match found.reach {
                Some(Reach::UpTo(k)) => Some(k),
                _ => None,
            },
            minimal: found.minimal,
            arbiter: found.arbiter(),
            dominated: domination.map(|decided| *decided != Domination::Nondominated),
            witness: domination.and_then(Domination::witness).map(members),
            symmetric: found.symmetric.as_ref().and_then(Option::as_ref).map(symmetric),
            resiliency: found.resiliency.as_ref().map(ToString::to_string),
            survives: found.survives.known(),
            availability: found.availability.value,
            load: found.exact_load(),
            bounds: bounds_of(found),
        }
    }

    /// Adds to `bounds`.
    pub(super) fn bound(&mut self, name: &str, value: Value) {
        if let Value::Object(bounds) = &mut self.bounds {
            bounds.insert(name.to_owned(), value);
        }
    }
}

fn bounds_of(found: &Findings) -> Value {
    let availability = &found.availability;
    let mut undecided = Vec::new();
    for (question, open) in [
        ("intersecting", found.intersecting.is_none()),
        ("largest_k", found.reach.is_none()),
        ("minimal", found.minimal.is_none()),
        ("dominated", found.domination.is_none()),
        ("resiliency", found.resiliency.is_none()),
        ("survives", found.survives.known().is_none()),
        ("load", found.exact_load().is_none()),
    ] {
        if open {
            undecided.push(question);
        }
    }
    let messages = found.size_range().map(
        |(least, most)| json!({ "low": bounds::messages(least), "high": bounds::messages(most) }),
    );
    json!({
        "size_min": bounds::symmetric_size_min(found.nodes, found.units),
        "survives_max": bounds::survives_max(found.nodes, found.units),
        "load_min": found.load_min(),
        "survives": { "low": found.survives.low, "high": found.survives.high },
        "load": { "low": found.load.low, "high": found.load.high },
        "availability": {
            "low": availability.low,
            "high": availability.high,
            "method": method(availability.method),
            "confidence": match availability.method {
                Method::Sampling => quorate_quorum::sampling::CONFIDENCE,
                _ => 1.0,
            },
        },
        "unavailability": availability.missing,
        "messages": messages,
        "undecided": undecided,
    })
}

/// The method in one word.
pub(super) fn method(method: Method) -> &'static str {
    match method {
        Method::ClosedForm => "closed form",
        Method::Table => "table",
        Method::Diagram => "decision diagram",
        Method::Sampling => "sampling",
    }
}

/// A count: a number if it fits, else its digits.
pub(super) fn count_of(count: &Natural) -> Value {
    count.to_u64().map_or_else(|| Value::String(count.to_string()), Value::from)
}

fn symmetric(symmetric: &Symmetric) -> Value {
    json!({ "effort": count_of(&symmetric.effort), "size": symmetric.size })
}

/// The members of a set.
pub(super) fn members(set: &NodeSet) -> Vec<u32> {
    set.iter().map(|node| node.0).collect()
}
