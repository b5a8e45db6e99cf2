//! Breadth first through all worlds of a scope.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;

use quorate_core::Explorable;
use quorate_laws::Breach;

use crate::action::{Action, Happening};
use crate::atlas::Atlas;
use crate::keeper::{Account, Delivery, End, Order, keep};
use crate::model::Model;
use crate::report::{Counterexample, Limits, Progress, Report, Verdict};
use crate::scope::Scope;
use crate::sometimes::Sightings;
use crate::transcript;
use crate::world::World;

/// How many states are explored between two reports of progress, or a few more.
const PROGRESS_EVERY: usize = 1 << 16;

/// Explores every history of a scope and judges it.
pub fn check<P: Explorable>(
    scope: &Scope<P>,
    limits: &Limits,
    progress: &mut dyn FnMut(Progress),
) -> Report {
    let mut search = Search::new(scope);
    let verdict = search.run(limits, progress).unwrap_or_else(|broken| *broken);
    Report {
        states: search.atlas.len(),
        bytes: search.atlas.bytes(),
        transitions: search.transitions,
        depth: search.depth,
        sightings: search.sightings,
        verdict,
    }
}

/// An exploration under way.
pub(crate) struct Search<'a, P: Explorable> {
    pub(crate) model: Model<'a, P>,
    pub(crate) atlas: Atlas,
    transitions: u64,
    depth: usize,
    sightings: Sightings,
}

impl<'a, P: Explorable> Search<'a, P> {
    pub(crate) fn new(scope: &'a Scope<P>) -> Self {
        let stride = crate::world::Layout { nodes: scope.nodes, clients: scope.clients.len() };
        Search {
            model: Model::new(scope),
            atlas: Atlas::new(stride.words()),
            transitions: 0,
            depth: 0,
            sightings: Sightings::default(),
        }
    }

    /// The verdict; the error is a verdict too, of a law broken on the way.
    fn run(
        &mut self,
        limits: &Limits,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Verdict, Box<Verdict>> {
        let broken = |breach: Breach, transcript: Vec<String>| {
            Box::new(Verdict::Broken(Counterexample { breach, transcript }))
        };
        let first = self.model.first_world().map_err(|breach| broken(breach, Vec::new()))?;
        self.atlas.find_or_add(first.words());
        match self.explore(&first, limits.states_max, progress) {
            End::All => {}
            End::Full => {
                self.must_end()?;
                return Ok(Verdict::Incomplete);
            }
            End::Broken(number, action, breach) => {
                let transcript = self.transcript(number, Some(action), &breach);
                return Err(broken(breach, transcript));
            }
        }
        if let Some((number, breach)) = self.dead_end() {
            let transcript = self.transcript(number, None, &breach);
            return Err(broken(breach, transcript));
        }
        self.must_end()?;
        let mut missing = limits.required.clone();
        missing.retain(|sometimes| !self.sightings.contains(*sometimes));
        Ok(if missing.is_empty() { Verdict::Holds } else { Verdict::Vacuous(missing) })
    }

    /// Fails if a state comes back and the scope says that none may.
    fn must_end(&mut self) -> Result<(), Box<Verdict>> {
        if self.model.scope.ends
            && let Some((number, breach)) = self.cycle()
        {
            let transcript = self.transcript(number, None, &breach);
            return Err(Box::new(Verdict::Broken(Counterexample { breach, transcript })));
        }
        Ok(())
    }

    /// Visits every state, with a thread that keeps them beside this one, which makes them.
    fn explore(
        &mut self,
        first: &World,
        states_max: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> End {
        let Search { model, atlas, .. } = self;
        let (to_keeper, deliveries) = mpsc::channel();
        let (to_maker, orders) = mpsc::channel::<Order>();
        let account = thread::scope(|both| {
            let keeper = both.spawn(move || keep(atlas, states_max, &to_maker, &deliveries));
            let (mut room, mut told) = (Room::new(first), 0);
            for order in orders {
                if order.progress.explored >= told {
                    told = order.progress.explored + PROGRESS_EVERY;
                    progress(order.progress);
                }
                let delivery = model.make(&order, &mut room);
                if to_keeper.send(delivery).is_err() {
                    break;
                }
            }
            drop(to_keeper);
            match keeper.join() {
                Ok(account) => account.expect("it was served until it ended"),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        let Account { end, transitions, depth, sightings } = account;
        (self.transitions, self.depth, self.sightings) = (transitions, depth, sightings);
        end
    }

    /// The shortest history to a state, and one action more.
    fn transcript(&mut self, number: usize, last: Option<Action>, breach: &Breach) -> Vec<String> {
        let ends_in_breach = last.is_some();
        let mut actions: Vec<Action> = last.into_iter().collect();
        let mut child = number;
        while child != 0 {
            let parent = self.atlas.parent(child);
            actions.push(self.action_between(parent, child));
            child = parent;
        }
        actions.reverse();
        transcript::write(self.model.scope, &actions, ends_in_breach, breach)
    }

    fn action_between(&mut self, parent: usize, child: usize) -> Action {
        let first = self.model.first_world().expect("the first world was made before");
        let mut room = Room::new(&first);
        self.atlas.read(parent, &mut room.words);
        room.here.copy_from(&room.words);
        self.atlas.read(child, &mut room.words);
        let child = std::mem::take(&mut room.words);
        let mut found = None;
        let _ = self.model.successors(&mut room, |action, result, next| {
            if result.is_ok() && next.words() == child {
                found = Some(action);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        found.expect("a child was reached from its parent by some action")
    }
}

/// Scratch space for leaving a world.
#[derive(Debug)]
pub(crate) struct Room {
    /// The world being left.
    pub(crate) here: World,
    next: World,
    happenings: Vec<Happening>,
    cuts: Vec<usize>,
    /// The words of a world, on their way.
    pub(crate) words: Vec<u32>,
}

impl Room {
    pub(crate) fn new(any: &World) -> Self {
        let (here, next) = (any.clone(), any.clone());
        Room { here, next, happenings: Vec::new(), cuts: Vec::new(), words: Vec::new() }
    }
}

impl<P: Explorable> Model<'_, P> {
    /// Makes the worlds that those of an order lead to, up to the first breach.
    fn make(&mut self, order: &Order, room: &mut Room) -> Delivery {
        let mut delivery = Delivery::default();
        for words in order.words.chunks_exact(room.here.words().len()) {
            room.here.copy_from(words);
            let _ = self.successors(room, |action, result, next| {
                if let Err(breach) = result {
                    delivery.broken = Some((action, breach));
                    return ControlFlow::Break(());
                }
                delivery.reached.extend_from_slice(next.words());
                delivery.faults.push(action.is_fault());
                ControlFlow::Continue(())
            });
            delivery.left.push((delivery.faults.len(), self.sightings));
            if delivery.broken.is_some() {
                break;
            }
        }
        delivery
    }

    /// Shows every action that is possible in `room.here`, and the world after it.
    pub(crate) fn successors(
        &mut self,
        room: &mut Room,
        mut each: impl FnMut(Action, Result<(), Breach>, &World) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Room { here, next, happenings, cuts, .. } = room;
        self.happenings(here, happenings);
        let mut step = None;
        for &happening in happenings.iter() {
            let action = Action { happening, cut: None };
            let result = self.after(here, next, action, &mut step);
            each(action, result, next)?;
            let Some(step_taken) = step.clone() else { continue };
            if !self.may_crash(here, step_taken.node) {
                continue;
            }
            self.cuts(happening, &step_taken, cuts);
            for &done in cuts.iter() {
                let action = Action { happening, cut: Some(done) };
                let result = self.after(here, next, action, &mut step);
                each(action, result, next)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn after(
        &mut self,
        here: &World,
        next: &mut World,
        action: Action,
        step: &mut Option<crate::model::Step>,
    ) -> Result<(), Breach> {
        next.copy_from(here.words());
        self.perform(next, action, step)?;
        self.canonical(next);
        Ok(())
    }
}
