//! Orders of operators, on one node with a disk that the test plays.

use std::time::Duration;

use quorate_core::NodeId;
use quorate_wire::order::{Done, Ordered};
use tokio::sync::oneshot;

use super::tests::engine;
use crate::caller::Caller;
use crate::journal::{Journal, Written};

/// An order that was answered is not undone by a crash: its record is on disk before.
#[test]
fn an_order_is_acknowledged_when_a_crash_would_not_undo_it() {
    let (journal, mut submitted) = Journal::slow();
    let mut engine = engine("[[pools]]\nname = \"p\"\nunits = 2\ndurable = true\n", journal);
    for (record, what) in [(1, Ordered::Drain { unit: 1 }), (2, Ordered::Restore { unit: 1 })] {
        // Said twice, as by somebody who heard no answer.
        let answers = [(); 2].map(|()| {
            let (reply, answer) = oneshot::channel();
            let order = ("p".to_owned(), what.clone(), Some(u128::from(record)));
            engine.give_order(&Caller::Anonymous, order, reply);
            answer
        });
        let written: Vec<u64> = submitted().into_iter().map(|(number, _)| number).collect();
        assert_eq!(written, [record], "it is carried out once");
        let answers = answers.map(|mut answer| {
            assert!(answer.try_recv().is_err(), "its record is not on disk");
            answer
        });
        engine.on_written(Written::UpTo(record, Duration::ZERO));
        for mut answer in answers {
            let gathered = answer.try_recv().expect("an answer").expect("no problem");
            assert!(matches!(gathered.said[..], [(NodeId(0), Done::Obeyed(_))]));
            assert!(gathered.silent.is_empty());
        }
    }
}
