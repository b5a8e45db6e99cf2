//! The document, as a plain value: no IO, no clock, no chance.
//!
//! [`Charter::apply`] takes one entry of the log with its index and says what became of it. The
//! same entries give the same document, byte for byte ([`Charter::to_bytes`]). What holds of every
//! document that can be reached, and is tested with histories drawn at random:
//!
//! 1. A change that is refused leaves everything as it was.
//! 2. A change that is repeated under its id, among the last [`REMEMBERED`] requests, is answered
//!    as it was the first time and changes nothing.
//! 3. The id of a member is the index at which it joined, so none is ever used twice.
//! 4. The terms of a group only grow (charter spec 4).
//! 5. A generation is the index of the entry that last changed the thing. So it grows, and a thing
//!    that was deleted and made again does not have a generation that somebody saw before.
//!
//! Who votes is not a change: the engine's own entries say it ([`Charter::votes`]), in the same
//! log, so that the document and the engine never disagree.

mod bytes;
mod change;
mod directory;
mod invitations;
mod members;
mod memory;
mod reborn;
mod seats;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::bytes::BytesError;
pub use self::change::{
    About, Change, Done, Move, Newcomer, Outcome, Refusal, Refused, Request, Token,
};
pub use self::directory::{Differs, Directory};
pub use self::invitations::Invitation;
pub use self::members::{Gone, Member, Role};
pub use self::memory::REMEMBERED;
pub use self::reborn::Reborn;
pub use self::seats::{Seat, Shadow};

use self::memory::Memory;
use crate::{ClusterId, Group, MemberId, RequestId};

/// Longest name, in bytes.
pub const NAME_MAX: usize = 256;
/// Characters of a wrong name that are shown.
const NAME_SHOWN: usize = 40;
/// Longest definition or reason, in bytes.
pub const TEXT_MAX: usize = 64 << 10;

/// Most names that members of a cluster ever have, where they join by invitation.
pub const PLACES_MAX: usize = 128;

/// Most changes that are asked for together...
pub const TOGETHER_MAX: usize = 1000;
/// ...and most bytes that they have, as they travel.
pub const REQUEST_MAX: usize = 1 << 20;

/// Something that changes, and the index of the entry that last changed it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept<T> {
    /// The index.
    pub generation: u64,
    /// What it is now.
    pub value: T,
}

/// A unit, by the name of its pool and its own.
pub type UnitName = (String, String);

/// The document.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Charter {
    version: u64,
    cluster: Option<ClusterId>,
    incarnation: u64,
    members: BTreeMap<MemberId, Member>,
    pools: Directory<Kept<String>>,
    labels: BTreeMap<UnitName, Kept<BTreeMap<String, String>>>,
    drains: BTreeMap<UnitName, Kept<String>>,
    rights: BTreeMap<String, Kept<String>>,
    tokens: BTreeMap<String, Kept<Token>>,
    seats: BTreeMap<Group, Seat>,
    gone: BTreeMap<MemberId, Gone>,
    memory: Memory,
    recovered: bool,
    invitations: BTreeMap<String, Kept<Invitation>>,
}

impl Charter {
    /// The index of the last entry that changed something.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whose charter this is, once it is founded.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    /// Which life of the cluster this is.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Whether entries may have been lost on the way here: what is not in it may have been.
    pub fn is_recovered(&self) -> bool {
        self.recovered
    }

    /// Everybody who belongs to the cluster.
    pub fn members(&self) -> &BTreeMap<MemberId, Member> {
        &self.members
    }

    /// The definitions of pools, by name.
    pub fn pools(&self) -> &Directory<Kept<String>> {
        &self.pools
    }

    /// The labels of units.
    pub fn labels(&self) -> &BTreeMap<UnitName, Kept<BTreeMap<String, String>>> {
        &self.labels
    }

    /// The units that are granted no more for now, and why.
    pub fn drains(&self) -> &BTreeMap<UnitName, Kept<String>> {
        &self.drains
    }

    /// What tokens may do, by the name that tokens refer to.
    pub fn rights(&self) -> &BTreeMap<String, Kept<String>> {
        &self.rights
    }

    /// Tokens, by what is shown of them.
    pub fn tokens(&self) -> &BTreeMap<String, Kept<Token>> {
        &self.tokens
    }

    /// Who decides for which group. A group that nobody decided for yet is not in it.
    pub fn seats(&self) -> &BTreeMap<Group, Seat> {
        &self.seats
    }

    /// Who may join by a secret, or did, by name.
    pub fn invitations(&self) -> &BTreeMap<String, Kept<Invitation>> {
        &self.invitations
    }

    /// What became of a request that was asked for under this id, while that is remembered.
    pub fn remembered(&self, id: RequestId) -> Option<&Outcome> {
        self.memory.recall(id).map(memory::Remembered::first_outcome)
    }

    /// Takes one entry of the log.
    ///
    /// # Panics
    /// `index` is not after the last one: then the log is not one, and nothing may rest on it.
    pub fn apply(&mut self, index: u64, request: &Request) -> Outcome {
        assert!(index > self.version, "entry {index} after version {}", self.version);
        let print = memory::print(&request.changes);
        if let Some(remembered) = self.memory.recall(request.id) {
            return remembered.outcome(request.id, print);
        }
        let sound = request.sound().map_err(Refused::from);
        let outcome = sound.and_then(|()| self.together(index, &request.changes));
        let outcome = outcome.map(|()| Done { version: index });
        if outcome.is_ok() {
            self.version = index;
        }
        self.memory.keep(request.id, print, outcome.clone());
        outcome
    }

    /// All of them, or none.
    fn together(&mut self, index: u64, changes: &[Change]) -> Result<(), Refused> {
        if let [change] = changes {
            return Ok(self.change(index, change)?);
        }
        let of = changes.len();
        // Some are made before all are looked at, so there is a copy to go back to. It shares the
        // pools.
        let before = self.clone();
        for (change, number) in changes.iter().zip(1..) {
            let made = match change {
                Change::Found { .. } | Change::Join(_) | Change::Enter { .. } => {
                    Err(Refusal::Nonsense("who founds or joins asks for that alone".into()))
                }
                change => self.change(index, change),
            };
            if let Err(why) = made {
                *self = before;
                return Err(Refused { number, of, why });
            }
        }
        Ok(())
    }

    /// Every arm looks at everything first, and then changes it.
    fn change(&mut self, index: u64, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Found { cluster, incarnation, founder } => {
                self.found(index, *cluster, *incarnation, founder)
            }
            _ if self.cluster.is_none() => Err(Refusal::NotFounded),
            Change::Incarnation { to } if *to > self.incarnation => {
                self.incarnation = *to;
                Ok(())
            }
            Change::Incarnation { to } => {
                Err(Refusal::Incarnation { wanted: *to, now: self.incarnation })
            }
            Change::Join(newcomer) => self.join(MemberId(index), index, newcomer),
            Change::Amend { member, about, if_generation } => {
                self.amend(index, *member, about, *if_generation)
            }
            Change::DrainMember { member, draining, if_generation } => {
                self.drain_member(index, *member, *draining, *if_generation)
            }
            Change::Leave { member, if_generation } => self.leave(*member, *if_generation),
            Change::Pool { name, definition, if_generation } => {
                self.pool(index, name, definition.as_deref(), *if_generation)
            }
            Change::Labels { pool, unit, labels, if_generation } => {
                self.known_unit(pool, unit)?;
                labels.iter().flatten().try_for_each(|(key, value)| {
                    named("label", key)?;
                    named("label", value)
                })?;
                let what = || format!("list of labels of unit {unit:?} of pool {pool:?}");
                let key = (pool.clone(), unit.clone());
                put(&mut self.labels, index, key, labels.as_ref(), *if_generation, what)
            }
            Change::Drain { pool, unit, reason, if_generation } => {
                self.known_unit(pool, unit)?;
                reason.iter().try_for_each(|reason| short("reason", reason))?;
                let what = || format!("drain of unit {unit:?} of pool {pool:?}");
                let key = (pool.clone(), unit.clone());
                put(&mut self.drains, index, key, reason.as_ref(), *if_generation, what)
            }
            Change::Right { name, definition, if_generation } => {
                self.right(index, name, definition.as_ref(), *if_generation)
            }
            Change::Token { id, token, if_generation } => {
                named("token", id)?;
                token.iter().try_for_each(|token| named("right", &token.right))?;
                let right = token.as_ref().map(|token| &token.right);
                if let Some(right) = right.filter(|right| !self.rights.contains_key(*right)) {
                    return Err(Refusal::Absent(format!("right {right:?}")));
                }
                let what = || format!("token {id:?}");
                put(&mut self.tokens, index, id.clone(), token.as_ref(), *if_generation, what)
            }
            Change::Seats { moves } => self.move_seats(index, moves),
            Change::Shadow { group, term, seen, shadow } => {
                self.shadow(index, *group, *term, (*seen, *shadow))
            }
            Change::Whole { group, term, naming } => self.whole(index, *group, *term, *naming),
            Change::Retire { member, leaving, if_generation } => {
                self.retire(index, *member, *leaving, *if_generation)
            }
            Change::Readmit { name } => self.readmit(name),
            Change::Invite { name, invitation, if_generation } => {
                self.invite(index, name, invitation.as_ref(), *if_generation)
            }
            Change::Enter { digest, newcomer } => self.enter(index, digest, newcomer),
        }
    }

    fn pool(
        &mut self,
        index: u64,
        name: &str,
        definition: Option<&str>,
        if_generation: Option<u64>,
    ) -> Result<(), Refusal> {
        named("pool", name)?;
        definition.iter().try_for_each(|text| short("definition", text))?;
        let what = || format!("pool {name:?}");
        let now = self.pools.get(name).map_or(0, |kept| kept.generation);
        unchanged(if_generation, now, what)?;
        if let Some(text) = definition {
            let kept = Kept { generation: index, value: text.to_owned() };
            self.pools.insert(name.to_owned(), kept);
        } else if !self.pools.remove(name) {
            return Err(Refusal::Absent(what()));
        } else {
            self.labels.retain(|(pool, _), _| pool != name);
            self.drains.retain(|(pool, _), _| pool != name);
        }
        Ok(())
    }

    fn right(
        &mut self,
        index: u64,
        name: &str,
        definition: Option<&String>,
        if_generation: Option<u64>,
    ) -> Result<(), Refusal> {
        named("right", name)?;
        definition.iter().try_for_each(|text| short("definition", text))?;
        let what = || format!("right {name:?}");
        let user = self.tokens.iter().find(|(_, token)| token.value.right == name);
        if let Some((id, _)) = user.filter(|_| definition.is_none()) {
            let (by, remedy) = (format!("by token {id:?}"), "take its tokens away first".into());
            return Err(Refusal::InUse { what: what(), by, remedy });
        }
        put(&mut self.rights, index, name.to_owned(), definition, if_generation, what)
    }

    fn known_unit(&self, pool: &str, unit: &str) -> Result<(), Refusal> {
        named("pool", pool)?;
        named("unit", unit)?;
        if self.pools.contains_key(pool) {
            Ok(())
        } else {
            Err(Refusal::Absent(format!("pool {pool:?}")))
        }
    }
}

/// Puts something in its place or takes it away, if it is what the asker saw.
fn put<K: Ord, V: Clone>(
    map: &mut BTreeMap<K, Kept<V>>,
    index: u64,
    key: K,
    value: Option<&V>,
    if_generation: Option<u64>,
    what: impl Fn() -> String,
) -> Result<(), Refusal> {
    let now = map.get(&key).map_or(0, |kept| kept.generation);
    unchanged(if_generation, now, &what)?;
    match value {
        Some(value) => {
            map.insert(key, Kept { generation: index, value: value.clone() });
        }
        None if now == 0 => return Err(Refusal::Absent(what())),
        None => {
            map.remove(&key);
        }
    }
    Ok(())
}

/// Compare, before the set.
fn unchanged(wanted: Option<u64>, now: u64, what: impl Fn() -> String) -> Result<(), Refusal> {
    match wanted {
        Some(wanted) if wanted != now => Err(Refusal::Changed { what: what(), wanted, now }),
        _ => Ok(()),
    }
}

/// A name is something that people can read and type.
fn named(what: &str, name: &str) -> Result<(), Refusal> {
    if (1..=NAME_MAX).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    // Refusals are remembered: they must not be as long as what was refused.
    let shown: String = name.chars().take(NAME_SHOWN).collect();
    Err(Refusal::Nonsense(format!(
        "{shown:?} is no name of a {what}: 1 to {NAME_MAX} bytes without control characters are"
    )))
}

fn short(what: &str, text: &str) -> Result<(), Refusal> {
    if text.len() <= TEXT_MAX {
        return Ok(());
    }
    Err(Refusal::Nonsense(format!(
        "a {what} of {} bytes is too long: {TEXT_MAX} are allowed",
        text.len()
    )))
}
