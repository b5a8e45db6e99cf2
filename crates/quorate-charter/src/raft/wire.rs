//! What members of a control plane say to each other, as bytes.
//!
//! One byte for the version, then postcard. The engine's own messages are inside ours, written as
//! that version of the engine (pinned in `Cargo.toml`) writes them; tests pin some bytes of each.
//!
//! Every question says of which cluster it is, from which member with which store, and for which:
//! the engine cannot tell a member from a wiped machine that has its number, and rests on it that
//! nobody else does not either.

use openraft::error::InstallSnapshotError;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Identity, Types};
use crate::{Birth, ClusterId, MemberId, Outcome, Request, Trouble};

/// The version that this code speaks, and the only one that it understands.
const VERSION: u8 = 1;

/// A question in its envelope.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub(crate) cluster: ClusterId,
    pub(crate) from: (MemberId, Birth),
    pub(crate) to: (MemberId, Birth),
    pub(crate) question: Question,
}

/// What is asked. The order of the variants is their number on the wire.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
    /// Of a member that does not lead, for one that does.
    Propose(Request),
    /// What was committed at a round begun now?
    ReadIndex,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Append(AppendEntriesResponse<u64>),
    Vote(VoteResponse<u64>),
    Snapshot(Result<InstallSnapshotResponse<u64>, InstallSnapshotError>),
    Propose(Result<Outcome, Trouble>),
    ReadIndex(Result<u64, Trouble>),
    /// The question was not looked at, and why.
    Refused(String),
    /// Whoever was asked has stopped, and why.
    Stopped(String),
}

impl Frame {
    pub(crate) fn new(from: &Identity, to: (MemberId, Birth), question: Question) -> Frame {
        Frame { cluster: from.cluster, from: (from.member, from.birth), to, question }
    }

    /// Why this is not for us, or not from whom it says. `sender` is who it really is.
    pub(super) fn misled(&self, to: &Identity, sender: MemberId) -> Option<String> {
        if self.cluster != to.cluster {
            return Some(format!("this is cluster {}, not {}", to.cluster, self.cluster));
        }
        if self.from.0 != sender {
            return Some(format!("{sender} speaks for {}", self.from.0));
        }
        if self.to.0 != to.member {
            return Some(format!("this is {}, not {}", to.member, self.to.0));
        }
        if self.to.1 != to.birth {
            return Some(format!(
                "the store of {} is not the one that joined: it was made anew; \
                 remove the member, and let the machine join as a new one",
                to.member
            ));
        }
        None
    }
}

pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, vec![VERSION]).expect("plain data always encodes")
}

/// # Errors
/// Why the bytes mean nothing.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => match postcard::take_from_bytes(rest) {
            Ok((value, [])) => Ok(value),
            _ => Err("the bytes do not decode".into()),
        },
        Some((version, _)) => Err(format!("version {version} of the words, not {VERSION}")),
        None => Err("no bytes".into()),
    }
}
