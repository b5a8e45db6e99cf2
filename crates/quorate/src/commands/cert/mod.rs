//! `quorate cert`: the certificates of a cluster's nodes and clients, as files.

mod look;
mod make;

use crate::Outcome;

/// Make and look at the certificates of a cluster.
///
/// One authority per cluster signs a certificate for each node, and for each client that wants one.
/// Nothing here talks to a cluster: these commands read and write files. Keep the authority's key
/// (ca.key) where no node runs: whoever has it can be any node.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example: three nodes, on the machine that keeps the authority
  quorate cert new-ca rack-7 --dir certs
  quorate cert node a --address 10.0.0.1 --dir certs
  quorate cert node b --address 10.0.0.2 --dir certs
  quorate cert node c --address 10.0.0.3 --dir certs
  quorate cert show certs/node-a.crt
Give each node ca.crt and its own node-NAME.crt and node-NAME.key, and name them in [tls] of its
file.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    NewCa(make::NewCa),
    Node(make::Node),
    Client(make::Client),
    Show(look::Show),
    Verify(look::Verify),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.verb {
        Verb::NewCa(args) => make::new_ca(args),
        Verb::Node(args) => make::node(args),
        Verb::Client(args) => make::client(args),
        Verb::Show(args) => look::show(args),
        Verb::Verify(args) => look::verify(args),
    }
}
