//! What a machine is given so that it may join a cluster: one word, that says where the cluster is,
//! whose certificates to believe there, under which name to join, and a secret that is good once.
//!
//! `qj1/NAME/HOST:PORT,HOST:PORT/FINGERPRINT/SECRET`: the fingerprint is the SHA-256 of the
//! authority's certificate, and authenticates the cluster to the machine; the secret, which looks
//! like a token, authenticates the machine to the cluster. Neither stands without the other.

use std::str::FromStr;

use crate::{Secret, TokenError, is_name};

/// What the word begins with; a digit for the form of what follows.
const PREFIX: &str = "qj1";
/// Most places where the cluster is.
const PLACES_MAX: usize = 8;
/// Longest of them.
const PLACE_MAX: usize = 260;

/// See the module. Nothing shows it but [`Invitation::reveal`].
#[derive(Clone, Debug)]
pub struct Invitation {
    /// The name under which the machine joins.
    pub name: String,
    /// Where members take it in: the clients' addresses of some.
    pub places: Vec<String>,
    /// SHA-256 of the certificate of the cluster's authority.
    pub authority: [u8; 32],
    /// What it shows.
    pub secret: Secret,
}

/// Why a text is no invitation. Nothing was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvitationError {
    /// It begins with something else, has other parts, or space between them.
    #[error(
        "this is no invitation: one is a word like {PREFIX}/NAME/HOST:PORT/FINGERPRINT/SECRET, \
         and `quorate member invite NAME` prints it"
    )]
    Form,
    /// A name that could be misread.
    #[error("this is no invitation: its second part is no name")]
    Name,
    /// Nowhere to go, or too many places.
    #[error("this is no invitation: its third part does not say where the cluster is")]
    Places,
    /// It does not say whom to believe.
    #[error("this is no invitation: its fourth part is no fingerprint of a certificate")]
    Authority,
    /// The secret was mistyped, or cut off.
    #[error("this is no invitation: its last part was mistyped or cut off ({0})")]
    Secret(TokenError),
}

impl Invitation {
    /// The word itself, for whoever starts the machine.
    pub fn reveal(&self) -> String {
        let Invitation { name, places, authority, secret } = self;
        let (places, secret) = (places.join(","), secret.reveal());
        format!("{PREFIX}/{name}/{places}/{}/{secret}", hex(authority))
    }
}

impl FromStr for Invitation {
    type Err = InvitationError;

    fn from_str(text: &str) -> Result<Invitation, InvitationError> {
        let text = text.trim();
        if text.contains(char::is_whitespace) {
            return Err(InvitationError::Form);
        }
        let parts: Vec<&str> = text.split('/').collect();
        let [PREFIX, name, places, authority, secret] = parts[..] else {
            return Err(InvitationError::Form);
        };
        if !is_name(name) {
            return Err(InvitationError::Name);
        }
        let places: Vec<String> = places.split(',').map(str::to_owned).collect();
        if places.len() > PLACES_MAX || !places.iter().all(|place| is_place(place)) {
            return Err(InvitationError::Places);
        }
        let authority = unhex(authority).ok_or(InvitationError::Authority)?;
        let secret = secret.parse().map_err(InvitationError::Secret)?;
        Ok(Invitation { name: name.to_owned(), places, authority, secret })
    }
}

/// Whether a text could be HOST:PORT. Whoever goes there finds out.
fn is_place(text: &str) -> bool {
    let of_places = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:[]%".contains(&byte);
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    !host.is_empty()
        && text.len() <= PLACE_MAX
        && text.bytes().all(of_places)
        && port.parse::<u16>().is_ok_and(|number| number > 0 && number.to_string() == port)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 64 || !text.bytes().all(digits) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn invitation(places: &[&str]) -> Invitation {
        Invitation {
            name: "n2".into(),
            places: places.iter().map(|place| (*place).to_owned()).collect(),
            authority: [0xa5; 32],
            secret: Secret::random().unwrap(),
        }
    }

    #[test]
    fn an_invitation_is_read_as_it_was_written() {
        for places in [&["10.0.0.1:7420"][..], &["[::1]:7420", "n1.example.org:1"]] {
            let written = invitation(places).reveal();
            let read: Invitation = format!(" {written}\n").parse().unwrap();
            assert_eq!((read.reveal(), &read.name[..]), (written, "n2"));
            assert_eq!(
                (&read.places[..], read.authority),
                (&invitation(places).places[..], [0xa5; 32])
            );
        }
    }

    #[test]
    fn what_is_cut_off_or_mistyped_is_none() {
        let written = invitation(&["10.0.0.1:7420"]).reveal();
        for end in 0..written.len() {
            assert!(written[..end].parse::<Invitation>().is_err(), "{end}");
        }
        let wrong = |from: &str, to: &str| written.replacen(from, to, 1).parse::<Invitation>();
        assert_eq!(wrong("qj1", "qj2").unwrap_err(), InvitationError::Form);
        assert_eq!(wrong("n2", "n,2").unwrap_err(), InvitationError::Name);
        assert_eq!(wrong("/qt1", "/\nqt1").unwrap_err(), InvitationError::Form);
        assert_eq!(wrong(":7420", "").unwrap_err(), InvitationError::Places);
        assert_eq!(wrong(":7420", ":0").unwrap_err(), InvitationError::Places);
        assert_eq!(wrong("a5", "A5").unwrap_err(), InvitationError::Authority);
        let last = written.chars().last().unwrap();
        let other = if last == '0' { "1" } else { "0" };
        let mistyped = format!("{}{other}", &written[..written.len() - 1]).parse::<Invitation>();
        assert_eq!(mistyped.unwrap_err(), InvitationError::Secret(TokenError::Checksum));
    }

    #[test]
    fn nothing_shows_the_secret_by_accident() {
        let invitation = invitation(&["10.0.0.1:7420"]);
        assert!(!format!("{invitation:?}").contains(invitation.secret.reveal()));
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_the_same(text in "(qj1/)?\\PC{0,20}(/\\PC{0,20}){0,4}") {
            if let Ok(read) = text.parse::<Invitation>() {
                prop_assert_eq!(read.reveal(), text.trim());
            }
        }
    }
}
