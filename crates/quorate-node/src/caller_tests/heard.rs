//! Answers in other words than ours.

use quorate_api::{Problem, ProblemKind};

/// What is wrong, in our words or in FleetLock's.
pub(super) fn said_in(body: &[u8]) -> Option<Problem> {
    #[derive(serde::Deserialize)]
    struct Theirs {
        kind: String,
        value: String,
    }
    serde_json::from_slice(body).ok().or_else(|| {
        let Theirs { kind, value } = serde_json::from_slice(body).ok()?;
        let kind = match &*kind {
            "unauthorized" => ProblemKind::Unauthorized,
            "forbidden" => ProblemKind::Forbidden,
            "unknown_group" => ProblemKind::UnknownPool,
            _ => return None,
        };
        Some(Problem::new(kind, value))
    })
}
