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

/// Makes all pools of a file that are not there, or none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// A file of `[[pools]]`, as TOML, each with its name.
    pub pools: String,
    /// Whether only to say what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// Changes a pool, while everything runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AmendRequest {
    /// The fields that are to be others, as TOML; what is not here stays.
    #[serde(default)]
    pub definition: String,
    /// The fields that are not said any more: the pool is as if nobody had said them.
    #[serde(default)]
    pub without: Vec<String>,
    /// Only if this is the pool's generation.
    #[serde(default)]
    pub if_generation: Option<u64>,
    /// Whether only to say what would be done.
    #[serde(default)]
    pub dry_run: bool,
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
