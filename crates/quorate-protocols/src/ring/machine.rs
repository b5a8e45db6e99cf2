//! What `core` and `train` have in common for whoever drives a whole ring.

use std::fmt::Debug;
use std::hash::Hash;

use super::message::Message;
use super::station::{Post, Station};
use super::terms::Terms;
use super::tokens::Tokens;

/// What a station is to the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The one that counts, makes and destroys tokens.
    Root {
        /// How often it was started before.
        boot: u32,
    },
    /// Any other.
    Other,
}

/// One station with the rules of its variant. Every handler ends with the local actions, so that a
/// station is settled whenever a message reaches it.
pub trait Machine: Clone + Eq + Hash + Debug {
    /// What it passes round.
    type Tokens: Tokens;

    /// A station of which nothing is known yet.
    fn new(role: Role, terms: &Terms) -> Self;
    /// The variables that all variants share.
    fn station(&self) -> &Station<Self::Tokens>;
    /// The same, to be scrambled or set.
    fn station_mut(&mut self) -> &mut Station<Self::Tokens>;
    /// Whether it is the root.
    fn is_root(&self) -> bool;

    /// A claim for `need` units arrives; it is ignored while there is one.
    fn request(&mut self, terms: &Terms, need: u32, out: &mut Post<Self::Tokens>);
    /// The claim is released or withdrawn.
    fn leave(&mut self, terms: &Terms, out: &mut Post<Self::Tokens>);
    /// A message from the left neighbour.
    fn hear(&mut self, terms: &Terms, message: Message<Self::Tokens>, out: &mut Post<Self::Tokens>);
    /// Local actions that are enabled, as after a fault.
    fn settle(&mut self, terms: &Terms, out: &mut Post<Self::Tokens>);
    /// Root: makes all tokens and begins the first traversal of a ring in which nobody holds
    /// anything.
    fn first_start(&mut self, terms: &Terms, out: &mut Post<Self::Tokens>);
    /// Root: nothing has come back for a long time.
    fn timeout(&mut self, terms: &Terms, out: &mut Post<Self::Tokens>);
    /// Root: begins the next traversal, if none is under way as far as it knows.
    fn launch(&mut self, terms: &Terms, out: &mut Post<Self::Tokens>);
    /// Root: whether it waits for something to come back.
    fn has_launched(&self) -> bool;
    /// What a station does on its own so that waiting ends soon: the root of a train launches, the
    /// others wake it.
    fn nudge(&mut self, terms: &Terms, out: &mut Post<Self::Tokens>);

    /// Counts the tokens that lie here for others.
    fn stored(&self, tally: &mut <Self::Tokens as Tokens>::Tally);
}
