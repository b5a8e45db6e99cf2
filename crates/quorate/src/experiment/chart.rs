//! Line charts with confidence bands, as SVG: thin over plotters, so that another library could
//! take its place.

use plotters::prelude::*;

use super::stats::Summary;

const SIZE: (u32, u32) = (820, 460);
const FONT: &str = "sans-serif";
const INKS: [RGBColor; 10] = [
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
];

/// Several curves over one axis.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) curves: Vec<Curve>,
    /// Vertical lines, such as where theory expects a bend.
    pub(crate) marks: Vec<(f64, String)>,
    /// Whether the names of the curves stand at the left, because the curves are high at the right.
    pub(crate) names_left: bool,
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
}

impl Point {
    pub(crate) fn new(x: f64, summary: Summary) -> Self {
        let (low, high) = summary.band();
        Point { x, y: summary.mean, low, high }
    }
}

impl Chart {
    /// The figure as text.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub(crate) fn svg(&self) -> anyhow::Result<String> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            root.fill(&WHITE)?;
            self.draw(&root)?;
            root.present()?;
        }
        Ok(svg)
    }

    fn draw(
        &self,
        root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    ) -> anyhow::Result<()> {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let left = points().map(|point| point.x).fold(f64::INFINITY, f64::min).min(1e300);
        let right =
            points().map(|point| point.x).fold(f64::NEG_INFINITY, f64::max).max(left + 1e-9);
        // Above the curves there is room for their names.
        let room = 1.06 + 0.07 * self.curves.len() as f64;
        let top = points().map(|point| point.high).fold(1e-9, f64::max) * room;
        let mut chart = ChartBuilder::on(root)
            .caption(&self.title, (FONT, 20))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(66)
            .build_cartesian_2d(left..right, 0.0..top)?;
        chart
            .configure_mesh()
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .x_label_formatter(&|x| tick(*x))
            .y_label_formatter(&|y| tick(*y))
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 15))
            .draw()?;
        for (x, label) in &self.marks {
            chart.draw_series(LineSeries::new([(*x, 0.0), (*x, top)], BLACK.mix(0.45)))?;
            let style = (FONT, 13).into_font().color(&BLACK.mix(0.7));
            let at = (*x + (right - left) * 0.006, top * 0.985);
            chart.draw_series([Text::new(label.clone(), at, style)])?;
        }
        for (index, curve) in self.curves.iter().enumerate() {
            let ink = INKS[index % INKS.len()];
            let band: Vec<(f64, f64)> = curve
                .points
                .iter()
                .map(|point| (point.x, point.high))
                .chain(curve.points.iter().rev().map(|point| (point.x, point.low.max(0.0))))
                .collect();
            chart.draw_series([Polygon::new(band, ink.mix(0.18))])?;
            let line = curve.points.iter().map(|point| (point.x, point.y));
            chart
                .draw_series(LineSeries::new(line.clone(), ink.stroke_width(2)))?
                .label(&curve.label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], ink.stroke_width(3)));
            if curve.points.len() <= 40 {
                chart.draw_series(line.map(|at| Circle::new(at, 3, ink.filled())))?;
            }
        }
        let corner = match self.names_left {
            true => SeriesLabelPosition::UpperLeft,
            false => SeriesLabelPosition::UpperRight,
        };
        chart
            .configure_series_labels()
            .position(corner)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font((FONT, 14))
            .draw()?;
        Ok(())
    }
}

/// A number on an axis, without zeros that say nothing.
fn tick(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::tick;

    #[test]
    fn numbers_on_axes_are_short() {
        let shown = [0.0, 2.0, 0.5, 0.05, 300.0, 12.25].map(tick);
        assert_eq!(shown, ["0", "2", "0.5", "0.05", "300", "12.25"]);
    }
}
