//! The bytes of `arbiter`, `broadcast`, `ring`, `table`, `ticket` and `central` with a seat that
//! moves: pinned, and unharmed by nonsense. A changed line is a changed format: raise the version.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use quorate_core::{
    ClaimId, Fence, Line, Moment, NodeId, NodeSet, Share, Shares, Stamp, Unit, Units, Wanted,
};
use quorate_protocols::Attempt;
use quorate_protocols::allocator::labels::Labels;
use quorate_protocols::arbiter::{
    self, Arbiter, End, GrantNumber, Record, RecordLine, RecordLines,
};
use quorate_protocols::broadcast::{self, Known, Weighted};
use quorate_protocols::central::moving::{self, Moving, Shown, Waiting};
use quorate_protocols::central::{self, Message as CentralWord};
use quorate_protocols::ring::{self, Census, Named, Ring};
use quorate_protocols::table::{self, Asking, Row, Sheet, State, Table, Version};
use quorate_protocols::ticket::{self, Bid, Rival, Standing, Ticket};
use quorate_wire::{DecodeError, Delivery, Wire};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
    (0..hex.len() / 2).map(digits).collect()
}

fn pinned<P: Wire>(messages: Vec<(P::Message, &'static str)>) {
    for (message, golden) in messages {
        let mut bytes = Vec::new();
        P::encode_message(&message, &mut bytes);
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{message}");
        assert_eq!(P::decode_message(&bytes), Ok(message));
    }
}

const CLAIM: ClaimId = ClaimId { origin: 1, serial: 300 };
const ATTEMPT: Attempt = Attempt { boot: 2, clock: 5 };
const STAMP: Stamp = Stamp { clock: 4, node: NodeId(2) };

fn share(unit: u32, fence: u64) -> Share {
    Share { unit: Unit(unit), fence: Fence(fence) }
}

fn wish() -> arbiter::Wish {
    let names = Some([Unit(0), Unit(3)].into());
    arbiter::Wish { units: Units::new(2, 4).unwrap(), names }
}

fn taken() -> Arc<[Unit]> {
    [Unit(1), Unit(3)].into()
}

fn pick() -> arbiter::Pick {
    arbiter::Pick { round: 4, names: taken() }
}

fn arbiter_messages() -> Vec<(arbiter::Message, &'static str)> {
    use arbiter::Message::*;
    let (claim, attempt, stamp, sent) = (CLAIM, ATTEMPT, STAMP, Moment(1000));
    let (grant, floor, token, clock) = (GrantNumber(6), Fence(7), Fence(8), 9);
    let counted = arbiter::Wish { units: Units::ONE, names: None };
    let waited = Duration::from_nanos(3);
    vec![
        (
            Request { claim, attempt, stamp, wish: wish(), token, sent },
            "0001ac0202050402020102000308e807",
        ),
        (
            Request { claim, attempt, stamp, wish: counted, token, sent },
            "0001ac0202050402010008e807",
        ),
        (
            Grant { claim, attempt, grant, floor, sent, waited, taken: taken(), clock },
            "0101ac0202050607e8070302010309",
        ),
        (Queued { claim, attempt, taken: taken(), clock }, "0201ac02020502010309"),
        (Inquire { claim, attempt, grant, clock }, "0301ac0202050609"),
        (Yield { claim, attempt, grant }, "0401ac02020506"),
        (Release { claim, attempt, end: End::Over }, "0501ac02020502"),
        (
            Renew { claim, attempt, grant: Some(grant), stamp, wish: wish(), token, sent },
            "0601ac02020501060402020102000308e807",
        ),
        (
            Renewed { claim, attempt, grant, floor, round: 4, sent, clock },
            "0701ac020205060704e80709",
        ),
        (Lost { claim, attempt, grant: None, clock }, "0801ac0202050009"),
        (Retoken { claim, attempt, grant, token }, "0901ac0202050608"),
        (Retokened { claim, attempt, grant, token, clock }, "0a01ac020205060809"),
        (Survey { clock }, "0b09"),
        (Report { highest: floor, boot: 2, sure: true, clock }, "0c07020109"),
        (Name { claim, attempt, grant, pick: pick(), used: true }, "0d01ac020205060402010301"),
        (Named { claim, attempt, grant, round: 4, floor, clock }, "0e01ac02020506040709"),
        (
            Taken { claim, attempt, grant, round: 4, taken: taken(), clock },
            "0f01ac020205060402010309",
        ),
        (Roll { clock }, "1009"),
        (Alive { attempt, claims: [claim].into() }, "1102050101ac02"),
    ]
}

fn broadcast_messages() -> Vec<(broadcast::Message, &'static str)> {
    use broadcast::Message::*;
    let unheard: NodeSet = [1, 70].into_iter().collect();
    let crashed = [(NodeId(0), 3)].into_iter().collect();
    let known = broadcast::Knowledge::from(Known { life: 4, unheard, crashed });
    let nobody = broadcast::Knowledge::default();
    vec![
        (
            Request { clock: 300, oldest: 5, query: Some(6), known: known.clone() },
            "00ac0205010604020240010003",
        ),
        (
            Reply { request: Some(7), used: 2, query: None, known: known.clone() },
            "010107020004020240010003",
        ),
        (Query { query: 8, known: nobody }, "0208000000"),
        (Notice { known: known.clone() }, "0304020240010003"),
        (Join { life: 300 }, "04ac02"),
        (Joined { life: 300, clock: 5, known }, "05ac020504020240010003"),
        (Expelled { life: 2 }, "0602"),
    ]
}

fn ring_messages() -> Vec<(ring::Parcel, &'static str)> {
    use ring::Message::*;
    let tokens = || Named::new(&[share(0, 7), share(3, 9)]);
    let frame = ring::Frame {
        seq: 300,
        order: true,
        free: tokens(),
        alloc: Named::default(),
        coll: Named::new(&[share(1, 2)]),
        counted: Census::from_parts(&[share(2, 5)], 1),
        kill: false,
        waited: true,
        waits: false,
        blind: true,
    };
    let epoch = ring::Epoch { config: 2, boot: 1, change: 3 };
    let skipped = std::iter::once(NodeId(6)).collect();
    let parcel = |message| ring::Parcel { epoch, back: None, skipped: NodeSet::new(), message };
    let frame = ring::Parcel { back: Some(299), skipped, ..parcel(Frame(Box::new(frame))) };
    vec![
        (parcel(Token(tokens())), "0201030000000200070309"),
        (parcel(Controller(300)), "020103000001ac02"),
        (parcel(Enabled(tokens())), "0201030000020200070309"),
        (parcel(Collect(Named::default())), "02010300000300"),
        (parcel(Allocate { tokens: tokens(), order: true }), "020103000004020007030901"),
        (parcel(Disable), "020103000005"),
        (frame, "02010301ab02014006ac02020007030900010102010205010100010001"),
        (parcel(Wake), "020103000007"),
    ]
}

fn ticket_messages() -> Vec<(ticket::Message, &'static str)> {
    use ticket::Message::*;
    let (claim, attempt, units, sent) = (CLAIM, ATTEMPT, Units::new(2, 4).unwrap(), Moment(1000));
    let (ticket, mark, seen) = (Fence(7), Fence(9), Fence(9));
    let rival = |serial, node| {
        let claim = ClaimId { origin: 1, serial };
        Rival { bid: Bid { claim, node: NodeId(node), boot: 3 }, units: Units::ONE }
    };
    let rivals = Arc::new([rival(4, 0), rival(300, 2)]);
    vec![
        (Register { claim, attempt, units, above: Fence(6), sent }, "0001ac0202050206e807"),
        (Propose { claim, attempt, ticket }, "0101ac02020507"),
        (
            Settle { claim, attempt, units, ticket, standing: Standing::Held, seen, sent },
            "0201ac02020502070209e807",
        ),
        (View { claim, attempt, rivals, mark, sent }, "0301ac02020502010400030101ac0202030109e807"),
        (View { claim, attempt, rivals: Arc::new([]), mark, sent }, "0301ac0202050009e807"),
        (Queued { claim, attempt, mark }, "0401ac02020509"),
        (Renewed { claim, attempt, sent }, "0501ac020205e807"),
        (Lost { claim, attempt }, "0601ac020205"),
        (Release { claim, attempt, whole: true }, "0701ac02020501"),
    ]
}

fn moving_messages() -> Vec<(moving::Message, &'static str)> {
    use moving::Message::{Answer, Books, Promise, Roll, Tell, Told, Word};
    let (claim, attempt, sent) = (CLAIM, ATTEMPT, Moment(1000));
    let wanted = Wanted::any(Units::new(2, 4).unwrap());
    let request = CentralWord::Request { claim, attempt, wanted: wanted.clone(), sent };
    let shown = || Shown { claim, attempt, shares: Shares::new(&[share(0, 7), share(3, 9)]) };
    let waiting = vec![Waiting { node: NodeId(1), claim, attempt, wanted, sent }];
    let granted = vec![(NodeId(2), sent, shown())];
    let told = granted.clone();
    let books =
        |of, term, granted, waiting| Books(Box::new(moving::Books { of, term, granted, waiting }));
    let ended = vec![(claim, Fence(9))];
    vec![
        (Word { term: 300, word: request }, "00ac020001ac02020502000000e807"),
        (Word { term: 3, word: CentralWord::Release { claim } }, "00030201ac02"),
        (Roll { term: 300 }, "01ac02"),
        (Answer { term: 3, complete: false, sent, grants: Vec::new() }, "020300e80700"),
        (
            Answer { term: 3, complete: true, sent, grants: vec![shown()] },
            "020301e8070101ac0202050200070309",
        ),
        (books(3, 300, Vec::new(), Vec::new()), "0303ac020000"),
        (
            books(2, 3, granted, waiting),
            "030203 01 02e80701ac0202050200070309 01 0101ac02020502000000e807",
        ),
        (
            Tell { term: 3, boot: 4, naming: 300, all: true, granted: told, ended: Vec::new() },
            "040304ac0201 01 02e80701ac0202050200070309 00",
        ),
        (
            Tell { term: 3, boot: 4, naming: 5, all: false, granted: Vec::new(), ended },
            "040304050000 01 01ac0209",
        ),
        (
            Told { term: 3, naming: 5, all: false, claims: vec![(claim, Fence(9))] },
            "050305000101ac0209",
        ),
        (
            Promise {
                term: 300,
                lease: Duration::from_nanos(1000),
                word: CentralWord::Renewed { claim, attempt, sent },
            },
            "06ac02e8070501ac020205e807",
        ),
    ]
}

fn version(round: u64, count: u64) -> Version {
    Version { round: Fence(round), count: Fence(count) }
}

/// One claim holds a unit, and one waits for two that differ.
fn sheet() -> Arc<Sheet> {
    let row = |age, units, lines, state| Row {
        node: NodeId(2),
        attempt: ATTEMPT,
        age,
        wanted: Wanted { lines, ..Wanted::any(Units::new(units, 4).unwrap()) },
        passed: 1,
        shared: true,
        others: Vec::new(),
        state,
    };
    let line = |unit| Line::of(Units::ONE, [Unit(unit), Unit(3)].into());
    let (sent, waited, absent) = (Moment(1000), Duration::from_nanos(3), Duration::from_nanos(2));
    let waits = State::Waiting { sent, waited, absent: Some(absent), absences: 1 };
    let has = State::Granted { shares: Shares::new(&[share(1, 7)]), since: version(2, 8) };
    let lines: Arc<[Line]> = [line(0), line(2)].into();
    let other = ClaimId { origin: 2, serial: 4 };
    let before = Asking { node: NodeId(1), attempt: ATTEMPT, sent, waited };
    let waits = Row { others: vec![before], ..row(6, 2, Some(lines), waits) };
    let rows = [(CLAIM, row(5, 1, None, has)), (other, waits)];
    Arc::new(Sheet { version: version(2, 9), fence: Fence(7), rows: rows.into() })
}

fn table_messages() -> Vec<(table::Message, &'static str)> {
    use table::Message::*;
    let (claim, attempt, section, round) = (CLAIM, ATTEMPT, ATTEMPT, Fence(3));
    let (sent, waited) = (Moment(1000), Duration::from_nanos(3));
    let overdue: Arc<[(ClaimId, Version)]> = [(claim, version(2, 8))].into();
    vec![
        (Lock { section, round }, "00020503"),
        (Queued { section }, "010205"),
        (
            Locked { section, sheet: sheet(), known_for: waited, overdue, floor: Fence(6) },
            "0202050209070201ac02020205050100000001010001010107020802\
             04020205060201020101090001010c000000010101010205e8070300e80703010201030101ac02020806",
        ),
        (Refused { section, round, closed: true }, "0302050301"),
        (
            Store { section, sheet: sheet() },
            "0402050209070201ac02020205050100000001010001010107020802\
             04020205060201020101090001010c000000010101010205e8070300e80703010201",
        ),
        (Stored { section }, "050205"),
        (Unlock { section, clean: true }, "06020501"),
        (Probe { section }, "070205"),
        (Busy { section }, "080205"),
        (
            Notify { claim, attempt, shares: Shares::new(&[share(1, 7)]), sent, waited },
            "0901ac020205010107e80703",
        ),
        (Lost { claim, attempt }, "0a01ac020205"),
        (Ask { claim, attempt }, "0b01ac020205"),
        (Told { claim, attempt, waits: true }, "0c01ac02020501"),
        (Survey, "0d"),
        (Report { round, fence: Fence(7), boot: 2, sure: true, sheet: None }, "0e0307020100"),
    ]
}

#[test]
fn messages_are_pinned() {
    pinned::<Arbiter>(arbiter_messages());
    pinned::<Moving>(moving_messages());
    pinned::<Weighted>(broadcast_messages());
    pinned::<Ring>(ring_messages());
    pinned::<Table>(table_messages());
    pinned::<Ticket>(ticket_messages());
}

#[test]
fn only_what_carries_tokens_is_fleeting() {
    assert_eq!(Arbiter::DELIVERY, Delivery::Resumed);
    assert_eq!(Moving::DELIVERY, Delivery::Resumed);
    assert_eq!(Weighted::DELIVERY, Delivery::Resumed);
    assert_eq!(Table::DELIVERY, Delivery::Resumed);
    assert_eq!(Ticket::DELIVERY, Delivery::Resumed);
    assert_eq!(Ring::DELIVERY, Delivery::Fleeting);
}

fn record(pool: &arbiter::Pool) -> Record {
    let line = RecordLine {
        claim: CLAIM,
        node: NodeId(1),
        attempt: ATTEMPT,
        stamp: STAMP,
        wish: wish(),
        token: Fence(8),
        overtaken: 1,
        sent: Moment(1),
        arrived: Moment(2),
        grant: GrantNumber(6),
        inquired: false,
        waited: Duration::from_nanos(3),
        adopted: true,
        shared: true,
        pick: None,
    };
    let (base, floors) = (Fence(5), Shares::new(&[share(1, 4)]));
    let lines = RecordLines { unsure: true, base, floors, lines: vec![line] };
    Record::from_lines(pool, lines).unwrap()
}

#[test]
fn the_record_of_arbiter_is_pinned_and_must_fit_its_pool() {
    let pool = arbiter::Pool::named(4, 3);
    let mut bytes = Vec::new();
    Arbiter::encode_record(&record(&pool), &mut bytes);
    assert_eq!(hex(&bytes), "0301050101040101ac020102050402020102000308010102060003010100");
    assert_eq!(Arbiter::decode_record(&pool, &bytes), Ok(record(&pool)));
    let smaller = Arbiter::decode_record(&arbiter::Pool::named(3, 3), &bytes);
    assert_eq!(smaller, Err(DecodeError::Impossible("u3 in a pool of 3 units".into())));
    assert!(Arbiter::decode_record(&arbiter::Pool::new(4, 3), &bytes).is_err(), "it only counts");
    bytes[0] = 1;
    assert!(Arbiter::decode_record(&pool, &bytes).is_err(), "another version");
}

#[test]
fn the_record_of_table_is_pinned_and_must_fit_its_pool() {
    let names = |units| (0..units).map(|unit| (format!("u{unit}"), Default::default())).collect();
    let pool = |units: u32| {
        let mut pool = table::Pool::new(units, 3);
        pool.goods.labels = Some(Arc::new(Labels::new(names(units))));
        pool
    };
    let sheet = Some(Sheet::clone(&sheet()));
    let record = table::Record { round: Fence(3), fence: Fence(300), unsure: true, sheet };
    let mut bytes = Vec::new();
    Table::encode_record(&record, &mut bytes);
    assert_eq!(
        hex(&bytes),
        "0603ac0201010209070201ac02020205050100000001010001010107020802\
             04020205060201020101090001010c000000010101010205e8070300e80703010201"
    );
    assert_eq!(Table::decode_record(&pool(4), &bytes), Ok(record));
    let smaller = Table::decode_record(&pool(3), &bytes);
    assert!(smaller.is_err(), "a pool of three units has no u3: {smaller:?}");
    assert!(Table::decode_record(&table::Pool::new(4, 3), &bytes).is_err(), "units are alike");
    bytes[0] = 1;
    assert!(Table::decode_record(&pool(4), &bytes).is_err(), "another version");
}

#[test]
fn protocols_without_a_record_read_nothing_back() {
    assert_eq!(Weighted::decode_record(&broadcast::Pool::weighted(3, 2, 1, 1), &[]), Ok(()));
    assert_eq!(Ring::decode_record(&ring::Pool::new(2, 3), &[]), Ok(()));
    assert!(Ring::decode_record(&ring::Pool::new(2, 3), &[0]).is_err());
    assert_eq!(Ticket::decode_record(&ticket::Pool::new(2, 3), &[]), Ok(()));
    assert!(Ticket::decode_record(&ticket::Pool::new(2, 3), &[0]).is_err());
    let pool = moving::Pool::new(central::Pool::new(2), 3);
    assert!(Moving::decode_record(&pool, &[]).is_err(), "there is none to read");
}

fn refused<P: Wire>(cases: &[(&str, &str)])
where
    P::Message: Debug,
{
    for (hex, why) in cases {
        let decoded = P::decode_message(&bytes(hex));
        assert!(decoded.is_err(), "{why}: {decoded:?}");
    }
}

#[test]
fn what_no_peer_could_have_sent_does_not_decode() {
    refused::<Arbiter>(&[
        ("0001ac0202050402000008e807", "no units"),
        ("0001ac0202050402020102030008e807", "names out of order"),
        ("0001ac0202050402030102000308e807", "three units with two names"),
        ("0bffffffffffffffffff01", "a clock near its end"),
        ("0cffffffffffffffffff01020109", "a fence near its end"),
        ("0d", "no such message"),
        ("", "empty"),
    ]);
    refused::<Moving>(&[
        ("00ffffffff0f0201ac02", "a term that cannot have been reached"),
        ("00030901ac02", "no such word"),
        ("020302e80700", "neither complete nor not"),
        ("020301e8070101ac0202050203070009", "units out of order"),
        ("020301e807ffffffff0f", "more grants than bytes"),
        ("03030400010101ac020205000000e807", "one that waits for nothing"),
        ("01ac0200", "something after the message"),
        ("06", "no such message"),
    ]);
    refused::<Weighted>(&[
        ("0302010000", "a set of nodes with an empty end"),
        ("03000201030004", "crashed nodes out of order"),
        ("02ffffffffffffffffff010000", "a clock near its end"),
        ("03ffffffff0f", "a set longer than its bytes"),
        ("0700", "no such message"),
    ]);
    refused::<Ring>(&[
        ("000203090007", "tokens out of order"),
        ("000103ffffffffffffffffff01", "a fence near its end"),
        ("0001808080800109", "a unit beyond all pools"),
        ("0500", "something after the message"),
        ("08", "no such message"),
    ]);
    refused::<Ticket>(&[
        ("0001ac0202050006e807", "no units"),
        ("0101ac020205ffffffffffffffffff01", "a ticket near its end"),
        ("0101ac0202ffffffffffffffffff0107", "a clock near its end"),
        ("0301ac020205ffffffff0f", "more rivals than bytes"),
        ("0301ac020205010104000300e807", "a rival that wants nothing"),
        ("0201ac020205020703e807", "neither in use nor not"),
        ("08", "no such message"),
    ]);
    refused::<Table>(&[
        ("000205ffffffffffffffffff01", "a round near its end"),
        ("0002ffffffffffffffffff0103", "a clock near its end"),
        ("040205020907ffffffff0f", "more rows than bytes"),
        (
            "0402050209070202040202050501000001000000\
             02040202050501000001000000",
            "one claim twice",
        ),
        ("0f", "no such message"),
    ]);
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Arbiter::decode_message(&bytes);
        let _ = Moving::decode_message(&bytes);
        let _ = Weighted::decode_message(&bytes);
        let _ = Ring::decode_message(&bytes);
        let _ = Ticket::decode_message(&bytes);
        let _ = Table::decode_message(&bytes);
        let _ = Table::decode_record(&table::Pool::new(4, 3), &bytes);
        let _ = Arbiter::decode_record(&arbiter::Pool::named(4, 3), &bytes);
        let _ = Arbiter::decode_record(&arbiter::Pool::new(4, 3), &bytes);
    }

    #[test]
    fn a_flipped_byte_gives_another_message_or_none(
        which in 0usize..32, at in 0usize..64, flip in 1u8..
    ) {
        flipped::<Arbiter>(arbiter_messages(), which, at, flip)?;
        flipped::<Moving>(moving_messages(), which, at, flip)?;
        flipped::<Weighted>(broadcast_messages(), which, at, flip)?;
        flipped::<Ring>(ring_messages(), which, at, flip)?;
        flipped::<Table>(table_messages(), which, at, flip)?;
        flipped::<Ticket>(ticket_messages(), which, at, flip)?;
    }
}

/// Never the same one: every byte means something.
fn flipped<P: Wire>(
    mut messages: Vec<(P::Message, &'static str)>,
    which: usize,
    at: usize,
    flip: u8,
) -> Result<(), TestCaseError> {
    let (message, _) = messages.swap_remove(which % messages.len());
    let mut bytes = Vec::new();
    P::encode_message(&message, &mut bytes);
    let at = at % bytes.len();
    bytes[at] ^= flip;
    prop_assert_ne!(P::decode_message(&bytes), Ok(message));
    Ok(())
}

/// Until the charter says who decides, members whose files know of none understand each other with
/// those whose do.
#[test]
fn a_pool_that_was_pinned_speaks_as_before_until_the_charter_says_who_decides() {
    let word = CentralWord::Release { claim: CLAIM };
    let (mut before, mut now, mut since) = (Vec::new(), Vec::new(), Vec::new());
    central::Central::encode_message(&word, &mut before);
    let pinned = moving::Message::Word { term: 0, word };
    quorate_wire::put_pinned(&pinned, &mut now);
    assert_eq!(hex(&now), hex(&before));
    assert_eq!(quorate_wire::take_pinned(&before), Ok(pinned));
    let roll = moving::Message::Roll { term: 9 };
    quorate_wire::put_pinned(&roll, &mut since);
    assert_eq!(hex(&since), "400109");
    assert_eq!(quorate_wire::take_pinned(&since), Ok(roll));
    assert!(quorate_wire::take_pinned(&[]).is_err());
}
