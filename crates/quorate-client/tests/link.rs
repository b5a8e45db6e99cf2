//! The client on real sockets, against nodes small enough to misbehave on demand.

mod fake;

use std::time::Duration;

use fake::Cluster;
use quorate_client::{
    AcquireError, Client, ConnectError, Instant, Lost, Options, ReleaseError, RunError,
    TryAcquireError, blocking,
};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(900);

async fn one_node(units: u32, lease: Duration) -> (Cluster, Client) {
    let cluster = Cluster::new(units, lease);
    let (address, _) = cluster.node().await;
    let client = Client::connect([address]).await.unwrap();
    (cluster, client)
}

#[tokio::test]
async fn units_are_acquired_and_released() {
    let (cluster, client) = one_node(3, LONG).await;
    let before = Instant::now();
    let grant = client.pool("pool").acquire_many(2).await.unwrap();
    assert_eq!((grant.units(), grant.fences()), (vec![0, 1], vec![1, 1]));
    assert!(grant.deadline() > before && grant.deadline() <= Instant::now() + LONG);
    assert_eq!(cluster.look(|books| books.free()), 1);
    assert_eq!(grant.release().await, Ok(()));
    assert_eq!(cluster.look(|books| books.free()), 3);
}

#[tokio::test]
async fn impossible_claims_are_refused_with_narrow_errors() {
    let (_cluster, client) = one_node(3, LONG).await;
    let pool = client.pool("pool");
    assert_eq!(pool.acquire_many(0).await.unwrap_err(), AcquireError::None);
    assert_eq!(pool.acquire_many(4).await.unwrap_err(), AcquireError::TooLarge { h: 4, k: 3 });
    let unknown = client.pool("nil").acquire().await.unwrap_err();
    assert_eq!(unknown, AcquireError::UnknownPool { pool: "nil".into() });
}

#[tokio::test]
async fn waiting_ends_with_a_grant_a_timeout_or_a_cancelled_future() {
    let (cluster, client) = one_node(1, LONG).await;
    let pool = client.pool("pool");
    let first = pool.acquire().await.unwrap();
    assert_eq!(pool.try_acquire_many(1).await.unwrap_err(), TryAcquireError::NoUnits);
    let error = pool.acquire_timeout(1, Duration::from_millis(20)).await.unwrap_err();
    assert!(matches!(error, AcquireError::Timeout { .. }), "{error}");

    let other = client.pool("pool");
    let waiting = tokio::spawn(async move { other.acquire().await });
    cluster.until("it queues", |books| books.queue.len() == 1).await;
    waiting.abort();
    cluster.until("its claim is cancelled", |books| books.queue.is_empty()).await;

    let other = client.pool("pool");
    let waiting = tokio::spawn(async move { other.acquire().await });
    cluster.until("it queues", |books| books.queue.len() == 1).await;
    drop(first);
    let second = waiting.await.unwrap().unwrap();
    assert_eq!(second.fences(), [2]);
}

#[tokio::test]
async fn dropping_a_grant_releases_it_even_after_the_client_is_gone() {
    let (cluster, client) = one_node(1, LONG).await;
    let grant = client.pool("pool").acquire().await.unwrap();
    drop(client);
    assert_eq!(cluster.look(|books| books.free()), 0);
    drop(grant);
    cluster.until("the unit is back", |books| books.holds.is_empty()).await;
}

#[tokio::test]
async fn a_grant_is_renewed_while_it_is_held() {
    let (cluster, client) = one_node(1, Duration::from_secs(3)).await;
    let grant = client.pool("pool").acquire().await.unwrap();
    let first = grant.deadline();
    cluster.until("it renews", |books| books.renewals >= 2).await;
    assert!(grant.deadline() > first);
    assert_eq!(grant.is_lost(), None);
    grant.release().await.unwrap();
}

#[tokio::test]
async fn cut_connections_and_dead_nodes_end_nothing() {
    let cluster = Cluster::new(2, LONG);
    let nodes = [cluster.node().await, cluster.node().await, cluster.node().await];
    let client = Client::connect(nodes.iter().map(|(address, _)| address)).await.unwrap();
    let pool = client.pool("pool");
    let grant = pool.acquire_many(2).await.unwrap();
    let waiting = tokio::spawn(async move { pool.acquire().await });
    cluster.until("it queues", |books| books.queue.len() == 1).await;
    for (_, node) in &nodes[..2] {
        node.abort();
    }
    let before = cluster.look(|books| books.renewals);
    cluster.cut();
    cluster.until("it renews elsewhere", |books| books.renewals > before).await;
    assert_eq!(grant.is_lost(), None);
    grant.release().await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().units().len(), 1);
}

#[tokio::test]
async fn a_grant_that_cannot_be_renewed_is_lost_at_its_own_deadline() {
    let (cluster, client) = one_node(1, SHORT).await;
    let grant = client.pool("pool").acquire().await.unwrap();
    cluster.look(|books| books.mute = true);
    assert_eq!(grant.lost().await, Lost::Deadline);
    assert!(Instant::now() >= grant.deadline());
    assert_eq!(grant.remaining(), Duration::ZERO);
    assert_eq!(grant.release().await, Err(ReleaseError::Lost(Lost::Deadline)));
}

#[tokio::test]
async fn what_nobody_acknowledges_is_unknown() {
    let (cluster, client) = one_node(1, LONG).await;
    cluster.look(|books| books.mute = true);
    let error =
        client.pool("pool").acquire_timeout(1, Duration::from_millis(20)).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unknown { .. }), "{error}");
}

#[tokio::test]
async fn a_list_without_a_node_is_an_error_that_says_so() {
    let none: [&str; 0] = [];
    assert_eq!(Client::connect(none).await.unwrap_err(), ConnectError::NoServers);
    assert!(matches!(Client::connect(["a b"]).await, Err(ConnectError::BadServer { .. })));
    let (address, node) = Cluster::new(1, LONG).node().await;
    node.abort();
    let _ = node.await;
    let error = Client::connect([address.clone()]).await.unwrap_err();
    let ConnectError::Unreachable { why } = error else { panic!("{error}") };
    assert!(why.starts_with(&format!("{address}: ")), "which was tried: {why}");
    assert!(!why.contains("os error"), "{why}");
}

#[tokio::test]
async fn work_is_done_while_units_are_held_and_stopped_when_they_are_lost() {
    let (cluster, client) = one_node(2, SHORT).await;
    let pool = client.pool("pool");
    let held = pool.run(2, async |grant| {
        assert_eq!(pool.try_acquire().await.unwrap_err(), TryAcquireError::NoUnits);
        grant.count()
    });
    assert_eq!(held.await, Ok(2));
    assert_eq!(cluster.look(|books| books.free()), 2);
    assert_eq!(
        pool.run(3, async |_| ()).await,
        Err(RunError::Acquire(AcquireError::TooLarge { h: 3, k: 2 }))
    );
    let lost = pool.run(1, async |_| {
        cluster.look(|books| books.mute = true);
        std::future::pending::<()>().await
    });
    assert_eq!(lost.await, Err(RunError::Lost(Lost::Deadline)));
}

#[tokio::test]
async fn a_client_says_which_node_answers_and_whether_its_last_words_were_heard() {
    let cluster = Cluster::new(1, LONG);
    let (address, node) = cluster.node().await;
    let options = Options { patience: Duration::from_millis(100), ..Options::default() };
    let client = Client::connect_with([&address], options).await.unwrap();
    assert_eq!(client.server(), Ok(address));
    drop(client.pool("pool").acquire().await.unwrap());
    assert!(client.settle().await);
    let grant = client.pool("pool").acquire().await.unwrap();
    node.abort();
    cluster.cut();
    drop(grant);
    assert!(!client.settle().await);
    while client.server().is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn without_async_the_same_is_had_by_waiting() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cluster = Cluster::new(2, SHORT);
    let (address, _) = runtime.block_on(cluster.node());
    let client = blocking::Client::connect([address]).unwrap();
    let pool = client.pool("pool").reason("a test");
    let grant = pool.acquire(2).unwrap();
    assert_eq!(grant.units(), [0, 1]);
    assert_eq!(pool.try_acquire(1).unwrap_err(), TryAcquireError::NoUnits);
    let error = pool.acquire_timeout(1, Duration::from_millis(20)).unwrap_err();
    assert!(matches!(error, AcquireError::Timeout { .. }), "{error}");
    drop(grant);
    assert_eq!(cluster.look(|books| books.free()), 2, "dropping waits");
    let grant = pool.try_acquire(1).unwrap();
    assert_eq!(grant.lost_within(Duration::ZERO), None);
    cluster.look(|books| books.mute = true);
    assert_eq!(grant.lost_within(LONG), Some(Lost::Deadline));
    assert_eq!(grant.release(), Err(ReleaseError::Lost(Lost::Deadline)));
}
