//! `quorate-lab plan`: a fleet asks, and gets a configuration with what it is worth.
//!
//! Nothing here knows what a protocol is worth: the daemon's own reader says whether a file is
//! taken, the protocols say what they can grant without whom, and the simulator says how long it
//! takes.

mod fleet;
mod trial;
mod ways;
mod words;

use anyhow::{bail, ensure};
use quorate_sim::Time;

use crate::Outcome;
use crate::commands::compare::said_if_broken;
use crate::commands::sim::sweep::{advance, progress_bar};
use fleet::{Fleet, Losses};

/// Which protocol, with which options: a configuration to paste for a fleet, with its expected
/// latency, load and availability, and what was rejected and why.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab plan --nodes 3 --units 4
  quorate-lab plan --nodes 7 --zones 3 --units 4 --claims 1,4 --survive zone --between 20ms
  quorate-lab plan --nodes 9 --zones 3 --units 6 --survive zone,2 --names --prefer messages

Every way that the daemon has to share units is tried: its file is read as the daemon would read it,
it must go on granting claims of every size without each loss that is to be survived, and it is
simulated with the clients of the fleet. Of those that remain the quickest is chosen, or what
--prefer says; where some are nearly alike (5 %), the one that is down least often, and of these
(less than half as often counts as the same) the one with fewest messages at its busiest node.

Nodes are spread evenly over the zones. Latency is what the simulator measures without a loss;
what happens in the moments after one is in docs/operations.md (what survives what).

Exit codes: 0 there is a plan; 1 nothing can do it, and why is printed; 2 an option is wrong.")]
pub(crate) struct Args {
    /// How many nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    nodes: u32,
    /// In how many zones (racks, data centres, regions) they are
    #[arg(long, value_name = "Z", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=26))]
    zones: u32,
    /// How many units are shared
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1024))]
    units: u32,
    /// How many units claims are for, and how often: 1, or 1,4, or 1:80,4:20
    #[arg(long, value_name = "WANT", default_value = "1")]
    claims: String,
    /// What must not stop it: a number of nodes, whichever they are; zone, whichever it is; or both
    /// [default: 1, or 0 for a node alone]
    #[arg(long, value_name = "LOSS,...", value_delimiter = ',')]
    survive: Vec<Loss>,
    /// One way between two zones
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    between: Time,
    /// One way inside a zone
    #[arg(long, value_name = "TIME", default_value = "500us")]
    inside: Time,
    /// How long units are held
    #[arg(long, value_name = "TIME", default_value = "1s")]
    hold: Time,
    /// How much of the units is wanted at a time, as a share
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    wanted: f64,
    /// How long a grant lasts without renewal
    #[arg(long, value_name = "TIME", default_value = "10s")]
    lease: Time,
    /// How likely a node is up
    #[arg(long, value_name = "P", default_value_t = 0.99)]
    up: f64,
    /// How likely a zone is up [default: 0.999, or 1 if there is one]
    #[arg(long, value_name = "P")]
    zone_up: Option<f64>,
    /// Grants must say which units they have
    #[arg(long)]
    names: bool,
    /// Units differ, and claims choose by labels
    #[arg(long)]
    labels: bool,
    /// Grants must survive a restart of every node
    #[arg(long)]
    durable: bool,
    /// Claims may be for holds without a lease
    #[arg(long)]
    standing: bool,
    /// What is best among all that will do
    #[arg(long, value_enum, default_value = "latency")]
    prefer: Prefer,
    /// The first seed of the simulations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What must not stop the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    /// So many nodes, whichever they are.
    Nodes(u32),
    /// All nodes of any one zone.
    Zone,
}

impl std::str::FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Loss, String> {
        match text {
            "zone" => Ok(Loss::Zone),
            _ => text.parse().map(Loss::Nodes).map_err(|_| "a number of nodes, or zone".to_owned()),
        }
    }
}

/// What is best.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Prefer {
    /// The shortest mean time from a claim to its grant
    Latency,
    /// The fewest messages at the busiest node
    Messages,
    /// The most likely to be able to grant
    Availability,
}

impl Args {
    fn fleet(&self) -> anyhow::Result<Fleet> {
        ensure!(self.zones <= self.nodes, "{} zones: there are {} nodes", self.zones, self.nodes);
        let share = |name: &str, value: f64| {
            ensure!((0.0..=1.0).contains(&value), "{name} {value}: choose 0 to 1");
            Ok(value)
        };
        ensure!(
            self.wanted >= 0.01 && self.wanted <= 10.0,
            "--wanted {}: choose 0.01 (hardly ever) to 10 (ten times what there is)",
            self.wanted
        );
        ensure!(self.hold > Time(0) && self.inside > Time(0), "--hold and --inside: not 0");
        let usual = if self.zones > 1 { 0.999 } else { 1.0 };
        let usually = [Loss::Nodes(u32::from(self.nodes > 1))];
        let survive = if self.survive.is_empty() { &usually[..] } else { &self.survive };
        let mut losses = Losses::default();
        for loss in survive {
            match loss {
                Loss::Zone if self.zones == 1 => {
                    bail!("--survive zone: there is one zone, and without it nothing is left")
                }
                // Whoever goes on without a zone goes on without any one of its nodes.
                Loss::Zone => (losses.zone, losses.nodes) = (true, losses.nodes.max(1)),
                Loss::Nodes(count) => {
                    ensure!(*count < self.nodes, "--survive {count}: there are {}", self.nodes);
                    losses.nodes = losses.nodes.max(*count);
                }
            }
        }
        Fleet::new(Fleet {
            nodes: self.nodes,
            zones: self.zones,
            units: self.units,
            want: self.claims.clone(),
            sizes: Vec::new(),
            mean: 0.0,
            losses,
            between: self.between.into(),
            inside: self.inside.into(),
            hold: self.hold.into(),
            wanted: self.wanted,
            lease: self.lease.into(),
            up: (share("--up", self.up)?, share("--zone-up", self.zone_up.unwrap_or(usual))?),
            names: self.names,
            labels: self.labels,
            durable: self.durable,
            standing: self.standing,
        })
    }
}

/// Plans.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let fleet = args.fleet()?;
    let bar = progress_bar();
    let progress = |done, all| advance(&bar, done, all);
    let tried = trial::all(&fleet, args.prefer, args.seed, &progress);
    bar.finish_and_clear();
    let tried = match tried {
        Ok(tried) => tried,
        Err(error) => return said_if_broken(error),
    };
    match args.json {
        true => crate::print(words::json(&fleet, &tried))?,
        false => crate::print(words::text(&fleet, args.prefer, &tried).trim_end())?,
    }
    Ok(if tried.fit.is_empty() { Outcome::Broken } else { Outcome::Good })
}

#[cfg(test)]
mod tests;
