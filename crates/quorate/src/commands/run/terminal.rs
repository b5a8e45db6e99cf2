//! The terminal: whoever is in its foreground may read from it. The command runs in a process group
//! of its own, so `quorate run` hands the foreground over to it, and takes it back at the end.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// How long the command waits for the foreground before it starts without.
const PATIENCE: Duration = Duration::from_secs(2);

/// Our place in the foreground of a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    ours: Pid,
}

impl Terminal {
    /// The terminal, if standard input is one and we are in its foreground.
    pub(crate) fn find() -> Option<Terminal> {
        is_foreground().then(|| Terminal { ours: getpgrp() })
    }

    /// Another process group comes to the foreground.
    pub(crate) fn hand_to(self, group: Pid) {
        // If the terminal has gone away, nobody reads from it.
        let _ = tcsetpgrp(io::stdin(), group);
    }

    /// Done from the background, where the system stops whoever tries and has not blocked SIGTTOU.
    pub(crate) fn take_back(self) {
        let blocked = SigSet::from(Signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK);
        let Ok(before) = blocked else { return };
        let _ = tcsetpgrp(io::stdin(), self.ours);
        let _ = before.thread_set_mask();
    }
}

fn is_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Called in the command's place: waits until it is in the foreground.
pub(crate) fn wait_for_foreground() {
    let give_up = Instant::now() + PATIENCE;
    while !is_foreground() && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(1));
    }
}
