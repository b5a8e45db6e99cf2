//! FleetLock, as Zincati and airlock speak it (conventions 3.1): a machine asks before it reboots,
//! and says when it is back. A group is a pool, a slot a unit, and a machine that never comes back
//! holds its unit until somebody revokes it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use quorate_api::{Problem, ProblemKind, Want};
use quorate_core::ClaimId;
use serde::{Deserialize, Serialize};

use super::{Desk, Noted, answer, pool_of};
use crate::api::reply::HOW_TO_SAY_WHO;
use crate::app::App;
use crate::caller::Caller;
use crate::clock;

/// How long a request waits for a unit: one that is free takes a few messages.
const WAIT: Duration = Duration::from_secs(2);
/// How long a machine keeps its place between two requests: Zincati asks every 300 to 330 s.
const KEEP: Duration = Duration::from_secs(2 * 330);
/// Longest id of a machine.
const ID_MAX: usize = 128;
/// Most claims of machines that are remembered here.
const REMEMBERED: usize = 10_000;

#[derive(Deserialize)]
struct Body {
    client_params: Params,
}

#[derive(Deserialize)]
struct Params {
    id: String,
    group: String,
}

/// What is written down with a hold.
#[derive(Serialize, Deserialize)]
struct Note {
    fleetlock: String,
}

#[derive(Serialize)]
struct Said<'a> {
    kind: &'a str,
    value: &'a str,
}

fn say(status: StatusCode, kind: &str, value: &str) -> Response {
    answer(status, &Said { kind, value })
}

/// Claims of machines that were made here and may not be in the pool's books yet, by pool and id: a
/// machine that repeats itself has one claim.
pub(crate) type Made = Mutex<HashMap<(String, String), ClaimId>>;

/// What went wrong, in FleetLock's words.
fn refuse(problem: &Problem) -> Response {
    let (status, kind) = match problem.kind {
        ProblemKind::UnknownPool => (StatusCode::BAD_REQUEST, "unknown_group"),
        ProblemKind::BadRequest => (StatusCode::BAD_REQUEST, "invalid_client_identity"),
        ProblemKind::Impossible => (StatusCode::INTERNAL_SERVER_ERROR, "group_without_standing"),
        ProblemKind::Unknown => (StatusCode::SERVICE_UNAVAILABLE, "no_quorum"),
        ProblemKind::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        ProblemKind::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized"),
        ProblemKind::Forbidden => (StatusCode::FORBIDDEN, "forbidden"),
        _ => {
            let status = StatusCode::from_u16(problem.status);
            (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), "refused")
        }
    };
    let mut response = say(status, kind, &problem.detail);
    if problem.kind == ProblemKind::Unauthorized {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HOW_TO_SAY_WHO);
    }
    response
}

/// Whether the body of a request could be this.
pub(crate) fn is_readable(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Body>(bytes).is_ok()
}

/// A request that makes sense.
struct Machine<'a> {
    desk: Desk<'a>,
    id: String,
}

impl<'a> Machine<'a> {
    fn read(app: &'a App, headers: &HeaderMap, bytes: &Bytes) -> Result<Self, Box<Response>> {
        let gateway = app.config.gateways.fleetlock.as_deref();
        if headers.get("fleet-lock-protocol").is_none_or(|value| value != "true") {
            let text = "send the header fleet-lock-protocol: true";
            return Err(Box::new(say(StatusCode::BAD_REQUEST, "missing_header", text)));
        }
        let kind = "invalid_client_identity";
        let wrong = |text: &str| Box::new(say(StatusCode::BAD_REQUEST, kind, text));
        let Ok(Body { client_params: Params { id, group } }) = serde_json::from_slice(bytes) else {
            return Err(wrong("send {\"client_params\": {\"id\": \"...\", \"group\": \"...\"}}"));
        };
        let known = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        if id.is_empty() || id.len() > ID_MAX || id.chars().any(char::is_control) {
            return Err(wrong("an id has 1 to 128 bytes and no control characters"));
        }
        if group.is_empty() || !group.chars().all(known) {
            return Err(wrong("a group has letters, digits, '.' and '-'"));
        }
        let pool = pool_of(gateway, "FleetLock", &group);
        let desk = pool
            .and_then(|pool| Desk::open(app, pool))
            .map_err(|error| Box::new(refuse(&error)))?;
        Ok(Machine { desk, id })
    }

    fn key(&self) -> (String, String) {
        (self.desk.pool.clone(), self.id.clone())
    }

    fn made(&self) -> Option<ClaimId> {
        self.desk.app.machines.lock().ok()?.get(&self.key()).copied()
    }

    fn remember(&self, id: Option<ClaimId>) {
        let Ok(mut made) = self.desk.app.machines.lock() else { return };
        if made.len() >= REMEMBERED {
            made.clear(); // What is in the pool's books is found there.
        }
        match id {
            Some(id) => drop(made.insert(self.key(), id)),
            None => drop(made.remove(&self.key())),
        }
    }

    /// Claims of this machine that are in the pool's books, and whether the pool can grant at all.
    async fn look(&self) -> Result<(Vec<Noted>, bool), Problem> {
        let picture = self.desk.look().await?;
        let is_it = |note: &str| {
            serde_json::from_str(note).is_ok_and(|note: Note| note.fleetlock == self.id)
        };
        Ok((picture.noted(is_it), picture.grants_anything()))
    }

    fn want(&self) -> Want {
        let client = match self.desk.app.caller {
            Caller::Holder(_) => String::new(), // It is called what its token says.
            _ => self.id.clone(),
        };
        let note = Note { fleetlock: self.id.clone() };
        Want {
            standing: true,
            client,
            reason: format!("reboot of {}", self.id),
            note: serde_json::to_string(&note).unwrap_or_default(),
            ..1.into()
        }
    }

    async fn lock(&self) -> Result<Response, Problem> {
        let (found, grants) = self.look().await?;
        let own = found.first().map(|noted| noted.id).or_else(|| self.made());
        let mut id = own.unwrap_or_else(new_id);
        self.remember(Some(id));
        let mut granted = self.desk.claim(id, self.want(), (WAIT, KEEP)).await;
        if granted.as_ref().is_err_and(|problem| problem.kind == ProblemKind::ClaimOver) {
            // It was ended since; the machine asks anew.
            id = new_id();
            self.remember(Some(id));
            granted = self.desk.claim(id, self.want(), (WAIT, KEEP)).await;
        }
        if granted?.0 {
            // Two nodes may have been asked at once: one unit is enough.
            for extra in found.iter().filter(|noted| noted.id != id) {
                self.desk.end(extra.id).await?;
            }
            return Ok(say(StatusCode::OK, "locked", "this machine may reboot"));
        }
        if !grants {
            let text = "too few nodes answer for this group to grant anything; the machine keeps \
                        its place";
            return Ok(say(StatusCode::SERVICE_UNAVAILABLE, "no_quorum", text));
        }
        let text = "all slots of the group are taken; the machine keeps its place in the queue";
        Ok(say(StatusCode::LOCKED, "failed_lock_semaphore_full", text))
    }

    async fn unlock(&self) -> Result<Response, Problem> {
        let (found, grants) = self.look().await?;
        let mut ids: Vec<ClaimId> = found.iter().map(|noted| noted.id).collect();
        ids.extend(self.made().filter(|made| !ids.contains(made)));
        for id in &ids {
            self.desk.end(*id).await?;
        }
        self.remember(None);
        if ids.is_empty() && !grants {
            let text = "too few nodes answer to know whether this machine holds a slot";
            return Ok(say(StatusCode::SERVICE_UNAVAILABLE, "no_quorum", text));
        }
        Ok(say(StatusCode::OK, "unlocked", "this machine holds no slot"))
    }
}

/// A name that no other claim has: the standard library's keys are random.
fn new_id() -> ClaimId {
    let half = || RandomState::new().hash_one(clock::now().0);
    ClaimId { origin: half(), serial: half() }
}

/// A machine wants to reboot.
#[cfg_attr(test, utoipa::path(post, path = "/v1/pre-reboot", tag = "gateways",
    params(("fleet-lock-protocol" = String, Header, description = "`true`")),
    responses(
        (status = 200, description = "it has a slot of its group, now or since it asked before"),
        (status = 423, description = "all slots are taken: ask again, its place is kept"),
        (status = 400, description = "no such group, or no such request"),
        (status = 503, description = "too few nodes answer"),
    )))]
pub(crate) async fn pre_reboot(app: App, headers: HeaderMap, bytes: Bytes) -> Response {
    match Machine::read(&app, &headers, &bytes) {
        Ok(machine) => machine.lock().await.unwrap_or_else(|problem| refuse(&problem)),
        Err(refused) => *refused,
    }
}

/// A machine is back, and gives its slot back if it has one.
#[cfg_attr(test, utoipa::path(post, path = "/v1/steady-state", tag = "gateways",
    params(("fleet-lock-protocol" = String, Header, description = "`true`")),
    responses(
        (status = 200, description = "it holds no slot, and a quorum has written that down"),
        (status = 400, description = "no such group, or no such request"),
        (status = 503, description = "too few nodes answer: say it again"),
    )))]
pub(crate) async fn steady_state(app: App, headers: HeaderMap, bytes: Bytes) -> Response {
    match Machine::read(&app, &headers, &bytes) {
        Ok(machine) => machine.unlock().await.unwrap_or_else(|problem| refuse(&problem)),
        Err(refused) => *refused,
    }
}
