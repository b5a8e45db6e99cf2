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

/// An incarnation of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Life {
    /// How often the node has been started; no two lives should have the same number...
    pub boot: u32,
    /// ...and if two have, because a clock was set back, this tells them apart: drawn by chance.
    pub mark: u64,
}

/// Where a conversation stands, as one side knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Resume {
    /// This side's incarnation.
    pub life: Life,
    /// The incarnation of the other side it has heard from, if any...
    pub knows: Option<Life>,
    /// ...and the last message that arrived from it.
    pub received: u64,
}
