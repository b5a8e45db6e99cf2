//! What a client's connection has to write: whoever answers puts it in as bytes.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use quorate_api::link::{self, FromNode};
use quorate_core::NodeId;

/// The way to a client's connection. Answers are bounded by what the client asked.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    tray: Arc<Tray>,
}

/// The connection's own end of it.
#[derive(Debug)]
pub(crate) struct Queue {
    tray: Arc<Tray>,
}

#[derive(Debug)]
struct Tray {
    open: AtomicBool,
    /// Whether it was told of any pool who decides over it...
    hinted: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    bytes: Vec<u8>,
    /// Whether the connection waits, and does not look by itself.
    waits: bool,
    waker: Option<Waker>,
    /// ...and of which it was told what last.
    hints: BTreeMap<usize, NodeId>,
}

/// Pools of which it is remembered what a connection was told; beyond that it is told again.
const HINTS_MAX: usize = 1024;

/// Both ends.
pub(crate) fn answers() -> (Answers, Queue) {
    let (open, hinted) = (AtomicBool::new(true), AtomicBool::new(false));
    let tray = Arc::new(Tray { open, hinted, state: Mutex::default() });
    (Answers { tray: Arc::clone(&tray) }, Queue { tray })
}

impl Tray {
    /// Nobody panics half-way: what is in there is whole frames.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    /// Puts something in; says whether the connection is there.
    pub(crate) fn send(&self, said: &FromNode) -> bool {
        if self.is_closed() {
            return false;
        }
        let mut state = self.tray.state();
        link::encode(said, &mut state.bytes);
        if std::mem::take(&mut state.waits)
            && let Some(waker) = &state.waker
        {
            waker.wake_by_ref();
        }
        true
    }

    /// Whether it has not been told yet that this node decides over the pool of this seat: it is
    /// from now on.
    pub(crate) fn is_news(&self, seat: usize, node: NodeId) -> bool {
        self.tray.hinted.store(true, Ordering::Relaxed);
        let hints = &mut self.tray.state().hints;
        if hints.len() >= HINTS_MAX && !hints.contains_key(&seat) {
            hints.clear();
        }
        hints.insert(seat, node) != Some(node)
    }

    /// It is told anew, should another node decide again over the pool of this seat.
    pub(crate) fn forget_hint(&self, seat: usize) {
        if self.tray.hinted.load(Ordering::Relaxed) {
            self.tray.state().hints.remove(&seat);
        }
    }

    /// Whether the connection is gone.
    pub(crate) fn is_closed(&self) -> bool {
        !self.tray.open.load(Ordering::Acquire)
    }

    /// Whether both lead to one connection.
    pub(crate) fn same_as(&self, other: &Answers) -> bool {
        Arc::ptr_eq(&self.tray, &other.tray)
    }
}

impl Queue {
    /// Takes out what is there, after what `into` has. From now until it waits again, the
    /// connection is not woken: it looks by itself.
    pub(crate) fn take(&self, into: &mut Vec<u8>) {
        let mut state = self.tray.state();
        state.waits = false;
        if into.is_empty() {
            // Both have room from before, and keep it.
            std::mem::swap(into, &mut state.bytes);
        } else {
            into.append(&mut state.bytes);
        }
    }

    /// Takes out what is there as soon as there is something.
    pub(crate) async fn filled(&self, into: &mut Vec<u8>) {
        poll_fn(|context| self.poll(context, into)).await;
    }

    fn poll(&self, context: &mut Context<'_>, into: &mut Vec<u8>) -> Poll<()> {
        self.take(into);
        if !into.is_empty() {
            return Poll::Ready(());
        }
        let mut state = self.tray.state();
        if !state.bytes.is_empty() {
            std::mem::swap(into, &mut state.bytes);
            return Poll::Ready(());
        }
        state.waits = true;
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.tray.open.store(false, Ordering::Release);
        *self.tray.state() = State::default();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    const BYE: FromNode = FromNode::Goodbye { go_on: None };

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_that_waits_is_woken_once_and_one_that_looks_by_itself_never() {
        let woken = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let (answers, queue) = answers();
        let mut written = Vec::new();
        assert!(queue.poll(&mut context, &mut written).is_pending());
        assert!(answers.send(&BYE) && answers.send(&BYE));
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(queue.poll(&mut context, &mut written).is_ready());
        let both = written.len();
        assert!(answers.send(&BYE));
        queue.take(&mut written);
        assert_eq!(written.len(), both / 2 * 3, "in order, behind what is not written yet");
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(answers.is_news(3, NodeId(1)) && !answers.is_news(3, NodeId(1)));
        assert!(answers.is_news(3, NodeId(2)) && answers.is_news(4, NodeId(2)));
        answers.forget_hint(3);
        assert!(answers.is_news(3, NodeId(2)) && !answers.is_news(4, NodeId(2)));
        drop(queue);
        assert!(answers.is_closed() && !answers.send(&BYE));
    }
}
