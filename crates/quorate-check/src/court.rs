//! The laws' judgements, each passed once and remembered.

use quorate_core::{Explorable, NodeId, Refusal};
use quorate_laws::{Breach, End, Observation, StatuteBook};

use crate::client::Client;
use crate::hash::Lookup;
use crate::parts::Parts;
use crate::scope::Scope;

/// What the laws see, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Seen {
    Claimed {
        client: usize,
    },
    Granted {
        client: usize,
        using: u32,
    },
    /// Of `using` only what is new.
    Added {
        client: usize,
        using: u32,
    },
    /// Of `using` only what was left.
    Left {
        client: usize,
        using: u32,
    },
    Ended {
        client: usize,
        using: u32,
        how: End,
    },
    Refused {
        client: usize,
        why: Refusal,
    },
    Abandoned {
        client: usize,
    },
    /// The books of a participant after a step of it.
    Books {
        node: NodeId,
        participant: u32,
    },
    /// A node crashed.
    Crashed {
        node: NodeId,
    },
    /// The pool was changed so often.
    Amended {
        edition: u8,
    },
    /// All nodes have applied that.
    Applied {
        edition: u8,
    },
}

/// What the laws say to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judgement {
    /// What they remember from now on.
    pub(crate) laws: u32,
    /// Somebody was overtaken, within what is allowed.
    pub(crate) overtaken: bool,
    pub(crate) in_use: u64,
}

/// All judgements so far.
#[derive(Debug)]
pub(crate) struct Court {
    known: Lookup<(u32, Seen), Result<Judgement, Breach>>,
}

impl Court {
    pub(crate) fn new() -> Self {
        Court { known: Lookup::default() }
    }

    /// Judges, or remembers.
    ///
    /// # Errors
    /// The law that was broken.
    pub(crate) fn judge<P: Explorable>(
        &mut self,
        parts: &mut Parts<P>,
        scope: &Scope<P>,
        laws: u32,
        seen: Seen,
    ) -> Result<Judgement, Breach> {
        if let Some(known) = self.known.get(&(laws, seen)) {
            return known.clone();
        }
        let mut book = parts.laws.get(laws).clone();
        let result = show(&mut book, parts, scope, seen).map(|()| {
            let overtaken = book.overtakes() > 0;
            book.forget_totals();
            let in_use = book.in_use();
            Judgement { laws: parts.put_laws(book), overtaken, in_use }
        });
        self.known.insert((laws, seen), result.clone());
        result
    }
}

fn show<P: Explorable>(
    book: &mut StatuteBook,
    parts: &Parts<P>,
    scope: &Scope<P>,
    seen: Seen,
) -> Result<(), Breach> {
    let claim = |client: usize| &scope.clients[client].claim;
    let shares = |using: u32| match parts.clients.get(using) {
        Client::Using { held } => &held.shares,
        other => unreachable!("{other} has no shares"),
    };
    match seen {
        Seen::Claimed { client } => {
            let claim = claim(client);
            if claim.wanted.standing.is_some() {
                book.stands(claim.id);
            }
            book.see(Observation::Claimed { claim: claim.id, units: claim.wanted.units })
        }
        Seen::Granted { client, using } => {
            book.see(Observation::Granted { claim: claim(client).id, shares: shares(using) })
        }
        Seen::Added { client, using } => {
            book.see(Observation::Added { claim: claim(client).id, shares: shares(using) })
        }
        Seen::Left { client, using } => {
            book.see(Observation::Left { claim: claim(client).id, shares: shares(using) })
        }
        Seen::Ended { client, using, how } => {
            book.see(Observation::Ended { claim: claim(client).id, shares: shares(using), how })
        }
        Seen::Refused { client, why } => {
            book.see(Observation::Refused { claim: claim(client).id, why })
        }
        Seen::Abandoned { client } => book.see(Observation::Abandoned { claim: claim(client).id }),
        Seen::Books { node, participant } => {
            book.see_books(node, &parts.participants.card(participant).ledger)
        }
        Seen::Crashed { node } => {
            book.see_restart(node);
            Ok(())
        }
        Seen::Amended { edition } => {
            let pool = scope.pool_of(edition);
            book.amended(P::capacity(pool), P::drained(pool));
            Ok(())
        }
        Seen::Applied { edition } => {
            book.applied(usize::from(edition));
            Ok(())
        }
    }
}
