//! How members of a control plane reach each other: whatever can carry bytes there and back.

use std::future::Future;

use crate::MemberId;

/// Carries a question to a member and its answer back. Questions may be lost, late, or asked twice.
///
/// Whoever implements this knows where members are (`addresses` in the charter), and makes sure who
/// they are: the one who asks, to [`crate::RaftCouncil::answer`], and the one who answers, here.
pub trait Post: Clone + Send + Sync + 'static {
    /// Asks. May take for ever: who asks sees to it that it does not wait so long.
    fn ask(
        &self,
        to: MemberId,
        question: Vec<u8>,
    ) -> impl Future<Output = Result<Vec<u8>, Unreached>> + Send;
}

/// Why there is no answer. Whether the question arrived is not known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{to} is not reached: {why}")]
pub struct Unreached {
    /// Who was asked.
    pub to: MemberId,
    /// In words.
    pub why: String,
}
