//! Connections for the control plane: each node calls each other for the questions of its own, so
//! that they never stand behind what links carry, and are answered in any order.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_core::NodeId;
use quorate_trust::Keys;
use quorate_wire::frame::{self, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::greeting::{self, Greeted};
use super::{GREETING, dial};
use crate::config::{Config, MEMBERS_MAX};
use crate::stream::{Reader, Writer, outdated};

/// Whoever does not answer for so long while something is asked is hung up on: the next question
/// finds out whether it is there. Also how long writing may take.
const SILENCE: Duration = Duration::from_secs(5);
/// Questions on their way to one member, and those of one member that are being answered. Who asks
/// more waits.
const AT_ONCE: usize = 64;
/// Room for what arrives at once.
const BUFFER: usize = 64 << 10;

/// Who answers questions of other members' control planes.
pub(crate) trait Answers: Send + Sync {
    /// What is answered to a member, whose name was made sure of.
    fn answer(
        self: Arc<Self>,
        from: NodeId,
        question: Vec<u8>,
    ) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>>;
}

type Asked = (Vec<u8>, oneshot::Sender<Vec<u8>>);

/// The ways to the other members, made when they are first used.
#[derive(Debug)]
pub(crate) struct Lines {
    config: Arc<Config>,
    keys: watch::Receiver<Option<Arc<Keys>>>,
    /// One for each member that there may be. Whoever makes a connection keeps others waiting for
    /// it.
    lines: Vec<tokio::sync::Mutex<Option<mpsc::Sender<Asked>>>>,
}

impl Lines {
    pub(crate) fn new(config: Arc<Config>, keys: watch::Receiver<Option<Arc<Keys>>>) -> Self {
        let lines = (0..MEMBERS_MAX).map(|_| tokio::sync::Mutex::default()).collect();
        Lines { config, keys, lines }
    }

    /// Asks a member. May take for ever; whether the question arrived is not known without an
    /// answer.
    pub(crate) async fn ask(&self, to: NodeId, question: Vec<u8>) -> Result<Vec<u8>, String> {
        let line = self.line(to).await?;
        let (reply, answer) = oneshot::channel();
        let broken = "the connection broke";
        line.send((question, reply)).await.map_err(|_| broken)?;
        answer.await.map_err(|_| broken.into())
    }

    async fn line(&self, to: NodeId) -> Result<mpsc::Sender<Asked>, String> {
        let known = self.config.members.get(to.index()).and(self.lines.get(to.index()));
        let place = known.ok_or("this node has not heard of it yet")?;
        let mut place = place.lock().await;
        if let Some(line) = place.as_ref().filter(|line| !line.is_closed()) {
            return Ok(line.clone());
        }
        let keys = self.keys.borrow().clone();
        let greeted = timeout(GREETING, async {
            let stream = dial(&self.config, keys.as_deref(), to).await?;
            greeting::call_council(&self.config, to, stream).await
        });
        let greeted = greeted.await.map_err(|_| "no answer in time")?;
        let greeted = greeted.map_err(|error| error.to_string())?;
        let (line, questions) = mpsc::channel(AT_ONCE);
        tokio::spawn(carry(greeted, questions, self.keys.clone()));
        *place = Some(line.clone());
        Ok(line)
    }
}

/// Who waits for which answer.
type Waiting = Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>;

fn of(waiting: &Waiting) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Vec<u8>>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries questions there and answers back, until either side has had enough. Whoever then waits
/// for an answer learns that there is none.
async fn carry(
    Greeted { mut stream, rest }: Greeted,
    mut questions: mpsc::Receiver<Asked>,
    keys: watch::Receiver<Option<Arc<Keys>>>,
) {
    let certificate = stream.certificate();
    let (reader, mut writer) = stream.split();
    let waiting = Waiting::default();
    let write = async {
        let mut number = 0;
        while let Some((question, reply)) = questions.recv().await {
            number += 1;
            of(&waiting).retain(|_, reply| !reply.is_closed());
            of(&waiting).insert(number, reply);
            let mut bytes = Vec::with_capacity(question.len() + frame::HEADER + 10);
            frame::encode(&Frame::Enquiry(number, &question), &mut bytes);
            if !written(&mut writer, &bytes).await {
                return;
            }
        }
    };
    let read = async {
        let mut frames = Frames { reader, bytes: rest };
        loop {
            let took = timeout(
                SILENCE,
                frames.next(|frame| match frame {
                    Frame::Reply(number, answer) => {
                        if let Some(reply) = of(&waiting).remove(&number) {
                            // Whoever asked may have given up.
                            let _ = reply.send(answer.to_vec());
                        }
                        Some(())
                    }
                    _ => None,
                }),
            );
            match took.await {
                Ok(Some(())) => {}
                Ok(None) => return,
                Err(_) if of(&waiting).is_empty() => {}
                Err(_) => return,
            }
        }
    };
    tokio::select! {
        () = write => {}
        () = read => {}
        _ = outdated(certificate, keys) => {}
    }
}

/// Answers a member's questions until it hangs up.
pub(super) async fn serve(
    peer: NodeId,
    Greeted { mut stream, rest }: Greeted,
    answers: Arc<dyn Answers>,
    keys: watch::Receiver<Option<Arc<Keys>>>,
) {
    let certificate = stream.certificate();
    let (reader, mut writer) = stream.split();
    let (reply, mut replies) = mpsc::channel::<Vec<u8>>(AT_ONCE);
    let read = async {
        let (mut frames, mut tasks) = (Frames { reader, bytes: rest }, JoinSet::new());
        let asked = |frame: Frame<'_>| match frame {
            Frame::Enquiry(number, question) => Some((number, question.to_vec())),
            _ => None,
        };
        while let Some((number, question)) = frames.next(asked).await {
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= AT_ONCE {
                tasks.join_next().await;
            }
            let (answers, reply) = (Arc::clone(&answers), reply.clone());
            tasks.spawn(async move {
                let answer = answers.answer(peer, question).await;
                let mut bytes = Vec::with_capacity(answer.len() + frame::HEADER + 10);
                frame::encode(&Frame::Reply(number, &answer), &mut bytes);
                // If the connection is gone, nobody waits for it.
                let _ = reply.send(bytes).await;
            });
        }
    };
    let write = async {
        while let Some(bytes) = replies.recv().await {
            if !written(&mut writer, &bytes).await {
                return;
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = write => {}
        _ = outdated(certificate, keys) => {}
    }
}

async fn written(writer: &mut Writer, bytes: &[u8]) -> bool {
    let all = async {
        writer.write_all(bytes).await?;
        writer.flush().await
    };
    matches!(timeout(SILENCE, all).await, Ok(Ok(())))
}

/// What arrives, frame by frame.
struct Frames {
    reader: Reader,
    bytes: Vec<u8>,
}

impl Frames {
    /// What is made of the next frame; nothing if there is none any more, or a wrong one. Nothing
    /// is lost if whoever waits gives up.
    async fn next<T>(&mut self, take: impl Fn(Frame<'_>) -> Option<T>) -> Option<T> {
        loop {
            if let Some((frame, used)) = frame::decode(&self.bytes).ok()? {
                let taken = take(frame);
                self.bytes.drain(..used);
                return taken;
            }
            self.bytes.reserve(BUFFER);
            if self.reader.read_buf(&mut self.bytes).await.ok()? == 0 {
                return None;
            }
        }
    }
}
