//! What clients can tell of a scope: the part of its behaviour that no choice of names may change.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use quorate_core::Explorable;

use crate::client::Client;
use crate::report::Limits;
use crate::scope::Scope;
use crate::search::{Room, Search};
use crate::world::World;

/// Every change that clients can see: where each of them is before and after some action, with the
/// units but without the fences of those that use some. `None` if there are more states than
/// allowed or a law is broken.
///
/// The renaming of clocks and fences claims to change no decision; a test that compares this set
/// with and without it holds it to that.
pub fn client_views<P: Explorable>(
    scope: &Scope<P>,
    limits: &Limits,
) -> Option<BTreeSet<(String, String)>> {
    let mut search = Search::new(scope);
    let first = search.model.first_world().ok()?;
    search.atlas.find_or_add(first.words());
    let mut room = Room::new(&first);
    let mut changes = BTreeSet::new();
    let mut number = 0;
    while number < search.atlas.len() {
        search.atlas.go_to(number, &mut room.words);
        room.here.copy_from(&room.words);
        let mut seen = Vec::new();
        let atlas = &mut search.atlas;
        let flow = search.model.successors(&mut room, |_, result, next| {
            if result.is_err() || atlas.len() > limits.states_max {
                return ControlFlow::Break(());
            }
            atlas.find_or_add(next.words());
            seen.push(next.clone());
            ControlFlow::Continue(())
        });
        if flow.is_break() {
            return None;
        }
        let before = view(&search, &room.here);
        let after = seen.iter().map(|next| view(&search, next));
        changes.extend(after.filter(|after| *after != before).map(|after| (before.clone(), after)));
        number += 1;
    }
    Some(changes)
}

fn view<P: Explorable>(search: &Search<'_, P>, world: &World) -> String {
    let clients =
        world.clients().iter().map(|&number| match search.model.parts.clients.get(number) {
            Client::Using { held } => {
                held.shares.iter().map(|share| share.unit.to_string()).collect::<Vec<_>>().join(",")
            }
            other => other.to_string(),
        });
    clients.collect::<Vec<_>>().join(" | ")
}
