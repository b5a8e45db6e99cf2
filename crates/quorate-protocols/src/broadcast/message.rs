//! What seats of a broadcasting pool tell each other.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use quorate_core::NodeSet;

use super::deaths::Deaths;

/// The largest clock that a message may carry. No correct node counts so far, and a node that hears
/// this one can still go on counting.
pub(crate) const CLOCK_MAX: u64 = 1 << 62;

/// What a node knows about crashes and lets others know.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Known {
    /// The life of the node that says it.
    pub life: Life,
    /// Who had not answered when enough had: the paper's not_rec_from. Not an accusation.
    pub unheard: NodeSet,
    /// Who is believed to have crashed, and in which life: a later one of the same node is not
    /// meant. Merged by the larger (broadcast spec 7.3).
    pub crashed: Deaths,
}

/// [`Known`], shared by everybody who was told. Mostly there is nothing to tell, and then nothing
/// is shared: counting who shares it would take longer than anything else about a message.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Knowledge {
    /// Invariant: `None` if nothing is known, so that equal knowledge is equal.
    shared: Option<Arc<Known>>,
}

impl Knowledge {
    /// Whether nothing is known.
    pub(super) fn is_nothing(&self) -> bool {
        self.shared.is_none()
    }

    /// Changes what this node knows; others keep what they were told.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Known)) {
        change(Arc::make_mut(self.shared.get_or_insert_default()));
        self.shared.take_if(|known| **known == NOTHING);
    }
}

pub(super) static NOTHING: Known =
    Known { life: 0, unheard: NodeSet::new(), crashed: Deaths::NONE };

impl Deref for Knowledge {
    type Target = Known;

    fn deref(&self) -> &Known {
        self.shared.as_deref().unwrap_or(&NOTHING)
    }
}

impl From<Known> for Knowledge {
    fn from(known: Known) -> Self {
        Knowledge { shared: (known != NOTHING).then(|| Arc::new(known)) }
    }
}

impl fmt::Debug for Knowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Which life of a node: its boot number, shifted, plus how often it was expelled since. The larger
/// the later.
pub type Life = u64;

const EXPULSIONS_BITS: u32 = 32;

/// The life that begins with a boot.
pub(super) fn first_life(boot: u32) -> Life {
    Life::from(boot) << EXPULSIONS_BITS
}

/// A message of the timer-free and the weighted protocol. Answers say how things stand, not what
/// changed, so that repeating and reordering them is harmless. The tag is a word, as that of
/// [`quorate_core::Event`], and what is known comes first: to look at it nobody need know of which
/// kind a message is, which no processor can foresee.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u64)]
#[allow(missing_docs, reason = "the fields are described once, below")]
pub enum Message {
    /// `clock`: the request's timestamp. `oldest`: that of the sender's oldest request that still
    /// waits; answers to older ones are no longer wanted. `query`: the query that the answer is an
    /// answer to as well.
    Request { known: Knowledge, clock: u64, oldest: u64, query: Option<u64> },
    /// `request`: the request that is answered, and `used`: the units that the sender may use ahead
    /// of it. `query`: the query that is answered.
    Reply { known: Knowledge, request: Option<u64>, query: Option<u64>, used: u32 },
    /// A query that asks for no units.
    Query { known: Knowledge, query: u64 },
    /// Somebody was found to have crashed.
    Notice { known: Knowledge },
    /// The sender is back in this life: no earlier one of it uses anything or asks for anything.
    Join { life: Life },
    /// The answer to it. `clock`: no request of this sender that the joining node let pass in an
    /// earlier life is younger.
    Joined { known: Knowledge, life: Life, clock: u64 },
    /// The receiver's life is believed to be over, and it is no longer counted: it must let
    /// go.
    Expelled { life: Life },
}

impl Message {
    /// Every kind there is: Raymond and Raynal know the first two, the others all but the first.
    pub(crate) const ALL_KINDS: &'static [&'static str] =
        &["permit", "request", "reply", "query", "notice", "join", "joined", "expelled"];
    pub(super) const KINDS: &'static [&'static str] = Self::ALL_KINDS.split_at(1).1;

    pub(super) fn kind(&self) -> usize {
        match self {
            Message::Request { .. } => 0,
            Message::Reply { .. } => 1,
            Message::Query { .. } => 2,
            Message::Notice { .. } => 3,
            Message::Join { .. } => 4,
            Message::Joined { .. } => 5,
            Message::Expelled { .. } => 6,
        }
    }

    /// The clock that whatever is neither a request nor a reply tells, if it tells one.
    #[inline(never)]
    pub(super) fn latest(&self) -> u64 {
        match *self {
            Message::Joined { clock, .. } | Message::Query { query: clock, .. } => clock,
            _ => 0,
        }
    }

    pub(super) fn known(&self) -> Option<&Knowledge> {
        match self {
            Message::Request { known, .. }
            | Message::Reply { known, .. }
            | Message::Query { known, .. }
            | Message::Notice { known }
            | Message::Joined { known, .. } => Some(known),
            Message::Join { .. } | Message::Expelled { .. } => None,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.kind()])?;
        match self {
            Message::Request { clock, query, .. } => {
                write!(f, " @{clock}")?;
                shown_query(f, *query)?;
            }
            Message::Reply { request, used, query, known } => {
                if let Some(clock) = request {
                    write!(f, " @{clock} used {used}")?;
                }
                shown_query(f, *query)?;
                if !known.unheard.is_empty() {
                    write!(f, " unheard {}", known.unheard)?;
                }
            }
            Message::Query { query, .. } => shown_query(f, Some(*query))?,
            Message::Notice { .. } => {}
            Message::Joined { life, clock, .. } => {
                write!(f, " @{clock}")?;
                shown_life(f, *life)?;
            }
            Message::Join { life } | Message::Expelled { life } => shown_life(f, *life)?,
        }
        match self.known() {
            Some(known) if !known.crashed.is_empty() => {
                write!(f, " crashed {}", known.crashed.nodes())
            }
            _ => Ok(()),
        }
    }
}

fn shown_query(f: &mut fmt::Formatter<'_>, query: Option<u64>) -> fmt::Result {
    query.map_or(Ok(()), |query| write!(f, " q{query}"))
}

fn shown_life(f: &mut fmt::Formatter<'_>, life: Life) -> fmt::Result {
    write!(f, " life {}", life >> EXPULSIONS_BITS)?;
    match life & ((1 << EXPULSIONS_BITS) - 1) {
        0 => Ok(()),
        expulsions => write!(f, ".{expulsions}"),
    }
}
