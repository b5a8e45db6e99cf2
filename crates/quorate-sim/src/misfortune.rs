//! What goes wrong, as it happens: crashes and restarts, pauses, cut and slow links, clocks that
//! change their rate, and the failure detector's opinions.

use quorate_core::{Event, Moment, NodeId, NodeSet, Protocol, Start};

use crate::disk::Disk;
use crate::faults::Recurring;
use crate::network::Cut;
use crate::world::{Happening, Stop, World};

/// A node that cannot be lost is hit as often as all others together, as long as looking for such
/// nodes is cheap.
const PICKY_NODES_MAX: u32 = 128;

/// Something that goes wrong, or is made good again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    Crash,
    Restart {
        node: NodeId,
        boot: u32,
    },
    Pause,
    Resume {
        node: NodeId,
        boot: u32,
    },
    Cut,
    Heal {
        name: u32,
    },
    SlowDown,
    SpeedUp,
    ChangeClock,
    Slander,
    /// The next node is restarted, if it is time.
    Roll,
    /// A client whose home is down goes to another.
    Leave {
        client: u32,
    },
    /// The seat moves, without need.
    MoveSeat,
    /// The control plane has no leader.
    NoLeader,
    /// The pool is changed.
    Amend,
    /// Another node decides, if the one of this term is gone.
    Replace {
        term: u32,
    },
    /// The node that files name decides no more.
    Unpin,
    /// Somebody looks whether the seat has a shadow.
    SeeShadow,
    /// Word that the shadow knows everything reaches the control plane.
    Whole {
        term: u32,
        naming: u64,
    },
    /// A question reaches the control plane.
    Confirm {
        node: NodeId,
        boot: u32,
        term: u32,
        asked: Moment,
    },
}

impl<P: Protocol> World<'_, P> {
    /// The first of each recurring fault.
    pub(crate) fn plan_troubles(&mut self) {
        for trouble in [
            Trouble::Crash,
            Trouble::Pause,
            Trouble::Cut,
            Trouble::SlowDown,
            Trouble::ChangeClock,
            Trouble::Slander,
            Trouble::MoveSeat,
            Trouble::NoLeader,
            Trouble::Amend,
        ] {
            self.plan_next(trouble);
        }
        self.plan_roll();
    }

    fn recurring(&self, trouble: Trouble) -> Option<Recurring> {
        let faults = &self.plan.faults;
        match trouble {
            Trouble::Crash => faults.crashes,
            Trouble::Pause => faults.pauses,
            Trouble::Cut => faults.cuts,
            Trouble::SlowDown => faults.slow_links,
            Trouble::ChangeClock => faults.clock_changes,
            Trouble::Slander => faults.slander,
            Trouble::MoveSeat => self.plan.council.as_ref()?.moves,
            Trouble::NoLeader => self.plan.council.as_ref()?.outages,
            Trouble::Amend => self.plan.council.as_ref()?.changes,
            _ => None,
        }
    }

    fn plan_next(&mut self, trouble: Trouble) {
        if let Some(recurring) = self.recurring(trouble) {
            let at = self.now + self.chance.faults.exponential(recurring.every).max(1);
            self.queue.push(at, Happening::Trouble(trouble));
        }
    }

    /// Something goes wrong or is made good again.
    pub(crate) fn trouble(&mut self, trouble: Trouble) -> Result<(), Stop> {
        match trouble {
            Trouble::Restart { node, boot } => return self.restart(node, boot),
            Trouble::Resume { node, boot } => return self.resume(node, boot),
            Trouble::Heal { name } => return self.heal(name),
            Trouble::Roll => return self.roll(),
            Trouble::Leave { client } => return self.go_elsewhere(client as usize),
            Trouble::Replace { term } => {
                self.replace(term);
                return Ok(());
            }
            Trouble::Confirm { node, boot, term, asked } => {
                self.confirm(node, boot, term, asked);
                return Ok(());
            }
            Trouble::Unpin => {
                self.unpin();
                return Ok(());
            }
            Trouble::SeeShadow => {
                self.see_shadow();
                return Ok(());
            }
            Trouble::Whole { term, naming } => {
                self.call_whole(term, naming);
                return Ok(());
            }
            Trouble::SpeedUp => {
                self.network.slow_down(None);
                return Ok(());
            }
            _ => {}
        }
        let Some(recurring) = self.recurring(trouble).filter(|_| !self.calm) else {
            return Ok(());
        };
        let lasts = recurring.lasts.draw(&mut self.chance.faults);
        match trouble {
            Trouble::Crash => self.strike(),
            Trouble::Pause => self.pause(lasts),
            Trouble::Cut => self.cut(lasts),
            Trouble::SlowDown => self.slow_down(lasts),
            Trouble::ChangeClock => self.change_clock(),
            Trouble::Slander => self.slander(lasts),
            Trouble::MoveSeat => {
                self.move_seat();
            }
            Trouble::NoLeader => self.lose_leader(lasts),
            Trouble::Amend => self.amend(),
            _ => unreachable!("handled above"),
        }
        self.plan_next(trouble);
        Ok(())
    }

    fn draw_node(&mut self) -> NodeId {
        let n = self.plan.nodes;
        if n <= PICKY_NODES_MAX && self.chance.faults.chance(500_000) {
            let pool = self.pool;
            let vital: Vec<NodeId> = (0..n)
                .map(NodeId)
                .filter(|node| !P::can_lose(pool, &NodeSet::from_iter([*node])))
                .collect();
            if !vital.is_empty() {
                return *self.chance.faults.pick(&vital);
            }
        }
        NodeId(self.chance.faults.below(u64::from(n)) as u32)
    }

    fn draw_side(&mut self) -> NodeSet {
        let share =
            *self.chance.faults.pick(&[1_000_000 / self.plan.nodes.max(1), 300_000, 500_000]);
        let mut side: NodeSet =
            (0..self.plan.nodes).filter(|_| self.chance.faults.chance(share)).collect();
        if side.is_empty() {
            side.insert(self.draw_node());
        }
        side
    }

    /// A node crashes now, or in the middle of its next step.
    fn strike(&mut self) {
        let node = self.draw_node();
        if !self.nodes[node.index()].is_running() {
            return;
        }
        if self.chance.faults.chance(self.plan.faults.mid_step_ppm) {
            let after = self.chance.faults.below(4) as u32;
            self.nodes[node.index()].crash_after = Some(after);
        } else {
            self.crash(node);
        }
    }

    /// A node is down from now on; what was on its way to it is gone.
    pub(crate) fn crash(&mut self, name: NodeId) {
        self.disturb();
        let node = &mut self.nodes[name.index()];
        node.seat = None;
        node.paused = false;
        node.crash_after = None;
        node.aside = None;
        let mut unsynced = 0;
        let mut survivors = 0;
        if let Some(disk) = &mut node.disk {
            unsynced = disk.records();
            if self.chance.disk.chance(self.plan.faults.torn_tail_ppm) {
                survivors = self.chance.disk.between(0, unsynced as u64) as usize;
            }
            disk.crash(survivors);
        }
        self.measures.crashes += 1;
        self.note(
            &name,
            format_args!("CRASH, {unsynced} records unsynced, {survivors} of them survive"),
        );
        let boot = self.nodes[name.index()].boot;
        let lasts = self.plan.faults.crashes.map(|crashes| crashes.lasts);
        if let Some(lasts) = lasts.or(self.plan.faults.restarts) {
            let at = self.now + lasts.draw(&mut self.chance.faults).max(1);
            self.queue.push(at, Happening::Trouble(Trouble::Restart { node: name, boot }));
        }
        self.spread_word(name, true);
        self.miss(name);
    }

    /// A node comes back, unless that already happened.
    pub(crate) fn restart(&mut self, name: NodeId, boot: u32) -> Result<(), Stop> {
        let node = &mut self.nodes[name.index()];
        if node.seat.is_some() || node.boot != boot {
            return Ok(());
        }
        node.boot += 1;
        let lost = node.disk.as_ref().is_some_and(|disk| disk.is_lost());
        let start = if self.chance.faults.chance(self.plan.faults.amnesia_ppm) || lost {
            node.disk = Some(Box::new(Disk::replaced()));
            Start::Amnesia
        } else {
            Start::Recovered(node.disk.as_ref().and_then(|disk| disk.image().cloned()))
        };
        let how = match &start {
            Start::Recovered(Some(_)) => "with its record",
            Start::Recovered(None) => "without a record",
            _ => "remembering nothing",
        };
        self.note(&name, format_args!("RESTART {how}"));
        self.laws.see_restart(name);
        let forgot = matches!(start, Start::Amnesia);
        self.boot(name, start)?;
        self.remind_of_charter(name, forgot);
        self.is_whole_later();
        self.spread_word(name, false);
        if self.plan.faults.detection.is_some() {
            for about in 0..self.nodes.len() {
                if self.nodes[about].seat.is_none() {
                    self.plan_opinion(name, NodeId::from(about), true);
                }
            }
        }
        self.clients_call_again(name, true)
    }

    fn pause(&mut self, lasts: u64) {
        let name = self.draw_node();
        self.freeze(name, lasts);
    }

    /// A node stands still.
    pub(crate) fn freeze(&mut self, name: NodeId, lasts: u64) {
        let now = self.now;
        if !self.nodes[name.index()].is_running() {
            return;
        }
        self.nodes[name.index()].paused = true;
        self.note(&name, format_args!("pause"));
        let boot = self.nodes[name.index()].boot;
        self.queue.push(now + lasts, Happening::Trouble(Trouble::Resume { node: name, boot }));
    }

    /// A paused node goes on: first what happened meanwhile, in order.
    pub(crate) fn resume(&mut self, name: NodeId, boot: u32) -> Result<(), Stop> {
        let node = &mut self.nodes[name.index()];
        if !node.paused || node.boot != boot {
            return Ok(());
        }
        node.paused = false;
        self.note(&name, format_args!("resume"));
        let inbox = std::mem::take(&mut self.aside(name).inbox);
        self.let_all_happen(inbox)?;
        self.clients_call_again(name, false)
    }

    fn cut(&mut self, lasts: u64) {
        let side = self.draw_side();
        let cut = match self.chance.faults.below(3) {
            0 => Cut::Apart(side),
            1 => Cut::OneWay(side),
            _ => Cut::Ring(self.plan.nodes),
        };
        // The name only has to be new; the draw that follows in the stream is as good as any.
        let name = self.chance.faults.draw() as u32;
        self.note(&"net", format_args!("cut: {cut}"));
        self.network.cut(name, cut);
        self.queue.push(self.now + lasts, Happening::Trouble(Trouble::Heal { name }));
    }

    pub(crate) fn heal(&mut self, name: u32) -> Result<(), Stop> {
        if self.network.heal(name) {
            self.note(&"net", format_args!("healed"));
            self.let_held_arrive()?;
        }
        Ok(())
    }

    /// What cut links held back arrives at once and in order, unless another cut holds it.
    fn let_held_arrive(&mut self) -> Result<(), Stop> {
        let held = std::mem::take(&mut self.held);
        self.let_all_happen(held)
    }

    fn slow_down(&mut self, lasts: u64) {
        let side = self.draw_side();
        let factor = self.chance.faults.between(2, 20) as u32;
        self.note(&"net", format_args!("links of {side} are {factor} times slower"));
        self.network.slow_down(Some((side, factor)));
        self.queue.push(self.now + lasts, Happening::Trouble(Trouble::SpeedUp));
    }

    fn change_clock(&mut self) {
        let name = self.draw_node();
        let ppm = self.plan.draw_rate(&mut self.chance.faults);
        self.nodes[name.index()].clock.set_rate(self.now, ppm);
        self.note(&name, format_args!("clock wrong by {ppm} ppm"));
        self.clients_look_again(name);
    }

    fn slander(&mut self, lasts: u64) {
        let observer = self.draw_node();
        let about = self.draw_node();
        if observer != about {
            for (at, suspect) in [(self.now, true), (self.now + lasts, false)] {
                let opinion = Happening::Opinion { observer, about, suspect, slander: true };
                self.queue.push(at, opinion);
            }
        }
    }

    /// Everybody's failure detector will notice that a node is down, or up again.
    fn spread_word(&mut self, about: NodeId, suspect: bool) {
        if self.plan.faults.detection.is_some() {
            for observer in (0..self.nodes.len()).map(NodeId::from).filter(|node| *node != about) {
                self.plan_opinion(observer, about, suspect);
            }
        }
    }

    fn plan_opinion(&mut self, observer: NodeId, about: NodeId, suspect: bool) {
        let Some(delay) = self.plan.faults.detection else { return };
        let at = self.now + delay.draw(&mut self.chance.faults);
        self.queue.push(at, Happening::Opinion { observer, about, suspect, slander: false });
    }

    /// A failure detector changes its mind, unless the world already changed again.
    pub(crate) fn change_opinion(
        &mut self,
        observer: NodeId,
        about: NodeId,
        suspect: bool,
        slander: bool,
    ) -> Result<(), Stop> {
        if self.nodes[observer.index()].seat.is_none() {
            return Ok(());
        }
        let up = self.nodes[about.index()].seat.is_some();
        let suspects = &mut self.aside(observer).suspects;
        if suspect && (!up || slander) && suspects.insert(about) {
            return self.step(observer, Event::Suspect(about));
        }
        if !suspect && up && !slander && self.is_another(observer, about) {
            let boot = self.nodes[about.index()].boot;
            return self.greet(observer, about, boot);
        }
        let suspects = &mut self.aside(observer).suspects;
        if !suspect && up && suspects.remove(about) {
            return self.step(observer, Event::Trust(about));
        }
        Ok(())
    }

    /// Whether a node was started again since it was last heard, and that is known.
    fn is_another(&self, observer: NodeId, about: NodeId) -> bool {
        let heard = self.newest.get(&(observer, about)).copied().unwrap_or(0);
        self.plan.faults.greetings && self.nodes[about.index()].boot > heard
    }

    /// A node is heard for the first time since it was started again: the one that was known is
    /// gone, and it is there.
    pub(crate) fn greet(&mut self, observer: NodeId, about: NodeId, boot: u32) -> Result<(), Stop> {
        self.newest.insert((observer, about), boot);
        self.measures.greetings += 1;
        if self.aside(observer).suspects.insert(about) {
            self.step(observer, Event::Suspect(about))?;
        }
        let runs = self.nodes[observer.index()].seat.is_some();
        if runs && self.aside(observer).suspects.remove(about) {
            return self.step(observer, Event::Trust(about));
        }
        Ok(())
    }

    /// Faults are over: links are whole, nobody is paused, and every node runs that the pool cannot
    /// do without. Clients claim once more at most.
    pub(crate) fn calm_down(&mut self) -> Result<(), Stop> {
        self.be_calm()?;
        let mut down = NodeSet::new();
        for name in (0..self.nodes.len()).map(NodeId::from) {
            self.nodes[name.index()].crash_after = None;
            let boot = self.nodes[name.index()].boot;
            if self.nodes[name.index()].seat.is_some() {
                self.resume(name, boot)?;
                continue;
            }
            down.insert(name);
            let spared = !self.never_was_right()
                && self.rolling.is_none()
                && self.plan.pool.lease.is_some()
                && P::can_lose(self.pool, &down)
                && self.chance.faults.chance(500_000);
            if !spared {
                down.remove(name);
                self.restart(name, boot)?;
            }
        }
        // Whoever forgot is a loss too, until it has learnt again what it must know.
        while !P::can_lose(self.pool, &down.union(&self.forgetful())) {
            let Some(name) = down.iter().next() else { break };
            down.remove(name);
            self.restart(name, self.nodes[name.index()].boot)?;
        }
        for name in down.iter() {
            self.nodes[name.index()].boot += 1;
            self.note(&name, format_args!("stays down"));
            self.clients_give_up(name)?;
        }
        self.correct_opinions();
        Ok(())
    }

    /// Links are whole from now on, and nothing new goes wrong.
    pub(crate) fn be_calm(&mut self) -> Result<(), Stop> {
        self.calm = true;
        self.elect();
        self.note(&"all", format_args!("faults are over"));
        self.network.calm();
        self.let_held_arrive()
    }

    /// Nodes that run, and do not know what they should.
    fn forgetful(&self) -> NodeSet {
        let forgot = |node: &NodeId| {
            let seat = self.nodes[node.index()].seat.as_ref();
            seat.is_some_and(|seat| !seat.is_whole())
        };
        (0..self.nodes.len()).map(NodeId::from).filter(forgot).collect()
    }

    pub(crate) fn correct_opinions(&mut self) {
        for observer in (0..self.nodes.len()).map(NodeId::from) {
            let Some(aside) = &self.nodes[observer.index()].aside else { continue };
            for about in aside.suspects.clone().iter() {
                let trust = Happening::Opinion { observer, about, suspect: false, slander: false };
                self.queue.push(self.now, trust);
            }
        }
    }
}
