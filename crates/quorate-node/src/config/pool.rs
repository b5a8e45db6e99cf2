//! A pool as the configuration means it.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::parse_span;
use quorate_core::{Lease, NodeId, Unit};
use quorate_protocols::allocator::labels::{Labels, is_label};
use quorate_protocols::voting::Worth;

use super::added::Past;
use super::charter::Chartered;
use super::options::{Basis, Options};
use super::reserved::{self, Reserved};
use super::{ConfigError, low};
use crate::protocols::{self, Promises, ProtocolDef, Registered};

/// Longest name of a pool, in bytes.
pub const POOL_NAME_MAX: usize = 128;
/// Most units of a pool: a grant of all of them fits in one frame, between nodes and to a client.
pub const POOL_UNITS_MAX: u32 = 1 << 16;
/// Shortest and longest lease. Shorter ones cannot be renewed in time, longer ones hold the units
/// of the dead for too long to be of use.
const LEASE_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(86_400));

/// A pool, or a pattern for many.
#[derive(Clone, Debug)]
pub struct PoolDef {
    /// Which pools this is about.
    pub names: Names,
    /// How many units each has.
    pub units: u32,
    /// The most that it ever had, for one that changes while nodes run: holders may have units that
    /// it has no more.
    pub(crate) ever: Option<u32>,
    /// Its units that are out of service by the charter, ascending.
    pub(crate) drained: Vec<u32>,
    /// Whether it was deleted: then it has no units, and whoever has some gives them back.
    pub(crate) deleted: bool,
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
    /// Who decides.
    pub protocol: ProtocolDef,
    /// What that means for people.
    pub promises: Promises,
    /// What its quorums are worth, if quorums decide.
    pub quorums: Option<Worth>,
    /// Whether claims may ask for holds without a lease...
    pub standing: bool,
    /// ...and after how long such a hold is overdue. Each node decides.
    pub overdue: Option<Duration>,
    /// Units that are not for everybody.
    pub reserved: Vec<Reserved>,
    /// Whether an administrator may scramble a seat to see the pool heal. Each node decides.
    pub allow_corruption: bool,
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

impl Names {
    /// Every pool there can be.
    pub(crate) fn all() -> Names {
        Names::Like { prefix: String::new(), suffix: String::new() }
    }

    /// How they are written: a name or a pattern.
    pub fn label(&self) -> String {
        match self {
            Names::One(name) => name.clone(),
            Names::Like { prefix, suffix } => format!("{prefix}*{suffix}"),
        }
    }

    /// What was written, if it is a name or a pattern.
    pub(crate) fn read(label: &str) -> Option<Names> {
        let is_pattern = label.contains('*');
        let (name, pattern) = (Some(label.to_owned()), None);
        let (name, pattern) = if is_pattern { (pattern, name) } else { (name, pattern) };
        names(name, pattern).ok()
    }

    /// Whether this pool is among them. A name is one that [`is_pool_name`] accepts.
    pub fn covers(&self, name: &str) -> bool {
        match self {
            Names::One(own) => own == name,
            Names::Like { prefix, suffix } => {
                name.len() >= prefix.len() + suffix.len()
                    && name.starts_with(prefix.as_str())
                    && name.ends_with(suffix.as_str())
            }
        }
    }

    /// Whether a pool can be among both. Never no if there is one.
    pub(crate) fn may_share(&self, other: &Names) -> bool {
        let (one, two) = match (self, other) {
            (Names::One(name), names) | (names, Names::One(name)) => return names.covers(name),
            (Names::Like { prefix: a, suffix: x }, Names::Like { prefix: b, suffix: y }) => {
                ((a, b), (x, y))
            }
        };
        let begin_alike = one.0.starts_with(one.1.as_str()) || one.1.starts_with(one.0.as_str());
        begin_alike && (two.0.ends_with(two.1.as_str()) || two.1.ends_with(two.0.as_str()))
    }
}

impl PoolDef {
    /// How the definition is written: a name or a pattern.
    pub fn label(&self) -> String {
        self.names.label()
    }

    /// Most units that can be held.
    pub(crate) fn most(&self) -> u32 {
        self.ever.map_or(self.units, |ever| ever.max(self.units))
    }

    /// The units that a client may show that has some: this node may not have heard yet what there
    /// is.
    pub(crate) fn most_shown(&self) -> u32 {
        self.ever.map_or(self.units, |_| u32::MAX)
    }

    /// What is known of its units at first, if they differ.
    pub fn labels(&self) -> Option<&Arc<Labels>> {
        self.protocol.about.labels.as_ref()
    }

    /// The units that a client may use who asks at a member and calls itself this, ascending;
    /// `None` if that is all.
    pub(crate) fn allowed(&self, member: NodeId, client: &str) -> Option<Arc<[Unit]>> {
        reserved::allowed(&self.reserved, self.units, member, Some(client))
    }

    /// How many of so many members may be lost.
    pub(crate) fn survives(&self, members: usize) -> u32 {
        match self.protocol.about.seat_moves {
            true => Chartered::survives(members),
            false => self.promises.survives,
        }
    }

    /// Whether what is held must move to other members in time when one crashes. Nothing helps
    /// where no crash is survived, and what enough members know of need not move.
    pub(super) fn moves_grants(&self) -> bool {
        let survives = self.promises.survives;
        self.protocol.about.spares.is_some_and(|spares| spares < survives)
    }

    /// What every member must agree on, in one line.
    pub(super) fn canonical(&self) -> String {
        let PoolDef { units, unit_names, claim_min, claim_max, .. } = self;
        let (lease, drift) = (self.lease.length().as_nanos(), self.lease.drift_ppm());
        let (grace, protocol) = (self.grace.as_nanos(), &self.protocol.about.canonical);
        let reserved = match &self.reserved[..] {
            [] => String::new(),
            reserved => format!(" {reserved:?}"),
        };
        let standing = if self.standing { " standing" } else { "" };
        format!(
            "pool {:?} {units} {unit_names:?} {claim_min}..{claim_max} lease {lease} drift {drift} \
             grace {grace} {protocol}{standing}{reserved}\n",
            self.label()
        )
    }

    pub(super) fn read(
        pool: low::Pool,
        registry: &[Registered],
        members: &[String],
        (epoch, charter, past): (u32, Option<Chartered>, Option<Past>),
    ) -> Result<PoolDef, ConfigError> {
        let names = names(pool.name, pool.pattern)?;
        let label = names.label();
        let wrong = |what: String| ConfigError::Pool { pool: label.clone(), what };
        let mut labels = None;
        let (units, unit_names) = match (pool.units, pool.unit_names) {
            (Some(low::Units::Count(units)), None) => (units, Vec::new()),
            (Some(low::Units::Each(each)), None) => {
                labels = Some(read_labels(&each).map_err(&wrong)?);
                let names: Vec<String> = each.into_iter().map(|unit| unit.name).collect();
                (u32::try_from(names.len()).unwrap_or(u32::MAX), names)
            }
            (None, Some(names)) => (u32::try_from(names.len()).unwrap_or(u32::MAX), names),
            _ => return Err(wrong("give either units or unit_names".into())),
        };
        if units == 0 || units > POOL_UNITS_MAX {
            return Err(wrong(format!("{units} units: choose 1 to {POOL_UNITS_MAX}")));
        }
        if let Some(name) = unit_names.iter().find(|name| !is_unit_name(name)) {
            return Err(wrong(format!(
                "{name:?} is no name of a unit: 1 to {POOL_NAME_MAX} bytes, no comma and no \
                 control characters, since commands are told names with commas between them"
            )));
        }
        let mut sorted = unit_names.clone();
        sorted.sort();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("two units are named {:?}", twice[0])));
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
        let lease = Lease::new(length, pool.drift_ppm);
        let none = Labels::default();
        let known = labels.as_deref().unwrap_or(&none);
        if labels.is_none() && !pool.reserved.is_empty() {
            return Err(wrong("reserved: only units with names and labels can be".into()));
        }
        let reserved: Vec<Reserved> = pool
            .reserved
            .into_iter()
            .map(|rule| Reserved::read(rule, known, members))
            .collect::<Result<_, _>>()
            .map_err(&wrong)?;
        let standing = pool.standing;
        let overdue = pool.overdue.as_deref().map(span).transpose()?;
        if overdue.is_some() && !standing {
            return Err(wrong(
                "overdue is about holds without a lease: say standing = true".into(),
            ));
        }
        let mut options = Options::new(pool.options);
        let basis = Basis {
            units,
            past: past.clone(),
            labels,
            reserved: &reserved,
            lease,
            members,
            epoch,
            standing,
            charter,
        };
        let name = pool.protocol.as_deref().unwrap_or(registry[0].name);
        let (protocol, quorums) =
            protocols::read(registry, name, &basis, &mut options).map_err(&wrong)?;
        let allow_corruption = match protocol.heals {
            true => options.take("allow_corruption").map_err(&wrong)?,
            false => None,
        };
        options.finish(registry, name).map_err(&wrong)?;
        let most = protocol.about.claim_max.unwrap_or(units);
        let (claim_min, claim_max) = (pool.claim_min.unwrap_or(1), pool.claim_max.unwrap_or(most));
        if !(1 <= claim_min && claim_min <= claim_max && claim_max <= most) {
            return Err(wrong(format!(
                "claims of {claim_min} to {claim_max} units of a pool of {units}: \
                 1 <= claim_min <= claim_max <= {most} must hold"
            )));
        }
        let mut promises = protocol.rules.promises(members.len());
        if protocol.about.seat_moves {
            promises.survives = promises.survives.min(Chartered::survives(members.len()));
        }
        if let Some(worth) = &quorums {
            promises.survives = u32::try_from(worth.summary.survives).unwrap_or(u32::MAX);
        }
        // Of the members that keep its books, any minority may be lost for good; where there are
        // three, one disk is not enough.
        let voters = quorums.as_ref().map_or(members.len(), |worth| worth.summary.voters);
        let voters = voters.max(members.len().min(3));
        let minority = voters.saturating_sub(1) / 2;
        if standing && (promises.survives as usize) < minority {
            return Err(wrong(format!(
                "standing: holds without a lease must outlive any {minority} of {voters} members, \
                 and these quorums outlive any {}: leave out family, voters and survive",
                promises.survives
            )));
        }
        if !promises.names_units && !unit_names.is_empty() {
            return Err(wrong(format!(
                "{name} only counts units and cannot say who has which: give units, not unit_names"
            )));
        }
        let deleted = past.as_ref().is_some_and(|past| past.deleted);
        Ok(PoolDef {
            names,
            units: if deleted { 0 } else { units },
            ever: past.as_ref().map(|past| past.units.max(units)),
            drained: past.map_or_else(Vec::new, |past| {
                past.drained.into_iter().filter(|unit| *unit < units).collect()
            }),
            deleted,
            unit_names,
            claim_min,
            claim_max,
            lease,
            grace,
            protocol,
            promises,
            quorums,
            standing,
            overdue,
            reserved,
            allow_corruption: allow_corruption.unwrap_or(false),
        })
    }
}

fn read_labels(units: &[low::Unit]) -> Result<Arc<Labels>, String> {
    let all = units.iter().flat_map(|unit| unit.labels.iter().map(move |pair| (unit, pair)));
    for (unit, (key, value)) in all {
        if let Some(wrong) = [key, value].into_iter().find(|text| !is_label(text)) {
            let name = &unit.name;
            return Err(format!(
                "unit {name:?}: {wrong:?} is no label: use 1 to 64 letters, digits, '.', '_', '-'"
            ));
        }
    }
    let known = units.iter().map(|unit| (unit.name.clone(), unit.labels.clone()));
    Ok(Arc::new(Labels::new(known.collect())))
}

fn is_unit_name(name: &str) -> bool {
    (1..=POOL_NAME_MAX).contains(&name.len())
        && !name.contains(|c: char| c == ',' || c.is_control())
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

/// Whether a text can be the name of a pool: 1 to 128 letters, digits, and `.`, `_`, `-`, `:`.
pub fn is_pool_name(name: &str) -> bool {
    (1..=POOL_NAME_MAX).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-:".contains(&c))
}
