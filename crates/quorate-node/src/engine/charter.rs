//! What the charter says to this node's seats, and what they ask of it. The engine passes words on
//! in their order, and keeps none back: what a licence rests on was told before (charter spec S2).

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_charter::Group;
use quorate_core::{Charter, Event, Moment, NodeId, Tenure};
use quorate_wire::glance::What;
use tokio::sync::mpsc;

use super::Engine;
use super::pools::Pool;
use crate::charter::{FromCharter, Hall, Licence, Seats};
use crate::clock;
use crate::config::{Defined, Member};

/// The way to this node's part of the control plane, and what it has told.
#[derive(Debug)]
pub(crate) struct Chartered {
    pub(crate) hall: Arc<Hall>,
    pub(crate) asks: mpsc::UnboundedSender<Licence>,
}

/// What the engine knows of the charter.
#[derive(Debug, Default)]
pub(super) struct Known {
    way: Option<Chartered>,
    seats: Arc<Seats>,
    /// The pools of each group that are in use here.
    pools: BTreeMap<Group, Vec<usize>>,
    /// Who decides since lately, and over what.
    lately: BTreeMap<usize, NodeId>,
}

impl Known {
    pub(super) fn new(way: Option<Chartered>) -> Self {
        Known { way, ..Known::default() }
    }

    pub(super) fn hall(&self) -> Option<&Hall> {
        self.way.as_ref().map(|way| &*way.hall)
    }

    /// Who decides for a group.
    pub(super) fn tenure(&self, group: Group) -> Option<Tenure> {
        self.seats.get(group)
    }

    /// Homes of a pool ask whoever decides once more in a moment.
    pub(super) fn asks_again(&mut self, seat: usize, decider: NodeId) {
        self.lately.insert(seat, decider);
    }

    /// Who decides over a pool whose seat moves.
    fn decider(&self, pool: &str) -> Option<NodeId> {
        self.seats.get(Group::of(pool)).map(|tenure| tenure.node)
    }
}

impl Engine {
    pub(super) fn on_charter(&mut self, word: FromCharter) {
        match word {
            FromCharter::Applied(seats, defined, joined) => {
                self.on_joined(joined);
                let before = Arc::clone(&self.charter.seats);
                // What pools are comes before who decides over them (charter spec 3).
                self.on_amended(&defined);
                // Who decides first: a seat that is over learns of no pools that came after it.
                self.on_applied(seats);
                self.on_defined(&before, defined);
            }
            FromCharter::Settled { last } => self.ask_again(last),
            FromCharter::Members(news) => {
                for (name, text) in news {
                    tracing::info!(member = name, "{text}");
                    self.history.note_node(What::Member, &name, &text);
                }
                self.metrics.mesh(self.members(), self.peers.connected());
            }
            FromCharter::UpTo(index) => {
                if let Some(hall) = self.charter.hall() {
                    hall.hears_up_to(index);
                }
            }
            FromCharter::Licensed(licences) => {
                for Licence { group, term, asked } in licences {
                    for seat in self.charter.pools.get(&group).cloned().unwrap_or_default() {
                        self.step(seat, Event::Charter(Charter::Licensed { term, asked }));
                    }
                }
            }
        }
    }

    /// Members that the charter names and this node has not heard of. They are members to every
    /// seat before it hears of any entry after theirs: what one of them was granted by whoever
    /// decided before, that one granted knowing of it, hence before it applied a later entry, and
    /// whoever calls the roll of a later term asks all that joined before (charter spec S6).
    fn on_joined(&mut self, mut joined: Vec<Member>) {
        // Some may be on their way to this node a second time.
        joined.retain(|member| self.config.members.place(&member.name).is_none());
        if joined.is_empty() {
            return;
        }
        let members = self.config.members.len() + joined.len();
        // Room first: others hear of the new ones by the list, and then speak of them.
        self.peers.grow(members);
        self.watch.grow(members, clock::now());
        for pool in &mut self.pools {
            pool.seat.grow(members);
        }
        joined.into_iter().for_each(|member| self.config.members.push(member));
        self.metrics.mesh(self.members(), self.peers.connected());
    }

    /// How many members there are, without those that were removed.
    pub(super) fn members(&self) -> usize {
        self.config.members.living()
    }

    /// Homes ask whoever decides since lately once more.
    fn ask_again(&mut self, last: bool) {
        for (seat, node) in self.charter.lately.clone() {
            self.step(seat, Event::Trust(node));
        }
        if last {
            self.charter.lately.clear();
        }
    }

    fn on_applied(&mut self, seats: Arc<Seats>) {
        let before = std::mem::replace(&mut self.charter.seats, Arc::clone(&seats));
        // A node that goes can be the end of a hundred seats: said once of all.
        let mut news: BTreeMap<(NodeId, bool), Vec<usize>> = BTreeMap::new();
        for (group, pools) in self.charter.pools.clone() {
            let (was, Some(is)) = (before.get(group), seats.get(group)) else { continue };
            if was == Some(is) {
                continue;
            }
            let moved = was.is_none_or(|was| was.node != is.node);
            for seat in pools {
                self.step(seat, Event::Charter(Charter::Applied(is)));
                self.charter.lately.insert(seat, is.node);
                news.entry((is.node, moved)).or_default().push(seat);
            }
        }
        for ((node, moved), pools) in news {
            self.metrics.seat_moves.inc_by(pools.len() as u64);
            let name = self.name_of(node).to_owned();
            let text = match moved {
                true => format!("{name} decides from now on"),
                false => format!("{name} decides in a new term"),
            };
            self.tell_news(What::Seated, &text, &pools);
        }
    }

    /// The charter names these pools. Those that it did not name when it was last looked at are
    /// made; if this life of this node has decided for their group since before that, nobody can
    /// have decided over them, and they open at once.
    fn on_defined(&mut self, before: &Seats, defined: Arc<Defined>) {
        let known = self.config.added.now();
        self.config.added.replace(Arc::clone(&defined));
        // Where entries were lost, this pool may have been there, and granted, by one of them.
        let first = !self.charter.seats.recovered;
        let mine =
            |tenure: &Tenure| first && (tenure.node, tenure.boot) == (self.config.me, self.boot);
        let mut made = Vec::new();
        for (name, added) in defined.iter() {
            if known.contains_key(name) || self.by_name.contains_key(name.as_str()) {
                continue;
            }
            let group = Group::of(name);
            let is = self.charter.seats.get(group);
            made.push((name, added, is.filter(|is| before.get(group) == Some(*is) && mine(is))));
        }
        let mut news = Vec::new();
        for (name, added, born) in made {
            match self.take_seat(&Arc::from(name.as_str()), &added.def, born) {
                Ok(seat) => news.push(seat),
                Err(error) => tracing::error!(pool = name, %error, "its seat cannot be taken"),
            }
        }
        if !known.is_empty() || before.version > 0 {
            self.tell_news(What::Amended, "the pool was made", &news);
        }
    }

    /// A seat was taken: if the charter says who decides, it hears it. Who decides over a pool
    /// since it was made succeeds nobody.
    pub(super) fn tell_tenure(&mut self, seat: usize, born: Option<Tenure>) {
        if !self.pools[seat].def.protocol.about.seat_moves {
            return;
        }
        let group = Group::of(&self.pools[seat].name);
        self.charter.pools.entry(group).or_default().push(seat);
        let born = born.map(|tenure| Tenure { after: None, ..tenure });
        if let Some(tenure) = born.or(self.charter.seats.get(group)) {
            self.step(seat, Event::Charter(Charter::Applied(tenure)));
        }
    }

    /// Whether this node answers for how many units a pool has.
    pub(super) fn answers_for(&self, pool: &Pool) -> bool {
        let (me, members) = (self.config.me, self.config.members.len());
        match pool.def.protocol.about.seat_moves {
            true => self.charter.decider(&pool.name) == Some(me),
            false => pool.def.protocol.answers_for(&pool.name, me, members),
        }
    }

    /// A seat wants to be told that it may decide. Without a part in the charter nobody answers,
    /// and it decides nothing.
    pub(super) fn ask_licence(&mut self, seat: usize, term: u32, asked: Moment) {
        let group = Group::of(&self.pools[seat].name);
        if let Some(way) = &self.charter.way {
            // If it is gone, the node is stopping.
            let _ = way.asks.send(Licence { group, term, asked });
        }
    }
}
