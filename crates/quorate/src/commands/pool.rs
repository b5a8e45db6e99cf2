//! `quorate pool`: pools that the charter names, made and changed while everything runs.

use anyhow::bail;
use quorate_api::{AmendedView, ClaimId, DefineRequest, DefinitionView};
use quorate_client::Views;

use super::cluster::{self, Cluster, Json};
use super::pools;
use crate::Outcome;

/// Make and show pools, while everything runs.
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
    /// How many units it has.
    #[arg(long, value_name = "N", required_unless_present_any = ["unit_names", "set"])]
    units: Option<u32>,
    /// Their names.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "units")]
    unit_names: Vec<String>,
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
    pub(super) fn views(&self, cluster: &Cluster) -> anyhow::Result<Views> {
        Ok(cluster.views()?.with_request_id(self.request_id))
    }
}

impl Create {
    /// The same as a file would say it.
    fn definition(&self) -> anyhow::Result<String> {
        let number = |key: &str, value: Option<u32>| value.map(|it| format!("{key} = {it}\n"));
        let text = |key: &str, value: &Option<String>| {
            value.as_ref().map(|it| format!("{key} = {}\n", quoted(it)))
        };
        let names: Vec<String> = self.unit_names.iter().map(|name| quoted(name)).collect();
        let lines = [
            number("units", self.units),
            (!names.is_empty()).then(|| format!("unit_names = [{}]\n", names.join(", "))),
            text("lease", &self.lease),
            text("fairness", &self.fairness),
            number("claim_min", self.claim_min),
            number("claim_max", self.claim_max),
        ];
        let lines: String = lines.into_iter().flatten().collect();
        Ok(lines + &fields(&self.set)?)
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

fn quoted(text: &str) -> String {
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
