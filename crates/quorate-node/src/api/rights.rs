//! Who may do what only an operator may.
//!
//! Nodes cannot authenticate anybody yet and listen on loopback addresses only. If the
//! configuration has an `admin_token`, taking claims back needs it; everything else is open to
//! whoever reaches the node.

use axum::http::{HeaderMap, header};
use quorate_api::{Problem, ProblemKind};

use crate::config::Config;

/// Whether a request may act for the administrator.
pub(super) fn administrator(config: &Config, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(token) = &config.admin_token else { return Ok(()) };
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match shown.and_then(|text| text.strip_prefix("Bearer ")) {
        Some(shown) if token.is(shown.trim()) => Ok(()),
        Some(_) => Err(forbidden("the token is not the administrator's")),
        None => Err(forbidden("this cluster asks for the administrator's token")),
    }
}

fn forbidden(why: &str) -> Problem {
    let text = format!(
        "{why}; nothing changed. Send it as `Authorization: Bearer TOKEN`, or give the command \
         QUORATE_TOKEN"
    );
    Problem::new(ProblemKind::Forbidden, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"
        cluster = "c"
        epoch = 1
        node = "a"
        listen = { clients = "127.0.0.1:7420", peers = "127.0.0.1:7520" }
        members = [{ name = "a", peers = "127.0.0.1:7520" }]
    "#;

    #[test]
    fn only_the_token_gives_rights_and_without_one_everybody_has_them() {
        let shown = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, text.parse().unwrap());
            headers
        };
        let open = Config::parse_in_memory(CONFIG).unwrap();
        assert!(administrator(&open, &HeaderMap::new()).is_ok());
        let text = format!("admin_token = \"0123456789abcdef\"\n{CONFIG}");
        let guarded = Config::parse_in_memory(&text).unwrap();
        assert!(administrator(&guarded, &shown("Bearer 0123456789abcdef")).is_ok());
        let wrong = ["Bearer 0123456789abcdee", "Bearer ", "0123456789abcdef", "Bearer 0123"];
        for headers in wrong.map(shown).into_iter().chain([HeaderMap::new()]) {
            let problem = administrator(&guarded, &headers).unwrap_err();
            assert_eq!((problem.kind, problem.status), (ProblemKind::Forbidden, 403));
        }
        assert!(!format!("{guarded:?}").contains("0123456789abcdef"), "secrets are not shown");
        assert!(Config::parse_in_memory(&text.replace("456789", "")).is_err(), "too short");
    }
}
