//! docs/guides/fences.md, "A service of systemd": the unit of the page under a running systemd, on
//! what stands for two machines.

use std::path::Path;

use super::{Done, ensure};
use crate::machine::Debian;
use crate::steps;

/// A service that is stopped makes room; one that stood still is refused by its fence; one that is
/// killed waits in its turn.
pub(super) fn one_of_two(root: &Path) -> Done {
    let page = root.join("docs/guides/fences.md");
    let page = std::fs::read_to_string(page).map_err(|error| error.to_string())?;
    let unit = page.split_once("# /etc/systemd/system/only-one.service\n");
    let unit = unit.and_then(|(_, rest)| rest.split_once("```")).map(|(unit, _)| unit);
    let unit = unit.ok_or("the guide has no only-one.service")?;
    let target = steps::target(root);
    println!("a Debian with systemd is made");
    let debian =
        Debian::new(target.join("recipes-debian"), &["systemd", "systemd-sysv", "iproute2"])?;
    let command = debian.tree().join("usr/bin/quorate");
    std::fs::copy(target.join("debug/quorate"), command).map_err(|error| error.to_string())?;
    let said = debian.boot(include_str!("service.sh"), &[("unit", unit)])?;
    let trials: Vec<&str> = said.lines().filter(|line| line.starts_with("a ")).collect();
    trials.iter().for_each(|trial| println!("systemd: {trial}"));
    ensure(trials.len() == 3, &said)
}
