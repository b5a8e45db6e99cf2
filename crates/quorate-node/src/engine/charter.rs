//! What the charter says to this node's seats, and what they ask of it. The engine passes words on
//! in their order, and keeps none back: what a licence rests on was told before (charter spec S2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_api::SeatView;
use quorate_charter::Group;
use quorate_core::{Charter, Decided, Event, Moment, NodeId, Tenure, Unused};
use quorate_wire::glance::What;
use tokio::sync::mpsc;

use super::Engine;
use super::licences::Licences;
use super::pools::Pool;
use super::shadows::Unshown;
use crate::charter::{self, Amendments, FromCharter, Hall, Seated, Seats};
use crate::clock;
use crate::config::{Member, PoolDef};

/// The way to this node's part of the control plane, and what it has told.
#[derive(Debug)]
pub(crate) struct Chartered {
    pub(crate) hall: Arc<Hall>,
    /// Asks for licences that count since then.
    pub(crate) asks: mpsc::UnboundedSender<Moment>,
}

/// What the engine knows of the charter.
#[derive(Debug, Default)]
pub(super) struct Known {
    way: Option<Chartered>,
    seats: Arc<Seats>,
    /// The pools of each group that are in use here.
    pools: BTreeMap<Group, Vec<usize>>,
    /// Who decides or shadows since lately, and over what.
    lately: BTreeSet<(usize, NodeId)>,
    /// Who decides for each group, and since when this node knows that.
    decides: BTreeMap<Group, Decided>,
    pub(super) unshown: Unshown,
    pub(super) licences: Licences,
}

impl Known {
    pub(super) fn new(way: Option<Chartered>) -> Self {
        Known { way, ..Known::default() }
    }

    pub(super) fn hall(&self) -> Option<&Hall> {
        self.way.as_ref().map(|way| &*way.hall)
    }

    /// Whether it says of any group who decides, as far as this node knows.
    pub(super) fn has_begun(&self) -> bool {
        self.seats.all().next().is_some()
    }

    /// Who decides for a group.
    pub(super) fn tenure(&self, group: Group) -> Option<Tenure> {
        self.seats.get(group).map(|seated| seated.tenure)
    }

    /// Asks for licences that count since then. Without a part in the charter nobody answers, and
    /// nothing is decided.
    pub(super) fn ask(&self, since: Moment) {
        if let Some(way) = &self.way {
            // If it is gone, the node is stopping.
            let _ = way.asks.send(since);
        }
    }

    /// The pools of each group that are in use here.
    pub(super) fn pools(&self) -> &BTreeMap<Group, Vec<usize>> {
        &self.pools
    }

    /// Who decides for a group, and who shadows it.
    pub(super) fn seated_of(&self, group: Group) -> Option<Seated> {
        self.seats.get(group)
    }

    /// Homes of a pool ask whoever decides once more in a moment.
    pub(super) fn asks_again(&mut self, seat: usize, decider: NodeId) {
        self.lately.insert((seat, decider));
    }

    /// Who decides over a pool whose seat moves.
    pub(super) fn decider(&self, pool: &str) -> Option<NodeId> {
        self.seated(pool).map(|seated| seated.tenure.node)
    }

    /// The same, and who shadows it.
    pub(super) fn seated(&self, pool: &str) -> Option<Seated> {
        self.seats.get(Group::of(pool))
    }
}

impl Engine {
    pub(super) fn on_charter(&mut self, word: FromCharter) {
        match word {
            FromCharter::Applied(seats, Amendments { written, changed, made }, joined) => {
                self.on_joined(joined);
                let now = clock::now();
                for name in changed.iter().chain(&made) {
                    self.charter.licences.note_change(Group::of(name), now);
                }
                // What pools are comes before who decides over them (charter spec 3).
                self.config.added.replace(written);
                self.on_amended(&changed);
                self.on_applied(seats);
                self.tell_made(&made);
            }
            FromCharter::Unpinned => self.on_unpinned(),
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
            FromCharter::Licensed(licences) => self.on_licensed(&licences),
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
        let (at, version) = (clock::now(), seats.version);
        for (group, is) in seats.all() {
            if before.get(group).is_none_or(|was| was.tenure != is.tenure) {
                self.charter.decides.insert(group, Decided { tenure: is.tenure, at, version });
            }
        }
        // A node that goes can be the end of a hundred seats: said once of all.
        let mut news: BTreeMap<(u8, String), Vec<usize>> = BTreeMap::new();
        for (group, is) in seats.all() {
            let was = before.get(group);
            let Some(pools) = self.charter.pools.get(&group).filter(|_| was != Some(is)) else {
                continue;
            };
            let pools = pools.clone();
            let renewed = was.is_none_or(|was| was.tenure != is.tenure);
            let named = renewed || was.and_then(|was| was.naming()) != is.naming();
            if named {
                self.charter.unshown.forget(group);
            }
            for seat in &pools {
                self.learn_decider(*seat);
                if renewed {
                    self.decides_no_more(*seat);
                    self.step(*seat, Event::Charter(is.said()));
                    self.decides_from(*seat, &is.tenure, at);
                    self.charter.lately.insert((*seat, is.tenure.node));
                }
                self.tell_shadow(*seat, is, named);
            }
            for text in self.seat_news(was, is) {
                news.entry(text).or_default().extend(&pools);
            }
            if renewed {
                self.metrics.seat_moves.inc_by(pools.len() as u64);
            }
        }
        for ((_, text), pools) in news {
            self.tell_news(What::Seated, &text, &pools);
        }
        // Of groups without pools in use here, too.
        for (group, is) in seats.all() {
            if before.get(group) != Some(is) {
                self.see_whole(group);
            }
        }
    }

    /// What people should know of it, in this order.
    fn seat_news(&self, was: Option<Seated>, is: Seated) -> Vec<(u8, String)> {
        let (mut news, name) = (Vec::new(), |node| self.name_of(node));
        let before = was.map(|was| was.tenure);
        let decides = name(is.tenure.node);
        if before.is_none_or(|before| before.node != is.tenure.node) {
            news.push((0, format!("{decides} decides from now on")));
        } else if before != Some(is.tenure) {
            news.push((0, format!("{decides} decides in a new term")));
        }
        let whole = |seated: Seated| seated.shadow.filter(|it| it.whole).map(|it| it.node);
        let stood_by = was.filter(|was| was.tenure == is.tenure).and_then(whole);
        match whole(is) {
            Some(node) if stood_by != Some(node) => {
                news.push((1, format!("{} would decide at once without {decides}", name(node))));
            }
            None if stood_by.is_some() => {
                news.push((1, format!("nobody would decide at once without {decides} any more")));
            }
            _ => {}
        }
        news
    }

    /// Who decides over a pool in use here, and who would without it.
    pub(super) fn seat_view(&self, pool: &Pool) -> Option<SeatView> {
        let seated = self.charter.seated(&pool.name)?;
        // The charter speaks of groups; of a pool that has just come into use its seat knows more.
        let shadow = || pool.seat.health(clock::now()).shadow;
        let mine = seated.tenure.node == self.config.me;
        let knows = !mine || shadow().is_some_and(|shadow| shadow.whole);
        charter::seat_view(&self.config, seated, &pool.def, knows)
    }

    /// Pools were made. Their seats are when somebody uses them.
    fn tell_made(&mut self, made: &[String]) {
        for name in made {
            if self.config.in_file(name).is_some() {
                let why = "the files have a pool of this name, and that one counts";
                tracing::error!(pool = name, why, "this node cannot have a pool of the charter");
            }
        }
        let [first, more @ ..] = made else { return };
        tracing::info!(pool = %first, more = more.len(), "the pool was made");
        self.history.note_made(first, more);
    }

    /// Who decides over a pool that comes into use here now, if this node does and nobody can have
    /// any of it: then it need not ask around first (charter spec S19). Where entries were lost, it
    /// may have been made, and granted, by one of them; and one that was changed may have been made
    /// long before that, with another lease.
    pub(super) fn unpromised(&self, name: &str, def: &PoolDef) -> Option<Tenure> {
        let (group, charter) = (Group::of(name), self.config.charter?);
        let decided = self.charter.decides.get(&group)?;
        if !def.protocol.about.seat_moves || !self.is_mine(&decided.tenure) {
            return None;
        }
        let added = self.config.added(name);
        let changed = added.as_ref().is_some_and(|added| added.edition > 0);
        let made = added.filter(|_| !self.charter.seats.recovered).map(|added| added.generation);
        let lease = def.grace.max(self.before.by(name));
        let outlived = decided.outlives(self.now(), charter.licence, lease);
        decided.opens(Unused { made, changed, outlived })
    }

    /// Whether this life of this node decides over any pool in use here.
    pub(super) fn decides_anything(&self) -> bool {
        let mine = |group: &Group| {
            self.charter.seats.get(*group).is_some_and(|it| self.is_mine(&it.tenure))
        };
        self.charter.pools.keys().any(mine)
    }

    /// Whether this life of this node decides.
    pub(super) fn is_mine(&self, tenure: &Tenure) -> bool {
        (tenure.node, tenure.boot) == (self.config.me, self.boot)
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
        let Some(is) = self.charter.seats.get(group) else { return self.tell_pinned(seat) };
        self.step(seat, Event::Charter(Charter::Applied(born.unwrap_or(is.tenure))));
        let known = self.charter.decides.get(&group).map(|since| since.at);
        self.decides_from(seat, &is.tenure, known.unwrap_or_default());
        self.tell_shadow(seat, is, true);
    }

    /// Before the charter says who decides, this node may by its file (charter spec S18).
    fn tell_pinned(&mut self, seat: usize) {
        let pool = &self.pools[seat];
        let pinned = pool.def.protocol.pinned(&pool.name, self.config.members.len());
        let is_pinned = self.charter.hall().is_some_and(Hall::is_pinned);
        if pinned == Some(self.config.me) && is_pinned {
            let (term, after) = (Tenure::PINNED, None);
            let tenure = Tenure { term, after, node: self.config.me, boot: self.boot };
            self.step(seat, Event::Charter(Charter::Applied(tenure)));
        }
    }

    /// This node has given up what files let it decide.
    fn on_unpinned(&mut self) {
        for seat in 0..self.pools.len() {
            if self.pools[seat].def.protocol.about.pinned {
                self.step(seat, Event::Charter(Charter::Unpinned));
            }
        }
        if let Some(hall) = self.charter.hall() {
            hall.has_stopped();
        }
    }

    /// Who decides over a pool whose seat moves, or does until it can.
    pub(super) fn decides_now(&self, pool: &Pool) -> Option<NodeId> {
        let pinned = || pool.def.protocol.pinned(&pool.name, self.config.members.len());
        self.charter.decider(&pool.name).or_else(pinned)
    }

    /// Whether this node answers for how many units a pool has.
    pub(super) fn answers_for(&self, pool: &Pool) -> bool {
        let (me, members) = (self.config.me, self.config.members.len());
        match pool.def.protocol.about.seat_moves {
            true => self.decides_now(pool) == Some(me),
            false => pool.def.protocol.answers_for(&pool.name, me, members),
        }
    }
}
