//! The decision: who is granted, oldest first, all on one flow.

use std::collections::BTreeSet;

use super::flow::Change;
use super::queue::{Lines, Waiting};
use super::{Allocator, Deed, News, Ticket, broken};

/// A claim that the pass grants. Its units have no names yet.
pub(super) struct Granted {
    pub(super) ticket: Ticket,
    pub(super) waiting: Waiting,
    /// The class of each of its units, once that is chosen.
    pub(super) classes: Vec<usize>,
}

/// What a pass knows while it goes through the queue.
struct Walk {
    log: Vec<Change>,
    /// Blocked claims that may still be protected.
    protect: u32,
    /// Whether the oldest has been passed often enough.
    patient: bool,
    /// Shapes that are blocked: whoever is younger is blocked too.
    closed: BTreeSet<Box<Lines>>,
    /// Shapes that find nothing at all, so that protecting more of them changes nothing.
    barren: BTreeSet<Box<Lines>>,
}

impl Allocator {
    /// Grants whatever can be granted now. Claims that came since the last pass are looked at
    /// alone, if nothing came back; everybody else is still blocked.
    pub fn pass(&mut self, deeds: &mut Vec<Deed>) {
        if self.is_moving() {
            self.go_on(deeds);
        }
        if self.is_moving() || self.news == News::Nothing {
            return;
        }
        let mut granted = Vec::new();
        self.decide(&mut granted);
        self.news = News::Nothing;
        self.bind(granted, deeds);
    }

    /// Panics if the books contradict themselves, or if somebody waits who should not: a second
    /// pass, from nothing and not from what the last one knew, finds nobody to grant.
    pub fn audit(&self) {
        self.audit_books();
        if self.is_moving() || self.news != News::Nothing {
            return;
        }
        let (mut again, mut granted) = (self.clone(), Vec::new());
        again.news = News::Room;
        again.decide(&mut granted);
        let missed: Vec<Ticket> = granted.iter().map(|granted| granted.ticket).collect();
        assert!(missed.is_empty(), "laws M and W: {missed:?} wait for units that are free");
    }

    /// Goes through the queue. Afterwards the flow holds what is granted and what is reserved.
    fn decide(&mut self, granted: &mut Vec<Granted>) {
        let mut walk = Walk {
            log: Vec::new(),
            protect: 0,
            patient: true,
            closed: BTreeSet::new(),
            barren: BTreeSet::new(),
        };
        let Some((oldest, _)) = self.queue.oldest() else { return };
        self.look_at_patience(&mut walk, None);
        let mut next = Some(oldest);
        while let Some(ticket) = next {
            if self.flow.spare_total() == 0 {
                break; // Nobody can find anything any more.
            }
            let known = matches!(self.news, News::Since(first) if ticket < first);
            if known && walk.protect == 0 {
                let News::Since(first) = self.news else { unreachable!("just matched") };
                next = self.queue.from(first).map(|(ticket, _)| ticket);
                continue;
            }
            if !self.try_grant(ticket, known, &mut walk, granted) && broken!(self, StrictFifo) {
                break;
            }
            next = self.next(ticket, &walk);
        }
    }

    /// The next that could be granted or protected.
    fn next(&self, ticket: Ticket, walk: &Walk) -> Option<Ticket> {
        let skipped = match walk.protect {
            0 => &walk.closed,
            u32::MAX => &walk.barren,
            _ => return self.queue.after(ticket).map(|(ticket, _)| ticket),
        };
        if skipped.is_empty() {
            return self.queue.after(ticket).map(|(ticket, _)| ticket);
        }
        self.queue.after_skipping(ticket, skipped).map(|(ticket, _)| ticket)
    }

    /// Grants a claim if everybody older leaves room for it, else protects it if it may be. Says
    /// whether it was granted.
    fn try_grant(
        &mut self,
        ticket: Ticket,
        known_blocked: bool,
        walk: &mut Walk,
        granted: &mut Vec<Granted>,
    ) -> bool {
        let waiting = self.queue.get(ticket).expect("whoever is next waits");
        let mark = walk.log.len();
        let mut complete = true;
        for (group, units) in &waiting.lines {
            complete &= self.flow.augment(&self.groups, *group, *units, &mut walk.log) == *units;
        }
        if complete {
            assert!(!known_blocked, "whoever was blocked still is: nothing came back");
            let passes = self.queue.pass(ticket);
            let waiting = self.queue.remove(ticket).expect("just found");
            let mut found = Granted { ticket, waiting, classes: Vec::new() };
            if broken!(self, BindEarly) {
                self.choose_classes(&mut found);
            }
            granted.push(found);
            if passes {
                self.look_at_patience(walk, Some(ticket));
            }
            return true;
        }
        let found = walk.log.len() > mark;
        if walk.protect > 0 {
            if walk.protect < u32::MAX {
                walk.protect -= 1;
            }
        } else {
            self.flow.undo(&mut walk.log, mark);
        }
        let lines = &waiting.lines;
        if !walk.closed.contains(lines) {
            walk.closed.insert(lines.clone());
        }
        if !found {
            walk.barren.insert(lines.clone());
        }
        false
    }

    /// Once the oldest has been passed often enough, blocked claims are protected. If that happens
    /// in the middle of a pass, the oldest is blocked already and gets what is left.
    fn look_at_patience(&mut self, walk: &mut Walk, passed_by: Option<Ticket>) {
        if !walk.patient || self.queue.oldest_passed() < self.policy.patience {
            return;
        }
        (walk.patient, walk.protect) = (false, self.policy.protect);
        if passed_by.is_none() || walk.protect == 0 {
            return;
        }
        let (_, oldest) = self.queue.oldest().expect("somebody was passed");
        for (group, units) in &oldest.lines {
            self.flow.augment(&self.groups, *group, *units, &mut walk.log);
        }
        if walk.protect < u32::MAX {
            walk.protect -= 1;
        }
    }
}
