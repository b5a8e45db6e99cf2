//! A node that breaks a rule: this test program again, started as `real node BUG CONFIG`.

use std::path::Path;

use quorate_node::{Bug, Config, Node};

/// The bugs by name, and what is no bug: a clock that is 4 % fast or slow, or twice as fast, and
/// another version of the wire.
const BUGS: [(&str, Bug); 11] = [
    ("late-deadline", Bug::LateDeadline),
    ("nothing-before", Bug::NothingBefore),
    ("same-fence", Bug::SameFence),
    ("false-refusal", Bug::FalseRefusal),
    ("early-end", Bug::EarlyEnd),
    ("always-ready", Bug::AlwaysReady),
    ("leased-standing", Bug::LeasedStanding),
    ("clock-fast", Bug::Clock(1_040_000)),
    ("clock-slow", Bug::Clock(960_000)),
    ("clock-double", Bug::Clock(2_000_000)),
    ("next-wire", Bug::NextWire),
];

pub(crate) fn name(bug: Bug) -> &'static str {
    let found = BUGS.iter().find(|(_, known)| *known == bug);
    found.expect("every bug has a name").0
}

/// The process: serves until it is killed.
pub(crate) fn main(words: &[String]) {
    let [bug, config] = words else { panic!("the harness names a bug and a file") };
    let (_, bug) = BUGS.iter().find(|(name, _)| name == bug).expect("a bug we have");
    let text = std::fs::read_to_string(Path::new(config)).expect("a file that was just written");
    // Ended as the command ends, if it cannot start: its certificate may be of no use just now.
    let fail = |why: &dyn std::fmt::Display| -> ! {
        eprintln!("{why}");
        std::process::exit(2)
    };
    let config = Config::parse(&text).unwrap_or_else(|error| fail(&error));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let started = Node::start_with(config, *bug).await;
        let mut node = started.unwrap_or_else(|error| fail(&error));
        panic!("{}", node.failed().await);
    });
}
