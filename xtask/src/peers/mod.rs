//! `cargo xtask peers`: Quorate beside Redis, etcd and ZooKeeper, and beside the machine's limit,
//! in one run (docs/speed.md has the table). Not part of `test`: it takes minutes, judges nothing,
//! and installs servers.

mod lab;

use std::path::Path;
use std::process::{Command, Stdio};

use crate::browser::apt;

pub(crate) const HELP: &str = "\
cargo xtask peers [WORDS OF quorate-lab bench peers]

Installs Debian's redis-server, etcd-server and zookeeper where they are missing (root), builds the
laboratory in release, and has it compare them with Quorate and with the raw limit of the machine.
Every system runs on loopback, alone, and only while it is measured.

  cargo xtask peers                        everything, three times in alternation; some five minutes
  cargo xtask peers --rounds 5 --json      for programs
  cargo xtask peers --clients 1            one client alone
  cargo xtask peers --systems raw,redis,quorate1

Its words are those of docs/reference/quorate-lab-bench-peers.md.

  cargo xtask peers --lab [--json]         the laboratory beside SimGrid, SimPy, quoracle and
                                           stateright, by processor time; some ten minutes

installs libsimgrid-dev where it is missing (root), and takes the others from their registries.";

/// What is looked for, and the package that has it.
const WANTED: [(&str, &str); 3] = [
    ("/usr/bin/redis-server", "redis-server"),
    ("/usr/bin/etcd", "etcd-server"),
    ("/usr/share/java/zookeeper.jar", "zookeeper"),
];

/// Installs, builds, and measures.
pub(crate) fn run(root: &Path, words: &[&str]) -> bool {
    match words {
        ["--lab"] => return lab::run(root, false),
        ["--lab", "--json"] | ["--json", "--lab"] => return lab::run(root, true),
        _ => {}
    }
    let missing = WANTED.iter().filter(|(file, _)| !Path::new(file).exists());
    let missing: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        eprintln!("installing {}", missing.join(", "));
        if !apt(&missing) {
            eprintln!(
                "{} could not be installed: install by hand, or leave out with --systems",
                missing.join(", ")
            );
            // Whoever names systems may not need them.
            if !words.contains(&"--systems") {
                return false;
            }
        }
    }
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.args(["run", "--release", "--locked", "--quiet", "--package", "quorate-lab", "--"]);
    cargo.args(["bench", "peers"]).args(words).current_dir(root).stdin(Stdio::null());
    cargo.status().is_ok_and(|status| status.success())
}
