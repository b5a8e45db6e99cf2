//! The browser that tests of what people see need: Debian's chromium and chromedriver.

use std::process::{Command, Stdio};

/// Installs both unless they are there; says what to do if that cannot be done.
pub(crate) fn install() -> bool {
    if answers("chromium") && answers("chromedriver") {
        return true;
    }
    println!("\n--- installing chromium and chromedriver");
    let good = apt(&["chromium", "chromium-driver"]) && answers("chromedriver");
    if !good {
        println!(
            "the tests in a browser need chromium and chromedriver, which could not be installed: \
             install them by hand, or use --quick"
        );
    }
    good
}

/// Installs packages of Debian, where that can be done.
pub(crate) fn apt(packages: &[&str]) -> bool {
    let run = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let install: Vec<&str> = ["install", "-y"].iter().chain(packages).copied().collect();
    run(&["update"]) && run(&install)
}

fn answers(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
