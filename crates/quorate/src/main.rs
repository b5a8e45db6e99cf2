//! The `quorate` command: the only crate that sees everything.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 it worked, 1 a
//! property was found broken, 2 the input was wrong or the work could not be done.

// A reader that has left would make `println!` panic; see `print`.
#![deny(clippy::print_stdout)]

mod commands;
mod experiment;
mod plots;
mod protocols;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

/// What a command found out, as an exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It worked, and nothing is wrong.
    Good,
    /// It worked, and found a property broken.
    Broken,
    /// The command documents what this means.
    Code(u8),
}

#[derive(Parser, Debug)]
#[command(name = "quorate", version, about = "Share k units of anything among n machines.")]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match commands::run(cli.command) {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Broken) => ExitCode::from(1),
        Ok(Outcome::Code(code)) => ExitCode::from(code),
        // Whoever reads our output has seen enough (`quorate ... | head`).
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quorate: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Prints a line of a result.
fn print(line: impl fmt::Display) -> std::io::Result<()> {
    unless_unread(writeln!(std::io::stdout().lock(), "{line}"))
}

/// That nobody reads what was written changes nothing else, not even the exit code.
fn unless_unread(written: std::io::Result<()>) -> std::io::Result<()> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Help goes to standard output in full; a mistake gets one clear line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nothing better can be done if even help cannot be printed.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        eprintln!("quorate: a command is missing: choose {} (see --help)", listed(error));
        return ExitCode::from(2);
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
    eprintln!("quorate: {line} (see --help)");
    // Of `run`, every smaller code may be that of the command it runs.
    let wrapper = std::env::args_os().nth(1).is_some_and(|verb| verb == "run");
    ExitCode::from(if wrapper { commands::run::FAILED } else { 2 })
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
