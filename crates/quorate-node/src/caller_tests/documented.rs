//! The documentation knows what everything needs.

use quorate_api::link::{self, Ask};

use super::{ENDPOINTS, all_asks, needs};
use crate::caller::Action;

/// The table of the documentation says what is needed.
#[test]
fn the_documentation_lists_every_endpoint_and_request_with_its_right() {
    let page = include_str!("../../../../docs/rights.md");
    let word = |needs: Option<Action>| match needs {
        None | Some(Action::Health) => "–",
        Some(Action::See) => "`see`",
        Some(Action::Measure) => "`see`, or `open_metrics`",
        Some(Action::Read) => "`see`, or its own",
        Some(Action::Claim) => "`claim`",
        Some(Action::Revoke) => "`revoke`",
        Some(Action::Admin) => "`admin`",
        Some(Action::Audit | Action::Members | Action::Tokens) => "`admin` on all pools",
    };
    let endpoints =
        ENDPOINTS.iter().map(|(method, path, needs)| (format!("{method} {path}"), *needs));
    let name = |ask: &Ask| format!("{ask:?}").split([' ', '{']).next().unwrap().to_lowercase();
    let introduced = Ask::Introduce { client: String::new(), token: link::Token(String::new()) };
    let asks = all_asks().into_iter().chain([introduced]);
    let asks = asks.map(|ask| (format!("link: {}", name(&ask)), needs(&ask)));
    for (what, needs) in endpoints.chain(asks) {
        let row = format!("| `{what}` | {} |", word(needs));
        assert!(page.contains(&row), "docs/rights.md lacks the row\n{row}");
    }
}
