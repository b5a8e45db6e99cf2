//! `quorate dev`: a cluster on this machine, to try things out.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use quorate_client::Views;
use quorate_node::{Config, MEMBERS_MAX, Node};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::Instant;

use super::{cluster, daemon};
use crate::Outcome;

/// Where the others that talk to a node find it: below those that the system gives to outgoing
/// connections, since a node that was killed leaves its port free until it is back.
const PEER_PORTS: (u16, u16) = (3_000, 7_000);
/// How long a node stays away: long enough to see the others go on, short enough to see it come
/// back.
const AWAY: Duration = Duration::from_secs(10);
/// So many members can lose one and decide on.
const ENOUGH_TO_LOSE_ONE: usize = 3;

/// Run a cluster on this machine to try things out.
///
/// Each node is a process of its own. Kill one: the others go on, whoever holds units keeps them,
/// and it is started again after ten seconds. There is a pool `demo` of four units, and every name
/// that begins with `try-` is a pool of two. What nodes write is in a temporary folder that goes
/// when the cluster stops: claims and fences begin anew with every start. Stop it with Ctrl-C.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate dev
  quorate dev --nodes 5 --protocol ticket
  quorate dev --pools pools.toml --port 0")]
pub(crate) struct Args {
    /// How many nodes. With one or two of them, `demo` waits for a node that is gone.
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
    /// One node decides, and another when that is gone.
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
    /// The options of a pool.
    fn options(self) -> &'static str {
        match self {
            Protocol::Central => "protocol = \"central\"",
            // Two nodes survive no crash by voting; whoever asks for so few knows.
            Protocol::Arbiter => "protocol = \"arbiter\"\nsurvive = 0",
            Protocol::Count => "protocol = \"arbiter\"\nmode = \"arbiter\"\nsurvive = 0",
            Protocol::Naming => {
                "protocol = \"arbiter\"\nmode = \"arbiter\"\nnaming = true\nsurvive = 0"
            }
            Protocol::Ticket => "protocol = \"arbiter\"\nmode = \"ticket\"\nsurvive = 0",
            Protocol::Table => "protocol = \"table\"\nsurvive = 0",
            Protocol::Broadcast => "protocol = \"broadcast\"",
            Protocol::Ring => "protocol = \"ring\"",
        }
    }

    /// The pools of a cluster of so many nodes, and what else its files say for them.
    fn pools(self, nodes: usize) -> String {
        let moves = self == Protocol::Central && nodes >= ENOUGH_TO_LOSE_ONE;
        let charter = if moves { "[charter]\nenabled = true\n" } else { "" };
        let every = self.options();
        format!(
            "{charter}[[pools]]\nname = \"demo\"\nunits = 4\n{every}\n\
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
    let folder = Folder::new()?;
    let (members, claim_max) = members(args, folder.path())?;
    daemon::runtime()?.block_on(async {
        let mut running = Vec::new();
        for member in members {
            running.push(Running { process: Some(member.start()?), member, back: None });
        }
        let Some(first) = running.first().map(|one| one.member.at) else {
            return Ok(Outcome::Good);
        };
        let ready = async {
            for one in &running {
                one.member.ready().await;
            }
        };
        if tokio::time::timeout(PATIENCE, ready).await.is_err() {
            eprintln!("quorate: not all nodes are ready yet");
        }
        // Whoever started us may have stopped reading; that is no reason to stop.
        let text = greeting(args, &running, claim_max, first);
        let _ = std::io::stdout().write_all(text.as_bytes());
        let mut asked = std::pin::pin!(daemon::asked_to_stop());
        loop {
            tokio::select! {
                stopped = &mut asked => return stopped.map(|()| Outcome::Good),
                happened = next(&mut running) => {
                    let _ = writeln!(std::io::stdout(), "{}", happened?);
                }
            }
        }
    })
}

/// How long to wait until everything is as it should be: a page of a node shows what is not.
const PATIENCE: Duration = Duration::from_secs(20);

/// What to try, for whoever has just started this.
fn greeting(args: &Args, running: &[Running], claim_max: u32, first: SocketAddr) -> String {
    let mut text = String::new();
    let quorate = callable();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} nodes, each a process of its own:", running.len());
    for Running { member, process, .. } in running {
        let process = process.as_ref().map_or(0, Process::number);
        let _ = writeln!(text, "  {}  process {process}  http://{}", member.name, member.at);
    }
    let server = match first.to_string() {
        found if found == cluster::LOCAL => String::new(),
        elsewhere => format!(" --server {elsewhere}"),
    };
    if args.pools.is_none() {
        let units = claim_max.min(2);
        let _ = writeln!(text, "\ntry: {quorate} run demo -n {units}{server} -- sleep 5");
        let url = claim_url(first);
        let _ = writeln!(text, "or: curl -X PUT -d '{{\"units\": {units}}}' {url}");
        let _ = writeln!(text, "then: {quorate} holders demo{server}");
    } else {
        let _ = writeln!(text, "\nthen: {quorate} pools{server}");
    }
    if let [_, .., Running { process: Some(process), .. }] = running {
        let _ = writeln!(text, "kill a node with: kill -9 {}", process.number());
    }
    let _ = writeln!(text, "watch: http://{first}/ in a browser, or `{quorate} top{server}`");
    let _ = writeln!(text, "Ctrl-C stops.");
    text
}

/// By what words a shell in this folder finds this program: `cargo run` puts it on nobody's path.
fn callable() -> String {
    const NAME: &str = env!("CARGO_BIN_NAME");
    let Ok(program) = std::env::current_exe().and_then(std::fs::canonicalize) else {
        return NAME.to_owned();
    };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .find_map(|folder| std::fs::canonicalize(folder.join(NAME)).ok());
    if found.as_ref() == Some(&program) {
        return NAME.to_owned();
    }
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    match program.strip_prefix(&here) {
        Ok(beside) if beside == Path::new(NAME) => format!("./{NAME}"),
        Ok(below) => below.display().to_string(),
        Err(_) => program.display().to_string(),
    }
}

/// A claim that is a new one every second: an id that was used is over with its lease.
fn claim_url(address: SocketAddr) -> String {
    format!("http://{address}/v1/pools/demo/claims/$(date +%s)")
}

/// Where nodes of a cluster that is only tried out keep things, while it runs.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Folder> {
        let path = std::env::temp_dir().join(format!("quorate-dev-{}", std::process::id()));
        let shown = path.display();
        // What a process with the same number left behind is nobody's any more.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).with_context(|| format!("cannot make the folder {shown}"))?;
        Ok(Folder(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It is in the folder for what nobody needs any more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A member of the cluster, by its file.
struct Member {
    name: String,
    file: PathBuf,
    at: SocketAddr,
    peers: usize,
}

impl Member {
    fn start(&self) -> anyhow::Result<Process> {
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let mut command = Command::new(program);
        command.arg("serve").arg("--config").arg(&self.file).arg("--throwaway");
        // What it says at its start, everybody knows; and Ctrl-C is for this process.
        if std::env::var_os("QUORATE_LOG").is_none() {
            command.env("QUORATE_LOG", "error");
        }
        command.stdin(Stdio::piped()).process_group(0).kill_on_drop(true);
        let child = command.spawn();
        let mut child = child.with_context(|| format!("cannot start {}", self.name))?;
        Ok(Process { _input: child.stdin.take(), child })
    }

    /// Returns when it says that nothing is wrong, and is connected with all others.
    async fn ready(&self) {
        let Ok(views) = Views::new([self.at.to_string()]) else { return };
        loop {
            if let Ok(node) = views.node().await {
                let connected = node.peers.iter().filter(|peer| peer.connected).count();
                if connected == self.peers && node.checks.iter().all(|check| check.ok) {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A process, which ends when this value does. Its input is kept apart, because waiting for a child
/// closes what the child has of it.
struct Process {
    child: Child,
    _input: Option<ChildStdin>,
}

impl Process {
    fn number(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }
}

/// A member that runs, or will again.
struct Running {
    member: Member,
    process: Option<Process>,
    back: Option<Instant>,
}

/// Waits until a node has ended, which may be what somebody wanted to try, or is to be started
/// again; what happened, in a sentence.
async fn next(running: &mut [Running]) -> anyhow::Result<String> {
    let back = running.iter().filter_map(|one| one.back).min();
    let due = async {
        match back {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    let ended = first_of(
        running
            .iter_mut()
            .enumerate()
            .filter_map(|(place, one)| Some((place, one.process.as_mut()?)))
            .map(|(place, process)| Box::pin(async move { (place, process.child.wait().await) }))
            .collect(),
    );
    let ended = tokio::select! {
        ended = ended => Some(ended),
        () = due => None,
    };
    match ended {
        Some((place, status)) => {
            let one = &mut running[place];
            let status = status?;
            ensure!(was_stopped(status), "{} cannot go on: {status}", one.member.name);
            one.process = None;
            one.back = Some(Instant::now() + AWAY);
            Ok(format!("{} is gone ({status}); it is started again in 10 s", one.member.name))
        }
        None => {
            let due = running.iter_mut().find(|one| one.back == back);
            let one = due.context("somebody is to be started again")?;
            let process = one.member.start()?;
            let number = process.number();
            (one.process, one.back) = (Some(process), None);
            Ok(format!("{} is started again, as process {number}", one.member.name))
        }
    }
}

/// Whether somebody ended it, by a signal or politely.
fn was_stopped(status: ExitStatus) -> bool {
    status.success() || status.code().is_none()
}

/// The files of the members, and most units that one claim on the demo pool may ask for.
fn members(args: &Args, folder: &Path) -> anyhow::Result<(Vec<Member>, u32)> {
    let last = usize::from(u16::MAX) + 1 - args.nodes;
    ensure!(
        usize::from(args.port) <= last,
        "--port {}: {} nodes take that port and the next ones, and {} is the last there is; \
         choose {last} or less, or 0 for any free ports",
        args.port,
        args.nodes,
        u16::MAX
    );
    let mut places = Vec::new();
    let mut ports = free_ports();
    let mut any = || ports.next().context("there is no free port on this machine");
    for place in 0..args.nodes {
        let clients = match args.port {
            0 => any()?,
            first => first + place as u16,
        };
        TcpListener::bind(local(clients)).with_context(|| {
            format!("cannot listen at 127.0.0.1:{clients}; choose another --port")
        })?;
        places.push((local(clients), local(any()?)));
    }
    let mut listed = String::new();
    for ((_, peers), number) in places.iter().zip(0..) {
        let _ = write!(listed, "[[members]]\nname = \"n{number}\"\npeers = \"{peers}\"\n");
    }
    let pools = match &args.pools {
        None => args.protocol.pools(args.nodes),
        Some(file) => {
            let shown = file.display();
            let text =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
            Config::check_pools(&text).with_context(|| shown.to_string())?;
            text
        }
    };
    let (mut members, mut claim_max) = (Vec::new(), 0);
    for ((clients, peers), number) in places.into_iter().zip(0..) {
        let name = format!("n{number}");
        let data = folder.join(&name);
        let text = format!(
            "cluster = \"dev\"\nepoch = 1\nnode = \"{name}\"\ndata_dir = {data:?}\n\
             listen = {{ clients = \"{clients}\", peers = \"{peers}\" }}\n{listed}{pools}"
        );
        let config = Config::parse(&text).with_context(|| match &args.pools {
            None => "the pools of this command".to_owned(),
            Some(file) => file.display().to_string(),
        })?;
        Node::init(&config)?;
        claim_max = config.pool("demo").map_or(0, |demo| demo.claim_max);
        let file = folder.join(format!("{name}.toml"));
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        members.push(Member { name, file, at: clients, peers: args.nodes - 1 });
    }
    Ok((members, claim_max))
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Ports that nobody listens at, each once, and not the same as those of the last cluster.
fn free_ports() -> impl Iterator<Item = u16> {
    let (first, end) = PEER_PORTS;
    let begin = std::process::id() * 61;
    let all = (0..u32::from(end - first))
        .map(move |place| first + ((begin + place) % u32::from(end - first)) as u16);
    all.filter(|port| TcpListener::bind(local(*port)).is_ok())
}

/// Whichever happens first.
async fn first_of<T, F: Future<Output = T> + Unpin>(mut futures: Vec<F>) -> T {
    std::future::poll_fn(|cx| {
        for future in &mut futures {
            if let std::task::Poll::Ready(done) = std::pin::Pin::new(future).poll(cx) {
                return std::task::Poll::Ready(done);
            }
        }
        std::task::Poll::Pending
    })
    .await
}
