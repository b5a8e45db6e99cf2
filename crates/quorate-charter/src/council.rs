//! What the rest of the program may know of the control plane: six verbs, and nothing of the engine
//! behind them, so that it can be replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{Charter, Group, MemberId, Outcome, Refused, Request};

/// Most members that vote.
pub const VOTERS_MAX: usize = 7;

/// The charter, as far as one member has applied the log.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The index of the last entry it has applied, whether or not that changed something.
    pub applied: u64,
    /// The document at that index.
    pub charter: Arc<Charter>,
}

/// A control plane, as one member has it. Any member can be asked; one that does not lead asks the
/// one that does.
pub trait Council: Clone + Send + Sync + 'static {
    /// Proposes a change and waits until it is committed and applied here at the leader.
    fn propose(&self, request: Request) -> impl Future<Output = Result<Outcome, Trouble>> + Send;

    /// The charter, at least as new as any change that was done before this was called, whoever did
    /// it and wherever: the leader makes sure of a majority by a round begun after it was asked,
    /// and this member waits until it has applied what was committed then. Never a leader's lease.
    fn read(&self) -> impl Future<Output = Result<Reading, Trouble>> + Send;

    /// What this member has applied, now and whenever that changes. It may be behind.
    fn watch(&self) -> watch::Receiver<Reading>;

    /// Makes these members vote, if this member leads; gives everybody whom the charter names a
    /// place as a learner first, and takes it from everybody whom it does not name any more.
    fn change_members(
        &self,
        voters: &BTreeSet<MemberId>,
    ) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// How it stands, as far as this member knows.
    fn status(&self) -> Status;

    /// The charter as bytes ([`Charter::to_bytes`]), read as [`Council::read`] reads: a backup.
    fn snapshot(&self) -> impl Future<Output = Result<Vec<u8>, Trouble>> + Send;

    /// Which of these seats a member has, confirmed as charter spec S1 demands: by a round that was
    /// begun after this was called, in a state that has everything committed at that round.
    ///
    /// That state may have more, which does no harm: terms only grow, so a seat that stands later
    /// with the same term and member stood at the round. The index that comes with the answer is
    /// that of the state looked at, and this member has applied it (charter spec S2).
    fn licence(
        &self,
        member: MemberId,
        seats: &[(Group, u64)],
    ) -> impl Future<Output = Result<Licence, Trouble>> + Send {
        let seats = seats.to_vec();
        async move {
            let Reading { applied, charter } = self.read().await?;
            let stands = |(group, term): &(Group, u64)| {
                let seat = charter.seats().get(group);
                seat.is_some_and(|seat| seat.life.member == member && seat.term == *term)
            };
            let confirmed = seats.into_iter().filter(stands).collect();
            Ok(Licence { index: applied, confirmed })
        }
    }
}

/// The answer to [`Council::licence`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Licence {
    /// The state in which these stood; who decides must have applied it.
    pub index: u64,
    /// Those that stand, of those asked for.
    pub confirmed: Vec<(Group, u64)>,
}

/// How a control plane stands, as one member sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// This member.
    pub member: MemberId,
    /// Who leads, as far as it knows.
    pub leader: Option<MemberId>,
    /// The engine's term.
    pub term: u64,
    /// Who votes; while that changes, in the old list or in the new.
    pub voters: BTreeSet<MemberId>,
    /// Who follows.
    pub learners: BTreeSet<MemberId>,
    /// Whether the list of voters is being changed.
    pub changing: bool,
    /// The last entry of this member's log.
    pub last: Option<u64>,
    /// The last entry that it has applied.
    pub applied: Option<u64>,
    /// The last entry in its snapshot.
    pub snapshot: Option<u64>,
    /// The last entry that is no longer in its log.
    pub purged: Option<u64>,
    /// How far others have the log; only the leader knows.
    pub matched: BTreeMap<MemberId, Option<u64>>,
    /// Why the engine stopped, if it did. It does not start again by itself.
    pub stopped: Option<String>,
}

/// Why a control plane did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum Trouble {
    /// Nobody leads.
    #[error("nothing was changed: the control plane has no leader now; try again in a moment")]
    NoLeader,
    /// Somebody else leads.
    #[error("nothing was changed: {leader} leads the control plane; ask it")]
    NotLeader {
        /// Who.
        leader: MemberId,
    },
    /// The leader cannot make sure of a majority.
    #[error(
        "nothing was changed: no majority of the control plane answers; \
         what is decided without it goes on, changes wait until it is back"
    )]
    NoMajority,
    /// Sent, and no answer.
    #[error(
        "it is not known whether this was done: no answer came in time; \
         ask again under the same request id"
    )]
    Unknown,
    /// A voter is not there yet.
    #[error("the voters were not changed: {0} does not have the whole log yet; try again later")]
    Behind(MemberId),
    /// It is at it.
    #[error("the voters were not changed: another change of them is under way; try again later")]
    Busy,
    /// No list of voters.
    #[error("the voters were not changed: {0}")]
    Voters(String),
    /// The charter itself refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The engine is no more.
    #[error("the control plane of this member has stopped: {0}; restart the node")]
    Stopped(String),
}
