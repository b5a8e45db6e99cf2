//! What one start of a node may not assume, the next start may not assume either, however soon it
//! comes.

use std::path::PathBuf;

use crate::common::{Cluster, until};
use quorate_node::Node;

fn pools(lines: &str) -> String {
    format!("[[pools]]\nunits = 1\narbiter = \"n0\"\n{lines}\n")
}

/// A claim waits because promises of an earlier start may be in force.
async fn waits_in_grace(cluster: &Cluster, pool: &str, id: u32) {
    let put = format!("PUT /v1/pools/{pool}/claims/{id}?wait=0");
    let (status, waits) = cluster.request(0, &put, "").await;
    assert_eq!(status, 202, "claim 1 may be in use: {waits}");
    let (_, view) = cluster.request(0, &format!("GET /v1/pools/{pool}"), "").await;
    assert!(view["grace_ms"].as_u64().is_some(), "{view}");
}

fn data(test: &str, node: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test).join(node)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_soon_after_a_changed_configuration_waits_too() {
    let before = pools("pattern = \"job-*\"\ndurable = true\nlease = \"1h\"");
    let after = before.replace("1h", "61m");
    let mut cluster = Cluster::on_disk("changed_twice", 1, &before).await;
    let (status, granted) = cluster.request(0, "PUT /v1/pools/job-1/claims/1?wait=1m", "").await;
    assert_eq!(status, 200, "{granted}");
    for _ in 0..3 {
        cluster.stop(0).await;
        cluster.restart(0, Some(&after)).await;
        let (status, text) = cluster.text(0, "GET /readyz?verbose").await;
        assert!(status == 503 && text.contains("[-]grace failed"), "{text}");
    }
    waits_in_grace(&cluster, "job-1", 2).await;
    // Its record says so too.
    cluster.stop(0).await;
    cluster.restart(0, Some(&after)).await;
    waits_in_grace(&cluster, "job-1", 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_after_that_wait_does_not_wait_again() {
    let before = pools("pattern = \"job-*\"\ndurable = true\nlease = \"1s\"");
    let after = before.replace("1s", "1100ms");
    let mut cluster = Cluster::on_disk("waited_once", 1, &before).await;
    cluster.stop(0).await;
    cluster.restart(0, Some(&after)).await;
    until("grace is over for good", || async {
        std::fs::read_to_string(data("waited_once", "n0").join("boot"))
            .unwrap()
            .contains("complete true")
    })
    .await;
    cluster.stop(0).await;
    cluster.restart(0, Some(&after)).await;
    let (status, text) = cluster.text(0, "GET /readyz?verbose").await;
    assert_eq!(status, 200, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_after_one_that_failed_knows_no_more_than_that() {
    let before = pools("name = \"p\"\nlease = \"1h\"");
    let after = format!("{before}durable = true\n");
    let mut cluster = Cluster::on_disk("failed_start", 1, &before).await;
    let (status, granted) = cluster.request(0, "PUT /v1/pools/p/claims/1?wait=1m", "").await;
    assert_eq!(status, 200, "{granted}");
    cluster.stop(0).await;
    // No journal can be made here.
    let obstacle = data("failed_start", "n0").join("journal.redb");
    std::fs::create_dir(&obstacle).unwrap();
    until("it fails at its journal", || async {
        let error = Node::start(cluster.config(0, &after)).await.expect_err("it cannot start");
        error.to_string().contains("the journal")
    })
    .await;
    std::fs::remove_dir(&obstacle).unwrap();
    cluster.restart(0, Some(&after)).await;
    waits_in_grace(&cluster, "p", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_answer_know_when_a_cluster_is_not_new() {
    let pools = pools("name = \"p\"\nlease = \"1h\"");
    let mut cluster = Cluster::on_disk("not_new", 2, &pools).await;
    let config = cluster.config(1, &pools);
    let said = async || Node::check_new(&config).await.map_err(|error| error.to_string());
    let refused = said().await.unwrap_err();
    assert!(refused.contains("is in use by another node"), "{refused}");
    cluster.crash(1).await;
    let refused = said().await.unwrap_err();
    assert!(refused.contains("was in use before"), "{refused}");
    std::fs::remove_dir_all(data("not_new", "n1")).unwrap();
    let refused = said().await.unwrap_err();
    assert!(refused.contains("n0 says: boot number 0 is older than 1"), "{refused}");
    // It forgets whom it met, but not that there was an earlier start.
    cluster.stop(0).await;
    assert_eq!(said().await, Ok(()), "nobody is there to object");
    cluster.restart(0, None).await;
    let refused = said().await.unwrap_err();
    assert!(refused.contains("n0 has been started before: its boot number is 2"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_finds_its_journal_gone_has_forgotten() {
    let pools = pools("name = \"p\"\ndurable = true\nlease = \"1h\"");
    let mut cluster = Cluster::on_disk("journal_gone", 1, &pools).await;
    let (status, granted) = cluster.request(0, "PUT /v1/pools/p/claims/1?wait=1m", "").await;
    assert_eq!(status, 200, "{granted}");
    cluster.stop(0).await;
    std::fs::remove_file(data("journal_gone", "n0").join("journal.redb")).unwrap();
    cluster.restart(0, None).await;
    waits_in_grace(&cluster, "p", 2).await;
}
