//! What units are called and what is known of them, and how claims choose by it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quorate_core::Unit;

/// The names and labels of a pool's units.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Labels {
    units: Vec<(String, BTreeMap<String, String>)>,
    /// All units...
    all: Arc<[Unit]>,
    /// ...and those that have a label, by key and value.
    having: BTreeMap<(String, String), Arc<[Unit]>>,
}

/// Which labels a unit must have: all of these. None means any unit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Selector(BTreeMap<String, String>);

impl Labels {
    /// Units in order, each with its name and labels.
    pub fn new(units: Vec<(String, BTreeMap<String, String>)>) -> Self {
        let mut labels = Labels { units, ..Labels::default() };
        labels.index();
        labels
    }

    fn index(&mut self) {
        self.all = (0..self.units.len() as u32).map(Unit).collect();
        let mut having: BTreeMap<(String, String), Vec<Unit>> = BTreeMap::new();
        for (unit, (_, labels)) in self.units.iter().enumerate() {
            for (key, value) in labels {
                let units = having.entry((key.clone(), value.clone())).or_default();
                units.push(Unit(unit as u32));
            }
        }
        self.having = having.into_iter().map(|(label, units)| (label, units.into())).collect();
    }

    /// How many units there are.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether nothing is known of any unit.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// What a unit is called.
    pub fn name(&self, unit: Unit) -> Option<&str> {
        self.units.get(unit.index()).map(|(name, _)| name.as_str())
    }

    /// What is known of a unit.
    pub fn of(&self, unit: Unit) -> Option<&BTreeMap<String, String>> {
        self.units.get(unit.index()).map(|(_, labels)| labels)
    }

    /// The same with other labels for some units. Claims that choose by them must be chosen for
    /// again.
    pub fn with(mut self, other: &BTreeMap<Unit, BTreeMap<String, String>>) -> Self {
        for (unit, labels) in other {
            if let Some((_, known)) = self.units.get_mut(unit.index()) {
                known.clone_from(labels);
            }
        }
        self.index();
        self
    }

    /// All units, ascending.
    pub fn all(&self) -> &Arc<[Unit]> {
        &self.all
    }

    /// The units that will do, ascending.
    pub fn select(&self, selector: &Selector) -> Arc<[Unit]> {
        self.having(&selector.0)
    }

    /// The units that have all these labels, ascending.
    pub fn having(&self, wanted: &BTreeMap<String, String>) -> Arc<[Unit]> {
        let having = |(key, value): (&String, &String)| {
            self.having.get(&(key.clone(), value.clone())).cloned().unwrap_or_default()
        };
        let Some(fewest) = wanted.iter().map(having).min_by_key(|units| units.len()) else {
            return Arc::clone(&self.all);
        };
        if wanted.len() == 1 {
            return fewest;
        }
        let has_all = |unit: &Unit| {
            let labels = &self.units[unit.index()].1;
            wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
        };
        fewest.iter().copied().filter(has_all).collect()
    }

    /// The shortest description of exactly these units: labels they have in common and no other
    /// unit has, else their names. Nothing if it is all of them.
    pub fn describe(&self, units: &[Unit]) -> String {
        if units.len() >= self.units.len() {
            return String::new();
        }
        let common = units.iter().filter_map(|unit| self.of(*unit)).cloned().reduce(|mut a, b| {
            a.retain(|key, value| b.get(key) == Some(value));
            a
        });
        let mut selector = Selector(common.unwrap_or_default());
        if *self.select(&selector) == *units {
            let keys: Vec<String> = selector.0.keys().cloned().collect();
            for key in keys {
                let mut fewer = selector.clone();
                fewer.0.remove(&key);
                if *self.select(&fewer) == *units {
                    selector = fewer;
                }
            }
            return format!("with {selector}");
        }
        let names = units.iter().take(NAMES_MAX).filter_map(|unit| self.name(*unit));
        let names = names.collect::<Vec<_>>().join(", ");
        let rest = units.len().saturating_sub(NAMES_MAX);
        if rest > 0 { format!("({names} and {rest} more)") } else { format!("({names})") }
    }
}

/// Longest key and longest value, in bytes.
const LABEL_MAX: usize = 64;

/// Whether a text can be the key or the value of a label.
pub fn is_label(text: &str) -> bool {
    (1..=LABEL_MAX).contains(&text.len())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c))
}

/// More names than this are not listed.
const NAMES_MAX: usize = 8;

impl From<BTreeMap<String, String>> for Selector {
    fn from(labels: BTreeMap<String, String>) -> Self {
        Selector(labels)
    }
}

impl FromStr for Selector {
    type Err = String;

    /// `gpu=h100,zone=eu`; nothing means any unit.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let pair = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            match pair {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    if all.insert(key.to_owned(), value.to_owned()).is_some_and(|v| v != value) {
                        return Err(format!("no unit has two values of {key}"));
                    }
                }
                _ => return Err(format!("'{part}' is no label: write key=value")),
            }
        }
        Ok(Selector(all))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (key, value)) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            write!(f, "{comma}{key}={value}")?;
        }
        Ok(())
    }
}
