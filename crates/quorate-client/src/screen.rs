//! What is looked at of a cluster.

/// Which part of a cluster [`Views::overview`](crate::Views::overview) shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Screen {
    /// Only pools whose name contains this...
    pub search: String,
    /// ...this page of them, from 0...
    pub page: usize,
    /// ...with so many rows.
    pub rows: usize,
    /// The pool that is shown in full.
    pub pool: Option<String>,
    /// Whether pools that grant nothing come first; else all are listed by name.
    pub unavailable_first: bool,
    /// Only those: `held`, `waiting` or `unavailable`; all if nothing is said.
    pub only: Option<&'static str>,
}

impl Screen {
    /// Where a node shows it.
    pub(crate) fn path(&self) -> String {
        let mut path = format!("/v1/overview?rows={}&page={}", self.rows, self.page);
        path.push_str(&format!("&search={}", escaped(&self.search)));
        if let Some(pool) = &self.pool {
            path.push_str(&format!("&pool={}", escaped(pool)));
        }
        if self.unavailable_first {
            path.push_str("&sort=unavailable");
        }
        if let Some(only) = self.only {
            path.push_str(&format!("&only={only}"));
        }
        path
    }
}

/// A text as part of an address.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                safe.push(char::from(byte));
            }
            _ => safe.push_str(&format!("%{byte:02X}")),
        }
    }
    safe
}
