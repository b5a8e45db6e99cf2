//! Seats, made when their pool is first used, and what is told about them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quorate_api::{ClaimState, Line, NodeView, PoolView, Problem, ProblemKind, QuorumsView, Want};
use quorate_core::{ClaimId, Moment, Share, Tenure, Unit};
use quorate_protocols::allocator::labels::Labels;
use quorate_protocols::voting::Worth;
use quorate_wire::glance::What;
use quorate_wire::survey::{
    BookLine, EndLine, FACTS_MAX, FactLine, HealthLine, HomeClaim, LINES_MAX, Labelled, ShortLine,
    Survey,
};

use super::licences::Decides;
use super::orders::own_labels;
use super::rest::Stir;
use super::states::State as SeatState;
use super::{Engine, RecordError};
use crate::admission;
use crate::boot::Past;
use crate::clock;
use crate::config::{Names, PoolDef};
use crate::convert;
use crate::ledger::{Claimed, Ledger, State, Terms};
use crate::metrics::PoolMeters;
use crate::seat::{AnySeat, Origin, Place, SeatEffect, SeatError};
use crate::selection::Known;

/// Most units of one claim, and most characters of a text, that other nodes are told for people to
/// see. A survey must fit in one frame.
const UNITS_SHOWN: usize = 100;
const TEXT_SHOWN: usize = 256;
/// Most bytes of labels that a claim asks for, likewise.
const LABELS_SHOWN: usize = 512;
/// Most drained units in one list, and most claims of which it is found out what they are short of.
const DRAINED_LISTED: usize = 1000;
const EXPLAINED: usize = 32;
/// Most claims that compete for the same units, by name.
const RIVALS_SHOWN: usize = 100;
/// A pool in use at this node: its seat, and the claims of our clients.
pub(super) struct Pool {
    pub(super) name: Arc<str>,
    pub(super) def: Arc<PoolDef>,
    pub(super) seat: Box<dyn AnySeat>,
    pub(super) ledger: Ledger,
    pub(super) terms: Terms,
    /// Units that have other labels than the configuration says, as far as this node knows.
    pub(super) relabelled: Labelled,
    /// What it is counted as...
    pub(super) label: Arc<str>,
    /// ...and where.
    pub(super) meters: Arc<PoolMeters>,
    /// The last record submitted: what follows waits until it is on disk...
    pub(super) barrier: u64,
    /// ...in here.
    pub(super) held: VecDeque<(u64, SeatEffect)>,
    /// Claims that were granted, and of whose grant nobody was told yet.
    pub(super) untold: BTreeSet<ClaimId>,
    /// When it is rung next, as the heap of alarms knows it.
    pub(super) rings_at: Option<Moment>,
    /// What its seat told about itself when that was last looked at.
    pub(super) states: BTreeSet<SeatState>,
    /// Whether it granted nothing at the last look.
    pub(super) stalled: bool,
    /// If this node decides over it where that may change.
    pub(super) decides: Option<Decides>,
    pub(super) stir: Stir,
    stopped: Option<String>,
}

impl Pool {
    /// Gives back room that it does not need.
    pub(super) fn rest(&mut self) {
        self.seat.rest();
        self.ledger.rest();
        self.held.shrink_to_fit();
        if self.untold.is_empty() {
            self.untold = BTreeSet::new();
        }
    }

    /// What this node knows of its units.
    pub(super) fn known(&self) -> Known<'_> {
        // What a pool of the charter is every node knows.
        let settled = !self.def.protocol.about.relabels || self.def.ever.is_some();
        let decides = settled || own_labels(self).is_some();
        Known { labels: self.terms.labels.as_ref(), decides }
    }

    /// Whether it was deleted, and nobody holds anything of it as far as this node knows.
    pub(super) fn is_gone(&self) -> bool {
        self.def.deleted && self.ledger.live().next().is_none() && {
            let mut empty = true;
            self.seat.ledger(&mut |_| empty = false);
            empty
        }
    }

    /// Why nothing can be asked of this pool, if its seat has stopped.
    pub(super) fn stopped(&self) -> Option<Problem> {
        self.stopped.as_ref().map(|why| {
            let text = format!(
                "pool {} on this node found a contradiction in itself and stopped: {why}. \
                 Its leases end by themselves; restart the node, and please report this",
                self.name
            );
            Problem::new(ProblemKind::SeatStopped, text)
        })
    }
}

impl Engine {
    pub(super) fn first_seats(&mut self) -> Result<(), RecordError> {
        let config = Arc::clone(&self.config);
        let named = config.pools.iter().filter_map(|def| match &def.names {
            Names::One(name) => Some(Arc::from(name.as_str())),
            Names::Like { .. } => None,
        });
        let recorded: Vec<Arc<str>> = self.records.keys().cloned().collect();
        for name in named.chain(recorded) {
            let Some(def) = config.in_file(&name).filter(|_| !self.by_name.contains_key(&name))
            else {
                continue;
            };
            self.take_seat(&name, def, None)
                .map_err(|error| RecordError { pool: name.to_string(), error })?;
        }
        Ok(())
    }

    /// The seat of this pool, made if this is its first use.
    pub(super) fn seat(&mut self, name: &str) -> Result<usize, Problem> {
        if let Some(seat) = self.by_name.get(name) {
            return Ok(*seat);
        }
        let config = Arc::clone(&self.config);
        let def = config.pool(name).ok_or_else(|| admission::unknown_pool(name))?;
        if self.pools.len() >= config.limits.pools {
            return Err(admission::limit(
                "pools",
                config.limits.pools,
                "pools in use at this node",
            ));
        }
        let born = self.unpromised(name, &def);
        self.take_seat(&Arc::from(name), &def, born)
            .map_err(|error| Problem::new(ProblemKind::SeatStopped, error.to_string()))
    }

    /// With a tenure, the pool was made while this life of this node decided by it: nobody can
    /// have any of it yet.
    pub(super) fn take_seat(
        &mut self,
        name: &Arc<str>,
        def: &Arc<PoolDef>,
        born: Option<Tenure>,
    ) -> Result<usize, SeatError> {
        let place = Place {
            name: Arc::clone(name),
            me: self.config.me,
            boot: self.boot,
            since: self.since,
            grace: def.grace.max(self.before.by(name)),
        };
        let origin = match self.past {
            _ if born.is_some() => Origin::First,
            Past::Nothing => Origin::First,
            Past::Same { complete } if def.protocol.about.reads_records => {
                match self.records.remove(name) {
                    None if !complete => Origin::Amnesia,
                    record => Origin::Recovered(record),
                }
            }
            Past::Same { .. } | Past::Unknown => Origin::Amnesia,
        };
        let mut effects = std::mem::take(&mut self.effects);
        let members = self.config.members.len();
        let seat = def.protocol.rules.take_seat(place, members, origin, &mut effects)?;
        let (label, meters) = self.meters_of(def, seat.kinds());
        let index = self.pools.len();
        self.pools.push(Pool {
            name: Arc::clone(name),
            def: Arc::clone(def),
            seat,
            ledger: Ledger::default(),
            terms: Terms::of(def),
            relabelled: Vec::new(),
            label,
            meters,
            barrier: 0,
            held: VecDeque::new(),
            untold: BTreeSet::new(),
            rings_at: None,
            states: BTreeSet::new(),
            stalled: false,
            decides: None,
            stir: Stir::default(),
            stopped: None,
        });
        self.by_name.insert(Arc::clone(name), index);
        self.in_order.insert(Arc::clone(name), index);
        self.learn_own_labels(index);
        self.metrics.seats.inc();
        for effect in effects.drain(..) {
            self.perform(index, effect, self.since);
        }
        self.effects = effects;
        self.schedule(index);
        self.tell_suspects(index);
        self.tell_tenure(index, born);
        self.learn_decider(index);
        Ok(index)
    }

    /// A seat found a contradiction in itself: it does nothing more, and says so.
    pub(super) fn stop_seat(&mut self, seat: usize, why: &str) {
        let pool = &mut self.pools[seat];
        if pool.stopped.is_some() {
            return;
        }
        tracing::error!(pool = %pool.name, why, "the seat contradicts itself and stops");
        pool.stopped = Some(why.to_owned());
        let text = format!("pool {} found a contradiction in itself: {why}", pool.name);
        self.history.note_node(What::Stopped, self.config.name(), &text);
        self.metrics.seats_stopped.inc();
        if let Some(problem) = self.pools[seat].stopped() {
            self.pools[seat].ledger.dismiss(&problem);
        }
        self.need_not_vouch(seat);
    }

    /// What this node knows of a pool, or of one claim in it.
    pub(super) fn survey(&self, name: &str, only: Option<ClaimId>) -> Survey {
        let Some(pool) = self.by_name.get(name).map(|seat| &self.pools[*seat]) else {
            return Survey::default();
        };
        let now = clock::now();
        let wanted = |id: &ClaimId| only.is_none_or(|only| only == *id);
        let mut claims: Vec<HomeClaim> = pool
            .ledger
            .all()
            .filter(|(id, _)| wanted(id))
            .filter_map(|(id, claimed)| home_claim(*id, claimed, self.boot, now))
            .collect();
        let mut books = Vec::new();
        pool.seat.ledger(&mut |entry| {
            if wanted(&entry.claim) {
                books.push(BookLine::new(&entry));
            }
        });
        let shortages = shortages(pool, &books, now);
        // Whoever is next matters most.
        books.sort_by_key(|line| (line.granted(), line.stamp(), line.claim()));
        let age = |claim: &HomeClaim| std::cmp::Reverse(claim.since_micros);
        claims.sort_by_key(|claim| (claim.shares.is_some(), age(claim), claim.claim));
        let left_out =
            claims.len().saturating_sub(LINES_MAX) + books.len().saturating_sub(LINES_MAX);
        keep_both_ends(&mut books, BookLine::granted);
        keep_both_ends(&mut claims, |claim| claim.shares.is_some());
        Survey {
            claims,
            books,
            left_out: left_out as u64,
            health: HealthLine::new(&pool.seat.health(now)),
            outlook: self.outlook_line(pool, now),
            facts: facts(pool, now),
            grace_micros: pool.seat.grace_until().map(|until| micros(until.since(now))),
            stopped: pool.stopped.is_some(),
            drained: drained(pool),
            relabelled: pool.relabelled.clone(),
            labels_known: own_labels(pool).is_some(),
            shortages,
            ended: only.and_then(|id| end_line(pool.ledger.get(&id)?)),
        }
    }

    pub(super) fn node_view(&self) -> NodeView {
        let checks = self.checks();
        let clients = u64::try_from(self.metrics.clients.get()).unwrap_or(0);
        NodeView {
            name: self.config.name().to_owned(),
            cluster: self.config.cluster.clone(),
            epoch: self.config.epoch,
            boot: self.boot,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: checks.iter().all(|check| check.ok),
            checks,
            peers: self.peers.views(&self.config, &self.watch),
            claims: self.active as u64,
            clients,
            charter: self.charter.hall().map(crate::charter::Hall::view),
        }
    }

    /// For how long some pool of ours may yet have to respect promises that it has forgotten.
    pub(super) fn grace_left(&self) -> Duration {
        let forgot = |def: &&Arc<PoolDef>| match self.past {
            Past::Nothing => false,
            Past::Same { .. } if !def.protocol.about.durable => true,
            Past::Same { complete } => match &def.names {
                // Its record may say that the last start was in grace.
                Names::One(name) => {
                    let seat = self.by_name.get(name.as_str()).map(|seat| &self.pools[*seat].seat);
                    seat.is_some_and(|seat| seat.grace_until().is_some())
                }
                Names::Like { .. } => !complete,
            },
            Past::Unknown => true,
        };
        let own = |def: &Arc<PoolDef>| def.grace.max(self.before.by_any(&def.names));
        let longest = self.config.pools.iter().filter(forgot).map(own).max();
        let until = longest.map(|grace| self.since.after(grace));
        until.map_or(Duration::ZERO, |until| until.since(clock::now()))
    }
}

fn quorums_view(worth: &Worth) -> QuorumsView {
    let Worth { mode, family, naming, summary } = worth;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    QuorumsView {
        mode: (*mode).to_owned(),
        family: family.clone(),
        naming: *naming,
        voters: count(summary.voters),
        smallest: count(summary.quorum.0),
        largest: count(summary.quorum.1),
        survives: count(summary.survives),
        availability: summary.availability,
        load: summary.load,
        messages: summary.messages,
    }
}

/// A pool as the configuration describes it, with the labels that its units have now.
pub(crate) fn pool_view(
    name: &str,
    def: &PoolDef,
    labels: Option<&Labels>,
    members: usize,
) -> PoolView {
    PoolView {
        name: name.to_owned(),
        units: def.units,
        unit_names: def.unit_names.clone(),
        unit_labels: unit_labels(def, labels),
        protocol: def.protocol.name().to_owned(),
        terms: def.protocol.about.terms.clone(),
        bound: def.protocol.about.bound.map(str::to_owned),
        awaits: def.protocol.about.awaits.to_owned(),
        lease_ms: u64::try_from(def.lease.length().as_millis()).unwrap_or(u64::MAX),
        drift_ppm: def.lease.drift_ppm(),
        names_units: def.promises.names_units,
        overtakes_max: def.promises.overtakes_max,
        survives: def.survives(members),
        quorums: def.quorums.as_ref().map(quorums_view),
        grants: None,
        needs: Vec::new(),
        seat: None,
        durable: def.protocol.about.durable,
        standing: def.standing,
        overdue_ms: def.overdue.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        held: None,
        free: None,
        waiting: None,
        drained: Vec::new(),
        relabelled: Vec::new(),
        outcome: None,
        shortages: Vec::new(),
        grace_ms: None,
        troubles: Vec::new(),
        facts: Vec::new(),
        silent: Vec::new(),
    }
}

fn unit_labels(def: &PoolDef, labels: Option<&Labels>) -> Vec<BTreeMap<String, String>> {
    let Some(labels) = labels else { return Vec::new() };
    (0..def.units).filter_map(|unit| labels.of(Unit(unit)).cloned()).collect()
}

fn drained(pool: &Pool) -> Vec<u32> {
    let mut units = Vec::new();
    pool.seat.drained(&mut |unit, _| {
        if units.len() < DRAINED_LISTED && unit.0 < pool.def.units {
            units.push(unit.0);
        }
    });
    units
}

/// What the oldest claims that wait are short of, each kind of shortage once.
fn shortages(pool: &Pool, books: &[BookLine], now: Moment) -> Vec<ShortLine> {
    let mut lines: Vec<ShortLine> = Vec::new();
    if pool.def.labels().is_none() {
        return lines; // Where units are alike, the counts say it all.
    }
    let mut waiting: Vec<&BookLine> = books.iter().filter(|line| !line.granted()).collect();
    waiting.sort_by_key(|line| line.stamp());
    for id in waiting.into_iter().take(EXPLAINED).map(BookLine::claim) {
        let Some(short) = pool.seat.explain(now, id) else { continue };
        let claim = (id.origin, id.serial);
        let units: Vec<u32> = short.units.iter().map(|unit| unit.0).collect();
        let (holders, waiting) = (short.holders.len() as u32, short.waiting.len() as u32);
        let rivals = short.waiting.iter().take(RIVALS_SHOWN).map(|id| (id.origin, id.serial));
        let (claims, rivals) = (vec![claim], rivals.collect());
        let line = ShortLine { claims, units, free: short.free, holders, waiting, rivals };
        match lines.iter_mut().find(|known| known.units == line.units) {
            Some(known) => known.claims.push(claim),
            None => lines.push(line),
        }
    }
    lines
}

fn facts(pool: &Pool, now: Moment) -> Vec<FactLine> {
    let mut facts = Vec::new();
    pool.seat.facts(now, &mut |fact| {
        if facts.len() < FACTS_MAX {
            facts.push(FactLine::new(&fact));
        }
    });
    facts
}

/// A claim as others may see it; none if it is over. One that was revoked and not released may
/// still be in use, and is shown.
fn home_claim(id: ClaimId, claimed: &Claimed, boot: u32, now: Moment) -> Option<HomeClaim> {
    let mut home = HomeClaim {
        claim: (id.origin, id.serial),
        units: claimed.want.units(),
        client: claimed.want.client.chars().take(TEXT_SHOWN).collect(),
        reason: claimed.want.reason.chars().take(TEXT_SHOWN).collect(),
        lines: shown_lines(&claimed.want.lines),
        shares: None,
        moves: Vec::new(),
        since_micros: micros(now.since(claimed.made)),
        left_micros: 0,
        standing: claimed.want.standing,
        revoked: None,
        boot,
        grant: claimed.grant,
    };
    match &claimed.state {
        State::Waiting => {}
        State::Shown { .. } => return None,
        State::Granted { shares, until, since } => {
            let shown = shares.iter().take(UNITS_SHOWN);
            home.shares = Some(shown.map(|s| (s.unit.0, s.fence.0)).collect());
            home.since_micros = micros(now.since(*since));
            home.left_micros = micros(until.since(now));
            home.standing |= *until == Moment::NEVER;
            let share = |share: Share| (share.unit.0, share.fence.0);
            let moves = claimed.moves.iter().take(UNITS_SHOWN);
            home.moves = moves.map(|it| (share(it.from), share(it.to))).collect();
        }
        State::Over { state: ClaimState::Revoked, why, waited, .. } => {
            let (shares, until) = claimed.left.as_ref().filter(|(_, until)| *until > now)?;
            let shown = shares.iter().take(UNITS_SHOWN);
            home.shares = Some(shown.map(|s| (s.unit.0, s.fence.0)).collect());
            home.since_micros = micros(now.since(claimed.made).saturating_sub(*waited));
            home.left_micros = micros(until.since(now));
            home.revoked = Some(why.chars().take(TEXT_SHOWN).collect());
        }
        State::Over { .. } => return None,
    }
    Some(home)
}

/// How a claim ended that was made here.
fn end_line(claimed: &Claimed) -> Option<EndLine> {
    let State::Over { state, why, .. } = &claimed.state else { return None };
    let text = |text: &str| text.chars().take(TEXT_SHOWN).collect();
    let Want { client, reason, .. } = &claimed.want;
    (!claimed.is_hearsay()).then(|| EndLine {
        how: convert::end(*state),
        why: text(why),
        units: claimed.want.units(),
        client: text(client),
        reason: text(reason),
    })
}

/// What a claim asks for, as far as there is room.
fn shown_lines(lines: &[Line]) -> Vec<(u32, BTreeMap<String, String>)> {
    let mut room = LABELS_SHOWN;
    let mut fits = |line: &&Line| {
        let words = line.labels.iter().map(|(key, value)| key.len() + value.len());
        let left = room.checked_sub(words.sum());
        room = left.unwrap_or(0);
        left.is_some()
    };
    let shown = lines.iter().take_while(&mut fits);
    shown.map(|line| (line.units, line.labels.clone())).collect()
}

/// Half the room for those who wait and half for those who hold, if there are too many of both.
fn keep_both_ends<T>(lines: &mut Vec<T>, granted: impl Fn(&T) -> bool) {
    if lines.len() <= LINES_MAX {
        return;
    }
    let waiting = lines.partition_point(|line| !granted(line));
    let holding = lines.len() - waiting;
    let keep_waiting = waiting.min(LINES_MAX - holding.min(LINES_MAX / 2));
    let keep_holding = holding.min(LINES_MAX - keep_waiting);
    lines.drain(keep_waiting..waiting);
    lines.truncate(keep_waiting + keep_holding);
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
