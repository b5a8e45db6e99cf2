//! The options of a pool's protocol, as they were written. Each protocol takes its own; what is
//! left over is refused.

use std::time::Duration;

use quorate_api::{format_span, parse_span};
use quorate_protocols::Fairness;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// Every option of any protocol, and who has it. A new option is a line here and one where its
/// protocol takes it.
const OPTIONS: &[(&str, &[&str])] = &[
    ("allow_corruption", &["ring"]),
    ("arbiter", &["central"]),
    ("crashes_max", &["broadcast"]),
    ("durable", &["arbiter", "central", "table"]),
    ("fairness", &["arbiter", "central", "table"]),
    ("family", &["arbiter", "table"]),
    ("grants_max", &["ring"]),
    ("hedge", &["arbiter"]),
    ("idle", &["ring"]),
    ("max_holders", &["arbiter"]),
    ("mode", &["arbiter"]),
    ("naming", &["arbiter"]),
    ("node_units_max", &["broadcast"]),
    ("patience", &["arbiter", "table"]),
    ("probe", &["broadcast"]),
    ("reclaim", &["broadcast"]),
    ("retry", &["arbiter", "broadcast", "central", "table"]),
    ("spares", &["arbiter"]),
    ("survive", &["arbiter", "table"]),
    ("timeout", &["ring"]),
    ("ttl", &["ring"]),
    ("voters", &["arbiter", "table"]),
];

/// Shortest span that a protocol waits before it does something again.
pub(super) const SHORTEST: Duration = Duration::from_millis(10);

/// What is written about a pool beyond what all pools have.
pub(super) struct Options {
    given: Table,
}

impl Options {
    pub(super) fn new(given: Table) -> Self {
        Options { given }
    }

    /// An option, if it is given.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        let value: Option<Value> = self.given.remove(name);
        let read = |value: Value| value.try_into().map_err(|error| format!("{name}: {error}"));
        value.map(read).transpose()
    }

    /// A number in a range.
    pub(super) fn number(
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
    pub(super) fn span(&mut self, name: &str) -> Result<Option<Duration>, String> {
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
    pub(super) fn fairness(&mut self) -> Result<Fairness, String> {
        let text: String = self.take("fairness")?.unwrap_or_else(|| "fifo".into());
        let fairness = match text.split_once(':') {
            None if text == "fifo" => Some(Fairness::Fifo),
            Some(("backfill", bound)) => bound.parse().ok().map(Fairness::Backfill),
            _ => None,
        };
        fairness.ok_or_else(|| format!("fairness {text:?}: choose \"fifo\" or \"backfill:N\""))
    }

    /// Refuses what no one took.
    pub(super) fn finish(self, protocol: &str) -> Result<(), String> {
        let Some(name) = self.given.keys().next() else { return Ok(()) };
        let owners = OPTIONS.iter().find(|(option, _)| option == name).map(|(_, owners)| *owners);
        Err(match owners {
            None => format!("unknown field `{name}`"),
            Some(owners) if owners.contains(&protocol) => {
                format!("{name} means nothing beside the other options of this pool")
            }
            Some(owners) => {
                let owners = owners.join(", ");
                format!("{name} is an option of {owners}, and this pool's protocol is {protocol}")
            }
        })
    }
}
