//! A Debian of its own, and systemd in it, running as it does on a machine: for what only a running
//! systemd can show. debootstrap makes it and systemd-nspawn starts it, with files, processes and
//! network of its own, so that nothing there can touch this machine. Needs root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::browser::apt;

/// A folder with a whole Debian, which goes with this value.
pub(crate) struct Debian {
    tree: PathBuf,
}

/// Where a script finds what it is given, and leaves what it says.
const SHARED: &str = "trial";

/// Starts the machine in the folder `$1`, and again when it wants to be rebooted (133). Where no
/// systemd runs, nobody gives it control groups, so it gets them here, and they are taken away when
/// it is over.
const START: &str = r#"
tree=$1
groups=
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    [ -e "$hierarchy/cgroup.procs" ] || continue
    mkdir "$hierarchy/quorate-$$" && echo $$ > "$hierarchy/quorate-$$/cgroup.procs"
    groups="$groups $hierarchy"
done
code=133
while [ $code = 133 ]; do
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout --kill-after 60 900 \
        systemd-nspawn --quiet --directory "$tree" --boot --register=no --keep-unit \
        --private-network --console=pipe --kill-signal=SIGRTMIN+3 systemd.run="/trial/start" \
        systemd.run_success_action=exit systemd.run_failure_action=exit </dev/null
    code=$?
done
for hierarchy in $groups; do
    echo $$ > "$hierarchy/cgroup.procs"
    find "$hierarchy/quorate-$$" -depth -type d -exec rmdir {} \;
done
exit $code"#;

impl Debian {
    /// The smallest there is, with these packages; anything that was in the folder is removed.
    pub(crate) fn new(tree: PathBuf, packages: &[&str]) -> Result<Debian, String> {
        let there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
        let tools = ["debootstrap", "systemd-nspawn"];
        if !tools.into_iter().all(there) && !apt(&["debootstrap", "systemd-container"]) {
            return Err("debootstrap and systemd-container could not be installed".into());
        }
        let _ = std::fs::remove_dir_all(&tree);
        let mut make = Command::new("debootstrap");
        make.arg("--variant=minbase");
        if !packages.is_empty() {
            make.arg(format!("--include={}", packages.join(",")));
        }
        let debian = Debian { tree };
        let output = make.arg("stable").arg(&debian.tree).arg(mirror()?).output();
        let output = output.map_err(|error| format!("debootstrap: {error}"))?;
        match output.status.success() {
            true => Ok(debian),
            false => Err(format!("debootstrap: {}", String::from_utf8_lossy(&output.stdout))),
        }
    }

    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Starts it, runs the script there as root with these files beside it in `/trial`, and stops
    /// it. Returns what the script said. After a reboot the script begins anew.
    pub(crate) fn boot(&self, script: &str, files: &[(&str, &str)]) -> Result<String, String> {
        let shared = self.tree.join(SHARED);
        let at = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
        std::fs::create_dir_all(&shared).map_err(|error| at(&shared, error))?;
        let start = "#!/bin/sh\nexec sh /trial/script >>/trial/said 2>&1\n";
        let own = [("start", start), ("script", script), ("said", "")];
        for (name, text) in own.iter().chain(files) {
            let path = shared.join(name);
            std::fs::write(&path, text).map_err(|error| at(&path, error))?;
        }
        let _ = Command::new("chmod").arg("+x").arg(shared.join("start")).status();
        let mut machine = Command::new("unshare");
        machine.args(["--mount", "--propagation", "private", "sh", "-c", START, "sh"]);
        let output = machine.arg(&self.tree).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("unshare: {error}"))?;
        let said = std::fs::read_to_string(shared.join("said")).unwrap_or_default();
        match output.status.success() {
            true => Ok(said),
            false => {
                let machine = String::from_utf8_lossy(&output.stderr);
                Err(format!("{said}\n{machine}\nthe machine ended with {}", output.status))
            }
        }
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.tree);
    }
}

/// Where this machine has its packages from.
fn mirror() -> Result<String, String> {
    let policy = Command::new("apt-get").args(["indextargets", "--format", "$(SITE)"]).output();
    let policy = policy.map_err(|error| format!("apt-get: {error}"))?;
    let sites = String::from_utf8_lossy(&policy.stdout).into_owned();
    sites.lines().next().map(str::to_owned).ok_or_else(|| "apt knows no mirror".to_owned())
}
