//! Pools that the charter names: what they are, and how that changes while everything runs.

use serde::{Deserialize, Serialize};

/// Makes a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DefineRequest {
    /// What stands under `[[pools]]` of a configuration, as TOML, without the name.
    pub definition: String,
}

/// Changes some of what a pool is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AmendRequest {
    /// The fields that become something else, as TOML.
    pub set: String,
    /// The fields that are to be as if nobody had written them.
    pub unset: Vec<String>,
    /// Only if the pool is still of this generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<u64>,
}

/// Deletes a pool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DeleteRequest {
    /// What becomes of those who hold units or wait; without it a pool that has any stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<Deletion>,
    /// Only if the pool is still of this generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<u64>,
}

/// What becomes of those who hold units of a pool that is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Deletion {
    /// They keep them until they are done.
    Drain,
    /// They are told to stop, as by `quorate revoke`.
    Revoke,
}

/// What a pool is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DefinitionView {
    /// Its name.
    pub pool: String,
    /// Where that is written: `charter`, or `file` for a pool of the nodes' files, which does not
    /// change while they run.
    pub source: String,
    /// Grows with every change; 0 in a file.
    pub generation: u64,
    /// The fields that somebody wrote, as TOML; nothing of a pool of the files.
    pub definition: String,
    /// Whether it is being deleted, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Deletion>,
}

/// What was changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AmendedView {
    /// The version of the charter that has it, and the generation of what changed; 0 if nothing
    /// had to be changed.
    pub version: u64,
    /// In words, one line for each pool.
    pub changes: Vec<String>,
}
