//! The figures of the timer-free paper, each with what the paper says about it.

use serde_json::{Value, json};

use super::chart::{Chart, Curve, Point};
use super::contender::Contender;
use super::metric::Metric;
use super::output::{chart, csv};
use super::stats::Summary;
use super::sweep::{Cell, Sweep};
use super::timer_free::{Claim, Report};

/// A figure: its file name, a heading, the drawing, the numbers in it, and claims about it.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) heading: &'static str,
    pub(super) chart: Chart,
    pub(super) table: String,
    /// A table beside the drawing, where that does not say everything.
    pub(super) numbers: Option<(Vec<&'static str>, Vec<Vec<String>>)>,
    pub(super) claims: Vec<Claim>,
}

impl Report {
    pub(super) fn sections(&self) -> Vec<Section> {
        let over_load = |name, heading, metric, claims| {
            let mut chart = chart(&self.plan.load, &self.load, metric, heading);
            chart.marks.push((self.theory.knee(), "bend, by theory".into()));
            let table = csv(&self.plan.load, &self.load, &[metric]);
            Section { name, heading, chart, table, numbers: None, claims }
        };
        vec![
            over_load(
                "obtaining_time",
                "Figure 1: from claim to grant",
                Metric::ObtainingTime,
                self.claims_of_obtaining(),
            ),
            over_load(
                "waiting",
                "Figure 2: claims waiting",
                Metric::Waiting,
                self.claims_of_waiting(),
            ),
            over_load(
                "cs_per_second",
                "Figure 3: grants per second",
                Metric::CsPerSecond,
                self.claims_of_throughput(),
            ),
            over_load(
                "messages",
                "Messages per grant",
                Metric::MessagesPerCs,
                self.claims_of_messages(),
            ),
            self.detection_section(),
            self.faster_section(),
            self.decline_section(),
        ]
    }

    /// Largest difference between the two protocols, in percent; and whether all are small, or
    /// what chance makes of so many repetitions.
    fn apart(&self, metric: Metric) -> (f64, bool) {
        let (mut most, mut alike) = (0.0, true);
        for rho in self.rhos() {
            let at = |protocol| self.at(protocol, rho, metric);
            let (Some(theirs), Some(ours)) =
                (at(Contender::raymond()), at(Contender::timer_free()))
            else {
                continue;
            };
            let apart = 100.0 * (ours.mean - theirs.mean).abs() / theirs.mean.max(1e-9);
            most = f64::max(most, apart);
            alike &= apart < 5.0 || !ours.is_above(&theirs) && !theirs.is_above(&ours);
        }
        (most, alike)
    }

    fn ends(&self, metric: Metric) -> (f64, f64) {
        let rhos = self.rhos();
        let at = |rho: Option<&f64>| {
            self.mean(Contender::timer_free(), rho.copied().unwrap_or_default(), metric)
        };
        (at(rhos.first()), at(rhos.last()))
    }

    fn claims_of_obtaining(&self) -> Vec<Claim> {
        let (first, last) = self.ends(Metric::ObtainingTime);
        let floor = self.theory.floor();
        // Near the bend there are still claims that wait for each other.
        let is_floor = (last - floor).abs() < 0.1 * floor + 0.05;
        let is_beyond_bend = self.theory.knee() < 16.0;
        let (most, alike) = self.apart(Metric::ObtainingTime);
        vec![
            Claim {
                claimed: "the time to obtain a unit falls as load falls, to a floor of 2 s",
                found: format!(
                    "it falls from {first:.2} s to {last:.2} s; theory expects a floor of \
                     {floor:.2} s"
                ),
                holds: first > last && (last - 2.0).abs() < 0.5,
                expected: within(floor - 2.0, 0.35, 0.75),
            },
            Claim {
                claimed: "(not the paper's) the floor is where theory expects it",
                found: format!("{last:.2} s at the least load, and {floor:.2} s by theory"),
                holds: is_floor,
                expected: is_beyond_bend.then_some(true),
            },
            Claim {
                claimed: "both algorithms take as long",
                found: format!("at most {most:.1} % apart"),
                holds: alike,
                expected: Some(true),
            },
        ]
    }

    fn claims_of_waiting(&self) -> Vec<Claim> {
        let (first, last) = self.ends(Metric::Waiting);
        vec![Claim {
            claimed: "the waiting queue shortens as load falls",
            found: format!("from {first:.1} claims to {last:.1}"),
            holds: first > last,
            expected: Some(true),
        }]
    }

    fn claims_of_throughput(&self) -> Vec<Claim> {
        let at = |rho| self.mean(Contender::timer_free(), rho, Metric::CsPerSecond);
        let plateau = at(2.0);
        let theory = self.theory.plateau();
        let wrong = 100.0 * (plateau / theory - 1.0).abs();
        // The bend: where the measured curve has lost 3 % of its plateau, less where theory would.
        let bend = self.rhos().into_iter().find(|&rho| rho > 2.0 && at(rho) < 0.97 * plateau);
        let lost = match bend {
            Some(rho) => format!("it has lost 3 % at rho = {rho}"),
            None => "it does not fall".into(),
        };
        let knee = self.theory.knee();
        vec![
            Claim {
                claimed: "throughput is constant under load",
                found: format!(
                    "{plateau:.3} grants per second, {wrong:.2} % from the formula's {theory:.3}"
                ),
                holds: wrong < 1.0,
                expected: Some(true),
            },
            Claim {
                claimed: "throughput begins to fall at rho = 9",
                found: format!("{lost}; theory puts the bend at {knee:.1}"),
                holds: bend.is_some_and(|bend| (bend - 9.0).abs() <= 1.0),
                expected: within(knee - 9.0, 0.6, 1.6),
            },
        ]
    }

    fn claims_of_messages(&self) -> Vec<Claim> {
        let raymond = self.mean(Contender::raymond(), 2.0, Metric::MessagesPerCs);
        let most = 198.0;
        let overheads = self.rhos().into_iter().filter_map(|rho| Some(self.overhead(rho)?.mean));
        let overheads: Vec<f64> = overheads.collect();
        let least = overheads.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = overheads.iter().copied().fold(0.0, f64::max);
        vec![
            Claim {
                claimed: "Raymond's algorithm needs at most 2(n-1) messages",
                found: format!(
                    "{raymond:.1} at rho = 2, and 2(n-1) is {most}; claims under way when the \
                     measuring begins and ends make up to 0.5 % of difference"
                ),
                holds: raymond <= most * 1.005,
                expected: Some(true),
            },
            Claim {
                claimed: "fault tolerance needs no extra messages",
                found: format!("{least:.1} % to {largest:.1} % more than Raymond"),
                holds: largest < 1.0,
                expected: Some(false),
            },
        ]
    }

    fn detection_section(&self) -> Section {
        let (sweep, cells) = (&self.plan.detection, &self.detection);
        let at_once = |rho: f64| {
            let is = |cell: &&Cell| {
                let s = &cell.setting;
                s.rho == rho && s.crash_every == 0.0 && s.crashes == 1
            };
            cells.iter().find(is)?.summary(Metric::DetectionTime)
        };
        let (busy, less) = (at_once(2.0), at_once(8.0));
        let seconds = |time: Option<Summary>| match time {
            Some(time) => format!("{:.0} s", time.mean),
            None => "not found in time".into(),
        };
        let cycle = 2.0 * 100.0 / self.theory.plateau();
        let unknown: u32 = cells.iter().flat_map(|c| &c.samples).map(|s| s.unknown).sum();
        let claims = vec![
            Claim {
                claimed: "the lower rho is, the faster crashes are known",
                found: format!(
                    "one crash: {} at rho = 2, {} at rho = 8; below the bend it takes two request \
                     cycles, {cycle:.0} s, whatever rho",
                    seconds(busy),
                    seconds(less)
                ),
                holds: busy.zip(less).is_some_and(|(busy, less)| busy.mean < 0.8 * less.mean),
                expected: Some(false),
            },
            Claim {
                claimed: "every crash becomes known to every live node",
                found: format!("{unknown} crashes stayed unknown to somebody"),
                holds: unknown == 0,
                expected: Some(true),
            },
        ];
        let heading = "Figure 4: until every live node knows of a crash";
        let metric = Metric::DetectionTime;
        Section {
            name: "detection",
            heading,
            chart: chart(sweep, cells, metric, heading),
            table: csv(sweep, cells, &[metric]),
            numbers: Some(times(sweep, cells)),
            claims,
        }
    }

    /// No figure of the paper: what two small additions gain (broadcast spec 7.1).
    fn faster_section(&self) -> Section {
        let (sweep, cells) = (&self.plan.faster, &self.faster);
        let one_crash = |notices: bool, probe: f64| {
            let is = |cell: &&Cell| {
                let s = &cell.setting;
                s.notices == notices && s.probe == Some(probe) && s.crashes == 1
            };
            cells.iter().find(is)?.summary(Metric::DetectionTime)
        };
        let (plain, told) = (one_crash(false, 0.0), one_crash(true, 0.0));
        let (probed, both) = (one_crash(false, 20.0), one_crash(true, 20.0));
        let seconds = |time: Option<Summary>| match time {
            Some(time) => format!("{} s", time.shown(0)),
            None => "not found in time".into(),
        };
        let saved = match plain.zip(told) {
            Some((plain, told)) => {
                format!(", which saves {:.0} %", 100.0 * (1.0 - told.mean / plain.mean))
            }
            None => String::new(),
        };
        let claims = vec![Claim {
            claimed: "(not the paper's) one notice by who finds a crash saves time",
            found: format!(
                "one crash: {}, with notices {}{saved}; with a query at least every 20 s {}, with \
                 both {}",
                seconds(plain),
                seconds(told),
                seconds(probed),
                seconds(both)
            ),
            holds: plain.zip(told).is_some_and(|(plain, told)| plain.is_above(&told)),
            expected: Some(true),
        }];
        let heading = "Faster detection: notices and probes, rho = 2, crashes at once";
        let metric = Metric::DetectionTime;
        let chart = chart(sweep, cells, metric, heading);
        let table = csv(sweep, cells, &[metric]);
        let numbers = Some(times(sweep, cells));
        Section { name: "faster_detection", heading, chart, table, numbers, claims }
    }

    fn decline_section(&self) -> Section {
        let sweep = &self.plan.decline;
        let curves: Vec<Curve> = self.decline.iter().map(|cell| series(sweep, cell)).collect();
        let at_end = |protocol| {
            let of = self.decline.iter().filter(|cell| cell.setting.protocol == protocol);
            let ends = of.filter_map(|cell| series(sweep, cell).points.last().map(|point| point.y));
            let ends: Vec<f64> = ends.collect();
            ends.iter().sum::<f64>() / ends.len().max(1) as f64
        };
        let before = |protocol| {
            let of = self.decline.iter().find(|cell| cell.setting.protocol == protocol);
            of.map(|cell| mean_between(&series(sweep, cell), 50.0, 100.0)).unwrap_or_default()
        };
        let (raymond, ours) = (at_end(Contender::raymond()), at_end(Contender::timer_free()));
        let full = before(Contender::timer_free());
        let alone = full / 10.0;
        let claims = vec![
            Claim {
                claimed: "nine crashes leave Raymond's algorithm a single unit",
                found: format!("{raymond:.2} units in use, of {full:.2} before"),
                holds: (raymond - alone).abs() < 0.3,
                expected: Some(true),
            },
            Claim {
                claimed: "the timer-free algorithm returns to full use",
                found: format!("{ours:.2} units in use, of {full:.2} before"),
                holds: ours > 0.9 * full,
                expected: Some(true),
            },
        ];
        let mut table = String::from("curve,seconds,units_in_use,ci95\n");
        for curve in &curves {
            for point in &curve.points {
                let ci95 = point.high - point.y;
                table.push_str(&format!(
                    "\"{}\",{},{:.4},{ci95:.4}\n",
                    curve.label, point.x, point.y
                ));
            }
        }
        let heading =
            "Figure 5: units in use while nine nodes crash, one every 10 s from t = 100 s";
        let chart = Chart {
            title: heading.into(),
            x_label: "seconds".into(),
            y_label: "units in use".into(),
            curves,
            marks: vec![(100.0, "first crash".into()), (180.0, "last crash".into())],
            logarithmic: (false, false),
        };
        Section { name: "crashes", heading, chart, table, numbers: None, claims }
    }

    pub(super) fn json(&self) -> Value {
        let five = [
            Metric::ObtainingTime,
            Metric::Waiting,
            Metric::CsPerSecond,
            Metric::UnitsInUse,
            Metric::MessagesPerCs,
        ];
        let of = |protocol: Contender| {
            let points = self.rhos().into_iter().map(|rho| {
                let mut point = json!({ "rho": rho });
                for metric in five {
                    point[metric.name()] = brief(self.at(protocol, rho, metric));
                }
                point
            });
            points.collect::<Vec<Value>>()
        };
        let overhead = |rho: f64| {
            let mut point = brief(self.overhead(rho));
            point["rho"] = json!(rho);
            point
        };
        let series = self.decline.iter().map(|cell| {
            let curve = series(&self.plan.decline, cell);
            let points = curve.points.iter().map(|p| json!([p.x, p.y, p.high - p.y]));
            json!({
                "algorithm": cell.setting.protocol.name(),
                "rho": cell.setting.rho,
                "points": points.collect::<Vec<_>>(),
            })
        });
        let known = |cell: &Cell| {
            let (least, most) = cell.detection_range().unzip();
            let mut time = brief(cell.summary(Metric::DetectionTime));
            time["min"] = json!(least);
            time["max"] = json!(most);
            let unknown: u32 = cell.samples.iter().map(|sample| sample.unknown).sum();
            json!({
                "rho": cell.setting.rho,
                "crashes": cell.setting.crashes,
                "simultaneous": cell.setting.crash_every == 0.0,
                "notices": cell.setting.notices,
                "probe": cell.setting.probe,
                "time": time,
                "unknown": unknown,
            })
        };
        json!({
            "profile": self.plan.load,
            "latency": self.effort.latency,
            "quick": self.effort.quick,
            "theory": {
                "plateau_cs_per_second": self.theory.plateau(),
                "floor_seconds": self.theory.floor(),
                "knee_rho": self.theory.knee(),
            },
            "algorithms": {
                "raymond": of(Contender::raymond()),
                "timer-free": of(Contender::timer_free()),
            },
            "overhead_percent": self.rhos().into_iter().map(overhead).collect::<Vec<_>>(),
            "blanks": { "X": overhead(2.0), "Y": overhead(9.0), "Z": overhead(20.0) },
            "crash_series": series.collect::<Vec<_>>(),
            "detection": self.detection.iter().map(known).collect::<Vec<_>>(),
            "faster_detection": self.faster.iter().map(known).collect::<Vec<_>>(),
            "steps": self.steps,
            "seconds": self.took.as_secs_f64(),
        })
    }
}

fn brief(summary: Option<Summary>) -> Value {
    let (mean, ci95) = (summary.map(|it| it.mean), summary.and_then(|it| it.ci95));
    json!({ "mean": mean, "ci95": ci95 })
}

/// Whether a claim can be expected of which theory is so far off: `None` where it is too close to
/// tell.
fn within(off: f64, sure: f64, out: f64) -> Option<bool> {
    match off.abs() {
        off if off <= sure => Some(true),
        off if off < out => None,
        _ => Some(false),
    }
}

/// How long crashes stay unknown, for people.
fn times(sweep: &Sweep, cells: &[Cell]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let row = |cell: &Cell| {
        let mean = cell.summary(Metric::DetectionTime).map(|time| time.shown(1));
        let (least, most) = cell.detection_range().unzip();
        let number = |time: Option<f64>| time.map(|time| format!("{time:.1}"));
        let numbers = [mean, number(least), number(most)];
        let numbers = numbers.map(|shown| shown.unwrap_or_else(|| "–".into()));
        let first = [sweep.label(&cell.setting), cell.setting.crashes.to_string()];
        first.into_iter().chain(numbers).collect()
    };
    let head = vec!["", "crashes", "mean over runs, s", "smallest, s", "largest, s"];
    (head, cells.iter().map(row).collect())
}

/// Units in use over time, over the repetitions.
fn series(sweep: &Sweep, cell: &Cell) -> Curve {
    let longest = cell.samples.iter().map(|sample| sample.series.len()).max().unwrap_or(0);
    let points = (0..longest).filter_map(|slot| {
        let levels: Vec<f64> =
            cell.samples.iter().filter_map(|sample| sample.series.get(slot).copied()).collect();
        let x = (slot as f64 + 0.5) * sweep.series_step;
        Some(Point::new(x, Summary::of(&levels)?))
    });
    Curve { label: sweep.label(&cell.setting), points: points.collect() }
}

fn mean_between(curve: &Curve, from: f64, to: f64) -> f64 {
    let inside = curve.points.iter().filter(|point| (from..to).contains(&point.x));
    let levels: Vec<f64> = inside.map(|point| point.y).collect();
    levels.iter().sum::<f64>() / levels.len().max(1) as f64
}
