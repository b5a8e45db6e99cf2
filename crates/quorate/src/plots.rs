//! Figures, as SVG: thin over plotters, so that another library could take its place.

use plotters::prelude::*;
use quorate_sim::{Histogram, Measures, Series};

const SIZE: (u32, u32) = (900, 960);
const FONT: &str = "sans-serif";
const BLUE_INK: RGBColor = RGBColor(31, 97, 163);
const ORANGE_INK: RGBColor = RGBColor(200, 90, 20);
const GREEN_INK: RGBColor = RGBColor(40, 130, 80);

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

/// Bars over a logarithmic axis: each doubling of the time is as wide as the next.
fn waiting_times(panel: &Panel<'_>, waiting: &Histogram) -> anyhow::Result<()> {
    let total = waiting.count().max(1) as f64;
    let bars: Vec<(f64, f64, f64)> = waiting
        .buckets()
        .map(|(low, high, count)| (low.max(1) as f64, (high + 1) as f64, count as f64))
        .map(|(low, high, count)| (low / 1e6, high / 1e6, 100.0 * count / total))
        .collect();
    let left = bars.first().map_or(0.1, |bar| bar.0);
    let right = bars.last().map_or(1.0, |bar| bar.1).max(left * 2.0);
    let top = bars.iter().map(|bar| bar.2).fold(1.0, f64::max) * 1.05;
    let (mean, p99) = (waiting.mean() / 1e6, waiting.quantile(0.99) as f64 / 1e6);
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("Waiting time (mean {mean:.2} ms, p99 {p99:.2} ms)"), (FONT, 18))
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(56)
        .build_cartesian_2d((left..right).log_scale(), 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("milliseconds")
        .y_desc("% of grants")
        .light_line_style(WHITE)
        .label_style((FONT, 13))
        .draw()?;
    chart.draw_series(bars.iter().map(|&(low, high, share)| {
        Rectangle::new([(low, 0.0), (high, share)], GREEN_INK.mix(0.6).filled())
    }))?;
    Ok(())
}
