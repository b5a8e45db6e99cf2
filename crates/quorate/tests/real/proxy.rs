//! What lies between clients, or other nodes, and a node: a wire that can be cut, slowed down and
//! made to repeat itself.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A wire to one node.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    node: SocketAddr,
    /// Raised to cut every connection.
    cuts: watch::Sender<u64>,
    /// Added to everything that passes, in milliseconds; `BLOCKED` lets nothing pass.
    delay: AtomicU64,
    /// What clients said lately, from the first byte of their connection.
    said: Mutex<Vec<Vec<u8>>>,
}

const BLOCKED: u64 = u64::MAX;
const SAID_CONNECTIONS: usize = 32;
const SAID_BYTES: usize = 64 * 1024;

impl Proxy {
    pub(crate) async fn new(node: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            node,
            cuts: watch::channel(0).0,
            delay: AtomicU64::new(0),
            said: Mutex::new(Vec::new()),
        });
        let accepting = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(Arc::clone(&accepting), client));
            }
        });
        Proxy { address, shared }
    }

    /// Breaks every connection; new ones may be made at once.
    pub(crate) fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub(crate) fn slow_down(&self, delay: Duration) {
        self.shared.delay.store(delay.as_millis() as u64, Ordering::Relaxed);
    }

    /// Lets nothing pass, without closing anything.
    pub(crate) fn block(&self) {
        self.shared.delay.store(BLOCKED, Ordering::Relaxed);
    }

    /// As if nothing had happened; what was in a blocked wire still arrives.
    pub(crate) fn heal(&self) {
        self.shared.delay.store(0, Ordering::Relaxed);
    }

    /// Says again, to a node, all that some client said on one connection.
    pub(crate) fn replay(&self, to: SocketAddr, which: u64) {
        let said = self.shared.said.lock().expect("no panic");
        if said.is_empty() {
            return;
        }
        let bytes = said[which as usize % said.len()].clone();
        drop(said);
        tokio::spawn(async move {
            let Ok(mut node) = TcpStream::connect(to).await else { return };
            if node.write_all(&bytes).await.is_ok() {
                let mut answers = Vec::new();
                let reading = node.read_to_end(&mut answers);
                let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
            }
        });
    }
}

async fn carry(shared: Arc<Shared>, client: TcpStream) {
    let mut cuts = shared.cuts.subscribe();
    cuts.mark_unchanged();
    let Ok(node) = TcpStream::connect(shared.node).await else { return };
    let _ = (client.set_nodelay(true), node.set_nodelay(true));
    let (client_reads, client_writes) = client.into_split();
    let (node_reads, node_writes) = node.into_split();
    let mut said = Vec::new();
    tokio::select! {
        () = pump(&shared, client_reads, node_writes, Some(&mut said)) => {}
        () = pump(&shared, node_reads, client_writes, None) => {}
        _ = cuts.changed() => {}
    }
    let mut kept = shared.said.lock().expect("no panic");
    if kept.len() == SAID_CONNECTIONS {
        kept.remove(0);
    }
    kept.push(said);
}

async fn pump(
    shared: &Shared,
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut said: Option<&mut Vec<u8>>,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if let Some(said) = &mut said
            && said.len() < SAID_BYTES
        {
            said.extend_from_slice(&bytes[..read]);
        }
        loop {
            match shared.delay.load(Ordering::Relaxed) {
                0 => break,
                BLOCKED => tokio::time::sleep(Duration::from_millis(10)).await,
                millis => {
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                    break;
                }
            }
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
