//! Distribution of durations with bounded memory: mean and maximum are exact, and so are quantiles
//! of up to a million durations. Of more there are only sixteen buckets for each doubling, and a
//! quantile is off by at most 1/32.

const PER_DOUBLING: u64 = 16;
/// So many durations are kept one by one: eight megabytes.
const KEPT_MAX: usize = 1 << 20;

/// Counts durations in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
    /// All of them in order, unless they are more than [`KEPT_MAX`].
    kept: Vec<u64>,
}

impl Histogram {
    /// Counts one.
    pub fn add(&mut self, value: u64) {
        let bucket = bucket_of(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        if self.kept.len() < KEPT_MAX {
            self.kept.push(value);
        }
    }

    /// Whether quantiles are exact.
    pub fn is_exact(&self) -> bool {
        self.kept.len() as u64 == self.count
    }

    /// What was counted since it was like that.
    ///
    /// # Panics
    /// It never was.
    pub fn since(&self, before: &Histogram) -> Histogram {
        let mut since = Histogram::default();
        if self.is_exact() {
            self.kept[before.kept.len()..].iter().for_each(|&value| since.add(value));
            return since;
        }
        let earlier = before.counts.iter().chain(std::iter::repeat(&0));
        since.counts = self.counts.iter().zip(earlier).map(|(now, then)| now - then).collect();
        (since.count, since.sum) = (self.count - before.count, self.sum - before.sum);
        // The largest may be from before: what is known is its bucket.
        let last = since.counts.iter().rposition(|count| *count > 0);
        since.max = last.map_or(0, |bucket| bounds(bucket).1.min(self.max));
        since
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 if there are none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The largest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value below which this share of them lies.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = ((share * self.count as f64).ceil() as u64).max(1);
        if self.is_exact() {
            let mut kept = self.kept.clone();
            let place = (wanted as usize - 1).min(kept.len().saturating_sub(1));
            return if kept.is_empty() { 0 } else { *kept.select_nth_unstable(place).1 };
        }
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let (low, high) = bounds(bucket);
                return (low + (high - low) / 2).min(self.max);
            }
        }
        self.max
    }

    /// Buckets that are not empty: lower bound, upper bound, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, &count)| {
            let (low, high) = bounds(bucket);
            (low, high, count)
        })
    }
}

fn bucket_of(value: u64) -> usize {
    if value < PER_DOUBLING {
        return value as usize;
    }
    let doubling = u64::from(value.ilog2() - PER_DOUBLING.ilog2());
    ((doubling + 1) * PER_DOUBLING + (value >> doubling) - PER_DOUBLING) as usize
}

fn bounds(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < PER_DOUBLING {
        return (bucket, bucket);
    }
    let (doubling, part) = (bucket / PER_DOUBLING - 1, bucket % PER_DOUBLING + PER_DOUBLING);
    (part << doubling, ((part + 1) << doubling) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for shift in 0..63 {
            for value in [1u64 << shift, (1 << shift) + 1, (1 << shift) * 3 / 2] {
                let (low, high) = bounds(bucket_of(value));
                assert!(low <= value && value <= high, "{value}: {low}..{high}");
                assert!(high - low <= value / 16, "{value}: {low}..{high}");
            }
        }
    }

    #[test]
    fn quantiles_are_exact_until_there_are_too_many() {
        let mut histogram = Histogram::default();
        for value in 1..=1_000 {
            histogram.add(value);
        }
        assert_eq!((histogram.mean(), histogram.max()), (500.5, 1_000));
        assert_eq!((histogram.quantile(0.5), histogram.quantile(0.99)), (500, 990));
        let before = histogram.clone();
        for value in 1_001..=KEPT_MAX as u64 + 1_000 {
            histogram.add(value);
        }
        assert!(before.is_exact() && !histogram.is_exact());
        let all = (KEPT_MAX + 1_000) as f64;
        let since = histogram.since(&before);
        assert_eq!((since.count(), since.mean()), (KEPT_MAX as u64, (1_001.0 + all) / 2.0));
        for (share, wanted) in [(0.5, 0.5 * all), (0.99, 0.99 * all)] {
            let found = histogram.quantile(share) as f64;
            assert!((found / wanted - 1.0).abs() < 0.04, "{found}");
        }
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
