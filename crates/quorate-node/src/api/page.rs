//! The dashboard and the page of the API: the files of quorate-view, and what browsers may do with
//! them.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::reply::no_such_page;

/// Nothing from elsewhere, nothing inline, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn page() -> Response {
    serve("text/html; charset=utf-8", quorate_view::DASHBOARD)
}

pub(crate) async fn docs() -> Response {
    serve("text/html; charset=utf-8", quorate_view::DOCS)
}

pub(crate) async fn asset(Path(name): Path<String>, uri: axum::http::Uri) -> Response {
    match quorate_view::file(&name) {
        Some(file) => serve(file.media, file.text),
        None => no_such_page(uri).await,
    }
}

fn serve(media: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // After an update, the files of the old program must not meet those of the new.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}
