use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::{Birth, Life, RequestId};

fn about(zone: u8) -> About {
    let labels = BTreeMap::from([("zone".to_owned(), format!("z{zone}"))]);
    About { addresses: vec![format!("10.0.0.{zone}:7421")], fingerprint: [zone; 32], labels }
}

fn newcomer(number: u8) -> Newcomer {
    Newcomer { name: format!("n{number}"), birth: Birth([number; 16]), about: about(number) }
}

fn found() -> Change {
    Change::Found { cluster: ClusterId([7; 16]), incarnation: 1, founder: newcomer(0) }
}

fn request(id: u8, change: Change) -> Request {
    Request::one(RequestId([id; 16]), change)
}

/// What tests do to a charter: an entry of the log, or the engine's own about votes.
#[derive(Clone, Debug)]
enum Step {
    Ask(Request),
    Votes(BTreeSet<MemberId>),
}

fn life() -> impl Strategy<Value = Life> {
    (0..8u64, 0..2u64).prop_map(|(member, boot)| Life { member: MemberId(member), boot })
}

fn generation() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 1 => (0..30u64).prop_map(Some)]
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let one = change().prop_map(|change| vec![change]);
    prop_oneof![8 => one, 1 => proptest::collection::vec(change(), 0..4)]
}

fn change() -> impl Strategy<Value = Change> {
    let member = || (0..12u64).prop_map(MemberId);
    let name = || {
        prop_oneof![
            8 => Just("a".to_owned()),
            8 => Just("b".to_owned()),
            1 => Just(String::new()),
            1 => Just("n".repeat(5000)),
        ]
    };
    let text = || proptest::option::weighted(0.8, "[xy]{0,2}");
    let group = || (0..3u8).prop_map(Group);
    let labels = || text().prop_map(|text| text.map(|v| BTreeMap::from([("k".to_owned(), v)])));
    let a_move = (group(), 0..4u64, life()).prop_map(|(group, term, to)| Move { group, term, to });
    let token = text().prop_map(|right| {
        right.map(|right| Token { digest: [1; 32], right: right.replace('x', "a"), expires: None })
    });
    prop_oneof![
        1 => Just(found()),
        1 => (0..4u64).prop_map(|to| Change::Incarnation { to }),
        6 => (0..6u8).prop_map(|number| Change::Join(newcomer(number))),
        1 => (member(), 0..3u8, generation()).prop_map(|(member, zone, if_generation)| {
            Change::Amend { member, about: about(zone), if_generation }
        }),
        1 => (member(), any::<bool>(), generation()).prop_map(|(member, draining, if_generation)| {
            Change::DrainMember { member, draining, if_generation }
        }),
        4 => (member(), generation()).prop_map(|(member, if_generation)| {
            Change::Leave { member, if_generation }
        }),
        4 => (name(), text(), generation()).prop_map(|(name, definition, if_generation)| {
            Change::Pool { name, definition, if_generation }
        }),
        2 => (name(), name(), labels(), generation()).prop_map(|(pool, unit, labels, g)| {
            Change::Labels { pool, unit, labels, if_generation: g }
        }),
        2 => (name(), name(), text(), generation()).prop_map(|(pool, unit, reason, g)| {
            Change::Drain { pool, unit, reason, if_generation: g }
        }),
        2 => (name(), text(), generation()).prop_map(|(name, definition, if_generation)| {
            Change::Right { name, definition, if_generation }
        }),
        2 => (name(), token, generation()).prop_map(|(id, token, if_generation)| {
            Change::Token { id, token, if_generation }
        }),
        6 => proptest::collection::vec(a_move, 0..3).prop_map(|moves| Change::Seats { moves }),
        3 => (group(), 0..4u64, proptest::option::weighted(0.8, life()))
            .prop_map(|(group, term, shadow)| Change::Shadow { group, term, shadow }),
        2 => (group(), 0..4u64, life())
            .prop_map(|(group, term, shadow)| Change::Whole { group, term, shadow }),
        2 => (member(), any::<bool>(), generation()).prop_map(|(member, leaving, if_generation)| {
            Change::Retire { member, leaving, if_generation }
        }),
        1 => (0..6u8).prop_map(|number| Change::Readmit { name: format!("n{number}") }),
        2 => (0..9u8, 0..2u8, any::<bool>(), generation()).prop_map(|(number, digest, is, g)| {
            let invitation = Invitation { digest: [digest; 32], expires: 7, taken: None };
            let name = format!("n{number}");
            Change::Invite { name, invitation: is.then_some(invitation), if_generation: g }
        }),
        2 => (0..9u8, 0..2u8).prop_map(|(number, digest)| {
            Change::Enter { digest: [digest; 32], newcomer: newcomer(number) }
        }),
    ]
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let ask = (any::<u8>(), changes())
        .prop_map(|(id, changes)| Step::Ask(Request { id: RequestId([id; 16]), changes }));
    let voters = proptest::collection::btree_set((0..12u64).prop_map(MemberId), 1..4);
    let step = prop_oneof![12 => ask, 1 => voters.prop_map(Step::Votes)];
    let again = proptest::option::weighted(0.15, any::<proptest::sample::Index>());
    proptest::collection::vec((step, again), 0..60).prop_map(|drawn| {
        let mut steps = vec![Step::Ask(request(255, found()))];
        for (step, again) in drawn {
            // Now and then somebody repeats what was asked before.
            let again = again.map(|which| which.get(&steps).clone());
            steps.push(again.unwrap_or(step));
        }
        steps
    })
}

fn flips() -> impl Strategy<Value = Vec<(proptest::sample::Index, u8)>> {
    proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4)
}

impl Charter {
    fn without_memory(&self) -> Charter {
        Charter { memory: Memory::default(), ..self.clone() }
    }
}

proptest! {
    #[test]
    fn every_history_obeys(history in history()) {
        let (mut charter, mut twin) = (Charter::default(), Charter::default());
        let mut joined = BTreeSet::new();
        let mut gone: BTreeSet<MemberId> = BTreeSet::new();
        let mut done: BTreeMap<RequestId, (Request, Outcome)> = BTreeMap::new();
        for (step, index) in history.iter().zip(2u64..) {
            let before = charter.clone();
            match step {
                Step::Votes(voters) => {
                    charter.votes(index, voters);
                    twin.votes(index, voters);
                }
                Step::Ask(request) => {
                    let outcome = charter.apply(index, request);
                    prop_assert_eq!(&outcome, &twin.apply(index, request), "not deterministic");
                    let first = done.get(&request.id);
                    match first {
                        Some((asked, answer)) if asked == request => {
                            prop_assert_eq!(answer, &outcome, "a repeated request");
                            prop_assert_eq!(&before, &charter, "a repeated request changed it");
                        }
                        Some(_) => {
                            prop_assert_eq!(&outcome, &Err(Refusal::IdReused(request.id).into()));
                            prop_assert_eq!(&before, &charter);
                        }
                        None => {
                            match &outcome {
                                Ok(done) => prop_assert_eq!(done.version, index),
                                Err(refusal) => {
                                    let same = before.without_memory() == charter.without_memory();
                                    prop_assert!(same, "refused and changed: {refusal}");
                                    let words = refusal.to_string();
                                    prop_assert!(words.contains("nothing was changed"));
                                    prop_assert!(words.len() < 1000, "{words}");
                                }
                            }
                            done.insert(request.id, (request.clone(), outcome));
                        }
                    }
                }
            }
            // Ids are never used again, and are the index at which their owner joined.
            for id in charter.members.keys().filter(|id| !before.members.contains_key(id)) {
                prop_assert!(joined.insert(*id), "{id} joined twice");
                prop_assert!(id.0 == index || *id == MemberId::FOUNDER);
            }
            gone.extend(before.members.keys().filter(|id| !charter.members.contains_key(id)));
            prop_assert!(charter.members.keys().all(|id| !gone.contains(id)));
            // Places are taken one after the other, and for good.
            prop_assert!(charter.places().starts_with(&before.places()));
            // Terms only grow, one at a time, and no group loses its seat.
            for (group, seat) in &before.seats {
                let now = charter.seats[group];
                let moved = u64::from(now.life != seat.life || now.term != seat.term);
                prop_assert_eq!(now.term, seat.term + moved);
            }
            prop_assert!(charter.version >= before.version && charter.version <= index);
            let same = before.without_memory() == charter.without_memory();
            prop_assert_eq!(same, charter.version == before.version, "the version tells");
            prop_assert_eq!(charter.sound(), Ok(()));
        }
        // One document, one form; and it comes back.
        let bytes = charter.to_bytes();
        prop_assert_eq!(&bytes, &twin.to_bytes());
        prop_assert_eq!(Charter::from_bytes(&bytes), Ok(charter.clone()));
        // A copy that goes on from the bytes goes on alike.
        let mut copy = Charter::from_bytes(&bytes).expect("just read");
        let more = request(254, Change::Join(newcomer(200)));
        prop_assert_eq!(copy.apply(900, &more), charter.apply(900, &more));
        prop_assert_eq!(copy.to_bytes(), charter.to_bytes());
    }

    #[test]
    fn no_bytes_can_panic(history in history(), flips in flips()) {
        let mut charter = Charter::default();
        for (step, index) in history.iter().zip(2..) {
            if let Step::Ask(request) = step {
                let _ = charter.apply(index, request);
            }
        }
        let mut bytes = charter.to_bytes();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(read) = Charter::from_bytes(&bytes) {
            prop_assert_eq!(read.to_bytes(), bytes);
        }
    }
}

/// A charter with members 0, 3 and 4, and a pool.
fn small() -> Charter {
    let mut charter = Charter::default();
    let pool = Change::Pool {
        name: "gpus".into(),
        definition: Some("units = 2".into()),
        if_generation: Some(0),
    };
    let changes = [found(), Change::Join(newcomer(3)), Change::Join(newcomer(4)), pool];
    for (change, index) in changes.into_iter().zip(2u8..) {
        charter.apply(index.into(), &request(index, change)).expect("allowed");
    }
    charter
}

#[test]
fn a_small_charter_has_these_bytes() {
    let hex: String = small().to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<_> =
        hex.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line)).collect();
    expect![[r#"
        0405010707070707070707070707070707070701030002026e30000000000000
        00000000000000000000010d31302e302e302e303a3734323100000000000000
        0000000000000000000000000000000000000000000000000001047a6f6e6502
        7a300100000303026e3303030303030303030303030303030303010d31302e30
        2e302e333a373432310303030303030303030303030303030303030303030303
        03030303030303030301047a6f6e65027a330000000404026e34040404040404
        04040404040404040404010d31302e302e302e343a3734323104040404040404
        0404040404040404040404040404040404040404040404040401047a6f6e6502
        7a340000000104677075730509756e697473203d203200000000000004020202
        02020202020202020202020202b1aeb4fdc298b3838601000203030303030303
        030303030303030303d3ebdbb7e787cdcf720003040404040404040404040404
        04040404eeaaf2fd96c0a0cbbe01000405050505050505050505050505050505
        a2ddc4e7e5f58efddd0100050000"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_request_is_forgotten_after_so_many_others() {
    let mut charter = small();
    let toggle =
        |draining| Change::DrainMember { member: MemberId(3), draining, if_generation: None };
    let id = |number: u64| {
        let mut id = [0xff; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        RequestId(id)
    };
    for number in 0..REMEMBERED as u64 {
        let request = Request::one(id(number), toggle(number % 2 == 0));
        charter.apply(10 + number, &request).expect("allowed");
    }
    let first = Request::one(id(0), toggle(true));
    let version = charter.version();
    let answer = charter.apply(5000, &first).expect("remembered");
    assert_eq!((answer.version, charter.version()), (10, version));
    // One more makes it the one too many.
    let more = Request::one(id(9999), toggle(true));
    charter.apply(5001, &more).expect("allowed");
    assert_eq!(charter.apply(5002, &first).expect("done again").version, 5002);
    assert_eq!(charter.memory.len(), REMEMBERED);
}

#[test]
fn refusals_say_what_to_do_next() {
    let seats = |moves: &[(u8, u64, u64)]| Change::Seats {
        moves: moves
            .iter()
            .map(|(group, term, member)| Move {
                group: Group(*group),
                term: *term,
                to: Life { member: MemberId(*member), boot: 1 },
            })
            .collect(),
    };
    let mut charter = small();
    charter.apply(6, &request(6, seats(&[(1, 0, 3)]))).expect("allowed");
    let life = |member| Life { member: MemberId(member), boot: 1 };
    let mut said = vec![Charter::default().apply(1, &request(1, seats(&[]))).unwrap_err()];
    let changes = [
        found(),
        Change::Incarnation { to: 1 },
        Change::Join(newcomer(3)),
        Change::Join(Newcomer { name: "other".into(), ..newcomer(4) }),
        Change::Leave { member: MemberId::FOUNDER, if_generation: None },
        Change::Leave { member: MemberId(3), if_generation: None },
        Change::Leave { member: MemberId(4), if_generation: Some(3) },
        Change::Leave { member: MemberId(5), if_generation: None },
        Change::Pool { name: "gpus".into(), definition: None, if_generation: Some(4) },
        Change::Pool { name: "x\n".into(), definition: None, if_generation: None },
        Change::Drain { pool: "cpus".into(), unit: "0".into(), reason: None, if_generation: None },
        seats(&[(2, 0, 3), (1, 0, 4)]),
        seats(&[(2, 0, 3), (2, 0, 4)]),
        Change::Shadow { group: Group(1), term: 1, shadow: Some(life(3)) },
        Change::Whole { group: Group(1), term: 1, shadow: life(4) },
    ];
    for (change, index) in changes.into_iter().zip(20u8..) {
        said.push(charter.apply(index.into(), &request(index, change)).unwrap_err());
    }
    assert_eq!(charter.version(), 6);
    said.push(charter.apply(90, &request(6, found())).unwrap_err());
    let shown = |said: &Refused| {
        let said = said.to_string().replace("; ", ";\n  ");
        said.strip_prefix("refused, nothing was changed: ").expect("as all").to_owned()
    };
    let said: Vec<_> = said.iter().map(shown).collect();
    expect![[r#"
        this charter has no cluster yet;
          found one first
        this charter belongs to cluster 07070707070707070707070707070707;
          a charter is founded once
        incarnation 1 is not after 1, which the cluster is in
        the name "n3" is taken by m3;
          choose another
        the store 04040404040404040404040404040404 is taken by m4;
          choose another
        member m0 is still in use: it votes;
          take its vote first
        member m3 is still in use: it decides for group 1;
          move its seats first
        member m4 is of generation 4, not 3;
          look at it again, then change it
        there is no member m5
        pool "gpus" is of generation 5, not 4;
          look at it again, then change it
        "x\n" is no name of a pool: 1 to 256 bytes without control characters are
        there is no pool "cpus"
        the seat of group 1 is in term 1, not 0;
          look at it again
        group 2 is named twice
        the seat of group 1 cannot shadow itself
        m4 (boot 1) is not the shadow of group 1;
          look at it again
        another change was asked for under the id 06060606060606060606060606060606;
          draw a new id for a new change"#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn several_changes_are_made_all_or_none() {
    let mut charter = small();
    let pool = |name: &str, if_generation| Change::Pool {
        name: name.into(),
        definition: Some("units = 1".into()),
        if_generation,
    };
    let together = |id: u8, changes: Vec<Change>| Request { id: RequestId([id; 16]), changes };
    let before = charter.without_memory();
    let wrong = vec![pool("a", Some(0)), pool("gpus", Some(1)), pool("b", None)];
    let refused = charter.apply(10, &together(10, wrong)).unwrap_err();
    assert!(matches!(refused.why, Refusal::Changed { now: 5, .. }));
    assert!(refused.to_string().ends_with("(change 2 of 3; none of them was made)"));
    assert_eq!(charter.without_memory(), before);
    let right = vec![pool("a", Some(0)), pool("gpus", Some(5)), pool("b", None)];
    charter.apply(11, &together(11, right)).expect("allowed");
    let generations: Vec<_> = charter.pools().values().map(|pool| pool.generation).collect();
    assert_eq!(generations, [11, 11, 11]);
    let alone = [found(), Change::Join(newcomer(9))].map(|change| vec![pool("c", None), change]);
    let large = Change::Pool {
        name: "large".into(),
        definition: Some("x".repeat(TEXT_MAX)),
        if_generation: None,
    };
    let wrong = [vec![], vec![pool("c", None); TOGETHER_MAX + 1], vec![large; 16]];
    for (changes, id) in alone.into_iter().chain(wrong).zip(20..) {
        let refused = charter.apply(12, &together(id, changes)).unwrap_err();
        assert!(matches!(refused.why, Refusal::Nonsense(_)));
    }
    assert_eq!(charter.version(), 11);
}

/// As many pools by name as charter spec 2 asks for.
#[test]
fn a_hundred_thousand_pools_are_a_charter() {
    let mut charter = small();
    let names: Vec<String> = (0..100_000).map(|number| format!("pool-{number:06}")).collect();
    for (names, index) in names.chunks(TOGETHER_MAX).zip(10u8..) {
        let pools = names.iter().map(|name| Change::Pool {
            name: name.clone(),
            definition: Some("units = 4\nprotocol = \"central\"\nlease = \"30s\"".into()),
            if_generation: Some(0),
        });
        let request = Request { id: RequestId([index; 16]), changes: pools.collect() };
        charter.apply(index.into(), &request).expect("allowed");
    }
    let bytes = charter.to_bytes();
    assert_eq!((charter.pools().len(), bytes.len() >> 20), (100_001, 5));
    assert_eq!(Charter::from_bytes(&bytes), Ok(charter));
}

#[test]
fn a_whole_shadow_takes_over_and_the_next_term_has_none() {
    let mut charter = small();
    let group = Group(9);
    let life = |member| Life { member: MemberId(member), boot: 5 };
    let seat = |term, member| Change::Seats { moves: vec![Move { group, term, to: life(member) }] };
    let steps = [
        seat(0, 0),
        Change::Shadow { group, term: 1, shadow: Some(life(3)) },
        Change::Whole { group, term: 1, shadow: life(3) },
        seat(1, 3),
    ];
    for (change, index) in steps.into_iter().zip(10u8..) {
        charter.apply(index.into(), &request(index, change)).expect("allowed");
    }
    let taken = charter.seats()[&group];
    assert!(taken.by_shadow && taken.shadow.is_none());
    assert_eq!((taken.term, taken.before, taken.generation), (2, Some(life(0)), 13));
    // A shadow that is not whole, or another life of one that is, takes nothing over.
    let begin = Change::Shadow { group, term: 2, shadow: Some(life(4)) };
    charter.apply(14, &request(14, begin)).expect("allowed");
    charter.apply(15, &request(15, seat(2, 4))).expect("allowed");
    assert!(!charter.seats()[&group].by_shadow);
}

#[test]
fn a_pool_takes_its_units_with_it_and_never_has_an_old_generation() {
    let mut charter = small();
    let pool = |definition: Option<&str>, if_generation| Change::Pool {
        name: "gpus".into(),
        definition: definition.map(Into::into),
        if_generation,
    };
    let drain = Change::Drain {
        pool: "gpus".into(),
        unit: "1".into(),
        reason: Some("fan".into()),
        if_generation: Some(0),
    };
    let steps = [drain, pool(None, Some(5)), pool(Some("units = 3"), Some(0))];
    for (change, index) in steps.into_iter().zip(10u8..) {
        charter.apply(index.into(), &request(index, change)).expect("allowed");
    }
    assert!(charter.drains().is_empty());
    assert_eq!(charter.pools()["gpus"].generation, 12);
    let stale = charter.apply(13, &request(13, pool(Some("units = 9"), Some(5)))).unwrap_err();
    assert!(matches!(stale.why, Refusal::Changed { now: 12, wanted: 5, .. }));
}

#[test]
fn whoever_is_removed_stays_away_until_somebody_lets_one_of_its_name_in_again() {
    let mut charter = small();
    let mut index = 5;
    let mut ask = |charter: &mut Charter, change| {
        index += 1;
        charter.apply(index.into(), &request(index, change)).map_err(|refused| refused.why)
    };
    let retire =
        |id, leaving| Change::Retire { member: MemberId(id), leaving, if_generation: None };
    let leave = |id| Change::Leave { member: MemberId(id), if_generation: None };
    ask(&mut charter, retire(3, true)).expect("others stay");
    assert!(charter.members()[&MemberId(3)].draining, "it is given nothing meanwhile");
    ask(&mut charter, leave(3)).expect("it neither votes nor decides");
    assert!(charter.is_removed("n3") && !charter.members().contains_key(&MemberId(3)));
    let again = |number, birth: u8| {
        Change::Join(Newcomer { birth: Birth([birth; 16]), ..newcomer(number) })
    };
    // With its old store or a new one: nobody let it in.
    let old = ask(&mut charter, again(3, 3)).unwrap_err();
    assert!(matches!(old, Refusal::Taken { .. }), "{old}");
    assert_eq!(ask(&mut charter, again(3, 9)), Err(Refusal::Barred("n3".into())));
    let readmit = || Change::Readmit { name: "n3".into() };
    ask(&mut charter, readmit()).expect("it was removed");
    assert!(matches!(ask(&mut charter, readmit()), Err(Refusal::Absent(_))), "once is enough");
    let old = ask(&mut charter, again(3, 3)).unwrap_err();
    assert!(matches!(old, Refusal::Taken { .. }), "a removed store never comes back: {old}");
    let joined = ask(&mut charter, again(3, 9)).expect("as another member").version;
    assert!(charter.members().contains_key(&MemberId(joined)) && !charter.is_removed("n3"));
    // Whoever only was forgotten by files may come back by them.
    ask(&mut charter, leave(joined)).expect("nobody wanted it to go");
    ask(&mut charter, again(3, 10)).expect("nobody bars it");
    // The last one stays.
    ask(&mut charter, retire(0, true)).expect("others stay");
    ask(&mut charter, retire(4, true)).expect("n3 stays");
    let all: Vec<u64> = charter.members().keys().map(|id| id.0).collect();
    let last = ask(&mut charter, retire(all[2], true)).unwrap_err();
    assert!(matches!(last, Refusal::InUse { .. }), "{last}");
    assert_eq!(Charter::from_bytes(&charter.to_bytes()), Ok(charter));
}
