//! The `quorate-lab` command: the laboratory of [`quorate_lab`], with the protocols that are there.

use std::process::ExitCode;

fn main() -> ExitCode {
    quorate_lab::main(&[])
}
