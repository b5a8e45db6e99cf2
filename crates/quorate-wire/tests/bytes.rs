//! The bytes between nodes: pinned, and unharmed by nonsense.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use quorate_core::{
    ClaimId, Fence, Line, Moment, Move, NodeId, Share, Shares, Stamp, Unit, Units, Wanted,
};
use quorate_protocols::Goods;
use quorate_protocols::allocator::labels::Labels;
use quorate_protocols::central::{Attempt, Central, Message, Pool, Record, RecordLine};
use quorate_wire::frame::{self, Data, Frame, FrameError, Load};
use quorate_wire::glance::{self, Glance};
use quorate_wire::order::{Done, Order, Ordered, Outcome, Receipt};
use quorate_wire::survey::{Answer, HomeClaim, Question, Survey, Whose};
use quorate_wire::tidings::{Heard, OfPool, Owned, Tidings};
use quorate_wire::{DecodeError, Hello, Life, Resume, Wire};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

const CLAIM: ClaimId = ClaimId { origin: 1, serial: 300 };
const ATTEMPT: Attempt = Attempt { boot: 2, clock: 5 };

fn shares() -> Shares {
    let share = |unit, fence| Share { unit: Unit(unit), fence: Fence(fence) };
    Shares::new(&[share(0, 7), share(3, 9)])
}

fn a_move() -> Move {
    let shares = shares();
    Move { from: shares.as_slice()[0], to: shares.as_slice()[1] }
}

/// One of units 0 and 2, and unit 7 if it is an h100.
fn lines() -> Arc<[Line]> {
    let line = |among: &[u32]| Line::of(Units::ONE, among.iter().map(|unit| Unit(*unit)).collect());
    let labels = BTreeMap::from([("gpu".to_owned(), "h100".to_owned())]);
    Arc::new([line(&[0, 2]), Line { labels: Some(Arc::new(labels)), ..line(&[7]) }])
}

/// Every message of `central` with its bytes. A changed line is a changed format: raise the
/// version.
fn messages() -> Vec<(Message, &'static str)> {
    let (claim, attempt, sent) = (CLAIM, ATTEMPT, Moment(1000));
    let request = |lines, movable| {
        let wanted = Wanted { units: Units::new(2, 3).unwrap(), lines, movable, standing: None };
        Message::Request { claim, attempt, wanted, sent }
    };
    let waited = Duration::from_nanos(6);
    vec![
        (request(None, false), "0001ac02020502000000e807"),
        (
            Message::Grant { claim, attempt, shares: shares(), sent, waited },
            "0101ac0202050200070309e80706",
        ),
        (Message::Release { claim }, "0201ac02"),
        (Message::Decline { claim, attempt, fence: None }, "0301ac02020500"),
        (Message::Decline { claim, attempt, fence: Some(Fence(9)) }, "0301ac0202050109"),
        (Message::Renew { claim, attempt, shares: shares(), sent }, "0401ac0202050200070309e807"),
        (Message::Renewed { claim, attempt, sent }, "0501ac020205e807"),
        (Message::Lost { claim, attempt, fence: Fence(300) }, "0601ac020205ac02"),
        (
            request(Some(lines()), false),
            "0001ac020205020102010105000101800101010367707504683130300000e807",
        ),
        (
            request(Some(lines()), true),
            "0001ac020205020102010105000101800101010367707504683130300100e807",
        ),
        (request(None, true), "0001ac02020502000100e807"),
        (Message::Move { claim, attempt, it: a_move() }, "0701ac02020500070309"),
        (Message::Refused { claim, attempt }, "0801ac020205"),
    ]
}

#[test]
fn messages_of_central_are_pinned() {
    for (message, golden) in messages() {
        let mut bytes = Vec::new();
        Central::encode_message(&message, &mut bytes);
        assert_eq!(hex(&bytes), golden, "{message}");
        assert_eq!(Central::decode_message(&bytes), Ok(message));
    }
}

fn record(pool: &Pool) -> Record {
    let line = RecordLine {
        claim: CLAIM,
        node: NodeId(1),
        attempt: ATTEMPT,
        stamp: Stamp { clock: 4, node: NodeId(2) },
        shares: shares(),
        sent: Moment(1),
        arrived: Moment(2),
        waited: Duration::from_nanos(3),
        adopted: false,
        moves: vec![a_move()],
    };
    let labels = BTreeMap::from([("gpu".to_owned(), "h100".to_owned())]);
    let relabelled = BTreeMap::from([(Unit(2), labels)]);
    Record::from_lines(pool, true, vec![line], vec![Unit(1)], relabelled).unwrap()
}

#[test]
fn the_record_of_central_is_pinned_and_must_fit_its_pool() {
    let labels = Some(Arc::new(Labels::new(vec![Default::default(); 4])));
    let pool = Pool::of(Goods { labels, ..Goods::new(4) });
    let mut bytes = Vec::new();
    Central::encode_record(&record(&pool), &mut bytes);
    assert_eq!(
        hex(&bytes),
        "03010101ac020102050402020007030901020300010007030901 02 01 02 01 03677075 0468313030"
            .replace(' ', "")
    );
    assert_eq!(Central::decode_record(&pool, &bytes), Ok(record(&pool)));
    let smaller = Central::decode_record(&Pool::new(3), &bytes);
    assert_eq!(smaller, Err(DecodeError::Impossible("u3 in a pool of 3 units".into())));
    let alike = Central::decode_record(&Pool::new(4), &bytes);
    let why = "labels of units that the pool cannot have";
    assert_eq!(alike, Err(DecodeError::Impossible(why.into())));
    bytes[0] = 1;
    assert!(Central::decode_record(&pool, &bytes).is_err(), "another version");
}

#[test]
fn what_no_peer_could_have_sent_does_not_decode() {
    for (hex, why) in [
        ("0001ac020205000000e807", "no units"),
        ("0401ac0202050203070009e807", "units out of order"),
        ("0401ac0202050203070309e807", "a unit twice"),
        ("0201ac0200", "something after the message"),
        ("0901ac02", "no such message"),
        ("0001ac020205000001e807", "movable, and for no units"),
        ("0001ac02020501010000e807", "a choice without lines"),
        ("0001ac0202050101020001050001010500 00 00 e807", "a line for no units"),
        ("0001ac020205020101010105 00 00 00 e807", "lines that do not add up"),
        ("0001ac02020501010101020500 00 00 00 e807", "a set of units with nothing at its end"),
        ("0001ac02020501010101010501020167016801670169 00 00 e807", "a label twice"),
        ("0001ac0202050101010101050101 0167 0120 00 00 e807", "a label that cannot be"),
        ("02", "too short"),
        ("", "empty"),
    ] {
        let hex = hex.replace(' ', "");
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        assert!(Central::decode_message(&bytes).is_err(), "{why}");
    }
}

fn frames() -> Vec<(Frame<'static>, &'static str)> {
    let hello = Hello {
        cluster: "c".into(),
        epoch: 1,
        digest: 2,
        node: "a".into(),
        to: "b".into(),
        resume: Resume {
            life: Life { boot: 3, mark: 6 },
            knows: Some(Life { boot: 4, mark: 7 }),
            received: 5,
        },
    };
    let home = HomeClaim {
        claim: (1, 2),
        units: 1,
        client: "ci".into(),
        reason: String::new(),
        lines: vec![(2, [("k".to_owned(), "v".to_owned())].into())],
        shares: Some(vec![(0, 7)]),
        moves: vec![((0, 7), (1, 8))],
        since_micros: 1,
        left_micros: 2,
        standing: false,
        revoked: None,
        boot: 5,
        grant: Some(6),
    };
    let survey = Survey { claims: vec![home], grace_micros: Some(3), ..Survey::default() };
    let labels = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    let data = |load, packed| Frame::Data(Data { load, seq: 1, ack: 2, packed });
    vec![
        (Frame::Hello(hello), "517501010e0000000163010201610162030601040705"),
        (Frame::Refused("no".into()), "5175010203000000026e6f"),
        (data(Load::Message, b"\x01px"), "51750103050000000102017078"),
        (data(Load::Order, b"x"), "5175010903000000010278"),
        (data(Load::Receipt, b"x"), "5175010a03000000010278"),
        (data(Load::Tidings, b"x"), "5175010c03000000010278"),
        (data(Load::Heard, b"x"), "5175010d03000000010278"),
        (Frame::Ack(300), "5175010402000000ac02"),
        (Frame::Ask(1, Question::Pool { pool: "p".into() }), "517501050400000001000170"),
        (
            Frame::Ask(1, Question::Owner { pool: "p".into(), claim: (2, 3) }),
            "5175010506000000010301700203",
        ),
        (
            Frame::Tell(1, Answer::Survey(Box::new(survey))),
            "51750106370000000100010102010263690001020101 6b 0176 01010007 01 0007 0108 \
             010200 00 05 0106 00000103 00 00000000000000000000 00 00 00 00 00 00 00",
        ),
        (
            Frame::Tell(1, Answer::Owner(Whose { client: Some("ci".into()), booked: true })),
            "51750106070000000102 01 026369 01",
        ),
        (Frame::Ping(300), "5175010702000000ac02"),
        (Frame::Pong(300), "5175010802000000ac02"),
        (
            Frame::Ask(1, Question::Glance(glance::Wanted::default())),
            "5175010509000000010200000000 00 00 00",
        ),
        (Frame::Labels("p".into(), vec![(2, labels)]), "5175010b09000000017001020101 6b 0176"),
    ]
}

#[test]
fn frames_are_pinned_and_come_back_as_they_were() {
    for (value, golden) in frames() {
        let mut bytes = Vec::new();
        frame::encode(&value, &mut bytes);
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{value:?}");
        for short in 0..bytes.len() {
            assert_eq!(frame::decode(&bytes[..short]), Ok(None), "{value:?} cut at {short}");
        }
        assert_eq!(frame::decode(&bytes), Ok(Some((value, bytes.len()))));
    }
    let mut two = Vec::new();
    frame::encode(&Frame::Ack(1), &mut two);
    let one = two.len();
    frame::encode(&Frame::Ack(2), &mut two);
    assert_eq!(frame::whole(&two[..one - 1]), Ok(0));
    assert_eq!(frame::whole(&two[..two.len() - 1]), Ok(one));
    assert_eq!(frame::whole(&two), Ok(two.len()));
    let mut packed = Vec::new();
    frame::pack("gpu", &mut packed);
    packed.push(9);
    assert_eq!(frame::unpack(&packed), Ok(("gpu", &[9][..])));
}

#[test]
fn tidings_are_pinned_and_come_back_as_they_were() {
    let owned = vec![Owned { client: "ci".into(), claims: vec![(6, 7)] }];
    let (here, over) = (vec![(1, 300)], vec![(2, 3), (4, 5)]);
    let of = OfPool { pool: "p".into(), here, over, owned, left: vec![(8, 9)] };
    for (tidings, golden) in [
        (
            Tidings { number: None, pools: vec![of] },
            "00 01 0170 01 01ac02 02 0203 0405 01 026369 01 0607 01 0809",
        ),
        (Tidings { number: Some(300), pools: Vec::new() }, "01ac02 00"),
    ] {
        let bytes = frame::seal(&tidings);
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{tidings:?}");
        assert_eq!(frame::open::<Tidings>(&bytes), Ok(tidings));
    }
    let bytes = frame::seal(&Heard { number: 300 });
    assert_eq!(hex(&bytes), "ac02");
    assert_eq!(frame::open::<Heard>(&bytes), Ok(Heard { number: 300 }));
    // A list that is said to be longer than the bytes there are is no list.
    for nonsense in ["00ffffffff0f", "0001 0170 ffffffff0f", "02"] {
        let nonsense = nonsense.replace(' ', "");
        let bytes: Vec<u8> = (0..nonsense.len() / 2)
            .map(|at| u8::from_str_radix(&nonsense[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        assert!(frame::open::<Tidings>(&bytes).is_err(), "{nonsense}");
    }
}

#[test]
fn orders_and_receipts_are_pinned_and_come_back_as_they_were() {
    let labels = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    let orders = [
        (Ordered::Revoke { claim: (1, 2), reason: "no".into() }, "ac02 0161 0170 00 01 02 026e6f"),
        (Ordered::Drain { unit: 3 }, "ac02 0161 0170 01 03"),
        (Ordered::Restore { unit: 3 }, "ac02 0161 0170 02 03"),
        (Ordered::Relabel { unit: 3, labels: None }, "ac02 0161 0170 03 03 00"),
        (
            Ordered::Relabel { unit: 3, labels: Some(labels) },
            "ac02 0161 0170 03 03 01 01 016b 0176",
        ),
    ];
    for (what, golden) in orders {
        let order = Order { id: 300, by: "a".into(), pool: "p".into(), what };
        let bytes = frame::seal(&order);
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{order:?}");
        assert_eq!(frame::open::<Order>(&bytes), Ok(order));
    }
    let outcome = Outcome { granted: vec![(1, 2)], refused: vec![] };
    let receipts = [
        (Done::NotHere, "ac02 00"),
        (Done::Obeyed(outcome), "ac02 01 01 01 02 00"),
        (Done::Objected("no".into()), "ac02 02 026e6f"),
    ];
    for (done, golden) in receipts {
        let receipt = Receipt { id: 300, done };
        let bytes = frame::seal(&receipt);
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{receipt:?}");
        assert_eq!(frame::open::<Receipt>(&bytes), Ok(receipt));
    }
}

#[test]
fn strangers_are_recognised_by_their_first_bytes() {
    assert_eq!(frame::decode(b"GET / HTTP/1.1"), Err(FrameError::Magic));
    assert_eq!(frame::decode(b"Qx"), Err(FrameError::Magic));
    assert_eq!(frame::decode(b"Qu\x02"), Err(FrameError::Version(2)));
    assert_eq!(frame::decode(b"Qu\x01\x11\0\0\0\0"), Err(FrameError::Kind(17)));
    assert_eq!(frame::decode(b"Qu\x01\x03\xff\xff\xff\xff"), Err(FrameError::Length(0xffff_ffff)));
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Central::decode_message(&bytes);
        let _ = Central::decode_record(&Pool::new(4), &bytes);
        let _ = frame::unpack(&bytes);
        let _ = frame::open::<Order>(&bytes);
        let _ = frame::open::<Receipt>(&bytes);
        let _ = frame::open::<Tidings>(&bytes);
        let _ = frame::open::<Heard>(&bytes);
        for kind in 0..13 {
            let mut framed = vec![b'Q', b'u', 1, kind, bytes.len() as u8, 0, 0, 0];
            framed.extend_from_slice(&bytes);
            let _ = frame::decode(&framed);
        }
    }

    #[test]
    fn a_flipped_byte_gives_another_message_or_none(
        which in 0usize..12, at in 0usize..32, flip in 1u8..
    ) {
        let (message, _) = messages().swap_remove(which);
        let mut bytes = Vec::new();
        Central::encode_message(&message, &mut bytes);
        let at = at % bytes.len();
        bytes[at] ^= flip;
        // Never the same one: every byte means something.
        prop_assert_ne!(Central::decode_message(&bytes), Ok(message));
    }
}

/// Clients say a lot about what they want, and somebody looks.
#[test]
fn an_answer_that_is_too_long_for_a_frame_has_less_in_it() {
    let claim = |serial| HomeClaim {
        claim: (1, serial),
        units: 1,
        client: "c".repeat(20_000),
        reason: String::new(),
        lines: Vec::new(),
        shares: None,
        moves: Vec::new(),
        since_micros: 0,
        left_micros: 0,
        standing: false,
        revoked: None,
        boot: 1,
        grant: None,
    };
    for (claims, told) in [(0, 0), (200, 200), (1000, 124), (1, 1)] {
        let survey = Survey { claims: (0..claims).map(claim).collect(), ..Survey::default() };
        let bytes = frame::encode_answer(7, Answer::Survey(Box::new(survey)));
        let Ok(Some((Frame::Tell(7, Answer::Survey(heard)), _))) = frame::decode(&bytes) else {
            panic!("{claims} claims are no frame");
        };
        assert_eq!((heard.claims.len() as u64, heard.left_out), (told, claims - told));
    }
    let long = HomeClaim { client: "x".repeat(frame::BODY_MAX), ..claim(1) };
    let survey = Survey { claims: vec![long], ..Survey::default() };
    let glance = Glance { survey, boot: 3, ..Glance::default() };
    let bytes = frame::encode_answer(7, Answer::Glance(Box::new(glance)));
    let Ok(Some((Frame::Tell(7, Answer::Glance(heard)), _))) = frame::decode(&bytes) else {
        panic!("a long text is no frame");
    };
    assert_eq!((heard.boot, heard.survey.left_out), (3, 1));
}
