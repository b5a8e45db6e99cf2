//! The laboratory with one protocol more, which is in `doorman.rs`. The guide to it is
//! `docs/guides/own-protocol.md`.

mod doorman;

use std::process::ExitCode;

use doorman::Doorman;
use quorate_lab::Added;

fn main() -> ExitCode {
    quorate_lab::main(&[Added::of::<Doorman>()])
}
