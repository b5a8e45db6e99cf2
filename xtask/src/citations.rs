//! Every rule that a comment or a page cites is defined in `docs/specs`, and every Rust file that
//! one names in backquotes exists.
//!
//! A citation names its specification and then one rule or several: `arbiter spec C1`, `ring spec
//! E7 and E13`, `labels spec theorem M`, `conventions 4.2`. A rule is defined by an anchor
//! (`<a id="c1"></a>`) or by the number of a heading. In comments of Rust files a name such as
//! `C1` without its specification is a finding too, unless it stands in backquotes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const FOLDER: &str = "docs/specs";

/// The rules that each specification defines, in lower case.
type Specs = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn check(files: &[(PathBuf, String)], findings: &mut Vec<String>) {
    let specs = specs(files, findings);
    for (path, text) in files.iter().filter(|(path, _)| !path.starts_with(FOLDER)) {
        if path.ends_with("xtask/src/citations.rs") {
            continue; // It shows what is right and what is wrong.
        }
        let rust = path.extension().is_some_and(|ending| ending == "rs");
        if rust || path.extension().is_some_and(|ending| ending == "md") {
            let words = words(text, rust);
            cited(path, &words, &specs, findings);
            named(path, words.iter().filter(|word| word.comment || !rust), files, findings);
        }
    }
}

/// Reads the definitions, and finds those that are made twice.
fn specs(files: &[(PathBuf, String)], findings: &mut Vec<String>) -> Specs {
    let mut specs = Specs::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with(FOLDER)) {
        let Some(name) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else {
            continue;
        };
        let rules = specs.entry(name).or_default();
        for line in text.lines() {
            let heading = line.starts_with('#').then(|| line.trim_start_matches('#').trim());
            let number = heading.and_then(|title| title.split(' ').next());
            let number = number.map(|number| number.trim_end_matches('.')).filter(|n| is_number(n));
            let anchors = line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
            for rule in number.into_iter().chain(anchors) {
                if !rules.insert(rule.to_lowercase()) {
                    findings.push(format!("{}: defines {rule} twice", path.display()));
                }
            }
        }
    }
    specs
}

/// A word of a file: on which line it stands, and whether in a comment.
struct Word<'a> {
    text: &'a str,
    line: usize,
    comment: bool,
}

/// The words of a file. Marks of comments are left out, so that a citation may go on in the next
/// line.
fn words(text: &str, rust: bool) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let (code, comment) = match line.find("//").filter(|_| rust) {
            Some(at) => (&line[..at], line[at..].trim_start_matches(['/', '!'])),
            None => (line, ""),
        };
        for (part, comment) in [(code, false), (comment, true)] {
            let split = part.split_whitespace();
            words.extend(split.map(|text| Word { text, line: number + 1, comment }));
        }
    }
    words
}

fn cited(path: &Path, words: &[Word<'_>], specs: &Specs, findings: &mut Vec<String>) {
    let mut at = 0;
    while at < words.len() {
        let word = &words[at];
        at += 1;
        let mut found = |line: usize, what: String| {
            findings.push(format!("{}:{line}: {what}", path.display()));
        };
        if word.comment && is_name(bare(word.text)) {
            found(word.line, format!("{} names no specification", bare(word.text)));
        }
        let before = at.checked_sub(2).map_or("", |before| bare(words[before].text));
        let spec = match bare(word.text) {
            "spec" => before.to_lowercase(),
            "conventions" => "conventions".to_owned(),
            _ => continue,
        };
        if word.comment && words.get(at).is_some_and(|next| next.text.starts_with("section")) {
            found(word.line, "cite a section by its number alone".to_owned());
        }
        // The rules, for as long as the sentence lists them.
        while let Some(Word { text, line, .. }) = words.get(at) {
            let mut rule = bare(text).to_owned();
            if matches!(*text, "and" | "to" | "or") {
                at += 1;
                continue;
            } else if rule == "theorem" || rule == "lemma" {
                at += 1;
                rule = format!("{rule}-{}", words.get(at).map_or("", |word| bare(word.text)));
            } else if !is_name(&rule) && !is_number(&rule) {
                break;
            }
            match specs.get(&spec) {
                None => found(*line, format!("{rule} names no specification")),
                Some(rules) if rules.contains(&rule.to_lowercase()) => {}
                Some(_) => found(*line, format!("{FOLDER}/{spec}.md does not define {rule}")),
            }
            at += 1;
            if words[at - 1].text.ends_with([';', ')', ']', '.', ':']) {
                break;
            }
        }
    }
}

/// Finds names of Rust files that do not exist. A changelog may name files of the past.
fn named<'a>(
    path: &Path,
    words: impl Iterator<Item = &'a Word<'a>>,
    files: &[(PathBuf, String)],
    findings: &mut Vec<String>,
) {
    for Word { text, line, .. } in words.filter(|_| !path.ends_with("CHANGELOG.md")) {
        let name = text.split('`').nth(1).filter(|name| name.ends_with(".rs"));
        let Some(name) = name.filter(|name| !name.contains(['*', '<', '{'])) else { continue };
        if !files.iter().any(|(file, _)| file.ends_with(name)) {
            findings.push(format!("{}:{line}: there is no file {name}", path.display()));
        }
    }
}

/// A word without the punctuation around it. What is in backquotes stays as it is.
fn bare(word: &str) -> &str {
    word.trim_matches(['(', ')', '[', ']', ',', '.', ';', ':', '"', '*', '!', '?'])
}

/// `C1`, `M14`, `E3b`, `T-1`: a letter, a number, perhaps a letter.
fn is_name(word: &str) -> bool {
    let Some(rest) = word.strip_prefix(|c: char| c.is_ascii_uppercase()) else { return false };
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let digits = rest.trim_end_matches(['b', 'c']);
    rest.len() - digits.len() <= 1
        && (1..=2).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// `7`, `7.10`, `6.6.2`.
fn is_number(word: &str) -> bool {
    !word.is_empty()
        && word.split('.').all(|part| {
            (1..=2).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "## 7. Protocol\n### 7.10 Tickets\n<a id=\"c1\"></a>C1 <a id=\"m14\"></a>";

    fn findings_of(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        let spec = (PathBuf::from("docs/specs/arbiter.md"), SPEC.to_owned());
        check(&[spec, (PathBuf::from(path), text.to_owned())], &mut findings);
        findings
    }

    #[test]
    fn rules_that_exist_may_be_cited() {
        let good = "//! Of leases (arbiter spec 7.10, C1 and\n//! M14). `G9` is a group.\nlet x;";
        assert_eq!(findings_of("a.rs", good), Vec::<String>::new());
        let assertion = "assert!(good, \"arbiter spec C1: it lasts\"); // Arbiter spec 7.";
        assert_eq!(findings_of("a.rs", assertion), Vec::<String>::new());
        assert_eq!(findings_of("a.md", "as arbiter spec M14 says, D1"), Vec::<String>::new());
    }

    #[test]
    fn made_up_citations_are_found() {
        for (text, found) in [
            ("// See arbiter spec C99.", "a.rs:1: docs/specs/arbiter.md does not define C99"),
            ("// (arbiter spec C1,\n// 7.2)", "a.rs:2: docs/specs/arbiter.md does not define 7.2"),
            ("// Barber spec C1.", "a.rs:1: C1 names no specification"),
            ("// (spec 7.10)", "a.rs:1: 7.10 names no specification"),
            ("// (arbiter spec, section 7)", "a.rs:1: cite a section by its number alone"),
            ("// conventions 4.2", "a.rs:1: 4.2 names no specification"),
            ("x(); // Dead is for good (C1).", "a.rs:1: C1 names no specification"),
        ] {
            assert_eq!(findings_of("a.rs", text), [found], "{text}");
        }
    }

    #[test]
    fn files_that_do_not_exist_are_found() {
        assert_eq!(findings_of("src/a.rs", "//! As `src/a.rs` says."), Vec::<String>::new());
        assert_eq!(findings_of("a.md", "(`b.rs`)"), ["a.md:1: there is no file b.rs"]);
    }

    #[test]
    fn a_rule_is_defined_once() {
        let mut findings = Vec::new();
        let twice = (PathBuf::from("docs/specs/ring.md"), "# 1. A\n# 1 B".to_owned());
        check(&[twice], &mut findings);
        assert_eq!(findings, ["docs/specs/ring.md: defines 1 twice"]);
    }
}
