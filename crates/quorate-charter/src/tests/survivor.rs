//! Two of three members are lost for good, and the charter goes on with the third.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::cluster::{CLUSTER, about, pace, within};
use super::net::Net;
use crate::{
    Birth, Change, Charter, ClusterId, Council, Identity, MemberId, Newcomer, RaftCouncil, Reading,
    Reborn, Request, RequestId, Store, StoreError, Trouble,
};

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pool(number: u8) -> Request {
    let (name, definition) = (format!("p{number}"), Some(String::new()));
    let change = Change::Pool { name, definition, if_generation: Some(0) };
    Request::one(RequestId([number; 16]), change)
}

fn newcomer(number: u8) -> Newcomer {
    let (name, birth) = (format!("n{number}"), Birth([number; 16]));
    Newcomer { name, birth, about: about(u64::from(number)) }
}

/// The engine's last task lets go of a file a moment after it stopped.
async fn at_rest<T>(open: impl Fn() -> Result<T, StoreError>) -> T {
    within(async {
        loop {
            match open() {
                Ok(there) => return there,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survivor_goes_on_alone_with_all_that_it_has_and_lets_others_in() {
    let name = format!("quorate-survivor-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let file = |number: u8| folder.0.join(format!("{number}.redb"));
    let net = Net::default();
    let made = Identity { cluster: CLUSTER, member: MemberId::FOUNDER, birth: Birth([0; 16]) };
    let store = Store::create(&file(0), made).expect("a new file");
    let phone = net.phone(MemberId::FOUNDER);
    let found = RaftCouncil::found(store, pace(), phone, "n0".into(), about(0), 5);
    let founder = found.await.expect("founded");
    net.plug(&founder);
    let (mut members, mut parts) = (BTreeSet::from([MemberId::FOUNDER]), vec![founder.clone()]);
    for number in [1, 2] {
        let request = Request::one(RequestId([number; 16]), Change::Join(newcomer(number)));
        let joined = founder.propose(request).await.expect("it leads").expect("allowed");
        let member = MemberId(joined.version);
        let made = Identity { cluster: CLUSTER, member, birth: Birth([number; 16]) };
        let store = Store::create(&file(number), made).expect("a new file");
        let part = RaftCouncil::start(store, pace(), net.phone(member)).await.expect("started");
        net.plug(&part);
        members.insert(member);
        parts.push(part);
    }
    within(async {
        while founder.change_members(&members).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    for number in 10..20 {
        founder.propose(pool(number)).await.expect("it leads").expect("allowed");
    }
    let survivor = parts.pop().expect("three");
    let has_all = |reading: &Reading| reading.charter.pools().len() == 10;
    within(survivor.watch().wait_for(has_all)).await.expect("it runs");
    let old = survivor.identity();
    for part in parts.into_iter().chain([founder, survivor]) {
        part.stop().await;
        net.unplug(part.identity().member);
    }

    // At rest: everything is there, also what nobody told it was in force.
    let rest = at_rest(|| Store::survivor(&file(2))).await;
    assert_eq!((rest.identity, rest.charter.pools().len()), (old, 10));
    let sole = Newcomer { birth: Birth([22; 16]), ..newcomer(2) };
    let (cluster, index) = (ClusterId([6; 16]), Reborn::index_after(rest.last.1));
    let next = Reborn { cluster, incarnation: 6, index, sole };
    let charter = rest.charter.reborn(&next).expect("a later life");
    let store = Store::reborn(&file(9), rest.term + 1, &charter, &next).expect("a new file");
    let me = MemberId(index);
    assert_eq!(store.identity(), Identity { cluster, member: me, birth: Birth([22; 16]) });
    let taken = Store::reborn(&file(2), 9, &charter, &next).map(|store| store.identity());
    assert_eq!(taken, Err(StoreError::Taken(old)), "no store is written over");

    let alone = RaftCouncil::start(store, pace(), net.phone(me)).await.expect("started");
    net.plug(&alone);
    let propose = async |request: Request| -> u64 {
        within(async {
            loop {
                match alone.propose(request.clone()).await {
                    Ok(outcome) => return outcome.expect("allowed").version,
                    Err(Trouble::Stopped(why)) => panic!("{why}"),
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        })
        .await
    };
    assert!(propose(pool(20)).await > index, "entries count on from there");
    let read: Charter = (*alone.read().await.expect("it leads").charter).clone();
    assert_eq!((read.pools().len(), read.incarnation()), (11, 6));

    // A store of the life before is nobody to it...
    let back = at_rest(|| Store::open(&file(0))).await;
    let back = RaftCouncil::start(back, pace(), net.phone(MemberId::FOUNDER)).await;
    let back = back.expect("started");
    net.plug(&back);
    let said = back.propose(pool(30)).await;
    assert!(said.is_err(), "{said:?}");
    back.stop().await;
    net.unplug(MemberId::FOUNDER);
    // ...and an empty one becomes a member, by a snapshot of the life that goes on.
    let anew = Newcomer { birth: Birth([33; 16]), ..newcomer(0) };
    let join = Request::one(RequestId([33; 16]), Change::Join(anew));
    let member = MemberId(propose(join).await);
    let made = Identity { cluster, member, birth: Birth([33; 16]) };
    let store = Store::in_memory(made).expect("memory");
    let part = RaftCouncil::start(store, pace(), net.phone(member)).await.expect("started");
    net.plug(&part);
    within(async {
        while alone.change_members(&BTreeSet::from([me])).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let follows = |reading: &Reading| reading.charter.members().contains_key(&member);
    within(part.watch().wait_for(follows)).await.expect("it runs");
    alone.stop().await;

    // Twice is once: what was reborn starts again from its file.
    net.unplug(me);
    drop(alone);
    let again = at_rest(|| Store::survivor(&file(9))).await;
    assert!(again.charter.is_recovered() && again.charter.pools().len() == 11);
    part.stop().await;
}
