//! A protocol of somebody else (`examples/own-protocol`) gets the laboratory: the guide's own
//! commands, with the program that its two files make.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program: built as an example of this package, from files that are a package of their own.
fn program() -> PathBuf {
    let name = format!("own-protocol{}", std::env::consts::EXE_SUFFIX);
    Path::new(env!("CARGO_BIN_EXE_quorate-lab")).with_file_name("examples").join(name)
}

/// What it prints, which must end well.
fn says(words: &str) -> String {
    let output = Command::new(program()).args(words.split_whitespace()).output();
    let output = output.expect("cargo builds examples with tests");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {text}{errors}");
    text
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-protocol");
    std::fs::create_dir_all(&folder).expect("it can be made");
    folder
}

#[test]
fn it_is_simulated_and_drawn() {
    let page = folder().join("replay.html");
    let words = format!("sim run --protocol doorman --duration 300ms --html {}", page.display());
    let text = says(&words);
    assert!(text.contains("grants") && text.contains("ask"), "{text}");
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("doorman: 5 nodes share 2 units"), "the replay page is about it");
}

#[test]
fn the_laws_judge_it_under_faults() {
    says("sim seeds --protocol doorman --count 30");
}

#[test]
fn every_history_of_small_worlds_is_right() {
    let checked = [
        "--nodes 2 --units 1 --want 1,1 --home 0,1 --crashes 1 --deaths 1 --lapses 1",
        "--nodes 2 --units 2 --want 1,2 --home 0,1 --network reordering --duplicates 1 --losses 1",
    ];
    for words in checked {
        says(&format!("check --protocol doorman {words}"));
    }
}

#[test]
fn it_is_compared_with_others() {
    let folder = folder();
    let (csv, svg) = (folder.join("load.csv"), folder.join("load.svg"));
    let files = format!("--csv {} --svg {}", csv.display(), svg.display());
    let chosen = "--protocol doorman --protocol central --repetitions 1";
    let text = says(&format!("compare --preset load {chosen} {files}"));
    assert!(text.contains("doorman") && text.contains("central"), "{text}");
    let table = std::fs::read_to_string(csv).expect("it was written");
    assert!(table.lines().any(|line| line.contains("doorman") && line.contains("messages_per_cs")));
    assert!(std::fs::read_to_string(svg).expect("it was written").contains("doorman"));
}

/// What stands in the folder is a package: nobody's member, with what its files use and no more.
#[test]
fn its_folder_is_a_package_of_its_own() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/own-protocol");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("it is there");
    let manifest: toml::Table = manifest.parse().expect("it is TOML");
    assert!(manifest["workspace"].as_table().is_some_and(toml::Table::is_empty));
    let needs = manifest["dependencies"].as_table().expect("a table");
    let source = ["main.rs", "doorman.rs"].map(|file| folder.join("src").join(file));
    let source: String = source.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    for (name, what) in needs {
        let path = folder.join(what["path"].as_str().expect("a path")).join("Cargo.toml");
        assert!(path.exists(), "{}", path.display());
        assert!(source.contains(&name.replace('-', "_")), "{name} is not used");
    }
    for used in source.split("quorate_").skip(1) {
        let name: String = used.chars().take_while(char::is_ascii_lowercase).collect();
        assert!(needs.contains_key(&format!("quorate-{name}")), "quorate-{name} is missing");
    }
}
