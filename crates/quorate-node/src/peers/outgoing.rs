//! What waits to be written to a peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

/// Most bytes of answers that may wait. What protocols say is bounded by the link, which keeps it
/// until it is acknowledged; answers are kept only here, and a peer that asks and asks and does not
/// read would fill the memory with them.
const ANSWERS_MAX: usize = 16 << 20;

/// The engine's end.
#[derive(Debug)]
pub(crate) struct Outgoing {
    queue: mpsc::UnboundedSender<Parcel>,
    answers: Arc<AtomicUsize>,
}

/// The end of the connection.
#[derive(Debug)]
pub(super) struct Queue {
    queue: mpsc::UnboundedReceiver<Parcel>,
    answers: Arc<AtomicUsize>,
    /// Bytes of answers that were taken last.
    taken: usize,
}

#[derive(Debug)]
struct Parcel {
    bytes: Vec<u8>,
    is_answer: bool,
}

/// Both ends.
pub(super) fn queue() -> (Outgoing, Queue) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let answers = Arc::new(AtomicUsize::new(0));
    let outgoing = Outgoing { queue: sender, answers: Arc::clone(&answers) };
    (outgoing, Queue { queue: receiver, answers, taken: 0 })
}

impl Outgoing {
    /// If the connection is gone, so are the bytes.
    pub(crate) fn send(&self, bytes: Vec<u8>) {
        let _ = self.queue.send(Parcel { bytes, is_answer: false });
    }

    /// The same with an answer to a question.
    ///
    /// # Errors
    /// Too many wait already; this one was dropped.
    pub(crate) fn answer(&self, bytes: Vec<u8>) -> Result<(), String> {
        let waiting = self.answers.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if waiting > ANSWERS_MAX {
            return Err(format!("{waiting} bytes of answers wait for a peer that does not read"));
        }
        let _ = self.queue.send(Parcel { bytes, is_answer: true });
        Ok(())
    }
}

impl Queue {
    /// All that waits; what was taken before has been written. None at the end.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        self.answers.fetch_sub(std::mem::take(&mut self.taken), Ordering::Relaxed);
        let first = self.queue.recv().await?;
        let mut bytes = self.open(first);
        while let Ok(more) = self.queue.try_recv() {
            let more = self.open(more);
            bytes.extend_from_slice(&more);
        }
        Some(bytes)
    }

    fn open(&mut self, parcel: Parcel) -> Vec<u8> {
        if parcel.is_answer {
            self.taken += parcel.bytes.len();
        }
        parcel.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_that_nobody_reads_are_bounded_and_messages_are_not_among_them() {
        let (outgoing, mut queue) = queue();
        let quarter = || vec![0; ANSWERS_MAX / 4];
        for _ in 0..4 {
            outgoing.send(quarter());
            outgoing.answer(quarter()).unwrap();
        }
        // Taken is not written.
        assert_eq!(queue.next().await.unwrap().len(), 2 * ANSWERS_MAX);
        assert!(outgoing.answer(vec![0]).is_err());
        outgoing.send(vec![0]);
        assert_eq!(queue.next().await.unwrap(), [0]);
        outgoing.answer(quarter()).unwrap();
        drop(outgoing);
        assert_eq!(queue.next().await.unwrap().len(), ANSWERS_MAX / 4);
        assert!(queue.next().await.is_none());
    }
}
