//! `broadcast` on the command line: whose protocol, and what follows from a crash.

use std::fmt;
use std::time::Duration;

use anyhow::{bail, ensure};
use quorate_core::Lease;
use quorate_protocols::broadcast::{Pool, Reclaim, Weighted};
use quorate_protocols::reference::{Raymond, Raynal};
use quorate_sim::{Needs, Plan, Want};

use super::{Offered, Options, Variant};

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
pub(crate) fn pool(
    variant: Variant,
    options: CrashOptions,
    (nodes, units): (u32, u32),
    lease: Option<Lease>,
) -> anyhow::Result<Pool> {
    let pool = match variant {
        Variant::Raymond | Variant::Raynal => {
            ensure!(
                options == CrashOptions::default(),
                "{} knows nothing of crashes: leave out --crashes-max and --reclaim",
                variant.name()
            );
            return Ok(match variant {
                Variant::Raymond => Pool::raymond(nodes, units),
                _ => Pool::raynal(nodes, units),
            });
        }
        Variant::TimerFree => Pool::timer_free(nodes, units, 0),
        _ => Pool::weighted(nodes, units, units, 0),
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
    Ok(Pool { crashes_max, reclaim, probe: None, retry: None, ..pool })
}

/// # Errors
/// Somebody wants more than so many units, and this protocol grants no more at a time.
pub(crate) fn serves(name: &str, most: u32, want: &Want) -> anyhow::Result<()> {
    let units = if most == 1 { "unit" } else { "units" };
    ensure!(want.most() <= most, "{name} serves {most} {units} at a time, not {want}");
    Ok(())
}

/// The pool of a simulated run.
fn planned(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
    let variant = options.variant.unwrap_or(Variant::Weighted);
    let lease = plan.pool.lease.map(|length| Lease::new(length, plan.pool.drift_ppm));
    let pool = pool(variant, options.crashes, (plan.nodes, plan.pool.units), lease)?;
    serves(variant.name(), pool.node_units_max, &plan.workload.want)?;
    if matches!(variant, Variant::Raymond | Variant::Raynal) {
        return Ok(pool);
    }
    // Often enough that a lease is renewed many times over.
    let pace = plan.pool.lease.map_or(Duration::from_secs(5), |lease| lease / 8);
    Ok(Pool { lease, probe: Some(pace), retry: Some(plan.pool.retry), ..pool })
}

impl Offered for Weighted {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn fit(plan: &mut Plan, options: &Options) {
        let paper = options.variant == Some(Variant::TimerFree);
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
