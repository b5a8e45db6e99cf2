//! Nothing that a peer sends or a client says can stop a seat, of whatever protocol: real messages
//! of other seats with bytes changed, and renewals of anything, at any moment. Nor can a seat be
//! made to write down what it cannot read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Effect, Event, Fence, Line, Moment, NodeId, Order, Share, Shares, Unit, Units,
};
use quorate_wire::frame;

use crate::config::{Config, PoolDef};
use crate::seat::{AnySeat, FirstDue, Origin, Place, SeatEffect, SeatError, SeatEvent};

const NODES: usize = 3;
const UNITS: usize = 3;

/// SplitMix64: a seed means the same forever.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

struct World {
    chance: Chance,
    def: Arc<PoolDef>,
    seats: Vec<Box<dyn AnySeat>>,
    boots: Vec<u32>,
    /// What each seat wrote down last.
    disks: Vec<Option<Vec<u8>>>,
    now: Moment,
    post: Vec<(NodeId, NodeId, Vec<u8>)>,
    claims: u64,
    /// What clients were last told that they have.
    has: BTreeMap<ClaimId, Shares>,
    heard: u32,
}

impl World {
    fn new(pool: &str, origin: &Origin, seed: u64) -> World {
        let members: Vec<String> = (0..NODES)
            .map(|n| format!("[[members]]\nname = \"n{n}\"\npeers = \"127.0.0.1:{}\"\n", n + 1))
            .collect();
        let text = format!(
            "cluster = \"c\"\nepoch = 1\nnode = \"n0\"\n\
             listen = {{ clients = \"127.0.0.1:9\", peers = \"127.0.0.1:1\" }}\n{}\
             [[pools]]\nname = \"p\"\n{pool}\n",
            members.concat()
        );
        let config = Config::parse_in_memory(&text).unwrap();
        let mut world = World {
            chance: Chance(seed),
            def: Arc::clone(config.pool("p").unwrap()),
            seats: Vec::new(),
            boots: vec![1; NODES],
            disks: vec![None; NODES],
            now: Moment(1),
            post: Vec::new(),
            claims: 0,
            has: BTreeMap::new(),
            heard: 0,
        };
        for me in 0..NODES {
            let (seat, effects) = world.boot(me, origin.clone());
            world.seats.push(seat);
            world.perform(me, effects);
        }
        world
    }

    fn boot(&mut self, me: usize, origin: Origin) -> (Box<dyn AnySeat>, Vec<SeatEffect>) {
        self.boots[me] += 1;
        let place = Place {
            name: "p".into(),
            me: NodeId::from(me),
            boot: self.boots[me],
            since: self.now,
            grace: Duration::from_secs(10),
        };
        let mut effects = Vec::new();
        let seat = self.def.protocol.rules.take_seat(place, NODES, origin, &mut effects);
        (seat.expect("it reads what it wrote"), effects)
    }

    fn perform(&mut self, me: usize, effects: Vec<SeatEffect>) {
        for effect in effects {
            match effect {
                // A node sends nothing to one that there is not, whoever made it try.
                Effect::Tell { to, message } if to.index() < NODES => {
                    let (_, message) = frame::unpack(&message.packed).unwrap();
                    self.post.push((NodeId::from(me), to, message.to_vec()));
                }
                Effect::Persist(record) => self.disks[me] = Some(record),
                Effect::Grant { claim, shares, .. } | Effect::Move { claim, shares, .. } => {
                    self.has.insert(claim, shares);
                }
                _ => {}
            }
        }
    }

    fn step(&mut self, me: usize, event: SeatEvent<'_>) {
        let (mut effects, told) = (Vec::new(), format!("{event:?}"));
        match self.seats[me].step(self.now, event, &mut effects) {
            Ok(()) => self.heard += 1,
            Err(SeatError::Undecodable(_)) => {}
            Err(SeatError::Stopped(why)) => panic!("{told} stopped it: {why}"),
        }
        self.perform(me, effects);
    }

    /// One thing happens; most often a message arrives, rarely as it was sent.
    fn turn(&mut self) {
        self.now = self.now.after(Duration::from_millis(self.chance.below(200) as u64));
        let me = self.chance.below(NODES);
        match self.chance.below(24) {
            0 | 1 => {
                let claim = self.claim();
                self.step(me, Event::Claim(claim));
            }
            2 => {
                let claim = self.some_claim();
                self.step(me, Event::Release(claim));
            }
            3 | 4 => {
                self.now = self.seats[me].due().map_or(self.now, |at| self.now.max(at));
                self.step(me, Event::Ring(FirstDue));
            }
            5 => self.step(me, Event::Suspect(NodeId::from((me + 1) % NODES))),
            6 => self.step(me, Event::Trust(NodeId::from((me + 1) % NODES))),
            7 | 8 => {
                let (claim, shares) = self.shown();
                self.step(me, Event::Renew { claim, shares });
            }
            9 if self.chance.below(4) == 0 => {
                let claim = self.some_claim();
                self.step(me, Event::Cancel(claim));
            }
            9 if self.chance.below(4) == 0 => self.restart(me),
            9 => self.obey(me),
            _ if !self.post.is_empty() => {
                let which = self.chance.below(self.post.len());
                let (mut from, mut to, mut message) = self.post[which].clone();
                if self.chance.below(3) == 0 || self.post.len() > 200 {
                    self.post.swap_remove(which);
                }
                self.spoil(&mut from, &mut to, &mut message);
                if from != to {
                    self.step(to.index(), Event::Hear { from, message: &message });
                }
            }
            _ => {}
        }
    }

    /// A claim, on units by label if they have some.
    fn claim(&mut self) -> Claim {
        self.claims += 1;
        let id = ClaimId { origin: 0, serial: self.claims };
        let units = Units::new(1 + self.chance.below(2) as u32, UNITS as u32).unwrap();
        let mut claim = Claim::any(id, units);
        claim.draw = self.chance.below(1000) as u64;
        if self.def.labels().is_some() {
            claim.wanted.movable = self.chance.below(2) == 0;
            let kind = ["a", "b"][self.chance.below(2)].to_owned();
            let labels = (self.chance.below(2) == 0)
                .then(|| Arc::new(BTreeMap::from([("kind".to_owned(), kind)])));
            let among = (0..UNITS as u32).map(Unit).collect();
            claim.wanted.lines = Some([Line { labels, ..Line::of(units, among) }].into());
        }
        claim
    }

    fn some_claim(&mut self) -> ClaimId {
        ClaimId { origin: 0, serial: 1 + self.chance.below(self.claims as usize + 1) as u64 }
    }

    /// What a client shows: what it has, some of it, or something else.
    fn shown(&mut self) -> (ClaimId, Shares) {
        let which = self.chance.below(self.has.len().max(1));
        let known = self.has.iter().nth(which).map(|(claim, shares)| (*claim, shares.clone()));
        let claim = known.as_ref().map(|(claim, _)| *claim);
        let claim = claim.filter(|_| self.chance.below(8) > 0).unwrap_or_else(|| self.some_claim());
        let mut shares: Vec<Share> = known.map(|(_, s)| s.as_slice().to_vec()).unwrap_or_default();
        let mut units: BTreeSet<Unit> = shares.iter().map(|share| share.unit).collect();
        match self.chance.below(4) {
            0 if shares.len() > 1 => drop(shares.remove(self.chance.below(shares.len()))),
            1 => {
                let unit = Unit(self.chance.below(UNITS) as u32);
                let fences = [Fence(1), Fence::floor(1), Fence(Fence::END.0 - 1)];
                let fence = fences[self.chance.below(fences.len())];
                if units.insert(unit) {
                    shares.push(Share { unit, fence });
                }
            }
            _ => {}
        }
        if shares.is_empty() {
            shares.push(Share { unit: Unit(0), fence: Fence(1) });
        }
        (claim, Shares::new(&shares))
    }

    /// A seat is gone, and starts again with what it wrote down.
    fn restart(&mut self, me: usize) {
        self.post.retain(|(_, to, _)| to.index() != me);
        let (seat, effects) = self.boot(me, Origin::Recovered(self.disks[me].clone()));
        self.seats[me] = seat;
        self.perform(me, effects);
    }

    /// An operator gives an order, if somebody can do it.
    fn obey(&mut self, me: usize) {
        let unit = Unit(self.chance.below(UNITS) as u32);
        let order = match self.chance.below(3) {
            0 => Order::Drain(unit),
            1 => Order::Restore(unit),
            _ => {
                let kind = ["a", "b"][self.chance.below(2)].to_owned();
                let labels = (self.chance.below(2) == 0)
                    .then(|| BTreeMap::from([("kind".to_owned(), kind)]));
                Order::Relabel { unit, labels }
            }
        };
        let mut effects = Vec::new();
        self.seats[me].obey(self.now, order, &mut effects).expect("orders stop nobody");
        self.perform(me, effects);
    }

    fn spoil(&mut self, from: &mut NodeId, to: &mut NodeId, message: &mut [u8]) {
        for _ in 0..self.chance.below(4) {
            let at = self.chance.below(message.len());
            let byte = self.chance.below(256) as u8;
            message[at] = if self.chance.below(2) == 0 { byte } else { message[at] ^ 1 };
        }
        match self.chance.below(20) {
            0 => *from = NodeId::from(self.chance.below(NODES)),
            1 => *to = NodeId::from(self.chance.below(NODES)),
            _ => {}
        }
    }
}

const LABELLED: &str = "units = [{ name = \"x\", labels = { kind = \"a\" } }, \
    { name = \"y\", labels = { kind = \"a\" } }, { name = \"z\", labels = { kind = \"b\" } }]\n";

#[test]
fn nothing_that_a_peer_sends_or_a_client_says_can_stop_a_seat() {
    let counted = |protocol: &str| format!("units = {UNITS}\n{protocol}");
    for pool in [
        counted("protocol = \"central\"\narbiter = \"n1\""),
        counted("protocol = \"central\"\narbiter = \"n1\"\ndurable = true"),
        format!("{LABELLED}protocol = \"central\"\narbiter = \"n1\"\ndurable = true"),
        counted("protocol = \"arbiter\""),
        counted("protocol = \"arbiter\"\ndurable = true"),
        counted("protocol = \"arbiter\"\nmode = \"arbiter\"\nfamily = \"threshold\"\nsurvive = 0"),
        counted(
            "protocol = \"arbiter\"\nmode = \"arbiter\"\nfamily = \"threshold\"\nsurvive = 0\n\
             naming = true\ndurable = true",
        ),
        counted("protocol = \"arbiter\"\nmode = \"ticket\""),
        counted("protocol = \"table\""),
        format!("{LABELLED}protocol = \"table\"\ndurable = true"),
        counted("protocol = \"broadcast\""),
        counted("protocol = \"broadcast\"\nreclaim = \"lease\""),
        counted("protocol = \"ring\""),
    ] {
        let mut heard = 0;
        for seed in 0..60 {
            let origin = if seed % 3 == 0 { Origin::Amnesia } else { Origin::First };
            let mut world = World::new(&pool, &origin, seed);
            for _ in 0..400 {
                world.turn();
            }
            heard += world.heard;
        }
        assert!(heard > 5000, "{pool}: only {heard} things were understood");
    }
}
