//! The package of Debian, by dpkg-deb alone, and what becomes of it in a Debian of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Dist, EXAMPLES, SHELLS, output, perform, put, told, write};
use crate::browser::apt;
use crate::machine::Debian;

/// Puts everything in its place and packs it.
pub(super) fn package(dist: &Dist<'_>) -> Result<PathBuf, String> {
    let tree = dist.stage.join("deb");
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let packaging = dist.root.join("packaging");
    put(&dist.binary, &tree.join("usr/bin/quorate"), 0o755)?;
    perform(Command::new("strip").arg(tree.join("usr/bin/quorate")))?;
    let unit = tree.join("usr/lib/systemd/system/quorate.service");
    put(&packaging.join("systemd/quorate.service"), &unit, 0o644)?;
    let user = tree.join("usr/lib/sysusers.d/quorate.conf");
    put(&packaging.join("systemd/quorate.sysusers.conf"), &user, 0o644)?;
    let man = tree.join("usr/share/man/man1");
    dist.pages(&man)?;
    for page in std::fs::read_dir(&man).map_err(|error| told(&man, &error))?.flatten() {
        perform(Command::new("gzip").arg("-9n").arg(page.path()))?;
    }
    let places = [
        "usr/share/bash-completion/completions",
        "usr/share/zsh/vendor-completions",
        "usr/share/fish/vendor_completions.d",
    ];
    for ((shell, file), place) in SHELLS.iter().zip(places) {
        dist.completion(shell, &tree.join(place).join(file))?;
    }
    let doc = tree.join("usr/share/doc/quorate");
    put(&packaging.join("debian/copyright"), &doc.join("copyright"), 0o644)?;
    for file in EXAMPLES {
        put(&packaging.join(file), &doc.join("examples").join(file), 0o644)?;
    }
    let mut date = Command::new("date");
    let date = output(date.args(["-R", "-u", "-d"]).arg(format!("@{}", dist.time())))?;
    let control = packaging.join("debian/control");
    let control = std::fs::read_to_string(&control).map_err(|error| told(&control, &error))?;
    let maintainer = control.lines().find_map(|line| line.strip_prefix("Maintainer: "));
    let entry = format!(
        "quorate ({}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {}  {}",
        dist.version,
        maintainer.unwrap_or_default(),
        date.trim_end()
    );
    let changelog = doc.join("changelog");
    write(&changelog, &format!("{entry}\n"))?;
    perform(Command::new("gzip").arg("-9n").arg(&changelog))?;

    let kilobytes = output(Command::new("du").arg("-sk").arg(&tree))?;
    let kilobytes = kilobytes.split_whitespace().next().unwrap_or("0").to_owned();
    let control = control
        .replace("@VERSION@", &dist.version)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@SIZE@", &kilobytes)
        .replace("@DEPENDS@", &depends(dist, &tree)?);
    write(&tree.join("DEBIAN/control"), &control)?;
    for script in ["postinst", "prerm", "postrm"] {
        let from = packaging.join("debian").join(script);
        put(&from, &tree.join("DEBIAN").join(script), 0o755)?;
    }
    let package = dist.artefacts.join(format!("quorate_{}_{architecture}.deb", dist.version));
    perform(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "--build"])
            .arg(&tree)
            .arg(&package)
            .env("SOURCE_DATE_EPOCH", dist.time()),
    )?;
    Ok(package)
}

/// The libraries that the command is linked with, as Debian calls them.
fn depends(dist: &Dist<'_>, tree: &Path) -> Result<String, String> {
    let scratch = dist.stage.join("shlibs");
    write(
        &scratch.join("debian/control"),
        "Source: quorate\n\nPackage: quorate\nArchitecture: any\n",
    )?;
    let mut tool = Command::new("dpkg-shlibdeps");
    tool.arg("-O").arg(tree.join("usr/bin/quorate")).current_dir(&scratch);
    let said = output(&mut tool)?;
    let found = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    found.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps says {said:?}"))
}

/// lintian, and a Debian of its own in which it is installed, upgraded, removed and purged: first
/// without systemd, as in a container, then as systemd runs it.
pub(super) fn attempt(dist: &Dist<'_>, package: &Path) -> Result<(), String> {
    let there = Command::new("lintian").arg("--version").output().is_ok();
    if !there && !apt(&["lintian"]) {
        return Err("lintian could not be installed".into());
    }
    // Nobody has an address to write to yet.
    let suppressed = "--suppress-tags=bogus-mail-host,bogus-mail-host-in-debian-changelog";
    let strict = ["--allow-root", "--fail-on=error,warning", suppressed];
    perform(Command::new("lintian").args(strict).arg(package))?;
    println!("lintian has nothing to say");
    let debian = Debian::new(dist.stage.join("chroot"), &[])?;
    inside(dist, package, debian.tree())?;
    println!("--- under systemd");
    print!("{}", debian.boot(include_str!("service.sh"), &[])?);
    Ok(())
}

/// A package of the next version, with the same in it.
fn next(dist: &Dist<'_>, chroot: &Path) -> Result<(), String> {
    let tree = dist.stage.join("deb");
    let control = tree.join("DEBIAN/control");
    let text = std::fs::read_to_string(&control).map_err(|error| told(&control, &error))?;
    let version = format!("Version: {}", dist.version);
    write(&control, &text.replace(&version, &format!("{version}+next")))?;
    let to = chroot.join("next.deb");
    perform(Command::new("dpkg-deb").args(["--root-owner-group", "-b"]).arg(&tree).arg(to))?;
    write(&control, &text)
}

fn inside(dist: &Dist<'_>, package: &Path, chroot: &Path) -> Result<(), String> {
    put(package, &chroot.join("this.deb"), 0o644)?;
    next(dist, chroot)?;
    for (what, script) in STEPS {
        println!("--- {what}");
        // With a view of processes, in which the command finds itself; it ends with the shell.
        let enter = r#"mount -t proc proc "$0/proc"; exec chroot "$0" sh -ec "$1""#;
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-ec", enter]).arg(chroot).arg(script);
        shell.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
        perform(&mut shell).map_err(|why| format!("{what}: {why}"))?;
    }
    Ok(())
}

/// As root in a new Debian, one after the other.
const STEPS: [(&str, &str); 5] = [
    (
        "install",
        "apt-get install -y /this.deb >/dev/null
         quorate --version
         getent passwd quorate
         test \"$(stat -c '%a %G' /etc/quorate)\" = '750 quorate'
         test -s /usr/share/man/man1/quorate-run.1.gz -o -e /etc/dpkg/dpkg.cfg.d
         test -s /usr/share/bash-completion/completions/quorate
         test -s /usr/lib/systemd/system/quorate.service",
    ),
    (
        "a node runs, as the user of the package, and a client is served",
        "cat > /etc/quorate/node.toml <<'END'
cluster = \"chroot\"
epoch = 1
node = \"a\"
data_dir = \"/var/lib/quorate\"
[listen]
clients = \"127.0.0.1:17420\"
peers = \"127.0.0.1:17421\"
[[members]]
name = \"a\"
peers = \"127.0.0.1:17421\"
[[pools]]
name = \"demo\"
units = 2
END
         chgrp quorate /etc/quorate/node.toml
         install -d -m 700 -o quorate -g quorate /var/lib/quorate
         as='setpriv --reuid quorate --regid quorate --clear-groups'
         $as quorate init --config /etc/quorate/node.toml
         $as quorate serve --config /etc/quorate/node.toml &
         node=$!
         trap 'kill $node' EXIT
         export QUORATE_SERVER=127.0.0.1:17420
         until quorate pools >/dev/null 2>&1; do sleep 0.1; done
         test \"$(quorate run demo -- sh -c 'echo $QUORATE_COUNT')\" = 1",
    ),
    (
        "upgrade",
        "apt-get install -y /next.deb >/dev/null
         dpkg-query -W quorate | grep -q next
         test -s /etc/quorate/node.toml
         test -d /var/lib/quorate",
    ),
    (
        "remove and purge",
        "apt-get remove -y quorate >/dev/null
         ! command -v quorate
         apt-get purge -y quorate >/dev/null
         test -s /etc/quorate/node.toml
         test -d /var/lib/quorate",
    ),
    (
        "what a machine has that systemd starts",
        "rm -r /etc/quorate /var/lib/quorate
         apt-get install -y --no-install-recommends systemd systemd-sysv >/dev/null",
    ),
];
