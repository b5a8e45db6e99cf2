//! Which units a command asks for.

use quorate_client::Want;

/// How many units, and which.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Wanted {
    /// How many units, all at once.
    #[arg(short = 'n', long, default_value_t = 1, value_name = "H", value_parser = units,
        allow_negative_numbers = true)]
    units: u32,
    /// Only units with all of these labels.
    #[arg(long = "where", value_name = "KEY=VALUE,...", value_parser = selector)]
    labels: Option<Labels>,
    /// And so many more with other labels: all are granted together, or none is. May be repeated.
    #[arg(long, value_name = "[H:]KEY=VALUE,...", value_parser = line)]
    and: Vec<(u32, Labels)>,
}

type Labels = std::collections::BTreeMap<String, String>;

impl Wanted {
    pub(crate) fn want(&self) -> Want {
        let first = match &self.labels {
            None => Want::from(self.units),
            Some(labels) => Want::with(self.units, labels.clone()),
        };
        self.and.iter().fold(first, |want, (units, labels)| want.and(*units, labels.clone()))
    }
}

/// `gpu=h100,zone=eu`.
fn selector(text: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    for part in text.split(',') {
        match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                if labels.insert(key.into(), value.into()).is_some_and(|before| before != value) {
                    return Err(format!("no unit has two values of {key}"));
                }
            }
            _ => return Err(format!("'{part}' is no label: write KEY=VALUE")),
        }
    }
    Ok(labels)
}

/// `2:kind=nic`, or `kind=nic` for one.
fn line(text: &str) -> Result<(u32, Labels), String> {
    let (count, labels) = text.split_once(':').unwrap_or(("1", text));
    Ok((units(count)?, selector(labels)?))
}

/// A number of units that somebody could want.
fn units(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(units @ 1..) => Ok(units),
        _ => Err("ask for 1 unit or more, at most as many as the pool has".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_counted_from_one() {
        assert_eq!(units("3"), Ok(3));
        for wrong in ["0", "-1", "abc", "1.5", ""] {
            assert!(units(wrong).unwrap_err().contains("1 unit or more"), "{wrong}");
        }
    }

    #[test]
    fn lines_are_a_number_and_labels() {
        assert_eq!(line("kind=nic"), line("1:kind=nic"));
        assert_eq!(line("2:gpu=h100,zone=eu").unwrap().0, 2);
        for wrong in ["0:kind=nic", "x:kind=nic", "2:", "2", "kind=", "a=1,a=2"] {
            assert!(line(wrong).is_err(), "{wrong}");
        }
    }
}
