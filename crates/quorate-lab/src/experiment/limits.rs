//! What an experiment cannot be: numbers out of range, nothing to run, what a protocol cannot
//! serve, and runs that would measure something else than the file says or never end.

use std::fmt;

use anyhow::{Context, bail, ensure};
use quorate_core::{NODES_MAX, UNITS_MAX, Units};
use quorate_sim::Want;

use super::play::fits;
use super::setting::{Parameter, Reclaim, Setting};
use super::sweep::Sweep;

/// Simulated seconds that fit a clock of nanoseconds many times over.
const LONGEST: f64 = 1e7;

/// What a number may be.
struct Limits {
    low: f64,
    high: f64,
    /// Whether 0 is allowed below `low` too, and means that there is no such thing.
    or_zero: bool,
}

impl Limits {
    fn new(low: f64, high: f64) -> Self {
        Limits { low, high, or_zero: false }
    }

    fn or_zero(low: f64, high: f64) -> Self {
        Limits { low, high, or_zero: true }
    }

    fn ensure(&self, name: &str, value: f64) -> anyhow::Result<()> {
        let fits = (self.low..=self.high).contains(&value) || self.or_zero && value == 0.0;
        ensure!(fits, "{name} = {value}: choose {self}");
        Ok(())
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zero = if self.or_zero { "0, or " } else { "" };
        write!(f, "{zero}{} to {}", self.low, self.high)
    }
}

impl Parameter {
    fn limits(self) -> Limits {
        match self {
            Parameter::Nodes => Limits::new(1.0, f64::from(NODES_MAX)),
            Parameter::Units => Limits::new(1.0, f64::from(UNITS_MAX)),
            Parameter::NodeUnitsMax => Limits::new(1.0, f64::from(UNITS_MAX)),
            Parameter::CrashesMax | Parameter::Crashes | Parameter::Idle => {
                Limits::new(0.0, f64::from(NODES_MAX))
            }
            // Without time to use a unit or for a message to arrive, no time passes.
            Parameter::Hold | Parameter::Latency => Limits::new(1e-6, 1e4),
            Parameter::Rho => Limits::new(0.0, 1e4),
            Parameter::Probe | Parameter::Lease | Parameter::Retry => {
                Limits::or_zero(1e-3, LONGEST)
            }
            Parameter::CrashEvery | Parameter::Freeze => Limits::new(0.0, LONGEST),
            // Any that can be written.
            Parameter::Notices | Parameter::Reclaim => Limits::new(0.0, 2.0),
        }
    }
}

impl Sweep {
    /// # Errors
    /// What is wrong, with the name and the value of the field.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            !self.protocols.is_empty(),
            "no protocols, so there is nothing to run: say, for example, protocols = [\"central\"]"
        );
        if let Some(protocol) = twice(&self.protocols) {
            bail!("protocols: {} is there twice", protocol.name());
        }
        for parameter in Parameter::ALL {
            let (name, values) = (parameter.name(), self.numbers(parameter));
            ensure!(!values.is_empty(), "{name} = []: there is nothing to run, give a value");
            values.iter().try_for_each(|&value| parameter.limits().ensure(name, value))?;
            if let Some(value) = twice(&values) {
                bail!("{name}: {value} is there twice");
            }
        }
        self.check_fixed()?;
        ensure!(self.x != Parameter::Reclaim, "x = \"reclaim\": choose what is a number");
        let counts_out = self.protocols.iter().any(|it| it.has(Parameter::Reclaim));
        ensure!(
            self.reclaim.is_none() || counts_out,
            "reclaim: none of these protocols counts anybody out, leave it out"
        );
        let want: Want = self.want.parse().with_context(|| format!("want = \"{}\"", self.want))?;
        self.settings().iter().try_for_each(|setting| self.check_setting(setting, &want))
    }

    /// What cannot be a list.
    fn check_fixed(&self) -> anyhow::Result<()> {
        let share = || Limits::new(0.0, 1.0);
        let time = || Limits::new(0.0, LONGEST);
        for (name, value, limits) in [
            ("think_spread", self.think_spread.unwrap_or(0.0), Limits::new(0.0, 10.0)),
            ("hold_spread", self.hold_spread.unwrap_or(0.0), Limits::new(0.0, 10.0)),
            ("clients_per_node", f64::from(self.clients_per_node), Limits::new(1.0, 1e4)),
            ("drift", f64::from(self.drift), Limits::new(0.0, 499_999.0)),
            ("latency_spread", self.latency_spread, share()),
            ("sites", f64::from(self.sites), Limits::new(1.0, f64::from(NODES_MAX))),
            ("inside", self.inside, Limits::new(0.0, 1e3)),
            ("inside_spread", self.inside_spread, share()),
            ("crash_at", self.crash_at, time()),
            ("warm_up", self.warm_up, time()),
            ("measured", self.measured, Limits::new(1e-3, LONGEST)),
            ("series_step", self.series_step, Limits::or_zero(1e-3, LONGEST)),
            ("repetitions", f64::from(self.repetitions), Limits::new(1.0, 1e5)),
        ] {
            limits.ensure(name, value)?;
        }
        Ok(())
    }

    fn check_setting(&self, setting: &Setting, want: &Want) -> anyhow::Result<()> {
        let Setting { protocol, nodes, units, crashes_max, node_units_max, .. } = *setting;
        let Setting { crashes, crash_every, idle, freeze, latency, lease, .. } = *setting;
        let name = protocol.name();
        let asked = || format!("want = \"{}\", units = {units}", self.want);
        Units::new(want.most(), units).with_context(asked)?;
        let asks = node_units_max.unwrap_or(1);
        ensure!(
            asks <= units,
            "node_units_max = {asks}: a node cannot use more than units = {units}"
        );
        let (most, crashes_max) = ((nodes - 1) / 2, crashes_max.unwrap_or(0));
        ensure!(
            crashes_max <= most,
            "crashes_max = {crashes_max}: of {nodes} nodes at most {most}, (nodes - 1) / 2"
        );
        ensure!(
            crashes < nodes,
            "crashes = {crashes}: of {nodes} nodes at most {} can crash",
            nodes - 1
        );
        let most = nodes - 1 - crashes;
        ensure!(
            idle <= most,
            "idle = {idle}: somebody must have clients, at most {most} nodes can be idle"
        );
        let end = self.warm_up + self.measured;
        let last = self.crash_at + f64::from(crashes.saturating_sub(1)) * crash_every;
        ensure!(
            (crashes == 0 && freeze == 0.0) || last < end,
            "crash_at = {}: the last of {crashes} crashes would be at {last} s, and runs end at \
             {end} s (warm_up + measured)",
            self.crash_at
        );
        ensure!(
            !self.until_known || crashes > 0,
            "until_known = true, crashes = 0: such a run is over before it begins"
        );
        // Shorter than a message and its answer: nobody is ever served.
        let least = 3.0 * latency;
        ensure!(
            lease == 0.0 || lease >= least,
            "lease = {lease}: with latency = {latency} choose at least {least}"
        );
        if setting.reclaim == Some(Reclaim::Lease) {
            let never = "or say reclaim = \"never\"";
            ensure!(lease > 0.0, "reclaim = \"lease\": {name} needs lease and a duration, {never}");
            if setting.probe == Some(0.0) {
                bail!("lease = {lease}: {name} renews leases by probes, so give probe, {never}");
            }
        }
        fits(self, setting).with_context(|| format!("{name}, {nodes} nodes"))
    }
}

fn twice<T: Copy + PartialEq>(values: &[T]) -> Option<T> {
    let repeated = |&(place, value): &(usize, &T)| values[..place].contains(value);
    values.iter().enumerate().find(repeated).map(|(_, &value)| value)
}
