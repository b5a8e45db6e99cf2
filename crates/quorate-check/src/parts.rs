//! The shelves: one copy of everything that worlds are made of, and what is known about each.

use std::cmp::Ordering;
use std::fmt;

use quorate_core::{Entry, Explorable, LeaseEnd, Number, Numbers};
use quorate_laws::StatuteBook;

use crate::client::Client;
use crate::council::Chamber;
use crate::hash::Lookup;
use crate::numbers::{Names, NumberSet};
use crate::scope::{Network, Scope};
use crate::shelf::Shelf;

/// A message on its way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Parcel {
    /// Which message.
    pub(crate) message: u32,
    /// The boot number of the node that sent it.
    pub(crate) boot: u32,
    /// The lease it promises is over: its arbiter's alarm rang.
    pub(crate) expired: bool,
    /// If it promises a lease, and the scope has a council: since when that counts.
    pub(crate) born: u8,
}

/// A participant, seen from outside.
#[derive(Debug)]
pub(crate) struct ParticipantCard {
    pub(crate) numbers: u32,
    pub(crate) ledger: Vec<Entry>,
    /// Clients whose claims its books show as holding units, one bit each.
    pub(crate) holders: u8,
}

#[derive(Debug)]
pub(crate) struct MessageCard {
    numbers: u32,
    /// The client whose deadline it sets.
    pub(crate) promise: Option<usize>,
    /// How long that lasts, among the leases of the scope.
    pub(crate) span: u8,
}

/// Which clients must have stopped before an alarm rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lapse {
    /// No particular ones.
    Nothing,
    /// This one; `None` if the claim is not of this world.
    Of(Option<usize>),
    /// All that the participant's books do not show as holding units.
    Earlier,
    /// None; but licences that were asked for before it was armed are over.
    Licences,
}

/// Everything that occurs in some world. Number 0 of the shelves of queues, sets of alarms and
/// clients is the empty queue, the empty set and the client that has not claimed.
pub(crate) struct Parts<P: Explorable> {
    pub(crate) participants: Shelf<P, ParticipantCard>,
    pub(crate) messages: Shelf<P::Message, MessageCard>,
    pub(crate) records: Shelf<P::Durable, u32>,
    pub(crate) alarms: Shelf<P::Alarm, Lapse>,
    /// Each ascending by alarm, so that a place in it means the same under any names.
    pub(crate) alarm_sets: Shelf<Vec<u32>, ()>,
    /// In order of sending, or ascending by message if the network reorders.
    pub(crate) queues: Shelf<Vec<Parcel>, u32>,
    pub(crate) clients: Shelf<Client, u32>,
    pub(crate) laws: Shelf<StatuteBook, u32>,
    pub(crate) chambers: Shelf<Chamber, ()>,
    pub(crate) names: Names,
    renamed: Lookup<(Kind, u32, u32), u32>,
}

impl<P: Explorable> fmt::Debug for Parts<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// What has numbers in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Participant,
    Message,
    Record,
    Queue,
    Client,
    Laws,
}

impl<P: Explorable> Parts<P> {
    pub(crate) fn new() -> Self {
        let mut parts = Parts {
            participants: Shelf::new(),
            messages: Shelf::new(),
            records: Shelf::new(),
            alarms: Shelf::new(),
            alarm_sets: Shelf::new(),
            queues: Shelf::new(),
            clients: Shelf::new(),
            laws: Shelf::new(),
            chambers: Shelf::new(),
            names: Names::new(),
            renamed: Lookup::default(),
        };
        parts.alarm_sets.put(Vec::new(), |_| ());
        parts.chambers.put(Chamber::default(), |_| ());
        parts.put_queue(Vec::new());
        parts.put_client(Client::NotYet);
        parts
    }

    pub(crate) fn put_participant(&mut self, mut participant: P, scope: &Scope<P>) -> u32 {
        if let Some(known) = self.participants.find(&participant) {
            return known;
        }
        let numbers = self.names.put(NumberSet::collect(|see| participant.numbers(see)));
        participant.forget_totals();
        let mut ledger = Vec::new();
        participant.ledger(&mut |entry| ledger.push(entry));
        let holders = ledger
            .iter()
            .filter(|entry| !entry.standing.waits())
            .filter_map(|entry| scope.client_of(entry.claim))
            .fold(0, |bits, client| bits | 1 << client);
        self.participants.put(participant, |_| ParticipantCard { numbers, ledger, holders })
    }

    pub(crate) fn put_message(&mut self, mut message: P::Message, scope: &Scope<P>) -> u32 {
        if let Some(known) = self.messages.find(&message) {
            return known;
        }
        let numbers = self.names.put(NumberSet::collect(|see| message.numbers(see)));
        let promise = P::promise(&message).and_then(|claim| scope.client_of(claim));
        let span = P::lasts(&message).map_or(scope.span_of(0), |lasts| scope.span(lasts));
        self.messages.put(message, |_| MessageCard { numbers, promise, span })
    }

    pub(crate) fn put_record(&mut self, mut record: P::Durable) -> u32 {
        if let Some(known) = self.records.find(&record) {
            return known;
        }
        let numbers = self.names.put(NumberSet::collect(|see| record.numbers(see)));
        self.records.put(record, |_| numbers)
    }

    pub(crate) fn put_alarm(&mut self, alarm: P::Alarm, scope: &Scope<P>) -> u32 {
        self.alarms.put(alarm, |alarm| match P::lease_end(alarm) {
            LeaseEnd::Nothing => Lapse::Nothing,
            LeaseEnd::Of(claim) => Lapse::Of(scope.client_of(claim)),
            LeaseEnd::Earlier | LeaseEnd::Promises => Lapse::Earlier,
            LeaseEnd::Licences => Lapse::Licences,
        })
    }

    pub(crate) fn put_client(&mut self, mut client: Client) -> u32 {
        if let Some(known) = self.clients.find(&client) {
            return known;
        }
        let numbers = NumberSet::collect(|see| client.numbers(see));
        let numbers = self.names.put(numbers);
        self.clients.put(client, |_| numbers)
    }

    pub(crate) fn put_laws(&mut self, mut laws: StatuteBook) -> u32 {
        if let Some(known) = self.laws.find(&laws) {
            return known;
        }
        let numbers = self.names.put(NumberSet::collect(|see| laws.numbers(see)));
        self.laws.put(laws, |_| numbers)
    }

    /// A queue as it is; see [`Parts::queue_with`] for its order.
    pub(crate) fn put_queue(&mut self, queue: Vec<Parcel>) -> u32 {
        if let Some(known) = self.queues.find(&queue) {
            return known;
        }
        let mut numbers = Names::NONE;
        for parcel in &queue {
            numbers = self.names.union(numbers, self.messages.card(parcel.message).numbers);
        }
        self.queues.put(queue, |_| numbers)
    }

    /// A queue with one parcel more.
    pub(crate) fn queue_with(&mut self, queue: u32, parcel: Parcel, network: Network) -> u32 {
        let mut longer = self.queues.get(queue).clone();
        let place = match network {
            Network::Fifo => longer.len(),
            Network::Reordering => {
                longer.partition_point(|other| self.order(other, &parcel) == Ordering::Less)
            }
        };
        longer.insert(place, parcel);
        self.put_queue(longer)
    }

    fn order(&self, a: &Parcel, b: &Parcel) -> Ordering {
        let messages = self.messages.get(a.message).cmp(self.messages.get(b.message));
        messages.then((a.boot, a.expired, a.born).cmp(&(b.boot, b.expired, b.born)))
    }

    /// A set of alarms with one more, or one fewer.
    pub(crate) fn alarms_changed(&mut self, set: u32, alarm: u32, armed: bool) -> u32 {
        let alarms = self.alarm_sets.get(set);
        let value = self.alarms.get(alarm);
        let place = alarms.binary_search_by_key(&value, |&number| self.alarms.get(number));
        let changed = match (place, armed) {
            (Ok(_), true) | (Err(_), false) => return set,
            (Ok(place), false) => {
                let mut fewer = alarms.clone();
                fewer.remove(place);
                fewer
            }
            (Err(place), true) => {
                let mut more = alarms.clone();
                more.insert(place, alarm);
                more
            }
        };
        self.alarm_sets.put(changed, |_| ())
    }

    /// The numbers that occur in something.
    pub(crate) fn numbers(&self, kind: Kind, number: u32) -> u32 {
        match kind {
            Kind::Participant => self.participants.card(number).numbers,
            Kind::Message => self.messages.card(number).numbers,
            Kind::Record => *self.records.card(number),
            Kind::Queue => *self.queues.card(number),
            Kind::Client => *self.clients.card(number),
            Kind::Laws => *self.laws.card(number),
        }
    }

    /// The same thing with its numbers renamed.
    pub(crate) fn renamed(
        &mut self,
        kind: Kind,
        number: u32,
        renaming: u32,
        scope: &Scope<P>,
    ) -> u32 {
        if self.numbers(kind, number) == Names::NONE {
            return number;
        }
        if let Some(&known) = self.renamed.get(&(kind, number, renaming)) {
            return known;
        }
        let new = self.rename(kind, number, renaming, scope);
        self.renamed.insert((kind, number, renaming), new);
        new
    }

    fn rename(&mut self, kind: Kind, number: u32, renaming: u32, scope: &Scope<P>) -> u32 {
        let names = self.names.renaming(renaming);
        let mut rename = |number: Number<'_>| names.rename(number);
        match kind {
            Kind::Participant => {
                let mut participant = self.participants.get(number).clone();
                participant.numbers(&mut rename);
                self.put_participant(participant, scope)
            }
            Kind::Message => {
                let mut message = self.messages.get(number).clone();
                message.numbers(&mut rename);
                self.put_message(message, scope)
            }
            Kind::Record => {
                let mut record = self.records.get(number).clone();
                record.numbers(&mut rename);
                self.put_record(record)
            }
            Kind::Queue => {
                let mut queue = self.queues.get(number).clone();
                for parcel in &mut queue {
                    parcel.message = self.renamed(Kind::Message, parcel.message, renaming, scope);
                }
                self.put_queue(queue)
            }
            Kind::Client => {
                let mut client = self.clients.get(number).clone();
                client.numbers(&mut rename);
                self.put_client(client)
            }
            Kind::Laws => {
                let mut laws = self.laws.get(number).clone();
                laws.numbers(&mut rename);
                self.put_laws(laws)
            }
        }
    }
}
