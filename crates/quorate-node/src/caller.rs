//! Who asks, and whether it may: the one place that decides.
//!
//! The door makes a [`Caller`] of whoever connects, and what a request shows may tell more about it
//! (today: the administrator's token in an HTTP header). Whatever a caller wants from the engine
//! passes [`authorize`] first, over HTTP and over the client link alike ([`crate::app::App`]), and
//! the engine is told who it was.
//!
//! Nodes cannot authenticate anybody yet and listen on loopback addresses only. If the
//! configuration has an `admin_token`, taking claims back and administering pools needs it;
//! everything else is open to whoever reaches the node.

use std::fmt;

use quorate_api::{Problem, ProblemKind};
use quorate_wire::order::Ordered;

use crate::config::Config;
use crate::engine::{Ask, Request};

/// Who asks, as far as this node knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    /// Somebody who showed nothing.
    Anonymous,
    /// Somebody who showed a token that gives no rights.
    Stranger,
    /// Whoever has the administrator's token, and whoever runs this process.
    Administrator,
    /// Somebody who may do nothing: shows that everybody is asked for its rights.
    #[cfg(test)]
    Nobody,
}

/// What a caller wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// To know whether the node lives and is ready.
    Health,
    /// To look.
    See,
    /// To make, renew and end claims.
    Claim,
    /// To take somebody else's claim back.
    Revoke,
    /// To change what a pool is, or to interfere with it.
    Admin,
}

impl Caller {
    /// The same caller, who has shown this token with a request.
    pub(crate) fn shows(self, config: &Config, token: Option<&str>) -> Self {
        match (token, &config.admin_token) {
            (Some(shown), Some(token)) if token.is(shown) => Caller::Administrator,
            (Some(_), Some(_)) => Caller::Stranger,
            (None, _) | (_, None) => self,
        }
    }
}

/// As logs show it.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Caller::Anonymous => "anonymous",
            Caller::Stranger => "stranger",
            Caller::Administrator => "administrator",
            #[cfg(test)]
            Caller::Nobody => "nobody",
        })
    }
}

/// Whether this caller may do that, to this pool or, without one, to the node.
///
/// # Errors
/// It may not; nothing changed.
pub(crate) fn authorize(
    config: &Config,
    caller: Caller,
    pool: Option<&str>,
    action: Action,
) -> Result<(), Problem> {
    let open = match action {
        Action::Health | Action::See | Action::Claim => true,
        Action::Revoke | Action::Admin => config.admin_token.is_none(),
    };
    let why = match caller {
        Caller::Administrator => return Ok(()),
        #[cfg(test)]
        Caller::Nobody if action != Action::Health => "this caller may do nothing",
        _ if open => return Ok(()),
        Caller::Stranger => "the token is not the administrator's",
        _ => "this cluster asks for the administrator's token",
    };
    tracing::debug!(%caller, pool, ?action, "refused");
    let text = format!(
        "{why}; nothing changed. Send it as `Authorization: Bearer TOKEN`, or give the command \
         QUORATE_TOKEN"
    );
    Err(Problem::new(ProblemKind::Forbidden, text))
}

impl Request {
    /// What its caller must be allowed to do, and to which pool.
    pub(crate) fn needs(&self) -> (Option<&str>, Action) {
        match self {
            Request::Claim { pool, ask, .. } => (Some(pool), ask.needs()),
            Request::Gather { question, .. } => (question.pool(), Action::See),
            Request::Order { pool, what: Ordered::Revoke { .. }, .. } => {
                (Some(pool), Action::Revoke)
            }
            Request::Order { pool, .. } => (Some(pool), Action::Admin),
            Request::Pools(_) | Request::Node(_) | Request::Measure(_) => (None, Action::See),
            Request::Checks(_) | Request::Grants { .. } => (None, Action::Health),
            Request::Register { pool, .. } => (Some(pool), Action::See),
            Request::Corrupt { pool, .. } | Request::Fence { pool, .. } => {
                (Some(pool), Action::Admin)
            }
        }
    }
}

impl Ask {
    fn needs(&self) -> Action {
        match self {
            Ask::Claim { .. } | Ask::Renew { .. } | Ask::End => Action::Claim,
            Ask::Status { .. } => Action::See,
        }
    }
}
