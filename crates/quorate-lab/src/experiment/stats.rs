//! Means and how sure they are.

use serde::Serialize;

/// Several repetitions of one measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) mean: f64,
    /// Half the width of the 95 % confidence interval (Student); one value has none.
    pub(crate) ci95: Option<f64>,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// Of these values; `None` if there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Summary> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = values.len() - 1;
        Some(Summary {
            mean,
            ci95: (freedom > 0)
                .then(|| student(freedom) * (squares / freedom as f64).sqrt() / n.sqrt()),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// Where the mean lies with 95 % confidence; nothing but itself where that is unknown.
    pub(crate) fn band(&self) -> (f64, f64) {
        let half = self.ci95.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }

    /// Whether it is larger, and not by chance: the confidence intervals do not touch.
    pub(crate) fn is_above(&self, other: &Summary) -> bool {
        self.band().0 > other.band().1
    }

    /// For people, with so many digits behind the point.
    pub(crate) fn shown(&self, digits: usize) -> String {
        let half = self.ci95.map_or("–".into(), |half| format!("{half:.digits$}"));
        format!("{:.digits$} ± {half}", self.mean)
    }
}

/// The 97.5 % quantile of Student's distribution with this many degrees of freedom.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 31] = [
        0.0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
        2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060,
        2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    // Beyond the table, the first terms of its expansion about the normal distribution.
    TABLE.get(freedom).copied().unwrap_or(1.96 + 2.4 / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_by_hand() {
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((summary.mean, summary.min, summary.max), (2.5, 1.0, 4.0));
        // Deviation 1.29099, three degrees of freedom.
        let ci95 = summary.ci95.unwrap();
        assert!((ci95 - 3.182 * 1.290_994 / 2.0).abs() < 1e-5, "{ci95}");
        let alone = Summary::of(&[7.0]).unwrap();
        assert_eq!((alone.ci95, alone.band()), (None, (7.0, 7.0)));
        assert_eq!((alone.shown(1), summary.shown(2)), ("7.0 ± –".into(), "2.50 ± 2.05".into()));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn the_quantiles_go_on_where_the_table_ends() {
        assert!((student(31) - 2.040).abs() < 0.003);
        assert!((student(120) - 1.980).abs() < 0.003);
    }
}
