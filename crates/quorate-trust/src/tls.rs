//! TLS, as values: what a node shows, and whom it takes. Sockets are the caller's matter.
//!
//! Version 1.3 only: every library that is still looked after speaks it. The provider is ring, and
//! passed explicitly: a process in which another crate brings a second one would panic otherwise.
//!
//! Between nodes both sides show a certificate, and whose it is decides, not the address: a member
//! may move. Clients find a node by its address or DNS name, as with any server, and may show a
//! certificate of their own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::{Certificate, CertificateError, Identity, Kind, Roots, Usage};

static VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// Why files are not good for TLS. Nothing changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeysError {
    /// The authority's certificates.
    #[error("ca: {0}")]
    Authority(CertificateError),
    /// The node's own.
    #[error("cert: {0}")]
    Certificate(CertificateError),
    /// It is somebody else's.
    #[error("cert: this is the certificate of {0}, and not of this node: {1}")]
    Whose(Identity, Identity),
    /// No key, or not this certificate's.
    #[error("key: {0}")]
    Key(String),
}

/// What a node shows, and whom it takes.
pub struct Keys {
    roots: Roots,
    certificate: Certificate,
    to_peers: Arc<CryptoProvider>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    for_clients: Arc<ServerConfig>,
    for_peers: Arc<ServerConfig>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Keys {
    /// Of these files, for the node that this is. All that a handshake would find wrong is found
    /// here.
    ///
    /// # Errors
    /// They are not good for that.
    pub fn from_pem(
        (ca, certificate, key): (&[u8], &[u8], &[u8]),
        node: &Identity,
        since_1970: Duration,
    ) -> Result<Keys, KeysError> {
        let roots = Roots::from_pem(ca).map_err(KeysError::Authority)?;
        let wrong = KeysError::Certificate;
        let (first, rest) = Certificate::from_pem(certificate).map_err(wrong)?;
        let rest: Vec<_> = rest.iter().map(|one| one.der().clone()).collect();
        for usage in [Usage::Server, Usage::Client] {
            let whose = roots.verify(&first, &rest, usage, since_1970);
            let whose = whose.map_err(KeysError::Certificate)?;
            if whose != node {
                return Err(KeysError::Whose(whose.clone(), node.clone()));
            }
        }
        let unreadable = |error: rustls_pki_types::pem::Error| KeysError::Key(error.to_string());
        let key = PrivateKeyDer::from_pem_slice(key).map_err(unreadable)?;
        let chain: Vec<_> = std::iter::once(first.der().clone()).chain(rest).collect();
        let provider = Arc::new(ring::default_provider());
        let serve = |needed: bool| {
            let store = Arc::new(store(&roots));
            let taken = WebPkiClientVerifier::builder_with_provider(store, Arc::clone(&provider));
            let taken = if needed { taken } else { taken.allow_unauthenticated() };
            let taken = taken.build().map_err(|error| KeysError::Key(error.to_string()))?;
            ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_protocol_versions(VERSIONS)
                .and_then(|builder| {
                    let builder = builder.with_client_cert_verifier(taken);
                    builder.with_single_cert(chain.clone(), key.clone_key())
                })
                .map(Arc::new)
                .map_err(|error| KeysError::Key(error.to_string()))
        };
        let (for_clients, for_peers) = (serve(false)?, serve(true)?);
        let to_peers = Arc::clone(&provider);
        Ok(Keys { roots, certificate: first, to_peers, chain, key, for_clients, for_peers })
    }

    /// The node's certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// When the first of the authorities expires, since 1970.
    pub fn authority_until(&self) -> Option<Duration> {
        let until = |der| Certificate::from_der(der).ok()?.validity().map(|(_, until)| until);
        self.roots.certificates().iter().filter_map(until).min()
    }

    /// Whether a certificate that was shown before, with those between it and a root, is still
    /// good.
    ///
    /// # Errors
    /// It is not; why.
    pub fn still_takes(
        &self,
        chain: &[CertificateDer<'_>],
        usage: Usage,
        since_1970: Duration,
    ) -> Result<(), CertificateError> {
        let (first, between) = chain.split_first().ok_or(CertificateError::Missing)?;
        let certificate = Certificate::from_der(first)?;
        self.roots.verify(&certificate, between, usage, since_1970).map(|_| ())
    }

    /// For connections of clients, who may show a certificate.
    pub fn for_clients(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.for_clients)
    }

    /// For connections of other nodes, who must.
    pub fn for_peers(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.for_peers)
    }

    /// To call another node: nobody else is talked to, whatever answers there.
    ///
    /// # Errors
    /// The library refuses the files; it took them when it read them.
    pub fn to_peer(&self, peer: Identity) -> Result<Arc<ClientConfig>, KeysError> {
        let provider = Arc::clone(&self.to_peers);
        let whom = Expected::Peer { roots: self.roots.clone(), peer };
        let only = Expecting { whom, provider: Arc::clone(&provider) };
        ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(VERSIONS)
            .and_then(|builder| {
                let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(only));
                builder.with_client_auth_cert(self.chain.clone(), self.key.clone_key())
            })
            .map(Arc::new)
            .map_err(|error| KeysError::Key(error.to_string()))
    }
}

fn store(roots: &Roots) -> RootCertStore {
    let mut store = RootCertStore::empty();
    let (_, refused) = store.add_parsable_certificates(roots.certificates().iter().cloned());
    assert_eq!(refused, 0, "roots were read with the same library");
    store
}

/// Whose certificate the other side showed: verified by the handshake, read here.
///
/// # Errors
/// It showed none, or one that does not say.
pub fn shown(chain: Option<&[CertificateDer<'_>]>) -> Result<Identity, CertificateError> {
    let first = chain.and_then(<[_]>::first).ok_or(CertificateError::Missing)?;
    Certificate::from_der(first)?.identity().cloned()
}

/// To call a node of a cluster of which nothing is known but the SHA-256 of its authority's
/// certificate: any node that shows this certificate and its own, signed by it. Nothing is shown to
/// it.
///
/// # Errors
/// The library refuses.
pub fn to_unknown(authority: [u8; 32]) -> Result<Arc<ClientConfig>, KeysError> {
    let provider = Arc::new(ring::default_provider());
    let whom = Expected::SignedBy(authority);
    let only = Expecting { whom, provider: Arc::clone(&provider) };
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map(|builder| {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(only))
                .with_no_client_auth()
        })
        .map(Arc::new)
        .map_err(|error| KeysError::Key(error.to_string()))
}

/// Takes whom it expects and nobody else.
#[derive(Debug)]
struct Expecting {
    whom: Expected,
    provider: Arc<CryptoProvider>,
}

/// Who is to answer.
#[derive(Debug)]
enum Expected {
    /// This one, by a certificate that one of these signed.
    Peer { roots: Roots, peer: Identity },
    /// Any node that shows a certificate of the authority with this fingerprint, and the
    /// authority's own.
    SignedBy([u8; 32]),
}

impl Expected {
    fn judge(
        &self,
        shown: &Certificate,
        between: &[CertificateDer<'_>],
        now: Duration,
    ) -> Result<(), String> {
        let verified = |roots: &Roots, between: &[CertificateDer<'_>]| {
            let whose = roots.verify(shown, between, Usage::Server, now);
            whose.cloned().map_err(|error| error.to_string())
        };
        match self {
            Expected::Peer { roots, peer } => {
                let whose = verified(roots, between)?;
                match whose == *peer {
                    true => Ok(()),
                    false => Err(format!("{whose} answers instead of {peer}")),
                }
            }
            Expected::SignedBy(fingerprint) => {
                let others = between.iter().filter_map(|der| Certificate::from_der(der).ok());
                let its = |one: &Certificate| one.sha256() == *fingerprint;
                let authority = others.into_iter().find(its).ok_or(
                    "another cluster answers there: its authority is not the one of the invitation",
                )?;
                let said = |error: CertificateError| error.to_string();
                let roots = Roots::from_pem(authority.to_pem().as_bytes()).map_err(said)?;
                let whose = verified(&roots, &[])?;
                let of = authority.identity().map_err(said)?;
                let is_authority = of.kind == Kind::Authority && of.cluster == whose.cluster;
                match is_authority && whose.kind == Kind::Node {
                    true => Ok(()),
                    false => Err(format!("{whose} is no node of {of}")),
                }
            }
        }
    }
}

impl ServerCertVerifier for Expecting {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let refused = rustls::Error::General;
        let shown = Certificate::from_der(shown).map_err(|error| refused(error.to_string()))?;
        let now = Duration::from_secs(now.as_secs());
        self.whom.judge(&shown, between, now).map_err(refused)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether somebody who showed this is the node of the cluster that it says it is.
///
/// # Errors
/// It is not; what it is instead.
pub fn is_node(shown: &Identity, cluster: &str, name: &str) -> Result<(), String> {
    let said = Identity { cluster: cluster.into(), kind: Kind::Node, name: name.into() };
    match *shown == said {
        true => Ok(()),
        false => Err(format!("it says that it is {said}, and its certificate is of {shown}")),
    }
}
