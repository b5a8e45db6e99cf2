//! The engine: one owner of every seat, every claim and every link of a node.
//!
//! Whatever happens, at a client's connection, at a peer's, on the disk or on the clock, arrives
//! here: what clients ask about claims over the `desk`, all else as a [`Command`]. The engine turns
//! it into an event for a seat, performs the seat's effects in order, and answers. One task at a
//! time works with it, and with all of it, so the order of effects is the order in which things are
//! done. The engine never waits for anybody: answers go into queues that are bounded by what was
//! asked.
//!
//! * `amended`: pools that are changed while they run;
//! * `charter`: who decides where that may change;
//! * `claims`: what clients ask;
//! * `copies`: claims that were asked for at several nodes;
//! * `desk`: how one task after the other works with the engine;
//! * `effects`: what seats want done, and the barrier of the journal;
//! * `gather`: what nodes ask each other, and what they answer;
//! * `glance`: what an operator sees, and the record of what happened;
//! * `hints`: which other node decides, said to clients;
//! * `licences`: that this node may decide;
//! * `links`: what peers say;
//! * `lists`: lists of pools, a part at a time;
//! * `measure`: what is counted of pools;
//! * `orders`: what operators order, and what came of it;
//! * `owners`: whose claims are;
//! * `shadows`: who would go on without this node;
//! * `suspicion`: which peers have been silent for too long;
//! * `states`: what begins and ends in what seats tell about themselves;
//! * `presence`: claims that nobody is there for;
//! * `pools`: seats, made when their pool is first used, and what is told about them.

mod amended;
mod charter;
mod claims;
mod copies;
mod desk;
#[cfg(test)]
mod desk_tests;
mod effects;
mod gather;
mod glance;
mod hints;
mod licences;
mod links;
mod lists;
mod measure;
#[cfg(test)]
mod order_tests;
mod orders;
mod owners;
mod pools;
mod presence;
mod readiness;
mod rest;
#[cfg(test)]
mod shadow_tests;
mod shadows;
mod states;
mod suspicion;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unused_tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quorate_api::{
    Change, Check, GrantsView, NodeView, Problem, ProblemKind, RegisterView, Want, told_start,
};
use quorate_core::{ClaimId, Dice, Event, Moment, NodeId, Shares};
use quorate_wire::glance::What;
use quorate_wire::order::{Done, Ordered};
use quorate_wire::survey::{Answer, Question};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::alarms::{Alarms, Due};
use crate::boot::{Boot, Past, Promised};
use crate::caller::Caller;
use crate::charter::FromCharter;
use crate::clock::{self, Calendar};
use crate::config::Config;
use crate::crowd::Crowd;
use crate::history::History;
use crate::journal::{Journal, Records};
use crate::ledger::Waiter;
use crate::metrics::Metrics;
use crate::planted::Planted;
use crate::register::Register;
use crate::seat::{AnySeat, FirstDue, SeatEffect, SeatError, SeatEvent};

pub(crate) use charter::Chartered;
use charter::Known;
use copies::Copies;
pub(crate) use desk::Desk;
pub(crate) use gather::Gathered;
use gather::Gathering;
use links::Peers;
pub(crate) use links::{PeerEvent, hello};
pub(crate) use lists::{POOLS_LISTED, Used};
use measure::{PoolMeterCache, Reading};
use orders::Orders;
pub(crate) use orders::{check_labels, current as current_labels};
use owners::Owners;
use pools::Pool;
pub(crate) use pools::pool_view;
use rest::RESTED;
use suspicion::Watch;

/// Commands taken at once, before links are flushed and alarms are looked at.
const BATCH: usize = 512;
/// How often peers are shown that we live.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a claim that is over is remembered, unless there are too many.
const REMEMBER: Duration = Duration::from_secs(600);

/// Something for the engine to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// A client wants something, and may.
    Client { caller: Caller, request: Request },
    /// A connection to a peer.
    Peer(PeerEvent),
    /// Word from the charter.
    Charter(FromCharter),
    /// What was granted then was told to a client that had hung up.
    Unread { pool: String, id: ClaimId, since: Moment },
    /// The node is stopping: everybody who waits is told.
    Stop(oneshot::Sender<()>),
}

/// What a client wants. Which rights that takes: `caller`.
#[derive(Debug)]
pub(crate) enum Request {
    /// Something about a claim.
    Claim { pool: String, id: ClaimId, ask: Ask, waiter: Waiter },
    /// What all nodes know.
    Gather { question: Question, reply: oneshot::Sender<Result<Gathered<Answer>, Problem>> },
    /// Something that all nodes are to do, once under this id.
    Order {
        pool: String,
        what: Ordered,
        id: Option<u128>,
        reply: oneshot::Sender<Result<Gathered<Done>, Problem>>,
    },
    /// What this node knows of pools in use here, with names after this one.
    Pools { after: String, reply: oneshot::Sender<Used> },
    /// How this node is...
    Node(oneshot::Sender<NodeView>),
    /// ...and only whether it is ready.
    Checks(oneshot::Sender<Vec<Check>>),
    /// What this node granted in a pool after the event of this number, and what became of it.
    Register { pool: String, after: u64, reply: oneshot::Sender<Result<RegisterView, Problem>> },
    /// Whose a claim is, if this node knows it.
    Owner { pool: String, id: ClaimId, reply: oneshot::Sender<Option<String>> },
    /// Whether a claim was made or shown here.
    Seen { pool: String, id: ClaimId, reply: oneshot::Sender<bool> },
    /// Which claims a pool can grant, as this node sees it.
    Grants { pool: String, reply: oneshot::Sender<Result<GrantsView, Problem>> },
    /// To see a pool heal.
    Corrupt { pool: String, reply: oneshot::Sender<Result<(), Problem>> },
    /// To let a pool know that a node was cut off from what its units protect.
    Fence { pool: String, node: String, reply: oneshot::Sender<Result<(), Problem>> },
    /// To read the gauges.
    Measure(oneshot::Sender<()>),
}

/// What a client asks about a claim.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Make it, or say how it stands; if it waits, answer now or when it no longer does.
    /// Without anybody who waits for it, it is kept for a lease, or for as long as is said here.
    Claim { want: Want, wait: bool, keep: Option<Duration> },
    /// Extend its lease.
    Renew { shown: Option<Shares>, client: String },
    /// End it: released if it is granted, cancelled if it waits.
    End,
    /// Say how it stands; if it waits, now or when it no longer does.
    Status { wait: bool },
}

/// See the module.
pub(crate) struct Engine {
    config: Arc<Config>,
    metrics: Arc<Metrics>,
    changes: broadcast::Sender<Change>,
    planted: Planted,
    /// What earlier starts may have promised.
    past: Past,
    /// The leases of those promises.
    before: Promised,
    boot: u32,
    /// When this start began; seats boot as of then.
    since: Moment,
    pools: Vec<Pool>,
    /// The pool whose states are looked at next.
    next_look: usize,
    /// What operators were told a moment ago.
    recent: glance::Recent,
    by_name: HashMap<Arc<str>, usize>,
    /// The same in the order of names, for lists.
    in_order: BTreeMap<Arc<str>, usize>,
    meters: PoolMeterCache,
    /// What is being counted.
    reading: Option<Reading>,
    /// Pools that granted nothing when they were looked at last.
    stalled: BTreeSet<usize>,
    /// Pools that have not given back their room since something happened in them, and when that
    /// was looked at last.
    astir: VecDeque<(Moment, usize)>,
    history: History,
    register: Register,
    alarms: Alarms,
    peers: Peers,
    watch: Watch,
    charter: Known,
    journal: Journal,
    journal_failed: Option<String>,
    /// Told if this node cannot go on.
    fatal: mpsc::UnboundedSender<String>,
    /// Records up to this number are on disk.
    durable: u64,
    /// Pools with effects that wait for the disk.
    behind: Vec<usize>,
    /// Records of the last start that no seat has taken up yet.
    records: Records,
    /// Claims that are over, the oldest first.
    over: VecDeque<(Moment, usize, ClaimId)>,
    /// Claims that are not over.
    active: usize,
    /// The same by caller, of those who are known by a token or a certificate.
    claimants: Crowd<String>,
    /// Pools in which claims may wait for which nobody is there.
    lines: BTreeSet<usize>,
    /// Claims that were granted to nobody: given back when the step is done.
    unwanted: Vec<(usize, ClaimId)>,
    giving_back: bool,
    copies: Copies,
    owners: Owners,
    gatherings: BTreeMap<u64, Gathering<Answer>>,
    orders: Orders,
    question_next: u64,
    dice: Dice,
    /// When the log last warned of a peer that sent nonsense.
    warned: Option<Moment>,
    stopping: bool,
    /// Room for the effects of a step...
    effects: Vec<SeatEffect>,
    /// ...and for what lay on the desk.
    errands: Vec<(Caller, Request)>,
    /// When the engine's own task looks at the clock.
    armed: Option<Moment>,
    /// When what is being done was taken up, if that is a request of a client: the clock is read
    /// once for it.
    taken_up: Option<Moment>,
    calendar: Calendar,
}

/// Why an engine cannot start.
#[derive(Debug, thiserror::Error)]
#[error(
    "pool {pool:?} cannot take up its record: {error}. Nothing was promised. If the pool was \
     changed on purpose, raise the epoch on all members; else restore the journal"
)]
pub(crate) struct RecordError {
    pool: String,
    error: SeatError,
}

impl Engine {
    /// An engine with the seats that must not wait until they are asked for: those of pools with a
    /// name, and those that had promised something before.
    pub(crate) fn new(
        config: Arc<Config>,
        metrics: Arc<Metrics>,
        changes: broadcast::Sender<Change>,
        boot: &Boot,
        (mut journal, records): (Journal, Records),
        fatal: mpsc::UnboundedSender<String>,
        (planted, charter): (Planted, Option<Chartered>),
    ) -> Result<Self, RecordError> {
        let since = clock::now();
        let mut engine = Engine {
            planted,
            past: planted.past(boot.past),
            before: boot.before.clone(),
            boot: boot.number,
            since,
            pools: Vec::new(),
            by_name: HashMap::new(),
            in_order: BTreeMap::new(),
            meters: PoolMeterCache::default(),
            reading: None,
            stalled: BTreeSet::new(),
            astir: VecDeque::new(),
            history: History::default(),
            register: Register::recalled(journal.take_lines()),
            alarms: Alarms::default(),
            peers: Peers::new(&config, boot.life()),
            watch: Watch::new(config.me, config.members.len(), since),
            charter: Known::new(charter),
            journal,
            journal_failed: None,
            next_look: 0,
            recent: glance::Recent::default(),
            fatal,
            durable: 0,
            behind: Vec::new(),
            over: VecDeque::new(),
            active: 0,
            claimants: Crowd::default(),
            lines: BTreeSet::new(),
            unwanted: Vec::new(),
            giving_back: false,
            copies: Copies::default(),
            owners: Owners::default(),
            gatherings: BTreeMap::new(),
            orders: Orders::default(),
            question_next: 0,
            // Chance need not be good: it only spreads choices.
            dice: Dice::new(since.0 ^ u64::from(boot.number).rotate_left(40) ^ config.digest),
            warned: None,
            stopping: false,
            effects: Vec::new(),
            errands: Vec::new(),
            armed: None,
            taken_up: None,
            calendar: Calendar::default(),
            records,
            config,
            metrics,
            changes,
        };
        let text = told_start(engine.boot);
        engine.history.note_node(What::Started, engine.config.name(), &text);
        for def in &engine.config.pools {
            let (pool, protocol) = (def.label(), def.protocol.name());
            let survives = def.promises.survives;
            let quorums = def.quorums.as_ref().map(ToString::to_string);
            tracing::info!(pool, protocol, units = def.units, survives, quorums, "a pool");
        }
        for warning in engine.config.warnings() {
            tracing::warn!("{warning}");
        }
        engine.first_seats()?;
        engine.alarms.set(since.after(HEARTBEAT), Due::Heartbeat);
        engine.metrics.mesh(engine.config.members.len(), 0);
        Ok(engine)
    }

    fn on(&mut self, command: Command) -> Option<oneshot::Sender<()>> {
        match command {
            Command::Client { caller, request } => self.on_request(caller, request),
            Command::Peer(event) => self.on_peer(event),
            Command::Charter(word) => self.on_charter(word),
            Command::Unread { pool, id, since } => self.on_unread(&pool, id, since),
            Command::Stop(done) => {
                self.stop();
                return Some(done);
            }
        }
        None
    }

    fn on_request(&mut self, caller: Caller, request: Request) {
        match request {
            Request::Claim { pool, id, ask, waiter } => {
                self.on_client(&caller, (&pool, id), ask, waiter);
            }
            Request::Owner { pool, id, reply } => drop(reply.send(self.owner(&pool, id))),
            Request::Seen { pool, id, reply } => drop(reply.send(self.has_seen(&pool, id))),
            Request::Gather { question, reply } => self.on_gather(question, reply),
            Request::Order { pool, what, id, reply } => {
                self.give_order(&caller, (pool, what, id), reply);
            }
            // Whoever asked may have gone away.
            Request::Pools { after, reply } => drop(reply.send(self.list_used(&after))),
            Request::Node(reply) => drop(reply.send(self.node_view())),
            Request::Checks(reply) => drop(reply.send(self.checks())),
            Request::Register { pool, after, reply } => {
                drop(reply.send(self.registered(&pool, after)));
            }
            Request::Grants { pool, reply } => drop(reply.send(self.grants(&pool))),
            Request::Corrupt { pool, reply } => drop(reply.send(self.corrupt(&caller, &pool))),
            Request::Fence { pool, node, reply } => {
                drop(reply.send(self.fence(&caller, &pool, &node)));
            }
            Request::Measure(reply) => self.measure(reply),
        }
    }

    /// Rings whatever is due.
    fn ring(&mut self) {
        let now = clock::now();
        while let Some((at, due)) = self.alarms.take(now) {
            match due {
                // Else it was to be rung earlier meanwhile, and has been.
                Due::Pool(seat) if self.pools[seat].rings_at == Some(at) => {
                    self.ring_pool(seat, now);
                }
                Due::Pool(_) => {}
                Due::Gathering(number) => self.finish_gathering(number),
                Due::Order(number) => self.finish_order(number),
                Due::Licence => self.renew_licences(),
                Due::Reading => self.measure_on(),
                Due::Copies => self.tell_who_waits(now),
                Due::Heard(number) => self.all_have_heard(number),
                // Else this node stood still, and could not see who came.
                Due::Absent(seat) if now.since(at) <= HEARTBEAT => {
                    self.look_along(seat, now);
                }
                Due::Absent(_) => {}
                Due::Heartbeat => {
                    self.peers.heartbeat(now);
                    self.look_for_the_silent(now);
                    match now.since(at) > HEARTBEAT {
                        true => self.forgive_absence(now),
                        false => {
                            self.look_for_the_absent(now);
                            self.strike_the_silent(now);
                        }
                    }
                    self.look_at_states(now);
                    self.forget_old(now);
                    self.let_rest(now, RESTED);
                    self.alarms.set(now.after(HEARTBEAT), Due::Heartbeat);
                }
            }
        }
    }

    /// Something of this pool is due.
    fn ring_pool(&mut self, seat: usize, now: Moment) {
        self.pools[seat].rings_at = None;
        while self.pools[seat].seat.due().is_some_and(|at| at <= now) {
            self.step(seat, Event::Ring(FirstDue));
        }
        while let Some(claim) = self.pools[seat].ledger.ended(now) {
            self.on_grant_end(seat, claim, now);
        }
        self.schedule(seat);
    }

    /// Sees to it that a pool is rung when something of it is due.
    fn schedule(&mut self, seat: usize) {
        let pool = &mut self.pools[seat];
        let next = [pool.seat.due(), pool.ledger.next_end()].into_iter().flatten().min();
        if let Some(at) = next.filter(|at| pool.rings_at.is_none_or(|set| *at < set)) {
            pool.rings_at = Some(at);
            self.alarms.set(at, Due::Pool(seat));
        }
    }

    /// One event for one seat. Anything wrong with it has been dealt with when this returns.
    fn step(&mut self, seat: usize, event: SeatEvent<'_>) {
        if let Err(SeatError::Undecodable(error)) = self.try_step(seat, event) {
            tracing::warn!(pool = %self.pools[seat].name, %error, "a message that means nothing");
        }
    }

    fn try_step(&mut self, seat: usize, event: SeatEvent<'_>) -> Result<(), SeatError> {
        self.act(seat, |seat, now, effects| seat.step(now, event, effects))
    }

    /// A seat does something, and what it wants done is done. It knows by which licence.
    fn act<T>(
        &mut self,
        seat: usize,
        act: impl FnOnce(&mut dyn AnySeat, Moment, &mut Vec<SeatEffect>) -> Result<T, SeatError>,
    ) -> Result<T, SeatError> {
        self.show_licence(seat);
        let result = self.act_at_once(seat, act);
        self.want_licence(seat);
        result
    }

    fn act_at_once<T>(
        &mut self,
        seat: usize,
        act: impl FnOnce(&mut dyn AnySeat, Moment, &mut Vec<SeatEffect>) -> Result<T, SeatError>,
    ) -> Result<T, SeatError> {
        let now = self.now();
        self.stir(seat, now);
        let mut effects = std::mem::take(&mut self.effects);
        let result = act(&mut *self.pools[seat].seat, now, &mut effects);
        for effect in effects.drain(..) {
            self.perform(seat, effect, now);
        }
        self.effects = effects;
        if let Err(SeatError::Stopped(why)) = &result {
            self.stop_seat(seat, why);
        }
        self.schedule(seat);
        self.give_back();
        result
    }

    /// The node is stopping. What clients hold they hold until their own deadlines, and renew
    /// elsewhere; what they wait for they ask for elsewhere. What was not written down yet is.
    fn stop(&mut self) {
        self.stopping = true;
        let now = clock::now();
        for seat in 0..self.pools.len() {
            self.give_up_waiting(seat);
            self.pools[seat].seat.hurry(now);
            self.schedule(seat);
        }
        let problem = stopping();
        for pool in &mut self.pools {
            pool.ledger.part(&problem);
        }
        for (_, gathering) in std::mem::take(&mut self.gatherings) {
            gathering.finish();
        }
        self.orders.finish_all();
        self.stop_telling();
    }

    /// When what is being done now happens. Never before a request that caused it had arrived, and
    /// never before anything that was done earlier.
    fn now(&self) -> Moment {
        self.taken_up.unwrap_or_else(clock::now)
    }

    fn draw(&mut self) -> u64 {
        self.dice.draw()
    }

    fn name_of(&self, node: NodeId) -> &str {
        self.config.members.get(node.index()).map_or("?", |member| &member.name)
    }
}

/// What everybody is told who asks a node that is stopping.
pub(crate) fn stopping() -> Problem {
    let text = "claims that were made before go on: ask for them by their ids at another node";
    Problem::new(ProblemKind::Stopping, text)
}
