//! The largest numbers of connections, claims, pools and bytes that a node accepts.

use serde::Deserialize;

use super::ConfigError;

/// The largest numbers that a node accepts. A client that meets a limit is told which one, and
/// nothing changes.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections of clients at once.
    pub clients: usize,
    /// The same from one address that is not this machine's.
    pub clients_per_address: usize,
    /// The same of one token or certificate.
    pub clients_per_caller: usize,
    /// Connections at once that have not said what they want yet.
    pub greetings: usize,
    /// The same from one address.
    pub greetings_per_address: usize,
    /// Requests from one address at once that showed a wrong token and wait to hear so.
    pub strangers_per_address: usize,
    /// Claims at once that wait or hold.
    pub claims: usize,
    /// The same of one token or certificate.
    pub claims_per_caller: usize,
    /// Claims of this node's clients that wait in one pool.
    pub queue: usize,
    /// Pools in use.
    pub pools: usize,
    /// Claims that are over and still remembered, so that repeating them is harmless.
    pub remembered: usize,
    /// Bytes of a reason or of a client's name.
    pub text: usize,
    /// Messages kept for a peer that does not acknowledge them.
    pub peer_messages: usize,
    /// Bytes of such messages.
    pub peer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            clients: 4096,
            clients_per_address: 1024,
            clients_per_caller: 1024,
            greetings: 256,
            greetings_per_address: 64,
            strangers_per_address: 32,
            claims: 100_000,
            claims_per_caller: 10_000,
            queue: 10_000,
            pools: 1_000_000,
            remembered: 200_000,
            text: 256,
            peer_messages: 200_000,
            peer_bytes: 64 << 20,
        }
    }
}

impl Limits {
    /// Whether a node could work with them. The largest values are far beyond what one machine can
    /// do, and far from where counting goes wrong.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Limits { clients, claims, queue, pools, remembered, text, .. } = *self;
        let Limits { peer_messages, peer_bytes, .. } = *self;
        for (name, value, least, most) in [
            ("clients", clients, 1, 1_000_000),
            ("clients_per_address", self.clients_per_address, 1, 1_000_000),
            ("clients_per_caller", self.clients_per_caller, 1, 1_000_000),
            ("greetings", self.greetings, 1, 1_000_000),
            ("greetings_per_address", self.greetings_per_address, 1, 1_000_000),
            ("strangers_per_address", self.strangers_per_address, 1, 1_000_000),
            ("claims", claims, 1, 100_000_000),
            ("claims_per_caller", self.claims_per_caller, 1, 100_000_000),
            ("queue", queue, 1, 100_000_000),
            ("pools", pools, 1, 100_000_000),
            ("remembered", remembered, 1, 100_000_000),
            // Longer ones would not fit with others into the frames of the link.
            ("text", text, 1, 64 << 10),
            ("peer_messages", peer_messages, 1, 100_000_000),
            ("peer_bytes", peer_bytes, 1, 1 << 40),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ConfigError::Limit { name, value, least, most });
            }
        }
        Ok(())
    }
}
