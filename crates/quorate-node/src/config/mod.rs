//! What a node is told at its start: what was written (`low`) and what it means ([`Config`]).
//!
//! Everything is read and checked before anything is bound or written.

mod added;
mod address;
mod charter;
mod limits;
mod low;
mod members;
mod options;
mod pool;
mod reserved;
mod rights;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::NodeId;

use crate::protocols::{REGISTRY, Registered};

pub use added::parts;
pub(crate) use added::{Added, Difference, Past, Registry as Additions, Text, Written};
pub use address::Address;
pub use charter::Chartered;
pub use limits::Limits;
pub use members::Members;
pub(crate) use options::{Basis, Options, SHORTEST};
pub use pool::{Names, POOL_NAME_MAX, POOL_UNITS_MAX, PoolDef, is_pool_name};
pub use reserved::{Pattern, Reserved};
pub(crate) use rights::permit;
pub use rights::{Guard, Guarded};
pub use tls::Tls;

/// Least length of a token.
const TOKEN_MIN: usize = 16;
/// Most members of a cluster.
pub const MEMBERS_MAX: usize = 128;

/// Shortest silence that means anything: every node shows once in half of it that it lives.
const SUSPECT_AFTER_MIN: Duration = crate::engine::HEARTBEAT.saturating_mul(2);

/// What a node is told, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cluster.
    pub cluster: String,
    /// The epoch of its configuration.
    pub epoch: u64,
    /// Who we are, as an index into `members`.
    pub me: NodeId,
    /// Everybody who is a member, or was one.
    pub members: Members,
    /// Where clients find us.
    pub listen_clients: SocketAddr,
    /// The Unix socket where clients of this machine find us, if there is to be one.
    pub listen_local: Option<PathBuf>,
    /// Where the other members find us.
    pub listen_peers: SocketAddr,
    /// From which address we call them, if it matters.
    pub source: Option<IpAddr>,
    /// Where things are kept.
    pub data: Data,
    /// The pools, in the order of the file.
    pub pools: Vec<Arc<PoolDef>>,
    /// Those that the charter names, as far as this node has applied it.
    pub(crate) added: Additions,
    /// How long another node may be silent before it is suspected to have crashed.
    pub suspect_after: Duration,
    /// How a replicated document says who decides, where one does.
    pub charter: Option<Chartered>,
    /// Whether members join while nodes run. Then the file has those whom the node had heard of
    /// when it was written, and no pools.
    pub joins: bool,
    /// How much this node takes on.
    pub limits: Limits,
    /// Who may do what; if nothing is here, everybody everything but what takes `admin_token`,
    /// which is here as well.
    pub guarded: Guard,
    /// Where it is written down who did what.
    pub audit: Audited,
    /// How much the node tells in its log: words of `QUORATE_LOG`.
    pub log: Option<String>,
    /// Where the files are that encryption needs; without them a node stays on its own machine.
    pub tls: Option<Tls>,
    /// What other tools may speak here, and which pools they mean.
    pub gateways: Gateways,
    /// What members must agree on, in one number...
    pub digest: u64,
    /// ...and those that share a charter. While a cluster gets its first, not all have heard of it.
    pub(crate) council: u64,
}

/// What other tools may speak here: nothing unless said. Each value is the name of a pool with one
/// `*`, for which the tool's own word is put.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gateways {
    /// FleetLock: `*` is the group of a machine.
    pub fleetlock: Option<String>,
    /// Terraform's lock: `*` is the last part of the address.
    pub terraform: Option<String>,
}

impl Gateways {
    fn check(&self) -> Result<(), ConfigError> {
        for name in [&self.fleetlock, &self.terraform].into_iter().flatten() {
            if name.matches('*').count() != 1 || !is_pool_name(&name.replacen('*', "x", 1)) {
                return Err(ConfigError::Text(format!(
                    "gateways: {name:?}: write the name of a pool with one *, for which the \
                     tool's own word is put"
                )));
            }
        }
        Ok(())
    }
}

/// Where it is written down who did what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Audited {
    /// On standard error, if callers are told apart: where anybody may do anything, it is only
    /// remembered.
    Unsaid,
    /// On standard error.
    Stderr,
    /// In a file, which is renamed when it is so large.
    File {
        /// The file.
        path: PathBuf,
        /// How large.
        max_bytes: u64,
    },
}

/// A text that is compared and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Whether this is it. Takes as long for a near miss as for a far one.
    pub fn is(&self, shown: &str) -> bool {
        let pairs = self.0.bytes().zip(shown.bytes());
        let differences = pairs.fold(0, |sum, (a, b)| sum | (a ^ b));
        self.0.len() == shown.len() && differences == 0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// A node of the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Where the others reach it.
    pub peers: Address,
}

/// Where a node keeps what it must not forget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// Nowhere: a cluster that begins and ends with its process (`quorate dev`).
    Memory,
    /// In this directory.
    Directory(PathBuf),
}

/// What is wrong with a configuration. Nothing was bound or written.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is not TOML, or has a field that does not exist, or lacks one that must.
    #[error("{0}")]
    Text(String),
    /// This node is not one of the members.
    #[error("node = {name:?} is not among the members {members:?}")]
    NotAMember {
        /// This node.
        name: String,
        /// The members.
        members: Vec<String>,
    },
    /// Two members have one name.
    #[error("two members are named {name:?}")]
    TwoMembers {
        /// The name.
        name: String,
    },
    /// Two members could not both listen there.
    #[error("{one:?} and {other:?} have the same address for peers, {address}")]
    OneAddress {
        /// A member.
        one: String,
        /// Another.
        other: String,
        /// Their address.
        address: Address,
    },
    /// The number of members makes no sense.
    #[error("{0} members: choose 1 to {MEMBERS_MAX}")]
    Members(usize),
    /// A name of a cluster, a node or a pool that could be misread.
    #[error("{name:?} is no name: 1 to 128 letters, digits, and . _ - : (one * in a pattern)")]
    PoolName {
        /// The name.
        name: String,
    },
    /// Two definitions have one name.
    #[error("two pools are named {name:?}")]
    TwoPools {
        /// The name.
        name: String,
    },
    /// A pool contradicts itself.
    #[error("pool {pool:?}: {what}")]
    Pool {
        /// Which.
        pool: String,
        /// How.
        what: String,
    },
    /// Everybody would be suspected all the time.
    #[error(
        "suspect_after = {0:?}: choose 2s or more, since nodes show once a second that they live"
    )]
    SuspectAfter(String),
    /// The charter could not work like this.
    #[error("[charter] {0}")]
    Charter(String),
    /// A limit that would let nothing through, or that is none.
    #[error("limits.{name} = {value}: choose {least} to {most}")]
    Limit {
        /// Which.
        name: &'static str,
        /// What was written.
        value: usize,
        /// The smallest that makes sense.
        least: usize,
        /// The largest.
        most: usize,
    },
    /// Anybody on the way could read and change everything.
    #[error(
        "listen.{which} = {address} is not a loopback address: that takes certificates. Make them \
         with `quorate cert new-ca CLUSTER` and `quorate cert node NAME --address ADDRESS`, and \
         name the files in [tls]; or use 127.0.0.1 or [::1]"
    )]
    NotLoopback {
        /// Which listener.
        which: &'static str,
        /// Where.
        address: SocketAddr,
    },
    /// Anybody who reaches it could claim.
    #[error(
        "listen.clients = {address} can be reached from other machines, and the file has no \
         [[tokens]]: anybody could claim. Make one with `quorate token new`, or use 127.0.0.1"
    )]
    Unguarded {
        /// Where.
        address: SocketAddr,
    },
    /// What is said to a member elsewhere must be encrypted.
    #[error(
        "member {name:?} is at {address}, which is not on this machine: that takes certificates. \
         Make them with `quorate cert new-ca CLUSTER` and `quorate cert node NAME --address \
         ADDRESS`, and name the files in [tls]"
    )]
    FarMember {
        /// Which.
        name: String,
        /// Where.
        address: Address,
    },
    /// The files that encryption needs.
    #[error("[tls] {what}")]
    Tls {
        /// What is the matter with them.
        what: String,
    },
    /// It says something else that a running node cannot take up.
    #[error("{what} changed, which takes a restart; nothing was taken up")]
    Restart {
        /// What.
        what: &'static str,
    },
    /// Nobody could be called from there.
    #[error("listen.source = {address}: {what}")]
    Source {
        /// What was written.
        address: IpAddr,
        /// What is the matter with it.
        what: String,
    },
    /// A token that could be guessed protects nothing.
    #[error("admin_token is shorter than {TOKEN_MIN} characters")]
    WeakToken,
    /// A token or the rights of all make no sense.
    #[error("{0}")]
    Rights(String),
    /// A node must at least remember how often it was started.
    #[error("data_dir is missing: a node must at least remember how often it was started")]
    NoDataDir,
    /// A file says the same after a disk was lost.
    #[error(
        "bootstrap is no setting any more, since a file outlives a lost disk: take it out, and run \
         `quorate init --config FILE` on every member before the first start of a new cluster"
    )]
    Bootstrap,
}

/// Whether members can be called from there.
fn check_source(address: IpAddr, members: &[low::Member], tls: bool) -> Result<(), ConfigError> {
    let wrong = |what: String| Err(ConfigError::Source { address, what });
    if !address.is_loopback() && !tls {
        return wrong("nodes talk over loopback addresses only, like 127.0.0.1".into());
    }
    match members.iter().find(|member| !member.peers.fits(address)) {
        Some(low::Member { name, peers }) => {
            wrong(format!("{name} at {peers} cannot be called from an address of the other kind"))
        }
        None => Ok(()),
    }
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Says what is wrong; nothing was bound or written.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let mut config = Config::parse_in_memory(text)?;
        let file = read(text)?;
        config.data = Data::Directory(file.data_dir.ok_or(ConfigError::NoDataDir)?);
        Ok(config)
    }

    /// Reads a configuration from its file.
    ///
    /// # Errors
    /// The same, or the file cannot be read. What is said of a line does not show the line: it may
    /// have a secret, and what is wrong with a file goes to logs, readiness and the audit.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Text(format!("it cannot be read: {error}")))?;
        Config::parse(&text).map_err(|error| match error {
            ConfigError::Text(said) => ConfigError::Text(without_source(&said)),
            other => other,
        })
    }

    /// Reads a configuration for a new cluster that keeps nothing.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn parse_in_memory(text: &str) -> Result<Config, ConfigError> {
        Config::parse_among(text, REGISTRY)
    }

    /// The same, where pools choose among these protocols.
    pub(crate) fn parse_among(text: &str, registry: &[Registered]) -> Result<Config, ConfigError> {
        let file = read(text)?;
        if file.bootstrap.is_some() {
            return Err(ConfigError::Bootstrap);
        }
        let names: Vec<String> = file.members.iter().map(|member| member.name.clone()).collect();
        for name in names.iter().chain([&file.cluster]) {
            if !is_pool_name(name) {
                return Err(ConfigError::PoolName { name: name.clone() });
            }
        }
        if names.is_empty() || names.len() > MEMBERS_MAX {
            return Err(ConfigError::Members(names.len()));
        }
        if let Some(name) = twice(&names) {
            return Err(ConfigError::TwoMembers { name });
        }
        let mut addresses = BTreeMap::new();
        for member in &file.members {
            if let Some(one) = addresses.insert(&member.peers, member.name.clone()) {
                let (other, address) = (member.name.clone(), member.peers.clone());
                return Err(ConfigError::OneAddress { one, other, address });
            }
        }
        let Some(me) = names.iter().position(|name| *name == file.node) else {
            return Err(ConfigError::NotAMember { name: file.node, members: names });
        };
        let suspect_after = quorate_api::parse_span(&file.suspect_after)
            .map_err(|error| ConfigError::Text(format!("suspect_after: {error}")))?;
        if suspect_after < SUSPECT_AFTER_MIN {
            return Err(ConfigError::SuspectAfter(file.suspect_after));
        }
        let charter = match &file.charter {
            Some(charter) => Chartered::read(charter).map_err(ConfigError::Charter)?,
            None => None,
        };
        let joins = charter::joins(&file).map_err(ConfigError::Charter)?;
        let pools: Result<Vec<_>, _> = file
            .pools
            .into_iter()
            .map(|pool| PoolDef::read(pool, registry, &names, (file.epoch, charter, None)))
            .collect();
        let pools: Vec<Arc<PoolDef>> = pools?.into_iter().map(Arc::new).collect();
        let labels: Vec<String> = pools.iter().map(|pool| pool.label()).collect();
        if let Some(name) = twice(&labels) {
            return Err(ConfigError::TwoPools { name });
        }
        let listen = file.listen;
        let handed = rights::handed(text);
        let guarded = Guarded::read(file.tokens, file.certificates, file.rights)
            .map_err(ConfigError::Rights)?;
        tls::check(&listen, &file.members, (file.tls.is_some(), guarded.is_some()))?;
        if let Some(source) = listen.source {
            check_source(source, &file.members, file.tls.is_some())?;
        }
        file.limits.check()?;
        let admin = match file.admin_token {
            Some(token) if token.len() < TOKEN_MIN => return Err(ConfigError::WeakToken),
            token => token.map(Secret),
        };
        file.gateways.check()?;
        // Where members join, who they are the charter says, and not what nodes agree on before.
        let listed = if joins { "joins".to_owned() } else { format!("{names:?}") };
        let mut agreed = format!("cluster {:?} epoch {} {listed}\n", file.cluster, file.epoch);
        pools.iter().for_each(|pool| agreed.push_str(&pool.canonical()));
        let imports = charter.is_some_and(|charter| charter.import);
        let before = digest(agreed.as_bytes());
        charter.iter().for_each(|charter| agreed.push_str(&charter.canonical()));
        let council = digest(agreed.as_bytes());
        Ok(Config {
            cluster: file.cluster,
            epoch: file.epoch.into(),
            me: NodeId::from(me),
            members: Members::new(
                file.members
                    .into_iter()
                    .map(|member| Member { name: member.name, peers: member.peers }),
            ),
            listen_clients: listen.clients,
            listen_local: listen.local,
            listen_peers: listen.peers,
            source: listen.source,
            data: Data::Memory,
            pools,
            added: Additions::default(),
            suspect_after,
            gateways: file.gateways,
            charter,
            joins,
            limits: file.limits,
            audit: match file.audit {
                Some(low::Audit { file: Some(path), max_bytes }) => {
                    Audited::File { path, max_bytes }
                }
                Some(_) => Audited::Stderr,
                None => Audited::Unsaid,
            },
            guarded: Guard::new(admin, guarded, handed),
            log: file.log,
            tls: file.tls,
            digest: if imports { before } else { council },
            council,
        })
    }

    /// Whether a file that has pools and nothing else can be read: what is wrong with it is said
    /// with its own lines.
    ///
    /// # Errors
    /// It is no TOML, has other things than pools, or fields that no pool has.
    pub fn check_pools(text: &str) -> Result<(), ConfigError> {
        match toml::from_str::<low::Pools>(text) {
            Ok(_) => Ok(()),
            Err(error) => Err(ConfigError::Text(error.to_string())),
        }
    }

    /// What else differs in a configuration that a running node should take up, if anything does
    /// that it would have to be restarted for.
    pub(crate) fn differs(&self, new: &Config) -> Option<&'static str> {
        let same = [
            ("the cluster", self.cluster == new.cluster),
            ("the node's name", self.name() == new.name()),
            ("members or pools", self.digest == new.digest),
            ("[charter]", self.council == new.council),
            ("listen.clients", self.listen_clients == new.listen_clients),
            ("listen.peers", self.listen_peers == new.listen_peers),
            ("listen.local", self.listen_local == new.listen_local),
            ("whether there is [tls]", self.tls.is_some() == new.tls.is_some()),
            ("[audit]", self.audit == new.audit),
            ("suspect_after", self.suspect_after == new.suspect_after),
        ];
        same.iter().find(|(_, same)| !same).map(|(what, _)| *what)
    }

    /// This node's name.
    pub fn name(&self) -> &str {
        &self.members[self.me.index()].name
    }

    /// The definition of a pool: by name if there is one, else the first pattern that covers it,
    /// else what the charter says, as far as this node has applied it.
    pub fn pool(&self, name: &str) -> Option<Arc<PoolDef>> {
        self.in_file(name).cloned().or_else(|| self.added(name).map(|it| it.def))
    }

    /// What is allowed, and probably not meant.
    pub fn warnings(&self) -> Vec<String> {
        let suspect_after = self.suspect_after;
        let short = |pool: &&Arc<PoolDef>| {
            pool.moves_grants() && pool.lease.length() < suspect_after.saturating_mul(3)
        };
        let warning = |pool: &Arc<PoolDef>| {
            format!(
                "pool {}: a lease of {:?} is shorter than three times suspect_after \
                 ({suspect_after:?}): when a member crashes, those who hold units by its \
                 permission may lose them before others have given theirs",
                pool.label(),
                pool.lease.length(),
            )
        };
        self.pools.iter().filter(short).map(warning).collect()
    }

    /// The pools that the crash of one node stops, and what would help.
    pub fn fragile(&self) -> Vec<String> {
        let fragile = |pool: &&Arc<PoolDef>| pool.promises.survives == 0 && self.members.len() > 1;
        let third = if self.members.len() > 2 { "" } else { "with a third member, " };
        let stops = |pool: &Arc<PoolDef>| {
            let (label, protocol) = (pool.label(), pool.protocol.name());
            let moves = match (pool.protocol.could_move(), self.charter) {
                (true, None) => "`[charter]` with `enabled = true` lets others decide then, ",
                (true, Some(_)) => "without `arbiter` others decide then, ",
                (false, _) => "",
            };
            format!(
                "pool {label}: {protocol} grants nothing while a node that it needs is away; \
                 {third}{moves}`protocol = \"arbiter\"` or `\"table\"` goes on without any one \
                 node"
            )
        };
        self.pools.iter().filter(fragile).map(stops).collect()
    }

    /// Whether this node founds the charter, if the cluster is new: the first of the members.
    pub fn founds_charter(&self) -> bool {
        self.charter.is_some() && self.me == NodeId(0)
    }

    /// Whether any pool writes down what it must not forget.
    pub(crate) fn keeps_journal(&self) -> bool {
        self.pools.iter().any(|pool| pool.protocol.about.reads_records)
    }

    /// The longest time for which anything promised under this configuration may be in use.
    pub fn lease_max(&self) -> Duration {
        self.pools.iter().map(|pool| pool.lease.length()).max().unwrap_or_default()
    }
}

fn read(text: &str) -> Result<low::File, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::Text(error.to_string()))
}

/// What a parser says, without the lines of the file that it shows: they begin with a bar, with or
/// without a number before it.
fn without_source(said: &str) -> String {
    let shows = |line: &&str| {
        line.trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start()
            .starts_with('|')
    };
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && !shows(line));
    lines.collect::<Vec<_>>().join(": ")
}

fn twice(names: &[String]) -> Option<String> {
    let mut sorted = names.to_vec();
    sorted.sort();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

/// FNV-1a: enough to notice a difference that nobody intended.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
