//! How long rounds of the charter take beside how long a licence lasts.
//!
//! A licence counts from when it was asked for, and there is never more than one round under way.
//! Where one takes half a licence, the next may come after the last one is over: then pools whose
//! seats move grant nothing now and then, although everybody is there. So a third is worth saying.

use std::time::Duration;

use super::{Hall, locked};

/// What rounds took lately.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Typically: each one counts an eighth, and those before it the rest.
    typical: Option<Duration>,
    slow: bool,
}

impl Rounds {
    /// One took so long. Says whether they are slow now, if that is news.
    fn note(&mut self, took: Duration, licence: Duration) -> Option<bool> {
        let typical = self.typical.map_or(took, |before| before / 8 * 7 + took / 8);
        self.typical = Some(typical);
        let slow = typical > if self.slow { licence / 4 } else { licence / 3 };
        (std::mem::replace(&mut self.slow, slow) != slow).then_some(slow)
    }

    /// What people should know of it.
    pub(super) fn problem(&self, licence: Duration) -> Option<String> {
        let typical = self.typical.filter(|_| self.slow)?;
        Some(format!(
            "a round of it takes {} ms, and licences last {} ms: if it takes half of that, pools \
             whose seats move pause now and then. Set a longer `licence` in all files, or find out \
             why it takes so long",
            typical.as_millis(),
            licence.as_millis()
        ))
    }
}

impl Hall {
    /// A round took so long.
    pub(super) fn note_round(&self, took: Duration) {
        let licence = self.chartered.licence;
        let (news, problem) = {
            let mut rounds = locked(&self.rounds);
            (rounds.note(took, licence), rounds.problem(licence))
        };
        match (news, problem) {
            (Some(true), Some(why)) => tracing::warn!(%why, "licences are short for this cluster"),
            (Some(false), _) => tracing::info!("rounds of the charter are fast enough again"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LICENCE: Duration = Duration::from_millis(900);

    #[test]
    fn rounds_that_take_a_third_of_a_licence_are_said_once_and_until_it_is_better() {
        let mut rounds = Rounds::default();
        let mut note = |ms| rounds.note(Duration::from_millis(ms), LICENCE);
        assert_eq!([note(10), note(10), note(800)], [None; 3], "one that is slow is nothing");
        let news: Vec<bool> = (0..40).filter_map(|_| note(400)).collect();
        assert_eq!(news, [true]);
        let news: Vec<bool> = (0..40).filter_map(|_| note(260)).collect();
        assert_eq!(news, [false; 0], "hardly better");
        let why = rounds.problem(LICENCE).expect("it is slow");
        assert!(why.contains("takes 26") && why.contains("last 900 ms"), "{why}");
        let news: Vec<bool> =
            (0..40).filter_map(|_| rounds.note(Duration::from_millis(5), LICENCE)).collect();
        assert_eq!((news, rounds.problem(LICENCE)), (vec![false], None));
    }
}
