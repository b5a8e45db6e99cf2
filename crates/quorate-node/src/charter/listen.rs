//! Who was heard, and in which life: every member that votes asks all others, so that whoever comes
//! to lead has listened for as long as it lives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_charter::policy::seating::Heard;
use quorate_charter::{Council, MemberId};
use quorate_core::NodeId;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::words::{Said, Word};
use super::{Hall, Part, locked};

/// So many questions in the time after which silence means something.
const ASKED: u32 = 6;

/// When a node was last heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) member: MemberId,
    pub(super) at: Duration,
    pub(super) boot: u32,
}

/// Listens for ever.
pub(super) async fn run(hall: Arc<Hall>, part: Part) {
    let me = part.identity().member;
    let mut beats = interval(hall.listens_every());
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asking: BTreeMap<NodeId, ()> = BTreeMap::new();
    let (mut answers, mut asked) = (JoinSet::new(), 0u32);
    loop {
        tokio::select! {
            _ = beats.tick() => {
                if !part.status().voters.contains(&me) {
                    // Who only follows may have been removed without hearing of it.
                    asked += 1;
                    if asked.is_multiple_of(ASKED) {
                        let (hall, turn) = (Arc::clone(&hall), (asked / ASKED) as usize);
                        tokio::spawn(async move { hall.ask_whether_it_belongs(me, turn).await });
                    }
                    continue;
                }
                for other in hall.others() {
                    if asking.insert(other, ()).is_some() {
                        continue; // It has not answered the last one.
                    }
                    let (hall, patience) = (Arc::clone(&hall), hall.chartered.suspect_after);
                    answers.spawn(async move {
                        hall.hear(other, patience).await;
                        other
                    });
                }
            }
            Some(answer) = answers.join_next() => {
                let Ok(other) = answer else { continue };
                asking.remove(&other);
            }
        }
    }
}

impl Hall {
    /// Asks a node who it is, and in which life.
    async fn hear(&self, other: NodeId, patience: Duration) {
        let said = timeout(patience, self.ask(other, &Word::Life)).await;
        if let Ok(Ok(Said::Life { member: Some(member), boot })) = said {
            self.book.note(member, other);
            let seen = Seen { member, at: self.now(), boot };
            locked(&self.heard).insert(other, seen);
        }
    }

    /// Hears of all who answer within this time.
    pub(super) async fn hear_all(self: &Arc<Self>, patience: Duration) {
        let mut asked = JoinSet::new();
        for other in self.others() {
            let hall = Arc::clone(self);
            asked.spawn(async move { hall.hear(other, patience).await });
        }
        while asked.join_next().await.is_some() {}
    }

    pub(super) fn listens_every(&self) -> Duration {
        self.chartered.suspect_after / ASKED
    }

    /// Asks one of the others, each in turn, whether this member is still one.
    async fn ask_whether_it_belongs(&self, me: MemberId, turn: usize) {
        let others: Vec<NodeId> = self.others().collect();
        let Some(other) = others.get(turn % others.len().max(1)) else { return };
        let word = Word::Belongs { member: me };
        let said = timeout(self.chartered.suspect_after, self.ask(*other, &word)).await;
        if let Ok(Ok(Said::Removed)) = said {
            self.gone.send_replace(true);
        }
    }

    /// What was heard of members, this one too.
    pub(super) fn heard(&self, me: MemberId) -> BTreeMap<MemberId, Heard> {
        let mut heard: BTreeMap<MemberId, Heard> = BTreeMap::new();
        for seen in locked(&self.heard).values() {
            heard.insert(seen.member, Heard { at: seen.at, boot: seen.boot.into() });
        }
        heard.insert(me, Heard { at: self.now(), boot: self.boot.into() });
        heard
    }
}
