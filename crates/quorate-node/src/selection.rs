//! Which units will do for a claim: what it asks for, and what its client may use.
//!
//! Who a client is, is what it says of itself, unless tokens have rights: then it is a name that
//! its token allows, and without them a reservation keeps honest clients apart and nobody else.
//! Which member it asks at is known, and the protocol checks that again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use quorate_api::{Line as ApiLine, Problem, ProblemKind, Want};
use quorate_core::{LINES_MAX, Line, NodeId, Unit, Units};
use quorate_protocols::allocator::labels::Labels;
use quorate_protocols::allocator::{Allocator, Impossible, Policy, Want as Seats};

use crate::config::PoolDef;
use crate::engine::check_labels;

/// Labels, and values of each, that an answer lists.
const LISTED: usize = 8;
/// Most labels in one line of a claim, and of a unit that gets others.
pub(crate) const LABELS_MAX: usize = 16;

/// What a node knows of the units of a pool.
pub(crate) struct Known<'a> {
    /// Their labels, if they differ.
    pub(crate) labels: Option<&'a Arc<Labels>>,
    /// Whether this node decides over them, or they never change. Another may not have heard of the
    /// last change, and so refuses nothing by labels: whoever decides does.
    pub(crate) decides: bool,
}

/// The lines of a claim as protocols want them; `None` if any units will do.
pub(crate) fn lines(
    def: &PoolDef,
    known: &Known<'_>,
    member: NodeId,
    want: &Want,
    units: Units,
) -> Result<Option<Arc<[Line]>>, Problem> {
    let allowed = def.allowed(member, &want.client);
    if want.lines.is_empty() {
        return any(def, units, allowed);
    }
    let Some(labels) = known.labels else {
        let text = "units of this pool have no labels: ask for a number of them";
        return Err(impossible(text));
    };
    if want.lines.len() > LINES_MAX {
        return Err(bad(format!("{} lines: at most {LINES_MAX} are possible", want.lines.len())));
    }
    let sum: u64 = want.lines.iter().map(|line| u64::from(line.units)).sum();
    if sum != u64::from(units.get()) {
        let text = format!("the lines ask for {sum} units, and the claim for {units}");
        return Err(bad(text + ": leave units out where there are lines"));
    }
    for line in &want.lines {
        check_labels(&line.labels).map_err(bad)?;
    }
    if known.decides
        && let Some(why) = why_never(def, Some(labels), member, want)
    {
        return Err(impossible(why));
    }
    let among = allowed.unwrap_or_else(|| Arc::clone(labels.all()));
    let line = |line: &ApiLine| {
        let units = Units::new(line.units, units.get()).map_err(|e| impossible(e.to_string()))?;
        if !def.protocol.about.relabels {
            // Chosen once and for all.
            let chosen = labels.having(&line.labels);
            let both = chosen.iter().filter(|unit| among.binary_search(unit).is_ok());
            return Ok(Line::of(units, both.copied().collect()));
        }
        let labels = (!line.labels.is_empty()).then(|| Arc::new(line.labels.clone()));
        Ok(Line { labels, ..Line::of(units, Arc::clone(&among)) })
    };
    want.lines.iter().map(line).collect::<Result<_, Problem>>().map(Some)
}

/// Why a claim could never be granted, if labels are to blame: which of its lines ask for too much,
/// and what there is.
pub(crate) fn why_never(
    def: &PoolDef,
    labels: Option<&Labels>,
    member: NodeId,
    want: &Want,
) -> Option<String> {
    let labels = labels?;
    let allowed = def.allowed(member, &want.client);
    let usable =
        |unit: &Unit| allowed.as_ref().is_none_or(|units| units.binary_search(unit).is_ok());
    let seats = |line: &ApiLine| {
        let units = labels.having(&line.labels).iter().copied().filter(usable).collect();
        Seats { among: Some(units), units: line.units }
    };
    let wants: Vec<Seats> = want.lines.iter().map(seats).collect();
    let why = Allocator::new(def.units, Policy::STRICT).serves(&wants).err()?;
    Some(explain(&why, &want.lines) + &there_are(labels, def.units, allowed.as_deref()))
}

fn any(
    def: &PoolDef,
    units: Units,
    allowed: Option<Arc<[Unit]>>,
) -> Result<Option<Arc<[Line]>>, Problem> {
    let Some(among) = allowed else { return Ok(None) };
    if among.len() < units.get() as usize {
        let text = format!(
            "{units} units asked, and this client may use {} of the pool's {} at this node",
            among.len(),
            def.units
        );
        return Err(impossible(text));
    }
    Ok(Some([Line::of(units, among)].into()))
}

/// Which lines ask for too much.
fn explain(why: &Impossible, lines: &[ApiLine]) -> String {
    let guilty: Vec<String> =
        why.lines.iter().filter_map(|line| lines.get(*line)).map(ToString::to_string).collect();
    let (wanted, there_are) = (why.wanted, why.there_are);
    match &guilty[..] {
        [one] if there_are == 1 => format!("{one}: there is 1 such unit"),
        [one] => format!("{one}: there are {there_are} such units"),
        all => format!(
            "{}: together these ask for {wanted} units, and there are {there_are} that will do",
            all.join(", ")
        ),
    }
}

/// What a client can choose by: every label with its values and how many units have each.
fn there_are(labels: &Labels, units: u32, allowed: Option<&[Unit]>) -> String {
    let mut keys: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    let usable = |unit: &Unit| allowed.is_none_or(|units| units.binary_search(unit).is_ok());
    for (key, value) in (0..units).map(Unit).filter(usable).filter_map(|u| labels.of(u)).flatten() {
        *keys.entry(key).or_default().entry(value).or_default() += 1;
    }
    let mut text = String::from(match allowed {
        None => ". The pool has",
        Some(_) => ". Of the pool's units this client may use, at this node,",
    });
    if keys.is_empty() {
        text.push_str(" none with labels");
    }
    let more = |text: &mut String, count: usize| {
        if count > LISTED {
            // Writing to a string cannot fail.
            let _ = write!(text, " and {} more", count - LISTED);
        }
    };
    for (position, (key, values)) in keys.iter().take(LISTED).enumerate() {
        let _ = write!(text, "{} {key}=", if position > 0 { ";" } else { "" });
        let list: Vec<String> =
            values.iter().take(LISTED).map(|(value, count)| format!("{value} ({count})")).collect();
        text.push_str(&list.join(", "));
        more(&mut text, values.len());
    }
    more(&mut text, keys.len());
    text
}

fn impossible(text: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Impossible, text)
}

fn bad(text: String) -> Problem {
    Problem::new(ProblemKind::BadRequest, text)
}
