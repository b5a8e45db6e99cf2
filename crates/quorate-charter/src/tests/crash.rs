//! A member dies at every single write of its disk, and goes on from what is there.

use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::testing::{blank_ent, log_id};
use openraft::{LogId, RaftLogReader, RaftSnapshotBuilder, Vote};

use super::cluster::{CLUSTER, about, pace};
use super::disk::Disk;
use super::net::Net;
use super::storage::identity;
use crate::raft::{Log, Machine, Types};
use crate::{Change, Council, MemberId, Pace, RaftCouncil, Request, RequestId, Store, StoreError};

/// What a store should hold: a slow and obvious one.
#[derive(Clone, PartialEq, Debug, Default)]
struct Model {
    vote: Option<Vote<u64>>,
    log: Vec<LogId<u64>>,
    purged: Option<LogId<u64>>,
    snapshot: Option<LogId<u64>>,
}

impl Model {
    async fn of(disk: &Disk) -> Model {
        let store = disk.open();
        let mut machine = Machine::new(store.clone()).expect("sound");
        let mut log = Log(store);
        let entries = log.try_get_log_entries(..).await.expect("readable");
        let state = log.get_log_state().await.expect("readable");
        let snapshot = machine.get_current_snapshot().await.expect("readable");
        let (applied, _) = machine.applied_state().await.expect("readable");
        let snapshot = snapshot.map(|snapshot| snapshot.meta.last_log_id).unwrap_or_default();
        assert_eq!(applied, snapshot, "the state is the snapshot's until entries are applied");
        Model {
            vote: log.read_vote().await.expect("readable"),
            log: entries.into_iter().map(|entry| entry.log_id).collect(),
            purged: state.last_purged_log_id,
            snapshot,
        }
    }
}

fn entries(term: u64, range: std::ops::Range<u64>) -> Vec<openraft::Entry<Types>> {
    range.map(|index| blank_ent::<Types>(term, 0, index)).collect()
}

/// One act of every kind, some twice; after each, how much the disk had done when it was
/// acknowledged, and what the store must hold.
async fn history(disk: &Disk) -> Vec<(usize, Model)> {
    let store = disk.create(identity());
    let mut machine = Machine::new(store.clone()).expect("empty");
    let mut log = Log(store);
    let mut model = Model::default();
    let mut acknowledged = vec![(disk.acts(), model.clone())];
    for term in [1, 2] {
        let vote = Vote::new(term, 0);
        log.save_vote(&vote).await.expect("saved");
        model.vote = Some(vote);
        acknowledged.push((disk.acts(), model.clone()));
        let from = model.log.last().map_or(0, |last| last.index + 1);
        let new = entries(term, from..from + 8);
        model.log.extend(new.iter().map(|entry| entry.log_id));
        log.blocking_append(new.clone()).await.expect("appended");
        acknowledged.push((disk.acts(), model.clone()));
        // The last two were never committed.
        log.truncate(log_id(term, 0, from + 6)).await.expect("truncated");
        model.log.retain(|id| id.index < from + 6);
        acknowledged.push((disk.acts(), model.clone()));
        let committed = log_id(term, 0, from + 5);
        log.save_committed(Some(committed)).await.expect("noted");
        machine.apply(new.into_iter().take(6)).await.expect("applied");
        let mut builder = machine.get_snapshot_builder().await;
        builder.build_snapshot().await.expect("built");
        model.snapshot = Some(committed);
        acknowledged.push((disk.acts(), model.clone()));
        let purged = log_id(term, 0, from + 3);
        log.purge(purged).await.expect("purged");
        model.log.retain(|id| id.index > purged.index);
        model.purged = Some(purged);
        acknowledged.push((disk.acts(), model.clone()));
    }
    // One from the leader, which is ahead of one that is begun before and finished after it.
    let mut late = machine.get_snapshot_builder().await;
    let mut newer = machine.get_current_snapshot().await.expect("there").expect("there");
    newer.meta.last_log_id = Some(log_id(3, 0, 40));
    machine.install_snapshot(&newer.meta, newer.snapshot).await.expect("installed");
    model.snapshot = newer.meta.last_log_id;
    acknowledged.push((disk.acts(), model.clone()));
    late.build_snapshot().await.expect("built");
    acknowledged.push((disk.acts(), model.clone()));
    log.purge(log_id(3, 0, 40)).await.expect("purged");
    (model.log, model.purged) = (Vec::new(), Some(log_id(3, 0, 40)));
    acknowledged.push((disk.acts(), model.clone()));
    acknowledged
}

#[tokio::test(start_paused = true)]
async fn a_store_holds_what_was_acknowledged_or_the_next_act_whole() {
    let disk = Disk::default();
    let acknowledged = history(&disk).await;
    let (made, _) = acknowledged[0];
    let mut torn = 0;
    for (acts, crashed) in disk.crashes(made) {
        let last = acknowledged.iter().rposition(|(then, _)| *then <= acts).expect("the first");
        let found = Model::of(&crashed).await;
        let allowed = &acknowledged[last..acknowledged.len().min(last + 2)];
        let which = allowed.iter().position(|(_, model)| *model == found);
        torn += which.unwrap_or_else(|| panic!("act {acts}: {found:#?}\n{allowed:#?}"));
    }
    assert!(torn > 0, "no act was ever found done before it was acknowledged");
    assert!(disk.acts() > 100, "{} acts", disk.acts());
}

/// A store whose making was interrupted belongs to nobody, or to its member.
#[tokio::test(start_paused = true)]
async fn a_store_is_made_whole_or_not_at_all() {
    let disk = Disk::default();
    drop(disk.create(identity()));
    for (_, crashed) in disk.crashes(0) {
        let Ok(database) = crashed.database() else { continue };
        match Store::open_in(database) {
            Ok(store) => assert_eq!(store.identity(), identity()),
            Err(error) => assert_eq!(error, StoreError::Empty),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_goes_on_from_every_write() {
    let disk = Disk::default();
    let member = MemberId::FOUNDER;
    let phone = Net::default().phone(member);
    let pace = Pace { snapshot_every: 5, kept: 2, ..pace() };
    let store = disk.create(identity());
    let made = disk.acts();
    let found = |store, phone| RaftCouncil::found(store, pace, phone, "n0".into(), about(0), 1);
    let council = found(store, phone.clone()).await.expect("founded");
    let pool = |number: u8| {
        let definition = Some(String::new());
        let name = format!("p{number}");
        let change = Change::Pool { name, definition, if_generation: Some(0) };
        Request::one(RequestId([number; 16]), change)
    };
    let mut acknowledged = vec![disk.acts()];
    for number in 100..112 {
        council.propose(pool(number)).await.expect("alone").expect("allowed");
        acknowledged.push(disk.acts());
    }
    let waiting = council.raft().wait(Some(pace.answer));
    let purged = waiting.metrics(|metrics| metrics.purged.is_some(), "purged").await;
    purged.expect("there are snapshots");
    for (acts, crashed) in disk.crashes(made) {
        // Founding may have been interrupted too: whoever founds says it again.
        let again = found(crashed.open(), phone.clone()).await.expect("it goes on");
        let charter = again.read().await.expect("alone").charter;
        assert_eq!(charter.cluster(), Some(CLUSTER));
        let done = acknowledged.iter().filter(|then| **then <= acts).count().saturating_sub(1);
        let has = charter.pools().len();
        assert!(has == done || has == done + 1, "act {acts}: {done} were done, it has {has}");
        // The last is asked again: if it was done that is remembered, otherwise it is done now.
        for number in [99 + u8::try_from(has).expect("few").max(1), 120] {
            again.propose(pool(number)).await.expect("alone").expect("allowed");
        }
        assert_eq!(again.watch().borrow().charter.pools().len(), has.max(1) + 1);
        again.stop().await;
    }
    council.stop().await;
}
