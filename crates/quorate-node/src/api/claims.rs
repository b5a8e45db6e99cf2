//! Claims: made by `PUT` under a name the client chose, so that repeating is harmless.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use quorate_api::{
    ClaimState, ClaimStatus, Problem, ProblemKind, RenewRequest, RevokeRequest, Want, format_span,
    parse_span,
};
use quorate_core::{ClaimId, Moment, NodeId};
use quorate_wire::order::Ordered;
use quorate_wire::survey::Question;
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use super::OrderId;
use super::overview::look_with_past;
use super::pools::outcome;
use super::reply::{Failure, bad_request, body, ok, unreadable};
use crate::admission;
use crate::app::App;
use crate::caller::{Action, Caller};
use crate::clock;
use crate::config::PoolDef;
use crate::convert;
use crate::engine::{Ask, Request};
use crate::ledger::Snapshot;
use crate::overview::Glances;
use crate::views::{Picture, is_gone};

/// How long an answer waits for a grant if the client does not say: free units are usually granted
/// sooner, also by another node.
const WAIT_DEFAULT: Duration = Duration::from_millis(500);
/// Longest wait for one answer; clients ask again.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Longest time for which a claim is kept without anybody who waits for it.
const DETACH_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often other nodes are asked about a claim that waits there.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How long whoever ends a claim without a lease waits until that is written down, and how often it
/// is looked at.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);
const SETTLE_AGAIN: Duration = Duration::from_millis(50);
/// How long a renewal waits for the arbiter.
const RENEWAL_WAIT: Duration = Duration::from_secs(5);
/// What is said of a claim that is ended and was never made.
const UNKNOWN: &str = "no node that answers knew it; if it is asked for now, it is not granted";

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    wait: Option<String>,
    detach: Option<String>,
    why: Option<bool>,
}

type Asked = Result<Query<Params>, QueryRejection>;
type Answered = Result<Response, Failure>;

/// Claims units.
#[cfg_attr(test, utoipa::path(put, path = "/v1/pools/{pool}/claims/{id}", tag = "claims",
    params(
        ("pool" = String, Path), ("id" = String, Path, description = "128 random bits, in hex"),
        ("wait" = Option<String>, Query, description = "how long to wait for the grant: `10s`. \
            With `0s` what another node decides, a refusal too, is in the next answer"),
        ("detach" = Option<String>, Query, description = "how long to keep the claim while nobody \
            waits or asks for it: `1h`, at most `7d`. Without it, and at least, one lease of the \
            pool; after that it is cancelled. A client that hangs up while it waits keeps its \
            place for as long, but is passed over if its turn comes meanwhile and it does not \
            ask again within two seconds, unless it said this"),
        ("why" = Option<bool>, Query, description = "if it waits, say why"),
    ),
    request_body = Want,
    responses(
        (status = 200, description = "granted", body = ClaimStatus),
        (status = 202, description = "queued: ask again, by PUT or GET, at this node and within \
            a lease of the pool", body = ClaimStatus),
        (status = 404, description = "there is no such pool", body = Problem),
        (status = 409, description = "the id belongs to a different claim", body = Problem),
        (status = 410, description = "the claim is over", body = Problem),
        (status = 422, description = "no pool of this size can grant it", body = Problem),
        (status = 429, description = "a limit of this node is reached", body = Problem),
        (status = 503, description = "the node is stopping", body = Problem),
        (status = 504, description = "this node's deadline for it has passed, and another may have \
            renewed it: ask there", body = Problem),
    )))]
pub(crate) async fn put(
    app: App,
    Path((pool, id)): Path<(String, String)>,
    params: Asked,
    bytes: Bytes,
) -> Answered {
    let want: Want = body(&bytes)?;
    let call = Call::new(&app, &pool, &id, params).await?;
    let wait = call.wait.unwrap_or(WAIT_DEFAULT);
    let ask = Ask::Claim { want, wait: !wait.is_zero(), keep: call.detach };
    let snapshot = call.ask_within(ask, wait).await?;
    match snapshot.state {
        ClaimState::Granted | ClaimState::Waiting => call.answer(snapshot).await,
        ClaimState::Refused => Err(convert::refused(snapshot.refusal, snapshot.ended).into()),
        _ => Err(call.over(&snapshot).await?.into()),
    }
}

/// Says how a claim stands.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}/claims/{id}", tag = "claims",
    params(
        ("pool" = String, Path), ("id" = String, Path),
        ("wait" = Option<String>, Query, description = "how long to wait while it waits"),
        ("why" = Option<bool>, Query, description = "if it waits, say why"),
    ),
    responses(
        (status = 200, description = "granted, or over", body = ClaimStatus),
        (status = 202, description = "queued", body = ClaimStatus),
        (status = 404, description = "no such pool, or no node knows the claim", body = Problem),
        (status = 504, description = "this node's deadline for it has passed, and another may have \
            renewed it: ask there", body = Problem),
    )))]
pub(crate) async fn get(
    app: App,
    Path((pool, id)): Path<(String, String)>,
    params: Asked,
) -> Answered {
    let call = Call::new(&app, &pool, &id, params).await?;
    let wait = call.wait.unwrap_or_default();
    app.own(&pool, call.id, &Ask::Status { wait: false }).await?;
    let known = call.ask_within(Ask::Status { wait: !wait.is_zero() }, wait).await;
    // Another node may answer for it: this one never heard of it but perhaps that it ended, or the
    // client moved away.
    let unheard_of = match &known {
        Ok(snapshot) => snapshot.hearsay,
        Err(problem) => problem.kind == ProblemKind::UnknownClaim,
    };
    let lost = |snapshot: &Snapshot| snapshot.state == ClaimState::Lost;
    if unheard_of || known.as_ref().is_ok_and(lost) {
        let mut picture = call.look().await?;
        // The node that answers for it wakes its own clients only: here it is looked at again.
        while picture.waits(call.id) && clock::now().since(call.received) < wait {
            sleep(LOOK_AGAIN.min(wait)).await;
            picture = call.look().await?;
        }
        // What is lost here stays in the arbiter's books for a moment; that revives nothing.
        let lives = known.is_err() || picture.has_home(call.id);
        if let Some(mut status) = picture.status(call.id, &pool, &call.def).filter(|_| lives) {
            call.explain(&mut status).await?;
            return Ok(ok(code(status.state), &status));
        }
        if let (true, Some(status)) = (unheard_of, picture.over(call.id, &pool)) {
            return Ok(ok(StatusCode::OK, &status));
        }
        if known.as_ref().is_ok_and(|snapshot| snapshot.lapsed)
            && let Some(problem) = call.lost_but(&picture)
        {
            return Err(problem.into());
        }
    }
    call.answer(known?).await
}

/// Says why a claim waits: how it stands, with `why`.
#[cfg_attr(test, utoipa::path(get, path = "/v1/pools/{pool}/claims/{id}/why", tag = "claims",
    params(("pool" = String, Path), ("id" = String, Path)),
    responses(
        (status = 200, description = "it does not wait", body = ClaimStatus),
        (status = 202, description = "it waits, and why", body = ClaimStatus),
        (status = 404, description = "no such pool, or no node knows the claim", body = Problem),
    )))]
pub(crate) async fn why(app: App, path: Path<(String, String)>) -> Answered {
    get(app, path, Ok(Query(Params { wait: None, detach: None, why: Some(true) }))).await
}

/// Releases a claim, or cancels it if it waits, at all nodes. Repeating is harmless.
#[cfg_attr(test, utoipa::path(delete, path = "/v1/pools/{pool}/claims/{id}", tag = "claims",
    params(("pool" = String, Path), ("id" = String, Path)),
    responses(
        (status = 200, description = "it is over, and its id will not be granted for as long as \
            ids are remembered (10 min, or two of the longest leases), by no node but those in \
            `unheard`", body = ClaimStatus),
        (status = 404, description = "there is no such pool", body = Problem),
    )))]
pub(crate) async fn delete(
    app: App,
    Path((pool, id)): Path<(String, String)>,
    params: Asked,
) -> Answered {
    let call = Call::new(&app, &pool, &id, params).await?;
    // Looked at before it ends, since afterwards nobody could say what it was; and only looked at:
    // whoever may not end it must not keep it up by trying.
    let (name, id) = (pool.clone(), call.id);
    let elsewhere = !app.fetch(|reply| Request::Seen { pool: name, id, reply }).await?;
    // Who may not look may end it all the same.
    let picture = if elsewhere { call.look().await.ok() } else { None };
    let snapshot = app.ask(&pool, call.id, Ask::End, call.received).await?;
    if call.def.standing {
        settle(&app, &pool, &call.def, call.id).await?;
    }
    let name = |node: &NodeId| app.config.members[node.index()].name.clone();
    let unheard = snapshot.unheard.iter().map(name).collect();
    let me = app.config.name();
    let mut status = convert::status(snapshot, &pool, (me, app.boot), &call.def);
    if let Some(picture) = picture {
        match picture.ended_through(call.id, &pool, &call.def, me) {
            Some(known) => status = known,
            None => {
                status.unknown = true;
                status.ended = Some(UNKNOWN.into());
            }
        }
    }
    Ok(ok(StatusCode::OK, &ClaimStatus { unheard, ..status }))
}

/// Extends the lease of a claim.
#[cfg_attr(test, utoipa::path(post, path = "/v1/pools/{pool}/claims/{id}/renew", tag = "claims",
    params(("pool" = String, Path), ("id" = String, Path)),
    request_body = RenewRequest,
    responses(
        (status = 200, description = "extended: `expires_in_ms` is at least half of what it was \
            at best", body = ClaimStatus),
        (status = 404, description = "no such pool, or show the units", body = Problem),
        (status = 410, description = "the claim is over", body = Problem),
        (status = 504, description = "it was not extended, and the deadline you know of holds: \
            `Retry-After` says when to ask again, `detail` where", body = Problem),
    )))]
pub(crate) async fn renew(
    app: App,
    Path((pool, id)): Path<(String, String)>,
    params: Asked,
    bytes: Bytes,
) -> Answered {
    let request: RenewRequest = body(&bytes)?;
    let call = Call::new(&app, &pool, &id, params).await?;
    let shown = match request.units.is_empty() {
        true => None,
        false => Some(
            convert::shares(request.units.iter().map(|unit| (unit.unit, unit.fence)))
                .ok_or_else(|| bad_request("a unit appears twice; nothing changed"))?,
        ),
    };
    let wait = call.wait.unwrap_or(RENEWAL_WAIT);
    let renew = Ask::Renew { shown, client: String::new() };
    let ask = app.ask(&pool, call.id, renew, call.received);
    let snapshot = match timeout(wait, ask).await {
        Ok(answer) => answer?,
        Err(_) => {
            let text = "those who decide have not confirmed the renewal yet; it may still take \
                        effect. Until you hear of it, the old deadline holds: ask again in a \
                        second, or at another node, if that leaves you enough time";
            return Err(Problem::new(ProblemKind::Unknown, text).into());
        }
    };
    match snapshot.state {
        ClaimState::Granted | ClaimState::Waiting => call.answer(snapshot).await,
        _ => Err(call.over(&snapshot).await?.into()),
    }
}

/// Takes a claim back from its client. Its units return when the client releases it, or with its
/// lease: until then it may be using them.
#[cfg_attr(test, utoipa::path(post, path = "/v1/pools/{pool}/claims/{id}/revoke", tag = "claims",
    params(("pool" = String, Path), ("id" = String, Path)),
    request_body = RevokeRequest,
    responses(
        (status = 200, description = "it will not be renewed or granted", body = ClaimStatus),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 404, description = "no such pool, or no node knows the claim", body = Problem),
        (status = 504, description = "not acknowledged: what came is unknown", body = Problem),
    )))]
pub(crate) async fn revoke(
    app: App,
    Path((pool, id)): Path<(String, String)>,
    params: Asked,
    OrderId(order): OrderId,
    bytes: Bytes,
) -> Answered {
    let request: RevokeRequest = body(&bytes)?;
    admission::text(&app.config.limits, "reason", &request.reason)?;
    let call = Call::new(&app, &pool, &id, params).await?;
    let picture = call.look().await?;
    let claim = (call.id.origin, call.id.serial);
    let what = Ordered::Revoke { claim, reason: request.reason.clone() };
    outcome(&app, app.order(&pool, what, order).await?)?;
    let Some(mut status) = picture.status(call.id, &pool, &call.def) else {
        let text = "no node knows the claim; none will renew it either";
        return Err(Problem::new(ProblemKind::UnknownClaim, text).into());
    };
    if status.standing {
        settle(&app, &pool, &call.def, call.id).await?;
    }
    status.state = ClaimState::Revoked;
    status.ended = Some(request.reason);
    Ok(ok(StatusCode::OK, &status))
}

/// What all requests about a claim have in common.
struct Call<'a> {
    app: &'a App,
    pool: &'a str,
    def: Arc<PoolDef>,
    id: ClaimId,
    received: Moment,
    wait: Option<Duration>,
    detach: Option<Duration>,
    why: bool,
}

impl<'a> Call<'a> {
    async fn new(app: &'a App, pool: &'a str, id: &str, params: Asked) -> Result<Self, Problem> {
        // Read after the request has arrived: the client sent it earlier.
        let received = clock::now();
        let Query(params) = params.map_err(|error| unreadable(&error))?;
        let span = |text: &Option<String>| {
            let parsed = text.as_deref().map(parse_span).transpose();
            parsed.map_err(|error| bad_request(error.to_string()))
        };
        let (wait, detach) = (span(&params.wait)?, span(&params.detach)?);
        if detach.is_some_and(|detach| detach > DETACH_MAX) {
            let most = format_span(DETACH_MAX);
            return Err(bad_request(format!("detach is at most {most}; nothing changed")));
        }
        let id: quorate_api::ClaimId = id
            .parse()
            .map_err(|error: quorate_api::ClaimIdError| bad_request(error.to_string()))?;
        app.authorize(Some(pool), Action::Read)?;
        app.look_for(pool).await?;
        let def = app.known_pool(pool)?;
        Ok(Call {
            app,
            pool,
            def,
            id: convert::claim_id(id),
            received,
            wait: wait.map(|wait| wait.min(WAIT_MAX)),
            detach,
            why: params.why.unwrap_or(false),
        })
    }

    /// Asks, and if there is no answer in time, asks how things stand.
    async fn ask_within(&self, ask: Ask, wait: Duration) -> Result<Snapshot, Problem> {
        ask_within(self.app, (self.pool, self.id), ask, wait, self.received).await
    }

    /// What all nodes that answer know of this claim.
    async fn look(&self) -> Result<Picture, Problem> {
        let claim = (self.id.origin, self.id.serial);
        let question = Question::Claim { pool: self.pool.to_owned(), claim };
        let gathered = self.app.survey(question).await?;
        Ok(Picture::new(&self.app.config, self.pool, &self.def, gathered))
    }

    /// Why a claim is over; or that this node cannot say so, if it only saw the deadline pass that
    /// it knew of and another may know a later one.
    async fn over(&self, snapshot: &Snapshot) -> Result<Problem, Problem> {
        if snapshot.state == ClaimState::Lost && snapshot.lapsed {
            let picture = self.look().await?;
            if let Some(problem) = self.lost_but(&picture) {
                return Ok(problem);
            }
        }
        Ok(over(snapshot))
    }

    fn lost_but(&self, picture: &Picture) -> Option<Problem> {
        let (config, rules) = (&self.app.config, &self.def.protocol);
        let needs = rules.rules.needs(self.pool, config.members.len());
        let decider = needs.iter().next().filter(|_| rules.about.books.decide());
        let decider = decider.map(|node| config.members[node.index()].name.as_str());
        admission::lost_but(picture.whereabouts(self.id, decider))
    }

    async fn answer(&self, snapshot: Snapshot) -> Answered {
        let config = &self.app.config;
        let mut status =
            convert::status(snapshot, self.pool, (config.name(), self.app.boot), &self.def);
        self.explain(&mut status).await?;
        Ok(ok(code(status.state), &status))
    }

    /// Says why a claim waits, if that was asked for.
    async fn explain(&self, status: &mut ClaimStatus) -> Result<(), Problem> {
        // Why it waits tells of others, too.
        if !self.why || status.state != ClaimState::Waiting || !self.app.sees(self.pool) {
            return Ok(());
        }
        let gathered = look_with_past(self.app, self.pool).await?;
        let (glances, surveys) = Glances::take(&self.app.config, gathered);
        let mut picture = Picture::new(&self.app.config, self.pool, &self.def, surveys);
        picture.learn_past(&glances);
        if self.def.labels().is_some() {
            // Only of the oldest claims it is said unasked what they are short of.
            picture.learn_shortages(self.look().await?);
        }
        status.why = Some(picture.why(self.id, status.asked, &self.def));
        Ok(())
    }
}

/// Asks, and if there is no answer in time, asks how things stand.
pub(super) async fn ask_within(
    app: &App,
    (pool, id): (&str, ClaimId),
    ask: Ask,
    wait: Duration,
    received: Moment,
) -> Result<Snapshot, Problem> {
    let claims = matches!(ask, Ask::Claim { .. });
    let asked = app.ask(pool, id, ask, received);
    if wait.is_zero() {
        return asked.await;
    }
    // Kept until the second answer is there: dropped before, it would look as if the client had
    // hung up.
    let mut asked = std::pin::pin!(asked);
    let mut wait = wait;
    loop {
        if let Ok(answer) = timeout(wait, &mut asked).await {
            return answer;
        }
        let known = app.ask(pool, id, Ask::Status { wait: false }, received).await;
        // Whose claim it is, is still being asked of members that do not answer (`App::own`): it is
        // not made yet, and to say that there is none would be taken for its end.
        match known {
            Err(problem) if claims && problem.kind == ProblemKind::UnknownClaim => {
                wait = LOOK_AGAIN;
            }
            known => return known,
        }
    }
}

/// Waits until a claim without a lease, which was just ended, is over for good: no lease would end
/// it later if this node stopped before a quorum has written that down.
///
/// # Errors
/// It may come back; ending it again is harmless.
pub(super) async fn settle(
    app: &App,
    pool: &str,
    def: &PoolDef,
    id: ClaimId,
) -> Result<(), Problem> {
    let node = app.serving(Caller::Administrator);
    let began = clock::now();
    loop {
        let (pool, claim) = (pool.to_owned(), (id.origin, id.serial));
        let gathered = node.survey(Question::Booked { pool, claim }).await?;
        if is_gone(def, &gathered) {
            return Ok(());
        }
        if clock::now().since(began) >= SETTLED_WITHIN {
            let text = "its end is not on the disks of a quorum yet, so the claim may come back: \
                        end it again, here or at another node, until this is answered otherwise";
            return Err(Problem::new(ProblemKind::Unknown, text));
        }
        sleep(SETTLE_AGAIN).await;
    }
}

fn code(state: ClaimState) -> StatusCode {
    if state == ClaimState::Waiting { StatusCode::ACCEPTED } else { StatusCode::OK }
}

fn over(snapshot: &Snapshot) -> Problem {
    let ended = snapshot.ended.as_deref().unwrap_or_default();
    let text = format!(
        "{}: {ended}. It will not be granted again; choose a new id for a new claim",
        snapshot.state.as_str()
    );
    Problem::new(ProblemKind::ClaimOver, text)
}
