//! Who a certificate speaks for: `quorate://CLUSTER/node/NAME`, `quorate://CLUSTER/client/NAME`.
//!
//! The names are those of the configuration, which have no character that a URI would have to
//! escape: there is one way to write an identity, so equal texts are equal identities.

use std::fmt;
use std::str::FromStr;

/// Most characters of a name.
pub const NAME_MAX: usize = 128;
const SCHEME: &str = "quorate://";

/// Whether a text can name a cluster, a node or a client.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_name_byte)
}

pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-:".contains(&byte)
}

/// What a certificate is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// To be a member.
    Node,
    /// To use the cluster.
    Client,
    /// To sign certificates of the other two kinds; this kind has no name.
    Authority,
}

/// Who a certificate speaks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The cluster.
    pub cluster: String,
    /// As what.
    pub kind: Kind,
    /// Under which name; empty for the authority.
    pub name: String,
}

/// Why a text is no identity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no identity: quorate://CLUSTER/node/NAME or quorate://CLUSTER/client/NAME")]
pub struct IdentityError(String);

impl Identity {
    /// Of these words.
    ///
    /// # Errors
    /// A word that is no name.
    pub fn new(cluster: &str, kind: Kind, name: &str) -> Result<Identity, IdentityError> {
        let identity = Identity { cluster: cluster.into(), kind, name: name.into() };
        let is_named = if kind == Kind::Authority { name.is_empty() } else { is_name(name) };
        match is_name(cluster) && is_named {
            true => Ok(identity),
            false => Err(IdentityError(identity.to_string())),
        }
    }
}

impl FromStr for Identity {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Identity, IdentityError> {
        let wrong = || IdentityError(text.chars().take(3 * NAME_MAX).collect());
        let rest = text.strip_prefix(SCHEME).ok_or_else(wrong)?;
        let (cluster, path) = rest.split_once('/').ok_or_else(wrong)?;
        let (kind, name) = match path.split_once('/') {
            Some(("node", name)) => (Kind::Node, name),
            Some(("client", name)) => (Kind::Client, name),
            None if path == "ca" => (Kind::Authority, ""),
            _ => return Err(wrong()),
        };
        Identity::new(cluster, kind, name).map_err(|_| wrong())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { cluster, kind, name } = self;
        match kind {
            Kind::Node => write!(f, "{SCHEME}{cluster}/node/{name}"),
            Kind::Client => write!(f, "{SCHEME}{cluster}/client/{name}"),
            Kind::Authority => write!(f, "{SCHEME}{cluster}/ca"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_could_be_misread_is_no_identity() {
        let wrong = [
            "",
            "quorate://",
            "quorate://c",
            "quorate://c/node",
            "quorate://c/node/",
            "quorate:///node/a",
            "quorate://c/node/a/b",
            "quorate://c/node/a?b",
            "quorate://c/node/a%62",
            "quorate://c/node/a ",
            "quorate://c/admin/a",
            "quorate://c/ca/a",
            "quorate://c/ca/",
            "QUORATE://c/node/a",
            "http://c/node/a",
            "quorate://user@c/node/a",
        ];
        for text in wrong {
            assert!(text.parse::<Identity>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_identity_is_read_as_it_was_written(
            cluster in "[A-Za-z0-9._:-]{1,20}",
            name in "[A-Za-z0-9._:-]{1,20}",
            kind in prop_oneof![Just(Kind::Node), Just(Kind::Client), Just(Kind::Authority)],
        ) {
            let name = if kind == Kind::Authority { String::new() } else { name };
            let identity = Identity::new(&cluster, kind, &name).unwrap();
            prop_assert_eq!(identity.to_string().parse(), Ok(identity));
        }

        #[test]
        fn whatever_is_read_is_written_the_same(
            text in "(quorate://)?\\PC{0,12}(/(node|client)/)?\\PC{0,12}",
        ) {
            if let Ok(identity) = text.parse::<Identity>() {
                prop_assert_eq!(identity.to_string(), text);
            }
        }
    }
}
