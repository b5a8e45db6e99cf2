//! Holds without a lease, as people and gateways see them.

use std::time::Duration;

use quorate_api::format_span;
use quorate_core::ClaimId;
use quorate_wire::survey::Survey;

use super::{Line, Picture};
use crate::config::PoolDef;
use crate::engine::Gathered;
use crate::keepsake::Keepsake;

/// A claim without a lease, as it is written down.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) id: ClaimId,
    pub(crate) granted: bool,
    pub(crate) kept: Keepsake,
}

/// Whether a claim that was asked about is over for good: so many have the newest copy of the
/// books, and not this claim, that no later copy can have it.
pub(crate) fn is_gone(def: &PoolDef, gathered: &Gathered<Survey>) -> bool {
    let editions = gathered.said.iter().map(|(_, survey)| survey.health.edition);
    let newest = editions.max().unwrap_or_default();
    let of_newest = || gathered.said.iter().filter(|(_, s)| s.health.edition == newest);
    let voters = def.quorums.as_ref().map_or(1, |worth| worth.summary.voters);
    of_newest().all(|(_, survey)| survey.books.is_empty()) && 2 * of_newest().count() > voters
}

impl Line {
    /// Whether it has no lease.
    pub(super) fn stands(&self) -> bool {
        self.kept.is_some() || self.home.as_ref().is_some_and(|(_, home)| home.standing)
    }

    /// Whether it has lasted for longer than such holds should.
    pub(super) fn is_overdue(&self, def: &PoolDef) -> bool {
        let most = def.overdue.filter(|_| self.stands() && self.granted());
        let held = || self.since_ms().map(Duration::from_millis);
        most.zip(held()).is_some_and(|(most, held)| held > most)
    }
}

impl Picture {
    /// Whether the pool can grant anything with the nodes that answer.
    pub(crate) fn grants_anything(&self) -> bool {
        self.grants.grants()
    }

    /// Claims without a lease of whose notes this is true, those that have their units first.
    pub(crate) fn noted(&self, is_it: impl Fn(&str) -> bool) -> Vec<Noted> {
        let kept =
            self.lines.iter().filter_map(|(id, line)| Some((*id, line, line.kept.as_ref()?)));
        let mut noted: Vec<Noted> = kept
            .filter(|(_, _, (kept, _))| is_it(&kept.note))
            .map(|(id, line, (kept, _))| Noted { id, granted: line.granted(), kept: kept.clone() })
            .collect();
        noted.sort_by_key(|noted| (!noted.granted, noted.kept.asked_ms, noted.id));
        noted
    }

    /// How many hold without a lease, and how many of them for longer than they should.
    pub(crate) fn standing(&self, def: &PoolDef) -> (u64, u64) {
        let standing = self.held().filter(|(_, line)| line.stands()).count() as u64;
        let overdue = self.held().filter(|(_, line)| line.is_overdue(def)).count() as u64;
        (standing, overdue)
    }

    pub(super) fn overdue_sentence(&self, def: &PoolDef) -> Option<String> {
        let most = format_span(def.overdue?);
        let overdue = match self.standing(def).1 {
            0 => return None,
            1 => "1 hold is".to_owned(),
            overdue => format!("{overdue} holds are"),
        };
        Some(format!(
            "ALARM: {overdue} overdue (no lease, and held for more than {most}): nothing ends them \
             but a release or `quorate revoke`"
        ))
    }
}
