//! Waiting for a grant, as `acquire` and `run` do it: for how long, what a person at a terminal
//! sees meanwhile, and what is known when somebody interrupts it.

use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use quorate_api::{ClaimId, ClaimState, ClaimStatus};
use quorate_client::{AcquireError, Client, Grant, TryAcquireError, Views, Want};
use rustix::process::Signal;

use super::cluster::{self, Cluster, span};

/// How long to wait.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Patience {
    /// How long to wait, such as 30s; forever, if left out.
    #[arg(long, value_name = "SPAN", value_parser = cluster::duration)]
    timeout: Option<Duration>,
    /// Do not wait: take the units if they are free now, or exit with 122.
    #[arg(long = "try", conflicts_with = "timeout")]
    now: bool,
}

impl Patience {
    /// How long to wait yet, after so long.
    pub(crate) fn left(&self, waited: Duration) -> Duration {
        /// How long free units take, also where several nodes must agree.
        const A_MOMENT: Duration = Duration::from_secs(2);
        let most = if self.now { Some(A_MOMENT) } else { self.timeout };
        most.map_or(Duration::MAX, |most| most.saturating_sub(waited))
    }

    /// How to exit when that is over.
    pub(crate) fn too_late(&self) -> u8 {
        if self.now { NOT_FREE } else { TIMED_OUT }
    }
}

/// The units are not free, and nobody wanted to wait.
const NOT_FREE: u8 = 122;
/// They were not granted in time.
const TIMED_OUT: u8 = 124;

/// A claim to be made.
pub(crate) struct Wish<'a> {
    pub(crate) client: &'a Client,
    pub(crate) cluster: &'a Cluster,
    pub(crate) pool: &'a str,
    pub(crate) reason: String,
    pub(crate) id: ClaimId,
    pub(crate) want: Want,
    pub(crate) patience: &'a Patience,
}

/// What became of it.
pub(crate) enum Claimed {
    Granted(Grant),
    /// It was not granted, which was said; this is how to exit.
    Over(u8),
    Failed(AcquireError),
}

/// Claims, waits, and stops waiting when it is interrupted.
pub(crate) async fn claim(wish: Wish<'_>, interrupt: impl Future<Output = Signal>) -> Claimed {
    let pool = wish.client.pool(wish.pool).reason(&wish.reason).named(wish.id);
    let want = wish.want.clone();
    let granted = async {
        match wish.patience {
            Patience { now: true, .. } => pool.try_acquire_many(want).await,
            Patience { timeout: Some(within), .. } => {
                Ok(pool.acquire_timeout(want, *within).await?)
            }
            Patience { timeout: None, .. } => Ok(pool.acquire_many(want).await?),
        }
    };
    let outcome = tokio::select! {
        outcome = granted => outcome,
        () = tell(&wish) => unreachable!("it goes on telling"),
        signal = interrupt => {
            clear();
            // The future was dropped, and with it the claim.
            let heard = wish.client.settle().await;
            let (pool, id) = (wish.pool, wish.id);
            if heard {
                eprintln!("quorate: interrupted; claim {id} is cancelled");
            } else {
                eprintln!(
                    "quorate: interrupted; no node acknowledged that claim {id} is cancelled, so \
                     it may still be granted, for one lease at most: `quorate release {pool} {id}` \
                     ends it once a node answers"
                );
            }
            return Claimed::Over(128 + signal.as_raw() as u8);
        }
    };
    clear();
    match outcome {
        Ok(grant) => Claimed::Granted(grant),
        Err(error @ TryAcquireError::NoUnits) => {
            eprintln!("quorate: {error}; nothing was claimed");
            Claimed::Over(NOT_FREE)
        }
        Err(TryAcquireError::Acquire(
            error @ (AcquireError::Timeout { .. }
            | AcquireError::Unknown { .. }
            | AcquireError::Unreachable { .. }),
        )) => {
            eprintln!("quorate: {error}");
            Claimed::Over(TIMED_OUT)
        }
        Err(TryAcquireError::Acquire(error)) => Claimed::Failed(error),
        Err(error) => unreachable!("trying fails in two ways: {error}"),
    }
}

/// Whoever waits for longer than a moment is told what for, and again every second.
const MOMENT: Duration = Duration::from_secs(1);

/// Tells a person what the claim waits for, for ever; says nothing to a file.
async fn tell(wish: &Wish<'_>) {
    let Ok(views) = wish.cluster.views() else { return std::future::pending().await };
    if !std::io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(MOMENT).await;
        let line = match wish.client.server() {
            Err(error) => format!("{error}; trying again"),
            Ok(server) => match look(&views, wish).await {
                Some(status) => format!("{server}: {}", place(&status)),
                None => format!("{server}: waiting"),
            },
        };
        // One line that is written over, whatever its length: a terminal that wraps it shows more
        // than one, which is still true.
        eprint!("\r\x1b[Kquorate: {line}");
        let _ = std::io::stderr().flush();
    }
}

async fn look(views: &Views, wish: &Wish<'_>) -> Option<ClaimStatus> {
    views.claim(wish.pool, wish.id).await.ok().filter(|it| it.state == ClaimState::Waiting)
}

/// Its place, how long it may take, and why it waits.
fn place(status: &ClaimStatus) -> String {
    let (units, waited) = (status.asked, span(Some(status.waited_ms)));
    let plural = if units == 1 { "" } else { "s" };
    let mut line = format!("waiting for {units} unit{plural} since {waited}");
    if let Some(why) = &status.why {
        if let Some(position) = why.position {
            line += &format!(", place {position}");
        }
        if let Some(estimate) = &why.estimate {
            line += &format!(", about {} more", span(Some(estimate.likely_ms)));
        }
        line += &format!(": {}", why.summary);
    }
    line
}

fn clear() {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_place_estimate_and_reason() {
        let status = serde_json::json!({
            "id": "0000000000000000000000000000004d", "pool": "demo", "state": "waiting",
            "asked": 2, "waited_ms": 9_300, "node": "n0",
            "why": {
                "summary": "1 of 2 units is missing", "position": 3, "free": 1, "missing": 1,
                "holders": [], "ahead": [], "silent": [],
                "estimate": { "soon_ms": 1000, "likely_ms": 4_200, "late_ms": 9000, "holds": 7 },
            },
        });
        assert_eq!(
            place(&serde_json::from_value(status).unwrap()),
            "waiting for 2 units since 9.3 s, place 3, about 4.2 s more: 1 of 2 units is missing"
        );
    }
}
