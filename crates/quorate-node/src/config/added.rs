//! Pools that the charter names, beside those of the file: the same words, read by the same code.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use quorate_charter::{Directory, Kept, REQUEST_MAX, TOGETHER_MAX};
use quorate_protocols::LeaseEver;
use toml::{Table, Value};

use super::{Config, ConfigError, Names, PoolDef, low};
use crate::protocols::REGISTRY;

/// What a definition cannot say: its name is known, and patterns are of files.
const NAMED: [&str; 2] = ["name", "pattern"];

/// All pools of the charter, as far as this node has applied it and as somebody wrote them.
pub(crate) type Written = Directory<Kept<String>>;

/// Fewest definitions that are read before those are forgotten that nobody has.
const READ_MIN: usize = 256;

/// Most bytes of a part of a file that is applied: with what the charter writes around them they
/// are a request.
const PART_BYTES: usize = REQUEST_MAX / 2;

/// What the charter keeps of a pool beside what somebody wrote, in this field of its definition.
const FORMERLY: &str = "formerly";
/// How that ends where the pool was deleted.
const DELETED: &str = ", deleted = true }";

/// What a pool was before, as far as that matters for what it is.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Past {
    /// How often it was changed.
    pub(crate) changes: u32,
    /// The most units that it ever had.
    pub(crate) units: u32,
    /// If its lease was ever another than it is or was: the first one and the longest, in
    /// milliseconds.
    #[serde(default)]
    pub(crate) leases: Option<(u64, u64)>,
    /// The units that an operator took out of service, ascending.
    #[serde(default)]
    pub(crate) drained: Vec<u32>,
    /// Names that units had, each with the number of its unit: no other one is called that.
    #[serde(default)]
    pub(crate) named: BTreeMap<String, u32>,
    /// Whether it was deleted. What is written down of it stays, so that fences go on if it is made
    /// again, and nobody is given what somebody has kept.
    #[serde(default)]
    pub(crate) deleted: bool,
}

impl Past {
    /// After one more change of a pool that was like this, and is like that.
    pub(crate) fn after(self, was: &PoolDef, is: &PoolDef, deleted: bool) -> Past {
        let Past { changes, units, leases, drained, mut named, .. } = self;
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let (before, after) = (millis(was.lease.length()), millis(is.lease.length()));
        let leases = match leases {
            None if before == after => None,
            None => Some((before, before.max(after))),
            Some((first, longest)) => Some((first, longest.max(before).max(after))),
        };
        let (changes, units) = (changes.saturating_add(1), units.max(was.units));
        for (unit, name) in (0..).zip(&was.unit_names) {
            if is.unit_names.get(unit as usize) != Some(name) {
                named.insert(name.clone(), unit);
            }
        }
        Past { changes, units, leases, drained, named, deleted }
    }

    /// The first unit whose name is or was that of another one: whoever has that may go by it.
    pub(crate) fn misnamed(&self, was: &PoolDef, is: &PoolDef) -> Option<(String, u32)> {
        let before = |name: &String| was.unit_names.iter().position(|it| it == name);
        (0..).zip(&is.unit_names).find_map(|(unit, name)| {
            let number = before(name).and_then(|unit| u32::try_from(unit).ok());
            let owner = number.or_else(|| self.named.get(name).copied())?;
            (owner != unit).then(|| (name.clone(), owner))
        })
    }

    /// After a unit was taken out of service, or brought back; nothing if it was so before.
    pub(crate) fn draining(self, unit: u32, drains: bool) -> Option<Past> {
        let mut drained: BTreeSet<u32> = self.drained.iter().copied().collect();
        let changes = if drains { drained.insert(unit) } else { drained.remove(&unit) };
        changes.then(|| Past {
            changes: self.changes.saturating_add(1),
            drained: drained.into_iter().collect(),
            ..self
        })
    }

    /// What leases it has had, if there is more than one.
    pub(crate) fn lease_ever(&self) -> Option<LeaseEver> {
        let (first, longest) = self.leases?;
        let [first, longest] = [first, longest].map(Duration::from_millis);
        Some(LeaseEver { first, longest })
    }
}

/// A pool that the charter names.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    /// The index of the entry that last changed it.
    pub(crate) generation: u64,
    /// How often it was changed since it was made.
    pub(crate) edition: u32,
    pub(crate) def: Arc<PoolDef>,
}

/// The same for everybody who asks, replaced as a whole while the node runs. A definition is read
/// when somebody wants to know it, and known for as long as somebody has it: of a hundred thousand
/// pools most are not in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    written: RwLock<Arc<Written>>,
    read: Mutex<ReadOnes>,
}

/// Definitions that were read, by name.
#[derive(Debug, Default)]
struct ReadOnes {
    all: HashMap<String, ReadOne>,
    /// When there are as many, those that nobody has any more are forgotten.
    most: usize,
}

#[derive(Debug)]
struct ReadOne {
    generation: u64,
    edition: u32,
    def: Weak<PoolDef>,
}

impl Registry {
    pub(crate) fn now(&self) -> Arc<Written> {
        Arc::clone(&self.0.written.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on these are there.
    pub(crate) fn replace(&self, written: Arc<Written>) {
        *self.0.written.write().unwrap_or_else(PoisonError::into_inner) = written;
    }

    fn known(&self, name: &str, generation: u64) -> Option<Added> {
        let read = self.0.read.lock().unwrap_or_else(PoisonError::into_inner);
        let one = read.all.get(name).filter(|one| one.generation == generation)?;
        Some(Added { generation, edition: one.edition, def: one.def.upgrade()? })
    }

    fn keep(&self, name: &str, added: &Added) {
        let mut read = self.0.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.all.len() >= read.most {
            read.all.retain(|_, one| one.def.strong_count() > 0);
            read.most = read.all.len() * 2 + READ_MIN;
        }
        let Added { generation, edition, ref def } = *added;
        let one = ReadOne { generation, edition, def: Arc::downgrade(def) };
        read.all.insert(name.to_owned(), one);
    }
}

/// A pool as the charter keeps it: the fields that somebody wrote.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Text(Table);

impl Text {
    /// What somebody wrote about a pool.
    pub(crate) fn read(text: &str) -> Result<Text, String> {
        let fields = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        Text::of(fields)
    }

    fn of(fields: Table) -> Result<Text, String> {
        match NAMED.iter().chain([&FORMERLY]).find(|name| fields.contains_key(**name)) {
            Some(name) => Err(format!("a definition has no {name:?}")),
            None => Ok(Text(fields)),
        }
    }

    /// What the charter keeps of a pool.
    pub(crate) fn kept(text: &str) -> Result<(Text, Past), String> {
        let mut fields: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let past = match fields.remove(FORMERLY) {
            Some(past) => past.try_into().map_err(|error: toml::de::Error| error.to_string())?,
            None => Past::default(),
        };
        Ok((Text::of(fields)?, past))
    }

    /// Whether what the charter keeps is of a pool that was deleted: the last thing it says then.
    pub(crate) fn is_of_deleted(kept: &str) -> bool {
        kept.trim_end().ends_with(DELETED)
    }

    /// The same as the charter keeps it.
    pub(crate) fn keep(&self, past: &Past) -> String {
        if *past == Past::default() {
            return self.lines();
        }
        let Past { changes, units, leases, drained, named, deleted } = past;
        let leases = leases.map(|(first, longest)| format!(", leases = [{first}, {longest}]"));
        let leases = leases.unwrap_or_default();
        let drained = match &drained[..] {
            [] => String::new(),
            drained => format!(", drained = {drained:?}"),
        };
        let names: Table = named.iter().map(|(name, it)| (name.clone(), (*it).into())).collect();
        let named = match names.is_empty() {
            true => String::new(),
            false => format!(", named = {}", inline(&Value::Table(names))),
        };
        let deleted = if *deleted { DELETED } else { " }" };
        let past = format!("changes = {changes}, units = {units}{leases}{drained}{named}{deleted}");
        self.lines() + &format!("{FORMERLY} = {{ {past}\n")
    }

    /// What the fields say.
    pub(super) fn fields<T: serde::de::DeserializeOwned>(&self) -> Result<T, String> {
        let read = self.0.clone().try_into();
        read.map_err(|error: toml::de::Error| error.message().to_owned())
    }

    /// With these fields instead, and without those.
    pub(crate) fn with(&self, fields: &Text, without: &[String]) -> Text {
        let mut all = self.0.clone();
        all.retain(|key, _| !without.iter().any(|name| name == key));
        all.extend(fields.0.clone());
        Text(all)
    }

    /// Which fields differ, each with what it is there and was here, if it was said.
    pub(crate) fn differences(&self, after: &Text) -> Vec<Difference> {
        let keys = self.0.keys().chain(after.0.keys().filter(|key| !self.0.contains_key(*key)));
        let of = |fields: &Table, key: &String| fields.get(key).map(inline);
        let differs = keys.filter(|key| self.0.get(*key) != after.0.get(*key));
        let difference = |key: &String| Difference {
            key: bare(key),
            was: of(&self.0, key),
            is: of(&after.0, key),
        };
        differs.map(difference).collect()
    }

    /// How many units a field lists, if it is a list.
    fn listed(&self, key: &str) -> Option<usize> {
        Some(self.0.get(key)?.as_array()?.len())
    }

    /// Whether a field lists as many units in both, or in neither.
    pub(crate) fn lists_as_many(&self, other: &Text, key: &str) -> bool {
        self.listed(key) == other.listed(key)
    }

    /// The same where a unit with a name has these labels; nothing if units have none.
    pub(crate) fn labelled(&self, unit: usize, labels: &BTreeMap<String, String>) -> Option<Text> {
        let mut all = self.0.clone();
        let each = all.get_mut("units")?.as_array_mut()?.get_mut(unit)?.as_table_mut()?;
        let value = |(key, value): (&String, &String)| (key.clone(), Value::from(value.clone()));
        each.insert("labels".into(), labels.iter().map(value).collect::<Table>().into());
        Some(Text(all))
    }

    /// What a file of pools says, pool by pool.
    pub(crate) fn read_all(text: &str) -> Result<Vec<(String, Text)>, String> {
        let mut file: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let pools = file.remove("pools").unwrap_or_else(|| Value::Array(Vec::new()));
        if let Some(other) = file.keys().next() {
            return Err(format!("{other:?}: a file to apply has [[pools]] and nothing else"));
        }
        let Value::Array(pools) = pools else { return Err("write [[pools]]".into()) };
        let read = |pool: Value| {
            let Value::Table(mut fields) = pool else { return Err("write [[pools]]".to_owned()) };
            if fields.contains_key("pattern") {
                return Err("a pattern is for the nodes' files: pools to apply have names".into());
            }
            match fields.remove("name") {
                Some(Value::String(name)) => Ok((name, Text(fields))),
                _ => Err("every pool to apply has a name".into()),
            }
        };
        let pools: Vec<_> = pools.into_iter().map(read).collect::<Result<_, String>>()?;
        let names: Vec<String> = pools.iter().map(|(name, _)| name.clone()).collect();
        match super::twice(&names) {
            Some(name) => Err(format!("two pools are named {name:?}")),
            None => Ok(pools),
        }
    }

    /// As a file has it, each field in a line.
    pub(crate) fn lines(&self) -> String {
        lines(&self.0)
    }

    /// The same in one line.
    pub(crate) fn line(&self) -> String {
        each(&self.0).collect::<Vec<_>>().join(", ")
    }
}

/// What a file of many pools says, in parts that can each be asked for at once, and how many pools
/// each has. Read as a node reads it.
///
/// # Errors
/// It is none, or names a pool twice.
pub fn parts(text: &str) -> Result<Vec<(String, usize)>, String> {
    let mut parts: Vec<(String, usize)> = Vec::new();
    for (name, pool) in Text::read_all(text)? {
        let pool = format!("[[pools]]\nname = {}\n{}", inline(&name.into()), pool.lines());
        match parts.last_mut() {
            Some((part, pools))
                if *pools < TOGETHER_MAX && part.len() + pool.len() <= PART_BYTES =>
            {
                part.push_str(&pool);
                *pools += 1;
            }
            _ => parts.push((pool, 1)),
        }
    }
    Ok(parts)
}

/// Fields as a file has them, each in a line.
pub(super) fn lines(fields: &Table) -> String {
    each(fields).map(|line| line + "\n").collect()
}

fn each(fields: &Table) -> impl Iterator<Item = String> + '_ {
    fields.iter().map(|(key, value)| format!("{} = {}", bare(key), inline(value)))
}

/// A field that is written otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Difference {
    pub(crate) key: String,
    was: Option<String>,
    is: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference { key, was, is } = self;
        match (is, was) {
            (Some(is), Some(was)) => write!(f, "{key} = {is} (it was {was})"),
            (Some(is), None) => write!(f, "{key} = {is} (it was not said)"),
            (None, Some(was)) => write!(f, "{key} is not said any more (it was {was})"),
            (None, None) => f.write_str(key),
        }
    }
}

/// Why a pool is none of the charter's, and what to do instead.
fn of_files(protocol: &str) -> String {
    format!(
        "only pools of \"central\" whose seat moves are made while nodes run. A pool of \
         {protocol:?} is written into every node's file while none runs: see docs/configuration.md"
    )
}

fn inline(value: &Value) -> String {
    let all = |values: &mut dyn Iterator<Item = String>| values.collect::<Vec<_>>().join(", ");
    match value {
        // What JSON writes of these, TOML reads.
        Value::String(text) => serde_json::to_string(text).unwrap_or_default(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(is) => is.to_string(),
        Value::Datetime(when) => when.to_string(),
        Value::Array(values) => format!("[{}]", all(&mut values.iter().map(inline))),
        Value::Table(fields) => {
            let mut each = fields.iter().map(|(key, it)| format!("{} = {}", bare(key), inline(it)));
            format!("{{ {} }}", all(&mut each))
        }
    }
}

fn bare(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match !key.is_empty() && key.chars().all(plain) {
        true => key.to_owned(),
        false => serde_json::to_string(key).unwrap_or_default(),
    }
}

impl Config {
    /// A pool of the charter, if it can be one.
    ///
    /// # Errors
    /// It contradicts itself, or is of a kind that does not change while nodes run.
    pub(crate) fn define(
        &self,
        name: &str,
        text: &Text,
        past: Past,
    ) -> Result<PoolDef, ConfigError> {
        let wrong = |what: String| ConfigError::Pool { pool: name.to_owned(), what };
        let mut fields = text.0.clone();
        fields.insert("name".into(), name.into());
        let written: Result<low::Pool, _> = fields.try_into();
        let pool = written.map_err(|error| wrong(error.message().to_owned()))?;
        let other = pool.protocol.clone().filter(|name| name != REGISTRY[0].name);
        if let Some(other) = other {
            return Err(wrong(of_files(&other)));
        }
        let members = self.members.names();
        let epoch = u32::try_from(self.epoch).unwrap_or(u32::MAX);
        let def = PoolDef::read(pool, REGISTRY, &members, (epoch, self.charter, Some(past)))?;
        if !def.protocol.about.seat_moves {
            return Err(wrong(of_files("central with an arbiter")));
        }
        Ok(def)
    }

    /// What the charter says of a pool of this name, if it does and no file counts instead.
    pub(crate) fn added(&self, name: &str) -> Option<Added> {
        let written = self.added.now();
        let kept = written.get(name).filter(|_| self.in_file(name).is_none())?;
        if let Some(known) = self.added.known(name, kept.generation) {
            return Some(known);
        }
        let read = Text::kept(&kept.value).and_then(|(text, past)| {
            let edition = past.changes;
            let def = self.define(name, &text, past).map_err(|error| error.to_string())?;
            Ok(Added { generation: kept.generation, edition, def: Arc::new(def) })
        });
        match read {
            Ok(added) => {
                self.added.keep(name, &added);
                Some(added)
            }
            Err(why) => {
                tracing::error!(pool = name, why, "this node cannot have a pool of the charter");
                None
            }
        }
    }

    /// Whether somebody defined a pool of this name.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.in_file(name).is_some() || self.added.now().contains_key(name)
    }

    /// The definition of the file that is about a pool of this name, if one is.
    pub(crate) fn in_file(&self, name: &str) -> Option<&Arc<PoolDef>> {
        let exact = |pool: &&Arc<PoolDef>| matches!(&pool.names, Names::One(own) if own == name);
        let covers = |pool: &&Arc<PoolDef>| pool.names.covers(name);
        let named = super::is_pool_name(name);
        let pattern = || self.pools.iter().find(covers).filter(|_| named);
        self.pools.iter().find(exact).or_else(pattern)
    }
}
