//! A pool is changed while clients come and go, while jobs hold units that it has no more, and
//! while the node that decides is killed: nobody loses what it has, nobody is given what another
//! one has, and fences of every unit grow, also of those that go and come again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorate_client::{Client, Grant};

use crate::cluster::{Cluster, Memory, Pools, Protocol};
use crate::members::fine;
use crate::moving::{connect, decider};
use crate::ring::until;

const NODES: usize = 3;
/// Longer than a busy machine keeps a client from renewing.
const LEASE: &str = "12s";

/// Who uses which unit, and the largest fence of each.
#[derive(Default)]
struct Units(Mutex<BTreeMap<u32, (bool, u64)>>);

impl Units {
    fn begin(&self, grant: &Grant) {
        let mut units = self.0.lock().expect("nobody panics with it");
        for (unit, fence) in grant.units().into_iter().zip(grant.fences()) {
            let (used, last) = units.entry(unit).or_default();
            assert!(!*used, "unit {unit} is given twice");
            assert!(fence > *last, "unit {unit}: fence {fence} after {last}");
            (*used, *last) = (true, fence);
        }
    }

    fn end(&self, grant: &Grant) {
        let mut units = self.0.lock().expect("nobody panics with it");
        for unit in grant.units() {
            units.get_mut(&unit).expect("it was used").0 = false;
        }
    }
}

/// A client at any node that takes a unit for a moment, again and again.
async fn churn(client: Client, units: Arc<Units>, goes_on: Arc<AtomicBool>, done: Arc<AtomicU64>) {
    let pool = client.pool("made");
    while goes_on.load(Ordering::Relaxed) {
        let Ok(grant) = pool.acquire().await else { continue };
        units.begin(&grant);
        tokio::time::sleep(Duration::from_millis(10)).await;
        units.end(&grant);
        // If it was lost meanwhile, its unit came back by itself.
        let _ = grant.release().await;
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Says it until it is done: where machines are busy, the charter may be without a leader for a
/// moment.
async fn carried_out(cluster: &Cluster, node: usize, words: &[&str]) {
    until("a majority answers", || cluster.output(node, words).status.success()).await;
}

pub(crate) async fn amended(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-amended");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Moving,
        names: vec!["other".to_owned()],
        units: 1,
        lease: Duration::from_secs(4),
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let mut cluster = Cluster::start(&folder, NODES, pools, None).await;
    fine(&cluster, 0, &["pool", "create", "made", "--units", "3", "--lease", LEASE]);
    let units = Arc::new(Units::default());

    // Three hold what there is, and two wait: one for a unit, at another node, and one for three.
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(connect(&cluster).await.pool("made").acquire().await.expect("one"));
    }
    jobs.iter().for_each(|job| units.begin(job));
    // It asks there first, and goes on elsewhere.
    let mut addresses = cluster.addresses();
    addresses.rotate_left(2);
    let far = Client::connect(&addresses).await.expect("it answers");
    let pool = far.pool("made");
    let waits = tokio::spawn(async move { pool.acquire().await });
    until("it waits", || fine(&cluster, 0, &["queue", "made"]).lines().count() > 1).await;

    // Raised: what is new is granted at once.
    let said = fine(&cluster, 1, &["pool", "set", "made", "--units", "4"]);
    assert!(said.contains("pool made is changed: units = 4 (it was 3)"), "{said}");
    let fourth = waits.await.expect("no panic").expect("there is one more");
    units.begin(&fourth);
    assert_eq!(fourth.units(), [3]);

    // What waits and becomes impossible is refused; holders keep what they have.
    let pool = far.pool("made");
    let waits = tokio::spawn(async move { pool.acquire_many(3).await });
    until("it waits", || fine(&cluster, 0, &["queue", "made"]).lines().count() > 1).await;
    fine(&cluster, 0, &["pool", "set", "made", "units=2"]);
    let refused = waits.await.expect("no panic").expect_err("there are two");
    let said = refused.to_string();
    // By its home or by the node that decides: whoever hears of the change first.
    let by_home = said.contains("the pool was changed: claims are for 1 to 2 units now");
    assert!(by_home || said.contains("could never be granted"), "{said}");
    for job in jobs.iter().chain([&fourth]) {
        assert_eq!(job.is_lost(), None);
    }
    let shown = fine(&cluster, 2, &["pool", "show", "made"]);
    assert!(shown.contains("units = 2"), "{shown}");

    // The node that decides is killed while jobs hold units that the pool has no more, and others
    // come and go; meanwhile the pool changes on.
    let (goes_on, done) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let mut crowd = Vec::new();
    for _ in 0..6 {
        let client = connect(&cluster).await;
        let (units, goes_on, done) = (Arc::clone(&units), Arc::clone(&goes_on), Arc::clone(&done));
        crowd.push(tokio::spawn(churn(client, units, goes_on, done)));
    }
    let first = decider(&cluster, NODES, "made").await;
    let other = (0..NODES).find(|node| *node != first).expect("there are more");
    cluster.kill(first);
    for units in ["3", "1", "5"] {
        until("a majority answers", || {
            let words = ["pool", "set", "made", "--units", units];
            cluster.output(other, &words).status.success()
        })
        .await;
    }
    let before = done.load(Ordering::Relaxed);
    until("the crowd is served again", || done.load(Ordering::Relaxed) > before + 50).await;
    cluster.restart(first, Memory::Kept);
    cluster.until_it_answers(first).await;
    let shows = || cluster.command(first, &["pool", "show", "made"]).contains("units = 5");
    until("it knows what the pool is now", shows).await;
    for job in jobs.iter().chain([&fourth]) {
        assert_eq!(job.is_lost(), None, "a grant of units that were there no more");
    }

    // Lowered under load, raised, lowered, with longer leases and shorter ones: by one node and
    // another, and the seat moves on purpose.
    let longer = |word: &str| ["units=6", "lease=40s"].contains(&word);
    for (node, word) in [
        (0, "units=2"),
        (1, "units=6"),
        (2, "lease=40s"),
        (2, "units=1"),
        (1, "lease=8s"),
        (0, "units=4"),
    ] {
        carried_out(&cluster, node, &["pool", "set", "made", word]).await;
        let before = done.load(Ordering::Relaxed);
        if longer(word) {
            let decides = format!("n{}", decider(&cluster, NODES, "made").await);
            carried_out(&cluster, node, &["member", "drain", &decides]).await;
            carried_out(&cluster, node, &["member", "drain", &decides, "--undo"]).await;
            until("the crowd is served", || done.load(Ordering::Relaxed) > before + 20).await;
        }
    }
    for job in jobs.into_iter().chain([fourth]) {
        assert_eq!(job.is_lost(), None);
        units.end(&job);
        job.release().await.expect("it is still held");
    }
    let before = done.load(Ordering::Relaxed);
    until("the crowd is served", || done.load(Ordering::Relaxed) > before + 50).await;
    goes_on.store(false, Ordering::Relaxed);
    for one in crowd {
        one.await.expect("no unit is given twice, and fences grow");
    }
    let history = cluster.command(0, &["history", "made"]);
    assert!(history.contains("lease 8s (before: 40s)"), "{history}");
    // What is drained stays so where the seat goes, and is back when that is said anywhere.
    carried_out(&cluster, 1, &["drain", "made", "3"]).await;
    let decides = format!("n{}", decider(&cluster, NODES, "made").await);
    carried_out(&cluster, 2, &["member", "drain", &decides]).await;
    carried_out(&cluster, 2, &["member", "drain", &decides, "--undo"]).await;
    let why = connect(&cluster).await.pool("made").acquire_many(4).await.expect_err("three");
    assert!(why.to_string().contains("so many units that will do"), "{why}");
    let shown = || cluster.command(0, &["status", "made"]).contains("drained: 3");
    until("the next one knows what is drained", shown).await;
    carried_out(&cluster, 0, &["drain", "made", "3", "--undo"]).await;
    // All of it is there, and no more.
    let all = connect(&cluster).await.pool("made").acquire_many(4).await.expect("all four");
    units.begin(&all);
    assert_eq!(all.units(), [0, 1, 2, 3]);
    units.end(&all);
    all.release().await.expect("it is held");

    // A change that is none, one that somebody else was faster with, and one that cannot be.
    let same = fine(&cluster, 0, &["pool", "set", "made", "--units", "4"]);
    assert!(same.contains("pool made is there as it should be\nnothing was changed"), "{same}");
    for (words, why) in [
        (&["--units", "5", "--if-generation", "1"][..], "not 1: look at it again"),
        (&["--set-nothing"], "unexpected argument"),
        (&["drift_ppm=300"], "does not change while nodes run"),
        (&["lease=200ms"], "too short for a seat that moves"),
        (&["units=0"], "choose 1 to"),
        (&["arbiter=n0"], "central with an arbiter"),
    ] {
        let words: Vec<&str> = ["pool", "set", "made"].iter().chain(words).copied().collect();
        let output = cluster.output(1, &words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{words:?}: {output:?}");
    }
    let history = cluster.command(0, &["history", "made"]);
    assert!(history.contains("the pool was changed: units 4 (before: 1)"), "{history}");

    // Deleted under load: whoever holds keeps what it has, whoever waits is refused; made again,
    // fences go on; and deleted for good.
    let kept = connect(&cluster).await.pool("made").acquire_many(3).await.expect("three");
    units.begin(&kept);
    let client = connect(&cluster).await;
    let waits = tokio::spawn(async move { client.pool("made").acquire_many(2).await });
    until("it waits", || fine(&cluster, 0, &["queue", "made"]).lines().count() > 1).await;
    // What was given back a moment ago may still be on the books.
    until("one is known to hold", || {
        let output = cluster.output(1, &["pool", "delete", "made"]);
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).contains("1 claim holds units of it")
    })
    .await;
    let second = decider(&cluster, NODES, "made").await;
    cluster.kill(second);
    let other = (0..NODES).find(|node| *node != second).expect("there are more");
    until("a majority answers", || {
        cluster.output(other, &["pool", "delete", "made", "--drain"]).status.success()
    })
    .await;
    assert!(waits.await.expect("no panic").is_err(), "it is gone");
    cluster.restart(second, Memory::Kept);
    cluster.until_it_answers(second).await;
    until("a majority answers", || {
        let words = ["pool", "create", "made", "--units", "4", "--lease", LEASE];
        cluster.output(second, &words).status.success()
    })
    .await;
    let rest = connect(&cluster).await.pool("made").acquire().await.expect("the fourth");
    units.begin(&rest);
    assert_eq!(kept.is_lost(), None);
    let history = cluster.command(other, &["history", "made"]);
    assert!(history.contains("the pool was deleted"), "{history}");
    let said = fine(&cluster, 0, &["pool", "delete", "made", "--revoke"]);
    assert!(said.contains("claims held is revoked"), "{said}");
    for job in [kept, rest] {
        job.lost().await;
        units.end(&job);
    }
    let gone = || cluster.output(0, &["pools", "made"]).status.code() != Some(0);
    until("it is gone", gone).await;
    cluster.check_alive();
    println!("{name}: ok, {} grants, {:.0?}", done.load(Ordering::Relaxed), began.elapsed());
}
