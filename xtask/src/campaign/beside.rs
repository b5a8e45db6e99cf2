//! `cargo xtask campaign --beside`: the same clients, holds and faults, through small adapters
//! (`others.py`), on etcd's lock and on a lock and a semaphore in Redis with Sentinel, as Debian
//! packages them. docs/campaign.md says what is compared and what is not.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use super::draw::{Draw, Means, Only};
use super::history::{self, Story};
use super::json::quoted;
use super::stage::{self, Stage, Tools, append};
use super::timeline::STYLE;
use crate::lab::net::{self, Lab, Outcome, Process, say};

const LEASE: Duration = Duration::from_secs(3);
const BEFORE: Duration = Duration::from_secs(2);
/// Longer than a lease, and than anybody takes to suspect a node.
const FAULT: Duration = Duration::from_secs(7);
const AFTER: Duration = Duration::from_secs(7);
/// Nobody holding anything for so long, while clients want to, counts as unavailable.
const IDLE: u64 = 500_000_000;

struct System {
    name: &'static str,
    /// Of `others.py`.
    adapter: &'static str,
    /// Ours, if it is.
    protocol: Option<&'static str>,
    units: u32,
}

const fn system(
    name: &'static str,
    adapter: &'static str,
    protocol: Option<&'static str>,
    units: u32,
) -> System {
    System { name, adapter, protocol, units }
}

const SYSTEMS: &[System] = &[
    system("quorate table, k = 1", "quorate", Some("table"), 1),
    system("quorate central, k = 1", "quorate", Some("central"), 1),
    system("etcd lock, k = 1", "etcd", None, 1),
    system("Redis lock, k = 1", "redis-lock", None, 1),
    system("quorate table, k = 3", "quorate", Some("table"), 3),
    system("quorate central, k = 3", "quorate", Some("central"), 3),
    system("Redis semaphore, k = 3", "redis-semaphore", None, 3),
];

/// What happens to the node that leads, or to clients.
const FAULTS: &[(&str, &str)] = &[
    ("none", "nothing goes wrong"),
    ("kill", "the node that leads is killed, and returns"),
    ("pause", "the node that leads stands still for longer than a lease"),
    ("isolate", "the node that leads is cut off from everybody"),
    ("peers-away", "the node that leads is cut off from nodes, and clients reach it"),
    ("clients-paused", "half of the clients stand still for longer than a lease"),
];

/// Processes that end with the value.
struct Clients(Child);

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Three nodes of a system, and hosts for clients.
enum Rig {
    Ours(Box<Stage>),
    Theirs { lab: Lab, adapter: &'static str, units: u32, nodes: Vec<Vec<Process>> },
}

const NODES: [&str; 3] = ["n0", "n1", "n2"];

impl Rig {
    fn new(system: &System, seed: u64, tools: &Tools) -> Outcome<Rig> {
        if let Some(protocol) = system.protocol {
            let words = ["small", "none", protocol, "3"].map(String::from).to_vec();
            let mut draw = Draw::new(seed, &Only(words), Means::default());
            (draw.units, draw.lease, draw.durable, draw.apart) = (system.units, LEASE, false, None);
            return Ok(Rig::Ours(Box::new(Stage::new(draw, tools.clone())?)));
        }
        let names: Vec<&str> = NODES.into_iter().chain(["eye", "c1", "c2"]).collect();
        let lab = Lab::new(&names)?;
        lab.host("eye").write("client.py", include_str!("client.py"))?;
        lab.host("eye").write("others.py", include_str!("others.py"))?;
        let (adapter, units) = (system.adapter, system.units);
        let mut rig = Rig::Theirs { lab, adapter, units, nodes: Vec::new() };
        for number in 0..NODES.len() {
            let processes = rig.serve(number)?;
            let Rig::Theirs { nodes, .. } = &mut rig else { continue };
            nodes.push(processes);
        }
        net::until("it has a leader", || rig.leader().is_some())?;
        Ok(rig)
    }

    fn lab(&mut self) -> &mut Lab {
        match self {
            Rig::Ours(stage) => &mut stage.lab,
            Rig::Theirs { lab, .. } => lab,
        }
    }

    /// The processes of a node that is not ours. Its files are kept from one start to the next.
    fn serve(&self, number: usize) -> Outcome<Vec<Process>> {
        let Rig::Theirs { lab, adapter, .. } = self else { return Ok(Vec::new()) };
        let host = lab.host(NODES[number]);
        let at = |name: &str| lab.host(name).address;
        let log = || append(&host.folder.join("node.log"));
        let mut processes = Vec::new();
        if *adapter == "etcd" {
            let peers: Vec<String> =
                NODES.iter().map(|name| format!("{name}=http://{}:2380", at(name))).collect();
            let mut command = host.command("etcd");
            let here = host.address;
            command.args(["--name", NODES[number], "--data-dir", "data"]);
            command.args(["--initial-cluster", &peers.join(",")]);
            command.arg(format!("--listen-peer-urls=http://{here}:2380"));
            command.arg(format!("--initial-advertise-peer-urls=http://{here}:2380"));
            command.arg(format!("--listen-client-urls=http://{here}:2379"));
            command.arg(format!("--advertise-client-urls=http://{here}:2379"));
            processes.push(net::start(command.stdout(Stdio::null()).stderr(log()?))?);
            return Ok(processes);
        }
        // A primary that was killed returns as one; Sentinel makes a replica of it.
        let first = at(NODES[0]);
        let follows = if number == 0 { String::new() } else { format!("replicaof {first} 6379\n") };
        if !host.folder.join("redis.conf").exists() {
            host.write("redis.conf", format!("port 6379\nprotected-mode no\n{follows}"))?;
            host.write(
                "sentinel.conf",
                format!(
                    "port 26379\nprotected-mode no\nsentinel monitor camp {first} 6379 2\n\
                     sentinel down-after-milliseconds camp 2000\n\
                     sentinel failover-timeout camp 6000\n"
                ),
            )?;
        }
        for words in [vec!["redis.conf"], vec!["sentinel.conf", "--sentinel"]] {
            let mut command = host.command("redis-server");
            processes.push(net::start(command.args(words).stdout(log()?).stderr(log()?))?);
        }
        Ok(processes)
    }

    fn orders(&self, by: &str, seed: u64) -> Outcome<std::path::PathBuf> {
        match self {
            Rig::Ours(stage) => {
                let more = format!("\"seed\":{seed},\"threads\":3,\"system\":\"quorate\"");
                stage.orders(by, &more)
            }
            Rig::Theirs { lab, adapter, units, .. } => {
                let eye = lab.host("eye");
                let servers: Vec<String> =
                    NODES.iter().map(|name| quoted(&lab.host(name).address.to_string())).collect();
                let log = eye.folder.join(format!("history-{by}.jsonl"));
                let text = format!(
                    "{{\"by\":\"{by}\",\"servers\":[{}],\"log\":{},\"lease\":{},\"seed\":{seed},\
                     \"pools\":[{{\"name\":\"camp\",\"units\":{units}}}],\"threads\":3,\
                     \"system\":\"{adapter}\"}}",
                    servers.join(","),
                    quoted(&log.display().to_string()),
                    LEASE.as_secs(),
                );
                eye.write(&format!("orders-{by}"), text)?;
                Ok(eye.folder.join(format!("orders-{by}")))
            }
        }
    }

    fn python(&mut self, host: &str, mode: &str, orders: &Path) -> Command {
        let lab = self.lab();
        let mut command = lab.host(host).command("python3");
        command.arg(lab.host("eye").folder.join("others.py")).arg(mode).arg(orders);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    fn clients(&mut self, by: &str, seed: u64) -> Outcome<Clients> {
        let orders = self.orders(by, seed)?;
        let log = append(&self.lab().host("eye").folder.join("clients.log"))?;
        let mut command = self.python(by, "live", &orders);
        let child = command.stdin(Stdio::piped()).stderr(log).spawn();
        child.map(Clients).map_err(|error| format!("cannot start clients: {error}"))
    }

    fn leader(&mut self) -> Option<usize> {
        if let Rig::Ours(stage) = self {
            return Some(stage.decider());
        }
        let orders = self.orders("eye", 0).ok()?;
        let said = net::fine(&mut self.python("eye", "leader", &orders)).ok()?;
        said.trim().parse().ok()
    }

    fn signal(&mut self, node: usize, name: &str) -> Outcome {
        match self {
            Rig::Ours(stage) => stage.signal(node, name),
            Rig::Theirs { nodes, .. } => {
                nodes[node].iter().try_for_each(|process| process.signal(name))
            }
        }
    }

    fn kill(&mut self, node: usize) -> Outcome {
        match self {
            Rig::Ours(stage) => stage.kill(node),
            Rig::Theirs { nodes, .. } => {
                nodes[node].clear();
                Ok(())
            }
        }
    }

    fn start(&mut self, node: usize) -> Outcome {
        if let Rig::Ours(stage) = self {
            return stage.start(node);
        }
        let processes = self.serve(node)?;
        if let Rig::Theirs { nodes, .. } = self {
            nodes[node] = processes;
        }
        Ok(())
    }
}

/// What came of one trial.
#[derive(Clone, Default)]
struct Cell {
    holds: usize,
    violations: usize,
    unavailable: f64,
    recovery: f64,
}

fn play(system: &System, fault: &str, seed: u64, tools: &Tools) -> Outcome<Cell> {
    let mut rig = Rig::new(system, seed, tools)?;
    rig.lab().host("eye").write("others.py", include_str!("others.py"))?;
    let clients = [rig.clients("c1", seed)?, rig.clients("c2", seed + 1)?];
    std::thread::sleep(BEFORE);
    let leader = rig.leader().ok_or("nobody leads")?;
    let began = stage::now();
    match fault {
        "kill" => rig.kill(leader)?,
        "pause" => rig.signal(leader, "STOP")?,
        "isolate" => rig.lab().isolate(NODES[leader])?,
        "peers-away" => {
            for other in NODES.iter().filter(|name| **name != NODES[leader]) {
                rig.lab().cut(NODES[leader], other)?;
            }
        }
        "clients-paused" => signal(&clients[0], "STOP")?,
        _ => {}
    }
    std::thread::sleep(FAULT);
    match fault {
        "kill" => rig.start(leader)?,
        "pause" => rig.signal(leader, "CONT")?,
        "clients-paused" => signal(&clients[0], "CONT")?,
        _ => rig.lab().heal()?,
    }
    std::thread::sleep(AFTER);
    let end = stage::now();
    for mut one in clients {
        drop(one.0.stdin.take());
        let _ = one.0.wait();
    }
    let lines = history::read(&rig.lab().host("eye").folder);
    let stories = history::stories(&lines);
    if stories.is_empty() {
        let log = rig.lab().host("eye").read("clients.log").unwrap_or_default();
        return Err(format!("clients did nothing: {log}"));
    }
    Ok(measured(stories.values(), system.units, (began, end)))
}

fn signal(clients: &Clients, name: &str) -> Outcome {
    net::done(Command::new("kill").args([&format!("-{name}"), &clients.0.id().to_string()]))
}

/// Definite holds as the laws count them; a violation is a grant while all units are in use.
fn measured<'a>(
    stories: impl Iterator<Item = &'a Story>,
    units: u32,
    (began, end): (u64, u64),
) -> Cell {
    let held: Vec<(u64, u64)> = stories.filter_map(Story::held).collect();
    // At one moment, ends come before grants.
    let mut seen: Vec<(u64, bool)> =
        held.iter().flat_map(|(from, until)| [(*from, true), (*until, false)]).collect();
    seen.sort_unstable();
    let mut cell = Cell { holds: held.len(), ..Cell::default() };
    let (mut used, mut since) = (0, began);
    for (at, granted) in seen {
        if granted {
            if used == 0 && at > began && since < end && at.min(end) - since.max(began) > IDLE {
                cell.unavailable += (at.min(end) - since.max(began)) as f64 / 1e9;
                cell.recovery = (at - began) as f64 / 1e9;
            }
            used += 1;
            cell.violations += usize::from(used > units);
        } else {
            used -= 1;
            since = at;
        }
    }
    if used == 0 && since < end && end - since.max(began) > IDLE {
        cell.unavailable += (end - since.max(began)) as f64 / 1e9;
        cell.recovery = f64::INFINITY;
    }
    cell
}

/// Plays all of it so many times, and says what came of it in one table.
pub(crate) fn compare(tools: &Tools, keep: &Path, times: u64, lanes: usize) -> Outcome<bool> {
    for (package, program) in
        [("etcd-server", "etcd"), ("etcd-client", "etcdctl"), ("redis-server", "redis-server")]
    {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        if !found.is_ok_and(|output| output.status.success()) {
            say(&format!("--- installing {package}"));
            crate::browser::apt(&[package]);
        }
    }
    let todo: Vec<(&System, &str)> = SYSTEMS
        .iter()
        .flat_map(|system| FAULTS.iter().map(move |(fault, _)| (system, *fault)))
        .collect();
    let next = Mutex::new(0);
    let rows = Mutex::new(vec![Vec::<Cell>::new(); todo.len()]);
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                loop {
                    let mut place = next.lock().expect("lanes do not panic");
                    let number = *place;
                    *place += 1;
                    drop(place);
                    let Some((system, fault)) = todo.get(number % todo.len()) else { return };
                    let round = (number / todo.len()) as u64;
                    if round >= times {
                        return;
                    }
                    match play(system, fault, 1 + round, tools) {
                        Ok(cell) => {
                            say(&format!(
                                "{} × {fault}: {} holds, {} violations, {:.1} s unavailable",
                                system.name, cell.holds, cell.violations, cell.unavailable
                            ));
                            rows.lock().expect("lanes do not panic")[number % todo.len()]
                                .push(cell);
                        }
                        Err(why) => say(&format!("{} × {fault}: not played: {why}", system.name)),
                    }
                }
            });
        }
    });
    let rows = rows.into_inner().expect("lanes do not panic");
    let mut text = String::from(
        "| system | fault | trials | holds | violations | unavailable, s | recovery, s |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let mut page = String::new();
    for ((system, fault), cells) in todo.iter().zip(&rows) {
        let sum = |of: fn(&Cell) -> usize| cells.iter().map(of).sum::<usize>();
        let words = [
            system.name.to_owned(),
            (*fault).to_owned(),
            cells.len().to_string(),
            sum(|cell| cell.holds).to_string(),
            sum(|cell| cell.violations).to_string(),
            spread(cells.iter().map(|cell| cell.unavailable)),
            spread(cells.iter().map(|cell| cell.recovery)),
        ];
        text += &format!("| {} |\n", words.join(" | "));
        let bad = sum(|cell| cell.violations) > 0;
        let class = if bad { " class=\"bad\"" } else { "" };
        page += &format!("<tr{class}><td>{}</td></tr>", words.join("</td><td>"));
    }
    say(&text);
    let about: Vec<String> =
        FAULTS.iter().map(|(name, about)| format!("<li><b>{name}</b>: {about}</li>")).collect();
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>beside others</title>\
         <style>{STYLE}</style><h1>Beside others</h1><p>Three nodes, a lease of {} s, six clients; \
         a fault of {} s. Median and, in brackets, least and most of all trials.</p><ul>{}</ul>\
         <table><tr><th>system</th><th>fault</th><th>trials</th><th>holds</th><th>violations</th>\
         <th>unavailable, s</th><th>recovery, s</th></tr>{page}</table>",
        LEASE.as_secs(),
        FAULT.as_secs(),
        about.concat(),
    );
    fs::create_dir_all(keep)
        .and_then(|()| fs::write(keep.join("beside.html"), page))
        .map_err(|error| format!("cannot write {}: {error}", keep.display()))?;
    // What others do is not for us to pass or fail.
    let ours = |(system, _): &&(&System, &str)| system.protocol.is_some();
    let good = todo
        .iter()
        .zip(&rows)
        .filter(|(what, _)| ours(what))
        .all(|(_, cells)| !cells.is_empty() && cells.iter().all(|cell| cell.violations == 0));
    Ok(good)
}

fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let one = |seconds: &f64| match seconds.is_finite() {
        true => format!("{seconds:.1}"),
        false => "not in time".into(),
    };
    match sorted.as_slice() {
        [] => "–".into(),
        [only] => one(only),
        [first, .., last] => {
            let middle = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
            format!("{} ({} to {})", one(&middle), one(first), one(last))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_and_idle_time_are_counted() {
        let held = |from: u64, until: u64| Story {
            granted: Some((from, vec![(0, 0)])),
            deadline: Some(until),
            ..Story::default()
        };
        let second = 1_000_000_000;
        let stories = [held(0, second), held(second, 2 * second), held(5 * second, 9 * second)];
        let one = measured(stories.iter(), 1, (second, 9 * second));
        assert_eq!((one.holds, one.violations), (3, 0));
        assert_eq!((one.unavailable, one.recovery), (3.0, 4.0));
        let twice = [held(0, 2 * second), held(second, 3 * second)];
        assert_eq!(measured(twice.iter(), 1, (0, 3 * second)).violations, 1);
        assert_eq!(measured(twice.iter(), 2, (0, 3 * second)).violations, 0);
        let never = measured(twice.iter(), 2, (0, 9 * second));
        assert_eq!((never.unavailable, never.recovery), (6.0, f64::INFINITY));
        assert_eq!(spread([2.0, 1.0, f64::INFINITY].into_iter()), "2.0 (1.0 to not in time)");
    }
}
