//! A client may show any number as its fence. None of them harms a pool or a link.

use crate::common::Cluster;
use serde_json::{Value, json};

/// Fences that are given stay below this.
const END: u64 = 1 << 63;

fn pool(lines: &str) -> String {
    format!("[[pools]]\nname = \"p\"\nunits = 1\nlease = \"1h\"\n{lines}\n")
}

async fn renew(cluster: &Cluster, place: usize, id: u32, fence: u64) -> (u16, Value) {
    let body = json!({ "units": [{ "unit": 0, "fence": fence }] });
    let renew = format!("POST /v1/pools/p/claims/{id}/renew?wait=1m");
    cluster.request(place, &renew, &body.to_string()).await
}

async fn claim(cluster: &Cluster, place: usize, id: u32) -> u64 {
    let put = format!("PUT /v1/pools/p/claims/{id}?wait=1m");
    let (status, granted) = cluster.request(place, &put, "").await;
    assert_eq!(status, 200, "{granted}");
    granted["units"][0]["fence"].as_u64().unwrap()
}

async fn end(cluster: &Cluster, place: usize, id: u32) {
    let delete = format!("DELETE /v1/pools/p/claims/{id}");
    assert_eq!(cluster.request(place, &delete, "").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_that_nobody_can_have_been_given_is_refused() {
    for protocol in [
        "arbiter = \"n0\"",
        "protocol = \"arbiter\"",
        "protocol = \"arbiter\"\nmode = \"ticket\"",
        "protocol = \"table\"",
        "protocol = \"ring\"",
    ] {
        let cluster = Cluster::start(3, &pool(protocol)).await;
        for (id, fence) in [(1, END), (2, u64::MAX)] {
            let (status, problem) = renew(&cluster, 1, id, fence).await;
            let detail = problem["detail"].as_str().unwrap_or_default();
            assert_eq!(status, 400, "{protocol}: {problem}");
            assert!(detail.contains("a fence of 9223372036854775808 or more"), "{problem}");
        }
        // What might have been given reaches the protocol, and it denies it.
        let (status, problem) = renew(&cluster, 1, 3, END - 1).await;
        assert_eq!(status, 410, "{protocol}: {problem}");
        for place in 0..2 {
            let id = 4 + place as u32;
            assert!(claim(&cluster, place, id).await < 1 << 50, "{protocol}");
            end(&cluster, place, id).await;
            let (_, metrics) = cluster.text(place, "GET /metrics").await;
            assert!(metrics.contains("quorate_anomalies_total 0\n"), "{protocol}: {metrics}");
            let (_, view) = cluster.request(place, "GET /v1/node", "").await;
            assert_eq!(view["peers"][0]["connected"], true, "{protocol}: {view}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_made_up_fence_is_not_written_down() {
    let pools = pool("protocol = \"arbiter\"\ndurable = true");
    let mut cluster = Cluster::on_disk("made_up_fence", 1, &pools).await;
    // Neither for a claim that nobody has, nor for one that is granted, at a node that forgot it.
    assert_eq!(renew(&cluster, 0, 2, END - 1).await.0, 410);
    let first = claim(&cluster, 0, 1).await;
    cluster.stop(0).await;
    cluster.restart(0, None).await;
    assert_eq!(renew(&cluster, 0, 1, END - 1).await.0, 410);
    cluster.stop(0).await;
    cluster.restart(0, None).await;
    end(&cluster, 0, 1).await;
    let second = claim(&cluster, 0, 3).await;
    assert!(first < second && second < 1 << 50, "{second}");
}
