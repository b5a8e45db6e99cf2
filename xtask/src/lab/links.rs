//! Links that break in every way that links do, under jobs that renew what they hold: no unit ever
//! has two of them, and all units can be had when the links are well again.

use std::time::Duration;

use super::guide::{LAPTOP, NODES, Rack};
use super::hold::Load;
use super::net::{self, Outcome, say};

/// How many units the pool of the guide has.
const UNITS: u32 = 4;
/// Jobs at once: more than units.
const JOBS: usize = 6;
/// How long jobs hold: less than a lease, and longer than two. Those at b are of the second kind,
/// and must stop when they cannot renew.
const HELD_MS: [u64; 2] = [600, 4500];

/// Each of them in turn.
pub(crate) fn scenario(rack: &mut Rack) -> Outcome<String> {
    let all: &[Harm] = &[
        Harm::Cut,
        Harm::Isolate,
        Harm::Reset,
        Harm::Loss,
        Harm::Delay,
        Harm::Narrow,
        Harm::Laptop,
    ];
    play(rack, all)
}

/// The one that shows most in little time.
pub(crate) fn short(rack: &mut Rack) -> Outcome<String> {
    play(rack, &[Harm::Isolate])
}

/// What is done to links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    /// One link between nodes drops everything.
    Cut,
    /// A node is cut off from everybody.
    Isolate,
    /// Connections between two nodes are reset.
    Reset,
    /// A tenth of all packets between nodes is lost.
    Loss,
    /// Two nodes are 80 ms apart, each way.
    Delay,
    /// A node can send 128 kbit/s.
    Narrow,
    /// The clients' machine loses its link to a node, and a fifth of what it says to the others.
    Laptop,
}

impl Harm {
    fn name(self) -> &'static str {
        match self {
            Harm::Cut => "the link between a and b is cut",
            Harm::Isolate => "b is cut off from everybody",
            Harm::Reset => "connections between b and c are reset",
            Harm::Loss => "a tenth of the packets between nodes is lost",
            Harm::Delay => "a and b are 80 ms apart",
            Harm::Narrow => "c can send 128 kbit/s",
            Harm::Laptop => "clients lose a, and a fifth of what they say to b",
        }
    }

    fn begin(self, rack: &mut Rack) -> Outcome {
        let lab = &mut rack.lab;
        match self {
            Harm::Cut => lab.cut("a", "b"),
            Harm::Isolate => lab.isolate("b"),
            Harm::Reset => lab.reset("b", "c"),
            Harm::Loss => [("a", "b"), ("b", "c"), ("a", "c")]
                .into_iter()
                .try_for_each(|(one, other)| lab.lossy(one, other, 0.1)),
            Harm::Delay => lab.slow("a", "b", Duration::from_millis(80)),
            Harm::Narrow => lab.narrow("c", 128),
            Harm::Laptop => {
                lab.cut("a", LAPTOP)?;
                lab.lossy("b", LAPTOP, 0.2)
            }
        }
    }

    /// What shows that it has been noticed.
    fn noticed(self, rack: &Rack) -> Outcome {
        let connected = |name: &str, others: usize| {
            net::until(&format!("{name} is connected to {others}"), || {
                rack.connected(name) == Some(others)
            })
        };
        match self {
            Harm::Cut => connected("a", 1).and_then(|()| connected("b", 1)),
            Harm::Isolate => connected("b", 0),
            Harm::Reset => connected("b", 1).and_then(|()| connected("c", 1)),
            Harm::Loss | Harm::Narrow | Harm::Laptop => Ok(()),
            // Through the relay.
            Harm::Delay => connected("a", 2).and_then(|()| connected("b", 2)),
        }
    }
}

fn play(rack: &mut Rack, harms: &[Harm]) -> Outcome<String> {
    rack.install("lease = \"2s\"\n", "")?;
    rack.start()?;
    let access = rack.access()?;
    let mut total = [0; 3];
    for harm in harms {
        let hosts: Vec<_> = NODES.iter().chain([&LAPTOP]).map(|name| rack.host(name)).collect();
        let load = Load::start(&access, &hosts, ("ci-links", JOBS), &HELD_MS);
        load.goes_on(2, "before anything breaks")?;
        harm.begin(rack)?;
        harm.noticed(rack)?;
        load.goes_on(4, harm.name())?;
        rack.lab.heal()?;
        rack.until_joined()?;
        load.goes_on(4, "after all is well again")?;
        let counts = load.stop()?;
        access.judge()?;
        access.all_free(rack.host(LAPTOP), "ci-links", UNITS)?;
        let [held, lost, failed] = counts;
        say(&format!("    {}: {held} held, {lost} lost, {failed} unanswered", harm.name()));
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let [held, lost, failed] = total;
    Ok(format!(
        "{} of the ways to break links: {held} jobs held, {lost} lost, {failed} unanswered; never \
         two holders, and all {UNITS} units free again",
        harms.len()
    ))
}
