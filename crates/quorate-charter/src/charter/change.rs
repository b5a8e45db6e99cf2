//! What may be asked of the charter.
//!
//! A change names what it changes, what that is to become, and, where two people could step on each
//! other's work, the generation that the asker saw (`if_generation`): a change of anything else is
//! refused. Generation 0 is that of a thing that is not there, so that "make it, unless somebody
//! has" can be said too.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Invitation, REQUEST_MAX, TOGETHER_MAX};
use crate::{Birth, ClusterId, Group, Life, MemberId, RequestId};

/// What is asked for together, and the id under which it may be repeated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Drawn by whoever asks.
    pub id: RequestId,
    /// One change or several, made in this order, all of them or none: what a file of many pools
    /// becomes. Who founds or joins asks for that alone, since ids are indices.
    pub changes: Vec<Change>,
}

impl Request {
    /// Asks for one change.
    pub fn one(id: RequestId, change: Change) -> Request {
        Request { id, changes: vec![change] }
    }

    /// Whether it is of a size that can be dealt with. Whoever proposes it looks before it is in
    /// the log.
    ///
    /// # Errors
    /// It asks for nothing, or for too much.
    pub fn sound(&self) -> Result<(), Refusal> {
        let (number, most) = (self.changes.len(), TOGETHER_MAX);
        if number == 0 || number > most {
            return Err(Refusal::Nonsense(format!(
                "{number} changes cannot be made together: 1 to {most} can"
            )));
        }
        let bytes = postcard::experimental::serialized_size(self).expect("plain data encodes");
        if bytes > REQUEST_MAX {
            return Err(Refusal::Nonsense(format!(
                "{bytes} bytes of changes are too many: {REQUEST_MAX} are allowed; ask for some \
                 now and for the rest later"
            )));
        }
        Ok(())
    }
}

/// What a member says of itself when it joins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Newcomer {
    /// What people call it; unique among members.
    pub name: String,
    /// The birth of its store.
    pub birth: Birth,
    /// What may change later.
    pub about: About,
}

/// What may change about a member while it is one.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// Where others reach it; opaque here.
    pub addresses: Vec<String>,
    /// SHA-256 of its public key, where it joined by invitation; else zeros.
    pub fingerprint: [u8; 32],
    /// `zone` among them spreads votes.
    pub labels: BTreeMap<String, String>,
}

/// What is known of a token. Its secret is nowhere.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Token {
    /// SHA-256 of the secret.
    pub digest: [u8; 32],
    /// The name of the right that it gives.
    pub right: String,
    /// Seconds since 1970 at which it is worth nothing any more. The charter has no clock: whoever
    /// takes the token looks.
    pub expires: Option<u64>,
}

/// The seat of a group goes elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Move {
    /// Which.
    pub group: Group,
    /// The term that the asker saw; 0 for a group that nobody decided for yet.
    pub term: u64,
    /// Who decides from now on.
    pub to: Life,
}

/// A change. Where something may be there or not, `None` takes it away.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// The first entry of every charter: a cluster, and its first member.
    Found {
        /// The cluster.
        cluster: ClusterId,
        /// Which life of the cluster this is: the top part of every fence (charter spec S10).
        incarnation: u64,
        /// Its first member.
        founder: Newcomer,
    },
    /// A life of the cluster after one that ended without its majority.
    Incarnation {
        /// Larger than any before.
        to: u64,
    },
    /// A new member; its id is the index of this entry.
    Join(Newcomer),
    /// A member has other addresses, another certificate, other labels.
    Amend {
        /// Whose.
        member: MemberId,
        /// All of it, not only what is new.
        about: About,
        /// Only if nothing about the member changed since.
        if_generation: Option<u64>,
    },
    /// A member is to give away what it decides, or not any more.
    DrainMember {
        /// Who.
        member: MemberId,
        /// Whether.
        draining: bool,
        /// Only if nothing about the member changed since.
        if_generation: Option<u64>,
    },
    /// A member is none any more. It must neither vote nor decide nor shadow.
    Leave {
        /// Who.
        member: MemberId,
        /// Only if nothing about the member changed since.
        if_generation: Option<u64>,
    },
    /// A pool. With it go the labels and drains of its units.
    Pool {
        /// Its name, or its pattern.
        name: String,
        /// Its table of the configuration, as text. Whoever proposes it has seen that it is sound.
        definition: Option<String>,
        /// Only if the pool did not change since.
        if_generation: Option<u64>,
    },
    /// What a unit is.
    Labels {
        /// Its pool.
        pool: String,
        /// Its name.
        unit: String,
        /// All of its labels.
        labels: Option<BTreeMap<String, String>>,
        /// Only if they did not change since.
        if_generation: Option<u64>,
    },
    /// A unit that is granted no more, for now.
    Drain {
        /// Its pool.
        pool: String,
        /// Its name.
        unit: String,
        /// Why, in the operator's words.
        reason: Option<String>,
        /// Only if that did not change since.
        if_generation: Option<u64>,
    },
    /// What tokens may do.
    Right {
        /// Its name.
        name: String,
        /// Opaque here, as a pool's definition is.
        definition: Option<String>,
        /// Only if it did not change since.
        if_generation: Option<u64>,
    },
    /// A token.
    Token {
        /// What is shown of it in lists.
        id: String,
        /// What is known of it.
        token: Option<Token>,
        /// Only if it did not change since.
        if_generation: Option<u64>,
    },
    /// Seats move, all of them or none.
    Seats {
        /// Each group once.
        moves: Vec<Move>,
    },
    /// A seat begins to tell a shadow its grants, or strikes the one it had (charter spec S13 and
    /// S15).
    Shadow {
        /// The group.
        group: Group,
        /// The term of the seat that proposes this.
        term: u64,
        /// Who listens from now on.
        shadow: Option<Life>,
    },
    /// A shadow knows everything that its seat granted (charter spec S16).
    Whole {
        /// The group.
        group: Group,
        /// The term of the seat that proposes this.
        term: u64,
        /// The shadow that it means.
        shadow: Life,
    },
    /// A member is to leave, or may stay after all. Whoever leads takes its vote and its seats.
    Retire {
        /// Who.
        member: MemberId,
        /// Whether.
        leaving: bool,
        /// Only if nothing about the member changed since.
        if_generation: Option<u64>,
    },
    /// Somebody may join under the name of a member that was removed.
    Readmit {
        /// The name.
        name: String,
    },
    /// A machine may join under this name. Whoever says it again means another secret.
    Invite {
        /// The name: nobody has had it.
        name: String,
        /// By what.
        invitation: Option<Invitation>,
        /// Only if the invitation did not change since.
        if_generation: Option<u64>,
    },
    /// A new member comes by an invitation; its id is the index of this entry.
    Enter {
        /// SHA-256 of the secret that it showed.
        digest: [u8; 32],
        /// Who it is.
        newcomer: Newcomer,
    },
}

/// What became of a change.
pub type Outcome = Result<Done, Refused>;

/// It is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// The version of the charter that has it: the index of its entry. The generation of what it
    /// changed, too, and the id of who joined by it.
    pub version: u64,
}

/// It was refused. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// Which of the changes, counted from 1...
    pub number: usize,
    /// ...of how many.
    pub of: usize,
    /// Why.
    pub why: Refusal,
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { number, of, why } = self;
        match of {
            0 | 1 => write!(f, "{why}"),
            _ => write!(f, "{why} (change {number} of {of}; none of them was made)"),
        }
    }
}

impl From<Refusal> for Refused {
    fn from(why: Refusal) -> Refused {
        Refused { number: 1, of: 1, why }
    }
}

/// Why a change was refused. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// There is no cluster.
    #[error("refused, nothing was changed: this charter has no cluster yet; found one first")]
    NotFounded,
    /// There is one.
    #[error(
        "refused, nothing was changed: this charter belongs to cluster {0}; \
         a charter is founded once"
    )]
    Founded(ClusterId),
    /// A cluster cannot live backwards.
    #[error(
        "refused, nothing was changed: incarnation {wanted} is not after {now}, \
         which the cluster is in"
    )]
    Incarnation {
        /// The one asked for.
        wanted: u64,
        /// The one in force.
        now: u64,
    },
    /// Somebody was faster.
    #[error(
        "refused, nothing was changed: {what} is of generation {now}, not {wanted}; \
         look at it again, then change it"
    )]
    Changed {
        /// What.
        what: String,
        /// The generation asked for.
        wanted: u64,
        /// The one it has; 0 if it is not there.
        now: u64,
    },
    /// It is not there.
    #[error("refused, nothing was changed: there is no {0}")]
    Absent(String),
    /// Two things would have one name.
    #[error("refused, nothing was changed: {what} is taken by {by}; choose another")]
    Taken {
        /// The name.
        what: String,
        /// Its owner.
        by: MemberId,
    },
    /// It is still needed.
    #[error("refused, nothing was changed: {what} is still in use: {by}; {remedy}")]
    InUse {
        /// What was to go.
        what: String,
        /// What needs it.
        by: String,
        /// What to do first.
        remedy: String,
    },
    /// The seat is not where the asker thinks it is.
    #[error(
        "refused, nothing was changed: the seat of {group} is in term {now}, not {wanted}; \
         look at it again"
    )]
    Term {
        /// The group.
        group: Group,
        /// The term asked for.
        wanted: u64,
        /// The one it is in; 0 if nobody decided for it yet.
        now: u64,
    },
    /// The shadow is not the one the asker thinks of.
    #[error("refused, nothing was changed: {life} is not the shadow of {group}; look at it again")]
    NotShadow {
        /// The group.
        group: Group,
        /// Who was named.
        life: Life,
    },
    /// No correct asker would say this.
    #[error("refused, nothing was changed: {0}")]
    Nonsense(String),
    /// Two changes under one id.
    #[error(
        "refused, nothing was changed: another change was asked for under the id {0}; \
         draw a new id for a new change"
    )]
    IdReused(RequestId),
    /// Somebody wanted it to go.
    #[error(
        "refused, nothing was changed: {0:?} was removed from the cluster; \
         let a machine of this name in again with `quorate member readmit {0}`"
    )]
    Barred(String),
}
