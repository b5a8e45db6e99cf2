//! A pool's protocol and its options, as the configuration means them.

use std::sync::Arc;

use quorate_core::{Lease, NodeId, Protocol, Unit};
use quorate_protocols::Goods;
use quorate_protocols::allocator::labels::Labels;
use quorate_protocols::arbiter::{self, Arbiter, Mode};
use quorate_protocols::broadcast::{self, Reclaim, Weighted};
use quorate_protocols::central::{self, Central};
use quorate_protocols::quorums::Quorums;
use quorate_protocols::ring::{self, Ring};
use quorate_protocols::table::{self, Table};
use quorate_protocols::ticket::{self, Ticket};
use quorate_protocols::voting::{self, Settled, Terms, Worth};

use super::options::Options;
use super::reserved::{self, Reserved};

/// A protocol and its options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProtocolDef {
    /// One node decides.
    Central {
        /// Which one.
        arbiter: Chosen,
        /// All else.
        pool: central::Pool,
    },
    /// Quorums give permissions.
    Arbiter(arbiter::Pool),
    /// Quorums give tickets.
    Ticket(ticket::Pool),
    /// Quorums keep a table of all claims.
    Table(table::Pool),
    /// Everybody is asked.
    Broadcast(broadcast::Pool),
    /// Tokens go round.
    Ring(ring::Pool),
}

/// How a special node is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// This one.
    Node(NodeId),
    /// By the pool's name, over all members.
    ByName,
}

impl Chosen {
    /// The node for this pool, among so many members.
    pub fn node(self, pool: &str, members: usize) -> NodeId {
        match self {
            Chosen::Node(node) => node,
            Chosen::ByName => {
                let members = u64::try_from(members.max(1)).unwrap_or(u64::MAX);
                NodeId((super::digest(pool.as_bytes()) % members) as u32)
            }
        }
    }
}

/// What every protocol is told.
pub(super) struct Basis<'a> {
    pub(super) units: u32,
    /// What is known of each unit, if they differ.
    pub(super) labels: Option<Arc<Labels>>,
    /// Units that are not for everybody.
    pub(super) reserved: &'a [Reserved],
    pub(super) lease: Lease,
    pub(super) members: &'a [String],
    /// The cluster's epoch.
    pub(super) epoch: u32,
}

impl Basis<'_> {
    fn nodes(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }
}

impl ProtocolDef {
    /// The protocol of this name with its options, and what its quorums are worth if it has any.
    pub(super) fn read(
        name: &str,
        basis: &Basis<'_>,
        options: &mut Options,
    ) -> Result<(ProtocolDef, Option<Worth>), String> {
        if basis.labels.is_some() && ![Central::NAME, Table::NAME].contains(&name) {
            return Err(format!(
                "{name} cannot choose among units that differ: only \"central\" and \"table\" have \
                 units with labels"
            ));
        }
        let protocol = match name {
            Central::NAME => central(basis, options)?,
            Arbiter::NAME | Table::NAME => {
                let (protocol, worth) = voting(name, basis, options)?;
                return Ok((protocol, Some(worth)));
            }
            Weighted::NAME => ProtocolDef::Broadcast(broadcast(basis, options)?),
            Ring::NAME => ProtocolDef::Ring(ring(basis, options)?),
            other => {
                return Err(format!(
                    "protocol {other:?}: choose \"central\", \"arbiter\", \"table\", \
                     \"broadcast\" or \"ring\""
                ));
            }
        };
        Ok((protocol, None))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            ProtocolDef::Central { .. } => Central::NAME,
            ProtocolDef::Arbiter(_) => Arbiter::NAME,
            ProtocolDef::Ticket(_) => Ticket::NAME,
            ProtocolDef::Table(_) => Table::NAME,
            ProtocolDef::Broadcast(_) => Weighted::NAME,
            ProtocolDef::Ring(_) => Ring::NAME,
        }
    }

    /// Whether grants are on disk before they are told.
    pub fn is_durable(&self) -> bool {
        match self {
            ProtocolDef::Central { pool, .. } => pool.goods.durable,
            ProtocolDef::Arbiter(pool) => pool.durable,
            ProtocolDef::Table(pool) => pool.goods.durable,
            ProtocolDef::Ticket(_) | ProtocolDef::Broadcast(_) | ProtocolDef::Ring(_) => false,
        }
    }

    /// Whether the protocol knows from its records, or from there being none, what it promised.
    pub(crate) fn reads_records(&self) -> bool {
        match self {
            ProtocolDef::Central { pool, .. } => pool.goods.durable,
            // They write fences down even where they forget the rest, and say what they lack.
            ProtocolDef::Arbiter(_) | ProtocolDef::Table(_) => true,
            ProtocolDef::Ticket(_) | ProtocolDef::Broadcast(_) | ProtocolDef::Ring(_) => false,
        }
    }

    /// Whether only its records tell how far fences came, so that losing them matters even when
    /// every promise of that time is over.
    pub(crate) fn forgets_fences(&self) -> bool {
        matches!(self, ProtocolDef::Arbiter(_) | ProtocolDef::Table(_))
    }

    /// Whether to be told that a node is suspected means to the protocol that somebody made sure:
    /// then a failure detector's opinion will not do.
    pub(crate) fn needs_proof(&self) -> bool {
        matches!(self, ProtocolDef::Broadcast(pool) if pool.reclaim == Reclaim::Fenced)
    }

    /// Most units that one claim can have.
    pub(super) fn claim_max(&self, units: u32) -> u32 {
        match self {
            ProtocolDef::Broadcast(pool) => pool.node_units_max,
            ProtocolDef::Central { .. }
            | ProtocolDef::Arbiter(_)
            | ProtocolDef::Ticket(_)
            | ProtocolDef::Table(_)
            | ProtocolDef::Ring(_) => units,
        }
    }

    /// The options that decide what a crash costs, in words, where there are such.
    pub fn terms(&self) -> Option<String> {
        let ProtocolDef::Broadcast(pool) = self else { return None };
        let (crashes, most) = (pool.crashes_max, pool.node_units_max);
        let reclaim = pool.reclaim.name();
        Some(format!("reclaim {reclaim}, crashes_max {crashes}, node_units_max {most}"))
    }

    /// What every member must agree on.
    pub(super) fn canonical(&self) -> String {
        match self {
            ProtocolDef::Central { arbiter, pool } => {
                let who = match arbiter {
                    Chosen::ByName => "spread".to_owned(),
                    Chosen::Node(node) => node.to_string(),
                };
                format!("central {who} {}", shared(&pool.goods))
            }
            ProtocolDef::Arbiter(pool) => {
                let mode = match pool.mode {
                    Mode::Count { holders_max, backfill } => {
                        let naming = if pool.naming { " naming" } else { "" };
                        format!("count holders {holders_max} passes {backfill}{naming}")
                    }
                    Mode::Named => "named".to_owned(),
                };
                let quorums = agreed(&pool.quorums);
                format!("arbiter {mode} quorums {quorums} durable {}", pool.durable)
            }
            // How many spares a node asks is its own matter.
            ProtocolDef::Ticket(pool) => format!("ticket quorums {}", agreed(&pool.quorums)),
            ProtocolDef::Table(pool) => {
                format!("table quorums {} {}", agreed(&pool.quorums), shared(&pool.goods))
            }
            ProtocolDef::Broadcast(pool) => {
                let reclaim = pool.reclaim.name();
                let (crashes, node_units) = (pool.crashes_max, pool.node_units_max);
                format!("broadcast crashes {crashes} node_units {node_units} reclaim {reclaim}")
            }
            ProtocolDef::Ring(pool) => format!("ring train ttl {}", pool.ttl.length().as_nanos()),
        }
    }
}

/// What decides over units that may differ, as every member must know it.
fn shared(goods: &Goods) -> String {
    let passes = goods.fairness.overtakes_max();
    let labels = goods.labels.as_ref().map(|labels| format!(" {labels:?}")).unwrap_or_default();
    format!("passes {passes} durable {}{labels}", goods.durable)
}

/// Quorums as every member must know them.
fn agreed(quorums: &Quorums) -> String {
    match quorums {
        Quorums::Threshold { members, size } => format!("{size} of {members}"),
        Quorums::BySize { members, sizes } => format!("{sizes:?} of {members}"),
        Quorums::Explicit(sets) => format!("{sets:?}"),
        Quorums::Nested(family) => format!("{family:?}"),
    }
}

/// What there is, for whom, and who may pass whom.
fn goods(basis: &Basis<'_>, options: &mut Options) -> Result<Goods, String> {
    let mut goods = Goods::new(basis.units);
    goods.lease = basis.lease;
    goods.labels = basis.labels.clone();
    goods.eligible = eligible(basis);
    goods.fairness = options.fairness()?;
    goods.durable = options.take("durable")?.unwrap_or(false);
    goods.retry = options.span("retry")?.unwrap_or(goods.retry);
    Ok(goods)
}

fn central(basis: &Basis<'_>, options: &mut Options) -> Result<ProtocolDef, String> {
    let pool = central::Pool::of(goods(basis, options)?);
    let text: String = options.take("arbiter")?.unwrap_or_else(|| "spread".into());
    let place = basis.members.iter().position(|name| *name == text);
    let arbiter = match place {
        _ if text == "spread" => Chosen::ByName,
        Some(place) => Chosen::Node(NodeId::from(place)),
        None => {
            let members = basis.members;
            return Err(format!(
                "arbiter {text:?} is not a member: choose one of {members:?} or \"spread\""
            ));
        }
    };
    Ok(ProtocolDef::Central { arbiter, pool })
}

/// Which units the clients of each member may use, whoever they are; `None` if any.
fn eligible(basis: &Basis<'_>) -> Option<Arc<[Arc<[Unit]>]>> {
    let one = |member| reserved::allowed(basis.reserved, basis.units, NodeId(member), None);
    let each: Vec<Option<Arc<[Unit]>>> = (0..basis.nodes()).map(one).collect();
    let all = || (0..basis.units).map(Unit).collect();
    let differ = each.iter().any(Option::is_some);
    differ.then(|| each.into_iter().map(|units| units.unwrap_or_else(all)).collect())
}

/// What quorums decide, by permissions, tickets or a table, and what the quorums are worth.
fn voting(
    name: &str,
    basis: &Basis<'_>,
    options: &mut Options,
) -> Result<(ProtocolDef, Worth), String> {
    let (units, nodes) = (basis.units, basis.nodes());
    let mode = match name {
        Table::NAME => voting::Mode::Table,
        _ => options.take("mode")?.unwrap_or_else(|| "named".to_owned()).parse()?,
    };
    let terms = Terms {
        mode,
        family: options.take("family")?,
        max_holders: match mode {
            voting::Mode::Table => None,
            _ => options.number("max_holders", (1, units))?,
        },
        voters: options.number("voters", (1, nodes))?,
        survive: options.number("survive", (0, nodes))?,
        naming: options.take("naming")?.unwrap_or(false),
    };
    let mut settled = terms.settle(nodes, units).map_err(|error| error.to_string())?;
    if let voting::Pool::Ticket(_) = settled.pool {
        // All of them, so that whoever holds units outlives whatever the quorums do.
        let spares = options.number("spares", (0, nodes))?;
        settled = settled.with_spares(spares.unwrap_or(nodes));
    }
    let Settled { pool, worth } = settled;
    let patience = options.number("patience", (1, 1000))?;
    let protocol = match pool {
        voting::Pool::Arbiter(mut pool) => {
            pool.lease = basis.lease;
            pool.retry = options.span("retry")?.unwrap_or(pool.retry);
            pool.patience = patience.or(pool.patience);
            pool.durable = options.take("durable")?.unwrap_or(false);
            pool.hedge = options.number("hedge", (0, nodes))?.unwrap_or(0);
            if let Mode::Count { backfill, .. } = &mut pool.mode {
                *backfill = options.fairness()?.overtakes_max();
            }
            ProtocolDef::Arbiter(pool)
        }
        voting::Pool::Ticket(mut pool) => {
            pool.lease = basis.lease;
            pool.retry = options.span("retry")?.unwrap_or(pool.retry);
            pool.patience = patience.or(pool.patience);
            ProtocolDef::Ticket(pool)
        }
        voting::Pool::Table(mut pool) => {
            pool.goods = goods(basis, options)?;
            pool.patience = patience.or(pool.patience);
            ProtocolDef::Table(pool)
        }
    };
    Ok((protocol, worth))
}

fn broadcast(basis: &Basis<'_>, options: &mut Options) -> Result<broadcast::Pool, String> {
    let (units, nodes) = (basis.units, basis.nodes());
    // Broadcast spec E8: with more, no responsiveness property can hold for everybody.
    let most = (nodes - 1) / 2;
    let crashes_max = options.number("crashes_max", (0, most))?.unwrap_or(most.min(units - 1));
    // What one node may have at most, others must be able to do without: f crashes cost f times it.
    let share = (units / (crashes_max + 1)).max(1);
    let node_units_max = options.number("node_units_max", (1, units))?.unwrap_or(share);
    let mut pool = broadcast::Pool::weighted(nodes, units, node_units_max, crashes_max);
    pool.lease = Some(basis.lease);
    pool.retry = options.span("retry")?.or(pool.retry);
    // A lease is renewed by probes, several of which must fit into it.
    let length = basis.lease.length();
    let probe = options.span("probe")?.unwrap_or(length / 4);
    if probe > length / 2 {
        return Err("probe is longer than half the lease: no lease would be renewed in time".into());
    }
    pool.probe = Some(probe.max(super::options::SHORTEST));
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

fn ring(basis: &Basis<'_>, options: &mut Options) -> Result<ring::Pool, String> {
    let mut pool = ring::Pool::new(basis.units, basis.nodes());
    (pool.lease, pool.epoch) = (basis.lease, basis.epoch);
    let ttl = options.span("ttl")?.unwrap_or(basis.lease.length());
    pool.ttl = Lease::new(ttl, basis.lease.drift_ppm());
    if let Some(timeout) = options.span("timeout")? {
        pool.timeout = timeout;
    }
    if let Some(idle) = options.span("idle")? {
        pool.idle = idle;
    }
    if let Some(most) = options.number("grants_max", (1, 100_000))? {
        pool.grants_max = most as usize;
    }
    Ok(pool)
}
