//! How often a client writes, on one thread, where that is the same in every run.

use std::future::Future;

use quorate_api::ClaimState;
use quorate_api::link::{self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Share};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::Client;

fn on_one_thread<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// A node that answers claims, and then releases, when it has heard of so many, all in one piece.
async fn node(listener: TcpListener, together: usize) {
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.read_exact(&mut [0; PREFACE.len()]).await.unwrap();
    let (mut inbox, mut kept) = (Vec::new(), Vec::new());
    while stream.read_buf(&mut inbox).await.unwrap() > 0 {
        while let Some((FromClient::Request(request), used)) = link::decode(&inbox).unwrap() {
            inbox.drain(..used);
            let reply = match request.ask {
                Ask::Hello { .. } => {
                    let (node, cluster) = ("n".into(), "c".into());
                    let welcome = Reply::Welcome { node, cluster, boot: 1 };
                    say(&mut stream, [(request.number, welcome)]).await;
                    continue;
                }
                Ask::Claim { .. } => Reply::Granted {
                    units: vec![Share { unit: 0, fence: 1 }],
                    valid_for_micros: 3_600_000_000,
                    lease_micros: 3_600_000_000,
                    counted: true,
                    about: Vec::new(),
                    moves: Vec::new(),
                },
                Ask::Release { .. } => {
                    Reply::Over { state: ClaimState::Released, why: String::new() }
                }
                _ => Reply::Pong,
            };
            kept.push((request.number, reply));
        }
        if kept.len() == together {
            say(&mut stream, kept.drain(..)).await;
        }
    }
}

async fn say(stream: &mut TcpStream, answers: impl IntoIterator<Item = (u64, Reply)>) {
    let mut bytes = Vec::new();
    for (number, reply) in answers {
        link::encode(&FromNode::Answer(Answer { number, reply }), &mut bytes);
    }
    stream.write_all(&bytes).await.unwrap();
}

/// A client whose node answers so many at once.
async fn client(together: usize) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(node(listener, together));
    Client::connect([address]).await.unwrap()
}

/// How often it wrote so far.
fn writes(client: &Client) -> usize {
    client.shared.handle.desk().core().writes
}

#[test]
fn what_those_want_who_are_told_together_leaves_together() {
    on_one_thread(async {
        const MANY: usize = 16;
        let client = client(MANY).await;
        let cycle = |client: Client| async move {
            client.pool("p").acquire().await.unwrap().release().await.unwrap();
        };
        let cycles: Vec<_> = (0..MANY).map(|_| tokio::spawn(cycle(client.clone()))).collect();
        for cycle in cycles {
            cycle.await.unwrap();
        }
        // Claims come from everywhere, each for itself; all releases come because of one answer.
        let hello = 1;
        assert_eq!(writes(&client), hello + MANY + 1);
    });
}

#[test]
fn whoever_is_told_alone_writes_at_once() {
    on_one_thread(async {
        let client = client(1).await;
        for cycle in 0..9 {
            let grant = client.pool("p").acquire().await.unwrap();
            let before = writes(&client);
            let release = tokio::spawn(grant.release());
            tokio::task::yield_now().await;
            assert_eq!(writes(&client), before + 1, "{cycle}");
            release.await.unwrap().unwrap();
        }
    });
}
