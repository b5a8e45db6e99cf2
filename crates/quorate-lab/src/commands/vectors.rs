//! Reference values: replayed one by one, each `ok` or its first difference.

use std::io::Write as _;

use anyhow::ensure;
use serde_json::json;

use crate::Outcome;

/// An entry of a file of reference values, and where we first differ from it.
pub(crate) struct Compared {
    pub(crate) name: String,
    pub(crate) difference: Option<String>,
}

impl Compared {
    pub(crate) fn new(kind: &str, id: &str, result: Result<(), String>) -> Self {
        Compared { name: format!("{kind}/{id}"), difference: result.err() }
    }
}

/// Prints a line for each entry. Broken if one differs.
pub(crate) fn print(compared: &[Compared], json: bool) -> anyhow::Result<Outcome> {
    ensure!(!compared.is_empty(), "the file holds no reference values of this kind");
    let different = compared.iter().filter(|entry| entry.difference.is_some()).count();
    let mut out = std::io::stdout().lock();
    if json {
        let entries: Vec<_> = compared
            .iter()
            .map(|entry| {
                let Compared { name, difference } = entry;
                json!({ "name": name, "ok": difference.is_none(), "difference": difference })
            })
            .collect();
        writeln!(out, "{:#}", json!({ "vectors": entries, "different": different }))?;
    } else {
        for Compared { name, difference } in compared {
            match difference {
                None => writeln!(out, "ok {name}")?,
                Some(difference) => writeln!(out, "DIFFERENT {name}: {difference}")?,
            }
        }
    }
    Ok(if different == 0 { Outcome::Good } else { Outcome::Broken })
}
