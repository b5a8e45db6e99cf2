//! The messages of `ticket`. The order of variants and fields is the format. It keeps no record.

use quorate_core::{Moment, NodeId};
use quorate_protocols::ticket::{Bid, Message, Pool, Rival, Standing, Ticket};
use serde::{Deserialize, Serialize};

use crate::codec::{self, DecodeError, Wire, WireAttempt, WireClaim};

/// Claim, home, boot of the home, units.
#[derive(Serialize, Deserialize)]
struct WireRival(WireClaim, u32, u32, u32);

impl From<&Rival> for WireRival {
    fn from(rival: &Rival) -> Self {
        let Bid { claim, node, boot } = rival.bid;
        WireRival(claim.into(), node.0, boot, rival.units.get())
    }
}

impl TryFrom<WireRival> for Rival {
    type Error = DecodeError;

    fn try_from(WireRival(claim, node, boot, units): WireRival) -> Result<Self, DecodeError> {
        let bid = Bid { claim: claim.into(), node: NodeId(node), boot };
        Ok(Rival { bid, units: codec::units(units)? })
    }
}

#[derive(Serialize, Deserialize)]
enum WireMessage {
    /// Units, what the ticket must exceed, the requester's clock.
    Register(WireClaim, WireAttempt, u32, u64, u64),
    Propose(WireClaim, WireAttempt, u64),
    /// Units, ticket, 0 waiting or 1 shown or 2 held or 3 joins, the mark that was seen, the
    /// requester's clock.
    Settle(WireClaim, WireAttempt, u32, u64, u8, u64, u64),
    /// The last: mark, echoed clock.
    View(WireClaim, WireAttempt, Vec<WireRival>, u64, u64),
    /// Mark.
    Queued(WireClaim, WireAttempt, u64),
    /// Echoed clock.
    Renewed(WireClaim, WireAttempt, u64),
    Lost(WireClaim, WireAttempt),
    /// Whether the claim is over too.
    Release(WireClaim, WireAttempt, bool),
}

impl From<&Message> for WireMessage {
    fn from(message: &Message) -> Self {
        match message {
            Message::Register { claim, attempt, units, above, sent } => {
                let (claim, attempt) = ((*claim).into(), (*attempt).into());
                WireMessage::Register(claim, attempt, units.get(), above.0, sent.0)
            }
            Message::Propose { claim, attempt, ticket } => {
                WireMessage::Propose((*claim).into(), (*attempt).into(), ticket.0)
            }
            Message::Settle { claim, attempt, units, ticket, standing, seen, sent } => {
                let (claim, attempt) = ((*claim).into(), (*attempt).into());
                let standing = match standing {
                    Standing::Waiting => 0,
                    Standing::Shown => 1,
                    Standing::Held => 2,
                    Standing::Joins => 3,
                };
                let units = units.get();
                WireMessage::Settle(claim, attempt, units, ticket.0, standing, seen.0, sent.0)
            }
            Message::View { claim, attempt, rivals, mark, sent } => {
                let rivals = rivals.iter().map(WireRival::from).collect();
                WireMessage::View((*claim).into(), (*attempt).into(), rivals, mark.0, sent.0)
            }
            Message::Queued { claim, attempt, mark } => {
                WireMessage::Queued((*claim).into(), (*attempt).into(), mark.0)
            }
            Message::Renewed { claim, attempt, sent } => {
                WireMessage::Renewed((*claim).into(), (*attempt).into(), sent.0)
            }
            Message::Lost { claim, attempt } => {
                WireMessage::Lost((*claim).into(), (*attempt).into())
            }
            Message::Release { claim, attempt, whole } => {
                WireMessage::Release((*claim).into(), (*attempt).into(), *whole)
            }
        }
    }
}

impl TryFrom<WireMessage> for Message {
    type Error = DecodeError;

    fn try_from(message: WireMessage) -> Result<Self, DecodeError> {
        Ok(match message {
            WireMessage::Register(claim, attempt, units, above, sent) => Message::Register {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                units: codec::units(units)?,
                above: codec::fence(above)?,
                sent: Moment(sent),
            },
            WireMessage::Propose(claim, attempt, ticket) => Message::Propose {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                ticket: codec::fence(ticket)?,
            },
            WireMessage::Settle(claim, attempt, units, ticket, standing, seen, sent) => {
                Message::Settle {
                    claim: claim.into(),
                    attempt: attempt.try_into()?,
                    units: codec::units(units)?,
                    ticket: codec::fence(ticket)?,
                    standing: match standing {
                        0 => Standing::Waiting,
                        1 => Standing::Shown,
                        2 => Standing::Held,
                        3 => Standing::Joins,
                        _ => {
                            let text = format!("a claim that stands like {standing}");
                            return Err(DecodeError::Impossible(text));
                        }
                    },
                    seen: codec::fence(seen)?,
                    sent: Moment(sent),
                }
            }
            WireMessage::View(claim, attempt, rivals, mark, sent) => {
                let rivals: Result<Vec<Rival>, _> =
                    rivals.into_iter().map(TryInto::try_into).collect();
                Message::View {
                    claim: claim.into(),
                    attempt: attempt.try_into()?,
                    rivals: rivals?.into(),
                    mark: codec::fence(mark)?,
                    sent: Moment(sent),
                }
            }
            WireMessage::Queued(claim, attempt, mark) => Message::Queued {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                mark: codec::fence(mark)?,
            },
            WireMessage::Renewed(claim, attempt, sent) => Message::Renewed {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                sent: Moment(sent),
            },
            WireMessage::Lost(claim, attempt) => {
                Message::Lost { claim: claim.into(), attempt: attempt.try_into()? }
            }
            WireMessage::Release(claim, attempt, whole) => {
                Message::Release { claim: claim.into(), attempt: attempt.try_into()?, whole }
            }
        })
    }
}

impl Wire for Ticket {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        codec::put(&WireMessage::from(message), out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::take::<WireMessage>(bytes)?.try_into()
    }

    fn encode_record((): &(), _: &mut Vec<u8>) {}

    fn decode_record(_: &Pool, bytes: &[u8]) -> Result<(), DecodeError> {
        codec::take(bytes)
    }
}
