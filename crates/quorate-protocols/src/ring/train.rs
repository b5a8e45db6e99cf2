//! `train`: the ring in one message per hop (ring spec 6). This is what a node runs.
//!
//! Order on links makes everything that START sends travel together, so it is put into one
//! [`Frame`]: free tokens, a distribution, a collection and the running count. Beyond `core`:
//!
//! * *New cuts.* A root that misses its frame launches one with a **new** number, which is a new
//!   and exact count; a slow old frame comes back late, its tokens are dealt with as ever, only its
//!   count is not used. Nothing that is lost can make a count too small, so losses only cost
//!   tokens, which the root makes again.
//! * *Parking.* After a traversal in which nobody waited, the frame stays at the root until
//!   somebody does, or for an idle interval. Whoever waits and has not seen that others do sends
//!   `wake`.
//! * *Keeping.* A station that releases tokens while nobody waits keeps them for its next claim or
//!   the next frame. It never does under contention: others would wait long.
//! * *Blind counts.* A restarted station does not know what its clients still use. Frames that pass
//!   it say so until one lease is over, and the root makes no tokens from such a count (ring spec
//!   7, "crash of a non-root node").
//! * *Turn rule.* Any grant uses up the turn of the current phase, which bounds how often a large
//!   claim is overtaken (ring spec 4.4).

use super::machine::{Machine, Role};
use super::message::{Frame, Message};
use super::station::{Local, Post, Side, Station};
use super::terms::Terms;
use super::tokens::{Tally, Tokens};

/// A station of a `train` ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Train<T: Tokens> {
    /// What every station has.
    pub station: Station<T>,
    /// Whether others were seen to wait. WSeen.
    pub crowded: bool,
    /// Released, for the next claim here or the next frame. Keep.
    pub kept: T,
    /// Whether a wake was sent or passed on since the last frame. Woke.
    pub woke: bool,
    /// The order bit of the last frame; at the root, whether it was granted something since it last
    /// passed the turn. LOrd.
    pub phase: bool,
    /// Whether it was restarted, and its clients may use what it no longer knows of. Not in the
    /// specification; not a variable of the ring, so no fault scrambles it.
    pub blind: bool,
    /// Whether its node has no licence, so that nothing may be granted here. As `blind`, not in the
    /// specification and no variable of the ring.
    pub barred: bool,
    /// What only the root has; boxed, so that every other station stays small.
    pub root: Option<Box<Root<T>>>,
}

/// What the root of a `train` ring has besides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Root<T: Tokens> {
    /// Free tokens, for the next frame.
    pub bag: T,
    /// Collected and left over, to be distributed by the next frame.
    pub pool: T,
    /// Whether a surplus is being flushed.
    pub flush: bool,
    /// Whether the train stands here.
    pub parked: bool,
    /// Whether somebody waits who must be announced by the next frame. WNext.
    pub announce: bool,
    /// Whether the train is to leave at once.
    pub hot: bool,
    /// What it knows for making tokens.
    pub mint: T::Mint,
}

impl<T: Tokens> Machine for Train<T> {
    type Tokens = T;

    fn new(role: Role, terms: &Terms) -> Self {
        let root = match role {
            Role::Other => None,
            Role::Root { boot } => Some(Box::new(Root {
                bag: T::default(),
                pool: T::default(),
                flush: false,
                parked: false,
                announce: false,
                hot: false,
                mint: T::mint(boot, terms.units),
            })),
        };
        Train {
            station: Station::default(),
            crowded: false,
            kept: T::default(),
            woke: false,
            phase: false,
            blind: false,
            barred: false,
            root,
        }
    }

    fn station(&self) -> &Station<T> {
        &self.station
    }

    fn station_mut(&mut self) -> &mut Station<T> {
        &mut self.station
    }

    fn is_root(&self) -> bool {
        self.root.is_some()
    }

    fn request(&mut self, terms: &Terms, need: u32, out: &mut Post<T>) {
        if self.station.request(need) {
            self.station.absorb(&mut self.kept);
            self.settle(terms, out);
        }
    }

    fn leave(&mut self, terms: &Terms, out: &mut Post<T>) {
        self.station.leave();
        self.settle(terms, out);
    }

    fn settle(&mut self, terms: &Terms, out: &mut Post<T>) {
        if let Some(root) = &mut self.root
            && !self.crowded
            && !root.announce
        {
            // Only then: otherwise the root would take its own released tokens again for ever.
            self.station.absorb(&mut root.bag);
        }
        if self.barred && self.station.is_requesting() {
            return;
        }
        match self.station.settle(terms) {
            Local::Quiet => {}
            Local::Released(tokens) => self.release(tokens, out),
            Local::Entered(beyond) => {
                out.entered = true;
                match self.root {
                    Some(_) => self.phase = true,
                    None => self.station.turn = self.phase,
                }
                self.release(beyond, out);
            }
        }
    }

    fn hear(&mut self, terms: &Terms, message: Message<T>, out: &mut Post<T>) {
        match message {
            Message::Frame(frame) if self.root.is_some() => self.arrive(terms, *frame, out),
            Message::Frame(frame) => self.pass(terms, frame, out),
            Message::Token(tokens) => self.on_token(tokens, out),
            Message::Wake => self.on_wake(out),
            // Garbage of another kind of ring ends here.
            Message::Controller(_)
            | Message::Enabled(_)
            | Message::Collect(_)
            | Message::Allocate { .. }
            | Message::Disable => {}
        }
        self.settle(terms, out);
    }

    fn first_start(&mut self, terms: &Terms, _out: &mut Post<T>) {
        let root = self.root.as_mut().expect("the root starts a ring");
        self.station.seq = terms.next_seq(self.station.seq);
        root.bag = T::make(&mut root.mint, &T::Tally::default(), terms.units);
        root.parked = true;
    }

    fn timeout(&mut self, terms: &Terms, out: &mut Post<T>) {
        if let Some(root) = self.root.as_mut().filter(|root| !root.parked) {
            // Whoever waited when the train left still does, for all the root knows.
            root.announce |= self.crowded;
            self.station.seq = terms.next_seq(self.station.seq);
            self.depart(terms, out);
        }
    }

    fn launch(&mut self, terms: &Terms, out: &mut Post<T>) {
        if self.root.as_ref().is_some_and(|root| root.parked) {
            self.depart(terms, out);
        }
    }

    fn has_launched(&self) -> bool {
        self.root.as_ref().is_some_and(|root| !root.parked)
    }

    fn nudge(&mut self, terms: &Terms, out: &mut Post<T>) {
        let waits = self.station.is_requesting();
        match &self.root {
            Some(root) if root.parked && (root.hot || root.announce || waits) => {
                self.depart(terms, out);
            }
            None if waits && !self.crowded && !self.woke => {
                self.woke = true;
                out.send(Message::Wake);
            }
            _ => {}
        }
    }

    fn stored(&self, tally: &mut T::Tally) {
        tally.add(&self.kept, u32::MAX);
        if let Some(root) = &self.root {
            tally.add(&root.bag, u32::MAX);
            tally.add(&root.pool, u32::MAX);
        }
    }
}

impl<T: Tokens> Train<T> {
    /// Tokens without a claim: to the bag at the root, to the right if others wait, else kept.
    fn release(&mut self, tokens: T, out: &mut Post<T>) {
        match &mut self.root {
            Some(root) => root.bag.put(tokens),
            None if tokens.is_empty() => {}
            None if self.crowded => out.send(Message::Token(tokens)),
            None => self.kept.put(tokens),
        }
    }

    fn on_token(&mut self, mut tokens: T, out: &mut Post<T>) {
        if self.root.as_ref().is_some_and(|root| root.flush) {
            out.destroyed += tokens.len();
            return;
        }
        self.station.absorb(&mut tokens);
        match &mut self.root {
            Some(root) => root.bag.put(tokens),
            None if tokens.is_empty() => {}
            None => out.send(Message::Token(tokens)),
        }
    }

    fn on_wake(&mut self, out: &mut Post<T>) {
        match &mut self.root {
            Some(root) => (root.announce, root.hot) = (true, true),
            None if self.woke => {} // One is enough.
            None => {
                self.woke = true;
                out.send(Message::Wake);
            }
        }
    }

    /// The train passes a station that is not the root.
    fn pass(&mut self, terms: &Terms, mut frame: Box<Frame<T>>, out: &mut Post<T>) {
        self.woke = false;
        self.phase = frame.order;
        if frame.kill {
            out.destroyed += self.station.disable() + self.kept.take_all().len();
            out.destroyed += frame.discard();
        }
        frame.free.put(self.kept.take_all());
        self.station.absorb(&mut frame.free);
        if !frame.alloc.is_empty() {
            self.station.allocate(&mut frame.alloc, frame.order, Side::Other, terms);
        }
        self.station.collect(&mut frame.coll, terms);
        self.settle(terms, out);
        if frame.seq != self.station.seq {
            frame.counted.add(self.station.reported(terms), terms.count_max());
        }
        self.station.seq = frame.seq;
        frame.blind |= self.blind;
        frame.waits |= self.station.is_requesting();
        self.crowded = frame.waited || frame.waits;
        out.send(Message::Frame(frame));
    }

    /// The train is back at the root.
    fn arrive(&mut self, terms: &Terms, mut frame: Frame<T>, out: &mut Post<T>) {
        let root = self.root.as_mut().expect("trains arrive at the root");
        if root.flush {
            out.destroyed += frame.discard();
        }
        // Late: its count is of another cut, its tokens are as good as any. They are handed out by
        // turns too, or a root that loses patience before each count would never have its own.
        let late = root.parked || frame.seq != self.station.seq;
        if !late {
            self.crowded = frame.waits;
        }
        self.station.absorb(&mut frame.free);
        root.bag.put(frame.free.take_all());
        if !frame.alloc.is_empty() {
            let turn = self.station.turn;
            if self.phase && turn == frame.order {
                // Turn rule: it was granted something in this phase, so it passes the turn on.
                self.station.pass_turn(frame.order, Side::Root);
            }
            self.station.allocate(&mut frame.alloc, frame.order, Side::Root, terms);
            self.phase &= self.station.turn == turn;
        }
        root.pool.put(frame.alloc.take_all());
        self.station.collect(&mut frame.coll, terms);
        root.pool.put(frame.coll.take_all());
        self.settle(terms, out);
        if !late {
            self.judge(terms, &frame, out);
        }
    }

    /// The traversal is over; compares the count with l.
    fn judge(&mut self, terms: &Terms, frame: &Frame<T>, out: &mut Post<T>) {
        let root = self.root.as_mut().expect("the root judges");
        let mut total = frame.counted.clone();
        let all = u32::MAX; // What stands at the root now is counted in full.
        total.add(self.station.reported(terms), all);
        total.add(&root.bag, all);
        total.add(&root.pool, all);
        self.station.seq = terms.next_seq(self.station.seq);
        root.flush = total.is_surplus(terms.units);
        out.counted = Some(total.total());
        if root.flush {
            out.killed = true;
            out.destroyed += self.station.disable();
            return self.depart(terms, out);
        }
        if !frame.blind && !self.blind {
            let made = T::make(&mut root.mint, &total, terms.units);
            out.made += made.len();
            root.bag.put(made);
        }
        root.announce |= frame.waits || self.station.is_requesting();
        root.hot = root.announce || frame.waited;
        root.parked = true;
    }

    fn depart(&mut self, terms: &Terms, out: &mut Post<T>) {
        let root = self.root.as_mut().expect("trains depart from the root");
        let mut alloc = root.pool.take(terms.allocate_max());
        let mut free = root.bag.take_all();
        free.put(root.pool.take_all());
        if root.flush {
            out.destroyed += free.take_all().len() + alloc.take_all().len();
        }
        let waited = root.announce || self.station.is_requesting();
        out.send(Message::Frame(Box::new(Frame {
            seq: self.station.seq,
            order: self.station.turn,
            free,
            alloc,
            coll: T::default(),
            counted: T::Tally::default(),
            kill: root.flush,
            waited,
            waits: false,
            blind: self.blind,
        })));
        self.crowded = waited;
        (root.parked, root.announce) = (false, false);
    }
}
