//! What `dev` and `serve` have in common: a runtime, a log, and how to be stopped.

use std::io::IsTerminal;

use tokio::runtime::Runtime;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::signals::{ENDING, Signals};

/// The runtime that nodes live in.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// Sends what nodes have to say to standard error; `QUORATE_LOG` says how much of it.
pub(crate) fn log_to_stderr(default: &str) {
    let wanted = std::env::var("QUORATE_LOG").unwrap_or_else(|_| default.to_owned());
    let filter: Targets = wanted.parse().unwrap_or_else(|error| {
        eprintln!("quorate: QUORATE_LOG: {error}; it is {default} instead");
        default.parse().unwrap_or_default()
    });
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(lines).with(filter).init();
}

/// Returns when somebody wants the process to end.
pub(crate) async fn asked_to_stop() -> anyhow::Result<()> {
    Signals::hear(&ENDING)?.any().await;
    Ok(())
}
