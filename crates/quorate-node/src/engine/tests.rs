//! The engine alone, on one node, with a disk that the test plays.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::{ClaimState, ProblemKind, Want};
use quorate_core::{ClaimId, Effect, Fence, Moment, NodeId, Share, Shares, Unit};
use quorate_wire::tidings::{OfPool, Tidings};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::{Ask, Engine};
use crate::boot::Boot;
use crate::caller::Caller;
use crate::clock;
use crate::config::Config;
use crate::journal::{Journal, Records, Written};
use crate::ledger::{Envelope, Mailbox, Recipient, State, Waiter};
use crate::metrics::Metrics;
use crate::planted::Planted;

type Answer = oneshot::Receiver<Envelope>;

pub(super) fn engine(pools: &str, journal: Journal) -> Engine {
    let limits = "limits = { claims = 4, queue = 2, pools = 3, remembered = 2, text = 8 }";
    with_limits(limits, pools, journal)
}

pub(super) fn with_limits(limits: &str, pools: &str, journal: Journal) -> Engine {
    let text = format!(
        "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
         listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
         members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n\
         {limits}\n{pools}"
    );
    let config = Config::parse_in_memory(&text).unwrap();
    started(config, &Boot::first(), (journal, Records::new()))
}

pub(super) fn started(config: Config, boot: &Boot, journal: (Journal, Records)) -> Engine {
    let (changes, _) = broadcast::channel(1);
    let (fatal, _) = mpsc::unbounded_channel();
    let metrics = Arc::new(Metrics::new());
    let (config, planted) = (Arc::new(config), Planted::default());
    Engine::new(config, metrics, changes, boot, journal, fatal, (planted, None)).unwrap()
}

pub(super) fn ask(engine: &mut Engine, pool: &str, serial: u64, ask: Ask) -> Answer {
    let (reply, answer) = oneshot::channel();
    let waiter =
        Waiter { received: clock::now(), to: Recipient::Http(Mailbox { reply, sender: None }) };
    let id = ClaimId { origin: 0, serial };
    engine.on_client(&Caller::Anonymous, (pool, id), ask, waiter);
    answer
}

pub(super) fn want(units: u32) -> Want {
    Want { client: "me".into(), reason: "x".into(), ..units.into() }
}

fn claim(engine: &mut Engine, pool: &str, serial: u64, units: u32) -> Answer {
    ask(engine, pool, serial, Ask::Claim { want: want(units), wait: true, keep: None })
}

fn state(mut answer: Answer) -> ClaimState {
    answer.try_recv().expect("an answer").read().expect("no problem").state
}

fn limit(mut answer: Answer) -> String {
    let problem = answer.try_recv().expect("an answer").read().expect_err("a problem");
    assert_eq!(problem.kind, ProblemKind::Limit, "{problem}");
    problem.detail
}

const DURABLE: &str = "[[pools]]\nname = \"p\"\nunits = 2\ndurable = true\n";
const ADVISED: &str = "[[pools]]\nname = \"p\"\nunits = 2\nprotocol = \"arbiter\"\n";
const PLAIN: &str = "[[pools]]\nname = \"p\"\nunits = 2\n[[pools]]\npattern = \"q*\"\nunits = 1\n";

#[test]
fn nothing_that_follows_a_record_is_seen_before_it_is_on_disk() {
    let (journal, mut submitted) = Journal::slow();
    let mut engine = engine(DURABLE, journal);
    let mut first = claim(&mut engine, "p", 1, 1);
    let mut second = claim(&mut engine, "p", 2, 1);
    let numbers: Vec<u64> = submitted().into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(first.try_recv().unwrap_err(), TryRecvError::Empty);
    engine.on_written(Written::UpTo(1, Duration::ZERO));
    assert_eq!(state(first), ClaimState::Granted);
    assert_eq!(second.try_recv().unwrap_err(), TryRecvError::Empty, "its record is not written");
    // What happens meanwhile waits behind it, in order.
    let third = claim(&mut engine, "p", 3, 1);
    drop(ask(&mut engine, "p", 1, Ask::End));
    let numbers: Vec<u64> = submitted().into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [3], "the grant of the third, on the unit of the first");
    engine.on_written(Written::UpTo(3, Duration::ZERO));
    assert_eq!(state(second), ClaimState::Granted);
    assert_eq!(state(third), ClaimState::Granted);
}

#[test]
fn limits_have_names_and_change_nothing() {
    let mut engine = engine(PLAIN, Journal::nowhere());
    assert_eq!(state(claim(&mut engine, "p", 1, 2)), ClaimState::Granted);
    let waiting = [claim(&mut engine, "p", 2, 1), claim(&mut engine, "p", 3, 1)];
    assert!(limit(claim(&mut engine, "p", 4, 1)).contains("limits.queue = 2"));
    assert_eq!(state(claim(&mut engine, "q1", 5, 1)), ClaimState::Granted);
    assert!(limit(claim(&mut engine, "q1", 6, 1)).contains("limits.claims = 4"));
    assert_eq!(state(ask(&mut engine, "q1", 5, Ask::End)), ClaimState::Released);
    assert_eq!(state(claim(&mut engine, "q2", 7, 1)), ClaimState::Granted);
    assert!(limit(claim(&mut engine, "q3", 8, 1)).contains("limits.pools = 3"));
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert_eq!(waiting.map(state), [ClaimState::Granted; 2]);
    let long = Want { reason: "too long a reason".into(), ..want(1) };
    let mut refused = ask(&mut engine, "p", 9, Ask::Claim { want: long, wait: true, keep: None });
    assert_eq!(refused.try_recv().unwrap().read().unwrap_err().kind, ProblemKind::BadRequest);
}

#[test]
fn what_is_over_is_remembered_for_a_while_and_then_forgotten() {
    let mut engine = engine(PLAIN, Journal::nowhere());
    for serial in 1..=3 {
        assert_eq!(state(claim(&mut engine, "p", serial, 1)), ClaimState::Granted);
        assert_eq!(state(ask(&mut engine, "p", serial, Ask::End)), ClaimState::Released);
    }
    let status = |engine: &mut Engine, serial| {
        let mut answer = ask(engine, "p", serial, Ask::Status { wait: false });
        answer.try_recv().unwrap().read().map(|snapshot| snapshot.state).map_err(|p| p.kind)
    };
    assert_eq!(status(&mut engine, 1), Err(ProblemKind::UnknownClaim), "limits.remembered = 2");
    assert_eq!(status(&mut engine, 2), Ok(ClaimState::Released));
    assert_eq!(status(&mut engine, 3), Ok(ClaimState::Released));
    assert_eq!(engine.active, 0);
}

#[test]
fn a_claim_that_is_ended_while_it_waits_answers_whoever_waits_for_it() {
    let mut engine = engine(PLAIN, Journal::nowhere());
    drop(claim(&mut engine, "p", 1, 2));
    let waiting = claim(&mut engine, "p", 2, 1);
    let also = ask(&mut engine, "p", 2, Ask::Status { wait: true });
    assert_eq!(state(ask(&mut engine, "p", 2, Ask::End)), ClaimState::Cancelled);
    assert_eq!(state(waiting), ClaimState::Cancelled);
    assert_eq!(state(also), ClaimState::Cancelled);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert_eq!(state(claim(&mut engine, "p", 2, 1)), ClaimState::Cancelled, "for good");
}

#[test]
fn what_came_and_went_leaves_no_alarms_behind() {
    let pools = "[[pools]]\npattern = \"p-*\"\nunits = 1\nlease = \"1h\"\n";
    let mut engine = engine(pools, Journal::nowhere());
    for serial in 0..1000 {
        let pool = format!("p-{}", serial % 3);
        assert_eq!(state(claim(&mut engine, &pool, serial, 1)), ClaimState::Granted);
        assert_eq!(state(ask(&mut engine, &pool, serial, Ask::End)), ClaimState::Released);
    }
    // One for each pool, and the heartbeat.
    assert!(engine.alarms.len() <= 4, "{}", engine.alarms.len());
}

/// How a claim stands, without anybody who waits for that.
fn standing(engine: &Engine, serial: u64) -> Option<&State> {
    let id = ClaimId { origin: 0, serial };
    engine.pools[0].ledger.get(&id).map(|claimed| &claimed.state)
}

fn is_granted(engine: &Engine, serial: u64) -> bool {
    matches!(standing(engine, serial), Some(State::Granted { .. }))
}

/// A pool of one unit, which claim 1 holds.
fn taken() -> Engine {
    let pools = "[[pools]]\nname = \"p\"\nunits = 1\nlease = \"10s\"\n";
    let mut engine = engine(pools, Journal::nowhere());
    assert_eq!(state(claim(&mut engine, "p", 1, 1)), ClaimState::Granted);
    engine
}

fn later(seconds: u64) -> Moment {
    clock::now().after(Duration::from_secs(seconds))
}

/// Whoever is not there has not been for so long.
fn away_for(engine: &mut Engine, seconds: u64) {
    let seen = Moment(clock::now().0 - seconds * 1_000_000_000);
    let ledger = &mut engine.pools[0].ledger;
    for id in ledger.in_line().collect::<Vec<_>>() {
        let claimed = ledger.get_mut(&id).expect("it is in line");
        if !claimed.is_attended() {
            claimed.presence.waits(seen);
        }
    }
}

#[test]
fn a_broken_connection_costs_nobody_its_turn() {
    let mut engine = taken();
    drop(claim(&mut engine, "p", 2, 1));
    let waits = claim(&mut engine, "p", 3, 1);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert!(is_granted(&engine, 2), "it is about to ask again");
    assert_eq!(state(claim(&mut engine, "p", 2, 1)), ClaimState::Granted);
    engine.look_for_the_absent(later(5));
    assert!(is_granted(&engine, 2), "it did");
    drop(waits);
}

#[test]
fn who_does_not_come_back_delays_others_by_a_moment_and_no_lease() {
    let mut engine = taken();
    drop(claim(&mut engine, "p", 2, 1));
    let waits = claim(&mut engine, "p", 3, 1);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert!(is_granted(&engine, 2));
    assert_eq!(engine.alarms.len(), 3, "of the pool, of the heartbeat, and of its return");
    engine.look_for_the_absent(later(1));
    assert!(is_granted(&engine, 2));
    engine.look_for_the_absent(later(3));
    assert_eq!(standing(&engine, 2), Some(&State::Waiting));
    assert_eq!(state(waits), ClaimState::Granted);
}

#[test]
fn who_hung_up_does_not_take_a_turn_and_may_come_back() {
    let mut engine = taken();
    let gone = claim(&mut engine, "p", 2, 1);
    let waits = claim(&mut engine, "p", 3, 1);
    drop(gone);
    away_for(&mut engine, 3);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert_eq!(state(waits), ClaimState::Granted, "past the one that nobody is there for");
    assert_eq!(standing(&engine, 2), Some(&State::Waiting));
    // Its client is back, and waits again.
    let mut back = claim(&mut engine, "p", 2, 1);
    assert_eq!(back.try_recv().unwrap_err(), TryRecvError::Empty);
    drop(ask(&mut engine, "p", 3, Ask::End));
    assert_eq!(state(back), ClaimState::Granted);
}

#[test]
fn who_hung_up_while_it_was_told_holds_nothing() {
    let mut engine = taken();
    let gone = claim(&mut engine, "p", 2, 1);
    let waits = claim(&mut engine, "p", 3, 1);
    drop(ask(&mut engine, "p", 1, Ask::End));
    let Some(State::Granted { since, .. }) = standing(&engine, 2) else { panic!("not granted") };
    let since = *since;
    // The answer is on its way, and nobody reads it.
    drop(gone);
    let id = ClaimId { origin: 0, serial: 2 };
    engine.pools[0].ledger.get_mut(&id).expect("it is known").presence.waits(Moment(0));
    engine.on_unread("p", ClaimId { origin: 0, serial: 2 }, since);
    assert_eq!(state(waits), ClaimState::Granted);
    // What is said again of a grant that is over changes nothing.
    engine.on_unread("p", ClaimId { origin: 0, serial: 2 }, since);
    engine.on_unread("p", ClaimId { origin: 0, serial: 3 }, since);
    assert!(is_granted(&engine, 3));
}

#[test]
fn what_somebody_read_is_not_taken_back_because_another_did_not() {
    let mut engine = taken();
    let first = claim(&mut engine, "p", 2, 1);
    let second = ask(&mut engine, "p", 2, Ask::Status { wait: true });
    drop(ask(&mut engine, "p", 1, Ask::End));
    let Some(State::Granted { since, .. }) = standing(&engine, 2) else { panic!("not granted") };
    let since = *since;
    assert_eq!(state(first), ClaimState::Granted);
    drop(second);
    engine.on_unread("p", ClaimId { origin: 0, serial: 2 }, since);
    assert!(is_granted(&engine, 2));
}

#[test]
fn a_thousand_that_hung_up_are_passed_at_once() {
    let pools = "[[pools]]\nname = \"p\"\nunits = 1\n";
    let mut engine = with_limits("limits = { queue = 5000 }", pools, Journal::nowhere());
    assert_eq!(state(claim(&mut engine, "p", 1, 1)), ClaimState::Granted);
    for serial in 2..1002 {
        drop(claim(&mut engine, "p", serial, 1));
    }
    let last = claim(&mut engine, "p", 2000, 1);
    away_for(&mut engine, 3);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert_eq!(state(last), ClaimState::Granted);
}

#[test]
fn a_claim_that_nobody_asks_for_is_cancelled_after_a_lease() {
    let mut engine = taken();
    let polled = |engine: &mut Engine| {
        let ask = ask(engine, "p", 2, Ask::Claim { want: want(1), wait: false, keep: None });
        state(ask)
    };
    assert_eq!(polled(&mut engine), ClaimState::Waiting);
    engine.look_for_the_absent(later(9));
    assert_eq!(polled(&mut engine), ClaimState::Waiting);
    engine.look_for_the_absent(later(11));
    let status = ask(&mut engine, "p", 2, Ask::Status { wait: false });
    assert_eq!(state(status), ClaimState::Cancelled);
    assert_eq!(polled(&mut engine), ClaimState::Waiting, "made anew by a client that is back");
    // A node that stood still does not know who came meanwhile.
    engine.forgive_absence(later(60));
    engine.look_for_the_absent(later(61));
    assert_eq!(standing(&engine, 2), Some(&State::Waiting));
    drop(ask(&mut engine, "p", 2, Ask::End));
    // A request that waits is somebody, for as long as it takes.
    let waits = claim(&mut engine, "p", 3, 1);
    engine.look_for_the_absent(later(60));
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert_eq!(state(waits), ClaimState::Granted);
}

#[test]
fn who_polls_is_granted_between_two_polls_and_finds_it() {
    let mut engine = taken();
    let poll = |engine: &mut Engine| {
        state(ask(engine, "p", 2, Ask::Claim { want: want(1), wait: false, keep: None }))
    };
    assert_eq!(poll(&mut engine), ClaimState::Waiting);
    let waits = claim(&mut engine, "p", 3, 1);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert!(is_granted(&engine, 2), "its client was answered, and will ask again");
    engine.look_for_the_absent(later(9));
    assert_eq!(poll(&mut engine), ClaimState::Granted);
    engine.look_for_the_absent(later(60));
    assert!(is_granted(&engine, 2), "told, it ends with its lease or by its client");
    drop(ask(&mut engine, "p", 2, Ask::End));
    assert_eq!(state(waits), ClaimState::Granted);
}

#[test]
fn what_nobody_came_for_is_given_back_before_its_lease_ends() {
    let mut engine = taken();
    drop(ask(&mut engine, "p", 2, Ask::Claim { want: want(1), wait: false, keep: None }));
    let waits = claim(&mut engine, "p", 3, 1);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert!(is_granted(&engine, 2));
    engine.look_for_the_absent(later(11));
    assert_eq!(state(waits), ClaimState::Granted);
}

#[test]
fn who_says_that_it_comes_later_is_waited_for() {
    let mut engine = taken();
    let keep = Some(Duration::from_secs(3600));
    drop(ask(&mut engine, "p", 2, Ask::Claim { want: want(1), wait: true, keep }));
    engine.look_for_the_absent(later(3599));
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert!(is_granted(&engine, 2));
    let mut engine = taken();
    drop(ask(&mut engine, "p", 2, Ask::Claim { want: want(1), wait: true, keep }));
    engine.look_for_the_absent(later(3601));
    let status = ask(&mut engine, "p", 2, Ask::Status { wait: false });
    assert_eq!(state(status), ClaimState::Cancelled);
}

fn tidings(here: &[u64], over: &[u64]) -> Tidings {
    let ids = |serials: &[u64]| serials.iter().map(|serial| (0, *serial)).collect();
    let of = OfPool { pool: "p".into(), here: ids(here), over: ids(over), ..OfPool::default() };
    let nowhere = OfPool { pool: "nowhere".into(), ..of.clone() };
    Tidings { number: None, pools: vec![of, nowhere] }
}

#[test]
fn a_copy_that_nobody_waits_at_gives_way_to_the_one_where_the_client_is() {
    let mut engine = taken();
    let poll = |engine: &mut Engine, serial| {
        let ask = ask(engine, "p", serial, Ask::Claim { want: want(1), wait: false, keep: None });
        state(ask)
    };
    poll(&mut engine, 2);
    engine.on_tidings(NodeId(0), tidings(&[2, 99], &[]));
    assert_eq!(standing(&engine, 2), None, "waiting");
    poll(&mut engine, 3);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert!(is_granted(&engine, 3));
    engine.on_tidings(NodeId(0), tidings(&[3], &[]));
    assert_eq!(standing(&engine, 3), None, "granted, and nobody knows");
    assert_eq!(poll(&mut engine, 4), ClaimState::Granted, "its unit is free");
    engine.on_tidings(NodeId(0), tidings(&[4], &[]));
    assert!(is_granted(&engine, 4), "somebody was told");
    assert_eq!(poll(&mut engine, 3), ClaimState::Waiting, "its client is back");
    assert_eq!(engine.active, 2);
}

#[test]
fn what_its_client_renewed_is_in_use_whatever_became_of_the_answer() {
    let mut engine = taken();
    drop(ask(&mut engine, "p", 2, Ask::Claim { want: want(1), wait: false, keep: None }));
    drop(ask(&mut engine, "p", 1, Ask::End));
    let Some(State::Granted { since, .. }) = standing(&engine, 2) else { panic!("not granted") };
    let since = *since;
    let mut renewed = ask(&mut engine, "p", 2, Ask::Renew { shown: None, client: String::new() });
    if renewed.try_recv().is_ok() {
        engine.on_unread("p", ClaimId { origin: 0, serial: 2 }, since);
    }
    engine.on_tidings(NodeId(0), tidings(&[2], &[]));
    assert!(is_granted(&engine, 2));
}

/// Found by the campaign: a client that had waited here was granted units elsewhere, renewed here,
/// and was told that its claim had been cancelled.
#[test]
fn a_copy_that_nobody_came_back_for_is_no_end_of_a_grant_from_elsewhere() {
    let mut engine = taken();
    drop(ask(&mut engine, "p", 2, Ask::Claim { want: want(1), wait: false, keep: None }));
    engine.look_for_the_absent(later(100));
    let left = |engine: &Engine| {
        let id = ClaimId { origin: 0, serial: 2 };
        engine.pools[0].ledger.get(&id).expect("it is known").presence.abandoned
    };
    assert!(left(&engine));
    let renew = |shown| Ask::Renew { shown, client: String::new() };
    drop(ask(&mut engine, "p", 2, renew(None)));
    assert!(left(&engine), "who shows nothing is told what became of it");
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(9) }]);
    drop(ask(&mut engine, "p", 2, renew(Some(shares))));
    assert!(!left(&engine), "those who decide are asked");
}

#[test]
fn a_copy_where_a_client_waits_stays_until_it_has_gone() {
    let mut engine = taken();
    let waits = claim(&mut engine, "p", 2, 1);
    engine.on_tidings(NodeId(0), tidings(&[2], &[]));
    engine.look_for_the_absent(later(1));
    assert_eq!(standing(&engine, 2), Some(&State::Waiting), "both stay");
    drop(waits);
    engine.look_for_the_absent(later(2));
    assert_eq!(standing(&engine, 2), None);
    // Or its turn comes before that is seen.
    let waits = claim(&mut engine, "p", 3, 1);
    let next = claim(&mut engine, "p", 4, 1);
    engine.on_tidings(NodeId(0), tidings(&[3], &[]));
    drop(waits);
    drop(ask(&mut engine, "p", 1, Ask::End));
    assert_eq!((state(next), standing(&engine, 3)), (ClaimState::Granted, None));
}

#[test]
fn what_its_client_ended_elsewhere_is_over_here() {
    let mut engine = taken();
    let waits = claim(&mut engine, "p", 2, 1);
    engine.on_tidings(NodeId(0), tidings(&[], &[2, 1, 3, 4]));
    assert_eq!(state(waits), ClaimState::Cancelled);
    let status =
        |engine: &mut Engine, serial| state(ask(engine, "p", serial, Ask::Status { wait: false }));
    assert_eq!(status(&mut engine, 1), ClaimState::Released);
    assert_eq!(state(claim(&mut engine, "p", 4, 1)), ClaimState::Cancelled, "never granted");
    assert_eq!(status(&mut engine, 4), ClaimState::Cancelled);
    assert_eq!(state(claim(&mut engine, "p", 5, 1)), ClaimState::Granted);
}

#[tokio::test]
async fn after_a_restart_a_pool_waits_for_its_own_leases_and_for_no_others() {
    let directory = std::env::temp_dir().join(format!("quorate-graces-{}", std::process::id()));
    let text = |day: &str| {
        format!(
            "cluster = \"c\"\nepoch = 1\nnode = \"a\"\ndata_dir = {directory:?}\n\
             listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
             members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n\
             [[pools]]\nname = \"day\"\nunits = 1\nlease = \"{day}\"\n\
             [[pools]]\npattern = \"q*\"\nunits = 1\nlease = \"2s\"\n"
        )
    };
    crate::boot::declare_new(&Config::parse(&text("1d")).unwrap()).unwrap();
    // The first start, a second one, and one whose lease of a day has become an hour.
    for (day, graces) in [("1d", [None; 2]), ("1d", [Some(86_400), Some(2)])]
        .into_iter()
        .chain([("1h", [Some(86_400), Some(2)])])
    {
        let config = Config::parse(&text(day)).unwrap();
        let boot = crate::boot::count(&config).await.unwrap();
        boot.take_up(&config).unwrap();
        let mut engine = started(config, &boot, (Journal::nowhere(), Records::new()));
        let waits = ["day", "q1"].map(|pool| {
            let seat = engine.seat(pool).unwrap();
            let until = engine.pools[seat].seat.grace_until();
            until.map(|until| until.since(engine.since).as_secs())
        });
        assert_eq!(waits, graces, "day = {day}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// An engine in which claim 1 of pool `p` is granted, and until when.
fn granted() -> (Engine, ClaimId, Moment) {
    granted_in(PLAIN)
}

fn granted_in(pools: &str) -> (Engine, ClaimId, Moment) {
    let mut engine = engine(pools, Journal::nowhere());
    assert_eq!(state(claim(&mut engine, "p", 1, 1)), ClaimState::Granted);
    let id = ClaimId { origin: 0, serial: 1 };
    let State::Granted { until, .. } = engine.pools[0].ledger.get(&id).unwrap().state else {
        unreachable!("it is granted");
    };
    (engine, id, until)
}

#[test]
fn a_deadline_that_this_node_saw_pass_is_no_final_answer_until_those_who_decide_say_so() {
    let (mut engine, id, until) = granted();
    engine.on_grant_end(0, id, until);
    let look = |engine: &mut Engine, what: Ask| {
        let snapshot = ask(engine, "p", 1, what).try_recv().unwrap().read().unwrap();
        (snapshot.state, snapshot.lapsed)
    };
    assert_eq!(look(&mut engine, Ask::Status { wait: true }), (ClaimState::Lost, true));
    assert_eq!(
        look(&mut engine, Ask::Renew { shown: None, client: String::new() }),
        (ClaimState::Lost, true)
    );
    engine.perform(0, Effect::Lose { claim: id }, until);
    assert_eq!(
        look(&mut engine, Ask::Renew { shown: None, client: String::new() }),
        (ClaimState::Lost, false)
    );
    // The client's own word is final too.
    let (mut engine, id, until) = granted();
    engine.on_grant_end(0, id, until);
    assert_eq!(look(&mut engine, Ask::End), (ClaimState::Lost, false));
    // Found by the campaign: where several have to agree, this node asked some of them, and the
    // client may have renewed by others.
    let (mut engine, id, until) = granted_in(ADVISED);
    engine.on_grant_end(0, id, until);
    engine.perform(0, Effect::Lose { claim: id }, until);
    assert_eq!(look(&mut engine, Ask::Status { wait: true }), (ClaimState::Lost, true));
}

#[test]
fn that_a_lease_had_ended_is_never_said_before_it_has() {
    for (early, words) in [(true, "do not know it any more"), (false, "the lease had ended")] {
        let (mut engine, id, until) = granted();
        let now = if early { Moment(until.0 - 1) } else { until };
        engine.perform(0, Effect::Lose { claim: id }, now);
        let mut answer = ask(&mut engine, "p", 1, Ask::Status { wait: false });
        let ended = answer.try_recv().unwrap().read().unwrap().ended.unwrap();
        assert!(ended.contains(words), "{ended}");
    }
}

/// Under `ring` a node extends by its licence, under `ticket` by what members said before: one that
/// is cut off has next to nothing to give.
#[test]
fn a_renewal_that_brings_nothing_is_not_answered_as_one() {
    let (mut engine, id, until) = granted();
    let (reply, mut answer) = oneshot::channel();
    let late = Moment(until.0 - 1_000_000_000);
    let waiter = Waiter { received: late, to: Recipient::Http(Mailbox { reply, sender: None }) };
    engine.pools[0].ledger.get_mut(&id).unwrap().waiters.push(waiter);
    for gained in [0, 5_000_000] {
        let until = Moment(until.0 + gained);
        engine.perform(0, Effect::Extend { claim: id, until }, late);
        assert_eq!(answer.try_recv().unwrap_err(), TryRecvError::Empty, "{gained} ns");
    }
    let longer = late.after(engine.pools[0].def.lease.length());
    engine.perform(0, Effect::Extend { claim: id, until: longer }, late);
    let snapshot = answer.try_recv().unwrap().read().unwrap();
    assert_eq!(snapshot.state, ClaimState::Granted);
    assert!(snapshot.valid_for > Duration::from_secs(2), "{:?}", snapshot.valid_for);
}

/// Who tries to end a claim that is not its own must not keep it up by that.
#[test]
fn whoever_only_looks_whether_a_claim_is_known_is_not_there_for_it() {
    let mut engine = engine("pools = [{ name = \"p\", units = 1 }]", Journal::nowhere());
    let claim = || Ask::Claim { want: want(1), wait: false, keep: None };
    drop((ask(&mut engine, "p", 1, claim()), ask(&mut engine, "p", 2, claim())));
    let id = ClaimId { origin: 0, serial: 2 };
    let claimed = engine.pools[0].ledger.get_mut(&id).expect("it is known");
    claimed.presence.waits(Moment(0));
    let presence = |engine: &Engine| {
        format!("{:?}", engine.pools[0].ledger.get(&id).expect("it is known").presence)
    };
    let before = presence(&engine);
    assert!(engine.has_seen("p", id) && !engine.has_seen("p", ClaimId { origin: 0, serial: 3 }));
    assert_eq!(presence(&engine), before);
    drop(ask(&mut engine, "p", 2, Ask::Status { wait: false }));
    assert_ne!(presence(&engine), before, "who asks how it stands is there for it");
}
