//! What to ask a pool for.

use quorate_api::Line;

/// How many units, and which if not any: `3.into()`, or [`Want::with`] labels.
///
/// ```
/// use quorate_client::Want;
///
/// let gpus = Want::with(2, [("gpu", "h100"), ("zone", "eu")]);
/// let gpus_and_a_nic = gpus.and(1, [("kind", "nic")]);
/// assert_eq!(gpus_and_a_nic.units(), 3);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Want {
    pub(crate) units: u32,
    pub(crate) lines: Vec<Line>,
    pub(crate) movable: bool,
}

impl Want {
    /// So many units that have all of these labels.
    pub fn with<K: Into<String>, V: Into<String>>(
        units: u32,
        labels: impl IntoIterator<Item = (K, V)>,
    ) -> Want {
        Want { units: 0, lines: Vec::new(), movable: false }.and(units, labels)
    }

    /// And so many that have these, granted together with the others or not at all. After a plain
    /// number of units, those are any units.
    #[must_use]
    pub fn and<K: Into<String>, V: Into<String>>(
        mut self,
        units: u32,
        labels: impl IntoIterator<Item = (K, V)>,
    ) -> Want {
        if self.lines.is_empty() && self.units > 0 {
            self.lines.push(Line { units: self.units, labels: Default::default() });
        }
        let labels = labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.units = self.units.saturating_add(units);
        self.lines.push(Line { units, labels });
        self
    }

    /// The same, and the holder can be asked to go to other units that will do, see
    /// [`crate::Grant::asked_to_move`].
    #[must_use]
    pub fn movable(self) -> Want {
        Want { movable: true, ..self }
    }

    /// How many units in all.
    pub fn units(&self) -> u32 {
        self.units
    }
}

impl From<u32> for Want {
    fn from(units: u32) -> Want {
        Want { units, lines: Vec::new(), movable: false }
    }
}
