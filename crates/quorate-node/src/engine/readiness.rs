//! Whether this node can serve its clients: the checks of `/readyz`, and which pools can grant.

use std::time::Duration;

use quorate_api::{Check, GrantsView, Hindrance, HindranceKind, Problem};
use quorate_core::{Moment, NodeSet, Outlook};
use quorate_wire::outlook::OutlookLine;

use super::Engine;
use super::pools::Pool;
use crate::admission;
use crate::boot::Past;
use crate::clock;
use crate::outlook::Words;

/// Most pools that are looked at for one answer. Where more are in use it is about those that came
/// into use first, and those that granted nothing when they had their turn ([`super::states`]).
pub(super) const LOOKED_AT: usize = 10_000;
/// Most pools that a check names.
const NAMED_MAX: usize = 10;

impl Engine {
    pub(super) fn checks(&self) -> Vec<Check> {
        let check = |name: &str, ok, detail: String| Check { name: name.into(), ok, detail };
        let (up, all) = (self.peers.connected() + 1, self.members());
        let stopped = self.metrics.seats_stopped.get();
        let grace = self.grace_left();
        let waits = quorate_api::format_span(grace);
        let grace_text = if grace.is_zero() {
            "over".to_owned()
        } else {
            let why = match self.past {
                Past::Unknown => "; the data directory was empty, not whole or of other pools",
                Past::Nothing | Past::Same { .. } => "",
            };
            format!("waiting {waits} more until promises of earlier starts are over{why}")
        };
        let now = clock::now();
        let unjoined = self.unjoined(now);
        let joined = if unjoined.is_empty() { "yes".to_owned() } else { unjoined.join("; ") };
        let journal = self.journal_failed.clone().unwrap_or_else(|| "fine".into());
        let (useful, pools) = self.pools_check(now);
        // It goes on with what it has: a reason to look, and none to send clients away.
        let files = match self.config.guarded.refused() {
            None => "fine".to_owned(),
            Some(why) => format!("those of before are in use, the last were {why}"),
        };
        let mut checks = vec![
            check("members", up > all / 2, format!("{up} of {all} are connected")),
            check("pools", useful, pools),
            check("grace", grace.is_zero(), grace_text),
            check("joined", unjoined.is_empty(), joined),
            check("journal", self.journal_failed.is_none(), journal),
            check("seats", stopped == 0, format!("{stopped} stopped")),
            check("files", true, files),
            check("running", !self.stopping, if self.stopping { "stopping" } else { "yes" }.into()),
        ];
        if let Some(hall) = self.charter.hall() {
            let why = hall.standing();
            let weak = || hall.weakness().map(|it| format!("; {it}")).unwrap_or_default();
            let part = || format!("member{}", weak());
            // While files say who decides, nobody waits for it.
            let imports = self.config.charter.is_some_and(|charter| charter.import);
            let ok = why.is_none() || imports && !self.charter.has_begun();
            checks.push(check("charter", ok, why.unwrap_or_else(part)));
            // What a crash would cost is no reason to send clients away.
            checks.push(check("shadows", true, self.shadows_check()));
            // Nor is that others decide who is let in here: with what it knows it goes on.
            checks.push(check("tokens", true, self.tokens_check(hall.distrust())));
        }
        checks
    }

    /// Whether a client has anything to gain here, and which pools grant nothing. A node is of no
    /// use when none of its pools grants; while some do, clients of those need it.
    fn pools_check(&self, now: Moment) -> (bool, String) {
        let away = self.suspects();
        let (mut blocked, mut named) = (0, Vec::new());
        let firsts = 0..self.pools.len().min(LOOKED_AT);
        let stalled = self.stalled.range(firsts.end..).take(LOOKED_AT).copied();
        let seen = firsts.chain(stalled).map(|seat| &self.pools[seat]);
        let mut looked_at = 0;
        for pool in seen {
            looked_at += 1;
            let outlook = self.outlook_of(pool, &away, now);
            if outlook.as_ref().is_some_and(|outlook| outlook.sizes.is_some()) {
                continue;
            }
            blocked += 1;
            if named.len() < NAMED_MAX {
                let hindrance = self.grants_view(pool, &away, now).hindrance;
                let why = hindrance.map(|it| it.summary).unwrap_or_default();
                named.push(format!("{} ({why})", pool.name));
            }
        }
        let all = self.pools.len();
        if blocked == 0 {
            return (true, format!("all {all} in use can grant"));
        }
        let more = if blocked > named.len() { ", ..." } else { "" };
        let text = format!("{blocked} of {all} grant nothing: {}{more}", named.join(", "));
        (blocked < looked_at, text)
    }

    /// Whether the tokens of the charter are good here.
    fn tokens_check(&self, distrust: Option<&'static str>) -> String {
        let hidden = self.config.guarded.hidden();
        match (distrust, &hidden[..]) {
            (Some(why), _) => why.to_owned(),
            (None, []) => "as a majority confirmed them, and every change since".to_owned(),
            (None, hidden) => format!(
                "worth nothing here, since this node's file has the same name or token: {}",
                hidden[..hidden.len().min(NAMED_MAX)].join(", ")
            ),
        }
    }

    /// Which pools would grant nothing for a lease if this node crashed.
    fn shadows_check(&self) -> String {
        if self.config.charter.is_some_and(|charter| charter.import) && !self.charter.has_begun() {
            return "there are none before `quorate cluster import`".into();
        }
        let (bare, all) = self.unshadowed(NAMED_MAX);
        if bare.is_empty() {
            return "another node would decide at once over every pool decided here".into();
        }
        let named: Vec<&str> = bare.iter().map(|pool| &*pool.name).collect();
        let more = if all > named.len() { ", ..." } else { "" };
        let costs = bare.iter().filter_map(|pool| self.seat_view(pool)).map(|it| it.crash_ms).max();
        let costs = quorate_api::format_span(Duration::from_millis(costs.unwrap_or(0)));
        format!(
            "{all} decided here have no whole shadow: without this node they would grant nothing \
             new for {costs}: {}{more}",
            named.join(", ")
        )
    }

    /// Whom this node misses.
    pub(super) fn suspects(&self) -> NodeSet {
        self.watch.suspects().collect()
    }

    /// What a pool can grant as this node sees it; nothing if its seat has stopped.
    pub(super) fn outlook_of(&self, pool: &Pool, away: &NodeSet, now: Moment) -> Option<Outlook> {
        let outlook = pool.stopped().is_none().then(|| pool.seat.outlook(now, away)).flatten()?;
        Some(self.with_licence(pool, outlook, now))
    }

    /// The same, for other nodes.
    pub(super) fn outlook_line(&self, pool: &Pool, now: Moment) -> Option<OutlookLine> {
        let outlook = self.outlook_of(pool, &self.suspects(), now)?;
        Some(OutlookLine::new(&outlook, &pool.seat.health(now)))
    }

    /// The same, for people.
    pub(super) fn grants_view(&self, pool: &Pool, away: &NodeSet, now: Moment) -> GrantsView {
        let grace = pool.seat.grace_until().map(|until| until.since(now).as_millis());
        let words = Words {
            config: &self.config,
            units: pool.def.units,
            grace_ms: grace.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)),
            who: Some(self.config.name()),
        };
        match self.outlook_of(pool, away, now) {
            Some(outlook) => words.view(&outlook),
            None => GrantsView {
                smallest: 0,
                largest: 0,
                hindrance: Some(Hindrance {
                    kind: HindranceKind::Stopped,
                    summary: "it found a contradiction in itself and stopped".to_owned(),
                    nodes: vec![self.config.name().to_owned()],
                    voters: None,
                    needed: None,
                    units_lost: None,
                    for_ms: None,
                }),
            },
        }
    }

    /// What this node can say of a pool, which need not be in use.
    pub(super) fn grants(&self, name: &str) -> Result<GrantsView, Problem> {
        let away = self.suspects();
        if let Some(seat) = self.by_name.get(name) {
            let pool = &self.pools[*seat];
            let view = self.grants_view(pool, &away, clock::now());
            return Ok(self.planted.grants(view, pool.def.units));
        }
        let def = self.config.pool(name).ok_or_else(|| admission::unknown_pool(name))?;
        let outlook = def.protocol.grants(name, self.config.members.len(), &away);
        let (config, units) = (&*self.config, def.units);
        Ok(Words { config, units, grace_ms: None, who: None }.view(&outlook))
    }
}
