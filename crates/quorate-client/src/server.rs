//! The address of a node, as people write it.

use std::path::Path;

use crate::ConnectError;

/// The port of `quorate dev` and of a node whose configuration names no other.
pub const DEFAULT_PORT: u16 = 7420;

/// Where a node listens: for HTTP and for the client link alike.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Server {
    address: String,
    way: Way,
}

/// How it is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Way {
    Plain,
    Encrypted,
    /// By a Unix socket of this machine, whose path is the address.
    Local,
}

/// What a Unix socket's path is written after.
const LOCAL: &str = "unix:";

impl Server {
    /// Reads `HOST:PORT`, `HOST`, or either with `http://` or `https://` in front and `/` behind;
    /// or `unix:/PATH`, a node's socket on this machine.
    ///
    /// # Errors
    /// The text names no server. Nothing was sent.
    pub fn parse(text: &str) -> Result<Server, ConnectError> {
        let bad = || ConnectError::BadServer { text: text.chars().take(128).collect() };
        let text = text.trim();
        if let Some(path) = text.strip_prefix(LOCAL) {
            let path = path.strip_prefix("//").unwrap_or(path);
            let odd = path.is_empty() || path.ends_with('/') || path.contains(char::is_control);
            return match odd {
                true => Err(bad()),
                false => Ok(Server { address: path.to_owned(), way: Way::Local }),
            };
        }
        let (bare, way) = match text.strip_prefix("https://") {
            Some(bare) => (bare, Way::Encrypted),
            None => (text.strip_prefix("http://").unwrap_or(text), Way::Plain),
        };
        let bare = bare.strip_suffix('/').unwrap_or(bare);
        let odd =
            |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@' | '?' | '#');
        if bare.is_empty() || bare.contains("://") || bare.contains(odd) {
            return Err(bad());
        }
        let bracketed = bare.starts_with('[');
        let (host, port) = match bare.rsplit_once(':') {
            Some((host, port)) if !bracketed || host.ends_with(']') => {
                (host, port.parse::<u16>().map_err(|_| bad())?)
            }
            _ => (bare, DEFAULT_PORT),
        };
        let plain = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if plain.unwrap_or(host).is_empty() || (plain.is_none() && host.contains(':')) {
            return Err(bad());
        }
        Ok(Server { address: format!("{host}:{port}"), way })
    }

    /// `HOST:PORT`, or the path of a socket.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it was named with `https://`.
    pub fn is_secure(&self) -> bool {
        self.way == Way::Encrypted
    }

    /// The path of its Unix socket, if it was named by that.
    pub fn socket(&self) -> Option<&Path> {
        (self.way == Way::Local).then(|| Path::new(&self.address))
    }

    /// Its name or address, without brackets.
    pub(crate) fn host(&self) -> &str {
        let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.way {
            Way::Plain => "",
            Way::Encrypted => "https://",
            Way::Local => LOCAL,
        })?;
        f.write_str(&self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_with_or_without_port_and_scheme() {
        for (text, address) in [
            ("127.0.0.1:7401", "127.0.0.1:7401"),
            ("localhost", "localhost:7420"),
            ("http://node-1:80/", "node-1:80"),
            ("http://[::1]:7420", "[::1]:7420"),
            ("[::1]", "[::1]:7420"),
        ] {
            assert_eq!(Server::parse(text).unwrap().address(), address, "{text}");
        }
        let secure = Server::parse("https://[::1]:7420").unwrap();
        assert_eq!((secure.is_secure(), secure.host()), (true, "::1"));
        assert_eq!(Server::parse("node-1").unwrap().host(), "node-1");
        for text in
            ["", ":7420", "ftp://a:1", "https://", "a:b", "a:70000", "a/b", "::1", "a b", "[]:1"]
        {
            assert!(Server::parse(text).is_err(), "{text}");
        }
        for text in ["unix:/run/quorate/a.sock", "unix:///run/quorate/a.sock"] {
            let local = Server::parse(text).unwrap();
            assert_eq!(local.socket(), Some(Path::new("/run/quorate/a.sock")));
            assert_eq!(local.to_string(), "unix:/run/quorate/a.sock");
            assert!(!local.is_secure());
        }
        assert_eq!(Server::parse("unix:a.sock").unwrap().address(), "a.sock");
        assert_eq!(Server::parse("localhost").unwrap().socket(), None);
        for text in ["unix:", "unix://", "unix:/run/", "unix:a\nb"] {
            assert!(Server::parse(text).is_err(), "{text}");
        }
    }
}
