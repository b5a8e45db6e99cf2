//! One connection to a peer: bytes in, bytes out. What they mean is the engine's matter.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{NodeId, NodeSet};
use quorate_trust::Keys;
use quorate_wire::frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::greeting::Greeted;
use super::is_removed;
use super::outgoing::Queue;
use crate::charter::REMOVED;
use crate::engine::{Command, HEARTBEAT, PeerEvent};
use crate::stream::{Reader, Writer, outdated};

/// A peer that says nothing for so long is taken to be gone: it should have shown several times
/// that it lives. Only the connection ends; the link is resumed on the next one.
const SILENCE: Duration = HEARTBEAT.saturating_mul(5);
/// Room for what arrives at once.
const BUFFER: usize = 64 << 10;

/// A connection that the engine has taken up.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: NodeId,
    pub(super) number: u64,
    pub(super) stream: Greeted,
    /// What the engine wants written; closed when it wants the connection closed.
    pub(super) queue: Queue,
}

impl Connection {
    /// Carries bytes until either side has had enough.
    pub(super) async fn run(
        self,
        engine: &mpsc::Sender<Command>,
        keys: watch::Receiver<Option<Arc<Keys>>>,
        removed: watch::Receiver<NodeSet>,
    ) {
        let Connection { peer, number, stream: Greeted { mut stream, rest }, queue } = self;
        let certificate = stream.certificate();
        let (reader, writer) = stream.split();
        let why = tokio::select! {
            why = read(peer, number, reader, rest, engine) => why,
            why = write(writer, queue) => why,
            why = outdated(certificate, keys) => why,
            () = is_removed(peer, removed) => REMOVED.into(),
        };
        // If the engine is gone, so is the node.
        let gone = PeerEvent::Gone { peer, connection: number, why };
        let _ = engine.send(Command::Peer(gone)).await;
    }
}

async fn read(
    peer: NodeId,
    number: u64,
    mut reader: Reader,
    mut bytes: Vec<u8>,
    engine: &mpsc::Sender<Command>,
) -> String {
    loop {
        let whole = match frame::whole(&bytes) {
            Ok(whole) => whole,
            Err(error) => {
                let nonsense =
                    PeerEvent::Nonsense { peer, connection: number, why: error.to_string() };
                let _ = engine.send(Command::Peer(nonsense)).await;
                // The engine says its last words, and hangs up.
                return std::future::pending().await;
            }
        };
        if whole > 0 {
            let rest = bytes.split_off(whole);
            let frames = PeerEvent::Frames { peer, connection: number, bytes };
            bytes = rest;
            // If the engine is gone, its last words may still be on their way out: what comes in
            // is nobody's then, and must not end the connection before they are written.
            let _ = engine.send(Command::Peer(frames)).await;
        }
        bytes.reserve(BUFFER);
        match timeout(SILENCE, reader.read_buf(&mut bytes)).await {
            Ok(Ok(0)) => return "the peer hung up".into(),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return format!("silent for {} seconds", SILENCE.as_secs()),
        }
    }
}

async fn write(mut writer: Writer, mut queue: Queue) -> String {
    while let Some(bytes) = queue.next().await {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match timeout(SILENCE, writer.write(rest)).await {
                Ok(Ok(0)) => return "the peer hung up".into(),
                Ok(Ok(written)) => rest = &rest[written..],
                Ok(Err(error)) => return error.to_string(),
                // Also where the engine hung up: what nobody reads is not kept for long.
                Err(_) => return format!("it read nothing for {} seconds", SILENCE.as_secs()),
            }
        }
        match timeout(SILENCE, writer.flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return format!("it read nothing for {} seconds", SILENCE.as_secs()),
        }
    }
    "closed on this side".into()
}
