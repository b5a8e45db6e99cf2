//! A world as a short list of words: numbers of things on the shelves of [`crate::parts::Parts`].

use quorate_core::NodeId;

use crate::council::Council;
use crate::scope::Budget;

/// One state of everything: nodes, disks, alarms, links, clients, the laws' memory, and how much
/// may still go wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct World {
    layout: Layout,
    words: Vec<u32>,
}

/// Where in a world things are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
}

impl Layout {
    const LAWS: usize = 0;
    const BUDGET: usize = 1;
    const COUNCIL: usize = 4;
    const NODES: usize = 5;
    /// Words per node: participant, boot number, disk, alarms.
    const PER_NODE: usize = 4;

    fn links(self) -> usize {
        Self::NODES + Self::PER_NODE * self.nodes
    }

    fn clients(self) -> usize {
        self.links() + self.nodes * self.nodes
    }

    /// How many words a world has.
    pub(crate) fn words(self) -> usize {
        self.clients() + self.clients
    }
}

/// One kind of misfortune, as a place in the budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Misfortune {
    Crash,
    Cancel,
    Renewal,
    Death,
    Lapse,
    Duplicate,
    Loss,
    EarlyRing,
    Suspicion,
    HangUp,
    Move,
    Rehome,
}

impl World {
    /// Everybody down, nothing on its way, nothing wanted.
    pub(crate) fn new(
        layout: Layout,
        budget: &Budget,
        council: Option<&Council>,
        laws: u32,
    ) -> Self {
        let mut world = World { layout, words: vec![0; layout.words()] };
        let Budget { crashes, cancels, renewals, deaths, lapses, duplicates, losses, .. } = *budget;
        let early_rings = budget.early_rings.unwrap_or(0);
        world.words[Layout::BUDGET] = u32::from_le_bytes([crashes, cancels, renewals, deaths]);
        world.words[Layout::BUDGET + 1] =
            u32::from_le_bytes([lapses, duplicates, losses, early_rings]);
        let (moves, rehomes) = council.map_or((0, 0), |council| (council.moves, council.rehomes));
        world.words[Layout::BUDGET + 2] =
            u32::from_le_bytes([budget.suspicions, budget.hangups, moves, rehomes]);
        world.set_laws(laws);
        world
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    pub(crate) fn copy_from(&mut self, words: &[u32]) {
        self.words.copy_from_slice(words);
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.layout.nodes).map(NodeId::from)
    }

    fn of_node(&self, node: NodeId, what: usize) -> usize {
        Layout::NODES + Layout::PER_NODE * node.index() + what
    }

    /// Who runs at a node; `None` if it is down.
    pub(crate) fn participant(&self, node: NodeId) -> Option<u32> {
        self.words[self.of_node(node, 0)].checked_sub(1)
    }

    pub(crate) fn set_participant(&mut self, node: NodeId, participant: Option<u32>) {
        let place = self.of_node(node, 0);
        self.words[place] = participant.map_or(0, |number| number + 1);
    }

    /// How often a node was started before.
    pub(crate) fn boot(&self, node: NodeId) -> u32 {
        self.words[self.of_node(node, 1)]
    }

    pub(crate) fn count_boot(&mut self, node: NodeId) {
        let place = self.of_node(node, 1);
        self.words[place] += 1;
    }

    /// A node's last durable record.
    pub(crate) fn disk(&self, node: NodeId) -> Option<u32> {
        self.words[self.of_node(node, 2)].checked_sub(1)
    }

    pub(crate) fn set_disk(&mut self, node: NodeId, record: Option<u32>) {
        let place = self.of_node(node, 2);
        self.words[place] = record.map_or(0, |number| number + 1);
    }

    /// The set of alarms armed at a node.
    pub(crate) fn alarms(&self, node: NodeId) -> u32 {
        self.words[self.of_node(node, 3)]
    }

    pub(crate) fn set_alarms(&mut self, node: NodeId, alarms: u32) {
        let place = self.of_node(node, 3);
        self.words[place] = alarms;
    }

    fn of_link(&self, from: NodeId, to: NodeId) -> usize {
        self.layout.links() + from.index() * self.layout.nodes + to.index()
    }

    /// What is on its way from one node to another.
    pub(crate) fn queue(&self, from: NodeId, to: NodeId) -> u32 {
        self.words[self.of_link(from, to)]
    }

    pub(crate) fn set_queue(&mut self, from: NodeId, to: NodeId, queue: u32) {
        let place = self.of_link(from, to);
        self.words[place] = queue;
    }

    /// All links, one after the other.
    pub(crate) fn queues(&self) -> &[u32] {
        &self.words[self.layout.links()..self.layout.clients()]
    }

    pub(crate) fn queues_mut(&mut self) -> &mut [u32] {
        let (links, clients) = (self.layout.links(), self.layout.clients());
        &mut self.words[links..clients]
    }

    pub(crate) fn client(&self, client: usize) -> u32 {
        self.words[self.layout.clients() + client]
    }

    pub(crate) fn clients(&self) -> &[u32] {
        &self.words[self.layout.clients()..self.layout.words()]
    }

    pub(crate) fn set_client(&mut self, client: usize, number: u32) {
        let place = self.layout.clients() + client;
        self.words[place] = number;
    }

    /// Where the control plane is.
    pub(crate) fn council(&self) -> u32 {
        self.words[Layout::COUNCIL]
    }

    pub(crate) fn set_council(&mut self, council: u32) {
        self.words[Layout::COUNCIL] = council;
    }

    pub(crate) fn laws(&self) -> u32 {
        self.words[Layout::LAWS]
    }

    pub(crate) fn set_laws(&mut self, laws: u32) {
        self.words[Layout::LAWS] = laws;
    }

    fn of_budget(misfortune: Misfortune) -> (usize, u32) {
        let place = misfortune as usize;
        (Layout::BUDGET + place / 4, place as u32 % 4 * 8)
    }

    /// How often this may still happen.
    pub(crate) fn left(&self, misfortune: Misfortune) -> u32 {
        let (word, shift) = Self::of_budget(misfortune);
        self.words[word] >> shift & 0xff
    }

    /// It happened once more.
    pub(crate) fn spend(&mut self, misfortune: Misfortune) {
        assert!(self.left(misfortune) > 0, "{misfortune:?} beyond the budget");
        let (word, shift) = Self::of_budget(misfortune);
        self.words[word] -= 1 << shift;
    }

    /// It cannot happen any more, whatever the budget says.
    pub(crate) fn rule_out(&mut self, misfortune: Misfortune) {
        let (word, shift) = Self::of_budget(misfortune);
        self.words[word] &= !(0xff << shift);
    }
}
