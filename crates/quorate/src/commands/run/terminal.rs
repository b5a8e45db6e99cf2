//! The terminal: whoever is in its foreground may read from it. The command runs in a process group
//! of its own, so `quorate run` hands the foreground over to it, and takes it back at the end.
//!
//! Taking it back is done from the background, where the system stops whoever tries and does not
//! ignore SIGTTOU. Only a program that starts another can have a signal ignored without unsafe
//! code, so on a terminal `quorate run` starts itself once more by way of the system's shell, which
//! does nothing else and leaves nothing behind.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// Set for ourselves once SIGTTOU is ignored.
const PREPARED: &str = "QUORATE_RUN_ON_TERMINAL";
/// How long the command waits for the foreground before it starts without.
const PATIENCE: Duration = Duration::from_secs(2);

/// Our place in the foreground of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    ours: Pid,
}

impl Terminal {
    /// The terminal, if standard input is one and we are in its foreground. May start this program
    /// once more, in its place.
    pub(super) fn find() -> Option<Terminal> {
        if !is_foreground() {
            return None;
        }
        if std::env::var_os(PREPARED).is_none() {
            prepare(); // Returns only if there is no shell; then the command cannot read from it.
            return None;
        }
        Some(Terminal { ours: getpgrp() })
    }

    /// Another process group comes to the foreground.
    pub(super) fn hand_to(self, group: Pid) {
        // If the terminal has gone away, nobody reads from it.
        let _ = tcsetpgrp(io::stdin(), group);
    }

    pub(super) fn take_back(self) {
        let _ = tcsetpgrp(io::stdin(), self.ours);
    }
}

fn is_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

fn prepare() {
    let Ok(ourselves) = std::env::current_exe() else { return };
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let _ = Command::new("/bin/sh")
        .args(["-c", "trap '' TTOU; exec \"$0\" \"$@\""])
        .arg(ourselves)
        .args(words)
        .env(PREPARED, "1")
        .exec();
}

/// Called in the command's place: waits until it is in the foreground.
pub(super) fn wait_for_foreground() {
    let give_up = Instant::now() + PATIENCE;
    while !is_foreground() && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What the command need not know.
pub(super) fn clean(command: &mut Command) {
    command.env_remove(PREPARED);
}
