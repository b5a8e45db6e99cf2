//! Certificates, read and verified: whose they are, and whether the cluster's authority says so.
//!
//! What decides is webpki, with which rustls verifies too. Whose a certificate is stands in its one
//! URI that is an identity; a certificate with two of them is nobody's.

use std::fmt;
use std::time::Duration;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use crate::{Date, Identity, der};

/// A certificate, read and not verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    der: CertificateDer<'static>,
    identities: Vec<Identity>,
    dns: Vec<String>,
    validity: Option<(Duration, Duration)>,
}

/// What whoever shows a certificate wants to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// The side that was called.
    Server,
    /// The side that calls.
    Client,
}

/// Why a certificate is not taken. Nothing changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CertificateError {
    /// No certificate is in the file.
    #[error("there is no certificate: a file begins with -----BEGIN CERTIFICATE-----")]
    Missing,
    /// It is none.
    #[error("the certificate cannot be read: {0}")]
    Unreadable(String),
    /// Nobody who is trusted signed it.
    #[error(
        "the certificate was not signed by this cluster's authority, or by a root of the same name"
    )]
    UnknownIssuer,
    /// It is worth nothing any more.
    #[error("the certificate expired{}", when(" on ", *.0))]
    Expired(Option<Date>),
    /// It is worth nothing yet.
    #[error("the certificate is not valid yet{}; is the clock right?", when(": from ", *.0))]
    NotYet(Option<Date>),
    /// It was made for the other side.
    #[error("the certificate is not for this use (extended key usage)")]
    Usage,
    /// It says nothing that we understand about whose it is, or too much.
    #[error(
        "the certificate does not say whose it is: {0} of its URIs are like quorate://C/node/N"
    )]
    Nobody(usize),
    /// It does not speak for this name or address.
    #[error("the certificate is not for {0}")]
    Name(String),
    /// Something else.
    #[error("the certificate is refused: {0}")]
    Other(String),
}

fn when(before: &str, date: Option<Date>) -> String {
    date.map(|date| format!("{before}{date}")).unwrap_or_default()
}

impl Certificate {
    /// Reads the first one of a PEM file, and what follows it.
    ///
    /// # Errors
    /// There is none, or one that cannot be read.
    pub fn from_pem(pem: &[u8]) -> Result<(Certificate, Vec<Certificate>), CertificateError> {
        let mut all = chain(pem)?.into_iter();
        let first = all.next().ok_or(CertificateError::Missing)?;
        let rest = all.map(|der| Certificate::from_der(&der)).collect::<Result<_, _>>()?;
        Ok((Certificate::from_der(&first)?, rest))
    }

    /// Reads one as it comes from a peer.
    ///
    /// # Errors
    /// It is none.
    pub fn from_der(der: &CertificateDer<'_>) -> Result<Certificate, CertificateError> {
        let read = EndEntityCert::try_from(der)
            .map_err(|error| CertificateError::Unreadable(error.to_string()))?;
        let identities = read.valid_uri_names().filter_map(|uri| uri.parse().ok()).collect();
        let dns = read.valid_dns_names().map(str::to_owned).collect();
        let der = der.clone().into_owned();
        Ok(Certificate { identities, dns, validity: der::validity(&der), der })
    }

    /// Its bytes.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Whose it says it is.
    ///
    /// # Errors
    /// It says nothing about that, or more than one thing.
    pub fn identity(&self) -> Result<&Identity, CertificateError> {
        match &self.identities[..] {
            [identity] => Ok(identity),
            others => Err(CertificateError::Nobody(others.len())),
        }
    }

    /// The DNS names and addresses it speaks for.
    pub fn addresses(&self) -> Vec<String> {
        let addresses = der::addresses(&self.der);
        self.dns.iter().cloned().chain(addresses.iter().map(ToString::to_string)).collect()
    }

    /// From when to when it is valid, since 1970, if it says so in a way that we understand.
    pub fn validity(&self) -> Option<(Duration, Duration)> {
        self.validity
    }

    /// As a file has it.
    pub fn to_pem(&self) -> String {
        let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
        let digits = base64(&self.der);
        for line in digits.as_bytes().chunks(64) {
            text.push_str(str::from_utf8(line).expect("digits of base 64"));
            text.push('\n');
        }
        text + "-----END CERTIFICATE-----\n"
    }

    /// Its SHA-256.
    pub fn sha256(&self) -> [u8; 32] {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.der);
        digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// Its SHA-256, as `openssl x509 -fingerprint -sha256` shows it.
    pub fn fingerprint(&self) -> String {
        let pairs: Vec<String> = self.sha256().iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }

    /// The key that it was made for, as certificates write it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn public_key(&self) -> Result<Vec<u8>, CertificateError> {
        Ok(self.end_entity()?.subject_public_key_info().to_vec())
    }

    fn end_entity(&self) -> Result<EndEntityCert<'_>, CertificateError> {
        EndEntityCert::try_from(&self.der)
            .map_err(|error| CertificateError::Unreadable(error.to_string()))
    }

    /// Whether it speaks for this DNS name or address.
    ///
    /// # Errors
    /// It does not.
    pub fn is_for(&self, name: &str) -> Result<(), CertificateError> {
        let not = || CertificateError::Name(name.chars().take(256).collect());
        let wanted = rustls_pki_types::ServerName::try_from(name).map_err(|_| not())?;
        self.end_entity()?.verify_is_valid_for_subject_name(&wanted).map_err(|_| not())
    }

    fn explain(&self, error: &webpki::Error) -> CertificateError {
        let date = |pick: fn((Duration, Duration)) -> Duration| {
            self.validity.map(|validity| Date::after(pick(validity)))
        };
        match error {
            webpki::Error::CertExpired { .. } => {
                CertificateError::Expired(date(|(_, until)| until))
            }
            webpki::Error::CertNotValidYet { .. } => {
                CertificateError::NotYet(date(|(from, _)| from))
            }
            webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => {
                CertificateError::UnknownIssuer
            }
            webpki::Error::RequiredEkuNotFoundContext(_) | webpki::Error::CaUsedAsEndEntity => {
                CertificateError::Usage
            }
            other => CertificateError::Other(other.to_string()),
        }
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("identities", &self.identities).finish_non_exhaustive()
    }
}

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| CertificateError::Unreadable(error.to_string()))
}

/// Whom the cluster trusts to sign certificates. More than one while an authority is replaced.
#[derive(Clone, Debug)]
pub struct Roots {
    certificates: Vec<CertificateDer<'static>>,
    anchors: Vec<TrustAnchor<'static>>,
}

impl Roots {
    /// Reads a PEM file.
    ///
    /// # Errors
    /// No certificate is there, or one that cannot be read.
    pub fn from_pem(pem: &[u8]) -> Result<Roots, CertificateError> {
        let certificates = chain(pem)?;
        if certificates.is_empty() {
            return Err(CertificateError::Missing);
        }
        let anchor = |der| match webpki::anchor_from_trusted_cert(der) {
            Ok(anchor) => Ok(anchor.to_owned()),
            Err(error) => Err(CertificateError::Unreadable(error.to_string())),
        };
        let anchors = certificates.iter().map(anchor).collect::<Result<_, _>>()?;
        Ok(Roots { certificates, anchors })
    }

    /// Their bytes.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// Verifies that a certificate was signed for this use and is valid now; tells whose it is.
    ///
    /// # Errors
    /// It is not taken.
    pub fn verify<'a>(
        &self,
        certificate: &'a Certificate,
        between: &[CertificateDer<'_>],
        usage: Usage,
        since_1970: Duration,
    ) -> Result<&'a Identity, CertificateError> {
        let read = certificate.end_entity()?;
        let usage = match usage {
            Usage::Server => KeyUsage::server_auth(),
            Usage::Client => KeyUsage::client_auth(),
        };
        let now = UnixTime::since_unix_epoch(since_1970);
        let algorithms = webpki::ALL_VERIFICATION_ALGS;
        read.verify_for_usage(algorithms, &self.anchors, between, now, usage, None, None)
            .map_err(|error| certificate.explain(&error))?;
        certificate.identity()
    }
}
