//! What all nodes know, put together for people: who holds, who waits, and why.
//!
//! Arbiters know the order and the counts; the node of a claim's client knows who, why and for how
//! long. Either may be silent, and what is told then says so.

mod one;
mod rivals;
mod standing;

pub(crate) use one::Whereabouts;
pub(crate) use standing::{Noted, is_gone};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_api::{
    FactView, GrantsView, Hindrance, HindranceKind, HolderView, HoldersView, Line as ApiLine,
    Obstacle, PoolView, QueueView, ShortageView, WaiterView, Why,
};
use quorate_core::{ClaimId, Stamp, Unit};
use quorate_protocols::allocator::labels::Labels;
use quorate_wire::survey::{EndLine, HomeClaim, Labelled, ShortLine, Survey};

use crate::config::{Config, PoolDef};
use crate::convert;
use crate::engine::{Gathered, current_labels, pool_view};
use crate::forecast::Contest;
use crate::keepsake::Keepsake;
use crate::outlook::{Opinions, Words};
use crate::overview::Glances;
use crate::protocols::Books;
use crate::troubles::{Told, Troubles};

/// What is known of one pool.
#[derive(Debug)]
pub(crate) struct Picture {
    lines: BTreeMap<ClaimId, Line>,
    told: Vec<Told>,
    /// Which claims the pool can grant: all nodes together, and each.
    pub(crate) grants: GrantsView,
    each: BTreeMap<String, GrantsView>,
    facts: Vec<FactView>,
    grace_ms: Option<u64>,
    silent: Vec<String>,
    drained: BTreeSet<u32>,
    /// Units that have other labels than the configuration says...
    relabelled: Labelled,
    /// ...and all labels with that.
    labels: Option<Arc<Labels>>,
    shortages: Vec<ShortLine>,
    /// How long units were held lately, if that was asked for.
    past_ms: Vec<u64>,
    /// If one claim was asked about and is over: at which node, and how it ended.
    ended: Option<(String, EndLine)>,
}

/// Claims by name.
pub(crate) fn ids(claims: &[(u64, u64)]) -> Vec<quorate_api::ClaimId> {
    let id = |(origin, serial): &(u64, u64)| ClaimId { origin: *origin, serial: *serial };
    claims.iter().map(|claim| convert::api_id(id(claim))).collect()
}

fn unit_name(unit: u32, def: &PoolDef) -> String {
    let name = def.unit_names.get(unit as usize).cloned();
    name.unwrap_or_else(|| unit.to_string())
}

/// Most units that are short, by name; the sentence says how many there are.
const NAMED_MAX: usize = 1000;

/// What is short, in words: "12 claims want 8 units with gpu=h100".
fn shortage(short: &ShortLine, def: &PoolDef, labels: Option<&Labels>) -> ShortageView {
    let ShortLine { units, free, holders, waiting, .. } = short;
    let all: Vec<Unit> = units.iter().map(|unit| Unit(*unit)).collect();
    let which = labels.map(|labels| labels.describe(&all)).unwrap_or_default();
    let claims = holders.saturating_add(*waiting);
    let mut words = vec![
        if claims == 1 { "1 claim wants".to_owned() } else { format!("{claims} claims want") },
        if units.len() == 1 { "1 unit".to_owned() } else { format!("{} units", units.len()) },
        which,
    ];
    words.retain(|word| !word.is_empty());
    let mut summary = words.join(" ");
    if *free > 0 {
        summary.push_str(&format!("; {free} free, too few or kept for older claims"));
    }
    ShortageView {
        summary,
        units: units.iter().take(NAMED_MAX).map(|unit| unit_name(*unit, def)).collect(),
        free: *free,
        holders: *holders,
        waiting: *waiting,
    }
}

/// What is known of one claim.
#[derive(Debug)]
struct Line {
    /// From an arbiter's books: age, units, whether it is granted.
    booked: Option<(Stamp, u32, bool)>,
    /// Whether those books decide. If several arbiters have to agree, the node of the client knows
    /// best whether they did.
    decided: bool,
    /// From the node of its client.
    home: Option<(String, HomeClaim)>,
    /// If it has no lease: what is written down with it, and what it has.
    kept: Option<(Keepsake, Vec<(u32, u64)>)>,
}

impl Line {
    fn granted(&self) -> bool {
        match (&self.booked, &self.home) {
            (Some((_, _, granted)), _) if self.decided => *granted,
            (_, Some((_, home))) => home.shares.is_some(),
            (Some((_, _, granted)), None) => *granted,
            (None, None) => false,
        }
    }

    fn units(&self) -> u32 {
        match (&self.booked, &self.home) {
            (Some((_, units, _)), _) => *units,
            (None, home) => home.as_ref().map_or(0, |(_, home)| home.units),
        }
    }

    fn since_ms(&self) -> Option<u64> {
        let home = self.home.as_ref().map(|(_, home)| home.since_micros / 1000);
        let kept = || self.kept.as_ref().map(|(kept, _)| kept.age().as_millis() as u64);
        home.or_else(kept)
    }

    /// Who asks. What has no lease may have outlived the node that knew it.
    fn client(&self) -> String {
        let home = self.home.as_ref().map(|(_, home)| &home.client);
        home.or_else(|| self.kept.as_ref().map(|(kept, _)| &kept.client))
            .cloned()
            .unwrap_or_default()
    }

    /// What for, likewise.
    fn reason(&self) -> String {
        let home = self.home.as_ref().map(|(_, home)| &home.reason);
        home.or_else(|| self.kept.as_ref().map(|(kept, _)| &kept.reason))
            .cloned()
            .unwrap_or_default()
    }

    /// What it has, as far as anybody knows.
    fn shares(&self) -> Option<Vec<(u32, u64)>> {
        let home = self.home.as_ref().map(|(_, home)| home.shares.clone());
        home.unwrap_or_else(|| self.kept.as_ref().map(|(_, shares)| shares.clone()))
    }

    /// What it asks for, if its node said so and not any units will do.
    fn lines(&self) -> Vec<ApiLine> {
        let home = self.home.iter().flat_map(|(_, home)| &home.lines);
        home.map(|(units, labels)| ApiLine { units: *units, labels: labels.clone() }).collect()
    }

    fn node(&self) -> String {
        self.home.as_ref().map(|(node, _)| node.clone()).unwrap_or_default()
    }

    fn obstacle(&self, id: ClaimId) -> Obstacle {
        Obstacle {
            id: convert::api_id(id),
            units: self.units(),
            client: self.client(),
            reason: self.reason(),
            since_ms: self.since_ms(),
            expires_in_ms: self.expires_in_ms(),
        }
    }

    fn expires_in_ms(&self) -> Option<u64> {
        let home = self.home.as_ref().map(|(_, home)| home);
        home.filter(|home| home.shares.is_some() && !self.stands())
            .map(|home| home.left_micros / 1000)
    }
}

impl Picture {
    pub(crate) fn new(
        config: &Config,
        pool: &str,
        def: &PoolDef,
        gathered: Gathered<Survey>,
    ) -> Self {
        let decided = def.protocol.about.books.decide();
        let name = |node: quorate_core::NodeId| config.members[node.index()].name.clone();
        let said = gathered.said.iter();
        let opinions = Opinions {
            said: said.filter_map(|(node, s)| Some((*node, s.outlook.clone()?))).collect(),
            silent: gathered.silent.iter().copied().collect(),
        };
        let (members, units) = (config.members.len(), def.units);
        let graces = gathered.said.iter().filter_map(|(_, survey)| survey.grace_micros);
        let grace_ms = graces.max().map(|micros| micros / 1000);
        let each = opinions.said.iter().map(|(node, line)| {
            let who = &config.members[node.index()].name;
            let words = Words { config, units, grace_ms, who: Some(who.as_str()) };
            let is_behind = opinions.is_behind(line);
            let said = || words.view(&line.outlook(members));
            (who.clone(), if is_behind { words.behind() } else { said() })
        });
        let together = opinions.outlook(pool, def, members);
        let mut picture = Picture {
            lines: BTreeMap::new(),
            told: Vec::new(),
            grants: Words { config, units, grace_ms, who: None }.view(&together),
            each: each.collect(),
            facts: Vec::new(),
            grace_ms,
            silent: gathered.missed(config, def).map(name).collect(),
            drained: def.drained.iter().copied().collect(),
            relabelled: Vec::new(),
            labels: None,
            shortages: Vec::new(),
            past_ms: Vec::new(),
            ended: None,
        };
        let edition = |(_, survey): &(_, Survey)| survey.health.edition;
        let newest = gathered.said.iter().max_by_key(|known| edition(known)).map(|(n, _)| *n);
        let mut known = false;
        for (node, survey) in gathered.said {
            let counts = def.protocol.about.books != Books::Copy || newest == Some(node);
            // Our own word comes first, and that of whoever decides counts.
            if survey.labels_known || (node == config.me && !known) {
                picture.relabelled = survey.relabelled;
                known |= survey.labels_known;
            }
            picture.drained.extend(survey.drained);
            picture.shortages.extend(survey.shortages.into_iter().filter(|_| counts));
            for line in survey.books.iter().filter(|_| counts) {
                let known = picture.line(line.claim(), decided);
                if let Some(kept) = line.kept() {
                    known.kept = Some((Keepsake::read(&kept.text), kept.shares.clone()));
                }
                let booked = &mut known.booked;
                let granted = line.granted() || booked.is_some_and(|(_, _, granted)| granted);
                *booked = Some((line.stamp(), line.units(), granted));
            }
            let named = |place: u32| Some(config.members.get(place as usize)?.name.clone());
            picture.told.push(Told::new(name(node), &survey.health, named));
            for fact in survey.facts {
                let about = fact.about.and_then(|place| config.members.get(place as usize));
                picture.facts.push(FactView {
                    node: name(node),
                    name: fact.name,
                    about: about.map(|member| member.name.clone()),
                    value: fact.value,
                    grows: fact.grows,
                });
            }
            if let Some(end) = survey.ended {
                picture.learn_end(name(node), end);
            }
            for claim in survey.claims {
                let id = ClaimId { origin: claim.claim.0, serial: claim.claim.1 };
                let home = &mut picture.line(id, decided).home;
                // A client that moved is known to two nodes; the one that renewed last answers.
                let later = home.as_ref().is_none_or(|(_, h)| h.left_micros < claim.left_micros);
                if later {
                    *home = Some((name(node), claim));
                }
            }
        }
        picture.labels = current_labels(def, &picture.relabelled);
        picture
    }

    /// What is known of the units, if they differ.
    pub(crate) fn labels(&self) -> Option<&Labels> {
        self.labels.as_deref()
    }

    fn line(&mut self, id: ClaimId, decided: bool) -> &mut Line {
        self.lines.entry(id).or_insert(Line { booked: None, decided, home: None, kept: None })
    }

    fn held(&self) -> impl Iterator<Item = (&ClaimId, &Line)> {
        self.lines.iter().filter(|(_, line)| line.granted())
    }

    /// Those who wait, the next one first; those that no arbiter has booked come last.
    fn queue(&self) -> Vec<(ClaimId, &Line)> {
        let mut queue: Vec<_> =
            self.lines.iter().filter(|(_, l)| !l.granted()).map(|(id, l)| (*id, l)).collect();
        queue.sort_by_key(|(id, line)| {
            (line.booked.is_none(), line.booked.map(|(stamp, ..)| stamp), *id)
        });
        queue
    }

    fn units_held(&self) -> u32 {
        self.held().map(|(_, line)| line.units()).fold(0, u32::saturating_add)
    }

    /// What is the matter with nodes.
    fn troubles(&self, def: &PoolDef) -> Troubles<'_> {
        Troubles::new(&self.told, def.units)
    }

    /// One pool, with its counts.
    pub(crate) fn pool(&self, config: &Config, name: &str, def: &PoolDef) -> PoolView {
        let needs = def.protocol.rules.needs(name, config.members.len());
        PoolView {
            grants: Some(self.grants.clone()),
            needs: needs.iter().map(|node| config.members[node.index()].name.clone()).collect(),
            // Where several must agree, and the node of a claim is silent, a permission may be
            // half of a grant or none: that many are held at most.
            held: Some(self.units_held().min(def.most())),
            free: Some(if self.grants.grants() { self.free(def) } else { 0 }),
            waiting: Some(u32::try_from(self.queue().len()).unwrap_or(u32::MAX)),
            drained: self.drained.iter().map(|unit| unit_name(*unit, def)).collect(),
            relabelled: self.relabelled.iter().map(|(unit, _)| unit_name(*unit, def)).collect(),
            shortages: self
                .shortages
                .iter()
                .map(|short| shortage(short, def, self.labels.as_deref()))
                .collect(),
            grace_ms: self.grace_ms,
            troubles: self
                .overdue_sentence(def)
                .into_iter()
                .chain(self.troubles(def).sentences())
                .collect(),
            facts: self.facts.clone(),
            silent: self.silent.clone(),
            ..pool_view(name, def, self.labels.as_deref(), config.members.living())
        }
    }

    /// Who holds units.
    pub(crate) fn holders(&self, def: &PoolDef) -> HoldersView {
        let mut holders: Vec<HolderView> = self
            .held()
            .map(|(id, line)| {
                let home = line.home.as_ref().map(|(_, home)| home);
                let shares = line.shares();
                let shares = shares.filter(|_| def.promises.names_units).unwrap_or_default();
                HolderView {
                    id: convert::api_id(*id),
                    count: line.units(),
                    units: convert::unit_views(shares.into_iter(), def, self.labels.as_deref()),
                    node: line.node(),
                    boot: home.map(|home| home.boot),
                    grant: home.and_then(|home| home.grant),
                    client: line.client(),
                    reason: line.reason(),
                    held_ms: line.since_ms(),
                    expires_in_ms: line.expires_in_ms(),
                    standing: line.stands(),
                    overdue: line.is_overdue(def),
                    note: line.kept.as_ref().map(|(kept, _)| kept.note.clone()).unwrap_or_default(),
                }
            })
            .collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.held_ms), holder.id));
        HoldersView { holders, silent: self.silent.clone() }
    }

    /// Who waits.
    pub(crate) fn waiting(&self) -> QueueView {
        let waiting = self
            .queue()
            .into_iter()
            .zip(1..)
            .map(|((id, line), position)| WaiterView {
                id: convert::api_id(id),
                position: line.booked.map(|_| position),
                count: line.units(),
                lines: line.lines(),
                node: line.node(),
                client: line.client(),
                reason: line.reason(),
                waiting_ms: line.since_ms(),
            })
            .collect();
        QueueView { waiting, grace_ms: self.grace_ms, silent: self.silent.clone() }
    }

    /// What a node takes the pool to grant, where others know better what it lacks.
    pub(crate) fn behind(&self, node: &str) -> Option<&GrantsView> {
        let behind = |it: &Hindrance| it.kind == HindranceKind::Behind;
        self.each.get(node).filter(|view| view.hindrance.as_ref().is_some_and(behind))
    }

    /// Why this claim waits.
    pub(crate) fn why(&self, id: ClaimId, asked: u32, def: &PoolDef) -> Why {
        let queue = self.queue();
        let place = queue.iter().position(|(other, line)| *other == id && line.booked.is_some());
        let held = self.taken();
        // What cannot be granted is not promised: neither with the nodes that are there, nor as
        // the claim's own node sees it.
        let home = self.lines.get(&id).map(Line::node).unwrap_or_default();
        let hindered = [self.each.get(&home), Some(&self.grants)].into_iter().flatten();
        let hindrance = hindered
            .filter(|grants| !grants.allows(asked))
            .find_map(|grants| grants.hindrance.clone());
        let free = if hindrance.is_none() { self.free(def) } else { 0 };
        let cut = self.shortages.iter().find(|s| s.claims.contains(&(id.origin, id.serial)));
        let useful = self.useful(id, cut);
        let ahead: Vec<Obstacle> = queue
            .iter()
            .take(place.unwrap_or(0))
            .filter(|(_, line)| self.rivals(line, useful.as_ref()))
            .map(|(id, line)| line.obstacle(*id))
            .collect();
        let missing = asked.saturating_sub(free);
        let short = cut.map(|short| shortage(short, def, self.labels.as_deref()));
        let position = place.map(|place| u32::try_from(place + 1).unwrap_or(u32::MAX));
        let queued = def.protocol.about.books != Books::None;
        let grace_ms = hindrance.as_ref().and_then(|hindrance| hindrance.for_ms);
        let summary = match (&hindrance, position) {
            (Some(hindrance), _) => hindrance.summary.clone(),
            (None, None) if !queued => self.unqueued(id, def, held),
            (None, None) if !self.silent.is_empty() => {
                let silent = self.silent.join(", ");
                format!("it waits for {}; silent: {silent}", def.protocol.about.awaits)
            }
            (None, None) => format!("it waits for {}", def.protocol.about.awaits),
            (None, Some(_)) if short.is_some() => {
                short.as_ref().map(|short| short.summary.clone()).unwrap_or_default()
            }
            (None, Some(_)) if missing > 0 => format!(
                "{missing} of {asked} units are missing: {} of {} are held, {} ahead in the queue",
                held.min(def.most()),
                def.units,
                ahead.len()
            ),
            (None, Some(_)) if !ahead.is_empty() => {
                format!("{free} units are free, but {} claims are ahead in the queue", ahead.len())
            }
            (None, Some(_)) => "it is about to be granted".to_owned(),
        };
        let mut holders: Vec<Obstacle> =
            self.held().filter_map(|(id, line)| line.in_the_way(*id, useful.as_ref())).collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.since_ms), holder.id));
        let contest = match cut {
            Some(cut) => self.contest_for(cut, id),
            None => Contest {
                capacity: def.units,
                holders: holders.iter().map(|h| (h.id, h.units, h.since_ms)).collect(),
                ahead: ahead.iter().map(|claim| (claim.id, claim.units)).collect(),
                asked,
            },
        };
        // Where units differ, only a shortage says who is in the way.
        let known = cut.is_some() || def.labels().is_none();
        let known = known && position.is_some() && hindrance.is_none();
        Why {
            estimate: known.then(|| contest.estimate(&self.past_ms)).flatten(),
            remedy: known.then(|| contest.remedy()),
            summary,
            position,
            hindrance,
            free,
            missing,
            shortage: short,
            grace_ms,
            holders,
            ahead,
            silent: self.silent.clone(),
        }
    }

    /// Why a claim waits where nobody keeps a queue.
    fn unqueued(&self, id: ClaimId, def: &PoolDef, held: u32) -> String {
        let told = self.troubles(def);
        let home = self.lines.get(&id).map(Line::node).unwrap_or_default();
        if let Some(absence) = told.absence(&home) {
            return absence;
        }
        let (lost, dead) = told.lost();
        let mut text = format!("{} of {} units are held", held.min(def.most()), def.units);
        if lost > 0 && dead.is_empty() {
            text.push_str(&format!(", {lost} are missing and will be made anew"));
        } else if lost > 0 {
            let (be, verb) = if dead.len() == 1 { ("is", "does") } else { ("are", "do") };
            let dead = dead.join(", ");
            text.push_str(&format!(
                ", {lost} are lost: {dead} {verb} not answer and {be} taken to use them"
            ));
        }
        text.push_str(&format!("; it waits for {}", def.protocol.about.awaits));
        let silent =
            (!self.silent.is_empty()).then(|| format!("silent: {}", self.silent.join(", ")));
        for more in told.outage(&home).map(String::from).into_iter().chain(silent) {
            text.push_str(&format!("; {more}"));
        }
        text
    }

    /// Whether some holder is known to have a unit.
    fn is_held(&self, unit: u32) -> bool {
        let shares = self.held().filter_map(|(_, line)| line.home.as_ref()?.1.shares.as_ref());
        shares.flatten().any(|(own, _)| *own == unit)
    }

    /// Takes in what another picture says is short.
    pub(crate) fn learn_shortages(&mut self, other: Picture) {
        self.shortages.extend(other.shortages);
    }

    /// Takes in how long units were held lately.
    pub(crate) fn learn_past(&mut self, glances: &Glances<'_>) {
        self.past_ms = glances.holds_ms();
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::{Entry, NodeId, Standing, Units};
    use quorate_wire::survey::BookLine;

    use super::*;

    /// The node of the clients is silent, and members have given permissions to different claims.
    #[test]
    fn no_more_units_are_told_as_held_than_there_are() {
        let text = "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
            listen = { clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }\n\
            members = [{ name = \"a\", peers = \"127.0.0.1:2\" },\
                       { name = \"b\", peers = \"127.0.0.1:3\" },\
                       { name = \"c\", peers = \"127.0.0.1:4\" }]\n\
            [[pools]]\nname = \"p\"\nunits = 4\nprotocol = \"arbiter\"\n";
        let config = Config::parse_in_memory(text).unwrap();
        let permitted = |serial: u64| {
            BookLine::new(&Entry {
                claim: ClaimId { origin: 2, serial },
                units: Units::new(3, 4).unwrap(),
                stamp: Stamp { clock: serial, node: NodeId(2) },
                standing: Standing::Granted,
                kept: None,
            })
        };
        let said = [0, 1].map(|node| {
            let books = vec![permitted(u64::from(node))];
            (NodeId(node), Survey { books, ..Survey::default() })
        });
        let gathered = Gathered { said: said.into(), silent: vec![NodeId(2)] };
        let picture = Picture::new(&config, "p", &config.pools[0], gathered);
        assert_eq!(picture.pool(&config, "p", &config.pools[0]).held, Some(4));
    }

    #[test]
    fn a_claim_that_is_given_up_here_may_live_where_a_node_has_it_or_did_not_answer() {
        let text = "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
            listen = { clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }\n\
            members = [{ name = \"a\", peers = \"127.0.0.1:2\" },\
                       { name = \"b\", peers = \"127.0.0.1:3\" }]\n\
            [[pools]]\nname = \"p\"\nunits = 1\narbiter = \"a\"\n";
        let config = Config::parse_in_memory(text).unwrap();
        let id = ClaimId { origin: 0, serial: 1 };
        let home = |shares: Option<Vec<(u32, u64)>>| HomeClaim {
            claim: (0, 1),
            units: 1,
            client: String::new(),
            reason: String::new(),
            lines: Vec::new(),
            shares,
            moves: Vec::new(),
            since_micros: 0,
            left_micros: 5,
            standing: false,
            revoked: None,
            boot: 1,
            grant: None,
        };
        let look = |claims: Vec<HomeClaim>, silent: Vec<NodeId>, decider| {
            let said = vec![(NodeId(0), Survey { claims, ..Survey::default() })];
            let picture = Picture::new(&config, "p", &config.pools[0], Gathered { said, silent });
            (picture.waits(id), picture.whereabouts(id, decider))
        };
        let found = look(vec![home(Some(vec![(0, 1)]))], vec![], None);
        assert!(matches!(found, (false, Whereabouts::At(node)) if node == "a"));
        assert!(matches!(look(vec![home(None)], vec![], None), (true, Whereabouts::Nowhere)));
        let unknown = look(vec![], vec![NodeId(1)], None).1;
        assert!(matches!(unknown, Whereabouts::Unknown(silent) if silent == ["b"]));
        // Who decides alone would know.
        assert!(matches!(look(vec![], vec![NodeId(1)], Some("a")).1, Whereabouts::Nowhere));
        assert!(matches!(look(vec![], vec![NodeId(1)], Some("b")).1, Whereabouts::Unknown(_)));
    }
}
