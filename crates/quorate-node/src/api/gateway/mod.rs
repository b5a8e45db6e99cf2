//! Gateways: what other tools speak, in front of holds without a lease. Off unless `[gateways]`
//! says which pools are meant. Whoever asks does so with the rights of its caller, like everybody.

pub(crate) mod fleetlock;
pub(crate) mod terraform;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use quorate_api::{ClaimState, Problem, ProblemKind, Want};
use quorate_core::ClaimId;
use quorate_wire::survey::Question;
use serde::Serialize;

use super::claims;
use super::reply::TheirWords;
use crate::admission;
use crate::app::App;
use crate::caller::{Action, Caller};
use crate::clock;
use crate::config::{PoolDef, is_pool_name};
use crate::engine::Ask;
use crate::views::{Noted, Picture};

/// An answer in another tool's words.
fn answer<T: Serialize>(status: StatusCode, body: &T) -> Response {
    // Plain data with text for keys always serializes.
    let body = serde_json::to_vec(body).unwrap_or_default();
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    response.extensions_mut().insert(TheirWords);
    response
}

/// The pool that a gateway means by a name.
///
/// # Errors
/// The gateway is off, or no pool can have that name.
fn pool_of(pattern: Option<&str>, gateway: &str, name: &str) -> Result<String, Problem> {
    let Some(pattern) = pattern else {
        let text = format!("this node is no {gateway} server: [gateways] of its file says nothing");
        return Err(Problem::new(ProblemKind::NoSuchPage, text));
    };
    let pool = pattern.replacen('*', name, 1);
    if name.is_empty() || !is_pool_name(&pool) {
        return Err(admission::unknown_pool(&pool));
    }
    Ok(pool)
}

/// A pool, for a caller that comes through a gateway.
struct Desk<'a> {
    app: &'a App,
    pool: String,
    def: Arc<PoolDef>,
}

impl<'a> Desk<'a> {
    /// # Errors
    /// The caller may not claim there, there is no such pool, or it has no holds without a lease.
    fn open(app: &'a App, pool: String) -> Result<Self, Problem> {
        app.authorize(Some(&pool), Action::Claim)?;
        let def = app.config.pool(&pool).ok_or_else(|| admission::unknown_pool(&pool))?;
        if !def.standing {
            return Err(admission::no_standing(&def));
        }
        Ok(Desk { app, pool, def })
    }

    /// What all nodes know of the pool. Only what is the caller's own business leaves this module.
    async fn look(&self) -> Result<Picture, Problem> {
        let node = self.app.serving(Caller::Administrator);
        let gathered = node.survey(Question::Pool { pool: self.pool.clone() }).await?;
        Ok(Picture::new(&self.app.config, &self.pool, &self.def, gathered))
    }

    /// Claims one unit without a lease, or asks again how that stands; the claim is kept in its
    /// place for so long while nobody asks. Says whether it is granted, and how long it has waited.
    async fn claim(
        &self,
        id: ClaimId,
        want: Want,
        (wait, keep): (Duration, Duration),
    ) -> Result<(bool, Duration), Problem> {
        let ask = Ask::Claim { want, wait: !wait.is_zero(), keep: Some(keep) };
        let to = (self.pool.as_str(), id);
        let snapshot = claims::ask_within(self.app, to, ask, wait, clock::now()).await?;
        match snapshot.state {
            ClaimState::Granted => Ok((true, snapshot.waited)),
            ClaimState::Waiting => Ok((false, snapshot.waited)),
            state => {
                let why = snapshot.ended.unwrap_or_default();
                let text = format!("the claim is over ({}): {why}", state.as_str());
                Err(Problem::new(ProblemKind::ClaimOver, text))
            }
        }
    }

    /// Ends a claim, for good: a quorum has written it down.
    async fn end(&self, id: ClaimId) -> Result<(), Problem> {
        self.app.ask(&self.pool, id, Ask::End, clock::now()).await?;
        claims::settle(self.app, &self.pool, &self.def, id).await
    }
}
