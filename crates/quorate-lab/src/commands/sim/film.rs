//! A recorded run as a page: `quorate-lab sim run --html`.

use std::path::Path;

use anyhow::{Context as _, ensure};
use quorate_core::Protocol;
use quorate_sim::{Change, Film, Health, Plan, Report, Verdict};
use serde_json::{Value, json};

/// Most events on a page: some megabytes, which a browser reads in a moment.
const FRAMES_MAX: usize = 20_000;
/// Most nodes that can be told apart on a circle.
const NODES_MAX: u32 = 64;

/// What the page says about its run.
pub(crate) struct About<'a, P: Protocol> {
    pub(crate) plan: &'a Plan,
    pub(crate) pool: &'a P::Pool,
    pub(crate) report: &'a Report,
    pub(crate) command: String,
}

/// An empty film, if a page can show this run at all.
pub(super) fn new(plan: &Plan) -> anyhow::Result<Film> {
    let nodes = plan.nodes;
    ensure!(nodes <= NODES_MAX, "--html draws at most {NODES_MAX} nodes, not {nodes}; try --svg");
    Ok(Film::new(FRAMES_MAX))
}

/// Writes the page, and says so if the run did not fit.
pub(super) fn write<P: Protocol>(
    path: &Path,
    film: &Film,
    about: &About<'_, P>,
) -> anyhow::Result<()> {
    let page = quorate_view::replay(&film_json::<P>(film, about).to_string());
    std::fs::write(path, page).with_context(|| format!("writing {}", path.display()))?;
    if film.left_out > 0 {
        eprintln!(
            "quorate-lab: {} shows the first {FRAMES_MAX} events; {} more did not fit \
             (a shorter --duration, or fewer --grants, gives a whole run)",
            path.display(),
            film.left_out
        );
    }
    Ok(())
}

/// As `film.js` of quorate-view reads it.
pub(crate) fn film_json<P: Protocol>(film: &Film, about: &About<'_, P>) -> Value {
    let About { plan, pool, report, command } = about;
    let units = P::capacity(pool);
    let frames: Vec<Value> = film
        .frames
        .iter()
        .map(|frame| {
            let changes: Vec<Value> = frame.changes.iter().map(change).collect();
            json!([frame.at, frame.who, frame.text, changes, frame.step])
        })
        .collect();
    let flights: Vec<Value> = film
        .flights
        .iter()
        .map(|f| json!([f.from.0, f.to.0, f.sent, f.ends, f.lost, f.kind, f.text, f.number]))
        .collect();
    let verdict = match &report.verdict {
        Verdict::Clean => "Every law held, and everybody was served".to_owned(),
        Verdict::Stopped => "Every law held up to here".to_owned(),
        Verdict::Broken(breach) => format!("BROKEN {breach}"),
    };
    json!({
        "title": format!("{}: {} nodes share {units} units", P::NAME, plan.nodes),
        "command": command,
        "protocol": P::NAME,
        "nodes": plan.nodes,
        "units": units,
        "named": P::names_units(pool),
        "kinds": P::KINDS,
        "verdict": verdict,
        "left_out": film.left_out,
        "frames": frames,
        "flights": flights,
    })
}

fn change(change: &Change) -> Value {
    match change {
        Change::Claimed { claim, node, units } => json!(["c", claim.to_string(), node.0, units]),
        Change::Granted { claim, units, fences } => {
            // A fence may have more digits than a number in a browser.
            let fences: Vec<String> = fences.iter().map(u64::to_string).collect();
            json!(["g", claim.to_string(), units, fences])
        }
        Change::Gone { claim } => json!(["x", claim.to_string()]),
        Change::Node { node, health } => {
            let health = match health {
                Health::Up => "up",
                Health::Paused => "paused",
                Health::Down => "down",
            };
            json!(["n", node.0, health])
        }
        Change::Cut(pairs) => {
            let pairs: Vec<[u32; 2]> = pairs.iter().map(|(from, to)| [from.0, to.0]).collect();
            json!(["k", pairs])
        }
        Change::Fact { node, fact } => {
            let about = fact.about.map(|about| about.0);
            json!(["f", node.0, fact.name, about, fact.value, fact.grows])
        }
    }
}
