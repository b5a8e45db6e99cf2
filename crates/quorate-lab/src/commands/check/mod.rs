//! `quorate-lab check`: exhausts every history of small worlds.

mod chair;
mod choosy;
mod family;
mod output;

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quorate_check::{Budget, Limits, Network, Progress, Report, Restart, Scope, Verdict, check};
use quorate_core::{NodeId, NodeSet};
use quorate_protocols::Fairness;

use crate::Outcome;
use crate::protocols::{Checked, Chosen};
use chair::Chair;
use choosy::Choosy;
use family::{Want, family};
use output::Output;

const EXAMPLES: &str = "\
Examples:
  quorate-lab check --nodes 3 --units 2 --claims 2 --cancels 1 --crashes 1
      two claims of every size, at two nodes; the arbiter crashes once and forgets everything
  quorate-lab check --nodes 3 --units 2 --claims 3 --cancels 1 --crashes 1
      the same with a third claim at the third node, which takes minutes
  quorate-lab check --nodes 3 --units 2 --claims 3 --home any --crashes 1 --lapses 1 --early-rings 1
      every placement too; leases run out under grants, but alarms are mostly slower than messages
  quorate-lab check --nodes 3 --units 2 --want 1,2,1 --home 0,1,2 --crashes 1 --durable
      one world: h is 1, 2 and 1, the claims are made at n0, n1 and n2; the arbiter keeps a record
  quorate-lab check --nodes 2 --units 2 --claims 2 --network reordering --duplicates 1 --json
  quorate-lab check --nodes 3 --units 2 --want 1,1 --home 1,2 --among 0+1,0 --movable 1
      the second claim needs unit 0, and the first can be asked to leave it for unit 1
  quorate-lab check --variant moving --nodes 2 --units 1 --want 1,1 --network reordering --moves 1
      another node decides when a control plane says so; --shadow, and it need not wait for that
  quorate-lab check --protocol broadcast --variant raynal --nodes 2 --units 3 --want 2,1,3
  quorate-lab check --protocol arbiter --nodes 3 --units 1 --claims 3
  quorate-lab check --protocol arbiter --mode named --nodes 3 --units 2 --want 1,2,1
  quorate-lab check --protocol table --nodes 3 --units 1 --claims 3
  quorate-lab check --protocol sharing --structure FILE --nodes 8 --units 2 --want 1,1,1 --ascending
  quorate-lab check --protocol ring --nodes 3 --units 2 --want 2,1 --cancels 1 --losses 1

Exit codes: 0 every law holds, 1 one is broken (the history that breaks it is printed) or the model
is vacuous, 2 the input was wrong or the worlds have more states than --max-states.";

/// Exhaust every history of small worlds: every interleaving, with a crash between any two effects.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// Permissions of arbiters end by themselves, which makes many more states.
    #[arg(long)]
    pub(crate) leases: bool,
    /// How many nodes; n0 is the arbiter, or the root.
    #[arg(long, default_value_t = 3)]
    pub(crate) nodes: usize,
    /// How many units the pool has: k.
    #[arg(long, default_value_t = 2)]
    pub(crate) units: u32,
    /// How many claims there are; their sizes and homes are enumerated unless given below.
    #[arg(long)]
    pub(crate) claims: Option<usize>,
    /// The size h of each claim, such as 1,2,1.
    #[arg(long, value_delimiter = ',')]
    pub(crate) want: Vec<u32>,
    #[command(flatten)]
    pub(crate) choosy: Choosy,
    /// Where claims are made: spread (one node after the other), any (every placement), or the node
    /// of each claim, such as 0,1,1.
    #[arg(long, default_value = "spread", value_parser = home)]
    pub(crate) home: Home,
    /// Who may pass whom: fifo, or backfill:B (nobody is passed more than B times).
    #[arg(long, default_value = "fifo", value_parser = fairness)]
    pub(crate) fairness: Fairness,
    /// How often a client may cancel.
    #[arg(long, default_value_t = 0)]
    pub(crate) cancels: u8,
    /// How often a node may crash, between any two effects.
    #[arg(long, default_value_t = 0)]
    pub(crate) crashes: u8,
    /// Which nodes may crash.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    pub(crate) crashing: Vec<u32>,
    /// The arbiter writes grants down and recovers from its record; otherwise a restarted node has
    /// forgotten everything.
    #[arg(long)]
    pub(crate) durable: bool,
    /// How often a client may renew its lease.
    #[arg(long, default_value_t = 0)]
    pub(crate) renewals: u8,
    /// How often a client may die, or stop at its deadline.
    #[arg(long, default_value_t = 0)]
    pub(crate) deaths: u8,
    /// How often a client that waits may hang up, and its node notice.
    #[arg(long, default_value_t = 0)]
    pub(crate) hangups: u8,
    /// How often a lease may run out while its grant is still on its way.
    #[arg(long, default_value_t = 0)]
    pub(crate) lapses: u8,
    /// Whether messages between two nodes arrive in order.
    #[arg(long, value_enum, default_value = "fifo")]
    pub(crate) network: NetworkKind,
    /// How often a message may arrive twice.
    #[arg(long, default_value_t = 0)]
    pub(crate) duplicates: u8,
    /// How often a message may vanish.
    #[arg(long, default_value_t = 0)]
    pub(crate) losses: u8,
    /// How often an alarm may ring while a message is on its way; without this, as often as it
    /// likes, or never for a ring and for a seat that moves.
    #[arg(long)]
    pub(crate) early_rings: Option<u8>,
    /// How often a node may take another one for dead, for a moment.
    #[arg(long, default_value_t = 0)]
    pub(crate) suspicions: u8,
    #[command(flatten)]
    pub(crate) chair: Chair,
    /// Give up after so many states, of all worlds together.
    #[arg(long, default_value_t = 50_000_000)]
    pub(crate) max_states: usize,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NetworkKind {
    Fifo,
    Reordering,
}

/// Where claims are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    Spread,
    Any,
    At(Vec<u32>),
}

fn home(text: &str) -> Result<Home, String> {
    match text {
        "spread" => Ok(Home::Spread),
        "any" => Ok(Home::Any),
        list => {
            let nodes: Result<_, _> = list.split(',').map(str::parse).collect();
            nodes.map(Home::At).map_err(|_| "say spread, any, or nodes such as 0,1,1".to_string())
        }
    }
}

fn fairness(text: &str) -> Result<Fairness, String> {
    match text.split_once(':') {
        None if text == "fifo" => Ok(Fairness::Fifo),
        Some(("backfill", bound)) => {
            let bound = bound.parse().map_err(|_| format!("{bound:?} is not a number"))?;
            Ok(Fairness::Backfill(bound))
        }
        _ => Err("say fifo or backfill:B".to_string()),
    }
}

/// Does it.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let only = || anyhow::anyhow!("{} is for simulated runs", args.chosen);
    (args.chosen.does()?.check.ok_or_else(only)?)(args)
}

/// What was found out, without a word.
pub(crate) fn reports(args: &Args) -> anyhow::Result<Vec<Report>> {
    let only = || anyhow::anyhow!("{} is for simulated runs", args.chosen);
    (args.chosen.does()?.explore.ok_or_else(only)?)(args)
}

pub(crate) fn reports_with<P: Checked>(args: &Args) -> anyhow::Result<Vec<Report>> {
    Ok(explore(&scopes::<P>(args)?, args.max_states, &Bar::hidden()))
}

pub(crate) fn run_with<P: Checked>(args: &Args) -> anyhow::Result<Outcome> {
    let scopes = scopes::<P>(args)?;
    let started = Instant::now();
    let reports = explore(&scopes, args.max_states, &Bar::new(scopes.len()));
    let output = Output { args, scopes: &scopes, reports: &reports, took: started.elapsed() };
    if args.json {
        output.json()?
    } else {
        output.text()?
    }
    if output.is_broken() {
        return Ok(Outcome::Broken);
    }
    let exhausted = reports.iter().filter(|r| r.verdict != Verdict::Incomplete).count();
    ensure!(
        exhausted == scopes.len(),
        "{exhausted} of {} worlds were exhausted within {} states: nothing is proved about the \
         others (--max-states)",
        scopes.len(),
        args.max_states
    );
    Ok(Outcome::Good)
}

/// One world for each size and placement of the claims, and for each choice of quorums where that
/// is looked at.
fn scopes<P: Checked>(args: &Args) -> anyhow::Result<Vec<Scope<P>>> {
    let claims = args.claims.unwrap_or(if args.want.is_empty() { 2 } else { args.want.len() });
    ensure!((1..=8).contains(&claims), "{claims} claims: choose 1 to 8");
    ensure!((1..=64).contains(&args.nodes), "{} nodes: choose 1 to 64", args.nodes);
    let home: Vec<u32> = match &args.home {
        Home::Spread => (0..claims as u32).map(|claim| claim % args.nodes as u32).collect(),
        Home::Any => Vec::new(),
        Home::At(nodes) => nodes.clone(),
    };
    for (flag, given) in [("--want", args.want.len()), ("--home", home.len())] {
        ensure!(given == 0 || given == claims, "{flag} lists {given} values for {claims} claims");
    }
    args.choosy.fit(args)?;
    ensure!(
        P::CHOOSES || !args.choosy.any(),
        "--among is for central and table: units are alike here"
    );
    ensure!(P::MOVES || !args.choosy.moves(), "--movable is for central: nobody is moved here");
    let council = P::council(args);
    ensure!(
        council.is_some() || !args.chair.any(),
        "--moves, --rehomes, --shadow, --namings and --strikes are for central --variant moving"
    );
    ensure!(
        council.and_then(|it| it.shadow).is_none_or(|node| node.index() < args.nodes),
        "--shadow: n1 is to shadow n0, and there is one node"
    );
    let mut crashing = NodeSet::new();
    for &node in &args.crashing {
        ensure!(
            (node as usize) < args.nodes,
            "n{node} cannot crash: there are {} nodes",
            args.nodes
        );
        crashing.insert(NodeId(node));
    }
    let special: Vec<NodeId> = P::special(args).into_iter().chain(crashing.iter()).collect();
    let choice = family::Choice {
        nodes: args.nodes,
        units: args.units,
        claims,
        want: &args.want,
        home: &home,
        special: &special,
    };
    let mut scopes = Vec::new();
    for wants in &family(&choice)? {
        let scope = scope::<P>(args, crashing.clone(), wants)?;
        let choices = scope.clients.iter().map(|plan| P::choices(&scope.pool, plan.home));
        for draws in family::draws(&choices.collect::<Vec<_>>())? {
            let mut drawn = scope.clone();
            for (plan, draw) in drawn.clients.iter_mut().zip(draws) {
                plan.claim.draw = draw;
            }
            scopes.push(drawn);
        }
    }
    Ok(scopes)
}

fn scope<P: Checked>(args: &Args, crashing: NodeSet, wants: &[Want]) -> anyhow::Result<Scope<P>> {
    let pool = P::small(args)?;
    let mut scope = Scope::new(args.nodes, pool, wants)?;
    args.choosy.tell(&mut scope.clients)?;
    scope.crashing = crashing;
    scope.council = P::council(args);
    scope.copies_max = P::copies_max(args);
    scope.restart = if args.durable { Restart::Durable } else { Restart::Amnesia };
    scope.network = match args.network {
        NetworkKind::Fifo => Network::Fifo,
        NetworkKind::Reordering => Network::Reordering,
    };
    scope.budget = Budget {
        crashes: args.crashes,
        cancels: args.cancels,
        renewals: args.renewals,
        deaths: args.deaths,
        hangups: args.hangups,
        lapses: args.lapses,
        duplicates: args.duplicates,
        losses: args.losses,
        early_rings: args.early_rings.or(P::early_rings()),
        suspicions: args.suspicions,
    };
    Ok(scope)
}

/// Explores one world after the other on all cores, until one is broken or there are more states
/// than were allowed for all of them. What is reported does not depend on which core was faster.
fn explore<P: Checked>(scopes: &[Scope<P>], states_max: usize, bar: &Bar) -> Vec<Report> {
    let (next, last) = (AtomicUsize::new(0), AtomicUsize::new(scopes.len()));
    let reports = Mutex::new(vec![None; scopes.len()]);
    // Only worlds with smaller numbers have been counted when one begins, so that one that fits
    // behind them is never cut short.
    let spent = AtomicUsize::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= last.load(Ordering::Relaxed) {
                return;
            }
            let left = states_max.saturating_sub(spent.load(Ordering::Relaxed));
            let limits = Limits { states_max: left.max(1), required: Vec::new() };
            let report = check(&scopes[number], &limits, &mut |progress| bar.show(progress));
            if matches!(report.verdict, Verdict::Broken(_) | Verdict::Incomplete) {
                last.fetch_min(number + 1, Ordering::Relaxed);
            }
            spent.fetch_add(report.states, Ordering::Relaxed);
            bar.finish_one(&report);
            reports.lock().expect("no thread panics with it")[number] = Some(report);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(scopes.len());
    std::thread::scope(|threads| {
        for _ in 0..cores {
            threads.spawn(work);
        }
    });
    bar.0.finish_and_clear();
    let mut reports = reports.into_inner().expect("no thread panics with it");
    reports.truncate(last.into_inner());
    within(reports.into_iter().flatten().collect(), states_max)
}

/// The reports up to the one with which there are more states than that, which is incomplete.
fn within(mut reports: Vec<Report>, states_max: usize) -> Vec<Report> {
    let mut left = states_max;
    for number in 0..reports.len() {
        let report = &mut reports[number];
        if report.states > left || report.verdict == Verdict::Incomplete {
            // What the states beyond the limit took is not counted either.
            report.bytes = report.bytes / report.states.max(1) * left;
            (report.states, report.verdict) = (left, Verdict::Incomplete);
            reports.truncate(number + 1);
            break;
        }
        left -= report.states;
    }
    reports
}

/// Progress on standard error, if somebody is watching.
struct Bar(ProgressBar);

impl Bar {
    fn new(worlds: usize) -> Self {
        let bar = ProgressBar::new(worlds as u64);
        if !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{bar:24} {pos}/{len} worlds {elapsed} {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is constant"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar(bar)
    }

    fn hidden() -> Self {
        Bar(ProgressBar::hidden())
    }

    fn show(&self, progress: Progress) {
        let Progress { states, explored, depth } = progress;
        self.0.set_message(format!("{explored} of {states} states explored, depth {depth}"));
    }

    fn finish_one(&self, report: &Report) {
        self.0.inc(1);
        self.0.set_message(format!("{} states in the last world", report.states));
    }
}
