//! Who somebody is, and what it may do. No IO, no clock: callers bring files, bytes and the time.
//!
//! Somebody is known by a token ([`Secret`], of which a node keeps only the [`Digest`]) or by a
//! certificate of the cluster's authority, whose [`Identity`] is a URI. Either stands for a
//! [`Permit`]: four [`Right`]s on pools whose names match a [`Pattern`], and some bounds.
//! [`Permit::decide`] is the table that says yes or no.
//!
//! Secrets are compared in constant time, by their hashes, and nothing here shows one: a token is
//! printed by [`Secret::reveal`] and by nothing else.

#[cfg(feature = "issue")]
mod authority;
mod certificate;
mod date;
mod der;
mod identity;
mod invitation;
mod pattern;
mod rights;
#[cfg(feature = "tls")]
mod tls;
mod token;

#[cfg(feature = "issue")]
pub use authority::{Authority, IssueError, Issued, Lifetime, NodeKey};
pub use certificate::{Certificate, CertificateError, Roots, Usage};
pub use date::{DAY, Date};
pub use identity::{Identity, IdentityError, Kind, NAME_MAX, is_name};
pub use invitation::{Invitation, InvitationError};
pub use pattern::{Pattern, PatternError};
pub use rights::{Demand, Permit, Refusal, Right, Rights, RightsError};
#[cfg(feature = "tls")]
pub use tls::{Keys, KeysError, is_node, shown, to_unknown};
pub use token::{Digest, DigestError, Secret, TokenError};
