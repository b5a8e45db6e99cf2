//! The clients of a small world: each makes one claim, uses what it gets, and releases it. One that
//! is asked to move does so in its own time, and says so.
//!
//! A client hears of a grant in the instant of the effect, so a second grant for it is never the
//! repetition of an answer that got lost, and always a breach.

use std::fmt;

use quorate_core::{Holding, Share, Shares, numbers};

/// Where a client is in its short life.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Client {
    /// It has not claimed yet.
    NotYet,
    /// It claimed, and has no answer.
    Waiting {
        /// Its home crashed since it last asked, so it will ask again.
        unheard: bool,
        /// What it last asked for is to forget the claim.
        cancelling: bool,
    },
    /// It uses its units.
    Using {
        /// Which, and where it is asked to go.
        held: Holding,
    },
    /// It stopped, by itself or because it was told to, and would notice being granted anything
    /// more.
    Done,
    /// It ended a claim that stands, and its home crashed since: it will say so again, since no
    /// lease would end what was not written down.
    Ended,
    /// It was told that its claim is over without a grant.
    Refused,
    /// It died or stopped at its deadline; what it is told now nobody hears.
    Gone,
}

numbers!(enum Client {
    NotYet,
    Waiting { unheard, cancelling },
    Using { held },
    Done,
    Ended,
    Refused,
    Gone,
});

impl Client {
    /// A client that just asked.
    pub(crate) const ASKED: Client = Client::Waiting { unheard: false, cancelling: false };

    /// A client that uses these.
    pub(crate) fn using(shares: Shares) -> Client {
        Client::Using { held: Holding::new(shares) }
    }

    /// A client that uses just this.
    pub(crate) fn using_one(share: Share) -> Client {
        Client::using(Shares::new(&[share]))
    }

    /// Whether it may still do something.
    pub(crate) fn is_live(&self) -> bool {
        use Client::{Ended, NotYet, Using, Waiting};
        matches!(self, NotYet | Waiting { .. } | Using { .. } | Ended)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Client::NotYet => f.write_str("-"),
            Client::Waiting { cancelling: true, .. } => f.write_str("cancelling"),
            Client::Waiting { .. } => f.write_str("waiting"),
            Client::Using { held } => write!(f, "using {}", held.shares),
            Client::Done => f.write_str("done"),
            Client::Ended => f.write_str("done, unheard"),
            Client::Refused => f.write_str("refused"),
            Client::Gone => f.write_str("gone"),
        }
    }
}
