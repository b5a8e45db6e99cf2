//! Every command has a page in docs/reference, which is what `--help` says, with
//! links to those of its own commands.

use std::collections::BTreeSet;
use std::process::Command;

use super::{Program, root};

fn help(program: Program, words: &[String]) -> String {
    let output = Command::new(program.path)
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

fn pages(program: Program, words: &[String], found: &mut Vec<(String, String)>) {
    let text = help(program, words);
    let name = [&[program.name.to_owned()], words].concat();
    let mut page = format!("# {}\n\n```text\n{}```\n", name.join(" "), text);
    for (number, verb) in verbs(&text).into_iter().enumerate() {
        let line = format!("* [`{} {verb}`]({}-{verb}.md)\n", name.join(" "), name.join("-"));
        page.push_str(if number == 0 { "\nIts commands:\n\n" } else { "" });
        page.push_str(&line);
        pages(program, &[words, &[verb]].concat(), found);
    }
    found.push((format!("{}.md", name.join("-")), page));
}

pub(crate) fn every_command_has_its_page(program: Program) {
    let folder = root().join("docs/reference");
    let mut found = Vec::new();
    pages(program, &[], &mut found);
    assert!(found.len() > 15, "commands are found");
    for (name, page) in &found {
        expect_test::expect_file![folder.join(name)].assert_eq(page);
    }
    let there = std::fs::read_dir(&folder).expect("docs/reference").flatten();
    let there = there.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let of_the_lab = |name: &str| name.starts_with("quorate-lab");
    let there: BTreeSet<String> =
        there.filter(|name| of_the_lab(name) == of_the_lab(program.name)).collect();
    let known: BTreeSet<String> = found.into_iter().map(|(name, _)| name).collect();
    assert_eq!(there, known, "a page for every command, and no other");
}
