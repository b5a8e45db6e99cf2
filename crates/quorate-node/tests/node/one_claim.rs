//! One claim is one claim, at whichever node it is asked for; and nobody is served who has gone. A
//! lease lasts an hour here: whoever had to wait for one would not be served at all.

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::common::{Cluster, until};
use crate::every_protocol::{BOTH, CENTRAL, EVERY, counts, pool, waiting};

fn claim(method: &str, id: u32) -> String {
    format!("{method} /v1/pools/p/claims/{id}")
}

async fn put(cluster: &Cluster, place: usize, id: u32, wait: &str) -> (u16, Value) {
    cluster.request(place, &format!("{}?wait={wait}", claim("PUT", id)), BOTH).await
}

async fn delete(cluster: &Cluster, place: usize, id: u32) -> Value {
    let (status, over) = cluster.request(place, &claim("DELETE", id), "").await;
    assert_eq!(status, 200, "{over}");
    over
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_are_repeated_and_awaited_at_another_node_are_served_there() {
    for protocol in EVERY {
        let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
        for id in 1..=4 {
            let (status, made) = put(&cluster, 1, id, "0s").await;
            assert!([200, 202].contains(&status), "{protocol}: {made}");
            if status == 200 {
                delete(&cluster, 1, id).await; // It was quick: then there is nothing to repeat.
            }
        }
        let mut awaited = JoinSet::new();
        for id in 1..=4 {
            let task = waiting(&cluster, 2, id);
            awaited.spawn(async move { (id, task.await.unwrap()) });
        }
        while let Some(answer) = awaited.join_next().await {
            let (id, (status, granted)) = answer.unwrap();
            if status != 410 {
                assert_eq!((status, &granted["state"]), (200, &"granted".into()), "{protocol}");
                delete(&cluster, 2, id).await;
            }
        }
        counts(&cluster, 0, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_ended_anywhere_is_over_everywhere() {
    for protocol in EVERY {
        let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
        let (status, held) = put(&cluster, 1, 1, "1m").await;
        assert_eq!(status, 200, "{protocol}: {held}");
        let waits = waiting(&cluster, 2, 2);
        counts(&cluster, 2, 1).await;
        // Where it is not known; and all have heard of it when the answer is there.
        let over = delete(&cluster, 0, 1).await;
        assert_eq!(over.get("unheard"), None, "{protocol}: {over}");
        let (status, next) = waits.await.unwrap();
        assert_eq!(status, 200, "{protocol}: its units are free: {next}");
        delete(&cluster, 2, 2).await;
        for place in 0..3 {
            for id in 1..=2 {
                let (status, told) = put(&cluster, place, id, "1m").await;
                assert_eq!(status, 410, "{protocol} at {place}: {told}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_ends_a_claim_anywhere_is_told_what_it_was() {
    for protocol in EVERY {
        let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
        assert_eq!(put(&cluster, 1, 1, "1m").await.0, 200, "{protocol}");
        let waits = waiting(&cluster, 2, 2);
        counts(&cluster, 2, 1).await;
        let known = |over: &Value| over.get("unknown").is_none();
        // One that waits, one that holds, and both again where they were not made.
        for (id, state, home) in [(2, "cancelled", "n2"), (1, "released", "n1")] {
            for place in [0, 0, 1, 2] {
                let over = delete(&cluster, place, id).await;
                assert_eq!((&over["state"], &over["asked"]), (&state.into(), &2.into()), "{over}");
                assert!(known(&over) && over["ended"].as_str().is_some(), "{protocol}: {over}");
                let (_, told) = cluster.request(place, &claim("GET", id), "").await;
                assert_eq!((&told["state"], &told["node"]), (&state.into(), &home.into()));
            }
        }
        assert_eq!(waits.await.unwrap().0, 410, "{protocol}");
        // And one that never was, however often.
        for place in [0, 0, 1] {
            let over = delete(&cluster, place, 3).await;
            assert_eq!((&over["state"], known(&over)), (&"cancelled".into(), false), "{over}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_not_heard_of_an_end_is_named_and_hears_it_later() {
    let (cluster, bridge) = Cluster::with_a_bridge(&pool(CENTRAL, "1h")).await;
    let (status, _) = put(&cluster, 0, 1, "1m").await;
    assert_eq!(status, 200);
    bridge.cut();
    until("it is out of reach", || async {
        let (_, node) = cluster.request(0, "GET /v1/node", "").await;
        node["peers"][0]["connected"] == false
    })
    .await;
    assert_eq!(delete(&cluster, 0, 1).await["unheard"], Value::from(vec!["n1"]));
    bridge.mend();
    until("it has heard", || async {
        // Made there before it has, it ends as soon as it has.
        put(&cluster, 1, 1, "0s").await.0 == 410
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_hung_up_does_not_take_a_turn() {
    for protocol in EVERY {
        let cluster = Cluster::start(3, &pool(protocol, "1h")).await;
        assert_eq!(put(&cluster, 0, 1, "1m").await.0, 200, "{protocol}");
        let mut gone = Vec::new();
        for id in 2..=6 {
            let mut stream = TcpStream::connect(cluster.address(1)).await.unwrap();
            let request = format!(
                "{}?wait=5m HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{BOTH}",
                claim("PUT", id),
                BOTH.len()
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            gone.push(stream);
        }
        counts(&cluster, 2, 5).await;
        drop(gone);
        let waits = waiting(&cluster, 1, 7);
        counts(&cluster, 2, 6).await;
        delete(&cluster, 0, 1).await;
        let (status, granted) = waits.await.unwrap();
        assert_eq!((status, &granted["state"]), (200, &"granted".into()), "{protocol}");
        // It may come back.
        let back = waiting(&cluster, 2, 3);
        delete(&cluster, 1, 7).await;
        let (status, granted) = back.await.unwrap();
        assert_eq!((status, &granted["state"]), (200, &"granted".into()), "{protocol}");
    }
}
