//! Bouillaguet, Arantes, Sens: A timer-free fault tolerant k-mutual exclusion algorithm (2009).
//!
//! Here is the algorithm in every history of small worlds, in time with delays, and what the
//! responsiveness property asks for. Its evaluation needs the simulator and is in the laboratory.

mod every;
mod heartbeat;
mod lemmas;
mod lines;
mod model;
mod played;
mod responsive;
mod runs;
mod timed;

use std::sync::{Mutex, OnceLock};

use every::{Found, Until, World};
use model::{Printed, Terms};
pub use played::{Misprint, Printed as PrintedProcess, Said};

use crate::{Pace, Tally};

/// Every function, section by section.
pub(crate) const EVIDENCE: &[&[(&str, crate::Evidence)]] =
    &[responsive::EVIDENCE, lines::EVIDENCE, lemmas::EVIDENCE, runs::EVIDENCE, heartbeat::EVIDENCE];

/// Two units, one crash at most: the smallest pool that recovers one.
fn terms() -> Terms {
    Terms::new(2, 1)
}

/// The corrected algorithm in several worlds, each explored once: its name, and what was found.
fn right(pace: Pace) -> &'static [(String, Found)] {
    static QUICK: OnceLock<Vec<(String, Found)>> = OnceLock::new();
    static WHOLE: OnceLock<Vec<(String, Found)>> = OnceLock::new();
    pace.pick(&QUICK, &WHOLE).get_or_init(|| {
        let three = |requests: [u8; 3], ordered: bool, crashes: u8, dead: u32| {
            let order = if ordered { "links in order" } else { "any order" };
            let name = match (crashes, dead) {
                (0, 0) => "nobody crashes".to_owned(),
                (0, _) => "one dead from the start".to_owned(),
                _ => "one crashes at any point".to_owned(),
            };
            let name = format!("requests {requests:?}, {order}, {name}");
            let world = World { ordered, crashes, dead, ..World::new(terms(), requests) };
            (name, world.explore())
        };
        let mut worlds = vec![
            three([1, 1, 1], true, 1, 0),
            three([2, 1, 0], false, 1, 0),
            three([2, 2, 0], true, 1, 0),
            three([3, 3, 0], true, 0, 0b100),
        ];
        if pace == Pace::Whole {
            worlds.push(three([2, 1, 1], true, 1, 0));
            worlds.push(three([1, 1, 1], false, 0, 0));
            let four = World { dead: 0b1000, ..World::new(terms(), [2, 1, 1, 0]) };
            worlds.push(("four processes, [2, 1, 1], one dead".into(), four.explore()));
        }
        worlds
    })
}

/// That something is so in all of these worlds.
fn everywhere(pace: Pace, so: impl Fn(&Found) -> bool) -> Tally {
    let mut cases = Tally::new();
    for (name, found) in right(pace) {
        cases.case(so(found), || format!("{name}: {}", found.wrong()));
    }
    cases
}

fn states(pace: Pace) -> u64 {
    right(pace).iter().map(|(_, found)| found.states).sum()
}

/// What is printed, in a world of three under the responsiveness property. Each is explored once.
fn printed(what: Printed, requests: [u8; 3], until: Until) -> Found {
    type Key = (Printed, [u8; 3], Until);
    static KNOWN: Mutex<Vec<(Key, Found)>> = Mutex::new(Vec::new());
    let key = (what, requests, until);
    let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((_, found)) = known.iter().find(|(other, _)| *other == key) {
        return found.clone();
    }
    let found = World { until, ..World::new(terms().with(what), requests) }.explore();
    known.push((key, found.clone()));
    found
}

/// The steps of a history, in a line.
fn told(story: Option<&Vec<String>>) -> String {
    story.map_or_else(|| "none".into(), |story| story.join("; "))
}
