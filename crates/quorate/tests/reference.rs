//! Every command has a page in docs/reference, which is what `--help` says.
//!
//! `UPDATE_EXPECT=1 cargo test -p quorate --test reference` writes them anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn help(words: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(words)
        .arg("--help")
        .env("COLUMNS", "100")
        .output()
        .expect("the command was built");
    assert!(output.status.success(), "{words:?}: {output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    // Lines that only indent say nothing.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The commands that a help text lists.
fn verbs(help: &str) -> Vec<String> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(String::from).collect()
}

fn pages(words: &[String], found: &mut Vec<(String, String)>) {
    let text = help(words);
    for verb in verbs(&text) {
        pages(&[words, &[verb]].concat(), found);
    }
    let name = [&["quorate".to_owned()], words].concat();
    let page = format!("# {}\n\n```text\n{}```\n", name.join(" "), text);
    found.push((format!("{}.md", name.join("-")), page));
}

#[test]
fn every_command_has_a_page_that_says_what_help_says() {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let mut found = Vec::new();
    pages(&[], &mut found);
    assert!(found.len() > 20, "commands are found");
    for (name, page) in &found {
        expect_test::expect_file![folder.join(name)].assert_eq(page);
    }
    let there = std::fs::read_dir(&folder).expect("docs/reference").flatten();
    let there: BTreeSet<String> =
        there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let known: BTreeSet<String> = found.into_iter().map(|(name, _)| name).collect();
    assert_eq!(there, known, "a page for every command, and no other");
}
