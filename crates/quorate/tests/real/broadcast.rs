//! Nodes of a broadcasting pool that are killed, as many as the pool allows for, or stand still.
//!
//! No times are compared, only orders: whoever gets a unit too many for those that were left must
//! not have got it before the unit's last holder had to stop.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_client::Grant;

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::ring::{PATIENCE, client, give_back, status, until};

/// Of five nodes two may crash; each may use one unit of three.
const NODES: usize = 5;
/// Longer than any answer takes, and shorter than it takes to count anybody out.
const SHORT: Duration = Duration::from_millis(500);

async fn cluster(protocol: Protocol, name: &str) -> Cluster {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("real-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol,
        names: vec!["p".into()],
        units: 3,
        node_units_max: 1,
        lease: Duration::from_secs(2),
        durable: false,
        backfill: 0,
    };
    Cluster::start(&folder, NODES, pools).await
}

async fn unit(cluster: &Cluster, node: usize) -> Grant {
    let granted = client(cluster, node).await.pool("p").acquire_timeout(1, PATIENCE).await;
    granted.unwrap_or_else(|error| panic!("a unit at n{node}: {error}; {}", status(cluster, 0)))
}

/// Grants go on without two nodes. Where nobody is counted out they cost their units, and `status`
/// says so, until the nodes are back.
pub(crate) async fn killed_nodes(name: &str) {
    let began = Instant::now();
    let mut never = cluster(Protocol::Broadcast, "killed-never").await;
    for node in [3, 4] {
        never.kill(node);
    }
    for node in [0, 1, 2, 0] {
        give_back(unit(&never, node).await).await;
    }
    let says = |text: &str| status(&never, 0).contains(text);
    until("n0 says what the dead cost", || says("units_lost 2")).await;
    until("n0 says who is dead", || says("crashed(n3) 1") && says("crashed(n4) 1")).await;
    // The gauges of what detection rests on: nobody hears the dead, and all hear the living.
    until("only who says nothing may hear n3", || says("heard_by(n3) 2")).await;
    until("everybody hears n1", || says("heard_by(n1) 5")).await;
    let one = unit(&never, 0).await;
    let second = client(&never, 1).await;
    assert!(second.pool("p").acquire_timeout(1, SHORT).await.is_err(), "one of three is left");
    give_back(one).await;
    for node in [3, 4] {
        never.restart(node, Memory::Kept);
        never.until_it_answers(node).await;
    }
    let all = [unit(&never, 0).await, unit(&never, 3).await, unit(&never, 4).await];
    until("nothing is lost any more", || status(&never, 0).contains("units_lost 0")).await;
    for grant in all {
        give_back(grant).await;
    }

    let mut leased = cluster(Protocol::Leased, "killed-leased").await;
    let held = unit(&leased, 4).await;
    for node in [3, 4] {
        leased.kill(node);
    }
    let rest = [unit(&leased, 0).await, unit(&leased, 1).await, unit(&leased, 2).await];
    assert!(held.is_lost().is_some(), "a unit was given away while its holder could use it");
    let text = status(&leased, 0);
    assert!(text.contains("counted_out(n4) 1"), "{text}");
    for grant in rest {
        give_back(grant).await;
    }
    for node in [3, 4] {
        leased.restart(node, Memory::Lost);
        leased.until_it_answers(node).await;
    }
    let all = [unit(&leased, 2).await, unit(&leased, 3).await, unit(&leased, 4).await];
    until("all are counted", || status(&leased, 0).contains("counted_out(n4) 0")).await;
    for grant in all {
        give_back(grant).await;
    }
    println!("{name}: ok, {:.0?}", began.elapsed());
}

/// A node stands still for longer than detection and a lease take, while its client holds a unit.
pub(crate) async fn frozen_node(name: &str) {
    let began = Instant::now();
    for protocol in [Protocol::Broadcast, Protocol::Leased] {
        let cluster = cluster(protocol, &format!("frozen-{}", protocol.name())).await;
        let held = unit(&cluster, 4).await;
        cluster.pause(4);
        let two = [unit(&cluster, 0).await, unit(&cluster, 1).await];
        let third = client(&cluster, 2).await;
        if protocol == Protocol::Broadcast {
            // However long the node stands still, nobody gets what its client may have.
            until("n0 takes n4 for dead", || status(&cluster, 0).contains("crashed(n4) 1")).await;
            assert!(third.pool("p").acquire_timeout(1, SHORT).await.is_err());
            cluster.resume(4);
        }
        let third = third.pool("p").acquire_timeout(1, PATIENCE).await.expect("its unit returns");
        assert!(held.is_lost().is_some(), "a unit was given away while its holder could use it");
        cluster.resume(4);
        for grant in two.into_iter().chain([third]) {
            give_back(grant).await;
        }
        give_back(unit(&cluster, 4).await).await;
    }
    println!("{name}: ok, {:.0?}", began.elapsed());
}
