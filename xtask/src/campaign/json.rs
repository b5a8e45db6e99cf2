//! What clients and nodes say, read: as much of JSON as that takes, since the chores have no crates
//! of others.

use std::collections::BTreeMap;

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As it is written: fences have more digits than a float.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// The value that this text is, and nothing if it is not whole.
    pub(crate) fn parse(text: &str) -> Option<Json> {
        let mut reader = Reader { rest: text.trim() };
        let value = reader.value()?;
        reader.rest.trim().is_empty().then_some(value)
    }

    /// A field of an object.
    pub(crate) fn get(&self, name: &str) -> &Json {
        match self {
            Json::Object(fields) => fields.get(name).unwrap_or(&Json::Null),
            _ => &Json::Null,
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Json::Text(text) => text,
            _ => "",
        }
    }

    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn truth(&self) -> bool {
        *self == Json::Bool(true)
    }

    pub(crate) fn list(&self) -> &[Json] {
        match self {
            Json::List(values) => values,
            _ => &[],
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Json> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '{' => {
                let mut fields = BTreeMap::new();
                self.items('}', |reader| {
                    reader.rest = reader.rest.trim_start();
                    let name = reader.string()?;
                    reader.eat(':')?;
                    fields.insert(name, reader.value()?);
                    Some(())
                })?;
                Some(Json::Object(fields))
            }
            '[' => {
                let mut values = Vec::new();
                self.items(']', |reader| {
                    values.push(reader.value()?);
                    Some(())
                })?;
                Some(Json::List(values))
            }
            '"' => self.string().map(Json::Text),
            _ => {
                let end = |c: char| !(c.is_alphanumeric() || "+-.".contains(c));
                let (word, rest) =
                    self.rest.split_at(self.rest.find(end).unwrap_or(self.rest.len()));
                self.rest = rest;
                match word {
                    "null" => Some(Json::Null),
                    "true" => Some(Json::Bool(true)),
                    "false" => Some(Json::Bool(false)),
                    digits => digits.parse::<f64>().ok().map(|_| Json::Number(digits.into())),
                }
            }
        }
    }

    fn items(&mut self, end: char, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.rest = &self.rest[1..];
        if self.eat(end).is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.eat(end).is_some() {
                return Some(());
            }
            self.eat(',')?;
        }
    }

    fn eat(&mut self, letter: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(letter).or_else(|| {
            self.rest = self.rest.trim_start();
            None
        })?;
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut letters = self.rest.strip_prefix('"')?.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.rest = &self.rest[at + 2..];
                    return Some(text);
                }
                '\\' => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'b' | 'f' => {}
                    'u' => {
                        let code: String = (0..4).filter_map(|_| Some(letters.next()?.1)).collect();
                        let code = u32::from_str_radix(&code, 16).ok()?;
                        text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                    }
                    plain => text.push(plain),
                },
                plain => text.push(plain),
            }
        }
        None
    }
}

/// A string of JSON.
pub(crate) fn quoted(text: &str) -> String {
    crate::lab::json_text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_is_read_and_what_is_not_is_nothing() {
        let text = r#" {"a":[1,{"b":"x\n\"y\u00e9"}], "n": 1099511627777123, "t":true,"z":null} "#;
        let read = Json::parse(text).unwrap();
        assert_eq!(read.get("n").number(), Some(1_099_511_627_777_123));
        assert_eq!(read.get("a").list()[1].get("b").text(), "x\n\"y\u{e9}");
        assert!(read.get("t").truth() && *read.get("z") == Json::Null);
        assert_eq!(Json::parse("[]"), Some(Json::List(Vec::new())));
        for broken in ["{\"a\":1", "{\"a\" 1}", "[1,]", "[1]]", "\"x", "", "nul"] {
            assert_eq!(Json::parse(broken), None, "{broken}");
        }
        assert_eq!(Json::parse(&quoted("a\"\\\n")), Some(Json::Text("a\"\\\n".into())));
    }
}
