//! What goes over the wire.

use expect_test::expect;
use openraft::raft::{AppendEntriesRequest, InstallSnapshotRequest, VoteRequest};
use openraft::{CommittedLeaderId, EntryPayload, LogId, Vote};
use proptest::prelude::*;

use super::storage::identity;
use crate::raft::{Frame, Question, Reply, decode, encode};
use crate::{Birth, Change, MemberId, Request, RequestId};

fn log_id(index: u64) -> LogId<u64> {
    LogId::new(CommittedLeaderId::new(3, 0), index)
}

fn questions() -> Vec<Question> {
    let request = Request::one(RequestId([5; 16]), Change::Incarnation { to: 2 });
    let entry =
        openraft::Entry { log_id: log_id(300), payload: EntryPayload::Normal(request.clone()) };
    vec![
        Question::Append(AppendEntriesRequest {
            vote: Vote::new_committed(3, 0),
            prev_log_id: Some(log_id(299)),
            entries: vec![entry],
            leader_commit: None,
        }),
        Question::Vote(VoteRequest::new(Vote::new(4, 1), Some(log_id(299)))),
        Question::Snapshot(InstallSnapshotRequest {
            vote: Vote::new_committed(3, 0),
            meta: openraft::SnapshotMeta::default(),
            offset: 0,
            data: vec![1, 2, 3],
            done: true,
        }),
        Question::Propose(request),
        Question::ReadIndex,
    ]
}

fn frames() -> Vec<Vec<u8>> {
    let to = (MemberId(7), Birth([2; 16]));
    questions().into_iter().map(|question| encode(&Frame::new(&identity(), to, question))).collect()
}

/// These bytes change only with the version, and the version of the engine is part of it.
#[test]
fn questions_have_these_bytes() {
    let shown: Vec<String> = frames()
        .iter()
        .map(|bytes| {
            let (envelope, question) = bytes.split_at(bytes.len().min(1 + 16 + 17 + 17));
            assert_eq!(envelope[0], 1);
            let hex = question.iter().map(|byte| format!("{byte:02x}"));
            hex.collect()
        })
        .collect();
    expect![[r#"
        00030001010300ab02010300ac02010505050505050505050505050505050501010200
        01040100010300ab02
        020300010000000000000301020301
        0305050505050505050505050505050505010102
        04"#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn what_is_read_is_what_was_written() {
    for bytes in frames() {
        let frame: Frame = decode(&bytes).expect("ours");
        assert_eq!(encode(&frame), bytes);
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(decode::<Frame>(&longer).is_err());
        let mut newer = bytes;
        newer[0] = 2;
        assert!(decode::<Frame>(&newer).unwrap_err().contains("version 2"));
    }
}

proptest! {
    #[test]
    fn no_bytes_can_panic(
        which in 0..5usize,
        at in any::<proptest::sample::Index>(),
        byte: u8,
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut bytes = frames()[which].clone();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = decode::<Frame>(&bytes);
        let _ = decode::<Reply>(&bytes);
        let _ = decode::<Frame>(&bytes[..cut.index(bytes.len())]);
    }
}
