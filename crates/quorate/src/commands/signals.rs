//! Signals that a command hears. Those that were ignored when it was started stay so, for it and
//! for what it starts: that is how `nohup` and the background of a shell protect their commands.

use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// What asks a command to end: the terminal is gone, Ctrl-C, a polite kill.
pub(crate) const ENDING: [Signal; 3] = [Signal::HUP, Signal::INT, Signal::TERM];

/// Some signals, as they come.
pub(crate) struct Signals {
    streams: Vec<(Signal, Stream)>,
}

impl Signals {
    /// Hears these from now on, except those that are ignored. A child that ends is always heard
    /// of.
    pub(crate) fn hear(wanted: &[Signal]) -> io::Result<Signals> {
        let ignored = ignored();
        let heard =
            |name: &&Signal| **name == Signal::CHILD || ignored & (1 << (name.as_raw() - 1)) == 0;
        let stream = |name: &Signal| Ok((*name, signal(SignalKind::from_raw(name.as_raw()))?));
        let streams = wanted.iter().filter(heard).map(stream);
        Ok(Signals { streams: streams.collect::<io::Result<_>>()? })
    }

    /// The next of them; never, if all of them are ignored.
    pub(crate) async fn any(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (name, stream) in &mut self.streams {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*name);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The signals that this process ignores, one bit each. Where the system does not tell, none.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
