//! What a model checker must know about a seat that moves.

use std::time::Duration;

use quorate_core::{ClaimId, Explorable, Moment, Number, Numbers, numbers};

use super::message::{Books, Message, Shown, Waiting};
use super::reign::{Reign, Stage};
use super::shadow::Trail;
use super::{Moving, Tenure};
use crate::central::Central;

impl Explorable for Moving {
    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Word { word, .. } | Message::Promise { word, .. } => Central::promise(word),
            _ => None,
        }
    }

    fn lasts(message: &Message) -> Option<Duration> {
        let Message::Promise { lease, .. } = message else { return None };
        Some(*lease)
    }

    fn end_licence(&mut self) {
        if let Some(reign) = &mut self.reign {
            reign.licence = Moment::ZERO;
        }
    }

    fn is_licensed(&self) -> bool {
        self.reign.as_ref().is_some_and(|reign| reign.licence > Moment::ZERO)
    }
}

numbers!(plain Stage);
numbers!(Shown { claim, attempt: plain, shares });
numbers!(Waiting { node, claim, attempt: plain, wanted, sent });
numbers!(Books { of, term, granted, waiting });
numbers!(enum Message {
    Word { term, word },
    Promise { term, lease: plain, word },
    Roll { term },
    Answer { term, complete, sent, grants },
    Books(books),
    Tell { term, boot, naming: plain, all, granted, ended },
    Told { term, naming: plain, all, claims },
});
numbers!(Trail { term, naming: plain, all, granted, units: plain });
numbers!(Reign {
    tenure,
    arbiter,
    stage,
    pinned: plain,
    licence,
    amended,
    owed: plain,
    late,
    answered,
    shadow,
    vouched,
    asked,
    untold: plain,
});

impl Numbers for Moving {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        let Moving { requester, reign, applied, early, trail, .. } = self;
        requester.holds_mut().for_each(|has| has.numbers(see));
        reign.numbers(see);
        Option::<Tenure>::numbers(applied, see);
        early.numbers(see);
        trail.numbers(see);
    }
}
