//! The commit that a release was built from, for `quorate_build_info`. Other builds do not ask:
//! they would be built anew with every commit. Outside a git repository it is unknown.

use std::process::Command;

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = release.then(|| git(&["rev-parse", "--short=12", "HEAD"])).flatten();
    if commit.is_some() {
        // It grows with every commit, whichever branch that is on.
        if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        {
            println!("cargo::rerun-if-changed={log}");
        }
    }
    println!("cargo::rustc-env=QUORATE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}
