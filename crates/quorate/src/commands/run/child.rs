//! The command that `quorate run` runs: started, signalled and waited for as a process group.
//!
//! It is started by way of ourselves (`quorate __exec`): between the fork and the command somebody
//! has to ask the kernel to kill it if its wrapper dies, and only a process can ask that for
//! itself.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::ExitStatus;

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::terminal::{self, Terminal};
use crate::Outcome;

/// Exit codes as shells have them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// A running command.
pub(crate) struct Child {
    process: tokio::process::Child,
    group: Pid,
    /// What it was handed, and we take back.
    terminal: Option<Terminal>,
}

/// Whether it could be started.
pub(crate) enum Started {
    Running(Child),
    Failed { code: u8, why: String },
}

/// Starts the command in a process group of its own.
pub(crate) fn start(
    command: &[OsString],
    environment: &[(&str, String)],
    terminal: Option<Terminal>,
) -> anyhow::Result<Started> {
    let ourselves = std::env::current_exe().context("cannot find the quorate program")?;
    let spawned = tokio::process::Command::new(ourselves)
        .arg("__exec")
        .args(terminal.map(|_| "--terminal"))
        .arg(std::process::id().to_string())
        .arg("--")
        .args(command)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .spawn();
    let process = match spawned {
        Ok(process) => process,
        Err(error) => {
            return Ok(Started::Failed { code: NOT_EXECUTABLE, why: error.to_string() });
        }
    };
    let group = process
        .id()
        .and_then(|id| Pid::from_raw(id.cast_signed()))
        .context("the command has no process id")?;
    if let Some(terminal) = terminal {
        terminal.hand_to(group);
    }
    Ok(Started::Running(Child { process, group, terminal }))
}

impl Child {
    /// Waits for it: its own exit code, or 128 + the signal that ended it.
    pub(crate) async fn wait(&mut self) -> anyhow::Result<u8> {
        let status = self.process.wait().await.context("cannot wait for the command")?;
        if let Some(terminal) = self.terminal.take() {
            terminal.take_back();
        }
        Ok(code(status))
    }

    /// Its process group, as a number.
    pub(crate) fn group(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// Lets it go on if somebody suspended it at the terminal: we have that, and would leave nobody
    /// to ask for it back.
    pub(crate) fn go_on(&self) {
        let news = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let Ok(Some(status)) = waitid(WaitId::Pid(self.group), news) else { return };
        let suspended = status.stopping_signal() == Some(Signal::TSTP.as_raw());
        if suspended && self.terminal.is_some() {
            eprintln!("quorate: a command that holds units cannot be suspended; it goes on");
            self.forward(Signal::CONT);
        }
    }

    pub(crate) fn forward(&self, signal: Signal) {
        // Nobody left to signal is what we are about to learn by waiting.
        let _ = kill_process_group(self.group, signal);
    }

    /// Asks to stop. Continues it too: a stopped process hears nothing.
    pub(crate) fn terminate(&self) {
        self.forward(Signal::TERM);
        self.forward(Signal::CONT);
    }

    pub(crate) fn kill(&self) {
        self.forward(Signal::KILL);
    }
}

fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128_u8.wrapping_add(signal as u8),
        (None, None) => super::FAILED,
    }
}

/// Become a command that dies with its wrapper. For `quorate run`.
#[derive(clap::Args, Debug)]
pub(crate) struct ExecArgs {
    /// Wait for the foreground of the terminal first.
    #[arg(long)]
    terminal: bool,
    /// The wrapper's process id.
    wrapper: i32,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Asks to be killed when the wrapper dies, and becomes the command.
pub(crate) fn exec(args: ExecArgs) -> anyhow::Result<Outcome> {
    die_with_parent()?;
    let parent = rustix::process::getppid().map(Pid::as_raw_nonzero);
    if parent.is_none_or(|parent| parent.get() != args.wrapper) {
        return Ok(Outcome::Code(super::FAILED)); // It died before we asked.
    }
    let (program, words) = args.command.split_first().context("no command")?;
    if args.terminal {
        terminal::wait_for_foreground();
    }
    let error = std::process::Command::new(program).args(words).exec();
    eprintln!("quorate: cannot run {}: {error}", program.to_string_lossy());
    let found = error.kind() != io::ErrorKind::NotFound;
    Ok(Outcome::Code(if found { NOT_EXECUTABLE } else { NOT_FOUND }))
}

#[cfg(target_os = "linux")]
fn die_with_parent() -> anyhow::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot ask to die with the wrapper")
}

/// Elsewhere a wrapper that is killed leaves its command running.
#[cfg(not(target_os = "linux"))]
fn die_with_parent() -> anyhow::Result<()> {
    Ok(())
}
