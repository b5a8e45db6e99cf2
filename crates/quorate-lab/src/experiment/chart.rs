//! Line charts with confidence bands, as SVG: thin over plotters, so that another library could
//! take its place.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::stats::Summary;

/// Without the names of the curves.
const PLOT: (u32, u32) = (660, 440);
const FONT: &str = "sans-serif";
const INKS: [RGBColor; 13] = [
    RGBColor(31, 97, 163),
    RGBColor(200, 90, 20),
    RGBColor(40, 130, 80),
    RGBColor(130, 60, 150),
    RGBColor(150, 110, 20),
    RGBColor(90, 90, 90),
    RGBColor(20, 150, 170),
    RGBColor(200, 50, 90),
    RGBColor(150, 190, 40),
    RGBColor(20, 30, 60),
    RGBColor(225, 165, 0),
    RGBColor(120, 165, 225),
    RGBColor(165, 85, 60),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Several curves over one axis.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) curves: Vec<Curve>,
    /// Vertical lines, such as where theory expects a bend.
    pub(crate) marks: Vec<(f64, String)>,
    /// Whether the axes, x and y, are logarithmic: then what is 0 lies at their ends.
    pub(crate) logarithmic: (bool, bool),
}

/// A curve and how sure it is.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) points: Vec<Point>,
}

/// One point: its value lies between `low` and `high` with 95 % confidence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The smallest and the largest of all that was measured, where that is shown.
    pub(crate) range: Option<(f64, f64)>,
}

impl Point {
    pub(crate) fn new(x: f64, summary: Summary) -> Self {
        let (low, high) = summary.band();
        Point { x, y: summary.mean, low, high, range: None }
    }
}

impl Chart {
    /// The figure as text.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub(crate) fn svg(&self) -> anyhow::Result<String> {
        let longest = self.curves.iter().map(|curve| curve.label.chars().count()).max();
        let names_width = 50 + 7 * longest.unwrap_or(0) as u32;
        let mut svg = String::new();
        {
            let size = (PLOT.0 + names_width, PLOT.1);
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            root.fill(&WHITE)?;
            let below = root.titled(&self.title, (FONT, 18))?;
            // Names stand beside the plot: wherever they were inside it, they would cover a curve.
            let (plot, names) = below.split_horizontally(PLOT.0);
            self.draw(&plot)?;
            self.draw_names(&names)?;
            root.present()?;
        }
        Ok(svg)
    }

    /// Where the points lie: on a logarithmic axis at their logarithm.
    fn on_axes(&self) -> Vec<Curve> {
        let (log_x, log_y) = self.logarithmic;
        let positive = self.curves.iter().flat_map(|curve| &curve.points).map(|point| point.y);
        let least = positive.filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
        let x = |x: f64| if log_x { x.max(1e-9).log10() } else { x };
        let y = |y: f64| if log_y { y.max(least.min(1e300)).log10() } else { y };
        let point = |it: &Point| Point {
            x: x(it.x),
            y: y(it.y),
            low: y(it.low),
            high: y(it.high),
            range: it.range.map(|(low, high)| (y(low), y(high))),
        };
        let curve = |it: &Curve| Curve {
            label: it.label.clone(),
            points: it.points.iter().map(point).collect(),
        };
        self.curves.iter().map(curve).collect()
    }

    fn draw(&self, plot: &Area<'_>) -> anyhow::Result<()> {
        let curves = self.on_axes();
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let left = points().map(|point| point.x).fold(f64::INFINITY, f64::min).min(1e300);
        let right =
            points().map(|point| point.x).fold(f64::NEG_INFINITY, f64::max).max(left + 1e-9);
        let highest = |point: &Point| point.range.map_or(point.high, |range| range.1);
        let (log_x, log_y) = self.logarithmic;
        let top = points().map(highest).fold(if log_y { -9.0 } else { 1e-9 }, f64::max);
        let (bottom, top) = match log_y {
            true => (points().map(|point| point.y).fold(top, f64::min) - 0.1, top + 0.1),
            false => (0.0, top * 1.08),
        };
        let is_whole = !log_x && points().all(|point| point.x.fract() == 0.0);
        let across = if log_x { decades(left, right) } else { steps(left, right, is_whole) };
        let up = if log_y { decades(bottom, top) } else { steps(0.0, top, false) };
        let number = |log: bool| move |at: &f64| tick(if log { 10f64.powf(*at) } else { *at });
        let mut chart = ChartBuilder::on(plot)
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(66)
            .build_cartesian_2d(
                Marked { ends: left..right, at: across },
                Marked { ends: bottom..top, at: up },
            )?;
        chart
            .configure_mesh()
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .x_label_formatter(&number(log_x))
            .y_label_formatter(&number(log_y))
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 15))
            .draw()?;
        for (x, label) in &self.marks {
            chart.draw_series(LineSeries::new([(*x, bottom), (*x, top)], BLACK.mix(0.45)))?;
            let style = (FONT, 13).into_font().color(&BLACK.mix(0.7));
            let at = (*x + (right - left) * 0.006, top * 0.985);
            chart.draw_series([Text::new(label.clone(), at, style)])?;
        }
        for (curve, ink, is_broken) in inked(&curves) {
            let band: Vec<(f64, f64)> = curve
                .points
                .iter()
                .map(|point| (point.x, point.high))
                .chain(curve.points.iter().rev().map(|point| (point.x, point.low.max(bottom))))
                .collect();
            chart.draw_series([Polygon::new(band, ink.mix(0.18))])?;
            let ranges = curve.points.iter().filter_map(|point| Some((point.x, point.range?)));
            chart.draw_series(ranges.map(|(x, (least, most))| {
                PathElement::new([(x, least), (x, most)], ink.mix(0.6).stroke_width(1))
            }))?;
            let line = curve.points.iter().map(|point| (point.x, point.y));
            let stroke = ink.stroke_width(2);
            if is_broken {
                chart.draw_series(DashedLineSeries::new(line.clone(), 6, 4, stroke))?;
            } else {
                chart.draw_series(LineSeries::new(line.clone(), stroke))?;
            }
            if curve.points.len() <= 40 {
                let size = if is_broken { 2 } else { 4 };
                chart.draw_series(line.map(|at| Circle::new(at, size, ink.filled())))?;
            }
        }
        Ok(())
    }

    /// In the order of the curves, each with a piece of its line.
    fn draw_names(&self, names: &Area<'_>) -> anyhow::Result<()> {
        for (curve, ink, is_broken) in inked(&self.curves) {
            let place = self.curves.iter().position(|it| it.label == curve.label);
            let y = 24 + 22 * place.unwrap_or(0) as i32;
            let pieces = if is_broken { vec![(0, 8), (12, 20), (24, 28)] } else { vec![(0, 28)] };
            for (from, to) in pieces {
                names.draw(&PathElement::new([(from, y), (to, y)], ink.stroke_width(2)))?;
            }
            names.draw(&Text::new(curve.label.clone(), (36, y - 7), (FONT, 14)))?;
        }
        Ok(())
    }
}

/// Curves in the order in which they are drawn, with their inks: broken lines above unbroken ones,
/// so that of two that coincide both are seen.
fn inked(curves: &[Curve]) -> impl Iterator<Item = (&Curve, RGBColor, bool)> {
    let all = || {
        let places = curves.iter().zip(INKS.into_iter().cycle()).enumerate();
        places.map(|(place, (curve, ink))| (curve, ink, place % 2 == 1))
    };
    all().filter(|inked| !inked.2).chain(all().filter(|inked| inked.2))
}

/// Where 1, 2 and 5 of each power of ten lie on a logarithmic axis, or only 1 where these are many.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let leads: &[f64] = if high - low > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = low.floor() as i32..=high.ceil() as i32;
    let all =
        powers.flat_map(|power| leads.iter().map(move |lead| lead.log10() + f64::from(power)));
    all.filter(|at| (low - 1e-9..=high + 1e-9).contains(at)).collect()
}

/// An axis with numbers at these places.
struct Marked {
    ends: Range<f64>,
    at: Vec<f64>,
}

impl Ranged for Marked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.ends.clone()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.at.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends.clone()
    }
}

/// About ten round numbers on an axis; whole ones where all values are.
fn steps(left: f64, right: f64, is_whole: bool) -> Vec<f64> {
    let about = (right - left) / 10.0;
    let decade = 10f64.powf(about.log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].map(|lead| lead * decade);
    let step = round.into_iter().find(|&step| step >= about * 0.99).unwrap_or(about);
    let step = if is_whole { step.max(1.0) } else { step };
    let first = (left / step).ceil() as i64;
    (first..).map(|count| count as f64 * step).take_while(|&at| at <= right + step * 1e-6).collect()
}

/// A number on an axis, without zeros that say nothing.
fn tick(value: f64) -> String {
    let digits = if value > 0.0 && value < 0.01 { 6 } else { 3 };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_axes_are_short() {
        let shown = [0.0, 2.0, 0.5, 0.05, 300.0, 12.25, 0.002].map(tick);
        assert_eq!(shown, ["0", "2", "0.5", "0.05", "300", "12.25", "0.002"]);
    }

    #[test]
    fn axes_have_round_numbers_and_no_half_crashes() {
        assert_eq!(steps(0.0, 3.0, true), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(steps(1.0, 9.0, true), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        assert_eq!(steps(0.5, 16.0, false), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
        assert_eq!(steps(0.1, 0.3, false).len(), 11);
        assert_eq!(steps(5.0, 5.0 + 1e-9, true), [5.0]);
        assert_eq!(decades(0.0, 1.0).len(), 4, "1, 2, 5 and 10");
        assert_eq!(decades(-2.0, 2.0), [-2.0, -1.0, 0.0, 1.0, 2.0]);
    }

    /// All of both is there, and the second does not hide the first.
    #[test]
    fn names_stand_beside_the_plot_and_curves_that_coincide_are_both_seen() {
        let curve = |label: &str| Curve {
            label: label.into(),
            points: [0.0, 3.0]
                .map(|x| Point { x, y: 100.0, low: 100.0, high: 100.0, range: None })
                .into(),
        };
        let chart = Chart {
            title: "Title".into(),
            x_label: "crashes".into(),
            y_label: "grants".into(),
            curves: vec![curve("one"), curve("other")],
            marks: Vec::new(),
            logarithmic: (false, false),
        };
        let svg = chart.svg().unwrap();
        let place = |name: &str| {
            let text =
                svg.split("<text").find(|text| text.trim_end().contains(&format!("\n{name}\n")));
            let x =
                text.and_then(|text| text.split("x=\"").nth(1)?.split('"').next()?.parse().ok());
            x.unwrap_or_else(|| panic!("{name} in {svg}"))
        };
        let (one, other): (u32, u32) = (place("one"), place("other"));
        assert!(one >= PLOT.0 && other >= PLOT.0, "{one} {other}");
        let lines = svg.matches("<polyline").count();
        assert!(lines > 20, "the second line is broken: {lines}");
        assert!(!svg.contains("\n0.5\n"), "no half crashes");
    }
}
