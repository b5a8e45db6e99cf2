//! The configuration as it is written: a TOML file, every field of it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::Deserialize;

use super::Address;

/// The file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The cluster's name; nodes of another cluster are refused.
    pub(super) cluster: String,
    /// Grows with every change of what members must agree on.
    pub(super) epoch: u32,
    /// This node's name, one of the members.
    pub(super) node: String,
    /// What `quorate init` says since.
    pub(super) bootstrap: Option<bool>,
    /// Where this node keeps how often it was started, and the journal of durable pools.
    pub(super) data_dir: Option<PathBuf>,
    /// Whoever takes claims back must show this; anybody may if there is none.
    pub(super) admin_token: Option<String>,
    /// How much the node tells in its log.
    pub(super) log: Option<String>,
    /// Those who may do something, where not everybody may.
    #[serde(default)]
    pub(super) tokens: Vec<Token>,
    /// The same for clients that show a certificate.
    #[serde(default)]
    pub(super) certificates: Vec<Token>,
    /// Where it is written down who did what.
    pub(super) audit: Option<Audit>,
    /// What holds for all of them.
    pub(super) rights: Option<Rights>,
    /// Where the files are that encryption needs.
    pub(super) tls: Option<super::Tls>,
    /// What other tools may speak here, and which pools they mean.
    #[serde(default)]
    pub(super) gateways: super::Gateways,
    /// Whether a replicated document says who decides, and how fast it goes.
    pub(super) charter: Option<Charter>,
    /// Where to listen.
    pub(super) listen: Listen,
    /// How long another node may be silent before it is suspected to have crashed.
    #[serde(default = "three_seconds")]
    pub(super) suspect_after: String,
    /// All nodes of the cluster, this one too, in the same order everywhere.
    pub(super) members: Vec<Member>,
    /// The pools.
    #[serde(default)]
    pub(super) pools: Vec<Pool>,
    /// The largest numbers of connections, claims, pools and bytes that this node accepts.
    #[serde(default)]
    pub(super) limits: super::Limits,
}

/// Where to listen.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Listen {
    /// For clients: HTTP and the client link.
    pub(super) clients: SocketAddr,
    /// For the other members.
    pub(super) peers: SocketAddr,
    /// A Unix socket for clients of this machine.
    pub(super) local: Option<PathBuf>,
    /// From which address to call the other members; any unless said otherwise.
    pub(super) source: Option<IpAddr>,
}

/// A token, as `quorate token new` prints it, or the client of a certificate.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Token {
    /// Whose it is.
    pub(super) name: String,
    /// Its hash: 64 hexadecimal digits. Certificates have none.
    pub(super) sha256: Option<String>,
    /// What it may do: see, claim, revoke, admin.
    pub(super) may: Vec<String>,
    /// In which pools: names, or patterns with one `*`.
    pub(super) pools: Vec<String>,
    /// Most units of one claim.
    pub(super) most_units: Option<u32>,
    /// What its clients may call themselves; without any, `name`.
    #[serde(default)]
    pub(super) clients: Vec<String>,
    /// The day from which it is worth nothing, like 2027-02-14.
    pub(super) expires: Option<String>,
}

/// What tokens of the charter may do: the same without what is each token's own.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Right {
    /// What they may do: see, claim, revoke, admin.
    pub(super) may: Vec<String>,
    /// In which pools: names, or patterns with one `*`.
    pub(super) pools: Vec<String>,
    /// Most units of one claim.
    pub(super) most_units: Option<u32>,
    /// What their clients may call themselves; without any, as the token is called.
    #[serde(default)]
    pub(super) clients: Vec<String>,
}

/// Where the audit goes.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Audit {
    /// A file; without one, standard error.
    pub(super) file: Option<PathBuf>,
    /// How large it may become before it is renamed.
    #[serde(default = "sixteen_mebibytes")]
    pub(super) max_bytes: u64,
}

fn sixteen_mebibytes() -> u64 {
    16 << 20
}

/// What holds for all tokens.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Rights {
    /// Whether `/metrics` needs no token.
    #[serde(default)]
    pub(super) open_metrics: bool,
}

/// Who decides may change.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Charter {
    /// Whether.
    pub(super) enabled: bool,
    /// How long a node may decide without being told again that it may.
    #[serde(default = "one_second")]
    pub(super) licence: String,
    /// How long a member may be silent before others decide in its place.
    #[serde(default = "a_second_and_a_half")]
    pub(super) suspect_after: String,
    /// Whether members join while nodes run.
    #[serde(default)]
    pub(super) joins: bool,
    /// Whether the cluster ran without a charter before.
    #[serde(default)]
    pub(super) import: bool,
}

fn one_second() -> String {
    "1s".into()
}

fn a_second_and_a_half() -> String {
    "1500ms".into()
}

/// A node of the cluster.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    /// Its name.
    pub(super) name: String,
    /// Where the others reach it.
    pub(super) peers: Address,
}

/// A file of pools alone.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Pools {
    #[serde(default, rename = "pools")]
    pub(super) _pools: Vec<Pool>,
}

/// A pool, or a pattern for pools that are made on demand.
#[derive(Deserialize, Debug)]
pub(super) struct Pool {
    /// Its name, or...
    pub(super) name: Option<String>,
    /// ...a pattern with one `*`: every name that matches is a pool of its own, once it is used.
    pub(super) pattern: Option<String>,
    /// How many units it has, or each with its name and labels, or...
    pub(super) units: Option<Units>,
    /// ...their names.
    pub(super) unit_names: Option<Vec<String>>,
    /// Least units a claim may ask for; 1 unless said otherwise.
    pub(super) claim_min: Option<u32>,
    /// Most units a claim may ask for; all unless said otherwise.
    pub(super) claim_max: Option<u32>,
    /// Who decides: a name of [`crate::protocols::REGISTRY`], the first unless said otherwise.
    pub(super) protocol: Option<String>,
    /// How long a grant lasts without renewal.
    #[serde(default = "ten_seconds")]
    pub(super) lease: String,
    /// How far the rates of any two clocks may differ, in millionths.
    #[serde(default = "two_hundred")]
    pub(super) drift_ppm: u32,
    /// How long an arbiter that forgot waits before it promises anything; at least one lease.
    pub(super) grace: Option<String>,
    /// Whether claims may ask for holds without a lease.
    #[serde(default)]
    pub(super) standing: bool,
    /// After how long such a hold is overdue: shown, counted and alerted, never taken away.
    pub(super) overdue: Option<String>,
    /// Units that are not for everybody.
    #[serde(default)]
    pub(super) reserved: Vec<Reserved>,
    /// The protocol's own options (see `options`).
    #[serde(flatten)]
    pub(super) options: toml::Table,
}

/// The units of a pool.
#[derive(Deserialize, Debug)]
#[serde(
    untagged,
    expecting = "write units = 4 or units = [{ name = \"a\", labels = { k = \"v\" } }]"
)]
pub(super) enum Units {
    /// So many, all alike.
    Count(u32),
    /// These.
    Each(Vec<Unit>),
}

/// A unit that differs from others.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Unit {
    /// What it is called.
    pub(super) name: String,
    /// What is known of it.
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
}

/// Units that only some may use.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Reserved {
    /// Which: all that have these labels, or...
    #[serde(rename = "where", default)]
    pub(super) labels: BTreeMap<String, String>,
    /// ...these, by name.
    #[serde(default)]
    pub(super) units: Vec<String>,
    /// For clients of these members...
    pub(super) members: Option<Vec<String>>,
    /// ...and for clients with these names: each with one `*` at most, which stands for anything.
    pub(super) clients: Option<Vec<String>>,
}

fn three_seconds() -> String {
    "3s".into()
}

fn ten_seconds() -> String {
    "10s".into()
}

fn two_hundred() -> u32 {
    200
}
