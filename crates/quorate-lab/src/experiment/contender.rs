//! The protocols that can be compared: the words that choose one, as behind `--protocol`, so that
//! whatever `sim run` can do a sweep can.

use std::fmt;
use std::sync::Mutex;

use clap::Parser as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::setting::{Parameter, Setting};
use crate::protocols::{Chosen, Does, Options};

/// A protocol with its options, by the words that choose it.
#[derive(Clone, Copy)]
pub(crate) struct Contender(&'static Entry);

struct Entry {
    /// As it was written.
    name: String,
    chosen: Chosen,
}

/// Each is made once and lives as long as the program, so that settings can be copied.
static KNOWN: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

/// Shorter names, older than the words.
const SHORT: [(&str, &str); 6] = [
    ("arbiter-uniform", "arbiter --survive 0"),
    ("arbiter-cube", "arbiter --family cube --survive 0"),
    ("raymond", "broadcast --variant raymond"),
    ("raynal", "broadcast --variant raynal"),
    ("timer-free", "broadcast --variant timer-free"),
    ("weighted", "broadcast --variant weighted"),
];

#[derive(clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    chosen: Chosen,
}

impl Contender {
    /// The one that these words choose.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn new(name: &str) -> anyhow::Result<Contender> {
        let mut known = KNOWN.lock().expect("nobody panics with it");
        if let Some(entry) = known.iter().find(|entry| entry.name == name) {
            return Ok(Contender(entry));
        }
        let words = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, words)| words);
        let words = std::iter::once("--protocol".to_owned()).chain(split(words));
        let chosen = Words::try_parse_from(words).map_err(|error| {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
            anyhow::anyhow!("\"{name}\" is no protocol: {first}")
        })?;
        chosen.chosen.does().map_err(|error| error.context(format!("\"{name}\"")))?;
        let entry = Box::leak(Box::new(Entry { name: name.to_owned(), chosen: chosen.chosen }));
        known.push(entry);
        Ok(Contender(entry))
    }

    fn of(name: &str) -> Contender {
        Contender::new(name).expect("one of ours")
    }

    /// Raymond 1989.
    pub(crate) fn raymond() -> Contender {
        Contender::of("raymond")
    }

    /// Bouillaguet, Arantes and Sens 2009, corrected.
    pub(crate) fn timer_free() -> Contender {
        Contender::of("timer-free")
    }

    /// Its name, as in files and legends.
    pub(crate) fn name(self) -> &'static str {
        &self.0.name
    }

    /// What can be done with it.
    pub(crate) fn does(self) -> Does {
        self.0.chosen.does().expect("it was asked when it was made")
    }

    /// Its options in a setting.
    pub(crate) fn options(self, setting: &Setting) -> Options {
        let mut options = self.0.chosen.options.clone();
        setting.choose(&mut options);
        options
    }

    /// The name of the variant, or of the protocol.
    fn kind(self) -> &'static str {
        let chosen = &self.0.chosen;
        chosen.options.variant().unwrap_or(match chosen.protocol.name {
            "broadcast" => "weighted",
            other => other,
        })
    }

    /// Whether it has such a parameter.
    pub(crate) fn has(self, parameter: Parameter) -> bool {
        let finds_crashes = matches!(self.kind(), "timer-free" | "weighted");
        let is_paper = matches!(self.kind(), "raymond" | "raynal" | "sharing");
        match parameter {
            Parameter::CrashesMax | Parameter::Notices => finds_crashes,
            Parameter::Probe | Parameter::Reclaim => finds_crashes,
            Parameter::NodeUnitsMax => self.kind() == "weighted",
            Parameter::Retry => !is_paper,
            Parameter::Lease => !is_paper && self.kind() != "timer-free",
            _ => true,
        }
    }

    /// A setting without what the protocol does not have, but on the axis `x` it stays where it is.
    pub(crate) fn settle(self, setting: Setting, x: Parameter) -> Setting {
        let has = |parameter| parameter == x || self.has(parameter);
        Setting {
            crashes_max: setting.crashes_max.filter(|_| has(Parameter::CrashesMax)),
            node_units_max: setting.node_units_max.filter(|_| self.has(Parameter::NodeUnitsMax)),
            notices: has(Parameter::Notices) && setting.notices,
            probe: setting.probe.filter(|_| has(Parameter::Probe)),
            reclaim: setting.reclaim.filter(|_| self.has(Parameter::Reclaim)),
            lease: if has(Parameter::Lease) { setting.lease } else { 0.0 },
            retry: if has(Parameter::Retry) { setting.retry } else { 0.0 },
            ..setting
        }
    }
}

impl fmt::Debug for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Contender {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Serialize for Contender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Contender {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Contender::new(&name).map_err(|error| serde::de::Error::custom(format!("{error:#}")))
    }
}

/// Words as a shell would have them, with single quotes around what has blanks.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in text.split('\'').enumerate() {
        match place % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_what_they_choose_on_a_command_line() {
        let same = Contender::new("arbiter --family 'majority' --hedge 1").unwrap();
        assert_eq!(same.0.chosen.options.to_string(), " --family majority --hedge 1");
        assert_eq!(Contender::raymond().kind(), "raymond");
        assert_eq!(Contender::new("broadcast").unwrap().kind(), "weighted");
        for (words, what) in [
            ("paxos", "\"paxos\" is no protocol: invalid value 'paxos'"),
            ("central --family grid", "only arbiter, ticket and table have --family grid"),
            ("ring --speed 3", "unexpected argument '--speed'"),
        ] {
            let error = format!("{:#}", Contender::new(words).unwrap_err());
            assert!(error.contains(what), "{error}");
        }
    }
}
