//! What a watcher sees, as it happens.

use crate::common::{Cluster, PATIENCE};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const POOLS: &str = r#"
    [[pools]]
    name = "p"
    units = 1
    arbiter = "n0"
    [[pools]]
    name = "other"
    units = 1
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_sees_what_becomes_of_a_claim() {
    let cluster = Cluster::start(1, POOLS).await;
    let mut stream = TcpStream::connect(cluster.address(0)).await.unwrap();
    stream.write_all(b"GET /v1/pools/p/watch HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let head = lines.next_line().await.unwrap().unwrap();
    assert_eq!(head, "HTTP/1.1 200 OK");
    cluster.request(0, "PUT /v1/pools/other/claims/1", "").await;
    cluster.request(0, "PUT /v1/pools/p/claims/2", "").await;
    cluster.request(0, "DELETE /v1/pools/p/claims/2", "").await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.expect("events in time").unwrap().expect("the stream goes on");
        if let Some(data) = line.strip_prefix("data: ") {
            let change: serde_json::Value = serde_json::from_str(data).unwrap();
            assert_eq!(change["pool"], "p", "of this pool only");
            seen.push(change["kind"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen, ["claimed", "granted", "ended"]);
}
