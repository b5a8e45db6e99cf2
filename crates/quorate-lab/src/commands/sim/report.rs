//! The numbers of a run, as a table and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use quorate_sim::{Histogram, Memory, Plan, Report, Verdict};
use serde_json::{Value, json};

use crate::experiment::{Metric, Sample};

/// A finished run and how it was run.
pub(super) struct Shown<'a> {
    pub(super) protocol: &'a str,
    /// Names of the kinds of message.
    pub(super) kinds: &'a [&'a str],
    /// What experiments measure, from the warm-up on.
    pub(super) sample: Sample,
    /// What was switched off.
    pub(super) off: Vec<&'static str>,
    pub(super) plan: &'a Plan,
    /// What the protocol says about its pool.
    pub(super) about: Option<String>,
    pub(super) report: &'a Report,
    pub(super) strict: bool,
    /// How long it took on the machine it ran on, if that is to be part of the answer: all else
    /// is the same whenever the same is run.
    pub(super) wall: Option<Duration>,
}

impl Shown<'_> {
    fn laws(&self) -> &'static str {
        if self.strict {
            "all, with audits and books after every step"
        } else {
            "what clients see; audits and books only at rest (--strict: after every step)"
        }
    }

    fn verdict(&self) -> String {
        match &self.report.verdict {
            Verdict::Clean => {
                "clean: no law broken, everybody served, everything free again".into()
            }
            Verdict::Stopped => "stopped: no law broken so far".into(),
            Verdict::Broken(breach) => format!("BROKEN {breach}"),
        }
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let measures = &self.report.measures;
        let mut rows: Vec<(&str, String)> = Vec::new();
        for (position, line) in self.plan.to_string().lines().enumerate() {
            rows.push((if position == 0 { self.protocol } else { "" }, line.to_string()));
        }
        rows.extend(self.about.iter().map(|about| ("", about.clone())));
        rows.push(("laws", self.laws().into()));
        rows.push(("verdict", self.verdict()));
        rows.push(("time", format!("{:.3} s simulated", measures.elapsed as f64 / 1e9)));
        if let Some(at) = measures.legitimate_at {
            rows.push((
                "legitimate",
                format!("after {:.6} s; judged from then on", at as f64 / 1e9),
            ));
        }
        let ended = format!("{} released, {} cut short", measures.releases, measures.cut_short);
        rows.push((
            "grants",
            format!("{} of {} claims; {ended}", measures.grants, measures.claims),
        ));
        let others = [("refused", measures.refusals), ("abandoned", measures.abandoned)];
        let faults = [("reclaimed", measures.reclaims), ("crashes", measures.crashes)];
        for (name, count) in others.into_iter().chain(faults).filter(|(_, count)| *count > 0) {
            rows.push((name, count.to_string()));
        }
        let mut kinds = String::new();
        for (name, count) in self.kinds.iter().zip(&measures.messages).filter(|(_, c)| **c > 0) {
            write!(kinds, ", {name} {:.3}", *count as f64 / measures.grants.max(1) as f64)
                .expect("a string takes everything");
        }
        let of = |metric| self.sample.of(metric).unwrap_or(0.0);
        let per_grant = of(Metric::MessagesPerCs);
        rows.push(("messages", format!("{per_grant:.3} per grant{kinds}")));
        let parts = [
            ("protocol", Metric::MessagesProtocol),
            ("retries", Metric::MessagesRetry),
            ("leases", Metric::MessagesLease),
            ("probes", Metric::MessagesProbe),
        ];
        let parts = parts.map(|(name, metric)| format!("{name} {:.3}", of(metric)));
        rows.push(("", format!("of these {}", parts.join(", "))));
        let busiest = of(Metric::BusiestNode);
        rows.push(("busiest", format!("{busiest:.3} messages per grant at one node")));
        if !self.off.is_empty() {
            rows.push(("switched off", self.off.join(", ")));
        }
        let ms = |metric| 1e3 * of(metric);
        rows.push((
            "waiting",
            format!(
                "mean {:.3} ms, p50 {:.3}, p99 {:.3}, max {:.3}",
                ms(Metric::ObtainingTime),
                ms(Metric::WaitingP50),
                ms(Metric::WaitingP99),
                ms(Metric::WaitingMax)
            ),
        ));
        let sync_ms = measures.sync_delay.mean() / 1e6;
        rows.push(("sync delay", format!("{sync_ms:.3} ms from free to next user, if wanted")));
        rows.push(("utilization", format!("{:.1} %", 100.0 * measures.utilization())));
        let queue = &measures.queue;
        rows.push(("queue", format!("{:.2} on average, {} at most", queue.mean(), queue.max())));
        let in_books = match measures.overtakes_in_books {
            Some(count) => format!("{count} by stamps, in arbiters' books"),
            None => "--strict counts by stamps".into(),
        };
        let overtakes = format!("{} by time of asking; {in_books}", measures.overtakes);
        rows.push(("overtakes", overtakes));
        rows.push(("", format!("one claim at most {} times", measures.overtaken_max)));
        rows.push(("fairness", format!("{:.4} (Jain, over clients)", of(Metric::Fairness))));
        rows.push(("state", format!("{} bytes at the node with most", of(Metric::StateBytes))));
        if let Some(memory) = &self.report.memory {
            let Memory { most, around, .. } = memory;
            let mean = memory.mean();
            rows.push((
                "memory",
                format!(
                    "{mean:.1} bytes per node, {most} at most; {around} of the simulator's besides"
                ),
            ));
        }
        rows.push(("steps", self.report.steps.to_string()));
        rows.iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect()
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let measures = &self.report.measures;
        let messages: serde_json::Map<String, Value> = self
            .kinds
            .iter()
            .zip(&measures.messages)
            .map(|(name, count)| (name.to_string(), json!(count)))
            .collect();
        let breach = match &self.report.verdict {
            Verdict::Broken(breach) => json!({ "law": breach.law, "what": breach.what }),
            _ => Value::Null,
        };
        let mut shown = json!({
            "protocol": self.protocol,
            "seed": format!("{:#x}", self.plan.seed),
            "plan": self.plan.to_string(),
            "about": self.about,
            "strict": self.strict,
            "verdict": match &self.report.verdict {
                Verdict::Clean => "clean",
                Verdict::Stopped => "stopped",
                Verdict::Broken(_) => "broken",
            },
            "breach": breach,
            "ended_at_seconds": self.report.ended_at as f64 / 1e9,
            "elapsed_seconds": measures.elapsed as f64 / 1e9,
            "claims": measures.claims,
            "grants": measures.grants,
            "refusals": measures.refusals,
            "abandoned": measures.abandoned,
            "releases": measures.releases,
            "cut_short": measures.cut_short,
            "reclaims": measures.reclaims,
            "crashes": measures.crashes,
            "persists": measures.persists,
            "legitimate_at_seconds": measures.legitimate_at.map(|at| at as f64 / 1e9),
            "messages": messages,
            "messages_lost": measures.messages_lost,
            "messages_per_grant": measures.messages_per_grant(),
            "switched_off": self.off,
            "metrics": self.sample.json(),
            "waiting_seconds": histogram(&measures.waiting),
            "sync_delay_seconds": histogram(&measures.sync_delay),
            "utilization": measures.utilization(),
            "queue_mean": measures.queue.mean(),
            "queue_max": measures.queue.max(),
            "overtakes": measures.overtakes,
            "overtakes_in_books": measures.overtakes_in_books,
            "jain_fairness": measures.fairness(),
            "memory": self.report.memory.map(|memory| json!({
                "bytes": memory.total,
                "bytes_per_node": memory.mean(),
                "bytes_at_most": memory.most,
                "simulator_bytes_per_node": memory.around,
            })),
            "steps": self.report.steps,
        });
        if let Some(wall) = self.wall {
            add_speed(&mut shown, self.report.steps, wall);
        }
        shown
    }
}

/// How long so many steps took, in words.
pub(super) fn speed(steps: u64, wall: Duration) -> String {
    let per_second = per_second(steps, wall) / 1e6;
    format!("{:.1} s, {per_second:.2} M steps per second", wall.as_secs_f64())
}

/// The same for programs that ask for it.
pub(super) fn add_speed(shown: &mut Value, steps: u64, wall: Duration) {
    shown["wall_seconds"] = json!(wall.as_secs_f64());
    shown["steps_per_second"] = json!(per_second(steps, wall));
}

fn per_second(steps: u64, wall: Duration) -> f64 {
    steps as f64 / wall.as_secs_f64().max(1e-9)
}

fn histogram(of: &Histogram) -> Value {
    json!({
        "count": of.count(),
        "mean": of.mean() / 1e9,
        "p50": of.quantile(0.5) as f64 / 1e9,
        "p99": of.quantile(0.99) as f64 / 1e9,
        "max": of.max() as f64 / 1e9,
    })
}
