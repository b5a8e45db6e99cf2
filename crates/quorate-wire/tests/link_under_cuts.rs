//! Links under cuts, delays and restarts, from many seeds. What must hold is the contract of
//! quorate-core: between two incarnations nothing is lost, repeated or reordered; nothing crosses
//! from one incarnation to another; nothing of an old incarnation is heard after its successor.
//! What is fleeting may be lost, and arrives over the connection it was sent on or never. A buffer
//! that runs full gives up what is outstanding, and nothing that is sent later.
//!
//! The world is this file's own: connections are all there is, and all that can happen to them
//! does. `link_under_the_simulator` runs a whole protocol over links. A seed draws everything (what
//! is sent, delivered, cut, made and restarted, in which order), and the same seed gives the same
//! run.

use std::collections::{BTreeMap, VecDeque};

use quorate_core::Dice;
use quorate_wire::link::{Bound, Cargo, Link, LinkError, Meeting, SendError};
use quorate_wire::{Life, Resume};

/// The place of a message that is too long.
const TOO_LONG: u64 = u64::MAX;
const BOUND: Bound = Bound { messages: 20, bytes: 1 << 20, each: 9 };

/// A message says who sent it, to whom it was meant, and its place among those.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Message {
    from_boot: u32,
    to_boot: u32,
    place: u64,
    /// Which connection it belongs to, if it is fleeting.
    only_on: Option<u64>,
}

impl Cargo for Message {
    fn size(&self) -> usize {
        if self.place == TOO_LONG { BOUND.each + 1 } else { 1 }
    }

    fn is_fleeting(&self) -> bool {
        self.only_on.is_some()
    }
}

fn life(boot: u32) -> Life {
    Life { boot, mark: u64::from(boot) * 7 }
}

enum Frame {
    Hello(Resume),
    Data(u64, u64, Message),
    Ack(u64),
}

/// A connection: one queue of frames for each direction, and how far the handshake has got.
struct Connection {
    queues: [VecDeque<Frame>; 2],
    met: [bool; 2],
}

struct World {
    seed: u64,
    dice: Dice,
    boots: [u32; 2],
    links: [Link<Message>; 2],
    connection: Option<Connection>,
    connections: u64,
    /// What was accepted for (sender, its boot, the receiver's boot), and how much has arrived.
    sent: BTreeMap<(usize, u32, u32), u64>,
    arrived: BTreeMap<(usize, u32, u32), u64>,
    /// Up to where messages may be missing, since a buffer ran full.
    given_up: BTreeMap<(usize, u32, u32), u64>,
    /// The newest incarnation each side has heard a message or greeting from.
    heard: [u32; 2],
    resumed: u32,
    /// Fleeting messages that were taken, and those that arrived.
    fleeting: [u64; 2],
}

impl World {
    fn new(seed: u64) -> Self {
        World {
            seed,
            dice: Dice::new(seed),
            boots: [1, 1],
            links: [Link::new(life(1), BOUND), Link::new(life(1), BOUND)],
            connection: None,
            connections: 0,
            sent: BTreeMap::new(),
            arrived: BTreeMap::new(),
            given_up: BTreeMap::new(),
            heard: [0, 0],
            resumed: 0,
            fleeting: [0, 0],
        }
    }

    fn cut(&mut self) {
        self.connection = None;
        self.links.iter_mut().for_each(Link::disconnect);
    }

    fn connect(&mut self) {
        self.cut();
        let hello = |link: &Link<Message>| VecDeque::from([Frame::Hello(link.resume())]);
        let queues = [hello(&self.links[0]), hello(&self.links[1])];
        self.connections += 1;
        self.connection = Some(Connection { queues, met: [false, false] });
    }

    fn restart(&mut self, side: usize) {
        self.cut();
        self.boots[side] += 1;
        self.links[side] = Link::new(life(self.boots[side]), BOUND);
        self.heard[side] = 0;
    }

    fn send(&mut self, side: usize) {
        let (from_boot, seed) = (self.boots[side], self.seed);
        let Some(to_boot) = self.links[side].peer_boot() else {
            let message = Message { from_boot, to_boot: 0, place: 0, only_on: None };
            assert_eq!(self.links[side].send(message), Err(SendError::NobodyThere), "{seed:#x}");
            return;
        };
        if self.dice.below(3) == 0 {
            return self.send_fleeting(side, to_boot);
        }
        let place = self.sent.entry((side, from_boot, to_boot)).or_default();
        let message = Message { from_boot, to_boot, place: *place + 1, only_on: None };
        match self.links[side].send(message) {
            Ok(()) => *place += 1,
            Err(error) => return self.overflow(side, error),
        }
        self.flush(side);
    }

    /// Everything outstanding is given up, and the connection with it.
    fn overflow(&mut self, side: usize, error: SendError) {
        assert_eq!(error, SendError::Full(BOUND.messages), "{:#x}", self.seed);
        assert_eq!(self.links[side].outstanding(), 0, "{:#x}", self.seed);
        let pair = (side, self.boots[side], self.links[side].peer_boot().unwrap());
        self.given_up.insert(pair, self.sent.get(&pair).copied().unwrap_or(0));
        self.cut();
    }

    /// Taken only where there is a connection to take it.
    fn send_fleeting(&mut self, side: usize, to_boot: u32) {
        let only_on = Some(self.connections);
        let message = Message { from_boot: self.boots[side], to_boot, place: 0, only_on };
        let met = self.connection.as_ref().is_some_and(|connection| connection.met[side]);
        match self.links[side].send(message) {
            Ok(()) => self.fleeting[0] += 1,
            Err(SendError::NotConnected) => assert!(!met, "seed {:#x}", self.seed),
            Err(error) => return self.overflow(side, error),
        }
        self.flush(side);
    }

    fn flush(&mut self, side: usize) {
        let Some(connection) = &mut self.connection else { return };
        if !connection.met[side] {
            return;
        }
        while let Some((seq, ack, message)) = self.links[side].transmit() {
            connection.queues[side].push_back(Frame::Data(seq, ack, *message));
        }
        if self.links[side].unsaid() > 0
            && let Some(ack) = self.links[side].ack()
        {
            connection.queues[side].push_back(Frame::Ack(ack));
        }
    }

    /// The first frame on its way to `side` arrives.
    fn deliver(&mut self, side: usize) {
        let (other, seed) = (1 - side, self.seed);
        let Some(connection) = &mut self.connection else { return };
        let Some(frame) = connection.queues[other].pop_front() else { return };
        match frame {
            Frame::Hello(theirs) => {
                let meeting = self.links[side].connect(theirs);
                assert!(meeting.is_ok(), "seed {seed:#x}: {meeting:?}");
                self.resumed += u32::from(meeting == Ok(Meeting::Resumed));
                connection.met[side] = true;
                self.heard[side] = theirs.life.boot;
            }
            Frame::Data(seq, ack, message) => {
                let fresh = self.links[side].hear(seq, ack);
                assert!(fresh.is_ok(), "seed {seed:#x}: {fresh:?}");
                if fresh == Ok(true) {
                    self.arrive(side, message);
                }
            }
            Frame::Ack(ack) => {
                let told = self.links[side].acknowledge(ack);
                assert!(told.is_ok(), "seed {seed:#x}: {told:?}");
            }
        }
        self.flush(side);
    }

    fn arrive(&mut self, side: usize, message: Message) {
        let (other, seed) = (1 - side, self.seed);
        assert_eq!(message.to_boot, self.boots[side], "seed {seed:#x}: meant for somebody else");
        assert_eq!(message.from_boot, self.heard[side], "seed {seed:#x}: from a ghost");
        if let Some(connection) = message.only_on {
            assert_eq!(connection, self.connections, "seed {seed:#x}: it outlived its connection");
            self.fleeting[1] += 1;
            return;
        }
        let pair = (other, message.from_boot, message.to_boot);
        let place = self.arrived.entry(pair).or_default();
        let next = message.place == *place + 1;
        let gap = message.place > *place && self.given_up.get(&pair) >= Some(&(message.place - 1));
        assert!(next || gap, "seed {seed:#x}: lost, repeated or out of order");
        *place = message.place;
    }

    /// One run: chaos, then calm, after which everything between the living has arrived.
    fn run(mut self) -> (u32, [u64; 2], usize) {
        let (cuts, restarts) = (1 + self.dice.below(30), self.dice.below(6));
        for _ in 0..400 {
            let side = self.dice.below(2) as usize;
            match self.dice.below(100) {
                roll if roll < cuts => self.cut(),
                roll if roll < cuts + restarts => self.restart(side),
                roll if roll < cuts + restarts + 15 => {
                    if self.connection.is_none() || self.dice.below(8) == 0 {
                        self.connect();
                    }
                }
                roll if roll < cuts + restarts + 40 => self.send(side),
                _ => self.deliver(side),
            }
        }
        self.connect();
        for _ in 0..200 {
            self.deliver(0);
            self.deliver(1);
        }
        for side in 0..2 {
            let pair = (side, self.boots[side], self.boots[1 - side]);
            let (sent, arrived) = (self.sent.get(&pair), self.arrived.get(&pair));
            let missing = sent <= self.given_up.get(&pair).or(Some(&0));
            assert!(
                missing || sent == arrived,
                "seed {:#x}: {pair:?} {sent:?} {arrived:?}",
                self.seed
            );
            assert_eq!(self.links[side].outstanding(), 0, "seed {:#x}", self.seed);
        }
        (self.resumed, self.fleeting, self.given_up.len())
    }
}

/// To see a failure again, put its seed in here alone.
#[test]
fn a_reconnect_loses_and_repeats_nothing() {
    let (mut resumed, mut taken, mut arrived, mut full) = (0, 0, 0, 0);
    for seed in 0..3000 {
        let (again, fleeting, overflows) = World::new(seed).run();
        full += overflows;
        resumed += again;
        taken += fleeting[0];
        arrived += fleeting[1];
    }
    assert!(full > 100, "buffers ran full {full} times only");
    assert!(resumed > 10_000, "conversations were resumed {resumed} times only");
    assert!(arrived > 5000 && taken > arrived + 1000, "{arrived} of {taken} fleeting arrived");
}

#[test]
fn an_incarnation_that_was_succeeded_is_refused() {
    let mut link: Link<Message> = Link::new(life(1), BOUND);
    let resume = |boot| Resume { life: life(boot), knows: None, received: 0 };
    assert_eq!(link.connect(resume(4)), Ok(Meeting::New { dropped: 0 }));
    link.send(Message { from_boot: 1, to_boot: 4, place: 1, only_on: None }).unwrap();
    assert_eq!(link.connect(resume(5)), Ok(Meeting::New { dropped: 1 }));
    assert!(link.connect(resume(4)).is_err());
    let twin = Resume { life: Life { boot: 5, mark: 1 }, knows: None, received: 0 };
    assert_eq!(link.connect(twin), Err(LinkError::Twins(5)));
    assert!(!link.is_connected());
    assert_eq!(link.peer_boot(), Some(5));
}

#[test]
fn nonsense_from_a_peer_closes_the_connection_and_no_more() {
    let mut link: Link<Message> = Link::new(life(1), BOUND);
    assert!(link.hear(1, 0).is_err(), "before anybody said hello");
    link.connect(Resume { life: life(2), knows: None, received: 0 }).unwrap();
    assert!(link.acknowledge(1).is_err(), "what was not sent cannot be acknowledged");
    assert!(link.hear(2, 0).is_err(), "a gap");
    assert!(link.hear(u64::MAX, u64::MAX).is_err());
    let all = Resume { life: life(2), knows: Some(life(1)), received: u64::MAX };
    assert!(link.connect(all).is_err());
    let nothing = Resume { life: life(2), knows: Some(life(1)), received: 0 };
    assert_eq!(link.connect(nothing), Ok(Meeting::Resumed));
    // Nor can what was sent and has not gone out yet.
    link.send(Message { from_boot: 1, to_boot: 2, place: 1, only_on: None }).unwrap();
    assert!(link.acknowledge(1).is_err() && link.hear(1, 1).is_err());
    assert_eq!(link.transmit().map(|(seq, ..)| seq), Some(1), "it goes out nevertheless");
    assert_eq!(link.acknowledge(1), Ok(()));
    assert_eq!((link.outstanding(), link.transmit()), (0, None));
}

#[test]
fn what_no_frame_can_carry_is_lost_and_nothing_else() {
    let mut link: Link<Message> = Link::new(life(1), BOUND);
    link.connect(Resume { life: life(2), knows: None, received: 0 }).unwrap();
    let message = |place| Message { from_boot: 1, to_boot: 2, place, only_on: None };
    link.send(message(1)).unwrap();
    assert_eq!(link.send(message(TOO_LONG)), Err(SendError::TooLong(BOUND.each + 1)));
    link.send(message(2)).unwrap();
    for place in [1, 2] {
        assert_eq!(link.transmit().map(|(seq, _, sent)| (seq, sent.place)), Some((place, place)));
    }
}
