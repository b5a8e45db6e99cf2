//! Answers to whoever waits for them.

use super::*;

impl Waiter {
    /// Answers. Whoever has gone away meanwhile is not missed: it can ask again by the claim's id.
    pub(crate) fn answer(self, result: Result<Snapshot, Problem>) {
        match self.to {
            Recipient::Http(mailbox) => {
                mailbox.put(result);
            }
            Recipient::Link { answers, number, claims } => {
                let reply = match result {
                    Err(problem) => Reply::Problem(problem),
                    Ok(snapshot) => convert::reply(snapshot.standing(), None, claims),
                };
                answers.send(&FromNode::Answer(Answer { number, reply }));
            }
        }
    }

    /// Answers that the claim was not made. A size is said with the number on the client link, so
    /// that programs need not read sentences.
    pub(crate) fn refuse(self, unfit: Unfit) {
        match (&self.to, unfit) {
            (
                Recipient::Link { answers, number, .. },
                Unfit::Size(UnitsError::TooMany { k: units, .. }),
            ) => {
                let answer = Answer { number: *number, reply: Reply::TooLarge { units } };
                answers.send(&FromNode::Answer(answer));
            }
            (_, unfit) => self.answer(Err(unfit.into())),
        }
    }

    /// Whether nobody listens any more.
    pub(crate) fn is_gone(&self) -> bool {
        match &self.to {
            Recipient::Http(mailbox) => mailbox.reply.is_closed(),
            Recipient::Link { answers, .. } => answers.is_closed(),
        }
    }

    /// Whether it is one of the client link.
    pub(crate) fn is_link(&self) -> bool {
        matches!(self.to, Recipient::Link { .. })
    }

    /// The connection, if it is one.
    pub(crate) fn session(&self) -> Option<Answers> {
        match &self.to {
            Recipient::Http(_) => None,
            Recipient::Link { answers, .. } => Some(answers.clone()),
        }
    }
}
