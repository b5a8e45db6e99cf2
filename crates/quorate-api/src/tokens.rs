//! Tokens and rights of the charter: what administrators see and change of who is let in.

use serde::{Deserialize, Serialize};

/// A token is to be there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// SHA-256 of the secret, 64 hexadecimal digits: `quorate token new --json` draws one. The
    /// secret itself is never sent.
    pub sha256: String,
    /// The right that it gives...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<String>,
    /// ...or what it may do, as TOML: then a right of its name is made along with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The day (UTC) from which it is worth nothing, like 2027-02-14; never, if this is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The generation of the token that is to be replaced; without it there must be none of this
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<u64>,
    /// Whether only to say what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// A token, without its secret, which nobody keeps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenView {
    /// Whose it is.
    pub name: String,
    /// Where it is written: `charter`, or `file of` a node, where alone it is good.
    pub source: String,
    /// The right that it gives, if it is one of the charter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<String>,
    /// The version of the charter that last changed it; 0 in a file.
    pub generation: u64,
    /// Whether it is worth nothing at the node that answers, whose file has something of its name.
    #[serde(default)]
    pub hidden: bool,
    /// What it may do: `see`, `claim`, `revoke`, `admin`...
    pub may: Vec<String>,
    /// ...in which pools: names, or patterns with one `*`.
    pub pools: Vec<String>,
    /// Most units of one claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_units: Option<u32>,
    /// What its clients may call themselves; without any, as the token is called.
    #[serde(default)]
    pub clients: Vec<String>,
    /// The day from which it is worth nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// Who is let in at a node by a token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokensView {
    /// The version of the charter, as far as the node that answers has applied it.
    pub version: u64,
    /// Those of the node's file and of the charter, by name.
    pub tokens: Vec<TokenView>,
    /// Why there may be a later version, if no majority confirms this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What tokens may do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RightView {
    /// Its name.
    pub name: String,
    /// The version of the charter that last changed it.
    pub generation: u64,
    /// The fields that somebody wrote, as TOML.
    pub definition: String,
    /// The tokens that have it.
    pub tokens: Vec<String>,
}

/// All rights of the charter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RightsView {
    /// The version of the charter, as far as the node that answers has applied it.
    pub version: u64,
    /// By name.
    pub rights: Vec<RightView>,
    /// Why there may be a later version, if no majority confirms this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
