//! `broadcast` in the laboratory: whose protocol, and what follows from a crash.

use std::fmt;
use std::time::Duration;

use anyhow::{bail, ensure};
use quorate_core::{Lease, Protocol};
use quorate_protocols::broadcast::{Pool, Reclaim, Weighted};
use quorate_protocols::reference::{Counted, Raymond, Raynal, Rule};
use quorate_sim::{Needs, Plan, PoolPlan, Time, Want};

use super::options::Group;
use super::{Checked, Does, Offered, Options, Registered, Variant};
use crate::commands::check;

pub(super) const BROADCAST: Registered = Registered {
    name: Weighted::NAME,
    about: "Everybody is asked",
    does: Does::all::<Weighted>(),
    variants: &[
        Variant {
            name: WEIGHTED,
            about: "broadcast: h units at a time, crashes found: what the daemon runs",
            does: Does::all::<Weighted>(),
        },
        Variant {
            name: TIMER_FREE,
            about: "broadcast: Bouillaguet, Arantes and Sens 2009, corrected",
            does: Does::all::<Weighted>(),
        },
        Variant { name: RAYMOND, about: "broadcast: Raymond 1989", does: Does::all::<Raymond>() },
        Variant { name: RAYNAL, about: "broadcast: Raynal 1991", does: Does::all::<Raynal>() },
    ],
    options: &[Group::Crashes],
    swarms: &["", " --reclaim lease"],
};

const WEIGHTED: &str = "weighted";
const TIMER_FREE: &str = "timer-free";
const RAYMOND: &str = "raymond";
const RAYNAL: &str = "raynal";

/// What is known of crashes, and what follows.
#[derive(clap::Args, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CrashOptions {
    /// broadcast: most crashes that are found, the paper's f [default: what nodes and units allow]
    #[arg(long, value_name = "F")]
    pub(crate) crashes_max: Option<u32>,
    /// broadcast: when a node that is believed to have crashed is counted out [default: never, or
    /// trust-rp for timer-free]
    #[arg(long, value_enum)]
    pub(crate) reclaim: Option<ReclaimKind>,
    /// broadcast, weighted: most units that one node asks for at a time [default: all]
    #[arg(long, value_name = "H")]
    pub(crate) node_units_max: Option<u32>,
    /// broadcast: who finds a crash tells everybody
    #[arg(long)]
    pub(crate) notices: bool,
    /// broadcast: a node queries at least so often, 0 for never [default: an eighth of a lease]
    #[arg(long, value_name = "TIME")]
    pub(crate) probe: Option<Time>,
}

/// [`Reclaim`], by name.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReclaimKind {
    /// Always safe; a crash costs its units until the node is back.
    Never,
    /// When the driver's failure detector says so: as safe as that.
    Fenced,
    /// One lease after everybody named it; not for `check`, which has no clocks.
    Lease,
    /// At once, as in the paper.
    TrustRp,
}

/// What has to be said on a command line to get the same again.
impl fmt::Display for CrashOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(most) = self.crashes_max {
            write!(f, " --crashes-max {most}")?;
        }
        if let Some(most) = self.node_units_max {
            write!(f, " --node-units-max {most}")?;
        }
        if self.notices {
            f.write_str(" --notices")?;
        }
        if let Some(probe) = self.probe {
            write!(f, " --probe {probe}")?;
        }
        let Some(reclaim) = self.reclaim else { return Ok(()) };
        let name = match reclaim {
            ReclaimKind::Never => "never",
            ReclaimKind::Fenced => "fenced",
            ReclaimKind::Lease => "lease",
            ReclaimKind::TrustRp => "trust-rp",
        };
        write!(f, " --reclaim {name}")
    }
}

/// A pool of this variant, without timers: who drives it adds those.
///
/// # Errors
/// The numbers contradict each other, or the variant has no such option.
fn pool(
    variant: &str,
    options: CrashOptions,
    (nodes, units): (u32, u32),
    lease: Option<Lease>,
) -> anyhow::Result<Pool> {
    let pool = match variant {
        RAYMOND | RAYNAL => {
            ensure!(
                options == CrashOptions::default(),
                "{} knows nothing of crashes: leave out --crashes-max, --reclaim and the like",
                variant
            );
            return Ok(match variant {
                RAYMOND => Pool::raymond(nodes, units),
                _ => Pool::raynal(nodes, units),
            });
        }
        TIMER_FREE => {
            ensure!(options.node_units_max.is_none(), "timer-free serves 1 unit at a time");
            Pool::timer_free(nodes, units, 0)
        }
        _ => {
            let most = options.node_units_max.unwrap_or(units);
            ensure!((1..=units).contains(&most), "--node-units-max {most}: choose 1 to {units}");
            Pool::weighted(nodes, units, most, 0)
        }
    };
    let (most, by_units) = (nodes.saturating_sub(1) / 2, units.saturating_sub(1));
    let crashes_max = options.crashes_max.unwrap_or(most.min(by_units));
    ensure!(crashes_max <= most, "--crashes-max: of {nodes} nodes at most {most}");
    let reclaim = match (options.reclaim, lease) {
        (None, _) => pool.reclaim,
        (Some(ReclaimKind::Never), _) => Reclaim::Never,
        (Some(ReclaimKind::Fenced), _) => Reclaim::Fenced,
        (Some(ReclaimKind::TrustRp), _) => Reclaim::TrustRp,
        (Some(ReclaimKind::Lease), Some(lease)) => Reclaim::Lease(lease),
        (Some(ReclaimKind::Lease), None) => bail!("--reclaim lease needs --lease and a duration"),
    };
    let notices = options.notices;
    Ok(Pool { crashes_max, reclaim, notices, probe: None, retry: None, ..pool })
}

/// # Errors
/// Somebody wants more than so many units, and this protocol grants no more at a time.
fn serves(name: &str, most: u32, want: &Want) -> anyhow::Result<()> {
    let units = if most == 1 { "unit" } else { "units" };
    ensure!(want.most() <= most, "{name} serves {most} {units} at a time, not {want}");
    Ok(())
}

/// The pool of a simulated run.
fn planned(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
    let variant = options.variant().unwrap_or(WEIGHTED);
    let lease = plan.pool.lease.map(|length| Lease::new(length, plan.pool.drift_ppm));
    let pool = pool(variant, options.crashes, (plan.nodes, plan.pool.units), lease)?;
    serves(variant, pool.node_units_max, &plan.workload.want)?;
    if matches!(variant, RAYMOND | RAYNAL) {
        return Ok(pool);
    }
    // Often enough that a lease is renewed many times over.
    let pace = plan.pool.lease.map_or(Duration::from_secs(5), |lease| lease / 8);
    let probe = match options.crashes.probe {
        None => Some(pace),
        Some(Time(0)) => None,
        Some(every) => Some(every.into()),
    };
    let retry = Some(plan.pool.retry).filter(|retry| *retry < PoolPlan::NEVER);
    Ok(Pool { lease, probe, retry, ..pool })
}

impl Offered for Weighted {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn fit(plan: &mut Plan, options: &Options) {
        let paper = options.variant() == Some(TIMER_FREE);
        if paper {
            plan.workload.want = Want::always(1);
        }
        let stays_out = match options.crashes.reclaim {
            Some(ReclaimKind::Fenced | ReclaimKind::TrustRp) => true,
            Some(ReclaimKind::Never | ReclaimKind::Lease) => false,
            None => paper,
        };
        if stays_out {
            // The clients of who restarts would wait for ever.
            plan.faults.crashes = None;
        }
    }

    fn crashed(&self) -> Option<&quorate_core::NodeSet> {
        Some(Weighted::crashed(self))
    }

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
        planned(plan, options)
    }
}

/// Answers are differences, so each must arrive exactly once. A node that restarts stays out.
const COUNTED_NEEDS: Needs = Needs { order: false, reliability: true, permanence: true };

impl Offered for Raymond {
    const NEEDS: Needs = COUNTED_NEEDS;

    fn fit(plan: &mut Plan, _: &Options) {
        plan.workload.want = Want::always(1);
    }

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
        planned(plan, options)
    }
}

impl Offered for Raynal {
    const NEEDS: Needs = COUNTED_NEEDS;

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
        planned(plan, options)
    }
}

/// The pool of a broadcasting protocol. Links repeat and reorder at most; where they lose as well,
/// whoever waits asks again.
fn asking_everybody(args: &check::Args) -> anyhow::Result<Pool> {
    let options = &args.chosen.options;
    let variant = options.variant().unwrap_or(WEIGHTED);
    ensure!(
        options.crashes.reclaim != Some(ReclaimKind::Lease),
        "--reclaim lease rests on clocks, and the checker has none: try it with \
         `quorate-lab sim seeds --protocol broadcast --reclaim lease --count 100`"
    );
    let mut pool = self::pool(variant, options.crashes, (args.nodes as u32, args.units), None)?;
    let fits = |&h: &u32| h <= pool.node_units_max;
    ensure!(
        pool.node_units_max == args.units || !args.want.is_empty() && args.want.iter().all(fits),
        "here a claim asks for one unit: say so, as in --want 1,1"
    );
    if args.crashes > 0 {
        ensure!(
            pool.reclaim == Reclaim::Never,
            "a node comes back only where suspects are never counted out: say --reclaim never"
        );
        pool.lease = Some(Lease::new(Duration::from_secs(10), 200));
    }
    if args.losses > 0 {
        pool.retry = Some(Duration::from_secs(1));
    }
    Ok(pool)
}

impl Checked for Weighted {
    const HAS_BOOKS: bool = false;

    fn small(args: &check::Args) -> anyhow::Result<Pool> {
        asking_everybody(args)
    }

    /// A protocol that repeats its requests bears the loss of a copy; one that does not would stand
    /// still.
    fn copies_max(args: &check::Args) -> usize {
        if args.losses > 0 { 1 } else { 4 }
    }
}

impl<R: Rule> Checked for Counted<R> {
    const HAS_BOOKS: bool = false;

    fn small(args: &check::Args) -> anyhow::Result<Pool> {
        ensure!(
            args.losses == 0 && args.duplicates == 0,
            "answers are differences: links must deliver each message once"
        );
        ensure!(
            args.crashes == 0,
            "who restarts stays out for good, and its clients wait for ever"
        );
        asking_everybody(args)
    }

    /// Two answers may be equal, and both count.
    fn copies_max(_: &check::Args) -> usize {
        4
    }
}
