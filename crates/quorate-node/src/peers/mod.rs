//! Connections to the other members. Of each pair, the one that comes first in the list of members
//! calls, so that there is one connection between any two; beside it each calls the other for its
//! control plane, if it has one (`council`).

mod connection;
mod council;
mod greeting;
mod inquiry;
mod outgoing;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_core::{NodeId, NodeSet};
use quorate_trust::{Identity, Keys, Kind};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::audit::{Audit, Note};
use crate::caller::{Caller, Whence};
use crate::charter::REMOVED;
use crate::config::Config;
use crate::crowd::{Crowd, Place, Room, party};
use crate::engine::{Command, PeerEvent};
use crate::metrics::Metrics;
use crate::stream::Stream;

use connection::Connection;
pub(crate) use council::{Answers, Lines};
use greeting::Purpose;
pub(crate) use inquiry::{objection, there};
pub(crate) use outgoing::Outgoing;
use outgoing::Queue;

/// How long making a connection and greeting may take.
const GREETING: Duration = Duration::from_secs(3);
/// Shortest and longest wait before calling again.
const RECALL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Connections that may be greeting at once: strangers cannot take up more than that...
pub(crate) const GREETINGS_MAX: usize = 256;
/// ...and those of one address not as much: a member calls once at a time.
const GREETINGS_EACH: usize = 16;

/// What every connection needs to know.
#[derive(Clone)]
pub(crate) struct Mesh {
    pub(crate) config: Arc<Config>,
    pub(crate) engine: mpsc::Sender<Command>,
    pub(crate) metrics: Arc<Metrics>,
    audit: Arc<Audit>,
    keys: watch::Receiver<Option<Arc<Keys>>>,
    connections: Arc<AtomicU64>,
    /// Who answers questions of other members' control planes.
    council: Option<Arc<dyn Answers>>,
    /// Who was removed: it is not called, not let in, and cut off if it is there.
    removed: watch::Receiver<NodeSet>,
}

/// Somebody who was let in.
enum Welcome {
    Link(Connection),
    Council(NodeId, greeting::Greeted),
}

/// A connection to a member, encrypted if there are keys.
async fn dial(config: &Config, keys: Option<&Keys>, peer: NodeId) -> std::io::Result<Stream> {
    let stream = dial_plainly(config, peer).await?;
    stream.set_nodelay(true)?;
    let Some(keys) = keys else { return Ok(stream.into()) };
    let name = config.members[peer.index()].name.clone();
    let peer = Identity { cluster: config.cluster.clone(), kind: Kind::Node, name };
    let tls = keys.to_peer(peer).map_err(std::io::Error::other)?;
    Stream::connect(stream, tls).await
}

/// A connection to a member, from where the configuration says.
async fn dial_plainly(config: &Config, peer: NodeId) -> std::io::Result<TcpStream> {
    let member = &config.members[peer.index()].peers;
    let mut found = member.find().await?;
    let Some(source) = config.source else { return TcpStream::connect(&*found).await };
    found.retain(|to| to.is_ipv4() == source.is_ipv4());
    let mut last = format!("{member} has no address that can be called from {source}");
    for to in found {
        let socket = if source.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.bind(SocketAddr::new(source, 0))?;
        match socket.connect(to).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.to_string(),
        }
    }
    Err(std::io::Error::other(last))
}

/// Until this member is one that was removed.
async fn is_removed(peer: NodeId, mut removed: watch::Receiver<NodeSet>) {
    if removed.wait_for(|all| all.contains(peer)).await.is_err() {
        // Nobody tells any more.
        std::future::pending().await
    }
}

/// The same on a connection for the control plane: one that was removed before, and asks to be let
/// in again, may be heard.
async fn is_removed_now(peer: NodeId, mut removed: watch::Receiver<NodeSet>) {
    // If nobody tells any more, the other waits for ever.
    let _ = removed.wait_for(|all| !all.contains(peer)).await;
    is_removed(peer, removed).await;
}

impl Mesh {
    pub(crate) fn new(
        config: Arc<Config>,
        engine: mpsc::Sender<Command>,
        (metrics, audit): (Arc<Metrics>, Arc<Audit>),
        keys: watch::Receiver<Option<Arc<Keys>>>,
        control: Option<(Arc<dyn Answers>, watch::Receiver<NodeSet>)>,
    ) -> Self {
        let (council, removed) = control.unzip();
        let removed = removed.unwrap_or_else(|| watch::channel(NodeSet::new()).1);
        let connections = Arc::default();
        Mesh { config, engine, metrics, audit, keys, connections, council, removed }
    }

    /// Calls those who come after us, and listens to those who come before, until the engine is
    /// gone and what it wanted to say has been said.
    pub(crate) async fn run(self, listener: TcpListener) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().call_all());
        self.listen(listener, &mut tasks).await;
        while tasks.join_next().await.is_some() {}
    }

    /// Calls all who come after us, those who join later too.
    async fn call_all(self) {
        let (mut tasks, mut news) = (JoinSet::new(), self.config.members.news());
        let mut next = self.config.me.index() + 1;
        loop {
            let members = *news.borrow_and_update();
            for place in next..members {
                let mesh = self.clone();
                tasks.spawn(async move { mesh.call(NodeId::from(place)).await });
            }
            next = next.max(members);
            tokio::select! {
                changed = news.changed() => if changed.is_err() { break },
                () = self.engine.closed() => break,
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Calls one peer again and again.
    async fn call(&self, peer: NodeId) {
        let mut wait = RECALL.0;
        let mut removed = self.removed.clone();
        while !self.engine.is_closed() {
            if removed.borrow_and_update().contains(peer) {
                let _ = self.tell(PeerEvent::Failed { peer, why: REMOVED.into() }).await;
                tokio::select! {
                    changed = removed.changed() => if changed.is_err() { return },
                    () = self.engine.closed() => {}
                }
                continue;
            }
            let began = Instant::now();
            let why = match timeout(GREETING, self.greet(peer)).await {
                Ok(Ok(connection)) => {
                    connection.run(&self.engine, self.keys.clone(), self.removed.clone()).await;
                    None
                }
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no answer in time".to_owned()),
            };
            if let Some(why) = why {
                // If the engine is gone, so is the node.
                let _ = self.tell(PeerEvent::Failed { peer, why }).await;
            }
            // A connection that held for a while was a good one.
            wait = if began.elapsed() > GREETING { RECALL.0 } else { (wait * 2).min(RECALL.1) };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.engine.closed() => {}
            }
        }
    }

    async fn greet(&self, peer: NodeId) -> Result<Connection, greeting::GreetingError> {
        let keys = self.keys.borrow().clone();
        let stream = dial(&self.config, keys.as_deref(), peer).await?;
        let (reply, resume) = oneshot::channel();
        self.tell(PeerEvent::Calling { peer, reply }).await?;
        let ours = resume.await?;
        let (stream, theirs) = greeting::call(&self.config, peer, ours, stream).await?;
        let (number, queue) = self.meet(peer, theirs, false).await?;
        Ok(Connection { peer, number, stream, queue })
    }

    async fn listen(&self, listener: TcpListener, tasks: &mut JoinSet<()>) {
        let greetings = Crowd::default();
        let room = Room { all: GREETINGS_MAX, each: GREETINGS_EACH };
        loop {
            while tasks.try_join_next().is_some() {}
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.engine.closed() => return,
            };
            match accepted {
                Ok((stream, from)) => match greetings.enter(&party(from.ip()), room) {
                    Ok(place) => drop(tasks.spawn(self.clone().welcome(stream, from, place))),
                    Err(_) => self.metrics.refuse("limit"),
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection of a peer");
                    sleep(RECALL.0).await;
                }
            }
        }
    }

    async fn welcome(self, stream: TcpStream, from: SocketAddr, place: Place<IpAddr>) {
        let mut whose = None;
        let greeted = timeout(GREETING, async {
            stream.set_nodelay(true)?;
            let keys = self.keys.borrow().clone();
            let stream = match keys {
                Some(keys) => {
                    let handshake = self.metrics.trust.handshake("peer");
                    let shaken = Stream::accept(stream, keys.for_peers()).await;
                    handshake.ended(&shaken);
                    shaken?
                }
                None => stream.into(),
            };
            whose = greeting::whose(&self.config, &stream);
            let (stream, purpose, peer, theirs) = greeting::answer(&self.config, stream).await?;
            if purpose == Purpose::Council {
                // Whoever was removed may still ask to be let in again.
                return Ok(Welcome::Council(peer, stream));
            }
            if self.removed.borrow().contains(peer) {
                greeting::refuse(stream.stream, REMOVED.into()).await?;
                return Err(greeting::GreetingError::Stranger(REMOVED.into()));
            }
            match self.meet(peer, theirs, true).await {
                Ok((number, queue)) => {
                    Ok(Welcome::Link(Connection { peer, number, stream, queue }))
                }
                Err(error) => {
                    greeting::refuse(stream.stream, error.to_string()).await?;
                    Err(error)
                }
            }
        });
        let greeted = greeted.await;
        drop(place);
        match greeted {
            Ok(Ok(Welcome::Link(connection))) => {
                connection.run(&self.engine, self.keys.clone(), self.removed.clone()).await;
            }
            Ok(Ok(Welcome::Council(peer, stream))) => {
                // Whoever has none hangs up.
                let Some(answers) = self.council else { return };
                tokio::select! {
                    () = council::serve(peer, stream, answers, self.keys.clone()) => {}
                    () = is_removed_now(peer, self.removed.clone()) => {}
                    () = self.engine.closed() => {}
                }
            }
            Ok(Err(error)) => {
                self.metrics.refuse("peer");
                let (who, whence) = (&Caller::Anonymous, Whence::Address(from.ip()));
                let name = |peer: NodeId| self.config.members[peer.index()].name.clone();
                let (about, result) = (whose.map(name).unwrap_or_default(), error.to_string());
                let what = "connect as a member";
                let member = about.clone();
                self.audit.refusal(Note { who, from: whence, what, pool: "", about, result });
                tracing::warn!(%error, %from, member, "a caller on the peers' address is refused");
                // Of two members only one calls: the other could not say what is wrong with it.
                if let Some(peer) = whose.filter(|_| error.is_verdict()) {
                    let why = format!("it calls us, and is refused: {error}");
                    let _ = self.tell(PeerEvent::Failed { peer, why }).await;
                }
            }
            Err(_) => self.metrics.refuse("peer"),
        }
    }

    /// The engine takes the connection up: its number, and what is to be written on it.
    async fn meet(
        &self,
        peer: NodeId,
        theirs: quorate_wire::Resume,
        greet: bool,
    ) -> Result<(u64, Queue), greeting::GreetingError> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let (outgoing, queue) = outgoing::queue();
        let (reply, met) = oneshot::channel();
        let event = PeerEvent::Met { peer, theirs, greet, connection: number, outgoing, reply };
        self.tell(event).await?;
        met.await??;
        Ok((number, queue))
    }

    async fn tell(&self, event: PeerEvent) -> Result<(), greeting::GreetingError> {
        let sent = self.engine.send(Command::Peer(event)).await;
        sent.map_err(|_| greeting::GreetingError::Stopping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_member_is_called_from_the_address_of_the_configuration() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let by_name = format!("localhost:{}", address.port());
        let there = [address.to_string(), by_name];
        for (source, there) in ["127.0.0.1", "127.0.0.9"].into_iter().zip(there) {
            let config = Config::parse_in_memory(&format!(
                "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
                 listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\", \
                 source = {source:?} }}\n[[members]]\nname = \"a\"\npeers = \"127.0.0.1:2\"\n\
                 [[members]]\nname = \"b\"\npeers = \"{there}\"\n"
            ))
            .unwrap();
            let (called, accepted) =
                tokio::join!(dial_plainly(&config, NodeId(1)), listener.accept());
            let (_, from) = accepted.unwrap();
            assert_eq!(from.ip().to_string(), source);
            assert_eq!(called.unwrap().local_addr().unwrap(), from);
        }
    }
}
