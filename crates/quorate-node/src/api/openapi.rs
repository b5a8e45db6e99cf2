//! The OpenAPI document. It is on file beside this, so that no node carries what makes it: a test
//! makes it anew from the handlers and compares.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// The document, as JSON.
pub(crate) const DOCUMENT: &str = include_str!("openapi.json");

pub(crate) async fn get() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT).into_response()
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
