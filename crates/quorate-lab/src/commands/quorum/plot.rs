//! The picture of `compare`: four panels, drawn with plotters. Text stays text.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{IntoSegmentedCoord, SegmentValue};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::compare::Compared;

const WIDTH: u32 = 1000;
const HEIGHT: u32 = 760;
/// Colours that differ in lightness as well as in hue.
const COLOURS: &[RGBColor] = &[
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
    RGBColor(150, 80, 20),
    RGBColor(120, 60, 160),
    RGBColor(60, 120, 60),
];
/// Smallest unavailability shown.
const LEAST: f64 = 1e-9;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Probabilities at which curves are drawn.
pub(super) fn probabilities() -> Vec<f64> {
    (0..=49).map(|step| 0.5 + f64::from(step) / 100.0).collect()
}

/// Four panels as one SVG.
pub(super) fn comparison(title: &str, compared: &[Compared]) -> anyhow::Result<String> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(title, ("sans-serif", 22))?;
        let panels = root.split_evenly((2, 2));
        let size = |c: &Compared| c.found.size_range().map_or(0.0, |(least, _)| least as f64);
        bars(&panels[0], "members of a smallest quorum", compared, size)?;
        bars(&panels[1], "load of the busiest node", compared, |c| c.found.load.high)?;
        bars(&panels[2], "crashes always survived", compared, |c| c.found.survives.low as f64)?;
        curves(&panels[3], compared)?;
        root.present()?;
    }
    Ok(text)
}

/// The name, with a mark for families that are not what they are compared for.
fn label(compared: &Compared) -> String {
    let mark = if compared.found.arbiter() == Some(true) { "" } else { "*" };
    format!("{}{mark}", compared.name)
}

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

fn bars(
    area: &Area<'_>,
    title: &str,
    compared: &[Compared],
    value: impl Fn(&Compared) -> f64,
) -> anyhow::Result<()> {
    let most = compared.iter().map(&value).fold(0.0, f64::max).max(1e-9) * 1.15;
    let count = compared.len();
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(64)
        .y_label_area_size(46)
        .build_cartesian_2d((0..count - 1).into_segmented(), 0.0..most)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(count.max(2))
        .x_label_formatter(&|_| String::new())
        .y_labels(6)
        .draw()?;
    chart.draw_series(compared.iter().enumerate().map(|(index, c)| {
        let corners =
            [(SegmentValue::Exact(index), 0.0), (SegmentValue::Exact(index + 1), value(c))];
        let mut bar = Rectangle::new(corners, colour(index).filled());
        bar.set_margin(0, 0, 6, 6);
        bar
    }))?;
    // Names hang from the axis; the axis's own labels would be centred on it.
    let turned = ("sans-serif", 12).into_font().transform(FontTransform::Rotate90);
    let style = TextStyle::from(turned).pos(Pos::new(HPos::Left, VPos::Center));
    for (index, c) in compared.iter().enumerate() {
        let foot = EmptyElement::at((SegmentValue::CenterOf(index), 0.0));
        chart.plotting_area().draw(&(foot + Text::new(label(c), (0, 6), style.clone())))?;
    }
    Ok(())
}

fn curves(area: &Area<'_>, compared: &[Compared]) -> anyhow::Result<()> {
    let ups = probabilities();
    let mut chart = ChartBuilder::on(area)
        .caption("probability that no quorum is alive", ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0.5..1.0, (LEAST..1.0).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("probability that a node is up")
        .x_labels(6)
        .y_labels(10)
        .y_label_formatter(&|y| format!("{y:.0e}"))
        .draw()?;
    for (index, c) in compared.iter().enumerate() {
        let points = ups.iter().zip(&c.curve).map(|(up, a)| (*up, 1.0 - a));
        let points = points.filter(|(_, missing)| *missing >= LEAST);
        let style = colour(index).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(label(c))
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 12))
        .draw()?;
    Ok(())
}
