//! What a node counts (conventions 3.8). Pools that are made by a pattern are counted under the
//! pattern, so that their number does not become a number of time series.

mod facts;
#[cfg(test)]
mod packaged_tests;
mod trust;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use quorate_core::Fact;

use crate::config::Config;
use facts::Facts;
use trust::Trust;

type Seconds = Gauge<f64, AtomicU64>;
type HistogramFamily<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct PoolLabel {
    pool: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct StateLabel {
    pool: String,
    state: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OutcomeLabel {
    pool: String,
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct CauseLabel {
    pool: String,
    cause: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct TypeLabel {
    r#type: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct PlainOutcome {
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct PlainState {
    state: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct FaultLabel {
    from: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct StatusLabel {
    status: u32,
}

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    messages: Family<TypeLabel, Counter>,
    renewals: Family<PlainOutcome, Counter>,
    members: Family<PlainState, Gauge>,
    refused: Family<FaultLabel, Counter>,
    refused_requests: Family<StatusLabel, Counter>,
    pub(crate) fsync: Histogram,
    facts: Facts,
    pub(crate) quorum_reachable: Gauge,
    pub(crate) clients: Gauge,
    pub(crate) anomalies: Counter,
    pub(crate) messages_dropped: Counter,
    pub(crate) seats_stopped: Gauge,
    pub(crate) seats: Gauge,
    pub(crate) seat_moves: Counter,
    pub(crate) unshadowed: Gauge,
    /// Of doors and callers.
    pub(crate) trust: Trust,
    reloads: Family<PlainOutcome, Counter>,
    pools: PoolFamilies,
}

#[derive(Debug)]
struct PoolFamilies {
    units: Family<StateLabel, Gauge>,
    capacity: Family<PoolLabel, Gauge>,
    waiters: Family<PoolLabel, Gauge>,
    wait_units: Family<PoolLabel, Gauge>,
    oldest_wait: Family<PoolLabel, Seconds>,
    oldest_hold: Family<PoolLabel, Seconds>,
    standing: Family<PoolLabel, Gauge>,
    overdue: Family<PoolLabel, Gauge>,
    acquires: Family<OutcomeLabel, Counter>,
    releases: Family<CauseLabel, Counter>,
    grants_up_to: Family<PoolLabel, Gauge>,
    unavailable: Family<PoolLabel, Gauge>,
    overtakes: Family<PoolLabel, Counter>,
    fence_rejections: Family<PoolLabel, Counter>,
    acquire_duration: HistogramFamily<OutcomeLabel>,
    hold_duration: HistogramFamily<PoolLabel>,
}

/// What is counted for the pools of one definition, ready at hand.
#[derive(Clone, Debug)]
pub(crate) struct PoolMeters {
    pub(crate) granted: Counter,
    pub(crate) refused: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) released: Counter,
    pub(crate) expired: Counter,
    pub(crate) revoked: Counter,
    pub(crate) overtakes: Counter,
    pub(crate) fence_rejections: Counter,
    pub(crate) granted_after: Histogram,
    pub(crate) cancelled_after: Histogram,
    pub(crate) held_for: Histogram,
    pub(crate) renewed: Counter,
    pub(crate) not_renewed: Counter,
    pub(crate) messages: Arc<[Counter]>,
}

/// How the pools of one definition stand, as far as this node decides them.
#[derive(Clone, Default, Debug)]
pub(crate) struct Standing {
    pub(crate) capacity: u64,
    /// Units that nobody has, if this node can tell.
    pub(crate) known_free: Option<u64>,
    pub(crate) held: u64,
    pub(crate) quarantined: u64,
    /// Units that an administrator took out of use.
    pub(crate) draining: u64,
    pub(crate) waiters: u64,
    pub(crate) wait_units: u64,
    pub(crate) oldest_wait: Duration,
    pub(crate) oldest_hold: Duration,
    /// Units of the largest claim that every one of these pools in use can grant...
    pub(crate) grants_up_to: Option<u64>,
    /// ...and how many of them can grant none.
    pub(crate) unavailable: u64,
    /// What only the protocols know.
    pub(crate) facts: Vec<Fact>,
}

impl Standing {
    /// One of these pools can grant claims of up to so many units.
    pub(crate) fn see_outlook(&mut self, most: u64) {
        self.grants_up_to = Some(self.grants_up_to.map_or(most, |least| least.min(most)));
        self.unavailable += u64::from(most == 0);
    }
}

/// From 50 microseconds to 27 minutes, in factors of two.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 26))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("quorate");
        let version = ("version", env!("CARGO_PKG_VERSION"));
        let build = Info::new(vec![version, ("commit", env!("QUORATE_COMMIT"))]);
        registry.register("build", "The program", build);
        let pools = PoolFamilies::new(&mut registry);
        let messages = Family::default();
        registry.register(
            "messages_sent",
            "Messages between nodes, by type",
            Family::clone(&messages),
        );
        let renewals = Family::default();
        registry.register(
            "lease_renewals",
            "Renewals that were answered",
            Family::clone(&renewals),
        );
        let members = Family::default();
        registry.register("members", "Members of the cluster", Family::clone(&members));
        let refused = Family::default();
        registry.register(
            "refused_connections",
            "Connections closed for what they said",
            Family::clone(&refused),
        );
        let refused_requests = Family::default();
        registry.register(
            "refused_requests",
            "HTTP requests that were not carried out, by the status of the answer",
            Family::clone(&refused_requests),
        );
        let reloads = Family::<PlainOutcome, Counter>::default();
        // There from the start: whoever watches it grow would miss the first.
        for outcome in ["taken", "refused"] {
            drop(reloads.get_or_create(&PlainOutcome { outcome }));
        }
        registry.register(
            "reloads",
            "Times that the configuration was read anew, by what came of it",
            Family::clone(&reloads),
        );
        let fsync = buckets();
        registry.register_with_unit(
            "fsync_duration",
            "Writing the journal",
            Unit::Seconds,
            fsync.clone(),
        );
        let facts = Facts::default();
        registry.register_collector(Box::new(facts.clone()));
        let gauge = |registry: &mut Registry, name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let counter = |registry: &mut Registry, name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let reachable = "Whether a majority of members, this one included, is connected";
        Metrics {
            quorum_reachable: gauge(&mut registry, "quorum_reachable", reachable),
            clients: gauge(&mut registry, "clients", "Connections of clients"),
            seats: gauge(&mut registry, "seats", "Pools in use at this node"),
            seat_moves: counter(
                &mut registry,
                "seat_moves",
                "Times that a pool in use here got another node that decides, or the same anew",
            ),
            unshadowed: gauge(
                &mut registry,
                "pools_unshadowed",
                "Pools over which this node decides and nobody would decide at once without it",
            ),
            seats_stopped: gauge(
                &mut registry,
                "seats_stopped",
                "Seats that contradicted themselves",
            ),
            anomalies: counter(
                &mut registry,
                "anomalies",
                "Messages no correct peer could have sent",
            ),
            messages_dropped: counter(
                &mut registry,
                "messages_dropped",
                "Messages that reached nobody",
            ),
            trust: Trust::new(&mut registry),
            reloads,
            registry,
            messages,
            renewals,
            members,
            refused,
            refused_requests,
            fsync,
            facts,
            pools,
        }
    }

    /// The configuration was read anew, or could not be.
    pub(crate) fn reloaded(&self, taken: bool) {
        let outcome = if taken { "taken" } else { "refused" };
        self.reloads.get_or_create(&PlainOutcome { outcome }).inc();
    }

    /// The meters of one definition.
    pub(crate) fn pool(&self, label: &str, kinds: &[&'static str]) -> PoolMeters {
        let pool = || label.to_owned();
        let acquires = |outcome| {
            self.pools.acquires.get_or_create(&OutcomeLabel { pool: pool(), outcome }).clone()
        };
        let after = |outcome| {
            let label = OutcomeLabel { pool: pool(), outcome };
            self.pools.acquire_duration.get_or_create(&label).clone()
        };
        let releases =
            |cause| self.pools.releases.get_or_create(&CauseLabel { pool: pool(), cause }).clone();
        let renewals = |outcome| self.renewals.get_or_create(&PlainOutcome { outcome }).clone();
        let of = |family: &Family<PoolLabel, Counter>| {
            family.get_or_create(&PoolLabel { pool: pool() }).clone()
        };
        let held_for = self.pools.hold_duration.get_or_create(&PoolLabel { pool: pool() }).clone();
        PoolMeters {
            granted: acquires("granted"),
            refused: acquires("refused"),
            cancelled: acquires("cancelled"),
            released: releases("client"),
            expired: releases("expired"),
            revoked: releases("revoked"),
            overtakes: of(&self.pools.overtakes),
            fence_rejections: of(&self.pools.fence_rejections),
            granted_after: after("granted"),
            cancelled_after: after("cancelled"),
            held_for,
            renewed: renewals("renewed"),
            not_renewed: renewals("lost"),
            messages: kinds
                .iter()
                .map(|r#type| self.messages.get_or_create(&TypeLabel { r#type }).clone())
                .collect(),
        }
    }

    /// A client's connection is there as long as what this returns.
    pub(crate) fn count_client(&self) -> Counted {
        self.clients.inc();
        Counted(self.clients.clone())
    }

    /// A connection was closed for what it said.
    pub(crate) fn refuse(&self, from: &'static str) {
        self.refused.get_or_create(&FaultLabel { from }).inc();
    }

    /// An HTTP request was not carried out.
    pub(crate) fn refuse_request(&self, status: u16) {
        self.refused_requests.get_or_create(&StatusLabel { status: status.into() }).inc();
    }

    /// How all pools stand now, by definition.
    pub(crate) fn measure<'a>(
        &self,
        config: &Config,
        standings: impl Iterator<Item = (&'a Arc<str>, &'a Standing)>,
    ) {
        self.facts.clear();
        for (label, standing) in standings {
            self.stand(label, standing);
            for fact in &standing.facts {
                let peer = fact.about.and_then(|node| config.members.get(node.index()));
                self.facts.add(label, fact, peer.map(|member| member.name.as_str()));
            }
        }
    }

    fn stand(&self, label: &str, standing: &Standing) {
        let pool = || PoolLabel { pool: label.to_owned() };
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let units = |state, n| {
            let label = StateLabel { pool: label.to_owned(), state };
            self.pools.units.get_or_create(&label).set(count(n));
        };
        units("held", standing.held);
        units("quarantined", standing.quarantined);
        units("draining", standing.draining);
        if let Some(free) = standing.known_free {
            units("free", free);
        }
        if let Some(most) = standing.grants_up_to {
            self.pools.grants_up_to.get_or_create(&pool()).set(count(most));
            self.pools.unavailable.get_or_create(&pool()).set(count(standing.unavailable));
        }
        self.pools.capacity.get_or_create(&pool()).set(count(standing.capacity));
        self.pools.waiters.get_or_create(&pool()).set(count(standing.waiters));
        self.pools.wait_units.get_or_create(&pool()).set(count(standing.wait_units));
        self.pools.oldest_wait.get_or_create(&pool()).set(standing.oldest_wait.as_secs_f64());
        self.pools.oldest_hold.get_or_create(&pool()).set(standing.oldest_hold.as_secs_f64());
    }

    /// How many hold without a lease, in the whole cluster, and how many of them for too long.
    pub(crate) fn set_standing(&self, label: &str, standing: u64, overdue: u64) {
        let pool = PoolLabel { pool: label.to_owned() };
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.pools.standing.get_or_create(&pool).set(count(standing));
        self.pools.overdue.get_or_create(&pool).set(count(overdue));
    }

    /// Who is connected, of so many members.
    pub(crate) fn mesh(&self, members: usize, connected: usize) {
        let state = |state, n: usize| {
            let n = i64::try_from(n).unwrap_or(i64::MAX);
            self.members.get_or_create(&PlainState { state }).set(n);
        };
        state("connected", connected + 1);
        state("absent", members.saturating_sub(connected + 1));
        self.quorum_reachable.set(i64::from(connected + 1 > members / 2));
    }

    /// As OpenMetrics has it.
    pub(crate) fn open_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// As Prometheus has always read it (text format 0.0.4): counters are named in full, and what
    /// OpenMetrics added is left out.
    pub(crate) fn plain_text(&self) -> String {
        let open = self.open_text();
        let mut text = String::with_capacity(open.len());
        let mut help = "";
        for line in open.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words[..] {
                ["#", "EOF"] | ["#", "UNIT", ..] => continue,
                ["#", "HELP", _, words] => help = words,
                ["#", "TYPE", name, kind] => {
                    let (end, kind) = match kind {
                        "counter" => ("_total", "counter"),
                        "info" => ("_info", "gauge"),
                        other => ("", other),
                    };
                    text.push_str(&format!("# HELP {name}{end} {help}\n"));
                    text.push_str(&format!("# TYPE {name}{end} {kind}\n"));
                }
                _ => {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        text
    }
}

/// Something that is counted while it is there.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl PoolFamilies {
    fn new(registry: &mut Registry) -> Self {
        let families = PoolFamilies {
            units: Family::default(),
            capacity: Family::default(),
            waiters: Family::default(),
            wait_units: Family::default(),
            oldest_wait: Family::default(),
            oldest_hold: Family::default(),
            standing: Family::default(),
            overdue: Family::default(),
            acquires: Family::default(),
            releases: Family::default(),
            grants_up_to: Family::default(),
            unavailable: Family::default(),
            overtakes: Family::default(),
            fence_rejections: Family::default(),
            acquire_duration: Family::new_with_constructor(buckets),
            hold_duration: Family::new_with_constructor(buckets),
        };
        let f = &families;
        registry.register(
            "pool_units",
            "Units this node decides over or its clients hold, by state",
            f.units.clone(),
        );
        let help = "Units of the largest claim that can be granted with the nodes that are there, \
                    as this node sees it; 0 if none can";
        registry.register("pool_grants_up_to_units", help, f.grants_up_to.clone());
        let help = "Pools in use at this node that can grant nothing, as it sees it";
        registry.register("pools_unavailable", help, f.unavailable.clone());
        registry.register("pool_capacity_units", "Units this node answers for", f.capacity.clone());
        registry.register(
            "waiters",
            "Claims in this node's queues, or of its clients where nobody has a queue",
            f.waiters.clone(),
        );
        registry.register("wait_units", "Units they ask for", f.wait_units.clone());
        let seconds = Unit::Seconds;
        let help = "How long the oldest claim of this node's clients has waited";
        registry.register_with_unit("oldest_wait", help, seconds.clone(), f.oldest_wait.clone());
        let help = "How long the oldest grant of this node's clients has lasted";
        registry.register_with_unit("oldest_hold", help, seconds.clone(), f.oldest_hold.clone());
        let help = "Holds without a lease, in the whole cluster";
        registry.register("standing_holds", help, f.standing.clone());
        let help = "Those that have lasted for longer than the pool's overdue time";
        registry.register("overdue_holds", help, f.overdue.clone());
        registry.register(
            "acquires",
            "Claims of this node's clients, by outcome",
            f.acquires.clone(),
        );
        let help = "Grants that ended: by the client, by the lease, by an operator";
        registry.register("releases", help, f.releases.clone());
        let help =
            "Grants to this node's clients that passed an older claim of this node's clients";
        registry.register("overtakes", help, f.overtakes.clone());
        let help = "Renewals that showed other units or fences than were granted";
        registry.register("fence_rejections", help, f.fence_rejections.clone());
        let help = "From the claim to its outcome";
        let duration = f.acquire_duration.clone();
        registry.register_with_unit("acquire_duration", help, seconds.clone(), duration);
        let help = "From the grant to its end";
        registry.register_with_unit("hold_duration", help, seconds, f.hold_duration.clone());
        families
    }
}
