//! What clients and nodes say to each other, as types and nothing else.
//!
//! Two faces of one vocabulary: JSON bodies for HTTP ([`Want`], [`ClaimStatus`], [`PoolView`],
//! [`Problem`]...) and the binary client link ([`link`]) for programs in a hurry.
//! Both are served on the same port of a node. This crate knows no protocol, does no IO and reads
//! no clock.
//!
//! # Time
//!
//! A node never tells a client *when* a grant ends, since their clocks have nothing in common. It
//! tells *how long* the grant lasts, **counted from the node's receipt of the very request that is
//! answered**, with the pool's drift margin already taken off. A client reads its own monotonic
//! clock just before it sends the request and adds that span: the sum is its deadline, and it is
//! earlier than the moment at which anybody else may be given the units, however slow the network
//! or the answer was. A client that repeats a request takes the reading of the repetition that was
//! answered.

mod audit;
mod claim;
mod claim_id;
mod definition;
mod grants;
pub mod link;
mod members;
mod node;
mod overview;
mod pool;
mod problem;
mod register;
mod span;
mod tokens;
mod units;

pub use audit::{AuditEvent, AuditKind, AuditView};
pub use claim::{
    ClaimState, ClaimStatus, Estimate, Line, MoveView, Obstacle, Remedy, RenewRequest,
    RevokeRequest, ShortageView, UnitView, Want, Why,
};
pub use claim_id::{ClaimId, ClaimIdError};
pub use definition::{AmendRequest, AmendedView, ApplyRequest, DefineRequest, DefinitionView};
pub use grants::{GrantsView, Hindrance, HindranceKind};
pub use members::{
    BackupView, InviteRequest, InviteView, JoinMember, JoinRequest, JoinView, MemberRole,
    MemberRow, MembersView, RemoveRequest,
};
pub use node::{
    Change, ChangeKind, CharterMember, CharterView, Check, NodeView, PeerView, told_start,
};
pub use overview::{
    CellView, ChartPoint, FoundView, HistoryEvent, HistoryKind, HistoryView, KindView, MemberView,
    Overview, PatternRow, PoolDetail, PoolRow, ShareView, SightView, StillView,
};
pub use pool::{
    FactView, HolderView, HoldersView, OrderOutcome, PoolView, PoolsView, QueueView, QuorumsView,
    RelabelRequest, SeatView, WaiterView,
};
pub use problem::{Problem, ProblemKind};
pub use register::{GrantEvent, RegisterView};
pub use span::{SpanError, format_span, parse_span};
pub use tokens::{RightView, RightsView, TokenRequest, TokenView, TokensView};
