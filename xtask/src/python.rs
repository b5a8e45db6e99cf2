//! The client for Python: its tests, against the daemon that the tests built, and its packages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps;

const NAME: &str = "the client for Python";

/// Makes its packages and runs pytest on what they install, mypy and ruff, in an environment of
/// their own, under target; or says why not.
pub(crate) fn test(root: &Path) -> bool {
    println!("\n--- {NAME}: packages, pytest, mypy, ruff");
    let environment = match prepare(root) {
        Ok(environment) => environment,
        Err(why) => {
            println!("--- {NAME}: skipped: {why}");
            return true;
        }
    };
    let installed = install_packages(root, &environment);
    if let Err(why) = &installed {
        println!("{why}");
    }
    let folder = root.join("clients/python");
    let daemon = steps::target(root).join("debug/quorate");
    let good = installed.is_ok_and(|installed| {
        ["pytest -q -p no:cacheprovider", "mypy --cache-dir=/dev/null", "ruff check -n"].iter().all(
            |words| {
                let mut command = Command::new(environment.join("bin/python"));
                command.arg("-m").args(words.split_whitespace()).current_dir(&folder);
                command.env("QUORATE_BIN", &daemon).env("PYTHONPATH", &installed);
                // The client for Rust plays the same scenarios: it was built with the tests.
                command.env("QUORATE_ACTOR", daemon.with_file_name("examples").join("actor"));
                // `test` never writes to the tree.
                command.env("PYTHONDONTWRITEBYTECODE", "1");
                command.status().is_ok_and(|status| status.success())
            },
        )
    });
    println!("--- {NAME}: {}", if good { "ok" } else { "FAILED" });
    good
}

/// Makes a package of the sources, and of that a wheel; both are put into the folder.
pub(crate) fn packages(root: &Path, to: &Path) -> Result<(), String> {
    let environment = prepare(root)?;
    // What makes them writes beside the sources: beside a copy, in which links are files.
    let copy = steps::target(root).join("python-sources");
    let _ = std::fs::remove_dir_all(&copy);
    done(Command::new("cp").arg("-rL").arg(root.join("clients/python")).arg(&copy))?;
    let mut build = Command::new(environment.join("bin/python"));
    build.args(["-m", "build", "--no-isolation", "--outdir"]).arg(to).arg(&copy);
    done(&mut build)
}

/// What a user has who installed the wheel, and nothing else.
fn install_packages(root: &Path, environment: &Path) -> Result<PathBuf, String> {
    let made = steps::target(root).join("python-packages");
    let _ = std::fs::remove_dir_all(&made);
    packages(root, &made)?;
    let files = std::fs::read_dir(&made).map_err(|error| error.to_string())?.flatten();
    let wheel = files.map(|file| file.path()).find(|path| path.extension() == Some("whl".as_ref()));
    let wheel = wheel.ok_or("no wheel was made")?;
    let installed = made.join("installed");
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]);
    done(pip.arg(&installed).arg(wheel))?;
    Ok(installed)
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // setuptools says in this way what it will take no longer.
    match output.status.success() && !said.contains("Deprecated") {
        true => Ok(()),
        false => Err(format!("{command:?}: {}\n{said}", output.status)),
    }
}

/// Makes the environment beforehand: other tests need something of it too (ninja and ctest, for
/// tokens).
pub(crate) fn install(root: &Path) {
    if let Err(why) = prepare(root) {
        println!("{NAME}: tests will be skipped: {why}");
    }
}

/// What is installed in the environment, and how one sees that it was.
const PACKAGES: [&str; 7] =
    ["pytest", "mypy", "ruff", "ninja>=1.13", "cmake>=3.29", "build", "setuptools>=77"];
const WITHIN: &str = "import pytest, mypy, ruff, ninja, cmake, build, setuptools as s; \
                      assert int(s.__version__.split('.')[0]) >= 77";

/// An environment with what its tests need, made unless it is there.
fn prepare(root: &Path) -> Result<PathBuf, String> {
    let environment = steps::target(root).join("python");
    let works = |command: &mut Command| {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    let python = environment.join("bin/python");
    let has = || works(Command::new(&python).args(["-c", WITHIN]));
    if has() {
        return Ok(environment);
    }
    let recent = "import sys; sys.exit(sys.version_info < (3, 10))";
    if !works(Command::new("python3").args(["-c", recent])) {
        return Err("there is no python3 of version 3.10 or later".into());
    }
    if !works(Command::new("python3").args(["-m", "venv"]).arg(&environment)) {
        return Err("python3 cannot make an environment: install python3-venv".into());
    }
    let pip = ["-m", "pip", "install", "--quiet"];
    match works(Command::new(&python).args(pip).args(PACKAGES)) && has() {
        true => Ok(environment),
        false => Err(format!("pip cannot install {}", PACKAGES.join(", "))),
    }
}
