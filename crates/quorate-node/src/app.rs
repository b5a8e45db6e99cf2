//! What every client's connection needs to know, and its only way to the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorate_api::{Change, Problem, ProblemKind};
use quorate_core::{ClaimId, Moment, NodeId};
use quorate_trust::{Pattern, Right};
use quorate_wire::glance::{Glance, Wanted};
use quorate_wire::order::{Done, Ordered};
use quorate_wire::survey::{Question, Survey};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::admission;
use crate::api::gateway::fleetlock::Made;
use crate::audit::{Audit, Note};
use crate::caller::{self, Action, Caller, Guest, Whence, Why};
use crate::charter::Hall;
use crate::config::{Config, PoolDef, is_pool_name};
use crate::convert;
use crate::crowd::Seat;
use crate::engine::{Ask, Command, Desk, Gathered, Request, stopping};
use crate::ledger::{Mailbox, Recipient, Snapshot, Waiter};
use crate::metrics::Metrics;
use crate::strangers::Strangers;

/// How long a token that has expired may go on.
const LOOK_AGAIN: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 30_000 });

/// Why somebody is refused what is another's.
const OTHERS: &str = "claim of another";

/// Whose a claim is.
enum Owner {
    /// A client is called that.
    Known(String),
    /// Nobody has heard of it, or nobody remembers whose it is.
    Nobody,
    /// The claim exists, and those who may know whose it is do not answer.
    Unsaid(Vec<String>),
}

/// An order, and what it is about.
pub(crate) fn told(what: &Ordered) -> (&'static str, String) {
    match what {
        Ordered::Revoke { claim: (origin, serial), .. } => {
            let id = quorate_api::ClaimId::from_halves(*origin, *serial);
            ("revoke", format!("claim {id}"))
        }
        Ordered::Drain { unit } => ("drain", format!("unit {unit}")),
        Ordered::Restore { unit } => ("restore", format!("unit {unit}")),
        Ordered::Relabel { unit, labels: Some(_) } => ("relabel", format!("unit {unit}")),
        Ordered::Relabel { unit, labels: None } => ("unlabel", format!("unit {unit}")),
    }
}

/// What came of an order.
fn outcome(carried: &Result<Gathered<Done>, Problem>) -> String {
    let carried = match carried {
        Ok(carried) => carried,
        Err(problem) => return format!("failed: {}", problem.detail),
    };
    let mut objection = None;
    for (_, done) in &carried.said {
        match done {
            Done::Obeyed(_) => return "done".into(),
            Done::Objected(why) => objection = Some(format!("refused: {why}")),
            Done::NotHere => {}
        }
    }
    objection.unwrap_or_else(|| match carried.silent.is_empty() {
        true => "nobody knows it".into(),
        false => "unknown: not acknowledged by all".into(),
    })
}

/// The node stops.
#[derive(Default, Debug)]
pub(crate) struct Leaving {
    /// Nodes that are there, as far as this one knows.
    others: Vec<String>,
    /// Which is named to the next client: not all go to one.
    next: AtomicUsize,
}

impl Leaving {
    pub(crate) fn to(others: Vec<String>) -> Self {
        Leaving { others, next: AtomicUsize::new(0) }
    }

    /// Where a client may go on.
    fn another(&self) -> Option<String> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.others.get(next.checked_rem(self.others.len())?).cloned()
    }
}

/// What every client's connection needs to know. Nobody reaches the engine but through here, and
/// so with the rights of a caller.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) config: Arc<Config>,
    pub(crate) boot: u32,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) audit: Arc<Audit>,
    /// Who is at the other end.
    pub(crate) caller: Caller,
    /// Where that is.
    pub(crate) whence: Whence,
    /// Whether nobody else hears what is said ([`Guest::private`]).
    pub(crate) private: bool,
    seat: Option<Arc<Seat>>,
    /// This node's part of the charter, where there is one.
    pub(crate) hall: Option<Arc<Hall>>,
    /// What machines asked for through FleetLock.
    pub(crate) machines: Arc<Made>,
    desk: Arc<Desk>,
    /// Who asks with tokens that nobody knows.
    pub(crate) strangers: Strangers,
    engine: mpsc::Sender<Command>,
    changes: broadcast::Sender<Change>,
    stopping: watch::Receiver<Option<Arc<Leaving>>>,
}

impl App {
    /// For the node itself.
    pub(crate) fn new(
        config: Arc<Config>,
        boot: u32,
        (metrics, audit): (Arc<Metrics>, Arc<Audit>),
        (desk, engine): (Arc<Desk>, mpsc::Sender<Command>),
        changes: broadcast::Sender<Change>,
        stopping: watch::Receiver<Option<Arc<Leaving>>>,
    ) -> Self {
        let (caller, whence) = (Caller::Administrator, Whence::Node);
        let (private, seat) = (false, None);
        App {
            config,
            boot,
            metrics,
            audit,
            caller,
            whence,
            private,
            seat,
            hall: None,
            machines: Arc::default(),
            desk,
            strangers: Strangers::default(),
            engine,
            changes,
            stopping,
        }
    }

    /// The same where there is a charter.
    pub(crate) fn chartered(self, hall: Option<Arc<Hall>>) -> Self {
        App { hall, ..self }
    }

    /// The same for another caller.
    pub(crate) fn serving(&self, caller: Caller) -> Self {
        App { caller, ..self.clone() }
    }

    /// The same for whoever is at the other end of a connection.
    pub(crate) fn receiving(&self, guest: Guest) -> Self {
        let Guest { caller, whence, private, seat } = guest;
        App { caller, whence, private, seat, ..self.clone() }
    }

    /// Counts the connection for its caller, if that is known by a token or a certificate.
    ///
    /// # Errors
    /// It has too many already; nothing changed.
    pub(crate) fn seated(&self) -> Result<(), Problem> {
        let (Caller::Holder(permit), Some(seat)) = (&self.caller, &self.seat) else {
            return Ok(());
        };
        seat.take(&permit.name).map_err(|_| {
            self.metrics.refuse("limit");
            let most = self.config.limits.clients_per_caller;
            admission::limit("clients_per_caller", most, "connections of one token or certificate")
        })
    }

    /// Returns when the node stops.
    pub(crate) async fn stopped(&mut self) {
        // If the sender is gone, so is the node.
        let _ = self.stopping.wait_for(Option::is_some).await;
    }

    /// Whether the node stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.borrow().is_some()
    }

    /// Where a client may go on when the node stops, if it knows another that is there.
    pub(crate) fn go_on(&self) -> Option<String> {
        self.stopping.borrow().as_ref()?.another()
    }

    /// Whether the caller may do that.
    pub(crate) fn authorize(&self, pool: Option<&str>, action: Action) -> Result<(), Problem> {
        let decided = caller::decide(&self.config, &self.caller, pool, action, None);
        decided.map_err(|why| self.refuse(why, pool, action))
    }

    /// Whether the caller may claim so many units.
    fn authorize_units(&self, pool: &str, units: u32) -> Result<(), Problem> {
        let (pool, action) = (Some(pool), Action::Claim);
        let decided = caller::decide(&self.config, &self.caller, pool, action, Some(units));
        decided.map_err(|why| self.refuse(why, pool, action))
    }

    /// Counts a refusal and writes it down; what the caller is told.
    fn refuse(&self, why: Why, pool: Option<&str>, action: Action) -> Problem {
        self.metrics.trust.refuse(why.reason());
        self.note_refusal(action.word(), pool.unwrap_or_default(), String::new(), why.reason());
        why.problem(pool)
    }

    fn note_refusal(&self, what: &str, pool: &str, about: String, reason: &str) {
        let result = reason.to_owned();
        let (who, from) = (&self.caller, self.whence);
        self.audit.refusal(Note { who, from, what, pool, about, result });
    }

    /// Writes down that the caller did something that administrators do, and what came of it.
    pub(crate) fn act(&self, what: &str, pool: &str, about: String, result: String) {
        let (who, from) = (&self.caller, self.whence);
        self.audit.act(Note { who, from, what, pool, about, result });
    }

    /// The same caller, who has shown this token; before anybody is told that it is unknown, it is
    /// made sure that it is not new.
    pub(crate) async fn heard(&self, token: Option<&str>) -> Self {
        let (Some(hall), true) = (&self.hall, self.may_be_new(token)) else {
            return self.shown(token);
        };
        let sure = hall.hear_of_tokens().await;
        match sure || !self.may_be_new(token) {
            true => self.shown(token),
            false => self.serving(Caller::Unheard),
        }
    }

    /// Whether this is a token that this node does not know, and others may.
    pub(crate) fn may_be_new(&self, token: Option<&str>) -> bool {
        let shows = || self.caller.clone().shows(&self.config, token);
        self.hall.is_some()
            && token.is_some()
            && self.config.guarded.now().is_some()
            && shows() == Caller::Stranger(None)
    }

    /// The same caller, who has shown this token.
    pub(crate) fn shown(&self, token: Option<&str>) -> Self {
        let caller = self.caller.clone().shows(&self.config, token);
        if token.is_some() {
            self.audit.used(&caller, self.whence);
        }
        self.serving(caller)
    }

    /// This node's part of the control plane.
    ///
    /// # Errors
    /// There is none; nothing changed.
    pub(crate) fn hall(&self) -> Result<&Arc<Hall>, Problem> {
        self.hall.as_ref().ok_or_else(|| {
            let text = "this cluster has no charter: its members are those of the configuration \
                        file; nothing changed. Change the file of every member, raise the epoch \
                        and restart all, or switch on [charter]";
            Problem::new(ProblemKind::Refused, text)
        })
    }

    /// Whether the caller may see this pool.
    pub(crate) fn sees(&self, pool: &str) -> bool {
        caller::may(&self.config, &self.caller, Some(pool), Action::See)
    }

    /// Until the caller may not see this pool, or any pool, any more: what it watches ends then,
    /// since its token was removed, or has expired.
    pub(crate) async fn barred(&self, pool: Option<&str>) {
        let mut news = self.config.guarded.news();
        while caller::may(&self.config, &self.caller, pool, Action::See) {
            // A token that expires is no news.
            let _ = timeout(LOOK_AGAIN, news.changed()).await;
        }
    }

    /// Whether the caller was let in by a token or a certificate that is worth nothing any more,
    /// since it was removed, or has expired.
    ///
    /// # Errors
    /// It was; what it is told.
    pub(crate) fn let_in(&self) -> Result<(), Problem> {
        caller::let_in(&self.config, &self.caller).map_err(|why| why.problem(None))
    }

    /// When it is time to look again whether the caller is [`Self::let_in`].
    pub(crate) fn look_again(&self) -> impl Future<Output = ()> + use<> {
        let mut news = self.config.guarded.news();
        // A token that expires is no news.
        async move { drop(timeout(LOOK_AGAIN, news.changed()).await) }
    }

    /// Until the caller is let in no more; what it is told.
    async fn cut_off(&self) -> Problem {
        if !matches!(self.caller, Caller::Holder(_) | Caller::Bearer(_)) {
            return std::future::pending().await;
        }
        loop {
            let again = self.look_again();
            if let Err(problem) = self.let_in() {
                return problem;
            }
            again.await;
        }
    }

    /// Whether there is anything that the caller may not see.
    pub(crate) fn sees_everything(&self) -> bool {
        match &self.caller {
            Caller::Holder(permit) => {
                caller::may(&self.config, &self.caller, None, Action::See)
                    && permit.may.has(Right::See)
                    && permit.pools.iter().any(Pattern::is_all)
            }
            _ => caller::may(&self.config, &self.caller, None, Action::See),
        }
    }

    /// Sees to it that a pool which others know of is known here too, so that nobody is told that
    /// there is none.
    ///
    /// # Errors
    /// This node does not know the pool, and cannot find out whether there is one.
    pub(crate) async fn look_for(&self, pool: &str) -> Result<(), Problem> {
        match &self.hall {
            Some(hall) if self.must_look_for(pool) => hall.catch_up().await,
            _ => Ok(()),
        }
    }

    /// Whether others may know of a pool that this node does not.
    fn must_look_for(&self, pool: &str) -> bool {
        self.hall.is_some() && !self.config.names(pool) && is_pool_name(pool)
    }

    /// How a pool is configured, if it exists for the caller.
    pub(crate) fn known_pool(&self, name: &str) -> Result<Arc<PoolDef>, Problem> {
        self.authorize(Some(name), Action::Read)?;
        self.config.pool(name).ok_or_else(|| admission::unknown_pool(name))
    }

    /// How a pool is configured, if the caller may see it.
    pub(crate) fn pool(&self, name: &str) -> Result<Arc<PoolDef>, Problem> {
        self.authorize(Some(name), Action::See)?;
        self.config.pool(name).ok_or_else(|| admission::unknown_pool(name))
    }

    /// What changes at this node from now on, in this pool or in all.
    pub(crate) fn changes(
        &self,
        pool: Option<&str>,
    ) -> Result<broadcast::Receiver<Change>, Problem> {
        self.authorize(pool, Action::See)?;
        Ok(self.changes.subscribe())
    }

    /// What a client asks about a claim, with the name that its caller is known by: if it may ask
    /// that of this claim.
    async fn prepare(&self, pool: &str, id: ClaimId, mut ask: Ask) -> Result<Ask, Problem> {
        let Caller::Holder(permit) = &self.caller else { return Ok(ask) };
        self.authorize(Some(pool), ask.needs())?;
        if let Ask::Claim { want, .. } = &mut ask {
            self.authorize_units(pool, want.units())?;
            want.client = caller::called(&self.caller, &want.client)?;
        }
        if let Ask::Renew { client, .. } = &mut ask {
            // Whoever may not call itself that is called as its token is.
            *client = caller::called(&self.caller, client).unwrap_or_else(|_| permit.name.clone());
        }
        self.own(pool, id, &ask).await?;
        Ok(ask)
    }

    /// Whether a claim is the caller's, where that matters: of others' claims `see` reads, `revoke`
    /// ends, and nobody repeats or renews them. A claim of which no node knows whose it is belongs
    /// to whoever shows it: nodes may have started anew, and its client asks on. But not while a
    /// node is silent that may know, and those who decide have the claim in their books.
    ///
    /// # Errors
    /// It is somebody else's, or may be; nothing changed.
    pub(crate) async fn own(&self, pool: &str, id: ClaimId, ask: &Ask) -> Result<(), Problem> {
        let Caller::Holder(permit) = &self.caller else { return Ok(()) };
        let enough = match ask {
            Ask::Status { .. } => Some(Action::See),
            Ask::End => Some(Action::Revoke),
            Ask::Claim { .. } | Ask::Renew { .. } => None,
        };
        let may = |action| caller::may(&self.config, &self.caller, Some(pool), action);
        let enough = enough.is_some_and(may);
        if enough && !matches!(ask, Ask::End) {
            return Ok(());
        }
        match self.owner(pool, id).await? {
            Owner::Known(owner) if permit.client(Some(&owner)) != Ok(&owner) && enough => {
                let about = format!("claim {} of {owner}", convert::api_id(id));
                self.act(ask.word(), pool, about, "allowed".to_owned());
                Ok(())
            }
            Owner::Known(owner) if permit.client(Some(&owner)) != Ok(&owner) => {
                self.metrics.trust.refuse(OTHERS);
                self.note_refusal(
                    ask.word(),
                    pool,
                    format!("claim {}", convert::api_id(id)),
                    OTHERS,
                );
                Err(match ask {
                    Ask::Claim { .. } => admission::different(),
                    _ if !may(Action::See) => admission::unknown_claim(),
                    _ => admission::not_yours(&owner),
                })
            }
            Owner::Unsaid(silent) if !enough => Err(admission::whose(&silent)),
            Owner::Known(_) | Owner::Nobody | Owner::Unsaid(_) => Ok(()),
        }
    }

    /// What the client of a claim is called, as far as any node that answers knows.
    async fn owner(&self, pool: &str, id: ClaimId) -> Result<Owner, Problem> {
        let node = self.serving(Caller::Administrator);
        let name = pool.to_owned();
        let here = node.fetch(|reply| Request::Owner { pool: name, id, reply }).await?;
        if let Some(owner) = here {
            return Ok(Owner::Known(owner));
        }
        if self.config.members.len() == 1 {
            return Ok(Owner::Nobody);
        }
        let question = Question::Owner { pool: pool.to_owned(), claim: (id.origin, id.serial) };
        let gathered = node.fetch(|reply| Request::Gather { question, reply }).await??.owners();
        let booked = gathered.said.iter().any(|(_, whose)| whose.booked);
        match gathered.said.into_iter().find_map(|(_, whose)| whose.client) {
            Some(owner) => Ok(Owner::Known(owner)),
            None if booked && !gathered.silent.is_empty() => {
                let name = |node: &NodeId| self.config.members[node.index()].name.clone();
                Ok(Owner::Unsaid(gathered.silent.iter().map(name).collect()))
            }
            None => Ok(Owner::Nobody),
        }
    }

    /// Asks the engine about a claim, for whoever waits for the answer. It is on the desk when this
    /// returns, and done by whoever has the engine: [`App::work`].
    pub(crate) async fn ask_for(&self, pool: String, id: ClaimId, ask: Ask, waiter: Waiter) {
        let ask = match &self.caller {
            Caller::Holder(_) => match self.prepare(&pool, id, ask).await {
                Ok(ask) => ask,
                Err(problem) => return waiter.answer(Err(problem)),
            },
            _ => ask,
        };
        let allowed = match self.authorize(Some(&pool), ask.needs()) {
            Ok(()) => self.look_for(&pool).await,
            refused => refused,
        };
        match allowed {
            Ok(()) => self.bring(Request::Claim { pool, id, ask, waiter }),
            Err(problem) => waiter.answer(Err(problem)),
        }
    }

    /// Whether there is anything to wait for first, as [`App::ask_for`] does: whose a claim is, or
    /// whether others know of the pool.
    pub(crate) fn must_prepare(&self, pool: &str) -> bool {
        matches!(self.caller, Caller::Holder(_)) || self.must_look_for(pool)
    }

    /// The same as [`App::ask_for`], where there is nothing to wait for.
    pub(crate) fn ask_at_once(&self, pool: String, id: ClaimId, ask: Ask, waiter: Waiter) {
        match self.authorize(Some(&pool), ask.needs()) {
            Ok(()) => self.bring(Request::Claim { pool, id, ask, waiter }),
            Err(problem) => waiter.answer(Err(problem)),
        }
    }

    fn bring(&self, request: Request) {
        self.desk.bring(self.caller.clone(), request);
    }

    /// Has what was asked done, unless somebody is at it.
    pub(crate) fn work(&self) {
        self.desk.work();
    }

    /// Asks the engine about a claim.
    pub(crate) async fn ask(
        &self,
        pool: &str,
        id: ClaimId,
        ask: Ask,
        received: Moment,
    ) -> Result<Snapshot, Problem> {
        let (reply, answer) = oneshot::channel();
        let sender = Some((self.engine.downgrade(), pool.to_owned()));
        let waiter = Waiter { received, to: Recipient::Http(Mailbox { reply, sender }) };
        self.ask_for(pool.to_owned(), id, ask, waiter).await;
        self.work();
        tokio::select! {
            biased;
            answer = answer => answer.map_err(|_| stopping())?.read(),
            // What was granted to it meanwhile goes back, since nobody is there.
            problem = self.cut_off() => Err(problem),
        }
    }

    /// Asks the engine for anything else.
    pub(crate) async fn fetch<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, Problem> {
        let (reply, answer) = oneshot::channel();
        self.send(request(reply)).await?;
        answer.await.map_err(|_| stopping())
    }

    /// Asks all nodes what they know of a pool or a claim.
    pub(crate) async fn survey(&self, question: Question) -> Result<Gathered<Survey>, Problem> {
        Ok(self.fetch(|reply| Request::Gather { question, reply }).await??.surveys())
    }

    /// Asks all nodes what an operator wants to see.
    pub(crate) async fn glance(&self, wanted: Wanted) -> Result<Gathered<Glance>, Problem> {
        let question = Question::Glance(wanted);
        Ok(self.fetch(|reply| Request::Gather { question, reply }).await??.glances())
    }

    /// Has all nodes do something, once under this id: what those say who did it in time.
    pub(crate) async fn order(
        &self,
        pool: &str,
        what: Ordered,
        id: Option<u128>,
    ) -> Result<Gathered<Done>, Problem> {
        self.authorize(Some(pool), Action::of_order(&what))?;
        let (verb, about) = told(&what);
        let name = pool.to_owned();
        let carried = self.fetch(|reply| Request::Order { pool: name, what, id, reply }).await;
        let carried = carried.and_then(|carried| carried);
        self.act(verb, pool, about, outcome(&carried));
        carried
    }

    /// The way to the engine's own task.
    async fn send(&self, request: Request) -> Result<(), Problem> {
        let (pool, action) = request.needs();
        self.authorize(pool, action)?;
        let command = Command::Client { caller: self.caller.clone(), request };
        self.engine.send(command).await.map_err(|_| stopping())
    }

    /// Tells the engine that the node stops; returns when it has taken note.
    pub(crate) async fn stop(&self) {
        let (reply, done) = oneshot::channel();
        if self.engine.send(Command::Stop(reply)).await.is_ok() {
            // If the sender is gone, so is the engine.
            let _ = done.await;
        }
    }
}
