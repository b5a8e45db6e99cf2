//! The first words on a connection: both sides say who they are, what the connection is for, and
//! refuse strangers.

use std::io;

use quorate_core::NodeId;
use quorate_trust::is_node;
use quorate_wire::frame::{self, Frame, FrameError};
use quorate_wire::link::LinkError;
use quorate_wire::{Hello, Life, Resume};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot::error::RecvError;

use crate::config::Config;
use crate::engine::hello;
use crate::stream::Stream;

/// Longest greeting.
const HELLO_MAX: usize = 4096;

/// A connection after the greeting, with whatever arrived behind it.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) stream: Stream,
    pub(super) rest: Vec<u8>,
}

/// Why there is no connection. Nothing was delivered.
#[derive(Debug, thiserror::Error)]
pub(super) enum GreetingError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Link(#[from] LinkError),
    #[error("it hung up before it said who it is")]
    HungUp,
    #[error("it did not begin with a greeting")]
    NoGreeting,
    #[error("it refuses us: {0}")]
    RefusedUs(String),
    #[error("{0}")]
    Stranger(String),
    #[error("this node is stopping")]
    Stopping,
}

impl GreetingError {
    /// Whether the other side is what it should not be: that stays so until somebody changes it.
    pub(super) fn is_verdict(&self) -> bool {
        use GreetingError::{Frame, Stranger};
        matches!(self, Frame(FrameError::Version(_)) | Stranger(_))
    }
}

impl From<RecvError> for GreetingError {
    fn from(_: RecvError) -> Self {
        GreetingError::Stopping
    }
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The link between two nodes.
    Link,
    /// Questions of the caller's control plane.
    Council,
}

/// On a connection that carries no link.
pub(super) const NO_LINK: Resume =
    Resume { life: Life { boot: 0, mark: 0 }, knows: None, received: 0 };

/// We called: we greet first.
pub(super) async fn call(
    config: &Config,
    peer: NodeId,
    ours: Resume,
    stream: Stream,
) -> Result<(Greeted, Resume), GreetingError> {
    call_for(Purpose::Link, config, peer, ours, stream).await
}

/// The same for the control plane.
pub(super) async fn call_council(
    config: &Config,
    peer: NodeId,
    stream: Stream,
) -> Result<Greeted, GreetingError> {
    Ok(call_for(Purpose::Council, config, peer, NO_LINK, stream).await?.0)
}

async fn call_for(
    purpose: Purpose,
    config: &Config,
    peer: NodeId,
    ours: Resume,
    mut stream: Stream,
) -> Result<(Greeted, Resume), GreetingError> {
    greet(&mut stream, purpose, said(purpose, config, peer, ours)).await?;
    let (theirs, rest) = read(&mut stream).await?;
    let (answered, theirs) = theirs.map_err(GreetingError::RefusedUs)?;
    if answered != purpose {
        return Err(GreetingError::NoGreeting);
    }
    let place = check(purpose, config, &theirs).map_err(GreetingError::Stranger)?;
    is_it(config, &stream, &theirs).map_err(GreetingError::Stranger)?;
    if place != peer {
        return Err(GreetingError::Stranger(format!("{:?} answers there", theirs.node)));
    }
    Ok((Greeted { stream, rest }, theirs.resume))
}

/// What members agree on, for this purpose.
fn agreed(purpose: Purpose, config: &Config) -> u64 {
    match purpose {
        Purpose::Link => config.digest,
        Purpose::Council => config.council,
    }
}

fn said(purpose: Purpose, config: &Config, peer: NodeId, resume: Resume) -> Hello {
    Hello { digest: agreed(purpose, config), ..hello(config, peer, resume) }
}

async fn greet(stream: &mut Stream, purpose: Purpose, hello: Hello) -> io::Result<()> {
    let mut bytes = Vec::new();
    let frame = match purpose {
        Purpose::Link => Frame::Hello(hello),
        Purpose::Council => Frame::Council(hello),
    };
    frame::encode(&frame, &mut bytes);
    stream.write_all(&bytes).await?;
    stream.flush().await
}

/// We were called: the engine will greet, if we know the caller and it wants a link. Whoever calls
/// for the control plane has been greeted.
pub(super) async fn answer(
    config: &Config,
    mut stream: Stream,
) -> Result<(Greeted, Purpose, NodeId, Resume), GreetingError> {
    let (theirs, rest) = match read(&mut stream).await {
        // Whoever speaks another version reads that of our frame.
        Err(GreetingError::Frame(error @ FrameError::Version(_))) => {
            // It may have hung up: what is wrong is what it said.
            let _ = refuse(stream, error.to_string()).await;
            return Err(error.into());
        }
        read => read?,
    };
    let (purpose, theirs) = theirs.map_err(GreetingError::RefusedUs)?;
    match is_it(config, &stream, &theirs).and_then(|()| check(purpose, config, &theirs)) {
        Ok(peer) => {
            if purpose == Purpose::Council {
                greet(&mut stream, purpose, said(purpose, config, peer, NO_LINK)).await?;
            }
            Ok((Greeted { stream, rest }, purpose, peer, theirs.resume))
        }
        Err(why) => {
            let _ = refuse(stream, why.clone()).await;
            Err(GreetingError::Stranger(why))
        }
    }
}

/// Says why, and hangs up.
pub(super) async fn refuse(mut stream: Stream, why: String) -> io::Result<()> {
    let mut bytes = Vec::new();
    frame::encode(&Frame::Refused(why), &mut bytes);
    stream.write_all(&bytes).await?;
    stream.flush().await
}

/// A greeting, or a refusal in words.
type Said = Result<(Purpose, Hello), String>;

/// The first frame.
async fn read(stream: &mut Stream) -> Result<(Said, Vec<u8>), GreetingError> {
    let mut bytes = Vec::with_capacity(HELLO_MAX);
    loop {
        if let Some((frame, used)) = frame::decode(&bytes)? {
            let said = match frame {
                Frame::Hello(hello) => Ok((Purpose::Link, hello)),
                Frame::Council(hello) => Ok((Purpose::Council, hello)),
                Frame::Refused(why) => Err(why.chars().take(500).collect()),
                _ => return Err(GreetingError::NoGreeting),
            };
            return Ok((said, bytes.split_off(used)));
        }
        if bytes.len() >= HELLO_MAX {
            return Err(GreetingError::NoGreeting);
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(GreetingError::HungUp);
        }
    }
}

/// The member whose certificate a caller shows, whatever it says.
pub(super) fn whose(config: &Config, stream: &Stream) -> Option<NodeId> {
    let shown = stream.shown()?;
    let is_it =
        |place: &usize| is_node(shown, &config.cluster, &config.members[*place].name).is_ok();
    (0..config.members.len()).find(is_it).map(NodeId::from)
}

/// Whether somebody has the certificate of whom it says to be, where certificates are asked for.
fn is_it(config: &Config, stream: &Stream, theirs: &Hello) -> Result<(), String> {
    match (&config.tls, stream.shown()) {
        (None, _) => Ok(()),
        (Some(_), Some(shown)) => is_node(shown, &config.cluster, &theirs.node),
        (Some(_), None) => Err("it showed no certificate of a node".into()),
    }
}

/// Whether somebody belongs to us, and who it is.
fn check(purpose: Purpose, config: &Config, theirs: &Hello) -> Result<NodeId, String> {
    let us = config.name();
    if theirs.cluster != config.cluster {
        return Err(format!(
            "{us} belongs to cluster {:?}, the caller to {:?}",
            config.cluster, theirs.cluster
        ));
    }
    if theirs.epoch != config.epoch {
        return Err(format!(
            "{us} has epoch {} of the configuration, {:?} has {}: \
             give all members the same file and restart those that are behind",
            config.epoch, theirs.node, theirs.epoch
        ));
    }
    let ours = agreed(purpose, config);
    if theirs.digest != ours && config.digest != config.council && purpose == Purpose::Council {
        return Err(format!(
            "{us} and {:?} have different licences or suspicions: compare [charter] of their files",
            theirs.node
        ));
    }
    if theirs.digest != ours {
        return Err(format!(
            "{us} and {:?} have different members or pools under one epoch ({:016x}, {:016x}): \
             compare [[members]] and [[pools]] of their files",
            theirs.node, ours, theirs.digest
        ));
    }
    if theirs.to != us {
        return Err(format!(
            "this is {us}, and {:?} wants to talk to {:?}",
            theirs.node, theirs.to
        ));
    }
    let place = config.members.place(&theirs.node);
    place
        .filter(|place| *place != config.me)
        .ok_or_else(|| format!("{:?} is not another member of the cluster", theirs.node))
}
