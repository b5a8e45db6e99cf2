//! Distributions of durations, and how they are written on the command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::Rng;

/// How long something takes: a distribution, in nanoseconds of true time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// Always the same.
    Constant(u64),
    /// Evenly between two bounds, both included.
    Uniform {
        /// Shortest.
        low: u64,
        /// Longest.
        high: u64,
    },
    /// Exponential with this mean: memoryless, with a long tail.
    Exponential(u64),
    /// Normal, cut at 0.
    Normal {
        /// Before cutting.
        mean: u64,
        /// Standard deviation.
        deviation: u64,
    },
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span::Constant(0);

    /// Draws one. Inlined, since large experiments draw one for every message.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match *self {
            Span::Constant(span) => span,
            Span::Uniform { low, high } => rng.between(low, high),
            Span::Exponential(mean) => rng.exponential(mean),
            Span::Normal { mean, deviation } => rng.normal(mean, deviation),
        }
    }

    /// Its mean; for a cut normal distribution, before cutting.
    pub fn mean(&self) -> u64 {
        match *self {
            Span::Constant(span) | Span::Exponential(span) => span,
            Span::Uniform { low, high } => low + (high - low) / 2,
            Span::Normal { mean, .. } => mean,
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |nanos| Time(nanos);
        match *self {
            Span::Constant(span) => write!(f, "constant:{}", time(span)),
            Span::Uniform { low, high } => write!(f, "uniform:{}..{}", time(low), time(high)),
            Span::Exponential(mean) => write!(f, "exponential:{}", time(mean)),
            Span::Normal { mean, deviation } => {
                write!(f, "normal:{},{}", time(mean), time(deviation))
            }
        }
    }
}

/// `2ms` and `constant:2ms` are the same; also `uniform:1ms..5ms`, `exponential:2ms`,
/// `normal:2ms,500us`.
impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let Some((model, rest)) = text.split_once(':') else {
            return parse_time(text).map(Span::Constant);
        };
        let pair = |separator| {
            let (a, b): (&str, &str) =
                rest.split_once(separator).ok_or_else(|| SpanError::Form(text.into()))?;
            Ok((parse_time(a)?, parse_time(b)?))
        };
        match model {
            "constant" => parse_time(rest).map(Span::Constant),
            "exponential" => parse_time(rest).map(Span::Exponential),
            "uniform" => match pair("..")? {
                (low, high) if low <= high => Ok(Span::Uniform { low, high }),
                _ => Err(SpanError::Form(text.into())),
            },
            "normal" => pair(",").map(|(mean, deviation)| Span::Normal { mean, deviation }),
            _ => Err(SpanError::Model(model.into())),
        }
    }
}

/// Why a text is no distribution of durations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpanError {
    /// Not a duration.
    Time(String),
    /// No such model.
    Model(String),
    /// The model's numbers are not as it wants them.
    Form(String),
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpanError::Time(text) => {
                write!(f, "'{text}' is no duration: write 250us, 1.5ms, 2s or 3m")
            }
            SpanError::Model(model) => write!(
                f,
                "no model '{model}': choose constant, uniform, exponential, normal or clusters"
            ),
            SpanError::Form(text) => write!(
                f,
                "'{text}' is not as its model wants it: write constant:1ms, uniform:1ms..5ms, \
                 exponential:2ms, normal:2ms,500us or clusters:1ms,20ms;20ms,1ms"
            ),
        }
    }
}

impl std::error::Error for SpanError {}

/// Reads `250us`, `1.5ms`, `2s`, `3m` or `0` as nanoseconds.
///
/// # Errors
/// If it is not a duration.
pub fn parse_time(text: &str) -> Result<u64, SpanError> {
    let wrong = || SpanError::Time(text.into());
    let text = text.trim();
    if text == "0" {
        return Ok(0);
    }
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let scale: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong());
    }
    let mut nanos = whole.checked_mul(scale).ok_or_else(wrong)?;
    let mut digit_worth = scale;
    for digit in fraction.bytes() {
        digit_worth /= 10;
        nanos += u64::from(digit - b'0') * digit_worth;
    }
    Ok(nanos)
}

/// A duration as people write it, exactly: `1.5ms`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Time(pub u64);

impl FromStr for Time {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        parse_time(text).map(Time)
    }
}

impl From<Time> for Duration {
    fn from(time: Time) -> Self {
        Duration::from_nanos(time.0)
    }
}

impl From<Duration> for Time {
    fn from(duration: Duration) -> Self {
        Time(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0 => return f.write_str("0"),
            nanos if nanos >= 1_000_000_000 => (1_000_000_000, "s"),
            nanos if nanos >= 1_000_000 => (1_000_000, "ms"),
            nanos if nanos >= 1_000 => (1_000, "us"),
            _ => (1, "ns"),
        };
        let (whole, mut rest) = (self.0 / scale, self.0 % scale);
        write!(f, "{whole}")?;
        if rest > 0 {
            f.write_str(".")?;
            let mut worth = scale / 10;
            while rest > 0 {
                write!(f, "{}", rest / worth)?;
                rest %= worth;
                worth /= 10;
            }
        }
        f.write_str(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each model's mean, within what 10^5 draws allow.
    #[test]
    fn every_model_has_the_mean_it_says() {
        let mut rng = Rng::new(3);
        for text in ["2ms", "uniform:1ms..5ms", "exponential:2ms", "normal:2ms,300us"] {
            let span: Span = text.parse().unwrap();
            let draws = 100_000;
            let sum: u64 = (0..draws).map(|_| span.draw(&mut rng)).sum();
            let (mean, wanted) = (sum as f64 / draws as f64, span.mean() as f64);
            assert!((mean / wanted - 1.0).abs() < 0.02, "{text}: {mean} instead of {wanted}");
        }
    }

    #[test]
    fn a_normal_span_is_cut_at_zero_and_a_uniform_one_stays_inside() {
        let mut rng = Rng::new(4);
        let cut = Span::Normal { mean: 10, deviation: 1000 };
        assert!((0..1000).any(|_| cut.draw(&mut rng) == 0));
        let inside = Span::Uniform { low: 5, high: 7 };
        assert!((0..1000).all(|_| (5..=7).contains(&inside.draw(&mut rng))));
    }

    #[test]
    fn what_is_printed_can_be_read_back() {
        for text in ["constant:1.5ms", "uniform:1us..2.25s", "exponential:0", "normal:90s,1ns"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!(parse_time("3m"), Ok(180_000_000_000));
        assert_eq!(parse_time("12.000000001s"), Ok(12_000_000_001));
        for wrong in ["", "5", "ms", "5 parsecs", "-1s", "uniform:5ms..1ms", "gamma:1ms", "1.2.3s"]
        {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
    }
}
