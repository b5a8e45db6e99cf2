//! Answers: JSON, and problems as JSON.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use quorate_api::{Problem, ProblemKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;

/// A problem, as an answer.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Problem);

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure(problem)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, "application/problem+json", &self.0)
    }
}

/// A value, as an answer.
pub(crate) fn ok<T: Serialize>(status: StatusCode, value: &T) -> Response {
    json(status, "application/json", value)
}

fn json<T: Serialize>(status: StatusCode, kind: &'static str, value: &T) -> Response {
    // Plain data with text for keys always serializes.
    let body = serde_json::to_vec(value).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}

/// The body of a request; an empty one means an empty object.
pub(crate) fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(bytes)
        .map_err(|error| bad_request(format!("the body: {error}; nothing changed")))
}

pub(crate) fn bad_request(detail: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, detail)
}

pub(crate) async fn no_such_page(uri: Uri) -> Response {
    let text =
        format!("there is nothing at {}; GET /v1/openapi.json lists what there is", uri.path());
    let problem = Problem { status: 404, ..bad_request(text) };
    Failure(problem).into_response()
}

/// Counts what is refused, and puts what was refused before it reached a handler into our words.
pub(crate) async fn count_refusals(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let status = response.status();
    if !status.is_client_error() {
        return response;
    }
    app.metrics.refuse_request(status.as_u16());
    let text = match status {
        StatusCode::METHOD_NOT_ALLOWED => format!("{path} takes no {method}; nothing changed"),
        StatusCode::PAYLOAD_TOO_LARGE => {
            let max = super::BODY_MAX;
            format!("a body of more than {max} bytes; nothing changed")
        }
        _ => return response,
    };
    let (mut head, _) = response.into_parts();
    let ours = Failure(Problem { status: status.as_u16(), ..bad_request(text) }).into_response();
    let (new, body) = ours.into_parts();
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.extend(new.headers);
    Response::from_parts(head, body)
}

/// A page of another site that is open in a browser on this machine must not speak for its user:
/// without authentication, the site a request comes from is all there is to go by.
pub(crate) async fn refuse_other_sites(request: Request, next: Next) -> Response {
    if speaks_for_itself(request.headers()) {
        return next.run(request).await;
    }
    let text = "the request comes from a page of another site; nothing changed";
    Failure(Problem { status: 403, ..bad_request(text) }).into_response()
}

fn speaks_for_itself(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let site = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, s)| s);
    site.is_some() && site == text(header::HOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_and_programs_may_ask() {
        let headers = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:7420".parse().unwrap());
            if !origin.is_empty() {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            headers
        };
        assert!(speaks_for_itself(&headers("")));
        assert!(speaks_for_itself(&headers("http://127.0.0.1:7420")));
        assert!(!speaks_for_itself(&headers("http://evil.example")));
        assert!(!speaks_for_itself(&headers("null")));
    }
}
