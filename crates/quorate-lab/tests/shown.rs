//! What the documentation shows of `quorate-lab` is true.
//!
//! `UPDATE_EXPECT=1 cargo test -p quorate-lab --test shown` writes its reference anew.

#[path = "../../quorate-cli/tests/shown/mod.rs"]
mod shown;

use shown::Program;

const COMMAND: Program = Program {
    name: "quorate-lab",
    path: env!("CARGO_BIN_EXE_quorate-lab"),
    folder: env!("CARGO_TARGET_TMPDIR"),
};

#[test]
fn every_session_in_the_documentation_is_true() {
    shown::every_session_is_true(COMMAND);
}

#[test]
fn every_command_has_a_page_that_says_what_help_says() {
    shown::every_command_has_its_page(COMMAND);
}
