//! What things of the charter are called.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A member, for good: the index of the log at which it joined. Indices are never used twice, so a
/// machine that lost its disk and joins again is another member, and the old one stays gone.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct MemberId(pub u64);

impl MemberId {
    /// The first member of a cluster: entry 0 of the log makes it one.
    pub const FOUNDER: MemberId = MemberId(0);
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

/// A cluster, by 128 bits that its founder drew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct ClusterId(pub [u8; 16]);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

/// 128 bits drawn when a member's store was made. A store that was wiped and made again has others,
/// and so nobody takes it for the member that it was ([`crate::Identity`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Birth(pub [u8; 16]);

impl fmt::Display for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

/// A change that somebody asked for, by 128 bits that the asker drew: whoever is not sure that it
/// was done repeats it under the same id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct RequestId(pub [u8; 16]);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

/// One of the 256 groups of pools whose seat moves together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Group(pub u8);

impl Group {
    /// All of them.
    pub fn all() -> impl DoubleEndedIterator<Item = Group> + ExactSizeIterator {
        (0..256u16).map(|number| Group(number.to_le_bytes()[0]))
    }

    /// The group of a pool. All members must agree on it for ever: the hash is FNV-1a, folded to
    /// eight bits, and a test pins it.
    pub fn of(pool: &str) -> Group {
        let bytes = fnv(pool.as_bytes()).to_le_bytes();
        Group(bytes.into_iter().fold(0, |folded, byte| folded ^ byte))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {}", self.0)
    }
}

/// One life of a member: it ends when its process does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Life {
    /// Whose.
    pub member: MemberId,
    /// The number of the start that began it.
    pub boot: u64,
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (boot {})", self.member, self.boot)
    }
}

/// FNV-1a with 64 bits: tells accidents apart, not adversaries.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_pool_is_for_ever() {
        let groups = ["gpus", "licences", "", "ring-0", "ring-1"].map(|pool| Group::of(pool).0);
        assert_eq!(groups, [195, 210, 225, 45, 140]);
        let used: std::collections::BTreeSet<_> =
            (0..4096).map(|number| Group::of(&format!("pool-{number}"))).collect();
        assert_eq!(used.len(), 256, "some group would never have a pool");
        assert_eq!(Group::all().count(), 256);
    }
}
