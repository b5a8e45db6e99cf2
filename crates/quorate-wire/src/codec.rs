//! From protocol values to bytes and back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    ClaimId, Fence, LINES_MAX, Line, Moment, Move, NODES_MAX, NodeId, NodeSet, Protocol, Share,
    Shares, Stamp, UNITS_MAX, Unit, Units, Wanted,
};
use quorate_protocols::Attempt;
use quorate_protocols::allocator::labels::is_label;
use quorate_protocols::arbiter::GrantNumber;
use serde::{Serialize, de::DeserializeOwned};

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

/// A value of the protocols with bytes of its own: numbers as postcard writes them, lists with
/// their length before them, options and variants with their number. What arrives is checked here,
/// so that no protocol meets a number that nobody can have reached.
pub(crate) trait Coded: Sized {
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes one off the front.
    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError>;
}

/// Another way to write values of a type, where the type alone does not say what can be.
pub(crate) trait Way<T> {
    fn put(value: &T, out: &mut Vec<u8>);
    fn take(bytes: &mut &[u8]) -> Result<T, DecodeError>;
}

/// All of the bytes are one value.
pub(crate) fn whole<T: Coded>(mut bytes: &[u8]) -> Result<T, DecodeError> {
    let value = T::take(&mut bytes)?;
    nothing_after(bytes).map(|()| value)
}

pub(crate) fn nothing_after(bytes: &[u8]) -> Result<(), DecodeError> {
    if bytes.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(bytes.len())) }
}

/// The version of a record, which is its first byte.
pub(crate) fn take_version(bytes: &mut &[u8], version: u8) -> Result<(), DecodeError> {
    match u8::take(bytes)? {
        found if found == version => Ok(()),
        found => Err(impossible(format!("a record of version {found}"))),
    }
}

pub(crate) fn impossible(what: impl Into<String>) -> DecodeError {
    DecodeError::Impossible(what.into())
}

/// Gives types bytes: their fields in the order in which they are named here, variants by their
/// number. A field is written as its type says, or in the [`Way`] that is named after it. Whatever
/// `if` names looks at what arrived.
macro_rules! coded {
    (struct $type:ident { $($field:ident $(: $way:ident)?),* $(,)? } $(if $sound:ident)?) => {
        impl $crate::codec::Coded for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let $type { $($field),* } = self;
                $($crate::codec::coded!(@put out, $field $($way)?);)*
            }

            fn take(bytes: &mut &[u8]) -> Result<Self, $crate::codec::DecodeError> {
                let value = $type {
                    $($field: $crate::codec::coded!(@take bytes, $($way)?)),*
                };
                $($sound(&value)?;)?
                Ok(value)
            }
        }
    };
    (enum $type:ident { $(
        $number:literal => $variant:ident
            $({ $($field:ident $(: $way:ident)?),* $(,)? })?
            $(( $inner:ident ))?
    ),* $(,)? }) => {
        impl $crate::codec::Coded for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($type::$variant $({ $($field),* })? $(($inner))? => {
                        out.push($number);
                        $($($crate::codec::coded!(@put out, $field $($way)?);)*)?
                        $($crate::codec::coded!(@put out, $inner);)?
                    })*
                }
            }

            fn take(bytes: &mut &[u8]) -> Result<Self, $crate::codec::DecodeError> {
                Ok(match <u8 as $crate::codec::Coded>::take(bytes)? {
                    $($number => $type::$variant
                        $({ $($field: $crate::codec::coded!(@take bytes, $($way)?)),* })?
                        $(($crate::codec::coded!(@inner bytes, $inner)))?,)*
                    _ => return Err($crate::codec::DecodeError::Garbage),
                })
            }
        }
    };
    (@put $out:ident, $field:ident) => { $crate::codec::Coded::put($field, $out) };
    (@put $out:ident, $field:ident $way:ident) => {
        <$way as $crate::codec::Way<_>>::put($field, $out)
    };
    (@inner $bytes:ident, $inner:ident) => { $crate::codec::Coded::take($bytes)? };
    (@take $bytes:ident,) => { $crate::codec::Coded::take($bytes)? };
    (@take $bytes:ident, $way:ident) => { <$way as $crate::codec::Way<_>>::take($bytes)? };
}
pub(crate) use coded;

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Coded for $type {
            fn put(&self, out: &mut Vec<u8>) {
                put(self, out);
            }

            fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                let (value, rest) =
                    postcard::take_from_bytes(bytes).map_err(|_| DecodeError::Garbage)?;
                *bytes = rest;
                Ok(value)
            }
        }
    )*};
}
plain!(u8, u32, u64, bool, String);

/// Numbers with a name of their own: which of them can be.
macro_rules! named {
    ($($type:ident($inner:ty) $(if $sound:ident)?),* $(,)?) => {$(
        impl Coded for $type {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                let number = <$inner>::take(bytes)?;
                $($sound(number)?;)?
                Ok($type(number))
            }
        }
    )*};
}
named!(NodeId(u32), Unit(u32), Moment(u64), Fence(u64) if fence, GrantNumber(u64) if fence);

fn fence(number: u64) -> Result<(), DecodeError> {
    match number <= Fence::MAX.0 {
        true => Ok(()),
        false => Err(impossible("a fence that cannot have been reached")),
    }
}

/// A number of units that some pool could give; whether this pool can is the receiver's to say.
impl Coded for Units {
    fn put(&self, out: &mut Vec<u8>) {
        self.get().put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        Units::new(u32::take(bytes)?, UNITS_MAX).map_err(|error| impossible(error.to_string()))
    }
}

/// In nanoseconds. A wait too long to be written is shortened: that only makes the holder's
/// deadline earlier.
impl Coded for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        u64::take(bytes).map(Duration::from_nanos)
    }
}

/// A reading of a logical clock.
pub(crate) enum Clock {}

impl Way<u64> for Clock {
    fn put(clock: &u64, out: &mut Vec<u8>) {
        clock.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
        /// The largest clock that is read from the wire: no correct node counts so far, and a node
        /// that hears it can still go on counting.
        const CLOCK_MAX: u64 = 1 << 62;
        let clock = u64::take(bytes)?;
        match clock <= CLOCK_MAX {
            true => Ok(clock),
            false => Err(impossible("a clock that cannot have been reached")),
        }
    }
}

/// Maybe one.
impl Way<Option<u64>> for Clock {
    fn put(clock: &Option<u64>, out: &mut Vec<u8>) {
        clock.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Option<u64>, DecodeError> {
        bool::take(bytes)?.then(|| Clock::take(bytes)).transpose()
    }
}

/// How often a node was started; fences are made of it.
pub(crate) enum Boot {}

impl Way<u32> for Boot {
    fn put(boot: &u32, out: &mut Vec<u8>) {
        boot.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<u32, DecodeError> {
        let boot = u32::take(bytes)?;
        match boot < Fence::BOOTS {
            true => Ok(boot),
            false => Err(impossible("a boot number that cannot have been reached")),
        }
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        bool::take(bytes)?.then(|| T::take(bytes)).transpose()
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok((A::take(bytes)?, B::take(bytes)?))
    }
}

impl<A: Coded, B: Coded, C: Coded> Coded for (A, B, C) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok((A::take(bytes)?, B::take(bytes)?, C::take(bytes)?))
    }
}

/// Values one by one, after how many there are.
pub(crate) fn put_list<'a, T: Coded + 'a>(
    list: impl ExactSizeIterator<Item = &'a T>,
    out: &mut Vec<u8>,
) {
    (list.len() as u64).put(out);
    list.for_each(|value| value.put(out));
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self.iter(), out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let count = u64::take(bytes)?;
        // Each of them has a byte at least.
        if count > bytes.len() as u64 {
            return Err(DecodeError::Garbage);
        }
        (0..count).map(|_| T::take(bytes)).collect()
    }
}

impl<T: Coded> Coded for Arc<[T]> {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self.iter(), out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        Vec::take(bytes).map(Into::into)
    }
}

impl<T: Coded> Coded for Arc<T> {
    fn put(&self, out: &mut Vec<u8>) {
        T::put(self, out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        T::take(bytes).map(Arc::new)
    }
}

impl Coded for Arc<str> {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self.as_bytes().iter(), out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        String::take(bytes).map(Into::into)
    }
}

impl<T: Coded> Coded for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        T::put(self, out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        T::take(bytes).map(Box::new)
    }
}

/// A set of numbers below some bound as a bitmap, so that its length on the wire bounds what it
/// takes in memory.
pub(crate) fn bitmap(numbers: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut words = Vec::new();
    for number in numbers {
        let (word, bit) = (number / 64, number % 64);
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << bit;
    }
    words
}

/// The numbers of a bitmap, ascending. `what`: of what they are.
pub(crate) fn numbers(
    words: Vec<u64>,
    bound: u32,
    what: &str,
) -> Result<impl Iterator<Item = usize> + use<>, DecodeError> {
    if words.last() == Some(&0) || words.len() > bound as usize / 64 {
        return Err(impossible(format!("a set of {what} that is too long")));
    }
    let bits = |(word, bits): (usize, u64)| {
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
    };
    Ok(words.into_iter().enumerate().flat_map(bits))
}

impl Coded for NodeSet {
    fn put(&self, out: &mut Vec<u8>) {
        bitmap(self.iter().map(NodeId::index)).put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(numbers(Vec::take(bytes)?, NODES_MAX, "nodes")?.map(NodeId::from).collect())
    }
}

/// Units as a bitmap, where they may be most of a pool...
pub(crate) enum Bitmap {}

impl<L: AsRef<[Unit]> + FromIterator<Unit>> Way<L> for Bitmap {
    fn put(units: &L, out: &mut Vec<u8>) {
        bitmap(units.as_ref().iter().map(|unit| unit.index())).put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<L, DecodeError> {
        let units = numbers(Vec::take(bytes)?, UNITS_MAX, "units")?;
        Ok(units.map(|unit| Unit(unit as u32)).collect())
    }
}

/// ...and one by one where they are few. Ascending either way.
pub(crate) enum Names {}

impl Way<Arc<[Unit]>> for Names {
    fn put(units: &Arc<[Unit]>, out: &mut Vec<u8>) {
        units.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Arc<[Unit]>, DecodeError> {
        let units: Arc<[Unit]> = Coded::take(bytes)?;
        let ascending = units.is_sorted_by(|a, b| a < b);
        if !ascending || units.last().is_some_and(|unit| unit.0 >= UNITS_MAX) {
            return Err(impossible("names that are not units in order"));
        }
        Ok(units)
    }
}

/// The units one by one, each of them once.
pub(crate) fn take_distinct(bytes: &mut &[u8]) -> Result<Vec<Share>, DecodeError> {
    let shares: Vec<Share> = Vec::take(bytes)?;
    let ascending = shares.is_sorted_by(|a, b| a.unit < b.unit);
    if !ascending || shares.last().is_some_and(|share| share.unit.0 >= UNITS_MAX) {
        return Err(impossible("units out of order or out of range"));
    }
    Ok(shares)
}

impl Coded for Shares {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self.as_slice().iter(), out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Shares::new(&take_distinct(bytes)?))
    }
}

/// Labels, ascending by key.
impl Coded for BTreeMap<String, String> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        /// Most labels in a line or of a unit.
        const LABELS_MAX: usize = 16;
        let labels: Vec<(String, String)> = Vec::take(bytes)?;
        let sound = labels.iter().all(|(key, value)| is_label(key) && is_label(value))
            && labels.is_sorted_by(|a, b| a.0 < b.0);
        if labels.len() > LABELS_MAX || !sound {
            return Err(impossible("labels that cannot be"));
        }
        Ok(labels.into_iter().collect())
    }
}

coded!(struct ClaimId { origin, serial });
coded!(struct Attempt { boot, clock: Clock });
coded!(struct Stamp { clock: Clock, node });
coded!(struct Share { unit, fence });
coded!(struct Move { from, to });
coded!(struct Line { units, among: Bitmap, labels });
coded!(struct Wanted { units, lines, movable, standing } if adds_up);

fn adds_up(wanted: &Wanted) -> Result<(), DecodeError> {
    let Some(lines) = &wanted.lines else { return Ok(()) };
    if lines.len() > LINES_MAX {
        return Err(impossible(format!("{} lines in a claim", lines.len())));
    }
    // Each is at most 2^20, and there are few.
    let sum: u32 = lines.iter().map(|line| line.units.get()).sum();
    match sum == wanted.units.get() {
        true => Ok(()),
        false => Err(impossible("lines that do not add up to their claim")),
    }
}
