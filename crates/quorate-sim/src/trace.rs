//! The thing people read: one dense line per event, with a legend on top.

use std::fmt;
use std::ops::ControlFlow;

use crate::film::Film;
use crate::verdict::{Pulse, Watch};

/// Where events are told, if anywhere.
#[derive(Default)]
pub(crate) struct Trace<'a> {
    out: Option<&'a mut dyn fmt::Write>,
    film: Option<&'a mut Film>,
    pulse: Option<&'a mut dyn FnMut(Pulse) -> ControlFlow<()>>,
}

/// What the columns and marks mean; printed above every trace.
pub const LEGEND: &str = "\
# time, seconds | units in use/all | claims waiting | node | event => effects, in order
#   claim 7.2 h3   client 7's claim number 2 asks for 3 units      < n4 ...  heard from n4
#   > n4 ...       told to n4       ring / arm / disarm  alarms    persist   a barrier
#   GRANT 7.2 u0,u3 f9   units 0 and 3 with fence 9    REFUSE, LOSE, RECLAIM, extend   as they say
#   lines with * are the world's: crashes, restarts, cuts, pauses, clients that end or die
";

impl<'a> Trace<'a> {
    pub(crate) fn new(watch: Watch<'a>) -> Self {
        let mut trace = Trace { out: watch.trace, film: watch.film, pulse: watch.pulse };
        trace.write(format_args!("{LEGEND}"));
        trace
    }

    pub(crate) fn is_on(&self) -> bool {
        self.out.is_some() || self.film.is_some()
    }

    pub(crate) fn film(&mut self) -> Option<&mut Film> {
        self.film.as_deref_mut()
    }

    pub(crate) fn pulse(&mut self, pulse: Pulse) -> ControlFlow<()> {
        self.pulse.as_mut().map_or(ControlFlow::Continue(()), |tell| tell(pulse))
    }

    pub(crate) fn write(&mut self, text: fmt::Arguments<'_>) {
        if let Some(out) = &mut self.out {
            // A trace that cannot be written is no reason to change the run.
            let _ = out.write_fmt(text);
        }
    }
}

impl fmt::Debug for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "Trace(on)" } else { "Trace(off)" })
    }
}

/// True time as traces show it: seconds and microseconds.
pub(crate) struct Stamp(pub(crate) u64);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>5}.{:06}", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}
