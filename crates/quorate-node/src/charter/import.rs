//! A cluster that ran before it had a charter: the charter takes over what files let fixed nodes
//! decide, while everything runs (charter spec S18).
//!
//! Until then each of these nodes decides without a licence, and that it may is written in its data
//! directory: only a start from a directory that was in use before there was a charter writes it
//! there, so a disk that was lost takes it along. Whoever imports asks all members to give that up.
//! Each writes down that it did, stops deciding, and answers; none ever takes it back. When all
//! have answered, and not before, an entry says who decides. Whoever has given up and sees no entry
//! goes on asking by itself: whoever began may be gone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use quorate_api::{Problem, ProblemKind};
use quorate_charter::policy::seating::Heard;
use quorate_charter::{Change, Charter, Council, MemberId, Request};
use quorate_core::NodeId;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::begin::{BIRTH, FOUNDS, STORE, incarnation};
use super::members::{AGAIN, TO_DO, refused};
use super::words::{Said, Word};
use super::{FromCharter, Hall, Part, ask, locked, request_id};
use crate::boot;
use crate::config::{Config, Data};
use crate::engine::Command;

/// What this directory knows of it.
const PINS: &str = "charter-pins";
/// How long one member may take to give up what it decides.
const TO_UNPIN: Duration = Duration::from_secs(2);
/// How often whoever has given up looks whether anybody decides.
const LOOK: Duration = Duration::from_secs(1);

/// Whether this node decides as its file says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Pins {
    /// It knows nothing of that: the cluster always had a charter, or its disk was lost.
    #[default]
    Unknown,
    /// It does.
    Pinned,
    /// It has given that up for good.
    Unpinned,
}

impl Pins {
    fn word(self) -> &'static str {
        match self {
            Pins::Unknown => "unknown\n",
            Pins::Pinned => "pinned\n",
            Pins::Unpinned => "unpinned\n",
        }
    }

    fn keep(self, directory: &Path) -> Result<(), String> {
        let path = directory.join(PINS);
        let kept = boot::replace(directory, &path, self.word());
        kept.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// What the directory says, if it says anything.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn kept(directory: &Path) -> Result<Option<Pins>, String> {
        let path = directory.join(PINS);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(|it| format!("{}: {it}", path.display()))?;
        let all = [Pins::Unknown, Pins::Pinned, Pins::Unpinned];
        let known = all.into_iter().find(|it| it.word() == text);
        known.map(Some).ok_or_else(|| format!("{} is damaged", path.display()))
    }

    /// Looks at the directory, before this start is counted in it. The first start with a charter
    /// from one that was in use before is that of a node which decides; at the first member it
    /// founds the charter.
    ///
    /// # Errors
    /// The directory cannot be read or written, or is in use.
    pub(crate) fn look(config: &Config) -> Result<Pins, String> {
        let imports = config.charter.is_some_and(|charter| charter.import);
        let Data::Directory(directory) = &config.data else { return Ok(Pins::Unknown) };
        let known = Pins::kept(directory)?;
        if config.charter.is_none() && known.is_some_and(|pins| pins != Pins::Pinned) {
            return Err(format!(
                "its file does not say [charter], and {} says that this node does not decide as \
                 files say any more; nothing was promised. Start it with the file that has \
                 import = true",
                directory.join(PINS).display()
            ));
        }
        if let (false, _) | (_, Some(_)) = (imports, known) {
            return Ok(known.filter(|_| imports).unwrap_or_default());
        }
        let (_lock, is_used) = boot::hold(directory).map_err(|error| error.to_string())?;
        let is_in = [STORE, BIRTH].iter().any(|name| directory.join(name).exists());
        let pins = if is_used && !is_in { Pins::Pinned } else { Pins::Unknown };
        if pins == Pins::Pinned && config.founds_charter() {
            let founds = boot::replace(directory, &directory.join(FOUNDS), "it had none before\n");
            founds.map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        pins.keep(directory)?;
        Ok(pins)
    }
}

/// How far this node is with giving up what it decides.
#[derive(Debug)]
pub(super) struct Unpinning {
    pins: Mutex<Pins>,
    /// Whether its seats have stopped.
    stopped: watch::Sender<bool>,
    /// One at a time.
    turn: tokio::sync::Mutex<()>,
    engine: OnceLock<mpsc::WeakSender<Command>>,
}

impl Unpinning {
    pub(super) fn new(pins: Pins) -> Self {
        let (stopped, engine) = (watch::channel(pins != Pins::Pinned).0, OnceLock::new());
        Unpinning { pins: Mutex::new(pins), stopped, turn: tokio::sync::Mutex::default(), engine }
    }

    /// Where seats are.
    pub(super) fn reach(&self, engine: &mpsc::Sender<Command>) {
        let _ = self.engine.set(engine.downgrade());
    }
}

impl Hall {
    /// Whether this node decides as its file says, before the charter says who does.
    pub(crate) fn is_pinned(&self) -> bool {
        *locked(&self.pins.pins) == Pins::Pinned
    }

    /// Whether it has given that up.
    fn has_given_up(&self) -> bool {
        *locked(&self.pins.pins) == Pins::Unpinned
    }

    /// Its seats have heard that they decide no more.
    pub(crate) fn has_stopped(&self) {
        self.pins.stopped.send_replace(true);
    }

    /// What is still to be done, if who decides is as files say.
    pub(super) fn unmoved(&self, charter: &Charter) -> Option<String> {
        (self.chartered.import && charter.seats().is_empty()).then(|| {
            "pools of \"central\" are decided by the nodes that files say, until `quorate cluster \
             import`"
                .to_owned()
        })
    }

    /// Another member, or this one, wants this node to give up what it decides.
    pub(super) async fn unpin(&self, sure: bool) -> Said {
        if !self.chartered.import {
            return Said::Refused("its file does not say import = true".into());
        }
        let Some(part) = self.part() else {
            return Said::NotYet("it is not in the charter yet".into());
        };
        if sure && let Err(why) = self.give_up().await {
            return Said::NotYet(why);
        }
        Said::Life { member: Some(part.identity().member), boot: self.boot }
    }

    /// Writes down that it decides no more, and stops.
    async fn give_up(&self) -> Result<(), String> {
        let _turn = self.pins.turn.lock().await;
        if self.is_pinned() {
            if let Data::Directory(directory) = &self.config.data {
                Pins::Unpinned.keep(directory)?;
            }
            // A seat that is taken from now on is not pinned.
            *locked(&self.pins.pins) = Pins::Unpinned;
            tracing::info!("this node gives up what files let it decide");
        }
        if !*self.pins.stopped.borrow() {
            let engine = self.pins.engine.get().and_then(mpsc::WeakSender::upgrade);
            let engine = engine.ok_or("it is stopping")?;
            let told = engine.send(Command::Charter(FromCharter::Unpinned)).await;
            told.map_err(|_| "it is stopping")?;
            let mut stopped = self.pins.stopped.subscribe();
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }
        Ok(())
    }

    /// Has the charter take over the pools that files let fixed nodes decide.
    ///
    /// # Errors
    /// Says what was left unchanged, or that it is on its way.
    pub(crate) async fn import(&self) -> Result<(), Problem> {
        let until = Instant::now() + TO_DO;
        if !self.chartered.import {
            return Err(refused(
                "the file of this node does not say import = true under [charter]: it has nothing \
                 to take over; nothing changed"
                    .into(),
            ));
        }
        let (part, charter) = self.look(until).await?;
        if charter.seats().is_empty() {
            if !self.has_given_up() {
                self.all(&charter, false).await.map_err(|why| {
                    refused(format!(
                        "{why}; nothing changed. Give the file of every member [charter] with \
                         import = true, restart them one after the other, and run this when all \
                         are there"
                    ))
                })?;
            }
            let lives = self.all(&charter, true).await.map_err(on_its_way)?;
            self.seat_first(&part, &lives, until).await?;
        }
        let what = "the charter says who decides";
        self.until(&part, until, |charter| !charter.seats().is_empty(), what).await
    }

    /// Asks all members, this one last, to give up what they decide, or whether they could: in
    /// which life each is.
    async fn all(
        &self,
        charter: &Charter,
        sure: bool,
    ) -> Result<BTreeMap<MemberId, Heard>, String> {
        let listed = (0..self.config.members.len()).map(NodeId::from);
        let name = |node: NodeId| self.config.members[node.index()].name.clone();
        let mut asked = JoinSet::new();
        for node in listed {
            let name = name(node);
            if charter.is_removed(&name) {
                continue; // Somebody said that it is gone for good.
            }
            if charter.members().values().all(|member| member.name != name) {
                return Err(format!("{name} is not in the charter yet"));
            }
            if node == self.config.me {
                continue;
            }
            let lines = std::sync::Arc::clone(&self.lines);
            asked.spawn(async move {
                let said = timeout(TO_UNPIN, ask(&lines, node, &Word::Unpin { sure })).await;
                match said {
                    Ok(Ok(Said::Life { member: Some(member), boot })) => Ok((member, boot)),
                    Ok(Ok(Said::NotYet(why) | Said::Refused(why))) => Err(format!("{name}: {why}")),
                    _ => Err(format!("{name} does not answer")),
                }
            });
        }
        let (mut lives, mut missing) = (BTreeMap::new(), Vec::new());
        let heard = |boot: u32| Heard { at: self.now(), boot: boot.into() };
        while let Some(answer) = asked.join_next().await {
            match answer.map_err(|error| error.to_string()) {
                Ok(Ok((member, boot))) => drop(lives.insert(member, heard(boot))),
                Ok(Err(why)) | Err(why) => missing.push(why),
            }
        }
        missing.sort();
        if !missing.is_empty() {
            return Err(missing.join(", "));
        }
        match self.unpin(sure).await {
            Said::Life { member: Some(member), boot } => drop(lives.insert(member, heard(boot))),
            Said::NotYet(why) | Said::Refused(why) => return Err(why),
            _ => return Err("this node is no member".into()),
        }
        Ok(lives)
    }

    /// All have given up what they decided: the charter says who does.
    async fn seat_first(
        &self,
        part: &Part,
        lives: &BTreeMap<MemberId, Heard>,
        until: Instant,
    ) -> Result<(), Problem> {
        loop {
            let (_, charter) = self.look(until).await?;
            if !charter.seats().is_empty() {
                return Ok(()); // Somebody else was asked too.
            }
            // Fences of the charter are greater than all that these lives gave (charter spec S10).
            let boots = lives.values().map(|life| life.boot).max().unwrap_or(0);
            let least = incarnation(u32::try_from(boots).unwrap_or(u32::MAX));
            let later =
                (charter.incarnation() < least).then_some(Change::Incarnation { to: least });
            let moves = self.seating().moves(self.now(), &charter, lives);
            let seats = (!moves.is_empty()).then_some(Change::Seats { moves });
            let changes: Vec<Change> = later.into_iter().chain(seats).collect();
            match part.propose(Request { id: request_id(), changes }).await {
                // The next look finds seats.
                Ok(Ok(_)) => {}
                Ok(Err(refused)) => tracing::debug!(%refused, "once more"),
                Err(trouble) if Instant::now() >= until => {
                    return Err(on_its_way(trouble.to_string()));
                }
                Err(trouble) => tracing::debug!(%trouble, "once more"),
            }
            sleep(AGAIN).await;
        }
    }
}

fn on_its_way(why: String) -> Problem {
    let text = format!(
        "{why}: pools of \"central\" grant nothing until all members have given up what they \
         decide; this goes on by itself. Start who is missing; look with `quorate status`"
    );
    Problem::new(ProblemKind::Unknown, text)
}

/// Goes on with what somebody began, until the charter says who decides.
pub(super) async fn go_on(hall: std::sync::Arc<Hall>, part: Part) {
    if !hall.chartered.import {
        return;
    }
    while part.watch().borrow().charter.seats().is_empty() {
        sleep(LOOK).await;
        if hall.has_given_up()
            && let Err(problem) = hall.import().await
        {
            tracing::warn!(why = %problem.detail, "the charter does not say who decides yet");
        }
    }
}
