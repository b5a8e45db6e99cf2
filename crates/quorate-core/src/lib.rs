//! The words and the contract on which everything in Quorate stands.
//!
//! A pool has *k* units. A [`Claim`] asks for *h* of them at once, a grant names the [`Unit`]s it
//! got and carries a [`Fence`] for each, and a [`Protocol`] decides who gets what. This crate holds
//! the vocabulary and the contract between a protocol and whatever drives it; it depends on
//! nothing.
//!
//! # Driving a participant
//!
//! A participant is a plain value. A driver (the daemon, the simulator, the model checker) does
//! this, and nothing else:
//!
//! 1. Create it with [`Protocol::boot`], saying whether this is the first boot, a restart with what
//!    it last persisted, or a restart that forgot everything ([`Start`]).
//! 2. Perform every [`Effect`] in the [`Outbox`], **in order**. A [`Effect::Persist`] is a barrier:
//!    no later effect, of this step or of any later one, may become visible before it is on disk.
//! 3. Wait for one thing to happen, turn it into an [`Event`], and call [`Protocol::step`] with it.
//! 4. Go to 2. The outbox does not outlive the step, so there is no polling too little or too late.
//!
//! What the driver promises in return:
//!
//! * **Links.** A message reaches the participant it was sent to or nobody: when a node restarts,
//!   what was on its way to the old incarnation is gone, and once a peer has heard from a new
//!   incarnation it hears nothing more from the old one. Within that, messages may be late, lost,
//!   repeated or reordered unless the protocol says in its documentation that it needs better.
//! * **Alarms** have names. At most one of each is armed, arming again replaces, and an alarm that
//!   was disarmed or replaced never rings. How long an alarm takes is never a matter of safety (a
//!   checker rings any armed alarm at any moment), with one exception: leases, below. So what is
//!   to reach the disk, and need not before anything is told, waits for an alarm and is persisted
//!   when that rings: no step waits for it, one record has all that happened meanwhile, and a crash
//!   may come before it. A driver that stops in good order rings such alarms
//!   ([`Protocol::rings_at_stop`]) before it ends.
//! * **Boot numbers** ([`Seat::boot`]) grow with every restart of a node and are never reused.
//! * **Time.** [`Seat::now`] is the driver's own monotonic reading, and a protocol uses it for
//!   leases only. The rate of any two clocks differs by no more than the drift the pool declares
//!   ([`Lease`]).
//! * **Clients.** A client that was granted units stops using them when it releases them, when it
//!   is told [`Effect::Lose`], or when its own clock reaches the grant's deadline, whichever is
//!   first. What *stands* ([`Wanted::standing`]) has no deadline, and nobody is told that it is
//!   lost: it ends by its client's word. An operator who revokes it takes the client's place. That
//!   word is said again, through any node, if the one that heard it crashed before it was written
//!   down: no lease would end it later.
//!
//! `step` cannot fail. A stale or repeated message is normal life and changes nothing. A message
//! that no correct peer could have sent becomes an [`Effect::Anomaly`] and changes nothing else;
//! under the simulator and the checker it fails the run. A contradiction in a participant's own
//! state is a panic.
//!
//! # What the protocols need from one contract
//!
//! | need | who has it | where it is |
//! |---|---|---|
//! | choose a quorum without chance inside the protocol | arbiter, ticket, table | [`Claim::draw`]: the driver draws, the checker enumerates |
//! | opinions about who crashed | arbiter, ticket, table, broadcast, ring | [`Event::Suspect`], [`Event::Trust`] |
//! | things to tell people that only one protocol knows | arbiter, broadcast, ring | [`Fact`]: shown by [`Protocol::facts`], read by nobody but people |
//! | readiness, which copy of the books counts, units that are lost | broadcast, table, ring | [`Health`] |
//! | which claims can be granted with the nodes that are there | all | [`Outlook`]: [`Protocol::grants`], [`Protocol::outlook`] |
//! | incarnations and restarts | all | [`Seat::boot`], [`Start`] |
//! | units that differ, units by name, bundles | central, table, arbiter | [`Wanted::lines`] |
//! | holds without a lease | table | [`Wanted::standing`], [`Protocol::stands`] |
//! | holders that can be asked to move | central | [`Effect::Move`], answered by [`Event::Renew`] |
//! | deciders that change while everything runs | central | [`Event::Charter`], [`Effect::AskLicence`]; for seats that are taken on demand [`Decided`], [`NodeLicence`] |
//! | units that are drained or get other labels | central | [`Obeys`] |
//! | leases whose arithmetic is only an order | all | [`Lease`], [`Protocol::lease_end`], [`Explorable::promise`] |
//! | starts from arbitrary states | ring | [`Corruptible`] |
//! | a million participants in one process | ring, simulator | configuration is borrowed ([`Seat::pool`]), never copied into a participant |

mod bound;
mod charter;
mod claim;
mod corruptible;
mod dice;
mod event;
mod explorable;
mod grant;
mod health;
mod holding;
mod lease;
mod node;
mod node_set;
mod numbers;
mod on_demand;
mod outbox;
mod protocol;
mod shortage;
mod stamp;

pub use bound::{LINES_MAX, NODES_MAX, UNITS_MAX};
pub use charter::{Charter, Shadow, Tenure};
pub use claim::{Claim, ClaimId, Line, Refusal, Units, UnitsError, Wanted};
pub use corruptible::Corruptible;
pub use dice::Dice;
pub use event::{Effect, EffectOf, Event, EventOf};
pub use explorable::Explorable;
pub use grant::{Fence, Share, Shares, Unit};
pub use health::{Health, Hurdle, Opinion, Outlook, Remade, Shadowing};
pub use holding::{Holding, Move};
pub use lease::{Lease, Moment};
pub use node::NodeId;
pub use node_set::NodeSet;
pub use numbers::{Number, Numbers};
pub use on_demand::{Decided, NodeLicence, Unused};
pub use outbox::{Drain, Outbox};
pub use protocol::{Entry, Fact, Kept, LeaseEnd, Protocol, Purpose, Seat, Standing, Start};
pub use shortage::{Obeys, Order, Relabelled, Shortage};
pub use stamp::{Clock, Stamp};
