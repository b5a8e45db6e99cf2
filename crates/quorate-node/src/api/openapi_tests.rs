//! The document, made from the handlers.

use utoipa::OpenApi;
use utoipa::openapi::{RefOr, Required};

use crate::api::{claims, definitions, gateway, health, members, overview, pools, tokens, watch};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Quorate",
        description = "Share k units of anything among n machines. A node never says when a grant \
            ends but how long it lasts, counted from its receipt of the request it answers: add \
            that to a reading of your clock from before you sent the request.",
        license(name = "MIT OR Apache-2.0"),
    ),
    paths(
        claims::put,
        claims::get,
        claims::why,
        claims::delete,
        claims::renew,
        claims::revoke,
        pools::list,
        pools::one,
        definitions::show,
        definitions::create,
        definitions::amend,
        definitions::delete,
        definitions::apply,
        pools::holders,
        pools::queue,
        pools::grants,
        pools::corrupt,
        pools::fence,
        pools::drain,
        pools::restore,
        pools::relabel,
        pools::unlabel,
        overview::history,
        gateway::fleetlock::pre_reboot,
        gateway::fleetlock::steady_state,
        health::audit,
        members::list,
        members::drain,
        members::restore,
        members::remove,
        members::readmit,
        members::invite,
        members::join,
        members::backup,
        members::import,
        tokens::list,
        tokens::show,
        tokens::put,
        tokens::revoke,
        tokens::rights,
        tokens::right,
        tokens::set,
        tokens::delete,
        overview::find,
        overview::overview,
        overview::watch,
        watch::all,
        watch::pool,
        health::node,
        health::livez,
        health::readyz,
        health::readyz_pool,
        health::metrics,
    )
)]
struct Document;

fn document() -> String {
    let mut document = Document::openapi();
    for (path, item) in &mut document.paths.paths {
        let operation = match &**path {
            "/v1/pools/{pool}/claims/{id}" => item.put.as_mut(),
            "/v1/pools/{pool}/claims/{id}/renew" => item.post.as_mut(),
            _ => None,
        };
        // Everything in what these two take may be left out, and so may all of it.
        let body = operation.and_then(|operation| operation.request_body.as_mut());
        if let Some(RefOr::T(body)) = body {
            body.required = Some(Required::False);
        }
    }
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

#[test]
fn the_openapi_document_is_the_one_on_file() {
    expect_test::expect_file!["openapi.json"].assert_eq(&document());
}
