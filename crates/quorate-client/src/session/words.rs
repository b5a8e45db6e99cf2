//! What goes into the session and what comes out.

use std::time::Duration;

use quorate_api::ClaimId;
use quorate_api::link::{About, Move, Request, Share, Token};

use crate::clock::Instant;
use crate::error::{AcquireError, Lost, ReleaseError};

/// What a client says of itself to every node.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    pub(crate) client: String,
    pub(crate) token: Option<Token>,
}

/// How long the session is prepared to wait for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// For a connection and its first answer.
    pub(crate) dial: Duration,
    /// Between signs of life of a node, where no lease asks for more.
    pub(crate) beat: Duration,
    /// For the acknowledgement of a release, before the client hears that it is unknown.
    pub(crate) patience: Duration,
    /// For how long to go on releasing what nobody acknowledges.
    pub(crate) persistence: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            dial: Duration::from_secs(1),
            beat: Duration::from_secs(1),
            patience: Duration::from_secs(3),
            persistence: Duration::from_secs(30),
        }
    }
}

/// What the driver is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Connect to this server of the list, and say how that went.
    Dial { server: usize },
    /// Drop the connection to this server, or stop making it.
    HangUp { server: usize },
    /// Send this to it.
    Send { server: usize, request: Request },
    /// Tell whoever made the claim.
    Tell { id: ClaimId, news: News },
    /// This server of the list answers, and is asked in general...
    Online { server: usize },
    /// ...or none of the list does, and this happened last, with this one.
    Offline { server: usize, why: String },
}

/// What becomes of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// It may use these units until the deadline.
    Granted {
        shares: Vec<Share>,
        about: Vec<About>,
        counted: bool,
        deadline: Instant,
        lease: Duration,
    },
    /// It may go on until a later deadline.
    Extended { deadline: Instant },
    /// It has one unit more, and is asked to leave another.
    Move(Move),
    /// It is over without a grant.
    Refused(AcquireError),
    /// Its grant is over, or will be at its deadline.
    Lost(Lost),
    /// What became of its release.
    Left(Result<(), ReleaseError>),
}
