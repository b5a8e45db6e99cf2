mod shadowing;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::{About, Birth, Change, ClusterId, Newcomer, Request, RequestId};

const SECOND: Duration = Duration::from_secs(1);

/// A cluster in which everything is committed at once, and the leader that watches it.
struct Stage {
    now: Duration,
    index: u64,
    charter: Charter,
    /// Who is heard all the time, in which life.
    up: BTreeMap<MemberId, u64>,
    heard: BTreeMap<MemberId, Heard>,
    seating: Seating,
    moved: Vec<(Duration, usize)>,
}

impl Stage {
    fn new(members: u64) -> Stage {
        Stage::with(members, Patience::default())
    }

    fn with(members: u64, patience: Patience) -> Stage {
        let now = Duration::from_secs(1000);
        let mut stage = Stage {
            now,
            index: 1,
            charter: Charter::default(),
            up: BTreeMap::new(),
            heard: BTreeMap::new(),
            seating: Seating::new(patience, now),
            moved: Vec::new(),
        };
        for number in 0..members {
            stage.join(number);
        }
        stage
    }

    fn join(&mut self, number: u64) -> MemberId {
        let birth = Birth([u8::try_from(number).expect("few"); 16]);
        let about = About { addresses: vec!["there".into()], ..About::default() };
        let newcomer = Newcomer { name: format!("n{number}"), birth, about };
        let id = if number == 0 {
            let cluster = ClusterId::default();
            self.done(Change::Found { cluster, incarnation: 1, founder: newcomer });
            MemberId::FOUNDER
        } else {
            self.done(Change::Join(newcomer));
            MemberId(self.index)
        };
        self.up.insert(id, 1);
        id
    }

    fn done(&mut self, change: Change) {
        self.index += 1;
        let id = RequestId(u128::from(self.index).to_be_bytes());
        self.charter.apply(self.index, &Request::one(id, change)).expect("allowed");
    }

    /// Time passes, in steps of 100 ms, and whatever should move moves.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += SECOND / 10;
            for (id, boot) in &self.up {
                self.heard.insert(*id, Heard { at: self.now, boot: *boot });
            }
            let moves = self.seating.moves(self.now, &self.charter, &self.heard);
            if !moves.is_empty() {
                self.moved.push((self.now, moves.len()));
                self.done(Change::Seats { moves });
            }
        }
    }

    fn load(&self, id: MemberId) -> usize {
        self.charter.seats().values().filter(|seat| seat.life.member == id).count()
    }

    fn loads(&self) -> Vec<usize> {
        self.charter.members().keys().map(|id| self.load(*id)).collect()
    }

    fn ids(&self) -> Vec<MemberId> {
        self.charter.members().keys().copied().collect()
    }

    fn drain(&mut self, member: MemberId, draining: bool) {
        self.done(Change::DrainMember { member, draining, if_generation: None });
    }
}

#[test]
fn every_group_has_a_seat_at_once_and_everybody_a_share() {
    let mut stage = Stage::new(3);
    stage.pass(SECOND / 10);
    assert_eq!(stage.loads(), [86, 85, 85]);
    stage.pass(SECOND * 60);
    assert_eq!(stage.moved.len(), 1, "and then nothing moves");
}

#[test]
fn a_silent_member_loses_its_groups_to_all_the_others_in_one_entry() {
    let mut stage = Stage::new(3);
    stage.pass(SECOND);
    let victim = stage.ids()[1];
    stage.up.remove(&victim);
    stage.pass(SECOND * 3);
    assert_eq!((stage.load(victim), stage.moved.len()), (85, 1), "not before it is suspected");
    stage.pass(SECOND / 5);
    assert_eq!(stage.loads(), [128, 0, 128]);
    assert_eq!(stage.moved.len(), 2);
}

#[test]
fn who_comes_back_waits_and_gets_one_group_a_second() {
    let mut stage = Stage::new(3);
    stage.pass(SECOND);
    let victim = stage.ids()[1];
    stage.up.remove(&victim);
    stage.pass(SECOND * 5);
    stage.up.insert(victim, 2);
    let back = stage.now;
    let before = stage.moved.len();
    stage.pass(SECOND * 10);
    assert_eq!(stage.load(victim), 0, "its first pause");
    stage.pass(SECOND * 20);
    assert!((19..=21).contains(&stage.load(victim)), "{}", stage.load(victim));
    stage.pass(SECOND * 100);
    assert_eq!(stage.loads().into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([85, 86]));
    let since: Vec<_> = stage.moved[before..].iter().filter(|(at, _)| *at > back).collect();
    assert!(since.iter().all(|(_, moves)| *moves == 1), "one at a time");
    assert!(since.windows(2).all(|pair| pair[1].0 - pair[0].0 >= SECOND), "a second apart");
}

#[test]
fn who_flaps_waits_twice_as_long_each_time_and_is_forgiven() {
    let mut stage = Stage::new(2);
    stage.pass(SECOND);
    let victim = stage.ids()[1];
    let mut pauses = Vec::new();
    for boot in 2..6 {
        stage.up.remove(&victim);
        stage.pass(SECOND * 5);
        stage.up.insert(victim, boot);
        let back = stage.now;
        while stage.load(victim) == 0 {
            stage.pass(SECOND / 10);
        }
        pauses.push((stage.now - back).as_secs());
    }
    assert_eq!(pauses, [10, 20, 40, 80]);
    stage.pass(Patience::default().flap_max);
    stage.up.remove(&victim);
    stage.pass(SECOND * 5);
    stage.up.insert(victim, 9);
    stage.pass(SECOND * 12);
    assert!(stage.load(victim) > 0, "forgiven");
}

#[test]
fn who_drains_is_rid_of_everything_at_once_and_its_restart_is_no_fall() {
    let mut stage = Stage::new(3);
    stage.pass(SECOND);
    let victim = stage.ids()[0];
    stage.drain(victim, true);
    stage.pass(SECOND / 10);
    assert_eq!(stage.loads(), [0, 128, 128]);
    stage.pass(SECOND * 5);
    stage.up.remove(&victim);
    stage.pass(SECOND * 10);
    stage.up.insert(victim, 2);
    stage.pass(SECOND);
    stage.drain(victim, false);
    stage.pass(SECOND * 5);
    assert!((4..=6).contains(&stage.load(victim)), "it gets its share back, without a pause");
}

#[test]
fn the_whole_shadow_takes_over_and_no_other_life_of_it() {
    let mut stage = Stage::new(4);
    stage.pass(SECOND);
    let ids = stage.ids();
    let (seat, shadow) = (ids[1], ids[3]);
    let life = |member| Life { member, boot: 1 };
    let of = |stage: &Stage| -> Vec<Group> {
        let seats = stage.charter.seats().iter();
        seats.filter(|(_, s)| s.life.member == seat).map(|(group, _)| *group).collect()
    };
    let groups = of(&stage);
    // Four groups: one shadow is whole, one not, one of another life, and one has none.
    for (group, shadow, whole) in [
        (groups[0], life(shadow), true),
        (groups[1], life(shadow), false),
        (groups[2], Life { member: shadow, boot: 7 }, true),
    ] {
        stage.done(Change::Shadow { group, term: 1, seen: 0, shadow: Some(shadow) });
        if whole {
            stage.done(Change::Whole { group, term: 1, naming: stage.index });
        }
    }
    // The seat's node restarts: what has a whole shadow goes there, the rest waits for itself.
    stage.up.insert(seat, 2);
    stage.pass(SECOND / 10);
    let taken = stage.charter.seats()[&groups[0]];
    assert!(taken.by_shadow.is_some() && taken.life == life(shadow));
    assert_eq!(of(&stage), groups[1..]);
    stage.up.remove(&seat);
    stage.pass(SECOND * 4);
    assert!(of(&stage).is_empty());
    assert!(groups[1..].iter().all(|group| stage.charter.seats()[group].by_shadow.is_none()));
}

#[test]
fn a_new_leader_suspects_nobody_it_has_not_listened_for() {
    let mut stage = Stage::new(3);
    stage.pass(SECOND);
    let (before, ids) = (stage.moved.len(), stage.ids());
    stage.up = BTreeMap::from([(ids[0], 1)]);
    stage.heard.clear();
    stage.seating = Seating::new(Patience::default(), stage.now);
    stage.pass(SECOND * 3);
    assert_eq!(stage.moved.len(), before);
    stage.pass(SECOND);
    assert_eq!(stage.loads(), [256, 0, 0]);
}

#[test]
fn with_nobody_else_who_fell_lately_is_better_than_who_is_gone() {
    let mut stage = Stage::new(2);
    stage.pass(SECOND);
    let ids = stage.ids();
    stage.up.remove(&ids[1]);
    stage.pass(SECOND * 5);
    stage.up = BTreeMap::from([(ids[1], 2)]);
    stage.pass(SECOND * 4);
    assert_eq!(stage.loads(), [0, 256]);
    // Nobody: then nothing can be done, and nothing is.
    stage.up.clear();
    let before = stage.moved.len();
    stage.pass(SECOND * 30);
    assert_eq!(stage.moved.len(), before);
}

#[derive(Clone, Debug)]
enum Event {
    Down(usize),
    Up(usize),
    Drain(usize, bool),
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..5usize).prop_map(Event::Down),
        3 => (0..5usize).prop_map(Event::Up),
        1 => (0..5usize, any::<bool>()).prop_map(|(who, draining)| Event::Drain(who, draining)),
        6 => (1..50u64).prop_map(Event::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Whatever happens: nobody who is heard and well loses a seat but by giving back, nobody who
    /// is gone is given one, every proposal is accepted; and in the end everybody has a share.
    #[test]
    fn whatever_happens(events in proptest::collection::vec(event(), 1..15)) {
        let patience = Patience {
            return_pause: SECOND / 10,
            flap_first: SECOND,
            flap_max: SECOND * 8,
            ..Patience::default()
        };
        let mut stage = Stage::with(5, patience);
        stage.pass(SECOND);
        let ids = stage.ids();
        let mut boots = 1;
        for event in events {
            boots += 1;
            match event {
                Event::Down(who) => { stage.up.remove(&ids[who]); }
                Event::Up(who) => { stage.up.entry(ids[who]).or_insert(boots); }
                Event::Drain(who, draining) => stage.drain(ids[who], draining),
                Event::Wait(tenths) => for _ in 0..tenths {
                    let before = stage.charter.clone();
                    stage.pass(SECOND / 10);
                    let silent: BTreeSet<MemberId> = ids.iter().copied().filter(|id| {
                        let last = stage.heard.get(id).map_or(Duration::ZERO, |heard| heard.at);
                        stage.now - last > patience.suspect_after
                    }).collect();
                    let well = |id: &MemberId| {
                        !silent.contains(id) && !before.members()[id].draining
                    };
                    let mut given = 0;
                    for (group, seat) in stage.charter.seats() {
                        let was = before.seats()[group];
                        if seat.term == was.term { continue }
                        prop_assert!(!silent.contains(&seat.life.member));
                        prop_assert_eq!(seat.life.boot, stage.heard[&seat.life.member].boot);
                        // Its own new life is nobody else.
                        let taken = seat.life.member != was.life.member;
                        given += usize::from(taken && well(&was.life.member));
                    }
                    prop_assert!(given <= 1, "{given} groups were taken from those who are well");
                },
            }
        }
        for id in &ids {
            stage.up.entry(*id).or_insert(999);
            stage.drain(*id, false);
        }
        stage.pass(patience.flap_max + SECOND * 30);
        let loads = stage.loads();
        prop_assert_eq!(loads.iter().sum::<usize>(), 256);
        prop_assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1, "{loads:?}");
        let before = stage.moved.len();
        stage.pass(SECOND * 5);
        prop_assert_eq!(stage.moved.len(), before, "it never rests");
    }
}

/// Nobody else may decide in the term of a life that is over (charter spec S12): without an entry
/// that names the new one its pools would wait for ever.
#[test]
fn who_restarts_before_it_is_suspected_keeps_its_groups_in_its_new_life() {
    let mut stage = Stage::new(3);
    stage.pass(SECOND);
    let (loads, victim) = (stage.loads(), stage.ids()[1]);
    stage.up.insert(victim, 2);
    stage.pass(SECOND / 5);
    assert_eq!((stage.loads(), stage.moved.len()), (loads, 2), "in one entry for all");
    let seats = stage.charter.seats().values().filter(|seat| seat.life.member == victim);
    assert!(seats.clone().all(|seat| (seat.life.boot, seat.term) == (2, 2)), "{seats:?}");
    stage.pass(SECOND * 5);
    assert_eq!(stage.moved.len(), 2, "once");
}
