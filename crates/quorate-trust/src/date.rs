//! Days and seconds since 1970 as people write them, in UTC.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A day of the calendar, in UTC: `2027-02-14`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Date {
    /// 1970 to 9999.
    year: u32,
    /// From 1.
    month: u8,
    /// From 1.
    day: u8,
}

/// Why a text is no date.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a date is written like 2027-02-14")]
pub struct DateError;

impl Date {
    /// The last day of which calendars of certificates can speak.
    const LAST: u64 = 2_932_896;

    /// A day that exists.
    ///
    /// # Errors
    /// It does not, or is outside of 1970 to 9999.
    pub fn new(year: u32, month: u8, day: u8) -> Result<Date, DateError> {
        let date = Date { year, month, day };
        let in_range = (1970..=9999).contains(&year) && (1..=12).contains(&month) && day > 0;
        // What does not exist is another day when it is counted.
        match in_range && day <= 31 && Date::after(date.since_1970()) == date {
            true => Ok(date),
            false => Err(DateError),
        }
    }

    /// The day on which this much time has passed since 1970 began; the last one for whatever is
    /// later.
    ///
    /// Years are counted from March, so that the day which leap years add is their last.
    pub fn after(since_1970: Duration) -> Date {
        let days = (since_1970.as_secs() / DAY.as_secs()).min(Date::LAST) + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        Date { year: (400 * era + year + next) as u32, month: month as u8, day: day as u8 }
    }

    /// How long after the beginning of 1970 it begins.
    pub fn since_1970(self) -> Duration {
        let (month, year) = match u64::from(self.month) {
            month @ 3.. => (month - 3, u64::from(self.year)),
            month => (month + 9, u64::from(self.year) - 1),
        };
        let (era, of_era) = (year / 400, year % 400);
        let of_year = (153 * month + 2) / 5 + u64::from(self.day) - 1;
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
        DAY * (days - 719_468) as u32
    }

    /// Year, month and day.
    pub fn parts(self) -> (u32, u8, u8) {
        (self.year, self.month, self.day)
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Date, DateError> {
        let number = |range: std::ops::Range<usize>| match text.get(range) {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse::<u32>().map_err(|_| DateError)
            }
            _ => Err(DateError),
        };
        let is_dash = |at: usize| text.as_bytes().get(at) == Some(&b'-');
        if text.len() != 10 || !is_dash(4) || !is_dash(7) {
            return Err(DateError);
        }
        let (month, day) = (number(5..7)?, number(8..10)?);
        Date::new(number(0..4)?, month as u8, day as u8)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_days_are_counted_right() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("2000-02-29", 11_016),
            ("2026-11-16", 20_773),
            ("9999-12-31", Date::LAST),
        ] {
            let date: Date = text.parse().unwrap();
            assert_eq!(date.since_1970().as_secs() / DAY.as_secs(), days, "{text}");
        }
        assert_eq!(Date::after(Duration::MAX).to_string(), "9999-12-31");
    }

    #[test]
    fn what_does_not_exist_is_no_date() {
        for wrong in [
            "",
            "2027-2-14",
            "2027-02-30",
            "2100-02-29",
            "2027-13-01",
            "2027-00-01",
            "2027-01-00",
            "1969-12-31",
            "2027/01/01",
            "+027-01-01",
            "2027-01-01 ",
            "20270-1-01",
            "2027-01-é",
        ] {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_day_is_read_as_it_was_written(days in 0..=Date::LAST as u32, rest in 0..86_400u64) {
            let date = Date::after(DAY * days + Duration::from_secs(rest));
            prop_assert_eq!(date.since_1970(), DAY * days);
            prop_assert_eq!(date.to_string().parse(), Ok(date));
        }

        #[test]
        fn the_next_day_is_later(days in 0..Date::LAST as u32) {
            prop_assert!(Date::after(DAY * days) < Date::after(DAY * (days + 1)));
        }

        #[test]
        fn no_text_is_too_strange_to_be_read(text in "\\PC{0,12}") {
            let _ = text.parse::<Date>();
        }
    }
}
