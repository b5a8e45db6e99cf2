//! A charter that goes on although entries of it may be lost: its majority is, or all that is left
//! is a backup (charter spec 5).
//!
//! It is another cluster by its id, of one member, in a later incarnation. Everybody who was a
//! member is one no more, with its store, the survivor's included: no store of the life before
//! belongs to this one. Who decided for which group when it ended is not known, nor whether
//! anybody did: so every group counts as one that somebody decided for.

use std::collections::BTreeMap;

use super::{Charter, Gone, Newcomer, Refusal, Role, Seat};
use crate::{ClusterId, Group, Life, MemberId};

/// What the next life of a charter begins with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reborn {
    /// Drawn anew: members of the life before are strangers.
    pub cluster: ClusterId,
    /// After every incarnation that there was, lost ones included.
    pub incarnation: u64,
    /// An index that no entry had, lost ones included. It is the id of the one member, too.
    pub index: u64,
    /// The one member, with a store of a new birth.
    pub sole: Newcomer,
}

impl Charter {
    /// The document with which a charter goes on.
    ///
    /// # Errors
    /// It was never founded, or what is said of the next life was true of an earlier one.
    pub fn reborn(&self, next: &Reborn) -> Result<Charter, Refusal> {
        let Reborn { cluster, incarnation, index, sole } = next;
        if self.cluster.is_none() {
            return Err(Refusal::NotFounded);
        }
        if *incarnation <= self.incarnation {
            return Err(Refusal::Incarnation { wanted: *incarnation, now: self.incarnation });
        }
        if *index <= self.version {
            let why = format!("entry {index} is not after version {}", self.version);
            return Err(Refusal::Nonsense(why));
        }
        let mut charter = self.clone();
        for (id, member) in std::mem::take(&mut charter.members) {
            // Whoever somebody wanted to go stays away. The survivor is wanted.
            let barred = member.leaving && member.name != sole.name;
            let gone = Gone { name: member.name, birth: member.birth, barred };
            charter.gone.insert(id, gone);
        }
        let id = MemberId(*index);
        charter.join(id, *index, sole)?;
        let member = charter.members.get_mut(&id).expect("it just joined");
        // The engine's list of voters, made with this document, has it alone.
        member.role = Role::Voter;
        // No life has this number: whoever decides needs an entry that names its own, and waits
        // as after a crash (charter spec S3, S4, S12).
        let nobody = Life { member: id, boot: 0 };
        let seat = |group: Group| {
            let before = self.seats.get(&group);
            let seat = Seat {
                term: before.map_or(0, |seat| seat.term) + 1,
                life: nobody,
                before: Some(before.map_or(nobody, |seat| seat.life)),
                by_shadow: false,
                shadow: None,
                generation: *index,
            };
            (group, seat)
        };
        charter.seats = Group::all().map(seat).collect::<BTreeMap<_, _>>();
        (charter.cluster, charter.incarnation) = (Some(*cluster), *incarnation);
        (charter.version, charter.recovered) = (*index, true);
        // Somebody may have come by one of them, by an entry that is lost.
        charter.invitations.clear();
        Ok(charter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{About, Birth, BytesError, Change, Move, Request, RequestId};

    fn newcomer(number: u8) -> Newcomer {
        let about = About { addresses: vec!["there".into()], ..About::default() };
        Newcomer { name: format!("n{number}"), birth: Birth([number; 16]), about }
    }

    fn next(index: u64) -> Reborn {
        let sole = Newcomer { birth: Birth([9; 16]), ..newcomer(1) };
        Reborn { cluster: ClusterId([8; 16]), incarnation: 4, index, sole }
    }

    /// Three members, of which one is to leave, and one group that somebody decides for.
    fn charter() -> Charter {
        let mut charter = Charter::default();
        let cluster = ClusterId([7; 16]);
        let to = Life { member: MemberId(2), boot: 5 };
        let seats = |term| Change::Seats { moves: vec![Move { group: Group(3), term, to }] };
        let changes = [
            Change::Found { cluster, incarnation: 3, founder: newcomer(0) },
            Change::Join(newcomer(1)),
            Change::Join(newcomer(2)),
            seats(0),
            seats(1),
            Change::Retire { member: MemberId(3), leaving: true, if_generation: None },
            Change::Pool { name: "p".into(), definition: Some("x".into()), if_generation: None },
        ];
        for (change, index) in changes.into_iter().zip(1..) {
            let id = RequestId([u8::try_from(index).expect("few"); 16]);
            charter.apply(index, &Request::one(id, change)).expect("allowed");
        }
        charter
    }

    #[test]
    fn it_goes_on_with_one_member_and_no_store_of_the_life_before() {
        let before = charter();
        let mut after = before.reborn(&next(100)).expect("a later life");
        assert_eq!(after.sound(), Ok(()));
        let names: Vec<_> = after.members().values().map(|it| (&*it.name, it.role)).collect();
        assert_eq!(names, [("n1", Role::Voter)]);
        assert_eq!(after.gone().len(), 3, "the survivor's old store is gone too");
        assert_eq!((after.cluster(), after.version()), (Some(ClusterId([8; 16])), 100));
        assert_eq!((after.pools(), after.is_recovered()), (before.pools(), true));
        assert!(after.is_removed("n0") && !after.is_removed("n1"));
        // A lost store never comes back, its machine may, and whoever was to go may not.
        let mut join = |index, newcomer| {
            let id = RequestId([u8::try_from(index).expect("few"); 16]);
            after.apply(index, &Request::one(id, Change::Join(newcomer)))
        };
        assert!(
            matches!(join(101, newcomer(0)), Err(it) if matches!(it.why, Refusal::Taken { .. }))
        );
        let anew = |number| Newcomer { birth: Birth([number + 20; 16]), ..newcomer(number) };
        assert!(matches!(join(102, anew(2)), Err(it) if matches!(it.why, Refusal::Barred(_))));
        assert!(join(103, anew(0)).is_ok());
        assert_eq!(Charter::from_text(&after.to_text()), Ok(after.clone()));
    }

    #[test]
    fn every_group_counts_as_one_that_somebody_decided_for() {
        let before = charter();
        let after = before.reborn(&next(100)).expect("a later life");
        assert_eq!(after.seats().len(), 256);
        for (group, seat) in after.seats() {
            let was = before.seats().get(group);
            assert!(seat.term > was.map_or(0, |seat| seat.term), "{group}");
            assert!(seat.before.is_some() && seat.life.boot == 0, "{group}: it opens at once");
        }
        assert_eq!(after.seats()[&Group(3)].term, 3);
    }

    #[test]
    fn a_life_that_was_before_is_refused() {
        let charter = charter();
        let wrong = |next: Reborn| charter.reborn(&next).expect_err("refused");
        assert_eq!(Charter::default().reborn(&next(100)), Err(Refusal::NotFounded));
        let same = wrong(Reborn { incarnation: 3, ..next(100) });
        assert_eq!(same, Refusal::Incarnation { wanted: 3, now: 3 });
        assert!(matches!(wrong(next(7)), Refusal::Nonsense(_)));
    }

    #[test]
    fn a_backup_that_is_damaged_is_none() {
        let charter = charter();
        let text = charter.to_text();
        assert_eq!(Charter::from_text(&text), Ok(charter));
        assert_eq!(Charter::from_text(""), Err(BytesError::Empty));
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = if bytes[place] == b'0' { b'+' } else { b'0' };
            let damaged = String::from_utf8(bytes).expect("digits");
            assert_eq!(Charter::from_text(&damaged), Err(BytesError::Garbage), "{place}");
            assert!(Charter::from_text(&text[..place]).is_err(), "{place}");
        }
    }

    #[test]
    fn a_charter_of_a_form_before_is_read_as_one_that_lacks_what_came_since() {
        let charter = charter();
        let bytes = charter.to_bytes();
        let (form, rest) = bytes.split_first().expect("not empty");
        for fields in 1..=2 {
            let older = [&[form - fields], &rest[..rest.len() - usize::from(fields)]].concat();
            assert_eq!(Charter::from_bytes(&older).as_ref(), Ok(&charter));
        }
    }
}
