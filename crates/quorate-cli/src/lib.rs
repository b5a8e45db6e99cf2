//! What both commands have in common, `quorate` and the laboratory's `quorate-lab`.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 it worked, 1 a
//! property was found broken, 2 the input was wrong or the work could not be done.

// A reader that has left would make `println!` panic; see `print`.
#![deny(clippy::print_stdout)]

pub mod cluster;

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
        Err(error) => return usage(name, misunderstood, &error),
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

/// Help goes to standard output in full; a mistake gets one clear line.
fn usage(name: &str, misunderstood: u8, error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nothing better can be done if even help cannot be printed.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        eprintln!("{name}: a command is missing: choose {} (see --help)", listed(error));
        return ExitCode::from(misunderstood);
    }
    let text = error.render().to_string();
    let line = text
        .split("\n\nUsage")
        .flat_map(|part| part.split("\n\nFor more information"))
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    eprintln!("{name}: {line} (see --help)");
    ExitCode::from(misunderstood)
}

/// The commands of a help text, as in "this, that or other".
fn listed(help: &clap::Error) -> String {
    let text = help.render().to_string();
    let list = text.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<&str> = names.filter(|name| *name != "help").collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last.into() } else { format!("{} or {last}", names.join(", ")) }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
