//! `quorate top`: the cluster in a terminal.
//!
//! `model` holds what is shown and what keys do to it, `draw` paints it on a `canvas`, `terminal`
//! has the screen and the keys, and this file carries answers of the cluster and keys to the first.
//! All by hand: a screen of tables needs a few hundred lines, and a library for it 47 crates.

mod canvas;
mod draw;
mod model;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::ensure;
use quorate_client::Views;
use rustix::process::Signal;

use super::cluster::{self, Cluster};
use super::signals::{ENDING, Signals};
use super::status;
use crate::Outcome;
use model::{Do, Model};
use terminal::Terminal;

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
        watch(&mut model, &views).await?;
        Ok(Outcome::Good)
    })
}

async fn watch(model: &mut Model, views: &Views) -> anyhow::Result<()> {
    let mut signals = Signals::hear(&[&ENDING[..], &[Signal::WINCH]].concat())?;
    let mut terminal = Terminal::take()?;
    let mut keys = terminal.keys()?;
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        let mut canvas = terminal.canvas()?;
        draw::draw(&mut canvas, model);
        terminal.show(&canvas)?;
        let wanted = tokio::select! {
            key = keys.recv() => key.map_or(Do::Quit, |key| model.key(key)),
            signal = signals.any() => match signal {
                Signal::WINCH => Do::Nothing,
                _ => Do::Quit,
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
