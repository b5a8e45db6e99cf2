//! What `dev` and `serve` have in common: a runtime, a log, and how to be stopped.

use std::io::IsTerminal;

use anyhow::Context as _;
use tokio::runtime::Runtime;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, reload};

use super::signals::{ENDING, Signals};

/// The runtime that nodes live in.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// How much is said: `QUORATE_LOG`, or else this, or else `info`. What the engine of the charter
/// says is for those who know it, and its own level must be named: while a member is away it calls
/// that an error twenty times a second. What stops it, readiness and `status` say.
pub(crate) fn level(said: Option<&str>) -> anyhow::Result<Targets> {
    let wanted = std::env::var("QUORATE_LOG").ok().filter(|wanted| !wanted.is_empty());
    let wanted = wanted.as_deref().or(said).unwrap_or("info");
    let level: Result<Targets, _> = wanted.parse();
    let level = level.with_context(|| format!("{wanted:?} is no level: try info or debug"))?;
    let engine = "openraft";
    Ok(match wanted.contains(engine) {
        true => level,
        false => level.with_target(engine, LevelFilter::OFF),
    })
}

/// What says how much is said, from now on.
pub(crate) struct Log(reload::Handle<Targets, Registry>);

impl Log {
    pub(crate) fn set(&self, level: Targets) {
        // The log lives as long as the process.
        let _ = self.0.reload(level);
    }
}

/// Sends what nodes have to say to standard error.
pub(crate) fn log_to_stderr(level: Targets) -> Log {
    let (filter, handle) = reload::Layer::new(level);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(lines).init();
    Log(handle)
}

/// Returns when somebody wants the process to end.
pub(crate) async fn asked_to_stop() -> anyhow::Result<()> {
    Signals::hear(&ENDING)?.any().await;
    Ok(())
}
