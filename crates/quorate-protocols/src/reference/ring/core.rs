//! `core`: the ring with the paper's messages (Datta, Hadid, Villain 2002, algorithms 1 to 4).
//!
//! A controller token goes round; counter flushing (Varghese) leaves exactly one. While it passes,
//! stations report their tokens; back at the root, START compares with l, makes what is missing or
//! destroys everything, and sends a collection and a distribution on the next traversal. The paper
//! is repaired (ring spec 3 and 4).
//!
//! Needs links that keep order and lose nothing: a lost report is a miscount, that is, a transient
//! fault. `train` bears losses.

use quorate_core::numbers;

use crate::ring::machine::{Machine, Role};
use crate::ring::message::Message;
use crate::ring::station::{Local, Post, Side, Station};
use crate::ring::terms::{Erratum, Terms};
use crate::ring::tokens::{Named, Tally, Tokens};

/// A station of a `core` ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core<T: Tokens> {
    /// What every station has.
    pub station: Station<T>,
    /// What only the root has; boxed, so that every other station stays small.
    pub root: Option<Box<Root<T>>>,
}

/// What the root of a `core` ring has besides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Root<T: Tokens> {
    /// Reports received since the last START. The paper's C_e.
    pub reports: T::Tally,
    /// Tokens let go since the last START. The paper's C_f (ring spec E3).
    pub sent: T::Tally,
    /// What came back with collections. The paper's MyT_c.
    pub collected: T,
    /// What came back with distributions. The paper's MyT_a.
    pub left_over: T,
    /// Whether a surplus is being flushed (ring spec E6).
    pub flush: bool,
    /// What it knows for making tokens.
    pub mint: T::Mint,
}

numbers!(Core<Named> { station, root });
numbers!(Root<Named> { reports, sent, collected, left_over, flush, mint });

impl<T: Tokens> Machine for Core<T> {
    type Tokens = T;

    fn new(role: Role, terms: &Terms) -> Self {
        let root = match role {
            Role::Other => None,
            Role::Root { boot } => Some(Box::new(Root {
                reports: T::Tally::default(),
                sent: T::Tally::default(),
                collected: T::default(),
                left_over: T::default(),
                flush: false,
                mint: T::mint(boot, terms.units),
            })),
        };
        Core { station: Station::default(), root }
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
            self.settle(terms, out);
        }
    }

    fn leave(&mut self, terms: &Terms, out: &mut Post<T>) {
        self.station.leave();
        self.settle(terms, out);
    }

    fn settle(&mut self, terms: &Terms, out: &mut Post<T>) {
        match self.station.settle(terms) {
            Local::Quiet => {}
            Local::Released(tokens) => self.let_go(terms, tokens, out),
            Local::Entered(beyond) => {
                out.entered = true;
                self.let_go(terms, beyond, out);
            }
        }
    }

    fn hear(&mut self, terms: &Terms, message: Message<T>, out: &mut Post<T>) {
        match message {
            Message::Token(tokens) => self.on_token(terms, tokens, out),
            Message::Controller(seq) => self.on_controller(terms, seq, out),
            Message::Enabled(token) => match &mut self.root {
                Some(root) => root.reports.add(&token, terms.count_max()),
                None => out.send(Message::Enabled(token)),
            },
            Message::Collect(tokens) => self.on_collect(terms, tokens, out),
            Message::Allocate { tokens, order } => self.on_allocate(terms, tokens, order, out),
            Message::Disable => {
                if self.root.is_none() {
                    out.destroyed += self.station.disable();
                    out.send(Message::Disable);
                }
            }
            Message::Frame(_) | Message::Wake => {} // Garbage of another kind of ring ends here.
        }
        self.settle(terms, out);
    }

    fn first_start(&mut self, terms: &Terms, out: &mut Post<T>) {
        self.begin(terms, out);
    }

    /// The root's controller token may be lost: another one with the same number is harmless.
    fn timeout(&mut self, _terms: &Terms, out: &mut Post<T>) {
        if self.root.is_some() {
            out.send(Message::Controller(self.station.seq));
        }
    }

    /// There is no train to launch: the controller token never stands still.
    fn launch(&mut self, _terms: &Terms, _out: &mut Post<T>) {}

    fn has_launched(&self) -> bool {
        true
    }

    fn nudge(&mut self, _terms: &Terms, _out: &mut Post<T>) {}

    fn stored(&self, tally: &mut T::Tally) {
        if let Some(root) = &self.root {
            tally.add(&root.collected, u32::MAX);
            tally.add(&root.left_over, u32::MAX);
        }
    }
}

impl<T: Tokens> Core<T> {
    fn side(&self) -> Side {
        if self.root.is_some() { Side::Root } else { Side::Other }
    }

    /// Tokens go on to the right, one by one. The root counts them (ring spec E3).
    fn let_go(&mut self, terms: &Terms, tokens: T, out: &mut Post<T>) {
        if let Some(root) = &mut self.root
            && terms.fixed(Erratum::E3)
        {
            root.sent.add(&tokens, terms.count_max());
        }
        tokens.singly().for_each(|token| out.send(Message::Token(token)));
    }

    fn on_token(&mut self, terms: &Terms, mut tokens: T, out: &mut Post<T>) {
        if let Some(root) = &mut self.root {
            if root.flush {
                out.destroyed += tokens.len();
                return;
            }
            if !terms.fixed(Erratum::E3) {
                root.sent.add(&tokens, terms.count_max());
            }
        }
        self.station.absorb(&mut tokens);
        self.let_go(terms, tokens, out);
    }

    /// A_c1, A_c4 (ring spec E12, E15).
    fn on_controller(&mut self, terms: &Terms, seq: u64, out: &mut Post<T>) {
        let news = self.station.seq != seq;
        match (&self.root, news) {
            (Some(_), false) => self.begin(terms, out),
            (Some(_), true) => {} // A stale one ends here (ring spec E15).
            (None, true) => {
                self.station.seq = seq;
                let reported = self.station.reported(terms).clone();
                reported.singly().for_each(|token| out.send(Message::Enabled(token)));
                out.send(Message::Controller(seq));
            }
            (None, false) => {
                if terms.fixed(Erratum::E12) {
                    out.send(Message::Controller(seq));
                }
            }
        }
    }

    fn begin(&mut self, terms: &Terms, out: &mut Post<T>) {
        self.station.seq = terms.next_seq(self.station.seq);
        self.start(terms, out);
        out.send(Message::Controller(self.station.seq));
    }

    /// START: a traversal is over; compares the count with l (ring spec E3, E6, E11).
    fn start(&mut self, terms: &Terms, out: &mut Post<T>) {
        let station = &mut self.station;
        let root = self.root.as_mut().expect("only the root starts a traversal");
        let all = u32::MAX; // What stands at the root now is counted in full.
        let mut total = std::mem::take(&mut root.reports);
        total.merge(&std::mem::take(&mut root.sent));
        if terms.fixed(Erratum::E3) {
            total.add(station.reported(terms), all);
        }
        total.add(&root.collected, all);
        total.add(&root.left_over, all);

        let mut pool = root.collected.take_all();
        pool.put(root.left_over.take_all());
        let surplus = total.is_surplus(terms.units);
        out.counted = Some(total.total());
        if surplus {
            out.destroyed += station.disable() + pool.len();
            out.killed = true;
            out.send(Message::Disable);
        }
        root.flush = surplus && terms.fixed(Erratum::E6);
        if !root.flush {
            let mut free = match surplus {
                true => T::default(),
                false => T::make(&mut root.mint, &total, terms.units),
            };
            out.made += free.len();
            let batch = pool.take(terms.allocate_max());
            free.put(pool);
            // These go ahead of the controller token, so they are not counted as sent.
            free.singly().for_each(|token| out.send(Message::Token(token)));
            if !batch.is_empty() {
                out.send(Message::Allocate { tokens: batch, order: station.turn });
            }
            out.send(Message::Collect(T::default()));
        }
        if !terms.fixed(Erratum::E3) {
            root.reports.add(station.reported(terms), terms.count_max());
        }
    }

    fn on_collect(&mut self, terms: &Terms, mut tokens: T, out: &mut Post<T>) {
        if self.root.as_ref().is_some_and(|root| root.flush) {
            out.destroyed += tokens.len();
            return;
        }
        self.station.collect(&mut tokens, terms);
        match &mut self.root {
            Some(root) => out.destroyed += keep(&mut root.collected, tokens, terms),
            None => out.send(Message::Collect(tokens)),
        }
    }

    fn on_allocate(&mut self, terms: &Terms, mut tokens: T, order: bool, out: &mut Post<T>) {
        if self.root.as_ref().is_some_and(|root| root.flush) {
            out.destroyed += tokens.len();
            return;
        }
        self.station.allocate(&mut tokens, order, self.side(), terms);
        match &mut self.root {
            Some(root) => out.destroyed += keep(&mut root.left_over, tokens, terms),
            None if tokens.is_empty() => {}
            None => out.send(Message::Allocate { tokens, order }),
        }
    }
}

/// Keeps what came back to the root, as many as the pool has: more can only be a fault's (ring spec
/// 3.2, the domain of MyT_c and MyT_a). Says how many are gone.
fn keep<T: Tokens>(kept: &mut T, more: T, terms: &Terms) -> u32 {
    kept.put(more);
    let surplus = kept.len().saturating_sub(terms.units);
    kept.take(surplus).len()
}
