//! Who may join by a secret, and the order in which members came.
//!
//! An invitation is for one name and for one machine: the charter keeps the hash of its secret, and
//! who came by it. The charter has no clock: whoever lets in looks whether it has expired.
//!
//! A name is used once where members join by invitation: nobody is invited under that of a member,
//! nor of one that is gone. So the order in which names came first is the same everywhere, only
//! grows, and gives each member a place that nobody has after it ([`Charter::places`]).

use serde::{Deserialize, Serialize};

use super::{Charter, Newcomer, PLACES_MAX, Refusal, named, put};
use crate::MemberId;

/// That a machine may join.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Invitation {
    /// SHA-256 of the secret that it must show.
    pub digest: [u8; 32],
    /// Seconds since 1970 at which it is worth nothing any more.
    pub expires: u64,
    /// Who came by it.
    pub taken: Option<MemberId>,
}

impl Charter {
    pub(super) fn invite(
        &mut self,
        index: u64,
        name: &str,
        invitation: Option<&Invitation>,
        if_generation: Option<u64>,
    ) -> Result<(), Refusal> {
        named("member", name)?;
        if let Some(invitation) = invitation {
            if invitation.taken.is_some() {
                return Err(Refusal::Nonsense("an invitation is made before it is taken".into()));
            }
            self.fresh(name)?;
        }
        let what = || format!("invitation of {name:?}");
        if self.invitations.get(name).is_some_and(|kept| kept.value.taken.is_some()) {
            let by = "a machine joined by it".to_owned();
            return Err(Refusal::InUse { what: what(), by, remedy: "remove that member".into() });
        }
        put(&mut self.invitations, index, name.to_owned(), invitation, if_generation, what)
    }

    /// Somebody joins by an invitation, and nobody after it does.
    pub(super) fn enter(
        &mut self,
        index: u64,
        digest: &[u8; 32],
        newcomer: &Newcomer,
    ) -> Result<(), Refusal> {
        let name = &newcomer.name;
        named("member", name)?;
        let what = || format!("invitation of {name:?} with this secret");
        let kept = self.invitations.get(name).filter(|kept| kept.value.digest == *digest);
        let kept = kept.ok_or_else(|| Refusal::Absent(what()))?;
        if let Some(by) = kept.value.taken {
            return Err(Refusal::Taken { what: format!("the invitation of {name:?}"), by });
        }
        self.fresh(name)?;
        let id = MemberId(index);
        self.join(id, index, newcomer)?;
        let kept = self.invitations.get_mut(name).expect("it was just there");
        (kept.generation, kept.value.taken) = (index, Some(id));
        Ok(())
    }

    /// Nobody ever had this name, and there is a place for one more.
    fn fresh(&self, name: &str) -> Result<(), Refusal> {
        let places = self.places();
        if let Some((_, by)) = places.iter().find(|(known, _)| known == name) {
            return Err(Refusal::Taken { what: format!("the name {name:?}"), by: *by });
        }
        if places.len() >= PLACES_MAX {
            return Err(Refusal::Nonsense(format!(
                "a cluster has places for {PLACES_MAX} members, those that are gone included, and \
                 all are taken; found a new cluster"
            )));
        }
        Ok(())
    }

    /// Every name that a member ever had, in the order in which they came first, and who had it
    /// first.
    pub fn places(&self) -> Vec<(String, MemberId)> {
        let here = self.members.iter().map(|(id, member)| (*id, &member.name));
        let gone = self.gone.iter().map(|(id, gone)| (*id, &gone.name));
        let mut all: Vec<(MemberId, &String)> = here.chain(gone).collect();
        all.sort();
        let mut places: Vec<(String, MemberId)> = Vec::new();
        for (id, name) in all {
            if places.iter().all(|(known, _)| known != name) {
                places.push((name.clone(), id));
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{About, Birth, Change, ClusterId, Done, Outcome, Reborn, Request, RequestId};

    fn newcomer(number: u8) -> Newcomer {
        let about = About { addresses: vec!["there".into()], ..About::default() };
        Newcomer { name: format!("n{number}"), birth: Birth([number; 16]), about }
    }

    fn ask(charter: &mut Charter, index: u64, change: Change) -> Outcome {
        let id = RequestId(u128::from(index).to_le_bytes());
        charter.apply(index, &Request::one(id, change))
    }

    fn invite(name: &str, digest: u8) -> Change {
        let invitation = Invitation { digest: [digest; 32], expires: 100, taken: None };
        Change::Invite { name: name.into(), invitation: Some(invitation), if_generation: None }
    }

    fn enter(number: u8, digest: u8) -> Change {
        Change::Enter { digest: [digest; 32], newcomer: newcomer(number) }
    }

    fn founded() -> Charter {
        let mut charter = Charter::default();
        let cluster = ClusterId([7; 16]);
        let found = Change::Found { cluster, incarnation: 1, founder: newcomer(0) };
        ask(&mut charter, 1, found).expect("the first");
        charter
    }

    fn refusal(outcome: Outcome) -> Refusal {
        outcome.expect_err("refused").why
    }

    #[test]
    fn one_machine_joins_by_an_invitation_and_only_with_its_secret() {
        let mut charter = founded();
        assert!(matches!(refusal(ask(&mut charter, 2, enter(1, 5))), Refusal::Absent(_)));
        assert!(ask(&mut charter, 3, invite("n1", 5)).is_ok());
        for (index, wrong) in [(4, enter(1, 6)), (5, enter(2, 5))] {
            assert!(matches!(refusal(ask(&mut charter, index, wrong)), Refusal::Absent(_)));
        }
        // A new secret for the same name takes the place of one that was lost.
        assert!(ask(&mut charter, 6, invite("n1", 7)).is_ok());
        assert!(matches!(refusal(ask(&mut charter, 7, enter(1, 5))), Refusal::Absent(_)));
        assert_eq!(ask(&mut charter, 8, enter(1, 7)), Ok(Done { version: 8 }));
        assert_eq!(charter.members()[&MemberId(8)].name, "n1");
        let taken = charter.invitations()["n1"].value.taken;
        assert_eq!(taken, Some(MemberId(8)));
        let other = Change::Enter {
            digest: [7; 32],
            newcomer: Newcomer { birth: Birth([99; 16]), ..newcomer(1) },
        };
        let again = refusal(ask(&mut charter, 9, other));
        assert!(matches!(again, Refusal::Taken { by: MemberId(8), .. }), "{again}");
    }

    #[test]
    fn a_name_is_used_once_and_its_place_with_it() {
        let mut charter = founded();
        ask(&mut charter, 2, invite("n1", 1)).expect("allowed");
        ask(&mut charter, 3, enter(1, 1)).expect("allowed");
        let leave = Change::Leave { member: MemberId(3), if_generation: None };
        ask(&mut charter, 4, leave).expect("allowed");
        for (index, name) in [(5, "n1"), (6, "n0")] {
            let no = refusal(ask(&mut charter, index, invite(name, 2)));
            assert!(matches!(no, Refusal::Taken { .. }), "{no}");
        }
        ask(&mut charter, 7, invite("n2", 2)).expect("allowed");
        ask(&mut charter, 8, enter(2, 2)).expect("allowed");
        let names = |charter: &Charter| -> Vec<String> {
            charter.places().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&charter), ["n0", "n1", "n2"], "who is gone keeps its place");
        // Also for the life after, in which the survivor is another member under its name.
        let sole = Newcomer { birth: Birth([50; 16]), ..newcomer(2) };
        let next = Reborn { cluster: ClusterId([8; 16]), incarnation: 2, index: 100, sole };
        let after = charter.reborn(&next).expect("a later life");
        assert_eq!(names(&after), ["n0", "n1", "n2"]);
        assert!(after.invitations().is_empty(), "whoever is let in then is invited then");
    }

    #[test]
    fn there_is_an_end_of_places() {
        let mut charter = founded();
        let mut index = 2;
        for number in 1..PLACES_MAX {
            let number = u8::try_from(number).expect("few");
            ask(&mut charter, index, invite(&format!("n{number}"), 1)).expect("there is room");
            ask(&mut charter, index + 1, enter(number, 1)).expect("there is room");
            index += 2;
        }
        let no = refusal(ask(&mut charter, index, invite("one-more", 1)));
        assert!(no.to_string().contains("places for 128"), "{no}");
    }
}
