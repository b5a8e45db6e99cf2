//! The engine alone, on one node, with a disk that the test plays.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::{ClaimState, Problem, ProblemKind, Want};
use quorate_core::{ClaimId, Effect, Moment};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::{Ask, Engine};
use crate::boot::Boot;
use crate::clock;
use crate::config::Config;
use crate::journal::{Journal, Records, Written};
use crate::ledger::{Recipient, Snapshot, State, Waiter};
use crate::metrics::Metrics;
use crate::planted::Planted;

type Answer = oneshot::Receiver<Result<Snapshot, Problem>>;

fn engine(pools: &str, journal: Journal) -> Engine {
    let text = format!(
        "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
         listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
         members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n\
         limits = {{ claims = 4, queue = 2, pools = 3, remembered = 2, text = 8 }}\n{pools}"
    );
    let config = Config::parse_in_memory(&text).unwrap();
    started(config, &Boot::first(), (journal, Records::new()))
}

fn started(config: Config, boot: &Boot, journal: (Journal, Records)) -> Engine {
    let (changes, _) = broadcast::channel(1);
    let (fatal, _) = mpsc::unbounded_channel();
    let metrics = Arc::new(Metrics::new());
    let (config, planted) = (Arc::new(config), Planted::default());
    Engine::new(config, metrics, changes, boot, journal, fatal, planted).unwrap()
}

fn ask(engine: &mut Engine, pool: &str, serial: u64, ask: Ask) -> Answer {
    let (reply, answer) = oneshot::channel();
    let waiter = Waiter { received: clock::now(), to: Recipient::Http(reply) };
    let id = ClaimId { origin: 0, serial };
    engine.on_client(pool, id, ask, waiter);
    answer
}

fn want(units: u32) -> Want {
    Want { client: "me".into(), reason: "x".into(), ..units.into() }
}

fn claim(engine: &mut Engine, pool: &str, serial: u64, units: u32) -> Answer {
    ask(engine, pool, serial, Ask::Claim { want: want(units), wait: true })
}

fn state(mut answer: Answer) -> ClaimState {
    answer.try_recv().expect("an answer").expect("no problem").state
}

fn limit(mut answer: Answer) -> String {
    let problem = answer.try_recv().expect("an answer").expect_err("a problem");
    assert_eq!(problem.kind, ProblemKind::Limit, "{problem}");
    problem.detail
}

const DURABLE: &str = "[[pools]]\nname = \"p\"\nunits = 2\ndurable = true\n";
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
    let mut refused = ask(&mut engine, "p", 9, Ask::Claim { want: long, wait: true });
    assert_eq!(refused.try_recv().unwrap().unwrap_err().kind, ProblemKind::BadRequest);
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
        answer.try_recv().unwrap().map(|snapshot| snapshot.state).map_err(|p| p.kind)
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
    let mut engine = engine(PLAIN, Journal::nowhere());
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
        let snapshot = ask(engine, "p", 1, what).try_recv().unwrap().unwrap();
        (snapshot.state, snapshot.lapsed)
    };
    assert_eq!(look(&mut engine, Ask::Status { wait: true }), (ClaimState::Lost, true));
    assert_eq!(look(&mut engine, Ask::Renew { shown: None }), (ClaimState::Lost, true));
    engine.perform(0, Effect::Lose { claim: id }, until);
    assert_eq!(look(&mut engine, Ask::Renew { shown: None }), (ClaimState::Lost, false));
    // The client's own word is final too.
    let (mut engine, id, until) = granted();
    engine.on_grant_end(0, id, until);
    assert_eq!(look(&mut engine, Ask::End), (ClaimState::Lost, false));
}

#[test]
fn that_a_lease_had_ended_is_never_said_before_it_has() {
    for (early, words) in [(true, "do not know it any more"), (false, "the lease had ended")] {
        let (mut engine, id, until) = granted();
        let now = if early { Moment(until.0 - 1) } else { until };
        engine.perform(0, Effect::Lose { claim: id }, now);
        let mut answer = ask(&mut engine, "p", 1, Ask::Status { wait: false });
        let ended = answer.try_recv().unwrap().unwrap().ended.unwrap();
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
    let waiter = Waiter { received: late, to: Recipient::Http(reply) };
    engine.pools[0].ledger.get_mut(&id).unwrap().waiters.push(waiter);
    for gained in [0, 5_000_000] {
        let until = Moment(until.0 + gained);
        engine.perform(0, Effect::Extend { claim: id, until }, late);
        assert_eq!(answer.try_recv().unwrap_err(), TryRecvError::Empty, "{gained} ns");
    }
    let longer = late.after(engine.pools[0].def.lease.length());
    engine.perform(0, Effect::Extend { claim: id, until: longer }, late);
    let snapshot = answer.try_recv().unwrap().unwrap();
    assert_eq!(snapshot.state, ClaimState::Granted);
    assert!(snapshot.valid_for > Duration::from_secs(2), "{:?}", snapshot.valid_for);
}
