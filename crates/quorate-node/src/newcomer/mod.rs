//! A machine becomes a member without a file: as the first of a new cluster (`first`), or of one
//! that it was invited to (`join`). Both end with the file that the next start reads, in the data
//! directory; a directory without that file is none of a member.
//!
//! | file | what it is | who may read it |
//! |---|---|---|
//! | `quorate.toml` | the node's file | its owner |
//! | `ca.crt` | the authority's certificate | everybody |
//! | `ca.key` | its key: whoever has it can be any node | its owner |
//! | `node.crt` | the node's certificate, and the authority's | everybody |
//! | `node.key` | the node's key, made here | its owner |
//! | `admin.token` | the first administrator's token, where the cluster was made | its owner |
//!
//! Later the node renews its certificate by itself (`renew`).

mod ask;
mod first;
mod join;
mod renew;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::config::{Address, Config};

pub use first::{Founded, found};
pub use join::{Joined, join};
pub use renew::renew;

/// The node's file.
pub const FILE: &str = "quorate.toml";
/// Where clients of this machine find it.
const SOCKET: &str = "quorate.sock";
/// Longest path of a socket that every system takes.
const SOCKET_MAX: usize = 100;
const CA: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const CERTIFICATE: &str = "node.crt";
const KEY: &str = "node.key";
const TOKEN: &str = "admin.token";

/// How a machine wants to be a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    /// Where everything is kept.
    pub data: PathBuf,
    /// Where others reach it: an address, or a name of the machine. Without it: the address from
    /// which it reaches the cluster that it joins.
    pub address: Option<String>,
    /// Where it listens; without it at that address, or everywhere if that is a name.
    pub listen: Option<IpAddr>,
    /// The port for clients.
    pub clients: u16,
    /// The port for the other members.
    pub peers: u16,
}

/// Why a machine did not become a member.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NewcomerError(String);

impl NewcomerError {
    fn new(what: impl std::fmt::Display) -> Self {
        NewcomerError(what.to_string())
    }
}

type Result<T> = std::result::Result<T, NewcomerError>;

/// Where it is to be reached, and where it listens.
struct Place {
    clients: Address,
    peers: Address,
    listen: IpAddr,
}

impl Place {
    fn of(wish: &Wish, host: &str) -> Result<Place> {
        let at = |port: u16| {
            let host = match host.parse::<IpAddr>() {
                Ok(IpAddr::V6(address)) => format!("[{address}]"),
                _ => host.to_owned(),
            };
            let text = format!("{host}:{port}");
            let place: std::result::Result<Address, String> = text.parse();
            place.map_err(|error| NewcomerError(format!("{error}; nothing was written")))
        };
        if wish.clients == wish.peers {
            let text = "clients and members come to two ports, and these are one; nothing was \
                        written";
            return Err(NewcomerError::new(text));
        }
        let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let listen = wish.listen.unwrap_or_else(|| host.parse().unwrap_or(everywhere));
        Ok(Place { clients: at(wish.clients)?, peers: at(wish.peers)?, listen })
    }
}

/// What the file says that is not the same for all members.
struct Words<'a> {
    cluster: &'a str,
    epoch: u64,
    name: &'a str,
    place: &'a Place,
    wish: &'a Wish,
    /// `[charter]`, beyond what is said of every cluster that members join.
    pace: &'a str,
    /// Everybody, in the order of the charter, with where they are reached.
    members: &'a [(String, String)],
    /// `tokens` and the like, each in a line.
    rights: &'a str,
}

impl Words<'_> {
    fn file(&self, data: &Path) -> String {
        let Words { cluster, epoch, name, place, wish, pace, members, rights } = self;
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let path = |file: &str| quoted(&data.join(file).display().to_string());
        let listen = |port: u16| quoted(&std::net::SocketAddr::new(place.listen, port).to_string());
        let (clients, peers) = (listen(wish.clients), listen(wish.peers));
        let socket = data.join(SOCKET);
        let local = match socket.as_os_str().len() <= SOCKET_MAX {
            true => format!("local = {}\n", path(SOCKET)),
            false => String::new(),
        };
        let listed = |(name, peers): &(String, String)| {
            format!("[[members]]\nname = {}\npeers = {}\n\n", quoted(name), quoted(peers))
        };
        let listed: String = members.iter().map(listed).collect();
        format!(
            "# Written when {name} became a member. Its own words may be changed (listen, limits, \
             audit, log);\n# [[members]] stays as it is: who joined later is in the charter.\n\
             cluster = {}\nepoch = {epoch}\nnode = {}\ndata_dir = {}\n{rights}\n\
             [listen]\nclients = {clients}\npeers = {peers}\n{local}\n\
             [tls]\nca = {}\ncert = {}\nkey = {}\nauthority = {}\n\n\
             [charter]\nenabled = true\njoins = true\n{pace}\n{listed}",
            quoted(cluster),
            quoted(name),
            quoted(&data.display().to_string()),
            path(CA),
            path(CERTIFICATE),
            path(KEY),
            path(CA_KEY),
        )
    }
}

/// Makes the directory if there is none, for its owner alone; says where it is, whoever asks from
/// wherever.
fn directory(data: &Path) -> Result<PathBuf> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(data);
    let found = made.and_then(|()| fs::canonicalize(data));
    found.map_err(|error| {
        NewcomerError(format!("cannot use {}: {error}; nothing was written", data.display()))
    })
}

/// Whoever was here before must not be forgotten: what it promised may be in force.
fn unused(data: &Path, but: &[&str]) -> Result<()> {
    let wrong = |error: io::Error| {
        NewcomerError(format!("cannot read {}: {error}; nothing was written", data.display()))
    };
    if data.join(FILE).exists() {
        return Err(NewcomerError(format!(
            "{} is that of a member; nothing was written. Start it with `quorate serve --data \
             {}`, or choose another directory",
            data.display(),
            data.display()
        )));
    }
    for entry in fs::read_dir(data).map_err(wrong)? {
        let name = entry.map_err(wrong)?.file_name();
        // Half of a file that was being written is nothing yet.
        let whole = name.to_str().map(|name| name.strip_suffix(".new").unwrap_or(name));
        if !but.iter().any(|file| whole == Some(*file)) {
            return Err(NewcomerError(format!(
                "{} was in use before (there is {}); nothing was written. A new member needs an \
                 empty directory",
                data.display(),
                name.to_string_lossy()
            )));
        }
    }
    Ok(())
}

/// A file that is whole or not there, for its owner alone or for everybody.
fn write(data: &Path, name: &str, text: &str, mode: u32) -> Result<()> {
    let (path, beside) = (data.join(name), data.join(format!("{name}.new")));
    let written = || -> io::Result<()> {
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {} // What an earlier try left: its mode may be another.
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        File::open(data)?.sync_all()
    };
    written().map_err(|error| NewcomerError(format!("cannot write {}: {error}", path.display())))
}

/// The file, read as the next start will.
fn config(data: &Path, text: &str) -> Result<Config> {
    let read = Config::parse(text);
    read.map_err(|error| NewcomerError(format!("{}: {error}", data.join(FILE).display())))
}

#[cfg(test)]
mod tests;
