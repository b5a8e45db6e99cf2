//! A world moved by hand: nothing happens unless a script says so. Transcripts run on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Effect, EffectOf, Event, EventOf, Line, Moment, NodeId, Outbox, Protocol, Seat,
    Shares, Start, Unit, Units, Wanted,
};
use quorate_laws::{Breach, End, Observation, StatuteBook};

use crate::Time;

/// Nodes, links, alarms and clients, all waiting to be told.
pub(crate) struct Stage<P: Protocol> {
    pool: P::Pool,
    nodes: Vec<Place<P>>,
    /// Messages on each link, oldest first.
    links: BTreeMap<(NodeId, NodeId), VecDeque<P::Message>>,
    /// Links on which nothing moves unless it is delivered by hand.
    cuts: BTreeSet<(NodeId, NodeId)>,
    clients: BTreeMap<u64, Client>,
    laws: StatuteBook,
    now: Moment,
    /// What there is to read.
    pub(crate) text: String,
}

struct Place<P: Protocol> {
    seat: Option<P>,
    boot: u32,
    image: Option<P::Durable>,
    /// Whether the node forgot everything and has not persisted anything since.
    forgot: bool,
    alarms: BTreeMap<P::Alarm, Moment>,
    crash_after: Option<usize>,
}

#[derive(Debug)]
struct Client {
    home: NodeId,
    serial: u64,
    wanted: Wanted,
    shares: Option<(Shares, Moment)>,
}

impl<P: Protocol> Stage<P> {
    pub(crate) fn new(pool: P::Pool, nodes: u32) -> Self {
        let laws = StatuteBook::new(P::capacity(&pool), P::overtakes_max(&pool));
        let laws = if P::names_units(&pool) { laws } else { laws.anonymous() };
        let mut stage = Stage {
            pool,
            nodes: Vec::new(),
            links: BTreeMap::new(),
            cuts: BTreeSet::new(),
            clients: BTreeMap::new(),
            laws,
            now: Moment::ZERO,
            text: String::new(),
        };
        for node in 0..nodes {
            stage.nodes.push(Place {
                seat: None,
                boot: 0,
                image: None,
                forgot: false,
                alarms: BTreeMap::new(),
                crash_after: None,
            });
            stage.boot(NodeId(node), Start::First);
        }
        stage
    }

    pub(crate) fn has(&self, node: NodeId) -> bool {
        node.index() < self.nodes.len()
    }

    /// A client asks for units; if not any will do, for one of `among`, for each of its lists.
    pub(crate) fn claim(
        &mut self,
        home: NodeId,
        client: u64,
        units: u32,
        among: &[Vec<Unit>],
    ) -> Result<(), String> {
        let units = Units::new(units, P::capacity(&self.pool)).map_err(|e| e.to_string())?;
        let line = |units: &Vec<Unit>| Line::of(Units::ONE, units.as_slice().into());
        let lines = (!among.is_empty()).then(|| among.iter().map(line).collect());
        let serial = self.clients.get(&client).map_or(1, |before| before.serial + 1);
        let wanted = Wanted { lines, ..Wanted::any(units) };
        let new = Client { home, serial, wanted, shares: None };
        self.clients.insert(client, new);
        let claim = ClaimId { origin: client, serial };
        self.judge(|laws| laws.see(Observation::Claimed { claim, units }));
        self.ask(client)
    }

    fn ask(&mut self, client: u64) -> Result<(), String> {
        let Client { home, serial, ref wanted, .. } = *self.client(client)?;
        let id = ClaimId { origin: client, serial };
        let claim = Claim::new(id, wanted.clone());
        self.step(home, Event::Claim(claim))
    }

    /// A client says its last claim again, perhaps at another node.
    pub(crate) fn claim_again(&mut self, home: NodeId, client: u64) -> Result<(), String> {
        self.client(client)?.home = home;
        self.ask(client)
    }

    pub(crate) fn release(&mut self, client: u64) -> Result<(), String> {
        let (home, claim) = self.called(client)?;
        self.end(claim, End::Released);
        self.step(home, Event::Release(claim))
    }

    pub(crate) fn cancel(&mut self, client: u64) -> Result<(), String> {
        let (home, claim) = self.called(client)?;
        self.end(claim, End::Released);
        self.step(home, Event::Cancel(claim))
    }

    pub(crate) fn renew(&mut self, client: u64) -> Result<(), String> {
        let (home, claim) = self.called(client)?;
        let held = self.client(client)?.shares.clone();
        let (shares, _) = held.ok_or_else(|| format!("c{client} has nothing to renew"))?;
        self.step(home, Event::Renew { claim, shares })
    }

    /// A client shows another node than before what it has, and stays there.
    pub(crate) fn renew_at(&mut self, home: NodeId, client: u64) -> Result<(), String> {
        self.client(client)?.home = home;
        self.renew(client)
    }

    /// Delivers one message of a link; `keep` leaves a copy of it on the way.
    pub(crate) fn deliver(
        &mut self,
        (from, to): (NodeId, NodeId),
        position: usize,
        keep: bool,
    ) -> Result<(), String> {
        let link = self.links.entry((from, to)).or_default();
        let nothing = || format!("no message number {position} from {from} to {to}");
        let message = link.get(position - 1).cloned().ok_or_else(nothing)?;
        if !keep {
            link.remove(position - 1);
        }
        self.step(to, Event::Hear { from, message })
    }

    /// Delivers whatever is on its way, link by link, until nothing is.
    pub(crate) fn deliver_all(&mut self) -> Result<(), String> {
        /// A protocol that talks to itself for ever is stopped here.
        const DELIVERIES_MAX: usize = 10_000;
        for _ in 0..DELIVERIES_MAX {
            let Some((link, _)) = self.under_way().next() else { return Ok(()) };
            self.deliver(link, 1, false)?;
        }
        Err(format!("still talking after {DELIVERIES_MAX} messages"))
    }

    /// Links that are not cut and on which something moves, and how much.
    fn under_way(&self) -> impl Iterator<Item = ((NodeId, NodeId), usize)> + '_ {
        let moves = |link: &(NodeId, NodeId)| !self.cuts.contains(link);
        let busy = self.links.iter().filter(move |(link, m)| moves(link) && !m.is_empty());
        busy.map(|(link, messages)| (*link, messages.len()))
    }

    /// Cuts links, or heals them.
    pub(crate) fn set_cut(&mut self, links: [(NodeId, NodeId); 2], cut: bool) {
        for link in links {
            if cut {
                self.cuts.insert(link);
            } else {
                self.cuts.remove(&link);
            }
        }
    }

    /// Time passes as in [`Stage::advance`], and every message arrives after one `HOP`.
    pub(crate) fn run(&mut self, by: Duration) -> Result<(), String> {
        const HOP: Duration = Duration::from_millis(1);
        let end = self.now.after(by);
        while self.now < end {
            let sent: Vec<_> = self.under_way().collect();
            let next = if sent.is_empty() { self.next_due() } else { Some(self.now.after(HOP)) };
            let next = next.map_or(end, |next| next.clamp(self.now, end));
            self.advance(next.since(self.now))?;
            for (link, count) in sent {
                // A node may have crashed meanwhile, and lost what was on its way to it.
                let left = self.links.get(&link).map_or(0, VecDeque::len).min(count);
                (0..left).try_for_each(|_| self.deliver(link, 1, false))?;
            }
        }
        Ok(())
    }

    /// When the next alarm rings or the next holder stops.
    fn next_due(&self) -> Option<Moment> {
        let alarms = self.nodes.iter().flat_map(|place| place.alarms.values());
        let deadlines = self.clients.values().filter_map(|c| c.shares.as_ref().map(|(_, at)| at));
        alarms.chain(deadlines).min().copied()
    }

    pub(crate) fn drop_message(
        &mut self,
        link: (NodeId, NodeId),
        position: usize,
    ) -> Result<(), String> {
        let messages = self.links.entry(link).or_default();
        let message = messages.remove(position - 1);
        let message = message.ok_or_else(|| format!("no message number {position} there"))?;
        self.line(format_args!("lost: {} to {} {message}", link.0, link.1));
        Ok(())
    }

    pub(crate) fn drop_all(&mut self) {
        self.links.clear();
    }

    pub(crate) fn ring(&mut self, node: NodeId, name: &str) -> Result<(), String> {
        let alarms = &mut self.nodes[node.index()].alarms;
        let alarm = alarms.keys().copied().find(|alarm| alarm.to_string() == name);
        let alarm = alarm.ok_or_else(|| {
            let armed: Vec<String> = alarms.keys().map(ToString::to_string).collect();
            format!("{node} has not armed '{name}', only: {}", armed.join(", "))
        })?;
        alarms.remove(&alarm);
        self.step(node, Event::Ring(alarm))
    }

    pub(crate) fn suspect(&mut self, node: NodeId, about: NodeId) -> Result<(), String> {
        self.step(node, Event::Suspect(about))
    }

    pub(crate) fn trust(&mut self, node: NodeId, about: NodeId) -> Result<(), String> {
        self.step(node, Event::Trust(about))
    }

    /// The next step of this node ends in a crash, after so many of its effects.
    pub(crate) fn crash_after(&mut self, node: NodeId, effects: usize) {
        self.nodes[node.index()].crash_after = Some(effects);
    }

    pub(crate) fn crash(&mut self, node: NodeId) {
        let place = &mut self.nodes[node.index()];
        (place.seat, place.crash_after) = (None, None);
        place.alarms.clear();
        // What was on its way to the node is gone.
        self.links.retain(|(_, to), _| *to != node);
        self.line(format_args!("{node} CRASH"));
    }

    pub(crate) fn restart(&mut self, node: NodeId, amnesia: bool) -> Result<(), String> {
        let place = &mut self.nodes[node.index()];
        if place.seat.is_some() {
            return Err(format!("{node} is running"));
        }
        if place.forgot && !amnesia {
            return Err(format!("{node} forgot everything and has written nothing since: amnesia"));
        }
        place.boot += 1;
        let start = if amnesia {
            (place.image, place.forgot) = (None, true);
            Start::Amnesia
        } else {
            Start::Recovered(place.image.clone())
        };
        self.laws.see_restart(node);
        let boot = self.nodes[node.index()].boot;
        self.line(format_args!("{node} boot {boot}"));
        self.boot(node, start);
        Ok(())
    }

    /// Time passes: alarms that are due ring in order, holders stop at their deadlines.
    pub(crate) fn advance(&mut self, by: Duration) -> Result<(), String> {
        let end = self.now.after(by);
        loop {
            let alarm = self.nodes.iter().enumerate().flat_map(|(node, place)| {
                place.alarms.iter().map(move |(alarm, at)| (*at, NodeId::from(node), *alarm))
            });
            let alarm = alarm.min().filter(|(at, ..)| *at <= end);
            let deadline = self
                .clients
                .iter()
                .filter_map(|(origin, c)| c.shares.as_ref().map(|(_, at)| (*at, *origin)))
                .min()
                .filter(|(at, _)| *at <= end);
            match (alarm, deadline) {
                // A holder that stops at the moment an alarm rings stops first.
                (alarm, Some((at, origin))) if alarm.is_none_or(|(ring, ..)| at <= ring) => {
                    self.now = self.now.max(at);
                    let claim = ClaimId { origin, serial: self.clients[&origin].serial };
                    self.line(format_args!("c{origin} stops at its deadline"));
                    self.end(claim, End::Deadline);
                }
                (Some((at, node, alarm)), _) => {
                    self.now = self.now.max(at);
                    self.nodes[node.index()].alarms.remove(&alarm);
                    self.step(node, Event::Ring(alarm))?;
                }
                _ => break,
            }
        }
        self.now = end;
        Ok(())
    }

    /// What arbiters have in their books.
    pub(crate) fn books(&mut self) {
        let mut lines = Vec::new();
        for (node, place) in self.nodes.iter().enumerate() {
            let Some(seat) = &place.seat else { continue };
            seat.ledger(&mut |entry| {
                let (claim, units) = (entry.claim, entry.units);
                let standing = format!("{:?}", entry.standing).to_lowercase();
                lines.push(format!("n{node}: {claim} {} h{units} {standing}", entry.stamp));
            });
        }
        if lines.is_empty() {
            lines.push("empty".into());
        }
        lines.iter().for_each(|line| self.line(format_args!("{line}")));
    }

    /// What is on its way, and which alarms are armed.
    pub(crate) fn pending(&mut self) {
        let mut lines = Vec::new();
        for ((from, to), messages) in &self.links {
            lines.extend(messages.iter().map(|message| format!("{from} to {to}: {message}")));
        }
        for (node, place) in self.nodes.iter().enumerate() {
            for (alarm, at) in &place.alarms {
                lines.push(format!("n{node} alarm {alarm} in {}", Time::from(at.since(self.now))));
            }
        }
        if lines.is_empty() {
            lines.push("nothing".into());
        }
        lines.iter().for_each(|line| self.line(format_args!("{line}")));
    }

    fn client(&mut self, client: u64) -> Result<&mut Client, String> {
        self.clients.get_mut(&client).ok_or_else(|| format!("c{client} has claimed nothing"))
    }

    fn called(&mut self, client: u64) -> Result<(NodeId, ClaimId), String> {
        let known = self.client(client)?;
        Ok((known.home, ClaimId { origin: client, serial: known.serial }))
    }

    fn boot(&mut self, me: NodeId, start: Start<P::Durable>) {
        let seat = Seat { me, boot: self.nodes[me.index()].boot, now: self.now, pool: &self.pool };
        let mut outbox = Outbox::new();
        let participant = P::boot(&seat, start, &mut outbox);
        self.nodes[me.index()].seat = Some(participant);
        self.perform_all(me, outbox);
    }

    fn step(&mut self, me: NodeId, event: EventOf<P>) -> Result<(), String> {
        let place = &mut self.nodes[me.index()];
        let Some(participant) = &mut place.seat else {
            return Err(format!("{me} is down"));
        };
        let seat = Seat { me, boot: place.boot, now: self.now, pool: &self.pool };
        let text = event.to_string();
        let mut outbox = Outbox::new();
        participant.step(&seat, event, &mut outbox);
        participant.audit(&seat);
        let mut books = Vec::new();
        participant.ledger(&mut |entry| books.push(entry));
        self.line(format_args!("{me} {text}"));
        self.judge(|laws| laws.see_books(me, &books));
        self.perform_all(me, outbox);
        Ok(())
    }

    fn perform_all(&mut self, me: NodeId, mut outbox: Outbox<P>) {
        let crash_after = self.nodes[me.index()].crash_after.take();
        for (done, effect) in outbox.drain().enumerate() {
            if crash_after.is_some_and(|limit| done >= limit) {
                break;
            }
            self.perform(me, effect);
        }
        if crash_after.is_some() {
            self.crash(me);
        }
    }

    fn perform(&mut self, me: NodeId, effect: EffectOf<P>) {
        let shown = match &effect {
            Effect::Arm { after, .. } => format!("{effect} {}", Time::from(*after)),
            Effect::Grant { until, .. } | Effect::Extend { until, .. } => {
                format!("{effect} until {until}")
            }
            _ => effect.to_string(),
        };
        self.line(format_args!("   {shown}"));
        match effect {
            Effect::Persist(record) => {
                let place = &mut self.nodes[me.index()];
                (place.image, place.forgot) = (Some(record), false);
            }
            Effect::Tell { to, message } => {
                if self.nodes.get(to.index()).is_some_and(|place| place.seat.is_some()) {
                    self.links.entry((me, to)).or_default().push_back(message);
                }
            }
            Effect::Arm { alarm, after } => {
                let at = self.now.after(after);
                self.nodes[me.index()].alarms.insert(alarm, at);
            }
            Effect::Disarm(alarm) => {
                self.nodes[me.index()].alarms.remove(&alarm);
            }
            Effect::Grant { claim, shares, until } => {
                // A client that went to another node does not hear this one.
                if self.client_of(claim).is_none_or(|client| client.home == me) {
                    self.judge(|laws| laws.see(Observation::Granted { claim, shares: &shares }));
                    if let Some(client) = self.client_of(claim) {
                        client.shares = Some((shares, until));
                    }
                }
            }
            Effect::Extend { claim, until } => {
                if let Some((_, at)) = self.client_of(claim).and_then(|c| c.shares.as_mut()) {
                    *at = until.max(*at);
                }
            }
            Effect::Move { claim, shares, it } => {
                let added = Shares::new(&[it.to]);
                self.judge(|laws| laws.see(Observation::Added { claim, shares: &added }));
                if let Some((held, _)) = self.client_of(claim).and_then(|c| c.shares.as_mut()) {
                    *held = shares;
                }
            }
            Effect::Refuse { claim, why } => {
                self.judge(|laws| laws.see(Observation::Refused { claim, why }));
            }
            Effect::Lose { claim } => self.end(claim, End::Told),
            // A stage has no control plane: nobody answers.
            Effect::Reclaim { .. }
            | Effect::AskLicence { .. }
            | Effect::Vouch { .. }
            | Effect::Anomaly { .. } => {}
        }
    }

    fn client_of(&mut self, claim: ClaimId) -> Option<&mut Client> {
        self.clients.get_mut(&claim.origin).filter(|client| client.serial == claim.serial)
    }

    fn end(&mut self, claim: ClaimId, how: End) {
        let held = self.client_of(claim).and_then(|client| client.shares.take());
        if let Some((shares, _)) = held {
            self.judge(|laws| laws.see(Observation::Ended { claim, shares: &shares, how }));
        }
    }

    /// A broken law is part of the transcript.
    fn judge(&mut self, look: impl FnOnce(&mut StatuteBook) -> Result<(), Breach>) {
        if let Err(breach) = look(&mut self.laws) {
            self.line(format_args!("BROKEN {breach}"));
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.text, "    {text}").expect("a string takes everything");
    }
}
