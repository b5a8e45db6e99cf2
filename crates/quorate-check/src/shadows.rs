//! Shadows in the control plane of a small world: named, vouched for, struck (charter spec S13 to
//! S17).
//!
//! A shadow that is down, or was restarted, is struck without counting; one that is there as often
//! as the council says. Only the node that decides cares who shadows it, so only that one applies
//! such entries.

use quorate_core::{Charter, Explorable, NodeId, Shadow, Tenure};

use crate::action::Happening;
use crate::council::{Chamber, Flaw};
use crate::model::Model;
use crate::world::World;

/// The first term of a charter where there was a pinned seat before.
const AFTER_BOOTS: u32 = 8;

impl Chamber {
    /// Who decides.
    pub(crate) fn tenure(&self) -> Tenure {
        self.tenure_at(self.log.len() - 1)
    }

    /// Who decided when so much was committed.
    pub(crate) fn tenure_at(&self, index: usize) -> Tenure {
        let tenure = |entry: &Charter| match entry {
            Charter::Applied(tenure) | Charter::Inherited(tenure, _) => Some(*tenure),
            _ => None,
        };
        self.log[..=index].iter().rev().find_map(tenure).expect("the first entry says who decides")
    }

    /// Who shadows whoever decides.
    pub(crate) fn shadow(&self) -> Option<Shadow> {
        match self.log.last() {
            Some(Charter::Shadowed { shadow, .. }) => *shadow,
            _ => None,
        }
    }

    /// The entry by which this life decides next.
    pub(crate) fn succession(&self, node: NodeId, boot: u32, flaw: Option<Flaw>) -> Charter {
        let last = self.tenure();
        // Terms are greater than all boot numbers of a node that was pinned (charter spec S10).
        let term = if last.term == Tenure::PINNED { AFTER_BOOTS } else { last.term + 1 };
        let tenure = Tenure { term, after: Some(last.term), node, boot };
        let any_life = flaw == Some(Flaw::AnyLifeInherits);
        let is_heir = |it: Shadow| it.whole && it.node == node && (it.boot == boot || any_life);
        match self.shadow().filter(|it| is_heir(*it)) {
            Some(it) => Charter::Inherited(tenure, it.naming),
            None => Charter::Applied(tenure),
        }
    }

    /// The entries that a node which has applied so much may apply next: any that says who decides,
    /// or, where it decides, who shadows it.
    pub(crate) fn next_for(&self, node: NodeId, applied: usize, stored: usize) -> Vec<usize> {
        let decides = |index: &usize| !matches!(self.log[*index], Charter::Shadowed { .. });
        let told = || (0..stored).rev().find(decides).unwrap_or(0);
        let next = if applied == 0 { told() } else { applied };
        let first = (next..self.log.len()).find(decides).unwrap_or(self.log.len());
        let may = |index: &usize| match decides(index) {
            true => true,
            false => *index < first && self.tenure_at(*index).node == node,
        };
        (next..self.log.len()).filter(may).collect()
    }

    /// Whether what a seat said for a shadow may still count.
    pub(crate) fn counts(&self, (term, naming): (u32, u64)) -> bool {
        let stands = |it: Shadow| !it.whole && it.naming == naming;
        self.tenure().term == term && self.shadow().is_some_and(stands)
    }

    fn put_shadow(&mut self, shadow: Option<Shadow>) {
        let term = self.tenure().term;
        self.log.push(Charter::Shadowed { term, shadow });
    }
}

impl<P: Explorable> Model<'_, P> {
    /// A seat vouches for a shadow, and may be heard late.
    pub(crate) fn vouched(&mut self, term: u32, naming: u64) {
        if let Some(chamber) = &mut self.chamber {
            chamber.vouched = Some((term, naming));
        }
    }

    pub(crate) fn shadow_happenings(&self, world: &World, into: &mut Vec<Happening>) {
        let chamber = self.parts.chambers.get(world.council());
        let is_up = |node: NodeId| world.participant(node).is_some();
        let decides = chamber.tenure().node;
        match chamber.shadow() {
            None if chamber.namings > 0 => {
                let others = world.nodes().filter(|node| *node != decides && is_up(*node));
                into.extend(others.map(|node| Happening::Name { node }));
            }
            None => {}
            Some(it) => {
                let gone = !is_up(it.node) || world.boot(it.node) != it.boot;
                if gone || chamber.strikes > 0 {
                    into.push(Happening::Strike { forced: gone });
                }
                if chamber.vouched.is_some() && !it.whole {
                    into.push(Happening::Whole);
                }
            }
        }
    }

    pub(crate) fn shadow_happens(&self, world: &World, chamber: &mut Chamber, it: Happening) {
        match it {
            Happening::Name { node } => {
                chamber.namings -= 1;
                chamber.named += 1;
                let (boot, naming) = (world.boot(node), chamber.named);
                chamber.put_shadow(Some(Shadow { node, boot, naming, whole: false }));
            }
            Happening::Strike { forced } => {
                chamber.strikes -= u8::from(!forced);
                chamber.put_shadow(None);
            }
            Happening::Whole => {
                chamber.vouched = None;
                let shadow = chamber.shadow().map(|it| Shadow { whole: true, ..it });
                chamber.put_shadow(shadow);
            }
            _ => unreachable!("not about shadows"),
        }
    }
}
