//! What the leader wants, done: who votes, who decides, who belongs to the cluster no more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quorate_charter::policy::seating::{Patience, Seating};
use quorate_charter::policy::votes::{self, Candidate, VOTERS_WANTED};
use quorate_charter::{Change, Charter, Council, MemberId, Request, Role, Status, Trouble};
use tokio::time::sleep;

use super::{Hall, Part, request_id};

/// How often the leader looks.
const LOOK_MAX: Duration = Duration::from_millis(250);
/// A member may be so many entries behind and be given a vote.
const NEARLY: u64 = 100;

/// Leads whenever this member does, for ever.
pub(super) async fn run(hall: Arc<Hall>, part: Part) {
    let look = (hall.chartered.suspect_after / 8).min(LOOK_MAX);
    // It has listened since it began to vote; silence from before its own start means nothing.
    let mut seating = hall.seating();
    let (mut looked, mut led_since) = (hall.now(), None);
    loop {
        sleep(look).await;
        let now = hall.now();
        // Who stood still itself has heard nobody meanwhile, and learns nothing from that.
        if now.saturating_sub(looked) > look * 4 {
            seating = hall.seating();
        }
        looked = now;
        let status = part.status();
        if !status.voters.contains(&status.member) {
            seating = hall.seating(); // Only who votes listens.
        }
        if status.leader != Some(status.member) {
            led_since = None;
            continue;
        }
        let since = *led_since.get_or_insert(now);
        let charter = Arc::clone(&part.watch().borrow().charter);
        if let Err(trouble) = hall.see_to_votes(&part, &status, &charter).await {
            tracing::debug!(%trouble, "who votes stays as it is for now");
        }
        let heard = hall.heard(status.member);
        let moves = match hall.may_seat(&charter, heard.len(), now.saturating_sub(since)) {
            true => seating.moves(hall.now(), &charter, &heard),
            false => Vec::new(),
        };
        let seated = !charter.seats().is_empty() || !moves.is_empty();
        if !moves.is_empty() {
            let request = Request::one(request_id(), Change::Seats { moves });
            hall.propose(&part, request, "the move of seats").await;
        }
        // In an entry of its own: nothing that is said of a shadow meanwhile stops a move.
        let charter = Arc::clone(&part.watch().borrow().charter);
        let changes = match seated {
            true => seating.shadows(hall.now(), &charter),
            false => Vec::new(),
        };
        if !changes.is_empty() {
            let request = Request { id: request_id(), changes };
            hall.propose(&part, request, "the shadows of seats").await;
        }
        if let Some(gone) = hall.gone(&charter) {
            let change = Change::Leave { member: gone, if_generation: None };
            hall.propose(&part, Request::one(request_id(), change), "a member's leave").await;
        }
    }
}

impl Hall {
    pub(super) fn seating(&self) -> Seating {
        self.seating_after(self.chartered.rest())
    }

    /// The same, of one who has waited so far for final books, or longer.
    pub(super) fn seating_after(&self, rest: Duration) -> Seating {
        let suspect_after = self.chartered.suspect_after;
        Seating::new(Patience { suspect_after, rest, ..Patience::default() }, self.now())
    }

    /// The first seats are given when most members of the file belong to the charter: one that was
    /// founded a second time, from a directory that was lost, has no others, and decides nothing.
    /// All are waited for a little, so that everybody gets a share. One that has seats was begun
    /// with most, or goes on with fewer because somebody said so.
    fn may_seat(&self, charter: &Charter, heard: usize, led: Duration) -> bool {
        let all = self.config.members.len();
        let known = charter.members().values();
        let known =
            known.filter(|member| self.config.members.place(&member.name).is_some()).count();
        let waited = led > self.chartered.suspect_after;
        // Where files said who decides, whoever imports gives them, when all have given that up.
        let begins = !self.chartered.import;
        !charter.seats().is_empty() || begins && (known * 2 > all && (waited || heard >= all))
    }

    async fn see_to_votes(
        &self,
        part: &Part,
        status: &Status,
        charter: &Charter,
    ) -> Result<(), Trouble> {
        let (now, heard) = (self.now(), self.heard(status.member));
        let last = status.last.unwrap_or(0);
        let candidate = |(id, member): (&MemberId, &quorate_charter::Member)| {
            let silent = |at: Duration| now.saturating_sub(at) > self.chartered.suspect_after;
            let has = status.matched.get(id).copied().flatten();
            let ready = *id == status.member || has.is_some_and(|has| has + NEARLY >= last);
            Candidate {
                member: *id,
                zone: member.about.labels.get("zone").cloned(),
                votes: status.voters.contains(id),
                heard: heard.get(id).is_some_and(|heard| !silent(heard.at)),
                ready,
                leaving: member.leaving || self.is_unnamed(&member.name),
            }
        };
        let candidates: Vec<Candidate> = charter.members().iter().map(candidate).collect();
        let there: BTreeSet<MemberId> = status.voters.union(&status.learners).copied().collect();
        let known: BTreeSet<MemberId> = charter.members().keys().copied().collect();
        match votes::wanted(&candidates, VOTERS_WANTED) {
            Some(wanted) => {
                part.change_members(&wanted).await?;
                tracing::info!(voters = wanted.len(), "others vote over the charter from now on");
                Ok(())
            }
            // They follow first.
            None if there != known => part.change_members(&status.voters).await,
            None => Ok(()),
        }
    }

    /// Whether no file names it, where files say who is a member.
    fn is_unnamed(&self, name: &str) -> bool {
        !self.config.joins && self.config.members.place(name).is_none()
    }

    /// A member that is to leave, or that no file names any more, once it neither votes nor
    /// decides nor shadows.
    fn gone(&self, charter: &Charter) -> Option<MemberId> {
        let needed = |id: MemberId| {
            charter.seats().values().any(|seat| {
                let shadow = seat.shadow.map(|shadow| shadow.life.member);
                seat.life.member == id || shadow == Some(id)
            })
        };
        let gone = charter.members().iter().find(|(id, member)| {
            let unnamed = self.is_unnamed(&member.name);
            (member.leaving || unnamed) && member.role == Role::Learner && !needed(**id)
        });
        gone.map(|(id, _)| *id)
    }

    async fn propose(&self, part: &Part, request: Request, what: &str) {
        match part.propose(request).await {
            Ok(Ok(_)) => {}
            Ok(Err(refused)) => tracing::warn!(%refused, "{what}"),
            Err(trouble) => tracing::info!(%trouble, "{what}"),
        }
    }
}
