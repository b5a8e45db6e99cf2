//! Everything that reads what others wrote, with examples of what it takes.
//!
//! A decoder must take an input or refuse it, and do nothing else. What it takes must survive being
//! written and read again: a node must not be made to keep or to pass on what nobody can read.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use quorate_api::link::{self, FromClient, FromNode};
use quorate_api::{
    ApplyRequest, ClaimId, DefineRequest, Problem, RelabelRequest, RemoveRequest, RenewRequest,
    RevokeRequest, Want,
};
use quorate_core::{Dice, Protocol};
use quorate_node::Config;
use quorate_protocols::Goods;
use quorate_protocols::allocator::labels::Labels;
use quorate_protocols::arbiter::{self, Arbiter};
use quorate_protocols::broadcast::{self, Weighted};
use quorate_protocols::central::moving::Moving;
use quorate_protocols::central::{self, Central};
use quorate_protocols::ring::{self, Ring};
use quorate_protocols::table::{self, Table};
use quorate_protocols::ticket::{self, Ticket};
use quorate_trust::{
    Certificate, Date, Digest, Identity, Invitation, Pattern, Right, Roots, Secret,
};
use quorate_wire::Wire;
use quorate_wire::frame::{self, Frame};
use quorate_wire::order::{Order, Receipt};
use quorate_wire::tidings::{Heard, Tidings};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Something that reads bytes.
pub(super) struct Decoder {
    pub(super) name: &'static str,
    /// Its share of the inputs: those that take long get fewer.
    pub(super) weight: u64,
    pub(super) examples: fn() -> Vec<Vec<u8>>,
    /// Makes the outside of an input right, as often as not, so that its inside is looked at.
    pub(super) dress: fn(&mut [u8], &mut Dice),
    /// Whether the input is taken.
    pub(super) read: fn(&[u8]) -> bool,
}

fn undressed(_: &mut [u8], _: &mut Dice) {}

pub(super) const ALL: &[Decoder] = &[
    Decoder { name: "frames", weight: 20, examples: frames, dress: framed, read: frame },
    Decoder {
        name: "messages",
        weight: 24,
        examples: small,
        dress: undressed,
        read: |bytes| {
            message::<Central>(bytes)
                | message::<Moving>(bytes)
                | message::<Arbiter>(bytes)
                | message::<Ticket>(bytes)
                | message::<Table>(bytes)
                | message::<Weighted>(bytes)
                | message::<Ring>(bytes)
        },
    },
    Decoder { name: "records", weight: 12, examples: kept, dress: undressed, read: record },
    Decoder { name: "client link", weight: 20, examples: links, dress: linked, read: client },
    Decoder { name: "charter", weight: 9, examples: charters, dress: undressed, read: charter },
    Decoder { name: "bodies", weight: 9, examples: bodies, dress: undressed, read: body },
    Decoder { name: "words", weight: 9, examples: words, dress: undressed, read: word },
    Decoder { name: "certificates", weight: 4, examples: der, dress: undressed, read: certificate },
    Decoder { name: "pem", weight: 1, examples: pem, dress: undressed, read: pem_file },
    Decoder { name: "configuration", weight: 1, examples: files, dress: undressed, read: file },
];

/// Numbers as postcard writes small ones: nearly anything is made of these.
fn small() -> Vec<Vec<u8>> {
    let row = |length: u8| (0..length).map(|n| n % 7).collect();
    (1..40).step_by(3).map(row).chain((0..16).map(|kind| vec![kind; 12])).collect()
}

fn frames() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for number in [0, 1, 300, u64::MAX] {
        for frame in [Frame::Ack(number), Frame::Ping(number), Frame::Pong(number)] {
            let mut bytes = Vec::new();
            frame::encode(&frame, &mut bytes);
            all.push(bytes);
        }
    }
    for kind in 1..=13 {
        for length in [0, 1, 2, 4, 9, 24] {
            let mut bytes = vec![b'Q', b'u', frame::VERSION, kind, length, 0, 0, 0];
            bytes.extend((0..length).map(|n| n % 5));
            all.push(bytes);
        }
    }
    all
}

fn framed(bytes: &mut [u8], dice: &mut Dice) {
    if bytes.len() >= frame::HEADER && !dice.one_in(4) {
        bytes[..2].copy_from_slice(&frame::MAGIC);
        bytes[2] = frame::VERSION;
        let length = (bytes.len() - frame::HEADER) as u32;
        bytes[4..frame::HEADER].copy_from_slice(&length.to_le_bytes());
    }
}

fn frame(bytes: &[u8]) -> bool {
    // What comes after it may be anything, or not be there yet.
    let _ = frame::whole(bytes);
    let Ok(Some((frame, used))) = frame::decode(bytes) else {
        return opened(bytes);
    };
    assert_eq!(frame::whole(&bytes[..used]), Ok(used), "a frame is whole");
    let mut again = Vec::new();
    frame::encode(&frame, &mut again);
    let read = frame::decode(&again).expect("it was written a moment ago");
    assert_eq!(read, Some((frame.clone(), again.len())), "what is written is what is read");
    if let Frame::Data(data) = &frame {
        opened(data.packed);
    }
    true
}

/// What is inside of frames.
fn opened(bytes: &[u8]) -> bool {
    fn one<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> bool {
        let Ok(value) = frame::open::<T>(bytes) else { return false };
        let again = frame::open::<T>(&frame::seal(&value));
        assert_eq!(again.as_ref(), Ok(&value), "what is written is what is read");
        true
    }
    let named = frame::unpack(bytes).is_ok();
    named
        | one::<Order>(bytes)
        | one::<Receipt>(bytes)
        | one::<Tidings>(bytes)
        | one::<Heard>(bytes)
}

fn message<P: Wire>(bytes: &[u8]) -> bool
where
    P::Message: PartialEq + Debug,
{
    let Ok(message) = P::decode_message(bytes) else { return false };
    let mut again = Vec::new();
    P::encode_message(&message, &mut again);
    assert_eq!(P::decode_message(&again), Ok(message), "what is written is what is read");
    true
}

/// Records as they are pinned in the tests of quorate-wire: of central, arbiter and table.
const RECORDS: [&str; 3] = [
    "03010101ac0201020504020200070309010203000100070309010201020103677075\
     0468313030",
    "0301050101040101ac020102050402020102000308010102060003010100",
    "0403ac0201010209070201ac020202050501000001010101010702080204020205060201020101090001010c00\
     00010100e80703010201",
];

fn kept() -> Vec<Vec<u8>> {
    let pinned = RECORDS.map(|hex| super::bytes(hex).expect("hexadecimal"));
    pinned.into_iter().chain(small()).collect()
}

/// What there is of four units with names.
fn goods() -> Goods {
    let names = (0..4).map(|unit| (format!("u{unit}"), BTreeMap::new())).collect();
    Goods { labels: Some(Arc::new(Labels::new(names))), ..Goods::new(4) }
}

static CENTRAL: LazyLock<central::Pool> = LazyLock::new(|| central::Pool::of(goods()));
static TABLE: LazyLock<table::Pool> =
    LazyLock::new(|| table::Pool { goods: goods(), ..table::Pool::new(4, 3) });

fn record(bytes: &[u8]) -> bool {
    fn one<P: Wire>(pool: &<P as Protocol>::Pool, bytes: &[u8]) -> bool
    where
        P::Durable: PartialEq + Debug,
    {
        let Ok(record) = P::decode_record(pool, bytes) else { return false };
        let mut again = Vec::new();
        P::encode_record(&record, &mut again);
        assert_eq!(P::decode_record(pool, &again), Ok(record), "what is written is what is read");
        true
    }
    one::<Central>(&CENTRAL, bytes)
        | one::<Table>(&TABLE, bytes)
        | one::<Arbiter>(&arbiter::Pool::named(4, 3), bytes)
        | one::<Arbiter>(&arbiter::Pool::new(4, 3), bytes)
        | one::<Ticket>(&ticket::Pool::new(2, 3), bytes)
        | one::<Weighted>(&broadcast::Pool::weighted(3, 2, 1, 1), bytes)
        | one::<Ring>(&ring::Pool::new(2, 3), bytes)
}

fn links() -> Vec<Vec<u8>> {
    let rows = small().into_iter().map(|row| {
        let mut bytes = (row.len() as u32 + 1).to_le_bytes().to_vec();
        bytes.push(link::VERSION);
        bytes.extend(row);
        bytes
    });
    rows.collect()
}

fn linked(bytes: &mut [u8], dice: &mut Dice) {
    if bytes.len() > 5 && !dice.one_in(4) {
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[4] = link::VERSION;
    }
}

fn client(bytes: &[u8]) -> bool {
    fn one<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> bool {
        let Ok(Some((value, used))) = link::decode::<T>(bytes) else { return false };
        assert!(used <= bytes.len());
        let mut again = Vec::new();
        link::encode(&value, &mut again);
        assert_eq!(link::decode::<T>(&again), Ok(Some((value, again.len()))));
        true
    }
    one::<FromClient>(bytes) | one::<FromNode>(bytes)
}

fn bodies() -> Vec<Vec<u8>> {
    [
        r#"{"units": 2, "client": "ann@lab-3", "reason": "train"}"#,
        r#"{"lines": [{"units": 1, "where": {"gpu": "h100"}}], "movable": true}"#,
        r#"{"units": [{"unit": 0, "fence": 1099511627777}, {"unit": 1, "fence": 2}]}"#,
        r#"{"labels": {"gpu": "h100", "zone": "eu"}}"#,
        r#"{"reason": "not today"}"#,
        r#"{"type": "about:blank", "title": "Not Found", "status": 404, "detail": "x"}"#,
        r#"{"client_params": {"id": "machine-a", "group": "workers"}}"#,
        r#"{"ID": "1f332824-3a46-853e-a4e2-7f6402fbbaa2", "Operation": "apply", "Who": "ann@lab"}"#,
        r#"{"definition": "units = 4\nprotocol = \"central\""}"#,
        r#"{"pools": "[[pools]]\nname = \"a\"\nunits = 4\n", "dry_run": true}"#,
        r#"{"dead": true, "force": false}"#,
        "{}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

fn body(bytes: &[u8]) -> bool {
    fn one<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> bool {
        let Ok(value) = serde_json::from_slice::<T>(bytes) else { return false };
        let again = serde_json::to_vec(&value).expect("plain data always encodes");
        let read = serde_json::from_slice::<T>(&again);
        assert_eq!(read.ok().as_ref(), Some(&value), "what is written is what is read");
        true
    }
    one::<Want>(bytes)
        | one::<RenewRequest>(bytes)
        | one::<RevokeRequest>(bytes)
        | one::<RelabelRequest>(bytes)
        | one::<Problem>(bytes)
        | one::<DefineRequest>(bytes)
        | one::<ApplyRequest>(bytes)
        | one::<RemoveRequest>(bytes)
        | quorate_node::decoders::gateway_body(bytes)
}

/// What members say about the charter, of one to another, and the charter itself: pinned by tests
/// of quorate-charter.
const ABOUT_THE_CHARTER: [&str; 6] = [
    "00030001010300ab02010300ac02010505050505050505050505050505050501010200",
    "01040100010300ab02",
    "020300010000000000000301020301",
    "0305050505050505050505050505050505010102",
    "04",
    "0305010707070707070707070707070707070701030002026e3000000000000000000000000000000000010d31\
     302e302e302e303a37343231000000000000000000000000000000000000000000000000000000000000000001\
     047a6f6e65027a300100000303026e3303030303030303030303030303030303010d31302e302e302e333a3734\
     3231030303030303030303030303030303030303030303030303030303030303030301047a6f6e65027a330000\
     000404026e3404040404040404040404040404040404010d31302e302e302e343a373432310404040404040404\
     04040404040404040404040404040404040404040404040401047a6f6e65027a34000000010467707573050975\
     6e697473203d20320000000000000402020202020202020202020202020202b1aeb4fdc298b383860100020303\
     0303030303030303030303030303d3ebdbb7e787cdcf72000304040404040404040404040404040404eeaaf2fd\
     96c0a0cbbe01000405050505050505050505050505050505a2ddc4e7e5f58efddd01000500",
];

fn charters() -> Vec<Vec<u8>> {
    let pinned = ABOUT_THE_CHARTER.map(|hex| super::bytes(hex).expect("hexadecimal"));
    let [questions @ .., document] = pinned;
    let envelope = [&[1_u8][..], &[7; 16], &[0], &[1; 16], &[7], &[2; 16]].concat();
    let words = questions.map(|question| [envelope.clone(), question].concat());
    words.into_iter().chain([document]).collect()
}

fn charter(bytes: &[u8]) -> bool {
    quorate_node::decoders::charter::words(bytes) | quorate_node::decoders::charter::document(bytes)
}

fn words() -> Vec<Vec<u8>> {
    // Of quorate-trust's own tests; nobody's.
    let token = "qt1_60rk4csm6mv3ee1sc5h66s35cskpgtba1s7gd9t".to_owned();
    let basic = "Basic YW5uOnF0MV9hYmM=".to_owned();
    let digest = "0123456789abcdef".repeat(4);
    let boot = "boot 3\ndigest 17\nlease_ms 4000\n".to_owned();
    [
        token.clone(),
        format!("Bearer {token}"),
        format!("qj1/n2/10.0.0.1:7420,[::1]:7420/{digest}/{token}"),
        basic,
        digest,
        boot,
        "ci-*".into(),
        "see".into(),
        "quorate://rack-7/node/a".into(),
        "2026-11-16".into(),
        "1h30m".into(),
        ClaimId::from_halves(1, 300).to_string(),
        "c1".into(),
    ]
    .map(String::into_bytes)
    .into()
}

fn word(bytes: &[u8]) -> bool {
    fn one<T: std::str::FromStr + ToString + PartialEq + Debug>(text: &str) -> bool {
        let Ok(value) = text.parse::<T>() else { return false };
        let again = value.to_string().parse::<T>().ok();
        assert_eq!(again.as_ref(), Some(&value), "what is written is what is read");
        true
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let invitation = text.parse::<Invitation>();
    if let Ok(invitation) = &invitation {
        assert_eq!(invitation.reveal(), text.trim(), "what is written is what is read");
    }
    let secret = text.parse::<Secret>().is_ok() | invitation.is_ok();
    let pattern = text.parse::<Pattern>().map(|pattern| pattern.covers("ci-build-7")).is_ok();
    let span = quorate_api::parse_span(text);
    if let Ok(span) = span {
        let again = quorate_api::parse_span(&quorate_api::format_span(span));
        assert_eq!(again, Ok(span), "what is written is what is read");
    }
    let header = !quorate_node::decoders::authorization(text).is_empty();
    let boot = quorate_node::decoders::boot_file(text);
    one::<Right>(text)
        | one::<Identity>(text)
        | one::<Date>(text)
        | text.parse::<Digest>().is_ok()
        | one::<ClaimId>(text)
        | one::<Pattern>(text)
        | secret
        | pattern
        | span.is_ok()
        | header
        | boot
}

/// An authority and a node, made once by `quorate cert` and thrown away.
const CERTIFICATES: &str = include_str!("certificates.pem");

fn pem() -> Vec<Vec<u8>> {
    let key = "-----BEGIN PRIVATE KEY-----\nMAAwAQ==\n-----END PRIVATE KEY-----\n";
    let first = CERTIFICATES.split_inclusive("-----END CERTIFICATE-----\n").next();
    vec![
        CERTIFICATES.into(),
        first.unwrap_or_default().into(),
        format!("{key}{CERTIFICATES}").into(),
    ]
}

fn pem_file(bytes: &[u8]) -> bool {
    let certificate = Certificate::from_pem(bytes);
    if let Ok((certificate, _)) = &certificate {
        look(certificate);
    }
    Roots::from_pem(bytes).is_ok() | certificate.is_ok()
}

fn der() -> Vec<Vec<u8>> {
    let (first, rest) = Certificate::from_pem(CERTIFICATES.as_bytes()).expect("made by quorate");
    std::iter::once(&first).chain(&rest).map(|one| one.der().to_vec()).collect()
}

fn certificate(bytes: &[u8]) -> bool {
    let read = Certificate::from_der(&bytes.to_vec().into());
    if let Ok(certificate) = &read {
        look(certificate);
    }
    read.is_ok()
}

/// All that is shown of it.
fn look(certificate: &Certificate) {
    let _ = (certificate.identity().is_ok(), certificate.validity(), certificate.fingerprint());
    let _ = (certificate.addresses(), certificate.public_key().is_ok());
    let _ = (certificate.is_for("10.0.0.1").is_ok(), format!("{certificate:?}"));
}

fn files() -> Vec<Vec<u8>> {
    let head = "cluster = \"c\"\nepoch = 1\nnode = \"a\"\nlisten = { clients = \"127.0.0.1:1\", \
                peers = \"127.0.0.1:2\" }\n[[members]]\nname = \"a\"\npeers = \"127.0.0.1:2\"\n\
                [[members]]\nname = \"b\"\npeers = \"127.0.0.1:3\"\n";
    [
        "[[pools]]\npattern = \"ci-*\"\nunits = 4\nprotocol = \"table\"\nlease = \"4s\"\n",
        "[[pools]]\nname = \"gpu\"\nunits = [{ name = \"g0\", labels = { gpu = \"h100\" } }]\n\
         reserved = [{ where = { gpu = \"h100\" }, clients = [\"train-*\"] }]\n",
        "[[pools]]\nname = \"p\"\nunits = 3\nprotocol = \"arbiter\"\nmode = \"ticket\"\n",
        "[[pools]]\nname = \"p\"\nunits = 3\nprotocol = \"ring\"\ntimeout = \"300ms\"\n",
        "[[pools]]\nname = \"p\"\nunits = 3\nprotocol = \"broadcast\"\nreclaim = \"lease\"\n",
        "[[tokens]]\nname = \"ci\"\nmay = [\"see\"]\npools = [\"ci-*\"]\nmost_units = 4\n\
         sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"\n",
        "[[certificates]]\nname = \"ci\"\nmay = [\"see\"]\npools = [\"ci-*\"]\n",
    ]
    .map(|rest| format!("{head}{rest}").into_bytes())
    .into()
}

fn file(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    Config::parse_in_memory(text).is_ok() | Config::check_pools(text).is_ok()
}
