//! Starting a node, and stopping it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quorate_api::{Check, NodeView};
use quorate_trust::Keys;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::app::{App, Leaving};
use crate::audit::Audit;
use crate::boot::{self, Past};
use crate::charter::{self, AtRest, Begin, Hall, Recovered};
use crate::config::{Config, ConfigError, Data};
use crate::descriptors;
use crate::door;
use crate::engine::{Chartered, Desk, Engine, Request};
use crate::journal::{Journal, Records, Written};
use crate::local::Local;
use crate::metrics::Metrics;
use crate::peers::{self, Answers, Mesh};
use crate::planted::Planted;
use crate::porch::Porch;

/// Commands that may wait for the engine's own task; whoever sends more waits.
const COMMANDS: usize = 8192;
/// Changes that a watcher may lag behind.
const CHANGES: usize = 1024;
/// What whoever asks is told while the node takes up what it kept.
const READS: &str = "it reads what it wrote down before";
/// How long each part of a stop may take.
const FAREWELL: Duration = Duration::from_secs(4);

/// A running node. It goes on when this is dropped; see [`Node::stop`].
#[derive(Debug)]
pub struct Node {
    app: App,
    clients: SocketAddr,
    stop: watch::Sender<Option<Arc<Leaving>>>,
    keys: watch::Sender<Option<Arc<Keys>>>,
    fatal: mpsc::UnboundedReceiver<String>,
    engine: JoinHandle<()>,
    mesh: JoinHandle<()>,
    door: JoinHandle<()>,
    charter: Option<(Arc<Hall>, JoinHandle<()>)>,
}

/// Why a node did not start. Nothing was promised.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl StartError {
    fn new(error: impl std::fmt::Display) -> Self {
        StartError(error.to_string())
    }
}

impl Node {
    /// Says that the cluster is new: the first start from this data directory, and no other, takes
    /// it that nobody holds anything. Never true of a directory that was lost.
    ///
    /// # Errors
    /// The directory was in use before, or cannot be used; nothing changed.
    pub fn init(config: &Config) -> Result<(), StartError> {
        boot::declare_new(config).map_err(StartError::new)?;
        charter::declare_new(config).map_err(StartError::new)
    }

    /// Whether the directory, or a member that answers, knows that the cluster is not new. That
    /// nobody objects proves nothing, but a script that says it out of habit is stopped.
    ///
    /// # Errors
    /// The directory was in use before, or a member knows that the cluster is not new.
    pub async fn check_new(config: &Config) -> Result<(), StartError> {
        let _lock = boot::check_unused(config).map_err(StartError::new)?;
        let keys = config.keys().map_err(StartError::new)?;
        let Some(why) = peers::objection(config, keys).await else { return Ok(()) };
        Err(StartError(format!(
            "the cluster is not new: {why}. Nothing changed; start the node as it is, and it waits \
             until nothing that was promised before can be in use"
        )))
    }

    /// What the charter's store of this node has, while the node does not run.
    ///
    /// # Errors
    /// There is none, or the node runs.
    pub fn charter_at_rest(config: &Config) -> Result<AtRest, StartError> {
        charter::look(config).map_err(StartError)
    }

    /// Lets the charter go on from this node's store alone: its majority is lost for good. `after`
    /// is an incarnation that is known to have been.
    ///
    /// # Errors
    /// The node runs, or another member does, or there is no store; nothing changed.
    pub async fn recover(config: &Config, after: Option<u64>) -> Result<Recovered, StartError> {
        charter::recover(config, after).await.map_err(StartError)
    }

    /// Lets a charter go on from a backup, at this node, whose directory is empty.
    ///
    /// # Errors
    /// The backup is none, a member runs, or the directory was in use; nothing changed.
    pub async fn restore(
        config: &Config,
        backup: &str,
        after: Option<u64>,
    ) -> Result<Recovered, StartError> {
        charter::restore(config, backup, after).await.map_err(StartError)
    }

    /// Gives a cluster that was started without a charter its first, at its first member.
    ///
    /// # Errors
    /// A member runs, or there is a charter, or the cluster is new; nothing changed.
    pub async fn import(config: &Config) -> Result<Recovered, StartError> {
        charter::import(config).await.map_err(StartError)
    }

    /// Binds the configured addresses and starts.
    ///
    /// # Errors
    /// Something could not be bound, opened or read; nothing was promised.
    pub async fn start(config: Config) -> Result<Node, StartError> {
        Node::bind(config, Planted::default()).await
    }

    /// Starts a node that breaks a rule, for tests of those who should notice.
    ///
    /// # Errors
    /// As [`Node::start`].
    #[cfg(feature = "planted-bugs")]
    pub async fn start_with(config: Config, bug: crate::Bug) -> Result<Node, StartError> {
        Node::bind(config, Planted::with(bug)).await
    }

    async fn bind(config: Config, planted: Planted) -> Result<Node, StartError> {
        let clients = bind(config.listen_clients, "clients").await?;
        let peers = bind(config.listen_peers, "peers").await?;
        Node::launch(config, clients, peers, planted).await
    }

    /// Starts on listeners that are bound already.
    ///
    /// # Errors
    /// Something could not be opened or read; nothing was promised.
    pub async fn start_on(
        config: Config,
        clients: TcpListener,
        peers: TcpListener,
    ) -> Result<Node, StartError> {
        Node::launch(config, clients, peers, Planted::default()).await
    }

    async fn launch(
        mut config: Config,
        clients: TcpListener,
        peers: TcpListener,
        planted: Planted,
    ) -> Result<Node, StartError> {
        config.limits.clients = descriptors::clients(&config);
        let keys = config.keys().map_err(StartError::new)?.map(Arc::new);
        let local = config.listen_local.as_deref().map(Local::bind).transpose();
        let local = local.map_err(StartError::new)?;
        let config = Arc::new(config);
        let metrics = Arc::new(Metrics::new());
        if let Some(keys) = &keys {
            metrics.trust.tell_expiry(keys);
        }
        let address = clients.local_addr().map_err(StartError::new)?;
        let porch = Porch::open(clients, local, keys.clone(), Arc::clone(&metrics));
        porch.says(boot::expectation(&config));
        let pins = charter::Pins::look(&config)
            .map_err(|why| StartError(format!("the charter: {why}")))?;
        let boot = boot::count(&config).await.map_err(StartError::new)?;
        porch.says(READS);
        let audit = Audit::open(&config, Arc::clone(&metrics)).map_err(StartError)?;
        let audit = Arc::new(audit);
        let (keys, _) = watch::channel(keys);
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (changes, _) = broadcast::channel(CHANGES);
        let (report, written) = mpsc::unbounded_channel();
        let (of, past) = (Arc::clone(&config), boot.past);
        let journal = aside(move || open_journal(&of, past, report)).await?;
        boot.take_up(&config).map_err(StartError::new)?;
        let (fatal, fatal_receiver) = mpsc::unbounded_channel();
        let of = Arc::clone(&config);
        let begin = aside(move || of.charter.map(|_| Begin::open(&of)).transpose()).await;
        let begin = begin.map_err(|why| StartError(format!("the charter: {why}")))?;
        let hall = config.charter.map(|chartered| {
            Hall::new(Arc::clone(&config), (chartered, pins), boot.number, keys.subscribe())
        });
        let hall = hall.map(Arc::new);
        let (asks, asked) = mpsc::unbounded_channel();
        let way = hall.as_ref().map(|hall| Chartered { hall: Arc::clone(hall), asks });
        let engine = Engine::new(
            Arc::clone(&config),
            Arc::clone(&metrics),
            changes.clone(),
            &boot,
            journal,
            fatal.clone(),
            (planted, way),
        )
        .map_err(StartError::new)?;
        let desk = Arc::new(Desk::new(Some(engine)));
        let (stop, stopping) = watch::channel(None);
        let app = App::new(
            Arc::clone(&config),
            boot.number,
            (Arc::clone(&metrics), Arc::clone(&audit)),
            (Arc::clone(&desk), commands.clone()),
            changes,
            stopping,
        )
        .chartered(hall.clone());
        let (clients, local) = porch.close().await;
        tracing::info!(
            node = config.name(), boot = boot.number, past = ?boot.past, clients = %address,
            "started"
        );
        let mut settling = JoinSet::new();
        if let Some(later) = boot::settle_later(Arc::clone(&config), &boot) {
            settling.spawn(later);
        }
        let charter = hall.clone().zip(begin).map(|(hall, begin)| {
            let part = Arc::clone(&hall).run(begin, commands.clone(), asked, fatal);
            (hall, tokio::spawn(part))
        });
        let cut_off = hall.as_ref().map(|hall| hall.cut_off());
        let answers = hall.map(|hall| hall as Arc<dyn Answers>);
        let about = (metrics, audit);
        let mesh =
            Mesh::new(Arc::clone(&config), commands, about, keys.subscribe(), answers.zip(cut_off));
        Ok(Node {
            clients: address,
            stop,
            fatal: fatal_receiver,
            engine: tokio::spawn(async move {
                // The data directory is ours, and written to, as long as the engine runs.
                let guards = (boot, settling);
                desk.run(inbox, written).await;
                drop(guards);
            }),
            mesh: tokio::spawn(mesh.run(peers)),
            door: tokio::spawn(door::run(clients, local, app.clone(), keys.subscribe())),
            charter,
            keys,
            app,
        })
    }

    /// Takes up the tokens, rights and certificates of a changed file while it runs. Whoever was
    /// let in with a token that is gone may do nothing more, and whose certificate nobody vouches
    /// for any more is cut off; other connections go on.
    ///
    /// # Errors
    /// The files are not good, or something else changed that takes a restart: everything is as
    /// before, and readiness says so until a file is taken up again.
    pub fn reload(&self, read: Result<Config, ConfigError>) -> Result<(), ConfigError> {
        let taken = read.and_then(|new| self.take_up(&new));
        self.app.metrics.reloaded(taken.is_ok());
        let result = match &taken {
            Ok(()) => "done".to_owned(),
            Err(error) => format!("refused: {error}"),
        };
        if taken.is_err() {
            self.app.config.guarded.refuse(result.clone());
        }
        self.app.act("reload", "", String::new(), result);
        taken
    }

    fn take_up(&self, new: &Config) -> Result<(), ConfigError> {
        if let Some(what) = self.app.config.differs(new) {
            return Err(ConfigError::Restart { what });
        }
        let keys = new.keys()?.map(Arc::new);
        if let Some(keys) = &keys {
            self.app.metrics.trust.tell_expiry(keys);
        }
        self.keys.send_replace(keys);
        self.app.config.guarded.replace(&new.guarded);
        Ok(())
    }

    /// The way to its engine.
    #[cfg(test)]
    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Where clients find it.
    pub fn clients_address(&self) -> SocketAddr {
        self.clients
    }

    /// How it is; nothing if it has stopped.
    pub async fn view(&self) -> Option<NodeView> {
        self.app.fetch(Request::Node).await.ok()
    }

    /// What `/readyz` says, when the engine has gone round once more: never, while it stands still,
    /// and nothing if it has stopped.
    pub fn pulse(&self) -> impl Future<Output = Option<Vec<Check>>> + use<> {
        let app = self.app.clone();
        async move { app.fetch(Request::Checks).await.ok() }
    }

    /// Returns when the node cannot go on, and says why. It should then be stopped, and the process
    /// with it.
    pub async fn failed(&mut self) -> String {
        tokio::select! {
            Some(why) = self.fatal.recv() => why,
            _ = &mut self.engine => "the engine has stopped; its last words are above".into(),
            _ = &mut self.mesh => "nobody minds the peers; the last words are above".into(),
            _ = &mut self.door => "nobody minds the clients; the last words are above".into(),
        }
    }

    /// Stops: hands over what it decides, tells clients where to go on, ends nothing that they
    /// have, and returns when everything that was promised is on disk.
    pub async fn stop(mut self) {
        // What it decides first, while everything still runs.
        let linked = self.linked().await;
        if let Some((hall, _)) = &self.charter {
            hall.hand_over(&linked.iter().cloned().collect()).await;
        }
        // Then connections: they say goodbye and read no more.
        let _ = self.stop.send(Some(Arc::new(Leaving::to(linked))));
        let _ = timeout(FAREWELL, self.app.stop()).await;
        // The last way to the engine but those of connections.
        let audit = Arc::clone(&self.app.audit);
        drop(self.app);
        let _ = timeout(FAREWELL, ended(&mut self.door)).await;
        if timeout(FAREWELL, ended(&mut self.mesh)).await.is_err() {
            self.mesh.abort();
        }
        // It has nothing more to do, and gives the data directory back as it ends.
        let _ = timeout(FAREWELL, ended(&mut self.engine)).await;
        if let Some((hall, part)) = self.charter {
            part.abort();
            let _ = timeout(FAREWELL, hall.stop()).await;
        }
        let _ = timeout(FAREWELL, spawn_blocking(move || audit.close())).await;
    }

    /// The members that this node has links with, and that are well as far as it knows.
    async fn linked(&self) -> Vec<String> {
        let peers = self.view().await.map(|node| node.peers).unwrap_or_default();
        let linked = peers.into_iter().filter(|peer| peer.connected && !peer.suspected);
        linked.map(|peer| peer.name).collect()
    }

    /// Ends the node as a crash would: nobody is told, and what is not on disk is gone. For tests.
    pub async fn crash(self) {
        for mut task in [self.engine, self.mesh, self.door] {
            task.abort();
            ended(&mut task).await;
        }
        if let Some((hall, part)) = self.charter {
            part.abort();
            hall.stop().await;
        }
    }
}

/// Reads what may be long, while others are answered.
async fn aside<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(read).await {
        Ok(read) => read,
        // Nobody cancels it: it panicked, and so do we.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Waits for the end of a task, unless it is over: [`Node::failed`] may have waited for it already,
/// and a task can be waited for only once.
async fn ended(task: &mut JoinHandle<()>) {
    if !task.is_finished() {
        let _ = task.await;
    }
}

async fn bind(address: SocketAddr, which: &str) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| StartError(format!("cannot listen for {which} at {address}: {error}")))
}

fn open_journal(
    config: &Config,
    past: Past,
    report: mpsc::UnboundedSender<Written>,
) -> Result<(Journal, Records), StartError> {
    let Data::Directory(directory) = &config.data else {
        return Ok((Journal::nowhere(), Records::new()));
    };
    if !config.keeps_journal() {
        return Ok((Journal::nowhere(), Records::new()));
    }
    let path = boot::journal(directory);
    // If the engine is gone, nobody waits for the disk any more.
    let report = move |written| drop(report.send(written));
    Journal::open(&path, matches!(past, Past::Same { .. }), report).map_err(StartError::new)
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    /// Everything runs on this thread, so the engine stands still until we wait for something.
    #[tokio::test]
    async fn only_an_engine_that_goes_round_has_a_pulse() {
        let text = "cluster = \"c\"\nepoch = 1\nnode = \"a\"\ndata_dir = \"unused\"\n\
                    [listen]\nclients = \"127.0.0.1:0\"\npeers = \"127.0.0.1:0\"\n\
                    [[members]]\nname = \"a\"\npeers = \"127.0.0.1:1\"\n\
                    [[pools]]\nname = \"p\"\nunits = 1\n";
        let mut config = Config::parse(text).unwrap();
        config.data = Data::Memory;
        let mut node = Node::start(config).await.unwrap();
        let mut pulse = std::pin::pin!(node.pulse());
        let first = std::future::poll_fn(|cx| Poll::Ready(pulse.as_mut().poll(cx))).await;
        assert!(first.is_pending(), "nobody but the engine answers");
        assert!(pulse.await.unwrap().iter().any(|check| check.name == "running"));
        node.engine.abort();
        ended(&mut node.engine).await;
        assert_eq!(node.pulse().await, None);
    }

    #[tokio::test]
    async fn a_task_that_was_waited_for_is_not_waited_for_again() {
        let mut task = tokio::spawn(async {});
        (&mut task).await.unwrap();
        ended(&mut task).await;
    }
}
