//! A client's connection: the client link (`quorate_api::link`), spoken to one client.
//!
//! A session is nothing but a connection. When it breaks, nothing ends: claims belong to their ids,
//! and whoever knows an id can ask on.

use std::time::Duration;

use quorate_api::link::{
    self, Answer, Ask as LinkAsk, FromClient, FromNode, PREFACE, Reply, Request,
};
use quorate_api::{ClaimId, Problem, ProblemKind, Want};
use quorate_core::Moment;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::admission;
use crate::answers::{Answers, answers};
use crate::app::App;
use crate::caller::{Action, Caller};
use crate::clock;
use crate::convert;
use crate::engine::Ask;
use crate::ledger::{Recipient, Waiter};
use crate::stream::Stream;

/// Room for what arrives at once.
const BUFFER: usize = 16 << 10;
/// Most bytes read from a client that has been refused, so that it hears why.
const UNREAD_MAX: usize = 8 << 20;
/// Reads after which it is looked whether the node stops, if there was no pause before.
const READS: u32 = 64;
/// How long a client may take to read what it is told at the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// The client hung up, or the network did.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It said something that means nothing.
    #[error("{0}")]
    Frame(#[from] link::FrameError),
}

/// Serves one client until it hangs up, talks nonsense, or the node stops.
pub(crate) async fn run(mut stream: Stream, mut app: App) -> Result<(), SessionError> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await?;
    let (answers, queue) = answers();
    let guest = app.caller.clone();
    let (client, introduced) = (String::new(), None);
    let mut session = Session { app: app.clone(), guest, answers, client, introduced };
    let (mut incoming, mut outgoing) = (Vec::new(), Vec::new());
    let mut reads = 0_u32;
    let stop = app.clone();
    // Waited for once and not anew in each round, and looked at last: there is a round for every
    // request.
    let stopped = app.stopped();
    let again = stop.look_again();
    tokio::pin!(stopped, again);
    loop {
        incoming.reserve(BUFFER);
        tokio::select! {
            biased;
            // There are no more answers than requests, so this cannot keep us from reading.
            () = queue.filled(&mut outgoing) => {}
            // A client that never pauses must not keep us from stopping.
            read = stream.read_buf(&mut incoming), if reads < READS || !stop.is_stopping() => {
                if read? == 0 {
                    return Ok(());
                }
                reads = if reads < READS { reads + 1 } else { 0 };
                // Read after the bytes have arrived: the client sent them earlier.
                let received = clock::now();
                // Most is answered before this returns, so nobody needs to wake us for it.
                queue.take(&mut outgoing);
                let mut heard = session.hear(&incoming, received);
                while let Ok((used, Some(held))) = heard {
                    incoming.drain(..used);
                    if let Err((number, problem)) = session.release(held).await {
                        // It comes again, here or at another node.
                        let last = refuse(stream, number, problem);
                        let _ = tokio::time::timeout(FAREWELL, last).await;
                        return Ok(());
                    }
                    heard = session.hear(&incoming, received);
                }
                // Also what came before nonsense.
                session.app.work();
                match heard {
                    Ok((used, _)) => drop(incoming.drain(..used)),
                    Err(error) => {
                        let problem = Problem::new(ProblemKind::BadRequest, error.to_string());
                        // A client that does not read learns it from the end of the connection.
                        let _ = tokio::time::timeout(FAREWELL, refuse(stream, 0, problem)).await;
                        return Err(error.into());
                    }
                }
            }
            // Whoever was let in by a token that is gone must not be told of what it asked before.
            () = &mut again => {
                again.set(stop.look_again());
                if let Err(problem) = session.app.let_in() {
                    tracing::info!(caller = %session.app.caller, "cut off: its token is gone");
                    let _ = tokio::time::timeout(FAREWELL, refuse(stream, 0, problem)).await;
                    return Ok(());
                }
            }
            () = &mut stopped => {
                queue.take(&mut outgoing);
                link::encode(&FromNode::Goodbye { go_on: stop.go_on() }, &mut outgoing);
                // A client that does not read learns it from the end of the connection. What it
                // asked meanwhile and nobody read must not cost it the last answers.
                let farewell = async {
                    stream.write_all(&outgoing).await?;
                    hang_up(stream).await
                };
                let _ = tokio::time::timeout(FAREWELL, farewell).await;
                return Ok(());
            }
        }
        queue.take(&mut outgoing);
        if !outgoing.is_empty() {
            // While the client does not read, it is not read from either.
            stream.write_all(&outgoing).await?;
            stream.flush().await?;
            outgoing.clear();
        }
    }
}

/// Says why a connection ends, as an answer to the request of this number (0 if there is none).
pub(crate) async fn refuse(
    mut stream: Stream,
    number: u64,
    problem: Problem,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let reply = Reply::Problem(problem);
    link::encode(&FromNode::Answer(Answer { number, reply }), &mut bytes);
    stream.write_all(&bytes).await?;
    hang_up(stream).await
}

/// Closes a connection so that its last words arrive: what was sent to us and not read would make
/// the system throw them away.
pub(crate) async fn hang_up(mut stream: Stream) -> std::io::Result<()> {
    stream.shutdown().await?;
    let mut unread = [0; 4096];
    for _ in 0..UNREAD_MAX / unread.len() {
        if stream.read(&mut unread).await? == 0 {
            break;
        }
    }
    Ok(())
}

/// The number of the first request on a connection that will not be served.
pub(crate) async fn first_number(stream: &mut Stream) -> Option<u64> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await.ok()?;
    let mut bytes = Vec::new();
    while bytes.len() < BUFFER {
        if let Some((FromClient::Request(request), _)) = link::decode(&bytes).ok()? {
            return Some(request.number);
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            break;
        }
    }
    None
}

/// What the engine is asked about a claim, and who waits for the answer.
type Asked = (String, ClaimId, Ask, Waiter);

/// A greeting with a token that may be new: the number of the request, who it is, and the token.
type Introduced = (u64, String, String);

/// A request that has to wait for something before the engine is asked, if it is.
struct Held {
    /// Nobody knows who asks: it is kept waiting if many such do.
    strange: bool,
    asked: Option<Asked>,
}

struct Session {
    app: App,
    /// Who it is without the token that it may show.
    guest: Caller,
    answers: Answers,
    client: String,
    /// Whoever waits until it is known whether its token is new.
    introduced: Option<Introduced>,
}

impl Session {
    /// Takes whole frames off the front; says how many bytes they took, and what came of the last
    /// if that has to wait for something: few do, and what need not wait is done in one go.
    fn hear(
        &mut self,
        bytes: &[u8],
        received: Moment,
    ) -> Result<(usize, Option<Held>), link::FrameError> {
        let mut used = 0;
        loop {
            let known = self.app.caller.is_known(&self.app.config);
            let max = if known { link::FRAME_MAX } else { link::STRANGE_FRAME_MAX };
            let decoded = link::decode_within(&bytes[used..], max)?;
            let Some((FromClient::Request(request), length)) = decoded else {
                return Ok((used, None));
            };
            used += length;
            let shows = matches!(request.ask, LinkAsk::Introduce { .. });
            let asked = self.on_request(request, received);
            if self.introduced.is_some() {
                return Ok((used, Some(Held { strange: false, asked: None })));
            }
            let strange = (shows || asked.is_some()) && !self.app.caller.is_known(&self.app.config);
            match asked {
                asked if strange => return Ok((used, Some(Held { strange, asked }))),
                Some(asked) if self.app.must_prepare(&asked.0) => {
                    return Ok((used, Some(Held { strange, asked: Some(asked) })));
                }
                Some((pool, id, ask, waiter)) => {
                    self.app.ask_at_once(pool, convert::claim_id(id), ask, waiter);
                }
                None => {}
            }
        }
    }

    /// Waits for what it takes, and goes on.
    ///
    /// # Errors
    /// It is not known who asks, and cannot be found out: the connection ends.
    async fn release(&mut self, Held { mut strange, asked }: Held) -> Result<(), (u64, Problem)> {
        if let Some((number, client, token)) = self.introduced.take() {
            let app = self.app.serving(self.guest.clone()).heard(Some(&token)).await;
            if app.caller == Caller::Unheard {
                app.authorize(None, Action::See).map_err(|problem| (number, problem))?;
            }
            self.introduce(number, client, app);
            strange = !self.app.caller.is_known(&self.app.config);
        }
        if strange {
            self.app.strangers.keep_waiting(self.app.whence).await;
        }
        if let Some((pool, id, ask, waiter)) = asked {
            self.app.ask_for(pool, convert::claim_id(id), ask, waiter).await;
        }
        Ok(())
    }

    /// Somebody greets who has shown a token.
    fn introduce(&mut self, number: u64, client: String, app: App) -> Option<Asked> {
        self.app = app;
        if let Err(problem) = self.app.seated() {
            self.app = self.app.serving(Caller::Anonymous);
            return self.answer(number, Reply::Problem(problem));
        }
        self.on_hello(number, client)
    }

    /// What the engine is asked because of it, for whom; nothing if it is answered already. Without
    /// a wait, since all requests come by here and few have to wait for anything.
    fn on_request(&mut self, request: Request, received: Moment) -> Option<Asked> {
        let number = request.number;
        let (pool, id, ask) = match request.ask {
            LinkAsk::Ping => return self.answer(number, Reply::Pong),
            LinkAsk::Hello { client } => return self.on_hello(number, client),
            LinkAsk::Introduce { client, token } => {
                let guest = self.app.serving(self.guest.clone());
                if guest.may_be_new(Some(&token.0)) {
                    self.introduced = Some((number, client, token.0));
                    return None;
                }
                let app = guest.shown(Some(&token.0));
                return self.introduce(number, client, app);
            }
            LinkAsk::Claim { pool, id, want } => {
                let want = Want { client: self.client.clone(), ..want };
                (pool, id, Ask::Claim { want, wait: true, keep: None })
            }
            LinkAsk::Renew { pool, id, units } => {
                let shown = convert::shares(units.iter().map(|share| (share.unit, share.fence)));
                let Some(shown) = shown else {
                    let text = "a unit appears twice; show the units as they were granted";
                    let problem = Problem::new(ProblemKind::BadRequest, text);
                    return self.answer(number, Reply::Problem(problem));
                };
                (pool, id, Ask::Renew { shown: Some(shown), client: self.client.clone() })
            }
            LinkAsk::Release { pool, id } => (pool, id, Ask::End),
            LinkAsk::Status { pool, id } => (pool, id, Ask::Status { wait: false }),
        };
        let (answers, claims) = (self.answers.clone(), matches!(ask, Ask::Claim { .. }));
        let waiter = Waiter { received, to: Recipient::Link { answers, number, claims } };
        Some((pool, id, ask, waiter))
    }

    fn on_hello(&mut self, number: u64, client: String) -> Option<Asked> {
        if let Err(problem) = admission::text(&self.app.config.limits, "client", &client) {
            return self.answer(number, Reply::Problem(problem));
        }
        self.client = client;
        let (node, cluster) = (self.app.config.name().to_owned(), self.app.config.cluster.clone());
        self.answer(number, Reply::Welcome { node, cluster, boot: self.app.boot })
    }

    /// The queue is ours and open as long as we are.
    fn answer(&self, number: u64, reply: Reply) -> Option<Asked> {
        self.answers.send(&FromNode::Answer(Answer { number, reply }));
        None
    }
}
