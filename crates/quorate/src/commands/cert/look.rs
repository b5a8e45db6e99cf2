//! Looks at certificates.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use quorate_cli::cluster::{self, Json};
use quorate_trust::{Certificate, CertificateError, DAY, Date, Kind, Roots, Usage};

use crate::Outcome;
use crate::commands::keep;

/// Show what certificates say: whose they are, where they are valid and until when.
///
/// Nothing is verified; see `quorate cert verify`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate cert show certs/ca.crt certs/node-a.crt

Exit codes: 0 they are shown; 2 one cannot be read.")]
pub(crate) struct Show {
    /// Files with certificates, as PEM.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    json: Json,
}

/// Say whether a certificate is good: signed by the authority, valid now, for its use.
///
/// Asks what the other side of a connection would ask.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate cert verify certs/node-a.crt --ca certs/ca.crt
  quorate cert verify certs/node-a.crt --ca certs/ca.crt --address 10.0.0.1

Exit codes: 0 it is good; 1 it is not; 2 a file cannot be read.")]
pub(crate) struct Verify {
    /// The certificate, and after it in the file those between it and the authority's.
    file: PathBuf,
    /// The authority's certificate, or several.
    #[arg(long, value_name = "FILE", default_value = "ca.crt")]
    ca: PathBuf,
    /// Whether clients would find it at this address or DNS name.
    #[arg(long)]
    address: Option<String>,
}

/// What is in a file.
#[derive(serde::Serialize)]
struct Shown {
    file: String,
    identity: Option<String>,
    addresses: Vec<String>,
    valid_from: Option<String>,
    valid_until: Option<String>,
    /// Negative if it has expired.
    days_left: Option<i64>,
    sha256: String,
}

impl Shown {
    fn new(file: &Path, certificate: &Certificate, now: Duration) -> Shown {
        let (from, until) = certificate.validity().unzip();
        let days = |time: Duration| (time.as_secs() / DAY.as_secs()) as i64;
        Shown {
            file: file.display().to_string(),
            identity: certificate.identity().ok().map(ToString::to_string),
            addresses: certificate.addresses(),
            valid_from: from.map(|from| Date::after(from).to_string()),
            valid_until: until.map(|until| Date::after(until).to_string()),
            days_left: until.map(|until| days(until) - days(now)),
            sha256: certificate.fingerprint(),
        }
    }

    fn text(&self) -> String {
        let or = |text: &Option<String>, other: &str| text.clone().unwrap_or_else(|| other.into());
        let left = match self.days_left {
            Some(days @ ..0) => format!("expired {} days ago", -days),
            Some(0) => "its last day".into(),
            Some(days) => format!("{days} days left"),
            None => "unknown".into(),
        };
        let mut text = format!("{}\n", self.file);
        let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<10} {value}\n"));
        line("identity", &or(&self.identity, "none that is ours"));
        if !self.addresses.is_empty() {
            line("addresses", &self.addresses.join(", "));
        }
        line("valid", &format!("{} to {}", or(&self.valid_from, "?"), or(&self.valid_until, "?")));
        line("", &left);
        line("sha256", &self.sha256);
        text
    }
}

pub(super) fn show(args: &Show) -> anyhow::Result<Outcome> {
    let now = keep::now()?;
    let mut shown = Vec::new();
    for file in &args.files {
        let (first, rest) = read(file)?;
        shown.extend([&first].into_iter().chain(&rest).map(|one| Shown::new(file, one, now)));
    }
    cluster::print(args.json.json, &shown, || shown.iter().map(Shown::text).collect())?;
    Ok(Outcome::Good)
}

pub(super) fn verify(args: &Verify) -> anyhow::Result<Outcome> {
    let (certificate, between) = read(&args.file)?;
    let pem = std::fs::read(&args.ca)
        .with_context(|| format!("cannot read {}; name it with --ca", args.ca.display()))?;
    let roots = Roots::from_pem(&pem).with_context(|| args.ca.display().to_string())?;
    let shown = args.file.display();
    match is_good(&certificate, &between, &roots, args.address.as_deref()) {
        Ok(()) => {
            let whose = certificate.identity()?;
            crate::print(format_args!("{shown} is good: {whose}"))?;
            Ok(Outcome::Good)
        }
        Err(error) => {
            crate::print(format_args!("{shown} is not good: {error}"))?;
            Ok(Outcome::Broken)
        }
    }
}

/// Nodes are called and call; clients only call.
fn is_good(
    certificate: &Certificate,
    between: &[Certificate],
    roots: &Roots,
    address: Option<&str>,
) -> Result<(), CertificateError> {
    let now = keep::now().map_err(|error| CertificateError::Other(error.to_string()))?;
    let between: Vec<_> = between.iter().map(|one| one.der().clone()).collect();
    let whose = roots.verify(certificate, &between, Usage::Client, now)?;
    if whose.kind == Kind::Node {
        roots.verify(certificate, &between, Usage::Server, now)?;
    }
    address.map_or(Ok(()), |address| certificate.is_for(address))
}

fn read(file: &Path) -> anyhow::Result<(Certificate, Vec<Certificate>)> {
    let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Certificate::from_pem(&pem).with_context(|| file.display().to_string())
}
