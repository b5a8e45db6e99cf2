//! Baldoni, Manabe, Raynal, Aoyagi: k-Arbiter (INRIA RR-2523, 1995).

mod arbiters;
mod coteries;
mod cubes;
mod domination;
mod frontier;
mod problem;
mod resiliency;
mod scheme;
mod symmetry;

/// Every function, section by section.
pub(crate) const EVIDENCE: &[&[(&str, crate::Evidence)]] = &[
    problem::EVIDENCE,
    coteries::EVIDENCE,
    scheme::EVIDENCE,
    arbiters::EVIDENCE,
    cubes::EVIDENCE,
    domination::EVIDENCE,
    symmetry::EVIDENCE,
    resiliency::EVIDENCE,
    frontier::EVIDENCE,
];
