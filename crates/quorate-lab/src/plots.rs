//! Figures, as SVG: thin over plotters, so that another library could take its place.

use plotters::prelude::*;
use quorate_sim::{Histogram, Measures, Series};

const SIZE: (u32, u32) = (900, 960);
const FONT: &str = "sans-serif";
/// Waiting times are shown in steps of 5 %.
const STEP: f64 = 1.05;
const MICROSECOND: u64 = 1_000;
const BLUE_INK: RGBColor = RGBColor(31, 97, 163);
const ORANGE_INK: RGBColor = RGBColor(200, 90, 20);
const GREEN_INK: RGBColor = RGBColor(40, 130, 80);
const PURPLE_INK: RGBColor = RGBColor(146, 64, 160);
const TEAL_INK: RGBColor = RGBColor(40, 150, 160);

/// Utilization and queue over time, and the distribution of waiting times, one below the other.
pub(crate) fn run(measures: &Measures) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let panels = root.split_evenly((3, 1));
        let units = f64::from(measures.units());
        over_time(&panels[0], "Units in use", &measures.in_use, units, BLUE_INK)?;
        let longest = measures.queue.points().map(|(_, level)| level).fold(1.0, f64::max);
        over_time(&panels[1], "Claims waiting", &measures.queue, longest * 1.05, ORANGE_INK)?;
        waiting_times(&panels[2], &measures.waiting)?;
        root.present()?;
    }
    Ok(svg)
}

/// One of several lines of a figure.
pub(crate) struct Line {
    /// What it shows.
    pub(crate) name: String,
    /// Its points, from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Several lines over a logarithmic axis.
pub(crate) fn lines(
    title: &str,
    x_desc: &str,
    y_desc: &str,
    lines: &[Line],
) -> anyhow::Result<String> {
    const INKS: [RGBColor; 8] = [
        BLUE_INK,
        ORANGE_INK,
        GREEN_INK,
        PURPLE_INK,
        TEAL_INK,
        RGBColor(110, 110, 110),
        RGBColor(120, 80, 30),
        RGBColor(190, 30, 60),
    ];
    let points = || lines.iter().flat_map(|line| &line.points);
    let left = points().map(|point| point.0).fold(f64::INFINITY, f64::min).max(1e-3);
    // A little beyond the last point, so that it is seen whole.
    let right = points().map(|point| point.0).fold(left, f64::max) * 1.05;
    let top = points().map(|point| point.1).fold(1.0, f64::max) * 1.1;
    let longest = lines.iter().map(|line| line.name.len() as i32).max().unwrap_or(0);
    let names_width = 44 + 7 * longest;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (900, 520)).into_drawing_area();
        root.fill(&WHITE)?;
        // Names stand beside the plot: wherever they were inside it, some line would be below them.
        let (plot, names) = root.split_horizontally(900 - names_width);
        let mut chart = ChartBuilder::on(&plot)
            .caption(title, (FONT, 18))
            .margin(12)
            .x_label_area_size(38)
            .y_label_area_size(56)
            .build_cartesian_2d(
                (left..right).log_scale().with_key_points(round_numbers(left, right)),
                0.0..top,
            )?;
        chart
            .configure_mesh()
            .x_desc(x_desc)
            .y_desc(y_desc)
            .x_label_formatter(&|x| if *x < 1.0 { x.to_string() } else { format!("{x:.0}") })
            .light_line_style(WHITE)
            .label_style((FONT, 13))
            .draw()?;
        for (place, (line, ink)) in lines.iter().zip(INKS.into_iter().cycle()).enumerate() {
            chart.draw_series(LineSeries::new(line.points.clone(), ink.stroke_width(2)))?;
            chart.draw_series(line.points.iter().map(|&at| Circle::new(at, 3, ink.filled())))?;
            let y = 60 + 24 * place as i32;
            names.draw(&PathElement::new([(4, y), (24, y)], ink.stroke_width(2)))?;
            names.draw(&Circle::new((14, y), 3, ink.filled()))?;
            names.draw(&Text::new(line.name.clone(), (32, y - 7), (FONT, 13)))?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// 1, 2, 5, 10, 20, ... between two numbers: more than that get into each other's way.
fn round_numbers(left: f64, right: f64) -> Vec<f64> {
    let decades = left.log10().floor() as i32..=right.log10().ceil() as i32;
    // By division, so that a tenth is written as one.
    let number = |lead: f64, decade: i32| match decade {
        0.. => lead * 10f64.powi(decade),
        _ => lead / 10f64.powi(-decade),
    };
    decades
        .flat_map(|decade| [1.0, 2.0, 5.0].map(|lead| number(lead, decade)))
        .filter(|number| (left..=right).contains(number))
        .collect()
}

type Panel<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn over_time(
    panel: &Panel<'_>,
    title: &str,
    series: &Series,
    top: f64,
    ink: RGBColor,
) -> anyhow::Result<()> {
    let points: Vec<(f64, f64)> =
        series.points().map(|(at, level)| (at as f64 / 1e9, level)).collect();
    let end = points.last().map_or(1.0, |(at, _)| *at).max(1e-9);
    let mean = series.mean();
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("{title} (mean {mean:.2})"), (FONT, 18))
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("simulated seconds")
        .light_line_style(WHITE)
        .label_style((FONT, 13))
        .draw()?;
    chart.draw_series(AreaSeries::new(points, 0.0, ink.mix(0.2)).border_style(ink))?;
    chart.draw_series(LineSeries::new([(0.0, mean), (end, mean)], BLACK.mix(0.5)))?;
    Ok(())
}

/// Bars over the logarithm of the time, so that each doubling is as wide as the next and marks lie
/// closer than whole decades.
fn waiting_times(panel: &Panel<'_>, waiting: &Histogram) -> anyhow::Result<()> {
    // Next to the long waits, nobody tells a thousandth of them from nothing.
    let least = (waiting.quantile(0.99) / 1000).max(MICROSECOND);
    let total = waiting.count().max(1) as f64;
    let bars: Vec<(f64, f64, f64)> = waiting
        .buckets()
        .map(|(low, high, count)| {
            let (low, high) = (low.max(least), (high + 1).max(least + least / 20));
            // Buckets differ in width: each bar shows what a step of 5 % in time would hold.
            let steps = (high as f64 / low as f64).ln() / STEP.ln();
            let share = 100.0 * count as f64 / total / steps;
            ((low as f64 / 1e6).log10(), (high as f64 / 1e6).log10(), share)
        })
        .collect();
    let left = bars.first().map_or(-1.0, |bar| bar.0);
    let right = bars.last().map_or(0.0, |bar| bar.1).max(left + 0.3);
    let top = bars.iter().map(|bar| bar.2).fold(1.0, f64::max) * 1.05;
    let (mean, p99) = (waiting.mean() / 1e6, waiting.quantile(0.99) as f64 / 1e6);
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("Waiting time (mean {mean:.2} ms, p99 {p99:.2} ms)"), (FONT, 18))
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(56)
        .build_cartesian_2d(left..right, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("milliseconds")
        .x_label_formatter(&|log| format!("{:.3}", 10f64.powf(*log)))
        .y_desc("% of grants, for each 5 % of time")
        .light_line_style(WHITE)
        .label_style((FONT, 13))
        .draw()?;
    chart.draw_series(bars.iter().map(|&(low, high, share)| {
        Rectangle::new([(low, 0.0), (high, share)], GREEN_INK.mix(0.6).filled())
    }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_logarithmic_axis_are_round_and_each_is_there_once() {
        let line = Line { name: "a".into(), points: vec![(0.1, 30.0), (100.0, 40.0)] };
        let svg = lines("title", "x", "y", &[line]).expect("it can be drawn");
        for number in ["0.1", "0.2", "0.5", "10", "50", "100"] {
            let labels = svg.lines().filter(|line| *line == number).count();
            assert_eq!(labels, 1, "{number} in {svg}");
        }
    }
}
