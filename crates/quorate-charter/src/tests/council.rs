//! Members come, go, fall silent and come back, and the charter goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::cluster::{Cluster, Part, pace, within};
use crate::{
    Change, Council, Group, Licence, Life, MemberId, Move, Pace, Request, RequestId, Role, Trouble,
};

/// Somebody who changes pools all the time, at any member that answers, and knows which are done.
struct Writer {
    done: Arc<Mutex<BTreeSet<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Writer {
    fn new(cluster: &Cluster) -> Writer {
        let done = Arc::new(Mutex::new(BTreeSet::new()));
        let (net, list) = (cluster.net.clone(), Arc::clone(&done));
        let task = tokio::spawn(async move {
            for number in 0u64.. {
                let name = format!("written-{number}");
                // Only if it is not there: had it been done twice, the second would be refused.
                let change = Change::Pool {
                    name: name.clone(),
                    definition: Some("units = 1".into()),
                    if_generation: Some(0),
                };
                let id = RequestId((u128::from(number) << 64).to_be_bytes());
                let request = Request::one(id, change);
                'asking: loop {
                    for part in net.everybody() {
                        if let Ok(outcome) = part.propose(request.clone()).await {
                            outcome.expect("done once");
                            break 'asking;
                        }
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
                list.lock().expect("ours").insert(name);
                tokio::time::sleep(Duration::from_millis(7)).await;
            }
        });
        Writer { done, task }
    }

    fn done(&self) -> BTreeSet<String> {
        self.done.lock().expect("ours").clone()
    }

    /// Waits until more is done: the control plane is at work.
    async fn goes_on(&self) {
        let before = self.done().len();
        let more = async {
            while self.done().len() < before + 10 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within(more).await;
    }

    fn stop(self) -> BTreeSet<String> {
        self.task.abort();
        self.done()
    }
}

/// Everybody has everything that was done, and the same.
async fn agree(cluster: &mut Cluster, done: &BTreeSet<String>) {
    let version = cluster.pool("the last").await;
    cluster.everybody_has(version).await;
    let mut all = BTreeSet::new();
    for part in cluster.net.everybody() {
        let charter = part.watch().borrow().charter.clone();
        let missing: Vec<_> =
            done.iter().filter(|name| !charter.pools().contains_key(name)).collect();
        assert!(missing.is_empty(), "{:?} lost {missing:?}", part);
        all.insert(charter.to_bytes());
    }
    assert_eq!(all.len(), 1, "members disagree");
}

async fn three() -> (Cluster, [MemberId; 3]) {
    three_at(pace()).await
}

async fn three_at(pace: Pace) -> (Cluster, [MemberId; 3]) {
    let mut cluster = Cluster::with(pace).await;
    let (b, c) = (cluster.join().await, cluster.join().await);
    let members = [MemberId::FOUNDER, b, c];
    cluster.vote(&members).await;
    (cluster, members)
}

fn voters(part: &Part) -> Vec<MemberId> {
    part.status().voters.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn one_three_five_three_one_voters_under_load() {
    let mut cluster = Cluster::new().await;
    let writer = Writer::new(&cluster);
    writer.goes_on().await;
    let a = MemberId::FOUNDER;
    let (b, c) = (cluster.join().await, cluster.join().await);
    cluster.vote(&[a]).await; // They follow first.
    assert_eq!(voters(&cluster.leader().await), [a]);
    cluster.vote(&[a, b, c]).await;
    writer.goes_on().await;
    let (d, e) = (cluster.join().await, cluster.join().await);
    cluster.vote(&[a, b, c, d, e]).await;
    writer.goes_on().await;
    let charter = cluster.leader().await.read().await.expect("a majority").charter;
    assert!(charter.members().values().all(|member| member.role == Role::Voter));
    // The first go, the leader among them.
    cluster.vote(&[c, d, e]).await;
    writer.goes_on().await;
    for gone in [a, b] {
        cluster.done(Change::Leave { member: gone, if_generation: None }).await;
    }
    cluster.vote(&[c, d, e]).await;
    for gone in [a, b] {
        cluster.kill(gone).await;
    }
    assert_eq!(cluster.leader().await.status().learners, BTreeSet::new());
    writer.goes_on().await;
    cluster.vote(&[e]).await;
    writer.goes_on().await;
    let leader = cluster.leader().await;
    assert_eq!((voters(&leader), leader.status().learners), (vec![e], BTreeSet::from([c, d])));
    // A leader that has no vote any more leads on until it is gone: that is the engine's way. The
    // only voter needs neither of the others.
    for gone in [c, d] {
        cluster.kill(gone).await;
    }
    writer.goes_on().await;
    assert_eq!(cluster.leader().await.identity().member, e);
    let done = writer.stop();
    agree(&mut cluster, &done).await;
}

#[tokio::test(start_paused = true)]
async fn two_four_strangers_and_the_unready_do_not_vote() {
    let mut cluster = Cluster::new().await;
    let a = MemberId::FOUNDER;
    let (b, c) = (cluster.join().await, cluster.join().await);
    let leader = cluster.leader().await;
    for wrong in [vec![], vec![a, b], vec![a, b, MemberId(9999)]] {
        let refused = leader.change_members(&wrong.into_iter().collect()).await;
        assert!(matches!(refused, Err(Trouble::Voters(_))), "{refused:?}");
    }
    // One that does not answer has nothing, and is given no vote.
    let disk = cluster.kill(c).await;
    let all = BTreeSet::from([a, b, c]);
    assert_eq!(leader.change_members(&BTreeSet::from([a])).await, Ok(()));
    cluster.until(&leader, |_| leader.status().matched.get(&b).is_some_and(Option::is_some)).await;
    assert_eq!(leader.change_members(&all).await, Err(Trouble::Behind(c)));
    assert_eq!(voters(&leader), [a]);
    cluster.start(disk).await;
    cluster.vote(&[a, b, c]).await;
    let follower = cluster
        .net
        .everybody()
        .into_iter()
        .find(|part| part.status().leader != Some(part.identity().member));
    let follower = follower.expect("two of them");
    let refused = follower.change_members(&all).await;
    assert!(matches!(refused, Err(Trouble::NotLeader { .. })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_answers_nobody_and_comes_back() {
    let (mut cluster, _) = three().await;
    let old = cluster.leader().await;
    let id = old.identity().member;
    let before = cluster.pool("before").await;
    cluster.everybody_has(before).await;
    cluster.net.isolate(&[id]);
    // It takes what it cannot commit, and does not say that it is done.
    let lost = cluster.request(Change::Pool {
        name: "lost".into(),
        definition: Some(String::new()),
        if_generation: None,
    });
    assert_eq!(old.propose(lost.clone()).await, Err(Trouble::Unknown));
    let others: Vec<_> =
        cluster.net.everybody().into_iter().filter(|part| part.identity().member != id).collect();
    let new = within(async {
        loop {
            let leads =
                others.iter().find(|part| part.status().leader == Some(part.identity().member));
            match leads {
                Some(part) if part.read().await.is_ok() => return part.clone(),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    })
    .await;
    let after = cluster.request(Change::Pool {
        name: "after".into(),
        definition: Some(String::new()),
        if_generation: None,
    });
    new.propose(after).await.expect("a majority").expect("allowed");
    // The old one still thinks that it leads, and does not answer for all that.
    assert_eq!(old.status().leader, Some(id));
    assert_eq!(old.read().await.err(), Some(Trouble::NoMajority));
    assert_eq!(old.licence(id, &[]).await.err(), Some(Trouble::NoMajority));
    assert!(!old.watch().borrow().charter.pools().contains_key("after"));
    cluster.net.heal();
    let last = cluster.pool("last").await;
    cluster.everybody_has(last).await;
    for part in cluster.net.everybody() {
        let charter = part.watch().borrow().charter.clone();
        assert!(charter.pools().contains_key("after"));
        assert!(!charter.pools().contains_key("lost"), "nobody else ever had it");
    }
    // Whoever was not sure asks again, under the same id.
    let again = cluster.leader().await.propose(lost).await;
    assert!(matches!(again, Ok(Ok(_))), "{again:?}");
}

/// A leader that stands still answers nobody and hangs up on nobody. Whoever asks it when it stops
/// hears from the next one as soon as there is one, and not when its patience is over: a licence is
/// a read, and would be over long before that.
#[tokio::test(start_paused = true)]
async fn a_read_goes_to_the_next_leader_as_soon_as_there_is_one() {
    let (cluster, _) = three().await;
    let old = cluster.leader().await.identity().member;
    let others = cluster.net.everybody().into_iter();
    let others: Vec<Part> = others.filter(|part| part.identity().member != old).collect();
    cluster.net.isolate(&[old]);
    let began = tokio::time::Instant::now();
    let read = async |part: &Part| {
        while part.read().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        began.elapsed()
    };
    let both = async { tokio::join!(read(&others[0]), read(&others[1])) };
    let (one, other) = within(both).await;
    let Pace { patience_max, answer, .. } = cluster.pace;
    assert!(one.max(other) < patience_max * 3, "{one:?} {other:?}, patience for one: {answer:?}");
}

#[tokio::test(start_paused = true)]
async fn two_of_three_lost_and_back() {
    let (mut cluster, [a, b, c]) = three().await;
    let done = BTreeSet::from(["before".to_owned()]);
    let before = cluster.pool("before").await;
    cluster.everybody_has(before).await;
    let disks = [cluster.kill(a).await, cluster.kill(b).await];
    let left = cluster.net.get(c);
    let request = cluster.request(Change::Incarnation { to: 2 });
    cluster.until(&left, |_| left.status().leader.is_none_or(|leader| leader == c)).await;
    // What it knows it still knows; nothing can be changed and nothing is sure.
    assert!(left.propose(request.clone()).await.is_err());
    assert!(left.read().await.is_err() && left.snapshot().await.is_err());
    assert!(left.watch().borrow().charter.pools().contains_key("before"));
    for disk in disks {
        cluster.start(disk).await;
    }
    agree(&mut cluster, &done).await;
    let outcome = cluster.leader().await.propose(request).await;
    assert!(matches!(outcome, Ok(Ok(_))), "{outcome:?}");
}

/// A change of voters needs majorities of both lists: interrupted, it stays in between, and whoever
/// asks for the same again finishes it.
#[tokio::test(start_paused = true)]
async fn a_change_of_voters_that_was_interrupted_is_finished() {
    let mut cluster = Cluster::new().await;
    let a = MemberId::FOUNDER;
    let (b, c) = (cluster.join().await, cluster.join().await);
    let leader = cluster.leader().await;
    cluster.vote(&[a]).await;
    let last = leader.status().last;
    let ready = |id| leader.status().matched.get(&id).is_some_and(|has| *has >= last);
    cluster.until(&leader, |_| ready(b) && ready(c)).await;
    cluster.net.isolate(&[a]);
    let all = BTreeSet::from([a, b, c]);
    assert_eq!(leader.change_members(&all).await, Err(Trouble::Unknown));
    assert!(leader.status().changing && leader.read().await.is_err());
    cluster.net.heal();
    cluster.vote(&[a, b, c]).await;
    let leader = cluster.leader().await;
    cluster.until(&leader, |_| !leader.status().changing).await;
    assert_eq!(leader.status().voters, all);
    agree(&mut cluster, &BTreeSet::new()).await;
}

/// A member that cannot remember does not promise: it stops, and says why. The others go on.
#[tokio::test(start_paused = true)]
async fn a_member_whose_disk_is_full_stops_and_comes_back_when_it_is_not() {
    let (mut cluster, _) = three().await;
    let full = cluster.leader().await;
    let id = full.identity().member;
    let before = cluster.pool("before").await;
    cluster.everybody_has(before).await;
    cluster.disks[&id].fill();
    let request = cluster.request(Change::Incarnation { to: 2 });
    let said = full.propose(request.clone()).await;
    assert!(matches!(said, Err(Trouble::Unknown | Trouble::Stopped(_))), "{said:?}");
    cluster.until(&full, |_| full.status().stopped.is_some()).await;
    assert!(matches!(full.read().await, Err(Trouble::Stopped(_))));
    assert!(matches!(full.propose(request.clone()).await, Err(Trouble::Stopped(_))));
    let disk = cluster.kill(id).await;
    let outcome = cluster.leader().await.propose(request).await;
    assert!(matches!(outcome, Ok(Ok(_))), "{outcome:?}");
    cluster.start(disk).await;
    agree(&mut cluster, &BTreeSet::from(["before".into()])).await;
}

#[tokio::test(start_paused = true)]
async fn every_member_restarts_alone_and_all_together() {
    let (mut cluster, members) = three().await;
    let writer = Writer::new(&cluster);
    for member in members.into_iter().cycle().take(6) {
        cluster.restart(member).await;
        writer.goes_on().await;
    }
    let done = writer.stop();
    let mut disks = Vec::new();
    for member in members {
        disks.push(cluster.kill(member).await);
    }
    for disk in disks {
        cluster.start(disk).await;
    }
    agree(&mut cluster, &done).await;
    assert_eq!(voters(&cluster.leader().await), members);
}

#[tokio::test(start_paused = true)]
async fn a_slow_network_that_loses_does_nothing_twice() {
    let (mut cluster, members) = three().await;
    cluster.net.slow(Duration::from_millis(3), Some(7));
    let writer = Writer::new(&cluster);
    for deaf in 0..3 {
        writer.goes_on().await;
        // One way only: it says, and does not hear.
        cluster.net.cut(members[deaf], members[(deaf + 1) % 3]);
    }
    cluster.net.heal();
    writer.goes_on().await;
    let done = writer.stop();
    agree(&mut cluster, &done).await;
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_gets_what_the_log_has_no_more() {
    let (mut cluster, _) = three_at(Pace { snapshot_every: 20, kept: 2, ..pace() }).await;
    for number in 0..50 {
        cluster.pool(&format!("pool-{number}")).await;
    }
    let leader = cluster.leader().await;
    cluster.until(&leader, |_| leader.status().purged.is_some_and(|purged| purged > 20)).await;
    let learner = cluster.join().await;
    let voters = cluster.leader().await.status().voters;
    cluster.vote(&voters.into_iter().collect::<Vec<_>>()).await;
    let version = cluster.pool("after").await;
    let part = cluster.net.get(learner);
    cluster.until(&part, |reading| reading.applied >= version).await;
    let has = part.watch().borrow().charter.to_bytes();
    assert_eq!(has, cluster.leader().await.snapshot().await.expect("a majority"));
    assert!(part.status().snapshot.is_some(), "it came as a snapshot");
    let entries = cluster.disks[&learner].copy().open();
    assert!(entries.identity().member == learner);
    // And it has all that after a restart, before it hears from anybody.
    let disk = cluster.kill(learner).await;
    let alone = cluster.start(disk).await;
    assert!(alone.watch().borrow().charter.pools().len() >= 50);
    let more = cluster.pool("more").await;
    cluster.everybody_has(more).await;
}

/// A snapshot of several pieces, over a network that loses half of them: what is lost is sent
/// again, and what has arrived is not.
#[tokio::test(start_paused = true)]
async fn a_large_charter_travels_in_pieces() {
    let pace = Pace { snapshot_every: 8, kept: 1, ..pace() };
    let (mut cluster, members) = three_at(pace).await;
    for batch in 0..12u8 {
        let pool = |number: usize| Change::Pool {
            name: format!("pool-{batch}-{number}"),
            definition: Some("x".repeat(2500)),
            if_generation: Some(0),
        };
        let changes = (0..100).map(pool).collect();
        let request = Request { id: RequestId(cluster.draw()), changes };
        let outcome = cluster.leader().await.propose(request).await;
        assert!(matches!(outcome, Ok(Ok(_))), "{outcome:?}");
    }
    let leader = cluster.leader().await;
    cluster.until(&leader, |_| leader.status().purged.is_some_and(|purged| purged > 8)).await;
    let bytes = leader.snapshot().await.expect("a majority").len();
    assert!(bytes > 5 * (256 << 10), "{bytes} bytes are not several pieces");
    cluster.net.lose_pieces();
    let learner = cluster.join().await;
    cluster.vote(&members).await;
    let part = cluster.net.get(learner);
    cluster.until(&part, |reading| reading.charter.pools().len() == 1200).await;
    assert!(part.status().snapshot.is_some(), "it came as a snapshot");
    cluster.net.heal();
    agree(&mut cluster, &BTreeSet::new()).await;
}

#[tokio::test(start_paused = true)]
async fn no_read_is_older_than_what_was_done_before_it() {
    let (mut cluster, members) = three().await;
    let writer = Writer::new(&cluster);
    let (done, net) = (Arc::clone(&writer.done), cluster.net.clone());
    let reads = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&reads);
    let reader = tokio::spawn(async move {
        loop {
            for part in net.everybody() {
                let before = done.lock().expect("ours").clone();
                let Ok(reading) = part.read().await else { continue };
                let stale = before.iter().find(|name| !reading.charter.pools().contains_key(name));
                assert_eq!(stale, None, "{part:?} at {}", reading.applied);
                *counted.lock().expect("ours") += 1;
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    });
    for round in 0..6 {
        writer.goes_on().await;
        let leader = cluster.leader().await.identity().member;
        match round % 2 {
            0 => cluster.net.isolate(&[leader]),
            _ => members.iter().for_each(|to| cluster.net.cut(leader, *to)),
        }
        writer.goes_on().await;
        cluster.net.heal();
    }
    writer.goes_on().await;
    assert!(!reader.is_finished(), "{:?}", reader.await);
    reader.abort();
    assert!(*reads.lock().expect("ours") > 20, "hardly anything was read");
    let done = writer.stop();
    agree(&mut cluster, &done).await;
}

/// A limit of the engine: it has no check that makes a leader step down which is heard and hears
/// nobody. Nothing goes wrong, and nothing goes on until the network is whole again.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_heard_and_hears_nobody_stops_changes_and_lies_to_nobody() {
    let (mut cluster, members) = three().await;
    let leader = cluster.leader().await;
    let id = leader.identity().member;
    members.iter().for_each(|from| cluster.net.cut(*from, id));
    let request = cluster.request(Change::Incarnation { to: 2 });
    for part in cluster.net.everybody() {
        assert!(part.read().await.is_err() && part.propose(request.clone()).await.is_err());
        assert_eq!(part.status().leader, Some(id));
    }
    cluster.net.heal();
    agree(&mut cluster, &BTreeSet::new()).await;
    assert!(matches!(cluster.leader().await.propose(request).await, Ok(Ok(_))));
}

#[tokio::test(start_paused = true)]
async fn a_licence_is_for_a_member_and_a_term() {
    let (mut cluster, [a, b, _]) = three().await;
    let group = Group(17);
    let seat = |term, member| Change::Seats {
        moves: vec![Move { group, term, to: Life { member, boot: 1 } }],
    };
    let first = cluster.done(seat(0, a)).await;
    // Any member can be asked; whoever it is has applied what it confirms (charter spec S2).
    for part in cluster.net.everybody() {
        let licence = part.licence(a, &[(group, 1), (group, 2)]).await.expect("a majority");
        assert_eq!(licence.confirmed, [(group, 1)]);
        assert!(licence.index >= first && part.watch().borrow().applied >= licence.index);
        let other = part.licence(b, &[(group, 1)]).await.expect("a majority");
        assert_eq!(other.confirmed, []);
    }
    cluster.done(seat(1, b)).await;
    let back = cluster.done(seat(2, a)).await;
    for part in cluster.net.everybody() {
        // The group went away and came back: the old term is worth nothing.
        let old = part.licence(a, &[(group, 1)]).await.expect("a majority");
        assert_eq!(old.confirmed, []);
        let Licence { index, confirmed } =
            part.licence(a, &[(group, 3)]).await.expect("a majority");
        assert!(index >= back && confirmed == [(group, 3)]);
    }
}

/// What it asks for was committed after its own state: it must not answer from that.
#[tokio::test(start_paused = true)]
async fn a_follower_that_lags_confirms_nothing_from_its_own_state() {
    let (mut cluster, [a, b, c]) = three().await;
    let group = Group(3);
    let seat = |term, member| Change::Seats {
        moves: vec![Move { group, term, to: Life { member, boot: 1 } }],
    };
    let first = cluster.done(seat(0, a)).await;
    cluster.everybody_has(first).await;
    let leader = cluster.leader().await;
    let slow = [a, b, c].into_iter().find(|id| *id != leader.identity().member).expect("two");
    let part = cluster.net.get(slow);
    cluster.net.starve(slow);
    let moved = cluster.request(seat(1, b));
    leader.propose(moved).await.expect("a majority").expect("allowed");
    // It hears the leader, which confirms a round; its own state says that the seat stands.
    assert_eq!(part.status().leader, Some(leader.identity().member));
    assert_eq!(part.watch().borrow().charter.seats()[&group].term, 1);
    assert_eq!(part.licence(a, &[(group, 1)]).await, Err(Trouble::NoMajority));
    cluster.net.heal();
    let licence = within(async {
        loop {
            match part.licence(a, &[(group, 1)]).await {
                Ok(licence) => return licence,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    })
    .await;
    assert_eq!(licence.confirmed, []);
}
