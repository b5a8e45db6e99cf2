//! Crashes: units in use while nodes die, and how long until everybody knows.

use std::sync::OnceLock;

use quorate_papers::{Chart, Evidence, Found, Grid, Pace, Tally};

use super::{Known, OURS, Pool, RAYMOND, known, measure, or_failed};
use crate::experiment::{Cell, Metric};

pub(super) const EVIDENCE: &[(&str, Evidence)] = &[
    ("units_in_use_over_time", units_in_use_over_time),
    ("one_unit_for_each_crash", one_unit_for_each_crash),
    ("from_nine_to_one", from_nine_to_one),
    ("not_at_once", not_at_once),
    ("back_at_once", back_at_once),
    ("full_use_is_restored", full_use_is_restored),
    ("gradual_because_of_detection", gradual_because_of_detection),
    ("more_crashes_take_longer", more_crashes_take_longer),
    ("detection_over_rho", detection_over_rho),
    ("detection_time", detection_time),
    ("fewer_are_asked", fewer_are_asked),
];

const FIRST: f64 = 100.0;
const EVERY: f64 = 10.0;
const STEP: f64 = 5.0;

/// Of the paper; or smaller, with enough units to lose several.
fn pool(pace: Pace) -> Pool {
    let small = Pool { nodes: 20, units: 4, crashes: 3, sites: 4 };
    pace.pick(small, Pool { nodes: 100, units: 10, crashes: 9, sites: 10 })
}

/// Two loads below the bend of the pool, and one beyond.
fn rhos(pace: Pace) -> [f64; 3] {
    pace.pick([1.0, 3.0, 12.0], [2.0, 8.0, 20.0])
}

/// As many crashes as are tolerated, one after the other.
fn decline(pace: Pace) -> Result<&'static [Cell], String> {
    static QUICK: Known = OnceLock::new();
    static WHOLE: Known = OnceLock::new();
    let pool = pool(pace);
    known(pace.pick(&QUICK, &WHOLE), || {
        format!(
            "{}protocols = [\"raymond\", \"timer-free\"]\nlatency = [0.1, 1.0]\nrho = {:?}\n\
             crashes = {}\ncrash_at = {FIRST}\ncrash_every = {EVERY}\nwarm_up = 0\nmeasured = {}\n\
             series_step = {STEP}\nrepetitions = {}\nx = \"crashes\"\n",
            pool.file(),
            &rhos(pace)[..2],
            pool.crashes,
            pace.pick(400, 600),
            pace.pick(3, 5)
        )
    })
}

/// Crashes at once, until everybody knows.
pub(super) fn detection(pace: Pace) -> Result<&'static [Cell], String> {
    static QUICK: Known = OnceLock::new();
    static WHOLE: Known = OnceLock::new();
    let pool = pool(pace);
    known(pace.pick(&QUICK, &WHOLE), || {
        format!(
            "{}protocols = [\"timer-free\"]\nlatency = 0.1\nrho = {:?}\ncrashes = {}\n\
             crash_at = {FIRST}\nwarm_up = 0\nmeasured = 1500\nuntil_known = true\n\
             repetitions = {}\nx = \"crashes\"\n",
            pool.file(),
            rhos(pace),
            pace.pick("[1, 2, 3]", "[1, 2, 3, 4, 5, 6, 7, 8, 9]"),
            pace.pick(6, 10)
        )
    })
}

fn find<'a>(cells: &'a [Cell], protocol: &str, latency: f64, rho: f64) -> Result<&'a Cell, String> {
    super::cell(cells, protocol, latency, rho)
}

/// Units in use, averaged over the repetitions, over time.
fn series(cell: &Cell) -> Vec<(f64, f64)> {
    let slots = cell.samples.iter().map(|sample| sample.series.len()).min().unwrap_or(0);
    let runs = cell.samples.len().max(1) as f64;
    let at =
        |slot: usize| cell.samples.iter().map(|sample| sample.series[slot]).sum::<f64>() / runs;
    (0..slots).map(|slot| ((slot as f64 + 0.5) * STEP, at(slot))).collect()
}

fn between(series: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let inside: Vec<f64> =
        series.iter().filter(|point| (from..to).contains(&point.0)).map(|point| point.1).collect();
    inside.iter().sum::<f64>() / inside.len().max(1) as f64
}

/// One run of the figure: use before, in the last hundred seconds, and all of it.
struct Curve {
    protocol: &'static str,
    latency: f64,
    rho: f64,
    before: f64,
    end: f64,
    series: Vec<(f64, f64)>,
    /// When the first and the last crash was known to everybody; nothing if one never was.
    known: Option<(f64, f64)>,
}

fn curves(pace: Pace) -> Result<Vec<Curve>, String> {
    let cells = decline(pace)?;
    let mut curves = Vec::new();
    for protocol in [RAYMOND, OURS] {
        for latency in super::LATENCIES {
            for rho in &rhos(pace)[..2] {
                let cell = find(cells, protocol, latency, *rho)?;
                let series = series(cell);
                let end = series.last().map_or(0.0, |point| point.0);
                let all = cell.samples.iter().all(|sample| sample.unknown == 0);
                let times = || {
                    cell.samples.iter().flat_map(|sample| {
                        let known = sample.detection.iter().enumerate();
                        known.map(|(number, time)| FIRST + number as f64 * EVERY + time)
                    })
                };
                let known = all
                    .then(|| (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max)));
                curves.push(Curve {
                    protocol,
                    latency,
                    rho: *rho,
                    before: between(&series, 50.0, FIRST),
                    end: between(&series, end - 100.0, end + 1.0),
                    series,
                    known: known.filter(|_| protocol == OURS),
                });
            }
        }
    }
    Ok(curves)
}

fn last_crash(pace: Pace) -> f64 {
    FIRST + f64::from(pool(pace).crashes - 1) * EVERY
}

impl Curve {
    fn name(&self) -> String {
        format!("{}, {} s, rho {}", self.protocol, self.latency, self.rho)
    }

    /// From when on it is at 95 % of what it was, for good.
    fn back(&self) -> f64 {
        let low = self.series.iter().rev().find(|point| point.1 < 0.9 * self.before);
        low.map_or(0.0, |point| point.0 + STEP / 2.0)
    }
}

fn units_in_use_over_time(pace: Pace) -> Found {
    or_failed((|| {
        let Pool { units, crashes, .. } = pool(pace);
        let mut chart = Chart::new(
            "Units in use while nodes crash, one every 10 s from 100 s on",
            "seconds",
            "units in use",
        );
        let mut cases = Tally::new();
        for curve in curves(pace)? {
            let left = f64::from(units - crashes) / f64::from(units) * curve.before;
            let so = match curve.protocol {
                RAYMOND => (curve.end - left).abs() < 0.35,
                _ => curve.end > 0.9 * curve.before,
            };
            cases.case(so, || format!("{}: {:.2} at the end", curve.name(), curve.end));
            if curve.latency == 1.0 {
                let name = format!("{}, rho {}", curve.protocol, curve.rho);
                chart = chart.curve(name, curve.series);
            }
        }
        Ok(Found::open(
            cases.holds(),
            format!(
                "The figures are not in the paper's file, nor the two values of rho. Drawn here \
                 for k = {units} and {crashes} crashes: {}.",
                cases.words(
                    "curves: Raymond's algorithm is left with what the crashed do not owe, the \
                     new one returns to full use"
                )
            ),
        )
        .drawn(chart)
        .by("quorate-lab sim figures timer-free"))
    })())
}

fn one_unit_for_each_crash(pace: Pace) -> Found {
    or_failed((|| {
        let Pool { units, crashes, .. } = pool(pace);
        let mut cases = Tally::new();
        for curve in curves(pace)?.iter().filter(|curve| curve.protocol == RAYMOND) {
            let left = f64::from(units - crashes) / f64::from(units) * curve.before;
            cases.case((curve.end - left).abs() < 0.35, || {
                format!("{}: {:.2} left, not {left:.2}", curve.name(), curve.end)
            });
        }
        let text = format!(
            "settings, whatever rho: {crashes} crashes leave {} units of {units}",
            units - crashes
        );
        Ok(Found::all(&cases, &text))
    })())
}

fn from_nine_to_one(pace: Pace) -> Found {
    or_failed((|| {
        let Pool { units, crashes, .. } = pool(pace);
        let (mut nine, mut cases) = (Tally::new(), Tally::new());
        for curve in curves(pace)?.iter().filter(|curve| curve.protocol == RAYMOND) {
            let full =
                f64::from(units) * super::HOLD / (super::HOLD + pool(pace).idle(curve.latency));
            let name = || format!("{}: {:.2} before", curve.name(), curve.before);
            nine.case((curve.before - f64::from(units - 1)).abs() < 0.2, name);
            let left = f64::from(units - crashes) / f64::from(units) * full;
            let so = (curve.before / full - 1.0).abs() < 0.05 && (curve.end - left).abs() < 0.35;
            cases.case(so, || format!("{}: {:.2} to {:.2}", curve.name(), curve.before, curve.end));
        }
        Ok(Found::corrected(
            &nine,
            "settings that begin with k-1 units in use",
            &cases,
            "settings: from k units, less what lies idle while permissions travel, to what k less \
             the crashes leaves",
        ))
    })())
}

fn not_at_once(pace: Pace) -> Found {
    or_failed((|| {
        let mut cases = Tally::new();
        for curve in curves(pace)?.iter().filter(|curve| curve.protocol == RAYMOND) {
            let after = between(&curve.series, FIRST, FIRST + STEP);
            let later = between(&curve.series, last_crash(pace) + 50.0, last_crash(pace) + 100.0);
            cases.case(after > later, || format!("{}: {after:.2}, {later:.2}", curve.name()));
        }
        Ok(Found::all(&cases, "settings: more in use just after the first crash than in the end"))
    })())
}

fn back_at_once(pace: Pace) -> Found {
    or_failed((|| {
        let mut cases = Tally::new();
        let mut grid =
            Grid::new(&["setting", "a cycle of requests, s", "back after the last crash, s"]);
        for curve in curves(pace)?.iter().filter(|curve| curve.protocol == OURS) {
            let cycle = f64::from(pool(pace).nodes) / pool(pace).plateau(curve.latency);
            let after = curve.back() - last_crash(pace);
            // The paper: at 200 s, 20 s after the last crash, which is a cycle of its setting.
            cases.case(after <= cycle.min(20.0), || format!("{}: {after:.0} s", curve.name()));
            grid.row(&[&curve.name(), &format!("{cycle:.0}"), &format!("{after:.0}")]);
        }
        Ok(Found::all(
            &cases,
            "settings back at nine tenths of full use within the paper's 20 s (or a cycle of \
             requests, if that is shorter) of the last crash",
        )
        .and("Detection takes two cycles of requests of everybody.")
        .with(grid))
    })())
}

fn full_use_is_restored(pace: Pace) -> Found {
    or_failed((|| {
        let mut cases = Tally::new();
        for curve in curves(pace)? {
            let restored = curve.end > 0.9 * curve.before;
            cases.case(restored == (curve.protocol == OURS), || {
                format!("{}: {:.2} of {:.2}", curve.name(), curve.end, curve.before)
            });
        }
        Ok(Found::all(&cases, "curves: full use comes back with detection, and only with it"))
    })())
}

fn gradual_because_of_detection(pace: Pace) -> Found {
    or_failed((|| {
        let mut cases = Tally::new();
        for curve in curves(pace)?.iter().filter(|curve| curve.protocol == OURS) {
            let Some((first, last)) = curve.known else {
                cases.case(false, || format!("{}: a crash was never known", curve.name()));
                continue;
            };
            let back = curve.back();
            let lowest = curve.series.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let low_at = lowest.map_or(0.0, |point| point.0);
            // It falls while crashes are unknown, and has risen when all are known everywhere.
            let so = low_at <= last + STEP && back <= last + 4.0 * STEP && back >= first - STEP;
            cases.case(so, || {
                format!(
                    "{}: lowest at {low_at:.0}, known {first:.0} to {last:.0}, back {back:.0}",
                    curve.name()
                )
            });
        }
        Ok(Found::all(
            &cases,
            "settings: use is lowest while crashes are unknown to somebody, and back when the \
             last is known",
        ))
    })())
}

fn detection_at(pace: Pace, rho: f64, crashes: u32) -> Result<f64, String> {
    let is = |cell: &&Cell| cell.setting.rho == rho && cell.setting.crashes == crashes;
    let cell = detection(pace)?.iter().find(is).ok_or("no such setting")?;
    let time = cell.summary(Metric::DetectionTime).ok_or("a crash stayed unknown")?;
    Ok(time.mean)
}

fn more_crashes_take_longer(pace: Pace) -> Found {
    or_failed((|| {
        let most = pool(pace).crashes;
        let mut cases = Tally::new();
        for rho in &rhos(pace)[..2] {
            let (one, many) = (detection_at(pace, *rho, 1)?, detection_at(pace, *rho, most)?);
            cases.case(many > one, || format!("rho {rho}: {one:.0} s, {many:.0} s"));
        }
        let of = |crashes| detection_at(pace, rhos(pace)[0], crashes);
        let text = format!("{:.0} s for one, {:.0} s for {most} at once.", of(1)?, of(most)?);
        Ok(Found::all(&cases, "loads at which more crashes take longer to be known").and(text))
    })())
}

fn detection_over_rho(pace: Pace) -> Found {
    or_failed((|| {
        let [busy, less, quiet] = rhos(pace);
        let of = |rho| detection_at(pace, rho, 1);
        let (busy, less, quiet) = (of(busy)?, of(less)?, of(quiet)?);
        let mut cases = Tally::new();
        cases.case(quiet > 1.2 * busy.max(less), || format!("{busy:.0} {less:.0} {quiet:.0}"));
        let cycle = f64::from(pool(pace).nodes) / pool(pace).plateau(0.1);
        Ok(Found::corrected_if(
            busy > 0.75 * less,
            &cases,
            format!(
                "Beyond the bend only. Of one crash everybody knows after {busy:.0} s and \
                 {less:.0} s at the two loads below it, where a cycle of requests takes \
                 {cycle:.0} s whatever rho, and after {quiet:.0} s beyond it."
            ),
        ))
    })())
}

fn detection_time(pace: Pace) -> Found {
    or_failed((|| {
        let mut grid = Grid::new(&["rho", "crashes", "mean, s", "least, s", "largest, s"]);
        let mut chart = Chart::new(
            "Until every live node knows of a crash, crashes at once",
            "crashes",
            "seconds",
        );
        let mut cases = Tally::new();
        for rho in &rhos(pace)[..2] {
            let (mut mean, mut least, mut most) = (Vec::new(), Vec::new(), Vec::new());
            for cell in detection(pace)?.iter().filter(|cell| cell.setting.rho == *rho) {
                let crashes = cell.setting.crashes;
                let known = cell.samples.iter().all(|sample| sample.unknown == 0);
                cases.case(known, || format!("rho {rho}, {crashes} crashes"));
                let (Some(time), Some((low, high))) =
                    (cell.summary(Metric::DetectionTime), cell.detection_range())
                else {
                    continue;
                };
                let x = f64::from(crashes);
                mean.push((x, time.mean));
                least.push((x, low));
                most.push((x, high));
                let shown = |value: f64| format!("{value:.1}");
                grid.row(&[rho, &crashes, &time.shown(1), &shown(low), &shown(high)]);
            }
            chart = chart.curve(format!("rho {rho}, mean"), mean);
            if *rho == rhos(pace)[0] {
                chart = chart.curve("least", least).curve("largest", most);
            }
        }
        Ok(Found::all(&cases, "settings in which every crash became known to all")
            .with(grid)
            .drawn(chart)
            .by("quorate-lab sim figures timer-free"))
    })())
}

/// With so many crashes known from the beginning of what is measured.
fn fewer_are_asked(pace: Pace) -> Found {
    or_failed((|| {
        let pool = pool(pace);
        let quiet = pace.pick(16.0, 20.0);
        let cells = measure(&format!(
            "{}protocols = [\"timer-free\"]\nlatency = 0.1\nrho = [1.0, {quiet:?}]\n\
             crashes = [0, {}]\nwarm_up = {}\nmeasured = {}\nrepetitions = 3\n",
            pool.file(),
            pool.crashes,
            pace.pick(500, 600),
            pace.pick(500, 800)
        ))
        .map_err(|error| format!("{error:#}"))?;
        let mut grid =
            Grid::new(&["rho", "crashes known", "messages per grant", "claim to grant, s"]);
        let of = |rho: f64, crashes: u32, metric| {
            let is = |cell: &&Cell| cell.setting.rho == rho && cell.setting.crashes == crashes;
            let cell = cells.iter().find(is).ok_or("no such setting")?;
            cell.summary(metric).ok_or_else(|| "nothing measured".to_owned())
        };
        let (mut fewer, mut faster, mut loaded) = (Tally::new(), Tally::new(), Tally::new());
        for rho in [1.0, quiet] {
            let pair =
                |metric| Ok::<_, String>((of(rho, 0, metric)?, of(rho, pool.crashes, metric)?));
            let (messages, time) = (pair(Metric::MessagesPerCs)?, pair(Metric::ObtainingTime)?);
            grid.row(&[&rho, &0, &messages.0.shown(1), &time.0.shown(2)]);
            grid.row(&[&rho, &pool.crashes, &messages.1.shown(1), &time.1.shown(2)]);
            fewer.case(messages.0.is_above(&messages.1), || format!("rho {rho}"));
            // More than a tenth, so that it is not what fewer who ask make of it by chance.
            faster.case(time.1.mean < 0.9 * time.0.mean, || {
                format!("rho {rho}: {:.2} s before, {:.2} s after", time.0.mean, time.1.mean)
            });
            if rho == 1.0 {
                loaded.case(time.1.mean < 0.9 * time.0.mean, || "under load".into());
            }
        }
        loaded.case(fewer.holds(), || fewer.words("loads"));
        Ok(Found::corrected_if(
            !faster.holds(),
            &loaded,
            format!(
                "Fewer messages at any load: {}. Sooner only where claims wait for each other, as \
                 there are fewer of them: {}.",
                fewer.words("loads"),
                faster.words("loads at which claims are served sooner")
            ),
        )
        .with(grid))
    })())
}
