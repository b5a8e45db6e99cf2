//! Tells the engine what was applied, and asks for licences: one round for all groups, and never
//! two at once (charter spec S1, S2).

use std::collections::BTreeSet;
use std::convert::Infallible as Never;
use std::sync::Arc;
use std::time::Duration;

use quorate_charter::{Charter, Council, Group, Reading, Trouble};
use quorate_core::Moment;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::{
    Amendments, FromCharter, Hall, Licence, Part, Seats, import, lead, leave, listen, members,
    not_listed, shadows, term_of, trust,
};
use crate::clock;
use crate::engine::Command;

/// How long to wait before a round that failed is begun again: nobody leads for a moment.
const AGAIN: Duration = Duration::from_millis(50);

/// Homes that apply a move before the node that is to decide ask it in vain: so long after it they
/// ask once more, and again if that node is slow.
const SETTLED: [Duration; 2] = [Duration::from_millis(60), Duration::from_millis(300)];

/// Why this node's part ends.
enum Ended {
    /// The engine is gone.
    EngineGone,
    /// It cannot go on, and says why.
    Stuck(String),
}

/// Everything that this node's part does by itself, until the engine is gone.
pub(super) async fn run(
    hall: Arc<Hall>,
    part: Part,
    engine: mpsc::Sender<Command>,
    asks: mpsc::UnboundedReceiver<Moment>,
) -> Option<String> {
    let me = part.identity().member;
    // They end with this.
    let mut tasks = JoinSet::new();
    tasks.spawn(listen::run(Arc::clone(&hall), part.clone()));
    tasks.spawn(lead::run(Arc::clone(&hall), part.clone()));
    tasks.spawn(shadows::run(Arc::clone(&hall), part.clone()));
    tasks.spawn(import::go_on(Arc::clone(&hall), part.clone()));
    tasks.spawn(trust::learn(Arc::clone(&hall), part.clone()));
    let (returning, its) = (Arc::clone(&hall), part.clone());
    tasks.spawn(async move { leave::come_back(&returning, &its, me).await });
    let desk =
        Desk { hall, part, engine, told: None, applied: 0, settles: Vec::new(), wanted: None };
    match desk.run(asks).await {
        Err(Ended::Stuck(why)) => Some(why),
        Err(Ended::EngineGone) => None,
    }
}

/// A round under way, and when it began.
struct Round {
    began: Moment,
    answer: JoinHandle<Result<Confirmed, Trouble>>,
}

/// What a round confirmed: the seats of this node.
struct Confirmed {
    index: u64,
    seats: BTreeSet<(Group, u32)>,
}

struct Desk {
    hall: Arc<Hall>,
    part: Part,
    engine: mpsc::Sender<Command>,
    /// The charter that the engine knows.
    told: Option<Arc<Charter>>,
    /// Up to which entry it was told everything.
    applied: u64,
    /// When what was told last is settled, the last first.
    settles: Vec<Instant>,
    /// Licences are wanted that count since then.
    wanted: Option<Moment>,
}

impl Desk {
    async fn run(mut self, mut asks: mpsc::UnboundedReceiver<Moment>) -> Result<Never, Ended> {
        let mut readings = self.part.watch();
        let mut round: Option<Round> = None;
        let mut again: Option<Instant> = None;
        self.tell().await?;
        loop {
            if round.is_none() && self.wanted.is_some() && again.is_none() {
                round = Some(self.begin());
            }
            tokio::select! {
                changed = readings.changed() => {
                    // The engine of the control plane has stopped; `status` says why.
                    changed.map_err(|_| Ended::EngineGone)?;
                    self.tell().await?;
                }
                asked = asks.recv() => {
                    let asked = asked.ok_or(Ended::EngineGone)?;
                    self.wanted = self.wanted.max(Some(asked));
                }
                answer = answer(&mut round) => {
                    let Some(Round { began, .. }) = round.take() else { continue };
                    match answer {
                        Ok(confirmed) => {
                            self.hall.note_round(clock::now().since(began));
                            self.confirm(began, confirmed).await?;
                        }
                        Err(_) => again = Some(Instant::now() + AGAIN),
                    }
                }
                () = wake(again) => again = None,
                () = wake(self.settles.last().copied()) => {
                    self.settles.pop();
                    let last = self.settles.is_empty();
                    self.send(FromCharter::Settled { last }).await?;
                }
                () = self.engine.closed() => return Err(Ended::EngineGone),
            }
        }
    }

    /// Tells the engine how far the charter is applied here.
    async fn tell(&mut self) -> Result<(), Ended> {
        let Reading { applied, charter } = self.part.watch().borrow().clone();
        if self.told.as_ref().map(|told| told.version()) != Some(charter.version()) {
            self.hall.book.note_all(&charter, &self.hall.config);
            self.hall.note_removed(&charter, self.part.identity().member);
            self.hall.let_in_by(&self.part);
            let seats = Arc::new(Seats::of(&charter, &self.hall.config));
            let amendments = Amendments::new(&charter, self.told.as_deref());
            let joined = not_listed(&charter, &self.hall.config);
            let joined = joined.map_err(|why| Ended::Stuck(format!("the charter: {why}")))?;
            self.send(FromCharter::Applied(seats, amendments, joined)).await?;
            // What was before this start is no news.
            let news = self.told.replace(Arc::clone(&charter));
            let news = news.map(|before| members::news(&before, &charter)).unwrap_or_default();
            self.send(FromCharter::Members(news)).await?;
            let now = Instant::now();
            self.settles = SETTLED.iter().rev().map(|after| now + *after).collect();
        }
        self.applied = applied;
        self.send(FromCharter::UpTo(applied)).await
    }

    async fn send(&self, word: FromCharter) -> Result<(), Ended> {
        match &word {
            FromCharter::Licensed(none) if none.is_empty() => return Ok(()),
            FromCharter::Members(none) if none.is_empty() => return Ok(()),
            _ => {}
        }
        self.engine.send(Command::Charter(word)).await.map_err(|_| Ended::EngineGone)
    }

    fn begin(&self) -> Round {
        let (began, part) = (clock::now(), self.part.clone());
        Round { began, answer: tokio::spawn(async move { confirmed(&part).await }) }
    }

    async fn confirm(
        &mut self,
        began: Moment,
        Confirmed { index, seats }: Confirmed,
    ) -> Result<(), Ended> {
        // Charter spec S2: the engine knows what was applied at that round before it may decide.
        self.tell().await?;
        debug_assert!(self.applied >= index, "a read waits until it is applied");
        // Who asked when the round was under way asks for the next one.
        self.wanted = self.wanted.filter(|wanted| *wanted > began);
        let licence = |(group, term)| Licence { group, term, asked: began };
        self.send(FromCharter::Licensed(seats.into_iter().map(licence).collect())).await
    }
}

/// Which seats this member has, by a round begun now.
async fn confirmed(part: &Part) -> Result<Confirmed, Trouble> {
    let me = part.identity().member;
    let charter = Arc::clone(&part.watch().borrow().charter);
    let mine = charter.seats().iter().filter(|(_, seat)| seat.life.member == me);
    let known: Vec<(Group, u64)> = mine.map(|(group, seat)| (*group, seat.term)).collect();
    let licence = part.licence(me, &known).await?;
    let term = |(group, term): &(Group, u64)| (*group, term_of(&charter, *term));
    let seats = licence.confirmed.iter().map(term).collect();
    Ok(Confirmed { index: licence.index, seats })
}

async fn answer(round: &mut Option<Round>) -> Result<Confirmed, Trouble> {
    match round {
        Some(round) => match (&mut round.answer).await {
            Ok(answer) => answer,
            Err(error) => Err(Trouble::Stopped(error.to_string())),
        },
        None => std::future::pending().await,
    }
}

async fn wake(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
