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
        _ if theirs == ours || equal_numbers(theirs, ours) => Ok(()),
        _ => Err(format!("{path}: {ours} instead of {theirs}")),
    }
}

/// A count beyond 64 bits: theirs was read as a float, ours is written as digits.
fn equal_numbers(theirs: &Value, ours: &Value) -> bool {
    match (theirs.as_f64(), ours) {
        (Some(theirs), Value::String(digits)) => {
            digits.parse::<f64>().is_ok_and(|ours| (ours - theirs).abs() <= theirs * 1e-12)
        }
        _ => false,
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
