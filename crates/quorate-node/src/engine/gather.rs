//! What nodes ask each other for people: who holds what, who waits and why. Questions change
//! nothing, and nothing is decided by the answers.

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_api::Problem;
use quorate_core::{ClaimId, NodeId};
use quorate_wire::frame::{self, Frame};
use quorate_wire::glance::Glance;
use quorate_wire::survey::{Answer, Question, Survey, Whose};
use tokio::sync::oneshot;

use super::{Engine, stopping};
use crate::alarms::Due;
use crate::clock;
use crate::config::{Config, PoolDef};

/// How long other nodes have to answer a question, or to acknowledge an order.
pub(super) const PATIENCE: Duration = Duration::from_millis(1500);

/// What all nodes know.
#[derive(Debug)]
pub(crate) struct Gathered<T> {
    /// Who said what.
    pub(crate) said: Vec<(NodeId, T)>,
    /// Who said nothing in time.
    pub(crate) silent: Vec<NodeId>,
}

impl<T> Gathered<T> {
    /// Who said nothing and may know something of a pool. Not who was removed so long ago that
    /// whatever its clients had is over, twice, where one node decides and its books show all else.
    pub(crate) fn missed(&self, config: &Config, def: &PoolDef) -> impl Iterator<Item = NodeId> {
        let chartered = config.charter.filter(|_| def.protocol.about.seat_moves);
        let least = chartered.map(|it| it.licence.saturating_add(def.grace).saturating_mul(2));
        let now = clock::now();
        let is_over = move |node: NodeId| {
            let gone = config.members.gone_since(node);
            least.zip(gone).is_some_and(|(least, since)| now.since(since) > least)
        };
        self.silent.iter().copied().filter(move |node| !is_over(*node))
    }

    /// The same with another view of what was said, as far as there is one.
    fn filter<U>(self, view: impl Fn(T) -> Option<U>) -> Gathered<U> {
        let said = self.said.into_iter();
        let said = said.filter_map(|(node, said)| Some((node, view(said)?))).collect();
        Gathered { said, silent: self.silent }
    }
}

impl Gathered<Answer> {
    /// What nodes know of a pool.
    pub(crate) fn surveys(self) -> Gathered<Survey> {
        self.filter(|answer| match answer {
            Answer::Survey(survey) => Some(*survey),
            Answer::Glance(_) | Answer::Owner(_) => None,
        })
    }

    /// What an operator sees of nodes.
    pub(crate) fn glances(self) -> Gathered<Glance> {
        self.filter(|answer| match answer {
            Answer::Glance(glance) => Some(*glance),
            Answer::Survey(_) | Answer::Owner(_) => None,
        })
    }

    /// Whose nodes say that a claim is.
    pub(crate) fn owners(self) -> Gathered<Whose> {
        self.filter(|answer| match answer {
            Answer::Owner(whose) => Some(whose),
            Answer::Survey(_) | Answer::Glance(_) => None,
        })
    }
}

/// A question that has been asked, or an order that has been given.
pub(super) struct Gathering<T> {
    pub(super) said: Vec<(NodeId, T)>,
    /// Who was asked and has not answered...
    pub(super) missing: BTreeSet<NodeId>,
    /// ...and who could not be asked.
    pub(super) absent: Vec<NodeId>,
    pub(super) reply: oneshot::Sender<Result<Gathered<T>, Problem>>,
}

impl<T> Gathering<T> {
    /// A node answers: only the first time, and only if it was asked. Says whether all have.
    pub(super) fn hear(&mut self, from: NodeId, said: T) -> bool {
        if self.missing.remove(&from) {
            self.said.push((from, said));
        }
        self.missing.is_empty()
    }

    pub(super) fn finish(self) {
        let mut silent = self.absent;
        silent.extend(self.missing);
        // Whoever asked may have gone away.
        let _ = self.reply.send(Ok(Gathered { said: self.said, silent }));
    }
}

impl Engine {
    /// Asks everybody, ourselves included.
    pub(super) fn on_gather(
        &mut self,
        question: Question,
        reply: oneshot::Sender<Result<Gathered<Answer>, Problem>>,
    ) {
        if self.stopping {
            let _ = reply.send(Err(stopping()));
            return;
        }
        let number = self.question_next;
        self.question_next += 1;
        let said = vec![(self.config.me, self.answer_question(&question))];
        let mut bytes = Vec::new();
        frame::encode(&Frame::Ask(number, question), &mut bytes);
        let (missing, absent) = self.peers.write_all(&bytes);
        let everybody = missing.is_empty();
        self.gatherings.insert(number, Gathering { said, missing, absent, reply });
        if everybody {
            return self.finish_gathering(number);
        }
        self.alarms.set(clock::now().after(PATIENCE), Due::Gathering(number));
    }

    pub(super) fn on_answer(&mut self, peer: NodeId, number: u64, answer: Answer) {
        let gathering = self.gatherings.get_mut(&number);
        if gathering.is_some_and(|gathering| gathering.hear(peer, answer)) {
            self.finish_gathering(number);
        }
    }

    pub(super) fn finish_gathering(&mut self, number: u64) {
        if let Some(gathering) = self.gatherings.remove(&number) {
            gathering.finish();
        }
    }

    /// Tells what this node knows.
    pub(super) fn answer_question(&mut self, question: &Question) -> Answer {
        match question {
            Question::Pool { pool } => Answer::Survey(Box::new(self.survey(pool, None))),
            Question::Claim { pool, claim: (origin, serial) } => {
                let id = ClaimId { origin: *origin, serial: *serial };
                self.look_after(pool, id);
                Answer::Survey(Box::new(self.survey(pool, Some(id))))
            }
            Question::Booked { pool, claim: (origin, serial) } => {
                let id = ClaimId { origin: *origin, serial: *serial };
                Answer::Survey(Box::new(self.survey(pool, Some(id))))
            }
            Question::Owner { pool, claim: (origin, serial) } => {
                Answer::Owner(self.whose(pool, ClaimId { origin: *origin, serial: *serial }))
            }
            Question::Glance(wanted) => Answer::Glance(Box::new(self.glance(wanted))),
        }
    }
}
