//! What papers state, as data.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::{Found, Pace};

/// Finds out whether a statement holds.
pub type Evidence = fn(Pace) -> Found;

/// What is true of a statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it stands.
    Holds,
    /// Not as it stands, but with a small correction, which the evidence names.
    HoldsAsCorrected,
    /// It is false.
    Fails,
    /// The paper leaves it open: the evidence says what we found.
    Open,
    /// Nothing that a computation could decide: history, advice, classification.
    NotComputable,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 5] = [
        Verdict::Holds,
        Verdict::HoldsAsCorrected,
        Verdict::Fails,
        Verdict::Open,
        Verdict::NotComputable,
    ];

    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::HoldsAsCorrected => "holds as corrected",
            Verdict::Fails => "does not hold",
            Verdict::Open => "left open by the paper",
            Verdict::NotComputable => "not a matter of computation",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// One thing that a paper says.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Its name, such as `KA-T4.5`.
    pub id: String,
    /// Where the paper says it.
    #[serde(rename = "where")]
    pub place: String,
    /// Definition, theorem, formula, claim...
    pub kind: String,
    /// What it says, in our words.
    pub statement: String,
    /// What we expect of it.
    pub verdict: Verdict,
    /// The reason, or the correction.
    #[serde(default)]
    pub why: String,
    /// The function that finds out.
    pub evidence: String,
}

/// A paper.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Its name here.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its authors.
    pub authors: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Where its errata are, among the specifications.
    pub errata: &'static str,
    /// All that it states.
    pub statements: Vec<Statement>,
}

fn read(text: &str) -> Vec<Statement> {
    serde_json::from_str(text).expect("statements are read by a test of this crate")
}

static PAPERS: LazyLock<Vec<Paper>> = LazyLock::new(|| {
    vec![
        Paper {
            name: "k-arbiter",
            title: "k-Arbiter: A Safe and General Scheme for h-out of-k Mutual Exclusion Problems",
            authors: "R. Baldoni, Y. Manabe, M. Raynal, S. Aoyagi",
            source: "INRIA research report RR-2523, 1995",
            errata: "arbiter",
            statements: read(include_str!("../statements/k-arbiter.json")),
        },
        Paper {
            name: "anonymous-resources",
            title: "Extended Distributed k-Mutual Exclusion (in Japanese)",
            authors: "H. Miyamoto, H. Kakugawa, M. Yamashita",
            source: "Hiroshima University, about 1994",
            errata: "labels",
            statements: read(include_str!("../statements/anonymous-resources.json")),
        },
        Paper {
            name: "self-stabilizing-ring",
            title: "A Self-stabilizing Token-Based k-out-of-l Exclusion Algorithm",
            authors: "A. K. Datta, R. Hadid, V. Villain",
            source: "Euro-Par 2002, LNCS 2400",
            errata: "ring",
            statements: read(include_str!("../statements/self-stabilizing-ring.json")),
        },
        Paper {
            name: "timer-free",
            title: "A Timer-free Fault Tolerant k-Mutual Exclusion Algorithm",
            authors: "M. Bouillaguet, L. Arantes, P. Sens",
            source: "INRIA research report, 2009 (inria-00394918)",
            errata: "broadcast",
            statements: read(include_str!("../statements/timer-free.json")),
        },
    ]
});

/// The papers whose statements have been gone through.
pub fn papers() -> &'static [Paper] {
    &PAPERS
}
