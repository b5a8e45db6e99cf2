//! What was found out, as a page, as numbers and as text.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::chart::escape;
use crate::{Found, Pace, Paper, Statement, Verdict};

/// A statement, and what was found out about it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What is stated.
    pub statement: &'static Statement,
    /// What was found; nothing, if there is no function of that name.
    pub found: Option<Found>,
}

impl Judged {
    /// What is wrong, if anything is.
    pub fn complaint(&self) -> Option<String> {
        let Statement { id, verdict, evidence, .. } = self.statement;
        match &self.found {
            None => Some(format!("{id}: there is no evidence called {evidence}")),
            Some(found) if found.verdict == *verdict => None,
            Some(found) => Some(format!(
                "{id}: expected \"{verdict}\", found \"{}\": {}",
                found.verdict, found.text
            )),
        }
    }

    /// The command that shows this one alone.
    pub fn command(&self) -> String {
        format!("quorate-lab reproduce --only {}", self.statement.id)
    }
}

/// Everything that was found out in one run.
#[derive(Clone, Debug)]
pub struct Report {
    /// How far it went.
    pub pace: Pace,
    /// Each paper with its statements.
    pub papers: Vec<(&'static Paper, Vec<Judged>)>,
}

impl Report {
    /// All that is not as expected.
    pub fn complaints(&self) -> Vec<String> {
        self.all().filter_map(Judged::complaint).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Judged> {
        self.papers.iter().flat_map(|(_, judged)| judged)
    }

    /// How many of a paper's statements have each verdict.
    fn counts(judged: &[Judged]) -> [usize; 5] {
        Verdict::ALL.map(|verdict| {
            let is = |one: &&Judged| one.found.as_ref().is_some_and(|f| f.verdict == verdict);
            judged.iter().filter(is).count()
        })
    }

    /// A table for a terminal.
    pub fn summary(&self) -> String {
        let mut text = format!("{:<24}{:>7}", "", "stated");
        for verdict in ["holds", "corrected", "fails", "open", "-"] {
            _ = write!(text, "{verdict:>11}");
        }
        for (paper, judged) in &self.papers {
            _ = write!(text, "\n{:<24}{:>7}", paper.name, judged.len());
            for count in Self::counts(judged) {
                _ = write!(text, "{count:>11}");
            }
        }
        text.push_str("\n(-: nothing that can be computed)\n");
        text
    }

    /// One statement after the other, for a terminal.
    pub fn details(&self) -> String {
        let mut text = String::new();
        for one in self.all() {
            let Statement { id, place, kind, statement, why, .. } = one.statement;
            _ = writeln!(text, "{id} ({kind}, {place})\n  {statement}");
            if let Some(found) = &one.found {
                _ = writeln!(text, "  {}: {}", found.verdict.words().to_uppercase(), found.text);
                if let Some(grid) = &found.grid {
                    text.push_str(&plain(grid));
                }
                for command in &found.commands {
                    _ = writeln!(text, "  See also: {command}");
                }
            }
            if !why.is_empty() {
                _ = writeln!(text, "  Why: {why}");
            }
            text.push('\n');
        }
        text
    }

    /// As numbers.
    pub fn json(&self) -> Value {
        let one = |one: &Judged| {
            let Statement { id, place, kind, statement, verdict, why, .. } = one.statement;
            let found = one.found.as_ref();
            json!({
                "id": id, "where": place, "kind": kind, "statement": statement, "why": why,
                "expected": verdict,
                "verdict": found.map(|found| found.verdict),
                "evidence": found.map(|found| &found.text),
                "table": found.and_then(|found| found.grid.as_ref()).map(|grid| {
                    json!({"head": grid.head, "rows": grid.rows})
                }),
                "figure": found.and_then(|found| found.chart.as_ref()).map(|chart| json!({
                    "title": chart.title, "x": chart.x, "y": chart.y,
                    "curves": chart.curves.iter().map(|curve| json!({
                        "name": curve.name, "points": curve.points,
                    })).collect::<Vec<_>>(),
                })),
                "command": one.command(),
                "see_also": found.map(|found| &found.commands),
            })
        };
        let papers = self.papers.iter().map(|(paper, judged)| {
            json!({
                "name": paper.name, "title": paper.title, "authors": paper.authors,
                "source": paper.source,
                "statements": judged.iter().map(one).collect::<Vec<_>>(),
            })
        });
        json!({
            "pace": self.pace.pick("quick", "whole"),
            "as_expected": self.complaints().is_empty(),
            "papers": papers.collect::<Vec<_>>(),
        })
    }

    /// The page of one paper under `docs/papers`.
    pub fn markdown(&self, name: &str) -> Option<String> {
        let (paper, judged) = self.papers.iter().find(|(paper, _)| paper.name == name)?;
        let mut text = format!(
            "# {}\n\n{}. {}. Errata: [{4}](../specs/{4}.md).\n\n\
             <!-- Written by `quorate-lab reproduce --quick --docs docs/papers`. -->\n\n\
             What the paper states, in our words, and what `quorate-lab reproduce --quick \
             --paper {}` found. The whole run goes further; `--only ID` shows one alone, with its \
             tables.\n\n| verdict | statements |\n|---|---|\n",
            paper.title, paper.authors, paper.source, paper.name, paper.errata
        );
        for (verdict, count) in Verdict::ALL.iter().zip(Self::counts(judged)) {
            _ = writeln!(text, "| {verdict} | {count} |");
        }
        text.push_str("\n| id | where | stated | found |\n|---|---|---|---|\n");
        for one in judged {
            let Statement { id, place, statement, .. } = one.statement;
            let (verdict, evidence) = match &one.found {
                Some(found) => (found.verdict.words(), found.text.as_str()),
                None => ("missing", ""),
            };
            _ = writeln!(
                text,
                "| `{id}` | {} | {} | **{verdict}**. {} |",
                cell(place),
                cell(statement),
                cell(evidence)
            );
        }
        Some(text)
    }

    /// As one page that needs nothing else.
    pub fn html(&self) -> String {
        let mut html =
            String::from("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
        html.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
        html.push_str("<title>The papers, executed</title><style>");
        html.push_str(include_str!("report.css"));
        html.push_str(
            "</style></head><body><main><header><p class=\"over\">quorate-lab reproduce</p>",
        );
        _ = write!(
            html,
            "<h1>The papers, executed</h1><p class=\"lead\">{} statements of {}, each with \
             evidence that was computed for this page ({}). Statements are in our words; places \
             refer to the papers.</p>",
            self.all().count(),
            if self.papers.len() == 1 {
                "one paper".into()
            } else {
                format!("{} papers", self.papers.len())
            },
            self.pace.pick("the quick run: smaller scopes", "the whole run")
        );
        let complaints = self.complaints();
        if !complaints.is_empty() {
            html.push_str("<section class=\"wrong\"><h2>Not as expected</h2><ul>");
            for complaint in complaints {
                _ = write!(html, "<li>{}</li>", escape(&complaint));
            }
            html.push_str("</ul></section>");
        }
        html.push_str("<table class=\"sums\"><thead><tr><th>paper</th>");
        for verdict in Verdict::ALL {
            _ = write!(html, "<th>{verdict}</th>");
        }
        html.push_str("</tr></thead><tbody>");
        for (paper, judged) in &self.papers {
            _ = write!(html, "<tr><td><a href=\"#{0}\">{0}</a></td>", paper.name);
            for count in Self::counts(judged) {
                _ = write!(html, "<td>{count}</td>");
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></header>");
        for (paper, judged) in &self.papers {
            _ = write!(
                html,
                "<section class=\"paper\" id=\"{}\"><h2>{}</h2><p class=\"by\">{}. {}.</p>",
                paper.name,
                escape(paper.title),
                escape(paper.authors),
                escape(paper.source)
            );
            for one in judged {
                article(&mut html, one);
            }
            html.push_str("</section>");
        }
        html.push_str("</main></body></html>\n");
        html
    }
}

fn article(html: &mut String, one: &Judged) {
    let Statement { id, place, kind, statement, why, .. } = one.statement;
    let verdict = one.found.as_ref().map(|found| found.verdict);
    let class = match verdict {
        Some(Verdict::Holds) => "holds",
        Some(Verdict::HoldsAsCorrected) => "corrected",
        Some(Verdict::Fails) => "fails",
        Some(Verdict::Open) => "open",
        Some(Verdict::NotComputable) | None => "none",
    };
    _ = write!(
        html,
        "<article id=\"{id}\" class=\"{class}\"><h3><a href=\"#{id}\">{id}</a> <span>{} · {}</span>\
         <b>{}</b></h3><p class=\"says\">{}</p>",
        escape(kind),
        escape(place),
        verdict.map_or("missing", Verdict::words),
        escape(statement)
    );
    if let Some(found) = &one.found {
        _ = write!(html, "<p>{}</p>", escape(&found.text));
        if let Some(chart) = &found.chart {
            let title = escape(&chart.title);
            _ = write!(html, "<figure>{}<figcaption>{title}</figcaption></figure>", chart.svg());
        }
        if let Some(grid) = &found.grid {
            html.push_str("<div class=\"wide\"><table><thead><tr>");
            for name in &grid.head {
                _ = write!(html, "<th>{}</th>", escape(name));
            }
            html.push_str("</tr></thead><tbody>");
            for row in &grid.rows {
                html.push_str("<tr>");
                for value in row {
                    _ = write!(html, "<td>{}</td>", escape(value));
                }
                html.push_str("</tr>");
            }
            html.push_str("</tbody></table></div>");
        }
    }
    if !why.is_empty() {
        _ = write!(html, "<p class=\"why\">{}</p>", escape(why));
    }
    _ = write!(html, "<p class=\"cmd\"><code>{}</code>", escape(&one.command()));
    for command in one.found.iter().flat_map(|found| &found.commands) {
        _ = write!(html, " <code>{}</code>", escape(command));
    }
    html.push_str("</p></article>");
}

fn plain(grid: &crate::Grid) -> String {
    let rows = || std::iter::once(&grid.head).chain(&grid.rows);
    let width = |column: usize| {
        rows().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows() {
        text.push_str("   ");
        for (column, cell) in row.iter().enumerate() {
            _ = write!(text, " {cell:<0$} ", width(column));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Inside a cell of a table of Markdown.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_")
}
