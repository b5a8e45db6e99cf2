//! The decision: who is granted, oldest first, all on one flow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::flow::Change;
use super::queue::{Shape, Waiting};
use super::{Allocator, Deed, News, Policy, Ticket, broken};

/// A claim that the pass grants. Its units have no names yet.
pub(super) struct Granted {
    pub(super) ticket: Ticket,
    pub(super) waiting: Waiting,
    /// The class of each of its units, once that is chosen. Only where somebody may have to move.
    pub(super) classes: Vec<usize>,
}

/// Books with more claims that wait...
const AUDIT_CLAIMS_MAX: usize = 16;
/// ...or more units are not audited.
const AUDIT_UNITS_MAX: u32 = 64;

type Heads = BinaryHeap<Reverse<(Ticket, Shape)>>;

/// What a pass knows while it goes through the queue.
struct Walk {
    log: Vec<Change>,
    /// Blocked claims that may still be protected.
    protect: u32,
    /// Whether the oldest may be passed once more.
    patient: bool,
    /// Shapes that are blocked: whoever is younger is blocked too.
    closed: BTreeSet<Shape>,
    /// Shapes that find nothing at all, so that protecting more of them changes nothing.
    barren: BTreeSet<Shape>,
    /// The next of every shape, oldest first; made when there are shapes to skip.
    heads: Option<Heads>,
    /// Most units that claims of a group can still find, where that is known.
    left: BTreeMap<usize, u32>,
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
        if self.is_plain() {
            self.grant_oldest(deeds);
            let Some((_, oldest)) = self.queue.oldest() else {
                self.news = News::Nothing;
                return;
            };
            // Else the oldest is blocked, and whatever is left is kept for it.
            if self.policy == Policy::STRICT && !oldest.movable {
                self.news = News::Nothing;
                return;
            }
        }
        let mut granted = Vec::new();
        if self.flow.spare_total() > 0 {
            self.decide(&mut granted);
        }
        self.news = News::Nothing;
        self.bind(granted, deeds);
    }

    /// Whether all units are alike to everybody, and nobody can be moved.
    fn is_plain(&self) -> bool {
        self.groups.len() == 1 && self.movers.is_empty()
    }

    /// The oldest while they fit: the start of any pass, and where units are alike no flow is
    /// needed to see it.
    fn grant_oldest(&mut self, deeds: &mut Vec<Deed>) {
        while let Some((ticket, waiting)) = self.queue.oldest()
            && let [(_, count)] = *waiting.shape
            && count <= self.free[0].count()
            && !waiting.movable
        {
            let waiting = self.queue.remove(ticket).expect("it is the oldest");
            self.leave_groups(&waiting.shape);
            let mut units = Vec::with_capacity(count as usize);
            self.take_lowest(0, count, &mut units);
            deeds.push(Deed::Grant { ticket, units });
        }
    }

    /// Panics if the books contradict themselves, or if somebody waits who should not: a second
    /// pass, from nothing and not from what the last one knew, finds nobody to grant. Large books
    /// are not looked through: drivers audit after every step.
    pub fn audit(&self) {
        if self.queue.len() > AUDIT_CLAIMS_MAX || self.layout.units() > AUDIT_UNITS_MAX {
            return;
        }
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
            heads: None,
            left: BTreeMap::new(),
        };
        let Some((oldest, _)) = self.queue.oldest() else { return };
        if let News::Since(_) = self.news {
            self.look_at_patience(&mut walk); // The oldest is blocked.
        }
        let mut next = Some(oldest);
        while let Some(ticket) = next {
            if self.flow.spare_total() == 0 {
                break; // Nobody can find anything any more.
            }
            let known = matches!(self.news, News::Since(first) if ticket < first);
            if known && walk.protect == 0 {
                let News::Since(first) = self.news else { unreachable!("just matched") };
                next = self.queue.from(first);
                continue;
            }
            if !self.try_grant(ticket, known, &mut walk, granted) && broken!(self, StrictFifo) {
                break;
            }
            next = self.next(ticket, &mut walk);
        }
    }

    /// The next that could be granted or protected.
    fn next(&self, ticket: Ticket, walk: &mut Walk) -> Option<Ticket> {
        let skipped = match walk.protect {
            0 => &walk.closed,
            u32::MAX => &walk.barren,
            _ => return self.queue.after(ticket),
        };
        if skipped.is_empty() {
            return self.queue.after(ticket);
        }
        let all = || self.queue.heads().map(|(head, shape)| Reverse((head, shape.clone())));
        let heads = walk.heads.get_or_insert_with(|| all().collect());
        while let Some(Reverse((head, shape))) = heads.pop() {
            if skipped.contains(&shape) {
                continue;
            }
            if head > ticket {
                heads.push(Reverse((head, shape)));
                return Some(head);
            }
            let next = self.queue.after_of(&shape, ticket);
            heads.extend(next.map(|next| Reverse((next, shape))));
        }
        None
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
        let too_much =
            |(group, units): &(usize, u32)| walk.left.get(group).is_some_and(|l| l < units);
        if walk.protect == 0 && waiting.shape.iter().any(too_much) {
            walk.closed.insert(waiting.shape.clone());
            return false;
        }
        let (mut complete, mut got) = (true, 0);
        for (group, units) in waiting.shape.iter() {
            got = self.flow.augment(&self.groups, *group, *units, &mut walk.log);
            complete &= got == *units;
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
            if passes && self.look_at_patience(walk) {
                self.protect_oldest(walk);
            }
            return true;
        }
        let found = walk.log.len() > mark;
        self.look_at_patience(walk);
        if let [(group, _)] = *waiting.shape {
            // More is taken from here on, never less.
            walk.left.insert(group, if walk.protect > 0 { 0 } else { got });
        }
        if walk.protect > 0 {
            if walk.protect < u32::MAX {
                walk.protect -= 1;
            }
        } else {
            self.flow.undo(&mut walk.log, mark);
        }
        walk.closed.insert(waiting.shape.clone());
        if !found {
            walk.barren.insert(waiting.shape.clone());
        }
        false
    }

    /// Once the oldest, which is blocked, was passed often enough, blocked claims are protected.
    /// Says whether that is news.
    fn look_at_patience(&self, walk: &mut Walk) -> bool {
        if !walk.patient || self.queue.oldest_passed() < self.policy.patience {
            return false;
        }
        (walk.patient, walk.protect) = (false, self.policy.protect);
        true
    }

    /// The oldest was passed once too often in the middle of a pass: it gets what is left.
    fn protect_oldest(&mut self, walk: &mut Walk) {
        if walk.protect == 0 {
            return;
        }
        let (_, oldest) = self.queue.oldest().expect("somebody was passed");
        for (group, units) in oldest.shape.iter() {
            self.flow.augment(&self.groups, *group, *units, &mut walk.log);
        }
        if walk.protect < u32::MAX {
            walk.protect -= 1;
        }
    }
}
