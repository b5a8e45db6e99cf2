//! Where a member is reached: an address, or a name that is looked up anew for every connection,
//! since where machines come and go (Kubernetes) the name stays and the address does not.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::Deserialize;

/// Longest name that a resolver takes (RFC 1035).
const NAME_MAX: usize = 253;

/// Where a member is reached.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(try_from = "String")]
pub enum Address {
    /// There.
    Number(SocketAddr),
    /// Wherever this name leads.
    Name {
        /// The name of a machine.
        host: String,
        /// The port.
        port: u16,
    },
}

impl Address {
    /// Whether it is certain that nothing leaves this machine on the way there. `localhost` is
    /// (RFC 6761), and what is found under it is looked at again.
    pub(super) fn is_loopback(&self) -> bool {
        match self {
            Address::Number(address) => address.ip().is_loopback(),
            Address::Name { host, .. } => host == "localhost",
        }
    }

    /// The machine, as certificates have it.
    pub(crate) fn host(&self) -> String {
        match self {
            Address::Number(address) => address.ip().to_string(),
            Address::Name { host, .. } => host.clone(),
        }
    }

    /// The same machine, at another port.
    pub(crate) fn at(&self, port: u16) -> Address {
        match self {
            Address::Number(address) => Address::Number(SocketAddr::new(address.ip(), port)),
            Address::Name { host, .. } => Address::Name { host: host.clone(), port },
        }
    }

    /// Whether members can be called there from here, as far as that is known.
    pub(super) fn fits(&self, source: IpAddr) -> bool {
        match self {
            Address::Number(address) => address.is_ipv4() == source.is_ipv4(),
            Address::Name { .. } => true,
        }
    }

    /// Where that is now; never nowhere.
    ///
    /// # Errors
    /// The name leads nowhere, or nobody can be asked.
    pub async fn find(&self) -> io::Result<Vec<SocketAddr>> {
        let (host, port) = match self {
            Address::Number(address) => return Ok(vec![*address]),
            Address::Name { host, port } => (host, *port),
        };
        let lost = |kind, why: &dyn fmt::Display| {
            io::Error::new(kind, format!("this machine cannot find {host}: {why}"))
        };
        let found = tokio::net::lookup_host((host.as_str(), port)).await;
        let found = found.map_err(|error| lost(error.kind(), &error))?;
        let mut found: Vec<SocketAddr> = found.collect();
        if host == "localhost" {
            found.retain(|address| address.ip().is_loopback());
        }
        match found.is_empty() {
            true => Err(lost(io::ErrorKind::NotFound, &"the name has no address")),
            false => Ok(found),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Address::Number(address));
        }
        let wrong = || {
            format!(
                "{text:?} is not where a member is: write ADDRESS:PORT or NAME:PORT, like \
                 10.0.0.1:7421, [fd00::1]:7421 or n1.example.org:7421"
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        let part = |part: &str| {
            let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            matches!(part.len(), 1..=63) && part.bytes().all(inside) && !part.starts_with('-')
        };
        // An address that was mistyped must not be asked of a resolver.
        let numbers = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let name = host.strip_suffix('.').unwrap_or(host);
        match host.len() <= NAME_MAX && !numbers && name.split('.').all(part) {
            true => Ok(Address::Name { host: host.to_ascii_lowercase(), port }),
            false => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Number(address) => address.fmt(f),
            Address::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart_and_nonsense_from_both() {
        for text in ["10.0.0.1:7421", "[fd00::1]:7421", "127.0.0.1:1"] {
            let address: Address = text.parse().unwrap();
            assert!(matches!(address, Address::Number(_)), "{text}");
            assert_eq!(address.to_string(), text);
        }
        for text in ["quorate-0.quorate:7421", "n1.example.org.:1", "localhost:7421", "a_b:9"] {
            let address: Address = text.parse().unwrap();
            assert!(matches!(address, Address::Name { .. }), "{text}");
            assert_eq!(address.to_string(), text);
            assert_eq!(address.is_loopback(), text.starts_with("localhost:"));
        }
        assert_eq!(
            "N1.Example.org:7".parse(),
            Ok(Address::Name { host: "n1.example.org".into(), port: 7 })
        );
        let long = format!("{}:1", ["a"; 128].join("."));
        for text in [
            "",
            "n1",
            "n1:",
            ":7421",
            "n1:0",
            "n1:65536",
            "n 1:7",
            "10.0.0:7421",
            "10.0.0.256:1",
            "-n:1",
            "n..m:1",
            "https://n1:1",
            "fd00::1:7421",
            &long,
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.contains("NAME:PORT"), "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn a_name_leads_where_the_machine_says_and_one_that_leads_nowhere_is_named() {
        let found = "localhost:7421".parse::<Address>().unwrap().find().await.unwrap();
        assert!(!found.is_empty() && found.iter().all(|it| it.ip().is_loopback()), "{found:?}");
        // RFC 6761: no resolver knows anything under it.
        let nowhere = "n1.invalid:7421".parse::<Address>().unwrap();
        let error = nowhere.find().await.unwrap_err().to_string();
        assert!(error.starts_with("this machine cannot find n1.invalid: "), "{error}");
    }
}
