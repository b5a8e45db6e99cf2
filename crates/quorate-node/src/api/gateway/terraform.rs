//! The lock of Terraform's and OpenTofu's `http` backend: `LOCK` and `UNLOCK` with a LockInfo. The
//! state stays where it is (`address`); only `lock_address` and `unlock_address` lead here.
//!
//! A LockInfo's ID is a claim's id, so that repeating is harmless. Terraform that waits
//! (`-lock-timeout`) repeats `LOCK` under its ID after at most 16 s, and keeps its place meanwhile.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quorate_api::{Problem, ProblemKind, Want};
use quorate_core::ClaimId;
use quorate_wire::order::Ordered;
use serde::{Deserialize, Serialize};

use super::super::reply::{Failure, TheirWords, bad_request};
use super::{Desk, Noted, answer, pool_of};
use crate::app::App;
use crate::caller::{Action, Caller};
use crate::convert;
use crate::keepsake::NOTE_MAX;
use crate::views::Picture;

/// How long `LOCK` waits: whoever waits longer asks again.
const WAIT: Duration = Duration::from_secs(1);
/// How long whoever waits keeps its place between two requests: at first, and at most. Terraform
/// asks again after 1, 2, 4, 8, 16, 16 ... s if it was told to wait, and never if it was not.
const KEEP: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(40));

/// As Terraform sends it, and gets the holder's back.
#[derive(Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct LockInfo {
    #[serde(rename = "ID")]
    id: String,
    operation: String,
    info: String,
    who: String,
    version: String,
    created: String,
    path: String,
}

/// What is written down with a hold.
#[derive(Serialize, Deserialize)]
struct Note {
    terraform: LockInfo,
}

/// What there is under a name: a lock, and nothing else.
pub(crate) async fn lock(
    app: App,
    Path(name): Path<String>,
    method: Method,
    bytes: Bytes,
) -> Response {
    let gateway = app.config.gateways.terraform.as_deref();
    let done = match method.as_str() {
        "LOCK" | "UNLOCK" | "PUT" | "POST" | "DELETE" => {
            match pool_of(gateway, "Terraform", &name).and_then(|pool| Desk::open(&app, pool)) {
                Ok(desk) if matches!(method.as_str(), "UNLOCK" | "DELETE") => {
                    unlock(&desk, &bytes).await
                }
                Ok(desk) => take(&desk, &bytes).await,
                Err(problem) => Err(problem),
            }
        }
        _ => {
            let text = format!(
                "{method}: this is a lock and keeps no state. Let address lead to where the state \
                 is, and lock_address and unlock_address here; nothing changed"
            );
            let refused = Failure(Problem {
                status: StatusCode::METHOD_NOT_ALLOWED.as_u16(),
                ..Problem::new(ProblemKind::NoSuchPage, text)
            });
            let mut refused = refused.into_response();
            let allowed = header::HeaderValue::from_static("LOCK, UNLOCK, PUT, POST, DELETE");
            refused.headers_mut().insert(header::ALLOW, allowed);
            return refused;
        }
    };
    done.unwrap_or_else(|problem| Failure(problem).into_response())
}

/// Whether the body of a request could be this.
pub(crate) fn is_readable(bytes: &[u8]) -> bool {
    read(bytes).is_ok()
}

fn read(bytes: &[u8]) -> Result<(LockInfo, ClaimId), Problem> {
    let info: LockInfo = serde_json::from_slice(bytes)
        .map_err(|error| bad_request(format!("no LockInfo: {error}; nothing changed")))?;
    // All of them are UUIDs; anything shorter could be somebody else's claim by accident.
    let id = info.id.parse::<quorate_api::ClaimId>().ok().filter(|_| info.id.len() >= 32);
    let id = id.ok_or_else(|| bad_request("the ID of a LockInfo is a UUID; nothing changed"))?;
    Ok((info, convert::claim_id(id)))
}

async fn take(desk: &Desk<'_>, bytes: &Bytes) -> Result<Response, Problem> {
    let (mut info, id) = read(bytes)?;
    let mut note = serde_json::to_string(&Note { terraform: info.clone() }).unwrap_or_default();
    if note.len() > NOTE_MAX {
        // What people need is who and when; the rest was Terraform's own words.
        (info.info, info.path) = (String::new(), String::new());
        note = serde_json::to_string(&Note { terraform: info.clone() }).unwrap_or_default();
    }
    let most = desk.app.config.limits.text;
    let short = |text: &str| -> String {
        text.chars().filter(|c| !c.is_control()).take(most / 4).collect()
    };
    let client = match desk.app.caller {
        Caller::Holder(_) => String::new(), // It is called what its token says.
        _ => short(&info.who),
    };
    let reason = short(&format!("terraform {} by {}", info.operation, info.who));
    let want = Want { standing: true, client, reason, note, ..1.into() };
    let (mut granted, waited) = desk.claim(id, want.clone(), (WAIT, KEEP.0)).await?;
    if !granted {
        let keep = (KEEP.0 + 2 * waited).min(KEEP.1);
        granted = desk.claim(id, want, (Duration::ZERO, keep)).await?.0;
    }
    if granted {
        return Ok(answer(StatusCode::OK, &info));
    }
    Ok(locked(&desk.look().await?, StatusCode::LOCKED))
}

/// Who has the lock, in Terraform's words: it reads nothing else.
fn locked(picture: &Picture, status: StatusCode) -> Response {
    let holder = picture.noted(|_| true).into_iter().find(|noted| noted.granted);
    let info = holder.map(|noted| info_of(&noted)).unwrap_or_else(|| LockInfo {
        info: "nobody that a node knows of; perhaps too few nodes answer".into(),
        ..LockInfo::default()
    });
    answer(status, &info)
}

fn info_of(noted: &Noted) -> LockInfo {
    if let Ok(Note { terraform }) = serde_json::from_str(&noted.kept.note) {
        return terraform;
    }
    // Somebody else's hold, made with the command or another gateway.
    LockInfo {
        id: convert::api_id(noted.id).to_string(),
        operation: noted.kept.reason.clone(),
        who: noted.kept.client.clone(),
        ..LockInfo::default()
    }
}

async fn unlock(desk: &Desk<'_>, bytes: &Bytes) -> Result<Response, Problem> {
    if bytes.trim_ascii().is_empty() {
        return force(desk).await;
    }
    let (info, id) = read(bytes)?;
    let picture = desk.look().await?;
    let known = picture.noted(|_| true);
    if known.iter().any(|noted| noted.granted) && !known.iter().any(|noted| noted.id == id) {
        return Ok(locked(&picture, StatusCode::CONFLICT));
    }
    desk.end(id).await?;
    Ok(answer(StatusCode::OK, &info))
}

/// Older Terraform and OpenTofu say nothing when somebody forces a lock: whoever has it loses it,
/// and that takes the right to revoke.
async fn force(desk: &Desk<'_>) -> Result<Response, Problem> {
    desk.app.authorize(Some(&desk.pool), Action::Revoke)?;
    for noted in desk.look().await?.noted(|_| true).into_iter().filter(|noted| noted.granted) {
        let claim = (noted.id.origin, noted.id.serial);
        let reason = "terraform force-unlock".to_owned();
        desk.app.order(&desk.pool, Ordered::Revoke { claim, reason }, None).await?;
        super::claims::settle(desk.app, &desk.pool, &desk.def, noted.id).await?;
    }
    let mut done = StatusCode::OK.into_response();
    done.extensions_mut().insert(TheirWords);
    Ok(done)
}
