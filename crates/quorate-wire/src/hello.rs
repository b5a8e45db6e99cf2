//! The first frame of a connection: who calls, and where the conversation stands.

use serde::{Deserialize, Serialize};

/// Who calls. Both sides send it, and both refuse a stranger before anything else is said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The cluster; another cluster's nodes are refused.
    pub cluster: String,
    /// The epoch of its configuration.
    pub epoch: u64,
    /// What the configuration says about members and pools, in one number: members that disagree
    /// about a pool must not share it.
    pub digest: u64,
    /// The caller's name.
    pub node: String,
    /// Whom it wants to talk to.
    pub to: String,
    /// Where the conversation stands.
    pub resume: Resume,
}

/// Where a conversation stands, as one side knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Resume {
    /// How often this side has been started.
    pub boot: u32,
    /// The incarnation of the other side it has heard from, if any...
    pub knows: Option<u32>,
    /// ...and the last message that arrived from it.
    pub received: u64,
}
