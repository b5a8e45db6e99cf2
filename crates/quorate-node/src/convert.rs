//! Between the words of the API and those of the protocols.

use quorate_api::link::{About, FRAME_MAX, Move as LinkMove, Reply, Share as LinkShare};
use quorate_api::{ClaimState, ClaimStatus, MoveView, Problem, ProblemKind, UnitView};
use quorate_core::{ClaimId, Fence, Move, Refusal, Share, Shares, Unit};
use quorate_protocols::allocator::labels::Labels;
use quorate_wire::survey::End;

use crate::admission;
use crate::config::PoolDef;
use crate::ledger::{Snapshot, Standing};

/// A claim's name, exactly.
pub(crate) fn claim_id(id: quorate_api::ClaimId) -> ClaimId {
    ClaimId { origin: id.origin(), serial: id.serial() }
}

/// And back.
pub(crate) fn api_id(id: ClaimId) -> quorate_api::ClaimId {
    quorate_api::ClaimId::from_halves(id.origin, id.serial)
}

/// How a claim ended, for other nodes. What is not over has ended nowhere, and is not told as such.
pub(crate) fn end(state: ClaimState) -> End {
    match state {
        ClaimState::Released => End::Released,
        ClaimState::Waiting | ClaimState::Granted | ClaimState::Cancelled => End::Cancelled,
        ClaimState::Lost => End::Lost,
        ClaimState::Refused => End::Refused,
        ClaimState::Revoked => End::Revoked,
    }
}

/// And back.
pub(crate) fn state(end: End) -> ClaimState {
    match end {
        End::Released => ClaimState::Released,
        End::Cancelled => ClaimState::Cancelled,
        End::Lost => ClaimState::Lost,
        End::Refused => ClaimState::Refused,
        End::Revoked => ClaimState::Revoked,
    }
}

/// What a client shows as its grant. Nothing if a unit appears twice.
pub(crate) fn shares(shown: impl IntoIterator<Item = (u32, u64)>) -> Option<Shares> {
    let shares: Vec<Share> = shown
        .into_iter()
        .map(|(unit, fence)| Share { unit: Unit(unit), fence: Fence(fence) })
        .collect();
    let shares = Shares::new(&shares);
    let distinct = shares.as_slice().windows(2).all(|pair| pair[0].unit < pair[1].unit);
    distinct.then_some(shares)
}

/// Units as people see them.
pub(crate) fn unit_views(
    shares: impl Iterator<Item = (u32, u64)>,
    def: &PoolDef,
    labels: Option<&Labels>,
) -> Vec<UnitView> {
    let share = |(unit, fence)| Share { unit: Unit(unit), fence: Fence(fence) };
    shares.map(|one| unit_view(share(one), def, labels)).collect()
}

fn unit_view(share: Share, def: &PoolDef, labels: Option<&Labels>) -> UnitView {
    let (unit, labels) = (share.unit.0, labels.and_then(|all| all.of(share.unit)));
    UnitView {
        unit,
        name: def.unit_names.get(share.unit.index()).cloned(),
        labels: labels.cloned().unwrap_or_default(),
        fence: share.fence.0,
    }
}

/// Bytes that may be spent on what is known of the units of a grant.
const ABOUT_MAX: usize = FRAME_MAX / 4;

/// What is known of units, as far as it fits.
fn about(shares: &Shares, def: &PoolDef, labels: Option<&Labels>) -> Vec<About> {
    let mut room = ABOUT_MAX;
    let known = shares.iter().map_while(|share| {
        let name = def.unit_names.get(share.unit.index())?.clone();
        let labels = labels.and_then(|all| all.of(share.unit)).cloned().unwrap_or_default();
        let words = labels.iter().map(|(key, value)| key.len() + value.len() + 2);
        room = room.checked_sub(name.len() + 4 + words.sum::<usize>())?;
        Some(About { name, labels })
    });
    known.collect()
}

/// How a claim stands, in JSON's words.
pub(crate) fn status(
    snapshot: Snapshot,
    pool: &str,
    (node, boot): (&str, u32),
    def: &PoolDef,
) -> ClaimStatus {
    let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let shares = snapshot.shares.iter().flatten().map(|s| (s.unit.0, s.fence.0));
    let labels = snapshot.labels.as_deref();
    ClaimStatus {
        id: api_id(snapshot.id),
        pool: pool.to_owned(),
        state: snapshot.state,
        asked: snapshot.want.units(),
        lines: snapshot.want.lines,
        units: unit_views(shares, def, labels),
        moves: move_views(snapshot.moves.iter().copied(), def, labels),
        counted: snapshot.counted,
        expires_in_ms: (snapshot.state == ClaimState::Granted && !snapshot.stands)
            .then(|| millis(snapshot.valid_for)),
        standing: snapshot.stands,
        waited_ms: millis(snapshot.waited),
        node: node.to_owned(),
        boot: Some(boot),
        decides: snapshot.decides.as_deref().map(str::to_owned),
        grant: snapshot.grant,
        client: snapshot.want.client,
        reason: snapshot.want.reason,
        ended: snapshot.ended,
        why: None,
        unheard: Vec::new(),
        unknown: false,
    }
}

/// Moves as people see them.
pub(crate) fn move_views(
    moves: impl Iterator<Item = Move>,
    def: &PoolDef,
    labels: Option<&Labels>,
) -> Vec<MoveView> {
    let view = |share| unit_view(share, def, labels);
    moves.map(|it| MoveView { from: view(it.from), to: view(it.to) }).collect()
}

/// A claim that the pool's protocol would not take.
pub(crate) fn refused(refusal: Option<Refusal>, why: Option<String>) -> Problem {
    match refusal {
        Some(Refusal::NameTaken) | None => admission::different(),
        Some(
            Refusal::Cancelled
            | Refusal::NotByName
            | Refusal::TooManyForOneNode
            | Refusal::NeverEnough,
        ) => Problem::new(ProblemKind::Impossible, why.unwrap_or_default()),
    }
}

fn link_share(share: Share) -> LinkShare {
    LinkShare { unit: share.unit.0, fence: share.fence.0 }
}

/// What a client is asked to do; with what is known of the unit, if that is wanted.
pub(crate) fn link_move(it: Move, def: Option<&PoolDef>, labels: Option<&Labels>) -> LinkMove {
    let known = def.map(|def| unit_view(it.to, def, labels));
    let about =
        known.map(|unit| About { name: unit.name.unwrap_or_default(), labels: unit.labels });
    LinkMove { from: link_share(it.from), to: link_share(it.to), about: about.unwrap_or_default() }
}

/// How a claim stands, in the link's words, and what is known of its units to whoever claims.
pub(crate) fn reply(standing: Standing<'_>, def: Option<&PoolDef>, claims: bool) -> Reply {
    let micros = |span: std::time::Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let labels = standing.labels;
    match (standing.state, standing.shares) {
        (ClaimState::Granted, Some(shares)) => Reply::Granted {
            units: shares.iter().map(|share| link_share(*share)).collect(),
            valid_for_micros: micros(standing.valid_for),
            lease_micros: micros(standing.lease),
            counted: standing.counted,
            about: def.filter(|_| claims).map(|def| about(shares, def, labels)).unwrap_or_default(),
            moves: standing.moves.iter().map(|it| link_move(*it, def, labels)).collect(),
        },
        (ClaimState::Waiting | ClaimState::Granted, _) => Reply::Waiting,
        (ClaimState::Refused, _) => {
            Reply::Problem(refused(standing.refusal, standing.ended.map(str::to_owned)))
        }
        (ClaimState::Lost, _) if standing.lapsed => Reply::Problem(admission::lost_here()),
        (state, _) => Reply::Over { state, why: standing.ended.unwrap_or_default().to_owned() },
    }
}
