//! Errors as answers: `application/problem+json` (RFC 9457), and the same on the client link.

use serde::{Deserialize, Serialize};

/// Why a request was not carried out, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Which problem, for programs.
    #[serde(rename = "type")]
    pub kind: ProblemKind,
    /// Which problem, for people; the same text for every occurrence.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// This occurrence: what is wrong, what was left unchanged, what to do next.
    pub detail: String,
}

/// Which problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// The request makes no sense as it stands. Nothing changed.
    BadRequest,
    /// Who asks may not do this. Nothing changed.
    Forbidden,
    /// There is no such pool. Nothing changed.
    UnknownPool,
    /// This node does not know the claim. It may be known elsewhere. Nothing changed.
    UnknownClaim,
    /// The id belongs to a claim with a different body. Nothing changed; that claim goes on.
    DifferentClaim,
    /// The claim is over, and its id cannot be used again.
    ClaimOver,
    /// No pool of this size can ever grant the claim. Nothing changed.
    Impossible,
    /// A named limit of this node is reached. Nothing changed; try later or elsewhere.
    Limit,
    /// The node is stopping. A claim that was made before goes on: ask for it by its id elsewhere.
    Stopping,
    /// The pool's seat on this node stopped after finding a contradiction in itself. What became of
    /// the claim is unknown; leases end by themselves.
    SeatStopped,
    /// Too little time has passed, or too many nodes are silent, to say. The outcome is unknown:
    /// ask again by the claim's id.
    Unknown,
    /// There is nothing at this path, or not for this method. Nothing changed.
    NoSuchPage,
    /// The request did not come to its end in time. Nothing changed.
    TooSlow,
    /// The body is larger than a node reads. Nothing changed.
    TooLarge,
    /// The request is for a host of another name, or comes from a page of another site. Nothing
    /// changed.
    OtherSite,
    /// Who asks has not shown a token that this cluster takes. Nothing changed.
    Unauthorized,
    /// It is not what whoever asks thinks it is: there already, or changed since. Nothing changed.
    Conflict,
    /// As things stand this is not done, by the cluster's own rules: it would cost what the detail
    /// says, or has nothing to be done to. Nothing changed.
    Refused,
    /// The charter cannot be asked now, and what needs it waits. Nothing changed; try again.
    Unavailable,
    /// The node is starting and knows nothing yet. Nothing changed: ask another, or again.
    Starting,
}

impl ProblemKind {
    /// The HTTP status that goes with it.
    pub fn status(self) -> u16 {
        match self {
            ProblemKind::BadRequest => 400,
            ProblemKind::Unauthorized => 401,
            ProblemKind::Forbidden | ProblemKind::OtherSite => 403,
            ProblemKind::UnknownPool | ProblemKind::UnknownClaim | ProblemKind::NoSuchPage => 404,
            ProblemKind::TooSlow => 408,
            ProblemKind::DifferentClaim | ProblemKind::Conflict | ProblemKind::Refused => 409,
            ProblemKind::ClaimOver => 410,
            ProblemKind::TooLarge => 413,
            ProblemKind::Impossible => 422,
            ProblemKind::Limit => 429,
            ProblemKind::SeatStopped => 500,
            ProblemKind::Stopping | ProblemKind::Starting | ProblemKind::Unavailable => 503,
            ProblemKind::Unknown => 504,
        }
    }

    /// The same text for every occurrence.
    pub fn title(self) -> &'static str {
        match self {
            ProblemKind::BadRequest => "the request makes no sense",
            ProblemKind::Forbidden => "that is not allowed",
            ProblemKind::UnknownPool => "there is no such pool",
            ProblemKind::UnknownClaim => "the claim is not known here",
            ProblemKind::DifferentClaim => "the id belongs to a different claim",
            ProblemKind::ClaimOver => "the claim is over",
            ProblemKind::Impossible => "the claim could never be granted",
            ProblemKind::Limit => "a limit is reached",
            ProblemKind::Stopping => "the node is stopping",
            ProblemKind::SeatStopped => "the pool has stopped on this node",
            ProblemKind::Unknown => "the outcome is unknown",
            ProblemKind::NoSuchPage => "there is no such page",
            ProblemKind::TooSlow => "the request took too long",
            ProblemKind::TooLarge => "the request is too large",
            ProblemKind::OtherSite => "the request is not from here",
            ProblemKind::Unauthorized => "a token is needed",
            ProblemKind::Conflict => "it is not as you saw it",
            ProblemKind::Refused => "that is refused as things stand",
            ProblemKind::Unavailable => "the charter cannot be asked now",
            ProblemKind::Starting => "the node is starting",
        }
    }
}

impl Problem {
    /// A problem of this kind, with what is particular about this occurrence.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let (title, status) = (kind.title().to_owned(), kind.status());
        Problem { kind, title, status, detail: detail.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.title, self.detail)
    }
}

impl std::error::Error for Problem {}
