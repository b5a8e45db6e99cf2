//! `quorate serve --new` and `--join`: a machine becomes a member, and then starts as one.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use quorate_node::{Wish, found, join};
use quorate_trust::{Invitation, is_name};

use crate::commands::daemon;

/// Where everything of a member is, and where it listens, unless told otherwise.
const DATA: &str = "quorate-data";
const CLIENTS: u16 = 7420;
const PEERS: u16 = 7520;

/// How a machine becomes a member.
#[derive(clap::Args, Debug)]
pub(super) struct Begin {
    /// Make a new cluster, and be its first member.
    #[arg(long, conflicts_with_all = ["config", "check_config"])]
    new: bool,
    /// Join the cluster that this invitation is of (`quorate member invite` prints it); `-` reads
    /// it from standard input.
    #[arg(long, value_name = "INVITATION", conflicts_with_all = ["config", "check_config", "new"])]
    join: Option<String>,
    /// Where everything of a member is that was made by --new or --join, its file too: plain
    /// `quorate serve` starts it from there.
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = DATA,
        conflicts_with = "config"
    )]
    data: PathBuf,
    /// The address or name by which others reach this machine. With --join, if it is left out, the
    /// address from which this machine reaches the cluster.
    #[arg(long, value_name = "HOST")]
    address: Option<String>,
    /// Where to listen; without it at the address, or everywhere if that is a name.
    #[arg(long, value_name = "IP")]
    listen: Option<IpAddr>,
    /// The port for clients: 7420 unless said otherwise.
    #[arg(long, value_name = "PORT")]
    clients_port: Option<u16>,
    /// The port for other members: 7520 unless said otherwise.
    #[arg(long, value_name = "PORT")]
    peers_port: Option<u16>,
    /// The name of the new cluster.
    #[arg(long, value_name = "NAME", default_value = "quorate", requires = "new")]
    cluster: String,
    /// The name of its first member; this machine's, unless said otherwise.
    #[arg(long, value_name = "NAME", requires = "new")]
    name: Option<String>,
}

impl Begin {
    /// Becomes a member if that was asked for; the file of the member.
    pub(super) fn file(&self) -> anyhow::Result<PathBuf> {
        if let Some(invitation) = &self.join {
            return self.join(invitation);
        }
        if self.new {
            return self.found();
        }
        let ports = self.clients_port.or(self.peers_port);
        if self.address.is_some() || self.listen.is_some() || ports.is_some() {
            bail!(
                "addresses and ports are said with --new or --join; a member has them in its file"
            );
        }
        let file = self.data.join(quorate_node::FILE);
        if !file.exists() {
            bail!(
                "there is no {}: name the file of this node with --config, or begin with \
                 `quorate serve --new --address HOST`, or with an invitation (--join)",
                file.display()
            );
        }
        Ok(file)
    }

    /// How to start it from now on.
    fn again(&self) -> String {
        let data = self.data.display();
        match self.data == Path::new(DATA) {
            true => format!("everything is in {data}; plain `quorate serve` starts it again"),
            false => format!("`quorate serve --data {data}` starts it again"),
        }
    }

    fn wish(&self) -> Wish {
        Wish {
            data: self.data.clone(),
            address: self.address.clone(),
            listen: self.listen,
            clients: self.clients_port.unwrap_or(CLIENTS),
            peers: self.peers_port.unwrap_or(PEERS),
        }
    }

    fn found(&self) -> anyhow::Result<PathBuf> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => this_machine().context("say what this member is called: --name NAME")?,
        };
        let made = found(&self.cluster, &name, &self.wish())?;
        let again = self.again();
        crate::print(format_args!(
            "{name} is the first member of the new cluster {}\n{again}\n\
             the administrator's token is in {}, and the authority's certificate in {}",
            self.cluster,
            made.token.display(),
            made.ca.display()
        ))?;
        let socket = made.file.with_file_name("quorate.sock");
        let way = match made.socket {
            true => format!("--server unix:{}", socket.display()),
            false => format!(
                "--server https://{} --ca {} --token-file {}",
                made.clients,
                made.ca.display(),
                made.token.display()
            ),
        };
        crate::print(format_args!("to invite others: quorate member invite NAME {way}"))?;
        Ok(made.file)
    }

    fn join(&self, invitation: &str) -> anyhow::Result<PathBuf> {
        let said = match invitation {
            "-" => std::io::read_to_string(std::io::stdin()).context("standard input")?,
            said => said.to_owned(),
        };
        let invitation: Invitation = said.parse()?;
        let joined = daemon::runtime()?.block_on(join(&invitation, &self.wish()))?;
        let again = self.again();
        crate::print(format_args!(
            "{} is a member of cluster {} now, as m{}, with {}\n{again}",
            joined.name,
            joined.cluster,
            joined.member,
            joined.members.join(", ")
        ))?;
        Ok(joined.file)
    }
}

/// What this machine calls itself, without its domain, if a member can be called so.
fn this_machine() -> Option<String> {
    let system = rustix::system::uname();
    let name = system.nodename().to_str().ok()?.split('.').next()?.to_owned();
    is_name(&name).then_some(name)
}
