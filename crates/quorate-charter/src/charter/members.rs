//! Who belongs to the cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{About, Charter, NAME_MAX, Newcomer, Refusal, named, short, unchanged};
use crate::{Birth, ClusterId, MemberId};

/// Most addresses of one member.
const ADDRESSES_MAX: usize = 16;

/// Whether a member has a vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Role {
    /// It follows.
    Learner,
    /// It votes, in the old list or in the new one while the list changes.
    Voter,
}

/// A member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The index of the entry that last changed what is said here.
    pub generation: u64,
    /// What people call it.
    pub name: String,
    /// The birth of its store: another store under its id is not it.
    pub birth: Birth,
    /// What may change.
    pub about: About,
    /// Whether it votes.
    pub role: Role,
    /// Whether it is to give away what it decides.
    pub draining: bool,
    /// Whether somebody wants it to be none any more: it loses its vote and its seats, and then it
    /// leaves.
    pub leaving: bool,
}

/// Somebody who was a member. It stays written down, so that nobody takes it for one that has not
/// joined yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gone {
    /// What it was called.
    pub name: String,
    /// Its store: nobody joins with it again.
    pub birth: Birth,
    /// Whether somebody wanted it to go. Then nobody joins under its name before somebody says
    /// that one may.
    pub barred: bool,
}

impl Charter {
    pub(super) fn found(
        &mut self,
        index: u64,
        cluster: ClusterId,
        incarnation: u64,
        founder: &Newcomer,
    ) -> Result<(), Refusal> {
        if let Some(cluster) = self.cluster {
            return Err(Refusal::Founded(cluster));
        }
        self.join(MemberId::FOUNDER, index, founder)?;
        (self.cluster, self.incarnation) = (Some(cluster), incarnation);
        let founder = self.members.get_mut(&MemberId::FOUNDER).expect("it just joined");
        // Entry 0 gave it the only vote, before there was anything to write that into.
        founder.role = Role::Voter;
        Ok(())
    }

    pub(super) fn join(
        &mut self,
        id: MemberId,
        index: u64,
        newcomer: &Newcomer,
    ) -> Result<(), Refusal> {
        named("member", &newcomer.name)?;
        sound(&newcomer.about)?;
        for (by, member) in &self.members {
            let taken = |what: String| Err(Refusal::Taken { what, by: *by });
            if member.name == newcomer.name {
                return taken(format!("the name {:?}", newcomer.name));
            }
            if member.birth == newcomer.birth {
                return taken(format!("the store {}", newcomer.birth));
            }
        }
        for (by, gone) in &self.gone {
            if gone.birth == newcomer.birth {
                let what = format!("the store {}, which was removed with its member,", gone.birth);
                return Err(Refusal::Taken { what, by: *by });
            }
            if gone.barred && gone.name == newcomer.name {
                return Err(Refusal::Barred(gone.name.clone()));
            }
        }
        let member = Member {
            generation: index,
            name: newcomer.name.clone(),
            birth: newcomer.birth,
            about: newcomer.about.clone(),
            role: Role::Learner,
            draining: false,
            leaving: false,
        };
        self.members.insert(id, member);
        Ok(())
    }

    pub(super) fn amend(
        &mut self,
        index: u64,
        id: MemberId,
        about: &About,
        if_generation: Option<u64>,
    ) -> Result<(), Refusal> {
        sound(about)?;
        let member = self.member(id, if_generation)?;
        (member.generation, member.about) = (index, about.clone());
        Ok(())
    }

    pub(super) fn drain_member(
        &mut self,
        index: u64,
        id: MemberId,
        draining: bool,
        if_generation: Option<u64>,
    ) -> Result<(), Refusal> {
        let member = self.member(id, if_generation)?;
        (member.generation, member.draining) = (index, draining || member.leaving);
        Ok(())
    }

    /// A member that is to go decides nothing meanwhile; one that may stay after all drains on,
    /// until somebody says otherwise.
    pub(super) fn retire(
        &mut self,
        index: u64,
        id: MemberId,
        leaving: bool,
        if_generation: Option<u64>,
    ) -> Result<(), Refusal> {
        if leaving && !self.members.iter().any(|(other, it)| *other != id && !it.leaving) {
            let by = "it is the last one that stays".into();
            let remedy = "a cluster without members is none; stop the node instead".into();
            return Err(Refusal::InUse { what: format!("member {id}"), by, remedy });
        }
        let member = self.member(id, if_generation)?;
        (member.generation, member.leaving) = (index, leaving);
        member.draining |= leaving;
        Ok(())
    }

    /// Somebody may join under the name of a member that was removed.
    pub(super) fn readmit(&mut self, name: &str) -> Result<(), Refusal> {
        let mut barred = self.gone.values_mut().filter(|gone| gone.barred && gone.name == name);
        let Some(first) = barred.next() else {
            return Err(Refusal::Absent(format!("member {name:?} that was removed")));
        };
        first.barred = false;
        barred.for_each(|gone| gone.barred = false);
        Ok(())
    }

    /// Who was a member and is none any more.
    pub fn gone(&self) -> &BTreeMap<MemberId, Gone> {
        &self.gone
    }

    /// Whether a name is that of a member that was removed, and of none that is one.
    pub fn is_removed(&self, name: &str) -> bool {
        self.gone.values().any(|gone| gone.name == name)
            && !self.members.values().any(|member| member.name == name)
    }

    pub(super) fn leave(
        &mut self,
        id: MemberId,
        if_generation: Option<u64>,
    ) -> Result<(), Refusal> {
        let role = self.member(id, if_generation)?.role;
        let needed = |by: String, remedy: &str| Refusal::InUse {
            what: format!("member {id}"),
            by,
            remedy: remedy.into(),
        };
        if role == Role::Voter {
            return Err(needed("it votes".into(), "take its vote first"));
        }
        for (group, seat) in &self.seats {
            if seat.life.member == id {
                return Err(needed(format!("it decides for {group}"), "move its seats first"));
            }
            if seat.shadow.is_some_and(|shadow| shadow.life.member == id) {
                return Err(needed(format!("it shadows {group}"), "strike its shadows first"));
            }
        }
        if let Some(Member { name, birth, leaving, .. }) = self.members.remove(&id) {
            self.gone.insert(id, Gone { name, birth, barred: leaving });
        }
        Ok(())
    }

    /// The engine's own entry at `index` says who votes.
    pub fn votes(&mut self, index: u64, voters: &BTreeSet<MemberId>) {
        for (id, member) in &mut self.members {
            let role = if voters.contains(id) { Role::Voter } else { Role::Learner };
            if role != member.role {
                (member.role, member.generation, self.version) = (role, index, index);
            }
        }
    }

    fn member(&mut self, id: MemberId, if_generation: Option<u64>) -> Result<&mut Member, Refusal> {
        let what = || format!("member {id}");
        let member = self.members.get_mut(&id).ok_or_else(|| Refusal::Absent(what()))?;
        unchanged(if_generation, member.generation, what)?;
        Ok(member)
    }
}

fn sound(about: &About) -> Result<(), Refusal> {
    let About { addresses, labels, .. } = about;
    if addresses.is_empty() || addresses.len() > ADDRESSES_MAX {
        return Err(Refusal::Nonsense(format!("a member has 1 to {ADDRESSES_MAX} addresses")));
    }
    addresses.iter().try_for_each(|address| named("address", address))?;
    if labels.len() > NAME_MAX {
        return Err(Refusal::Nonsense(format!("a member has at most {NAME_MAX} labels")));
    }
    labels.iter().try_for_each(|(key, value)| {
        named("label", key)?;
        short("label", value)
    })
}
