//! A cluster in one process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::disk::Disk;
use super::net::{Net, Phone};
use crate::{
    About, Birth, Change, ClusterId, Council, Done, Identity, MemberId, Newcomer, Outcome, Pace,
    RaftCouncil, Reading, Request, RequestId, Trouble,
};

pub(super) type Part = RaftCouncil<Phone>;

pub(super) const CLUSTER: ClusterId = ClusterId([9; 16]);
/// Whoever waits longer than this, by the clock of the test, waits for ever. A large snapshot of
/// which each piece is lost once takes a minute, and begins again if the leader changes.
const FOR_EVER: Duration = Duration::from_secs(900);

pub(super) struct Cluster {
    pub(super) net: Net,
    pub(super) disks: BTreeMap<MemberId, Disk>,
    pub(super) pace: Pace,
    drawn: u64,
}

/// Small and quick, so that snapshots happen.
pub(super) fn pace() -> Pace {
    Pace {
        heartbeat: Duration::from_millis(50),
        patience: Duration::from_millis(300),
        patience_max: Duration::from_millis(600),
        ..Pace::default()
    }
}

pub(super) fn about(number: u64) -> About {
    let zone = BTreeMap::from([("zone".to_owned(), format!("z{}", number % 3))]);
    About { addresses: vec![format!("there:{number}")], fingerprint: [1; 32], labels: zone }
}

impl Cluster {
    pub(super) async fn new() -> Cluster {
        Cluster::with(pace()).await
    }

    pub(super) async fn with(pace: Pace) -> Cluster {
        let net = Net::default();
        let mut cluster = Cluster { net, disks: BTreeMap::new(), pace, drawn: 0 };
        let birth = cluster.birth();
        let member = MemberId::FOUNDER;
        let disk = Disk::default();
        let store = disk.create(Identity { cluster: CLUSTER, member, birth });
        let phone = cluster.net.phone(member);
        let part = RaftCouncil::found(store, pace, phone, "n0".into(), about(0), 1).await;
        let part = part.expect("founded");
        cluster.net.plug(&part);
        cluster.disks.insert(member, disk);
        cluster
    }

    /// A number that no other draw gives.
    pub(super) fn draw(&mut self) -> [u8; 16] {
        self.drawn += 1;
        let mut drawn = [0; 16];
        drawn[..8].copy_from_slice(&self.drawn.to_le_bytes());
        drawn
    }

    pub(super) fn birth(&mut self) -> Birth {
        Birth(self.draw())
    }

    pub(super) fn request(&mut self, change: Change) -> Request {
        Request::one(RequestId(self.draw()), change)
    }

    /// Asks any member until somebody knows: a request can be repeated.
    pub(super) async fn propose(&mut self, change: Change) -> Outcome {
        let request = self.request(change);
        let net = self.net.clone();
        within(async {
            loop {
                for part in net.everybody() {
                    match part.propose(request.clone()).await {
                        Ok(outcome) => return outcome,
                        Err(_) => tokio::time::sleep(self.pace.heartbeat).await,
                    }
                }
            }
        })
        .await
    }

    pub(super) async fn done(&mut self, change: Change) -> u64 {
        let Done { version } = self.propose(change).await.expect("allowed");
        version
    }

    /// A pool, and the version of the charter that has it.
    pub(super) async fn pool(&mut self, name: &str) -> u64 {
        let definition = Some(format!("units = {}", name.len()));
        self.done(Change::Pool { name: name.into(), definition, if_generation: None }).await
    }

    /// A new machine joins, and follows.
    pub(super) async fn join(&mut self) -> MemberId {
        let birth = self.birth();
        let number = self.drawn;
        let newcomer = Newcomer { name: format!("n{number}"), birth, about: about(number) };
        let member = MemberId(self.done(Change::Join(newcomer)).await);
        let disk = Disk::default();
        let store = disk.create(Identity { cluster: CLUSTER, member, birth });
        let phone = self.net.phone(member);
        let part = RaftCouncil::start(store, self.pace, phone).await.expect("started");
        self.net.plug(&part);
        self.disks.insert(member, disk);
        member
    }

    /// Makes these vote, as soon as they can.
    pub(super) async fn vote(&self, voters: &[MemberId]) {
        let voters: BTreeSet<MemberId> = voters.iter().copied().collect();
        within(async {
            loop {
                let leader = self.leader().await;
                match leader.change_members(&voters).await {
                    Ok(()) => break,
                    Err(Trouble::Voters(why)) => panic!("{why}"),
                    Err(_) => tokio::time::sleep(self.pace.heartbeat).await,
                }
            }
        })
        .await;
        // Everybody who is there hears of it.
        for part in self.net.everybody() {
            let votes = |id| part.status().voters.contains(&id);
            if voters.contains(&part.identity().member) {
                self.until(&part, |_| voters.iter().all(|id| votes(*id))).await;
            }
        }
    }

    /// Whoever leads and has a majority.
    pub(super) async fn leader(&self) -> Part {
        within(async {
            loop {
                for part in self.net.everybody() {
                    let status = part.status();
                    if status.leader == Some(status.member) && part.read().await.is_ok() {
                        return part;
                    }
                }
                tokio::time::sleep(self.pace.heartbeat).await;
            }
        })
        .await
    }

    /// Waits until a member has applied something, or its engine says something new.
    pub(super) async fn until(&self, part: &Part, condition: impl Fn(&Reading) -> bool) {
        let mut readings = part.watch();
        let mut metrics = part.raft().metrics();
        let waiting = async {
            while !condition(&readings.borrow_and_update().clone()) {
                tokio::select! {
                    changed = readings.changed() => changed.expect("it runs"),
                    changed = metrics.changed() => changed.expect("it runs"),
                }
            }
        };
        within(waiting).await;
    }

    /// Waits until everybody whom the network knows has applied this version.
    pub(super) async fn everybody_has(&self, version: u64) {
        for part in self.net.everybody() {
            self.until(&part, |reading| reading.applied >= version).await;
        }
    }

    /// The process ends where it is: what it wrote is there, what it thought is not.
    pub(super) async fn kill(&mut self, member: MemberId) -> Disk {
        let disk = self.disks[&member].copy();
        let part = self.net.get(member);
        self.net.unplug(member);
        part.stop().await;
        disk
    }

    pub(super) async fn start(&mut self, disk: Disk) -> Part {
        let store = disk.open();
        let member = store.identity().member;
        let part = RaftCouncil::start(store, self.pace, self.net.phone(member)).await;
        let part = part.expect("started");
        self.net.plug(&part);
        self.disks.insert(member, disk);
        part
    }

    pub(super) async fn restart(&mut self, member: MemberId) -> Part {
        let disk = self.kill(member).await;
        self.start(disk).await
    }
}

/// Gives up when nothing can come any more.
pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(FOR_EVER, future).await.expect("it came in time")
}
