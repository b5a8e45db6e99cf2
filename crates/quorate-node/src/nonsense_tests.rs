//! Nothing that a peer sends can stop a seat, of whatever protocol: real messages of other seats,
//! with bytes changed, at any moment.

use std::time::Duration;

use quorate_core::{Claim, ClaimId, Moment, NodeId, Units};
use quorate_wire::frame;

use crate::config::Config;
use crate::protocols::take_seat;
use crate::seat::{AnySeat, Deed, Happening, Origin, Place, SeatError};

const NODES: usize = 3;

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
    seats: Vec<Box<dyn AnySeat>>,
    now: Moment,
    post: Vec<(NodeId, NodeId, Vec<u8>)>,
    claims: u64,
    heard: u32,
}

impl World {
    fn new(protocol: &str, origin: &Origin, seed: u64) -> World {
        let members: Vec<String> = (0..NODES)
            .map(|n| format!("[[members]]\nname = \"n{n}\"\npeers = \"127.0.0.1:{}\"\n", n + 1))
            .collect();
        let text = format!(
            "cluster = \"c\"\nepoch = 1\nnode = \"n0\"\n\
             listen = {{ clients = \"127.0.0.1:9\", peers = \"127.0.0.1:1\" }}\n{}\
             [[pools]]\nname = \"p\"\nunits = 3\n{protocol}\n",
            members.concat()
        );
        let config = Config::parse_in_memory(&text).unwrap();
        let def = config.pool("p").unwrap();
        let mut world = World {
            chance: Chance(seed),
            seats: Vec::new(),
            now: Moment(1),
            post: Vec::new(),
            claims: 0,
            heard: 0,
        };
        for me in 0..NODES {
            let place = Place {
                name: "p".into(),
                me: NodeId::from(me),
                boot: 2,
                since: world.now,
                grace: Duration::from_secs(10),
            };
            let mut deeds = Vec::new();
            let seat = take_seat(place, def, NODES, origin.clone(), &mut deeds).unwrap();
            world.seats.push(seat);
            world.perform(me, deeds);
        }
        world
    }

    fn perform(&mut self, me: usize, deeds: Vec<Deed>) {
        for deed in deeds {
            // A node sends nothing to one that there is not, whoever made it try.
            if let Deed::Tell { to, packed, .. } = deed
                && to.index() < NODES
            {
                let (_, message) = frame::unpack(&packed).unwrap();
                self.post.push((NodeId::from(me), to, message.to_vec()));
            }
        }
    }

    fn step(&mut self, me: usize, happening: Happening<'_>) {
        let (mut deeds, told) = (Vec::new(), format!("{happening:?}"));
        match self.seats[me].step(self.now, happening, &mut deeds) {
            Ok(()) => self.heard += 1,
            Err(SeatError::Undecodable(_)) => {}
            Err(SeatError::Stopped(why)) => panic!("{told} stopped it: {why}"),
        }
        self.perform(me, deeds);
    }

    /// One thing happens; most often a message arrives, rarely as it was sent.
    fn turn(&mut self) {
        self.now = self.now.after(Duration::from_millis(self.chance.below(200) as u64));
        let me = self.chance.below(NODES);
        match self.chance.below(20) {
            0 | 1 => {
                self.claims += 1;
                let id = ClaimId { origin: 0, serial: self.claims };
                let units = Units::new(1 + self.chance.below(2) as u32, 3).unwrap();
                let mut claim = Claim::any(id, units);
                claim.draw = self.chance.below(1000) as u64;
                self.step(me, Happening::Claim(claim));
            }
            2 => {
                let serial = 1 + self.chance.below(self.claims as usize + 1) as u64;
                self.step(me, Happening::Release(ClaimId { origin: 0, serial }));
            }
            3 | 4 => {
                self.now = self.seats[me].due().map_or(self.now, |at| self.now.max(at));
                self.step(me, Happening::Ring);
            }
            5 => self.step(me, Happening::Suspect(NodeId::from((me + 1) % NODES))),
            6 => self.step(me, Happening::Trust(NodeId::from((me + 1) % NODES))),
            _ if !self.post.is_empty() => {
                let which = self.chance.below(self.post.len());
                let (mut from, mut to, mut message) = self.post[which].clone();
                if self.chance.below(3) == 0 || self.post.len() > 200 {
                    self.post.swap_remove(which);
                }
                self.spoil(&mut from, &mut to, &mut message);
                if from != to {
                    self.step(to.index(), Happening::Hear { from, message: &message });
                }
            }
            _ => {}
        }
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

#[test]
fn nothing_that_a_peer_sends_can_stop_a_seat() {
    for protocol in [
        "protocol = \"central\"\narbiter = \"n1\"",
        "protocol = \"arbiter\"",
        "protocol = \"arbiter\"\nmode = \"arbiter\"\nfamily = \"threshold\"\nsurvive = 0",
        "protocol = \"arbiter\"\nmode = \"ticket\"",
        "protocol = \"table\"",
        "protocol = \"broadcast\"",
        "protocol = \"broadcast\"\nreclaim = \"lease\"",
        "protocol = \"ring\"",
    ] {
        let mut heard = 0;
        for seed in 0..60 {
            let origin = if seed % 3 == 0 { Origin::Amnesia } else { Origin::First };
            let mut world = World::new(protocol, &origin, seed);
            for _ in 0..400 {
                world.turn();
            }
            heard += world.heard;
        }
        assert!(heard > 5000, "{protocol}: only {heard} things were understood");
    }
}
