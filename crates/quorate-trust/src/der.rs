//! As much of DER as it takes to read when and at which addresses a certificate is valid, which
//! webpki checks and does not tell. Nothing is decided by this: it is shown to people and measured.

use std::net::IpAddr;
use std::time::Duration;

use crate::date::{DAY, Date};

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const TIME: u8 = 0x18;
const EXTENSIONS: u8 = 0xa3;
/// Subject alternative name.
const NAMES: (u8, &[u8]) = (0x06, &[0x55, 0x1d, 0x11]);
const ADDRESS: u8 = 0x87;

/// From when to when a certificate is valid, since 1970; nothing if it cannot be read.
pub(crate) fn validity(certificate: &[u8]) -> Option<(Duration, Duration)> {
    let (_, times, _) = element(before_validity(certificate)?).filter(is_sequence)?;
    let (from, rest) = time(times)?;
    let (until, _) = time(rest)?;
    Some((from, until))
}

/// The addresses at which it is valid, those that can be read.
pub(crate) fn addresses(certificate: &[u8]) -> Vec<IpAddr> {
    let Some(rest) = before_validity(certificate) else { return Vec::new() };
    // Validity, subject and key come first.
    let extensions = elements(rest).find(|(tag, _)| *tag == EXTENSIONS);
    let extensions = extensions.into_iter().flat_map(|(_, list)| elements(list)).flat_map(inside);
    let names = extensions.filter(|(_, one)| elements(one).next() == Some(NAMES));
    let names = names.filter_map(|(_, one)| elements(one).last());
    let names = names.flat_map(inside).flat_map(inside);
    let address = |(tag, bytes): (u8, &[u8])| match (tag, bytes.len()) {
        (ADDRESS, 4) => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        (ADDRESS, 16) => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    };
    names.filter_map(address).collect()
}

/// What a certificate says, from its validity on.
fn before_validity(certificate: &[u8]) -> Option<&[u8]> {
    let (_, outer, _) = element(certificate).filter(is_sequence)?;
    let (_, mut rest, _) = element(outer).filter(is_sequence)?;
    if let Some((VERSION, _, after)) = element(rest) {
        rest = after;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    Some(rest)
}

fn is_sequence((tag, ..): &(u8, &[u8], &[u8])) -> bool {
    *tag == SEQUENCE
}

/// Tag and content of each element, up to the first that cannot be read.
fn elements(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (tag, content, rest) = element(bytes)?;
        bytes = rest;
        Some((tag, content))
    })
}

fn inside((_, content): (u8, &[u8])) -> impl Iterator<Item = (u8, &[u8])> {
    elements(content)
}

/// Tag, content, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // Longer than four bytes of length is no certificate.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

fn time(bytes: &[u8]) -> Option<(Duration, &[u8])> {
    let (tag, text, rest) = element(bytes)?;
    let text = std::str::from_utf8(text).ok()?;
    // Two digits of a year are those of 1950 to 2049.
    let text = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        TIME => text.to_owned(),
        _ => return None,
    };
    let digits = text.strip_suffix('Z').filter(|digits| digits.len() == 14)?;
    let number = |range: std::ops::Range<usize>| {
        let digits = digits.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok())?
    };
    let (hour, minute, second) = (number(8..10)?, number(10..12)?, number(12..14)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let day = Date::new(number(0..4)?, number(4..6)? as u8, number(6..8)? as u8).ok()?;
    let of_day = Duration::from_secs((hour * 60 + minute).into()) * 60;
    debug_assert!(of_day < DAY);
    Some((day.since_1970() + of_day + Duration::from_secs(second.into()), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
        let len = content.len();
        let len = match len {
            0..128 => vec![len as u8],
            _ => vec![0x82, (len >> 8) as u8, len as u8],
        };
        [&[tag], &len[..], content].concat()
    }

    #[test]
    fn both_kinds_of_time_are_read() {
        let at = |tag, text: &str| time(&tagged(tag, text.as_bytes())).map(|(at, _)| at.as_secs());
        assert_eq!(at(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(at(UTC_TIME, "261116122415Z"), Some(1_794_831_855));
        assert_eq!(at(TIME, "20261116122415Z"), Some(1_794_831_855));
        for wrong in
            ["261116122415", "26111612241Z", "26111624000 Z", "261116122460Z", "é11116122415Z"]
        {
            assert_eq!(at(UTC_TIME, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_times_are_found_behind_all_that_comes_first() {
        let times = [tagged(UTC_TIME, b"700101000000Z"), tagged(TIME, b"20261116122415Z")].concat();
        let long = tagged(SEQUENCE, &[0; 300]);
        let parts = [tagged(VERSION, &[2]), tagged(2, &[1]), tagged(SEQUENCE, &[]), long];
        let inner = tagged(SEQUENCE, &[parts.concat(), tagged(SEQUENCE, &times)].concat());
        let found = validity(&tagged(SEQUENCE, &inner));
        assert_eq!(found, Some((Duration::ZERO, Duration::from_secs(1_794_831_855))));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange_to_be_read(bytes: Vec<u8>) {
            let nested = tagged(SEQUENCE, &tagged(SEQUENCE, &bytes));
            for bytes in [bytes, nested] {
                let _ = validity(&bytes);
                let _ = addresses(&bytes);
            }
        }
    }
}
