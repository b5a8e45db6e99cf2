//! What nodes ask each other outside the protocols, so that any of them can tell people who holds
//! what, who waits and why. Questions change nothing, and no decision rests on the answers.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Entry, Fact, Health, NodeId, NodeSet, Remade, Stamp};
use serde::{Deserialize, Serialize};

use crate::glance::{Glance, Wanted};
use crate::outlook::OutlookLine;

/// Most claims and most book entries in one survey; more are counted, not listed.
pub const LINES_MAX: usize = 1000;

/// Most facts in one survey.
pub const FACTS_MAX: usize = 1000;

/// A question to another node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Question {
    /// What do you know about this pool?
    Pool {
        /// Its name.
        pool: String,
    },
    /// What do you know about this one claim?
    Claim {
        /// The pool.
        pool: String,
        /// The claim: origin and serial.
        claim: (u64, u64),
    },
    /// What does an operator see who looks at you?
    Glance(Wanted),
    /// Whose is this claim? Unlike with [`Question::Claim`], nobody is there for it by asking.
    Owner {
        /// The pool.
        pool: String,
        /// The claim: origin and serial.
        claim: (u64, u64),
    },
    /// Is this claim in your books? Nobody is there for it by asking this either.
    Booked {
        /// The pool.
        pool: String,
        /// The claim: origin and serial.
        claim: (u64, u64),
    },
}

impl Question {
    /// The pool that it is about, if it is about one.
    pub fn pool(&self) -> Option<&str> {
        match self {
            Question::Pool { pool }
            | Question::Claim { pool, .. }
            | Question::Owner { pool, .. }
            | Question::Booked { pool, .. } => Some(pool),
            Question::Glance(wanted) => wanted.pool.as_deref(),
        }
    }
}

/// The answer to a question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// To [`Question::Pool`], [`Question::Claim`] and [`Question::Booked`].
    Survey(Box<Survey>),
    /// To [`Question::Glance`].
    Glance(Box<Glance>),
    /// To [`Question::Owner`].
    Owner(Whose),
}

/// Whose a claim is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Whose {
    /// What its client is called, if the node knows.
    pub client: Option<String>,
    /// If not: whether the claim is in its books.
    pub booked: bool,
}

/// Units, each with all its labels.
pub type Labelled = Vec<(u32, BTreeMap<String, String>)>;

/// What one node knows about a pool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Survey {
    /// Claims of its own clients that are not over.
    pub claims: Vec<HomeClaim>,
    /// Its books, if it is an arbiter of the pool.
    pub books: Vec<BookLine>,
    /// Claims and lines that were left out.
    pub left_out: u64,
    /// If it is an arbiter that waits until old promises are over: for how long yet.
    pub grace_micros: Option<u64>,
    /// Whether its seat has stopped after a contradiction.
    pub stopped: bool,
    /// How its seat is.
    pub health: HealthLine,
    /// Which claims it believes can be granted; nothing if it has no seat, or a stopped one.
    pub outlook: Option<OutlookLine>,
    /// What its seat tells people about itself.
    pub facts: Vec<FactLine>,
    /// Units that it grants no more, since an operator said so.
    pub drained: Vec<u32>,
    /// Units that have other labels than the configuration says, as far as it knows...
    pub relabelled: Labelled,
    /// ...and whether it decides over them, and so knows.
    pub labels_known: bool,
    /// What is short, where units differ.
    pub shortages: Vec<ShortLine>,
    /// To [`Question::Claim`], if a client made it there and it is over: how it ended.
    pub ended: Option<EndLine>,
}

/// How a claim ended at the node of its client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndLine {
    /// What became of it.
    pub how: End,
    /// Why, in a sentence.
    pub why: String,
    /// How many units it asked for.
    pub units: u32,
    /// Who asked.
    pub client: String,
    /// What for.
    pub reason: String,
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum End {
    /// Its client gave the units back.
    Released,
    /// Its client no longer wanted it.
    Cancelled,
    /// Its lease ended.
    Lost,
    /// It could not be granted.
    Refused,
    /// An operator took it back.
    Revoked,
}

impl Answer {
    /// Leaves out the middle half of every list: the oldest and the newest matter most. Says
    /// whether there was any.
    pub(crate) fn shorten(&mut self) -> bool {
        match self {
            Answer::Survey(survey) => survey.shorten(),
            Answer::Glance(glance) => {
                let rest = halve(&mut glance.records)
                    + halve(&mut glance.notable)
                    + halve(&mut glance.found)
                    + halve(&mut glance.buckets);
                glance.survey.shorten() || rest > 0
            }
            Answer::Owner(_) => false,
        }
    }

    /// The same kind of answer with nothing in it.
    pub(crate) fn emptied(self) -> Self {
        match self {
            Answer::Survey(_) => Answer::Survey(Box::default()),
            Answer::Glance(_) => Answer::Glance(Box::default()),
            Answer::Owner(_) => Answer::Owner(Whose::default()),
        }
    }
}

impl Survey {
    fn shorten(&mut self) -> bool {
        let lines = halve(&mut self.claims) + halve(&mut self.books);
        self.left_out = self.left_out.saturating_add(lines as u64);
        let rest = halve(&mut self.facts)
            + halve(&mut self.drained)
            + halve(&mut self.relabelled)
            + halve(&mut self.shortages);
        lines + rest > 0
    }
}

/// Takes the middle half out; says how many that are.
fn halve<T>(list: &mut Vec<T>) -> usize {
    let kept = list.len() / 4;
    list.drain(kept..list.len() - kept).len()
}

/// Units that are short, and how many compete for them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShortLine {
    /// Claims for which this was found, origin and serial.
    pub claims: Vec<(u64, u64)>,
    /// The units, all of them.
    #[serde(with = "bitmap")]
    pub units: Vec<u32>,
    /// How many of them are free.
    pub free: u32,
    /// Claims that hold some of them.
    pub holders: u32,
    /// Claims that wait for some of them.
    pub waiting: u32,
    /// Those by name, oldest first, as far as there is room: origin and serial.
    pub rivals: Vec<(u64, u64)>,
}

/// Units as a bitmap, so that those of the largest pool fit in a survey.
mod bitmap {
    use quorate_core::UNITS_MAX;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::codec::{bitmap, numbers};

    pub(super) fn serialize<S: Serializer>(units: &[u32], out: S) -> Result<S::Ok, S::Error> {
        bitmap(units.iter().map(|unit| *unit as usize)).serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
        let words = Vec::deserialize(from)?;
        let units = numbers(words, UNITS_MAX, "units").map_err(D::Error::custom)?;
        Ok(units.map(|unit| unit as u32).collect())
    }
}

/// How a seat is: [`Health`], with nodes as numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HealthLine {
    /// How new its copy of the books is, where every node keeps one.
    pub edition: (u64, u64),
    /// If it does not take part yet: for whom it waits.
    pub joining: Option<Vec<u32>>,
    /// Who seems to have crashed.
    pub crashed: Vec<u32>,
    /// Who does not answer and is counted as using all that a node may.
    pub silent: Vec<u32>,
    /// Units that nobody can have because of that.
    pub units_lost: u32,
    /// If units are missing that are made anew: whether whoever had them must stop first.
    pub remade_later: Option<bool>,
    /// Who is not counted any more, where that can be.
    pub counted_out: Option<Vec<u32>>,
    /// Whether it is taken for crashed while it runs.
    pub falsely_suspected: bool,
    /// Whether more nodes are away than the pool allows for.
    pub too_many_crashed: bool,
}

impl HealthLine {
    /// As a seat tells it.
    pub fn new(health: &Health) -> Self {
        let numbers = |nodes: &NodeSet| nodes.iter().map(|node| node.0).collect();
        HealthLine {
            edition: health.edition,
            joining: health.joining.as_ref().map(numbers),
            crashed: numbers(&health.crashed),
            silent: numbers(&health.silent),
            units_lost: health.units_lost,
            remade_later: health.remade.map(|when| when == Remade::WhenStopped),
            counted_out: health.counted_out.as_ref().map(numbers),
            falsely_suspected: health.falsely_suspected,
            too_many_crashed: health.too_many_crashed,
        }
    }
}

/// What a seat tells about itself that only its protocol has a word for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FactLine {
    /// What it is.
    pub name: String,
    /// The node it is about, if it is about one.
    pub about: Option<u32>,
    /// How much.
    pub value: u64,
    /// Whether it only grows.
    pub grows: bool,
}

impl FactLine {
    /// As a seat shows it.
    pub fn new(fact: &Fact) -> Self {
        let Fact { name, about, value, grows } = *fact;
        FactLine { name: name.to_owned(), about: about.map(|node| node.0), value, grows }
    }
}

/// A claim, as the node of its client knows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HomeClaim {
    /// Origin and serial.
    pub claim: (u64, u64),
    /// How many units it asks for.
    pub units: u32,
    /// Who asks.
    pub client: String,
    /// What for.
    pub reason: String,
    /// Which units, if not any: so many with these labels, line by line.
    pub lines: Vec<(u32, BTreeMap<String, String>)>,
    /// What it has, if it is granted: unit and fence.
    pub shares: Option<Vec<(u32, u64)>>,
    /// Where its client is asked to go, and has not gone: from unit and fence, to unit and fence.
    pub moves: Vec<((u32, u64), (u32, u64))>,
    /// How long it has waited or held.
    pub since_micros: u64,
    /// If granted: how long until its lease ends.
    pub left_micros: u64,
    /// Whether it asks for a hold without a lease, or has one.
    pub standing: bool,
    /// If an operator took it back: why.
    pub revoked: Option<String>,
    /// How often the node has been started...
    pub boot: u32,
    /// ...and which of its grants in this pool since then it is, if it was granted there.
    pub grant: Option<u64>,
}

/// A claim in an arbiter's books.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BookLine {
    claim: (u64, u64),
    stamp: (u64, u32),
    units: u32,
    granted: bool,
    kept: Option<KeptLine>,
}

/// What books say of a claim without a lease, which nobody else may know any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptLine {
    /// What was written down with it.
    pub text: String,
    /// What it has: unit and fence.
    pub shares: Vec<(u32, u64)>,
}

/// Most units of one line.
const SHARES_MAX: usize = 1000;

impl BookLine {
    /// As an arbiter's ledger shows it.
    pub fn new(entry: &Entry) -> Self {
        BookLine {
            claim: (entry.claim.origin, entry.claim.serial),
            stamp: (entry.stamp.clock, entry.stamp.node.0),
            units: entry.units.get(),
            granted: !entry.standing.waits(),
            kept: entry.kept.as_deref().map(|kept| KeptLine {
                text: kept.text.to_string(),
                shares: kept
                    .shares
                    .iter()
                    .take(SHARES_MAX)
                    .map(|s| (s.unit.0, s.fence.0))
                    .collect(),
            }),
        }
    }

    /// What it says of a claim without a lease.
    pub fn kept(&self) -> Option<&KeptLine> {
        self.kept.as_ref()
    }

    /// The claim.
    pub fn claim(&self) -> ClaimId {
        ClaimId { origin: self.claim.0, serial: self.claim.1 }
    }

    /// How old it is.
    pub fn stamp(&self) -> Stamp {
        Stamp { clock: self.stamp.0, node: NodeId(self.stamp.1) }
    }

    /// How many units it asks for or has.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Whether the arbiter has promised it.
    pub fn granted(&self) -> bool {
        self.granted
    }
}
