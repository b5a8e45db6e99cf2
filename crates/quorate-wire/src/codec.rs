//! From protocol values to bytes and back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    ClaimId, Fence, LINES_MAX, Line, NODES_MAX, NodeId, NodeSet, Protocol, Share, Shares, Stamp,
    UNITS_MAX, Unit, Units, Wanted,
};
use quorate_protocols::Attempt;
use quorate_protocols::allocator::labels::is_label;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A protocol whose messages and records have bytes.
pub trait Wire: Protocol {
    /// What becomes of a message whose connection breaks.
    const DELIVERY: Delivery = Delivery::Resumed;

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

/// What becomes of a message whose connection breaks before it is known to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// It is sent again on the next connection, unless it has arrived.
    Resumed,
    /// It is gone. For messages that are not only about a thing but are the thing, such as tokens:
    /// late they do harm, and lost they are made anew.
    Fleeting,
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

/// One try of a node: boot, clock.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireAttempt(u32, u64);

impl From<Attempt> for WireAttempt {
    fn from(attempt: Attempt) -> Self {
        WireAttempt(attempt.boot, attempt.clock)
    }
}

impl TryFrom<WireAttempt> for Attempt {
    type Error = DecodeError;

    fn try_from(attempt: WireAttempt) -> Result<Self, DecodeError> {
        Ok(Attempt { boot: attempt.0, clock: clock(attempt.1)? })
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

impl TryFrom<WireStamp> for Stamp {
    type Error = DecodeError;

    fn try_from(stamp: WireStamp) -> Result<Self, DecodeError> {
        Ok(Stamp { clock: clock(stamp.0)?, node: NodeId(stamp.1) })
    }
}

/// Numbers below some bound as a bitmap, so that their length on the wire bounds what they take in
/// memory.
fn bitmap(numbers: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut words = Vec::new();
    for number in numbers {
        let (word, bit) = (number / 64, number % 64);
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << bit;
    }
    words
}

/// The numbers of a bitmap, ascending. `what`: of what they are.
fn numbers(
    words: Vec<u64>,
    bound: u32,
    what: &str,
) -> Result<impl Iterator<Item = usize>, DecodeError> {
    if words.last() == Some(&0) || words.len() > bound as usize / 64 {
        return Err(DecodeError::Impossible(format!("a set of {what} that is too long")));
    }
    let bits = |(word, bits): (usize, u64)| {
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
    };
    Ok(words.into_iter().enumerate().flat_map(bits))
}

/// A set of nodes.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WireNodes(Vec<u64>);

impl From<&NodeSet> for WireNodes {
    fn from(nodes: &NodeSet) -> Self {
        WireNodes(bitmap(nodes.iter().map(NodeId::index)))
    }
}

impl TryFrom<WireNodes> for NodeSet {
    type Error = DecodeError;

    fn try_from(nodes: WireNodes) -> Result<Self, DecodeError> {
        Ok(numbers(nodes.0, NODES_MAX, "nodes")?.map(NodeId::from).collect())
    }
}

/// A set of units.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WireUnits(Vec<u64>);

impl From<&[Unit]> for WireUnits {
    fn from(units: &[Unit]) -> Self {
        WireUnits(bitmap(units.iter().map(|unit| unit.index())))
    }
}

impl TryFrom<WireUnits> for Arc<[Unit]> {
    type Error = DecodeError;

    fn try_from(units: WireUnits) -> Result<Self, DecodeError> {
        Ok(numbers(units.0, UNITS_MAX, "units")?.map(|unit| Unit(unit as u32)).collect())
    }
}

/// What a claim asks for: the one encoding of it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WireWanted {
    units: u32,
    lines: Option<Vec<WireLine>>,
    movable: bool,
}

/// How many, of which, and with which labels, if it matters.
#[derive(Clone, Serialize, Deserialize)]
struct WireLine {
    units: u32,
    among: WireUnits,
    labels: Option<WireLabels>,
}

pub(crate) type WireLabels = Vec<(String, String)>;

/// Most labels in a line or of a unit.
const LABELS_MAX: usize = 16;

pub(crate) fn put_labels(labels: &BTreeMap<String, String>) -> WireLabels {
    labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub(crate) fn take_labels(labels: WireLabels) -> Result<BTreeMap<String, String>, DecodeError> {
    let sound = labels.iter().all(|(key, value)| is_label(key) && is_label(value))
        && labels.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if labels.len() > LABELS_MAX || !sound {
        return Err(DecodeError::Impossible("labels that cannot be".into()));
    }
    Ok(labels.into_iter().collect())
}

impl From<&Line> for WireLine {
    fn from(line: &Line) -> Self {
        WireLine {
            units: line.units.get(),
            among: (&*line.among).into(),
            labels: line.labels.as_deref().map(put_labels),
        }
    }
}

impl TryFrom<WireLine> for Line {
    type Error = DecodeError;

    fn try_from(line: WireLine) -> Result<Self, DecodeError> {
        Ok(Line {
            units: units(line.units)?,
            among: line.among.try_into()?,
            labels: line.labels.map(take_labels).transpose()?.map(Arc::new),
        })
    }
}

impl From<&Wanted> for WireWanted {
    fn from(wanted: &Wanted) -> Self {
        let Wanted { units, lines, movable } = wanted;
        let lines = lines.as_ref().map(|lines| lines.iter().map(WireLine::from).collect());
        WireWanted { units: units.get(), lines, movable: *movable }
    }
}

impl TryFrom<WireWanted> for Wanted {
    type Error = DecodeError;

    fn try_from(wanted: WireWanted) -> Result<Self, DecodeError> {
        let WireWanted { units: count, lines, movable } = wanted;
        let lines: Option<Arc<[Line]>> = match lines {
            Some(lines) if lines.len() > LINES_MAX => {
                return Err(DecodeError::Impossible(format!("{} lines in a claim", lines.len())));
            }
            Some(lines) => Some(lines.into_iter().map(Line::try_from).collect::<Result<_, _>>()?),
            None => None,
        };
        // Each is at most 2^20, and there are few.
        let sum = |lines: &Arc<[Line]>| lines.iter().map(|line| line.units.get()).sum::<u32>();
        if lines.as_ref().is_some_and(|lines| sum(lines) != count) {
            return Err(DecodeError::Impossible("lines that do not add up to their claim".into()));
        }
        Ok(Wanted { units: units(count)?, lines, movable })
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
        Ok(Shares::new(&distinct(shares)?))
    }
}

/// The units one by one, each of them once.
pub(crate) fn distinct(shares: WireShares) -> Result<Vec<Share>, DecodeError> {
    let ascending = shares.0.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !ascending || shares.0.last().is_some_and(|(unit, _)| *unit >= UNITS_MAX) {
        return Err(DecodeError::Impossible("units out of order or out of range".into()));
    }
    let share = |(unit, number)| Ok(Share { unit: Unit(unit), fence: fence(number)? });
    shares.0.into_iter().map(share).collect()
}

/// A number of units that some pool could give; whether this pool can is the receiver's to say.
pub(crate) fn units(h: u32) -> Result<Units, DecodeError> {
    Units::new(h, UNITS_MAX).map_err(|error| DecodeError::Impossible(error.to_string()))
}

/// The largest clock that is read from the wire: no correct node counts so far, and a node that
/// hears it can still go on counting.
const CLOCK_MAX: u64 = 1 << 62;

/// A reading of a logical clock.
pub(crate) fn clock(number: u64) -> Result<u64, DecodeError> {
    if number <= CLOCK_MAX {
        return Ok(number);
    }
    Err(DecodeError::Impossible("a clock that cannot have been reached".into()))
}

/// A fence.
pub(crate) fn fence(number: u64) -> Result<Fence, DecodeError> {
    if number <= Fence::MAX.0 {
        return Ok(Fence(number));
    }
    Err(DecodeError::Impossible("a fence that cannot have been reached".into()))
}

/// How often a node was started; fences are made of it.
pub(crate) fn boot(number: u32) -> Result<u32, DecodeError> {
    if number < Fence::BOOTS {
        return Ok(number);
    }
    Err(DecodeError::Impossible("a boot number that cannot have been reached".into()))
}

/// A wait too long to be written is shortened: that only makes the holder's deadline earlier.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
