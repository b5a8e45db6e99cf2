//! The bill of materials: every crate that is in the command, as CycloneDX JSON, from what cargo
//! resolves and `Cargo.lock` pins.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use super::{Dist, output};

fn bill(version: &str, tree: &str, lock: &str) -> String {
    let sums = checksums(lock);
    let mut parts = BTreeSet::new();
    for line in tree.lines() {
        // What was listed before is marked.
        let (package, licence) = line.split_once('|').unwrap_or((line, ""));
        let licence = licence.trim_end_matches(" (*)");
        let mut words = package.split_whitespace();
        let (Some(name), Some(release)) = (words.next(), words.next()) else { continue };
        let release = release.trim_start_matches('v');
        let sum = sums.get(&(name.to_owned(), release.to_owned()));
        let sum = sum.map(|sum| format!(r#","hashes":[{{"alg":"SHA-256","content":"{sum}"}}]"#));
        let sum = sum.unwrap_or_default();
        let licence = licence.replace('/', " OR ").replace("  ", " ");
        let address = format!("pkg:cargo/{name}@{release}");
        let named = format!(r#""name":"{name}","version":"{release}","purl":"{address}""#);
        let licences = format!(r#""licenses":[{{"expression":"{licence}"}}]"#);
        parts.insert(format!(r#"{{"type":"library",{named},{licences}{sum}}}"#));
    }
    let parts = parts.into_iter().collect::<Vec<_>>().join(",\n    ");
    format!(
        "{{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n  \"version\": 1,\n  \
         \"metadata\": {{\"component\": {{\"type\": \"application\", \"name\": \"quorate\", \
         \"version\": \"{version}\"}}}},\n  \"components\": [\n    {parts}\n  ]\n}}\n"
    )
}

/// The checksum of each package that comes from a registry.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let start = format!("{name} = \"");
            let mut lines = package.lines();
            let value = lines.find_map(|line| line.strip_prefix(&start)?.strip_suffix('"'));
            value.map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

pub(super) fn write(dist: &Dist<'_>) -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let words = ["tree", "--locked", "-p", "quorate", "-e", "normal", "--prefix", "none"];
    let mut tree = Command::new(cargo);
    let tree = output(tree.args(words).args(["-f", "{p}|{l}"]).current_dir(dist.root))?;
    let lock = dist.root.join("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).map_err(|error| super::told(&lock, &error))?;
    let name = format!("quorate-{}.cdx.json", dist.version);
    super::write(&dist.artefacts.join(name), &bill(&dist.version, &tree, &lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_there_once_with_its_checksum_and_licence() {
        let tree = "quorate v0.1.0 (/x)|MIT OR Apache-2.0\nserde v1.0.1|MIT/Apache-2.0\n\
                    serde v1.0.1|MIT/Apache-2.0 (*)\n";
        let lock = "[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"ab12\"\n";
        let bill = bill("0.1.0", tree, lock);
        assert_eq!(bill.matches("pkg:cargo/serde@1.0.1").count(), 1, "{bill}");
        assert!(bill.contains("\"content\":\"ab12\"") && bill.contains("MIT OR Apache-2.0"));
    }
}
