//! What one run measured: the same numbers, made in the same way, for `sim run` and for sweeps.

use anyhow::Context as _;
use quorate_core::Purpose;
use quorate_sim::Measures;
use serde_json::{Map, Value, json};

use super::metric::Metric;

/// What one run measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Sample {
    /// By [`Metric`]; nothing where the run has no such thing.
    values: [Option<f64>; Metric::ALL.len()],
    /// For each crash, how long until every live node knew; only of those that became known.
    pub(crate) detection: Vec<f64>,
    /// Crashes that did not become known to all before the run ended.
    pub(crate) unknown: u32,
    /// Units in use over each stretch of time.
    pub(crate) series: Vec<f64>,
    /// Steps of all participants; none if it was taken over from another experiment.
    pub(crate) steps: u64,
}

impl Sample {
    /// What happened between two readings of the measures, the first of which may be the beginning.
    pub(crate) fn between(before: Option<&Measures>, after: &Measures) -> Sample {
        let count = |of: &dyn Fn(&Measures) -> u64| of(after) - before.map_or(0, of);
        let grants = count(&|m| m.grants) as f64;
        let seconds = count(&|m| m.elapsed) as f64 / 1e9;
        let mean = |of: &dyn Fn(&Measures) -> f64| {
            let area = |m: &Measures| of(m) * m.elapsed as f64 / 1e9;
            let area = (area(after) - before.map_or(0.0, area)).max(0.0);
            if seconds > 0.0 { area / seconds } else { 0.0 }
        };
        let waiting = match before {
            Some(before) => after.waiting.since(&before.waiting),
            None => after.waiting.clone(),
        };
        let per_grant = |count: u64| (grants > 0.0).then(|| count as f64 / grants);
        let after_grants = |nanos: f64| (grants > 0.0).then_some(nanos / 1e9);
        let mut sample = Sample { steps: after.steps, ..Sample::default() };
        sample.set(Metric::ObtainingTime, after_grants(waiting.mean()));
        sample.set(Metric::WaitingP50, after_grants(waiting.quantile(0.5) as f64));
        sample.set(Metric::WaitingP99, after_grants(waiting.quantile(0.99) as f64));
        sample.set(Metric::WaitingMax, after_grants(waiting.max() as f64));
        let waiting = mean(&|m| m.queue.mean());
        sample.set(Metric::Waiting, Some(waiting));
        let rate = if seconds > 0.0 { grants / seconds } else { 0.0 };
        sample.set(Metric::CsPerSecond, Some(rate));
        let in_use = mean(&|m| m.in_use.mean());
        sample.set(Metric::UnitsInUse, Some(in_use));
        sample.set(Metric::MessagesPerCs, per_grant(count(&Measures::messages_sent)));
        for (purpose, metric) in Purpose::ALL.into_iter().zip([
            Metric::MessagesProtocol,
            Metric::MessagesRetry,
            Metric::MessagesLease,
            Metric::MessagesProbe,
        ]) {
            sample.set(metric, per_grant(count(&|m| m.messages_for[purpose as usize])));
        }
        let earlier =
            |node: usize| before.and_then(|before| before.traffic.get(node)).unwrap_or(&0);
        let traffic = after.traffic.iter().enumerate().map(|(node, now)| now - earlier(node));
        sample.set(Metric::BusiestNode, per_grant(traffic.max().unwrap_or(0)));
        // More wait than there are units: then none is idle because nobody wants it.
        let units = f64::from(after.units());
        if after.crashes == 0 && waiting > units && rate > 0.0 {
            sample.set(Metric::SynchronizationDelay, Some((units - in_use) / rate));
        }
        let earlier = |client: usize| before.and_then(|b| b.grants_of.get(client)).unwrap_or(&0);
        let shares = after.grants_of.iter().enumerate();
        let shares: Vec<u32> = shares.map(|(client, now)| now - earlier(client)).collect();
        sample.set(Metric::Fairness, (grants > 0.0).then(|| Measures::jain(&shares)));
        // Of the whole run: who waited over the end of the warm-up was overtaken before it, too.
        sample.set(Metric::OvertakenMax, Some(after.overtaken_max as f64));
        sample.set(Metric::StateBytes, Some(after.state_bytes as f64));
        sample
    }

    pub(crate) fn set(&mut self, metric: Metric, value: Option<f64>) {
        self.values[metric as usize] = value;
    }

    pub(crate) fn of(&self, metric: Metric) -> Option<f64> {
        if metric == Metric::DetectionTime {
            let sum: f64 = self.detection.iter().sum();
            return (!self.detection.is_empty()).then(|| sum / self.detection.len() as f64);
        }
        self.values[metric as usize]
    }

    /// Everything by name, for programs.
    pub(crate) fn json(&self) -> Value {
        let values = Metric::ALL.iter().filter_map(|&metric| {
            self.of(metric).map(|value| (metric.name().to_owned(), json!(value)))
        });
        Value::Object(values.collect::<Map<_, _>>())
    }

    /// As a line of a campaign: numbers by their bits, so that they come back as they were.
    pub(crate) fn encode(&self) -> Value {
        let bits = |numbers: &[f64]| numbers.iter().map(|it| it.to_bits()).collect::<Vec<u64>>();
        json!({
            "values": self.values.map(|value| value.map(f64::to_bits)),
            "detection": bits(&self.detection),
            "unknown": self.unknown,
            "series": bits(&self.series),
            "steps": self.steps,
        })
    }

    /// And back.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn decode(value: &Value) -> anyhow::Result<Sample> {
        let list = |name: &str| -> anyhow::Result<Vec<Option<f64>>> {
            let bits = value[name].as_array().with_context(|| format!("no {name}"))?;
            Ok(bits.iter().map(|bits| bits.as_u64().map(f64::from_bits)).collect())
        };
        let all = |name: &str| -> anyhow::Result<Vec<f64>> {
            list(name)?.into_iter().collect::<Option<_>>().context("no number")
        };
        let values = list("values")?.try_into();
        Ok(Sample {
            values: values.map_err(|_| anyhow::anyhow!("not as many numbers as metrics"))?,
            detection: all("detection")?,
            unknown: value["unknown"].as_u64().context("no unknown")? as u32,
            series: all("series")?,
            steps: value["steps"].as_u64().context("no steps")?,
        })
    }

    /// The same for another experiment, which took no steps for it.
    pub(crate) fn taken_over(&self) -> Sample {
        Sample { steps: 0, ..self.clone() }
    }
}
