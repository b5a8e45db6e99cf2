//! From protocol values to bytes and back.

use quorate_core::{
    ClaimId, Fence, NodeId, Protocol, Share, Shares, Stamp, UNITS_MAX, Unit, Units,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A protocol whose messages and records have bytes.
pub trait Wire: Protocol {
    /// Appends a message to `out`.
    fn encode_message(message: &Self::Message, out: &mut Vec<u8>);
    /// Reads a message back.
    ///
    /// # Errors
    /// The bytes are no message of this protocol.
    fn decode_message(bytes: &[u8]) -> Result<Self::Message, DecodeError>;
    /// Appends a durable record to `out`.
    fn encode_record(record: &Self::Durable, out: &mut Vec<u8>);
    /// Reads a durable record of this pool back.
    ///
    /// # Errors
    /// The bytes are no record that a seat of this pool could have written.
    fn decode_record(pool: &Self::Pool, bytes: &[u8]) -> Result<Self::Durable, DecodeError>;
}

/// Why bytes mean nothing. Nothing was delivered; a connection that carried them is closed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// They end early, or hold a kind or number that does not exist.
    #[error("the bytes do not decode")]
    Garbage,
    /// There is something after the value.
    #[error("{0} bytes too many")]
    Trailing(usize),
    /// The value decodes and cannot be: no correct peer would have sent it.
    #[error("{0}")]
    Impossible(String),
}

pub(crate) fn put<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    let taken = std::mem::take(out);
    *out = postcard::to_extend(value, taken).expect("plain data always encodes");
}

pub(crate) fn take<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(DecodeError::Trailing(rest.len())),
        Err(_) => Err(DecodeError::Garbage),
    }
}

/// A claim's name: origin, serial.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireClaim(u64, u64);

impl From<ClaimId> for WireClaim {
    fn from(claim: ClaimId) -> Self {
        WireClaim(claim.origin, claim.serial)
    }
}

impl From<WireClaim> for ClaimId {
    fn from(claim: WireClaim) -> Self {
        ClaimId { origin: claim.0, serial: claim.1 }
    }
}

/// A stamp: clock, node.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireStamp(u64, u32);

impl From<Stamp> for WireStamp {
    fn from(stamp: Stamp) -> Self {
        WireStamp(stamp.clock, stamp.node.0)
    }
}

impl From<WireStamp> for Stamp {
    fn from(stamp: WireStamp) -> Self {
        Stamp { clock: stamp.0, node: NodeId(stamp.1) }
    }
}

/// Units with their fences, ascending by unit.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WireShares(Vec<(u32, u64)>);

impl From<&Shares> for WireShares {
    fn from(shares: &Shares) -> Self {
        WireShares(shares.iter().map(|share| (share.unit.0, share.fence.0)).collect())
    }
}

impl TryFrom<WireShares> for Shares {
    type Error = DecodeError;

    fn try_from(shares: WireShares) -> Result<Self, DecodeError> {
        let ascending = shares.0.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !ascending || shares.0.last().is_some_and(|(unit, _)| *unit >= UNITS_MAX) {
            return Err(DecodeError::Impossible("units out of order or out of range".into()));
        }
        let shares: Vec<Share> = shares
            .0
            .into_iter()
            .map(|(unit, fence)| Share { unit: Unit(unit), fence: Fence(fence) })
            .collect();
        Ok(Shares::new(&shares))
    }
}

/// A number of units that some pool could give; whether this pool can is the receiver's to say.
pub(crate) fn units(h: u32) -> Result<Units, DecodeError> {
    Units::new(h, UNITS_MAX).map_err(|error| DecodeError::Impossible(error.to_string()))
}
