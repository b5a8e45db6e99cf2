//! A level over time (units in use, claims waiting) with bounded memory: the mean of each of at
//! most 512 equal slots, which are merged in pairs whenever time outgrows them.

const SLOTS: usize = 512;
/// Width of a slot at first: a microsecond.
const WIDTH: u64 = 1_000;

/// A level that changes in steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    level: i64,
    max: i64,
    since: u64,
    width: u64,
    /// Level times nanoseconds, for each slot.
    areas: Vec<u64>,
}

impl Default for Series {
    fn default() -> Self {
        Series { level: 0, max: 0, since: 0, width: WIDTH, areas: Vec::with_capacity(SLOTS) }
    }
}

impl Series {
    /// The level changes now.
    pub(crate) fn add(&mut self, now: u64, change: i64) {
        self.advance(now);
        self.level += change;
        self.max = self.max.max(self.level);
    }

    /// The last change was the last.
    pub(crate) fn finish(&mut self, now: u64) {
        self.advance(now);
    }

    /// The level now.
    pub fn level(&self) -> i64 {
        self.level
    }

    /// The highest level.
    pub fn max(&self) -> i64 {
        self.max
    }

    /// The mean level over all the time.
    pub fn mean(&self) -> f64 {
        if self.since == 0 {
            return 0.0;
        }
        self.areas.iter().map(|&area| area as f64).sum::<f64>() / self.since as f64
    }

    /// Middle of each slot in nanoseconds, and the mean level in it.
    pub fn points(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.areas.iter().enumerate().filter_map(|(slot, &area)| {
            let start = slot as u64 * self.width;
            let end = (start + self.width).min(self.since);
            (end > start).then(|| (start.midpoint(end), area as f64 / (end - start) as f64))
        })
    }

    fn advance(&mut self, now: u64) {
        while now > SLOTS as u64 * self.width {
            self.merge();
        }
        loop {
            let slot_end = self.areas.len() as u64 * self.width;
            let end = now.min(slot_end);
            if let Some(area) = self.areas.last_mut() {
                *area += (end - self.since) * self.level as u64;
                self.since = end;
            }
            if now <= slot_end {
                return;
            }
            self.areas.push(0);
        }
    }

    fn merge(&mut self) {
        let merged = self.areas.len().div_ceil(2);
        for slot in 0..merged {
            let second = self.areas.get(2 * slot + 1).copied().unwrap_or(0);
            self.areas[slot] = self.areas[2 * slot] + second;
        }
        self.areas.truncate(merged);
        self.width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_does_not_depend_on_merging() {
        let mut series = Series::default();
        series.add(0, 4);
        series.add(1_000_000_000, -4);
        series.add(3_000_000_000, 2);
        series.finish(4_000_000_000);
        assert_eq!(series.mean(), 1.5);
        assert_eq!(series.max(), 4);
        let points: Vec<(u64, f64)> = series.points().collect();
        assert!(points.len() <= SLOTS && points.len() > SLOTS / 4, "{}", points.len());
        assert_eq!(points[0].1, 4.0);
        assert_eq!(points[points.len() / 2].1, 0.0);
        assert_eq!(points[points.len() - 1].1, 2.0);
    }
}
