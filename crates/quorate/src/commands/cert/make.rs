//! Makes certificates.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use quorate_trust::{
    Authority, Certificate, Date, IssueError, Issued, Lifetime, NAME_MAX, is_name,
};

use crate::Outcome;
use crate::commands::keep::{self, Access};

/// Make the authority of a cluster: ca.crt, which everybody needs, and ca.key, which signs.
///
/// Nodes of one cluster must have one authority, so this is run once. An authority that is there
/// already is left as it is.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate cert new-ca rack-7 --dir certs

Exit codes: 0 it is made; 2 it is not, and no file was changed.")]
pub(crate) struct NewCa {
    /// The cluster, as `cluster` of its configuration says it.
    #[arg(value_parser = name)]
    cluster: String,
    /// Where the files go; made if it is not there.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    dir: PathBuf,
    /// How long it is valid.
    #[arg(long, default_value_t = 3650)]
    days: u32,
}

/// Make a certificate for a node: node-NAME.crt and node-NAME.key.
///
/// Nodes know each other by name and cluster; clients know a node by its address, so name all under
/// which they reach it. To renew, give --dir a place for the new files and --ca the old one, then
/// move them over.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate cert node a --address 10.0.0.1 --dir certs
  quorate cert node b --address 10.0.0.2,b.example --ca certs --dir renewed

Exit codes: 0 it is made; 2 it is not, and no file was changed.")]
pub(crate) struct Node {
    /// The node, as `members` of the configuration names it.
    #[arg(value_parser = name)]
    name: String,
    /// An address or DNS name under which clients reach it; repeat it or use commas.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', required = true)]
    address: Vec<String>,
    #[command(flatten)]
    signed: Signed,
}

/// Make a certificate for a client: client-NAME.crt and client-NAME.key.
///
/// It says who the client is; what it may do is said in `[[certificates]]` of the nodes' files.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate cert client ci --dir certs

Exit codes: 0 it is made; 2 it is not, and no file was changed.")]
pub(crate) struct Client {
    /// The client.
    #[arg(value_parser = name)]
    name: String,
    #[command(flatten)]
    signed: Signed,
}

#[derive(clap::Args, Debug)]
struct Signed {
    /// Where the files go; made if it is not there.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    dir: PathBuf,
    /// Where ca.crt and ca.key are, if not there.
    #[arg(long, value_name = "DIRECTORY")]
    ca: Option<PathBuf>,
    /// How long it is valid.
    #[arg(long, default_value_t = 90)]
    days: u32,
}

pub(super) fn new_ca(args: &NewCa) -> anyhow::Result<Outcome> {
    let lifetime = Lifetime { since_1970: keep::now()?, days: args.days };
    let made = Authority::create(&args.cluster, lifetime).map_err(unchanged)?;
    write(&args.dir, "ca", &made)?;
    crate::print("keep ca.key where no node runs: whoever has it can be any node")?;
    Ok(Outcome::Good)
}

pub(super) fn node(args: &Node) -> anyhow::Result<Outcome> {
    let (authority, lifetime) = args.signed.authority()?;
    let made = authority.node(&args.name, &args.address, lifetime).map_err(unchanged)?;
    write(&args.signed.dir, &format!("node-{}", args.name), &made)
}

pub(super) fn client(args: &Client) -> anyhow::Result<Outcome> {
    let (authority, lifetime) = args.signed.authority()?;
    let made = authority.client(&args.name, lifetime).map_err(unchanged)?;
    write(&args.signed.dir, &format!("client-{}", args.name), &made)
}

impl Signed {
    fn authority(&self) -> anyhow::Result<(Authority, Lifetime)> {
        let folder = self.ca.as_ref().unwrap_or(&self.dir);
        let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
        if !certificate.exists() {
            bail!(
                "there is no authority in {}: name its directory with --ca, or make one with \
                 `quorate cert new-ca CLUSTER`; nothing was written",
                folder.display()
            );
        }
        let pem = std::fs::read(&certificate)
            .with_context(|| format!("cannot read {}", certificate.display()))?;
        let secret = std::fs::read_to_string(&key)
            .with_context(|| format!("cannot read {}; nothing was written", key.display()))?;
        let authority = Authority::from_pem(&pem, &secret)
            .with_context(|| format!("{}; nothing was written", folder.display()))?;
        Ok((authority, Lifetime { since_1970: keep::now()?, days: self.days }))
    }
}

fn unchanged(error: IssueError) -> anyhow::Error {
    anyhow::Error::new(error).context("nothing was written")
}

fn name(text: &str) -> Result<String, String> {
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("a name has 1 to {NAME_MAX} letters, digits, and . _ - :")),
    }
}

fn write(folder: &Path, stem: &str, made: &Issued) -> anyhow::Result<Outcome> {
    let (certificate, key) =
        (folder.join(format!("{stem}.crt")), folder.join(format!("{stem}.key")));
    let files = [
        (&*key, &*made.key, Access::Owner),
        (&*certificate, &*made.certificate, Access::Everybody),
    ];
    keep::create(folder, &files)?;
    let (read, _) = Certificate::from_pem(made.certificate.as_bytes())?;
    let until = read.validity().map(|(_, until)| format!(", valid until {}", Date::after(until)));
    let (whose, until) = (read.identity()?, until.unwrap_or_default());
    crate::print(format_args!("{}: {whose}{until}", certificate.display()))?;
    crate::print(format_args!("{}: its key, for its owner alone", key.display()))?;
    Ok(Outcome::Good)
}
