//! The door: what a client wants becomes a claim, or a problem that says why not. After this,
//! nothing needs validating.

use quorate_api::{Problem, ProblemKind, Want};
use quorate_core::{Claim, ClaimId, Fence, Shares, Units, UnitsError, Wanted};

use crate::config::{Config, Limits, PoolDef};
use crate::keepsake::Keepsake;
use crate::selection::{self, Known};
use crate::views::Whereabouts;

/// A claim that this pool could grant to a client of this node.
pub(crate) fn claim(
    def: &PoolDef,
    known: &Known<'_>,
    config: &Config,
    id: ClaimId,
    want: &Want,
    draw: u64,
) -> Result<Claim, Unfit> {
    if def.deleted {
        return Err(deleted(&def.label()).into());
    }
    let units = Units::new(want.units(), def.units)?;
    let (min, max) = (def.claim_min, def.claim_max);
    if !(min..=max).contains(&units.get()) {
        let text = format!("{units} units asked: this pool takes claims of {min} to {max}");
        return Err(Problem::new(ProblemKind::Impossible, text).into());
    }
    texts(&config.limits, want)?;
    let lines = selection::lines(def, known, config.me, want, units)?;
    let standing = match want.standing {
        false => None,
        true if !def.standing => return Err(no_standing(def).into()),
        true => Some(Keepsake::write(want)?.into()),
    };
    Ok(Claim { id, draw, wanted: Wanted { units, lines, movable: want.movable, standing } })
}

/// A pool without holds that have no lease is asked for one.
pub(crate) fn no_standing(def: &PoolDef) -> Problem {
    let text = format!(
        "this pool ({}) has no holds without a lease: nothing was claimed. Claim with a lease and \
         renew it, or ask whoever runs the pool for standing = true",
        def.protocol.name()
    );
    Problem::new(ProblemKind::Impossible, text)
}

/// A hold without a lease is asked for where its client would have to stay.
pub(crate) fn standing_on_link() -> Problem {
    let text = "a hold without a lease is claimed over HTTP, where nobody has to stay for it: \
                `quorate acquire --standing`, or PUT with \"standing\": true; nothing was claimed";
    Problem::new(ProblemKind::Impossible, text)
}

/// Why a claim was not made.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// It asks for none, or for more than there are: the one case that programs may want to tell
    /// from others.
    Size(UnitsError),
    /// Anything else.
    Problem(Problem),
}

impl From<UnitsError> for Unfit {
    fn from(error: UnitsError) -> Self {
        Unfit::Size(error)
    }
}

impl From<Problem> for Unfit {
    fn from(problem: Problem) -> Self {
        Unfit::Problem(problem)
    }
}

impl From<Unfit> for Problem {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Size(error) => Problem::new(ProblemKind::Impossible, error.to_string()),
            Unfit::Problem(problem) => problem,
        }
    }
}

/// The texts of a claim are short enough to be kept and shown.
pub(crate) fn texts(limits: &Limits, want: &Want) -> Result<(), Problem> {
    text(limits, "reason", &want.reason)?;
    text(limits, "client", &want.client)
}

/// What a client may show as its grant: distinct units of this pool, with fences that somebody can
/// have given. No other ones reach a protocol, which may take up what it is shown.
pub(crate) fn shown(def: &PoolDef, shares: Option<Shares>) -> Result<Shares, Problem> {
    let inside = |shares: &Shares| {
        !shares.is_empty() && shares.iter().all(|share| share.unit.0 < def.most_shown())
    };
    let shares = shares.filter(inside).ok_or_else(|| {
        let text = format!(
            "to renew a claim, show its units as they were granted: \
             each once, numbered below {}",
            def.units
        );
        Problem::new(ProblemKind::BadRequest, text)
    })?;
    if shares.iter().any(|share| share.fence >= Fence::END) {
        let text = format!("no unit was ever granted with a fence of {} or more", Fence::END.0);
        return Err(Problem::new(ProblemKind::BadRequest, text));
    }
    Ok(shares)
}

/// A text of a client, short enough to be kept and shown.
pub(crate) fn text(limits: &Limits, what: &str, text: &str) -> Result<(), Problem> {
    if text.len() <= limits.text && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let max = limits.text;
    let text = format!("the {what} must be at most {max} bytes without control characters");
    Err(Problem::new(ProblemKind::BadRequest, text))
}

/// There is room for one more claim.
pub(crate) fn room(limits: &Limits, active: usize, waiting: usize) -> Result<(), Problem> {
    if active >= limits.claims {
        return Err(limit("claims", limits.claims, "claims that wait or hold at this node"));
    }
    if waiting >= limits.queue {
        return Err(limit("queue", limits.queue, "claims of this node that wait in this pool"));
    }
    Ok(())
}

/// A limit was met.
pub(crate) fn limit(name: &str, max: usize, what: &str) -> Problem {
    let text = format!("limits.{name} = {max} ({what}) is reached; try later or another node");
    Problem::new(ProblemKind::Limit, text)
}

/// There is no such pool.
pub(crate) fn unknown_pool(name: &str) -> Problem {
    let name: String = name.chars().take(crate::config::POOL_NAME_MAX).collect();
    let what = format!("{name:?}: `quorate pools`, or GET /v1/pools, lists those there are");
    Problem::new(ProblemKind::UnknownPool, what)
}

/// There was a pool of this name.
pub(crate) fn deleted(name: &str) -> Problem {
    let what = format!("{name:?}: it was deleted, and grants nothing any more");
    Problem::new(ProblemKind::UnknownPool, what)
}

/// Nobody here knows the claim.
pub(crate) fn unknown_claim() -> Problem {
    let text = "this node has not heard of the claim, or has forgotten it: \
                repeat it by PUT, or renew it and show its units";
    Problem::new(ProblemKind::UnknownClaim, text)
}

/// The claim is somebody else's.
pub(crate) fn not_yours(owner: &str) -> Problem {
    let text = format!(
        "the claim belongs to {owner}, and goes on as it was: to end it takes the right `revoke`"
    );
    Problem::new(ProblemKind::Forbidden, text)
}

/// Nobody who answers knows whose the claim is.
pub(crate) fn whose(silent: &[String]) -> Problem {
    let text = format!(
        "{} did not answer, and no other node knows whose the claim is; it goes on as it was. Ask \
         again when they are back, or use another id for another claim",
        silent.join(", ")
    );
    Problem::new(ProblemKind::Unknown, text)
}

/// The claim's name is taken.
pub(crate) fn different() -> Problem {
    let text = "the claim of this id asks for something else; it goes on as it was. \
                Choose a new id for a new claim";
    Problem::new(ProblemKind::DifferentClaim, text)
}

/// What a client shows is not what its claim was granted.
pub(crate) fn other_units() -> Problem {
    let text = "the units or fences that are shown are not those which this claim was granted; it \
                goes on as it was. Show those of its own grant";
    Problem::new(ProblemKind::DifferentClaim, text)
}

/// This node cannot say whether the claim lives.
pub(crate) fn lost_here() -> Problem {
    let text = "the deadline this node knew of has passed. If another node renewed the claim \
                since, it goes on: ask there. If none did, it is lost";
    Problem::new(ProblemKind::Unknown, text)
}

/// The same, after all nodes were asked; none if nobody has it.
pub(crate) fn lost_but(whereabouts: Whereabouts) -> Option<Problem> {
    let rest = match whereabouts {
        Whereabouts::Nowhere => return None,
        Whereabouts::At(node) => format!("node {node} renewed the claim since: ask there"),
        Whereabouts::Booked => "those who decide still have the claim in their books. If another \
             node renewed it, it goes on: ask there. If none did, it is lost when its lease ends \
             there: ask again then"
            .to_owned(),
        Whereabouts::Unknown(silent) => format!(
            "{} did not answer. If another node renewed the claim since, it goes on: ask there. \
             If none did, it is lost",
            silent.join(", ")
        ),
    };
    let text = format!("the deadline this node knew of has passed, and {rest}");
    Some(Problem::new(ProblemKind::Unknown, text))
}
