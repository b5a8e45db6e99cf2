//! The world: nodes, clients, links, disks and clocks, and the loop that lets things happen to them
//! in order of time.
//!
//! What happens is a [`Happening`] in the [`Queue`]. What effects mean is in `driver.rs`, what
//! clients do in `clients.rs`, what goes wrong in `misfortune.rs`; all of it is `World`, split by
//! topic.

use std::collections::BTreeSet;
use std::fmt;

use quorate_core::{
    Charter, ClaimId, Entry, Moment, NodeId, NodeSet, Outbox, Protocol, Purpose, Start,
};
use quorate_laws::Breach;

use crate::client::Client;
use crate::clock::DriftingClock;
use crate::corruption::Corruption;
use crate::council::Council;
use crate::disk::Disk;
use crate::film::Health;
use crate::judge::Judge;
use crate::measure::Measures;
use crate::misfortune::Trouble;
use crate::network::Network;
use crate::plan::Plan;
use crate::queue::{Due, Queue, Ticket};
use crate::rolling::Rolling;
use crate::size::bytes;
use crate::table::Table;
use crate::trace::{Stamp, Trace};
use crate::verdict::{Memory, Pulse};
use crate::{Arrivals, Rng};

/// After so many happenings whoever waits is told how far the run is.
const PULSE: u64 = 1 << 10;
/// Less than this is not worth sweeping out.
const SWEPT_MIN: usize = 1 << 16;

/// Why a run stops: the law that was broken. Boxed, because every step says that there is none.
pub(crate) type Stop = Box<Breach>;

/// The alarms of all nodes in all their lives.
type Alarms<P> = Table<(NodeId, u32, <P as Protocol>::Alarm), Armed>;

/// One pool and everything around it.
#[derive(Debug)]
pub(crate) struct World<'a, P: Protocol> {
    pub(crate) plan: &'a Plan,
    pub(crate) pool: &'a P::Pool,
    /// How it is changed while everything runs, one change after the other.
    pub(crate) editions: &'a [P::Pool],
    pub(crate) now: u64,
    pub(crate) queue: Queue<Happening<P>>,
    pub(crate) nodes: Vec<Node<P>>,
    pub(crate) clients: Vec<Client>,
    /// Clients of an open loop that nobody uses now.
    pub(crate) idle: Vec<u32>,
    /// Claims whose client is gone: a grant for them is seen by nobody.
    pub(crate) abandoned: BTreeSet<ClaimId>,
    /// Claims without a lease that their clients ended, and the node that heard it last.
    pub(crate) given_back: Vec<(NodeId, ClaimId)>,
    /// Nodes that clients left while they waited, and where nobody hears of these claims any more.
    pub(crate) left: BTreeSet<(NodeId, ClaimId)>,
    pub(crate) network: Network,
    /// Messages held back by cut links, in order.
    pub(crate) held: Vec<(Ticket, Happening<P>)>,
    /// The newest incarnation each node has heard from; only of nodes that ever restarted.
    pub(crate) newest: Table<(NodeId, NodeId), u32>,
    pub(crate) alarms: Alarms<P>,
    pub(crate) outbox: Outbox<P>,
    /// What the step that is taken is for.
    pub(crate) purpose: Purpose,
    /// Whether anybody looks at each step: a trace, all laws, or what becomes of a corrupted pool.
    pub(crate) is_watched: bool,
    pub(crate) laws: Judge,
    /// Only where nodes are restarted one after the other.
    pub(crate) rolling: Option<Rolling>,
    /// Only where the decider may change.
    pub(crate) council: Option<Council>,
    /// Until the pool is right, if it began in any state.
    pub(crate) corruption: Option<Corruption<P>>,
    pub(crate) books: Vec<Entry>,
    pub(crate) measures: Measures,
    pub(crate) trace: Trace<'a>,
    pub(crate) chance: Chance,
    /// Whether faults are over.
    pub(crate) calm: bool,
    /// When the last claim was granted or the last unit reclaimed.
    pub(crate) progress_at: u64,
    /// How much in the queue is not meant any more, at most.
    pub(crate) taken_back: usize,
    /// Whether whoever waits for the run has ended it.
    pub(crate) ended: bool,
}

/// Whether something planned was not taken back since: an alarm that was disarmed, or a client that
/// is to wake at another time.
fn is_meant<P: Protocol>(
    alarms: &Alarms<P>,
    clients: &[Client],
    happening: &Happening<P>,
    ticket: Ticket,
) -> bool {
    match *happening {
        Happening::Ring { node, boot, alarm } => {
            alarms.get(&(node, boot, alarm)).is_some_and(|armed| armed.ticket == ticket)
        }
        Happening::Wake { client } => clients[client as usize].wake == Some(ticket),
        _ => true,
    }
}

/// One stream of chance for each purpose.
#[derive(Debug)]
pub(crate) struct Chance {
    pub(crate) clients: Rng,
    pub(crate) faults: Rng,
    pub(crate) disk: Rng,
}

/// A node: a participant while it is up, and what outlives it. In this order in memory, so that
/// what every step looks at is in one place.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Node<P: Protocol> {
    pub(crate) clock: DriftingClock,
    /// Only for nodes that ever persisted anything.
    pub(crate) disk: Option<Box<Disk<P>>>,
    pub(crate) boot: u32,
    pub(crate) paused: bool,
    /// A crash that waits for the next step, after so many of its effects.
    pub(crate) crash_after: Option<u32>,
    /// Messages that it sent or was given.
    pub(crate) traffic: u64,
    /// The participant; `None` while the node is down.
    pub(crate) seat: Option<P>,
    /// Only for nodes to which something unusual happens.
    pub(crate) aside: Option<Box<Aside<P>>>,
}

/// What few nodes need, kept apart so that a million nodes stay small.
#[derive(Debug)]
pub(crate) struct Aside<P: Protocol> {
    /// What happened to the node while it was paused.
    pub(crate) inbox: Vec<(Ticket, Happening<P>)>,
    /// Whom its failure detector suspects.
    pub(crate) suspects: NodeSet,
}

impl<P: Protocol> Default for Aside<P> {
    fn default() -> Self {
        Aside { inbox: Vec::new(), suspects: NodeSet::new() }
    }
}

impl<P: Protocol> Node<P> {
    pub(crate) fn is_running(&self) -> bool {
        self.seat.is_some() && !self.paused
    }
}

/// An armed alarm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Armed {
    /// When it rings, on the node's clock.
    pub(crate) deadline: Moment,
    pub(crate) ticket: Ticket,
}

/// Something that will happen. As with [`quorate_core::Effect`] the tag is a word, and a message
/// lies where it lies there and in [`quorate_core::Event`]: it is copied from one to the other in
/// pieces, and a processor waits long for a piece that was written as parts of two.
#[derive(Debug)]
#[repr(u64)]
pub(crate) enum Happening<P: Protocol> {
    Hear {
        from: NodeId,
        to: NodeId,
        message: P::Message,
        from_boot: u32,
        to_boot: u32,
        purpose: Purpose,
    },
    Ring {
        node: NodeId,
        boot: u32,
        alarm: P::Alarm,
    },
    Synced {
        node: NodeId,
        boot: u32,
    },
    Wake {
        client: u32,
    },
    Arrival,
    /// A node notices that a client is gone, and cancels what it had.
    Notice {
        node: NodeId,
        boot: u32,
        claim: ClaimId,
    },
    /// The control plane tells a life of a node something.
    Charter {
        node: NodeId,
        boot: u32,
        word: Charter,
    },
    /// A node notices that nobody is there for a claim any more.
    Silence {
        node: NodeId,
        boot: u32,
        claim: ClaimId,
    },
    Opinion {
        observer: NodeId,
        about: NodeId,
        suspect: bool,
        slander: bool,
    },
    Trouble(Trouble),
}

impl<P: Protocol> Happening<P> {
    /// The node that must be running for it to happen.
    fn happens_to(&self) -> Option<NodeId> {
        match *self {
            Happening::Hear { to: node, .. }
            | Happening::Ring { node, .. }
            | Happening::Synced { node, .. }
            | Happening::Notice { node, .. }
            | Happening::Charter { node, .. }
            | Happening::Silence { node, .. }
            | Happening::Opinion { observer: node, .. } => Some(node),
            Happening::Wake { .. } | Happening::Arrival | Happening::Trouble(_) => None,
        }
    }
}

impl<'a, P: Protocol> World<'a, P> {
    pub(crate) fn new(
        plan: &'a Plan,
        pool: &'a P::Pool,
        strict: bool,
        trace: Trace<'a>,
    ) -> Result<Self, Stop> {
        let mut seed = Rng::new(plan.seed);
        let chance = Chance { clients: seed.fork(), faults: seed.fork(), disk: seed.fork() };
        let mut clocks = seed.fork();
        let nodes: Vec<Node<P>> = (0..plan.nodes)
            .map(|_| Node {
                seat: None,
                boot: 0,
                paused: false,
                crash_after: None,
                traffic: 0,
                clock: plan.draw_clock(&mut clocks),
                disk: None,
                aside: None,
            })
            .collect();
        let units = P::capacity(pool);
        let mut world = World {
            plan,
            pool,
            editions: &[],
            now: 0,
            queue: Queue::default(),
            nodes,
            clients: Vec::new(),
            idle: Vec::new(),
            abandoned: BTreeSet::new(),
            given_back: Vec::new(),
            left: BTreeSet::new(),
            network: Network::new(plan.links.clone(), seed.fork()),
            held: Vec::new(),
            newest: Table::default(),
            alarms: Table::default(),
            outbox: Outbox::new(),
            purpose: Purpose::Protocol,
            is_watched: strict || trace.is_on(),
            laws: Judge::new::<P>(pool, strict),
            rolling: plan.faults.restarts.map(|_| Rolling::default()),
            council: None,
            corruption: None,
            books: Vec::new(),
            measures: Measures::new(units, P::KINDS.len(), plan.clients()),
            trace,
            chance,
            calm: false,
            progress_at: 0,
            taken_back: 0,
            ended: false,
        };
        for node in 0..world.nodes.len() {
            world.boot(NodeId::from(node), Start::First)?;
        }
        world.convene();
        world.open_the_doors();
        world.plan_troubles();
        Ok(world)
    }

    /// Lets things happen up to a true time, or until enough was done.
    pub(crate) fn run_until(&mut self, end: u64) -> Result<(), Stop> {
        while self.happen_next(end)? {}
        self.reach(end);
        Ok(())
    }

    /// Lets the next thing happen, unless enough was done or it comes after a true time.
    #[inline(always)]
    pub(crate) fn happen_next(&mut self, end: u64) -> Result<bool, Stop> {
        if self.has_done_enough() {
            return Ok(false);
        }
        let is_meant =
            |happening: &_, ticket| is_meant(&self.alarms, &self.clients, happening, ticket);
        let Some((at, due)) = self.queue.next(end, is_meant) else { return Ok(false) };
        assert!(at >= self.now, "time does not go back");
        if !self.hear_at_once(at, due)? {
            self.happen_at(at, due)?;
        }
        if self.measures.happenings.is_multiple_of(PULSE) {
            self.beat();
        }
        Ok(true)
    }

    /// Nothing more happens up to a true time.
    pub(crate) fn reach(&mut self, end: u64) {
        if !self.has_done_enough() {
            self.now = self.now.max(end);
        }
    }

    /// What is next happens, if it is still meant.
    fn happen_at(&mut self, at: u64, due: Due) -> Result<(), Stop> {
        // Somebody who interferes may have taken it away.
        let Some((happening, ticket)) = self.queue.take(due) else { return Ok(()) };
        if !is_meant(&self.alarms, &self.clients, &happening, ticket) {
            return Ok(());
        }
        self.now = at;
        self.measures.happenings += 1;
        self.let_happen(ticket, happening)?;
        if self.corruption.is_some() {
            self.look_whether_it_is_right()?;
        }
        Ok(())
    }

    /// Something in the queue is not meant any more. If that is more than a third of what is, it is
    /// swept out.
    pub(crate) fn take_back(&mut self) {
        self.taken_back += 1;
        let World { alarms, clients, queue, taken_back, .. } = self;
        if *taken_back > SWEPT_MIN + (alarms.len() + clients.len()) / 3 {
            queue.sweep(|happening, ticket| is_meant(alarms, clients, happening, ticket));
            *taken_back = 0;
        }
    }

    /// Whether nothing will happen any more.
    pub(crate) fn is_over(&self) -> bool {
        let (alarms, clients) = (&self.alarms, &self.clients);
        let meant = |happening: &_, ticket| is_meant(alarms, clients, happening, ticket);
        self.queue.planned(|happening, ticket| meant(happening, ticket).then_some(())).is_empty()
    }

    /// Tells whoever waits for the end of the run how far it is.
    fn beat(&mut self) {
        let Measures { steps, grants, .. } = self.measures;
        let pulse = Pulse { now: self.now, steps, grants, calm: self.calm };
        self.ended = self.trace.pulse(pulse).is_break();
    }

    /// What participants take, if they count it.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let around = size_of::<Node<P>>() - size_of::<Option<P>>();
        let mut memory = Memory { total: 0, most: 0, seats: 0, around: around as u64 };
        for seat in self.nodes.iter().filter_map(|node| node.seat.as_ref()) {
            let bytes = seat.footprint()? as u64;
            memory.total += bytes;
            memory.most = memory.most.max(bytes);
            memory.seats += 1;
        }
        Some(memory).filter(|memory| memory.seats > 0)
    }

    fn has_done_enough(&self) -> bool {
        self.ended
            || !self.calm
                && (self.measures.steps >= self.plan.steps_max
                    || self.measures.grants >= self.plan.grants_max)
    }

    /// Lets things happen that were kept back.
    pub(crate) fn let_all_happen(&mut self, kept: Vec<(Ticket, Happening<P>)>) -> Result<(), Stop> {
        kept.into_iter().try_for_each(|(ticket, happening)| self.let_happen(ticket, happening))
    }

    /// Lets one thing happen.
    pub(crate) fn let_happen(
        &mut self,
        ticket: Ticket,
        happening: Happening<P>,
    ) -> Result<(), Stop> {
        if let Some(node) = happening.happens_to()
            && self.nodes[node.index()].paused
        {
            self.aside(node).inbox.push((ticket, happening));
            return Ok(());
        }
        let happened = match happening {
            Happening::Hear { from, from_boot, to, to_boot, message, purpose } => {
                self.purpose = purpose;
                self.hear(ticket, (from, from_boot), (to, to_boot), message)
            }
            Happening::Ring { node, boot, alarm } => self.ring(ticket, node, boot, alarm),
            Happening::Synced { node, boot } => self.synced(node, boot),
            Happening::Wake { client } => self.wake(client as usize),
            Happening::Arrival => self.arrive(),
            Happening::Notice { node, boot, claim } => self.notice(node, boot, claim),
            Happening::Charter { node, boot, word } => self.hear_charter(node, boot, word),
            Happening::Silence { node, boot, claim } => self.fall_silent(node, boot, claim),
            Happening::Opinion { observer, about, suspect, slander } => {
                self.change_opinion(observer, about, suspect, slander)
            }
            Happening::Trouble(trouble) => self.trouble(trouble),
        };
        if self.is_watched {
            self.look();
        }
        happened
    }

    /// Puts on film how nodes and links are.
    pub(crate) fn look(&mut self) {
        let Some(film) = self.trace.film() else { return };
        film.look(self.nodes.iter().map(|node| match (&node.seat, node.paused) {
            (None, _) => Health::Down,
            (Some(_), true) => Health::Paused,
            (Some(_), false) => Health::Up,
        }));
        let network = &self.network;
        film.look_at_links(network.cuts(), || {
            let all = || (0..self.nodes.len()).map(NodeId::from);
            let pairs = all().flat_map(|from| all().map(move |to| (from, to)));
            pairs.filter(|(from, to)| from != to && network.is_cut(*from, *to)).collect()
        });
    }

    /// A line of the trace that is about no event of a participant.
    pub(crate) fn note(&mut self, who: &dyn fmt::Display, what: fmt::Arguments<'_>) {
        if self.trace.is_on() {
            let (used, units) = (self.laws.in_use(), self.measures.units());
            let (now, waiting) = (Stamp(self.now), self.measures.queue.level());
            self.trace
                .write(format_args!("{now} {used:>2}/{units} w{waiting:<3} {who:<4} * {what}\n"));
            if let Some(film) = self.trace.film() {
                film.frame(
                    (self.measures.happenings, self.now),
                    who.to_string(),
                    format!("* {what}"),
                );
            }
        }
    }

    /// The measured part of the run is over.
    pub(crate) fn close_measures(&mut self) {
        self.measures.overtakes_in_books = self.laws.overtakes();
        self.finish_measures();
        self.measures.state_bytes = self.state_bytes();
    }

    /// How much the participant knows that knows most.
    pub(crate) fn state_bytes(&self) -> u64 {
        self.nodes.iter().filter_map(|node| node.seat.as_ref()).map(bytes).max().unwrap_or(0)
    }

    /// Brings the numbers up to now.
    pub(crate) fn finish_measures(&mut self) {
        self.measures.finish(self.now);
        self.measures.traffic.clear();
        self.measures.traffic.extend(self.nodes.iter().map(|node| node.traffic));
    }

    pub(crate) fn aside(&mut self, node: NodeId) -> &mut Aside<P> {
        self.nodes[node.index()].aside.get_or_insert_default()
    }

    /// The books of all arbiters that have any.
    pub(crate) fn all_books(&self) -> Vec<(NodeId, Vec<Entry>)> {
        let mut all = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let mut entries = Vec::new();
            if let Some(seat) = &node.seat {
                seat.ledger(&mut |entry| entries.push(entry));
            }
            if !entries.is_empty() {
                all.push((NodeId::from(index), entries));
            }
        }
        all
    }

    /// Clients of a closed loop or a script begin; an open loop gets its first arrival.
    fn open_the_doors(&mut self) {
        match &self.plan.workload.arrivals {
            Arrivals::Closed { clients_per_node, think } => {
                for node in 0..self.plan.nodes {
                    for _ in 0..*clients_per_node {
                        let at = think.draw(&mut self.chance.clients);
                        self.add_client(NodeId(node), Some(at));
                    }
                }
            }
            Arrivals::Open { every, .. } => {
                let at = self.chance.clients.exponential(*every);
                self.queue.push(at, Happening::Arrival);
            }
            Arrivals::Script(arrivals) => {
                for arrival in arrivals {
                    self.add_client(NodeId(arrival.node), Some(arrival.at));
                }
            }
        }
    }
}
