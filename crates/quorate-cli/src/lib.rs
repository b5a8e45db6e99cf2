//! What both commands have in common, `quorate` and the laboratory's `quorate-lab`.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 it worked, 1 a
//! property was found broken, 2 the input was wrong or the work could not be done.

// A reader that has left would make `println!` panic; see `print`.
#![deny(clippy::print_stdout)]

pub mod cluster;
mod credentials;
mod usage;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

/// What a command found out, as an exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It worked, and nothing is wrong.
    Good,
    /// It worked, and found a property broken.
    Broken,
    /// The command documents what this means.
    Code(u8),
}

/// Reads the command line, does what it says, and tells how that went. A command line that is not
/// understood exits with `misunderstood`.
pub fn main<C: clap::Parser>(
    misunderstood: u8,
    perform: impl FnOnce(C) -> anyhow::Result<Outcome>,
) -> ExitCode {
    let command = C::command();
    let name = command.get_name();
    let cli = match C::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::explain(&command, misunderstood, &error),
    };
    match perform(cli) {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Broken) => ExitCode::from(1),
        Ok(Outcome::Code(code)) => ExitCode::from(code),
        // Whoever reads our output has seen enough (`quorate ... | head`).
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Prints a line of a result.
pub fn print(line: impl fmt::Display) -> std::io::Result<()> {
    unless_unread(writeln!(std::io::stdout().lock(), "{line}"))
}

/// That nobody reads what was written changes nothing else, not even the exit code.
pub fn unless_unread(written: std::io::Result<()>) -> std::io::Result<()> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
