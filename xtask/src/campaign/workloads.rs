//! What clients do: each a crew of processes with a manner. Where a workload needs something that
//! only some protocols have, it says which.

use super::draw::Protocol;

/// Some clients of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew {
    /// `http` is plain HTTP, `jobs` is `quorate run`, `package` the client for Python, `rust` the
    /// client library.
    pub(crate) kind: &'static str,
    /// What it does (`client.py`).
    pub(crate) manner: &'static str,
    pub(crate) threads: u32,
}

#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) crews: &'static [Crew],
    pub(crate) fits: fn(Protocol) -> bool,
    /// Units have labels.
    pub(crate) labelled: bool,
    /// Claims go to so many pools of a pattern instead of one pool.
    pub(crate) pools: u32,
    /// Some hold without a lease: what is written down must not be taken away from most nodes.
    pub(crate) stands: bool,
}

impl Workload {
    /// Whether it can be played with this protocol. A charter has pools with names, no patterns.
    pub(crate) fn suits(&self, protocol: Protocol) -> bool {
        (self.fits)(protocol) && (protocol != Protocol::Grown || self.pools == 0)
    }
}

const fn http(manner: &'static str, threads: u32) -> Crew {
    Crew { kind: "http", manner, threads }
}

const fn workload(
    name: &'static str,
    about: &'static str,
    crews: &'static [Crew],
    fits: fn(Protocol) -> bool,
) -> Workload {
    Workload { name, about, crews, fits, labelled: false, pools: 0, stands: false }
}

fn any(_: Protocol) -> bool {
    true
}

fn with_labels(protocol: Protocol) -> bool {
    protocol.moves() || matches!(protocol, Protocol::Central | Protocol::Table)
}

fn with_standing(protocol: Protocol) -> bool {
    protocol == Protocol::Table
}

fn decided_by_one(protocol: Protocol) -> bool {
    protocol == Protocol::Central
}

const JOBS: Crew = Crew { kind: "jobs", manner: "jobs", threads: 3 };
const RUST: Crew = Crew { kind: "rust", manner: "", threads: 4 };
const PACKAGE: Crew = Crew { kind: "package", manner: "package", threads: 3 };

pub(crate) const ALL: &[Workload] = &[
    workload("small", "many small claims", &[http("small", 3), http("small", 3)], any),
    workload("sizes", "claims for 1 to k units", &[http("sizes", 3), http("sizes", 3)], any),
    workload("all-or-one", "claims for all k against streams of ones", &[http("crowd", 5)], any),
    workload("long", "long holds with renewals", &[http("long", 3), http("small", 2)], any),
    workload(
        "fickle",
        "claims that are cancelled, left without a word, and never given back",
        &[http("fickle", 3), http("fickle", 3)],
        any,
    ),
    workload(
        "repeats",
        "one claim asked for at several nodes",
        &[http("repeats", 3), http("small", 2)],
        any,
    ),
    workload(
        "wander",
        "clients that change nodes while they wait and while they hold",
        &[http("wander", 3), http("wander", 2)],
        Protocol::lets_wander,
    ),
    Workload {
        labelled: true,
        ..workload("labels", "units that differ, in bundles", &[http("labels", 5)], with_labels)
    },
    workload(
        "drains",
        "units are drained and brought back under load",
        &[http("drains", 1), http("small", 4)],
        decided_by_one,
    ),
    Workload {
        labelled: true,
        ..workload(
            "relabels",
            "units get other labels under load",
            &[http("drains", 1), http("labels", 4)],
            decided_by_one,
        )
    },
    Workload {
        stands: true,
        ..workload(
            "standing",
            "holds without a lease, beside some with one",
            &[http("standing", 3), http("small", 2)],
            with_standing,
        )
    },
    Workload { pools: 400, ..workload("pools", "claims over 400 pools", &[http("small", 6)], any) },
    Workload {
        pools: 10_000,
        ..workload("many-pools", "claims over 10,000 pools", &[http("small", 8)], any)
    },
    workload("jobs", "quorate run, with jobs short and long", &[JOBS, JOBS], any),
    workload("rust", "the client library", &[RUST, RUST], any),
    workload("package", "the client for Python", &[PACKAGE, PACKAGE], any),
    workload("mixed", "all kinds of clients in one pool", &[http("long", 2), JOBS, RUST], any),
];
