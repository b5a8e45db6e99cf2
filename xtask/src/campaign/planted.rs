//! Whether the campaign finds what is wrong: nodes that break a rule
//! (crates/quorate-node/src/planted.rs), and clients that do. Each by the law that it breaks.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::draw::{Draw, Means, Only};
use super::play::play;
use super::stage::Tools;
use crate::lab::net::say;

/// The draws of `cargo xtask test`: all kinds of clients, nodes that are cut off and that forget.
pub(crate) const SHORT: &[&[&str]] =
    &[&["mixed", "isolate-one", "table", "3"], &["sizes", "kill-decider-return", "central", "3"]];

struct Bug {
    name: &'static str,
    about: &'static str,
    node: bool,
    /// Where it shows.
    draw: &'static [&'static str],
    /// With this lease, and for so long.
    millis: (u64, u64),
    /// One of these finds it.
    laws: &'static [&'static str],
}

const BUGS: &[Bug] = &[
    Bug {
        name: "late-deadline",
        about: "a node tells clients a deadline that is a lease too late",
        node: true,
        draw: &["long", "clients-killed", "central", "3"],
        // What the dead were given must be over, and not what they were told.
        millis: (1500, 6000),
        laws: UNITS,
    },
    Bug {
        name: "nothing-before",
        about: "a node that restarts takes it that nothing was promised before",
        node: true,
        draw: &["long", "kill-all-return", "central", "3"],
        // Long enough for a node to be back before it.
        millis: (5000, 5000),
        laws: UNITS,
    },
    Bug {
        name: "no-renewal",
        about: "a client uses its units to the end without renewing",
        node: false,
        draw: &["long", "none", "central", "3"],
        millis: (1500, 3000),
        laws: UNITS,
    },
    Bug {
        name: "releases-first",
        about: "a client gives back before it has stopped",
        node: false,
        draw: &["small", "none", "central", "3"],
        millis: (1500, 3000),
        laws: UNITS,
    },
    Bug {
        name: "wrong-units",
        about: "a client uses other units than it was granted",
        node: false,
        draw: &["small", "none", "table", "3"],
        millis: (1500, 3000),
        laws: UNITS,
    },
    Bug {
        name: "same-fence",
        about: "a node tells the same fence to everybody",
        node: true,
        draw: &["small", "none", "central", "3"],
        millis: (1500, 2000),
        laws: &["fence order"],
    },
    Bug {
        name: "false-refusal",
        about: "a node says of claims that they are over that nobody ended",
        node: true,
        draw: &["small", "none", "table", "3"],
        millis: (1500, 2000),
        laws: &["true refusals"],
    },
    Bug {
        name: "early-end",
        about: "a node tells holders who renew in time that they have nothing any more",
        node: true,
        draw: &["long", "none", "table", "3"],
        millis: (1500, 3000),
        laws: &["kept promises"],
    },
    Bug {
        name: "always-ready",
        about: "a node says that it can grant whatever happens",
        node: true,
        draw: &["small", "kill-majority", "table", "3"],
        // Until nothing has happened for long enough to hold a node to its word.
        millis: (1500, 13_000),
        laws: &["operator's law"],
    },
    Bug {
        name: "leased-standing",
        about: "a node takes away what has no lease when one would be over",
        node: true,
        draw: &["standing", "none", "table", "3"],
        millis: (1500, 6000),
        laws: &["standing stays", "exclusivity", "capacity"],
    },
    Bug {
        name: "one-more",
        about: "a client uses one unit more than it was granted",
        node: false,
        draw: &["small", "none", "central", "3"],
        millis: (1500, 2000),
        laws: &["one grant per claim"],
    },
    Bug {
        name: "uses-cancelled",
        about: "a client uses what it cancelled",
        node: false,
        draw: &["fickle", "none", "central", "3"],
        millis: (1500, 3000),
        laws: &["cancelled is over"],
    },
];

/// Laws about units.
const UNITS: &[&str] = &["capacity", "exclusivity", "fence order"];

/// Seeds that get a chance: processes are not scheduled by them.
const TRIES: u64 = 4;

/// Whether each is found, by the law that it breaks. Three at a time: most of it is waiting.
pub(crate) fn find_all(tools: &Tools, keep: &Path) -> bool {
    let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // The longest first.
    let mut bugs: Vec<&Bug> = BUGS.iter().collect();
    bugs.sort_by_key(|bug| std::cmp::Reverse(bug.millis.1));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    missed.fetch_add(usize::from(!find(bug, tools, keep)), Ordering::Relaxed);
                }
            });
        }
    });
    missed.into_inner() == 0
}

fn find(bug: &Bug, tools: &Tools, keep: &Path) -> bool {
    if bug.node && tools.real.is_none() {
        say(&format!("planted bug {}: skipped, it is in the program `real`", bug.name));
        return true;
    }
    let only = Only(bug.draw.iter().map(|word| (*word).to_owned()).collect());
    let mut tools = tools.clone();
    match bug.node {
        true => tools.node_bug = Some(bug.name),
        false => tools.client_bug = Some(bug.name),
    }
    let mut missed = Vec::new();
    for seed in 1..=TRIES {
        let mut draw = Draw::new(seed, &only, Means::default());
        let stands = draw.workload.stands;
        (draw.units, draw.durable, draw.apart, draw.brief) = (2, stands, None, true);
        draw.lease = Duration::from_millis(bug.millis.0);
        draw.span = Duration::from_millis(bug.millis.1);
        let keep = keep.join(bug.name);
        let played = play(&draw, &tools, &keep, "cargo xtask campaign --planted");
        // It was meant to fail.
        let _ = std::fs::remove_dir_all(&keep);
        let breaches = played.map_or_else(|why| vec![why], |result| result.summary.breaches);
        let law = |breach: &&String| bug.laws.iter().any(|law| breach.starts_with(law));
        if let Some(breach) = breaches.iter().find(law) {
            say(&format!("planted bug {}: found: {breach}", bug.name));
            return true;
        }
        missed.extend(breaches);
    }
    say(&format!("planted bug {} ({}): NOT FOUND: {missed:?}", bug.name, bug.about));
    false
}
