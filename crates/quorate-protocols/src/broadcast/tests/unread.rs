//! What explorers see of participants, and what of a participant or a message is never read again.

use quorate_core::{NodeId, NodeSet};

use super::every::{Around, Explored};
use crate::broadcast::message::CLOCK_MAX;
use crate::broadcast::weighted::AskedPhase;
use crate::broadcast::{Alarm, Knowledge, Known, Message, Pool, Weighted};
use crate::reference::{Counted, Difference, Rule};

impl<R: Rule> Explored for Counted<R> {
    fn held(&self) -> u32 {
        self.units_held()
    }

    fn waits(&self) -> bool {
        self.asked.is_some() && self.units_held() == 0
    }

    fn is_quiet(&self) -> bool {
        self.is_settled()
    }

    fn cleared(&self, around: &Around) -> Self {
        let mut cleared = self.clone();
        if !around.more {
            cleared.clock.0 = CLOCK_MAX; // Only the next request reads it.
        }
        around.dead().for_each(|node| cleared.forget_deferred(node));
        cleared
    }

    fn wanted(
        &self,
        around: &Around,
        from: NodeId,
        _: bool,
        message: &Difference,
    ) -> Option<Difference> {
        let is_request = matches!(message, Difference::Request { .. });
        let is_moot = is_request && around.is_dead(from) && !around.more;
        (!is_moot).then(|| message.clone())
    }

    fn is_idle(&self) -> bool {
        self.asked.is_none()
    }

    fn is_mere_question(&self, message: &Difference) -> bool {
        matches!(message, Difference::Request { .. })
    }
}

impl Explored for Weighted {
    fn held(&self) -> u32 {
        self.asked
            .iter()
            .filter(|asked| asked.standing.is_in_use())
            .map(|asked| asked.units.get())
            .sum()
    }

    fn waits(&self) -> bool {
        self.asked.iter().any(|asked| matches!(asked.standing, AskedPhase::Waiting(_)))
    }

    fn ends_query(&self, pool: &Pool, from: NodeId, message: &Message) -> Option<NodeSet> {
        let Message::Reply { query, .. } = message else { return None };
        if query.is_none() || *query != self.detector.query || self.detector.is_done() {
            return None;
        }
        let mut missing = self.detector.missing().clone();
        missing.remove(from);
        (missing.len() <= pool.crashes_max as usize).then_some(missing)
    }

    fn suspects(&self) -> NodeSet {
        self.crashed().clone()
    }

    fn reclaimed(&self) -> u32 {
        Weighted::reclaimed(self)
    }

    fn probe() -> Option<Alarm> {
        Some(Alarm::Probe)
    }

    fn cleared(&self, around: &Around) -> Self {
        let mut cleared = self.clone();
        if !around.more {
            cleared.clock.0 = CLOCK_MAX; // Only the next request reads it.
        }
        around.dead().for_each(|node| cleared.deferred.forget(node));
        if let [asked] = &mut cleared.asked[..]
            && let AskedPhase::Held { clean, .. } = &mut asked.standing
        {
            // Who is in is ahead of everybody, and it no longer matters why.
            (asked.clock, *clean) = (0, true);
        }
        cleared.detector.forget_unread(&around.silent().collect());
        cleared
    }

    fn wanted(
        &self,
        around: &Around,
        from: NodeId,
        is_spent: bool,
        message: &Message,
    ) -> Option<Message> {
        if self.counting.is_out(from) && !around.is_dead(from) {
            return Some(message.clone()); // It will be told that it is expelled.
        }
        let mut message = message.clone();
        let news = |known: &Known| {
            let is_news = |(node, _): &(NodeId, u64)| self.detector.last_death(*node).is_none();
            Known { crashed: known.crashed.iter().filter(is_news).collect(), ..Known::default() }
        };
        match &mut message {
            Message::Request { query, known, .. } => {
                *known = Knowledge::from(news(known)); // Nobody reads the unheard of who asks.
                if around.is_dead(from) {
                    *query = None; // The answer goes nowhere.
                    if !around.more && known.is_nothing() {
                        return None;
                    }
                }
            }
            Message::Reply { request, used, query, known } => {
                let lowers = |clock: u64| {
                    let asked = self.asked.iter().find(|asked| asked.clock == clock);
                    asked.is_some_and(|asked| match &asked.standing {
                        AskedPhase::Waiting(tally) => tally.used(from) > *used,
                        AskedPhase::Held { .. } | AskedPhase::Lost => false,
                    })
                };
                if !request.is_some_and(lowers) {
                    (*request, *used) = (None, 0);
                }
                if query.is_some() && *query != self.detector.query {
                    *query = None;
                }
                let (is_read, unheard) = self.detector.reads(from, &known.unheard);
                query.take_if(|_| !is_read);
                let unheard = if query.is_some() { unheard } else { NodeSet::new() };
                *known = Knowledge::from(Known { unheard, ..news(known) });
                // What its sender has not said yet may still be news.
                let is_late = is_spent && (around.may_crash || !self.knows_all_dead(around));
                if request.is_none() && query.is_none() && known.is_nothing() && !is_late {
                    return None;
                }
            }
            _ => {}
        }
        Some(message)
    }

    /// And what it lets others know of its own queries is final.
    fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.detector.missing().is_empty()
    }

    fn is_mere_question(&self, message: &Message) -> bool {
        matches!(message, Message::Request { known, .. } if known.is_nothing())
    }

    fn retold(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if let Message::Reply { known, .. } = &mut message {
            let crashed = self.detector.known.crashed.clone();
            *known = Knowledge::from(Known { crashed, ..Known::clone(known) });
        }
        message
    }
}

impl Weighted {
    fn knows_all_dead(&self, around: &Around) -> bool {
        around.dead().all(|node| self.crashed().contains(node))
    }
}
