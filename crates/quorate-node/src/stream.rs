//! A connection, in the clear or encrypted, with whatever was read from it too early.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use quorate_trust::{Identity, Keys, Usage, shown};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_rustls::rustls::pki_types::{CertificateDer, IpAddr, ServerName};
use tokio_rustls::rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// A connection.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Read early, and read again by whoever reads next.
    head: Vec<u8>,
    way: Way,
    /// Whose certificate the other side showed, verified...
    shown: Option<Identity>,
    /// ...and the certificate.
    certificate: Option<Shown>,
}

/// A certificate that the other side of a connection showed.
#[derive(Debug)]
pub(crate) struct Shown {
    chain: Vec<CertificateDer<'static>>,
    usage: Usage,
}

impl Shown {
    fn of(chain: Option<&[CertificateDer<'_>]>, usage: Usage) -> Option<Shown> {
        let chain = chain?.iter().map(|one| one.clone().into_owned()).collect();
        Some(Shown { chain, usage })
    }
}

/// Returns when somebody's certificate is good no more, since others are trusted now; says why.
pub(crate) async fn outdated(
    shown: Option<Shown>,
    mut keys: watch::Receiver<Option<Arc<Keys>>>,
) -> String {
    let Some(Shown { chain, usage }) = shown else { return std::future::pending().await };
    while keys.changed().await.is_ok() {
        let now = keys.borrow_and_update().clone();
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let taken = now.map(|keys| keys.still_takes(&chain, usage, since_1970.unwrap_or_default()));
        if let Some(Err(error)) = taken {
            return error.to_string();
        }
    }
    // The node stops.
    std::future::pending().await
}

#[derive(Debug)]
enum Way {
    Plain(TcpStream),
    Local(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// One direction of a connection.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Stream { head: Vec::new(), way: Way::Plain(stream), shown: None, certificate: None }
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Stream { head: Vec::new(), way: Way::Local(stream), shown: None, certificate: None }
    }
}

impl Stream {
    /// We were called, and TLS is spoken.
    pub(crate) async fn accept(stream: TcpStream, tls: Arc<ServerConfig>) -> io::Result<Stream> {
        let stream = TlsAcceptor::from(tls).accept(stream).await?;
        let chain = stream.get_ref().1.peer_certificates();
        let (whose, certificate) = (shown(chain).ok(), Shown::of(chain, Usage::Client));
        let way = Way::Tls(Box::new(TlsStream::Server(stream)));
        Ok(Stream { head: Vec::new(), way, shown: whose, certificate })
    }

    /// We called.
    pub(crate) async fn connect(stream: TcpStream, tls: Arc<ClientConfig>) -> io::Result<Stream> {
        // Whose certificate it is decides, and not where it was found.
        let name = ServerName::IpAddress(IpAddr::from(stream.peer_addr()?.ip()));
        let stream = TlsConnector::from(tls).connect(name, stream).await?;
        let chain = stream.get_ref().1.peer_certificates();
        let (whose, certificate) = (shown(chain).ok(), Shown::of(chain, Usage::Server));
        let way = Way::Tls(Box::new(TlsStream::Client(stream)));
        Ok(Stream { head: Vec::new(), way, shown: whose, certificate })
    }

    /// Whose certificate the other side showed.
    pub(crate) fn shown(&self) -> Option<&Identity> {
        self.shown.as_ref()
    }

    /// The certificate itself, for [`outdated`].
    pub(crate) fn certificate(&mut self) -> Option<Shown> {
        self.certificate.take()
    }

    /// What the other side says first, as far as it has said it: more than last time. Nothing of it
    /// is lost.
    pub(crate) async fn first(&mut self) -> io::Result<&[u8]> {
        let mut bytes = [0; 64];
        let read = match &mut self.way {
            Way::Plain(stream) => stream.read(&mut bytes).await?,
            Way::Local(stream) => stream.read(&mut bytes).await?,
            Way::Tls(stream) => stream.read(&mut bytes).await?,
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.head.extend_from_slice(&bytes[..read]);
        Ok(&self.head)
    }

    /// Both directions, once nothing is left of what was read early.
    pub(crate) fn split(self) -> (Reader, Writer) {
        assert!(self.head.is_empty(), "nobody looks at the first words of peers");
        match self.way {
            Way::Plain(stream) => {
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
            Way::Local(stream) => {
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
            Way::Tls(stream) => {
                let (reader, writer) = tokio::io::split(stream);
                (Box::new(reader), Box::new(writer))
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.head.is_empty() {
            let some = self.head.len().min(into.remaining());
            into.put_slice(&self.head[..some]);
            self.head.drain(..some);
            return Poll::Ready(Ok(()));
        }
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Way::Local(stream) => Pin::new(stream).poll_read(cx, into),
            Way::Tls(stream) => {
                // Who hangs up without a word of farewell has hung up: frames and HTTP say
                // themselves where they end.
                match ready!(Pin::new(stream).poll_read(cx, into)) {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        Poll::Ready(Ok(()))
                    }
                    read => Poll::Ready(read),
                }
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Way::Local(stream) => Pin::new(stream).poll_write(cx, bytes),
            Way::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Way::Local(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Way::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.way {
            Way::Plain(stream) => stream.is_write_vectored(),
            Way::Local(stream) => stream.is_write_vectored(),
            Way::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Way::Local(stream) => Pin::new(stream).poll_flush(cx),
            Way::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Way::Local(stream) => Pin::new(stream).poll_shutdown(cx),
            Way::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
