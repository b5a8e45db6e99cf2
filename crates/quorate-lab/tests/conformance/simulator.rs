//! The simulator's arm: a scenario becomes a transcript (`quorate_sim::replay`), with the very
//! protocol value that the node's configuration makes.
//!
//! What the node does around a protocol is done here too: its failure detector's opinions, the
//! record with which a restarted seat begins, and, for a protocol that knows only nodes, the end of
//! a lease that its client did not renew.

use std::fmt::Write as _;
use std::sync::Arc;

use quorate_core::{Protocol, Units};
use quorate_node::{Config, PoolDef};
use quorate_protocols::allocator::labels::Labels;
use quorate_protocols::arbiter::Arbiter;
use quorate_protocols::broadcast::Weighted;
use quorate_protocols::central::Central;
use quorate_protocols::ring::Ring;
use quorate_protocols::table::Table;
use quorate_protocols::ticket::Ticket;
use quorate_sim::replay;

use crate::table::{Scenario, Step};

/// Time in which everything settles that is going to, while no lease ends.
const SETTLE: &str = "run 400ms\n";
/// Several leases of a second, and whatever comes after them.
const PASS: &str = "run 8s\n";

/// What is observed, in the order of the scenario, and the transcript.
type Played = (Vec<(String, String)>, String);

/// Plays a scenario if the pool's protocol is this one.
type Play = fn(&Scenario, &PoolDef) -> Option<Played>;

const EVERY: [Play; 6] = [
    play::<Central>,
    play::<Arbiter>,
    play::<Ticket>,
    play::<Table>,
    play::<Weighted>,
    play::<Ring>,
];

/// Plays a scenario with the pool of this configuration.
pub(crate) fn run(scenario: &Scenario, config: &Config) -> Played {
    let def = &config.pools[0];
    let played = EVERY.iter().find_map(|play| play(scenario, def));
    played.unwrap_or_else(|| panic!("{} has no line in EVERY", def.protocol.name()))
}

fn play<P: Protocol<Pool: 'static>>(scenario: &Scenario, def: &PoolDef) -> Option<Played> {
    // Several protocols may be told of their pools in the same way.
    if def.protocol.name() != P::NAME {
        return None;
    }
    let pool = def.protocol.pool::<P>("p", crate::NODES)?;
    let arm = Arm { remembers: def.protocol.reads_records(), labels: def.labels().cloned() };
    Some(arm.play::<P>(scenario, &pool))
}

struct Arm {
    /// Whether a seat whose node kept its directory begins with its record.
    remembers: bool,
    /// What is known of the units, if they differ.
    labels: Option<Arc<Labels>>,
}

impl Arm {
    fn play<P: Protocol>(&self, scenario: &Scenario, pool: &P::Pool) -> Played {
        let mut script = format!("nodes {}\n", crate::NODES);
        let mut observed = Vec::new();
        for step in &scenario.steps {
            if let Step::Expect { client, state, .. } = step {
                script.push_str(SETTLE);
                let happened = replay::<P>(&script, |_| pool.clone());
                let happened = happened.unwrap_or_else(|why| panic!("{scenario}: {why}"));
                let seen = crate::table::as_asked(standing(&happened, *client), state);
                observed.push((format!("c{client}"), seen.to_owned()));
                continue;
            }
            let settled = || {
                let script = format!("{script}{SETTLE}");
                replay::<P>(&script, |_| pool.clone()).expect("the same script as before")
            };
            let line = self.command::<P>(step, pool, settled);
            script.push_str(&line);
        }
        let happened = replay::<P>(&script, |_| pool.clone()).expect("the same script as before");
        (observed, happened)
    }

    /// The units that will do, as a script names them; none if there are none.
    fn select(&self, selector: &str) -> String {
        let selector = selector.parse().expect("a selector");
        let labels = self.labels.as_ref().expect("only where units differ");
        let units: Vec<String> =
            labels.select(&selector).iter().map(|unit| unit.0.to_string()).collect();
        units.join(",")
    }

    fn command<P: Protocol>(
        &self,
        step: &Step,
        pool: &P::Pool,
        settled: impl Fn() -> String,
    ) -> String {
        let others = |node: usize| (0..crate::NODES).filter(move |other| *other != node);
        // Writing to a string cannot fail.
        let mut line = String::new();
        let _ = match *step {
            Step::Claim { client, units, .. } if Units::new(units, P::capacity(pool)).is_err() => {
                writeln!(line, "# REFUSED c{client}")
            }
            Step::Claim { client, node, units, ref selectors } => {
                let _ = write!(line, "claim n{node} c{client} {units}");
                let among: Vec<String> = selectors.iter().map(|text| self.select(text)).collect();
                if among.iter().any(String::is_empty) {
                    line.clear();
                    writeln!(line, "# REFUSED c{client}")
                } else {
                    line.extend(among.iter().map(|units| format!(" {units}")));
                    writeln!(line)
                }
            }
            Step::Again { client, node } => writeln!(line, "again n{node} c{client}"),
            Step::Release(client) if standing(&settled(), client) == "lost" => Ok(()),
            Step::Renew { client, node } => writeln!(line, "renew n{node} c{client}"),
            Step::Release(client) => writeln!(line, "release c{client}"),
            Step::Cancel(client) => writeln!(line, "cancel c{client}"),
            Step::Cut => writeln!(line, "cut n0 n1"),
            Step::Heal => writeln!(line, "heal n0 n1"),
            Step::Crash(node) => {
                let suspect = |other| format!("suspect n{other} n{node}\n");
                write!(line, "crash n{node}\n{}", others(node).map(suspect).collect::<String>())
            }
            Step::Restart { node, forgot } => {
                let how = if forgot || !self.remembers { "amnesia" } else { "recovered" };
                let trust = |other| format!("trust n{other} n{node}\n");
                let trust: String = others(node).map(trust).collect();
                write!(line, "restart n{node} {how}\n{trust}")
            }
            Step::Pass => writeln!(line, "{PASS}"),
            Step::Differ { .. } | Step::Expect { .. } => unreachable!("done elsewhere"),
        };
        line
    }
}

/// How a claim stands after what happened, as its client sees it, which speaks with one node at a
/// time. Each client makes one claim.
fn standing(happened: &str, client: u32) -> &'static str {
    let (claim, who) = (format!("{client}.1"), format!("c{client}"));
    let (mut standing, mut home, mut node) = ("unknown", "", "");
    for line in happened.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // What a node does comes below what happened to it.
        if let ([first, ..], true) = (&words[..], line.starts_with("    n")) {
            node = first;
        }
        if let ["claim" | "again" | "renew", at, name, ..] = words[..]
            && name == who
        {
            home = at;
        }
        standing = match words[..] {
            ["claim", _, name, ..] if name == who => "waiting",
            ["REFUSE", name, ..] if name == format!("{claim}:") && line.ends_with("will do") => {
                "refused"
            }
            // What is over stays over, whatever the client says.
            ["release", name] if name == who && standing == "granted" => "released",
            ["cancel", name] if name == who && standing == "waiting" => "cancelled",
            ["#", "REFUSED", name] if name == who => "refused",
            ["#", "LOST", name] if name == who => "lost",
            ["GRANT", name, ..] if name == claim && node == home => "granted",
            ["LOSE", name] if name == claim && node == home && standing == "granted" => "lost",
            [name, "stops", ..] if name == who => "lost",
            _ => standing,
        };
    }
    standing
}
