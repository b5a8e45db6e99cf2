//! Answers: JSON, and problems as JSON.

use std::error::Error as _;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts as _, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use quorate_api::{Problem, ProblemKind};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer, Serialize};
use tokio::time::timeout;

use crate::app::App;
use crate::caller::Guest;

/// How problems are marked.
const PROBLEM: &str = "application/problem+json";
/// Longest text of a refusal that is put into our words.
const REFUSAL_MAX: usize = 4096;

/// Put on an answer in another tool's words: it stays as it is, whatever it refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TheirWords;

/// A problem, as an answer.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Problem);

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure(problem)
    }
}

/// What browsers and curl know how to answer: the token is the password.
pub(crate) const HOW_TO_SAY_WHO: HeaderValue = HeaderValue::from_static("Basic realm=\"quorate\"");

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, PROBLEM, &self.0);
        use ProblemKind::{Limit, Starting, Unavailable, Unknown};
        if matches!(self.0.kind, Unknown | Limit | Starting | Unavailable) {
            // Some of these are answered at once: who asks again at once learns nothing new.
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.0.kind == ProblemKind::Unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HOW_TO_SAY_WHO);
        }
        response
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
    // A list would be read as well, as the values of an object without their names.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(bad_request("the body: a list instead of an object; nothing changed"));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| bad_request(format!("the body: {error}; nothing changed")))
}

/// What is wrong with the part of an address after its question mark.
pub(crate) fn unreadable(rejection: &QueryRejection) -> Problem {
    let why = rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string);
    bad_request(format!("the address: {why}; nothing changed"))
}

/// A number in an address, from 0: what is wrong with one is said without a type's name.
///
/// # Errors
/// It is none.
pub(crate) fn number<'de, D: Deserializer<'de>, T: FromStr>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = |_| D::Error::custom(format!("'{text}' is no whole number from 0 on"));
    text.parse().map_err(wrong)
}

/// The same, where nothing may be said.
///
/// # Errors
/// It is said, and none.
pub(crate) fn some_number<'de, D: Deserializer<'de>, T: FromStr>(
    from: D,
) -> Result<Option<T>, D::Error> {
    number(from).map(Some)
}

pub(crate) fn bad_request(detail: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, detail)
}

pub(crate) async fn no_such_page(uri: Uri) -> Response {
    let text = format!(
        "there is nothing at {}; /docs, or GET /v1/openapi.json, lists what there is",
        uri.path()
    );
    Failure(Problem::new(ProblemKind::NoSuchPage, text)).into_response()
}

/// Every answer says which node gave it and how often that was started: what it says of a claim it
/// says as of that start.
fn say_who(app: &App, headers: &mut HeaderMap) {
    headers.insert("quorate-start", HeaderValue::from(app.boot));
    if let Ok(name) = HeaderValue::from_str(app.config.name()) {
        headers.insert("quorate-node", name);
    }
}

/// Counts what is refused, and puts what was refused before it reached a handler into our words.
pub(crate) async fn count_refusals(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    say_who(&app, response.headers_mut());
    let status = response.status();
    if !status.is_client_error() {
        return response;
    }
    app.metrics.refuse_request(status.as_u16());
    if response.extensions().get::<TheirWords>().is_some() {
        return response;
    }
    if response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM) {
        return response;
    }
    let (mut head, theirs) = response.into_parts();
    let (kind, text) = match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            (ProblemKind::NoSuchPage, format!("{path} takes no {method}; nothing changed"))
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            let max = super::BODY_MAX;
            (ProblemKind::TooLarge, format!("a body of more than {max} bytes; nothing changed"))
        }
        _ => {
            let theirs = to_bytes(theirs, REFUSAL_MAX).await.unwrap_or_default();
            let text = format!("{}; nothing changed", String::from_utf8_lossy(&theirs));
            (ProblemKind::BadRequest, text)
        }
    };
    let problem = Problem { status: status.as_u16(), ..Problem::new(kind, text) };
    let ours = Failure(problem).into_response();
    let (new, body) = ours.into_parts();
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.extend(new.headers);
    Response::from_parts(head, body)
}

/// Hears a request out before anything is done about it: connections are counted, and those who
/// begin to say something and never end must not keep others out.
pub(crate) async fn hear_out(State(app): State<App>, request: Request, next: Next) -> Response {
    // Only a body that could be too long is worth finding out whose it is.
    let long = request.body().size_hint().upper();
    if long.is_none_or(|long| long > super::STRANGE_BODY_MAX as u64) {
        let (mut parts, body) = request.into_parts();
        let caller = App::from_request_parts(&mut parts, &app).await.map(|app| app.caller);
        let known = caller.is_ok_and(|caller| caller.is_known(&app.config));
        let request = Request::from_parts(parts, body);
        return match known {
            true => hear(request, next).await,
            false => too_long_for_a_stranger(),
        };
    }
    hear(request, next).await
}

/// A body of unknown length is one that could be too long.
fn too_long_for_a_stranger() -> Response {
    let max = super::STRANGE_BODY_MAX;
    let text = format!(
        "a body of more than {max} bytes, or of a length that is not said, from somebody who is \
         not known here; nothing changed. Show a token, or say a content-length"
    );
    let refused = Failure(Problem::new(ProblemKind::TooLarge, text)).into_response();
    ([(header::CONNECTION, "close")], refused).into_response()
}

async fn hear(request: Request, next: Next) -> Response {
    match whole(request, super::BODY_WITHIN).await {
        Ok(request) => next.run(request).await,
        Err(refused) => refused,
    }
}

async fn whole(request: Request, within: Duration) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    let body = Bytes::from_request(Request::from_parts(head.clone(), body), &());
    match timeout(within, body).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(head, Body::from(bytes))),
        Ok(Err(refused)) => Err(refused.into_response()),
        Err(_) => {
            let text = format!("the body did not come in {within:?}; nothing changed");
            let refused = Failure(Problem::new(ProblemKind::TooSlow, text)).into_response();
            Err(([(header::CONNECTION, "close")], refused).into_response())
        }
    }
}

/// A page of another site that is open in a browser on this machine must not speak for its user:
/// without authentication, the site a request comes from is all there is to go by. Nor may it read:
/// a name that its owner lets point to this machine would make it one of our own pages, so nodes
/// have no names but `localhost` where nothing is encrypted. Where it is, the browser has found the
/// name in the node's certificate; and no browser finds a Unix socket.
pub(crate) async fn refuse_other_sites(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let private = request.extensions().get().map_or(app.private, |guest: &Guest| guest.private);
    let text = if !private && !is_for_us(request.headers()) {
        "the request is for a host of another name: say localhost, or the address itself; \
         nothing changed"
    } else if !speaks_for_itself(request.headers()) {
        "the request comes from a page of another site; nothing changed"
    } else {
        return next.run(request).await;
    };
    Failure(Problem::new(ProblemKind::OtherSite, text)).into_response()
}

/// Browsers always say whom they ask; whoever does not is none.
fn is_for_us(headers: &HeaderMap) -> bool {
    headers.get_all(header::HOST).iter().all(|host| {
        let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        authority.is_some_and(|authority| {
            let host = authority.host();
            let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            host.eq_ignore_ascii_case("localhost")
                || host.parse::<IpAddr>().is_ok()
                || inside.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
        })
    })
}

fn speaks_for_itself(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let site = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, s)| s);
    site.is_some() && site == text(header::HOST)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

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

    #[test]
    fn only_names_that_nobody_else_can_point_at_us_are_ours() {
        let for_us = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            is_for_us(&headers)
        };
        for ours in ["127.0.0.1:7420", "localhost:7420", "LocalHost", "[::1]:7420", "[::1]"] {
            assert!(for_us(ours), "{ours}");
        }
        for other in ["evil.example:7420", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!for_us(other), "{other}");
        }
        assert!(is_for_us(&HeaderMap::new()));
    }

    #[test]
    fn who_is_told_that_something_is_unknown_is_told_when_to_ask_again() {
        let answer = |kind| Failure(Problem::new(kind, "")).into_response();
        let unknown = answer(ProblemKind::Unknown);
        assert_eq!(unknown.status(), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(unknown.headers()[header::RETRY_AFTER], "1");
        let limit = answer(ProblemKind::Limit);
        assert_eq!(limit.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(limit.headers()[header::RETRY_AFTER], "1");
        assert!(!answer(ProblemKind::ClaimOver).headers().contains_key(header::RETRY_AFTER));
    }

    /// A body that has begun and does not go on.
    struct Stuck;

    impl futures_core::Stream for Stuck {
        type Item = Result<Bytes, std::convert::Infallible>;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_given_up() {
        let request = Request::new(Body::from_stream(Stuck));
        let refused = whole(request, Duration::from_millis(1)).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::REQUEST_TIMEOUT);
        let request = Request::new(Body::from("all of it"));
        let heard = whole(request, Duration::from_secs(600)).await.unwrap();
        assert_eq!(to_bytes(heard.into_body(), 99).await.unwrap(), "all of it");
    }
}
