//! The name of a claim: 128 bits that the client chooses and never uses again.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

/// A claim's name, written as 1 to 32 hexadecimal digits, or as a UUID with its hyphens. Choose it
/// at random: repeating a request under its name is harmless, using a name twice is not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u128);

impl ClaimId {
    /// From its two halves: the upper 64 bits say who named it, the lower count its claims.
    pub fn from_halves(origin: u64, serial: u64) -> Self {
        ClaimId(u128::from(origin) << 64 | u128::from(serial))
    }

    /// The upper half.
    pub fn origin(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The lower half.
    pub fn serial(self) -> u64 {
        self.0 as u64
    }
}

/// Why a text is not the name of a claim. Nothing was claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a claim's name is 1 to 32 hexadecimal digits, or a UUID; a new one is 128 random bits")]
pub struct ClaimIdError;

/// Where a UUID has its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const UUID_LEN: usize = 36;

impl FromStr for ClaimId {
    type Err = ClaimIdError;

    fn from_str(text: &str) -> Result<Self, ClaimIdError> {
        let uuid = text.len() == UUID_LEN;
        let mut number: u128 = 0;
        let mut digits = 0;
        for (at, c) in text.bytes().enumerate() {
            if uuid && HYPHENS.contains(&at) {
                if c != b'-' {
                    return Err(ClaimIdError);
                }
                continue;
            }
            let digit = char::from(c).to_digit(16).ok_or(ClaimIdError)?;
            number = number << 4 | u128::from(digit);
            digits += 1;
        }
        if (1..=32).contains(&digits) { Ok(ClaimId(number)) } else { Err(ClaimIdError) }
    }
}

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text for people, a number for machines.
impl Serialize for ClaimId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (self.origin(), self.serial()).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for ClaimId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            let (origin, serial) = <(u64, u64)>::deserialize(deserializer)?;
            Ok(ClaimId::from_halves(origin, serial))
        }
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for ClaimId {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("1 to 32 hexadecimal digits, or a UUID; chosen at random"))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for ClaimId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_up_to_32_digits_or_a_uuid() {
        for (text, number) in [
            ("7", 7),
            ("00000000000000000000000000000007", 7),
            ("DeadBeef", 0xdead_beef),
            ("00000000-0000-0001-0000-000000000002", 1 << 64 | 2),
        ] {
            assert_eq!(text.parse(), Ok(ClaimId(number)), "{text}");
        }
        for text in [
            "",
            "g",
            "+1",
            "000000000000000000000000000000007",
            "0000000000000-0001-0000-000000000002",
            "00000000-0000-0001-0000-0000000000-2",
            "1-2",
            "é",
        ] {
            assert_eq!(text.parse::<ClaimId>(), Err(ClaimIdError), "{text}");
        }
    }

    #[test]
    fn the_halves_are_the_whole() {
        let id = ClaimId::from_halves(3, u64::MAX);
        assert_eq!((id.origin(), id.serial()), (3, u64::MAX));
        assert_eq!(id.to_string(), "0000000000000003ffffffffffffffff");
        assert_eq!(id.to_string().parse(), Ok(id));
    }
}
