//! The `quorate` command: runs a cluster's nodes, and uses and watches their pools. The laboratory,
//! which simulates, checks and measures, is `quorate-lab`.

#![deny(clippy::print_stdout)]

mod commands;

use std::process::ExitCode;

use quorate_cli::{Outcome, print};

#[derive(clap::Parser, Debug)]
#[command(name = "quorate", version, about = "Share k units of anything among n machines.")]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    // Of these, every smaller code may be that of the command they run.
    let verb = std::env::args_os().nth(1);
    let wrapper = verb.is_some_and(|verb| verb == "run" || verb == "jobserver");
    let misunderstood = if wrapper { commands::run::FAILED } else { 2 };
    quorate_cli::main(misunderstood, |cli: Cli| commands::run(cli.command))
}
