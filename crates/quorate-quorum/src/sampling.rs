//! Availability by sampling, with a stated confidence.
//!
//! Plain sampling cannot see anything rarer than one in the number of samples. With equal nodes we
//! therefore sample by the number of dead nodes: below the smallest hitting set no quorum system
//! fails, above the number of nodes outside a smallest quorum it always fails, and only in between
//! is chance needed; each stratum is weighed by its exact binomial probability. Every interval is
//! Wilson's at four standard deviations, so that all of them together hold with 99 %.

use quorate_core::Dice;

/// An estimate between two bounds that hold with 99 % confidence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Lower bound.
    pub low: f64,
    /// The estimate.
    pub value: f64,
    /// Upper bound.
    pub high: f64,
    /// How many samples were drawn.
    pub samples: u64,
}

/// Confidence of [`Estimate`].
pub const CONFIDENCE: f64 = 0.99;

/// Chance that a seed repeats, in every version.
#[derive(Clone, Debug)]
pub struct Draws(Dice);

impl Draws {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Draws(Dice::new(seed))
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0.draw()
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.word()) * bound as u128) >> 64) as usize
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a sampler may use: how many nodes, what the family tolerates for certain, and how often to
/// try.
#[derive(Clone, Copy, Debug)]
pub struct Samples {
    /// Number of nodes.
    pub nodes: usize,
    /// Any this many crashes are survived.
    pub survives: usize,
    /// Members of a smallest quorum.
    pub smallest: usize,
    /// Samples in all.
    pub samples: u64,
    /// Seed of the draws.
    pub seed: u64,
}

/// Estimates the availability when every node is alive with probability `up`.
/// `survived` says whether a quorum is left when the nodes listed are dead.
pub fn by_strata(plan: Samples, up: f64, survived: impl Fn(&[usize]) -> bool) -> Estimate {
    let mut draws = Draws::new(plan.seed);
    let weights = binomial_weights(plan.nodes, 1.0 - up);
    let (first, last) = (plan.survives + 1, plan.nodes.saturating_sub(plan.smallest));
    // So many strata matter that there would be too few samples for each.
    let likely = weights.iter().filter(|weight| **weight > 1e-6).count() as u64;
    if likely * 1000 > plan.samples {
        return plainly(plan.samples, plan.seed, &vec![up; plan.nodes], survived);
    }
    let mut sum = Estimate { low: 0.0, value: 0.0, high: 0.0, samples: 0 };
    let certain: f64 = weights[..first.min(plan.nodes + 1)].iter().sum();
    (sum.low, sum.value, sum.high) = (certain, certain, certain);
    let chance: f64 = (first..=last).map(|dead| weights[dead].sqrt()).sum();
    let mut order: Vec<usize> = (0..plan.nodes).collect();
    for dead in first..=last {
        let share = if chance > 0.0 { weights[dead].sqrt() / chance } else { 0.0 };
        let tries = (plan.samples as f64 * share) as u64;
        if tries < 16 {
            sum.high += weights[dead];
            sum.value += weights[dead] / 2.0;
            continue;
        }
        let mut good = 0;
        for _ in 0..tries {
            for position in 0..dead {
                let other = position + draws.below(plan.nodes - position);
                order.swap(position, other);
            }
            good += u64::from(survived(&order[..dead]));
        }
        let (low, value, high) = wilson(good, tries);
        sum.low += weights[dead] * low;
        sum.value += weights[dead] * value;
        sum.high += weights[dead] * high;
        sum.samples += tries;
    }
    Estimate { high: sum.high.min(1.0), ..sum }
}

/// For each number of dead nodes, the share of such sets that leave a quorum: certain where the
/// plan says so, sampled in between. From these the availability follows for every probability at
/// once.
pub fn survived_shares(plan: Samples, survived: impl Fn(&[usize]) -> bool) -> Vec<f64> {
    let mut draws = Draws::new(plan.seed);
    let (first, last) = (plan.survives + 1, plan.nodes.saturating_sub(plan.smallest));
    let tries = plan.samples / (last + 1).saturating_sub(first).max(1) as u64 + 1;
    let mut order: Vec<usize> = (0..plan.nodes).collect();
    let mut share = |dead: usize| {
        let mut good = 0u64;
        for _ in 0..tries {
            for position in 0..dead {
                let other = position + draws.below(plan.nodes - position);
                order.swap(position, other);
            }
            good += u64::from(survived(&order[..dead]));
        }
        good as f64 / tries as f64
    };
    (0..=plan.nodes)
        .map(|dead| match dead {
            dead if dead < first => 1.0,
            dead if dead > last => 0.0,
            dead => share(dead),
        })
        .collect()
}

/// Estimates the availability when node i is alive with probability `up[i]`.
pub fn plainly(
    samples: u64,
    seed: u64,
    up: &[f64],
    survived: impl Fn(&[usize]) -> bool,
) -> Estimate {
    let mut draws = Draws::new(seed);
    let mut good = 0;
    for _ in 0..samples {
        let dead: Vec<usize> = (0..up.len()).filter(|i| draws.unit() >= up[*i]).collect();
        good += u64::from(survived(&dead));
    }
    let (low, value, high) = wilson(good, samples);
    Estimate { low, value, high, samples }
}

/// The probability of each number of successes in `n` tries. Built up try by try: all terms are
/// positive, so nothing cancels.
pub(crate) fn binomial_weights(n: usize, chance: f64) -> Vec<f64> {
    let mut weights = vec![0.0; n + 1];
    weights[0] = 1.0;
    for tries in 0..n {
        for successes in (0..=tries + 1).rev() {
            let before = if successes > 0 { weights[successes - 1] * chance } else { 0.0 };
            weights[successes] = weights[successes] * (1.0 - chance) + before;
        }
    }
    weights
}

/// Wilson's interval at four standard deviations: misses once in 16,000 strata.
fn wilson(good: u64, tries: u64) -> (f64, f64, f64) {
    const Z: f64 = 4.0;
    let (n, share) = (tries as f64, good as f64 / tries as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let spread = share * (1.0 - share) / n + Z * Z / (4.0 * n * n);
    let half = Z * spread.sqrt() / (1.0 + Z * Z / n);
    ((middle - half).max(0.0), share, (middle + half).min(1.0))
}
