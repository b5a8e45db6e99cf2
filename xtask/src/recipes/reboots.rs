//! docs/guides/recipes.md, "Reboots after unattended upgrades": two machines of a rack, which are
//! folders, and a reboot that only leaves a mark.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Dev, Done, ensure, said, until};

const POOL: &str = "reboots-rack7";

struct Machine<'a> {
    dev: &'a Dev,
    script: PathBuf,
    folder: PathBuf,
}

impl Machine<'_> {
    fn new<'a>(dev: &'a Dev, root: &Path, name: &str) -> Done<Machine<'a>> {
        let folder = dev.folder.join(name);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let script = root.join("packaging/recipes/reboot-when-free");
        Ok(Machine { dev, script, folder })
    }

    /// The script, as its unit starts it.
    fn script(&self, word: &str) -> Command {
        let mut shell = self.dev.shell("sh");
        shell.arg(&self.script).arg(word).env("REBOOT_POOL", POOL).env("REBOOT_WITHIN", "0");
        shell.env("STATE_DIRECTORY", &self.folder).env("REBOOT_REQUIRED", self.mark("required"));
        shell.env("REBOOT", format!("touch {}", self.mark("rebooted").display()));
        shell
    }

    fn mark(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// An upgrade wants a reboot.
    fn upgrade(&self) -> Done {
        let _ = std::fs::remove_file(self.mark("rebooted"));
        std::fs::write(self.mark("required"), "").map_err(|error| error.to_string())
    }

    fn does(&self, word: &str) -> Done {
        let output = self.script(word).output().map_err(|error| error.to_string())?;
        ensure(output.status.success(), &said(&output))
    }

    fn rebooted(&self) -> bool {
        self.mark("rebooted").exists()
    }
}

pub(super) fn one_at_a_time(dev: &Dev, root: &Path) -> Done {
    let (one, other) = (Machine::new(dev, root, "one")?, Machine::new(dev, root, "other")?);
    let holders = || {
        let output = dev.quorate(&["holders", POOL])?;
        Ok::<usize, String>(said(&output).lines().count().saturating_sub(1))
    };
    one.does("want")?;
    ensure(!one.rebooted() && holders()? == 0, "no upgrade wants a reboot")?;
    one.upgrade()?;
    other.upgrade()?;
    one.does("want")?;
    ensure(one.rebooted() && holders()? == 1, "it may reboot, and its slot outlives the script")?;
    let waits = other.script("want").spawn().map_err(|error| error.to_string())?;
    let queue = || dev.quorate(&["queue", POOL]).is_ok_and(|it| said(&it).contains("reboot of"));
    until(queue)?;
    ensure(!other.rebooted(), "its neighbour is not back")?;
    one.does("done")?;
    let output = waits.wait_with_output().map_err(|error| error.to_string())?;
    ensure(output.status.success() && other.rebooted(), &said(&output))?;
    // It starts again without having been down, and gives back before it asks anew.
    other.upgrade()?;
    other.does("want")?;
    ensure(other.rebooted() && holders()? == 1, "one slot, however often it asks")?;
    other.does("done")?;
    other.does("done")?;
    // Nobody answers: it fails, and neither a slot nor the way to one is lost.
    one.upgrade()?;
    for word in ["want", "done"] {
        let mut alone = one.script(word);
        let output = alone.env("QUORATE_SERVER", "127.0.0.1:1").output();
        ensure(!output.map_err(|error| error.to_string())?.status.success(), "nobody answers")?;
    }
    ensure(!one.rebooted(), "nobody allowed it")?;
    one.does("want")?;
    one.does("done")?;
    ensure(one.rebooted() && holders()? == 0, "every slot is back")?;
    println!("machines of a rack reboot one at a time");
    Ok(())
}
