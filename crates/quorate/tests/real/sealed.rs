//! Nodes that know each other by certificates. The one that leads the charter stands still, with
//! its connections open, and is removed meanwhile: a certificate that is still good does not let it
//! in again. Then the last vote is lost, and nothing about members can change.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quorate_api::{MemberRole, MemberRow};

use crate::cluster::{Cluster, Pools, Protocol};
use crate::members::{connect, fine, keep, list, row};
use crate::ring::until;

const LEASE: Duration = Duration::from_secs(8);

pub(crate) async fn leader(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-sealed");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let pools = Pools {
        protocol: Protocol::Moving,
        names: vec!["p0".into(), "p1".into(), "p2".into()],
        units: 2,
        lease: LEASE,
        durable: false,
        backfill: 0,
        more: String::new(),
    };
    let mut cluster = Cluster::start_sealed(&folder, 3, pools).await;
    let number = |name: &str| (0..3).find(|node| name == format!("n{node}")).expect("of the file");
    let leads = |at: usize| list(&cluster, at).leader.map(|name| number(&name));
    // Alone the first member would vote until others have its log, and could not be done without.
    let votes = |member: &MemberRow| member.role == MemberRole::Voter && member.connected;
    until("all vote, and one leads", || {
        (0..3).all(|at| list(&cluster, at).members.iter().all(votes)) && leads(0).is_some()
    })
    .await;
    let first = leads(0).expect("it was so just now");
    let others: Vec<usize> = (0..3).filter(|node| *node != first).collect();
    let (one, other) = (others[0], others[1]);
    let mut jobs = Vec::new();
    for pool in ["p0", "p1", "p2"] {
        jobs.push(connect(&cluster, one).await.pool(pool).acquire().await.expect("one"));
    }

    // It hears nothing of its end, and its connections stay as they are.
    cluster.pause(first);
    let gone = format!("n{first}");
    let remove = ["member", "remove", &gone, "--dead", "--force"];
    until("another leads, and removes it", || cluster.output(one, &remove).status.success()).await;
    for at in [one, other] {
        until("it is cut off", || !row(&cluster, at, &gone).connected).await;
        until("it is none", || row(&cluster, at, &gone).role == MemberRole::Removed).await;
    }
    let again = connect(&cluster, one).await.pool("p0").acquire().await.expect("others decide");
    again.release().await.expect("it is held");
    // Its certificate is as good as before, and it is told that it is no member.
    cluster.resume(first);
    let status = cluster.process(first).end().await;
    assert_eq!(status.code(), Some(2), "it ends: {}", cluster.log(first));
    let log = cluster.log(first);
    assert!(log.contains("this member was removed from the cluster"), "{log}");
    keep(&jobs);

    // Of two members one votes. Without it nobody changes anything, and everybody is told so.
    until("one votes", || {
        let members = list(&cluster, one).members;
        members.iter().filter(|it| it.role == MemberRole::Voter).count() == 1
    })
    .await;
    let votes = |node: &usize| row(&cluster, one, &format!("n{node}")).role == MemberRole::Voter;
    let voter = [one, other].into_iter().find(votes).expect("one does");
    let left = if voter == one { other } else { one };
    fine(&cluster, left, &["member", "drain", &format!("n{left}")]);
    for job in jobs {
        job.release().await.expect("it is held");
    }
    cluster.kill(voter);
    for words in [
        &["member", "drain", &format!("n{left}"), "--undo"][..],
        &["pool", "create", "made", "--units", "1"],
    ] {
        let output = cluster.output(left, words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{words:?}: {output:?}");
        let why = ["no majority", "no leader"].iter().any(|why| said.contains(why));
        let untouched = ["nothing changed", "nothing was changed"];
        assert!(why && untouched.iter().any(|words| said.contains(words)), "{said}");
    }
    println!("{name}: ok, {:.0?}", began.elapsed());
}
