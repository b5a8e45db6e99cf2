//! Numbers of units in what people write: what is wrong with one is said without a type's name.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// A number, and what it is for people.
struct Number(&'static str);

const UNITS: Number = Number("a number of units, from 1 to as many as the pool has");
const UNIT: Number = Number("the number of a unit, from 0");
const FENCE: Number = Number("a fence as it was granted");

impl Visitor<'_> for Number {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }
}

/// A number that is no larger than there are.
fn small<'de, D: Deserializer<'de>>(from: D, what: Number) -> Result<u32, D::Error> {
    if !from.is_human_readable() {
        return u32::deserialize(from);
    }
    let wrong = Number(what.0);
    let number = from.deserialize_u64(what)?;
    let found = Unexpected::Unsigned(number);
    u32::try_from(number).map_err(|_| D::Error::invalid_value(found, &wrong))
}

/// Which unit.
///
/// # Errors
/// It is none.
pub(crate) fn unit<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    small(from, UNIT)
}

/// A fence.
///
/// # Errors
/// It is none.
pub(crate) fn fence<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    if from.is_human_readable() { from.deserialize_u64(FENCE) } else { u64::deserialize(from) }
}

/// A number of units, in a field that must be there.
///
/// # Errors
/// It is none.
pub(crate) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    small(from, UNITS)
}

/// The same, where nothing may be said.
///
/// # Errors
/// It is said, and none.
pub(crate) fn maybe<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    #[derive(serde::Deserialize)]
    struct Some(#[serde(deserialize_with = "some")] u32);
    Ok(Option::<Some>::deserialize(from)?.map(|Some(units)| units))
}

#[cfg(test)]
mod tests {
    use crate::Want;

    #[test]
    fn wrong_numbers_are_explained_without_types() {
        for (body, units) in
            [(r#"{"units":3}"#, Some(3)), (r#"{"units":null}"#, None), ("{}", None)]
        {
            assert_eq!(serde_json::from_str::<Want>(body).unwrap().units, units, "{body}");
        }
        for body in [
            r#"{"units":-1}"#,
            r#"{"units":"two"}"#,
            r#"{"units":1.5}"#,
            r#"{"units":5000000000}"#,
            r#"{"lines":[{"units":-1}]}"#,
        ] {
            let error = serde_json::from_str::<Want>(body).unwrap_err().to_string();
            assert!(error.contains("from 1 to as many as the pool has"), "{body}: {error}");
        }
    }
}
