//! `quorate jobserver`: a build whose jobs run on units of a pool, so that builds on several
//! machines share so many slots. It is a client of the pool like any other, and for the build the
//! end of a pipe with tokens in it, as GNU make's.
//!
//! Unlike `quorate run` it does not stop its command when units are lost: jobs are a matter of
//! load, and those that run may end. No new ones are started until there are units again, except
//! one at a time, for which a build needs no token.

mod flags;
mod pipes;
mod slots;

use std::ffi::OsString;
use std::pin::Pin;
use std::time::Duration;

use quorate_client::{AcquireError, Client, Grant, Lost, Pool};
use rustix::process::Signal;
use tokio::time::Instant;

use self::pipes::{Pipes, Style};
use self::slots::{Manners, Sight, Slots};
use super::cluster::{self, Cluster};
use super::run::child::{self, Child, Started};
use super::run::terminal::Terminal;
use super::run::{FAILED, HEARD, ending};
use super::signals::Signals;
use super::waiting::{self, Claimed, Patience, Wish};
use crate::Outcome;

/// Run a build whose jobs are units of a pool: make, cargo, ninja, and whatever shares their slots.
///
/// One unit is claimed before the command starts, for the job that it may always run, and one more
/// for every further job, as the build asks for it. What it does not use goes back to the pool
/// within a fraction of a second; what it uses goes through the pool's queue again every two
/// seconds or as soon as a job ends, so that builds share.
///
/// The command finds its tokens as those of GNU make do (MAKEFLAGS). make's and ninja's own -j,
/// with which they would not look for them, is left out, and its number is heeded as --most. If
/// units are lost (revoked, or no node answers for the length of a lease), no job is killed and
/// none hangs: as jobs end, the build goes on with fewer, at least one at a time. If this wrapper
/// is killed, so is the command, and its units return when their lease ends.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate jobserver builds -- make -j
  quorate jobserver builds -n 8 -- cargo build --release
  quorate jobserver builds -- ninja -C out
  quorate jobserver builds --style fifo -- cmake --build out     # with ninja, or make from 4.4
  quorate jobserver builds -- ctest -j 8 --test-dir out

Exit codes: as of quorate run; the loss of units is none of its own.")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    /// The most units at once, and so jobs; as many as this machine has processors, if left out.
    #[arg(short = 'n', long, value_name = "UNITS",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    most: Option<u32>,
    /// How the command finds its tokens: by two pipes that it inherits (every make, cargo, gcc), or
    /// by one with a name (ninja from 1.13, make from 4.4, cargo, gcc from 13). Without it: fifo
    /// for ninja, else pipe.
    #[arg(long, value_enum)]
    style: Option<Style>,
    #[command(flatten)]
    patience: Patience,
    /// What for, in words that whoever waits will read; the command's name, if left out.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    cluster: Cluster,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Whoever inherits pipes waits at their end, and takes at once what it wants.
const PIPE: Manners = Manners {
    spare: 1,
    linger: Duration::from_millis(100),
    pause: (Duration::from_millis(100), Duration::from_millis(1_000)),
    turn: Duration::from_secs(2),
};
/// ninja looks only when one of its jobs has ended, and takes all that it can use then: it should
/// find something.
const FIFO: Manners = Manners {
    spare: u32::MAX,
    linger: Duration::from_millis(500),
    pause: (Duration::from_millis(500), Duration::from_millis(500)),
    turn: Duration::from_secs(2),
};
/// After how long to look again: at tokens on offer, right after one was, and at all else.
const LOOK: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_millis(5);
const SELDOM: Duration = Duration::from_millis(200);
/// For how long to ask for nothing after a node has refused.
const REFUSED: Duration = Duration::from_secs(5);

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::find();
    let code = cluster::block_on(serve(args, terminal)).unwrap_or_else(|error| {
        eprintln!("quorate: {error:#}");
        FAILED
    });
    Ok(Outcome::Code(code))
}

async fn serve(mut args: Args, terminal: Option<Terminal>) -> anyhow::Result<u8> {
    let mut signals = Signals::hear(&HEARD)?;
    let client = args.cluster.connect().await?;
    let reason = args.reason.clone().unwrap_or_else(|| args.command[0].to_string_lossy().into());
    let wish = Wish {
        client: &client,
        cluster: &args.cluster,
        pool: &args.pool,
        reason: reason.clone(),
        id: client.new_id(),
        want: 1.into(),
        patience: &args.patience,
    };
    let first = match waiting::claim(wish, ending(&mut signals)).await {
        Claimed::Granted(grant) => grant,
        Claimed::Over(code) => return Ok(code),
        Claimed::Failed(error) => return Err(error.into()),
    };
    let processors = || std::thread::available_parallelism().map_or(1, |it| it.get() as u32);
    let mut most = args.most.unwrap_or_else(processors);
    if let Some(jobs) = flags::without_jobs(&mut args.command) {
        most = jobs.map_or(most, |jobs| if args.most.is_some() { most.min(jobs) } else { jobs });
    }
    let style = args.style.unwrap_or_else(|| flags::style(&args.command));
    let mut pipes = Pipes::make(style)?;
    let child = match child::start(&args.command, &environment(&args, most, &pipes), terminal)? {
        Started::Running(child) => child,
        Started::Failed { code, why } => {
            eprintln!("quorate: {why}");
            drop(first);
            client.settle().await;
            return Ok(code);
        }
    };
    pipes.started();
    let manners = if pipes.is_shared() { FIFO } else { PIPE };
    let build = Build {
        pool: client.pool(&args.pool).reason(reason),
        slots: Slots::new(most, manners),
        pipes,
        units: vec![(first, Instant::now())],
        leaving: Vec::new(),
        began: Instant::now(),
        told: false,
    };
    let code = attend(build, child, signals).await;
    settle(&client).await;
    code
}

/// Where the command looks for tokens. cargo looks first for what it would give its own children.
fn environment(args: &Args, most: u32, pipes: &Pipes) -> Vec<(&'static str, String)> {
    let before = std::env::var("MAKEFLAGS").unwrap_or_default();
    let flags = flags::makeflags(&before, most, &pipes.address());
    vec![
        ("QUORATE_POOL", args.pool.clone()),
        ("CARGO_MAKEFLAGS", flags::makeflags("", most, &pipes.address())),
        ("MAKEFLAGS", flags),
    ]
}

/// All units are on their way back; says so if no node has acknowledged it.
async fn settle(client: &Client) {
    if !client.settle().await {
        eprintln!(
            "quorate: no node acknowledged that the units are given back: they return when their \
             lease ends"
        );
    }
}

/// A build, its tokens and its units.
struct Build {
    pool: Pool,
    slots: Slots,
    pipes: Pipes,
    /// Units, oldest first, and since when they are here.
    units: Vec<(Grant, Instant)>,
    /// Units that go back as soon as no job needs them.
    leaving: Vec<Grant>,
    began: Instant,
    /// That there are fewer units was said.
    told: bool,
}

type Claim = Pin<Box<dyn Future<Output = Result<Grant, AcquireError>>>>;

async fn attend(mut build: Build, mut child: Child, mut signals: Signals) -> anyhow::Result<u8> {
    let mut claim: Option<Claim> = None;
    loop {
        let next = build.look(&mut claim)?;
        let recalling = build.slots.excess(build.units.len() as u32) > 0;
        tokio::select! {
            code = child.wait() => {
                let code = code?;
                build.finish();
                return Ok(code);
            }
            signal = signals.any() => match signal {
                Signal::CHILD => child.go_on(),
                signal => child.forward(signal),
            },
            granted = waiting_for(&mut claim) => {
                claim = None;
                build.decided(granted);
            }
            () = build.pipes.news(recalling) => {}
            () = tokio::time::sleep(next) => {}
        }
    }
}

async fn waiting_for(claim: &mut Option<Claim>) -> Result<Grant, AcquireError> {
    match claim {
        Some(claim) => claim.await,
        None => std::future::pending().await,
    }
}

impl Build {
    /// Looks at units and tokens, does what follows, and says when to look again.
    fn look(&mut self, claim: &mut Option<Claim>) -> anyhow::Result<Duration> {
        let now = self.began.elapsed();
        self.weed();
        let idle = self.pipes.idle(self.slots.tokens())?;
        let sight = |build: &Build, idle| Sight {
            units: build.units.len() as u32,
            leaving: build.leaving.len() as u32,
            idle,
            claiming: claim.is_some(),
            oldest: build.units.first().map_or(now, |(_, since)| since.duration_since(build.began)),
        };
        let deeds = self.slots.decide(now, &sight(self, idle));
        // Where we are one reader of many, what was seen may be gone, and what was not may be
        // there.
        let excess = self.slots.excess(self.units.len() as u32);
        let take = if self.pipes.is_shared() { deeds.take.max(excess) } else { deeds.take };
        if take > 0 {
            let taken = self.pipes.take(take)?;
            self.slots.took(taken);
        }
        // What came back and may stay is for the next job, before anything else.
        self.pipes.pass_on()?;
        // A unit whose token was taken away stands for nothing: the youngest, since the oldest have
        // their turn anyway.
        while self.slots.may_give(self.units.len() as u32) {
            drop(self.units.pop());
        }
        if deeds.retire {
            let (grant, _) = self.units.remove(0);
            self.leaving.push(grant);
        }
        let unneeded = self.slots.unneeded(&sight(self, idle));
        let kept = self.leaving.len().saturating_sub(unneeded as usize);
        self.leaving.truncate(kept);
        if deeds.withdraw {
            *claim = None;
        }
        if deeds.claim {
            let pool = self.pool.clone();
            *claim = Some(Box::pin(async move { pool.acquire().await }));
        }
        Ok(match () {
            () if idle == 0 && self.slots.tokens() > 0 && self.just_gave() => SOON,
            () if idle > 0 || self.pipes.is_shared() => LOOK,
            () => SELDOM,
        })
    }

    /// Whether the youngest unit came a moment ago.
    fn just_gave(&self) -> bool {
        self.units.last().is_some_and(|(_, since)| since.elapsed() < SELDOM)
    }

    /// Units that are lost stand for nothing any more; those that were revoked do until their
    /// deadline, if a job needs them.
    fn weed(&mut self) {
        let mut lost = None;
        self.leaving.retain(|grant| !is_gone(grant.is_lost().as_ref()));
        for at in (0..self.units.len()).rev() {
            let Some(why) = self.units[at].0.is_lost() else { continue };
            let (grant, _) = self.units.remove(at);
            if !is_gone(Some(&why)) {
                self.leaving.push(grant);
            }
            lost = Some(why);
        }
        if let Some(why) = lost
            && !self.told
        {
            self.told = true;
            eprintln!("quorate: {why}; the build goes on with fewer jobs");
        }
    }

    /// What became of the claim for one more.
    fn decided(&mut self, granted: Result<Grant, AcquireError>) {
        match granted {
            Ok(grant) => {
                self.told = false;
                self.units.push((grant, Instant::now()));
                while self.slots.may_give(self.units.len() as u32) && self.pipes.give().is_ok() {
                    self.slots.gave();
                }
            }
            Err(error) => {
                self.slots.wait(self.began.elapsed() + REFUSED);
                if !self.told {
                    self.told = true;
                    eprintln!("quorate: {error}; the build goes on with the units it has");
                }
            }
        }
    }

    /// The build is over: whatever it did not give back is of no use to it any more.
    fn finish(&mut self) {
        let tokens = self.slots.tokens();
        let missing = self.pipes.idle(tokens).map_or(0, |idle| tokens - idle);
        if missing > 0 {
            let plural = if missing == 1 { " was" } else { "s were" };
            eprintln!(
                "quorate: {missing} token{plural} not given back by the build; the units are free \
                 again all the same"
            );
        }
        self.units.clear();
        self.leaving.clear();
    }
}

/// Whether the units must not be used any more.
fn is_gone(lost: Option<&Lost>) -> bool {
    matches!(lost, Some(lost) if !matches!(lost, Lost::Revoked { .. }))
}
