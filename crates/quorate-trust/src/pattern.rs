//! Names, or all names that begin and end alike: `gpu`, `ci-*`, `*`.

use std::fmt;
use std::str::FromStr;

use crate::NAME_MAX;
use crate::identity::is_name_byte;

/// A name, or with one `*` all names that begin and end like this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    before: String,
    /// What follows the `*`, if there is one.
    after: Option<String>,
}

/// Why a text is no pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no pattern: 1 to {NAME_MAX} letters, digits, and . _ - : @ with at most one *")]
pub struct PatternError(String);

impl Pattern {
    /// Every name.
    pub fn all() -> Pattern {
        Pattern { before: String::new(), after: Some(String::new()) }
    }

    /// Whether this name is meant.
    pub fn covers(&self, name: &str) -> bool {
        match &self.after {
            None => self.before == name,
            Some(after) => {
                name.len() >= self.before.len() + after.len()
                    && name.starts_with(&self.before)
                    && name.ends_with(after)
            }
        }
    }

    /// Whether every name is meant.
    pub fn is_all(&self) -> bool {
        *self == Pattern::all()
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let (before, after) = match text.split_once('*') {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        let bytes = before.bytes().chain(after.unwrap_or_default().bytes());
        let is_short = (1..=NAME_MAX).contains(&text.len());
        if !is_short || !bytes.clone().all(|byte| is_name_byte(byte) || byte == b'@') {
            return Err(PatternError(text.chars().take(NAME_MAX).collect()));
        }
        Ok(Pattern { before: before.to_owned(), after: after.map(str::to_owned) })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.before)?;
        match &self.after {
            Some(after) => write!(f, "*{after}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_star_stands_for_anything_and_for_nothing() {
        assert!(pattern("ci-*").covers("ci-"));
        assert!(pattern("ci-*").covers("ci-build"));
        assert!(!pattern("ci-*").covers("ci"));
        assert!(pattern("*-gpu").covers("big-gpu"));
        assert!(pattern("a*a").covers("aa"));
        assert!(!pattern("a*a").covers("a"), "the two ends do not overlap");
        assert!(pattern("gpu").covers("gpu"));
        assert!(!pattern("gpu").covers("gpu2"));
        assert!(pattern("*").covers(""));
        assert!(pattern("*").is_all());
    }

    #[test]
    fn what_could_be_misread_is_no_pattern() {
        for wrong in ["", "a**", "*a*", "a b", "a/b", "é", "a\n", &"a".repeat(NAME_MAX + 1)] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_covers_what_has_something_in_the_place_of_its_star(
            before in "[a-z.:_-]{0,5}",
            middle in "[a-z0-9]{0,5}",
            after in "[a-z.:_-]{0,5}",
        ) {
            let text = format!("{before}*{after}");
            let read = pattern(&text);
            let name = format!("{before}{middle}{after}");
            prop_assert!(read.covers(&name));
            prop_assert_eq!(read.to_string(), text);
        }

        #[test]
        fn without_a_star_a_pattern_covers_itself_alone(
            name in "[a-c]{1,3}",
            other in "[a-c]{1,3}",
        ) {
            prop_assert_eq!(pattern(&name).covers(&other), name == other);
        }

        #[test]
        fn no_text_is_too_strange_to_be_read(text in "\\PC{0,140}") {
            if let Ok(read) = text.parse::<Pattern>() {
                prop_assert_eq!(read.to_string(), text);
            }
        }
    }
}
