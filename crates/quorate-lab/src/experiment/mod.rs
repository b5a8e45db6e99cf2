//! Experiments: the same workload under several protocols and settings, repeated, summarised and
//! drawn.
//!
//! A [`Sweep`] says what is varied; `quorate-lab sim sweep` reads one from a file, and the presets
//! of `quorate-lab sim figures` are nothing but sweeps with a page that compares them with a paper.
//! A run is a [`quorate_sim::Session`]; everything here is about many of them.

mod chart;
mod claims;
mod compare;
mod contender;
pub(crate) mod contest;
pub(crate) mod crew;
mod limits;
mod metric;
mod output;
mod page;
pub(crate) mod play;
mod sample;
mod setting;
mod stats;
mod sweep;
mod timer_free;

pub(crate) use compare::compare;
pub(crate) use contender::Contender;
pub(crate) use metric::Metric;
pub(crate) use output::{Folder, rows, write_all};
pub(crate) use play::messages_of_raymond;
pub(crate) use sample::Sample;
pub(crate) use setting::Many;
pub(crate) use sweep::{Broken, Cell, Sweep};
pub(crate) use timer_free::{Effort, figures};
