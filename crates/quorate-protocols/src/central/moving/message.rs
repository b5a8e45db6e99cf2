//! What seats of a pool whose decider may change tell each other.

use std::fmt;
use std::time::Duration;

use quorate_core::{ClaimId, Fence, Moment, NodeId, Shares, Wanted};

use crate::attempt::Attempt;
use crate::central::Message as Word;

/// See the table in [the module's documentation](super).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are described once, below")]
pub enum Message {
    /// What homes and the seat of a term say to each other, as in a pool that is pinned.
    Word { term: u32, word: Word },
    /// A `word` of the seat that promises something, in a pool whose lease is another than it was:
    /// it counts by this `lease`.
    Promise { term: u32, lease: Duration, word: Word },
    /// The seat of this term asks a member for all grants of its clients.
    Roll { term: u32 },
    /// `grants`: all that are in force as far as this home knows. `complete`: it knows of all.
    /// `sent`: its clock, to be echoed.
    Answer { term: u32, complete: bool, sent: Moment, grants: Vec<Shown> },
    /// The seat of the term before has stopped for good: this is all it knew.
    Books(Box<Books>),
    /// The seat of this term is about to tell homes of what is `granted`; if `all`, that is all it
    /// has given. What these claims had up to these fences `ended`. `boot`, `naming`: the life of
    /// its shadow that this is for, and as whom.
    Tell {
        term: u32,
        boot: u32,
        naming: u64,
        all: bool,
        granted: Vec<(NodeId, Moment, Shown)>,
        ended: Vec<(ClaimId, Fence)>,
    },
    /// Its shadow knows of the grants of these claims up to these fences; if `all`, of all.
    Told { term: u32, naming: u64, all: bool, claims: Vec<(ClaimId, Fence)> },
}

/// A grant as a home knows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shown {
    /// Whose.
    pub claim: ClaimId,
    /// In which try it was got or is kept.
    pub attempt: Attempt,
    /// All that its client may be using.
    pub shares: Shares,
}

/// What one seat hands to the next (charter spec S11). Of clock readings only those of homes, which
/// are theirs to understand.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Books {
    /// The term they are of...
    pub of: u32,
    /// ...and the one that they open, and no other.
    pub term: u32,
    /// Who has what: the home that asked last, its clock when it did, and its grant.
    pub granted: Vec<(NodeId, Moment, Shown)>,
    /// Who waits, oldest first.
    pub waiting: Vec<Waiting>,
}

/// A claim that waits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "as in a request")]
pub struct Waiting {
    pub node: NodeId,
    pub claim: ClaimId,
    pub attempt: Attempt,
    pub wanted: Wanted,
    pub sent: Moment,
}

impl Message {
    /// The homes that it names.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let (granted, waiting) = match self {
            Message::Books(books) => (&books.granted[..], &books.waiting[..]),
            Message::Tell { granted, .. } => (&granted[..], &[][..]),
            Message::Word { .. }
            | Message::Promise { .. }
            | Message::Roll { .. }
            | Message::Answer { .. }
            | Message::Told { .. } => Default::default(),
        };
        granted.iter().map(|(node, _, _)| *node).chain(waiting.iter().map(|it| it.node))
    }

    pub(super) const KINDS: &'static [&'static str] = &[
        "request", "grant", "release", "decline", "renew", "renewed", "lost", "move", "refused",
        "roll", "answer", "books", "tell", "told",
    ];

    pub(super) fn kind(&self) -> usize {
        match self {
            Message::Word { word, .. } | Message::Promise { word, .. } => word.kind(),
            Message::Roll { .. } => 9,
            Message::Answer { .. } => 10,
            Message::Books(_) => 11,
            Message::Tell { .. } => 12,
            Message::Told { .. } => 13,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Word { term, word } => write!(f, "{word} t{term}"),
            Message::Promise { term, lease, word } => write!(f, "{word} t{term} for {lease:?}"),
            Message::Roll { term } => write!(f, "roll t{term}"),
            Message::Answer { term, complete, grants, .. } => {
                write!(f, "answer t{term}{}", if *complete { "" } else { ", incomplete" })?;
                grants.iter().try_for_each(|it| write!(f, " {} {}", it.claim, it.shares))
            }
            Message::Books(books) => {
                write!(f, "books t{} for t{}", books.of, books.term)?;
                let granted = books.granted.iter();
                granted.clone().try_for_each(|(_, _, it)| write!(f, " {} {}", it.claim, it.shares))
            }
            Message::Tell { term, all, granted, ended, .. } => {
                write!(f, "tell{} t{term}", if *all { " all" } else { "" })?;
                for (_, _, it) in granted {
                    write!(f, " {} {}", it.claim, it.shares)?;
                }
                ended.iter().try_for_each(|(claim, fence)| write!(f, ", {claim} over {fence}"))
            }
            Message::Told { term, all, claims, .. } => {
                write!(f, "told{} t{term}", if *all { " all" } else { "" })?;
                claims.iter().try_for_each(|(claim, fence)| write!(f, " {claim} {fence}"))
            }
        }
    }
}
