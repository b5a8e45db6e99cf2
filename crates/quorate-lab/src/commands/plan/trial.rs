//! Each way on trial: its file is read, losses are tried, and what is left is simulated.

use std::time::Duration;

use anyhow::Context as _;
use quorate_api::format_span;
use quorate_core::{Hurdle, NodeSet, Outlook};
use quorate_node::Config;
use quorate_sim::{Delay, Span, Time};

use super::Prefer;
use super::fleet::Fleet;
use super::ways::{Way, ways};
use crate::experiment::crew::Progress;
use crate::experiment::{Cell, Contender, Many, Metric, Sweep};

/// What became of all ways.
pub(super) struct Tried {
    /// Those that will do, the best first.
    pub(super) fit: Vec<Fit>,
    /// Those that will not, and why.
    pub(super) rejected: Vec<(String, String)>,
}

/// A way that will do, and what it is worth.
pub(super) struct Fit {
    pub(super) way: Way,
    /// The file of the first node.
    pub(super) file: String,
    /// The command that simulates it.
    pub(super) command: String,
    /// What its quorums are, where it has any.
    pub(super) quorums: Option<String>,
    /// How likely it can grant, and whether that is exact.
    pub(super) availability: (f64, bool),
    /// When units are hardly wanted...
    pub(super) calm: Measured,
    /// ...and when as many are wanted as the fleet says.
    pub(super) busy: Measured,
}

/// The command that simulates a way with the fleet's clients.
fn command(fleet: &Fleet, way: &Way, seed: u64) -> String {
    let sweep = workload(fleet, fleet.wanted, seed);
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    let about = |mean: Duration| {
        let mean = mean.as_nanos() as u64;
        Span::Uniform { low: mean - mean / 10, high: mean + mean / 10 }
    };
    let inside = about(fleet.inside);
    let delay = match fleet.zones {
        1 => Delay::Everywhere(inside),
        count => Delay::Sites { count, inside, between: about(fleet.between) },
    };
    let hold = nanos(fleet.hold.as_secs_f64());
    let rho = sweep.rho.values()[0];
    let think = Span::Exponential((rho * hold as f64) as u64);
    let time = |seconds: f64| Time(nanos(seconds));
    format!(
        "quorate-lab sim run --protocol {} --nodes {} --units {} --want {} --hold {} \
         --think {think} --clients-per-node {} --delay '{delay}' --lease {} --stagger \
         --warm-up {} --duration {} --seed {seed}",
        way.words,
        fleet.nodes,
        fleet.units,
        fleet.want,
        Span::Exponential(hold),
        sweep.clients_per_node,
        Time(fleet.lease.as_nanos() as u64),
        time(sweep.warm_up),
        time(sweep.warm_up + sweep.measured)
    )
}

/// What the simulator measured. Seconds; messages for each grant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) wait: f64,
    pub(super) wait_p99: f64,
    pub(super) messages: f64,
    pub(super) busiest: f64,
    pub(super) grants: f64,
}

/// How much is wanted where units are hardly wanted.
const CALM: f64 = 0.02;
/// Grants that a run should have.
const GRANTS: f64 = 1500.0;
const RUNS: u32 = 3;

/// Tries all ways.
///
/// # Errors
/// A run broke a law.
pub(super) fn all(
    fleet: &Fleet,
    prefer: Prefer,
    seed: u64,
    progress: &Progress<'_>,
) -> anyhow::Result<Tried> {
    let (mut read, mut rejected) = (Vec::new(), Vec::new());
    for way in ways(fleet) {
        match judged(fleet, &way) {
            Ok(judged) => read.push((way, judged)),
            Err(why) => rejected.push((way.name, format!("{why:#}"))),
        }
    }
    // All together, so that every core has something to do.
    let sweeps = [CALM, fleet.wanted].map(|wanted| workload(fleet, wanted, seed));
    let mut kept = Vec::new();
    for (way, judged) in read {
        let fits = Contender::new(&way.words).and_then(|contender| {
            let alone = Sweep { protocols: vec![contender], ..sweeps[0].clone() };
            alone.check().map(|()| contender)
        });
        match fits {
            Ok(contender) => kept.push((way, judged, contender)),
            Err(why) => rejected.push((way.name, why.root_cause().to_string())),
        }
    }
    let mut contenders: Vec<Contender> = Vec::new();
    for (_, _, contender) in &kept {
        if !contenders.contains(contender) {
            contenders.push(*contender);
        }
    }
    let mut cells: Vec<Vec<Cell>> = Vec::new();
    for sweep in sweeps.into_iter().filter(|_| !contenders.is_empty()) {
        let sweep = Sweep { protocols: contenders.clone(), ..sweep };
        cells.push(sweep.run(progress)?);
    }
    let mut fit = Vec::new();
    for (way, (file, quorums, availability), contender) in kept {
        let of = |cells: &[Cell]| {
            let cell = cells.iter().find(|cell| cell.setting.protocol == contender);
            Measured::of(cell.context("each was run")?).context("nothing was granted in time")
        };
        match (of(&cells[0]), of(&cells[1])) {
            (Ok(calm), Ok(busy)) => {
                let command = command(fleet, &way, seed);
                fit.push(Fit { way, file, command, quorums, availability, calm, busy });
            }
            (Err(why), _) | (_, Err(why)) => rejected.push((way.name, format!("{why:#}"))),
        }
    }
    rank(&mut fit, prefer);
    Ok(Tried { fit, rejected })
}

/// Nearly the same.
const ALIKE: f64 = 1.05;

fn rank(fit: &mut Vec<Fit>, prefer: Prefer) {
    let cost = |fit: &Fit| match prefer {
        Prefer::Latency => fit.busy.wait,
        Prefer::Messages => fit.busy.busiest,
        // So that a factor means something.
        Prefer::Availability => fit.missing(),
    };
    let mut left = std::mem::take(fit);
    left.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    while !left.is_empty() {
        let most = cost(&left[0]) * ALIKE;
        let alike = left.iter().take_while(|one| cost(one) <= most).count();
        // Down half as often counts, and nothing less.
        let down = |one: &Fit| one.missing().log2().round();
        let better = |a: &Fit, b: &Fit| {
            down(a).total_cmp(&down(b)).then(a.busy.busiest.total_cmp(&b.busy.busiest))
        };
        let best = (0..alike).min_by(|a, b| better(&left[*a], &left[*b])).unwrap_or(0);
        fit.push(left.remove(best));
    }
}

impl Fit {
    /// How likely it cannot grant.
    pub(super) fn missing(&self) -> f64 {
        (1.0 - self.availability.0).max(1e-12)
    }
}

impl Measured {
    fn of(cell: &Cell) -> Option<Measured> {
        let mean = |metric| cell.summary(metric).map(|summary| summary.mean);
        Some(Measured {
            wait: mean(Metric::ObtainingTime)?,
            wait_p99: mean(Metric::WaitingP99)?,
            messages: mean(Metric::MessagesPerCs)?,
            busiest: mean(Metric::BusiestNode)?,
            grants: mean(Metric::CsPerSecond)?,
        })
    }
}

/// Clients that want such a share of the units if nobody had to wait.
fn workload(fleet: &Fleet, wanted: f64, seed: u64) -> Sweep {
    let hold = fleet.hold.as_secs_f64();
    // Each client thinks at least as long as it holds, so that none is the whole load.
    let target = wanted * f64::from(fleet.units);
    let each = fleet.mean * f64::from(fleet.nodes);
    let clients = (2.0 * target / each).ceil().max(1.0);
    let rate = target / (fleet.mean * hold);
    let zones = fleet.zones > 1;
    let latency = if zones { fleet.between } else { fleet.inside };
    Sweep {
        title: "a plan".to_owned(),
        nodes: Many::One(fleet.nodes),
        units: Many::One(fleet.units),
        hold: Many::One(hold),
        rho: Many::One(each * clients / target - 1.0),
        clients_per_node: clients as u32,
        want: fleet.want.clone(),
        latency: Many::One(latency.as_secs_f64()),
        latency_spread: 0.1,
        sites: fleet.zones,
        inside: fleet.inside.as_secs_f64() / latency.as_secs_f64(),
        inside_spread: 0.1,
        lease: Many::One(fleet.lease.as_secs_f64()),
        stagger: true,
        warm_up: 0.1 * GRANTS / rate,
        measured: GRANTS / rate,
        repetitions: RUNS,
        seed,
        ..Sweep::default()
    }
}

type Judged = (String, Option<String>, (f64, bool));

/// Whether the daemon takes the file, and the pool goes on without whoever may be lost.
fn judged(fleet: &Fleet, way: &Way) -> anyhow::Result<Judged> {
    let file = file(fleet, way);
    let config = Config::parse(&file).map_err(|error| anyhow::anyhow!(one_line(&error)))?;
    let pool = config.pools.first().context("the file has a pool")?;
    let (_, most) = fleet.claims();
    let names_units = pool.promises.names_units || pool.units == 1;
    anyhow::ensure!(!fleet.names || names_units, "a grant says how many units it has, not which");
    anyhow::ensure!(most <= pool.claim_max, "a claim can be for {} units", pool.claim_max);
    let members = fleet.nodes as usize;
    let outlook = |away: &NodeSet| -> Outlook {
        match pool.protocol.seat_moves() {
            // Whoever is left decides, as long as the charter has a majority.
            true if away.len() > pool.promises.survives as usize => {
                Outlook::nothing(Hurdle::TooManyCrashed(away.clone()))
            }
            true => Outlook::all(pool.units),
            false => pool.protocol.grants("units", members, away),
        }
    };
    let goes_on = |away: &NodeSet| {
        let outlook = outlook(away);
        fleet.sizes.iter().all(|size| outlook.allows(*size))
    };
    if let Some((lost, away)) = fleet.stopped_by(&goes_on) {
        let left = outlook(&away);
        let refused = fleet.sizes.iter().filter(|size| !left.allows(**size));
        let refused: Vec<String> = refused.map(u32::to_string).collect();
        let what = match left.sizes {
            None => "nothing".to_owned(),
            Some(_) => format!("no claim of {}", refused.join(" or ")),
        };
        let why = match (left.hurdle, pool.protocol.seat_moves()) {
            (Some(Hurdle::TooManyCrashed(_)), true) => {
                let (gone, borne) = (away.len(), pool.promises.survives);
                format!("{gone} are away, and the votes of the charter bear {borne}")
            }
            (hurdle, _) => hurdle.map_or(String::new(), |hurdle| why(fleet, &hurdle)),
        };
        anyhow::bail!("{lost} {what} is granted: {why}");
    }
    let quorums = pool.quorums.as_ref().map(|worth| format!("{}: {}", worth.family, worth.summary));
    let availability = fleet.availability(&goes_on);
    Ok((file, quorums, availability))
}

/// What is in the way, for people.
fn why(fleet: &Fleet, hurdle: &Hurdle) -> String {
    match hurdle {
        Hurdle::NoQuorum { away, voters, needed: Some(needed) } => {
            let left = *voters as usize - away.len();
            format!("it takes {needed} of {voters} voters, and {left} are left")
        }
        Hurdle::NoQuorum { .. } => "no quorum is among those that are left".to_owned(),
        Hurdle::Away(nodes) => format!("it needs {}", fleet.names_of(nodes)),
        Hurdle::TooManyCrashed(nodes) => {
            format!("{} away are more than it allows for", nodes.len())
        }
        Hurdle::UnitsLost(units, _) => format!("{units} units count as used by them"),
        other => format!("{other:?}"),
    }
}

/// An error of the reader without the line that it is about.
fn one_line(error: &quorate_node::ConfigError) -> String {
    let text = error.to_string();
    let text = text.trim_start_matches("pool units: ");
    text.lines().next().unwrap_or_default().to_owned()
}

/// The file of the first node.
fn file(fleet: &Fleet, way: &Way) -> String {
    let me = fleet.name(0);
    let mut text = format!(
        "cluster = \"fleet\"\nepoch = 1\nnode = \"{me}\"\ndata_dir = \"/var/lib/quorate\"\n\n\
         [listen]\nclients = \"127.0.0.1:7420\"\npeers = \"0.0.0.0:7520\"\n\n\
         [tls]\nca = \"/etc/quorate/ca.crt\"\ncert = \"/etc/quorate/node-{me}.crt\"\n\
         key = \"/etc/quorate/node-{me}.key\"\n\n"
    );
    if way.charter {
        text += "[charter]\nenabled = true\n\n";
    }
    for node in 0..fleet.nodes {
        let name = fleet.name(node);
        text += &format!("[[members]]\nname = \"{name}\"\npeers = \"{name}.example.org:7520\"\n\n");
    }
    text += "[[pools]]\nname = \"units\"\n";
    text += &match fleet.labels {
        false => format!("units = {}\n", fleet.units),
        // One unit of each kind is enough for the reader; which there are only their owner knows.
        true => {
            let unit = |at: u32| format!("{{ name = \"u{at}\", labels = {{ kind = \"k{at}\" }} }}");
            let units: Vec<String> = (0..fleet.units).map(unit).collect();
            format!("units = [{}]\n", units.join(", "))
        }
    };
    text += &format!("lease = \"{}\"\n{}", format_span(fleet.lease), way.options);
    if fleet.durable || fleet.standing {
        text += "durable = true\n";
    }
    if fleet.standing {
        text += "standing = true\n";
    }
    // What the file does not say is a loss of one.
    let quorums = way.options.contains("\"arbiter\"\nmode") || way.options.contains("\"table\"");
    if quorums && fleet.losses.nodes != 1 {
        text += &format!("survive = {}\n", fleet.losses.nodes);
    }
    text
}
