//! Two of three members are lost for good, and the charter goes on with the third: the job whose
//! node it is goes on, others get units when nothing that was promised can be in use, fences grow,
//! and a store of the life before is nobody's. Then all is lost, and a backup is left.

use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use quorate_api::{MemberRole, MembersView};
use quorate_client::{Client, Grant};

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::ring::until;

const LEASE: Duration = Duration::from_secs(4);
const NAMES: [&str; 3] = ["p0", "p1", "p2"];

fn pools(protocol: Protocol) -> Pools {
    Pools {
        protocol,
        names: NAMES.map(String::from).into(),
        units: 1,
        lease: LEASE,
        durable: false,
        backfill: 0,
        more: String::new(),
    }
}

pub(crate) async fn lost(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-majority");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let mut cluster = Cluster::start(&folder, 3, pools(Protocol::Moving), None).await;
    assert!(cluster.output(0, &["pool", "create", "made", "--units", "1"]).status.success());
    let file = folder.join("backup.json");
    let file = file.to_str().expect("a path");
    let said = cluster.output(1, &["cluster", "backup", file]);
    assert!(text(&said).contains("3 members and 1 pool"), "{said:?}");
    let twice = cluster.output(1, &["cluster", "backup", file]);
    assert!(errors(&twice).contains("is there already"), "{twice:?}");
    let mut before = Vec::new();
    for pool in NAMES.into_iter().chain(["made"]) {
        before.push((pool, fence_of(&cluster, 0, pool).await));
    }

    // Not while anybody runs.
    refused(&cluster, 2, &["recover", "--i-lost-the-majority"], "Stop the node first");
    cluster.kill(2);
    refused(&cluster, 2, &["recover", "--i-lost-the-majority"], "members run (n0, n1)");
    let said = refused(&cluster, 2, &["recover"], "members: n0 votes, n1 votes, n2 votes");
    assert!(said.contains("say --i-lost-the-majority"), "{said}");
    cluster.restart(2, Memory::Kept);
    cluster.until_it_answers(2).await;
    // The job of a client at the survivor; it renews when the survivor is there again.
    let held = acquire(&cluster, 2, "p0").await;
    let fence = fence(&held);
    before.push(("p0", fence));
    cluster.kill(0);
    cluster.kill(1);
    cluster.kill(2);
    let killed = Instant::now();
    let done = cluster.offline(2, &["recover", "--i-lost-the-majority"]);
    let said = text(&done);
    assert!(said.contains("goes on with n2 alone") && said.contains(": n0, n1"), "{done:?}");
    cluster.restart(2, Memory::Kept);
    cluster.until_it_answers(2).await;
    drop(held);
    for (pool, fence) in &before {
        let after = fence_of(&cluster, 2, pool).await;
        assert!(after > *fence, "{pool}: {after} after {fence}");
    }
    let granted = killed.elapsed();
    assert!(granted >= LEASE, "the unit of a holder was given away after {granted:?}");

    // What is left of the others is nobody's; with empty directories they join.
    cluster.restart(0, Memory::Kept);
    assert_eq!(cluster.process(0).end().await.code(), Some(2), "it is no member any more");
    assert!(cluster.log(0).contains("was removed from the cluster"), "{}", cluster.log(0));
    for node in [0, 1] {
        cluster.kill(node);
        cluster.forget_charter(node);
        cluster.restart(node, Memory::Kept);
    }
    until("all three vote", || {
        list(&cluster, 2).members.iter().all(|it| it.role == MemberRole::Voter && it.connected)
    })
    .await;
    let again = fence_of(&cluster, 1, "made").await;
    before.push(("made", again));
    // A pool that is made may have been there by an entry that is lost: it waits a lease.
    assert!(cluster.output(1, &["pool", "create", "later", "--units", "1"]).status.success());
    before.push(("later", fence_of(&cluster, 0, "later").await));

    // All is lost but the backup, which is older than this incarnation.
    refused(&cluster, 0, &["restore", file], "Stop the node first");
    (0..3).for_each(|node| cluster.kill(node));
    refused(&cluster, 0, &["restore", file], "was in use before");
    (0..3).for_each(|node| cluster.lose(node));
    let done = cluster.offline(0, &["restore", file, "--after", &later(&said)]);
    assert!(text(&done).contains("goes on with n0 alone"), "{done:?}");
    cluster.restart(0, Memory::Kept);
    cluster.until_it_answers(0).await;
    for (pool, fence) in before.iter().filter(|(pool, _)| *pool != "later") {
        let after = fence_of(&cluster, 0, pool).await;
        assert!(after > *fence, "{pool}: {after} after {fence}");
    }
    println!("{name}: ok, all pools granted {granted:.1?} after the kill, {:.0?}", began.elapsed());
}

/// A cluster whose files say who decides gets a charter: fences grow, and what was held is nobody
/// else's before its lease is over.
pub(crate) async fn imported(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-import");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let mut cluster = Cluster::start(&folder, 3, pools(Protocol::Central), None).await;
    let mut before = Vec::new();
    for pool in NAMES {
        before.push((pool, fence_of(&cluster, 0, pool).await));
    }
    refused(&cluster, 0, &["import"], "this node has no charter");
    let held = acquire(&cluster, 2, "p0").await;
    before.push(("p0", fence(&held)));
    for node in 0..3 {
        cluster.rewrite(node, |text| {
            let charter =
                "[charter]\nenabled = true\nlicence = \"500ms\"\nsuspect_after = \"500ms\"\n";
            let text = text.replacen("epoch = 1", "epoch = 2", 1);
            let named = |line: &&str| !line.starts_with("arbiter");
            text.lines().filter(named).map(|line| format!("{line}\n")).collect::<String>() + charter
        });
    }
    refused(&cluster, 0, &["import"], "Stop the node first");
    refused(&cluster, 1, &["import"], "run this there, on n0");
    cluster.kill(0);
    refused(&cluster, 0, &["import"], "members run (n1, n2)");
    (0..3).for_each(|node| cluster.kill(node));
    let killed = Instant::now();
    let done = cluster.offline(0, &["import"]);
    assert!(text(&done).contains("n0: it founds the charter"), "{done:?}");
    refused(&cluster, 0, &["import"], "has a charter already");
    for node in 0..3 {
        cluster.restart(node, Memory::Kept);
    }
    until("all three vote", || {
        let members = list(&cluster, 0).members;
        members.len() == 3 && members.iter().all(|it| it.role == MemberRole::Voter && it.connected)
    })
    .await;
    drop(held);
    for (pool, fence) in &before {
        let after = fence_of(&cluster, 1, pool).await;
        assert!(after > *fence, "{pool}: {after} after {fence}");
        let granted = killed.elapsed();
        assert!(granted >= LEASE, "{pool} was given away after {granted:?}");
    }
    // Now another decides when one is gone.
    assert!(cluster.output(0, &["pool", "create", "made", "--units", "1"]).status.success());
    let made = fence_of(&cluster, 1, "made").await;
    cluster.kill(2);
    for pool in NAMES.into_iter().chain(["made"]) {
        assert!(fence_of(&cluster, 1, pool).await > 0, "{pool}");
    }
    assert!(made > 0);
    println!("{name}: ok, {:.0?}", began.elapsed());
}

/// The incarnation that was told.
fn later(said: &str) -> String {
    let (_, rest) = said.split_once("incarnation ").expect("it is told");
    rest.chars().take_while(char::is_ascii_digit).collect()
}

fn fence(grant: &Grant) -> u64 {
    grant.fences()[0]
}

async fn fence_of(cluster: &Cluster, node: usize, pool: &str) -> u64 {
    let grant = acquire(cluster, node, pool).await;
    let fence = fence(&grant);
    grant.release().await.expect("it is held");
    fence
}

/// A unit, by a client of this node alone.
async fn acquire(cluster: &Cluster, node: usize, pool: &str) -> Grant {
    loop {
        let address = [cluster.address(node).to_string()];
        if let Ok(client) = Client::connect(&address).await
            && let Ok(grant) = client.pool(pool).acquire().await
        {
            return grant;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn errors(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn refused(cluster: &Cluster, node: usize, words: &[&str], why: &str) -> String {
    let output = cluster.offline(node, words);
    let said = errors(&output);
    assert!(said.contains(why) && said.contains("nothing changed"), "{words:?}: {output:?}");
    said
}

fn list(cluster: &Cluster, node: usize) -> MembersView {
    let output = cluster.output(node, &["member", "list", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}
