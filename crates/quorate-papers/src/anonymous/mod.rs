//! Miyamoto, Kakugawa, Yamashita: Extended distributed k-mutual exclusion (in Japanese).

mod construction;
mod hindsight;
mod problem;
mod protocol;

use quorate_quorum::Effort;
use quorate_quorum::sharing::{Assignment, Blueprint, Construction, Structure, circuits, plan};

/// Every function, section by section.
pub(crate) const EVIDENCE: &[&[(&str, crate::Evidence)]] =
    &[problem::EVIDENCE, protocol::EVIDENCE, construction::EVIDENCE, hindsight::EVIDENCE];

/// A structure, by what each process may use: bit sets of units.
fn structure(units: u32, alphas: &[u32]) -> Structure {
    let name = |unit: u32| format!("r{}", unit + 1);
    let of = |alpha: u32| (0..units).filter(|unit| alpha >> unit & 1 == 1).map(name).collect();
    let alpha = |(process, alpha): (usize, &u32)| (format!("u{}", process + 1), of(*alpha));
    let alphas = alphas.iter().enumerate().map(alpha).collect();
    Structure::new((0..units).map(name).collect(), alphas).expect("no alpha is empty")
}

/// Every structure of so many units and processes, up to the order of processes.
fn structures(units: u32, processes: usize) -> Vec<Vec<u32>> {
    fn go(sets: u32, least: u32, left: usize, so_far: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
        if left == 0 {
            found.push(so_far.clone());
            return;
        }
        for alpha in least..sets {
            so_far.push(alpha);
            go(sets, alpha, left - 1, so_far, found);
            so_far.pop();
        }
    }
    let mut found = Vec::new();
    go(1 << units, 1, processes, &mut Vec::new(), &mut found);
    found
}

/// Most of these processes that can hold one unit each, by trying.
fn holders(alphas: &[u32]) -> u32 {
    fn go(alphas: &[u32], free: u32) -> u32 {
        let Some((first, rest)) = alphas.split_first() else { return 0 };
        let mut most = go(rest, free);
        for unit in (0..32).filter(|unit| first & free & 1 << unit != 0) {
            most = most.max(1 + go(rest, free & !(1 << unit)));
        }
        most
    }
    go(alphas, u32::MAX)
}

/// Those of the processes that a mask names.
fn chosen(alphas: &[u32], mask: u32) -> Vec<u32> {
    (0..alphas.len()).filter(|i| mask >> i & 1 == 1).map(|i| alphas[i]).collect()
}

fn union(alphas: &[u32]) -> u32 {
    alphas.iter().fold(0, |all, alpha| all | alpha)
}

/// What a construction gives for a structure.
fn built(structure: &Structure, construction: Construction) -> (Blueprint, Assignment) {
    let circuits = circuits(structure, &mut Effort::default()).expect("small");
    let blueprint = plan(structure, construction, &circuits);
    let assignment = blueprint.quorums(structure, 100_000).expect("few");
    (blueprint, assignment)
}

/// The quorums of each process, as masks of arbiters.
fn quorums(structure: &Structure, assignment: &Assignment) -> Vec<Vec<u32>> {
    let groups: Vec<Vec<u32>> = assignment
        .quorums()
        .map(|list| list.iter().map(|q| q.iter().map(|node| 1 << node.0).sum()).collect())
        .collect();
    let group = |process: usize| {
        let alpha = structure.alpha(process);
        structure.groups().iter().position(|group| group.alpha == alpha).unwrap_or(0)
    };
    (0..structure.processes().len()).map(|process| groups[group(process)].clone()).collect()
}

/// As people write it: what u1, u2... may use.
fn shown(alphas: &[u32]) -> String {
    crate::brute::family(alphas)
}
