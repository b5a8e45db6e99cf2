//! Structures from files. The order of processes is that of the file: groups are numbered by it.

use std::fmt;
use std::path::Path;

use anyhow::Context;
use quorate_quorum::sharing::Structure;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// An object whose entries keep their order.
#[derive(Debug)]
pub(crate) struct Ordered(pub(crate) Vec<(String, Vec<String>)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Ordered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of lists of units, one per process")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[derive(Deserialize)]
struct Described {
    units: Vec<String>,
    alpha: Ordered,
}

/// Reads a structure.
pub(crate) fn structure_from_file(path: &Path) -> anyhow::Result<Structure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let described: Described = serde_json::from_str(&text).with_context(|| {
        format!(r#"{shown} is not {{"units": ["r1", ...], "alpha": {{"u1": ["r1", ...], ...}}}}"#)
    })?;
    Structure::new(described.units, described.alpha.0).with_context(|| format!("in {shown}"))
}
