//! A history for people to read: one line per action, with its event, its effects, and where the
//! clients then are.
//!
//! The history is played again without renaming, so that clocks and fences are what a real run
//! would show.

use quorate_core::Explorable;
use quorate_laws::Breach;

use crate::action::{Action, Happening};
use crate::model::{Model, Step};
use crate::scope::Scope;
use crate::steps::{Cue, describe, describe_effect};
use crate::world::World;

/// Writes a history that shows a breach: one that its last action is (`ends_in_breach`), or one of
/// a law about everything that could follow.
///
/// A breach that real clocks and fences do not confirm is said to be one of the renaming.
pub(crate) fn write<P: Explorable>(
    scope: &Scope<P>,
    actions: &[Action],
    ends_in_breach: bool,
    breach: &Breach,
) -> Vec<String> {
    let scope = Scope { renaming: false, ..scope.clone() };
    let mut model = Model::new(&scope);
    let mut lines = Vec::new();
    let Ok(mut world) = model.first_world() else { return lines };
    let mut broken = None;
    for (position, action) in actions.iter().enumerate() {
        let mut step = None;
        broken = model.perform(&mut world, *action, &mut step).err();
        lines.push(line(&model, &world, position + 1, *action, step));
        if broken.is_some() {
            break;
        }
    }
    lines.push(format!("     => {breach}"));
    if ends_in_breach && broken.is_none_or(|again| again.law != breach.law) {
        lines.push(
            "     => played again under real clocks and fences this is no breach".to_string(),
        );
        lines.push("        (does the protocol show all its numbers to the checker?)".to_string());
    }
    lines
}

fn line<P: Explorable>(
    model: &Model<'_, P>,
    world: &World,
    position: usize,
    action: Action,
    step: Option<Step>,
) -> String {
    let what = match step {
        Some(step) => stepped(model, action, step),
        None => unheard(model, action.happening),
    };
    let mut clients = String::new();
    for (client, &number) in world.clients().iter().enumerate() {
        let separator = if client > 0 { " | " } else { "" };
        let claim = model.scope.clients[client].claim.id;
        clients.push_str(&format!("{separator}{claim} {}", model.parts.clients.get(number)));
    }
    format!("{position:4} {what:<72} [{clients}]")
}

/// An action that a participant heard of.
fn stepped<P: Explorable>(model: &Model<'_, P>, action: Action, step: Step) -> String {
    let mut text = format!("{} {}", step.node, describe(&model.parts, &step.cue));
    if matches!(action.happening, Happening::AskAgain { .. }) {
        text.push_str(" (again)");
    }
    if let Happening::Deliver { keep: true, .. } = action.happening {
        text.push_str(" (a copy stays on its way)");
    }
    if matches!(step.cue, Cue::Step { late: true, .. }) {
        text.push_str(" (after its deadline)");
    }
    let Some(outcome) = step.outcome else { return text };
    let effects = &model.steps.outcome(outcome).effects;
    let done = action.cut.unwrap_or(effects.len());
    for (position, effect) in effects.iter().enumerate() {
        let separator = match (position, position == done) {
            (_, true) => "; CRASH before: ",
            (0, false) => ": ",
            (_, false) => "; ",
        };
        text.push_str(separator);
        text.push_str(&describe_effect(&model.parts, effect));
    }
    text
}

/// An action of which no participant hears.
fn unheard<P: Explorable>(model: &Model<'_, P>, happening: Happening) -> String {
    let claim = |client: usize| model.scope.clients[client].claim.id;
    match happening {
        Happening::Stop { client } => {
            format!("{} stops at its deadline or dies, telling nobody", claim(client))
        }
        Happening::Abandon { client } => format!("{} dies waiting", claim(client)),
        Happening::Vanish { from, to, .. } => format!("a message from {from} to {to} is lost"),
        Happening::Crash { node } => format!("{node} CRASH"),
        Happening::Name { node } => format!("the charter says that {node} shadows"),
        Happening::Strike { .. } => "the charter strikes the shadow".to_owned(),
        Happening::Whole => "the charter calls the shadow whole".to_owned(),
        Happening::Amend { makes: false } => "the charter says that the pool is another".to_owned(),
        Happening::Amend { makes: true } => "the charter says that there is a pool".to_owned(),
        Happening::Commit { to, .. } => format!("the charter says that {to} decides"),
        Happening::EndLicence { node } => format!("the licence of {node} is over"),
        other => format!("{other:?}"),
    }
}
