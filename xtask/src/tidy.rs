//! The rules of the house that no compiler checks, as code (CONTRIBUTING.md gives the reasons).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{citations, doors};

/// Who may know whom: nothing else is allowed (ARCHITECTURE.md). Tests may use anything.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("quorate-core", &[]),
    ("quorate-quorum", &["quorate-core"]),
    ("quorate-protocols", &["quorate-core", "quorate-quorum"]),
    ("quorate-laws", &["quorate-core"]),
    ("quorate-sim", &["quorate-core", "quorate-laws"]),
    ("quorate-check", &["quorate-core", "quorate-laws"]),
    ("quorate-papers", &["quorate-core", "quorate-protocols", "quorate-quorum"]),
    ("quorate-wire", &["quorate-core", "quorate-protocols"]),
    ("quorate-api", &[]),
    ("quorate-trust", &[]),
    ("quorate-view", &[]),
    ("quorate-fence", &[]),
    ("quorate-charter", &[]),
    (
        "quorate-node",
        &[
            "quorate-api",
            "quorate-charter",
            "quorate-core",
            "quorate-protocols",
            "quorate-trust",
            "quorate-view",
            "quorate-wire",
        ],
    ),
    ("quorate-client", &["quorate-api"]),
    ("quorate-cli", &["quorate-api", "quorate-client"]),
    (
        "quorate",
        &[
            "quorate-api",
            "quorate-cli",
            "quorate-client",
            "quorate-node",
            "quorate-protocols",
            "quorate-trust",
        ],
    ),
];

/// Crates in which nothing may depend on a clock, a thread, chance or the order of a hash table.
const PURE: &[&str] = &[
    "quorate-core",
    "quorate-quorum",
    "quorate-protocols",
    "quorate-laws",
    "quorate-sim",
    "quorate-check",
];

/// 400 lines are a prompt to look, 600 a reason to split.
const LINES_MAX: usize = 600;
const COLUMNS_MAX: usize = 100;

/// Everything found wrong, one line each.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    arrows(root, &mut findings);
    pure_crates(root, &mut findings);
    planted_bugs(root, &mut findings);
    let mut files = Vec::new();
    collect(root, root, &mut files);
    for (path, text) in &files {
        source_file(path, text, &mut findings);
    }
    citations::check(&files, &mut findings);
    doors::check(root, &files, &mut findings);
    examples(root, &files, &mut findings);
    message_tables(&files.into_iter().collect(), &mut findings);
    findings
}

/// The dependency arrows, read from the manifests.
fn arrows(root: &Path, findings: &mut Vec<String>) {
    let rules: BTreeMap<&str, &[&str]> = MAY_KNOW.iter().copied().collect();
    for (name, manifest) in manifests(root) {
        if name == "quorate-lab" {
            continue; // The laboratory sees everything.
        }
        let Some(allowed) = rules.get(name.as_str()) else {
            findings.push(format!("{name}: xtask/src/tidy.rs does not say whom it may know"));
            continue;
        };
        for known in section(&manifest, "[dependencies]").filter(|d| d.starts_with("quorate")) {
            if !allowed.contains(&known) {
                findings.push(format!("{name} must not know {known} (ARCHITECTURE.md)"));
            }
        }
        if name == "quorate-core" && section(&manifest, "[dependencies]").next().is_some() {
            findings.push("quorate-core depends on something".into());
        }
    }
}

fn manifests(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        if let Ok(text) = fs::read_to_string(entry.path().join("Cargo.toml")) {
            found.push((entry.file_name().to_string_lossy().into_owned(), text));
        }
    }
    found.sort();
    found
}

/// The names of the dependencies in one section of a manifest.
fn section<'a>(manifest: &'a str, header: &str) -> impl Iterator<Item = &'a str> {
    manifest
        .lines()
        .skip_while(move |line| line.trim() != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
}

fn pure_crates(root: &Path, findings: &mut Vec<String>) {
    let model =
        fs::read_to_string(root.join("crates/quorate-core/clippy.toml")).unwrap_or_default();
    for (name, _) in manifests(root).iter().filter(|(name, _)| PURE.contains(&name.as_str())) {
        let bans = fs::read_to_string(root.join("crates").join(name).join("clippy.toml"));
        if bans.ok().as_ref() != Some(&model) {
            findings.push(format!("{name}: its clippy.toml is not that of quorate-core"));
        }
    }
}

/// Bugs on purpose are for tests: no manifest but that of the command asks for them, and only where
/// what users build does not look.
fn planted_bugs(root: &Path, findings: &mut Vec<String>) {
    for (name, manifest) in manifests(root) {
        let mut header = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                header = line.trim();
            }
            let allowed = match name.as_str() {
                "quorate-node" | "quorate-wire" => {
                    header == "[features]" && line.starts_with("planted-bugs = [")
                }
                "quorate" => header == "[dev-dependencies]",
                _ => false,
            };
            let asks = line.split('#').next().is_some_and(|line| line.contains("planted-bugs"));
            if asks && !allowed {
                findings.push(format!("{name}: planted-bugs under {header} could reach a release"));
            }
        }
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if matches!(&*name, "target" | ".git" | "node_modules") {
            continue; // Not ours. In a worktree of git `.git` is a file.
        } else if path.is_dir() {
            collect(root, &path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path.strip_prefix(root).expect("below the root").to_path_buf();
            files.push((path, text));
        }
    }
}

fn source_file(path: &Path, text: &str, findings: &mut Vec<String>) {
    let shown = path.display();
    let is = |ending: &str| path.extension().is_some_and(|e| e == ending);
    if path.ends_with("Cargo.lock") {
        return; // It is cargo's.
    }
    for (number, line) in text.lines().enumerate() {
        let at = || format!("{shown}:{}", number + 1);
        for place in ["work", "root", "home"].map(|folder| format!("/{folder}/")) {
            let begins = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric());
            if line.match_indices(&place).any(|(at, _)| begins(at)) {
                findings.push(format!("{}: names a place of one machine: {place}", at()));
            }
        }
        for host in ["index", "static"].map(|host| format!("://{host}.")) {
            if line.contains(&host) {
                findings.push(format!("{}: names a registry: {host}", at()));
            }
        }
        if !is("rs") {
            continue;
        }
        let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
        let marks = [["FIX", "ME"], ["X", "XX"], ["#[", "ignore"]].map(|halves| halves.concat());
        for word in macros.iter().chain(&marks) {
            if line.contains(word) {
                findings.push(format!("{}: left open: {word}", at()));
            }
        }
        let table = line.trim_start().starts_with("//! |"); // A row of a table cannot be folded.
        if line.chars().count() > COLUMNS_MAX && !table {
            findings.push(format!("{}: more than {COLUMNS_MAX} columns", at()));
        }
    }
    let lines = text.lines().count();
    let tests = path.components().any(|c| c.as_os_str() == "tests");
    if is("rs") && !tests && lines > LINES_MAX {
        findings
            .push(format!("{shown}: {lines} lines; more than {LINES_MAX} is a reason to split"));
    }
}

/// Looking for examples to try takes a build of the crate, so manifests say where there are none;
/// and they must not say so where there are.
fn examples(root: &Path, files: &[(PathBuf, String)], findings: &mut Vec<String>) {
    for (name, manifest) in manifests(root) {
        let source = Path::new("crates").join(&name).join("src");
        let of_crate = || files.iter().filter(|(path, _)| path.starts_with(&source));
        if !of_crate().any(|(path, _)| path.ends_with("lib.rs")) {
            continue;
        }
        let tried = of_crate().any(|(_, text)| has_example(text));
        if tried == manifest.lines().any(|line| line == "doctest = false") {
            findings.push(match tried {
                true => format!("{name} has examples, which doctest = false leaves untried"),
                false => format!("{name} has no examples: say doctest = false under [lib]"),
            });
        }
    }
}

/// Whether comments for readers have a block of code that is Rust.
fn has_example(text: &str) -> bool {
    let comments = text.lines().map(str::trim_start);
    let comments = comments.filter_map(|line| Some(line.strip_prefix("//")?.get(1..)?.trim()));
    let fences = comments.filter_map(|line| line.strip_prefix("```"));
    fences.step_by(2).any(|language| !matches!(language, "text" | "toml" | "json" | "sh"))
}

/// The message table of each protocol's page names exactly the kinds that its code has.
fn message_tables(files: &BTreeMap<PathBuf, String>, findings: &mut Vec<String>) {
    let protocols = Path::new("crates/quorate-protocols/src");
    for (path, code) in files {
        let Ok(inside) = path.strip_prefix(protocols) else { continue };
        let Some((_, list)) = code.split_once("KINDS: &'static [&'static str] =") else { continue };
        if !list.trim_start().starts_with("&[") {
            continue; // It refers to the list, which stands elsewhere.
        }
        let Some(protocol) = inside.parent().and_then(Path::file_name) else { continue };
        let list = list.split(']').next().unwrap_or_default();
        let kinds: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        let page = format!("docs/protocols/{}.md", protocol.to_string_lossy());
        let Some(text) = files.get(Path::new(&page)) else {
            findings.push(format!("{page} is missing"));
            continue;
        };
        let rows: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.starts_with("| message"))
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .filter_map(|line| line.split('`').nth(1))
            .collect();
        if rows != kinds {
            findings.push(format!("{page}: its message table has {rows:?}, the code {kinds:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_told_from_pictures() {
        assert!(has_example("//! ```\n//! let a = 1;\n//! ```\n"));
        assert!(has_example("    /// ```text\n    /// ```\n    /// ```no_run\n    /// ```"));
        assert!(!has_example("//! ```text\n//! a -> b\n//! ```\nlet fence = \"```\";"));
    }
}
