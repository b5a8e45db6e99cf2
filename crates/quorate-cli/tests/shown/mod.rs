//! What the documentation shows of a command, and how to find out whether it is true. The tests of
//! both commands include this.

mod reference;
mod sessions;

use std::path::PathBuf;

pub(crate) use reference::every_command_has_its_page;
pub(crate) use sessions::every_session_is_true;

/// The command that is asked.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    /// Where it runs.
    pub(crate) folder: &'static str,
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
