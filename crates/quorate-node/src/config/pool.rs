//! A pool as the configuration means it.

use std::time::Duration;

use quorate_api::parse_span;
use quorate_core::{Lease, NodeId, UNITS_MAX};
use quorate_protocols::central::Fairness;

use super::{ConfigError, low};

/// Longest name of a pool, in bytes.
pub const POOL_NAME_MAX: usize = 128;
/// Shortest and longest lease. Shorter ones cannot be renewed in time, longer ones hold the units
/// of the dead for too long to be of use.
const LEASE_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(86_400));

/// A pool, or a pattern for many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolDef {
    /// Which pools this is about.
    pub names: Names,
    /// How many units each has.
    pub units: u32,
    /// Their names, or nothing if they have none.
    pub unit_names: Vec<String>,
    /// Least units a claim may ask for.
    pub claim_min: u32,
    /// Most units a claim may ask for.
    pub claim_max: u32,
    /// How long a grant lasts without renewal.
    pub lease: Lease,
    /// How long an arbiter that forgot waits; at least the lease.
    pub grace: Duration,
    /// Whether grants survive a restart of every node.
    pub durable: bool,
    /// Who may pass whom.
    pub fairness: Fairness,
    /// Who decides.
    pub protocol: ProtocolDef,
}

/// Which pools a definition is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Names {
    /// One.
    One(String),
    /// All that begin and end like this, made when they are first used.
    Like {
        /// What comes before the star...
        prefix: String,
        /// ...and after it.
        suffix: String,
    },
}

/// A protocol and its options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProtocolDef {
    /// One node decides.
    Central {
        /// Which one.
        arbiter: Chosen,
        /// How long a node waits before it asks again.
        retry: Duration,
    },
}

/// How a special node is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// This one.
    Node(NodeId),
    /// By the pool's name, over all members.
    ByName,
}

impl Chosen {
    /// The node for this pool, among so many members.
    pub fn node(self, pool: &str, members: usize) -> NodeId {
        match self {
            Chosen::Node(node) => node,
            Chosen::ByName => {
                let members = u64::try_from(members.max(1)).unwrap_or(u64::MAX);
                NodeId((super::digest(pool.as_bytes()) % members) as u32)
            }
        }
    }
}

impl PoolDef {
    /// How the definition is written: a name or a pattern.
    pub fn label(&self) -> String {
        match &self.names {
            Names::One(name) => name.clone(),
            Names::Like { prefix, suffix } => format!("{prefix}*{suffix}"),
        }
    }

    /// Whether the definition is about this pool. A name is one that [`is_pool_name`] accepts.
    pub fn covers(&self, name: &str) -> bool {
        match &self.names {
            Names::One(own) => own == name,
            Names::Like { prefix, suffix } => {
                name.len() >= prefix.len() + suffix.len()
                    && name.starts_with(prefix.as_str())
                    && name.ends_with(suffix.as_str())
            }
        }
    }

    /// The protocol's name.
    pub fn protocol_name(&self) -> &'static str {
        match self.protocol {
            ProtocolDef::Central { .. } => "central",
        }
    }

    /// What every member must agree on, in one line.
    pub(super) fn canonical(&self) -> String {
        let PoolDef { units, unit_names, claim_min, claim_max, durable, .. } = self;
        let (lease, drift) = (self.lease.length().as_nanos(), self.lease.drift_ppm());
        let (grace, passes) = (self.grace.as_nanos(), self.fairness.overtakes_max());
        let protocol = match &self.protocol {
            ProtocolDef::Central { arbiter: Chosen::ByName, .. } => "central spread".to_owned(),
            ProtocolDef::Central { arbiter: Chosen::Node(node), .. } => format!("central {node}"),
        };
        format!(
            "pool {:?} {units} {unit_names:?} {claim_min}..{claim_max} lease {lease} drift {drift} \
             grace {grace} passes {passes} durable {durable} {protocol}\n",
            self.label()
        )
    }

    pub(super) fn read(pool: low::Pool, members: &[String]) -> Result<PoolDef, ConfigError> {
        let names = names(pool.name, pool.pattern)?;
        let label = match &names {
            Names::One(name) => name.clone(),
            Names::Like { prefix, suffix } => format!("{prefix}*{suffix}"),
        };
        let wrong = |what: String| ConfigError::Pool { pool: label.clone(), what };
        let (units, unit_names) = match (pool.units, pool.unit_names) {
            (Some(units), None) => (units, Vec::new()),
            (None, Some(names)) => (u32::try_from(names.len()).unwrap_or(u32::MAX), names),
            _ => return Err(wrong("give either units or unit_names".into())),
        };
        if units == 0 || units > UNITS_MAX {
            return Err(wrong(format!("{units} units: choose 1 to {UNITS_MAX}")));
        }
        let mut sorted = unit_names.clone();
        sorted.sort();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("two units are named {:?}", twice[0])));
        }
        let (claim_min, claim_max) = (pool.claim_min.unwrap_or(1), pool.claim_max.unwrap_or(units));
        if !(1 <= claim_min && claim_min <= claim_max && claim_max <= units) {
            return Err(wrong(format!(
                "claims of {claim_min} to {claim_max} units of a pool of {units}: \
                 1 <= claim_min <= claim_max <= units must hold"
            )));
        }
        let span = |text: &str| parse_span(text).map_err(|error| wrong(error.to_string()));
        let length = span(&pool.lease)?;
        if length < LEASE_RANGE.0 || length > LEASE_RANGE.1 {
            return Err(wrong(format!("a lease of {}: choose 100ms to 1d", pool.lease)));
        }
        if pool.drift_ppm >= 100_000 {
            return Err(wrong(format!("drift_ppm = {}: choose less than 100000", pool.drift_ppm)));
        }
        let grace = pool.grace.as_deref().map_or(Ok(length), span)?;
        if grace < length {
            return Err(wrong("grace is shorter than the lease: old grants may be in use".into()));
        }
        let fairness = fairness(&pool.fairness).ok_or_else(|| {
            wrong(format!("fairness {:?}: choose \"fifo\" or \"backfill:N\"", pool.fairness))
        })?;
        let protocol = match pool.protocol.as_str() {
            "central" => ProtocolDef::Central {
                arbiter: chosen(&pool.arbiter, members).map_err(&wrong)?,
                retry: span(&pool.retry)?.max(Duration::from_millis(10)),
            },
            other => return Err(wrong(format!("protocol {other:?}: there is only \"central\""))),
        };
        let (lease, durable) = (Lease::new(length, pool.drift_ppm), pool.durable);
        Ok(PoolDef {
            names,
            units,
            unit_names,
            claim_min,
            claim_max,
            lease,
            grace,
            durable,
            fairness,
            protocol,
        })
    }
}

fn names(name: Option<String>, pattern: Option<String>) -> Result<Names, ConfigError> {
    match (name, pattern) {
        (Some(name), None) if is_pool_name(&name) => Ok(Names::One(name)),
        (None, Some(pattern)) => match pattern.split_once('*') {
            Some((prefix, suffix)) if is_pool_name(&format!("{prefix}x{suffix}")) => {
                Ok(Names::Like { prefix: prefix.into(), suffix: suffix.into() })
            }
            _ => Err(ConfigError::PoolName { name: pattern }),
        },
        (Some(name), _) => Err(ConfigError::PoolName { name }),
        (None, None) => Err(ConfigError::PoolName { name: String::new() }),
    }
}

fn fairness(text: &str) -> Option<Fairness> {
    match text.split_once(':') {
        None if text == "fifo" => Some(Fairness::Fifo),
        Some(("backfill", bound)) => bound.parse().ok().map(Fairness::Backfill),
        _ => None,
    }
}

fn chosen(text: &str, members: &[String]) -> Result<Chosen, String> {
    if text == "spread" {
        return Ok(Chosen::ByName);
    }
    let place = members.iter().position(|name| name == text);
    place.map(|place| Chosen::Node(NodeId::from(place))).ok_or_else(|| {
        format!("arbiter {text:?} is not a member: choose one of {members:?} or \"spread\"")
    })
}

/// Whether a text can be the name of a pool: 1 to 128 letters, digits, and `.`, `_`, `-`, `:`.
pub fn is_pool_name(name: &str) -> bool {
    (1..=POOL_NAME_MAX).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-:".contains(&c))
}
