//! One place on the ring: the variables that every processor of the paper has, and the rules that
//! `core` and `train` share (Datta, Hadid, Villain 2002, algorithms A_l1 to A_l12; ring spec 3.2,
//! 3.3 and 3.5).
//!
//! | here | paper | means |
//! |---|---|---|
//! | `held` | T_h - T_d | the tokens really here |
//! | `disabled` | T_d | tokens once held here and taken away since; more than none makes a station *waiting* |
//! | `held` + `disabled` | T_h | tokens nominally held |
//! | `seq` | MySeq | the last traversal that counted this station |
//! | `turn` | MyOrder | whose turn it is, compared with the order of a distribution |
//! | `favoured` | Priv (ring spec E13) | swallowed a distribution because it was its turn, and still waits |
//!
//! The two counts are kept so that T_d > T_h, which a fault could leave in the paper's variables,
//! cannot be written down: the type repairs ring spec E9.

use super::message::Message;
use super::terms::{Erratum, Terms};
use super::tokens::Tokens;

/// Where a station's claim stands. The paper's STATE and NEED.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum StationClaim<T> {
    /// It has none.
    #[default]
    Out,
    /// It waits for this many units.
    Requesting {
        /// At least one.
        need: u32,
    },
    /// It uses these.
    Using {
        /// As granted, whatever became of the tokens since.
        units: T,
    },
}

/// The variables of one station.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the fields are described in the module's table")]
pub struct Station<T> {
    pub standing: StationClaim<T>,
    pub held: T,
    pub disabled: u32,
    pub seq: u64,
    pub turn: bool,
    pub favoured: bool,
}

/// What a station wants from the world after one step.
#[derive(Debug)]
pub struct Post<T: Tokens> {
    /// Messages to the right neighbour, in order.
    pub right: Vec<Message<T>>,
    /// Whether the station's claim was granted: it now uses its units.
    pub entered: bool,
    /// Tokens made, by the root.
    pub made: u32,
    /// Tokens destroyed here, because the root found too many.
    pub destroyed: u32,
    /// Whether the root found a surplus and destroys all tokens.
    pub killed: bool,
    /// At the end of a traversal, how many tokens the root counted.
    pub counted: Option<u32>,
}

impl<T: Tokens> Default for Post<T> {
    fn default() -> Self {
        Post {
            right: Vec::new(),
            entered: false,
            made: 0,
            destroyed: 0,
            killed: false,
            counted: None,
        }
    }
}

impl<T: Tokens> Post<T> {
    pub(crate) fn send(&mut self, message: Message<T>) {
        self.right.push(message);
    }
}

/// On which side of the ring's seam a station is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Root,
    Other,
}

/// How a locally enabled action changed a station.
pub(crate) enum Local<T> {
    /// Nothing was to be done.
    Quiet,
    /// Tokens without a claim, to be let go.
    Released(T),
    /// The claim was granted; what it does not need is to be let go.
    Entered(T),
}

impl<T: Tokens> Station<T> {
    /// Units asked for or used. The paper's NEED.
    pub fn need(&self) -> u32 {
        match &self.standing {
            StationClaim::Out => 0,
            StationClaim::Requesting { need } => *need,
            StationClaim::Using { units } => units.len(),
        }
    }

    /// Units in use.
    pub fn in_use(&self) -> u32 {
        match &self.standing {
            StationClaim::Using { units } => units.len(),
            StationClaim::Out | StationClaim::Requesting { .. } => 0,
        }
    }

    /// Whether it waits.
    pub fn is_requesting(&self) -> bool {
        matches!(self.standing, StationClaim::Requesting { .. })
    }

    /// Tokens nominally held. The paper's T_h.
    pub fn nominal(&self) -> u32 {
        self.held.len().saturating_add(self.disabled)
    }

    /// What the station answers when it is counted. The paper's T-ENABLED (ring spec E7).
    pub fn reported(&self, terms: &Terms) -> &T {
        match &self.standing {
            StationClaim::Using { units } if terms.fixed(Erratum::E7) => units,
            _ => &self.held,
        }
    }

    /// Tokens still to come. The paper's REM.
    fn missing(&self) -> u32 {
        match self.standing {
            StationClaim::Requesting { need } => need.saturating_sub(self.held.len()),
            StationClaim::Out | StationClaim::Using { .. } => 0,
        }
    }

    /// Whether it has tokens, but not enough. The paper's LOCK (ring spec E4).
    fn is_locked(&self, terms: &Terms) -> bool {
        let StationClaim::Requesting { need } = self.standing else { return false };
        let has = if terms.fixed(Erratum::E4) { self.held.len() } else { self.nominal() };
        0 < has && has < need
    }

    /// Whether whatever is used here is also held here, as it is unless there was a fault.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.standing {
            StationClaim::Using { units } => self.held == *units && self.disabled == 0,
            StationClaim::Out | StationClaim::Requesting { .. } => true,
        }
    }

    /// A claim arrives, if there is none. Returns whether it was taken.
    pub(crate) fn request(&mut self, need: u32) -> bool {
        let free = self.standing == StationClaim::Out;
        if free {
            self.standing = StationClaim::Requesting { need };
        }
        free
    }

    /// The claim is over, granted or not; its tokens are let go by the next local action (ring spec
    /// E13).
    pub(crate) fn leave(&mut self) {
        if self.is_requesting() {
            self.turn ^= self.favoured;
            self.favoured = false;
        }
        self.standing = StationClaim::Out;
    }

    /// The local actions, which come before any message (ring spec N1, N2, L1, L2; the first of
    /// them holds by type).
    pub(crate) fn settle(&mut self, terms: &Terms) -> Local<T> {
        match &mut self.standing {
            StationClaim::Using { units } => {
                if terms.fixed(Erratum::E7) {
                    let beyond = self.held.take_beyond(units);
                    self.disabled = self.disabled.saturating_add(beyond.len());
                }
                Local::Quiet
            }
            StationClaim::Out => {
                self.disabled = 0;
                let all = self.held.take_all();
                if all.is_empty() { Local::Quiet } else { Local::Released(all) }
            }
            StationClaim::Requesting { need } if self.held.len() >= *need => {
                // What the claim does not need goes on at once (ring spec E10), not when it ends.
                let mut units = self.held.take(*need);
                let beyond = std::mem::replace(&mut self.held, units.clone());
                self.held.hand_over();
                units.hand_over();
                self.disabled = 0;
                self.favoured = false;
                self.standing = StationClaim::Using { units };
                Local::Entered(beyond)
            }
            StationClaim::Requesting { .. } => Local::Quiet,
        }
    }

    /// Free tokens pass: takes what it needs, and forwards when satisfied (A_l2, A_l8; ring spec
    /// E8).
    pub(crate) fn absorb(&mut self, free: &mut T) {
        let StationClaim::Requesting { need } = self.standing else { return };
        let taken = free.take(self.missing());
        // Tokens first fill up to what was asked for, then replace what was taken away.
        let fill = taken.len().min(need.saturating_sub(self.nominal()));
        self.disabled = self.disabled.saturating_sub(taken.len() - fill);
        self.held.put(taken);
    }

    /// A distribution passes (A_l9 and A_l10, at the root A_l3 and A_l4; ring spec E5, E13, E16).
    pub(crate) fn allocate(&mut self, tokens: &mut T, order: bool, side: Side, terms: &Terms) {
        self.favoured = false;
        let privileged = match side {
            Side::Root => self.turn == order,
            Side::Other => self.turn != order,
        };
        let (missing, offered) = (self.missing(), tokens.len());
        let requesting = self.is_requesting();
        if requesting && offered >= missing && (privileged || self.disabled > 0) {
            self.held.put(tokens.take(missing));
            self.disabled = 0;
        } else if requesting && privileged {
            if self.disabled < offered && !terms.fixed(Erratum::E5) {
                self.held = tokens.take(offered - self.disabled);
            } else {
                self.held.put(tokens.take_all());
            }
            *tokens = T::default();
            self.disabled = self.disabled.saturating_sub(offered);
            self.favoured = terms.fixed(Erratum::E13);
            return; // It keeps its turn until it is served.
        }
        if privileged {
            self.pass_turn(order, side);
        }
    }

    /// The turn moves on to the right.
    pub(crate) fn pass_turn(&mut self, order: bool, side: Side) {
        self.turn = match side {
            Side::Root => !order,
            Side::Other => order,
        };
    }

    /// A collection passes (A_l5, A_l11).
    pub(crate) fn collect(&mut self, collected: &mut T, terms: &Terms) {
        if self.is_locked(terms) {
            let room = terms.collect_max.saturating_sub(collected.len());
            let taken = self.held.take(room);
            self.disabled = self.disabled.saturating_add(taken.len());
            collected.put(taken);
        }
    }

    /// All tokens here are destroyed (A_l6, A_l12). What is in use stays in use. Returns how many
    /// there were that nobody uses.
    pub(crate) fn disable(&mut self) -> u32 {
        self.disabled = self.nominal();
        let gone = self.held.take_all().len();
        if self.in_use() > 0 { 0 } else { gone }
    }
}
