//! Members change while everything runs: one gives away what it decides and takes it back, one is
//! removed and cut off, one that is gone is removed, and a machine comes again under its name. Jobs
//! go on through all of it.

use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use quorate_api::{MemberRole, MemberRow, MembersView};
use quorate_client::{Client, Grant, Screen};

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::hardship::views;
use crate::ring::until;

const LEASE: Duration = Duration::from_secs(8);
/// Of as many groups, so that they are decided here and there.
const POOLS: usize = 4;

pub(crate) async fn members(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-members");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Moving,
        names: (0..POOLS).map(|pool| format!("p{pool}")).collect(),
        units: 2,
        lease: LEASE,
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let mut cluster = Cluster::start(&folder, 3, pools, None).await;
    assert!(
        list(&cluster, 1).members.iter().all(|it| it.role == MemberRole::Voter && it.connected)
    );
    let mut jobs = Vec::new();
    for pool in 0..POOLS {
        // The last one's node is the one that is removed.
        let at = if pool + 1 == POOLS { 2 } else { 0 };
        jobs.push(
            connect(&cluster, at).await.pool(format!("p{pool}")).acquire().await.expect("one"),
        );
    }

    // Drained: it decides nothing, and does so when it is said twice.
    for _ in 0..2 {
        let said = fine(&cluster, 0, &["member", "drain", "n1"]);
        assert!(said.contains("n1 decides nothing any more"), "{said}");
    }
    let drained = row(&cluster, 0, "n1");
    assert_eq!((drained.groups, drained.draining), (0, true), "{drained:?}");
    let more = connect(&cluster, 1).await.pool("p0").acquire().await.expect("others decide");
    more.release().await.expect("it is held");
    keep(&jobs);
    fine(&cluster, 1, &["member", "drain", "n1", "--undo"]);
    assert!(!row(&cluster, 1, "n1").draining);
    until("it decides again", || row(&cluster, 0, "n1").groups > 0).await;

    // What makes no sense is refused, and says what to do.
    refused(&cluster, &["drain", "n7"], "the file has n0, n1, n2; nothing changed");
    refused(&cluster, &["remove", "n2", "--dead"], "Leave --dead out");
    let title = "that is refused as things stand: without n2 the charter has no vote to spare";
    refused(&cluster, &["remove", "n2"], title);
    refused(&cluster, &["readmit", "n2"], "n2 is a member");

    // Removed: it hands over, is cut off, and ends.
    let said = fine(&cluster, 0, &["member", "remove", "n2", "--force"]);
    assert!(said.contains("n2 is no member any more"), "{said}");
    let status = cluster.process(2).end().await;
    assert_eq!(status.code(), Some(2), "it says why, and ends");
    assert!(cluster.log(2).contains("this member was removed from the cluster"));
    until("it is cut off", || !row(&cluster, 0, "n2").connected).await;
    assert_eq!(row(&cluster, 1, "n2").role, MemberRole::Removed);
    fine(&cluster, 0, &["member", "remove", "n2"]);
    until("whose node it was has another", || {
        cluster.command(0, &["holders", "p3"]).lines().count() > 1
    })
    .await;
    keep(&jobs);

    // It comes back neither as it was nor as another, until somebody lets it in.
    cluster.restart(2, Memory::Kept);
    assert_eq!(cluster.process(2).end().await.code(), Some(2), "it is none any more");
    cluster.forget_charter(2);
    cluster.restart(2, Memory::Kept);
    cluster.until_it_answers(2).await;
    until("it is refused", || cluster.command(2, &["status"]).contains("was removed")).await;
    fine(&cluster, 1, &["member", "readmit", "n2"]);
    until("it is in, as another", || {
        let n2 = row(&cluster, 0, "n2");
        n2.role == MemberRole::Voter && n2.connected
    })
    .await;
    until("all three vote", || {
        list(&cluster, 0).members.iter().all(|it| it.role == MemberRole::Voter)
    })
    .await;

    // Gone: what it decided waits as after a crash, and its vote goes with it.
    cluster.kill(1);
    refused(&cluster, &["remove", "n1"], "say so with --dead");
    until("it is removed", || {
        fine_or_not(&cluster, 0, &["member", "replace", "n1"]).status.success()
    })
    .await;
    let again = connect(&cluster, 2).await.pool("p0").acquire().await.expect("others decide");
    keep(&jobs);
    again.release().await.expect("it is held");
    // Replaced in one step, however often that is said.
    for _ in 0..2 {
        let said = fine(&cluster, 0, &["member", "replace", "n1"]);
        assert!(said.contains("a machine may join as n1"), "{said}");
    }
    cluster.forget_charter(1);
    cluster.restart(1, Memory::Kept);
    until("it is replaced", || row(&cluster, 0, "n1").role == MemberRole::Voter).await;
    refused(&cluster, &["replace", "n1"], "it is not gone; nothing changed");
    let screen = views(&cluster, 0).overview(&Screen::default()).await.expect("an overview");
    let told: Vec<&str> = screen.notable.iter().map(|event| &*event.text).collect();
    for news in ["drains", "is being removed", "left, and was m", "joined as m"] {
        assert!(told.iter().any(|text| text.starts_with(news)), "{news}: {told:?}");
    }
    let audit = cluster.command(0, &["history", "--audit"]);
    assert!(audit.contains("remove member"), "{audit}");
    for job in jobs {
        job.release().await.expect("it is still held");
    }
    println!("{name}: ok, {:.0?}", began.elapsed());
}

fn fine_or_not(cluster: &Cluster, node: usize, words: &[&str]) -> Output {
    cluster.output(node, words)
}

pub(crate) fn fine(cluster: &Cluster, node: usize, words: &[&str]) -> String {
    let output = fine_or_not(cluster, node, words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(cluster: &Cluster, words: &[&str], why: &str) {
    let words = [&["member"], words].concat();
    let output = fine_or_not(cluster, 0, &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(why), "{words:?}: {output:?}");
}

pub(crate) fn list(cluster: &Cluster, node: usize) -> MembersView {
    let text = fine(cluster, node, &["member", "list", "--json"]);
    serde_json::from_str(&text).expect("what the node said")
}

pub(crate) fn row(cluster: &Cluster, node: usize, name: &str) -> MemberRow {
    let members = list(cluster, node).members;
    members.into_iter().find(|member| member.name == name).expect("it is in the file")
}

pub(crate) fn keep(jobs: &[Grant]) {
    for job in jobs {
        assert_eq!(job.is_lost(), None, "a grant of {}", job.pool());
    }
}

/// A client that asks this node first.
pub(crate) async fn connect(cluster: &Cluster, first: usize) -> Client {
    let mut addresses = cluster.addresses();
    addresses.rotate_left(first);
    loop {
        // On a busy machine a node may take longer than a client waits.
        if let Ok(client) = Client::connect(&addresses).await {
            return client;
        }
    }
}
