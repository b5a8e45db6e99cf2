//! What is written down with a hold without a lease, on the disks of a quorum: who has it, what for
//! and since when. Nobody renews such a hold, and after a restart no node remembers its client.

use std::time::Duration;

use quorate_api::{Problem, ProblemKind, Want};
use serde::{Deserialize, Serialize};

use crate::history;

/// Longest note of a program, in bytes.
pub(crate) const NOTE_MAX: usize = 2048;

/// What is written down.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Keepsake {
    /// Who asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) client: String,
    /// What for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// What a program wants to find again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
    /// When it was asked for, in milliseconds since 1970 by the clock of the node that was asked.
    pub(crate) asked_ms: u64,
}

impl Keepsake {
    /// Of a claim that is made now, in the form in which it is written down.
    ///
    /// # Errors
    /// It is too long; nothing was claimed.
    pub(crate) fn write(want: &Want) -> Result<String, Problem> {
        let Want { client, reason, note, .. } = want.clone();
        let keepsake = Keepsake { client, reason, note, asked_ms: history::now_ms() };
        // Plain data with text for keys always serializes.
        let text = serde_json::to_string(&keepsake).unwrap_or_default();
        if keepsake.note.len() <= NOTE_MAX && text.len() <= quorate_protocols::TEXT_MAX {
            return Ok(text);
        }
        let text = format!("a note has at most {NOTE_MAX} bytes, with its quotation marks escaped");
        Err(Problem::new(ProblemKind::BadRequest, text))
    }

    /// What was written down; nothing that helps, if another program wrote it.
    pub(crate) fn read(text: &str) -> Keepsake {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// How long ago it was asked for.
    pub(crate) fn age(&self) -> Duration {
        match self.asked_ms {
            0 => Duration::ZERO,
            asked => Duration::from_millis(history::now_ms().saturating_sub(asked)),
        }
    }
}
