//! Which node decides for which group of pools, and who shadows it (charter spec 4).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Charter, Move, Refusal};
use crate::{Group, Life};

/// Who decides for a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seat {
    /// 1 for the first seat of a group, and one more with every move.
    pub term: u64,
    /// Who decides, and the one life of it that books and shadows may open (charter spec S12).
    pub life: Life,
    /// Who decided in the term before: only its books open this seat (charter spec S11).
    pub before: Option<Life>,
    /// The naming by which this life was the whole shadow of the term before when this entry
    /// committed, if it was (charter spec S17). A member that learns of the move from a snapshot
    /// could not tell otherwise.
    pub by_shadow: Option<u64>,
    /// Who shadows it. A new term has none until it begins one (charter spec S16).
    pub shadow: Option<Shadow>,
    /// The index of the entry that last changed what is said here.
    pub generation: u64,
}

/// Who is told what a seat grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shadow {
    /// The life that listens; another has forgotten.
    pub life: Life,
    /// The index of the entry that named it. The same life may be struck and named again, and what
    /// was true of it before need not be (charter spec S16).
    pub naming: u64,
    /// Whether it knows all that the seat granted.
    pub whole: bool,
}

impl Charter {
    pub(super) fn move_seats(&mut self, index: u64, moves: &[Move]) -> Result<(), Refusal> {
        if moves.is_empty() {
            return Err(Refusal::Nonsense("a move of seats names at least one".into()));
        }
        let mut groups = BTreeSet::new();
        for Move { group, term, to } in moves {
            if !groups.insert(*group) {
                return Err(Refusal::Nonsense(format!("{group} is named twice")));
            }
            self.known(*to)?;
            let now = self.seats.get(group).map_or(0, |seat| seat.term);
            if now != *term {
                return Err(Refusal::Term { group: *group, wanted: *term, now });
            }
        }
        for Move { group, term, to } in moves {
            let before = self.seats.get(group);
            let shadow = before.and_then(|seat| seat.shadow);
            let seat = Seat {
                term: term + 1,
                life: *to,
                before: before.map(|seat| seat.life),
                by_shadow: shadow
                    .filter(|shadow| shadow.whole && shadow.life == *to)
                    .map(|shadow| shadow.naming),
                shadow: None,
                generation: index,
            };
            self.seats.insert(*group, seat);
        }
        Ok(())
    }

    pub(super) fn shadow(
        &mut self,
        index: u64,
        group: Group,
        term: u64,
        (seen, shadow): (u64, Option<Life>),
    ) -> Result<(), Refusal> {
        shadow.iter().try_for_each(|life| self.known(*life))?;
        let seat = self.seat(group, term)?;
        if shadow.is_some_and(|life| life.member == seat.life.member) {
            return Err(Refusal::Nonsense(format!("the seat of {group} cannot shadow itself")));
        }
        let now = seat.shadow.map_or(0, |shadow| shadow.naming);
        if seen != now {
            return Err(Refusal::Naming { group, wanted: seen, now });
        }
        if shadow.is_none() && seat.shadow.is_none() {
            return Err(Refusal::Absent(format!("shadow of {group}")));
        }
        seat.shadow = shadow.map(|life| Shadow { life, naming: index, whole: false });
        seat.generation = index;
        Ok(())
    }

    pub(super) fn whole(
        &mut self,
        index: u64,
        group: Group,
        term: u64,
        naming: u64,
    ) -> Result<(), Refusal> {
        let seat = self.seat(group, term)?;
        match &mut seat.shadow {
            Some(shadow) if shadow.naming == naming => shadow.whole = true,
            shadow => {
                let now = shadow.map_or(0, |shadow| shadow.naming);
                return Err(Refusal::Naming { group, wanted: naming, now });
            }
        }
        seat.generation = index;
        Ok(())
    }

    /// The seat of a group, in the term that the asker saw.
    fn seat(&mut self, group: Group, wanted: u64) -> Result<&mut Seat, Refusal> {
        let now = self.seats.get(&group).map_or(0, |seat| seat.term);
        match self.seats.get_mut(&group) {
            Some(seat) if now == wanted => Ok(seat),
            _ => Err(Refusal::Term { group, wanted, now }),
        }
    }

    fn known(&self, life: Life) -> Result<(), Refusal> {
        if self.members.contains_key(&life.member) {
            Ok(())
        } else {
            Err(Refusal::Absent(format!("member {}", life.member)))
        }
    }
}
