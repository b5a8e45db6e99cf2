//! `broadcast`: everybody is asked.

use quorate_core::Protocol;
use quorate_protocols::broadcast::{Pool, Reclaim, Weighted};

use super::{About, ProtocolDef, Read, Registered};
use crate::config::{Basis, Options, SHORTEST};
use crate::seat::Runs;

pub(super) const BROADCAST: Registered = Registered {
    name: Weighted::NAME,
    options: &["crashes_max", "node_units_max", "probe", "reclaim", "retry"],
    chooses: false,
    no_standing: Some("what a node holds is known to that node alone"),
    read,
};

impl Runs for Weighted {}

fn read(basis: &Basis<'_>, options: &mut Options) -> Result<Read, String> {
    let pool = pool(basis, options)?;
    let (crashes, node_units) = (pool.crashes_max, pool.node_units_max);
    let reclaim = pool.reclaim.name();
    let about = About {
        canonical: format!("broadcast crashes {crashes} node_units {node_units} reclaim {reclaim}"),
        needs_proof: pool.reclaim == Reclaim::Fenced,
        claim_max: Some(node_units),
        awaits: "permission of the other nodes",
        bound: Some(
            "each grant belongs to the node where it was made: if that stops, restarts or crashes, \
             its clients lose what they have",
        ),
        terms: Some(format!(
            "reclaim {reclaim}, crashes_max {crashes}, node_units_max {node_units}"
        )),
        ..About::default()
    };
    Ok((ProtocolDef::new::<Weighted>(about, pool), None))
}

fn pool(basis: &Basis<'_>, options: &mut Options) -> Result<Pool, String> {
    let (units, nodes) = (basis.units, basis.nodes());
    // Broadcast spec E8: with more, no responsiveness property can hold for everybody.
    let most = (nodes - 1) / 2;
    let crashes_max = options.number("crashes_max", (0, most))?.unwrap_or(most.min(units - 1));
    // What one node may have at most, others must be able to do without: f crashes cost f times it.
    let share = (units / (crashes_max + 1)).max(1);
    let node_units_max = options.number("node_units_max", (1, units))?.unwrap_or(share);
    let mut pool = Pool::weighted(nodes, units, node_units_max, crashes_max);
    pool.lease = Some(basis.lease);
    pool.retry = options.span("retry")?.or(pool.retry);
    // A lease is renewed by probes, several of which must fit into it.
    let length = basis.lease.length();
    let probe = options.span("probe")?.unwrap_or(length / 4);
    if probe > length / 2 {
        return Err("probe is longer than half the lease: no lease would be renewed in time".into());
    }
    pool.probe = Some(probe.max(SHORTEST));
    let reclaim: String = options.take("reclaim")?.unwrap_or_else(|| "never".into());
    pool.reclaim = match reclaim.as_str() {
        "never" => Reclaim::Never,
        "lease" => Reclaim::Lease(basis.lease),
        "fenced" => Reclaim::Fenced,
        "trust-rp" => {
            return Err(
                "reclaim = \"trust-rp\" is for simulations: one slow node would be enough \
                        to hand out more units than there are; choose \"never\", \"lease\" or \
                        \"fenced\""
                    .into(),
            );
        }
        other => {
            return Err(format!("reclaim {other:?}: choose \"never\", \"lease\" or \"fenced\""));
        }
    };
    Ok(pool)
}
