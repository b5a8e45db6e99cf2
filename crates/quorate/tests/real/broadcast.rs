//! Nodes of a broadcasting pool that are killed, as many as the pool allows for, stand still, or
//! lose their connections.
//!
//! No times are compared, only orders: whoever gets a unit too many for those that are left must
//! not have got it before the unit's last holder had to stop.

use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};

use quorate_client::{Client, Grant};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::hardship::client;
use crate::ring::{PATIENCE, give_back, metrics, status, until};

/// Of five nodes two may crash; each may use one unit of three.
const NODES: usize = 5;
/// Longer than any answer takes. Nothing rests on it: what is refused within it must be refused
/// however long one waits.
const SHORT: Duration = Duration::from_millis(300);

/// Two clusters at a time: most of a trial is waiting, but no client may be kept from renewing.
pub(crate) async fn hardships(name: &'static str) {
    let began = Instant::now();
    let pairs: [[Pin<Box<dyn Future<Output = ()> + Send>>; 2]; 3] = [
        [Box::pin(killed_and_never_counted_out()), Box::pin(killed_and_counted_out())],
        [Box::pin(killed_and_fenced()), Box::pin(frozen(Protocol::Broadcast))],
        [Box::pin(frozen(Protocol::Leased)), Box::pin(reconnected())],
    ];
    for pair in pairs {
        let [one, two] = pair.map(tokio::spawn);
        one.await.expect("it says above what is wrong");
        two.await.expect("it says above what is wrong");
    }
    println!("{name}: ok, {:.0?}", began.elapsed());
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("real-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    folder
}

fn pools(protocol: Protocol) -> Pools {
    Pools {
        protocol,
        names: vec!["p".into()],
        units: 3,
        lease: Duration::from_secs(4),
        durable: false,
        backfill: 0,
        more: "node_units_max = 1\n".into(),
    }
}

async fn unit(cluster: &Cluster, node: usize) -> Grant {
    let granted = client(cluster, node).await.pool("p").acquire_timeout(1, PATIENCE).await;
    granted.unwrap_or_else(|error| panic!("a unit at n{node}: {error}; {}", status(cluster, 0)))
}

async fn is_refused(cluster: &Cluster, node: usize) -> bool {
    client(cluster, node).await.pool("p").acquire_timeout(1, SHORT).await.is_err()
}

/// A unit each at these nodes, at the same time.
async fn units_at(cluster: &Cluster, nodes: [usize; 3]) {
    let [one, two, three] = nodes;
    let all = [unit(cluster, one).await, unit(cluster, two).await, unit(cluster, three).await];
    for grant in all {
        give_back(grant).await;
    }
}

/// A claim that will have to wait.
fn claimed(cluster: &Cluster, node: usize) -> JoinHandle<Grant> {
    let address = cluster.address(node).to_string();
    tokio::spawn(async move {
        let client = Client::connect(&[address]).await.expect("it answers");
        client.pool("p").acquire_timeout(1, PATIENCE).await.expect("some day")
    })
}

/// A gauge of one node, for the pool or about a peer.
fn gauge(cluster: &Cluster, node: usize, name: &str, peer: Option<usize>) -> Option<u64> {
    let peer = peer.map(|peer| format!(",peer=\"n{peer}\"")).unwrap_or_default();
    let line = format!("quorate_protocol_{name}{{pool=\"p\"{peer}}} ");
    metrics(cluster, node).lines().find_map(|text| text.strip_prefix(&line)?.parse().ok())
}

/// Grants go on without two nodes. They cost their units, and everybody says so, until they are
/// back.
async fn killed_and_never_counted_out() {
    let mut cluster =
        Cluster::start(&folder("never"), NODES, pools(Protocol::Broadcast), None).await;
    let dead = [3, 4];
    dead.iter().for_each(|node| cluster.kill(*node));
    for node in [0, 1, 2, 0] {
        give_back(unit(&cluster, node).await).await;
    }
    let text = "fewer units than configured: n3, n4 seem to have crashed and are taken to use 2 \
                of 3 until they are back";
    until("status says what the dead cost", || status(&cluster, 0).contains(text)).await;
    // What detection rests on: of those who say something nobody hears the dead, and all hear n1.
    for (name, about, value) in [
        ("units_lost", None, 2),
        ("crashed", Some(3), 1),
        ("too_many_crashed", None, 0),
        ("heard_by", Some(3), 2),
        ("heard_by", Some(1), NODES as u64),
    ] {
        let shown = match about {
            Some(peer) => format!("{name}(n{peer}) {value}"),
            None => format!("{name} {value}"),
        };
        until(&shown, || status(&cluster, 0).contains(&shown)).await;
        until(name, || gauge(&cluster, 0, name, about) == Some(value)).await;
    }
    let one = unit(&cluster, 0).await;
    assert!(is_refused(&cluster, 1).await, "one of three is left");
    give_back(one).await;
    for (node, memory) in [(3, Memory::Kept), (4, Memory::Lost)] {
        cluster.restart(node, memory);
    }
    for node in dead {
        cluster.until_it_answers(node).await;
    }
    units_at(&cluster, [0, 3, 4]).await;
    until("nothing is lost any more", || status(&cluster, 0).contains("units_lost 0")).await;
    assert!(!status(&cluster, 0).contains("fewer units"));
    cluster.check_alive();
}

/// What the dead had comes back when whoever had it has stopped; and then they do.
async fn killed_and_counted_out() {
    let mut cluster = Cluster::start(&folder("leased"), NODES, pools(Protocol::Leased), None).await;
    let held = unit(&cluster, 4).await;
    [3, 4].iter().for_each(|node| cluster.kill(*node));
    let all = [unit(&cluster, 0).await, unit(&cluster, 1).await, unit(&cluster, 2).await];
    assert!(held.is_lost().is_some(), "a unit was given away while its holder could use it");
    until("n4 is counted out", || status(&cluster, 0).contains("counted_out(n4) 1")).await;
    for grant in all {
        give_back(grant).await;
    }
    for (node, memory) in [(3, Memory::Lost), (4, Memory::Kept)] {
        cluster.restart(node, memory);
        cluster.until_it_answers(node).await;
    }
    units_at(&cluster, [2, 3, 4]).await;
    until("all are counted", || status(&cluster, 0).contains("counted_out(n4) 0")).await;
    cluster.check_alive();
}

/// An operator says when what the dead had may be given to others, and an opinion is not enough.
async fn killed_and_fenced() {
    let fenced = Pools {
        more: "node_units_max = 1\nreclaim = \"fenced\"\n".into(),
        ..pools(Protocol::Broadcast)
    };
    let mut cluster = Cluster::start(&folder("fenced"), NODES, fenced, None).await;
    let held = unit(&cluster, 4).await;
    let fence = |cluster: &Cluster, node| cluster.command(node, &["fence", "p", "n4"]);
    assert_eq!(fence(&cluster, 0), "", "nobody suspects n4");
    cluster.kill(4);
    held.forget(); // Whoever had it is cut off as well.
    let two = [unit(&cluster, 0).await, unit(&cluster, 1).await];
    for node in 0..4 {
        let says = || cluster.command(node, &["status"]).contains("suspected");
        until("the failure detector suspects n4", says).await;
        let believes = format!("n{node}: falsely_suspected 0");
        let says = || {
            let text = status(&cluster, node);
            let mut lines = text.lines().filter(|line| line.starts_with(&believes));
            lines.any(|line| line.contains("crashed(n4) 1"))
        };
        until("and so does the pool", says).await;
    }
    assert!(is_refused(&cluster, 2).await, "nobody made sure that n4 is cut off");
    for node in 0..4 {
        let said = fence(&cluster, node);
        assert!(said.ends_with("goes on without n4\n"), "{said}");
    }
    let third = unit(&cluster, 2).await;
    for grant in two.into_iter().chain([third]) {
        give_back(grant).await;
    }
    // Who restarts has forgotten what it let n4 do, and waits for it until it is told as well.
    cluster.kill(3);
    cluster.restart(3, Memory::Kept);
    cluster.until_it_answers(3).await;
    let awaited = || {
        let text = status(&cluster, 3);
        text.lines().any(|line| line.starts_with("n3: ") && line.contains("awaited(n4) 1"))
            && !text.contains("awaited(n0) 1")
    };
    until("n3 waits for n4 only", awaited).await;
    assert!(is_refused(&cluster, 3).await, "n3 does not take part");
    let said = fence(&cluster, 3);
    assert!(said.ends_with("goes on without n4\n"), "{said}");
    give_back(unit(&cluster, 3).await).await;
    cluster.restart(4, Memory::Kept);
    cluster.until_it_answers(4).await;
    units_at(&cluster, [0, 1, 4]).await;
    cluster.check_alive();
}

/// A node stands still for longer than detection and a lease take, while its client holds a unit.
async fn frozen(protocol: Protocol) {
    let folder = folder(&format!("frozen-{}", protocol.name()));
    let mut cluster = Cluster::start(&folder, NODES, pools(protocol), None).await;
    let held = unit(&cluster, 4).await;
    cluster.pause(4);
    let two = [unit(&cluster, 0).await, unit(&cluster, 1).await];
    if protocol == Protocol::Broadcast {
        // However long the node stands still, nobody gets what its client may have had.
        until("n0 takes n4 for dead", || status(&cluster, 0).contains("crashed(n4) 1")).await;
        held.lost().await;
        assert!(is_refused(&cluster, 2).await);
        held.lost().await;
        assert!(is_refused(&cluster, 2).await);
        cluster.resume(4);
    }
    let third = unit(&cluster, 2).await;
    assert!(held.is_lost().is_some(), "a unit was given away while its holder could use it");
    cluster.resume(4);
    for grant in two.into_iter().chain([third]) {
        give_back(grant).await;
    }
    // Where it was counted out it learns that it was, and comes back in another life.
    give_back(unit(&cluster, 4).await).await;
    if protocol == Protocol::Leased {
        let said = || status(&cluster, 0);
        let tells = || {
            let text = said();
            text.lines().any(|l| l.starts_with("n4: ") && l.contains("false_suspicions 1"))
        };
        until("n4 tells of it", tells).await;
        until("and that it is over", || !said().contains("ALARM")).await;
    }
    cluster.check_alive();
}

/// Requests under way survive their connections, and the peer they were made to. Nothing is
/// repeated because time passes: `retry` is an hour.
async fn reconnected() {
    let one = Pools {
        units: 1,
        more: "node_units_max = 1\nretry = \"1h\"\n".into(),
        ..pools(Protocol::Broadcast)
    };
    let (mut cluster, wires) = Cluster::start_wired(&folder("reconnected"), 3, one).await;
    // What is said to a peer before the first connection is made is lost, and repeated by `retry`.
    let met = |node| metrics(&cluster, node).contains("quorate_members{state=\"connected\"} 3");
    until("everybody is connected", || (0..3).all(met)).await;
    let held = unit(&cluster, 0).await;
    wires.iter().for_each(|wire| wire.block());
    let next = claimed(&cluster, 1);
    until("n1 has asked", || status(&cluster, 1).contains("units_ahead(n0) 1")).await;
    wires.iter().for_each(|wire| {
        wire.cut();
        wire.heal();
    });
    give_back(held).await;
    let held = next.await.expect("no panic");
    // A request that waits when the peer forgets it: the peer is asked again when it is back.
    cluster.kill(2);
    let last = claimed(&cluster, 0);
    until("n0 has asked", || status(&cluster, 0).contains("units_ahead(n2) 1")).await;
    give_back(held).await;
    cluster.restart(2, Memory::Kept);
    cluster.until_it_answers(2).await;
    give_back(last.await.expect("no panic")).await;
    cluster.check_alive();
}
