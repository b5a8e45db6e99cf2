//! The cluster's authority: makes itself, and certificates for nodes and clients.
//!
//! Keys are P-256, which every TLS library speaks. Certificates are valid from the beginning of the
//! day before, so that a clock which is a little behind takes them too.

use std::net::IpAddr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType,
    SignatureAlgorithm, date_time_ymd,
};

use crate::{Certificate, CertificateError, DAY, Date, Identity, IdentityError, Kind};

/// Longest name that a certificate's subject may have (X.520).
const COMMON_NAME_MAX: usize = 64;
/// Largest number of days that a certificate may live.
const DAYS_MAX: u32 = 36_500;

/// From when on, and for how many days.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// Now, since 1970.
    pub since_1970: Duration,
    /// How long from now.
    pub days: u32,
}

/// A certificate and its key, both as PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key: whoever has it is whoever the certificate names.
    pub key: String,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// The key of a node, which is made where the node is and never leaves it.
pub struct NodeKey(KeyPair);

impl std::fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeKey(..)")
    }
}

impl NodeKey {
    /// A new one.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn random() -> Result<NodeKey, IssueError> {
        new_key().map(NodeKey)
    }

    /// The key of a file.
    ///
    /// # Errors
    /// It is none, or of another kind.
    pub fn from_pem(pem: &str) -> Result<NodeKey, IssueError> {
        let key = KeyPair::from_pem(pem).map_err(|_| IssueError::NodeKey)?;
        match key.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            true => Ok(NodeKey(key)),
            false => Err(IssueError::NodeKey),
        }
    }

    /// The key itself, for the node's own file.
    pub fn reveal(&self) -> String {
        self.0.serialize_pem()
    }

    /// SHA-256 of the public half of a key.
    pub fn sha256(public: &[u8]) -> [u8; 32] {
        let digest = ring::digest::digest(&ring::digest::SHA256, public);
        digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// What others may know of it: the point of the curve.
    pub fn public(&self) -> &[u8] {
        self.0.der_bytes()
    }
}

/// A point of the curve that somebody says is its own. Whether that is so shows when it is used: a
/// certificate for a key that one does not have is good for nothing.
struct Public<'a>(&'a [u8]);

impl Public<'_> {
    /// Bytes of a point that is written in full, after one that says so.
    const LEN: usize = 65;
    const IN_FULL: u8 = 4;

    fn read(bytes: &[u8]) -> Result<Public<'_>, IssueError> {
        match bytes.len() == Self::LEN && bytes[0] == Self::IN_FULL {
            true => Ok(Public(bytes)),
            false => Err(IssueError::NodeKey),
        }
    }
}

impl PublicKeyData for Public<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// Why no certificate was made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IssueError {
    /// A name that could be misread.
    #[error(transparent)]
    Name(#[from] IdentityError),
    /// An address that is neither.
    #[error("{0:?} is neither an IP address nor a DNS name")]
    Address(String),
    /// A lifetime that makes no sense.
    #[error("{0} days: choose 1 to {DAYS_MAX}")]
    Days(u32),
    /// The file has no authority's certificate.
    #[error("the authority's certificate: {0}")]
    Authority(CertificateError),
    /// It is the certificate of somebody else.
    #[error("this is the certificate of {0}, not of an authority made by `quorate cert new-ca`")]
    NoAuthority(String),
    /// The key is no key, or of another kind.
    #[error("the authority's key cannot be read, or is not a P-256 key")]
    Key,
    /// The same of a node's.
    #[error("the node's key cannot be read, or is not a P-256 key")]
    NodeKey,
    /// The key is another one's.
    #[error("the authority's key does not belong to its certificate")]
    OtherKey,
    /// The library refused.
    #[error("no certificate could be made: {0}")]
    Failed(String),
}

/// Signs the certificates of a cluster.
pub struct Authority {
    cluster: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl Authority {
    /// A new authority for a cluster: its files.
    ///
    /// # Errors
    /// The name of the cluster or the lifetime makes no sense.
    pub fn create(cluster: &str, lifetime: Lifetime) -> Result<Issued, IssueError> {
        let identity = Identity::new(cluster, Kind::Authority, "")?;
        let mut params = authority(&identity)?;
        live(&mut params, lifetime)?;
        let key = new_key()?;
        let made = params.self_signed(&key).map_err(failed)?;
        Ok(Issued { certificate: made.pem(), key: key.serialize_pem() })
    }

    /// The same where the file has several authorities' certificates, while one takes the place of
    /// another: the authority whose key it is, and its certificate, as PEM.
    ///
    /// # Errors
    /// It is that of none of them.
    pub fn among(certificates: &[u8], key: &str) -> Result<(Authority, Certificate), IssueError> {
        let (first, rest) = Certificate::from_pem(certificates).map_err(IssueError::Authority)?;
        let mut wrong = IssueError::OtherKey;
        for certificate in std::iter::once(first).chain(rest) {
            match Authority::from_pem(certificate.to_pem().as_bytes(), key) {
                Ok(authority) => return Ok((authority, certificate)),
                Err(IssueError::OtherKey) => {}
                Err(error) => wrong = error,
            }
        }
        Err(wrong)
    }

    /// The authority of these files.
    ///
    /// # Errors
    /// They are not those of one authority that [`Authority::create`] made.
    pub fn from_pem(certificate: &[u8], key: &str) -> Result<Authority, IssueError> {
        let (read, _) = Certificate::from_pem(certificate).map_err(IssueError::Authority)?;
        let identity = read.identity().map_err(IssueError::Authority)?;
        if identity.kind != Kind::Authority {
            return Err(IssueError::NoAuthority(identity.to_string()));
        }
        let key = KeyPair::from_pem(key).map_err(|_| IssueError::Key)?;
        if !key.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            return Err(IssueError::Key);
        }
        if read.public_key().map_err(IssueError::Authority)? != key.subject_public_key_info() {
            return Err(IssueError::OtherKey);
        }
        let issuer = Issuer::new(authority(identity)?, key);
        Ok(Authority { cluster: identity.cluster.clone(), issuer })
    }

    /// Whose authority it is.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// A certificate for a node, which is both called and calls: at these addresses or DNS names,
    /// so that clients can tell it from others.
    ///
    /// # Errors
    /// A name, an address or the lifetime makes no sense.
    pub fn node(
        &self,
        name: &str,
        addresses: &[String],
        lifetime: Lifetime,
    ) -> Result<Issued, IssueError> {
        let key = new_key()?;
        let certificate = self.node_of(name, addresses, key.der_bytes(), lifetime)?;
        Ok(Issued { certificate, key: key.serialize_pem() })
    }

    /// The same for a key that the node made itself, of which this is the public half.
    ///
    /// # Errors
    /// As [`Authority::node`], or it is no key.
    pub fn node_of(
        &self,
        name: &str,
        addresses: &[String],
        public: &[u8],
        lifetime: Lifetime,
    ) -> Result<String, IssueError> {
        let mut params = self.params(Kind::Node, name, lifetime)?;
        for address in addresses {
            params.subject_alt_names.push(reachable(address)?);
        }
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let made = params.signed_by(&Public::read(public)?, &self.issuer).map_err(failed)?;
        Ok(made.pem())
    }

    /// A certificate for a client.
    ///
    /// # Errors
    /// The name or the lifetime makes no sense.
    pub fn client(&self, name: &str, lifetime: Lifetime) -> Result<Issued, IssueError> {
        let mut params = self.params(Kind::Client, name, lifetime)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn params(
        &self,
        kind: Kind,
        name: &str,
        lifetime: Lifetime,
    ) -> Result<CertificateParams, IssueError> {
        let identity = Identity::new(&self.cluster, kind, name)?;
        let mut params = named(&identity, name)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        live(&mut params, lifetime)?;
        Ok(params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Issued, IssueError> {
        let key = new_key()?;
        let made = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Issued { certificate: made.pem(), key: key.serialize_pem() })
    }
}

/// What an authority's certificate says, but for its dates: the same whenever it is asked, since
/// what it signs names it.
fn authority(identity: &Identity) -> Result<CertificateParams, IssueError> {
    let mut params = named(identity, &format!("{} authority", identity.cluster))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn named(identity: &Identity, subject: &str) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::default();
    let uri = identity.to_string().try_into().map_err(failed)?;
    params.subject_alt_names = vec![SanType::URI(uri)];
    params.distinguished_name = DistinguishedName::new();
    let subject: String = subject.chars().take(COMMON_NAME_MAX).collect();
    params.distinguished_name.push(DnType::OrganizationName, "Quorate");
    params.distinguished_name.push(DnType::CommonName, subject);
    Ok(params)
}

fn live(params: &mut CertificateParams, lifetime: Lifetime) -> Result<(), IssueError> {
    let Lifetime { since_1970, days } = lifetime;
    if !(1..=DAYS_MAX).contains(&days) {
        return Err(IssueError::Days(days));
    }
    let at = |date: Date| {
        let (year, month, day) = date.parts();
        date_time_ymd(year as i32, month, day)
    };
    params.not_before = at(Date::after(since_1970.saturating_sub(DAY)));
    params.not_after = at(Date::after(since_1970.saturating_add(DAY * days)));
    Ok(())
}

fn reachable(address: &str) -> Result<SanType, IssueError> {
    if let Ok(address) = address.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let wrong = || IssueError::Address(address.chars().take(256).collect());
    // A name that clients could not ask for would help nobody.
    rustls_pki_types::DnsName::try_from(address).map_err(|_| wrong())?;
    Ok(SanType::DnsName(address.try_into().map_err(|_| wrong())?))
}

fn new_key() -> Result<KeyPair, IssueError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)
}

fn failed(error: rcgen::Error) -> IssueError {
    IssueError::Failed(error.to_string())
}
