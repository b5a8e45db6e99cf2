//! Comparing what a file says with what we find. Lists are sets here: order means nothing.

use serde_json::Value;

/// The first place where `ours` differs from `theirs`. What they leave open (null) is not compared.
pub(super) fn same(path: &str, theirs: &Value, ours: &Value) -> Result<(), String> {
    match (theirs, ours) {
        (Value::Null, _) => Ok(()),
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs {
                // A field that is not ours is a remark of theirs.
                if let Some(our) = ours.get(key) {
                    same(&format!("{path}.{key}"), value, our)?;
                }
            }
            Ok(())
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            let (theirs, ours) = (sorted(theirs), sorted(ours));
            if theirs == ours {
                return Ok(());
            }
            let missing = theirs.iter().find(|text| !ours.contains(text));
            let extra = ours.iter().find(|text| !theirs.contains(text));
            Err(match (missing, extra) {
                (Some(missing), _) => format!("{path}: {missing} is missing"),
                (None, Some(extra)) => format!("{path}: {extra} is one too many"),
                (None, None) => {
                    format!("{path}: {} entries instead of {}", ours.len(), theirs.len())
                }
            })
        }
        _ if theirs == ours => Ok(()),
        _ => Err(format!("{path}: {} instead of {}", short(ours), short(theirs))),
    }
}

/// As much of a value as fits in a line.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

/// The entries as text, those inside sorted too.
fn sorted(list: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = list.iter().map(|value| canonical(value).to_string()).collect();
    texts.sort_unstable();
    texts
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(canonical).collect();
            list.sort_by_key(Value::to_string);
            Value::Array(list)
        }
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), canonical(value))).collect())
        }
        other => other.clone(),
    }
}

/// The text of a file with whole numbers beyond 64 bits as strings of digits, which is how we write
/// them ourselves: JSON sets no bound to numbers, and every reader does.
pub(super) fn with_large_numbers_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '-' | '0'..='9' => {
                let part = |c: char| !(c.is_ascii_digit() || "+-.eE".contains(c));
                rest.find(part).unwrap_or(rest.len())
            }
            other => other.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let is_large = token.bytes().all(|c| c.is_ascii_digit()) && token.parse::<u64>().is_err();
        quoted += &if is_large { format!("\"{token}\"") } else { token.to_owned() };
        rest = after;
    }
    quoted
}

/// How long the string is with which this begins, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::with_large_numbers_quoted;

    #[test]
    fn numbers_of_any_size_are_read_and_nothing_else_is_touched() {
        for (text, read) in [
            (
                "[18446744073709551615, 18446744073709551616]",
                "[18446744073709551615, \"18446744073709551616\"]",
            ),
            (r#"{"é\"99999999999999999999": 1.5e300}"#, r#"{"é\"99999999999999999999": 1.5e300}"#),
            (r#""99999999999999999999"#, r#""99999999999999999999"#),
        ] {
            assert_eq!(with_large_numbers_quoted(text), read);
        }
    }
}
