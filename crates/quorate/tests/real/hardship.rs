//! Hardships one by one, with what must follow from each: a client's process, its node and the node
//! that decides stand still for longer than the lease; a disk fails.
//!
//! No times are compared, only orders: whoever is granted a unit must not have got it before the
//! one who had it must have stopped.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quorate_api::ClaimState;
use quorate_client::{Client, Grant, Lost, ReleaseError, Views};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::cluster::{Cluster, Memory, Pools, Process, Protocol};

/// Longer than anything takes that is going to happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn standing_still(name: &'static str) {
    let began = Instant::now();
    let mut cluster = start("standing-still", false, Duration::from_secs(2)).await;
    home_stands_still(&mut cluster).await;
    arbiter_stands_still(&mut cluster).await;
    client_stands_still(&mut cluster).await;
    println!("{name}: ok, {:.0?}", began.elapsed());
}

async fn start(folder: &str, durable: bool, lease: Duration) -> Cluster {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Central,
        // Decided by n0.
        names: vec!["p".into()],
        units: 2,
        lease,
        durable,
        backfill: 0,
        more: String::new(),
    };
    Cluster::start(&folder, 3, pools, None).await
}

pub(crate) async fn client(cluster: &Cluster, node: usize) -> Client {
    let (servers, give_up) = ([cluster.address(node).to_string()], Instant::now() + PATIENCE);
    loop {
        match Client::connect(&servers).await {
            Ok(client) => return client,
            // On a busy machine a node may take longer than a client waits.
            Err(error) => assert!(Instant::now() < give_up, "n{node}: {error}"),
        }
    }
}

/// The node of a client that knows no other.
async fn home_stands_still(cluster: &mut Cluster) {
    let (here, there) = (client(cluster, 1).await, client(cluster, 2).await);
    let held = here.pool("p").acquire_many(2).await.expect("both units");
    cluster.pause(1);
    let next = there.pool("p").acquire_many(2).await.expect("they come back with the lease");
    assert_eq!(held.is_lost(), Some(Lost::Deadline), "it stopped by its own clock, and in time");
    assert!(next.fences()[0] > held.fences()[0], "fences grow");
    cluster.resume(1);
    // The node wakes up and must not believe that its client's grant goes on.
    let id = held.id();
    until("n1 knows that it is lost", async || {
        let status = views(cluster, 1).claim("p", id).await;
        status.is_ok_and(|status| status.state == ClaimState::Lost)
    })
    .await;
    nothing_was_taken_from(next).await;
}

/// The node that decides: nobody can renew, and nobody is granted anything.
async fn arbiter_stands_still(cluster: &mut Cluster) {
    let (here, there) = (client(cluster, 1).await, client(cluster, 2).await);
    let held = here.pool("p").acquire_many(2).await.expect("both units");
    cluster.pause(0);
    assert_eq!(held.lost().await, Lost::Deadline, "its own clock tells it");
    cluster.resume(0);
    let next = there.pool("p").acquire_many(2).await.expect("the arbiter goes on");
    assert!(next.fences()[0] > held.fences()[0], "fences grow");
    next.release().await.expect("it holds them");
}

/// A process that holds units: it wakes up when somebody else has them, and stops its command.
async fn client_stands_still(cluster: &mut Cluster) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["run", "p", "-n", "2", "--server", &cluster.address(1).to_string()])
        .args(["--", "sh", "-c", "echo; exec sleep 1000"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command was built");
    let mut output = child.stdout.take().expect("it is a pipe");
    let mut holder = Process::new(child);
    // Nobody but the command knows that it runs: what nodes show may be older than a release.
    let line = tokio::task::spawn_blocking(move || output.read_exact(&mut [0]));
    let line = tokio::time::timeout(PATIENCE, line).await.expect("it is granted both units");
    line.expect("no panic").expect("the command runs");
    holder.signal(Signal::STOP);
    let there = client(cluster, 2).await;
    let next = there.pool("p").acquire_many(2).await.expect("they come back with the lease");
    holder.signal(Signal::CONT);
    let status = holder.end().await;
    assert_eq!(status.code(), Some(123), "it learns from its own clock that it lost them");
    nothing_was_taken_from(next).await;
}

/// On a busy machine it may have been too slow to renew, but nobody has told it to stop.
pub(crate) async fn nothing_was_taken_from(grant: Grant) {
    match grant.release().await {
        Ok(()) | Err(ReleaseError::Lost(Lost::Deadline)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// A node that cannot remember must not promise: it stops, and says why.
pub(crate) async fn failing_disk(name: &'static str) {
    let began = Instant::now();
    let mut cluster = start("failing-disk", true, Duration::from_secs(3600)).await;
    let mut errors = cluster.restart_with_a_weak_disk(0);
    cluster.until_it_answers(0).await;
    let here = client(&cluster, 0).await;
    let held = here.pool("p").acquire().await.expect("the disk works");
    let id = cluster.process(0).child().id();
    let pid = Pid::from_raw(id.cast_signed()).expect("processes have ids");
    let nothing = Rlimit { current: Some(0), maximum: Some(0) };
    prlimit(Some(pid), Resource::Fsize, nothing).expect("it is our child");
    // Nobody is told of a grant that could not be written down.
    let pool = here.pool("p");
    let claim = pool.acquire_timeout(1, PATIENCE);
    let granted = tokio::select! {
        outcome = claim => outcome.is_ok(),
        _ = cluster.process(0).end() => false,
    };
    assert!(!granted, "a grant that is not on disk");
    let status = cluster.process(0).end().await;
    let mut said = String::new();
    errors.read_to_string(&mut said).expect("it said something");
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("quorate: the node cannot go on: the journal failed: "), "{said}");
    held.forget();
    // With a disk that works, what was written is known.
    cluster.restart(0, Memory::Kept);
    cluster.until_it_answers(0).await;
    let pool = views(&cluster, 0).pool("p").await.expect("it answers");
    assert_eq!(pool.held, Some(1), "the first grant was on disk");
    println!("{name}: ok, {:.0?}", began.elapsed());
}

pub(crate) fn views(cluster: &Cluster, node: usize) -> Views {
    Views::new([cluster.address(node).to_string()]).expect("an address")
}

async fn until(what: &str, so: impl AsyncFn() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !so().await {
        assert!(Instant::now() < give_up, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
