//! Tokens: `qt1_`, 160 random bits, and a checksum, so that programs that look for leaked secrets
//! recognise one, and a typing error is told apart from a token that is refused.
//!
//! The alphabet is Crockford's base 32: no letter looks like a digit, and a double click selects
//! all of it. The checksum is the CRC-32 that zip files have, which notices every error in up to
//! six characters in a row. It is no protection: whoever has the rest can compute it.

use std::fmt;
use std::str::FromStr;

use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq as _;

/// What the tokens of clients begin with; a digit for the form of what follows.
const PREFIX: &str = "qt1_";
/// Random bytes of a token.
const RANDOM: usize = 20;
/// Characters for them, at five bits each...
const BODY: usize = RANDOM * 8 / 5;
/// ...and for the checksum's 32 bits.
const CHECK: usize = 7;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A token, as its owner has it. Nothing shows it but [`Secret::reveal`].
#[derive(Clone)]
pub struct Secret(String);

/// Why a text is no token. Says nothing about whether a node knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenError {
    /// It begins with something else.
    #[error("this is no token: tokens begin with {PREFIX}")]
    Prefix,
    /// Something is missing or too much.
    #[error("this is no token: it has {0} characters, and tokens have {len}", len = Secret::LEN)]
    Length(usize),
    /// A character that no token has.
    #[error("this is no token: character {0} occurs in none")]
    Character(usize),
    /// Some character is wrong.
    #[error("this token was mistyped: its checksum does not fit")]
    Checksum,
    /// The system has no randomness to give.
    #[error("the system gives no random numbers")]
    NoChance,
}

impl Secret {
    /// How many characters a token has.
    pub const LEN: usize = PREFIX.len() + BODY + CHECK;

    /// A new one, from the system's randomness.
    ///
    /// # Errors
    /// The system has none.
    pub fn random() -> Result<Secret, TokenError> {
        let mut bytes = [0; RANDOM];
        SystemRandom::new().fill(&mut bytes).map_err(|_| TokenError::NoChance)?;
        Ok(Secret::from_bytes(bytes))
    }

    fn from_bytes(bytes: [u8; RANDOM]) -> Secret {
        let mut text = String::from(PREFIX);
        for five in bytes.chunks_exact(5) {
            let number = five.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            push(&mut text, number, 8);
        }
        let check = crc32(text.as_bytes());
        push(&mut text, check.into(), CHECK);
        Secret(text)
    }

    /// The token itself, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What a node keeps of it.
    pub fn digest(&self) -> Digest {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.0.as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Digest(bytes)
    }
}

/// Space around a token, such as the end of a file's line, is no part of it.
impl FromStr for Secret {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Secret, TokenError> {
        let text = text.trim();
        let rest = text.strip_prefix(PREFIX).ok_or(TokenError::Prefix)?;
        // Before the length, which counts bytes.
        if let Some(at) = rest.chars().position(|c| !u8::try_from(c).is_ok_and(is_digit)) {
            return Err(TokenError::Character(PREFIX.len() + at + 1));
        }
        if text.len() != Secret::LEN {
            return Err(TokenError::Length(text.len()));
        }
        let (said, check) = text.split_at(Secret::LEN - CHECK);
        let mut right = String::new();
        push(&mut right, crc32(said.as_bytes()).into(), CHECK);
        match check == right {
            true => Ok(Secret(text.to_owned())),
            false => Err(TokenError::Checksum),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

fn is_digit(byte: u8) -> bool {
    ALPHABET.contains(&byte)
}

/// The lowest `digits` digits of a number, most significant first.
fn push(text: &mut String, number: u64, digits: usize) {
    for place in (0..digits).rev() {
        let digit = (number >> (5 * place)) & 31;
        text.push(char::from(ALPHABET[digit as usize]));
    }
}

/// CRC-32 as in ISO 3309: forty bytes need no table.
fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32| (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| bit(crc)))
}

/// SHA-256 of a token: enough to recognise it, useless to whoever reads the configuration. Tokens
/// have 160 random bits, so nothing slower is needed; passwords that people choose would need it.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

/// Why a text is no digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DigestError {
    /// The token itself was written where only its hash belongs.
    #[error(
        "this is a token, and everybody who reads this file has it now: make another with \
         `quorate token new`, and put the entry here that it prints"
    )]
    Token,
    /// It has another form.
    #[error(
        "a SHA-256 has 64 hexadecimal digits; `quorate token new` prints the entry to put here"
    )]
    Form,
}

impl Digest {
    /// As the charter keeps it.
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Whether it is this token's. Takes as long for a near miss as for a far one.
    pub fn is(&self, shown: &Digest) -> bool {
        self.0.ct_eq(&shown.0).into()
    }
}

/// As the charter has it.
impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        if text.trim().starts_with(PREFIX) {
            return Err(DigestError::Token);
        }
        let nibble = |digit: u8| char::from(digit).to_digit(16).ok_or(DigestError::Form);
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(DigestError::Form);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = (nibble(pair[0])? << 4 | nibble(pair[1])?) as u8;
        }
        Ok(Digest(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// It is no secret, but nothing that belongs into a log either.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_form_of_tokens_does_not_change() {
        let token = Secret::from_bytes(*b"0123456789abcdefghij");
        assert_eq!(
            token.reveal(),
            "qt1_60rk4csm6mv3ee1sc5h66s35cskpgtba1s7gd9t",
            "computed with Python's zlib"
        );
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the check value that the standard gives");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Secret("abc".into()).digest().to_string(), known, "FIPS 180-2, B.1");
    }

    #[test]
    fn two_tokens_are_not_alike() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert!(one.digest().is(&one.digest()));
        assert!(!one.digest().is(&other.digest()));
    }

    #[test]
    fn nothing_shows_a_secret() {
        let token = Secret::random().unwrap();
        let hash = token.digest();
        let shown = format!("{token:?} {token:#?} {hash:?}");
        assert!(!shown.contains(&token.reveal()[4..12]), "{shown}");
        assert!(!shown.contains(&hash.to_string()[..8]), "{shown}");
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said_without_the_text() {
        let token = Secret::from_bytes([7; RANDOM]);
        let cut = &token.reveal()[..20];
        let cases = [
            (String::new(), TokenError::Prefix),
            ("hunter2".into(), TokenError::Prefix),
            (cut.into(), TokenError::Length(20)),
            (format!("{cut}u"), TokenError::Character(21)),
            (format!("{cut}é"), TokenError::Character(21)),
            (token.reveal().to_uppercase(), TokenError::Prefix),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<Secret>().unwrap_err(), error);
            assert!(text.is_empty() || !error.to_string().contains(&text));
        }
    }

    #[test]
    fn a_token_in_the_place_of_its_hash_is_noticed() {
        let token = Secret::from_bytes([7; RANDOM]);
        assert_eq!(token.reveal().parse::<Digest>().unwrap_err(), DigestError::Token);
        for wrong in ["", "abc", &"g".repeat(64), &"é".repeat(32), &"0".repeat(65)] {
            assert_eq!(wrong.parse::<Digest>().unwrap_err(), DigestError::Form);
        }
    }

    proptest! {
        #[test]
        fn a_token_is_read_as_it_was_written(bytes: [u8; RANDOM], space in "[ \t\r\n]{0,3}") {
            let token = Secret::from_bytes(bytes);
            prop_assert_eq!(token.reveal().len(), Secret::LEN);
            let read: Secret = format!("{space}{}{space}", token.reveal()).parse().unwrap();
            prop_assert_eq!(read.reveal(), token.reveal());
            let digest: Digest = token.digest().to_string().parse().unwrap();
            prop_assert!(digest.is(&read.digest()));
        }

        #[test]
        fn every_typing_error_in_a_place_or_two_is_noticed(
            bytes: [u8; RANDOM],
            at in PREFIX.len()..Secret::LEN - 1,
            one in 0..32usize,
            two in 0..32usize,
        ) {
            let token = Secret::from_bytes(bytes);
            let mut typed = token.reveal().as_bytes().to_vec();
            (typed[at], typed[at + 1]) = (ALPHABET[one], ALPHABET[two]);
            let typed = String::from_utf8(typed).unwrap();
            let read = typed.parse::<Secret>().map(|read| read.reveal().to_owned());
            let expected = match typed == token.reveal() {
                true => Ok(typed),
                false => Err(TokenError::Checksum),
            };
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn two_characters_in_the_wrong_order_are_noticed(
            bytes: [u8; RANDOM],
            at in PREFIX.len()..Secret::LEN - 1,
        ) {
            let token = Secret::from_bytes(bytes);
            let mut typed = token.reveal().as_bytes().to_vec();
            typed.swap(at, at + 1);
            let typed = String::from_utf8(typed).unwrap();
            prop_assert_eq!(typed.parse::<Secret>().is_ok(), typed == token.reveal());
        }

        #[test]
        fn no_text_is_too_strange_to_be_read(text in "(qt1_)?\\PC{0,60}") {
            let _ = text.parse::<Secret>();
            let _ = text.parse::<Digest>();
        }
    }
}
