//! The engine's questions to other members, over whatever carries bytes.

use std::time::Duration;

use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};

use tokio::time::timeout;

use super::wire::{self, Frame, Question, Reply};
use super::{Identity, Node, Types};
use crate::{Birth, MemberId, Post, Unreached};

type Failed<E> = RPCError<u64, Node, E>;

/// Makes a line to each member.
#[derive(Clone, Debug)]
pub(super) struct Lines<P> {
    pub(super) post: P,
    pub(super) from: Identity,
    /// How long to leave a member alone that was not reached.
    pub(super) pause: Duration,
}

/// A line to one member, that of one birth and no other.
#[derive(Clone, Debug)]
pub(super) struct Line<P> {
    lines: Lines<P>,
    to: (MemberId, Birth),
}

impl<P: Post> Lines<P> {
    pub(super) fn line(&self, to: MemberId, birth: Birth) -> Line<P> {
        Line { lines: self.clone(), to: (to, birth) }
    }
}

impl<P: Post> Line<P> {
    pub(super) async fn ask(&self, question: Question) -> Result<Reply, Unreached> {
        let (to, _) = self.to;
        let frame = Frame::new(&self.lines.from, self.to, question);
        let bytes = self.lines.post.ask(to, wire::encode(&frame)).await?;
        let unreached = |why: String| Unreached { to, why };
        match wire::decode(&bytes).map_err(unreached)? {
            Reply::Refused(why) => {
                tracing::warn!("{to} does not talk to this member: {why}");
                Err(unreached(why))
            }
            Reply::Stopped(why) => Err(unreached(why)),
            reply => Ok(reply),
        }
    }

    /// A wrong kind of answer is as good as none.
    async fn call<T, E: std::error::Error>(
        &self,
        question: Question,
        pick: impl FnOnce(Reply) -> Option<T>,
    ) -> Result<T, Failed<E>> {
        let (to, _) = self.to;
        let unreachable = |error: &Unreached| Failed::Unreachable(Unreachable::new(error));
        let reply = self.ask(question).await.map_err(|error| unreachable(&error))?;
        pick(reply).ok_or_else(|| {
            unreachable(&Unreached { to, why: "it answered another question".into() })
        })
    }
}

impl<P: Post> RaftNetworkFactory<Types> for Lines<P> {
    type Network = Line<P>;

    async fn new_client(&mut self, target: u64, node: &Node) -> Line<P> {
        self.line(MemberId(target), node.birth)
    }
}

impl<P: Post> RaftNetwork<Types> for Line<P> {
    async fn append_entries(
        &mut self,
        question: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failed<RaftError<u64>>> {
        self.call(Question::Append(question), |reply| match reply {
            Reply::Append(answer) => Some(answer),
            _ => None,
        })
        .await
    }

    async fn install_snapshot(
        &mut self,
        question: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failed<RaftError<u64, InstallSnapshotError>>> {
        let (to, _) = self.to;
        let call = self.call(Question::Snapshot(question), |reply| match reply {
            Reply::Snapshot(answer) => Some(answer),
            _ => None,
        });
        // Before the engine gives up the whole snapshot: then only this piece is sent again.
        let Ok(answer) = timeout(option.soft_ttl(), call).await else {
            let silent = Unreached { to, why: "no answer to a piece of a snapshot".into() };
            return Err(Failed::Unreachable(Unreachable::new(&silent)));
        };
        answer?
            // The receiver has other pieces: the engine begins from the first again.
            .map_err(|error| RemoteError::new(to.0, RaftError::APIError(error)).into())
    }

    async fn vote(
        &mut self,
        question: VoteRequest<u64>,
        _: RPCOption,
    ) -> Result<VoteResponse<u64>, Failed<RaftError<u64>>> {
        self.call(Question::Vote(question), |reply| match reply {
            Reply::Vote(answer) => Some(answer),
            _ => None,
        })
        .await
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(self.lines.pause))
    }
}
