//! `quorate right`: what tokens of the charter may do.

use std::str::FromStr as _;

use anyhow::bail;
use quorate_api::{AmendRequest, RightView, RightsView};
use quorate_cli::cluster::{self, Cluster, Json, table};
use quorate_trust::{Pattern, Right};

use super::pool::{self, Changing, quoted_all};
use super::token::{doubt, name, words};
use crate::Outcome;

/// Say what tokens of the charter may do.
///
/// A right is what an entry of `[[tokens]]` in a file says beside its name, secret and expiry
/// (docs/rights.md). Tokens have one right each, by its name; whoever changes the right changes
/// what all of them may do, at every node, also while they are connected.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    Set(Set),
    Delete(Delete),
    List(List),
    Show(Show),
}

/// Make a right, or change one: what is not said stays as it is.
///
/// Whoever is connected with a token that has it is cut off, and comes again with what it may now.
///
/// Rights: `see` reads pools and their claims; `claim` makes claims and renews, ends and reads its
/// own; `revoke` ends those of others; `admin` changes pools, and has all the rest.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate right set ci --may see,claim --pools 'ci-*' --most-units 4
  quorate right set ci --may see
  quorate right set ci most_units=

Exit codes: 0 it is so; 2 it is not, and nothing changed, or, if that is what is said, it is not
known whether it did.")]
struct Set {
    /// Its name.
    #[arg(value_parser = name)]
    name: String,
    /// What is not said of it any more: most_units= or clients=.
    #[arg(value_name = "FIELD=")]
    without: Vec<String>,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    how: Changing,
}

/// What a right says.
#[derive(clap::Args, Debug)]
pub(super) struct Fields {
    /// What it may do: see, claim, revoke, admin.
    #[arg(long, value_name = "RIGHTS", value_delimiter = ',', value_parser = Right::from_str)]
    may: Vec<Right>,
    /// In which pools: names, or patterns with one *.
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',', value_parser = Pattern::from_str)]
    pools: Vec<Pattern>,
    /// Most units of one claim.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    most_units: Option<u32>,
    /// What clients may call themselves, like 'ci@*'; without it they are called as their token is.
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',', value_parser = Pattern::from_str)]
    clients: Vec<Pattern>,
}

/// Delete a right that no token has.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate right delete ci

Exit codes: 0 it is gone; 2 it is not, and nothing changed, or, if that is what is said, it is not
known whether it is.")]
struct Delete {
    /// Its name.
    name: String,
    #[command(flatten)]
    how: Changing,
}

/// List the rights of the charter, and the tokens that have them.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate right list
  quorate right list --json")]
struct List {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// Show what a right allows, and its generation.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate right show ci")]
struct Show {
    /// Its name.
    name: String,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.verb {
        Verb::Set(args) => set(args),
        Verb::Delete(args) => delete(args),
        Verb::List(List { cluster, json }) => cluster::block_on(async {
            let view = cluster.views()?.rights().await?;
            cluster::print(json.json, &view, || listed(&view))?;
            Ok(Outcome::Good)
        }),
        Verb::Show(Show { name, cluster, json }) => cluster::block_on(async {
            let view = cluster.views()?.right(name).await?;
            cluster::print(json.json, &view, || shown(&view))?;
            Ok(Outcome::Good)
        }),
    }
}

fn set(args: &Set) -> anyhow::Result<Outcome> {
    let mut without = Vec::new();
    for word in &args.without {
        match word.strip_suffix('=') {
            Some(field) => without.push(field.to_owned()),
            None => bail!("{word:?}: write FIELD=, like most_units=; nothing changed"),
        }
    }
    let definition = args.fields.lines();
    let Changing { if_generation, dry_run, .. } = args.how;
    let request = AmendRequest { definition, without, if_generation, dry_run };
    cluster::block_on(async {
        let views = args.how.again.views(&args.how.cluster)?;
        pool::print(args.how.json, &views.set_right(&args.name, &request).await?)
    })
}

fn delete(args: &Delete) -> anyhow::Result<Outcome> {
    let Changing { if_generation, dry_run, .. } = args.how;
    cluster::block_on(async {
        let views = args.how.again.views(&args.how.cluster)?;
        pool::print(args.how.json, &views.delete_right(&args.name, if_generation, dry_run).await?)
    })
}

impl Fields {
    /// Whether they say what is allowed at all.
    pub(super) fn say_what(&self) -> bool {
        !self.may.is_empty()
    }

    /// As a file has them, each in a line.
    fn lines(&self) -> String {
        let texts = |patterns: &[Pattern]| -> Vec<String> {
            patterns.iter().map(ToString::to_string).collect()
        };
        let list = |what: &str, all: Vec<String>| match &all[..] {
            [] => String::new(),
            all => format!("{what} = {}\n", quoted_all(all)),
        };
        let most = self.most_units.map(|most| format!("most_units = {most}\n"));
        list("may", words(&self.may))
            + &list("pools", texts(&self.pools))
            + &most.unwrap_or_default()
            + &list("clients", texts(&self.clients))
    }

    /// The same of something new: all pools, unless some are said.
    pub(super) fn whole(&self) -> String {
        let all = if self.pools.is_empty() { "pools = [\"*\"]\n" } else { "" };
        all.to_owned() + &self.lines()
    }
}

fn listed(view: &RightsView) -> String {
    let row = |right: &RightView| {
        let says: Vec<&str> = right.definition.lines().collect();
        vec![right.name.clone(), says.join(", "), right.tokens.join(", ")]
    };
    let rows: Vec<Vec<String>> = view.rights.iter().map(row).collect();
    let text = table(&["right", "says", "tokens"], &rows);
    format!("{text}charter version {}\n{}", view.version, doubt(view.problem.as_deref()))
}

fn shown(view: &RightView) -> String {
    let RightView { name, generation, definition, tokens } = view;
    let tokens = match &tokens[..] {
        [] => "no token has it\n".to_owned(),
        tokens => format!("tokens: {}\n", tokens.join(", ")),
    };
    format!("right {name}, generation {generation}\n{definition}{tokens}")
}
