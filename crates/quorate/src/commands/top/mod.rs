//! `quorate top`: the cluster in a terminal.
//!
//! `model` holds what is shown and what keys do to it, `draw` paints it, and this file carries
//! answers of the cluster and keys to the first and calls the second.

mod draw;
mod model;
#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::ensure;
use quorate_client::Views;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::sync::mpsc;

use super::cluster::{self, Cluster};
use super::status;
use crate::Outcome;
use model::{Do, Model};

/// Watch pools, holders, queues and nodes in the terminal.
///
/// Shows what the dashboard of a node shows. If the cluster asks for the administrator's token,
/// give it in $QUORATE_TOKEN.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Keys:
  ↑ ↓, enter, esc    choose, look into, go back
  tab                holders or queue
  s                  sort by the next column
  /                  show only what contains a text
  w, r               why does it wait; revoke it, with a reason
  q                  quit

Example:
  quorate top --server node-a:7420,node-b:7420")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: Cluster,
}

/// How often the cluster is asked.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    ensure!(
        std::io::stdout().is_terminal(),
        "top needs a terminal; for programs there is `quorate pools --json`"
    );
    let views = args.cluster.views()?;
    cluster::block_on(async {
        let mut model = Model::default();
        // A first answer before the screen is taken, so that a wrong address is an error.
        model.update(Ok(views.overview(&model.screen()).await?));
        let mut terminal = ratatui::try_init()?;
        let result = watch(&mut terminal, &mut model, &views).await;
        ratatui::restore();
        result.map(|()| Outcome::Good)
    })
}

async fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    model: &mut Model,
    views: &Views,
) -> anyhow::Result<()> {
    let mut keys = read_keys();
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        terminal.draw(|frame| draw::draw(frame, model))?;
        let wanted = tokio::select! {
            event = keys.recv() => match event {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => model.key(key),
                Some(_) => Do::Nothing,
                None => Do::Quit,
            },
            _ = ticks.tick() => Do::Reload,
        };
        match wanted {
            Do::Nothing => {}
            Do::Quit => return Ok(()),
            Do::Reload => model
                .update(views.overview(&model.screen()).await.map_err(|error| error.to_string())),
            Do::Why(pool, id) => {
                let answer = views.claim(&pool, id).await;
                model.show(answer.map_or_else(|e| e.to_string(), |s| status::claim_text(&s)));
            }
            Do::Revoke(pool, id, reason) => {
                let answer = views.revoke(&pool, id, &reason).await;
                model.say(answer.map_or_else(|e| e.to_string(), |s| status::one_line(&s)));
            }
        }
    }
}

/// Keys are read on a thread of their own: reading them blocks.
fn read_keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    });
    receiver
}
