//! When a node has its charter say that a shadow is whole, or is to be struck: one engine, a
//! charter that the test writes, and a shadow that the test plays.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::ClaimState;
use quorate_charter::{
    About, Birth, Change, Charter, ClusterId, Group, Life, MemberId, Move, Newcomer, Request,
    RequestId,
};
use quorate_core::{Event, Moment, NodeId};
use quorate_protocols::central::moving::{Message, Moving};
use quorate_wire::Wire;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::tests::want;
use super::{Ask, Chartered, Engine};
use crate::boot::Boot;
use crate::caller::Caller;
use crate::charter::{Amendments, FromCharter, Hall, Licence, Pins, Seats, Want};
use crate::clock;
use crate::config::Config;
use crate::journal::{Journal, Records};
use crate::ledger::{Envelope, Mailbox, Recipient, Waiter};
use crate::metrics::Metrics;
use crate::planted::Planted;

const SHADOW: NodeId = NodeId(1);
const TERM: u32 = 65_536 + 1;

pub(super) struct Stage {
    pub(super) engine: Engine,
    hall: Arc<Hall>,
    /// Since when licences are to count that were asked for.
    pub(super) asked: mpsc::UnboundedReceiver<Moment>,
    charter: Charter,
    index: u64,
}

impl Stage {
    /// Three members, of which the first decides for every group.
    pub(super) fn new(pools: &str) -> Stage {
        let text = format!(
            "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
             listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
             members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}, \
             {{ name = \"b\", peers = \"127.0.0.1:3\" }}, \
             {{ name = \"c\", peers = \"127.0.0.1:4\" }}]\n\
             [charter]\nenabled = true\n{pools}"
        );
        let config = Arc::new(Config::parse_in_memory(&text).unwrap());
        let boot = Boot::first();
        let chartered = config.charter.expect("it is switched on");
        let keys = watch::channel(None).1;
        let hall = Arc::new(Hall::new(
            Arc::clone(&config),
            (chartered, Pins::default()),
            boot.number,
            keys,
        ));
        let (asks, asked) = mpsc::unbounded_channel();
        let way = Chartered { hall: Arc::clone(&hall), asks };
        let (changes, _) = broadcast::channel(1);
        let (fatal, _) = mpsc::unbounded_channel();
        let (metrics, journal) = (Arc::new(Metrics::new()), (Journal::nowhere(), Records::new()));
        let rest = (Planted::default(), Some(way));
        let engine = Engine::new(config, metrics, changes, &boot, journal, fatal, rest).unwrap();
        let mut stage = Stage { engine, hall, asked, charter: Charter::default(), index: 0 };
        let cluster = ClusterId([1; 16]);
        let founder = newcomer("a", 1);
        stage.change(vec![Change::Found { cluster, incarnation: 1, founder }]);
        for (name, number) in [("b", 2), ("c", 3)] {
            stage.change(vec![Change::Join(newcomer(name, number))]);
        }
        let to = Life { member: MemberId::FOUNDER, boot: boot.number.into() };
        let moves = Group::all().map(|group| Move { group, term: 0, to }).collect();
        stage.applies(vec![Change::Seats { moves }]);
        stage
    }

    fn change(&mut self, changes: Vec<Change>) {
        self.index += 1;
        let id = RequestId(u128::from(self.index).to_be_bytes());
        self.charter.apply(self.index, &Request { id, changes }).expect("allowed");
    }

    pub(super) fn applies(&mut self, changes: Vec<Change>) {
        let before = self.charter.clone();
        self.change(changes);
        let seats = Arc::new(Seats::of(&self.charter, &self.engine.config));
        let amendments = Amendments::new(&self.charter, Some(&before));
        self.engine.on_charter(FromCharter::Applied(seats, amendments, Vec::new()));
    }

    /// The second member decides for every group, and then the first one again.
    pub(super) fn moves_away_and_back(&mut self) {
        let second = Life { member: MemberId(2), boot: 5 };
        let first = self.charter.seats().values().next().expect("it decides").life;
        for to in [second, first] {
            let seats = self.charter.seats().iter();
            let moves = seats.map(|(group, seat)| Move { group: *group, term: seat.term, to });
            let moves = moves.collect();
            self.applies(vec![Change::Seats { moves }]);
        }
    }

    /// The second member shadows every group from now on. Returns as whom.
    fn shadowed(&mut self) -> u64 {
        let seats = self.charter.seats().iter();
        let life = Life { member: MemberId(2), boot: 5 };
        let names = seats.map(|(group, seat)| {
            let seen = seat.shadow.map_or(0, |shadow| shadow.naming);
            Change::Shadow { group: *group, term: 1, seen, shadow: Some(life) }
        });
        let names = names.collect();
        self.applies(names);
        self.index
    }

    /// The shadow knows all of a pool.
    fn told_all(&mut self, pool: &str, naming: u64) {
        let message = Message::Told { term: TERM, naming, all: true, claims: Vec::new() };
        let mut bytes = Vec::new();
        Moving::encode_message(&message, &mut bytes);
        let seat = self.engine.seat(pool).expect("there is one");
        self.engine.step(seat, Event::Hear { from: SHADOW, message: &bytes });
    }

    fn licensed(&mut self, pool: &str) {
        self.licensed_in(pool, TERM);
    }

    pub(super) fn licensed_in(&mut self, pool: &str, term: u32) {
        self.licensed_since(pool, term, clock::now());
    }

    pub(super) fn licensed_since(&mut self, pool: &str, term: u32, asked: Moment) {
        let group = Group::of(pool);
        self.engine.on_charter(FromCharter::Licensed(vec![Licence { group, term, asked }]));
    }

    pub(super) fn claims(&mut self, pool: &str, serial: u64) -> oneshot::Receiver<Envelope> {
        let (reply, answer) = oneshot::channel();
        let to = Recipient::Http(Mailbox { reply, sender: None });
        let waiter = Waiter { received: clock::now(), to };
        let id = quorate_core::ClaimId { origin: 0, serial };
        let claim = Ask::Claim { want: want(1), wait: true, keep: None };
        self.engine.on_client(&Caller::Anonymous, (pool, id), claim, waiter);
        answer
    }

    pub(super) fn ends(&mut self, pool: &str, serial: u64) {
        let (reply, _) = oneshot::channel();
        let to = Recipient::Http(Mailbox { reply, sender: None });
        let waiter = Waiter { received: clock::now(), to };
        let id = quorate_core::ClaimId { origin: 0, serial };
        self.engine.on_client(&Caller::Anonymous, (pool, id), Ask::End, waiter);
    }

    /// What is to be said of a group as it is named now.
    fn wanted(&self, group: Group, naming: u64) -> Option<Want> {
        self.hall.wanted(group).filter(|it| (it.0, it.1) == (TERM, naming)).map(|it| it.2)
    }
}

fn newcomer(name: &str, number: u8) -> Newcomer {
    let about = About { addresses: vec!["there".into()], ..About::default() };
    Newcomer { name: name.into(), birth: Birth([number; 16]), about }
}

/// Names of pools of one group.
fn of_one_group() -> [String; 3] {
    let mut names = (0..).map(|number| format!("p{number}"));
    let first = names.next().expect("endless");
    let mut same = names.filter(|name| Group::of(name) == Group::of("p0"));
    [first, same.next().expect("endless"), same.next().expect("endless")]
}

const POOLS: &str = "[[pools]]\npattern = \"p*\"\nunits = 2\n";

#[test]
fn a_group_is_whole_when_all_its_pools_in_use_are_as_it_was_named_last() {
    let mut stage = Stage::new(POOLS);
    let [one, other, later] = of_one_group();
    stage.engine.seat(&one).unwrap();
    stage.engine.seat(&other).unwrap();
    let naming = stage.shadowed();
    let (group, idle) = (Group::of(&one), Group(Group::of(&one).0.wrapping_add(1)));
    assert_eq!(stage.wanted(idle, naming), Some(Want::Whole), "nobody has anything there");
    assert_eq!(stage.wanted(group, naming), None);
    stage.told_all(&one, naming);
    assert_eq!(stage.wanted(group, naming), None, "of the other it may not know");
    // Named anew: what it knew then need not be all.
    let again = stage.shadowed();
    stage.told_all(&other, naming);
    stage.told_all(&other, again);
    assert_eq!(stage.wanted(group, again), None, "it has not said so of the first one since");
    stage.told_all(&one, again);
    assert_eq!(stage.wanted(group, again), Some(Want::Whole));
    // It is said, and then a third pool comes into use.
    let whole = Change::Whole { group, term: 1, naming: again };
    stage.applies(vec![whole]);
    let mut waits = stage.claims(&later, 1);
    stage.licensed(&later);
    assert!(waits.try_recv().is_err(), "its shadow does not know of that yet");
    let names = |stage: &Stage| -> Vec<String> {
        stage.engine.unshadowed(9).0.iter().map(|pool| pool.name.to_string()).collect()
    };
    assert_eq!(names(&stage), std::slice::from_ref(&later));
    stage.told_all(&later, again);
    assert_eq!(names(&stage), [""; 0]);
}

#[test]
fn a_pool_that_wants_none_grants_as_ever_and_holds_nobody_up() {
    let mut stage = Stage::new("[[pools]]\npattern = \"p*\"\nunits = 2\nshadow = false\n");
    let [one, ..] = of_one_group();
    stage.engine.seat(&one).unwrap();
    let naming = stage.shadowed();
    assert_eq!(stage.wanted(Group::of(&one), naming), Some(Want::Whole));
    let mut granted = stage.claims(&one, 1);
    stage.licensed(&one);
    let state = granted.try_recv().expect("an answer").read().expect("no problem").state;
    assert_eq!(state, ClaimState::Granted);
    assert_eq!(stage.engine.unshadowed(9).1, 0, "it should have none");
}

#[test]
fn a_shadow_that_owes_an_answer_for_long_is_struck_and_no_other() {
    let mut stage = Stage::new(POOLS);
    let [one, ..] = of_one_group();
    let quiet = (0..).map(|number| format!("p{number}"));
    let quiet = quiet.into_iter().find(|it| Group::of(it) != Group::of(&one)).expect("endless");
    stage.engine.seat(&one).unwrap();
    stage.engine.seat(&quiet).unwrap();
    let naming = stage.shadowed();
    stage.told_all(&one, naming);
    stage.told_all(&quiet, naming);
    let group = Group::of(&one);
    let look = |stage: &mut Stage, after: Duration| {
        let now: Moment = clock::now().after(after);
        stage.engine.strike_the_silent(now);
        [group, Group::of(&quiet)].map(|group| stage.wanted(group, naming))
    };
    let whole = Some(Want::Whole);
    assert_eq!(look(&mut stage, Duration::from_secs(60)), [whole; 2], "it owes nothing");
    drop(stage.claims(&one, 1));
    stage.licensed(&one);
    assert_eq!(look(&mut stage, Duration::ZERO), [whole; 2], "it has a while");
    assert_eq!(look(&mut stage, Duration::from_secs(60)), [Some(Want::Strike), whole]);
}
