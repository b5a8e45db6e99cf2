//! The client for Python: its tests, against the daemon that the tests built.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::steps;

const NAME: &str = "the client for Python";

/// Runs pytest, mypy and ruff in an environment of their own, under target; or says why not.
pub(crate) fn test(root: &Path) -> bool {
    let environment = steps::target(root).join("python");
    println!("\n--- {NAME}: pytest, mypy, ruff");
    if let Err(why) = prepare(&environment) {
        println!("--- {NAME}: skipped: {why}");
        return true;
    }
    let folder = root.join("clients/python");
    let daemon = steps::target(root).join("debug/quorate");
    let good = ["pytest -q -p no:cacheprovider", "mypy --cache-dir=/dev/null", "ruff check -n"]
        .iter()
        .all(|words| {
            let mut command = Command::new(environment.join("bin/python"));
            command.arg("-m").args(words.split_whitespace()).current_dir(&folder);
            command.env("QUORATE_BIN", &daemon).env("PYTHONPATH", "src");
            // The client for Rust plays the same scenarios: it was built with the tests.
            command.env("QUORATE_ACTOR", daemon.with_file_name("examples").join("actor"));
            // `test` never writes to the tree.
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command.status().is_ok_and(|status| status.success())
        });
    println!("--- {NAME}: {}", if good { "ok" } else { "FAILED" });
    good
}

/// Makes the environment beforehand: other tests need something of it too (ninja and ctest, for tokens).
pub(crate) fn install(root: &Path) {
    if let Err(why) = prepare(&steps::target(root).join("python")) {
        println!("{NAME}: tests will be skipped: {why}");
    }
}

/// An environment with what its tests need, unless it is there.
fn prepare(environment: &Path) -> Result<(), String> {
    let works = |command: &mut Command| {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    let has = || {
        let mut python = Command::new(environment.join("bin/python"));
        works(python.args(["-c", "import pytest, mypy, ruff, ninja, cmake"]))
    };
    if has() {
        return Ok(());
    }
    let recent = "import sys; sys.exit(sys.version_info < (3, 10))";
    if !works(Command::new("python3").args(["-c", recent])) {
        return Err("there is no python3 of version 3.10 or later".into());
    }
    if !works(Command::new("python3").args(["-m", "venv"]).arg(environment)) {
        return Err("python3 cannot make an environment: install python3-venv".into());
    }
    let pip =
        ["-m", "pip", "install", "--quiet", "pytest", "mypy", "ruff", "ninja>=1.13", "cmake>=3.29"];
    match works(Command::new(environment.join("bin/python")).args(pip)) && has() {
        true => Ok(()),
        false => Err("pip cannot install pytest, mypy and ruff".into()),
    }
}
