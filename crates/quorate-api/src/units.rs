//! Numbers of units in what people write: what is wrong with one is said without a type's name.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

struct Units;

impl Visitor<'_> for Units {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of units, from 1 to as many as the pool has")
    }

    fn visit_u64<E: Error>(self, units: u64) -> Result<u32, E> {
        u32::try_from(units).map_err(|_| E::invalid_value(Unexpected::Unsigned(units), &self))
    }
}

/// A number of units, in a field that must be there.
///
/// # Errors
/// It is none.
pub(crate) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    if from.is_human_readable() { from.deserialize_u32(Units) } else { u32::deserialize(from) }
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
