//! Who belongs to the cluster, and what operators change about that.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
#[cfg(test)] // Named by the OpenAPI document alone.
use quorate_api::{BackupView, InviteView, JoinView};
use quorate_api::{
    InviteRequest, JoinRequest, MemberRole, MemberRow, MembersView, Problem, ProblemKind,
    RemoveRequest,
};
use quorate_core::NodeSet;

use super::reply::{Failure, body, ok};
use crate::app::App;
use crate::audit::Note;
use crate::caller::Action;
use crate::engine::Request;

type Answered = Result<Response, Failure>;

/// Lists the members of the cluster.
#[cfg_attr(test, utoipa::path(get, path = "/v1/members", tag = "members",
    responses((status = 200, description = "all, as this node sees them", body = MembersView))))]
pub(crate) async fn list(app: App) -> Answered {
    Ok(ok(StatusCode::OK, &view(&app).await?))
}

/// Has a member give away what it decides, and decide nothing until this is taken back.
#[cfg_attr(test, utoipa::path(put, path = "/v1/members/{name}/drain", tag = "members",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "it decides nothing any more", body = MembersView),
        (status = 400, description = "there is no such member", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter, or nobody else could decide",
            body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "it is on its way", body = Problem),
    )))]
pub(crate) async fn drain(app: App, Path(name): Path<String>) -> Answered {
    app.authorize(None, Action::Members)?;
    let done = match app.hall() {
        Ok(hall) => hall.drain(&name, true).await,
        Err(problem) => Err(problem),
    };
    answer(&app, "drain member", &name, done).await
}

/// Lets a member decide again.
#[cfg_attr(test, utoipa::path(delete, path = "/v1/members/{name}/drain", tag = "members",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "it is given its share again, slowly", body = MembersView),
        (status = 400, description = "there is no such member", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter, or it is being removed", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "what came of it is unknown", body = Problem),
    )))]
pub(crate) async fn restore(app: App, Path(name): Path<String>) -> Answered {
    app.authorize(None, Action::Members)?;
    let done = match app.hall() {
        Ok(hall) => hall.drain(&name, false).await,
        Err(problem) => Err(problem),
    };
    answer(&app, "restore member", &name, done).await
}

/// Removes a member: it hands over what it decides, loses its vote, leaves, and is cut off.
#[cfg_attr(test, utoipa::path(post, path = "/v1/members/{name}/remove", tag = "members",
    params(("name" = String, Path)), request_body = RemoveRequest,
    responses(
        (status = 200, description = "it is none any more", body = MembersView),
        (status = 400, description = "there is no such member", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter; or this would cost what the detail \
            says, and `force` does not say that it may", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "it is on its way", body = Problem),
    )))]
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
#[cfg_attr(test, utoipa::path(post, path = "/v1/members/{name}/readmit", tag = "members",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "it may join", body = MembersView),
        (status = 400, description = "no such member was removed", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter, or it is a member", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "what came of it is unknown", body = Problem),
    )))]
pub(crate) async fn readmit(app: App, Path(name): Path<String>) -> Answered {
    app.authorize(None, Action::Members)?;
    let done = match app.hall() {
        Ok(hall) => hall.readmit(&name).await,
        Err(problem) => Err(problem),
    };
    answer(&app, "readmit member", &name, done).await
}

/// Lets a machine join under this name, with the invitation that is answered.
#[cfg_attr(test, utoipa::path(post, path = "/v1/members/{name}/invite", tag = "members",
    params(("name" = String, Path)), request_body = InviteRequest,
    responses(
        (status = 200, description = "it may join, once", body = InviteView),
        (status = 400, description = "it is no name, or no time", body = Problem),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "somebody has or had this name, or members are those of the \
            files", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "what came of it is unknown: invite again", body = Problem),
    )))]
pub(crate) async fn invite(app: App, Path(name): Path<String>, bytes: Bytes) -> Answered {
    app.authorize(None, Action::Members)?;
    private(&app)?;
    let request: InviteRequest = body(&bytes)?;
    let done = match app.hall() {
        Ok(hall) => hall.invite(&name, request).await,
        Err(problem) => Err(problem),
    };
    note(&app, "invite member", &name, done.as_ref().err());
    Ok(ok(StatusCode::OK, &done?))
}

/// Lets a machine in that shows an invitation: it needs no other right.
#[cfg_attr(test, utoipa::path(post, path = "/v1/join", tag = "members", request_body = JoinRequest,
    responses(
        (status = 200, description = "it is a member: everything that one needs, for it alone",
            body = JoinView),
        (status = 400, description = "an address or a key that makes no sense", body = Problem),
        (status = 401, description = "no such invitation, or it was used, or has expired",
            body = Problem),
        (status = 409, description = "another member has its name or its address", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "what came of it is unknown: ask again", body = Problem),
    )))]
pub(crate) async fn join(app: App, bytes: Bytes) -> Answered {
    private(&app)?;
    let request: JoinRequest = body(&bytes)?;
    let done = match app.hall() {
        Ok(hall) => hall.let_in(&request).await,
        Err(problem) => Err(problem),
    };
    if let Err(problem) = &done {
        // Anybody may knock: what comes of it is counted, and not written down without end.
        let (about, result) = (format!("member {}", shown(&request.name)), problem.detail.clone());
        let (who, from) = (&app.caller, app.whence);
        app.audit.refusal(Note { who, from, what: "join", pool: "", about, result });
    } else {
        note(&app, "join", &request.name, None);
    }
    Ok(ok(StatusCode::OK, &done?))
}

/// Secrets are told where nobody else hears them.
fn private(app: &App) -> Result<(), Problem> {
    let in_the_clear = "an invitation, and who comes with one, travels encrypted: say https; \
                        nothing changed";
    match app.private {
        true => Ok(()),
        false => Err(Problem::new(ProblemKind::BadRequest, in_the_clear)),
    }
}

/// Answers with the charter, for whoever keeps it against the day on which it is lost.
#[cfg_attr(test, utoipa::path(get, path = "/v1/charter/backup", tag = "members",
    responses(
        (status = 200, description = "all of it, as a majority confirms", body = BackupView),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter", body = Problem),
        (status = 503, description = "no majority answers", body = Problem),
    )))]
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

/// Has the charter take over the pools that files let fixed nodes decide.
#[cfg_attr(test, utoipa::path(post, path = "/v1/charter/import", tag = "members",
    responses(
        (status = 200, description = "the charter says who decides", body = MembersView),
        (status = 403, description = "not allowed to you", body = Problem),
        (status = 409, description = "there is no charter, its file does not say `import`, or a \
            member is not in it or does not answer; nothing changed", body = Problem),
        (status = 503, description = "no majority answers; nothing changed", body = Problem),
        (status = 504, description = "it is on its way, and goes on by itself", body = Problem),
    )))]
pub(crate) async fn import(app: App) -> Answered {
    app.authorize(None, Action::Members)?;
    let done = match app.hall() {
        Ok(hall) => hall.import().await,
        Err(problem) => Err(problem),
    };
    let result = match &done {
        Ok(()) => "done".to_owned(),
        Err(problem) => format!("refused: {}", problem.detail),
    };
    app.act("import into the charter", "", String::new(), result);
    done?;
    Ok(ok(StatusCode::OK, &view(&app).await?))
}

/// Writes down what came of it; how things stand.
async fn answer(app: &App, what: &str, name: &str, done: Result<(), Problem>) -> Answered {
    note(app, what, name, done.as_ref().err());
    done?;
    Ok(ok(StatusCode::OK, &view(app).await?))
}

fn note(app: &App, what: &str, name: &str, problem: Option<&Problem>) {
    let result = match problem {
        None => "done".to_owned(),
        Some(problem) => format!("refused: {}", problem.detail),
    };
    app.act(what, "", format!("member {}", shown(name)), result);
}

/// As much of a name as a name can have.
fn shown(name: &str) -> String {
    name.chars().take(crate::config::POOL_NAME_MAX).collect()
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
            joined: None,
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
    let Some(place) = members.place(name) else { return Vec::new() };
    away.insert(place);
    let fixed = app.config.pools.iter().filter(|def| !def.protocol.about.seat_moves);
    let stands = fixed.filter(|def| {
        let outlook = def.protocol.grants(&def.label(), members.len(), &away);
        outlook.sizes.is_none()
    });
    stands.map(|def| def.label()).collect()
}
