//! The control plane, for protocols whose decider may change: a log of seat table entries that
//! grows at one moment and is learned by each node at another.
//!
//! The log is on no node: it is what a majority keeps, so it forgets nothing. What can go wrong
//! with it is that there is no leader for a while (nobody is answered, nothing is committed), that
//! nodes lag behind, and that it moves the seat without need, to and fro. A leader that does not
//! know that it is none anymore gives no answers either: it asks a majority first. One that answers
//! all the same is a flaw that tests put in ([`CouncilPlan::stale_answers`]).

use quorate_core::{Charter, Event, Moment, NodeId, Protocol, Tenure};

use crate::Span;
use crate::faults::Recurring;
use crate::judge::Judge;
use crate::misfortune::Trouble;
use crate::shadows::Shadows;
use crate::world::{Happening, Stop, World};

/// What the control plane of a run is like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CouncilPlan {
    /// Who decides first.
    pub seat: NodeId,
    /// How long until a node has applied what is committed.
    pub learn: Span,
    /// How long an answer takes, each way.
    pub answer: Span,
    /// How long until a node that is down is replaced.
    pub suspicion: Span,
    /// How often the seat moves without need.
    pub moves: Option<Recurring>,
    /// How often there is no leader, and for how long.
    pub outages: Option<Recurring>,
    /// How often the pool is changed, if the run has such changes.
    pub changes: Option<Recurring>,
    /// Whether seats have shadows.
    pub shadows: bool,
    /// If the first seat is that of a node that files name: after how long that node gives it up,
    /// and how long until the charter then says who decides (charter spec S18).
    pub unpins: Option<(u64, Span)>,
    /// Whether licences are given by what some node has applied, for tests that the laws notice.
    pub stale_answers: bool,
}

impl CouncilPlan {
    /// One for messages that take about so long and leases of this length, in nanoseconds: it
    /// follows from a seed whether it is quick, and what goes wrong.
    pub fn drawn(seed: u64, seat: NodeId, (delay, lease): (u64, u64)) -> Self {
        let mut rng = crate::Rng::new(seed ^ 0x6368_6172_7465_7221);
        let rng = &mut rng;
        let slow = *rng.pick(&[1, 4, 30]);
        let mut recurring = |one_in: u32| {
            let every = lease * rng.between(1, 12);
            let lasts = Span::Exponential(lease / rng.between(2, 20));
            rng.chance(1_000_000 / one_in).then_some(Recurring { every, lasts })
        };
        let (moves, outages) = (recurring(1), recurring(2));
        let shadows = rng.chance(500_000);
        CouncilPlan {
            seat,
            learn: Span::Exponential(delay * slow),
            answer: Span::Exponential(delay),
            suspicion: Span::Uniform { low: lease / 20, high: lease / 4 },
            moves,
            outages,
            changes: None,
            shadows,
            unpins: None,
            stale_answers: false,
        }
    }
}

/// Where the control plane is.
#[derive(Debug)]
pub(crate) struct Council {
    /// Who decides, and as whom it was the whole shadow when that was committed, if it was.
    pub(crate) log: Vec<(Tenure, Option<u64>)>,
    /// How often the pool had been changed when each of these was committed...
    known: Vec<usize>,
    /// ...and now...
    amended: usize,
    /// ...and as far as each node has applied that.
    editions: Vec<usize>,
    /// How much of the log each node has applied.
    pub(crate) applied: Vec<usize>,
    /// There is no leader before this.
    pub(crate) away_until: u64,
    pub(crate) shadows: Shadows,
    /// Whether the node that files name decides for good no more.
    unpinned: bool,
}

/// The first term of a charter where there was a pinned seat before: greater than boot numbers that
/// a run comes to (charter spec S10).
const AFTER_BOOTS: u32 = 1 << 16;

impl<'a, P: Protocol> World<'a, P> {
    /// The first entry, and everybody learns of it.
    pub(crate) fn convene(&mut self) {
        let Some(plan) = &self.plan.council else { return };
        let term = if plan.unpins.is_some() { Tenure::PINNED } else { 1 };
        let first = Tenure { term, after: None, node: plan.seat, boot: 0 };
        if let Some((at, _)) = plan.unpins {
            self.queue.push(at, Happening::Trouble(Trouble::Unpin));
        }
        let applied = vec![0; self.nodes.len()];
        let (log, shadows) = (vec![(first, None)], Shadows::default());
        let editions = applied.clone();
        let (known, amended, away_until) = (vec![0], 0, 0);
        let unpinned = false;
        self.council =
            Some(Council { log, known, amended, editions, applied, away_until, shadows, unpinned });
        self.spread_last();
        self.plan_shadow();
    }

    /// Everybody who runs will have applied the last entry, sooner or later.
    fn spread_last(&mut self) {
        for node in (0..self.nodes.len()).map(NodeId::from) {
            self.learn_last(node);
        }
    }

    fn learn_last(&mut self, node: NodeId) {
        let (Some(plan), Some(council)) = (&self.plan.council, &self.council) else { return };
        let entry = self.said(council.log[council.log.len() - 1]);
        let mut delay = plan.learn.draw(&mut self.chance.faults);
        if !self.calm && self.chance.faults.chance(50_000) {
            let lease = self.plan.pool.lease.map_or(0, |lease| lease.as_nanos() as u64);
            delay += self.chance.faults.below(2 * lease + 1);
        }
        self.tell_charter(node, delay, entry);
    }

    /// The word for an entry. Files name a node, whatever life of it there is, until it has given
    /// that up.
    fn said(&self, (mut tenure, by_shadow): (Tenure, Option<u64>)) -> Charter {
        let unpinned = self.council.as_ref().is_some_and(|council| council.unpinned);
        if tenure.term == Tenure::PINNED && !unpinned {
            tenure.boot = self.nodes[tenure.node.index()].boot;
        }
        match by_shadow {
            Some(naming) => Charter::Inherited(tenure, naming),
            None => Charter::Applied(tenure),
        }
    }

    pub(crate) fn tell_charter(&mut self, node: NodeId, delay: u64, word: Charter) {
        let boot = self.nodes[node.index()].boot;
        self.queue.push(self.now + delay, Happening::Charter { node, boot, word });
    }

    /// A node hears from the control plane, unless that was for an earlier life of it.
    pub(crate) fn hear_charter(
        &mut self,
        node: NodeId,
        boot: u32,
        word: Charter,
    ) -> Result<(), Stop> {
        let place = &self.nodes[node.index()];
        let Some(council) = self.council.as_mut().filter(|_| place.boot == boot) else {
            return Ok(());
        };
        let runs = place.seat.is_some();
        council.unpinned |= word == Charter::Unpinned && runs;
        if let Charter::Amended { edition } = word {
            return self.learn_edition(node, edition as usize);
        }
        if let Charter::Applied(tenure) | Charter::Inherited(tenure, _) = word {
            let index = council.log.iter().position(|entry| entry.0.term == tenure.term);
            if let Some(known) = index.map(|index| council.known[index]).filter(|_| runs) {
                self.learn_edition(node, known)?;
            }
            let council = self.council.as_mut().expect("it was there");
            let applied = &mut council.applied[node.index()];
            *applied = index.map_or(*applied, |index| (index + 1).max(*applied));
        }
        match self.nodes[node.index()].seat.is_some() {
            true => self.step(node, Event::Charter(word)),
            false => Ok(()),
        }
    }

    /// A node is back: it is told what it had applied, unless it forgot that too, and learns the
    /// rest.
    pub(crate) fn remind_of_charter(&mut self, node: NodeId, forgot: bool) {
        let Some(council) = &mut self.council else { return };
        let applied = &mut council.applied[node.index()];
        *applied = if forgot { 0 } else { *applied };
        if forgot {
            council.editions[node.index()] = 0;
        }
        if let Some(index) = applied.checked_sub(1) {
            let entry = council.log[index];
            self.tell_charter(node, 0, self.said(entry));
        }
        self.learn_last(node);
        self.learn_amendments(node);
    }

    /// The pool will be changed like this, when the plan says so.
    pub(crate) fn will_change(&mut self, editions: &'a [P::Pool]) {
        let most = editions.iter().max_by_key(|pool| P::capacity(pool));
        if let Some(most) = most.filter(|most| P::capacity(most) > P::capacity(self.pool)) {
            self.laws = Judge::new::<P>(most, self.laws.is_strict());
        }
        self.editions = editions;
    }

    /// The pool as a node knows it.
    pub(crate) fn pool_of(&self, node: NodeId) -> &'a P::Pool {
        let known = self.council.as_ref().map_or(0, |council| council.editions[node.index()]);
        known.checked_sub(1).map_or(self.pool, |later| &self.editions[later])
    }

    /// The charter says that the pool is another, if there is one more and a leader.
    pub(crate) fn amend(&mut self) {
        let Some(council) = self.council.as_mut().filter(|it| it.away_until <= self.now) else {
            return;
        };
        let Some(pool) = self.editions.get(council.amended) else { return };
        council.amended += 1;
        self.laws.amended(P::capacity(pool), P::drained(pool));
        self.measures.amendments += 1;
        self.note(&"net", format_args!("the charter says that there are {}", P::capacity(pool)));
        for node in (0..self.nodes.len()).map(NodeId::from) {
            self.learn_amendments(node);
        }
    }

    fn learn_amendments(&mut self, node: NodeId) {
        let (Some(plan), Some(council)) = (&self.plan.council, &self.council) else { return };
        if let Ok(edition @ 1..) = u32::try_from(council.amended) {
            let delay = plan.learn.draw(&mut self.chance.faults);
            self.tell_charter(node, delay, Charter::Amended { edition });
        }
    }

    /// A node has applied so many changes of the pool, if it had not.
    fn learn_edition(&mut self, node: NodeId, edition: usize) -> Result<(), Stop> {
        let runs = self.nodes[node.index()].seat.is_some();
        let Some(council) = self.council.as_mut().filter(|_| runs) else { return Ok(()) };
        let known = &mut council.editions[node.index()];
        if *known >= edition {
            return Ok(());
        }
        *known = edition;
        if let Some(all) = council.editions.iter().min() {
            self.laws.applied(*all);
        }
        let edition = u32::try_from(edition).unwrap_or(u32::MAX);
        self.step(node, Event::Charter(Charter::Amended { edition }))
    }

    /// A node wants a licence: the question travels, and is answered if somebody is there.
    pub(crate) fn ask_licence(&mut self, node: NodeId, term: u32, asked: Moment) {
        let Some(plan) = &self.plan.council else { return };
        let at = self.now + plan.answer.draw(&mut self.chance.faults);
        let boot = self.nodes[node.index()].boot;
        let confirm = Trouble::Confirm { node, boot, term, asked };
        self.queue.push(at, Happening::Trouble(confirm));
    }

    /// The leader has asked a majority: does this entry stand?
    pub(crate) fn confirm(&mut self, node: NodeId, boot: u32, term: u32, asked: Moment) {
        let (Some(plan), Some(council)) = (&self.plan.council, &self.council) else { return };
        let stands = |index: usize| {
            let (entry, _) = council.log[index];
            (entry.node, entry.term) == (node, term)
        };
        let applied = || council.applied.iter().filter_map(|applied| applied.checked_sub(1));
        let confirmed = match plan.stale_answers {
            true => applied().any(stands),
            false => self.now >= council.away_until && stands(council.log.len() - 1),
        };
        if confirmed && self.nodes[node.index()].boot == boot {
            let delay = plan.answer.draw(&mut self.chance.faults);
            // Charter spec S2: what was in force then is applied before.
            if let Ok(edition @ 1..) = u32::try_from(council.amended) {
                self.tell_charter(node, delay, Charter::Amended { edition });
            }
            self.tell_charter(node, delay, Charter::Licensed { term, asked });
        }
    }

    /// Somebody will notice that a node is down, if it decides.
    pub(crate) fn miss(&mut self, name: NodeId) {
        let (Some(plan), Some(council)) = (&self.plan.council, &self.council) else { return };
        let (last, _) = council.log[council.log.len() - 1];
        if last.node == name {
            let at = self.now + plan.suspicion.draw(&mut self.chance.faults).max(1);
            self.queue.push(at, Happening::Trouble(Trouble::Replace { term: last.term }));
        }
    }

    /// Another node is to decide if the one that did in this term is gone.
    pub(crate) fn replace(&mut self, term: u32) {
        let Some(council) = &self.council else { return };
        let (last, _) = council.log[council.log.len() - 1];
        let place = &self.nodes[last.node.index()];
        if last.term == term && (place.seat.is_none() || place.boot != last.boot) {
            let away = council.away_until > self.now;
            if away || !self.move_seat() {
                self.miss(last.node); // There is no leader, or nobody to be chosen: again later.
            }
        }
    }

    /// The charter says that another node decides; says whether there is one.
    pub(crate) fn move_seat(&mut self) -> bool {
        let Some(council) = &self.council else { return false };
        let (last, _) = council.log[council.log.len() - 1];
        let named =
            |node: &NodeId| (*node, self.nodes[node.index()].boot) == (last.node, last.boot);
        let is_pinned = last.term == Tenure::PINNED;
        let runs =
            |node: &NodeId| self.nodes[node.index()].seat.is_some() && (is_pinned || !named(node));
        let others: Vec<NodeId> = (0..self.nodes.len()).map(NodeId::from).filter(runs).collect();
        if others.is_empty() || council.away_until > self.now || is_pinned && !council.unpinned {
            return false;
        }
        let heir = self.heir();
        let node = match heir.map(|(heir, _)| heir).filter(|it| others.contains(it)) {
            Some(heir) if self.chance.faults.chance(750_000) => heir,
            _ => *self.chance.faults.pick(&others),
        };
        let term = if is_pinned { AFTER_BOOTS } else { last.term + 1 };
        let boot = self.nodes[node.index()].boot;
        self.note(&"net", format_args!("the charter says that {node} decides in term {term}"));
        let tenure = Tenure { term, after: Some(last.term), node, boot };
        let council = self.council.as_mut().expect("it was there");
        let naming = heir.filter(|(heir, _)| *heir == node).map(|(_, naming)| naming);
        council.log.push((tenure, naming));
        council.known.push(council.amended);
        council.shadows.now = None;
        self.measures.seat_moves += 1;
        self.measures.takeovers += u64::from(naming.is_some());
        self.spread_last();
        // It may have gone down before this was said of it.
        true
    }

    /// The node that files name decides no more, if it runs, and somebody else will.
    pub(crate) fn unpin(&mut self) {
        let (Some(plan), Some(council)) = (&self.plan.council, &self.council) else { return };
        let Some((_, until)) = plan.unpins else { return };
        let (last, _) = council.log[council.log.len() - 1];
        if last.term != Tenure::PINNED {
            return;
        }
        // Again, until somebody decides: there may be no leader, or nobody else.
        let at = self.now + until.draw(&mut self.chance.faults).max(1);
        self.queue.push(at, Happening::Trouble(Trouble::Unpin));
        if council.unpinned {
            self.move_seat();
        } else if self.nodes[last.node.index()].seat.is_some() {
            self.tell_charter(last.node, 0, Charter::Unpinned);
        }
    }

    /// There is no leader for a while.
    pub(crate) fn lose_leader(&mut self, lasts: u64) {
        let until = self.now + lasts;
        self.note(&"net", format_args!("the control plane has no leader"));
        if let Some(council) = &mut self.council {
            council.away_until = council.away_until.max(until);
        }
    }

    /// Faults are over: there is a leader.
    pub(crate) fn elect(&mut self) {
        if let Some(council) = &mut self.council {
            council.away_until = 0;
        }
    }
}
