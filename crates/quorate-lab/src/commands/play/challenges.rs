//! What is printed in a paper and wrong, to be broken by hand.
//!
//! Of each the fewest steps to the breach are known: by looking at every history of the model for
//! misprints (a test does), by our own best run for the rest.

use anyhow::bail;
use quorate_core::Protocol;
use quorate_papers::{Misprint, PrintedProcess};
use quorate_sim::{Needs, Plan};
use serde_json::{Value, json};

use super::words::Words;
use crate::protocols::{Offered, Options};

/// One of them.
#[derive(Debug)]
pub(crate) struct Challenge {
    pub(crate) name: &'static str,
    title: &'static str,
    /// What the paper says, and where.
    printed: &'static str,
    hint: &'static str,
    /// What is wrong, for those who give up or have won.
    why: &'static str,
    /// Steps of the shortest way that is known.
    pub(crate) par: usize,
    /// That way.
    pub(crate) solution: &'static str,
    /// What is put back, unless it is a protocol of ours that is played.
    pub(crate) misprint: Option<Misprint>,
    /// All other words.
    words: &'static str,
}

const THREE: &str = "--nodes 3 --units 2 --by-hand";

/// From the easiest to the hardest.
pub(crate) const ALL: &[Challenge] = &[
    Challenge {
        name: "any-reply",
        title: "A reply is a reply",
        printed: "Bouillaguet, Arantes and Sens 2009, section 4.1: a process enters \u{201c}upon \
                  receiving at least n - crashed - k replies\u{201d}. Three processes share two \
                  units. Get all three inside.",
        hint: "Click on a node to let it claim, on a message to deliver it.",
        why: "A NOPERM is a reply too. It must be permissions that are counted (broadcast spec \
              E18).",
        par: 9,
        solution: "0:claim:0,1:deliver:3,2:deliver:5,3:claim:1,4:deliver:8,5:deliver:9,6:claim:2,\
                   7:deliver:11,8:deliver:13",
        misprint: Some(Misprint::CountReplies),
        words: THREE,
    },
    Challenge {
        name: "or-for-and",
        title: "One small or",
        printed: "Section 4.1: a process gives its permission \u{201c}only if it is not in the \
                  critical section or its request has not priority\u{201d}. Three processes share \
                  two units. Get all three inside.",
        hint: "Whoever waits refuses nobody.",
        why: "Who waits and came first must not permit either: and, not or (broadcast spec E17).",
        par: 9,
        solution: TIE,
        misprint: Some(Misprint::Either),
        words: THREE,
    },
    Challenge {
        name: "tie-break",
        title: "The tie of footnote 1",
        printed: "Footnote 1 orders requests by (clock, i), and breaks ties by i = j. Three \
                  processes share two units; nothing is lost, nobody crashes. Get all three \
                  inside.",
        hint: "Make them ask at the same time.",
        why: "Of two requests with equal clocks neither has priority, so that both permit each \
              other: it must be i < j (broadcast spec E1).",
        par: 9,
        solution: TIE,
        misprint: Some(Misprint::TieBreak),
        words: THREE,
    },
    Challenge {
        name: "stale-permission",
        title: "An answer to another question",
        printed: "Lines 33 to 41 of Algorithm 1: a PERM is counted when it arrives. The time stamp \
                  that would say what it answers was left out \u{201c}for simplicity\u{201d}. Get \
                  three inside where two fit.",
        hint: "Messages need not arrive in the order in which they were sent.",
        why: "A permission for an earlier request was counted for a later one: replies must be \
              matched with what they answer (broadcast spec E3).",
        par: 13,
        solution: "0:claim:0,1:deliver:3,2:deliver:4,3:deliver:5,4:claim:1,5:deliver:9,\
                   6:deliver:10,7:release:0,8:claim:2,9:deliver:13,10:deliver:15,11:claim:0,\
                   12:deliver:6",
        misprint: Some(Misprint::Unmatched),
        words: THREE,
    },
];

/// Three ask with equal clocks, and each permits the next.
const TIE: &str = "0:claim:0,1:claim:1,2:claim:2,3:deliver:3,4:deliver:6,5:deliver:7,6:deliver:9,\
                   7:deliver:10,8:deliver:11";

/// The challenge of a name.
pub(super) fn find(name: &str) -> Result<&'static Challenge, String> {
    ALL.iter().find(|one| one.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|one| one.name).collect();
        format!("choose {}", names.join(", "))
    })
}

impl Challenge {
    /// What is played, with the steps that were taken.
    pub(super) fn set(&'static self, words: &Words) -> anyhow::Result<Words> {
        words.with(self.words)
    }

    /// The words of the shortest way that is known.
    #[cfg(test)]
    pub(super) fn won(&self) -> String {
        format!("--challenge {} --intervene {}", self.name, self.solution)
    }

    /// As the page tells it.
    pub(super) fn json(&'static self) -> Value {
        let Challenge { name, title, printed, hint, why, par, solution, .. } = self;
        let proved = self.misprint.is_some();
        json!({
            "name": name, "title": title, "printed": printed, "hint": hint, "why": why,
            "par": par, "solution": solution, "proved": proved,
        })
    }
}

impl Offered for PrintedProcess {
    const NEEDS: Needs = Needs { order: false, reliability: true, permanence: true };

    fn pool(_: &Plan, _: &Options) -> anyhow::Result<Misprint> {
        bail!("{} is played as a challenge", Self::NAME)
    }
}
