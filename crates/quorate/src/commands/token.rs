//! `quorate token`: what a client shows to be let in. Those for the nodes' files are here, those of
//! the charter in `token/kept.rs`.

mod kept;

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use quorate_cli::cluster::{self, Json};
use quorate_trust::{DAY, Date, NAME_MAX, Pattern, Right, Secret, is_name};

pub(super) use self::kept::doubt;
use super::keep::{self, Access};
use crate::Outcome;

/// Make, list and take away tokens, which clients show to be let in.
///
/// In a cluster with a charter every node takes a token that `create` made, until `revoke` takes
/// it away, and nothing is put into files (docs/rights.md). `new` prints an entry for files.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    Create(kept::Create),
    Rotate(kept::Rotate),
    Revoke(kept::Revoke),
    List(kept::List),
    Show(kept::Show),
    New(New),
}

/// Make a token for the nodes' files: the secret for its owner, and the entry.
///
/// The secret is printed once, or written to a file, and kept nowhere: the entry has only its
/// SHA-256. Put the entry into the file of every node, and send them SIGHUP. As soon as a file has
/// such entries, nothing but health is open to those without a token.
///
/// Rights: `see` reads pools and their claims; `claim` makes claims and renews, ends and reads its
/// own; `revoke` ends those of others; `admin` changes pools, and has all the rest.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate token new ci --may see,claim --pools 'ci-*' --most-units 4
  quorate token new ops --may admin --days 30 --secret-file ops.token >> n1.toml

Exit codes: 0 it is made; 2 it is not, and nothing was written.")]
struct New {
    /// Whose it is: shown wherever its claims are.
    #[arg(value_parser = name)]
    name: String,
    /// What it may do: see, claim, revoke, admin.
    #[arg(long, value_name = "RIGHTS", value_delimiter = ',', required = true,
        value_parser = Right::from_str)]
    may: Vec<Right>,
    /// In which pools: names, or patterns with one *.
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',', default_value = "*",
        value_parser = Pattern::from_str)]
    pools: Vec<Pattern>,
    /// Most units of one claim.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    most_units: Option<u32>,
    /// What its clients may call themselves, like 'ci@*'; without it they are called NAME.
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',', value_parser = Pattern::from_str)]
    clients: Vec<Pattern>,
    #[command(flatten)]
    life: Life,
    /// Write the secret there, readable for you alone, and print only the entry.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
}

/// How long a token is good.
#[derive(clap::Args, Debug)]
struct Life {
    /// After how many days it is worth nothing.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// It never expires.
    #[arg(long, conflicts_with = "days")]
    forever: bool,
}

impl Life {
    /// The day from which it is worth nothing.
    fn expires(&self) -> anyhow::Result<Option<String>> {
        match self.forever {
            true => Ok(None),
            false => Ok(Some(Date::after(keep::now()? + DAY * self.days).to_string())),
        }
    }
}

/// An entry of the configuration.
#[derive(serde::Serialize)]
struct Entry {
    name: String,
    sha256: String,
    may: Vec<String>,
    pools: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_units: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clients: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

#[derive(serde::Serialize)]
struct Made {
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    entry: Entry,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.verb {
        Verb::Create(args) => kept::create(args),
        Verb::Rotate(args) => kept::rotate(args),
        Verb::Revoke(args) => kept::revoke(args),
        Verb::List(args) => kept::list(args),
        Verb::Show(args) => kept::show(args),
        Verb::New(args) => new(args),
    }
}

fn new(args: &New) -> anyhow::Result<Outcome> {
    let secret = Secret::random().context("nothing was written")?;
    let expires = args.life.expires()?;
    let texts = |patterns: &[Pattern]| patterns.iter().map(ToString::to_string).collect();
    let entry = Entry {
        name: args.name.clone(),
        sha256: secret.digest().to_string(),
        may: words(&args.may),
        pools: texts(&args.pools),
        most_units: args.most_units,
        clients: texts(&args.clients),
        expires,
    };
    if let Some(file) = &args.secret_file {
        let line = format!("{}\n", secret.reveal());
        keep::create("".as_ref(), &[(file, &line, Access::Owner)])?;
    }
    let token = args.secret_file.is_none().then(|| secret.reveal().to_owned());
    let made = Made { token, entry };
    cluster::print(args.json.json, &made, || made.text())?;
    Ok(Outcome::Good)
}

impl Made {
    fn text(&self) -> String {
        let secret = match &self.token {
            Some(token) => format!("{token}\n\n# The line above is the secret, shown this once.\n"),
            None => String::new(),
        };
        secret + &self.entry.toml()
    }
}

impl Entry {
    /// As the configuration has it. Nothing in it has to be escaped: names, patterns, digits.
    fn toml(&self) -> String {
        let Entry { name, sha256, may, pools, most_units, clients, expires } = self;
        let mut text = format!("[[tokens]]\nname = {name:?}\nsha256 = {sha256:?}\n");
        text.push_str(&format!("may = {may:?}\npools = {pools:?}\n"));
        if let Some(most) = most_units {
            text.push_str(&format!("most_units = {most}\n"));
        }
        if !clients.is_empty() {
            text.push_str(&format!("clients = {clients:?}\n"));
        }
        if let Some(expires) = expires {
            text.push_str(&format!("expires = {expires:?}\n"));
        }
        text
    }
}

/// Rights as they are written, the least first, each once.
pub(super) fn words(may: &[Right]) -> Vec<String> {
    let mut may = may.to_vec();
    may.sort_unstable();
    may.dedup();
    may.iter().map(ToString::to_string).collect()
}

pub(super) fn name(text: &str) -> Result<String, String> {
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("a name has 1 to {NAME_MAX} letters, digits, and . _ - :")),
    }
}
