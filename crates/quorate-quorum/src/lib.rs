//! Families of quorums as mathematics: the laboratory.
//!
//! A *quorum* is a set of nodes whose permission suffices; a *family* is a collection of quorums.
//! Which families are safe for sharing k units, how many crashes they survive, how much work they
//! cost whom: everything Baldoni, Manabe, Raynal and Aoyagi define, prove and evaluate in
//! "k-Arbiter: a safe and general scheme for h-out of-k mutual exclusion problems" (INRIA RR-2523,
//! 1995), corrected where it is wrong, and what its readers need to choose a family. No messages,
//! no time, no chance that is not given.
//!
//! | symbol of the papers | here |
//! |---|---|
//! | U, n, p_i | nodes, numbered from 0 |
//! | k (units), h (size of a request) | `units`, `claim` |
//! | Q, C | quorum, family |
//! | beta, gamma | effort, size ([`Symmetric`]) |
//! | R | resiliency, an exact [`Ratio`] |
//!
//! # Two representations
//!
//! A family is *explicit* ([`Explicit`]: its quorums as bit sets) or *implicit* ([`Rule`]: it can
//! test membership, count, and pick a quorum among the living without listing any). [`build`] makes
//! the families of the [`catalog`] from their names, [`Expr`] writes one down in an algebra,
//! [`compose`] makes new ones from old.
//!
//! # Questions
//!
//! [`Answers`] asks everything of either representation: closed forms first, then computation, then
//! a bound. Single questions, each with its proof or counterexample:
//!
//! * [`largest_k`], [`fewest_apart`]: do any k+1 quorums meet, and which do not
//! * [`k_coterie`]: the other kind of family, for k holders of one unit each
//! * [`domination()`], [`is_witness`]: is there a better family, with the set that shows it
//! * [`smallest_hitting`]: how many crashes are always survived
//! * [`frontier`], [`Table`], [`sampling`]: how likely a quorum is alive
//! * [`load()`], [`load_with_capacities`], [`latency`]: strategies, by linear programs checked by
//!   their duals
//! * [`requests`]: a family per request size, safe together or not
//! * [`sharing`]: units that differ, and who may use which: groups, circuits, constructions
//! * [`bounds`]: what no family can beat
//!
//! Hard questions take an [`Effort`] and end with [`TooLarge`] rather than hang.

pub mod answers;
pub mod bounds;
pub mod catalog;
pub mod compose;
mod coterie;
mod domination;
mod effort;
mod explicit;
mod expr;
mod findings;
mod formula;
pub mod frontier;
mod hitting;
mod intersect;
pub mod latency;
mod load;
mod natural;
mod parse;
pub mod plan;
#[cfg(feature = "solvers")]
mod proposals;
mod ratio;
pub mod requests;
mod rule;
pub mod sampling;
mod set;
mod shape;
pub mod sharing;
#[cfg(feature = "solvers")]
mod solver;
mod table;
#[cfg(not(feature = "solvers"))]
mod unsolved;

#[cfg(not(feature = "solvers"))]
use unsolved as proposals;
#[cfg(not(feature = "solvers"))]
use unsolved as solver;

pub use answers::{Answers, Availability, Between, Method};
pub use catalog::{Family, FamilyError, build};
pub use coterie::{KCoterie, k_coterie};
pub use domination::{Domination, domination, is_witness};
pub use effort::{Effort, TooLarge};
pub use explicit::{Explicit, ExplicitError, Symmetric, nodes_of};
pub use expr::{Expr, ExprError};
pub use findings::Findings;
pub use formula::Formula;
pub use hitting::{hitting_bounds, smallest_hitting};
pub use intersect::{Reach, fewest_apart, fewest_apart_by_folding, largest_k};
pub use load::{Load, load, load_with_capacities};
pub use natural::Natural;
pub use parse::ParseError;
pub use ratio::Ratio;
pub use rule::{Chances, Rule};
pub use table::Table;
