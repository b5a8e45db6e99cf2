//! The council on openraft.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use openraft::error::{
    ChangeMembershipError, CheckIsLeaderError, ClientWriteError, Fatal, RaftError,
};
use openraft::{ChangeMembers, Raft, RaftMetrics};
use tokio::sync::watch;
use tokio::time::timeout;

use super::lines::{Line, Lines};
use super::log::Log;
use super::machine::Machine;
use super::wire::{self, Frame, Question, Reply};
use super::{Identity, Node, Pace, Store, Types};
use crate::council::VOTERS_MAX;
use crate::{
    About, Change, Council, MemberId, Newcomer, Outcome, Post, Reading, Refusal, Request,
    RequestId, Status, Trouble,
};

/// A member may be so many entries behind and still be given a vote: under load nobody ever has the
/// very last one.
const NEARLY: u64 = 100;

/// One member's part of a control plane. Clones are the same part.
pub struct RaftCouncil<P> {
    inner: Arc<Inner<P>>,
}

struct Inner<P> {
    raft: Raft<Types>,
    identity: Identity,
    lines: Lines<P>,
    answer: Duration,
    readings: watch::Receiver<Reading>,
}

impl<P> Clone for RaftCouncil<P> {
    fn clone(&self) -> Self {
        RaftCouncil { inner: Arc::clone(&self.inner) }
    }
}

impl<P> fmt::Debug for RaftCouncil<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaftCouncil")
            .field("identity", &self.inner.identity)
            .finish_non_exhaustive()
    }
}

impl<P: Post> RaftCouncil<P> {
    /// Takes up the work of the member whose store this is. Who else there is, it knows from its
    /// log, never from a configuration: one that was changed back would bring old members back.
    ///
    /// # Errors
    /// The store cannot be read, or the pace is none.
    pub async fn start(store: Store, pace: Pace, post: P) -> Result<Self, Trouble> {
        let stopped = |error: &dyn std::fmt::Display| Trouble::Stopped(error.to_string());
        let config = pace.config().map_err(|error| stopped(&error))?;
        let identity = store.identity();
        let machine = Machine::new(store.clone()).map_err(|error| stopped(&error))?;
        let readings = machine.watch();
        let lines = Lines { post, from: identity, pause: pace.heartbeat };
        let id = identity.member.0;
        let raft = Raft::new(id, config, lines.clone(), Log(store), machine).await;
        let raft = raft.map_err(|error| stopped(&error))?;
        let inner = Inner { raft, identity, lines, answer: pace.answer, readings };
        Ok(RaftCouncil { inner: Arc::new(inner) })
    }

    /// Starts the first member of a new cluster and founds the charter. Can be repeated with the
    /// same store after a crash in the middle.
    ///
    /// # Errors
    /// The store is not that of a founder, or cannot be used.
    pub async fn found(
        store: Store,
        pace: Pace,
        post: P,
        name: String,
        about: About,
        incarnation: u64,
    ) -> Result<Self, Trouble> {
        let council = RaftCouncil::start(store, pace, post).await?;
        council.settle(name, about, incarnation).await?;
        Ok(council)
    }

    /// Founds the charter at the founder's part, unless that is done: the only member that votes
    /// waits until it leads, and writes the first entry.
    ///
    /// # Errors
    /// This is not the founder's part, or it does not lead in time.
    pub async fn settle(
        &self,
        name: String,
        about: About,
        incarnation: u64,
    ) -> Result<(), Trouble> {
        let Identity { cluster, member, birth } = self.inner.identity;
        if member != MemberId::FOUNDER {
            let why = format!("{member} joined this cluster and cannot found it");
            return Err(Trouble::Refused(Refusal::Nonsense(why).into()));
        }
        let raft = &self.inner.raft;
        if !raft.is_initialized().await.map_err(|error| dead(&error))? {
            let alone = BTreeMap::from([(member.0, Node { birth })]);
            let made = raft.initialize(alone).await;
            made.map_err(|error| Trouble::Stopped(error.to_string()))?;
        }
        let leads = |metrics: &RaftMetrics<u64, Node>| metrics.current_leader == Some(member.0);
        let elected = raft.wait(Some(self.inner.answer)).metrics(leads, "the founder leads").await;
        elected.map_err(|_| Trouble::NoLeader)?;
        if self.read().await?.charter.cluster() == Some(cluster) {
            return Ok(());
        }
        let founder = Newcomer { name, birth, about };
        let change = Change::Found { cluster, incarnation, founder };
        // One store founds once: its birth is as good an id as any.
        self.propose(Request::one(RequestId(birth.0), change)).await??;
        Ok(())
    }

    /// Answers another member's question. `from` is who asks: whoever carried the bytes made sure.
    pub async fn answer(&self, from: MemberId, question: &[u8]) -> Vec<u8> {
        let reply = match wire::decode::<Frame>(question) {
            Err(why) => Reply::Refused(why),
            Ok(frame) => match self.misled(&frame, from) {
                Some(why) => Reply::Refused(why),
                None => self.reply(frame.question).await,
            },
        };
        wire::encode(&reply)
    }

    /// Stops. What was acknowledged is on disk.
    pub async fn stop(&self) {
        // The engine's task may have ended before, and said why in `status`.
        let _ = self.inner.raft.shutdown().await;
    }

    /// Why a question is not looked at.
    fn misled(&self, frame: &Frame, from: MemberId) -> Option<String> {
        let misled = frame.misled(&self.inner.identity, from);
        misled.or_else(|| {
            let (id, birth) = frame.from;
            let reading = self.inner.readings.borrow();
            // Whoever knows of no cluster yet has not heard who belongs to it.
            reading.charter.cluster()?;
            match reading.charter.members().get(&id) {
                Some(member) if member.birth == birth => None,
                Some(_) => Some(format!("{id} joined with another store")),
                // Ids are indices of the log: who joined before what we have applied, and is not
                // there, has left. Who joined after that we cannot know yet, and must hear.
                None if id.0 <= reading.applied => Some(format!("{id} is no member any more")),
                None => None,
            }
        })
    }

    async fn reply(&self, question: Question) -> Reply {
        let raft = &self.inner.raft;
        let gone = |error: &dyn std::fmt::Display| Reply::Stopped(error.to_string());
        match question {
            Question::Append(question) => match raft.append_entries(question).await {
                Ok(answer) => Reply::Append(answer),
                Err(error) => gone(&error),
            },
            Question::Vote(question) => match raft.vote(question).await {
                Ok(answer) => Reply::Vote(answer),
                Err(error) => gone(&error),
            },
            Question::Snapshot(question) => match raft.install_snapshot(question).await {
                Ok(answer) => Reply::Snapshot(Ok(answer)),
                Err(RaftError::APIError(error)) => Reply::Snapshot(Err(error)),
                Err(RaftError::Fatal(error)) => gone(&error),
            },
            Question::Propose(request) => Reply::Propose(self.propose_here(request).await),
            Question::ReadIndex => Reply::ReadIndex(self.read_index_here().await),
        }
    }

    /// Who leads, as far as this member knows.
    fn leader(&self) -> Result<MemberId, Trouble> {
        let metrics = self.inner.raft.metrics();
        let metrics = metrics.borrow();
        metrics.running_state.as_ref().map_err(dead)?;
        metrics.current_leader.map(MemberId).ok_or(Trouble::NoLeader)
    }

    fn leads(&self) -> Result<(), Trouble> {
        match self.leader()? {
            leader if leader == self.inner.identity.member => Ok(()),
            leader => Err(Trouble::NotLeader { leader }),
        }
    }

    /// A line to the leader, if that is another.
    fn line(&self) -> Result<Option<(MemberId, Line<P>)>, Trouble> {
        let leader = self.leader()?;
        if leader == self.inner.identity.member {
            return Ok(None);
        }
        let metrics = self.inner.raft.metrics();
        let metrics = metrics.borrow();
        let node = metrics.membership_config.membership().get_node(&leader.0);
        let node = node.ok_or(Trouble::NoLeader)?; // We have not heard of it yet.
        Ok(Some((leader, self.inner.lines.line(leader, node.birth))))
    }

    /// What the leader answers. One that stands still is waited for until this member knows that
    /// others have done without it, and no longer: whoever asks wants to ask the next one before
    /// what it was told last is over (charter spec S1).
    async fn ask_leader(
        &self,
        (leader, line): (MemberId, Line<P>),
        question: Question,
    ) -> Option<Reply> {
        let mut metrics = self.inner.raft.metrics();
        let leads_no_more = metrics.wait_for(|metrics| metrics.current_leader != Some(leader.0));
        tokio::select! {
            answer = timeout(self.inner.answer, line.ask(question)) => answer.ok()?.ok(),
            _ = leads_no_more => None,
        }
    }

    /// Only if this member leads. Once the engine has the entry, nobody but the log knows what
    /// becomes of it: an error from then on is not a no.
    async fn propose_here(&self, request: Request) -> Result<Outcome, Trouble> {
        self.leads()?;
        if let Err(why) = request.sound() {
            return Ok(Err(why.into()));
        }
        match timeout(self.inner.answer, self.inner.raft.client_write(request)).await {
            Ok(Ok(answer)) => answer.data.0.ok_or(Trouble::Unknown),
            Ok(Err(RaftError::Fatal(error))) => Err(dead(&error)),
            Ok(Err(RaftError::APIError(_))) | Err(_) => Err(Trouble::Unknown),
        }
    }

    /// What was committed at a round that begins now.
    async fn read_index_here(&self) -> Result<u64, Trouble> {
        self.leads()?;
        match timeout(self.inner.answer, self.inner.raft.get_read_log_id()).await {
            Ok(Ok((index, _))) => Ok(index.map_or(0, |index| index.index)),
            Ok(Err(RaftError::Fatal(error))) => Err(dead(&error)),
            Ok(Err(RaftError::APIError(CheckIsLeaderError::ForwardToLeader(_)))) => {
                Err(Trouble::NoLeader)
            }
            Ok(Err(RaftError::APIError(CheckIsLeaderError::QuorumNotEnough(_)))) | Err(_) => {
                Err(Trouble::NoMajority)
            }
        }
    }

    async fn read_index(&self) -> Result<u64, Trouble> {
        let Some(line) = self.line()? else { return self.read_index_here().await };
        match self.ask_leader(line, Question::ReadIndex).await {
            Some(Reply::ReadIndex(index)) => index,
            _ => Err(Trouble::NoMajority),
        }
    }

    async fn change(&self, changes: ChangeMembers<u64, Node>) -> Result<(), Trouble> {
        let change = self.inner.raft.change_membership(changes, true);
        match timeout(self.inner.answer, change).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RaftError::Fatal(error))) => Err(dead(&error)),
            Ok(Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(error)))) => {
                Err(match error {
                    ChangeMembershipError::InProgress(_) => Trouble::Busy,
                    error => Trouble::Voters(error.to_string()),
                })
            }
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) | Err(_) => {
                Err(Trouble::Unknown)
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn raft(&self) -> &Raft<Types> {
        &self.inner.raft
    }

    /// Whose part this is.
    pub fn identity(&self) -> Identity {
        self.inner.identity
    }
}

impl<P: Post> Council for RaftCouncil<P> {
    async fn propose(&self, request: Request) -> Result<Outcome, Trouble> {
        let Some(line) = self.line()? else { return self.propose_here(request).await };
        match self.ask_leader(line, Question::Propose(request)).await {
            Some(Reply::Propose(outcome)) => outcome,
            _ => Err(Trouble::Unknown),
        }
    }

    async fn read(&self) -> Result<Reading, Trouble> {
        let index = self.read_index().await?;
        let mut readings = self.inner.readings.clone();
        let applied = readings.wait_for(|reading| reading.applied >= index);
        match timeout(self.inner.answer, applied).await {
            Ok(Ok(reading)) => Ok(reading.clone()),
            Ok(Err(_)) => Err(Trouble::Stopped("nothing is applied any more".into())),
            Err(_) => Err(Trouble::NoMajority),
        }
    }

    fn watch(&self) -> watch::Receiver<Reading> {
        self.inner.readings.clone()
    }

    async fn change_members(&self, voters: &BTreeSet<MemberId>) -> Result<(), Trouble> {
        self.leads()?;
        if voters.len() > VOTERS_MAX || voters.len().is_multiple_of(2) {
            let why = format!(
                "{} cannot vote: 1, 3, 5 or {VOTERS_MAX} can; \
                 an even number survives no more losses than one less",
                voters.len()
            );
            return Err(Trouble::Voters(why));
        }
        let charter = self.read().await?.charter;
        if let Some(stranger) = voters.iter().find(|id| !charter.members().contains_key(id)) {
            return Err(Trouble::Voters(format!("{stranger} is no member")));
        }
        let metrics = self.inner.raft.metrics().borrow().clone();
        let membership = metrics.membership_config.membership();
        let there: BTreeSet<MemberId> = membership.nodes().map(|(id, _)| MemberId(*id)).collect();
        // One after the other: the engine changes its list once at a time.
        for (id, member) in charter.members().iter().filter(|(id, _)| !there.contains(id)) {
            let node = Node { birth: member.birth };
            self.change(ChangeMembers::AddNodes(BTreeMap::from([(id.0, node)]))).await?;
        }
        let gone = there.iter().filter(|id| !charter.members().contains_key(id));
        let gone: BTreeSet<u64> = gone.map(|id| id.0).collect();
        if !gone.is_empty() {
            self.change(ChangeMembers::RemoveNodes(gone)).await?;
        }
        let voting: BTreeSet<MemberId> = membership.voter_ids().map(MemberId).collect();
        if voting == *voters && membership.get_joint_config().len() == 1 {
            return Ok(());
        }
        // A voter that has nothing counts for the majority and can add nothing to it.
        let last = metrics.last_log_index.unwrap_or(0);
        let matched = self.status().matched;
        let has = |id: &MemberId| matched.get(id).copied().flatten();
        let behind = |id: &&MemberId| {
            **id != self.inner.identity.member
                && !voting.contains(id)
                && has(id).is_none_or(|has| has + NEARLY < last)
        };
        if let Some(id) = voters.iter().find(behind) {
            return Err(Trouble::Behind(*id));
        }
        let ids = voters.iter().map(|id| id.0).collect();
        self.change(ChangeMembers::ReplaceAllVoters(ids)).await
    }

    fn status(&self) -> Status {
        let metrics = self.inner.raft.metrics();
        let metrics = metrics.borrow();
        let membership = metrics.membership_config.membership();
        let matched = metrics.replication.iter().flatten();
        Status {
            member: self.inner.identity.member,
            leader: metrics.current_leader.map(MemberId),
            term: metrics.current_term,
            voters: membership.voter_ids().map(MemberId).collect(),
            learners: membership.learner_ids().map(MemberId).collect(),
            changing: membership.get_joint_config().len() > 1,
            last: metrics.last_log_index,
            applied: metrics.last_applied.map(|id| id.index),
            snapshot: metrics.snapshot.map(|id| id.index),
            purged: metrics.purged.map(|id| id.index),
            matched: matched.map(|(id, at)| (MemberId(*id), at.map(|at| at.index))).collect(),
            stopped: metrics.running_state.as_ref().err().map(ToString::to_string),
        }
    }

    async fn snapshot(&self) -> Result<Vec<u8>, Trouble> {
        Ok(self.read().await?.charter.to_bytes())
    }
}

fn dead(error: &Fatal<u64>) -> Trouble {
    Trouble::Stopped(error.to_string())
}
