//! `quorate run`: claim, run a command, release; and stop it before the grant ends.
//!
//! The wrapper's own clock decides: if the lease could not be renewed, the command is asked to stop
//! while there is still time and killed before the deadline passes. Nothing here waits for a node
//! once the command runs.

pub(super) mod child;
mod mover;
pub(super) mod terminal;

use std::collections::BTreeMap;
use std::ffi::OsString;

use quorate_client::{Grant, Instant, Lost, ReleaseError};
use rustix::process::Signal;

use self::child::{Child, Started};
use self::mover::Mover;
use self::terminal::Terminal;
use super::cluster::{self, Cluster};
use super::signals::Signals;
use super::waiting::{self, Claimed, Patience, Wish};
use super::wanted::Wanted;
use crate::Outcome;
pub(crate) use child::{ExecArgs, exec};

/// Claim units, run a command while they are held, and release them.
///
/// The command is started without a shell, in its own process group: HUP, INT, QUIT, TERM, USR1,
/// USR2 and WINCH are forwarded to the whole group. If standard input is a terminal, the group has
/// it while the command runs, and cannot be suspended: whoever holds units should use them. If the
/// grant cannot be renewed, the group gets TERM when a quarter of the lease is left and KILL before
/// the deadline. If this wrapper is killed, so is the command itself.
///
/// It finds in its environment: QUORATE_POOL; QUORATE_COUNT, how many units it has; QUORATE_UNITS,
/// their names (numbers where they have none), and QUORATE_FENCES, comma-separated and in the same
/// order, both empty where the pool only counts; QUORATE_LABELS, a JSON object with the labels of
/// each unit under its name; QUORATE_CLAIM, the claim's id. Whatever the units protect should
/// refuse smaller fences than it has seen.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate run licences -- make release
  quorate run gpus -n 2 --timeout 10m --reason 'nightly training' -- ./train.sh --epochs 3
  quorate run gpus -n 2 --where gpu=h100,zone=eu -- ./train.sh
  quorate run gpus -n 2 --where gpu=h100 --and 1:kind=nic --and 4:kind=cpu -- ./train.sh
  quorate run gpus --where zone=eu --on-move ./migrate.sh -- ./serve.sh

Exit codes: the command's own, or 128 + the signal that ended it; 122 the units are not free
(--try); 123 the grant was lost and the command was stopped; 124 not granted in time; 125 quorate
could not do it; 126 the command cannot be executed; 127 it cannot be found.")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    patience: Patience,
    /// Lets the claim be moved: when another claim needs one of its units and others will do, this
    /// program is run, without a shell, and the unit is given back once it has succeeded. Its
    /// arguments are the names of the unit to leave and of the other one; it finds the same in
    /// QUORATE_FROM and QUORATE_TO, and QUORATE_TO_FENCE, QUORATE_TO_LABELS (JSON) and QUORATE_PID,
    /// the process group of the running command. If it fails, nothing moves.
    #[arg(long, value_name = "PROGRAM")]
    on_move: Option<OsString>,
    /// What for, in words that whoever waits will read; the command's name, if left out.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    cluster: Cluster,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Exit codes of our own.
const LOST: u8 = 123;
/// Also for input that was not understood, since every smaller code may be the command's.
pub(crate) const FAILED: u8 = 125;

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::find();
    let code = cluster::block_on(wrap(args, terminal)).unwrap_or_else(|error| {
        eprintln!("quorate: {error:#}");
        FAILED
    });
    Ok(Outcome::Code(code))
}

async fn wrap(args: Args, terminal: Option<Terminal>) -> anyhow::Result<u8> {
    let mut signals = Signals::hear(&HEARD)?;
    let client = args.cluster.connect().await?;
    // Only the command's name: its arguments may be nobody else's business.
    let name = || args.command[0].to_string_lossy().into_owned();
    let mut want = args.wanted.want();
    if args.on_move.is_some() {
        want = want.movable();
    }
    let wish = Wish {
        client: &client,
        cluster: &args.cluster,
        pool: &args.pool,
        reason: args.reason.clone().unwrap_or_else(name),
        id: client.new_id(),
        want,
        patience: &args.patience,
    };
    let grant = match waiting::claim(wish, ending(&mut signals)).await {
        Claimed::Granted(grant) => grant,
        Claimed::Over(code) => return Ok(code),
        Claimed::Failed(error) => return Err(error.into()),
    };
    let child = match child::start(&args.command, &environment(&grant), terminal)? {
        Started::Running(child) => child,
        Started::Failed { code, why } => {
            eprintln!("quorate: {why}");
            release(grant).await;
            return Ok(code);
        }
    };
    let mover = Mover::new(args.on_move, &grant);
    attend(child, grant, signals, mover).await
}

fn environment(grant: &Grant) -> Vec<(&'static str, String)> {
    let fences: Vec<String> = grant.fences().iter().map(u64::to_string).collect();
    let labels: BTreeMap<String, BTreeMap<String, String>> =
        grant.names().into_iter().zip(grant.labels()).collect();
    let labels = serde_json::to_string(&labels).expect("texts are always JSON");
    vec![
        ("QUORATE_POOL", grant.pool().into()),
        ("QUORATE_COUNT", grant.count().to_string()),
        ("QUORATE_UNITS", grant.names().join(",")),
        ("QUORATE_LABELS", labels),
        ("QUORATE_FENCES", fences.join(",")),
        ("QUORATE_CLAIM", grant.id().to_string()),
    ]
}

/// How far the command has been stopped because of its grant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stopping {
    No,
    Asked,
    Killed,
}

/// The signals that are forwarded, and the one that says that something happened to the command.
pub(super) const HEARD: [Signal; 8] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::CHILD,
];

/// The next signal that ends a process which does not handle it.
pub(super) async fn ending(signals: &mut Signals) -> Signal {
    loop {
        let signal = signals.any().await;
        if !matches!(signal, Signal::WINCH | Signal::CHILD) {
            return signal;
        }
    }
}

/// Waits for the command, forwards signals, and stops it in time.
async fn attend(
    mut child: Child,
    mut grant: Grant,
    mut signals: Signals,
    mut mover: Mover,
) -> anyhow::Result<u8> {
    let mut stopping = Stopping::No;
    let code = loop {
        let lost = grant.is_lost();
        let (ask_at, kill_at) = stop_times(&grant, lost.as_ref());
        let now = Instant::now();
        if stopping < Stopping::Killed && kill_at <= now {
            stopping = Stopping::Killed;
            eprintln!("quorate: {}; killing the command", describe(lost.as_ref()));
            child.kill();
        } else if stopping < Stopping::Asked && ask_at <= now {
            stopping = Stopping::Asked;
            eprintln!("quorate: {}; asking the command to stop", describe(lost.as_ref()));
            child.terminate();
        }
        if stopping == Stopping::No {
            mover.look(&grant, &child);
        }
        let next = match stopping {
            Stopping::No => Some(ask_at.min(kill_at)),
            Stopping::Asked => Some(kill_at),
            Stopping::Killed => None,
        };
        tokio::select! {
            code = child.wait() => break code?,
            signal = signals.any() => match signal {
                Signal::CHILD => child.go_on(),
                signal => child.forward(signal),
            },
            () = sleep_until(next) => {}
            () = grant.changed() => {}
            it = mover.done() => if let Some(it) = it { grant.moved(&it) },
        }
    };
    if stopping > Stopping::No {
        // The command itself is gone; whatever it left in its group goes too.
        child.kill();
        release(grant).await;
        return Ok(LOST);
    }
    release(grant).await;
    Ok(code)
}

/// When to ask the command to stop and when to kill it: a quarter and a twentieth of the lease
/// before the deadline, or at once where the units are gone already.
fn stop_times(grant: &Grant, lost: Option<&Lost>) -> (Instant, Instant) {
    let before = |fraction: u32| {
        let deadline = grant.deadline();
        deadline.checked_sub(grant.lease() / fraction).unwrap_or(deadline)
    };
    let now = Instant::now();
    match lost {
        None => (before(4), before(20)),
        Some(Lost::Revoked { .. }) => (now, before(20)),
        Some(_) => (now, now),
    }
}

fn describe(lost: Option<&Lost>) -> String {
    match lost {
        None => "the lease is about to end and could not be renewed".into(),
        Some(lost) => lost.to_string(),
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => quorate_client::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Releases, and says so if that is not known to have worked: the command is over either way.
async fn release(grant: Grant) {
    match grant.release().await {
        Ok(()) | Err(ReleaseError::Lost(_)) => {}
        Err(error) => eprintln!("quorate: {error}"),
    }
}
