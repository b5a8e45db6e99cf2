//! Running a recorded run again, and saying where it differs.
//!
//! The recordings leave one thing open: when local actions happen that are already enabled in the
//! first state, as in an arbitrary one. A run counts as the same if any of the three sensible
//! answers gives it ([`First`]). Grants of one event are compared as a set, since stations that
//! act in the same round have no order among each other.

use anyhow::{bail, ensure};
use quorate_protocols::reference::ring::{Core, Track};
use quorate_protocols::ring::{Count, Machine, Station, StationClaim, train};

use super::vector::{Event, Node, Run, Seen};

/// When local actions of the first state happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    /// Before anything else.
    AtOnce,
    /// Before the first message that reaches the station.
    BeforeMessage,
    /// With the local actions that follow it.
    AfterMessage,
}

/// A kind of station that recordings know.
pub(super) trait Replayed: Machine<Tokens = Count> {
    /// Takes over recorded variables.
    fn load(&mut self, node: &Node) -> anyhow::Result<()>;
    /// The variables by the names of the specification.
    fn show(&self) -> Vec<(&'static str, u64)>;
}

impl Replayed for Core<Count> {
    fn load(&mut self, node: &Node) -> anyhow::Result<()> {
        load_station(&mut self.station, node)?;
        if let Some(root) = &mut self.root {
            (root.reports, root.sent) = (Count(node.ce), Count(node.cf));
            (root.collected, root.left_over) = (Count(node.mytc), Count(node.myta));
            root.flush = node.flush.0;
        }
        Ok(())
    }

    fn show(&self) -> Vec<(&'static str, u64)> {
        let mut shown = show_station(&self.station);
        if let Some(root) = &self.root {
            shown.extend([
                ("ce", u64::from(root.reports.0)),
                ("cf", u64::from(root.sent.0)),
                ("mytc", u64::from(root.collected.0)),
                ("myta", u64::from(root.left_over.0)),
                ("flush", u64::from(root.flush)),
            ]);
        }
        shown
    }
}

impl Replayed for train::Train<Count> {
    fn load(&mut self, node: &Node) -> anyhow::Result<()> {
        load_station(&mut self.station, node)?;
        (self.crowded, self.woke, self.phase) = (node.wseen.0, node.woke.0, node.lord.0);
        self.kept = Count(node.keep);
        if let Some(root) = &mut self.root {
            (root.bag, root.pool) = (Count(node.bag), Count(node.pool));
            (root.flush, root.parked) = (node.flush.0, node.parked.0);
            (root.announce, root.hot) = (node.wnext.0, node.hot.0);
        }
        Ok(())
    }

    fn show(&self) -> Vec<(&'static str, u64)> {
        let mut shown = show_station(&self.station);
        shown.extend([
            ("wseen", u64::from(self.crowded)),
            ("keep", u64::from(self.kept.0)),
            ("woke", u64::from(self.woke)),
            ("lord", u64::from(self.phase)),
        ]);
        if let Some(root) = &self.root {
            shown.extend([
                ("bag", u64::from(root.bag.0)),
                ("pool", u64::from(root.pool.0)),
                ("flush", u64::from(root.flush)),
                ("parked", u64::from(root.parked)),
                ("wnext", u64::from(root.announce)),
                ("hot", u64::from(root.hot)),
            ]);
        }
        shown
    }
}

fn load_station(station: &mut Station<Count>, node: &Node) -> anyhow::Result<()> {
    ensure!(node.st == "Out" || node.need > 0, "need is 0 in state {:?}", node.st);
    *station = Station {
        standing: match node.st.as_str() {
            "Out" => StationClaim::Out,
            "Req" => StationClaim::Requesting { need: node.need },
            "In" => StationClaim::Using { units: Count(node.need) },
            other => bail!("there is no state {other:?}"),
        },
        held: Count(node.th.saturating_sub(node.td)),
        disabled: node.td.min(node.th), // Ring spec E9.
        seq: node.seq,
        turn: node.order.0,
        favoured: node.favoured.0,
    };
    Ok(())
}

fn show_station(station: &Station<Count>) -> Vec<(&'static str, u64)> {
    let state = match station.standing {
        StationClaim::Out => 0,
        StationClaim::Requesting { .. } => 1,
        StationClaim::Using { .. } => 2,
    };
    vec![
        ("st (0 Out, 1 Req, 2 In)", state),
        ("need", u64::from(station.need())),
        ("th", u64::from(station.nominal())),
        ("td", u64::from(station.disabled)),
        ("seq", station.seq),
        ("order", u64::from(station.turn)),
        ("priv", u64::from(station.favoured)),
    ]
}

/// Runs it again. The error is the first difference.
pub(super) fn replay<M: Replayed>(run: &Run<M>) -> Result<(), String> {
    let mut settled = run.begin.clone();
    settled.settle(&mut |_| {});
    let result = replay_with(run, First::AtOnce);
    if result.is_ok() || settled == run.begin {
        return result;
    }
    let others = [First::BeforeMessage, First::AfterMessage];
    if others.into_iter().any(|first| replay_with(run, first).is_ok()) { Ok(()) } else { result }
}

fn replay_with<M: Replayed>(run: &Run<M>, first: First) -> Result<(), String> {
    let mut track = run.begin.clone();
    let mut granted = Vec::new();
    if first == First::AtOnce {
        track.settle(&mut |station| granted.push(station));
    }
    for (number, (event, expected)) in run.events.iter().enumerate() {
        if run.loop_start == Some(number) {
            compare_states(&track, &run.end)
                .map_err(|what| format!("where the loop starts, after event {number}: {what}"))?;
        }
        happen(&mut track, event, first, &mut granted);
        granted.sort_unstable();
        let seen = Seen(track.tokens(), track.in_use(), std::mem::take(&mut granted));
        compare_seen(&seen, expected)
            .map_err(|what| format!("after event {}, {event:?}: {what}", number + 1))?;
    }
    compare_states(&track, &run.end).map_err(|what| format!("at the end: {what}"))
}

fn happen<M: Replayed>(
    track: &mut Track<M>,
    event: &Event,
    first: First,
    granted: &mut Vec<usize>,
) {
    if first == First::BeforeMessage {
        let touched = match event {
            Event::Deliver(to) => *to..to + 1,
            Event::Round(_) => 0..track.size(),
            _ => 0..0,
        };
        for to in touched {
            if track.step(to, |machine, terms, out| machine.settle(terms, out)) {
                granted.push(to);
            }
        }
    }
    match event {
        Event::Deliver(to) => {
            if track.deliver(*to) {
                granted.push(*to);
            }
        }
        Event::Request(at, need) => {
            if track.step(*at, |machine, terms, out| machine.request(terms, *need, out)) {
                granted.push(*at);
            }
        }
        Event::Leave(at) => {
            track.step(*at, |machine, terms, out| machine.leave(terms, out));
        }
        Event::Timeout => {
            track.step(0, |machine, terms, out| machine.timeout(terms, out));
        }
        Event::Launch => {
            track.step(0, |machine, terms, out| machine.launch(terms, out));
        }
        Event::Round(times) => {
            for _ in 0..*times {
                track.round(&mut |station| granted.push(station));
            }
        }
        Event::DropHead(link) => {
            track.links[*link].pop_front();
        }
        Event::Inject(link, message) => track.links[*link].push_back(message.clone()),
    }
}

fn compare_seen(found: &Seen, expected: &Seen) -> Result<(), String> {
    let mut grants = expected.2.clone();
    grants.sort_unstable();
    if found.0 != expected.0 {
        return Err(format!("{} tokens, expected {}", found.0, expected.0));
    }
    if found.1 != expected.1 {
        return Err(format!("{} units in use, expected {}", found.1, expected.1));
    }
    if found.2 != grants {
        return Err(format!("grants to {:?}, expected {:?}", found.2, expected.2));
    }
    Ok(())
}

fn compare_states<M: Replayed>(found: &Track<M>, expected: &Track<M>) -> Result<(), String> {
    for (i, (found, expected)) in found.stations.iter().zip(&expected.stations).enumerate() {
        for ((name, found), (_, expected)) in found.show().into_iter().zip(expected.show()) {
            if found != expected {
                return Err(format!("node {i}: {name} is {found}, expected {expected}"));
            }
        }
    }
    for (i, (found, expected)) in found.links.iter().zip(&expected.links).enumerate() {
        if found != expected {
            let show = |link: &std::collections::VecDeque<_>| {
                let texts: Vec<String> = link.iter().map(ToString::to_string).collect();
                format!("[{}]", texts.join(", "))
            };
            return Err(format!("link {i} has {}, expected {}", show(found), show(expected)));
        }
    }
    Ok(())
}
