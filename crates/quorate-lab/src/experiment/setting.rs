//! The parameters of an experiment that can be lists, and one combination of their values.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use quorate_sim::Time;

use super::contender::Contender;
use crate::protocols::{Options, ReclaimKind};

/// One value or several.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Many<T> {
    One(T),
    List(Vec<T>),
}

impl<T: Copy> Many<T> {
    pub(crate) fn values(&self) -> Vec<T> {
        match self {
            Many::One(value) => vec![*value],
            Many::List(values) => values.clone(),
        }
    }
}

/// A value of a file that is no list.
#[derive(Clone, Copy)]
pub(crate) enum Raw<'a> {
    Whole(i64),
    Number(f64),
    Truth(bool),
    Text(&'a str),
}

/// What can be listed.
pub(crate) trait Scalar: Copy {
    /// What a file should say, for who said something else.
    const EXPECTED: &str;

    fn read(raw: Raw<'_>) -> Option<Self>;
}

impl Scalar for u32 {
    const EXPECTED: &str = "a whole number, from 0 on";

    fn read(raw: Raw<'_>) -> Option<Self> {
        let Raw::Whole(number) = raw else { return None };
        number.try_into().ok()
    }
}

impl Scalar for f64 {
    const EXPECTED: &str = "a number";

    fn read(raw: Raw<'_>) -> Option<Self> {
        match raw {
            Raw::Whole(number) => Some(number as f64),
            Raw::Number(number) => Some(number),
            Raw::Truth(_) | Raw::Text(_) => None,
        }
    }
}

impl Scalar for bool {
    const EXPECTED: &str = "true or false";

    fn read(raw: Raw<'_>) -> Option<Self> {
        let Raw::Truth(truth) = raw else { return None };
        Some(truth)
    }
}

/// When a node that is believed to have crashed is counted out, where a protocol can do so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reclaim {
    Never,
    Lease,
    TrustRp,
}

impl Reclaim {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reclaim::Never => "never",
            Reclaim::Lease => "lease",
            Reclaim::TrustRp => "trust-rp",
        }
    }
}

impl Scalar for Reclaim {
    const EXPECTED: &str = "\"never\", \"lease\" or \"trust-rp\"";

    fn read(raw: Raw<'_>) -> Option<Self> {
        let Raw::Text(text) = raw else { return None };
        let all = [Reclaim::Never, Reclaim::Lease, Reclaim::TrustRp];
        all.into_iter().find(|reclaim| reclaim.name() == text)
    }
}

/// By hand, since what is derived for this only says that nothing fitted.
impl<'de, T: Scalar> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMore(std::marker::PhantomData))
    }
}

struct OneOrMore<T>(std::marker::PhantomData<T>);

impl<T: Scalar> OneOrMore<T> {
    fn one<E: de::Error>(&self, raw: Raw<'_>) -> Result<Many<T>, E> {
        let unexpected = match raw {
            Raw::Whole(number) => de::Unexpected::Signed(number),
            Raw::Number(number) => de::Unexpected::Float(number),
            Raw::Truth(truth) => de::Unexpected::Bool(truth),
            Raw::Text(text) => de::Unexpected::Str(text),
        };
        T::read(raw).map(Many::One).ok_or_else(|| E::invalid_value(unexpected, self))
    }
}

impl<'de, T: Scalar> Visitor<'de> for OneOrMore<T> {
    type Value = Many<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a list of such", T::EXPECTED)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Many<T>, E> {
        self.one(Raw::Whole(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Many<T>, E> {
        self.one(Raw::Number(number))
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Many<T>, E> {
        self.one(Raw::Truth(truth))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Many<T>, E> {
        self.one(Raw::Text(text))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Many<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(item) = list.next_element::<Many<T>>()? {
            match item {
                Many::One(value) => values.push(value),
                Many::List(_) => return Err(de::Error::custom("a list inside a list")),
            }
        }
        Ok(Many::List(values))
    }
}

/// A parameter that can be a list, and be on the horizontal axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Parameter {
    Nodes,
    Units,
    CrashesMax,
    NodeUnitsMax,
    Hold,
    Latency,
    Notices,
    Probe,
    Reclaim,
    Lease,
    Retry,
    CrashEvery,
    Idle,
    Freeze,
    Rho,
    Crashes,
}

impl Parameter {
    /// In the order in which combinations are made.
    pub(crate) const ALL: [Parameter; 16] = [
        Parameter::Nodes,
        Parameter::Units,
        Parameter::CrashesMax,
        Parameter::NodeUnitsMax,
        Parameter::Hold,
        Parameter::Latency,
        Parameter::Notices,
        Parameter::Probe,
        Parameter::Reclaim,
        Parameter::Lease,
        Parameter::Retry,
        Parameter::CrashEvery,
        Parameter::Idle,
        Parameter::Freeze,
        Parameter::Rho,
        Parameter::Crashes,
    ];

    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Parameter::Nodes => "nodes",
            Parameter::Units => "units",
            Parameter::CrashesMax => "crashes_max",
            Parameter::NodeUnitsMax => "node_units_max",
            Parameter::Hold => "hold",
            Parameter::Latency => "latency",
            Parameter::Notices => "notices",
            Parameter::Probe => "probe",
            Parameter::Reclaim => "reclaim",
            Parameter::Lease => "lease",
            Parameter::Retry => "retry",
            Parameter::CrashEvery => "crash_every",
            Parameter::Idle => "idle",
            Parameter::Freeze => "freeze",
            Parameter::Rho => "rho",
            Parameter::Crashes => "crashes",
        }
    }
}

/// One combination of parameters.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Setting {
    pub(crate) protocol: Contender,
    pub(crate) nodes: u32,
    pub(crate) units: u32,
    /// `None` where the protocol's own default holds, or it has no such thing.
    pub(crate) crashes_max: Option<u32>,
    pub(crate) node_units_max: Option<u32>,
    pub(crate) hold: f64,
    pub(crate) rho: f64,
    pub(crate) latency: f64,
    pub(crate) crashes: u32,
    pub(crate) crash_every: f64,
    pub(crate) idle: u32,
    pub(crate) freeze: f64,
    pub(crate) notices: bool,
    pub(crate) probe: Option<f64>,
    pub(crate) reclaim: Option<Reclaim>,
    pub(crate) lease: f64,
    pub(crate) retry: f64,
}

impl Setting {
    /// Options of a protocol as the setting has them.
    pub(crate) fn choose(&self, options: &mut Options) {
        let crashes = &mut options.crashes;
        crashes.crashes_max = self.crashes_max.or(crashes.crashes_max);
        crashes.node_units_max = self.node_units_max.or(crashes.node_units_max);
        crashes.notices |= self.notices;
        let probe = self.probe.map(|seconds| Time((seconds * 1e9) as u64));
        crashes.probe = probe.or(crashes.probe);
        let reclaim = self.reclaim.map(|reclaim| match reclaim {
            Reclaim::Never => ReclaimKind::Never,
            Reclaim::Lease => ReclaimKind::Lease,
            Reclaim::TrustRp => ReclaimKind::TrustRp,
        });
        crashes.reclaim = reclaim.or(crashes.reclaim);
    }

    /// Where it lies on an axis.
    pub(crate) fn on(&self, axis: Parameter) -> f64 {
        match axis {
            Parameter::Nodes => f64::from(self.nodes),
            Parameter::Units => f64::from(self.units),
            Parameter::CrashesMax => f64::from(self.crashes_max.unwrap_or(0)),
            Parameter::NodeUnitsMax => f64::from(self.node_units_max.unwrap_or(0)),
            Parameter::Hold => self.hold,
            Parameter::Latency => self.latency,
            Parameter::Notices => f64::from(u8::from(self.notices)),
            Parameter::Probe => self.probe.unwrap_or(0.0),
            Parameter::Reclaim => self.reclaim.map_or(0.0, |reclaim| f64::from(reclaim as u8)),
            Parameter::Lease => self.lease,
            Parameter::Retry => self.retry,
            Parameter::CrashEvery => self.crash_every,
            Parameter::Idle => f64::from(self.idle),
            Parameter::Freeze => self.freeze,
            Parameter::Rho => self.rho,
            Parameter::Crashes => f64::from(self.crashes),
        }
    }

    /// A parameter's value in a table.
    pub(crate) fn value(&self, of: Parameter) -> String {
        match of {
            Parameter::Notices => self.notices.to_string(),
            Parameter::Reclaim => self.reclaim.map_or(String::new(), |it| it.name().into()),
            _ => self.on(of).to_string(),
        }
    }

    /// A parameter's value in the name of a curve; empty for what is not there.
    pub(crate) fn words(&self, of: Parameter) -> String {
        let value = self.value(of);
        match of {
            Parameter::Nodes => format!(", {value} nodes"),
            Parameter::Units => format!(", {value} units"),
            Parameter::CrashesMax => format!(", crashes_max {value}"),
            Parameter::NodeUnitsMax => format!(", {value} units per node"),
            Parameter::Hold => format!(", hold {value} s"),
            Parameter::Latency => format!(", latency {value} s"),
            Parameter::Notices if !self.notices => String::new(),
            Parameter::Notices => ", notices".into(),
            Parameter::Probe if self.probe.is_none_or(|probe| probe == 0.0) => String::new(),
            Parameter::Probe => format!(", probe {value} s"),
            Parameter::Reclaim if self.reclaim.is_none() => String::new(),
            Parameter::Reclaim => format!(", reclaim {value}"),
            Parameter::Lease if self.lease == 0.0 => String::new(),
            Parameter::Lease => format!(", lease {value} s"),
            Parameter::Retry if self.retry == 0.0 => String::new(),
            Parameter::Retry => format!(", retry {value} s"),
            Parameter::CrashEvery if self.crash_every == 0.0 => ", at once".into(),
            Parameter::CrashEvery => format!(", one every {value} s"),
            Parameter::Idle => format!(", {value} idle"),
            Parameter::Freeze => format!(", still for {value} s"),
            Parameter::Rho => format!(", rho {value}"),
            Parameter::Crashes => format!(", {value} crashes"),
        }
    }
}
