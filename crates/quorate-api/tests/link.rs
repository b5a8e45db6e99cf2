//! The client link's bytes: pinned, and unharmed by nonsense.

use std::collections::BTreeMap;

use quorate_api::link::{
    self, About, Answer, Ask, FrameError, FromClient, FromNode, Move, Reply, Request, Share, Token,
};
use quorate_api::{ClaimId, ClaimState, Problem, ProblemKind, Want};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn labels(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

fn requests() -> Vec<(FromClient, &'static str)> {
    let id = ClaimId::from_halves(1, 300);
    let pool = String::from("gpu");
    let request = |ask| FromClient::Request(Request { number: 5, ask });
    vec![
        (request(Ask::Hello { client: "ci".into() }), "0700000001000500026369"),
        (
            request(Ask::Claim {
                pool: pool.clone(),
                id,
                want: Want { reason: "x".into(), ..2.into() },
            }),
            "14000000010005010367707501ac02 0102 00 00 00 00 0178 00",
        ),
        (
            request(Ask::Claim {
                pool: pool.clone(),
                id,
                want: Want::with(2, labels("gpu", "h"))
                    .and(1, BTreeMap::<String, String>::new())
                    .movable(),
            }),
            "1c000000010005010367707501ac02 00 02 01 03677075 0168 02 00 01 01 00 00 00 00",
        ),
        (
            request(Ask::Renew {
                pool: pool.clone(),
                id,
                units: vec![Share { unit: 3, fence: 9 }],
            }),
            "0e000000010005020367707501ac02010309",
        ),
        (request(Ask::Release { pool: pool.clone(), id }), "0b000000010005030367707501ac02"),
        (request(Ask::Status { pool, id }), "0b000000010005040367707501ac02"),
        (request(Ask::Ping), "0400000001000505"),
        (
            request(Ask::Introduce { client: "ci".into(), token: Token("t".into()) }),
            "09000000010005060263690174",
        ),
    ]
}

fn a_move() -> Move {
    let about = About { name: "g4".into(), labels: BTreeMap::new() };
    Move { from: Share { unit: 3, fence: 9 }, to: Share { unit: 4, fence: 10 }, about }
}

fn answers() -> Vec<(FromNode, &'static str)> {
    let answer = |reply| FromNode::Answer(Answer { number: 5, reply });
    let problem = Problem::new(ProblemKind::Limit, "d");
    vec![
        (
            answer(Reply::Granted {
                units: vec![Share { unit: 3, fence: 9 }],
                valid_for_micros: 1,
                lease_micros: 2,
                counted: false,
                about: vec![About { name: "g3".into(), labels: labels("k", "v") }],
                moves: vec![a_move()],
            }),
            "1c00000001000501010309010200 01 026733 01 016b 0176 01 0309 040a 026734 00",
        ),
        (answer(Reply::Waiting), "0400000001000502"),
        (answer(Reply::Over { state: ClaimState::Lost, why: "x".into() }), "070000000100050304"),
        (answer(Reply::Problem(problem)), ""),
        (FromNode::Goodbye { go_on: None }, "030000000102 00"),
        (FromNode::Goodbye { go_on: Some("n2".into()) }, "060000000102 01 026e32"),
        (FromNode::Decides { pool: "p".into(), node: "n2".into() }, "070000000104 0170 026e32"),
        (
            FromNode::Move { pool: "p".into(), id: ClaimId::from_halves(1, 300), it: a_move() },
            "0f0000000103 0170 01ac02 0309 040a 026734 00",
        ),
    ]
}

#[test]
fn frames_are_pinned_and_come_back_as_they_were() {
    for (value, golden) in requests() {
        let mut bytes = Vec::new();
        link::encode(&value, &mut bytes);
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{value:?}");
        assert_eq!(link::decode(&bytes), Ok(Some((value, bytes.len()))));
    }
    for (value, golden) in answers() {
        let mut bytes = Vec::new();
        link::encode(&value, &mut bytes);
        let golden = golden.replace(' ', "");
        assert!(hex(&bytes).starts_with(&golden), "{value:?}: {}", hex(&bytes));
        assert_eq!(link::decode(&bytes), Ok(Some((value, bytes.len()))));
    }
}

#[test]
fn half_a_frame_asks_for_more_and_two_come_one_by_one() {
    let mut bytes = Vec::new();
    for (value, _) in requests() {
        link::encode(&value, &mut bytes);
    }
    let mut rest = &bytes[..];
    for (value, _) in requests() {
        let (got, used) = link::decode::<FromClient>(rest).unwrap().unwrap();
        assert_eq!(got, value);
        for short in 0..used {
            assert_eq!(link::decode::<FromClient>(&rest[..short]), Ok(None));
        }
        rest = &rest[used..];
    }
    assert!(rest.is_empty());
}

#[test]
fn nonsense_is_refused() {
    let decode = |bytes: &[u8]| link::decode::<FromClient>(bytes);
    assert_eq!(decode(&[0, 0, 0, 0]), Err(FrameError::Length(0)));
    assert_eq!(decode(&[0xff, 0xff, 0xff, 0x7f]), Err(FrameError::Length(0x7fff_ffff)));
    assert_eq!(decode(&[2, 0, 0, 0, 9, 0]), Err(FrameError::Version(9)));
    assert_eq!(decode(&[2, 0, 0, 0, 1, 7]), Err(FrameError::Garbage));
    // Something after the value.
    assert_eq!(decode(&[5, 0, 0, 0, 1, 0, 5, 5, 0]), Err(FrameError::Garbage));
    // A list that says it is longer than the frame.
    let mut seed = 0x5eed_u64;
    for _ in 0..20_000 {
        let mut bytes = vec![24, 0, 0, 0, 1];
        for _ in 0..24 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.push((seed >> 56) as u8 & if seed & 1 == 0 { 0x0f } else { 0xff });
        }
        let _ = decode(&bytes);
        let _ = link::decode::<FromNode>(&bytes);
    }
}
