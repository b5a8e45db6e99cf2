//! What a closed loop of clients makes in a span, and what that took of the machine.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::task::JoinHandle;

use super::usage::Usage;

/// The first moments are nobody's figure.
const WARM_UP: Duration = Duration::from_millis(300);

/// Cycles per second, what an acquire took in microseconds, and what a cycle used of the machine.
pub(super) struct Measured {
    pub(super) cycles: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// In processes that serve, if they can be seen.
    pub(super) servers: Option<Usage>,
    /// In this process.
    pub(super) here: Option<Usage>,
}

impl Measured {
    /// Of all that can be seen.
    pub(super) fn processor_us(&self) -> Option<f64> {
        let here = self.here?.processor_us();
        Some(here + self.servers.map_or(0.0, Usage::processor_us))
    }
}

/// When cycles count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    from: Instant,
    until: Instant,
}

impl Window {
    /// Nobody begins another cycle.
    pub(super) fn is_over(self) -> bool {
        Instant::now() >= self.until
    }

    /// Whether a cycle that began then counts.
    pub(super) fn counts(self, began: Instant) -> bool {
        began >= self.from
    }
}

/// Has clients run for a span: each says how many nanoseconds its acquires took.
pub(super) async fn measure(
    span: Duration,
    servers: impl Fn() -> Option<Usage>,
    start: impl FnOnce(Window) -> Vec<JoinHandle<anyhow::Result<Vec<u64>>>>,
) -> anyhow::Result<Measured> {
    let from = Instant::now() + WARM_UP;
    let until = from + span;
    let tasks = start(Window { from, until });
    tokio::time::sleep_until(from.into()).await;
    let before = (Usage::here(), servers());
    tokio::time::sleep_until(until.into()).await;
    let after = (Usage::here(), servers());
    let mut spans = Vec::new();
    for task in tasks {
        spans.extend(task.await.context("a client panicked")??);
    }
    spans.sort_unstable();
    let at = |share: f64| {
        let index = (spans.len().saturating_sub(1) as f64 * share) as usize;
        spans.get(index).map_or(0.0, |nanos| *nanos as f64 / 1e3)
    };
    let count = spans.len() as f64;
    let spent = |after: Option<Usage>, before: Option<Usage>| Some((after? - before?).per(count));
    Ok(Measured {
        cycles: count / span.as_secs_f64(),
        p50: at(0.50),
        p99: at(0.99),
        here: spent(after.0, before.0),
        servers: spent(after.1, before.1),
    })
}
