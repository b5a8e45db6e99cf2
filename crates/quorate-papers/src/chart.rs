//! A figure of a report: lines over an axis, in colours that the page chooses for light and dark.

use std::fmt::Write as _;

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What the horizontal axis is.
    pub x: String,
    /// What the vertical axis is.
    pub y: String,
    /// Its lines.
    pub curves: Vec<Curve>,
}

/// A line of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 40.0;

impl Chart {
    /// A figure without lines.
    pub fn new(title: &str, x: &str, y: &str) -> Self {
        Chart { title: title.into(), x: x.into(), y: y.into(), curves: Vec::new() }
    }

    /// One more line.
    pub fn curve(mut self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        self.curves.push(Curve { name: name.into(), points });
        self
    }

    /// As SVG, without a colour of its own: classes `c0`, `c1`, ... are the page's.
    pub fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|curve| curve.points.iter().copied());
        let ends = |of: fn((f64, f64)) -> f64| {
            let least = points().map(of).fold(f64::INFINITY, f64::min);
            let most = points().map(of).fold(f64::NEG_INFINITY, f64::max);
            if most > least { (least, most) } else { (least - 1.0, least + 1.0) }
        };
        let (left, right) = ends(|point| point.0);
        let (low, high) = ends(|point| point.1);
        let low = if low > 0.0 && low < 0.5 * high { 0.0 } else { low };
        let height = HEIGHT + 18.0 * self.curves.len() as f64;
        let x = |value: f64| LEFT + (value - left) / (right - left) * (WIDTH - LEFT - 16.0);
        let y =
            |value: f64| HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - 14.0);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
            escape(&self.title)
        );
        for step in 0..=4 {
            let at = f64::from(step) / 4.0;
            let (value, across) = (low + at * (high - low), left + at * (right - left));
            _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{1}\"/>\
                 <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{4}</text>\
                 <text x=\"{5:.1}\" y=\"{6}\" text-anchor=\"middle\">{7}</text>",
                y(value),
                WIDTH - 16.0,
                LEFT - 8.0,
                y(value) + 4.0,
                short(value),
                x(across),
                HEIGHT - BOTTOM + 16.0,
                short(across)
            );
        }
        _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(12 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (WIDTH + LEFT) / 2.0,
            HEIGHT - 8.0,
            escape(&self.x),
            (HEIGHT - BOTTOM) / 2.0,
            escape(&self.y)
        );
        for (number, curve) in self.curves.iter().enumerate() {
            let class = number % 6;
            let place = |(a, b): &(f64, f64)| format!("{:.1} {:.1}", x(*a), y(*b));
            let path: Vec<String> = curve.points.iter().map(place).collect();
            _ = write!(svg, "<path class=\"line c{class}\" d=\"M{}\"/>", path.join("L"));
            for (a, b) in &curve.points {
                let (a, b) = (x(*a), y(*b));
                _ = write!(
                    svg,
                    "<circle class=\"dot c{class}\" cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"2.6\"/>"
                );
            }
            let below = HEIGHT + 18.0 * number as f64 + 8.0;
            _ = write!(
                svg,
                "<path class=\"line c{class}\" d=\"M{LEFT} {below}h22\"/>\
                 <text x=\"{}\" y=\"{}\">{}</text>",
                LEFT + 30.0,
                below + 4.0,
                escape(&curve.name)
            );
        }
        svg.push_str("</svg>");
        svg
    }
}

fn short(value: f64) -> String {
    if value == value.round() {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// For HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
