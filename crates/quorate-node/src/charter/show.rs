//! What people see of the charter.

use std::sync::Arc;

use quorate_api::{BackupView, CharterMember, CharterView, Problem, SeatView};
use quorate_charter::{Council, Group};
use tokio::time::Instant;

use super::members::TO_DO;
use super::{Hall, Seated, Seats, locked};
use crate::config::{Config, PoolDef};

impl Hall {
    /// What is worth knowing before it hurts.
    pub(crate) fn weakness(&self) -> Option<String> {
        let slow = || locked(&self.rounds).problem(self.chartered.licence);
        self.alone().or_else(slow)
    }

    /// Whose loss would be one too many, if that is one member.
    fn alone(&self) -> Option<String> {
        let part = self.part()?;
        let voters = part.status().voters;
        let alone = voters.first().filter(|_| voters.len() == 1)?;
        let reading = part.watch().borrow().clone();
        let name = &reading.charter.members().get(alone)?.name;
        let all = match self.config.joins {
            true => reading.charter.members().len(),
            false => self.config.members.len(),
        };
        match all {
            0 | 1 => None,
            2 => Some(format!(
                "{name} alone votes over it, as one of two members must: while it is away no seat \
                 moves"
            )),
            _ => Some(format!(
                "{name} alone votes over it: do not lose it before others vote too, which they \
                 do a moment after they joined"
            )),
        }
    }

    /// Who decides over a pool whose seat moves, and who would without it.
    pub(crate) fn seat_view(&self, name: &str, def: &PoolDef, knows: bool) -> Option<SeatView> {
        let seated = self.seats()?.get(Group::of(name))?;
        seat_view(&self.config, seated, def, knows)
    }

    /// Who decides for which group of pools.
    pub(crate) fn seats(&self) -> Option<Seats> {
        let charter = Arc::clone(&self.part()?.watch().borrow().charter);
        Some(Seats::of(&charter, &self.config))
    }

    /// The charter, with every change that was answered as done before.
    ///
    /// # Errors
    /// No majority confirms it.
    pub(crate) async fn backup(&self) -> Result<BackupView, Problem> {
        let (_, charter) = self.look(Instant::now() + TO_DO).await?;
        Ok(BackupView {
            version: charter.version(),
            incarnation: charter.incarnation(),
            members: charter.members().values().map(|member| member.name.clone()).collect(),
            pools: charter.pools().len() as u64,
            charter: charter.to_text(),
        })
    }

    /// How the charter stands, as far as this node knows.
    pub(crate) fn view(&self) -> CharterView {
        let Some(part) = self.part() else {
            return CharterView { problem: self.standing(), ..CharterView::default() };
        };
        let (status, reading) = (part.status(), part.watch().borrow().clone());
        let (charter, now) = (reading.charter, self.now());
        let heard = locked(&self.heard).clone();
        let name_of = |id| charter.members().get(&id).map(|member| member.name.clone());
        let member = |(id, member): (&quorate_charter::MemberId, &quorate_charter::Member)| {
            let node = self.config.members.place(&member.name);
            let at = node.and_then(|node| heard.get(&node)).map(|seen| seen.at);
            let ago = at.map(|at| now.saturating_sub(at).as_millis());
            let its = charter.seats().values().filter(|seat| seat.life.member == *id);
            let whole = |seat: &&quorate_charter::Seat| seat.shadow.is_some_and(|it| it.whole);
            let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            CharterMember {
                name: member.name.clone(),
                votes: status.voters.contains(id),
                draining: member.draining,
                groups: count(its.clone().count()),
                shadowed: count(its.filter(whole).count()),
                heard_ms: ago.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)),
            }
        };
        CharterView {
            version: charter.version(),
            leader: status.leader.and_then(name_of),
            members: charter.members().iter().map(member).collect(),
            problem: match (&status.stopped, status.leader) {
                _ if self.standing().is_some() => self.standing(),
                (Some(why), _) => Some(format!("this node's part has stopped: {why}")),
                (None, None) => Some("nobody leads it now: who decides stays as it is".into()),
                (None, Some(_)) => self.unmoved(&charter).or_else(|| self.weakness()),
            },
        }
    }
}

/// Who decides over a pool and who would without it, if that `knows` all of this pool too, and what
/// it would cost if the first one crashed.
pub(crate) fn seat_view(
    config: &Config,
    seated: Seated,
    def: &PoolDef,
    knows: bool,
) -> Option<SeatView> {
    let chartered = config.charter.filter(|_| def.protocol.about.seat_moves)?;
    let name =
        |node: quorate_core::NodeId| config.members.get(node.index()).map(|it| it.name.clone());
    let shadow = seated.shadow.filter(|_| def.protocol.about.shadowed);
    let whole = knows && shadow.is_some_and(|shadow| shadow.whole);
    let pause = match whole {
        true => chartered.suspect_after,
        false => chartered.pause(&def.lease),
    };
    Some(SeatView {
        node: name(seated.tenure.node)?,
        term: seated.tenure.term,
        shadow: shadow.and_then(|shadow| name(shadow.node)),
        whole,
        crash_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
    })
}
