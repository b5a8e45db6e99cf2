//! Connections: whom a client trusts, and a stream that is encrypted, in the clear, or a Unix
//! socket.
//!
//! TLS 1.3 only, with ring, passed explicitly: another crate of the program may bring something
//! else.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error as TlsError, RootCertStore, version,
};

use crate::error::ConnectError;
use crate::server::Server;

/// Whom a client trusts, for servers that are named with `https://`.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// Trusts nodes with certificates of this authority: the cluster's `ca.crt`, or several.
    ///
    /// # Errors
    /// There is no certificate in it. Nothing was sent.
    pub fn trusting(ca: &[u8]) -> Result<Tls, ConnectError> {
        Tls::new(ca, None)
    }

    /// The same, and shows a certificate of its own, with its key.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together. Nothing was sent.
    pub fn showing(ca: &[u8], certificate: &[u8], key: &[u8]) -> Result<Tls, ConnectError> {
        Tls::new(ca, Some((certificate, key)))
    }

    fn new(ca: &[u8], own: Option<(&[u8], &[u8])>) -> Result<Tls, ConnectError> {
        let bad = |what: String| ConnectError::BadCertificate { what };
        let read = |pem: &[u8]| {
            let all: Result<Vec<CertificateDer<'static>>, _> =
                CertificateDer::pem_slice_iter(pem).collect();
            all.map_err(|error| bad(error.to_string()))
        };
        let mut roots = RootCertStore::empty();
        for root in read(ca)? {
            roots.add(root).map_err(|error| bad(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(bad("no certificate of an authority is in the file".into()));
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| bad(error.to_string()))?
            .with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key);
                let key = key.map_err(|error| bad(error.to_string()))?;
                let shown = builder.with_client_auth_cert(read(certificate)?, key);
                shown.map_err(|error| bad(error.to_string()))?
            }
        };
        Ok(Tls { config: Arc::new(config) })
    }
}

/// A connection to a server, in the clear or not, as its name says.
pub(crate) async fn dial(server: &Server, tls: Option<&Tls>) -> io::Result<Stream> {
    if let Some(path) = server.socket() {
        return Ok(Stream::Local(UnixStream::connect(path).await?));
    }
    let stream = TcpStream::connect(server.address()).await?;
    // Small messages in a hurry.
    let _ = stream.set_nodelay(true);
    if !server.is_secure() {
        return Ok(Stream::Plain(stream));
    }
    let tls = tls.ok_or_else(|| io::Error::other("no certificate of an authority is named"))?;
    let name = ServerName::try_from(server.host().to_owned()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::clone(&tls.config)).connect(name, stream).await?;
    Ok(Stream::Tls(Box::new(stream)))
}

/// What happened, in words: if certificates are the reason, which side refuses whose, and why;
/// without the system's number, which tells nobody more.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(one) = cause {
        let inner = one.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<TlsError>());
        if let Some(text) = inner.or_else(|| one.downcast_ref()).and_then(about_certificates) {
            return text;
        }
        cause = one.source();
    }
    error.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}

fn about_certificates(error: &TlsError) -> Option<String> {
    Some(match error {
        TlsError::AlertReceived(AlertDescription::CertificateExpired) => {
            "it refuses the certificate that we show: expired, or not valid yet".into()
        }
        // The second if the two authorities have the same name.
        TlsError::AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => {
            "it refuses the certificate that we show: of an authority that it does not trust".into()
        }
        TlsError::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked),
        ) => format!("it refuses the certificate that we show: {alert:?}"),
        TlsError::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "its certificate is of an authority that we do not trust: is ca.crt its cluster's?"
            .into(),
        TlsError::InvalidCertificate(why) => format!("its certificate is not good: {why}"),
        _ => return None,
    })
}

/// What may help whoever reads that no node answers.
pub(crate) fn hint(why: &str) -> &'static str {
    match why.contains("certificate") {
        true => "`quorate cert show` and `quorate cert verify` tell more of the files",
        false => "start one with `quorate dev`, or name another server",
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Local(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Stream::Local(stream) => Pin::new(stream).poll_read(cx, into),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Local(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Local(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Local(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
