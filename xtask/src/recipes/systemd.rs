//! What guides let systemd do, by the units of the pages, on a machine that systemd has started:
//! docs/guides/fences.md, "A service of systemd", on what stands for two machines, and
//! docs/guides/recipes.md, "Reboots after unattended upgrades", with a machine that starts anew.

use std::path::Path;

use super::{Done, ensure};
use crate::machine::Debian;
use crate::steps;

pub(super) fn units(root: &Path) -> Done {
    let target = steps::target(root);
    println!("a Debian with systemd is made");
    let debian =
        Debian::new(target.join("recipes-debian"), &["systemd", "systemd-sysv", "iproute2"])?;
    let command = debian.tree().join("usr/bin/quorate");
    std::fs::copy(target.join("debug/quorate"), command).map_err(|error| error.to_string())?;
    let one = block(root, "docs/guides/fences.md", "# /etc/systemd/system/only-one.service\n")?;
    tried(&debian, include_str!("service.sh"), &[("unit", one.as_str())], 3)?;
    let first = "# /etc/systemd/system/reboot-when-free.service\n";
    let all = block(root, "docs/guides/recipes.md", first)?;
    let recipe = text(root, "packaging/recipes/reboot-when-free")?;
    tried(&debian, include_str!("reboots.sh"), &[("units", all.as_str()), ("recipe", &recipe)], 2)
}

/// A script says a line that begins with an article for each thing that it has seen.
fn tried(debian: &Debian, script: &str, files: &[(&str, &str)], trials: usize) -> Done {
    let said = debian.boot(script, files)?;
    let seen: Vec<&str> = said.lines().filter(|line| line.starts_with("a ")).collect();
    seen.iter().for_each(|line| println!("systemd: {line}"));
    ensure(seen.len() == trials, &said)
}

/// The block of a page that begins with this line.
fn block(root: &Path, page: &str, first: &str) -> Done<String> {
    let text = text(root, page)?;
    let rest = text.split_once(&format!("\n{first}")).map(|(_, rest)| rest);
    let inside = rest.and_then(|rest| rest.split_once("```")).map(|(inside, _)| inside);
    inside.map(|inside| format!("{first}{inside}")).ok_or(format!("{page} has no block {first}"))
}

fn text(root: &Path, file: &str) -> Done<String> {
    std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}
