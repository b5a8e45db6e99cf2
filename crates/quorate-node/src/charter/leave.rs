//! A node that stops gives away what it decides, so that nobody has to find out that it is gone
//! (charter spec S11), nor any seat wait for a shadow that is gone (charter spec S15).
//!
//! It says that it drains and who decides instead in one entry, so that no leader gives it anything
//! back meanwhile; and it writes down that it said so, so that its next start takes it back. An
//! operator's word that it drains stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate_charter::policy::seating::Heard;
use quorate_charter::{Change, Council, Group, MemberId, Request, Trouble};
use tokio::time::{sleep, timeout};

use super::{Hall, Part, request_id};
use crate::boot;
use crate::config::Data;

/// The word that the node drains because it stopped.
const LEAVING: &str = "charter-leaving";
/// How long giving everything away may take. A majority that is gone is not waited for.
const TO_LEAVE: Duration = Duration::from_secs(2);
/// How long others may take to say that they are there.
const TO_ANSWER: Duration = Duration::from_millis(200);
/// What the engine said last is on its way: time for it to arrive before connections end.
const TO_ARRIVE: Duration = Duration::from_millis(150);
/// How long to wait before asking again.
const AGAIN: Duration = Duration::from_millis(200);
/// The same for who is about to stop.
const SOON: Duration = Duration::from_millis(50);

impl Hall {
    /// Gives away what this node decides, if that is possible: to members that it has links with,
    /// if there are any.
    pub(crate) async fn hand_over(self: &Arc<Self>, linked: &BTreeSet<String>) {
        let Some(part) = self.part() else { return };
        self.come_to_rest(&part).await;
        match timeout(TO_LEAVE, self.try_to_hand_over(&part, linked)).await {
            Ok(Ok(0)) => {}
            Ok(Ok(groups)) => {
                tracing::info!(groups, "others decide from now on");
                sleep(TO_ARRIVE).await;
            }
            Ok(Err(why)) => tracing::warn!(%why, "what this node decides is not handed over"),
            Err(_) => tracing::warn!("what this node decides is not handed over: nobody led"),
        }
    }

    /// Whoever took over as a shadow has no final books while the node before it may have a licence
    /// and renew (charter spec S17): if it gave them away earlier, the pool would wait out a lease.
    /// Meanwhile everything goes on.
    async fn come_to_rest(&self, part: &Part) {
        let me = part.identity().member;
        let inherited = {
            let reading = part.watch();
            let reading = reading.borrow();
            let mut seats = reading.charter.seats().values();
            seats.any(|seat| seat.life.member == me && seat.by_shadow.is_some())
        };
        if inherited {
            sleep(self.chartered.rest()).await;
        }
    }

    async fn try_to_hand_over(
        self: &Arc<Self>,
        part: &Part,
        linked: &BTreeSet<String>,
    ) -> Result<usize, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let me = part.identity().member;
        // What was heard before may be of a life that is over: books open no other than the one
        // that the entry names (charter spec S12), and the pool would wait out a lease.
        let asked = self.now();
        self.hear_all(TO_ANSWER).await;
        let mut gives = 0;
        loop {
            let reading = match part.read().await {
                Ok(reading) => reading,
                Err(Trouble::Stopped(why)) => return Err(why),
                // Nobody leads for a moment, or the one that does has just gone.
                Err(trouble) => {
                    tracing::debug!(%trouble, "once more");
                    sleep(SOON).await;
                    continue;
                }
            };
            let charter = &reading.charter;
            let mine = charter.seats().values().filter(|seat| seat.life.member == me).count();
            // Nobody waits for a shadow that is gone, either.
            let shadowed = charter.seats().iter().filter_map(|(group, seat)| {
                let seen = seat.shadow.filter(|shadow| shadow.life.member == me)?.naming;
                Some((
                    *group,
                    Change::Shadow { group: *group, term: seat.term, seen, shadow: None },
                ))
            });
            let mut shadowed: BTreeMap<Group, Change> = shadowed.collect();
            if mine == 0 && shadowed.is_empty() {
                let mut told = self.told.subscribe();
                let all = told.wait_for(|index| *index >= reading.applied).await;
                return all.map(|_| gives).map_err(|error| said(&error));
            }
            gives = mine.max(gives);
            let drains = charter.members().get(&me).is_some_and(|member| member.draining);
            let drain = Change::DrainMember { member: me, draining: true, if_generation: None };
            // As the charter will be: whoever drains gets nothing, and gives all.
            let mut after = (**charter).clone();
            let tried = Request::one(request_id(), drain.clone());
            let _ = after.apply(reading.applied + 1, &tried);
            let (now, patience) = (self.now(), self.chartered.suspect_after);
            let mut heard = self.heard(me);
            heard.retain(|_, heard| now.saturating_sub(heard.at) <= patience);
            // Books go by the links that claims go by. Whoever was started a moment ago has none
            // with this node yet, would never get them, and would wait out a lease.
            let reached = |id: &MemberId, heard: &Heard| {
                let member = charter.members().get(id);
                heard.at >= asked && member.is_some_and(|member| linked.contains(&member.name))
            };
            if heard.iter().any(|(id, heard)| reached(id, heard)) {
                heard.retain(|id, heard| *id == me || reached(id, heard));
            }
            let moves = self.seating_after(Duration::ZERO).moves(now, &after, &heard);
            if mine > 0 && moves.iter().all(|it| it.to.member == me) {
                return Err("no other member is heard".into());
            }
            if let Data::Directory(directory) = &self.config.data
                && !drains
            {
                let text = "this node drains since it was stopped\n";
                let kept = boot::replace(directory, &directory.join(LEAVING), text);
                kept.map_err(|error| said(&error))?;
            }
            // A term that is over has no shadow.
            moves.iter().for_each(|it| drop(shadowed.remove(&it.group)));
            let seats = (!moves.is_empty()).then_some(Change::Seats { moves });
            let changes = [drain].into_iter().chain(seats).chain(shadowed.into_values()).collect();
            match part.propose(Request { id: request_id(), changes }).await {
                // The next look finds nothing left to give.
                Ok(Ok(_)) => {}
                // Somebody moved a seat meanwhile.
                Ok(Err(refused)) => tracing::debug!(%refused, "once more"),
                Err(Trouble::Stopped(why)) => return Err(why),
                // It may have been done all the same.
                Err(trouble) => {
                    tracing::debug!(%trouble, "once more");
                    sleep(SOON).await;
                }
            }
        }
    }
}

/// After a start: a node that drained since it was stopped does so no more.
pub(super) async fn come_back(hall: &Hall, part: &Part, me: MemberId) {
    let Data::Directory(directory) = &hall.config.data else { return };
    let word: PathBuf = directory.join(LEAVING);
    while word.exists() {
        let change = Change::DrainMember { member: me, draining: false, if_generation: None };
        match part.propose(Request::one(request_id(), change)).await {
            Ok(Ok(_)) => drop(fs::remove_file(&word)),
            Ok(Err(_)) | Err(_) => sleep(AGAIN).await,
        }
    }
}
