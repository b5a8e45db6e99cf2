//! Once with real files, threads and clocks. Only conditions are waited for.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::cluster::{CLUSTER, Part, about, pace, within};
use super::net::Net;
use crate::{
    Birth, Change, Council, Done, Identity, MemberId, Newcomer, RaftCouncil, Request, RequestId,
    Store,
};

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("quorate-council-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, member: MemberId) -> PathBuf {
        self.0.join(format!("{member}.redb"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn birth(number: u8) -> Birth {
    Birth([number; 16])
}

/// Asks whoever answers, until somebody does.
async fn propose(net: &Net, number: u8, change: Change) -> u64 {
    let request = Request::one(RequestId([number; 16]), change);
    let asking = async {
        loop {
            for part in net.everybody() {
                if let Ok(outcome) = part.propose(request.clone()).await {
                    let Done { version } = outcome.expect("allowed");
                    return version;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(asking).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_members_on_files_and_threads_stop_and_go_on() {
    let (folder, net) = (Folder::new(), Net::default());
    let founder = MemberId::FOUNDER;
    let made = Identity { cluster: CLUSTER, member: founder, birth: birth(0) };
    let store = Store::create(&folder.file(founder), made).expect("a new file");
    let found = RaftCouncil::found(store, pace(), net.phone(founder), "n0".into(), about(0), 1);
    let council: Part = found.await.expect("founded");
    net.plug(&council);
    let mut members = BTreeSet::from([founder]);
    for number in [1, 2] {
        let (birth, name) = (birth(number), format!("n{number}"));
        let newcomer = Newcomer { name, birth, about: about(u64::from(number)) };
        let member = MemberId(propose(&net, number, Change::Join(newcomer)).await);
        let made = Identity { cluster: CLUSTER, member, birth };
        let store = Store::create(&folder.file(member), made).expect("a new file");
        let part = RaftCouncil::start(store, pace(), net.phone(member)).await.expect("started");
        net.plug(&part);
        members.insert(member);
    }
    // Whoever leads; on a busy machine that can change.
    within(async {
        'asking: loop {
            for part in net.everybody() {
                if part.change_members(&members).await.is_ok() {
                    break 'asking;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let pool = |number: u8| Change::Pool {
        name: format!("p{number}"),
        definition: Some(String::new()),
        if_generation: Some(0),
    };
    for number in 10..30 {
        propose(&net, number, pool(number)).await;
    }
    for part in net.everybody() {
        part.stop().await;
        net.unplug(part.identity().member);
    }
    drop(council);
    for member in &members {
        // The engine's last task lets go of the file a moment after it stopped.
        let opening = async {
            loop {
                match Store::open(&folder.file(*member)) {
                    Ok(store) => return store,
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let store = within(opening).await;
        assert_eq!(store.identity().member, *member);
        let part = RaftCouncil::start(store, pace(), net.phone(*member)).await.expect("started");
        net.plug(&part);
    }
    propose(&net, 30, pool(30)).await;
    // Every request again: nothing happens twice, or it would be refused.
    for number in 10..30 {
        propose(&net, number, pool(number)).await;
    }
    for part in net.everybody() {
        let mut readings = part.watch();
        let all = readings.wait_for(|reading| reading.charter.pools().len() == 21);
        within(all).await.expect("it runs");
        part.stop().await;
    }
}
