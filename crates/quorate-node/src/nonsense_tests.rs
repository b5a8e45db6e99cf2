//! Nothing that a peer sends or a client says can stop a seat, of whatever protocol: real messages
//! of other seats with bytes changed, and renewals of anything, at any moment. Nor can a seat be
//! made to write down what it cannot read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Dice, Effect, Event, Fence, Line, Moment, NodeId, Order, Share, Shares, Unit,
    Units,
};
use quorate_wire::frame;

use crate::config::{Config, PoolDef};
use crate::seat::{AnySeat, FirstDue, Origin, Place, SeatEffect, SeatError, SeatEvent};

const NODES: usize = 3;
const UNITS: usize = 3;

struct World {
    dice: Dice,
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
            dice: Dice::new(seed),
            def: config.pool("p").unwrap(),
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
        self.now = self.now.after(Duration::from_millis(self.dice.index(200) as u64));
        let me = self.dice.index(NODES);
        match self.dice.index(24) {
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
            9 if self.dice.index(4) == 0 => {
                let claim = self.some_claim();
                self.step(me, Event::Cancel(claim));
            }
            9 if self.dice.index(4) == 0 => self.restart(me),
            9 => self.obey(me),
            _ if !self.post.is_empty() => {
                let which = self.dice.index(self.post.len());
                let (mut from, mut to, mut message) = self.post[which].clone();
                if self.dice.index(3) == 0 || self.post.len() > 200 {
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
        let units = Units::new(1 + self.dice.index(2) as u32, UNITS as u32).unwrap();
        let mut claim = Claim::any(id, units);
        claim.draw = self.dice.index(1000) as u64;
        if self.def.labels().is_some() {
            claim.wanted.movable = self.dice.index(2) == 0;
            let kind = ["a", "b"][self.dice.index(2)].to_owned();
            let labels = (self.dice.index(2) == 0)
                .then(|| Arc::new(BTreeMap::from([("kind".to_owned(), kind)])));
            let among = (0..UNITS as u32).map(Unit).collect();
            claim.wanted.lines = Some([Line { labels, ..Line::of(units, among) }].into());
        }
        claim
    }

    fn some_claim(&mut self) -> ClaimId {
        ClaimId { origin: 0, serial: 1 + self.dice.index(self.claims as usize + 1) as u64 }
    }

    /// What a client shows: what it has, some of it, or something else.
    fn shown(&mut self) -> (ClaimId, Shares) {
        let which = self.dice.index(self.has.len().max(1));
        let known = self.has.iter().nth(which).map(|(claim, shares)| (*claim, shares.clone()));
        let claim = known.as_ref().map(|(claim, _)| *claim);
        let claim = claim.filter(|_| self.dice.index(8) > 0).unwrap_or_else(|| self.some_claim());
        let mut shares: Vec<Share> = known.map(|(_, s)| s.as_slice().to_vec()).unwrap_or_default();
        let mut units: BTreeSet<Unit> = shares.iter().map(|share| share.unit).collect();
        match self.dice.index(4) {
            0 if shares.len() > 1 => drop(shares.remove(self.dice.index(shares.len()))),
            1 => {
                let unit = Unit(self.dice.index(UNITS) as u32);
                let fences = [Fence(1), Fence::floor(1), Fence(Fence::END.0 - 1)];
                let fence = fences[self.dice.index(fences.len())];
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
        let unit = Unit(self.dice.index(UNITS) as u32);
        let order = match self.dice.index(3) {
            0 => Order::Drain(unit),
            1 => Order::Restore(unit),
            _ => {
                let kind = ["a", "b"][self.dice.index(2)].to_owned();
                let labels =
                    (self.dice.index(2) == 0).then(|| BTreeMap::from([("kind".to_owned(), kind)]));
                Order::Relabel { unit, labels }
            }
        };
        let mut effects = Vec::new();
        self.seats[me].obey(self.now, order, &mut effects).expect("orders stop nobody");
        self.perform(me, effects);
    }

    fn spoil(&mut self, from: &mut NodeId, to: &mut NodeId, message: &mut [u8]) {
        for _ in 0..self.dice.index(4) {
            let at = self.dice.index(message.len());
            let byte = self.dice.index(256) as u8;
            message[at] = if self.dice.index(2) == 0 { byte } else { message[at] ^ 1 };
        }
        match self.dice.index(20) {
            0 => *from = NodeId::from(self.dice.index(NODES)),
            1 => *to = NodeId::from(self.dice.index(NODES)),
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
