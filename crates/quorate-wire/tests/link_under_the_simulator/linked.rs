//! A protocol whose seats talk over [`Link`]s. The simulator's network loses, repeats and reorders;
//! connections are made of it here, as TCP makes them: each has a name that both sides gave it, its
//! frames are numbered, and it breaks at the first one that is missing.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use quorate_core::{Effect, Entry, Event, EventOf, NodeId, NodeSet, Outbox, Protocol, Seat, Start};
use quorate_wire::link::{Bound, Cargo, Link, SendError};
use quorate_wire::{Life, Resume};

const BOUND: Bound = Bound { messages: 100_000, bytes: usize::MAX, each: usize::MAX };

/// What a driver of links can do wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    SayOneMore,
    KeepBootNumber,
}

/// The pool, and how links between its seats are run.
#[derive(Clone, Debug)]
pub(crate) struct Pool<P: Protocol> {
    pub(crate) inner: P::Pool,
    pub(crate) nodes: u32,
    /// After this long without progress a connection counts as broken.
    pub(crate) patience: Duration,
    pub(crate) mistake: Option<Mistake>,
}

/// A message on a link: which incarnations it is for, and its place among those.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Numbered<M> {
    from_boot: u32,
    to_boot: u32,
    place: u64,
    message: M,
}

impl<M> Cargo for Numbered<M> {
    fn size(&self) -> usize {
        1
    }
}

/// A name that one side gave: its boot, and a count.
type Name = (u32, u64);

/// What both sides call a connection: the name of whoever called, and that of whoever answered.
type Connection = (Name, Name);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Frame<M> {
    Call {
        name: Name,
        resume: Resume,
    },
    Answer {
        on: Connection,
        resume: Resume,
    },
    Data {
        on: Connection,
        index: u64,
        seq: u64,
        ack: u64,
        cargo: Numbered<M>,
    },
    Ack {
        on: Connection,
        index: u64,
        ack: u64,
    },
    /// Whoever does not call asks for another connection than this, or for a first one.
    Stuck {
        on: Option<Connection>,
    },
}

impl<M: fmt::Display> fmt::Display for Frame<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Call { name, .. } => write!(f, "call {}.{}", name.0, name.1),
            Frame::Answer { .. } => f.write_str("answer"),
            Frame::Data { seq, cargo, .. } => write!(f, "#{seq} {}", cargo.message),
            Frame::Ack { ack, .. } => write!(f, "ack {ack}"),
            Frame::Stuck { .. } => f.write_str("stuck"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Alarm<A> {
    Tick,
    Inner(A),
}

impl<A: fmt::Display> fmt::Display for Alarm<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Tick => f.write_str("tick"),
            Alarm::Inner(alarm) => alarm.fmt(f),
        }
    }
}

/// One side of a link and of the connection it has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Line<M> {
    link: Link<Numbered<M>>,
    /// The newest call: made by us, or heard.
    called: Name,
    on: Option<Connection>,
    /// Frames that went out and came in on it.
    frames: [u64; 2],
    /// What was outstanding at the last tick, if nothing was acknowledged since.
    waiting: usize,
    /// Messages taken for the peer's present incarnation.
    taken: (u32, u64),
    /// Messages that arrived from its present incarnation.
    arrived: (u32, u64),
}

impl<M: Clone> Line<M> {
    fn new(boot: u32) -> Self {
        let life = Life { boot, mark: 0 };
        Line {
            link: Link::new(life, BOUND),
            called: (0, 0),
            on: None,
            frames: [0, 0],
            waiting: 0,
            taken: (0, 0),
            arrived: (0, 0),
        }
    }

    fn resume(&self, mistake: Option<Mistake>) -> Resume {
        let honest = self.link.resume();
        let more = u64::from(mistake == Some(Mistake::SayOneMore) && honest.received > 0);
        Resume { received: honest.received + more, ..honest }
    }

    fn break_off(&mut self) {
        self.on = None;
        self.link.disconnect();
    }

    /// Connects if the peer's words allow it.
    fn meet(&mut self, on: Connection, theirs: Resume) -> bool {
        self.break_off();
        let met = self.link.connect(theirs).is_ok();
        if met {
            (self.on, self.frames, self.waiting) = (Some(on), [0, 0], 0);
        }
        met
    }

    /// A frame of a connection came in. Says whether it is the next one of the present connection,
    /// which breaks if one is missing.
    fn is_next(&mut self, on: Connection, index: u64) -> bool {
        if self.on != Some(on) || index <= self.frames[1] {
            return false;
        }
        self.frames[1] += 1;
        if index != self.frames[1] {
            self.break_off();
        }
        self.on.is_some()
    }

    fn send(&mut self, from_boot: u32, message: M) {
        let Some(to_boot) = self.link.peer_boot() else { return };
        if self.taken.0 != to_boot {
            self.taken = (to_boot, 0);
        }
        let place = self.taken.1 + 1;
        match self.link.send(Numbered { from_boot, to_boot, place, message }) {
            Ok(()) => self.taken.1 = place,
            Err(SendError::NobodyThere) => unreachable!("it has a boot number"),
            Err(error) => panic!("{error}"),
        }
    }

    /// What the contract promises ("Links"), for one message that is delivered.
    fn check(&mut self, me: u32, cargo: &Numbered<M>) {
        assert_eq!(cargo.to_boot, me, "meant for another incarnation of ours");
        assert!(cargo.from_boot >= self.arrived.0, "from an incarnation that has a successor");
        if cargo.from_boot > self.arrived.0 {
            self.arrived = (cargo.from_boot, 0);
        }
        assert_eq!(cargo.place, self.arrived.1 + 1, "lost, repeated or out of order");
        self.arrived.1 += 1;
    }
}

/// A seat, and its links to all others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Linked<P: Protocol> {
    inner: P,
    lines: BTreeMap<NodeId, Line<P::Message>>,
}

type Out<P> = Outbox<Linked<P>>;
type Place<'a, P> = Seat<'a, Linked<P>>;

fn inner_seat<'a, P: Protocol>(seat: &Place<'a, P>) -> Seat<'a, P> {
    Seat { me: seat.me, boot: seat.boot, now: seat.now, pool: &seat.pool.inner }
}

impl<P: Protocol> Linked<P> {
    /// What the seat wants from the world; what it tells others goes through the links.
    fn pass_on(&mut self, seat: &Place<'_, P>, effects: &mut Outbox<P>, out: &mut Out<P>) {
        for effect in effects.drain() {
            match effect {
                Effect::Tell { to, message } => {
                    self.lines.get_mut(&to).expect("a peer").send(seat.boot, message);
                    self.flush(to, out);
                }
                other => out.push(other.map(
                    |_| unreachable!("told through a link"),
                    Alarm::Inner,
                    |record| record,
                )),
            }
        }
    }

    fn give(&mut self, seat: &Place<'_, P>, event: EventOf<P>, out: &mut Out<P>) {
        let mut effects = Outbox::new();
        self.inner.step(&inner_seat(seat), event, &mut effects);
        self.pass_on(seat, &mut effects, out);
    }

    /// What the link has to say goes out on the connection.
    fn flush(&mut self, to: NodeId, out: &mut Out<P>) {
        let line = self.lines.get_mut(&to).expect("a peer");
        let Some(on) = line.on else { return };
        while let Some((seq, ack, cargo)) = line.link.transmit() {
            line.frames[0] += 1;
            let cargo = cargo.clone();
            out.tell(to, Frame::Data { on, index: line.frames[0], seq, ack, cargo });
        }
        if line.link.unsaid() > 0
            && let Some(ack) = line.link.ack()
        {
            line.frames[0] += 1;
            out.tell(to, Frame::Ack { on, index: line.frames[0], ack });
        }
    }

    /// The node with the smaller number calls.
    fn call(&mut self, seat: &Place<'_, P>, peer: NodeId, out: &mut Out<P>) {
        let line = self.lines.get_mut(&peer).expect("a peer");
        line.break_off();
        let count = if line.called.0 == seat.boot { line.called.1 } else { 0 };
        line.called = (seat.boot, count + 1);
        let resume = line.resume(seat.pool.mistake);
        out.tell(peer, Frame::Call { name: line.called, resume });
    }

    fn tick(&mut self, seat: &Place<'_, P>, out: &mut Out<P>) {
        out.arm(Alarm::Tick, seat.pool.patience);
        for peer in self.lines.keys().copied().collect::<Vec<_>>() {
            let line = self.lines.get_mut(&peer).expect("a peer");
            let outstanding = line.link.outstanding();
            let is_stuck = outstanding > 0 && outstanding >= line.waiting && line.waiting > 0;
            line.waiting = outstanding;
            match line.on {
                Some(_) if !is_stuck => {}
                _ if seat.me < peer => self.call(seat, peer, out),
                on => out.tell(peer, Frame::Stuck { on }),
            }
        }
    }

    fn hear(
        &mut self,
        seat: &Place<'_, P>,
        from: NodeId,
        frame: Frame<P::Message>,
        out: &mut Out<P>,
    ) {
        let mistake = seat.pool.mistake;
        let line = self.lines.get_mut(&from).expect("a peer");
        match frame {
            Frame::Call { name, resume } if name > line.called => {
                line.called = name;
                let on = (name, (seat.boot, name.1));
                let ours = line.resume(mistake);
                if line.meet(on, resume) {
                    out.tell(from, Frame::Answer { on, resume: ours });
                }
            }
            Frame::Answer { on, resume } if on.0 == line.called && line.on.is_none() => {
                line.meet(on, resume);
            }
            Frame::Data { on, index, seq, ack, cargo } if line.is_next(on, index) => {
                match line.link.hear(seq, ack) {
                    Ok(true) => {
                        line.check(seat.boot, &cargo);
                        self.give(seat, Event::Hear { from, message: cargo.message }, out);
                    }
                    Ok(false) => {}
                    Err(_) => line.break_off(),
                }
            }
            Frame::Ack { on, index, ack } if line.is_next(on, index) => {
                line.link.acknowledge(ack).unwrap_or_else(|_| line.break_off());
            }
            Frame::Stuck { on } if on.is_none() || line.on == on => self.call(seat, from, out),
            _ => {} // Of a connection that is over.
        }
        self.flush(from, out);
    }
}

impl<P: Protocol> Protocol for Linked<P> {
    type Pool = Pool<P>;
    type Message = Frame<P::Message>;
    type Alarm = Alarm<P::Alarm>;
    type Durable = P::Durable;

    const NAME: &'static str = P::NAME;
    const KINDS: &'static [&'static str] = &["call", "answer", "data", "ack", "stuck"];

    fn boot(seat: &Place<'_, P>, start: Start<P::Durable>, out: &mut Out<P>) -> Self {
        let peers = (0..seat.pool.nodes).map(NodeId).filter(|&node| node != seat.me);
        let boot = if seat.pool.mistake == Some(Mistake::KeepBootNumber) { 1 } else { seat.boot };
        let lines = peers.map(|node| (node, Line::new(boot))).collect();
        let mut effects = Outbox::new();
        let inner = P::boot(&inner_seat(seat), start, &mut effects);
        let mut linked = Linked { inner, lines };
        linked.pass_on(seat, &mut effects, out);
        linked.tick(seat, out);
        linked
    }

    fn step(&mut self, seat: &Place<'_, P>, event: EventOf<Self>, out: &mut Out<P>) {
        let event = match event {
            Event::Hear { from, message } => return self.hear(seat, from, message, out),
            Event::Ring(Alarm::Tick) => return self.tick(seat, out),
            other => other.map(
                |_| unreachable!("heard through a link"),
                |alarm| match alarm {
                    Alarm::Inner(alarm) => alarm,
                    Alarm::Tick => unreachable!("rung for the links"),
                },
            ),
        };
        self.give(seat, event, out);
    }

    fn audit(&self, seat: &Place<'_, P>) {
        self.inner.audit(&inner_seat(seat));
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        self.inner.ledger(show);
    }

    fn kind(frame: &Frame<P::Message>) -> usize {
        match frame {
            Frame::Call { .. } => 0,
            Frame::Answer { .. } => 1,
            Frame::Data { .. } => 2,
            Frame::Ack { .. } => 3,
            Frame::Stuck { .. } => 4,
        }
    }

    fn capacity(pool: &Pool<P>) -> u32 {
        P::capacity(&pool.inner)
    }

    fn overtakes_max(pool: &Pool<P>) -> Option<u32> {
        P::overtakes_max(&pool.inner)
    }

    fn names_units(pool: &Pool<P>) -> bool {
        P::names_units(&pool.inner)
    }

    fn is_whole(&self) -> bool {
        self.inner.is_whole()
    }

    fn can_lose(pool: &Pool<P>, dead: &NodeSet) -> bool {
        P::can_lose(&pool.inner, dead)
    }
}
