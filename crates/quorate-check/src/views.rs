//! What clients can tell of a scope: the part of its behaviour that no choice of names may change.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use quorate_core::Explorable;

use crate::action::{Action, Happening};
use crate::atlas::Atlas;
use crate::client::Client;
use crate::report::Limits;
use crate::scope::Scope;
use crate::search::{Room, Search};
use crate::world::World;

/// Where a client is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It has not claimed yet.
    NotYet,
    /// It waits for an answer.
    Waiting,
    /// It uses units.
    Using,
    /// It has stopped, or was refused.
    Over,
}

/// What is seen of one state.
#[derive(Clone, Debug)]
pub struct Sight {
    /// The clients, in the order of the scope.
    pub clients: Vec<Stage>,
    /// Whether nothing can happen any more, unless somebody claims.
    pub is_at_rest: bool,
}

/// Shows every state once, and says how many there are, where what the laws remember tells none
/// apart: for what is to be counted and not forbidden. `None` if there are more states than allowed
/// or a law is broken.
pub fn every_sight<P: Explorable>(
    scope: &Scope<P>,
    limits: &Limits,
    mut see: impl FnMut(&Sight),
) -> Option<usize> {
    let mut seen = None;
    every_world(scope, limits, |search, here, ways| {
        let seen = seen.get_or_insert_with(|| Atlas::new(here.words().len()));
        let (known, mut lawless) = (seen.len(), here.clone());
        lawless.set_laws(0);
        if seen.find_or_add(lawless.words()) < known {
            return;
        }
        let stage = |number: &u32| match search.model.parts.clients.get(*number) {
            Client::NotYet => Stage::NotYet,
            Client::Waiting { .. } => Stage::Waiting,
            Client::Using { .. } => Stage::Using,
            Client::Done | Client::Ended | Client::Refused | Client::Gone => Stage::Over,
        };
        let claims =
            |(action, _): &(Action, World)| matches!(action.happening, Happening::Claim { .. });
        let clients = here.clients().iter().map(stage).collect();
        see(&Sight { clients, is_at_rest: ways.iter().all(claims) });
    })?;
    seen.map(|seen| seen.len())
}

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
    let mut changes = BTreeSet::new();
    every_world(scope, limits, |search, here, ways| {
        let before = view(search, here);
        let after = ways.iter().map(|(_, next)| view(search, next));
        changes.extend(after.filter(|after| *after != before).map(|after| (before.clone(), after)));
    })?;
    Some(changes)
}

/// Goes through all states; shows each with every way out of it.
fn every_world<P: Explorable>(
    scope: &Scope<P>,
    limits: &Limits,
    mut see: impl FnMut(&Search<'_, P>, &World, &[(Action, World)]),
) -> Option<()> {
    let mut search = Search::new(scope);
    let first = search.model.first_world().ok()?;
    search.atlas.find_or_add(first.words());
    let mut room = Room::new(&first);
    let mut number = 0;
    while number < search.atlas.len() {
        search.atlas.go_to(number, &mut room.words);
        room.here.copy_from(&room.words);
        let mut ways = Vec::new();
        let atlas = &mut search.atlas;
        let flow = search.model.successors(&mut room, |action, result, next| {
            if result.is_err() || atlas.len() > limits.states_max {
                return ControlFlow::Break(());
            }
            atlas.find_or_add(next.words());
            ways.push((action, next.clone()));
            ControlFlow::Continue(())
        });
        if flow.is_break() {
            return None;
        }
        see(&search, &room.here, &ways);
        number += 1;
    }
    Some(())
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
