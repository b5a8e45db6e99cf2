//! Spans of time as people write them: `500ms`, `10s`, `1m30s`, `2h`.

use std::fmt::Write;
use std::time::Duration;

/// Why a text is not a span of time.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text:?} is not a span of time: write 500ms, 10s, 1m30s or 2h")]
pub struct SpanError {
    text: String,
}

/// Unit names with their length in milliseconds, the largest first.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a span such as `10s` or `1m30s`. A bare number other than 0 is refused: of what?
///
/// # Errors
/// The text is not a span.
pub fn parse_span(text: &str) -> Result<Duration, SpanError> {
    let wrong = || SpanError { text: text.chars().take(64).collect() };
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut millis: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (_, scale) =
            UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(wrong)?;
        rest = &rest[letters..];
        let part = number.checked_mul(*scale).ok_or_else(wrong)?;
        millis = millis.checked_add(part).ok_or_else(wrong)?;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(millis)) }
}

/// Writes a span the way [`parse_span`] reads it, to the millisecond.
pub fn format_span(span: Duration) -> String {
    let mut millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0".into();
    }
    let mut text = String::new();
    for (name, scale) in UNITS {
        if millis >= scale {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{name}", millis / scale);
            millis %= scale;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written_alike() {
        for (text, millis) in [
            ("0", 0),
            ("500ms", 500),
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("1d2h3m4s5ms", 93_784_005),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_millis(millis)), "{text}");
            assert_eq!(format_span(Duration::from_millis(millis)), text);
        }
        for text in ["", "10", "s", "10x", "-1s", "1.5s", "10 s", "99999999999999999999s", "5é"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }
}
