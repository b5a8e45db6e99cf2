//! Sessions at the shell shown in the documentation are true.
//!
//! Every `console` block of these pages is run: lines after `$ ` are commands, what follows is
//! their standard output. `[..]` stands for anything within a line, a line `...` for any lines.

use std::path::Path;
use std::process::Command;

#[test]
fn every_session_in_the_documentation_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    collect(&root.join("docs"), &mut pages);
    let mut sessions = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page that was just listed");
        for (command, expected) in commands(&text) {
            sessions += 1;
            let printed = run(&command);
            assert!(
                matches(&expected, &printed.lines().collect::<Vec<_>>()),
                "{}: $ {command}\n--- shown\n{}\n--- printed\n{printed}",
                page.display(),
                expected.join("\n"),
            );
        }
    }
    assert!(sessions > 1, "the documentation shows sessions");
}

fn collect(folder: &Path, pages: &mut Vec<std::path::PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).expect("docs").flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The commands of a page, each with the lines shown under it.
fn commands(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_string(), Vec::new())),
                (None, Some((_, shown))) => shown.push(line),
                (None, None) => panic!("a session begins with a command: {line}"),
            },
        }
    }
    commands
}

fn run(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(words.first(), Some(&"quorate"), "only our own command: {command}");
    let folder = std::env::temp_dir();
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(&words[1..])
        .current_dir(folder)
        .output()
        .expect("the command was built");
    String::from_utf8(output.stdout).expect("output is text")
}

/// Whether the shown lines are the printed ones.
fn matches(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"...", rest)) => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((line, rest)) => {
            printed.first().is_some_and(|first| line_matches(line, first))
                && matches(rest, &printed[1..])
        }
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split("[..]");
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

#[test]
fn wildcards_stand_for_anything_but_not_for_everything() {
    assert!(line_matches("a [..] c", "a b c"));
    assert!(line_matches("a [..]", "a b c"));
    assert!(!line_matches("a [..] d", "a b c"));
    assert!(!line_matches("a b", "a b c"));
    assert!(matches(&["x", "...", "y"], &["x", "1", "2", "y"]));
    assert!(!matches(&["x", "...", "y"], &["x", "1", "2"]));
}
