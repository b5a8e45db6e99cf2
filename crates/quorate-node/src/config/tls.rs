//! Whether a node may be reached from other machines, and the files that it takes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use quorate_trust::{Identity, Keys, Kind};
use serde::Deserialize;

use super::{Config, ConfigError, low};

/// Where the files are that encryption needs, as PEM.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate of the cluster's authority, or several.
    pub ca: PathBuf,
    /// The node's own, and those between it and the authority's.
    pub cert: PathBuf,
    /// The key of that.
    pub key: PathBuf,
    /// The key of the authority, where nodes sign certificates themselves: for members that join,
    /// and their own before it expires.
    pub authority: Option<PathBuf>,
}

/// Whether the node may listen there.
pub(super) fn check(
    listen: &low::Listen,
    members: &[low::Member],
    (tls, guarded): (bool, bool),
) -> Result<(), ConfigError> {
    for (which, address) in [("clients", listen.clients), ("peers", listen.peers)] {
        if !address.ip().is_loopback() && !tls {
            return Err(ConfigError::NotLoopback { which, address });
        }
    }
    if !listen.clients.ip().is_loopback() && !guarded {
        return Err(ConfigError::Unguarded { address: listen.clients });
    }
    let far = |member: &&low::Member| !member.peers.is_loopback();
    match members.iter().find(far) {
        Some(member) if !tls => {
            Err(ConfigError::FarMember { name: member.name.clone(), address: member.peers.clone() })
        }
        _ => Ok(()),
    }
}

impl Config {
    /// The files that a configuration names, whatever else is wrong with it.
    pub(crate) fn files_of(text: &str) -> Option<Tls> {
        #[derive(Deserialize)]
        struct Named {
            tls: Option<Tls>,
        }
        toml::from_str::<Named>(text).ok()?.tls
    }

    /// Reads the files that encryption needs, if the node has any.
    ///
    /// # Errors
    /// One cannot be read, or is not good for this node.
    pub fn keys(&self) -> Result<Option<Keys>, ConfigError> {
        let Some(tls) = &self.tls else { return Ok(None) };
        let wrong = |what: String| ConfigError::Tls { what };
        let read = |path: &Path| {
            let shown = path.display();
            std::fs::read(path).map_err(|error| wrong(format!("cannot read {shown}: {error}")))
        };
        let (ca, cert, key) = (read(&tls.ca)?, read(&tls.cert)?, read(&tls.key)?);
        let node = Identity::new(&self.cluster, Kind::Node, self.name())
            .map_err(|error| wrong(error.to_string()))?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Keys::from_pem((&ca, &cert, &key), &node, now)
            .map(Some)
            .map_err(|error| wrong(error.to_string()))
    }
}
