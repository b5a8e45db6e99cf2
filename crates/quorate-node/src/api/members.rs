//! Who belongs to the cluster, and what operators change about that.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use quorate_api::{BackupView, MemberRole, MemberRow, MembersView, Problem, RemoveRequest};
use quorate_core::{NodeId, NodeSet};

use super::reply::{Failure, body, ok};
use crate::app::App;
use crate::caller::Action;
use crate::engine::Request;

type Answered = Result<Response, Failure>;

/// Lists the members of the cluster.
#[utoipa::path(get, path = "/v1/members", tag = "members",
    responses((status = 200, description = "all, as this node sees them", body = MembersView)))]
pub(crate) async fn list(app: App) -> Answered {
    Ok(ok(StatusCode::OK, &view(&app).await?))
}

/// Has a member give away what it decides, and decide nothing until this is taken back.
#[utoipa::path(put, path = "/v1/members/{name}/drain", tag = "members",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "it decides nothing any more", body = MembersView),
        (status = 400, description = "there is no such member", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter, or nobody else could decide",
            body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "it is on its way", body = Problem),
    ))]
pub(crate) async fn drain(app: App, Path(name): Path<String>) -> Answered {
    app.authorize(None, Action::Members)?;
    let done = match app.hall() {
        Ok(hall) => hall.drain(&name, true).await,
        Err(problem) => Err(problem),
    };
    answer(&app, "drain member", &name, done).await
}

/// Lets a member decide again.
#[utoipa::path(delete, path = "/v1/members/{name}/drain", tag = "members",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "it is given its share again, slowly", body = MembersView),
        (status = 400, description = "there is no such member", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter, or it is being removed", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "what came of it is unknown", body = Problem),
    ))]
pub(crate) async fn restore(app: App, Path(name): Path<String>) -> Answered {
    app.authorize(None, Action::Members)?;
    let done = match app.hall() {
        Ok(hall) => hall.drain(&name, false).await,
        Err(problem) => Err(problem),
    };
    answer(&app, "restore member", &name, done).await
}

/// Removes a member: it hands over what it decides, loses its vote, leaves, and is cut off.
#[utoipa::path(post, path = "/v1/members/{name}/remove", tag = "members",
    params(("name" = String, Path)), request_body = RemoveRequest,
    responses(
        (status = 200, description = "it is none any more", body = MembersView),
        (status = 400, description = "there is no such member", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter; or this would cost what the detail \
            says, and `force` does not say that it may", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "it is on its way", body = Problem),
    ))]
pub(crate) async fn remove(app: App, Path(name): Path<String>, bytes: Bytes) -> Answered {
    app.authorize(None, Action::Members)?;
    let request: RemoveRequest = body(&bytes)?;
    let done = match app.hall() {
        Ok(hall) => hall.remove(&name, request, &needing(&app, &name, hall.removed())).await,
        Err(problem) => Err(problem),
    };
    answer(&app, "remove member", &name, done).await
}

/// Lets a machine join under the name of a member that was removed, with an empty directory.
#[utoipa::path(post, path = "/v1/members/{name}/readmit", tag = "members",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "it may join", body = MembersView),
        (status = 400, description = "no such member was removed", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter, or it is a member", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "what came of it is unknown", body = Problem),
    ))]
pub(crate) async fn readmit(app: App, Path(name): Path<String>) -> Answered {
    app.authorize(None, Action::Members)?;
    let done = match app.hall() {
        Ok(hall) => hall.readmit(&name).await,
        Err(problem) => Err(problem),
    };
    answer(&app, "readmit member", &name, done).await
}

/// Answers with the charter, for whoever keeps it against the day on which it is lost.
#[utoipa::path(get, path = "/v1/charter/backup", tag = "members",
    responses(
        (status = 200, description = "all of it, as a majority confirms", body = BackupView),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter", body = Problem),
        (status = 503, description = "no majority answers", body = Problem),
    ))]
pub(crate) async fn backup(app: App) -> Answered {
    app.authorize(None, Action::Members)?;
    let done = match app.hall() {
        Ok(hall) => hall.backup().await,
        Err(problem) => Err(problem),
    };
    let result = match &done {
        Ok(backup) => format!("version {}", backup.version),
        Err(problem) => format!("refused: {}", problem.detail),
    };
    app.act("backup of the charter", "", String::new(), result);
    Ok(ok(StatusCode::OK, &done?))
}

/// Writes down what came of it; how things stand.
async fn answer(app: &App, what: &str, name: &str, done: Result<(), Problem>) -> Answered {
    let result = match &done {
        Ok(()) => "done".to_owned(),
        Err(problem) => format!("refused: {}", problem.detail),
    };
    let shown: String = name.chars().take(crate::config::POOL_NAME_MAX).collect();
    app.act(what, "", format!("member {shown}"), result);
    done?;
    Ok(ok(StatusCode::OK, &view(app).await?))
}

async fn view(app: &App) -> Result<MembersView, Problem> {
    let node = app.fetch(Request::Node).await?;
    let mut view = MembersView::default();
    if let Ok(hall) = app.hall() {
        (view.version, view.members) = hall.members();
        let charter = node.charter.unwrap_or_default();
        (view.leader, view.problem) = (charter.leader, charter.problem);
    } else {
        let listed = app.config.members.iter().map(|member| MemberRow {
            name: member.name.clone(),
            address: member.peers.to_string(),
            role: MemberRole::Listed,
            id: None,
            draining: false,
            leaving: false,
            groups: 0,
            connected: false,
        });
        view.members = listed.collect();
    }
    for member in &mut view.members {
        let linked = |name: &str| node.peers.iter().any(|peer| peer.name == name && peer.connected);
        member.connected = member.name == app.config.name() || linked(&member.name);
    }
    Ok(view)
}

/// The pools that would grant nothing without this member and those that were removed before.
fn needing(app: &App, name: &str, mut away: NodeSet) -> Vec<String> {
    let members = &app.config.members;
    let Some(place) = members.iter().position(|member| member.name == name) else {
        return Vec::new();
    };
    away.insert(NodeId::from(place));
    let fixed = app.config.pools.iter().filter(|def| !def.protocol.about.seat_moves);
    let stands = fixed.filter(|def| {
        let outlook = def.protocol.grants(&def.label(), members.len(), &away);
        outlook.sizes.is_none()
    });
    stands.map(|def| def.label()).collect()
}
