//! The desk: whoever brings something is served, in order, by whoever has the engine.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::link::{self, Answer, FromNode, Reply};
use quorate_api::{ClaimState, ProblemKind};
use quorate_core::ClaimId;
use tokio::sync::mpsc;

use super::tests::{want, with_limits};
use super::{Ask, Desk, Request};
use crate::answers::{Answers, Queue, answers};
use crate::caller::Caller;
use crate::clock;
use crate::journal::Journal;
use crate::ledger::{Recipient, Waiter};

const POOLS: &str = "[[pools]]\npattern = \"p*\"\nunits = 1\n";

fn desk() -> Desk {
    Desk::new(Some(with_limits("", POOLS, Journal::nowhere())))
}

/// A connection with a pool of its own.
struct Connection {
    pool: String,
    answers: Answers,
    queue: Queue,
    asked: u64,
}

impl Connection {
    fn new(name: &str) -> Self {
        let (answers, queue) = answers();
        Connection { pool: name.to_owned(), answers, queue, asked: 0 }
    }

    fn bring(&mut self, desk: &Desk, serial: u64, ask: Ask) {
        self.asked += 1;
        let (answers, number) = (self.answers.clone(), self.asked);
        let claims = matches!(ask, Ask::Claim { .. });
        let waiter =
            Waiter { received: clock::now(), to: Recipient::Link { answers, number, claims } };
        let (pool, id) = (self.pool.clone(), ClaimId { origin: 0, serial });
        desk.bring(Caller::Anonymous, Request::Claim { pool, id, ask, waiter });
    }

    fn cycle(&mut self, desk: &Desk, serial: u64) {
        self.bring(desk, serial, Ask::Claim { want: want(1), wait: true, keep: None });
        self.bring(desk, serial, Ask::End);
    }

    /// All that was answered, in order.
    fn heard(&self) -> Vec<(u64, Reply)> {
        let (mut bytes, mut at, mut heard) = (Vec::new(), 0, Vec::new());
        self.queue.take(&mut bytes);
        while let Some((said, used)) = link::decode::<FromNode>(&bytes[at..]).unwrap() {
            at += used;
            let FromNode::Answer(Answer { number, reply }) = said else { panic!("{said:?}") };
            heard.push((number, reply));
        }
        heard
    }
}

#[test]
fn whoever_brings_something_finds_its_answers_in_order() {
    let (desk, mut one, mut other) = (desk(), Connection::new("p1"), Connection::new("p2"));
    one.cycle(&desk, 1);
    other.cycle(&desk, 2);
    assert!(one.heard().is_empty(), "nobody works before somebody does");
    one.work_and_check(&desk);
    assert_eq!(other.heard().len(), 2, "what others brought is done as well");
}

impl Connection {
    fn work_and_check(&self, desk: &Desk) {
        desk.work();
        let heard = self.heard();
        assert_eq!(heard.len() as u64, self.asked);
        for (at, (number, reply)) in heard.iter().enumerate() {
            assert_eq!(*number, at as u64 + 1, "in the order in which it asked");
            let granted = matches!(reply, Reply::Granted { .. });
            let released = matches!(reply, Reply::Over { state: ClaimState::Released, .. });
            assert!(if at % 2 == 0 { granted } else { released }, "{reply:?}");
        }
    }
}

/// Threads that get into each other's way: whoever finds the engine taken leaves, and nothing of
/// what it left stays behind.
#[test]
fn nothing_is_overlooked_where_many_bring_something_at_once() {
    const CYCLES: u64 = 200;
    let desk = desk();
    let connections: Vec<Connection> = std::thread::scope(|scope| {
        let threads = [1, 2, 3, 4].map(|thread: u64| {
            let desk = &desk;
            scope.spawn(move || {
                let mut own = Connection::new(&format!("p{thread}"));
                for cycle in 0..CYCLES {
                    own.cycle(desk, thread * CYCLES + cycle);
                    desk.work();
                }
                own
            })
        });
        threads.map(|thread| thread.join().unwrap()).into()
    });
    for connection in connections {
        connection.work_and_check(&desk);
    }
}

fn stopping((_, reply): &(u64, Reply)) -> bool {
    matches!(reply, Reply::Problem(problem) if problem.kind == ProblemKind::Stopping)
}

#[tokio::test]
async fn who_comes_when_the_engine_has_stopped_is_told_to_go_elsewhere() {
    let (desk, mut late) = (Arc::new(desk()), Connection::new("p1"));
    let ((commands, inbox), (_report, written)) = (mpsc::channel(1), mpsc::unbounded_channel());
    drop(commands);
    let ends = tokio::time::timeout(Duration::from_secs(60), Arc::clone(&desk).run(inbox, written));
    ends.await.expect("nobody can send commands any more");
    late.cycle(&desk, 1);
    desk.work();
    assert!(late.heard().iter().all(stopping) && late.asked == 2);
}

/// What nobody can go on with after: a connection's task finds a bug in the middle of a decision.
#[tokio::test]
async fn an_engine_that_panics_under_a_connection_ends_and_takes_its_node_along() {
    let mut engine = with_limits("", POOLS, Journal::nowhere());
    engine.by_name.insert("broken".into(), usize::MAX);
    let (desk, mut one) = (Arc::new(Desk::new(Some(engine))), Connection::new("p1"));
    let ((_commands, inbox), (_report, written)) = (mpsc::channel(1), mpsc::unbounded_channel());
    let own = tokio::spawn(Arc::clone(&desk).run(inbox, written));
    one.cycle(&desk, 1);
    one.work_and_check(&desk);
    let other = Arc::clone(&desk);
    let connection = tokio::spawn(async move {
        Connection::new("broken").cycle(&other, 2);
        other.work();
    });
    assert!(connection.await.unwrap_err().is_panic());
    // It is told, and does not find out by an alarm: those are a while away, and no time passes
    // here but that of a few turns.
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    assert!(own.is_finished(), "it is told");
    // `Node::failed` waits for this task, and the process ends with it.
    assert!(own.await.unwrap_err().is_panic());
    let mut late = Connection::new("p1");
    late.cycle(&desk, 3);
    desk.work();
    assert_eq!(late.heard().iter().filter(|it| stopping(it)).count(), 2, "nothing more is decided");
}
