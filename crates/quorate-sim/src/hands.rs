//! A run in which somebody interferes: after so many steps a node crashes, a link is cut, a message
//! is lost. A run is still the same for the same plan, seed and list of interventions, to the byte
//! of its trace, and what was done later changes nothing of what was before it.
//!
//! A step is whatever happens next in the world, or an intervention. Messages have the number of
//! their ticket, which [`crate::Flight::number`] shows. Whoever plays *by hand* does everything:
//! links deliver and clients claim and release only when told to.

use std::fmt;
use std::str::FromStr;

use quorate_core::{NodeId, NodeSet, Protocol};

use crate::client::Phase;
use crate::corruption::Corruption;
use crate::disk::Disk;
use crate::misfortune::Trouble;
use crate::network::Cut;
use crate::queue::Ticket;
use crate::world::{Happening, Stop, World};

/// How much time passes between two interventions of a run by hand.
const PACE: u64 = 1_000_000;
/// Cuts made by hand have names of their own, beside those that faults draw.
const CUT_NAMES: u32 = 1 << 24;

/// What somebody does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// A node crashes.
    Crash(NodeId),
    /// It comes back, with what it had written down.
    Restart(NodeId),
    /// It comes back remembering nothing.
    Forget(NodeId),
    /// A node stands still.
    Pause(NodeId),
    /// It goes on.
    Resume(NodeId),
    /// The clients of a node vanish without a word.
    Vanish(NodeId),
    /// Nothing passes between two nodes.
    Cut(NodeId, NodeId),
    /// It passes again.
    Heal(NodeId, NodeId),
    /// A message is lost.
    Drop(u64),
    /// A message arrives now.
    Deliver(u64),
    /// An idle client of a node claims now.
    Claim(NodeId),
    /// A client of a node is done with its units now.
    Release(NodeId),
    /// Every variable becomes anything, where a protocol heals from that.
    Corrupt,
    /// Nothing more goes wrong and nobody new claims: everybody who waits must be served.
    Rest,
}

/// What somebody does, and after how many steps of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intervention {
    /// Steps before it.
    pub after: u64,
    /// What is done.
    pub act: Act,
}

/// Everything that somebody does to a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hands {
    /// In order.
    pub acts: Vec<Intervention>,
    /// The run stops after so many steps, if that is said.
    pub steps_max: Option<u64>,
    /// Whether nothing else happens: the run ends with the last of them.
    pub alone: bool,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Crash(node) => write!(f, "crash:{}", node.0),
            Act::Restart(node) => write!(f, "restart:{}", node.0),
            Act::Forget(node) => write!(f, "forget:{}", node.0),
            Act::Pause(node) => write!(f, "pause:{}", node.0),
            Act::Resume(node) => write!(f, "resume:{}", node.0),
            Act::Vanish(node) => write!(f, "vanish:{}", node.0),
            Act::Cut(a, b) => write!(f, "cut:{}-{}", a.0, b.0),
            Act::Heal(a, b) => write!(f, "heal:{}-{}", a.0, b.0),
            Act::Drop(message) => write!(f, "drop:{message}"),
            Act::Deliver(message) => write!(f, "deliver:{message}"),
            Act::Claim(node) => write!(f, "claim:{}", node.0),
            Act::Release(node) => write!(f, "release:{}", node.0),
            Act::Corrupt => f.write_str("corrupt"),
            Act::Rest => f.write_str("rest"),
        }
    }
}

impl FromStr for Act {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is nothing that can be done: crash:2, restart:2, forget:2, pause:2, \
                 resume:2, vanish:2, cut:0-1, heal:0-1, drop:17, deliver:17, claim:2, release:2 \
                 corrupt or rest"
            )
        };
        let (what, whom) = text.split_once(':').unwrap_or((text, ""));
        let number = || whom.parse().map_err(|_| wrong());
        let node = || whom.parse().map(NodeId).map_err(|_| wrong());
        let pair = || {
            let (a, b) = whom.split_once('-').ok_or_else(wrong)?;
            match (a.parse(), b.parse()) {
                (Ok(a), Ok(b)) if a != b => Ok((NodeId(a), NodeId(b))),
                _ => Err(wrong()),
            }
        };
        match what {
            "crash" => node().map(Act::Crash),
            "restart" => node().map(Act::Restart),
            "forget" => node().map(Act::Forget),
            "pause" => node().map(Act::Pause),
            "resume" => node().map(Act::Resume),
            "vanish" => node().map(Act::Vanish),
            "cut" => pair().map(|(a, b)| Act::Cut(a, b)),
            "heal" => pair().map(|(a, b)| Act::Heal(a, b)),
            "drop" => number().map(Act::Drop),
            "deliver" => number().map(Act::Deliver),
            "claim" => node().map(Act::Claim),
            "release" => node().map(Act::Release),
            "corrupt" if whom.is_empty() => Ok(Act::Corrupt),
            "rest" if whom.is_empty() => Ok(Act::Rest),
            _ => Err(wrong()),
        }
    }
}

impl Act {
    /// The nodes it names.
    pub fn nodes(&self) -> Vec<NodeId> {
        match *self {
            Act::Crash(node)
            | Act::Restart(node)
            | Act::Forget(node)
            | Act::Pause(node)
            | Act::Resume(node)
            | Act::Vanish(node)
            | Act::Claim(node)
            | Act::Release(node) => vec![node],
            Act::Cut(a, b) | Act::Heal(a, b) => vec![a, b],
            Act::Drop(_) | Act::Deliver(_) | Act::Corrupt | Act::Rest => Vec::new(),
        }
    }
}

/// `12:crash:2` is a crash of node 2 after twelve steps.
impl fmt::Display for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.after, self.act)
    }
}

impl FromStr for Intervention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (after, act) = text.split_once(':').unwrap_or((text, ""));
        let after = after.parse().map_err(|_| {
            format!("'{text}': an intervention is a number of steps and an act, as 12:crash:2")
        })?;
        Ok(Intervention { after, act: act.parse()? })
    }
}

/// What of the hands is still to come, and how to corrupt a pool.
pub(crate) struct Busy<P: Protocol> {
    acts: std::vec::IntoIter<Intervention>,
    steps_max: u64,
    alone: bool,
    strict: bool,
    corrupt: Option<fn(bool) -> Corruption<P>>,
}

impl<P: Protocol> Busy<P> {
    pub(crate) fn new(
        hands: Hands,
        strict: bool,
        corrupt: Option<fn(bool) -> Corruption<P>>,
    ) -> Self {
        Busy {
            acts: hands.acts.into_iter(),
            steps_max: hands.steps_max.unwrap_or(u64::MAX),
            alone: hands.alone,
            strict,
            corrupt,
        }
    }
}

impl<P: Protocol> World<'_, P> {
    /// Lets things happen up to a true time, and somebody interfere.
    pub(crate) fn run_with(&mut self, busy: &mut Busy<P>, end: u64) -> Result<(), Stop> {
        loop {
            if self.measures.happenings >= busy.steps_max {
                self.ended = true;
                return Ok(());
            }
            let next = busy.acts.as_slice().first().copied();
            if let Some(next) = next.filter(|next| next.after <= self.measures.happenings) {
                busy.acts.next();
                if next.act == Act::Rest && !self.calm {
                    self.measures.happenings += 1;
                    return Ok(());
                }
                if busy.alone {
                    self.let_time_pass(PACE)?;
                }
                let corrupts = busy.corrupt.filter(|_| next.act == Act::Corrupt);
                self.interfere(next.act, corrupts.map(|corrupt| corrupt(busy.strict)))?;
            } else if busy.alone && next.is_none() {
                self.ended = true;
                return Ok(());
            } else if !self.happen_next(end)? {
                break;
            }
        }
        self.reach(end);
        Ok(())
    }

    fn let_time_pass(&mut self, by: u64) -> Result<(), Stop> {
        let end = self.now.saturating_add(by);
        while self.happen_next(end)? {}
        self.reach(end);
        Ok(())
    }

    /// Somebody does something; what cannot be done is said and changes nothing.
    fn interfere(&mut self, act: Act, corruption: Option<Corruption<P>>) -> Result<(), Stop> {
        self.measures.happenings += 1;
        if act.nodes().iter().any(|node| node.index() >= self.nodes.len()) {
            self.note(&"hand", format_args!("{act}: there is no such node"));
            return Ok(());
        }
        if self.calm {
            self.note(&"hand", format_args!("{act}: faults are over"));
            return Ok(());
        }
        let done = self.act(act, corruption);
        self.look();
        let Some(why) = done? else { return Ok(()) };
        self.note(&"hand", format_args!("{act}: {why}"));
        Ok(())
    }

    /// Does it, or says why not.
    fn act(
        &mut self,
        act: Act,
        corruption: Option<Corruption<P>>,
    ) -> Result<Option<&'static str>, Stop> {
        let state = |world: &Self, node: NodeId| {
            let node = &world.nodes[node.index()];
            (node.seat.is_some(), node.paused, node.boot)
        };
        match act {
            Act::Crash(node) | Act::Pause(node) if !state(self, node).0 => {
                return Ok(Some("it is down"));
            }
            Act::Restart(node) | Act::Forget(node) if state(self, node).0 => {
                return Ok(Some("it runs"));
            }
            Act::Crash(node) => self.crash(node),
            Act::Restart(node) => self.restart(node, state(self, node).2)?,
            Act::Forget(node) => {
                self.nodes[node.index()].disk = Some(Box::new(Disk::replaced()));
                self.restart(node, state(self, node).2)?;
            }
            Act::Pause(node) if state(self, node).1 => return Ok(Some("it stands still")),
            Act::Pause(node) => self.freeze(node, u64::MAX / 4),
            Act::Resume(node) if !state(self, node).1 => {
                return Ok(Some("it does not stand still"));
            }
            Act::Resume(node) => {
                self.trouble(Trouble::Resume { node, boot: state(self, node).2 })?
            }
            Act::Vanish(node) => {
                self.note(&node, format_args!("its clients vanish"));
                self.clients_die(node)?;
            }
            Act::Cut(a, b) => {
                let name = self.cut_name(a, b);
                if self.network.cuts().any(|other| other == name) {
                    return Ok(Some("it is cut already"));
                }
                self.note(&"net", format_args!("cut: {a} and {b}"));
                self.network.cut(name, Cut::Between(NodeSet::from_iter([a, b])));
            }
            Act::Heal(a, b) => {
                let name = self.cut_name(a, b);
                if !self.network.cuts().any(|other| other == name) {
                    return Ok(Some("it is not cut"));
                }
                self.heal(name)?;
            }
            Act::Drop(number) => {
                let found = self.intercept(number);
                let Some((ticket, Happening::Hear { from, to, message, .. })) = found else {
                    return Ok(Some("no such message is on its way"));
                };
                self.note(&"net", format_args!("lost: {from} > {to} {message}"));
                self.disturb();
                self.measures.messages_lost += 1;
                if let Some(film) = self.trace.film() {
                    film.lose(ticket, self.now);
                }
            }
            Act::Deliver(number) => return self.deliver(number),
            Act::Claim(node) => {
                let Some(index) = self.client_at(node, Phase::Thinking) else {
                    return Ok(Some("no client there is idle"));
                };
                self.clients[index].wake = None;
                self.begin(index)?;
            }
            Act::Release(node) => {
                let Some(index) = self.client_at(node, Phase::Using) else {
                    return Ok(Some("no client there holds anything"));
                };
                self.clients[index].done_at = self.now;
                self.wake(index)?;
            }
            Act::Rest => return Ok(Some("it is at rest already")),
            Act::Corrupt => {
                let Some(corruption) = corruption else {
                    return Ok(Some("this protocol does not heal from any state"));
                };
                self.corrupt(corruption)?;
            }
        }
        Ok(None)
    }

    /// Brings a message to its receiver now. A link that keeps order brings those before it first.
    fn deliver(&mut self, number: u64) -> Result<Option<&'static str>, Stop> {
        let link_of = |what: &Happening<P>, ticket: Ticket| match *what {
            Happening::Hear { from, to, .. } => Some((ticket.number(), from, to)),
            _ => None,
        };
        let under_way = self.queue.planned(link_of);
        let Some((_, from, to)) = under_way.iter().find(|(other, ..)| *other == number) else {
            return Ok(Some("no such message is on its way, or something holds it up"));
        };
        let older = |(other, f, t): &(u64, NodeId, NodeId)| *other < number && f == from && t == to;
        if self.plan.links.ordered && under_way.iter().any(older) {
            return Ok(Some("an older message of the same link comes first"));
        }
        let is_it = |_: &Happening<P>, ticket: Ticket| ticket.number() == number;
        let (ticket, happening) = self.queue.withdraw(is_it).expect("it was planned a moment ago");
        self.let_happen(ticket, happening)?;
        Ok(None)
    }

    /// Takes a message from wherever it is on its way.
    fn intercept(&mut self, number: u64) -> Option<(Ticket, Happening<P>)> {
        let is_it = |what: &Happening<P>, ticket: Ticket| {
            ticket.number() == number && matches!(what, Happening::Hear { .. })
        };
        if let Some(found) = self.queue.withdraw(is_it) {
            return Some(found);
        }
        let asides = self.nodes.iter_mut().filter_map(|node| node.aside.as_mut());
        let kept = std::iter::once(&mut self.held).chain(asides.map(|aside| &mut aside.inbox));
        for list in kept {
            if let Some(place) = list.iter().position(|(ticket, what)| is_it(what, *ticket)) {
                return Some(list.remove(place));
            }
        }
        None
    }

    fn cut_name(&self, a: NodeId, b: NodeId) -> u32 {
        let (low, high) = (a.0.min(b.0), a.0.max(b.0));
        CUT_NAMES + low * self.plan.nodes + high
    }

    fn client_at(&self, node: NodeId, phase: Phase) -> Option<usize> {
        self.clients.iter().position(|client| client.home == node && client.phase == phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let all = "0:crash:2,1:restart:2,2:forget:2,3:pause:1,4:resume:1,5:vanish:0,6:cut:0-1,\
                   7:heal:0-1,8:drop:17,9:deliver:18,10:claim:0,11:release:0,12:corrupt,13:rest";
        for text in all.split(',') {
            assert_eq!(text.parse::<Intervention>().expect(text).to_string(), text);
        }
        for wrong in ["", "crash:2", "1", "1:", "1:crash", "1:cut:0", "1:cut:1-1", "1:corrupt:2"] {
            assert!(wrong.parse::<Intervention>().is_err(), "{wrong}");
        }
    }
}
