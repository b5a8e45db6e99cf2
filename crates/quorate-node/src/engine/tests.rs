//! The engine alone, on one node, with a disk that the test plays.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::{ClaimState, Problem, ProblemKind};
use quorate_core::ClaimId;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::{Ask, Engine};
use crate::boot::Boot;
use crate::clock;
use crate::config::Config;
use crate::journal::{Journal, Records, Written};
use crate::ledger::{Recipient, Snapshot, Waiter, Wish};
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
    let config = Arc::new(Config::parse_in_memory(&text).unwrap());
    let (changes, _) = broadcast::channel(1);
    let (fatal, _) = mpsc::unbounded_channel();
    let journal = (journal, Records::new());
    let metrics = Arc::new(Metrics::new());
    Engine::new(config, metrics, changes, &Boot::first(), journal, fatal, Planted::default())
        .unwrap()
}

fn ask(engine: &mut Engine, pool: &str, serial: u64, ask: Ask) -> Answer {
    let (reply, answer) = oneshot::channel();
    let waiter = Waiter { received: clock::now(), to: Recipient::Http(reply) };
    let id = ClaimId { origin: 0, serial };
    engine.on_client(pool, id, ask, waiter);
    answer
}

fn wish(units: u32) -> Wish {
    Wish { units, client: "me".into(), reason: "x".into(), ..Wish::default() }
}

fn claim(engine: &mut Engine, pool: &str, serial: u64, units: u32) -> Answer {
    ask(engine, pool, serial, Ask::Claim { wish: wish(units), wait: true })
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
    let long = Wish { reason: "too long a reason".into(), ..wish(1) };
    let mut refused = ask(&mut engine, "p", 9, Ask::Claim { wish: long, wait: true });
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
