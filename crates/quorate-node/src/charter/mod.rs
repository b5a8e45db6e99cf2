//! This node's part of the control plane: the charter says who decides for which group of pools,
//! and this is how it comes to the engine (charter spec S1 and S2).
//!
//! ```text
//! other members ── peers/council ──▶ Hall ──▶ council (quorate-charter) ──▶ drive ──▶ engine
//!                                      ▲                                     │ ▲
//!                                      └── begin, lead, listen, leave        ▼ └── who asks for a
//!                                                             applied, licensed    licence
//! ```
//!
//! * `begin`: whose store this is: founded, joined, or waiting to be let in;
//! * `drive`: tells the engine what was applied, and asks for licences;
//! * `import`: it takes over what files said;
//! * `invite`: machines join while everything runs;
//! * `lead`: what the leader wants, done;
//! * `leave`: a node that stops gives away what it decides;
//! * `listen`: who was heard, in which life;
//! * `members`: what operators ask about members;
//! * `pools`: what pools it names, and how that is changed;
//! * `recover`: offline: it goes on from one store, or from a backup;
//! * `shadows`: what this node's seats want said of their shadows;
//! * `show`: what people see of it;
//! * `trust`: tokens and rights that it has, and how those are changed;
//! * `words`: what members say to each other beside the council's own questions.
//!
//! None of it is on the path of a claim.

mod begin;
mod drive;
mod import;
mod invite;
mod lead;
mod leave;
mod listen;
mod members;
mod pools;
mod recover;
mod rounds;
mod shadows;
mod show;
#[cfg(test)]
mod tests;
mod trust;
#[cfg(test)]
mod trust_tests;
mod words;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_charter::{
    Charter, Council, Group, Life, MemberId, Pace, Post, RaftCouncil, Reading, RequestId, Unreached,
};
use quorate_core::{Moment, NodeId, NodeSet, Shadow, Tenure};
use quorate_trust::Keys;
use quorate_wire::frame;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::clock;
use crate::config::{Address, Chartered, Config, Member as Joined};
use crate::engine::Command;
use crate::peers::{Answers, Lines};
use words::{Said, Word};

pub(crate) use begin::{Begin, STORE, declare_new};
pub(crate) use import::Pins;
pub(crate) use invite::{CERTIFIED_DAYS, Seal, since_1970};
pub(crate) use pools::{Amendments, no_charter};
pub use recover::{AtRest, Recovered};
pub(crate) use recover::{import, look, recover, restore};
pub(crate) use shadows::Want;
pub(crate) use show::seat_view;

/// What a new incarnation adds to every term: more moves than entries that were lost can have had
/// (charter spec S10).
const TERMS_EACH: u64 = 1 << 16;

/// What whoever was removed is told.
pub(crate) const REMOVED: &str = "this member was removed from the cluster";

/// This node's part, once it has one.
type Part = RaftCouncil<Carrier>;

/// What the charter tells the engine.
#[derive(Clone, Debug)]
pub(crate) enum FromCharter {
    /// This node has applied it so far: who decides, which pools it names, and who is a member by
    /// it and not in the list of members yet.
    Applied(Arc<Seats>, Amendments, Vec<Joined>),
    /// Whoever decides since has probably applied it too by now; if `last`, surely.
    Settled { last: bool },
    /// This node may decide. What was applied at that round has been told before (charter spec
    /// S2).
    Licensed(Vec<Licence>),
    /// This node has given up what files let it decide: its seats decide no more. The engine says
    /// when they have heard that.
    Unpinned,
    /// What changed about members, each with its name.
    Members(Vec<(String, String)>),
    /// Everything up to this entry has been told. The engine says when it has heard that: what
    /// clients ask reaches it by another way, and may overtake what is still on this one.
    UpTo(u64),
}

/// That this node decides for a group in a term, as a majority confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Licence {
    pub(crate) group: Group,
    pub(crate) term: u32,
    /// The reading of this node's clock from which it counts: before the round began.
    pub(crate) asked: Moment,
}

/// Who decides for each group, as far as this node has applied the charter.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Seats {
    pub(crate) version: u64,
    /// Whether entries may be lost: a pool that is made may have been there before.
    pub(crate) recovered: bool,
    all: BTreeMap<Group, Seated>,
}

/// Who decides for a group, and who shadows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seated {
    pub(crate) tenure: Tenure,
    /// As whom the life that decides was the whole shadow of the term before, if it was.
    heir: Option<u64>,
    pub(crate) shadow: Option<Shadow>,
}

impl Seated {
    /// The word for who decides.
    pub(crate) fn said(&self) -> quorate_core::Charter {
        match self.heir {
            Some(naming) => quorate_core::Charter::Inherited(self.tenure, naming),
            None => quorate_core::Charter::Applied(self.tenure),
        }
    }

    /// As whom somebody shadows it: by which entry.
    pub(crate) fn naming(&self) -> Option<u64> {
        self.shadow.map(|shadow| shadow.naming)
    }

    /// The word for who shadows it.
    pub(crate) fn shadowed(&self) -> quorate_core::Charter {
        quorate_core::Charter::Shadowed { term: self.tenure.term, shadow: self.shadow }
    }
}

impl Seats {
    /// Of members that are not in this node's file nothing is told: nobody who has heard of a later
    /// term gets a licence for an earlier one, and the leader gives their groups to others.
    pub(crate) fn of(charter: &Charter, config: &Config) -> Seats {
        let places = places(charter, config);
        let life = |life: &Life| {
            let member = charter.members().get(&life.member)?;
            let boot = u32::try_from(life.boot).unwrap_or(u32::MAX);
            Some((*places.get(&member.name)?, boot))
        };
        // A shadow that this file does not name is never vouched for, and so never whole.
        let shadow = |it: quorate_charter::Shadow| {
            let (node, boot) = life(&it.life)?;
            Some(Shadow { node, boot, naming: it.naming, whole: it.whole })
        };
        let seated = |(group, seat): (&Group, &quorate_charter::Seat)| {
            let (node, boot) = life(&seat.life)?;
            let term = term_of(charter, seat.term);
            let after = seat.before.map(|_| term_of(charter, seat.term - 1));
            // Somebody did before there was a charter.
            let imports = config.charter.is_some_and(|charter| charter.import);
            let after = after.or(imports.then_some(Tenure::PINNED));
            let tenure = Tenure { term, after, node, boot };
            let (heir, shadow) = (seat.by_shadow, seat.shadow.and_then(shadow));
            Some((*group, Seated { tenure, heir, shadow }))
        };
        let all = charter.seats().iter().filter_map(seated).collect();
        Seats { version: charter.version(), recovered: charter.is_recovered(), all }
    }

    /// Who decides for a group, and who shadows it.
    pub(crate) fn get(&self, group: Group) -> Option<Seated> {
        self.all.get(&group).copied()
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Group, Seated)> + '_ {
        self.all.iter().map(|(group, seated)| (*group, *seated))
    }
}

/// A term of the charter, as protocols count it (charter spec S10).
fn term_of(charter: &Charter, term: u64) -> u32 {
    let base = charter.incarnation().saturating_mul(TERMS_EACH);
    u32::try_from(base.saturating_add(term)).unwrap_or(u32::MAX)
}

/// Whether somebody was a member and is none any more. Ids are indices of the log: who would have
/// joined by an entry that was applied here, and is not there, joined in a life of the cluster
/// whose entries are lost.
fn belongs_no_more(Reading { applied, charter }: &Reading, member: MemberId) -> bool {
    charter.gone().contains_key(&member)
        || charter.cluster().is_some()
            && member.0 <= *applied
            && !charter.members().contains_key(&member)
}

/// Where each member is in the list of members. Where members join, the charter says so, also
/// before the list is as long.
fn places(charter: &Charter, config: &Config) -> BTreeMap<String, NodeId> {
    let names = match config.joins {
        true => charter.places().into_iter().map(|(name, _)| name).collect(),
        false => config.members.names(),
    };
    names.into_iter().zip((0..).map(|place: usize| NodeId::from(place))).collect()
}

/// Who is a member by the charter and not in the list of members.
///
/// # Errors
/// The list has others in their places: it is of another cluster, or was changed by hand.
fn not_listed(charter: &Charter, config: &Config) -> Result<Vec<Joined>, String> {
    let mut fresh = Vec::new();
    let places = if config.joins { charter.places() } else { Vec::new() };
    for (place, (name, _)) in places.into_iter().enumerate() {
        match config.members.get(place) {
            None => fresh.push(Joined { peers: address_of(charter, &name, place), name }),
            Some(listed) if listed.name == name => {}
            Some(listed) => {
                return Err(format!(
                    "member {} of this node's file is {}, and the charter has {name} there: the \
                     file was changed, or is of another cluster. Nothing was changed. Put \
                     [[members]] back as it was written when this node joined",
                    place + 1,
                    listed.name
                ));
            }
        }
    }
    Ok(fresh)
}

/// Where the other members reach this one, and where clients do.
fn addresses(config: &Config) -> Vec<String> {
    let own = &config.members[config.me.index()].peers;
    let clients = config.joins.then(|| own.at(config.listen_clients.port()).to_string());
    [own.to_string()].into_iter().chain(clients).collect()
}

/// Where a member is reached; one that is gone is nowhere.
fn address_of(charter: &Charter, name: &str, place: usize) -> Address {
    let here = charter.members().values().find(|member| member.name == name);
    let first = here.and_then(|member| member.about.addresses.first()?.parse().ok());
    first.unwrap_or_else(|| Address::Name { host: format!("{place}.gone.invalid"), port: 1 })
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Hall {
    config: Arc<Config>,
    chartered: Chartered,
    boot: u32,
    lines: Arc<Lines>,
    book: Arc<Book>,
    council: watch::Sender<Option<Part>>,
    /// Why this node has no part yet.
    standing: Mutex<Option<String>>,
    heard: Mutex<BTreeMap<NodeId, listen::Seen>>,
    began: Instant,
    /// Up to which entry the engine has heard everything.
    told: watch::Sender<u64>,
    /// Who was removed, of the members of the file...
    removed: watch::Sender<NodeSet>,
    /// ...and whether this very member was.
    gone: Arc<watch::Sender<bool>>,
    /// How long its rounds take.
    rounds: Mutex<rounds::Rounds>,
    /// What this node's seats want said of their shadows.
    wants: shadows::Wants,
    /// What files let it decide.
    pins: import::Unpinning,
    /// When the last round began by which somebody made sure that all of that was applied.
    caught_up: tokio::sync::Mutex<Option<Instant>>,
    /// Whom the charter lets in, as far as this node knows.
    trusted: trust::Trusted,
}

impl Hall {
    pub(crate) fn new(
        config: Arc<Config>,
        (chartered, pins): (Chartered, Pins),
        boot: u32,
        keys: watch::Receiver<Option<Arc<Keys>>>,
    ) -> Hall {
        Hall {
            lines: Arc::new(Lines::new(Arc::clone(&config), keys)),
            config,
            chartered,
            boot,
            book: Arc::default(),
            council: watch::channel(None).0,
            standing: Mutex::new(Some("it has just started".into())),
            heard: Mutex::default(),
            began: Instant::now(),
            told: watch::channel(0).0,
            removed: watch::channel(NodeSet::new()).0,
            gone: Arc::new(watch::channel(false).0),
            rounds: Mutex::default(),
            wants: shadows::Wants::default(),
            pins: import::Unpinning::new(pins),
            caught_up: tokio::sync::Mutex::default(),
            trusted: trust::Trusted::new(),
        }
    }

    /// Takes part until the node stops.
    pub(crate) async fn run(
        self: Arc<Self>,
        begin: Begin,
        engine: mpsc::Sender<Command>,
        asks: mpsc::UnboundedReceiver<Moment>,
        fatal: mpsc::UnboundedSender<String>,
    ) {
        self.pins.reach(&engine);
        match begin::enter(&self, begin).await {
            Ok(council) => {
                self.stands(None);
                self.council.send_replace(Some(council.clone()));
                let (mut gone, name) = (self.gone.subscribe(), self.config.name().to_owned());
                tokio::select! {
                    why = drive::run(self, council, engine, asks) => {
                    drop(why.map(|why| fatal.send(why)));
                }
                    Ok(_) = gone.wait_for(|gone| *gone) => {
                        // Its clients go on elsewhere.
                        drop(fatal.send(format!(
                            "{REMOVED}. To let this machine in again, run `quorate member readmit \
                             {name}` at another one and start it with an empty data directory"
                        )));
                    }
                }
            }
            // The node that cannot keep its part of the charter must not guess at it.
            Err(why) => drop(fatal.send(format!("the charter: {why}"))),
        }
    }

    /// Stops this node's part. What was acknowledged is on disk.
    pub(crate) async fn stop(&self) {
        let council = self.council.send_replace(None);
        if let Some(council) = council {
            council.stop().await;
        }
    }

    fn part(&self) -> Option<Part> {
        self.council.borrow().clone()
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn stands(&self, why_not: Option<String>) {
        *locked(&self.standing) = why_not;
    }

    /// Why this node takes no part yet, if it does not.
    pub(crate) fn standing(&self) -> Option<String> {
        locked(&self.standing).clone()
    }

    /// How fast the council beats: an election is over before licences of a healthy cluster are.
    fn pace(&self) -> Pace {
        let heartbeat = self.chartered.licence / 16;
        let heartbeat = heartbeat.clamp(Duration::from_millis(50), Duration::from_secs(1));
        let (patience, patience_max) = (heartbeat * 3, heartbeat * 4);
        Pace { heartbeat, patience, patience_max, ..Pace::default() }
    }

    async fn reply(&self, from: NodeId, question: &[u8]) -> Said {
        match frame::open::<Word>(question) {
            Err(error) => Said::Refused(error.to_string()),
            Ok(Word::Life) if self.removed.borrow().contains(from) => Said::Refused(REMOVED.into()),
            Ok(Word::Life) => {
                let member = self.part().map(|part| part.identity().member);
                Said::Life { member, boot: self.boot }
            }
            Ok(Word::Belongs { member }) => match self.part() {
                Some(part) if belongs_no_more(&part.watch().borrow(), member) => Said::Removed,
                _ => Said::NotYet("nothing is known of its removal".into()),
            },
            Ok(Word::Join { birth, address }) => self.admit(from, birth, address).await,
            Ok(Word::Unpin { sure }) => self.unpin(sure).await,
            Ok(Word::Council { member, question }) => {
                let Some(part) = self.part() else {
                    return Said::NotYet("this member is not in yet".into());
                };
                let name = &self.config.members[from.index()].name;
                let reading = part.watch().borrow().clone();
                if belongs_no_more(&reading, member) {
                    return Said::Removed;
                }
                let members = reading.charter.members().get(&member).cloned();
                if members.is_some_and(|known| known.name != *name) {
                    return Said::Refused(format!("{name} speaks for {member}"));
                }
                self.book.note(member, from);
                Said::Council(part.answer(member, &question).await)
            }
        }
    }

    async fn ask(&self, to: NodeId, word: &Word) -> Result<Said, String> {
        ask(&self.lines, to, word).await
    }

    /// All other members of the file that were not removed.
    fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let (me, removed) = (self.config.me, self.removed());
        let all = (0..self.config.members.len()).map(NodeId::from);
        all.filter(move |node| *node != me && !removed.contains(*node))
    }

    /// Who is cut off, as it changes.
    pub(crate) fn cut_off(&self) -> watch::Receiver<NodeSet> {
        self.removed.subscribe()
    }

    /// Takes down who was removed, this node too.
    fn note_removed(&self, charter: &Charter, me: MemberId) {
        let members = places(charter, &self.config).into_iter();
        let removed = members.filter(|(name, _)| charter.is_removed(name));
        let removed: NodeSet = removed.map(|(_, node)| node).collect();
        self.config.members.note_gone(&removed, clock::now());
        if charter.gone().contains_key(&me) {
            self.gone.send_replace(true);
        }
        self.removed.send_if_modified(|before| {
            let differs = *before != removed;
            *before = removed;
            differs
        });
    }
}

impl Answers for Hall {
    fn answer(
        self: Arc<Self>,
        from: NodeId,
        question: Vec<u8>,
    ) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> {
        Box::pin(async move { frame::seal(&self.reply(from, &question).await).into() })
    }
}

/// At which node each member is. What the charter says is not enough: after a restart a node knows
/// its log, and may have to ask for a vote before it knows how far that is in force.
#[derive(Debug, Default)]
struct Book(Mutex<BTreeMap<MemberId, NodeId>>);

impl Book {
    fn note(&self, member: MemberId, node: NodeId) {
        locked(&self.0).insert(member, node);
    }

    fn note_all(&self, charter: &Charter, config: &Config) {
        let places = places(charter, config);
        for (member, about) in charter.members() {
            if let Some(node) = places.get(&about.name) {
                self.note(*member, *node);
            }
        }
    }

    fn node(&self, member: MemberId) -> Option<NodeId> {
        locked(&self.0).get(&member).copied()
    }
}

/// Carries the council's questions.
#[derive(Clone, Debug)]
struct Carrier {
    from: MemberId,
    lines: Arc<Lines>,
    book: Arc<Book>,
    /// Told when another member knows that this one was removed.
    gone: Arc<watch::Sender<bool>>,
}

impl Post for Carrier {
    async fn ask(&self, to: MemberId, question: Vec<u8>) -> Result<Vec<u8>, Unreached> {
        let unreached = |why: String| Unreached { to, why };
        let node = self.book.node(to).ok_or_else(|| unreached("not heard of yet".into()))?;
        let word = Word::Council { member: self.from, question };
        let answer = self.lines.ask(node, frame::seal(&word).into()).await.map_err(unreached)?;
        match frame::open(&answer) {
            Ok(Said::Council(answer)) => Ok(answer),
            Ok(Said::NotYet(why) | Said::Refused(why)) => Err(unreached(why)),
            Ok(Said::Removed) => {
                self.gone.send_replace(true);
                Err(unreached(REMOVED.into()))
            }
            Ok(_) => Err(unreached("it answered another question".into())),
            Err(error) => Err(unreached(error.to_string())),
        }
    }
}

async fn ask(lines: &Lines, to: NodeId, word: &Word) -> Result<Said, String> {
    let answer = lines.ask(to, frame::seal(word).into()).await?;
    frame::open(&answer).map_err(|error| error.to_string())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 128 bits that nobody else draws.
pub(crate) fn drawn() -> [u8; 16] {
    let half = |salt: u8| u128::from(RandomState::new().hash_one(salt));
    (half(0) << 64 | half(1)).to_le_bytes()
}

fn request_id() -> RequestId {
    RequestId(drawn())
}
