//! The laboratory of quorate: simulates, checks, compares and measures the protocols that `quorate`
//! runs, those that papers describe, and yours. It sees every crate.
//!
//! The `quorate-lab` command is [`main`] without a protocol of anybody else. With one, it is the
//! same command that knows one protocol more:
//!
//! ```no_run
//! # use quorate_lab::{Added, Own};
//! # fn with<Doorman: Own>() -> std::process::ExitCode {
//! quorate_lab::main(&[Added::of::<Doorman>()])
//! # }
//! ```
//!
//! `sim run` (measures, traces, the replay page), `sim seeds` (faults drawn by seed, judged by the
//! laws), `sim sweep` and `compare` (tables and figures beside other protocols), `check` (every
//! history of small worlds) and `play` (the playground) have it then as `--protocol`. A program
//! that does so in full is `examples/own-protocol` of the repository, and the guide to it
//! `docs/guides/own-protocol.md`.
//!
//! # What stays
//!
//! [`Own`], [`Added`] and [`main`], and of the crates below it the contract and what it is written
//! in: all of `quorate-core`; `Needs` and `PoolPlan` of `quorate-sim`. Before 1.0 these change with
//! the second number of the version only, and the changelog says under *Changed* what to write
//! instead. With the third number nothing that compiled stops compiling. What a command prints as
//! JSON or CSV keeps its names likewise. Nothing is promised of traces, of the numbers that a seed
//! gives, or of how many states the checker finds: any version may change them, and says so.

#![deny(clippy::print_stdout)]

mod campaign;
mod commands;
mod experiment;
mod own;
mod plots;
mod protocols;

use std::process::ExitCode;

pub use own::{Added, Own};
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

/// Does what the command line says, also with these protocols.
pub fn main(own: &[Added]) -> ExitCode {
    protocols::add(own.iter().map(|added| added.0));
    quorate_cli::main(2, |cli: Cli| commands::run(cli.command))
}
