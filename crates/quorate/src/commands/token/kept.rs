//! Tokens of the charter: made here, and known to every node by their hashes.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use anyhow::{Context, bail};
use quorate_api::{AmendedView, ProblemKind, TokenRequest, TokenView, TokensView};
use quorate_cli::cluster::{self, Cluster, Json, table};
use quorate_client::{ViewError, Views};
use quorate_trust::Secret;

use super::super::keep::{self, Access};
use super::super::pool::{self, Again, Changing};
use super::super::right::Fields;
use super::{Life, name};
use crate::Outcome;

/// Make a token that every node takes, a moment later.
///
/// What it may do is a right of the charter (`quorate right`), or is said here: then a right of
/// the token's name is made along with it. The secret is printed once, or written to a file, and
/// kept nowhere: it is drawn here, and nodes are told its SHA-256.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate token create ci --may see,claim --pools 'ci-*' --most-units 4
  quorate token create nightly --right ci --days 30 --secret-file nightly.token

Exit codes: 0 it is made; 2 it is not, and nothing changed, or, if that is what is said, it is not
known whether it is.")]
pub(super) struct Create {
    /// Whose it is: shown wherever its claims are.
    #[arg(value_parser = name)]
    name: String,
    /// The right that it gives.
    #[arg(long, value_name = "NAME",
        conflicts_with_all = ["may", "pools", "most_units", "clients"])]
    right: Option<String>,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    life: Life,
    #[command(flatten)]
    how: Making,
}

/// Give a token another secret; the one before is worth nothing at once.
///
/// What it may do stays as it is, and so does whose claims are its: they go by its name.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate token rotate ci
  quorate token rotate ci --days 30 --secret-file ci.token

Exit codes: 0 it has another secret; 2 it has not, and nothing changed, or, if that is what is said,
it is not known whether it has.")]
pub(super) struct Rotate {
    /// Whose it is.
    #[arg(value_parser = name)]
    name: String,
    #[command(flatten)]
    life: Life,
    #[command(flatten)]
    how: Making,
}

/// Where the secret goes, and who is asked.
#[derive(clap::Args, Debug)]
struct Making {
    /// Write the secret there, readable for you alone, instead of printing it. With --request-id, a
    /// secret that is there already is taken: so a repetition means the same.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    again: Again,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// Take a token away, at every node: whoever is connected with it is cut off.
///
/// What it held is lost when its lease is over, since nobody renews it; `quorate revoke` ends it
/// before. Its right stays: `quorate right delete` takes that away.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate token revoke ci

Exit codes: 0 it is worth nothing; 2 it is as before, and nothing changed, or, if that is what is
said, it is not known whether it did.")]
pub(super) struct Revoke {
    /// Whose it is.
    name: String,
    #[command(flatten)]
    how: Changing,
}

/// List the tokens that are good at a node: those of the charter, and those of its file.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate token list
  quorate token list --json")]
pub(super) struct List {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// Show what a token may do, and its generation.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate token show ci")]
pub(super) struct Show {
    /// Whose it is.
    name: String,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// What is printed of a token that was made.
#[derive(serde::Serialize)]
struct Made {
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    name: String,
    version: u64,
    changes: Vec<String>,
}

pub(super) fn create(args: &Create) -> anyhow::Result<Outcome> {
    if args.right.is_none() && !args.fields.say_what() {
        bail!("say what it may do: --may see,claim, or --right NAME; nothing changed");
    }
    let definition = args.right.is_none().then(|| args.fields.whole());
    let expires = args.life.expires()?;
    let (right, sha256) = (args.right.clone(), String::new());
    let dry_run = args.how.dry_run;
    let request = TokenRequest { sha256, right, definition, expires, if_generation: None, dry_run };
    cluster::block_on(async {
        let views = args.how.again.views(&args.how.cluster)?;
        args.how.make(&views, &args.name, request).await
    })
}

pub(super) fn rotate(args: &Rotate) -> anyhow::Result<Outcome> {
    let expires = args.life.expires()?;
    cluster::block_on(async {
        let views = args.how.again.views(&args.how.cluster)?;
        let TokenView { right, generation, source, .. } = views.token(&args.name).await?;
        let Some(right) = right else {
            bail!(
                "token {:?} is in the {source}: put another sha256 there, which `quorate token \
                 new` prints; nothing changed",
                args.name
            );
        };
        let request = TokenRequest {
            sha256: String::new(),
            right: Some(right),
            definition: None,
            expires,
            if_generation: Some(generation),
            dry_run: args.how.dry_run,
        };
        args.how.make(&views, &args.name, request).await
    })
}

impl Making {
    async fn make(
        &self,
        views: &Views,
        name: &str,
        request: TokenRequest,
    ) -> anyhow::Result<Outcome> {
        let (secret, written) = self.secret()?;
        let request = TokenRequest { sha256: secret.digest().to_string(), ..request };
        let made = views.put_token(name, &request).await;
        let made = made.map_err(|error| self.failed(name, written, error))?;
        let AmendedView { version, changes } = made;
        let shown = version > 0 && self.secret_file.is_none();
        let token = shown.then(|| secret.reveal().to_owned());
        let made = Made { token, name: name.to_owned(), version, changes };
        cluster::print(self.json.json, &made, || made.text())?;
        Ok(Outcome::Good)
    }

    /// The secret, and whether it was written to a file that was not there before.
    fn secret(&self) -> anyhow::Result<(Secret, bool)> {
        let random = || Secret::random().context("nothing was changed");
        match &self.secret_file {
            None => Ok((random()?, false)),
            Some(_) if self.dry_run => Ok((random()?, false)),
            Some(file) if self.again.id().is_some() && file.exists() => Ok((kept(file)?, false)),
            Some(file) => {
                let secret = random()?;
                let line = format!("{}\n", secret.reveal());
                keep::create("".as_ref(), &[(file, &line, Access::Owner)])?;
                Ok((secret, true))
            }
        }
    }

    /// A secret of which it is not known whether it is good is kept, and what says so.
    fn failed(&self, name: &str, written: bool, error: ViewError) -> anyhow::Error {
        let refused =
            matches!(&error, ViewError::Problem(problem) if problem.kind != ProblemKind::Unknown);
        match &self.secret_file {
            Some(file) if written && refused => {
                // Ours, from a moment ago, and good for nothing.
                drop(std::fs::remove_file(file));
                error.into()
            }
            _ if refused => error.into(),
            Some(file) => anyhow::Error::new(error).context(format!(
                "it is not known whether token {name:?} has the secret in {}: `quorate token show \
                 {name}` says how it is, and --request-id makes a repetition harmless",
                file.display()
            )),
            None => anyhow::Error::new(error).context(format!(
                "it is not known whether token {name:?} was changed; if it was, nobody has its \
                 secret: `quorate token show {name}` says how it is, `quorate token rotate {name}` \
                 gives it another"
            )),
        }
    }
}

fn kept(file: &Path) -> anyhow::Result<Secret> {
    let shown = file.display();
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {shown}; nothing changed"))?;
    Secret::from_str(&text).with_context(|| format!("{shown}; nothing changed"))
}

impl Made {
    fn text(&self) -> String {
        let secret = match &self.token {
            Some(token) => format!("{token}\n\n# The line above is the secret, shown this once.\n"),
            None => String::new(),
        };
        let lines: String = self.changes.iter().map(|line| format!("{line}\n")).collect();
        match self.version {
            0 => format!("{lines}nothing was changed\n"),
            version => format!("{secret}{lines}charter version {version}\n"),
        }
    }
}

pub(super) fn revoke(args: &Revoke) -> anyhow::Result<Outcome> {
    let Changing { if_generation, dry_run, .. } = args.how;
    cluster::block_on(async {
        let views = args.how.again.views(&args.how.cluster)?;
        let gone = views.revoke_token(&args.name, if_generation, dry_run).await?;
        pool::print(args.how.json, &gone)
    })
}

pub(super) fn list(args: &List) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let view = args.cluster.views()?.tokens().await?;
        cluster::print(args.json.json, &view, || listed(&view))?;
        Ok(Outcome::Good)
    })
}

fn listed(view: &TokensView) -> String {
    let row = |token: &TokenView| {
        let source = match token.hidden {
            true => format!("{}, worth nothing here", token.source),
            false => token.source.clone(),
        };
        vec![
            token.name.clone(),
            token.right.clone().unwrap_or_else(|| "-".into()),
            token.may.join(","),
            token.pools.join(","),
            token.most_units.map_or_else(|| "any".into(), |most| most.to_string()),
            token.expires.clone().unwrap_or_else(|| "never".into()),
            source,
        ]
    };
    let rows: Vec<Vec<String>> = view.tokens.iter().map(row).collect();
    let header = ["token", "right", "may", "pools", "most units", "expires", "from"];
    let mut text = table(&header, &rows);
    text.push_str(&format!("charter version {}\n", view.version));
    text + &doubt(view.problem.as_deref())
}

/// That there may be a later version.
pub(crate) fn doubt(problem: Option<&str>) -> String {
    problem.map(|why| format!("as this node knows it: {why}\n")).unwrap_or_default()
}

pub(super) fn show(args: &Show) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let view = args.cluster.views()?.token(&args.name).await?;
        cluster::print(args.json.json, &view, || shown(&view))?;
        Ok(Outcome::Good)
    })
}

fn shown(view: &TokenView) -> String {
    let TokenView { name, source, right, generation, may, pools, clients, .. } = view;
    let mut text = match right {
        Some(right) => format!("token {name}, right {right}, generation {generation}\n"),
        None => format!("token {name} is in the {source}, and changes there\n"),
    };
    let list = |what: &str, all: &[String]| match all {
        [] => String::new(),
        all => format!("{what} = {}\n", pool::quoted_all(all)),
    };
    text += &(list("may", may) + &list("pools", pools));
    if let Some(most) = view.most_units {
        text += &format!("most_units = {most}\n");
    }
    text += &list("clients", clients);
    if let Some(expires) = &view.expires {
        text += &format!("expires = {}\n", pool::quoted(expires));
    }
    text
}
