//! What a pool's protocol is told: what is said of every pool, and its own options as they were
//! written. Each protocol takes its own; what is left over is refused.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::{format_span, parse_span};
use quorate_core::{Lease, NodeId, Unit};
use quorate_protocols::Fairness;
use quorate_protocols::allocator::labels::Labels;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::added::Past;
use super::charter::Chartered;
use super::reserved::{self, Reserved};
use crate::protocols::{self, Registered};

/// What every protocol is told.
pub(crate) struct Basis<'a> {
    pub(crate) units: u32,
    /// What it was before, for a pool that changes while nodes run.
    pub(crate) past: Option<Past>,
    /// What is known of each unit, if they differ.
    pub(crate) labels: Option<Arc<Labels>>,
    /// Units that are not for everybody.
    pub(crate) reserved: &'a [Reserved],
    pub(crate) lease: Lease,
    pub(crate) members: &'a [String],
    /// The cluster's epoch.
    pub(crate) epoch: u32,
    /// Whether claims may ask for holds without a lease.
    pub(crate) standing: bool,
    /// Whether seats can move, and how.
    pub(crate) charter: Option<Chartered>,
}

impl Basis<'_> {
    pub(crate) fn nodes(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// Which units the clients of each member may use, whoever they are; `None` if any.
    pub(crate) fn eligible(&self) -> Option<Arc<[Arc<[Unit]>]>> {
        let one = |member| reserved::allowed(self.reserved, self.units, NodeId(member), None);
        let each: Vec<Option<Arc<[Unit]>>> = (0..self.nodes()).map(one).collect();
        let all = || (0..self.units).map(Unit).collect();
        let differ = each.iter().any(Option::is_some);
        differ.then(|| each.into_iter().map(|units| units.unwrap_or_else(all)).collect())
    }
}

/// Shortest span that a protocol waits before it does something again.
pub(crate) const SHORTEST: Duration = Duration::from_millis(10);

/// What is written about a pool beyond what all pools have.
pub(crate) struct Options {
    given: Table,
}

impl Options {
    pub(super) fn new(given: Table) -> Self {
        Options { given }
    }

    /// An option, if it is given.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        let value: Option<Value> = self.given.remove(name);
        let read = |value: Value| value.try_into().map_err(|error| format!("{name}: {error}"));
        value.map(read).transpose()
    }

    /// A number in a range.
    pub(crate) fn number(
        &mut self,
        name: &str,
        (least, most): (u32, u32),
    ) -> Result<Option<u32>, String> {
        match self.take(name)? {
            Some(n) if !(least..=most).contains(&n) => {
                Err(format!("{name} = {n}: choose {least} to {most}"))
            }
            number => Ok(number),
        }
    }

    /// A span of time after which something is done again.
    pub(crate) fn span(&mut self, name: &str) -> Result<Option<Duration>, String> {
        let text: Option<String> = self.take(name)?;
        let read = |text: String| match parse_span(&text) {
            Err(error) => Err(error.to_string()),
            Ok(span) if span < SHORTEST => {
                Err(format!("{name} = {text:?}: choose {} or more", format_span(SHORTEST)))
            }
            Ok(span) => Ok(span),
        };
        text.map(read).transpose()
    }

    /// Who may pass whom.
    pub(crate) fn fairness(&mut self) -> Result<Fairness, String> {
        let text: String = self.take("fairness")?.unwrap_or_else(|| "fifo".into());
        let fairness = match text.split_once(':') {
            None if text == "fifo" => Some(Fairness::Fifo),
            Some(("backfill", bound)) => bound.parse().ok().map(Fairness::Backfill),
            _ => None,
        };
        fairness.ok_or_else(|| format!("fairness {text:?}: choose \"fifo\" or \"backfill:N\""))
    }

    /// Refuses what this protocol, one of these, did not take.
    pub(super) fn finish(self, registry: &[Registered], protocol: &str) -> Result<(), String> {
        let Some(name) = self.given.keys().next() else { return Ok(()) };
        let owners = protocols::owners(registry, name);
        Err(if owners.is_empty() {
            format!("unknown field `{name}`")
        } else if owners.contains(&protocol) {
            format!("{name} means nothing beside the other options of this pool")
        } else {
            let owners = owners.join(", ");
            format!("{name} is an option of {owners}, and this pool's protocol is {protocol}")
        })
    }
}
