//! The `quorate-lab` command: simulates, checks, compares and measures the protocols that `quorate`
//! runs, and those that papers describe. It sees every crate.

#![deny(clippy::print_stdout)]

mod campaign;
mod commands;
mod experiment;
mod plots;
mod protocols;

use std::process::ExitCode;

use quorate_cli::{Outcome, print, unless_unread};

#[derive(clap::Parser, Debug)]
#[command(
    name = "quorate-lab",
    version,
    about = "The laboratory of quorate: simulate, check, compare, measure."
)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    quorate_cli::main(2, |cli: Cli| commands::run(cli.command))
}
