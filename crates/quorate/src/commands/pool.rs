//! `quorate pool`: pools that the charter names, made, changed and deleted while everything runs.

use anyhow::bail;
use quorate_api::{AmendRequest, AmendedView, ClaimId, DefineRequest, DefinitionView};
use quorate_client::Views;

use super::cluster::{self, Cluster, Json};
use super::pools;
use crate::Outcome;

/// Make, change, delete and show pools, while everything runs.
///
/// For clusters with a charter (docs/charter.md). Pools of the nodes' files are listed and shown,
/// and change in the files.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    Create(Create),
    Set(Set),
    Delete(Delete),
    Show(Show),
    List(pools::Args),
}

/// Make a pool: every node has it a moment later.
///
/// Its fields are those of [[pools]] in a configuration (docs/configuration.md); what is not said
/// is as there. It is a pool of `central` whose seat moves: other protocols are for the nodes'
/// files.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate pool create licences --units 4
  quorate pool create gpus --unit-names gpu0,gpu1,gpu2 --lease 30s
  quorate pool create ci --units 20 --claim-max 4 --fairness backfill:3
  quorate pool create big --units 8 --set retry=200ms

Exit codes: 0 it is there; 2 it is not, and nothing changed, or, if that is what is said, it is not
known whether it is.")]
struct Create {
    /// Its name.
    name: String,
    #[command(flatten)]
    fields: Fields,
    /// Their names.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "units")]
    unit_names: Vec<String>,
    /// Any other field of [[pools]].
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    again: Again,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// What most pools are told.
#[derive(clap::Args, Debug)]
struct Fields {
    /// How many units it has.
    #[arg(long, value_name = "N")]
    units: Option<u32>,
    /// How long a grant lasts without renewal: 10s unless said otherwise.
    #[arg(long, value_name = "SPAN")]
    lease: Option<String>,
    /// Who may pass whom: fifo, or backfill:N.
    #[arg(long)]
    fairness: Option<String>,
    /// Least units of a claim.
    #[arg(long, value_name = "N")]
    claim_min: Option<u32>,
    /// Most units of a claim.
    #[arg(long, value_name = "N")]
    claim_max: Option<u32>,
}

/// Change a pool while everything runs: every node has it a moment later.
///
/// What is not said stays as it is. Units that come are granted at once; units that go are granted
/// no more, and whoever has one keeps it until it is given back. Claims that can never be granted
/// now are refused, at once.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate pool set licences --units 6
  quorate pool set ci --claim-max 2 --fairness fifo --dry-run
  quorate pool set big retry=200ms
  quorate pool set ci claim_max=
  quorate pool set licences --units 4 --if-generation 7

Exit codes: 0 it is so; 2 it is not, and nothing changed, or, if that is what is said, it is not
known whether it did.")]
struct Set {
    /// Its name.
    name: String,
    /// Any field of [[pools]], and what it is now; FIELD= alone takes back what was said of it.
    #[arg(value_name = "FIELD=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    how: Changing,
}

/// Delete a pool while everything runs: it grants nothing any more.
///
/// Claims that wait are refused. If anybody holds units of it, it is refused, and says how many do,
/// unless it is said what becomes of them.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate pool delete licences
  quorate pool delete licences --drain
  quorate pool delete licences --revoke --if-generation 7

Exit codes: 0 it is deleted; 2 it is not, and nothing changed, or, if that is what is said, it is
not known whether it is.")]
struct Delete {
    /// Its name.
    name: String,
    /// Whoever holds units keeps them until they are given back.
    #[arg(long, conflicts_with = "revoke")]
    drain: bool,
    /// Whoever holds units is to stop, at the latest when the lease is over.
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    how: Changing,
}

/// On what condition something that is there changes, and who is asked.
#[derive(clap::Args, Debug)]
pub(super) struct Changing {
    /// Only if this is its generation, as `show` says it.
    #[arg(long, value_name = "N")]
    pub(super) if_generation: Option<u64>,
    /// Only say what would be done.
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) again: Again,
    #[command(flatten)]
    pub(super) cluster: Cluster,
    #[command(flatten)]
    pub(super) json: Json,
}

/// How a change is repeated.
#[derive(clap::Args, Debug)]
pub(super) struct Again {
    /// A name for this request, 1 to 32 hexadecimal digits or a UUID: repeated under it, it is
    /// done once.
    #[arg(long, value_name = "ID")]
    request_id: Option<ClaimId>,
}

/// Show what a pool is, and its generation.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate pool show licences
  quorate pool show licences --json")]
struct Show {
    /// Its name.
    name: String,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    match args.verb {
        Verb::Create(args) => create(&args),
        Verb::Set(args) => set(&args),
        Verb::Delete(args) => delete(&args),
        Verb::Show(args) => show(&args),
        Verb::List(args) => pools::run(args),
    }
}

fn create(args: &Create) -> anyhow::Result<Outcome> {
    let definition = args.definition()?;
    cluster::block_on(async {
        let views = args.again.views(&args.cluster)?;
        let made = views.create_pool(&args.name, &DefineRequest { definition }).await?;
        print(args.json, &made)
    })
}

fn set(args: &Set) -> anyhow::Result<Outcome> {
    let (without, set): (Vec<&String>, Vec<&String>) =
        args.set.iter().partition(|word| word.ends_with('='));
    let without = without.iter().map(|word| word.trim_end_matches('=').trim().to_owned()).collect();
    let set: Vec<String> = set.into_iter().cloned().collect();
    let definition = args.fields.lines() + &fields(&set)?;
    let Changing { if_generation, dry_run, .. } = args.how;
    let request = AmendRequest { definition, without, if_generation, dry_run };
    cluster::block_on(async {
        let views = args.how.again.views(&args.how.cluster)?;
        print(args.how.json, &views.amend_pool(&args.name, &request).await?)
    })
}

fn delete(args: &Delete) -> anyhow::Result<Outcome> {
    let holders = match (args.drain, args.revoke) {
        (true, _) => Some("drain"),
        (_, true) => Some("revoke"),
        _ => None,
    };
    let Changing { if_generation, dry_run, .. } = args.how;
    cluster::block_on(async {
        let views = args.how.again.views(&args.how.cluster)?;
        let gone = views.delete_pool(&args.name, holders, if_generation, dry_run).await?;
        print(args.how.json, &gone)
    })
}

fn show(args: &Show) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let view = args.cluster.views()?.definition(&args.name).await?;
        cluster::print(args.json.json, &view, || shown(&view))?;
        Ok(Outcome::Good)
    })
}

fn shown(view: &DefinitionView) -> String {
    let DefinitionView { pool, source, generation, definition, .. } = view;
    match source.as_str() {
        "charter" => format!("pool {pool}, generation {generation}\n{definition}"),
        _ => format!(
            "pool {pool} is one of the nodes' files, and changes there; `quorate pools {pool}` \
             shows it\n"
        ),
    }
}

pub(super) fn print(json: Json, made: &AmendedView) -> anyhow::Result<Outcome> {
    cluster::print(json.json, made, || {
        let lines: String = made.changes.iter().map(|line| format!("{line}\n")).collect();
        match made.version {
            0 => format!("{lines}nothing was changed\n"),
            version => format!("{lines}charter version {version}\n"),
        }
    })?;
    Ok(Outcome::Good)
}

impl Again {
    /// The name of the request, if whoever asks may repeat it.
    pub(super) fn id(&self) -> Option<ClaimId> {
        self.request_id
    }

    pub(super) fn views(&self, cluster: &Cluster) -> anyhow::Result<Views> {
        Ok(cluster.views()?.with_request_id(self.request_id))
    }
}

impl Create {
    /// The same as a file would say it.
    fn definition(&self) -> anyhow::Result<String> {
        let names: Vec<String> = self.unit_names.iter().map(|name| quoted(name)).collect();
        let names = match names.is_empty() {
            true => String::new(),
            false => format!("unit_names = [{}]\n", names.join(", ")),
        };
        let said = [self.fields.units.is_some(), !names.is_empty(), !self.set.is_empty()];
        if !said.contains(&true) {
            bail!("say how many units it has: --units 4, or --unit-names a,b");
        }
        Ok(self.fields.lines() + &names + &fields(&self.set)?)
    }
}

impl Fields {
    fn lines(&self) -> String {
        let number = |key: &str, value: Option<u32>| value.map(|it| format!("{key} = {it}\n"));
        let text = |key: &str, value: &Option<String>| {
            value.as_ref().map(|it| format!("{key} = {}\n", quoted(it)))
        };
        let lines = [
            number("units", self.units),
            text("lease", &self.lease),
            text("fairness", &self.fairness),
            number("claim_min", self.claim_min),
            number("claim_max", self.claim_max),
        ];
        lines.into_iter().flatten().collect()
    }
}

/// `field=value` as a line of a file: a value that is no number, truth, list, table or quoted text
/// is a text.
fn fields(set: &[String]) -> anyhow::Result<String> {
    let mut lines = String::new();
    for word in set {
        let Some((key, value)) = word.split_once('=') else {
            bail!("{word:?}: write FIELD=VALUE, like lease=30s");
        };
        let (key, value) = (key.trim(), value.trim());
        let plain = value.parse::<i64>().is_ok()
            || ["true", "false"].contains(&value)
            || value.starts_with(['[', '{', '"', '\'']);
        let value = if plain { value.to_owned() } else { quoted(value) };
        lines.push_str(&format!("{key} = {value}\n"));
    }
    Ok(lines)
}

/// A list of texts, as a file has it.
pub(super) fn quoted_all(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|text| quoted(text)).collect();
    format!("[{}]", all.join(", "))
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_what_a_file_says() {
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let lines = fields(&words(&["lease=30s", "units = 4", "unit_names=[\"a\"]"])).unwrap();
        assert_eq!(lines, "lease = \"30s\"\nunits = 4\nunit_names = [\"a\"]\n");
        assert!(fields(&words(&["lease"])).is_err());
    }
}
