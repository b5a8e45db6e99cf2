//! Moments in a small world with a control plane: only their order matters.

/// The moment of the action under way: later than all that are numbered.
pub(crate) const NOW: u8 = u8::MAX;

/// New numbers for moments: of promises (false) and of alarms that end them (true). An alarm ends
/// what is not younger than it; how promises are ordered among themselves, and alarms, is nobody's
/// business.
pub(crate) fn renumbered(mut moments: Vec<(u8, bool)>) -> Vec<((u8, bool), u8)> {
    moments.sort_unstable();
    moments.dedup();
    let (mut number, mut after_alarm) = (0, false);
    let mut names = Vec::new();
    for moment in moments {
        if after_alarm && !moment.1 {
            number += 1;
        }
        after_alarm = moment.1;
        names.push((moment, number));
    }
    names
}

pub(crate) fn name(names: &[((u8, bool), u8)], born: u8, is_alarm: bool) -> u8 {
    let place = names.binary_search_by_key(&(born, is_alarm), |(moment, _)| *moment);
    names[place.expect("every moment was collected")].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_alarm_ends_tells_moments_apart() {
        let promise = |born| (born, false);
        let alarm = |born| (born, true);
        let numbers = |moments: Vec<(u8, bool)>| -> Vec<u8> {
            renumbered(moments).into_iter().map(|(_, number)| number).collect()
        };
        assert_eq!(numbers(vec![promise(3), promise(5), alarm(5), alarm(9)]), [0, 0, 0, 0]);
        assert_eq!(numbers(vec![alarm(3), promise(4), alarm(4), promise(7)]), [0, 1, 1, 2]);
        assert_eq!(numbers(vec![promise(NOW), alarm(NOW), alarm(2)]), [0, 1, 1]);
    }
}
