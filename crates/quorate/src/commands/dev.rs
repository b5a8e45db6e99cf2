//! `quorate dev`: a cluster in one process, to try things out.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use quorate_node::{Config, MEMBERS_MAX, Node};
use tokio::net::TcpListener;

use super::{cluster, daemon};
use crate::Outcome;

/// Run a cluster on this machine to try things out.
///
/// All nodes live in this process and talk over loopback sockets. There is a pool `demo` of four
/// units, and every name that begins with `try-` is a pool of two. Nothing is written to disk:
/// claims and fences begin anew with every start. Stop it with Ctrl-C.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate dev
  quorate dev --nodes 5 --protocol ticket
  quorate dev --pools pools.toml --port 0")]
pub(crate) struct Args {
    /// How many nodes.
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: usize,
    /// Port of the first node; the others take the next ones. 0 takes any free ports.
    #[arg(long, value_name = "P", default_value_t = 7420)]
    port: u16,
    /// Who decides over the pools.
    #[arg(long, value_enum, default_value_t = Protocol::Central)]
    protocol: Protocol,
    /// Instead of those, the pools of this file: `[[pools]]` as in a configuration, members n0, n1
    /// and so on.
    #[arg(long, value_name = "FILE", conflicts_with = "protocol")]
    pools: Option<PathBuf>,
}

/// A protocol that a node can run.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    /// One node decides.
    Central,
    /// Quorums decide; each unit is a lock (also: named).
    #[value(alias = "named")]
    Arbiter,
    /// Quorums decide; units are only counted, by permissions.
    Count,
    /// Quorums decide; units are counted, and then named in one more round.
    Naming,
    /// Quorums decide; units are only counted, by tickets.
    Ticket,
    /// Quorums keep one table of all claims.
    Table,
    /// Everybody is asked; units are only counted.
    Broadcast,
    /// Tokens go round.
    Ring,
}

impl Protocol {
    /// The options of a pool, and of the demo pool besides.
    fn options(self) -> (&'static str, &'static str) {
        match self {
            Protocol::Central => ("protocol = \"central\"", "arbiter = \"n0\""),
            // Two nodes survive no crash by voting; whoever asks for so few knows.
            Protocol::Arbiter => ("protocol = \"arbiter\"\nsurvive = 0", ""),
            Protocol::Count => ("protocol = \"arbiter\"\nmode = \"arbiter\"\nsurvive = 0", ""),
            Protocol::Naming => {
                let every =
                    "protocol = \"arbiter\"\nmode = \"arbiter\"\nnaming = true\nsurvive = 0";
                (every, "")
            }
            Protocol::Ticket => ("protocol = \"arbiter\"\nmode = \"ticket\"\nsurvive = 0", ""),
            Protocol::Table => ("protocol = \"table\"\nsurvive = 0", ""),
            Protocol::Broadcast => ("protocol = \"broadcast\"", ""),
            Protocol::Ring => ("protocol = \"ring\"", ""),
        }
    }

    fn pools(self) -> String {
        let (every, demo) = self.options();
        format!(
            "[[pools]]\nname = \"demo\"\nunits = 4\n{every}\n{demo}\n\
             [[pools]]\npattern = \"try-*\"\nunits = 2\n{every}\n"
        )
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(
        (1..=MEMBERS_MAX).contains(&args.nodes),
        "--nodes {}: choose 1 to {MEMBERS_MAX}",
        args.nodes
    );
    daemon::log_to_stderr(daemon::level(Some("warn"))?);
    daemon::runtime()?.block_on(async {
        let (mut nodes, claim_max) = start(args).await?;
        connected(&nodes).await;
        let mut text = String::new();
        let _ = writeln!(text, "{} nodes, nothing kept on disk:", nodes.len());
        for (node, number) in nodes.iter().zip(0..) {
            let _ = writeln!(text, "  n{number}  http://{}", node.clients_address());
        }
        let first = nodes[0].clients_address();
        let server = match first.to_string() {
            found if found == cluster::LOCAL => String::new(),
            elsewhere => format!(" --server {elsewhere}"),
        };
        if args.pools.is_none() {
            let units = claim_max.min(2);
            let _ = writeln!(text, "\ntry: quorate run demo -n {units}{server} -- sleep 5");
            let url = claim_url(first);
            let _ = writeln!(text, "or: curl -X PUT -d '{{\"units\": {units}}}' {url}");
            let _ = writeln!(text, "then: quorate holders demo{server}");
        } else {
            let _ = writeln!(text, "\nthen: quorate pools{server}");
        }
        let _ = writeln!(text, "watch: http://{first}/ in a browser, or `quorate top{server}`");
        let _ = writeln!(text, "Ctrl-C stops.");
        // Whoever started us may have stopped reading; that is no reason to stop.
        let _ = std::io::stdout().write_all(text.as_bytes());
        let failed = {
            let failures: Vec<_> = nodes.iter_mut().map(|node| Box::pin(node.failed())).collect();
            tokio::select! {
                stopped = daemon::asked_to_stop() => stopped.map(|()| None),
                why = first_of(failures) => Ok(Some(why)),
            }
        };
        for node in nodes {
            node.stop().await;
        }
        match failed? {
            None => Ok(Outcome::Good),
            Some(why) => anyhow::bail!("a node cannot go on: {why}"),
        }
    })
}

/// A claim that is a new one every second: an id that was used is over with its lease.
fn claim_url(address: SocketAddr) -> String {
    format!("http://{address}/v1/pools/demo/claims/$(date +%s)")
}

/// The nodes, and most units that one claim on the demo pool may ask for.
async fn start(args: &Args) -> anyhow::Result<(Vec<Node>, u32)> {
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let last = usize::from(u16::MAX) + 1 - args.nodes;
    ensure!(
        usize::from(args.port) <= last,
        "--port {}: {} nodes take that port and the next ones, and {} is the last there is; \
         choose {last} or less, or 0 for any free ports",
        args.port,
        args.nodes,
        u16::MAX
    );
    let mut listeners = Vec::new();
    for place in 0..args.nodes {
        let port = if args.port == 0 { 0 } else { args.port + place as u16 };
        let clients = TcpListener::bind(local(port))
            .await
            .with_context(|| format!("cannot listen at 127.0.0.1:{port}; choose another --port"))?;
        listeners.push((clients, TcpListener::bind(local(0)).await?));
    }
    let mut members = String::new();
    for ((_, peers), number) in listeners.iter().zip(0..) {
        let address = peers.local_addr()?;
        members.push_str(&format!("[[members]]\nname = \"n{number}\"\npeers = \"{address}\"\n"));
    }
    let pools = match &args.pools {
        None => args.protocol.pools(),
        Some(file) => {
            let shown = file.display();
            let text =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
            Config::check_pools(&text).with_context(|| shown.to_string())?;
            text
        }
    };
    let (mut nodes, mut claim_max) = (Vec::new(), 0);
    for ((clients, peers), number) in listeners.into_iter().zip(0..) {
        let (at, among) = (clients.local_addr()?, peers.local_addr()?);
        let text = format!(
            "cluster = \"dev\"\nepoch = 1\nnode = \"n{number}\"\n\
             listen = {{ clients = \"{at}\", peers = \"{among}\" }}\n{members}{pools}"
        );
        let config = Config::parse_in_memory(&text).with_context(|| match &args.pools {
            None => "the pools of this command".to_owned(),
            Some(file) => file.display().to_string(),
        })?;
        claim_max = config.pool("demo").map_or(0, |demo| demo.claim_max);
        nodes.push(Node::start_on(config, clients, peers).await?);
    }
    Ok((nodes, claim_max))
}

/// Waits until everybody is connected with everybody, or something is wrong that the page of the
/// first node will show.
async fn connected(nodes: &[Node]) {
    let all = async {
        for node in nodes {
            while node.view().await.is_some_and(|v| v.peers.iter().any(|peer| !peer.connected)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    };
    if tokio::time::timeout(Duration::from_secs(5), all).await.is_err() {
        eprintln!("quorate: not all nodes are connected yet");
    }
}

/// Whichever happens first.
async fn first_of<F: Future<Output = String> + Unpin>(mut futures: Vec<F>) -> String {
    std::future::poll_fn(|cx| {
        for future in &mut futures {
            if let std::task::Poll::Ready(why) = std::pin::Pin::new(future).poll(cx) {
                return std::task::Poll::Ready(why);
            }
        }
        std::task::Poll::Pending
    })
    .await
}
