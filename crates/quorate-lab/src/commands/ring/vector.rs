//! Recorded runs of a ring: one JSON object per line (ring spec 8).

use anyhow::{Context, anyhow, bail, ensure};
use quorate_core::UNITS_MAX;
use quorate_protocols::reference::ring::{Core, Fixes, Track};
use quorate_protocols::ring::{Count, Frame, Message, Terms, train};
use serde::Deserialize;
use serde_json::Value;

use super::replay::{self, Replayed};

/// A run of one of the two kinds of ring.
pub(super) enum Vector {
    Core(Run<Core<Count>>),
    Train(Run<train::Train<Count>>),
}

/// A recorded run: where it begins, what happens, what is seen after each event, where it ends.
pub(super) struct Run<M: Replayed> {
    pub(super) name: String,
    pub(super) begin: Track<M>,
    pub(super) events: Vec<(Event, Seen)>,
    /// After this many events the state is that of the end: the rest repeats for ever.
    pub(super) loop_start: Option<usize>,
    pub(super) end: Track<M>,
}

/// What happens to a ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Deliver(usize),
    Request(usize, u32),
    Leave(usize),
    Timeout,
    Launch,
    Round(u32),
    DropHead(usize),
    Inject(usize, Message<Count>),
}

/// What is seen after an event: tokens, units in use, who was granted something by it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(super) struct Seen(pub(super) u64, pub(super) u64, pub(super) Vec<usize>);

#[derive(Deserialize)]
struct Raw {
    name: String,
    proto: String,
    variant: String,
    cfg: Config,
    init: State,
    events: Vec<Value>,
    #[serde(default = "no_loop")]
    loop_start: i64,
    check: Vec<Seen>,
    #[serde(rename = "final")]
    end: State,
}

fn no_loop() -> i64 {
    -1
}

#[derive(Deserialize)]
struct Config {
    n: usize,
    l: u32,
    #[serde(rename = "K")]
    k: u32,
    #[serde(rename = "MaxVc")]
    max_vc: u32,
    #[serde(rename = "M")]
    m: u64,
}

#[derive(Deserialize)]
struct State {
    nodes: Vec<Node>,
    links: Vec<Vec<Value>>,
}

/// The variables of one station by the names of the specification; what a kind of station does not
/// have is 0.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(super) struct Node {
    pub(super) st: String,
    pub(super) need: u32,
    pub(super) th: u32,
    pub(super) td: u32,
    pub(super) seq: u64,
    pub(super) order: Bit,
    #[serde(rename = "priv")]
    pub(super) favoured: Bit,
    pub(super) ce: u32,
    pub(super) cf: u32,
    pub(super) mytc: u32,
    pub(super) myta: u32,
    pub(super) flush: Bit,
    pub(super) wseen: Bit,
    pub(super) keep: u32,
    pub(super) woke: Bit,
    pub(super) lord: Bit,
    pub(super) bag: u32,
    pub(super) pool: u32,
    pub(super) parked: Bit,
    pub(super) wnext: Bit,
    pub(super) hot: Bit,
}

/// 0 or 1, also written as a boolean.
#[derive(Clone, Copy, Deserialize, Default, Debug)]
#[serde(try_from = "Value")]
pub(super) struct Bit(pub(super) bool);

impl TryFrom<Value> for Bit {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match (value.as_bool(), value.as_u64()) {
            (Some(bit), _) => Ok(Bit(bit)),
            (_, Some(number @ 0..=1)) => Ok(Bit(number == 1)),
            _ => Err(format!("{value} is neither 0 nor 1")),
        }
    }
}

/// Reads all runs of a file.
///
/// # Errors
/// The first line that cannot be read, and why.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<Vector>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let raw: Raw = serde_json::from_str(line)
                .map_err(|error| anyhow!("column {}: {}", error.column(), reason(&error)))
                .with_context(|| format!("line {}", number + 1))?;
            let name = raw.name.clone();
            Vector::new(raw).with_context(|| format!("line {} ({name})", number + 1))
        })
        .collect()
}

/// What is wrong, without the place, which would be that in one line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_string()
}

impl Vector {
    fn new(raw: Raw) -> anyhow::Result<Self> {
        let fixes = Fixes::named(&raw.variant)
            .with_context(|| format!("there is no variant {:?}", raw.variant))?;
        let terms = raw.cfg.terms()?.with_fixes(fixes);
        match raw.proto.as_str() {
            "core" => Ok(Vector::Core(Run::new(raw, terms)?)),
            "train" => Ok(Vector::Train(Run::new(raw, terms)?)),
            other => bail!("there is no kind of ring {other:?}: core or train"),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Vector::Core(run) => &run.name,
            Vector::Train(run) => &run.name,
        }
    }

    /// Runs it again. The error is the first difference.
    pub(super) fn replay(&self) -> Result<(), String> {
        match self {
            Vector::Core(run) => replay::replay(run),
            Vector::Train(run) => replay::replay(run),
        }
    }
}

impl Config {
    fn terms(&self) -> anyhow::Result<Terms> {
        let Config { l, k, max_vc, m, .. } = *self;
        ensure!(1 <= k && k <= l && l <= UNITS_MAX, "1 <= K <= l <= {UNITS_MAX} does not hold");
        ensure!(k <= max_vc && max_vc <= l, "K <= MaxVc <= l does not hold");
        ensure!(m >= 1, "there must be at least one sequence number (M)");
        let mut terms = Terms::new(l, k);
        (terms.collect_max, terms.seqs) = (max_vc, m);
        Ok(terms)
    }
}

impl<M: Replayed> Run<M> {
    fn new(raw: Raw, terms: Terms) -> anyhow::Result<Self> {
        let n = raw.cfg.n;
        ensure!(raw.events.len() == raw.check.len(), "as many checks as events are needed");
        let loop_start = usize::try_from(raw.loop_start).ok();
        ensure!(loop_start.is_none_or(|at| at <= raw.events.len()), "loop_start is too large");
        let events: Vec<Event> = raw
            .events
            .iter()
            .map(|event| self::event(event, n).with_context(|| format!("event {event}")))
            .collect::<anyhow::Result<_>>()?;
        Ok(Run {
            name: raw.name,
            begin: track(&raw.init, terms, n).context("init")?,
            events: events.into_iter().zip(raw.check).collect(),
            loop_start,
            end: track(&raw.end, terms, n).context("final")?,
        })
    }
}

fn track<M: Replayed>(state: &State, terms: Terms, n: usize) -> anyhow::Result<Track<M>> {
    ensure!(n >= 1, "a ring has at least one station");
    let (nodes, links) = (state.nodes.len(), state.links.len());
    ensure!(nodes == n && links == n, "{nodes} nodes and {links} links where n = {n}");
    let mut track: Track<M> = Track::new(terms, n);
    for (i, node) in state.nodes.iter().enumerate() {
        track.stations[i].load(node).with_context(|| format!("node {i}"))?;
        for one in &state.links[i] {
            let read = message(one).with_context(|| format!("link {i}: message {one}"))?;
            track.links[i].push_back(read);
        }
    }
    Ok(track)
}

fn event(event: &Value, n: usize) -> anyhow::Result<Event> {
    let words = event.as_array().context("an event is a list")?;
    let station = |at: usize| -> anyhow::Result<usize> {
        let number = number(words, at)? as usize;
        ensure!(number < n, "there is no station {number}");
        Ok(number)
    };
    let small = |at: usize| -> anyhow::Result<u32> {
        let number = number(words, at)?;
        ensure!((1..=1_000_000).contains(&number), "{number} is out of range");
        Ok(number as u32)
    };
    Ok(match words.first().and_then(Value::as_str).context("an event begins with its name")? {
        "deliver" => Event::Deliver(station(1)?),
        "request" => Event::Request(station(1)?, small(2)?),
        "leave" => Event::Leave(station(1)?),
        "timeout" => Event::Timeout,
        "launch" => Event::Launch,
        "round" => Event::Round(small(1)?),
        "drophead" => Event::DropHead(station(1)?),
        "inject" => {
            Event::Inject(station(1)?, message(words.get(2).context("inject needs a message")?)?)
        }
        other => bail!("there is no event {other:?}"),
    })
}

fn number(words: &[Value], at: usize) -> anyhow::Result<u64> {
    words.get(at).and_then(Value::as_u64).with_context(|| format!("number {at} is missing"))
}

fn message(value: &Value) -> anyhow::Result<Message<Count>> {
    let words = value.as_array().context("a message is a list")?;
    let count = |at: usize| -> anyhow::Result<Count> {
        let number = number(words, at)?;
        Ok(Count(u32::try_from(number).ok().with_context(|| format!("{number} tokens"))?))
    };
    Ok(match words.first().and_then(Value::as_str).context("a message begins with its name")? {
        "Token" => Message::Token(count(1)?),
        "CToken" => Message::Controller(number(words, 1)?),
        "Enabled" => Message::Enabled(Count(1)),
        "Collect" => Message::Collect(count(1)?),
        "Allocate" => Message::Allocate { tokens: count(1)?, order: number(words, 2)? != 0 },
        "Disable" => Message::Disable,
        "Wake" => Message::Wake,
        "Frame" => Message::Frame(Box::new(frame(words)?)),
        other => bail!("there is no message {other:?}"),
    })
}

/// The fields of a frame in the order of the specification, with or without the epoch in front, or
/// by name.
fn frame(words: &[Value]) -> anyhow::Result<Frame<Count>> {
    const NAMES: [&str; 9] =
        ["seq", "order", "free", "alloc", "coll", "cnt", "kill", "wprev", "wnow"];
    let mut fields = [0; 9];
    let named = words.get(1).and_then(Value::as_object);
    let first = match words.len() {
        10 => 1,
        11 => 2,
        _ if named.is_some() => 1,
        other => bail!("a frame has 9 fields, not {}", other - 1),
    };
    for (place, (field, name)) in fields.iter_mut().zip(NAMES).enumerate() {
        let value = match named {
            Some(named) => named.get(name),
            None => words.get(first + place),
        };
        let value = value.with_context(|| format!("{name} is missing"))?;
        let bit = value.as_bool().map(u64::from);
        *field = value.as_u64().or(bit).with_context(|| format!("{name} is not a number"))?;
    }
    let [seq, order, free, alloc, coll, counted, kill, waited, waits] = fields;
    let count = |number: u64| u32::try_from(number).map(Count).context("too many tokens");
    Ok(Frame {
        seq,
        order: order != 0,
        free: count(free)?,
        alloc: count(alloc)?,
        coll: count(coll)?,
        counted: count(counted)?,
        kill: kill != 0,
        waited: waited != 0,
        waits: waits != 0,
        blind: false,
    })
}
