//! Who is not who it says it is, is not talked to.

use super::cluster::{CLUSTER, Cluster};
use super::disk::Disk;
use crate::raft::{Frame, Question, Reply, decode, encode};
use crate::{
    Birth, Change, ClusterId, Council, Identity, MemberId, Pace, RaftCouncil, Refusal, Trouble,
};

async fn answer(cluster: &Cluster, to: MemberId, frame: &Frame, from: MemberId) -> Reply {
    let bytes = cluster.net.get(to).answer(from, &encode(frame)).await;
    decode(&bytes).expect("an answer")
}

fn refused(reply: Reply) -> String {
    match reply {
        Reply::Refused(why) => why,
        reply => panic!("answered {reply:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_wiped_machine_is_not_the_member_that_it_was() {
    let mut cluster = Cluster::new().await;
    let a = MemberId::FOUNDER;
    let (b, c) = (cluster.join().await, cluster.join().await);
    cluster.vote(&[a, b, c]).await;
    let leader = cluster.leader().await;
    let victim = [a, b, c].into_iter().find(|id| *id != leader.identity().member).expect("two");
    cluster.kill(victim).await;
    // Somebody wipes its disk and starts it as if nothing had happened.
    let (disk, birth) = (Disk::default(), cluster.birth());
    let store = disk.create(Identity { cluster: CLUSTER, member: victim, birth });
    let wiped = RaftCouncil::start(store, cluster.pace, cluster.net.phone(victim)).await;
    let wiped = wiped.expect("started");
    cluster.net.plug(&wiped);
    let version = cluster.pool("after the wipe").await;
    let heard = Frame::new(
        &wiped.identity(),
        (leader.identity().member, leader.identity().birth),
        Question::ReadIndex,
    );
    let why = refused(answer(&cluster, leader.identity().member, &heard, victim).await);
    assert!(why.contains("another store"), "{why}");
    let told = Frame::new(
        &leader.identity(),
        (victim, leader_knows(&cluster, victim).await),
        Question::ReadIndex,
    );
    let why = refused(answer(&cluster, victim, &told, leader.identity().member).await);
    assert!(why.contains("made anew"), "{why}");
    // It has heard nothing, and no vote of it was counted.
    assert_eq!((wiped.status().last, wiped.status().term), (None, 0));
    assert!(cluster.leader().await.status().matched[&victim] < Some(version));
    // Its name is taken, too, until it is taken out; then it joins as somebody else.
    let newcomer = cluster.join().await;
    let mut voters = vec![a, b, c, newcomer];
    voters.retain(|id| *id != victim);
    cluster.vote(&voters).await;
    cluster.done(Change::Leave { member: victim, if_generation: None }).await;
    cluster.vote(&voters).await;
    assert!(newcomer > victim);
    let status = cluster.leader().await.status();
    assert_eq!((status.voters.len(), status.learners.len()), (3, 0));
}

async fn leader_knows(cluster: &Cluster, member: MemberId) -> Birth {
    let charter = cluster.leader().await.read().await.expect("a majority").charter;
    charter.members()[&member].birth
}

#[tokio::test(start_paused = true)]
async fn who_left_disturbs_nobody() {
    let mut cluster = Cluster::new().await;
    let a = MemberId::FOUNDER;
    let (b, c, d) = (cluster.join().await, cluster.join().await, cluster.join().await);
    cluster.vote(&[a, b, c]).await;
    let leader = cluster.leader().await;
    let gone = [a, b, c].into_iter().find(|id| *id != leader.identity().member).expect("two");
    // Cut off while it votes, taken out meanwhile: it never heard that it is out.
    cluster.net.isolate(&[gone]);
    let mut voters = vec![a, b, c, d];
    voters.retain(|id| *id != gone);
    let part = cluster.net.get(gone);
    cluster.net.unplug(gone);
    cluster.vote(&voters).await;
    let left = cluster.done(Change::Leave { member: gone, if_generation: None }).await;
    cluster.vote(&voters).await;
    cluster.everybody_has(left).await;
    let term = cluster.leader().await.status().term;
    cluster.net.plug(&part);
    cluster.net.heal();
    // It stands for election again and again, and nobody listens.
    cluster.until(&part, |_| part.status().term > term + 3).await;
    let version = cluster.pool("after").await;
    cluster.net.unplug(gone);
    cluster.everybody_has(version).await;
    let status = cluster.leader().await.status();
    assert_eq!(status.term, term, "it disturbed the others");
    let frame = Frame::new(
        &part.identity(),
        (status.member, cluster.net.get(status.member).identity().birth),
        Question::ReadIndex,
    );
    let why = refused(answer(&cluster, status.member, &frame, gone).await);
    assert!(why.contains("no member any more"), "{why}");
    assert!(part.read().await.is_err(), "it knows nothing for sure");
}

#[tokio::test(start_paused = true)]
async fn envelopes_are_read_before_what_is_in_them() {
    let mut cluster = Cluster::new().await;
    let b = cluster.join().await;
    cluster.vote(&[MemberId::FOUNDER]).await;
    let version = cluster.pool("p").await;
    cluster.everybody_has(version).await;
    let (a, b) = (cluster.net.get(MemberId::FOUNDER).identity(), cluster.net.get(b).identity());
    let frame = |from: &Identity, to: &Identity| {
        Frame::new(from, (to.member, to.birth), Question::ReadIndex)
    };
    let there = a.member;
    let other = Identity { cluster: ClusterId([1; 16]), ..b };
    let why = refused(answer(&cluster, there, &frame(&other, &a), b.member).await);
    assert!(why.contains("this is cluster"), "{why}");
    let why = refused(answer(&cluster, there, &frame(&b, &b), b.member).await);
    assert!(why.contains("this is m0"), "{why}");
    let why = refused(answer(&cluster, there, &frame(&b, &a), MemberId(77)).await);
    assert!(why.contains("speaks for"), "{why}");
    // Who joined later than anything applied here is heard: it may be the new leader.
    let later = Identity { member: MemberId(version + 50), ..b };
    let reply = answer(&cluster, there, &frame(&later, &a), later.member).await;
    assert!(matches!(reply, Reply::ReadIndex(Ok(_))), "{reply:?}");
    let council = cluster.net.get(there);
    for garbage in [vec![], vec![2, 0], vec![1, 1, 1], vec![1; 300]] {
        let reply = decode(&council.answer(b.member, &garbage).await).expect("an answer");
        assert!(!refused(reply).is_empty());
    }
    assert_eq!(council.status().stopped, None);
}

#[tokio::test(start_paused = true)]
async fn a_charter_is_founded_once_and_by_its_founder() {
    let mut cluster = Cluster::new().await;
    let joined = cluster.join().await;
    let disk = cluster.kill(joined).await;
    let phone = cluster.net.phone(joined);
    let about = super::cluster::about(1);
    let store = disk.open();
    let found =
        RaftCouncil::found(store, cluster.pace, phone.clone(), "x".into(), about.clone(), 1);
    let refused = found.await.expect_err("it joined");
    assert!(
        matches!(&refused, Trouble::Refused(said) if matches!(said.why, Refusal::Nonsense(_))),
        "{refused}"
    );
    // The founder may say it again, for instance after a crash in the middle.
    let disk = cluster.kill(MemberId::FOUNDER).await;
    let phone = cluster.net.phone(MemberId::FOUNDER);
    let again = RaftCouncil::found(disk.open(), Pace::default(), phone, "n0".into(), about, 1);
    let charter = again.await.expect("founded before").read().await.expect("alone").charter;
    assert_eq!((charter.cluster(), charter.members().len()), (Some(CLUSTER), 2));
}
