//! What evidence amounts to.

use serde_json::{Value, json};

use crate::{Chart, Curve, Verdict};

/// How much time there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Seconds: smaller scopes, the same statements.
    Quick,
    /// Minutes.
    Whole,
}

impl Pace {
    /// One of two scopes.
    pub fn pick<T>(self, quick: T, whole: T) -> T {
        match self {
            Pace::Quick => quick,
            Pace::Whole => whole,
        }
    }
}

/// Cases that were looked at, how many of them were wrong, and the first of those.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// How many cases there were.
    pub cases: u64,
    /// How many were wrong.
    pub wrong: u64,
    /// The first that was wrong.
    pub first: Option<String>,
}

impl Tally {
    /// None yet.
    pub fn new() -> Self {
        Tally::default()
    }

    /// Looks at one more.
    pub fn case(&mut self, right: bool, name: impl FnOnce() -> String) {
        self.cases += 1;
        if !right {
            self.wrong += 1;
            self.first.get_or_insert_with(name);
        }
    }

    /// Whether there were any, and all were right.
    pub fn holds(&self) -> bool {
        self.cases > 0 && self.wrong == 0
    }

    /// In words: what was counted, such as "pairs of majorities".
    pub fn words(&self, what: &str) -> String {
        let cases = grouped(self.cases);
        match &self.first {
            None => format!("{cases} {what}, no exception"),
            Some(first) => {
                format!(
                    "{} of {cases} {what} are exceptions; the first: {first}",
                    grouped(self.wrong)
                )
            }
        }
    }
}

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table of evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    /// What its columns are.
    pub head: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// A table without rows.
    pub fn new(head: &[&str]) -> Self {
        Grid { head: head.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    /// One more row.
    pub fn row(&mut self, cells: &[&dyn std::fmt::Display]) {
        self.rows.push(cells.iter().map(|cell| cell.to_string()).collect());
    }
}

/// What was found out about a statement.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// What is true.
    pub verdict: Verdict,
    /// Why, with numbers.
    pub text: String,
    /// The numbers.
    pub grid: Option<Grid>,
    /// A figure.
    pub chart: Option<Chart>,
    /// Commands that show the same by other means.
    pub commands: Vec<String>,
}

impl Found {
    /// For a file, from which it comes back exactly as it was: points of figures by their bits.
    pub fn to_line(&self) -> Value {
        let curve = |curve: &Curve| {
            let points = curve.points.iter().map(|(x, y)| [x.to_bits(), y.to_bits()]);
            json!({ "name": curve.name, "points": points.collect::<Vec<_>>() })
        };
        json!({
            "verdict": self.verdict,
            "text": self.text,
            "grid": self.grid.as_ref().map(|grid| json!({ "head": grid.head, "rows": grid.rows })),
            "chart": self.chart.as_ref().map(|chart| json!({
                "title": chart.title, "x": chart.x, "y": chart.y,
                "curves": chart.curves.iter().map(curve).collect::<Vec<_>>(),
            })),
            "commands": self.commands,
        })
    }

    /// What such a line says; `None` if it is none.
    pub fn from_line(line: &Value) -> Option<Found> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let list = |value: &Value| value.as_array()?.iter().map(text).collect::<Option<Vec<_>>>();
        let grid = match &line["grid"] {
            Value::Null => None,
            grid => {
                let rows = grid["rows"].as_array()?.iter().map(list).collect::<Option<_>>()?;
                Some(Grid { head: list(&grid["head"])?, rows })
            }
        };
        let point = |value: &Value| {
            let bits = |at: usize| value[at].as_u64().map(f64::from_bits);
            Some((bits(0)?, bits(1)?))
        };
        let curve = |value: &Value| {
            let points = value["points"].as_array()?.iter().map(point).collect::<Option<_>>()?;
            Some(Curve { name: text(&value["name"])?, points })
        };
        let chart = match &line["chart"] {
            Value::Null => None,
            chart => Some(Chart {
                title: text(&chart["title"])?,
                x: text(&chart["x"])?,
                y: text(&chart["y"])?,
                curves: chart["curves"].as_array()?.iter().map(curve).collect::<Option<_>>()?,
            }),
        };
        let verdict = serde_json::from_value(line["verdict"].clone()).ok()?;
        let commands = list(&line["commands"])?;
        Some(Found { verdict, text: text(&line["text"])?, grid, chart, commands })
    }

    /// With this verdict, for this reason.
    pub fn new(verdict: Verdict, text: impl Into<String>) -> Self {
        Found { verdict, text: text.into(), grid: None, chart: None, commands: Vec::new() }
    }

    /// It holds if this is so, else it fails.
    pub fn if_so(so: bool, text: impl Into<String>) -> Self {
        Found::new(if so { Verdict::Holds } else { Verdict::Fails }, text)
    }

    /// It holds if all cases are right.
    pub fn all(cases: &Tally, what: &str) -> Self {
        Found::if_so(cases.holds(), cases.words(what))
    }

    /// It holds if all cases are right; as corrected, if only those of the correction are.
    pub fn corrected(printed: &Tally, of: &str, corrected: &Tally, instead: &str) -> Self {
        let verdict = match (printed.holds(), corrected.holds()) {
            (true, _) => Verdict::Holds,
            (false, true) => Verdict::HoldsAsCorrected,
            (false, false) => Verdict::Fails,
        };
        let text =
            format!("As printed: {}. Corrected: {}.", printed.words(of), corrected.words(instead));
        Found::new(verdict, text)
    }

    /// The same as corrected, if a single case refutes what is printed.
    pub fn corrected_if(refuted: bool, cases: &Tally, text: impl Into<String>) -> Self {
        let verdict = match (refuted, cases.holds()) {
            (false, _) => Verdict::Holds,
            (true, true) => Verdict::HoldsAsCorrected,
            (true, false) => Verdict::Fails,
        };
        Found::new(verdict, text)
    }

    /// An answer to what the paper leaves open; if the answer itself is wrong, that fails.
    pub fn open(answered: bool, text: impl Into<String>) -> Self {
        Found::new(if answered { Verdict::Open } else { Verdict::Fails }, text)
    }

    /// Nothing to compute.
    pub fn not_computable(text: impl Into<String>) -> Self {
        Found::new(Verdict::NotComputable, text)
    }

    /// And a sentence.
    pub fn and(mut self, text: impl AsRef<str>) -> Self {
        if !self.text.ends_with(['.', ':']) {
            self.text.push('.');
        }
        self.text.push(' ');
        self.text.push_str(text.as_ref());
        self
    }

    /// And a condition, without which it fails.
    pub fn only_if(mut self, so: bool, text: impl AsRef<str>) -> Self {
        if !so {
            self.verdict = Verdict::Fails;
        }
        self.and(text)
    }

    /// And a table.
    pub fn with(mut self, grid: Grid) -> Self {
        self.grid = Some(grid);
        self
    }

    /// And a figure.
    pub fn drawn(mut self, chart: Chart) -> Self {
        self.chart = Some(chart);
        self
    }

    /// And a command that shows it by other means.
    pub fn by(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }
}
