//! A node that fits on a page: one pool of counted units, first come first served, behind the real
//! client link on a real socket. Several may stand before the same books.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorate_api::link::{self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Request, Share};
use quorate_api::{ClaimId, ClaimState, Problem, ProblemKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What all fake nodes of a cluster know.
pub(crate) struct Books {
    pub(crate) units: u32,
    pub(crate) lease: Duration,
    pub(crate) fence: u64,
    pub(crate) holds: BTreeMap<ClaimId, (Vec<Share>, Instant)>,
    pub(crate) queue: Vec<(ClaimId, u32)>,
    pub(crate) renewals: u32,
    /// Answer nothing but hellos and pings.
    pub(crate) mute: bool,
}

impl Books {
    pub(crate) fn free(&self) -> u32 {
        self.units - self.holds.values().map(|(shares, _)| shares.len() as u32).sum::<u32>()
    }

    fn settle(&mut self) {
        let now = Instant::now();
        self.holds.retain(|_, (_, end)| *end > now);
        while let Some(&(id, want)) = self.queue.first()
            && want <= self.free()
        {
            self.queue.remove(0);
            self.fence += 1;
            let used: Vec<u32> =
                self.holds.values().flat_map(|(shares, _)| shares).map(|s| s.unit).collect();
            let shares = (0..self.units)
                .filter(|unit| !used.contains(unit))
                .take(want as usize)
                .map(|unit| Share { unit, fence: self.fence })
                .collect();
            self.holds.insert(id, (shares, now + self.lease));
        }
    }
}

/// A cluster of fake nodes.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) books: Arc<Mutex<Books>>,
    /// Raised whenever a connection should look again, or hang up.
    cut: watch::Sender<u32>,
}

impl Cluster {
    pub(crate) fn new(units: u32, lease: Duration) -> Cluster {
        let (holds, queue) = (BTreeMap::new(), Vec::new());
        let books = Books { units, lease, fence: 0, holds, queue, renewals: 0, mute: false };
        Cluster { books: Arc::new(Mutex::new(books)), cut: watch::channel(0).0 }
    }

    /// Starts a node; it ends with its task.
    pub(crate) async fn node(&self) -> (String, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let cluster = self.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(cluster.clone(), stream));
            }
        });
        (address, task)
    }

    /// Breaks every connection.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    pub(crate) fn look<T>(&self, at: impl FnOnce(&mut Books) -> T) -> T {
        at(&mut self.books.lock().unwrap())
    }

    /// Waits for a condition, for as long as any sane machine needs.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Books) -> bool) {
        let give_up = Instant::now() + Duration::from_secs(60);
        while !self.look(|books| condition(books)) {
            assert!(Instant::now() < give_up, "never: {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

async fn serve(cluster: Cluster, mut stream: TcpStream) {
    let mut cut = cluster.cut.subscribe();
    let mut preface = [0; PREFACE.len()];
    if stream.read_exact(&mut preface).await.is_err() {
        return;
    }
    assert_eq!(preface, PREFACE);
    let (mut inbox, mut pending) = (Vec::new(), Vec::new());
    loop {
        let mut outbox = Vec::new();
        while let Some((FromClient::Request(request), taken)) = link::decode(&inbox).unwrap() {
            inbox.drain(..taken);
            on_request(&cluster, request, &mut pending, &mut outbox);
        }
        answer_pending(&cluster, &mut pending, &mut outbox);
        if stream.write_all(&outbox).await.is_err() {
            return;
        }
        tokio::select! {
            read = stream.read_buf(&mut inbox) => if !matches!(read, Ok(1..)) { return },
            _ = cut.changed() => return,
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    }
}

fn say(number: u64, reply: Reply, outbox: &mut Vec<u8>) {
    link::encode(&FromNode::Answer(Answer { number, reply }), outbox);
}

fn on_request(
    cluster: &Cluster,
    Request { number, ask }: Request,
    pending: &mut Vec<(u64, ClaimId, Instant)>,
    outbox: &mut Vec<u8>,
) {
    let mut books = cluster.books.lock().unwrap();
    match ask {
        Ask::Hello { .. } | Ask::Introduce { .. } => {
            let (node, cluster) = ("fake".into(), "fakes".into());
            say(number, Reply::Welcome { node, cluster, boot: 1 }, outbox);
        }
        Ask::Ping => say(number, Reply::Pong, outbox),
        _ if books.mute => {}
        Ask::Claim { pool, .. } if pool != "pool" => {
            let problem = Problem::new(ProblemKind::UnknownPool, "there is only one");
            say(number, Reply::Problem(problem), outbox);
        }
        Ask::Claim { want, .. } if want.units() > books.units => {
            say(number, Reply::TooLarge { units: books.units }, outbox);
        }
        Ask::Claim { id, want, .. } => {
            let known = books.holds.contains_key(&id) || books.queue.iter().any(|w| w.0 == id);
            if !known {
                books.queue.push((id, want.units()));
            }
            pending.push((number, id, Instant::now()));
        }
        Ask::Renew { id, .. } => {
            books.renewals += 1;
            let end = Instant::now() + books.lease;
            if let Some(hold) = books.holds.get_mut(&id) {
                hold.1 = end;
            }
            pending.push((number, id, Instant::now()));
        }
        Ask::Release { id, .. } => {
            books.holds.remove(&id);
            books.queue.retain(|waiting| waiting.0 != id);
            say(number, over(ClaimState::Released), outbox);
        }
        Ask::Status { .. } => say(number, Reply::Waiting, outbox),
    }
}

fn over(state: ClaimState) -> Reply {
    Reply::Over { state, why: "so it is".into() }
}

fn answer_pending(
    cluster: &Cluster,
    pending: &mut Vec<(u64, ClaimId, Instant)>,
    outbox: &mut Vec<u8>,
) {
    let mut books = cluster.books.lock().unwrap();
    if books.mute {
        return;
    }
    books.settle();
    pending.retain(|&(number, id, receipt)| {
        if let Some((shares, end)) = books.holds.get(&id) {
            let reply = Reply::Granted {
                units: shares.clone(),
                valid_for_micros: end.saturating_duration_since(receipt).as_micros() as u64,
                lease_micros: books.lease.as_micros() as u64,
                counted: false,
                about: Vec::new(),
                moves: Vec::new(),
            };
            say(number, reply, outbox);
            return false;
        }
        let waiting = books.queue.iter().any(|waiting| waiting.0 == id);
        if !waiting {
            say(number, over(ClaimState::Lost), outbox);
        }
        waiting
    });
}
