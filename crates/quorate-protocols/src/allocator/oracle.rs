//! The slow, obvious way: flows unit by unit, and the pass as the specification prints it. Laws are
//! judged by it, and it shares no line with what it judges.

/// Most units that it can think of.
pub(crate) const UNITS_MAX: u32 = 32;

/// So many units of a set, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demand {
    pub(crate) alpha: u32,
    pub(crate) units: u32,
}

/// The maximum flow of these demands (the specification's rho).
pub(crate) fn rho(demands: &[Demand]) -> u32 {
    let mut owner = [None; 32];
    let mut flow = 0;
    for index in 0..demands.len() {
        for _ in 0..demands[index].units {
            flow += u32::from(place(demands, index, &mut owner, &mut 0));
        }
    }
    flow
}

fn place(
    demands: &[Demand],
    index: usize,
    owner: &mut [Option<usize>; 32],
    seen: &mut u32,
) -> bool {
    for unit in 0..32 {
        if demands[index].alpha >> unit & 1 == 0 || *seen >> unit & 1 == 1 {
            continue;
        }
        *seen |= 1 << unit;
        if owner[unit].is_none_or(|other| place(demands, other, owner, seen)) {
            owner[unit] = Some(index);
            return true;
        }
    }
    false
}

fn units(lines: &[Demand]) -> u32 {
    lines.iter().map(|line| line.units).sum()
}

/// Whether a claim is free over others: all of it fits beside as much as fits of them.
fn is_free(over: &[Demand], claim: &[Demand]) -> bool {
    rho(&[over, claim].concat()) == rho(over) + units(claim)
}

/// The pass: which of those who wait are granted, and which are blocked and protected.
pub(crate) fn decide(
    holders: &[Demand],
    waiting: &[Vec<Demand>],
    mut protect: u32,
) -> (Vec<usize>, Vec<usize>) {
    let mut over = holders.to_vec();
    let (mut granted, mut protected) = (Vec::new(), Vec::new());
    for (index, claim) in waiting.iter().enumerate() {
        if is_free(&over, claim) {
            granted.push(index);
            over.extend(claim);
        } else if protect > 0 {
            protect -= 1;
            protected.push(index);
            over.extend(claim);
        }
    }
    (granted, protected)
}

/// What a claim lacks beside the holders (the specification's delta).
pub(crate) fn lack(holders: &[Demand], claim: &[Demand]) -> u32 {
    units(holders) + units(claim) - rho(&[holders, claim].concat())
}
